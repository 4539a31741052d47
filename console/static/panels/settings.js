// Settings of the file and, inside LangBot, of the plugin: bounds in sight, each saved on its own.
import { h, number, patch } from "../dom.js";
import { label, language, t } from "../i18n.js";
import { act, app } from "../state.js";
import { call } from "../transport.js";
import { button, failure, heading, section, toast } from "../ui.js";
import { control } from "../forms.js";

/** The bounds of a setting in words. */
function bounds({ type, least, most, choices, default: usual }) {
  const words = type === "boolean" ? t(usual ? "on" : "off") : typeof usual === "number" ? number(usual, 3) : String(usual ?? "");
  const span = type !== "boolean" && !choices?.length && least !== null && least !== undefined ? `${t("fromTo", { least: number(least, 3), most: number(most, 3) })} · ` : "";
  return `${span}${t("usually", { value: words || t("emptyValue") })}`;
}

/** One setting; `save(value)` stores it and answers what is stored. */
function row(name, spec, group, save) {
  let stored = spec.value;
  const made = control({ ...spec, name, label: label(group, name), help: "", default: stored, required: spec.type !== "text", step: spec.type === "number" ? "any" : undefined });
  const told = h("span", { class: "hint", role: "status" });
  const wrong = h("div");
  const value = () => made.get() ?? "";
  const dirty = () => value() !== stored;
  const button_ = button(t("save"), null, { type: "submit", write: group === "setting" || group === "option" ? "despite" : true, kind: "primary" });
  const usual = button(t("useUsual"), () => (made.set(spec.default), marked()), { kind: "link" });
  const marked = () => {
    button_.hidden = !dirty();
    usual.hidden = JSON.stringify(value()) === JSON.stringify(spec.default);
    patch(wrong);
    made.input?.setAttribute("aria-invalid", String(made.input.validity?.valid === false));
    told.textContent = dirty() ? t("notSaved") : "";
  };
  const node = h("form", { class: "setting" },
    h("div", { class: "setting-main" },
      made.node,
      h("p", { class: "hint" }, h("code", null, name), " · ", spec.words && [h("span", { dir: "auto" }, spec.words), " · "], bounds(spec), " ", usual),
    ),
    h("div", { class: "actions" }, told, button_),
    wrong,
  );
  node.addEventListener("input", marked);
  node.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      stored = await save(value());
      made.set(stored);
      marked();
      toast(t("saved"));
    } catch (error) {
      patch(wrong, failure(error));
    }
  });
  marked();
  return {
    node,
    /** What another process stored: shown unless something is being typed here. */
    update(now) {
      if (JSON.stringify(now) === JSON.stringify(stored)) return;
      const typed = dirty();
      stored = now;
      if (!typed) made.set(now);
      marked();
      if (typed) told.textContent = t("storedElsewhere", { value: String(now) });
    },
  };
}

export function settingsPanel() {
  const saveSetting = (name) => async (value) => (await act("config set", { name, value: JSON.stringify(value) }))[name];
  const saveOption = (name) => async (value) => (await call("option", { name, value, language: language() })).value;
  const settings = Object.entries(app.start.settings ?? {}).map(([name, spec]) => [name, row(name, spec, "setting", saveSetting(name))]);
  const options = Object.entries(app.start.options ?? {}).map(([name, spec]) => [name, row(name, spec, "option", saveOption(name))]);
  const node = h(
    "div",
    { class: "panel" },
    heading(t("nav.settings"), t("settingsHint")),
    section(t("settingsOfFile"), settings.map(([, each]) => each.node)),
    options.length > 0 && section(t("settingsOfPlugin"), options.map(([, each]) => each.node)),
  );
  return {
    node,
    async refresh() {
      const fresh = await call("start", { language: language() }).catch(() => null);
      if (!fresh) return;
      for (const [name, each] of settings) if (name in fresh.settings) each.update(fresh.settings[name].value);
      for (const [name, each] of options) if (fresh.options && name in fresh.options) each.update(fresh.options[name].value);
    },
  };
}
