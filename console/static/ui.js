// The parts that panels are made of: regions that read and draw, buttons, dialogs, toasts, badges, pagers.
import { cut, h, newId, number, patch } from "./dom.js";
import { label, t } from "./i18n.js";
import { act, app, emit, fencesHere, has, isReadOnly } from "./state.js";

// ------------------------------------------------------------------------------------------ regions

const PASSING = new Set(["Unreachable", "Busy", "TooMany"]);

/**
 * A place that shows what `load` answers, as `draw` makes it of the answer. `read()` shows that it is loading; `read(true)` is
 * quiet: what stands stays until the answer is there, and where the answer is the same nothing is touched.
 */
export function region(load, draw) {
  const node = h("div", { class: "region" });
  let turn = 0;
  let last;
  const self = {
    node,
    data: null,
    async read(quiet = false) {
      const mine = ++turn;
      if (last === undefined) patch(node, loading());
      else if (!quiet) node.setAttribute("aria-busy", "true"); // what stands stays, so that nothing jumps
      try {
        const data = await load();
        if (mine !== turn) return; // a later read answers
        const json = JSON.stringify(data);
        self.data = data;
        node.removeAttribute("aria-busy");
        if (quiet && json === last) return;
        last = json;
        keepingFocus(node, () => patch(node, ...[draw(data)].flat()));
      } catch (error) {
        if (mine !== turn) return;
        node.removeAttribute("aria-busy");
        if (quiet && last !== undefined && PASSING.has(error.kind)) return; // a later look will do
        last = undefined;
        patch(node, failure(error, () => self.read()));
      }
    },
    /** Draw at the next read though the answer be the same. */
    forget() {
      last = last && "";
    },
  };
  return self;
}

/** Draw; then give focus back to what has the same data-key, and open again what was open. */
function keepingFocus(node, draw) {
  const focused = node.contains(document.activeElement) ? document.activeElement : null;
  const open = [...node.querySelectorAll("details[open][data-key]")].map((each) => each.dataset.key);
  draw();
  for (const each of node.querySelectorAll("details[data-key]")) if (open.includes(each.dataset.key)) each.open = true;
  if (!focused || focused === document.activeElement) return;
  const again = focused.isConnected ? focused : focused.dataset.key && node.querySelector(`[data-key="${CSS.escape(focused.dataset.key)}"]`);
  again?.focus?.({ preventScroll: true });
}

export const loading = () => h("p", { class: "state", role: "status" }, h("span", { class: "spinner", "aria-hidden": "true" }), t("loading"));

/** Nothing is there: why, and what to do. */
export const empty = (title, hint, ...actions) =>
  h("div", { class: "state empty" },
    h("p", { class: "state-title" }, title),
    hint && h("p", null, hint),
    actions.length > 0 && h("div", { class: "actions" }, actions),
  );

/** Something failed: what, what to do about it, and the way to try again. */
export function failure(error, again) {
  return h(
    "div",
    { class: "state error", role: "alert" },
    h("p", { class: "state-title" }, label("error", error.kind ?? "Internal")),
    error.kind !== "Unreachable" && h("p", { dir: "auto" }, cut(error.message, 600)), // the browser's own words, in its own language
    h("p", { class: "hint" }, label("remedy", error.kind in REMEDIES ? error.kind : "Internal")),
    again && h("div", { class: "actions" }, button(t("tryAgain"), again)),
  );
}

const REMEDIES = Object.fromEntries(
  "InvalidInput NotFound Conflict Fenced Busy ReadOnly StorageError EmbedderError ModelError SecretDetected Corrupt TooLarge TooMany Unauthorized Unavailable Unreachable Internal"
    .split(" ")
    .map((each) => [each, true]),
);

// ------------------------------------------------------------------------------------------ buttons

/** Why nothing can be written here, or "". A fence is cleared while it stands, so `despiteFence` asks for the file alone. */
function whyNoWrite(despiteFence = false) {
  if (isReadOnly()) return t("readOnlyReason");
  const [fence] = despiteFence ? [] : fencesHere();
  return fence ? t("fencedReason", { reason: cut(fence.reason, 200) }) : "";
}

/** Mark every control that writes as blocked or not; called when fences come and go. */
export function markBlocked(root = document) {
  for (const each of root.querySelectorAll("[data-write]")) block(each);
}

function block(node) {
  const reason = whyNoWrite(node.dataset.write === "despite");
  if (reason) node.setAttribute("aria-disabled", "true");
  else node.removeAttribute("aria-disabled");
  node.title = reason;
}

// One place stops blocked controls; Enter in a form clicks its submit button, so it comes this way too.
document.addEventListener(
  "click",
  (event) => {
    const node = event.target.closest?.("[data-write][aria-disabled=true]");
    if (!node) return;
    event.preventDefault();
    event.stopPropagation();
    toast(node.title, { problem: true });
  },
  true,
);

/**
 * A button. Its action may take time: meanwhile it is busy, and an error becomes a toast. `write`: it changes something, so it is
 * blocked where nothing can be written ("despite": a fence does not stop it).
 */
export function button(text, onclick, { kind = "", write = "", key, name, type = "button", ...rest } = {}) {
  const node = h("button",
    { type, class: kind, "aria-label": name, data: { ...(key && { key }), ...(write && { write: write === true ? "yes" : write }) }, ...rest },
    text,
  );
  if (write) block(node);
  if (onclick) {
    node.addEventListener("click", async (event) => {
      if (node.getAttribute("aria-busy") === "true") return;
      node.setAttribute("aria-busy", "true");
      await attempt(() => onclick(event));
      node.removeAttribute("aria-busy");
    });
  }
  return node;
}

/** Run something that a click started; an error becomes a toast. */
async function attempt(work) {
  try {
    return await work();
  } catch (error) {
    problem(error);
    return undefined;
  }
}

export const problem = (error) => toast(t("pair", { name: label("error", error.kind ?? "Internal"), value: error.kind === "Unreachable" ? t("remedy.Unreachable") : cut(error.message, 300) }), { problem: true });

// ------------------------------------------------------------------------------------------- writes

/** Run an action that writes, say so with a way back, and let the open panel read again. */
export async function write(action, input, { said: words, ...options } = {}) {
  const result = await act(action, input, options);
  const changes = [result].flat().filter(Boolean);
  const ids = changes.flatMap((each) => each.audit_ids ?? each.audit_id ?? []).filter(Boolean);
  const unchanged = changes.length > 0 && changes.every((each) => each.outcome === "unchanged");
  const notes = changes.flatMap((each) => each.notes ?? []).concat(changes.flatMap((each) => (each.removed?.length ? [t("removedWith", { n: each.removed.length })] : [])));
  told(words ?? (unchanged ? t("unchanged") : t("done")), ids, options, notes);
  emit("wrote");
  return result;
}

/** A toast about something done, with Undo for its audit entries. */
export function told(words, auditIds, options = {}, notes = []) {
  const space = options.space ?? app.space;
  const undo = async () => {
    for (const id of [...auditIds].reverse()) await act("undo", { audit_id: id }, { ...options, space });
    toast(t("undone"));
    emit("wrote");
  };
  toast([words, ...new Set(notes)].slice(0, 4).join(" · "), auditIds.length > 0 && has("undo") ? { undo } : {});
}

export function toast(text, { undo, problem: bad } = {}) {
  const close = () => {
    clearTimeout(timer);
    node.remove();
  };
  const node = h(
    "div",
    { class: bad ? "toast problem" : "toast" },
    h("span", { dir: "auto" }, text),
    undo && button(t("undo"), async () => (await undo(), close()), { kind: "toast-undo" }),
    button("×", close, { kind: "icon", name: t("dismiss") }),
  );
  let timer;
  const wait = () => {
    timer = setTimeout(() => (node.contains(document.activeElement) || node.matches(":hover") ? wait() : close()), undo || bad ? 15000 : 6000);
  };
  wait();
  const stack = document.getElementById("toasts");
  stack.append(node);
  while (stack.children.length > 3) stack.firstChild.remove();
}

// ------------------------------------------------------------------------------------------ dialogs

/** A modal of our own: a sandboxed page has no confirm(). `fill(close)` gives its content; resolves to what close was called with. */
export function dialog(title, fill, { wide = false } = {}) {
  const before = document.activeElement;
  return new Promise((resolve) => {
    const id = newId("dialog");
    const heading = h("h2", { id }, title);
    const node = h("dialog", { class: wide ? "wide" : "", "aria-labelledby": id });
    let answer;
    const close = (value) => {
      answer = value;
      node.close();
    };
    node.addEventListener("close", () => {
      node.remove();
      if (before?.isConnected) before.focus();
      resolve(answer);
    });
    node.append(heading, ...[fill(close)].flat().filter(Boolean));
    document.body.append(node);
    node.showModal();
  });
}

/** Ask before something that many rows, or no way back, make serious. */
export const confirmed = (title, text, yes, { danger = true } = {}) =>
  dialog(title, (close) => [
    h("p", { dir: "auto" }, text),
    h("div", { class: "actions end" },
      button(t("cancel"), () => close(false)),
      button(yes, () => close(true), { kind: danger ? "danger" : "primary" }),
    ),
  ]);

// ---------------------------------------------------------------------------------------- small parts

export const badge = (group, name) => h("span", { class: `badge ${group}-${name}` }, label(group, name));

export const section = (title, ...children) => h("section", { class: "card" }, title && h("h2", null, title), children);

export const heading = (title, hint, ...actions) =>
  h("header", { class: "panel-head" },
    h("div", null, h("h1", { tabindex: "-1" }, title), hint && h("p", { class: "hint" }, hint)),
    actions.length > 0 && h("div", { class: "actions" }, actions),
  );

/** Terms and their values; those without a value are left out. */
export const facts = (rows) =>
  h("dl", { class: "facts" },
    rows.filter(([, value]) => value !== null && value !== undefined && value !== "").map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))),
  );

export const table = (caption, heads, rows) =>
  h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", null,
      h("caption", null, caption),
      h("thead", null, h("tr", null, heads.map((each) => h("th", { scope: "col" }, each)))),
      h("tbody", null, rows),
    ),
  );

/** A block of text as it is. */
export const block_ = (text, name) => h("pre", { class: "block", dir: "auto", tabindex: "0", role: "region", "aria-label": name }, text);

/** Next and previous over cursors: a page is found again by the cursor that it began with. */
export function pager(onMove) {
  let past = [];
  let here = "";
  let next = "";
  const back = button(t("previous"), () => move(past.pop() ?? "", false), { key: "pager-back" });
  const forth = button(t("next"), () => move(next, true), { key: "pager-forth" });
  const place = h("span", { class: "hint" });
  const move = (cursor, forward) => {
    if (forward) past.push(here);
    here = cursor;
    onMove();
    node.closest(".card")?.scrollIntoView({ block: "start" });
  };
  const node = h("nav", { class: "pager", "aria-label": t("pages") }, back, place, forth);
  return {
    node,
    get cursor() {
      return here;
    },
    reset() {
      past = [];
      here = "";
    },
    show(page, shown, size) {
      next = page.cursor;
      back.disabled = past.length === 0 && here === "";
      forth.disabled = !next;
      const from = past.length * size + 1;
      node.hidden = !shown && back.disabled;
      place.textContent = shown ? t("pageOf", { from: number(from), to: number(from + shown - 1), total: number(page.total) }) : "";
    },
  };
}

/** A bar for a share of a whole; the number stands beside it, so the bar says nothing to a screen reader. */
export function bar(share, kind = "") {
  const fill = h("span", { class: `bar-fill ${kind}` });
  fill.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  return h("span", { class: "bar", "aria-hidden": "true" }, fill);
}
