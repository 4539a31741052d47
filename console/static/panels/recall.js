// Recall test: what a question finds and why, with other weights too, and why an episode is not among it.
import { h, number, patch, said } from "../dom.js";
import { label, t } from "../i18n.js";
import { act, app } from "../state.js";
import { bar, badge, button, empty, heading, loading, region, section } from "../ui.js";
import { control, fieldsOf, form } from "../forms.js";
import { episodeLine, filterFields, speakerControl } from "./episodes.js";

const MOST = { half_life_days: 365, floor: 1, min_relevance: 1 }; // of a slider; the number beside it takes more

export function recallPanel() {
  let asked = null;
  const who = speakerControl("speaker", t("askedBy"), t("nobody"));
  const filters = filterFields("recall");
  const [query, limit, asOf] = ["query", "limit", "as_of"].map((name) => control({ ...fieldsOf("recall", [name])[0], ...(name === "limit" && { least: 1, most: 500 }), wide: name === "query", help: "" }));

  // ------------------------------------------------------------------------------------------- weights
  const weights = Object.entries(app.start.weights ?? {}).map(([name, usual]) => weight(name, usual));
  function weight(name, usual) {
    const most = MOST[name] ?? 2;
    const typed = h("input", { type: "number", min: 0, max: 1e6, step: "any", value: usual, "aria-label": label("weight", name) });
    const slider = h("input",
      { type: "range", min: 0, max: most, step: name === "half_life_days" ? 1 : 0.01, value: usual, "aria-label": t("sliderOf", { name: label("weight", name) }) },
    );
    slider.addEventListener("input", () => (typed.value = slider.value));
    typed.addEventListener("input", () => (slider.value = typed.value));
    const set = (value) => (typed.value = slider.value = value);
    return { name, set, usual, get: () => (typed.value === "" ? usual : Number(typed.value)), node: h("div", { class: "weight" }, h("span", null, label("weight", name)), slider, typed) };
  }
  const changed = () => weights.filter((each) => each.get() !== each.usual).map((each) => `${each.name}=${each.get()}`);
  const weightBox = h("details", { class: "sub" },
    h("summary", null, t("weights")),
    h("p", { class: "hint" }, t("weightsHint")),
    h("div", { class: "weights" }, weights.map((each) => each.node)),
    h("div", { class: "actions" }, button(t("usualWeights"), () => weights.forEach((each) => each.set(each.usual)))),
  );
  const filterBox = h("details", { class: "sub" }, h("summary", null, t("filters")), h("div", { class: "fields" }, filters.map((each) => each.node)));

  const ask = form([query, limit, asOf, who], {
    submit: t("ask"),
    onSubmit: (values) => {
      const { speaker, ...input } = values;
      for (const each of filters) if (each.get() !== undefined) input[each.name] = each.get();
      const given = changed();
      if (given.length) input.weights = given;
      const known = app.speakers.find((each) => each.id === speaker);
      asked = { input, speaker: known ? { id: known.id, name: "" } : null };
      patch(verdict);
      if (!found.data) patch(found.node, loading());
      return found.read();
    },
  });
  ask.node.querySelector(".fields").after(weightBox, filterBox);

  // --------------------------------------------------------------------------------------------- answer
  let elapsed = 0;
  const found = region(
    async () => {
      if (!asked) return null;
      const started = performance.now();
      const answer = await act("recall", asked.input, { speaker: asked.speaker });
      elapsed = performance.now() - started;
      return answer;
    },
    (answer) => {
      if (!answer) return empty(t("nothingAsked"), t("nothingAskedHint"));
      const dropped = Object.entries(answer.dropped).filter(([, n]) => n);
      return [
        h("p", { class: "meta" },
          badge("mode", answer.mode),
          h("span", null, t("recallCounts", { shown: answer.hits.length, considered: answer.considered, below: answer.below_threshold })),
          h("span", { class: "quiet" }, t("tookMs", { ms: number(elapsed) })),
        ),
        answer.reason && h("p", { class: "hint", dir: "auto" }, answer.reason),
        dropped.length > 0 && h("p", { class: "hint" },
          t("droppedBy"),
          " ",
          dropped.map(([name, n]) => t("pair", { name: label("drop", name), value: number(n) })).join(t("listComma")),
        ),
        answer.pending > 0 && answer.mode === "hybrid" && h("p", { class: "hint" }, t("pendingVectors", { n: answer.pending })),
        answer.truncated.map((each) => h("p", { class: "notice", dir: "auto" }, each)),
        answer.hits.length ? h("ol", { class: "rows hits" },
          answer.hits.map((hit, at) => h("li", { class: "row" },
            h("span", { class: "rank", "aria-hidden": "true" }, at + 1),
            h("div", { class: "row-main" }, episodeLine(hit, { key: "hit" }), score(hit)),
          )),
        ) : empty(t("noneFound"), t("noneRelevantHint")),
      ];
    },
  );

  /** The terms of a score, each as a bar: how many points it gave, and how strong the signal itself was. */
  function score(hit) {
    const most = Math.max(...Object.values(hit.why), 1e-9);
    return h(
      "div",
      { class: "terms" },
      h("p", { class: "score" },
        h("strong", null, t("scoreOf", { score: number(hit.score, 3) })),
        h("span", { class: "quiet" }, t("relevanceOf", { n: number(hit.relevance, 2) })),
      ),
      h("dl", { class: "term-list" },
        app.start.signals.map((name) => h("div", { class: hit.why[name] ? "term" : "term none" },
          h("dt", null, label("weight", name)),
          h("dd", null,
            bar((hit.why[name] ?? 0) / most, name),
            h("span", { class: "term-value" }, t("points", { points: number(hit.why[name] ?? 0, 3), signal: number(hit.signals[name] ?? 0, 2) })),
          ),
        )),
      ),
    );
  }

  // -------------------------------------------------------------------------------------------- why not
  const verdict = h("div", { role: "status" });
  const whyNot = form([{ name: "id", required: true, help: "" }], {
    submit: t("whyNot"),
    kind: "",
    row: true,
    onSubmit: async ({ id }) => {
      if (!asked) return patch(verdict, h("p", { class: "notice" }, t("nothingAskedHint")));
      const { as_of: _, ...input } = asked.input; // a verdict is about now
      const answer = await act("why-not", { ...input, id: id.trim() }, { speaker: asked.speaker });
      return patch(
        verdict,
        h("div", { class: "notice" },
          h("p", null, badge("verdict", answer.code), " ", h("span", { dir: "auto" }, answer.words)),
          answer.hit && [h("p", null, said(answer.hit.content, 300)), score(answer.hit)],
        ),
      );
    },
  });

  const node = h("div", { class: "panel" },
    heading(t("nav.recall"), t("recallHint")),
    section("", ask.node),
    section(t("answer"), found.node),
    section(t("whyNot"), h("p", { class: "hint" }, t("whyNotHint")), whyNot.node, verdict),
  );
  return { node, refresh: (quiet) => found.read(quiet) };
}
