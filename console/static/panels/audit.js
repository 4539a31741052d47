// Audit: who did what and when, a way back, and the proof that no entry was changed.
import { h, keyed, patch, said, when } from "../dom.js";
import { label, t } from "../i18n.js";
import { act, app, has } from "../state.js";
import { badge, block_, button, confirmed, empty, heading, pager, region, section, write } from "../ui.js";
import { control, fieldsOf, form } from "../forms.js";
import { saveOrShow } from "./transfer.js";

const SIZE = 30;
// What the engine writes into an audit; anything else still shows, under its own name.
const OPERATIONS = (
  "remember edit edit_bulk active archived superseded forget delete_l2_bulk delete_document erase undo update_profile " +
  "candidate_add candidate_accept " +
  "candidate_reject candidate_expire consolidate_draft consolidate_run proposal_reject import_l2 export_l2 export_profiles " +
  "audit_export audit_close speaker_rename external_edit fence_set fence_clear intent_resolved commit_settled"
).split(" ");
// Those that no undo takes back: they changed nothing of memory, or were meant to be final.
const FINAL = new Set((
  "erase audit_close export_l2 export_profiles audit_export candidate_add candidate_expire consolidate_draft " +
  "proposal_reject fence_set fence_clear intent_resolved commit_settled"
).split(" "));

/** What an entry did, in the language of the page: from its metadata, for its summary is kept as the engine wrote it. */
function gist({ operation, summary, metadata }) {
  const { field, action, target_scope: whose, fact_key: slot } = metadata;
  const many = [metadata.ids, metadata.archived].find(Array.isArray)?.length ?? metadata.deleted ?? metadata.records ?? metadata.candidates?.length;
  if (operation === "erase") return null; // its summary says no more than its name
  if (operation === "undo") return label("operation", summary.replace(/^undone: /, ""));
  if (operation === "update_profile" && field) {
    const value = summary.slice([action, whose, field, slot].filter(Boolean).join(" ").length).trim();
    return [label("subject", whose), label("profileField", field), slot, label("profileAction", action), value && said(value, 200)].filter(Boolean).flatMap((each) => [" · ", each]).slice(1);
  }
  if (operation === "edit" && metadata.fields) return metadata.fields.map((name) => label("field", name)).join(t("listComma"));
  if (metadata.before) return t("wasBefore", { status: label("status", metadata.before) });
  if (metadata.type) return label("candidateType", metadata.type);
  if (/^export|_export$|^candidate/.test(operation) && many !== undefined) return t("countRecords", { n: many });
  if (typeof many === "number") return t("countEpisodes", { n: many });
  return said(summary, 200);
}

export function auditPanel() {
  const operation = control({ name: "operation", choices: OPERATIONS, any: t("allOperations"), help: "" });
  const target = control({ name: "target", help: "" });
  const filter = form([operation, target], { submit: t("filter"), kind: "", row: true, onSubmit: () => (pages.reset(), list.read()) });
  operation.input.addEventListener("change", () => (pages.reset(), list.read()));
  const pages = pager(() => list.read());
  const list = region(
    () => act("audit list", { ...filter.values(), ...(target.get() && { target: target.get().trim() }), limit: SIZE, cursor: pages.cursor }),
    (page) => {
      pages.show(page, page.entries.length, SIZE);
      return page.entries.length ? rows.show(page.entries) : empty(
        t("noAudit"),
        Object.keys(filter.values()).length ? t("noneFoundHint") : t("noAuditHint"),
      );
    },
  );
  const rows = keyed(h("ul", { class: "rows" }), (each) => each.audit_id, (each) =>
    h(
      "li",
      { class: "row" },
      h("div", { class: "row-main" },
        h("p", null, h("strong", null, label("operation", each.operation)), " ", each.erased ? h("em", null, t("detailsErased")) : gist(each)),
        h("p", { class: "meta" },
          when(each.timestamp),
          badge("via", each.via),
          each.sender_id && said(each.sender_name || each.sender_id, 60),
          each.target_type === "episode" && each.target_id ? button(each.target_id, () => app.openEpisode(each.target_id),
            { kind: "link mono", key: `target ${each.audit_id}` },
          ) : each.target_id && h("span", { class: "mono quiet" }, said(each.target_id, 60)),
        ),
        h("details", { data: { key: `more ${each.audit_id}` } },
          h("summary", null, t("details")),
          block_(
            JSON.stringify({ audit_id: each.audit_id, summary: each.summary, target_type: each.target_type, query_id: each.query_id, ...each.metadata }, null, 1).slice(0, 20000),
            t("details"),
          ),
        ),
      ),
      has("undo") && !each.erased && !FINAL.has(each.operation) && button(t("undo"),
        () => write("undo", { audit_id: each.audit_id }, { said: t("undone") }),
        { write: true, key: `undo ${each.audit_id}`, name: `${t("undo")}: ${label("operation", each.operation)}` },
      ),
    ),
  );

  const proof = h("div", { role: "status" });
  const verify = form(fieldsOf("audit verify", ["head"]), {
    submit: t("verify"),
    kind: "",
    row: true,
    onSubmit: async ({ head }) => {
      const found = await act("audit verify", head ? { head } : {});
      patch(
        proof,
        found.problems.length ? h("div", { class: "notice bad", role: "alert" },
          h("p", null, t("chainBroken", { n: found.problems.length })),
          h("ul", null, found.problems.map((each) => h("li", { dir: "auto" }, each))),
        ) : h("div", { class: "notice good" }, h("p", null, t("chainWhole")), h("p", { class: "mono" }, found.head)),
      );
    },
  });
  const shown = h("div");
  const export_ = button(t("exportAudit"), () => saveOrShow(shown, { kinds: ["audit"] }, "audit"));
  const close = has("audit close") && form(fieldsOf("audit close", ["before"]).map((each) => ({ ...each, placeholder: "2026-01-31" })), {
    submit: t("closeAudit"),
    kind: "danger",
    write: true,
    row: true,
    onSubmit: async (values) => {
      if (values.before && (await confirmed(t("closeAudit"), app.start.actions["audit close"].confirm, t("closeAudit")))) await write("audit close", values);
    },
  });
  const node = h("div", { class: "panel" },
    heading(t("nav.audit"), t("auditHint"), export_),
    shown,
    section("", filter.node, list.node, pages.node),
    section(t("verify"), h("p", { class: "hint" }, t("verifyHint")), verify.node, proof),
    close && section(t("closeAudit"), h("p", { class: "hint" }, t("closeAuditHint")), close.node),
  );
  return { node, refresh: (quiet) => list.read(quiet) };
}
