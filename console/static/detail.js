// The side panel of one episode: all of it, its history and lineage, and what can be done with it.
import { h, patch, said, when } from "./dom.js";
import { label, t } from "./i18n.js";
import { act, emit, on } from "./state.js";
import { badge, button, confirmed, dialog, facts, failure, loading, told, write } from "./ui.js";
import { control, fieldsOf, form } from "./forms.js";
import { speakerOf, stars } from "./panels/episodes.js";

const EDITED = ["content", "importance", "tags", "claim_type", "source_ref", "event_at", "valid_from", "valid_until", "pinned"];

export function detail() {
  const body = h("div", { class: "detail-body" });
  const title = h("h2", { tabindex: "-1", id: "detail-title" });
  const node = h("aside", { class: "detail", "aria-labelledby": "detail-title", hidden: true },
    h("header", null, title, button("×", dismiss, { kind: "icon", name: t("close") })),
    body,
  );
  let id = null;
  let shown = null; // what stands here, as JSON
  let editing = null;
  let opener = null;
  let turn = 0;

  function close() {
    node.hidden = true;
    document.body.classList.remove("has-detail");
    id = editing = null;
    turn++; // an answer on its way is nobody's any more
    const again = opener?.isConnected ? opener : opener?.dataset?.key && document.querySelector(`[data-key="${CSS.escape(opener.dataset.key)}"]`);
    (again || document.querySelector("main h1"))?.focus(); // the row may be gone by now
  }
  node.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.isComposing) return; // while an input method composes, Escape is its own
    event.preventDefault(); // or the browser closes with it the dialog that asks
    dismiss();
  });

  const mayLeave = async () => !editing?.dirty() || confirmed(t("leaveEdit"), t("leaveEditHint"), t("leave"));

  async function dismiss() {
    if (await mayLeave()) close();
  }

  async function open(episodeId) {
    if (!node.contains(document.activeElement)) opener = document.activeElement;
    if (!(await mayLeave())) return;
    [id, shown, editing] = [episodeId, null, null];
    node.hidden = false;
    document.body.classList.add("has-detail");
    title.textContent = t("episode");
    patch(body, loading());
    title.focus(); // at once: Escape closes it while it is read, too
    await read();
  }

  /** Read it again. While it is edited nothing moves: a banner says that it changed elsewhere. */
  async function read() {
    if (id === null) return;
    const mine = ++turn;
    try {
      const asked = { id };
      const history = await act("history", asked);
      const last = history.at(-1); // how it is, or was when it was deleted
      const episode = { ...last.episode, gone: last.until !== "" };
      const lineage = episode.gone ? { sources: [], summaries: [] } : await act("consolidate lineage", asked);
      if (mine !== turn) return;
      const json = JSON.stringify([episode, history, lineage]);
      if (json === shown) return;
      shown = json;
      if (editing) editing.changedElsewhere(episode);
      else draw(episode, history, lineage);
    } catch (error) {
      // What stands here stays while the server is away; where nothing stands yet, that is said.
      if (mine === turn && !editing && (shown === null || error.kind !== "Unreachable")) patch(body, failure(error, () => read()));
    }
  }

  function draw(episode, history, lineage) {
    editing = null;
    const link = (other) => button(other, () => open(other), { kind: "link mono" });
    const versions = [...history].reverse();
    patch(
      body,
      episode.gone && h("p", { class: "notice" }, t("forgottenNotice")),
      h("div", { class: "content" }, said(episode.content, 1500)),
      h("div", { class: "actions" }, verbs(episode, history, lineage)),
      facts([
        [t("field.status"), episode.gone ? badge("status", "deleted") : badge("status", episode.status)],
        [t("field.superseded_by"), episode.superseded_by && link(episode.superseded_by)],
        [t("field.speaker"), episode.sender_id && h("span", null,
          speakerOf(episode),
          " ",
          h("span", { class: "quiet mono" }, said(episode.sender_id, 60)),
        )],
        [t("field.timestamp"), when(episode.timestamp)],
        [t("field.importance"), stars(episode.importance)],
        [t("field.tags"), episode.tags.length > 0 && h("span", { class: "meta" },
          episode.tags.map((tag) => h("span", { class: "tag" }, said(tag, 64))),
        )].map((each) => each || null),
        [t("field.source"), said(episode.source, 80)],
        [t("field.source_ref"), episode.source_ref && said(episode.source_ref, 200)],
        [t("field.claim_type"), label("claim", episode.claim_type)],
        [t("field.event_at"), when(episode.event_at)],
        [t("field.valid_from"), when(episode.valid_from)],
        [t("field.valid_until"), when(episode.valid_until)],
        [t("field.pinned"), episode.pinned ? t("yes") : null],
        [t("field.version"), String(episode.version)],
        [t("field.id"), h("span", { class: "mono" }, episode.id)],
      ]),
      h("h3", null, t("lineage")),
      lineage.sources.length + lineage.summaries.length
        ? facts([
            [t("drawnFrom"), lineage.sources.length ? h("span", { class: "meta" }, lineage.sources.map(link)) : null],
            [t("summarisedIn"), lineage.summaries.length ? h("span", { class: "meta" }, lineage.summaries.map(link)) : null],
          ])
        : h("p", { class: "hint" }, t("noLineage")),
      h("h3", null, t("history")),
      h("ol", { class: "history" }, versions.map((each, at) => version(each, versions[at + 1], episode, history, lineage))),
    );
  }

  function version(each, earlier, episode, history, lineage) {
    const began = earlier?.operation;
    const old = each.episode.version !== episode.version && !episode.gone;
    return h(
      "li",
      null,
      h("p", { class: "meta" },
        h("strong", null, t("versionN", { n: String(each.episode.version) })),
        badge("status", each.episode.status),
        h("span", null, when(each.since), " – ", each.until ? when(each.until) : t("now")),
        began && h("span", { class: "quiet" }, t("begunBy", { operation: label("operation", began) })),
      ),
      each.episode.content !== (earlier?.episode.content ?? "") && h("p", null, said(each.episode.content, 300)),
      each.changed.length > 0 && h("p", { class: "hint" },
        t("thenChanged", { fields: each.changed.map((name) => label("field", name)).join(t("listComma")) }),
      ),
      old && button(t("editFromThis"), () => edit(episode, history, lineage, each.episode), { kind: "link", write: true }),
    );
  }

  function verbs(episode, history, lineage) {
    if (episode.gone) {
      const audit = history.at(-1).audit_id;
      return audit ? [button(t("bringBack"), () => write("undo", { audit_id: audit }), { write: true, kind: "primary" })] : [];
    }
    const one = { id: episode.id };
    return [
      button(t("edit"), () => edit(episode, history, lineage), { write: true, kind: "primary" }),
      episode.status === "active" ? button(t("archive"), () => write("archive", one, { said: t("archived") }),
        { write: true },
      ) : button(t("restore"), () => write("restore", one, { said: t("restored") }), { write: true }),
      episode.status === "active" && button(t("supersede"), () => supersede(episode), { write: true }),
      button(t("forget"), () => write("forget", one, { said: t("forgotten") }), { write: true, kind: "danger" }),
    ];
  }

  const supersede = (episode) =>
    dialog(t("supersede"), (close_) => {
      const found = h("p", { class: "hint", role: "status" });
      const made = form([{ name: "by", required: true, help: t("byHelp") }], {
        submit: t("supersede"),
        write: true,
        extra: button(t("cancel"), () => close_()),
        onSubmit: async ({ by }) => {
          await write("supersede", { id: episode.id, by: by.trim() }, { said: t("superseded") });
          close_();
        },
      });
      made.controls[0].input.addEventListener("change", async (event) => {
        const other = await act("show", { id: event.target.value.trim() }).catch(() => null);
        patch(found, other ? said(other.content, 200) : t("noSuchEpisode"));
      });
      made.node.querySelector(".fields").append(found);
      return made.node;
    });

  /** The edit form; `from`: values of an earlier version to begin with. */
  function edit(episode, history, lineage, from = episode) {
    let version_ = episode.version;
    let base = episode;
    const banner = h("div", { role: "status" });
    const controls = fieldsOf("edit", EDITED).map((field) => {
      const bounds = field.name === "importance" ? { least: 1, most: 5 } : {};
      return control({ ...field, ...bounds, default: base[field.name] ?? field.default, required: field.choices.length > 0, help: "" });
    });
    const read_ = (each) => each.get() ?? (each.name === "tags" ? [] : "");
    const differs = (each) => JSON.stringify(read_(each)) !== JSON.stringify(base[each.name] ?? "");
    for (const each of controls) if (from !== episode) each.set(from[each.name]);
    const done = () => {
      draw(episode, history, lineage);
      shown = null;
      read();
      title.focus();
    };
    const made = form(controls, {
      submit: t("save"),
      write: true,
      extra: button(t("cancel"), done),
      onSubmit: async () => {
        const given = Object.fromEntries(controls.filter(differs).map((each) => [each.name, read_(each)]));
        if (!Object.keys(given).length) return done();
        try {
          const changed = await act("edit", { ...given, id: episode.id, version: version_ });
          editing = null;
          shown = null;
          patch(body, loading()); // a form that stays looks as if nothing had been saved
          told(t("saved"), changed.audit_id ? [changed.audit_id] : [], {}, changed.notes);
          emit("wrote");
          await read();
          node.scrollTop = 0;
          title.focus();
        } catch (error) {
          if (error.kind === "Conflict") {
            editing.changedElsewhere(await act("show", { id: episode.id }));
            banner.scrollIntoView({ block: "center" }); // the choice stands above a long form
          }
          throw error;
        }
      },
    });
    editing = {
      dirty: () => controls.some(differs),
      changedElsewhere(now) {
        if (now.gone) return patch(banner, h("p", { class: "notice" }, t("forgottenNotice")));
        if (now.version === version_) return undefined;
        const differing = EDITED.filter((name) => JSON.stringify(now[name]) !== JSON.stringify(base[name]));
        return patch(
          banner,
          h(
            "div",
            { class: "notice" },
            h("p", null, t("changedElsewhere", { version: String(now.version) })),
            facts(differing.map((name) => [label("field", name), said([now[name]].flat().join(", "), 300)])),
            h("div", { class: "actions" },
              button(t("takeTheirs"), () => (settle(now), controls.forEach((each) => each.set(now[each.name])))),
              button(t("keepMine"), () => settle(now)),
            ),
          ),
        );
      },
    };
    const settle = (now) => {
      [version_, base, episode] = [now.version, now, now];
      patch(banner);
      made.node.querySelector(".form-error").replaceChildren();
    };
    patch(body, banner, made.node);
    made.focus();
  }

  on("wrote", read);
  on("changes", read);
  /** Another panel is looked at: close, unless something is being typed here. */
  const leave = () => !editing?.dirty() && !node.hidden && close();
  return { node, open, close, leave, mayLeave };
}
