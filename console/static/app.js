// The frame: navigation, the bar of the open space, banners, the open panel and its side panel.
import { cut, h, patch, said } from "./dom.js";
import { label, language, languages, t } from "./i18n.js";
import { call, connect, inLangBot } from "./transport.js";
import { act, app, emit, fencesHere, has, isReadOnly, on, openSpace, quiet } from "./state.js";
import { button, dialog, empty, failure, loading, markBlocked } from "./ui.js";
import * as look from "./look.js";
import * as live from "./live.js";
import { detail } from "./detail.js";
import { form } from "./forms.js";
import { spacesPanel } from "./panels/spaces.js";
import { profilesPanel } from "./panels/profiles.js";
import { episodesPanel } from "./panels/episodes.js";
import { recallPanel } from "./panels/recall.js";
import { injectionPanel } from "./panels/injection.js";
import { reviewPanel } from "./panels/review.js";
import { auditPanel } from "./panels/audit.js";
import { timelinePanel } from "./panels/timeline.js";
import { transferPanel } from "./panels/transfer.js";
import { diagnosticsPanel } from "./panels/diagnostics.js";
import { settingsPanel } from "./panels/settings.js";
import { operationsPanel } from "./panels/operations.js";

// In the order of the navigation; `file`: needs no open space.
const PANELS = {
  spaces: { make: spacesPanel, file: true },
  profiles: { make: profilesPanel },
  episodes: { make: episodesPanel },
  recall: { make: recallPanel },
  injection: { make: injectionPanel },
  review: { make: reviewPanel },
  audit: { make: auditPanel },
  timeline: { make: timelinePanel },
  transfer: { make: transferPanel },
  diagnostics: { make: diagnosticsPanel, file: true },
  settings: { make: settingsPanel, file: true },
  operations: { make: operationsPanel },
};

const root = document.getElementById("app");
const main = h("main", { id: "main", tabindex: "-1" });
const banners = h("section", { class: "banners" });
const spaceBar = h("section", { class: "space-bar" });
const nav = h("nav", { class: "nav" });
let made = {}; // panels that were opened, by name: what is typed in them stays while another is looked at
let current = "spaces";
let side = null;
let lost = false;
let looks;

/** Show a panel; `where`: what it is to show (a filter). */
app.go = (name, where) => {
  if (name !== current) side.leave();
  current = name;
  show();
  if (where) made[name]?.open?.(where);
  main.querySelector("h1")?.focus({ preventScroll: true });
  window.scrollTo(0, 0);
};
app.openEpisode = (id) => side.open(id);

function show() {
  paintNav();
  const { make, file } = PANELS[current];
  if (!file && !app.space) {
    patch(
      main,
      h("div", { class: "panel" },
        h("h1", { tabindex: "-1" }, t(`nav.${current}`)),
        empty(t("noSpaceOpen"), t("noSpaceOpenHint"), button(t("chooseSpace"), () => app.go("spaces"), { kind: "primary" })),
      ),
    );
    return;
  }
  const fresh = !made[current];
  made[current] ??= make();
  patch(main, made[current].node);
  made[current].refresh(!fresh);
}

/** Take a choice that makes everything anew, unless something is being typed that its owner wants to keep. */
async function unlessTyping(select, before, take) {
  if (await side.mayLeave()) take(select.value);
  else select.value = before;
}

/** Make everything anew: another space or language. */
function rebuild() {
  quiet("speakers");
  made = {};
  side?.close();
  paintFrame();
  paintBars();
  show();
}

// ---------------------------------------------------------------------------------------------- frame

function paintFrame() {
  const tongue = h("select", { "aria-label": t("language"), onchange: (event) => unlessTyping(event.target, language(), (code) => looks.chooseLanguage(code)) },
    languages.map((each) => h("option", { value: each, selected: each === language() }, t(`language.${each}`))),
  );
  const shade = button(look.theme() === "dark" ? t("lightTheme") : t("darkTheme"), () => {
    looks.chooseTheme(look.theme() === "dark" ? "light" : "dark");
    shade.textContent = look.theme() === "dark" ? t("lightTheme") : t("darkTheme");
  });
  nav.setAttribute("aria-label", t("panels"));
  spaceBar.setAttribute("aria-label", t("openSpace"));
  banners.setAttribute("aria-label", t("notices"));
  const top = h("header", { class: "top" },
    h("a", { class: "skip", href: "#main", onclick: (event) => (event.preventDefault(), main.focus()) }, t("skip")),
    h("p", { class: "brand" }, t("title"), " ", h("span", { class: "quiet" }, app.start ? said(app.start.file ?? "", 60) : "")),
    h("div", { class: "actions" }, button(t("refresh"), refresh), tongue, shade),
  );
  side ??= detail();
  patch(root, top, nav, h("div", { class: "body" }, spaceBar, banners, h("div", { class: "work" }, main, side.node)));
}

function paintNav() {
  patch(
    nav,
    h("ul", null,
      Object.keys(PANELS).map((name) => h("li", null,
        h("button",
          { type: "button", "aria-current": name === current ? "page" : undefined, data: { key: `nav ${name}` }, onclick: () => app.go(name) },
          t(`nav.${name}`),
        ),
      )),
    ),
  );
  const here = nav.querySelector("[aria-current]");
  if (nav.scrollWidth > nav.clientWidth) nav.scrollLeft = here.offsetLeft - 40;
}

function paintBars() {
  const { space } = app;
  const shared = space && h("select", { id: "isolation", onchange: (event) => unlessTyping(event.target, space.isolation, (isolation) => openSpace({ ...space, isolation })) },
    ["session", "bot"].map((each) => h("option", { value: each, selected: space.isolation === each }, label("isolation", each))),
  );
  patch(
    spaceBar,
    space && [h("p", null,
      h("span", { class: "eyebrow" }, t("openSpace")),
      " ",
      h("strong", null, said(space.launcher_id, 80)),
      " ",
      h("span", { class: "quiet" }, label("launcher", space.launcher_type), " · ", t("botNamed"), " ", space.bot ? said(space.bot, 60) : t("noBot")),
    ), h("div", { class: "actions" }, h("label", { for: "isolation" }, t("memoryOf")), shared, button(t("change"), () => app.go("spaces")))],
  );
  spaceBar.hidden = !space;
  const fences = fencesHere();
  patch(
    banners,
    lost && h("div", { class: "banner bad", role: "alert" }, t("lost")),
    isReadOnly() && h("div", { class: "banner" }, t("readOnlyBanner")),
    fences.map((each) => h("div", { class: "banner warn" },
      h("p", null, h("strong", null, t(each.key ? "fencedSpace" : "fencedFile")), " ", said(each.reason, 200)),
      current !== "diagnostics" && button(t("look"), () => app.go("diagnostics")),
    )),
  );
}

// ------------------------------------------------------------------------------------------- following

/** Read what the frame itself shows: fences, speakers of the open space. */
async function readFrame() {
  const { space } = app;
  const [fences, speakers] = await Promise.all([act("fence list").catch(() => app.fences), space && has("speakers") ? act("speakers").catch(() => app.speakers) : []]);
  if (space !== app.space) return;
  const before = JSON.stringify([app.fences, app.speakers]);
  app.fences = fences;
  app.speakers = speakers;
  if (JSON.stringify([fences, speakers]) === before) return;
  paintBars();
  markBlocked();
  emit("speakers");
}

async function refresh() {
  await Promise.all([readFrame(), made[current]?.refresh(true)]);
}

on("wrote", refresh);
on("changes", refresh);
on("space", () => {
  rebuild();
  readFrame();
});
on("lost", () => ((lost = true), paintBars()));
on("found", async () => {
  lost = false;
  app.start = await call("start", { language: language() }).catch(() => app.start); // it may have been started again, for reading only or no longer so
  paintBars();
  markBlocked();
});

// ---------------------------------------------------------------------------------------------- begin

const askForToken = (problem) =>
  dialog(t("tokenTitle"), (close) => {
    const asked = form(
      [{ name: "token", label: t("tokenLabel"), required: true, help: t("tokenHelp") }],
      { submit: t("enter"), onSubmit: ({ token }) => close(token) },
    );
    return [problem && h("p", { class: "notice bad", role: "alert", dir: "auto" }, cut(problem.message, 300)), asked.node];
  }).then((token) => token ?? askForToken(problem));

async function begin() {
  looks = look.follow(async () => {
    if (!app.start) return;
    app.start = await call("start", { language: language() }).catch(() => app.start);
    rebuild();
  });
  patch(root, h("div", { class: "alone" }, loading()));
  try {
    await connect(askForToken);
    looks.refresh(); // the host has told its theme and language by now
    app.start = await call("start", { language: language() });
    document.body.classList.toggle("in-host", inLangBot);
    rebuild();
    await readFrame();
    live.follow();
  } catch (error) {
    patch(root, h("div", { class: "alone" }, failure(error, begin)));
  }
}

begin();
