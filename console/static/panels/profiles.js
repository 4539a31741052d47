// Profiles of the chat and of everybody who spoke in it: what holds now, what held before, and changes to it.
import { h, keyed, patch, said, when } from "../dom.js";
import { label, t } from "../i18n.js";
import { act, app, emit, on } from "../state.js";
import { badge, button, confirmed, dialog, empty, heading, region, section, told, write } from "../ui.js";
import { control, fieldsOf, form } from "../forms.js";
import { nameOf } from "./episodes.js";

const FIELDS = ["name", "traits", "preferences", "notes"];
const SLOTTED = ["traits", "preferences"];
// Where one value holds at a time; else it is one of a list, all of which `set` would end.
const isSingle = ({ field, slot }) => Boolean(slot) || field === "name";

export function profilesPanel() {
  let who = null; // null: the chat
  const subject = () => (who ? "speaker" : "session");
  const options = () => ({ speaker: who ? { id: who.id, name: "" } : null }); // no name: a change must not rename anybody
  const wanted = h("input", { type: "search", "aria-label": t("searchSpeakers"), placeholder: t("searchSpeakers"), dir: "auto" });
  const people = keyed(h("ul", { class: "picks" }), (each) => each.id ?? "",
    (each) => h("li", null,
      h("button",
        { type: "button", "aria-pressed": String(each.on), class: "pick-button", data: { key: `who ${each.id ?? ""}` }, onclick: () => choose(each.id === null ? null : each) },
        h("span", { class: "pick-name" }, each.id === null ? t("thisChat") : nameOf(each)),
        each.id !== null && h("span", { class: "quiet" }, t("countFacts", { n: each.facts })),
      ),
    ),
  );

  function listed() {
    const text = wanted.value.toLowerCase();
    const found = app.speakers.filter((each) => [each.id, ...each.names].some((name) => name.toLowerCase().includes(text)));
    people.show([{ id: null, on: !who }, ...found.slice(0, 200).map((each) => ({ ...each, on: who?.id === each.id }))]);
  }
  wanted.addEventListener("input", listed);
  on("speakers", listed);

  function choose(each) {
    who = each;
    listed();
    list.read();
  }

  const asOf = control({ ...(fieldsOf("profile show", ["as_of"])[0] ?? { name: "as_of" }), help: "" });
  asOf.input.addEventListener("change", () => list.read());

  const list = region(
    async () => {
      const past = asOf.get();
      const found = await act("profile show", { history: !past, ...(past && { as_of: past }) }, options());
      return { past: past ?? "", profile: found[subject()], history: found[`${subject()}_history`] ?? [] };
    },
    (data) => (data.past ? snapshot(data.profile) : current(data)),
  );

  /** As it was: only to look at. */
  function snapshot(profile) {
    const rows = FIELDS.flatMap((field) => [profile[field]].flat().filter(Boolean).map((value) => h("li", { class: "row" },
      h("div", { class: "row-main" }, h("p", { class: "hint" }, label("profileField", field)), h("p", null, said(value))),
    )));
    return rows.length ? h("ul", { class: "rows" }, rows) : empty(t("noFacts"), t("noFactsThen"));
  }

  function current({ profile, history }) {
    const now = history.filter((each) => each.status === "current");
    if (!history.length) return empty(t("noFacts"), t("noFactsHint"));
    return [
      profile.updated_at && h("p", { class: "hint" }, t("updatedAt"), " ", when(profile.updated_at)),
      FIELDS.map((field) => {
        const past = history.filter((each) => each.field === field && each.status !== "current");
        const here = now.filter((each) => each.field === field);
        if (!here.length && !past.length) return null;
        return h("section", { class: "facts-of" },
          h("h3", null, label("profileField", field)),
          here.length ? h("ul", { class: "rows" }, here.map(fact)) : h("p", { class: "hint" }, t("nothingNow")),
          earlier(field, past),
        );
      }),
    ];
  }

  const fact = (each) =>
    h(
      "li",
      { class: "row" },
      h("div", { class: "row-main" },
        h("p", null, each.slot && [h("span", { class: "tag" }, said(each.slot, 64)), " "], said(each.value)),
        h("p", { class: "meta" }, h("span", null, t("since"), " ", when(each.created_at))),
      ),
      h("div", { class: "actions" },
        button(t("edit"), () => edit(each), { write: true, key: `edit ${each.field} ${each.slot} ${each.value}` }),
        button(t("remove"), () => remove(each), { write: true, kind: "danger quiet" }),
      ),
    );

  const earlier = (field, past) =>
    past.length > 0 &&
    h(
      "details",
      { data: { key: `past ${field}` } },
      h("summary", null, t("earlierValues", { n: past.length })),
      h("ul", { class: "rows" }, [...past].reverse().map((each) =>
        h("li", { class: "row" },
          h("div", { class: "row-main" },
            h("p", null, each.slot && [h("span", { class: "tag" }, said(each.slot, 64)), " "], said(each.value)),
            h("p", { class: "meta" },
              badge("factStatus", each.status),
              h("span", null, when(each.created_at), " – ", when(each.ended_at)),
              each.reason && h("span", { class: "quiet" }, label("factReason", each.reason)),
            ),
          ),
          button(t("restoreValue"), () => bringBack(each), { write: true }),
        ),
      )),
    );

  const place = (each) => ({ field: each.field, subject: subject(), ...(each.slot && { fact_key: each.slot }) });
  const bringBack = (each) => write(
    isSingle(each) ? "profile set" : "profile add",
    { ...place(each), value: each.value },
    { ...options(), said: t("restored") },
  );
  const remove = (each) => write(
    "profile remove",
    { ...place(each), ...(!each.slot && { value: each.value }) },
    { ...options(), said: t("removed") },
  );

  const edit = (each) =>
    dialog(label("profileField", each.field), (close) => {
      const made = form([{ ...control({ name: "value", label: t("field.value"), default: each.value, required: true }) }], {
        submit: t("save"),
        write: true,
        extra: button(t("cancel"), () => close()),
        onSubmit: async ({ value }) => {
          if (value !== each.value) await replace(each, value);
          close();
        },
      });
      return made.node;
    });

  // In a list the new value is added before the old one goes.
  async function replace(each, value) {
    if (isSingle(each)) return write("profile set", { ...place(each), value }, { ...options(), said: t("saved") });
    const added = await act("profile add", { ...place(each), value }, options());
    const removed = await act("profile remove", { ...place(each), value: each.value }, options());
    told(t("saved"), [added.audit_id, removed.audit_id].filter(Boolean), options());
    return emit("wrote");
  }

  const add = form(
    [
      { name: "field", choices: FIELDS, default: "preferences", required: true },
      { name: "fact_key", help: t("slotHelp") },
      { name: "value", required: true },
    ],
    {
      submit: t("addFact"),
      write: true,
      row: true,
      onSubmit: async ({ field, fact_key: slot, value }) => {
        const action = isSingle({ field, slot }) ? "profile set" : "profile add";
        await write(
          action,
          { field, value, subject: subject(), ...(slot && SLOTTED.includes(field) && { fact_key: slot }) },
          { ...options(), said: t("saved") },
        );
        add.controls[2].set("");
      },
    },
  );

  const erase = button(t("eraseSpeaker"), async () => {
    if (await confirmed(t("eraseSpeaker"), `${app.start.actions.erase.confirm} ${nameOf(who)}`, t("eraseForGood"))) {
      await write("erase", { speaker: who.id }, { said: t("erased") });
      choose(null);
    }
  }, { write: true, kind: "danger quiet" });

  const head = h("div", { class: "toolbar" });
  const show = () => patch(head, h("h2", null, who ? said(nameOf(who), 140) : t("thisChat")), h("span", { class: "grow" }), who && erase, asOf.node);
  const node = h(
    "div",
    { class: "panel" },
    heading(t("nav.profiles"), t("profilesHint")),
    h("div", { class: "split" },
      section("", wanted, people.node),
      h("div", { class: "stack" }, section("", head, list.node), section(t("addFact"), add.node)),
    ),
  );
  const read = list.read;
  list.read = (quiet) => (show(), read(quiet));
  listed();
  return { node, refresh: (quiet) => list.read(quiet) };
}
