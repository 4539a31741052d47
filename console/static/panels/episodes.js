// Episodes: filter, page, sort, search, change several at once.
import { h, keyed, number, patch, said, when } from "../dom.js";
import { label, t } from "../i18n.js";
import { act, app, emit, has, on } from "../state.js";
import { badge, bar, button, confirmed, dialog, empty, heading, pager, region, section, told, write } from "../ui.js";
import { control, fieldsOf, form } from "../forms.js";

const SIZES = [20, 50, 100];

/** A select of the speakers of the open space; whoever comes later is added, the choice stays. */
export function speakerControl(name = "speaker_id", words = label("field", name), any = t("everyone")) {
  const made = control({ name, label: words, choices: [""], required: true, default: "" });
  const show = () => {
    const kept = made.input.value;
    const known = app.speakers.map((each) => h("option", { value: each.id }, nameOf(each)));
    patch(made.input, h("option", { value: "" }, any), known);
    made.input.value = kept;
  };
  show();
  on("speakers", show);
  return made;
}

export function nameOf({ id, name }) {
  const short = (text) => (text.length > 60 ? `${text.slice(0, 60)}…` : text);
  return name && name !== id ? `\u2068${short(name)}\u2069 (\u2068${short(id)}\u2069)` : `\u2068${short(id)}\u2069`;
}

/** The fields of a filter; importance as a choice. */
export function filterFields(action) {
  const wanted = ["statuses", "speaker_id", "tags", "source", "after", "before", "importance_min", "at", "include_ended"];
  return fieldsOf(action, wanted).map((field) => {
    if (field.name === "speaker_id") return speakerControl();
    if (field.name === "importance_min") {
      const made = control({ ...field, help: "", type: "text", choices: ["1", "2", "3", "4", "5"], default: "1", required: true });
      const get = made.get;
      return { ...made, get: () => (get() === "1" ? undefined : Number(get())) };
    }
    return control({ ...field, help: field.name === "statuses" && action !== "timeline" ? t("statesHelp") : "" });
  });
}

/** One episode in a list. */
export function episodeLine(each, { key = "episode", extra } = {}) {
  const open = h("button",
    { type: "button", class: "row-text", data: { key: `${key} ${each.id}` }, onclick: () => app.openEpisode(each.id) },
    said_(each.content),
  );
  return h("div", { class: "row-main" }, open, meta(each), extra);
}

const said_ = (text) => h("bdi", { dir: "auto", class: "clamp" }, text.length > 600 ? `${text.slice(0, 600)}…` : text);

export const stars = (n) => h("span",
  { class: `stars level-${n}`, role: "img", "aria-label": t("importanceOf", { n: String(n) }), title: t("importanceOf", { n: String(n) }) },
  "●".repeat(n) + "○".repeat(5 - n),
);

export const speakerOf = (each) => (each.sender_id ? said(each.sender_name || each.sender_id, 40) : null);

const meta = (each) =>
  h("p", { class: "meta" },
    speakerOf(each),
    when(each.timestamp),
    stars(each.importance),
    each.status !== "active" && badge("status", each.status),
    each.pinned && h("span", { class: "badge" }, t("pinned")),
    each.source && h("span", { class: "quiet" }, said(each.source, 40)),
    each.tags.map((tag) => h("span", { class: "tag" }, said(tag, 64))),
  );

export function episodesPanel() {
  const selected = new Set();
  let mode = "list";
  let asked = {};
  let size = SIZES[0];
  let order = "newest";

  const filter = form(filterFields("list"), { submit: t("filter"), onSubmit: (values) => begin("list", values) });
  const asOf = control({ name: "as_of" });
  filter.node.querySelector(".fields").append(asOf.node);
  filter.node.querySelector(".actions").append(button(t("clearFilter"),
    () => (filter.set({ importance_min: "1", speaker_id: "" }), asOf.set(""), (query.value = ""), begin("list", {})),
  ));
  const filterBox = h("details", { class: "card filters" },
    h("summary", null, t("filters"), " ", h("span", { class: "hint", id: "filter-said" })),
    filter.node,
  );

  const query = h("input", { type: "search", "aria-label": t("searchEpisodes"), placeholder: t("searchEpisodes"), dir: "auto" });
  const search = h("form", { class: "search", role: "search" }, query, h("button", { type: "submit" }, t("search")));
  search.addEventListener("submit", (event) => {
    event.preventDefault();
    begin(query.value.trim() ? "recall" : "list", filter.values());
  });

  const orders = control({ ...(fieldsOf("list", ["order"])[0] ?? { name: "order", choices: ["newest"] }), default: "newest", required: true, help: "" });
  orders.input.addEventListener("change", () => ((order = orders.get()), begin(mode, asked)));
  const sizes = control({ name: "page_size", choices: SIZES.map(String), default: String(size), required: true });
  sizes.input.addEventListener("change", () => ((size = Number(sizes.get())), begin(mode, asked)));

  const pages = pager(() => list.read());

  function begin(how, values) {
    [mode, asked] = [how, { ...values, ...(asOf.get() && { as_of: asOf.get() }) }];
    pages.reset();
    const n = Object.values(asked).filter((value) => value !== false).length;
    filterBox.querySelector("#filter-said").textContent = n ? t("filtersSet", { n }) : "";
    orders.node.hidden = mode === "recall";
    remove.hidden = mode === "recall" || n === 0 || "as_of" in asked; // it deletes what the filter lets pass now, so only where that is what stands here
    return list.read();
  }

  async function load() {
    if (mode === "recall") {
      const found = await act("recall", { ...asked, query: query.value.trim(), limit: size });
      return { episodes: found.hits, total: found.hits.length, cursor: "", found: { considered: found.considered, mode: found.mode } };
    }
    return act("list", { ...asked, limit: size, cursor: pages.cursor, ...(has("list") && fieldsOf("list", ["order"]).length && { order }) });
  }

  const rows = keyed(h("ul", { class: "rows" }), (each) => each.id, (each) => {
    const box = h("input",
      { type: "checkbox", checked: selected.has(each.id), data: { id: each.id, key: `pick ${each.id}` }, "aria-label": t("selectThis", { text: each.content.slice(0, 60) }) },
    );
    box.addEventListener("change", () => (box.checked ? selected.add(each.id) : selected.delete(each.id), counted()));
    return h("li", { class: `row is-${each.status}` },
      h("label", { class: "pick" }, box),
      episodeLine(
        each,
        { extra: each.score !== undefined && h("p", { class: "score" },
          bar(each.relevance),
          h("span", null, t("scoreOf", { score: number(each.score, 3) })),
        ) },
      ),
    );
  });

  const list = region(load, (page) => {
    pages.show(page, page.episodes.length, size);
    selection.hidden = !page.episodes.length && !selected.size;
    if (!page.episodes.length) {
      const filtered = mode === "recall" || Object.keys(asked).length > 0;
      return filtered ? empty(t("noneFound"), t("noneFoundHint")) : empty(t("noEpisodes"), t("noEpisodesHint"));
    }
    const drawn = rows.show(page.episodes);
    counted();
    return drawn;
  });

  // ------------------------------------------------------------------------------------- several at once
  const all = h("input", { type: "checkbox", id: "pick-all" });
  all.addEventListener("change", () => {
    for (const each of list.data?.episodes ?? []) all.checked ? selected.add(each.id) : selected.delete(each.id);
    counted();
  });
  const chosen = h("span", { role: "status" });
  const batch = h("div", { class: "actions" },
    button(t("editSelected"), editSelected, { write: true, kind: "primary" }),
    button(t("clearSelection"), () => (selected.clear(), counted())),
  );
  const selection = h("div", { class: "toolbar selection" },
    h("label", { class: "pick", for: "pick-all" }, all, h("span", null, t("selectPage"))),
    chosen,
    batch,
  );

  function counted() {
    const here = list.data?.episodes ?? [];
    const n = here.filter((each) => selected.has(each.id)).length;
    for (const box of rows.node.querySelectorAll("input[data-id]")) box.checked = selected.has(box.dataset.id);
    all.checked = here.length > 0 && n === here.length;
    all.indeterminate = n > 0 && n < here.length;
    chosen.textContent = selected.size ? t("selectedCount", { n: selected.size }) : "";
    batch.hidden = selected.size === 0;
    selection.classList.toggle("on", selected.size > 0);
  }

  async function editSelected() {
    const ids = [...selected];
    const done = await dialog(t("editSelectedTitle", { n: ids.length }), (close) => batchForm(ids, close));
    if (!done) return;
    selected.clear();
    told(t("changedCount", { n: done.counts.changed ?? ids.length }), done.audit_id ? [done.audit_id] : []);
    emit("wrote");
  }

  const remove = button(t("deleteMatching"), deleteMatching, { write: true, kind: "danger quiet" });
  remove.hidden = true;
  async function deleteMatching() {
    const where = { statuses: ["active"], ...asked }; // what the list shows where no state is chosen
    const { counts } = await act("delete", { ...where, dry_run: true });
    const n = Object.values(counts).reduce((sum, each) => sum + each, 0);
    if (!n) return void (await dialog(
      t("deleteMatching"),
      (close) => [h("p", null, t("noneFound")), h("div", { class: "actions end" }, button(t("close"), () => close()))],
    ));
    const sure = await confirmed(t("deleteMatching"), `${app.start.actions.delete.confirm} ${t("thatMany", { n })}`, t("deleteCount", { n }));
    if (sure) await write("delete", where, { said: t("deletedCount", { n }) });
  }

  const add = button(t("addEpisode"), addEpisode, { write: true });
  async function addEpisode() {
    const names = ["content", "importance", "tags", "claim_type", "source_ref", "event_at", "valid_from", "valid_until", "pinned"];
    const who = speakerControl("speaker", t("saidBy"), t("nobody"));
    await dialog(t("addEpisode"), (close) => {
      const made = form([...fieldsOf("remember", names).map((each) => ({ ...each, help: "" })), who], {
        submit: t("store"),
        write: true,
        extra: button(t("cancel"), () => close()),
        onSubmit: async ({ speaker, ...values }) => {
          const whose = app.speakers.find((each) => each.id === speaker);
          const stored = await act("remember", { ...values, source: "console" }, { speaker: whose ? { id: whose.id, name: whose.name } : null });
          told(label("outcome", stored.outcome), stored.audit_id ? [stored.audit_id] : [], {}, stored.notes);
          emit("wrote");
          close();
        },
      });
      return made.node;
    }, { wide: true });
  }

  counted();
  const node = h(
    "div",
    { class: "panel" },
    heading(t("nav.episodes"), "", add),
    search,
    filterBox,
    h("div", { class: "toolbar" }, orders.node, sizes.node, h("span", { class: "grow" }), has("delete") && remove),
    section("", selection, list.node, pages.node),
  );
  return {
    node,
    refresh: (quiet) => list.read(quiet),
    open(where) {
      filter.set({ importance_min: "1", speaker_id: "", ...where });
      asOf.set("");
      query.value = "";
      filterBox.open = true;
      return begin("list", filter.values());
    },
  };
}

/** The form that changes several episodes: first what it would do, then it does it. */
function batchForm(ids, close) {
  const unchanged = t("leaveAsIs");
  const fields = fieldsOf("edit-all", ["importance", "status", "pinned", "add_tags", "remove_tags"]).map((field) => {
    if (field.name === "importance") return numbered(
      control({ ...field, type: "text", choices: ["1", "2", "3", "4", "5"], any: unchanged, help: "" }),
      Number,
    );
    if (field.name === "pinned") return numbered(
      control({ ...field, type: "text", choices: ["true", "false"], any: unchanged, help: "" }),
      (value) => value === "true",
    );
    return control({ ...field, any: unchanged, help: "" });
  });
  const seen = h("div", { role: "status" });
  let checked = "";
  let changing = ids.length;
  const apply = button(t("apply"), async () => {
    const sure = await confirmed(t("apply"), t("applySure", { n: changing }), t("apply"), { danger: false });
    if (sure) close(await act("edit-all", { ...made.values(), ids }));
  }, { kind: "primary", write: true });
  apply.hidden = true;
  const made = form(fields, {
    submit: t("preview"),
    kind: "",
    extra: [apply, button(t("cancel"), () => close())],
    onSubmit: async (values) => {
      const { counts, notes } = await act("edit-all", { ...values, ids, dry_run: true });
      const n = counts.changed ?? Object.values(counts).reduce((sum, each) => sum + each, 0) - (counts.unchanged ?? 0);
      checked = JSON.stringify(values);
      changing = n;
      patch(
        seen,
        h("p", { class: "notice" }, t("wouldChange", { n, unchanged: counts.unchanged ?? 0 })),
        (notes ?? []).map((each) => h("p", { class: "hint" }, each)),
      );
      apply.hidden = n === 0;
    },
  });
  made.node.addEventListener("input", () => {
    if (JSON.stringify(made.values()) === checked) return; // what was previewed is no longer what would be applied
    apply.hidden = true;
    patch(seen);
  });
  made.node.querySelector(".fields").append(seen);
  return made.node;
}

const numbered = (made, turn) => ({ ...made, get: () => (made.get() === undefined ? undefined : turn(made.get())) });
