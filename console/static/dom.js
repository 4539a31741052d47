// Elements made of data. Text only ever becomes textContent: nothing here parses HTML, so a memory cannot carry any.
import { t, language } from "./i18n.js";

const SVG = "http://www.w3.org/2000/svg";
const PROPERTIES = new Set(["value", "checked", "indeterminate", "selected"]);
const REFUSED = /^(style|srcdoc|innerHTML|outerHTML)$/i;

function build(node, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (REFUSED.test(name)) throw new TypeError(`${name} is not set here`);
    if (typeof value === "function" && name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "data") Object.assign(node.dataset, value);
    else if (PROPERTIES.has(name)) node[name] = value;
    else if (!name.startsWith("on")) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...shown(children));
  return node;
}

const shown = (children) => children.flat(Infinity).filter((each) => each !== null && each !== undefined && each !== false && each !== "");

/** An element: h("p", {class: "hint", onclick: f}, "text", node, [nodes]). Empty children are left out. */
export const h = (tag, props, ...children) => build(document.createElement(tag), props, children);

/** The same for a part of a drawing. */
export const svg = (tag, props, ...children) => build(document.createElementNS(SVG, tag), props, children);

/** Make these the children of a node and leave alone those that are there already: focus, scroll and selection stay. */
export function patch(node, ...children) {
  const wanted = shown(children).map((each) => (each instanceof Node ? each : document.createTextNode(each)));
  const keep = new Set(wanted);
  for (const child of [...node.childNodes]) if (!keep.has(child)) child.remove();
  wanted.forEach((each, at) => {
    if (node.childNodes[at] !== each) node.insertBefore(each, node.childNodes[at] ?? null);
  });
}

/** A list whose rows are drawn again only where their data changed. `show(items)` returns the node. */
export function keyed(node, keyOf, draw) {
  let rows = new Map();
  return {
    node,
    show(items) {
      const next = new Map();
      for (const item of items) {
        const key = keyOf(item);
        const json = JSON.stringify(item);
        const old = rows.get(key);
        next.set(key, old?.json === json ? old : { json, node: draw(item) });
      }
      rows = next;
      patch(node, ...[...rows.values()].map((row) => row.node));
      return node;
    },
    clear() {
      rows = new Map();
    },
  };
}

/** The first `limit` characters; never half of one. */
export function cut(text, limit) {
  const flat = String(text ?? "");
  if (flat.length <= limit) return flat;
  const end = flat.charCodeAt(limit - 1) >> 10 === 0x36 ? limit - 1 : limit;
  return `${flat.slice(0, end)}…`;
}

const STEP = 20_000; // characters shown at once: a browser lays out a line of a million for minutes

/** Somebody's text, kept from turning its surroundings around; long ones are cut, with a control that shows more. */
export function said(text, limit = 400) {
  const whole = String(text ?? "");
  const body = h("bdi", { dir: "auto" }, cut(whole, limit));
  if (whole.length <= limit) return body;
  let shown = limit;
  const more = h("button", { type: "button", class: "link", "aria-expanded": "false" });
  const name = () => {
    const left = whole.length - shown;
    more.textContent = left === 0 ? t("showLess") : left <= STEP ? t("showAll", { n: whole.length }) : t("showMore", { n: shown, total: whole.length });
    more.setAttribute("aria-expanded", String(shown > limit));
  };
  more.addEventListener("click", (event) => {
    event.stopPropagation();
    shown = shown === whole.length ? limit : Math.min(whole.length, shown + STEP);
    body.textContent = cut(whole, shown);
    name();
  });
  name();
  return h("span", { class: "said" }, body, " ", more);
}

/** A moment in the viewer's zone; UTC on hover. */
export function when(iso, { day = false } = {}) {
  if (!iso) return null;
  const moment = new Date(iso);
  const options = day ? { dateStyle: "medium" } : { dateStyle: "medium", timeStyle: "short" };
  const text = Number.isNaN(moment.getTime()) ? iso : new Intl.DateTimeFormat(language().replace("_", "-"), options).format(moment);
  return h("time", { datetime: iso, title: `UTC ${iso}` }, text);
}

export const number = (value, digits = 0) =>
  new Intl.NumberFormat(language().replace("_", "-"), { maximumFractionDigits: digits }).format(value);

export function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB"];
  let step = 0;
  while (n >= 1024 && step < units.length - 1) [n, step] = [n / 1024, step + 1];
  return `${number(n, 1)} ${units[step]}`;
}

let ids = 0;
export const newId = (stem = "x") => `${stem}-${++ids}`;
