// Diagnostics: whether the file is well, what blocks writes, what runs, how large things are.
import { bytes, h, keyed, number, patch, said, when } from "../dom.js";
import { label, language, t } from "../i18n.js";
import { act, app, emit, has, sessionKey } from "../state.js";
import { call } from "../transport.js";
import { badge, button, confirmed, empty, failure, heading, loading, region, section, table, toast } from "../ui.js";
import { control, fieldsOf, form } from "../forms.js";

export function diagnosticsPanel() {
  const parts = [size(), checks(), fences(), jobs()];
  return { node: h("div", { class: "panel" },
    heading(t("nav.diagnostics"), t("diagnosticsHint")),
    parts.map((each) => each.node),
  ), refresh: (quiet) => Promise.all(parts.map((each) => each.refresh?.(quiet))) };
}

function size() {
  const tile = (key, value) => h("div", { class: "tile" }, h("dt", null, label("stat", key)), h("dd", null, value));
  const list = region(() => act("stats"), (stats) => {
    const plain = Object.entries(stats).filter(([key, value]) => typeof value === "number" && !/bytes$/.test(key));
    const sizes = Object.entries(stats).filter(([key, value]) => typeof value === "number" && /bytes$/.test(key));
    return [
      h("dl", { class: "tiles" },
        sizes.map(([key, value]) => tile(key, bytes(value))),
        plain.map(([key, value]) => tile(key, number(value))),
        Object.entries(stats.episodes).map(([status, n]) => h("div", { class: "tile" },
          h("dt", null, t("episodesThat", { status: label("status", status) })),
          h("dd", null, number(n)),
        )),
      ),
      h("h3", null, t("embedders")),
      stats.embedders.length ? table(t("embedders"), [t("field.embedder"), t("field.dimensions"), t("field.state")],
        stats.embedders.map((each) => h("tr", null,
          h("td", null, said(each.fingerprint, 120)),
          h("td", null, number(each.dim)),
          h("td", null, badge("embedderState", each.state)),
        )),
      ) : h("p", { class: "hint" }, t("noEmbedder")),
    ];
  });
  return { node: section(t("fileTitle", { name: app.start.file ?? "" }), list.node), refresh: (quiet) => list.read(quiet) };
}

function checks() {
  const shown = h("div", { role: "status" });
  const repair = control({ ...(fieldsOf("doctor", ["repair"])[0] ?? { name: "repair", type: "boolean" }), help: "" });
  const look = async (action, input) => {
    patch(shown, loading());
    try {
      const found = await act(action, input);
      patch(
        shown,
        h("p", { class: `notice ${found.status === "OK" ? "good" : found.status === "ERROR" ? "bad" : ""}` },
          badge("check", found.status),
          " ",
          t(`health${found.status}`),
          " ",
          when(found.checked_at),
        ),
        table(t(action), [t("field.check"), t("field.state"), t("field.detail")],
          found.checks.map((each) => h("tr", null,
            h("th", { scope: "row" }, label("checkName", each.id)),
            h("td", null, badge("check", each.status)),
            h("td", { dir: "auto" }, said(each.detail, 600)),
          )),
        ),
      );
    } catch (error) {
      patch(shown, failure(error, () => look(action, input)));
    }
  };
  const doctor = async () => {
    const fix = repair.get();
    if (fix && !(await confirmed(t("doctor"), t("repairSure"), t("doctor"), { danger: false }))) return;
    await look("doctor", { repair: fix });
  };
  return { node: section(t("checks"), h("p", { class: "hint" }, t("checksHint")),
    h("div", { class: "actions" },
      button(t("health"), () => look("health", {}), { kind: "primary" }),
      button(t("doctor"), doctor),
      app.start.read_only ? null : repair.node,
    ),
    shown,
  ) };
}

function fences() {
  const rows = keyed(h("ul", { class: "rows" }), (each) => String(each.id), (each) =>
    h("li", { class: "row" },
      h("div", { class: "row-main" },
        h("p", null, said(each.reason, 400)),
        h("p", { class: "meta" },
          each.key ? said(each.key, 120) : h("strong", null, t("wholeFile")),
          h("span", null, t("since"), " ", when(each.since)),
          label("operation", each.operation),
        ),
      ),
      button(t("clearFence"), () => clear(each), { write: "despite", key: `fence ${each.id}` }),
    ),
  );
  const clear = async (each) => {
    if (!(await confirmed(t("clearFence"), t("clearFenceSure"), t("clearFence"), { danger: false }))) return;
    await act("fence clear", { id: each.id }, { space: each.scope ? { ...each.scope, speaker: null } : app.space });
    toast(t("fenceCleared"));
    emit("wrote");
  };
  const list = region(() => act("fence list"), (found) => (found.length ? rows.show(found) : empty(t("noFences"), t("noFencesHint"))));
  const where = control({ name: "fence_on", choices: app.space ? ["chat", "file"] : ["file"], default: app.space ? "chat" : "file", required: true, help: app.space ? sessionKey(app.space).slice(0, 80) : "" });
  const made = form([where, ...fieldsOf("fence set", ["reason"])], {
    submit: t("setFence"),
    write: "despite",
    row: true,
    kind: "danger quiet",
    onSubmit: async ({ reason, fence_on: on }) => {
      if (!(await confirmed(t("setFence"), t(on === "file" ? "fenceFileSure" : "fenceChatSure"), t("setFence")))) return;
      await act("fence set", { reason, file: on === "file" });
      made.controls[1].set("");
      toast(t("fenceStands"));
      emit("wrote");
    },
  });
  return { node: section(t("fences"), h("p", { class: "hint" }, t("fencesHint")),
    list.node,
    h("h3", null, t("setFence")),
    made.node,
  ), refresh: (quiet) => list.read(quiet) };
}

function jobs() {
  const rows = keyed(h("ul", { class: "rows" }), (each) => each.id, (each) =>
    h("li", { class: "row" }, h("div", { class: "row-main" },
      h("p", null, h("strong", null, label("action", each.action)), " ", badge("jobState", each.state), each.result?.dry_run && [" ", h("span", { class: "badge" }, t("dryRun"))]),
      each.state === "running" && h("div", { class: "progress" },
        h("progress", { max: each.total || 1, value: each.done, "aria-label": label("action", each.action) }),
        h("span", null, t("progressOf", { done: each.done, total: each.total })),
      ),
      each.error && h("p", { class: "notice bad", dir: "auto" }, said(each.error.message, 400)),
      each.action === "embed" && each.result && h("p", { class: "hint" },
        t("embedReport", { done: each.result.done, failed: each.result.failed, remaining: each.result.remaining }),
        each.result.error && [" ", said(each.result.error, 300)],
      ),
      h("p", { class: "meta" }, when(each.started)),
    )),
  );
  let timer;
  const list = region(
    async () => (await call("jobs", { language: language() })).jobs,
    (found) => (found.length ? rows.show([...found].sort((a, b) => (a.started < b.started ? 1 : -1)).slice(0, 50)) : empty(t("noJobs"), t("noJobsHint"))),
  );
  // Progress is no commit, so no change of the file tells of it: look again while something runs and this panel is open.
  async function watch(quiet) {
    clearTimeout(timer);
    await list.read(quiet);
    if (list.node.isConnected && list.data?.some((each) => each.state === "running")) timer = setTimeout(() => watch(true), 700);
  }
  const embed = has("embed") && button(t("embedNow"), async () => {
    await act("embed", {}, { progress: () => list.read(true) });
    emit("wrote");
  }, { write: "despite", kind: "primary" });
  return { node: section(t("jobs"), h("p", { class: "hint" }, t("jobsHint")),
    embed && h("div", { class: "actions" }, embed),
    list.node,
  ), refresh: watch };
}
