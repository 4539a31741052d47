// Fields and forms made of the action table: a new field of an action has a control here without further code.
import { h, newId, patch } from "./dom.js";
import { label, t } from "./i18n.js";
import { app } from "./state.js";
import { button, failure } from "./ui.js";

const TIMES = new Set(["after", "before", "at", "as_of", "event_at", "valid_from", "valid_until", "start", "end"]);
const LONG = new Set(["content", "data", "text"]);
const CHOICES = { field: "profileField", claim_type: "claim", isolation: "isolation", launcher_type: "launcher", order: "order", subject: "subject", kinds: "kind" };

/** The fields of an action, in the order of `names` (all if none are given); what an older engine lacks is left out. */
export function fieldsOf(action, names) {
  const known = app.start.actions[action]?.fields ?? [];
  return names ? names.map((name) => known.find((each) => each.name === name)).filter(Boolean) : known;
}

const choiceWords = (name, value) => label(CHOICES[name] ?? (/status/.test(name) ? "status" : name), value);

const pad = (n) => String(n).padStart(2, "0");

/** An ISO time as the value of a local date and time input. */
function toLocal(iso) {
  const at = new Date(iso);
  if (!iso || Number.isNaN(at.getTime())) return "";
  return `${pad(at.getFullYear()).padStart(4, "0")}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}T${pad(at.getHours())}:${pad(at.getMinutes())}`;
}

/**
 * A control for a field. `get()`: the value, undefined when nothing was given; `set(value)`. A date keeps its seconds as long as
 * nobody changes it.
 */
export function control(field) {
  const { name, type = "text", several = false, choices = [] } = field;
  const id = newId(name);
  const words = field.label ?? label("field", name);
  const help = field.help ?? "";
  const hintId = `${id}-hint`;
  const common = { id, name, required: field.required && type !== "boolean", "aria-describedby": help ? hintId : undefined };
  const wrap = (input, ...more) =>
    h("div", { class: field.wide ? "field wide" : "field" },
      h("label", { for: id }, words),
      input,
      more,
      help && h("p", { class: "hint", id: hintId }, help),
    );

  if (choices.length && several) {
    const boxes = choices.map((each) => h("input", { type: "checkbox", value: each, name, checked: field.default?.includes(each) }));
    const node = h("fieldset", { class: "field choices" },
      h("legend", null, words),
      boxes.map((box) => h("label", { class: "chip" }, box, choiceWords(name, box.value))),
      help && h("p", { class: "hint" }, help),
    );
    const get = () => boxes.filter((box) => box.checked).map((box) => box.value);
    return { name, node, get: () => (get().length ? get() : undefined), set: (value) => boxes.forEach((box) => (box.checked = (value ?? []).includes(box.value))) };
  }
  if (type === "boolean") {
    const input = h("input", { ...common, type: "checkbox", checked: Boolean(field.default) });
    const node = h("div", { class: "field check" }, input, h("label", { for: id }, words), help && h("p", { class: "hint", id: hintId }, help));
    return { name, node, input, get: () => input.checked, set: (value) => (input.checked = Boolean(value)) };
  }
  if (choices.length) {
    const blank = !field.required && !choices.includes(field.default);
    const input = h("select", { ...common, required: false },
      blank && h("option", { value: "" }, field.any ?? t("notGiven")),
      choices.map((each) => h("option", { value: each }, choiceWords(name, each))),
    );
    input.value = field.default ?? (blank ? "" : choices[0]);
    return { name, node: wrap(input), input, get: () => input.value || undefined, set: (value) => (input.value = value ?? "") };
  }
  if (TIMES.has(name) && !several) {
    const input = h("input", { ...common, type: "datetime-local" });
    let given = field.default ?? "";
    let shown = (input.value = toLocal(given));
    return {
      name,
      node: wrap(input),
      input,
      get: () => (input.value === shown ? given : input.value ? new Date(input.value).toISOString() : "") || undefined,
      set: (value) => {
        given = value ?? "";
        shown = input.value = toLocal(given);
      },
    };
  }
  if (type === "integer" || type === "number") {
    const input = h("input",
      { ...common, type: "number", step: field.step ?? (type === "integer" ? "1" : "any"), min: field.least, max: field.most, value: field.default ?? "", inputmode: type === "integer" ? "numeric" : "decimal" },
    );
    return { name, node: wrap(input), input, get: () => (input.value === "" ? undefined : Number(input.value)), set: (value) => (input.value = value ?? "") };
  }
  const tags = name === "tags" || name.endsWith("_tags");
  const long = LONG.has(name) || (several && !tags);
  const input = h(long ? "textarea" : "input",
    { ...common, type: long ? undefined : "text", rows: long ? (several ? 2 : 4) : undefined, dir: "auto", autocomplete: "off", spellcheck: name === "content" ? "true" : "false", placeholder: field.placeholder },
  );
  const pieces = (text) => text.split(tags ? /[,，、\n]/ : /\n/).map((each) => each.trim()).filter(Boolean);
  const set = (value) => (input.value = several ? (value ?? []).join(tags ? ", " : "\n") : (value ?? ""));
  set(field.default);
  return { name, node: wrap(
    input,
    several && h("p", { class: "hint" }, t(long ? "onePerLine" : "commaSeparated")),
  ), input, get: () => (several ? (pieces(input.value).length ? pieces(input.value) : undefined) : input.value || undefined), set };
}

/**
 * A form of fields. `onSubmit(values)` may take time and may throw: the error stands under the fields, what was typed stays.
 * Values not given are left out.
 */
export function form(fields, { submit, onSubmit, write = false, kind = "primary", extra = [], row = false } = {}) {
  const controls = fields.filter(Boolean).map((each) => (each.node ? each : control(each)));
  const trouble = h("div", { class: "form-error" });
  const send = button(submit, null, { type: "submit", kind, write });
  const node = h("form", { class: row ? "form inline" : "form" },
    h("div", { class: "fields" }, controls.map((each) => each.node)),
    trouble,
    h("div", { class: "actions" }, send, extra),
  );
  const values = () => Object.fromEntries(controls.map((each) => [each.name, each.get()]).filter(([, value]) => value !== undefined));
  node.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (send.getAttribute("aria-busy") === "true") return;
    send.setAttribute("aria-busy", "true");
    patch(trouble);
    try {
      await onSubmit(values());
    } catch (error) {
      patch(trouble, failure(error));
    }
    send.removeAttribute("aria-busy");
  });
  return {
    node,
    controls,
    values,
    set: (given) => controls.forEach((each) => each.set(given[each.name])),
    focus: () => controls[0]?.input?.focus(),
  };
}
