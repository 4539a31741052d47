// Timeline: how many episodes each day has, by status or importance; a day leads to its episodes.
import { h, number, patch, svg } from "../dom.js";
import { label, language, t } from "../i18n.js";
import { act, app } from "../state.js";
import { empty, heading, region, section, table } from "../ui.js";
import { control, form } from "../forms.js";
import { filterFields } from "./episodes.js";

const DAY = 86_400_000;
const BARS = 90; // more than that are too thin to hit: then a bar is a week or a month
const HEIGHT = 220;

// Days are those of the viewer's zone as it is now, the same in the question, in the labels and in the filter that a click sets.
const OFFSET = -new Date().getTimezoneOffset();
const beginOf = (day) => Date.parse(`${day}T00:00:00Z`) - OFFSET * 60_000;

export function timelinePanel() {
  const by = control({ name: "stacked_by", choices: ["status", "importance"], default: "status", required: true });
  const per = control({ name: "bar_is", choices: ["auto", "day", "week", "month"], default: "auto", required: true });
  let where = {};
  const fields = filterFields("timeline");
  const filter = form(fields, { submit: t("filter"), onSubmit: (values) => ((where = values), list.read()) });
  for (const each of [by, per]) each.input.addEventListener("change", () => (list.forget(), list.read(true)));

  const list = region(() => act("timeline", { ...where, utc_offset_minutes: OFFSET }), (days) => {
    if (!days.length) return Object.keys(where).length ? empty(t("noneFound"), t("noneFoundHint")) : empty(t("noEpisodes"), t("noEpisodesHint"));
    const parts = by.get() === "status" ? app.start.statuses : ["1", "2", "3", "4", "5"];
    const bars = barsOf(days, by.get(), per.get());
    const used = parts.filter((part) => bars.some((each) => each.parts[part]));
    const go = (each) => app.go(
      "episodes",
      { after: new Date(each.begin).toISOString(), before: new Date(each.end - 1).toISOString(), ...(where.statuses ? { statuses: where.statuses } : { statuses: app.start.statuses.filter((status) => status !== "deleted") }) },
    );
    return [legend(used), chart(bars, used, go), h("p", { class: "hint" }, t("timelineKeys")), tableOf(bars, used, go)];
  });

  const words = (part) => (by.get() === "status" ? label("status", part) : t("importanceOf", { n: part }));
  const legend = (parts) => h("ul", { class: "legend" },
    parts.map((part) => h("li", null, h("span", { class: `swatch part-${part}`, "aria-hidden": "true" }), words(part))),
  );

  const tableOf = (bars, parts, go) =>
    h("details", { data: { key: "table" } },
      h("summary", null, t("asTable")),
      table(t("nav.timeline"), [t("field.day"), ...parts.map(words), t("total")],
        bars.filter((each) => each.total).map((each) => h("tr", null,
          h("th", { scope: "row" }, h("button", { type: "button", class: "link", onclick: () => go(each) }, each.name)),
          parts.map((part) => h("td", null, number(each.parts[part] ?? 0))),
          h("td", null, number(each.total)),
        )),
      ),
    );

  const node = h("div", { class: "panel" },
    heading(t("nav.timeline"), t("timelineHint")),
    h("details", { class: "card filters" }, h("summary", null, t("filters")), filter.node),
    section("", h("div", { class: "toolbar" }, by.node, per.node), list.node),
  );
  return { node, refresh: (quiet) => list.read(quiet) };
}

/** Sums of days, weeks or months without gaps, oldest first: {begin, end (ms), name, total, parts}. */
function barsOf(days, by, per) {
  const [first, last] = [days[0].day, days.at(-1).day].map((day) => Date.parse(`${day}T00:00:00Z`));
  const span = (last - first) / DAY + 1;
  const step = per !== "auto" ? per : span <= BARS ? "day" : span <= BARS * 7 ? "week" : "month";
  const startOf = (ms) => {
    const at = new Date(ms);
    if (step === "month") return Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), 1);
    return step === "week" ? ms - ((at.getUTCDay() + 6) % 7) * DAY : ms;
  };
  const after = (ms) => (step === "month" ? Date.UTC(new Date(ms).getUTCFullYear(), new Date(ms).getUTCMonth() + 1, 1) : ms + (step === "week" ? 7 : 1) * DAY);
  const form_ = new Intl.DateTimeFormat(
    language().replace("_", "-"),
    { timeZone: "UTC", ...(step === "month" ? { year: "numeric", month: "long" } : { dateStyle: "medium" }) },
  );
  const bars = new Map();
  for (let at = startOf(first); at <= last && bars.size < 5000; at = after(at)) {
    const name = step === "week" ? t("weekOf", { day: form_.format(at) }) : form_.format(at);
    bars.set(at, { begin: at - OFFSET * 60_000, end: after(at) - OFFSET * 60_000, name, total: 0, parts: {} });
  }
  for (const each of days) {
    const bar = bars.get(startOf(beginOf(each.day) + OFFSET * 60_000));
    if (!bar) continue;
    const part = String(each[by]);
    bar.parts[part] = (bar.parts[part] ?? 0) + each.episodes;
    bar.total += each.episodes;
  }
  return [...bars.values()];
}

/** The drawing. One bar takes the focus at a time; arrows move it, Enter opens. */
function chart(bars, parts, go) {
  const most = Math.max(...bars.map((each) => each.total));
  const wide = Math.max(8, Math.min(48, Math.floor(1060 / bars.length)));
  const left = 8 + 8 * number(most).length;
  const width = left + wide * bars.length + 8;
  const y = (n) => HEIGHT - (n / most) * (HEIGHT - 16);
  const ticks = [...new Set([0, Math.round(most / 2), most])];
  const tip = h("p", { class: "tip", "aria-hidden": "true" }, "\u00a0");
  const tell = (each) => patch(
    tip,
    `${each.name} · ${t("countEpisodes", { n: each.total })} · ${parts.filter((part) => each.parts[part]).map((part) => `${label("status", part)} ${number(each.parts[part])}`).join(t("listComma"))}`,
  );

  const columns = bars.map((each, at) => {
    let sum = 0;
    const x = left + at * wide;
    const pieces = parts.filter((part) => each.parts[part]).map((part) => {
      const top = y(sum + each.parts[part]);
      const piece = svg("rect", { class: `part-${part}`, x: x + wide * 0.1, width: wide * 0.8, y: top, height: Math.max(1, y(sum) - top) });
      sum += each.parts[part];
      return piece;
    });
    const group = svg("g",
      { class: "column", role: "button", tabindex: "-1", "aria-label": `${each.name}: ${t("countEpisodes", { n: each.total })}`, data: { key: `bar ${each.begin}` }, onclick: () => go(each), onfocus: () => tell(each), onmouseenter: () => tell(each) },
      svg("rect", { class: "hit", x, y: 0, width: wide, height: HEIGHT }),
      pieces,
    );
    return group;
  });
  const full = columns.filter((_, at) => bars[at].total > 0);
  full.at(-1)?.setAttribute("tabindex", "0");

  function onkeydown(event) {
    const here = columns.indexOf(document.activeElement);
    if (here < 0) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      return go(bars[here]);
    }
    const steps = { ArrowLeft: -1, ArrowRight: 1, Home: -here, End: columns.length - 1 - here, PageUp: -7, PageDown: 7 };
    if (!(event.key in steps)) return;
    event.preventDefault();
    const next = columns[Math.max(0, Math.min(columns.length - 1, here + steps[event.key]))];
    columns.forEach((each) => each.setAttribute("tabindex", each === next ? "0" : "-1"));
    next.focus();
  }

  const every = Math.ceil(90 / wide);
  const days = bars.map((each, at) => at % every === 0 && svg("text", { class: "axis", x: left + at * wide, y: HEIGHT + 16 },
    new Intl.DateTimeFormat(language().replace("_", "-"), { month: "short", day: "numeric" }).format(each.begin),
  ));
  const drawing = svg("svg",
    { class: "chart", viewBox: `0 0 ${width} ${HEIGHT + 22}`, width, height: HEIGHT + 22, role: "group", "aria-label": t("timelineChart"), onkeydown },
    ticks.map((n) => [svg("line", { class: "grid", x1: left, x2: width, y1: y(n), y2: y(n) }), svg("text",
      { class: "axis", x: left - 6, y: y(n) + 4, "text-anchor": "end" },
      number(n),
    )]),
    columns,
    days,
  );
  const scroller = h("div", { class: "chart-scroll", data: { key: "chart" } }, drawing);
  queueMicrotask(() => requestAnimationFrame(() => (scroller.scrollLeft = scroller.scrollWidth))); // the newest days first
  return [scroller, tip];
}
