// Memory spaces: every space that holds anything, and a way to any other by bot, chat and isolation.
import { h, keyed, said } from "../dom.js";
import { label, t } from "../i18n.js";
import { act, app, openSpace, sessionKey, userKey } from "../state.js";
import { button, empty, heading, region, section } from "../ui.js";
import { form } from "../forms.js";

const SHOWN = 200;

/** The scope that a row of the list stands for. Of shared memory that is a chat of the bot: profiles and audit belong to chats. */
function scopeOf(info, all) {
  if (info.kind === "session") return { bot: info.bot, launcher_type: info.launcher_type, launcher_id: info.launcher_id, isolation: "session" };
  const chat = all.find((each) => each.kind === "session" && each.bot === info.bot);
  return { bot: info.bot, launcher_type: chat?.launcher_type ?? "person", launcher_id: chat?.launcher_id ?? "console", isolation: "bot" };
}

function isOpen({ kind, key }) {
  if (!app.space) return false;
  return kind === "session" ? app.space.isolation === "session" && sessionKey(app.space) === key : app.space.isolation === "bot" && userKey(app.space) === key;
}

export function spacesPanel() {
  const search = h("input", { type: "search", id: "space-search", "aria-label": t("searchSpaces"), placeholder: t("searchSpaces"), dir: "auto" });
  const count = h("p", { class: "hint", role: "status" });
  let all = [];

  const rows = keyed(
    h("ul", { class: "rows" }),
    (info) => info.kind + info.bot + "\n" + info.launcher_type + info.launcher_id,
    (info) =>
      h(
        "li",
        { class: info.open ? "row current" : "row" },
        h("div", { class: "row-main" },
          h("p", { class: "row-title" }, said(info.kind === "session" ? info.launcher_id : t("sharedMemory"), 120)),
          h("p", { class: "meta" },
            h("span", { class: "badge" }, info.kind === "session" ? label("launcher", info.launcher_type) : label("space", info.kind)),
            h("span", null, t("botNamed"), " ", info.bot ? said(info.bot, 80) : t("noBot")),
          ),
        ),
        h("p", { class: "counts" },
          [["countEpisodes", info.episodes], ["countActive", info.active], ["countFacts", info.facts], ["countSpeakers", info.speakers], info.pending ? ["countPending", info.pending] : null].filter(Boolean).map(([key, n]) => h("span", null, t(key, { n }))),
        ),
        button(info.open ? t("isOpen") : t("open"), () => (openSpace(scopeOf(info, all)), app.go("episodes")),
          { key: `open ${info.key}`, name: `${info.open ? t("isOpen") : t("open")}: ${info.key.slice(0, 200)}` },
        ),
      ),
  );

  const show = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = all.filter((info) => words.every((word) => info.key.toLowerCase().includes(word)));
    count.textContent = found.length > SHOWN ? t("moreSpaces", { n: found.length, shown: SHOWN }) : t("countSpaces", { n: found.length });
    rows.show(found.slice(0, SHOWN).map((info) => ({ ...info, open: isOpen(info) })));
    return found.length || !words.length ? rows.node : [rows.node, empty(t("noSuchSpace"), t("noSuchSpaceHint"))];
  };
  search.addEventListener("input", () => list.node.replaceChildren(...[show()].flat()));

  const list = region(() => act("spaces"), (data) => {
    all = [...data].sort((a, b) => b.episodes + b.facts - a.episodes - a.facts);
    return all.length ? show() : empty(t("noSpaces"), t("noSpacesHint"));
  });

  const derive = form(
    [
      { name: "bot", help: t("botHelp") },
      { name: "launcher_type", choices: ["person", "group"], default: "person", required: true },
      { name: "launcher_id", required: true },
      { name: "isolation", choices: ["session", "bot"], default: "session", required: true, help: t("isolationHelp") },
    ],
    {
      submit: t("openThis"),
      row: true,
      onSubmit: (given) => {
        openSpace({ bot: "", ...given });
        app.go("episodes");
      },
    },
  );

  const node = h("div", { class: "panel" },
    heading(t("nav.spaces"), t("spacesHint")),
    section("", h("div", { class: "toolbar" }, search, count), list.node),
    section(t("deriveTitle"), h("p", { class: "hint" }, t("deriveHint")), derive.node),
  );
  return {
    node,
    refresh: (quiet) => {
      list.forget(); // which one is open may differ though the answer is the same
      return list.read(quiet && all.length > 0);
    },
  };
}
