// Export and import: out as a file (or as text where a page may not save any), in after a dry run.
import { h, number, patch } from "../dom.js";
import { t } from "../i18n.js";
import { act, app, emit, has, sessionKey } from "../state.js";
import { download, inLangBot } from "../transport.js";
import { button, confirmed, empty, failure, heading, section, told, write } from "../ui.js";
import { control, fieldsOf, form } from "../forms.js";

/** Save an export of the open space; inside LangBot, where nothing can be saved, show it with a Copy button. */
export async function saveOrShow(place, input, stem) {
  const name = `${stem}-${sessionKey(app.space)}`.replace(/[^\p{L}\p{N}_-]+/gu, "_").slice(0, 80);
  if (!inLangBot) {
    const blob = await download("export", { space: app.space, kinds: [], statuses: [], ...input });
    const link = h("a", { href: URL.createObjectURL(blob), download: `${name}.jsonl` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    return patch(place, h("p", { class: "notice good", role: "status" }, t("savedFile", { name: `${name}.jsonl` })));
  }
  const text = JSON.stringify(await act("export", input), null, 1);
  const area = h("textarea", { class: "export-text", readonly: true, rows: 12, "aria-label": t("exportText") });
  area.value = text;
  const copied = h("span", { class: "hint", role: "status" });
  const copy = button(t("copy"), async () => {
    area.select(); // the older way first: a sandboxed page may not use the clipboard's own
    const done = document.execCommand("copy") || (await navigator.clipboard?.writeText(text).then(() => true, () => false));
    copied.textContent = done ? t("copied") : t("copyByHand");
  });
  return patch(place, area, h("div", { class: "actions" }, copy, copied));
}

export function transferPanel() {
  const parts = [exporting(), has("import") && importing(), has("document delete") && documents(), has("erase") && erasing()];
  return { node: h("div", { class: "panel" }, heading(t("nav.transfer"), t("transferHint")), parts), refresh: async () => {} };
}

function exporting() {
  const place = h("div");
  const made = form(fieldsOf("export", ["kinds", "statuses"]), { submit: t("export"), onSubmit: (values) => saveOrShow(place, values, "memory") });
  return section(t("export"), made.node, place);
}

function importing() {
  const area = control({ name: "data", label: t("importText"), rows: 6 });
  const file = h("input", { type: "file", id: "import-file", accept: ".json,.jsonl,.txt,application/json" });
  const chosen = h("div", { class: "field" },
    h("label", { for: "import-file" }, t("importFile")),
    file,
    h("p", { class: "hint" }, t("importFileHint")),
  );
  const seen = h("div", { role: "status" });
  let checked = null; // what the dry run looked at

  const source = async () => (file.files.length ? await file.files[0].text() : (area.get() ?? ""));
  const progress = (done, total) => patch(
    seen,
    h("div", { class: "progress" },
      h("progress", { max: total || 1, value: done, "aria-label": t("working") }),
      h("span", null, total ? t("progressOf", { done, total }) : t("working")),
    ),
  );

  const made = form([{ node: chosen, name: "file", get: () => undefined, set: () => {} }, area, ...fieldsOf("import", ["document", "skip_bad", "allow_erased"])], {
    submit: t("dryRun"),
    write: true,
    onSubmit: async ({ data: _, ...options }) => {
      const data = await source();
      if (!data.trim()) return patch(seen, empty(t("nothingToImport"), t("nothingToImportHint")));
      checked = { ...options, data };
      const report = await act("import", { ...checked, dry_run: true }, { progress });
      return patch(
        seen,
        reported(report),
        report.episodes + report.facts > 0 && h("div", { class: "actions" },
          button(t("importNow", { n: report.episodes + report.facts }), () => run(report), { kind: "primary", write: true }),
        ),
      );
    },
  });
  for (const each of [file, made.node]) each.addEventListener("input", () => checked && ((checked = null), patch(seen)));

  async function run(plan) {
    if (!checked || !(await confirmed(t("import"), t("importSure", { n: plan.episodes + plan.facts }), t("import"), { danger: false }))) return;
    try {
      const report = await act("import", checked, { progress });
      patch(seen, reported(report));
      told(t("imported", { episodes: report.episodes, facts: report.facts }), report.audit_ids);
      emit("wrote");
    } catch (error) {
      patch(seen, failure(error));
    }
  }

  const reported = (report) => [
    h("p", { class: report.skipped.length ? "notice" : "notice good" },
      t(report.dry_run ? "wouldImport" : "didImport", { episodes: report.episodes, facts: report.facts, duplicates: report.duplicates }),
    ),
    report.skipped.length > 0 && h("details", { open: true },
      h("summary", null, t("skipped", { n: report.skipped.length })),
      h("ul", null, report.skipped.slice(0, 200).map(([at, why]) => h("li", { dir: "auto" }, t("pair", { name: t("recordN", { n: number(at) }), value: why })))),
    ),
    report.erased.length > 0 && h("p", { class: "hint" }, t("staysErased", { n: report.erased.length })),
    report.notes.map((each) => h("p", { class: "hint", dir: "auto" }, each)),
  ];
  return section(t("import"), h("p", { class: "hint" }, t("importHint")), made.node, seen);
}

function documents() {
  const made = form(fieldsOf("document delete", ["document"]), {
    submit: t("deleteDocument"),
    kind: "danger quiet",
    write: true,
    row: true,
    onSubmit: async (values) => {
      if (await confirmed(
        t("deleteDocument"),
        t("deleteDocumentSure", { name: `\u2068${values.document.slice(0, 120)}\u2069` }),
        t("deleteDocument"),
      )) await write("document delete", values);
    },
  });
  return section(t("deleteDocument"), made.node);
}

function erasing() {
  const result = h("div", { role: "status" });
  const made = form([{ name: "typed", label: t("typeToErase", { name: app.space ? sessionKey(app.space).slice(0, 80) : "" }), required: true }, ...fieldsOf("erase", ["prove"])], {
    submit: t("eraseSpace"),
    kind: "danger",
    write: true,
    onSubmit: async ({ typed, prove }) => {
      if (typed.trim() !== sessionKey(app.space).slice(0, 80)) return patch(result, h("p", { class: "notice bad" }, t("typedWrong")));
      if (!(await confirmed(t("eraseSpace"), app.start.actions.erase.confirm, t("eraseForGood")))) return undefined;
      const done = await act("erase", { everything: true, prove: Boolean(prove) });
      emit("wrote");
      return patch(
        result,
        h("div", { class: "notice good" },
          h("p", null, t("erased")),
          h("p", { class: "mono" }, done.certificate),
          done.proven !== null && h("p", null, t(done.proven ? "eraseProven" : "eraseNotProven")),
          (done.notes ?? []).map((each) => h("p", { class: "hint", dir: "auto" }, each)),
        ),
      );
    },
  });
  return section(t("eraseSpace"), h("p", { class: "hint" }, t("eraseHint")), made.node, result);
}
