"""The plugin's page as people get it: in the host's own dashboard, in a real headless Chromium (LTM_CHROMIUM, or `chromium`).

The dashboard reads index.html with the login, opens it as a blob in an iframe with sandbox="allow-scripts allow-forms", and carries
what the page asks. Screenshots go to LTM_ARTIFACTS, or to a new temporary folder.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from run_memory import World

CHROMIUM = os.environ.get("LTM_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser") or ""
try:
    from playwright.sync_api import Error, FrameLocator, Page, expect, sync_playwright

    MISSING = "" if CHROMIUM else "no Chromium was found"
except ImportError as error:
    MISSING = f"{error.name} is not installed"

AUTHOR, PLUGIN, PAGE = "ltm", "LongTermMemory", "memory_console"
ASSETS = f"/api/v1/plugins/{AUTHOR}/{PLUGIN}/authenticated-assets"  # the dashboard of 4.10 asks for the page's id before it knows its path
NOWHERE = "http://127.0.0.1:9/"  # what stack.py names as the marketplace
# No tour of the dashboard; and in our frame, whatever touches a storage is noted.
WATCH = """
if (window === window.top) localStorage.setItem("langbot_sidebar_guide_v1", "completed");
else {
  window.touched = [];
  const note = (on, name) => Object.defineProperty(on, name, { get: () => void touched.push(name), set: () => touched.push(name) });
  for (const name of ["localStorage", "sessionStorage", "indexedDB", "caches"]) note(window, name);
  note(document, "cookie");
}
"""
WORDS = {
    "en": {"label": "Memory console", "spaces": "Memory spaces", "edit": "Edit", "save": "Save", "undo": "Undo"},
    "zh-Hans": {"label": "记忆控制台", "spaces": "记忆空间", "edit": "编辑", "save": "保存", "undo": "撤销"},
}
BACKGROUNDS = {"light": "rgb(255, 255, 255)", "dark": "rgb(10, 10, 10)"}  # what the host's script says


class Visit:
    """A dashboard that somebody has logged in to; what goes wrong in our frame of it is kept."""

    def __init__(self, w: World, page: Page, shots: Path) -> None:
        self.w, self.page, self.shots = w, page, shots
        self.faults: list[str] = []
        self.origin = w.s.url
        page.set_default_timeout(15_000)
        expect.set_options(timeout=15_000)
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        page.on("dialog", lambda dialog: self.faults.append(f"dialog: {dialog.message}"))
        page.on("request", self._asked)

    def _said(self, message: Any) -> None:
        where, own = message.location.get("url", ""), ("/assets/", "/login", "/api/v1/user/", f"{ASSETS}/{PAGE}")
        dashboard = where.startswith(NOWHERE) or where.removeprefix(self.origin).startswith(own)
        if message.type in ("error", "warning") and not dashboard:
            self.faults.append(f"console {message.type}: {message.text} ({where})")

    def _asked(self, request: Any) -> None:
        if request.frame != self.page.main_frame and not request.url.startswith((self.origin, f"blob:{self.origin}", "data:")):
            self.faults.append(f"another host was asked: {request.url}")

    @property
    def frame(self) -> FrameLocator:
        return self.page.frame_locator("iframe")

    def look(self) -> list[Any]:
        """Language, theme, whether it is the host's, ground and origin of our page."""
        script = """() => { const { lang, dataset } = document.documentElement;
            return [lang, dataset.theme, dataset.follows, getComputedStyle(document.body).backgroundColor, origin]; }"""
        return list(self.frame.locator("body").evaluate(script))

    def log_in(self, user: str = "probe@example.invalid", password: str = "probe-pass-1") -> None:
        self.page.goto(f"{self.origin}/login")
        self.page.locator("input[name=email]").fill(user)
        self.page.locator("input[type=password]").fill(password)
        self.page.locator("input[type=password]").press("Enter")
        self.page.wait_for_url("**/home/**")

    def menu(self) -> None:
        self.page.get_by_role("button", name="probe@").last.click()
        self.page.locator("[role=menu]").wait_for()

    def choose_theme(self, name: str) -> None:
        """By the dashboard's button, which goes round light, dark and the system's."""
        self.menu()
        for _ in range(3):
            self.page.locator("[role=menu] button:has(.lucide-monitor, .lucide-sun, .lucide-moon)").click()
            if self.page.locator(f"html.{name}").count():
                break
        self.page.keyboard.press("Escape")

    def choose_language(self, name: str) -> None:
        """By the dashboard's list; it loads itself anew."""
        self.menu()
        self.page.locator("[role=menu] [role=combobox]").click()
        with self.page.expect_navigation():
            self.page.get_by_role("option", name=name).click()

    def settled(self) -> None:
        expect(self.frame.locator(".spinner")).to_have_count(0, timeout=15_000)

    def shot(self, name: str) -> None:
        self.page.screenshot(path=self.shots / f"langbot-{self.w.s.lane}-{name}.png")


def console(w: World) -> None:
    """The page in the dashboard: opened, a memory listed, changed and put back, in two languages and two themes."""
    if MISSING:
        if os.environ.get("LTM_BROWSER") == "required":
            w.check("the page is opened in a Chromium", False, MISSING)
        else:
            print(f"skipped: {MISSING}", flush=True)
        return
    w.call("bob", "remember", content="Bob sails to Bergen on Monday")
    w.s.api("POST", "/api/v1/system/wizard/completed", {"status": "skipped"})
    shots = Path(os.environ.get("LTM_ARTIFACTS") or tempfile.mkdtemp(prefix="ltm-page-"))
    shots.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        # So high that the dashboard's assistant covers nothing of the page.
        context = browser.new_context(locale="en-US", color_scheme="light", viewport={"width": 1400, "height": 1500})
        context.add_init_script(WATCH)
        visit = Visit(w, context.new_page(), shots)
        try:
            visit.log_in()
            visit.page.get_by_text(WORDS["en"]["label"], exact=True).first.click()
            in_one_language(visit, "en", "light", "dark")
            visit.choose_language("简体中文")
            in_one_language(visit, "zh-Hans", "dark", "light")
            w.check("no error on the console, no other host asked", not visit.faults, visit.faults)
            worker_killed(visit)
        except (Error, AssertionError) as error:
            visit.shot("fault")
            w.check("the page does what is asked of it", False, error)
        finally:
            browser.close()
    print(f"     screenshots: {shots}", flush=True)


def in_one_language(visit: Visit, language: str, theme: str, other: str) -> None:
    """What is done in each; it begins with the page opened in one theme and ends in the other."""
    w, frame, words = visit.w, visit.frame, WORDS[language]
    frame.locator("nav.nav button").first.wait_for()
    visit.settled()
    look, wanted = visit.look(), [language, theme, "host", BACKGROUNDS[theme], "null"]
    w.check(f"{language}: the page opens in the dashboard, with its language and theme", look == wanted, look)
    title = frame.locator("main h1").inner_text()
    w.check(f"{language}: with its words", title == words["spaces"], title)
    frame.locator(f'[data-key="open {w.bot}:group_room"]').click()
    visit.settled()
    row = frame.locator("[data-key^='episode ']", has_text="Bob sails to Bergen")
    w.check(f"{language}: episodes are listed", row.count() == 1, frame.locator("main").inner_text())
    visit.shot(f"{language}-{theme}-episodes")
    row.click()
    side = frame.locator("aside.detail")
    side.get_by_role("button", name=words["edit"], exact=True).click()
    side.locator("textarea").first.fill("Bob sails to Bergen on Tuesday")
    side.get_by_role("button", name=words["save"], exact=True).click()
    expect(side.locator(".content")).to_have_text("Bob sails to Bergen on Tuesday")
    expect(row).to_contain_text("on Tuesday")
    out = w.room("bob", "!memory search Bergen")
    (id,) = re.findall(r"\b[0-9a-f]{12}\b", out)
    w.check(f"{language}: an edit is seen in the page and in the chat", "on Tuesday" in out, out)
    frame.locator("#toasts").get_by_role("button", name=words["undo"]).first.click()
    expect(side.locator(".content")).to_have_text("Bob sails to Bergen on Monday")
    expect(row).to_contain_text("on Monday")
    out = w.room("bob", f"!memory show {id}")
    w.check(f"{language}: so is its undo by the toast", "on Monday" in out, out)
    space = {"bot": w.bot, "launcher_type": "group", "launcher_id": "room", "isolation": "session"}
    body = {"action": "audit list", "space": space, "input": {"limit": 2}}
    entries = w.s.page(AUTHOR, PLUGIN, PAGE, "/do", body)["result"]["entries"]
    done = [(each["operation"], each["via"], each["sender_id"]) for each in entries]
    w.check(
        f"{language}: the audit has both, via console",
        done == [("undo", "console", "langbot"), ("edit", "console", "langbot")],
        entries,
    )
    names = [each.get_attribute("data-key") for each in frame.locator("nav.nav button").all()]
    broken = []
    for name in names:
        frame.locator(f'[data-key="{name}"]').click()
        visit.settled()
        if (fault := frame.locator("main .state.error")).count():
            broken.append((name, fault.first.inner_text()))
    w.check(f"{language}: each of {len(names)} panels opens", len(names) == 12 and not broken, broken)
    w.call("bob", "remember", content=f"Bob was told of in {language} meanwhile")
    frame.locator('[data-key="nav episodes"]').click()
    told = frame.locator("main").get_by_text(f"Bob was told of in {language} meanwhile")
    expect(told.first).to_be_visible()
    visit.choose_theme(other)
    expect(frame.locator(f'html[data-theme="{other}"]')).to_have_count(1)
    look, wanted = visit.look(), [language, other, "host", BACKGROUNDS[other], "null"]
    w.check(f"{language}: it follows the dashboard to another theme while it is open", look == wanted, look)
    visit.shot(f"{language}-{other}-episodes")
    touched = frame.locator("body").evaluate("() => window.touched ?? ['not watched']")
    w.check(f"{language}: no storage is touched", touched == [], json.dumps(touched))


def worker_killed(visit: Visit) -> None:
    """The plugin's process ends while somebody types: the page says so, goes on by itself, and nothing typed is lost."""
    w, frame, words = visit.w, visit.frame, WORDS["zh-Hans"]
    row = frame.locator("[data-key^='episode ']", has_text="Bob sails to Bergen")
    row.click()
    side = frame.locator("aside.detail")
    side.get_by_role("button", name=words["edit"], exact=True).click()
    side.locator("textarea").first.fill("Bob sails to Bergen on Wednesday")
    os.kill(w.s.worker(PLUGIN), signal.SIGKILL)
    lost = frame.locator(".banners .bad")
    lost.wait_for(timeout=30_000)
    expect(lost).to_have_count(0, timeout=60_000)
    typed = side.locator("textarea").first.input_value()
    w.check("what is typed outlives the plugin's process", typed == "Bob sails to Bergen on Wednesday", typed)
    side.get_by_role("button", name=words["save"], exact=True).click()
    expect(row).to_contain_text("on Wednesday")
    out = w.room("bob", "!memory search Bergen")
    w.check("and can be saved then", "on Wednesday" in out, out)
