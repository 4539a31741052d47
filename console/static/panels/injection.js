// Injection: what the last prompts of this chat were given, word for word. Nothing is run from here.
import { h, keyed, number, said, when } from "../dom.js";
import { t } from "../i18n.js";
import { act } from "../state.js";
import { badge, block_, empty, heading, region, section } from "../ui.js";
import { control } from "../forms.js";
import { episodeLine } from "./episodes.js";

const TURNS = 50;

export function injectionPanel() {
  const only = control({ name: "injected_only", type: "boolean" });
  const block = (title, text) => [h("h3", null, title), text ? block_(text, title) : h("p", { class: "hint" }, t("nothingSent"))];
  const rows = keyed(h("ul", { class: "rows" }), (each) => each.id, (each) =>
    h("li", null, h("details", { class: "turn", data: { key: each.id } },
      h("summary", null,
        h("span", { class: "row-main" },
          h("span", { class: "row-title" }, said(each.query, 200)),
          h("span", { class: "meta" },
            when(each.recorded_at),
            badge("reason", each.reason),
            h("span", null, t("countEpisodes", { n: each.episode_count })),
            h("span", { class: "quiet" }, t("countChars", { n: each.injection_chars })),
          ),
        ),
      ),
      block(t("profileBlock"), each.profile_block),
      block(t("memoryBlock"), each.memory_block),
      each.episodes.length > 0 && [h("h3", null, t("itsEpisodes")), h("ul", { class: "rows" },
        each.episodes.map((one) => h("li", { class: "row" },
          h("div", { class: "row-main" },
            episodeLine({ ...one, content: one.text ?? one.content, status: "active", tags: one.tags ?? [] }, { key: `turn ${each.id}` }),
            h("p", { class: "quiet" }, t("scoreOf", { score: number(one.score, 3) })),
          ),
        )),
      )],
      (each.notes ?? []).map((note) => h("p", { class: "hint", dir: "auto" }, note)),
      each.query_id && h("p", { class: "hint mono" }, said(each.query_id, 100)),
    )),
  );
  const show = (turns) => {
    const found = turns.filter((each) => !only.get() || each.injected);
    if (!turns.length) return empty(t("noInjections"), t("noInjectionsHint"));
    return found.length ? rows.show(found) : empty(t("noneFound"), t("noneFoundHint"));
  };
  const list = region(() => act("injections", { limit: TURNS }), show);
  only.input.addEventListener("change", () => (list.forget(), list.read(true)));
  return { node: h("div", { class: "panel" },
    heading(t("nav.injection"), t("injectionHint", { n: TURNS })),
    section(t("turns"), h("div", { class: "toolbar" }, only.node), list.node),
  ), refresh: (quiet) => list.read(quiet) };
}
