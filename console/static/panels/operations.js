// Every operation of the engine as a form made of its table, for those that no other panel has, and for those that come later.
import { h, patch } from "../dom.js";
import { label, t } from "../i18n.js";
import { act, app, emit } from "../state.js";
import { block_, confirmed, heading, section, told } from "../ui.js";
import { control, form } from "../forms.js";

export function operationsPanel() {
  const names = Object.keys(app.start.actions);
  const which = control({ name: "operation_name", choices: names, default: names[0], required: true });
  for (const each of which.input.options) each.textContent = `${label("action", each.value)} (${each.value})`;
  const place = h("div", { class: "stack" });
  const result = h("div", { role: "status" });

  function show() {
    const name = which.get();
    const action = app.start.actions[name];
    patch(result);
    const made = form(action.fields.map((each) => (each.name === "source" ? { ...each, default: "console" } : each)), {
      submit: t("run"),
      kind: action.confirm ? "danger" : "primary",
      write: action.writes ? (/^(fence|config)/.test(name) ? "despite" : true) : "",
      onSubmit: async (values) => {
        if (action.confirm && !(await confirmed(label("action", name), action.confirm, t("run")))) return;
        const answer = await act(
          name,
          values,
          { progress: (done, total) => patch(result, h("p", { class: "state" }, t("progressOf", { done, total }))) },
        );
        patch(result, h("h3", null, t("answer")), block_(JSON.stringify(answer, null, 2).slice(0, 200_000), t("answer")));
        if (!action.writes) return;
        told(t("done"), [answer].flat().flatMap((each) => each?.audit_ids ?? each?.audit_id ?? []).filter(Boolean));
        emit("wrote");
      },
    });
    patch(
      place,
      h("p", { class: "hint", dir: "auto" }, action.words),
      h("p", { class: "meta" }, h("span", { class: "badge" }, t(`on.${action.on}`)), action.writes && h("span", { class: "badge" }, t("writes"))),
      made.node,
    );
  }
  which.input.addEventListener("change", show);
  show();
  return { node: h("div", { class: "panel" },
    heading(t("nav.operations"), t("operationsHint")),
    section("", which.node, place, result),
  ), refresh: async () => {} };
}
