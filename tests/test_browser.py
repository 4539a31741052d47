"""The console in a real Chromium, on a file that another process writes to meanwhile.

Needs a Chromium (LTM_CHROMIUM, or `chromium` on the path). Without one these tests are skipped, unless LTM_BROWSER=required, which
is how CI runs them. Screenshots go to LTM_ARTIFACTS, or to pytest's temporary folder.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ltm

from .browser_data import TEAM, fill

CHROMIUM = os.environ.get("LTM_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser") or ""
REQUIRED = os.environ.get("LTM_BROWSER") == "required"
try:
    from axe_playwright_python.base import AXE_FILE_PATH
    from playwright.sync_api import Browser, Page, expect, sync_playwright

    MISSING = "" if CHROMIUM else "no Chromium was found"
except ImportError as error:
    MISSING = f"{error.name} is not installed (the extra `test`)"

pytestmark = [
    pytest.mark.skipif(bool(MISSING) and not REQUIRED, reason=MISSING or "never"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
ROOT = Path(ltm.__file__).parent
PANELS = ("spaces", "profiles", "episodes", "recall", "injection", "review", "audit", "timeline", "transfer", "diagnostics", "settings", "operations")  # fmt: skip
SERIOUS = ("serious", "critical")
WRITER = """
import sys, time
sys.path.insert(0, sys.argv[1])
import ltm
from tests.browser_data import TEAM
with ltm.open(sys.argv[2]) as memory:
    space = memory.space(TEAM, speaker=ltm.Speaker("u9", "Writer"))
    for n in range(100_000):
        space.remember(f"written meanwhile {n}", importance=1, created_at="2026-09-02T00:00:00Z")
        time.sleep(0.2)
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    assert not MISSING, MISSING
    with sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    fill(tmp_path / "memory.db", 60)
    return tmp_path / "memory.db"


@pytest.fixture
def served(path: Path) -> Iterator[str]:
    """The link of a real `ltm serve` on the file."""
    yield from serve(path)


def serve(path: Path, *options: str) -> Iterator[str]:
    command = [sys.executable, "-m", "ltm_console", "--db", str(path), "--embedder", "hash", "serve", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})  # fmt: skip
    assert process.stdout
    try:
        link = next(line.strip() for line in process.stdout if "#token=" in line)
        yield link
    finally:
        process.terminate()
        rest = process.communicate(timeout=20)[0]
        assert process.returncode == 0, rest
        assert "Traceback" not in rest, rest


@pytest.fixture
def writer(path: Path) -> Iterator[None]:
    """Another process that writes to the file all the time."""
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(ROOT), str(path)], cwd=ROOT)
    yield
    assert process.poll() is None, "the writer died"
    process.kill()
    process.wait()


class Visit:
    """A page that is watched: whatever it says on the console, and whomever it asks."""

    def __init__(self, browser: Browser, link: str, *, language: str = "en-US", theme: Any = "light", width: int = 1600) -> None:
        self.context = browser.new_context(locale=language, color_scheme=theme, viewport={"width": width, "height": 900}, timezone_id="Asia/Shanghai")  # fmt: skip
        self.context.set_default_timeout(15_000)
        expect.set_options(timeout=15_000)  # CI may have other work
        self.page: Page = self.context.new_page()
        self.faults: list[str] = []
        origin = link.split("#")[0]
        self.page.on("console", lambda message: self.faults.append(f"console {message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        self.page.on("request", lambda request: self._ask(request.url, origin))
        self.page.on("dialog", lambda dialog: self.faults.append(f"dialog: {dialog.message}"))
        self.page.goto(link)
        self.page.wait_for_selector("nav.nav button")

    def _ask(self, url: str, origin: str) -> None:
        if not url.startswith((origin, "data:")):
            self.faults.append(f"another host was asked: {url}")

    def open(self, key: str = "bot-1:group_team-42") -> None:
        self.page.click(f'[data-key="open {key}"]')
        self.settled()

    def panel(self, name: str) -> None:
        self.page.click(f'[data-key="nav {name}"]')
        self.settled()

    def settled(self) -> None:
        """Nothing is loading any more."""
        expect(self.page.locator(".spinner")).to_have_count(0)

    def close(self) -> None:
        assert self.faults == []
        assert self.page.evaluate("window.pwned") is None
        self.context.close()


def artifacts(tmp_path: Path) -> Path:
    folder = Path(os.environ.get("LTM_ARTIFACTS") or tmp_path / "screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.mark.parametrize("width", [1600, 380])
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("language", ["en-US", "zh-CN"])
def test_every_panel_is_whole_in_every_look(
    browser: Browser, served: str, writer: None, tmp_path: Path, language: str, theme: str, width: int
) -> None:
    visit = Visit(browser, served, language=language, theme=theme, width=width)
    page = visit.page
    visit.open()
    axe = Path(AXE_FILE_PATH).read_text("utf-8")
    for name in PANELS:
        visit.panel(name)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{name} is wider than the window"
        page.screenshot(path=artifacts(tmp_path) / f"{name}-{language}-{theme}-{width}.png", full_page=True)
        page.evaluate(axe)
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        faults = [
            (each["id"], [node["html"][:200] for node in each["nodes"]][:3])
            for each in found["violations"]
            if each["impact"] in SERIOUS
        ]
        assert faults == [], name
        if language == "zh-CN":
            left = untranslated(page)
            assert not left, (name, left)
    visit.close()


def untranslated(page: Page) -> list[str]:
    """English words of our own in the frame, headings, labels and buttons: whatever memories say stands in bdi, time, pre or code."""
    texts: list[str] = page.evaluate(
        """() => [...document.querySelectorAll('h1, h2, h3, label, button, legend, summary, th, dt, .hint, .badge')]
            .filter((each) => !each.closest('bdi, time, pre, code, option, .mono, .said'))
            .map((each) => { const copy = each.cloneNode(true);
              copy.querySelectorAll('bdi, time, pre, code, select, .mono, .said').forEach((part) => part.remove());
              return copy.textContent.trim(); })"""
    )
    known = {
        "ID",
        "id",
        "WAL",
        "UTC",
        "API",
        "JSON",
        "Lines",
        "ltm",
        "LongTermMemory",
        "LivingMemory",
        "CLI",
        "English",
        "Top",
        "K",
        "KiB",
        "MiB",
        "ISO",
    }
    return [
        text
        for text in texts
        if (words := re.findall(r"[A-Za-z]{2,}", text)) and not set(words) <= known and not re.search("[㐀-鿿]|group_", text)
    ]


def test_an_episode_is_edited_undone_archived_and_forgotten(browser: Browser, served: str, path: Path) -> None:
    visit = Visit(browser, served)
    page = visit.page
    visit.open()
    page.get_by_role("searchbox").first.fill("Alice flies to Tokyo")
    page.get_by_role("searchbox").first.press("Enter")
    visit.settled()
    page.locator("[data-key^='episode ']", has_text="Friday now").first.click()
    side = page.locator("aside.detail")
    side.get_by_role("button", name="Edit", exact=True).click()
    side.locator("textarea").first.fill("Alice flies to Tokyo on Saturday now")
    side.get_by_role("button", name="Save").click()
    expect(side).to_contain_text("Saturday now")
    page.locator("#toasts").get_by_role("button", name="Undo").first.click()
    expect(side.locator(".content")).to_contain_text("Friday now")
    side.get_by_role("button", name="Archive").click()
    expect(side.get_by_role("button", name="Restore")).to_be_visible()
    with ltm.open(path) as memory:
        space = memory.space(TEAM)
        entries = space.audit.list(limit=5).entries
        assert [(each.operation, each.via, each.actor_id) for each in entries[:3]] == [
            ("archived", "console", "console"), ("undo", "console", "console"), ("edit", "console", "console"),
        ]  # fmt: skip
    visit.close()


def test_the_recall_test_explains_every_hit_and_every_miss(browser: Browser, served: str) -> None:
    visit = Visit(browser, served)
    page = visit.page
    visit.open()
    visit.panel("recall")
    page.get_by_label("Question").first.fill("when does Alice fly to Tokyo?")
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator("main")).to_contain_text("Friday now")
    assert page.locator("main .bar-fill").count() >= 8
    visit.close()


def test_what_is_typed_stays_while_others_write(browser: Browser, served: str, writer: None) -> None:
    visit = Visit(browser, served)
    page = visit.page
    visit.open()
    page.locator("[data-key^='episode ']").first.click()
    side = page.locator("aside.detail")
    side.get_by_role("button", name="Edit", exact=True).click()
    box = side.locator("textarea").first
    box.fill("half a sentence")
    box.evaluate("(node) => node.setSelectionRange(4, 4)")
    before = page.locator(".pager .hint").first.inner_text()
    expect(page.locator(".pager .hint").first).not_to_have_text(before)
    assert box.input_value() == "half a sentence"
    assert box.evaluate("(node) => [document.activeElement === node, node.selectionStart]") == [True, 4]
    visit.close()


def test_a_change_of_language_asks_before_typed_text_is_lost(browser: Browser, served: str) -> None:
    visit = Visit(browser, served)
    page = visit.page
    visit.open()
    page.locator("[data-key^='episode ']").first.click()
    side = page.locator("aside.detail")
    side.get_by_role("button", name="Edit", exact=True).click()
    side.locator("textarea").first.fill("half a sentence")
    page.get_by_label("Language").select_option("zh_Hans")
    page.locator("dialog[open]").get_by_role("button", name="Cancel").click()
    assert side.locator("textarea").first.input_value() == "half a sentence"
    expect(page.locator("main h1")).to_have_text("Episodes")
    page.get_by_label("Language").select_option("zh_Hans")
    page.locator("dialog[open] button").last.click()
    expect(page.locator("main h1")).to_have_text("记忆条目")
    visit.close()


def test_several_are_changed_after_a_preview(browser: Browser, served: str) -> None:
    visit = Visit(browser, served)
    page = visit.page
    visit.open()
    page.locator("#pick-all").check()
    page.get_by_role("button", name=re.compile("Edit selected", re.I)).click()
    dialog = page.locator("dialog[open]")
    dialog.get_by_label("Importance").select_option("5")
    dialog.get_by_role("button", name="Preview").click()
    expect(dialog.locator(".notice")).to_be_visible()
    dialog.get_by_role("button", name="Apply").click()
    page.locator("dialog[open]").last.get_by_role("button", name="Apply").click()
    expect(page.locator("#toasts")).to_contain_text("episodes changed")
    visit.close()


def test_each_panel_does_its_work(browser: Browser, served: str, writer: None, path: Path, tmp_path: Path) -> None:
    """Profiles, review, audit, timeline, transfer, diagnostics and settings, while another process writes."""
    visit = Visit(browser, served)
    page = visit.page
    main, dialog, toasts = page.locator("main"), page.locator("dialog[open]"), page.locator("#toasts")
    visit.open()

    visit.panel("profiles")
    main.get_by_role("button", name=re.compile("Alice")).first.click()
    expect(main).to_contain_text("green tea")
    preferences = main.locator(".facts-of", has_text="Preferences").locator("> ul.rows")
    main.locator("details[data-key='past preferences'] summary").click()
    main.locator("details[data-key='past preferences'] li", has_text="coffee").get_by_role("button").click()
    expect(preferences).to_contain_text("coffee")
    toasts.get_by_role("button", name="Undo").first.click()
    expect(preferences).to_contain_text("green tea")

    visit.panel("injection")
    main.locator("summary", has_text="when does Alice fly to Tokyo?").click()
    expect(main.locator("pre").first).to_contain_text("ltm-memory")

    visit.panel("review")
    main.locator("[data-key^='accept ']").first.click()
    expect(toasts).to_contain_text("accepted")
    main.locator("[data-key^='publish ']").first.click()
    dialog.get_by_role("button").last.click()
    expect(main.locator("[data-key^='publish ']")).to_have_count(0)

    visit.panel("audit")
    main.get_by_role("button", name="Verify").click()
    expect(main.locator(".notice.good")).to_be_visible()

    visit.panel("timeline")
    column = main.locator("svg.chart [role=button][tabindex='0']")
    column.focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(main.locator("h1")).to_have_text("Episodes")
    expect(main.locator("[data-key^='episode ']").first).to_be_visible()

    visit.panel("transfer")
    with page.expect_download() as download:
        main.get_by_role("button", name="Export", exact=True).click()
    rows = Path(download.value.path()).read_text("utf-8").splitlines()
    assert "Alice flies to Tokyo on Friday now" in "".join(rows)
    main.locator("textarea").first.fill(json.dumps([{"id": "00000000abcd", "content": "brought in by the page"}]))
    main.get_by_role("button", name=re.compile("dry run|Dry run|Check", re.I)).click()
    main.locator(".region, [role=status]").get_by_role("button", name=re.compile("Import")).click()
    dialog.get_by_role("button").last.click()
    expect(main.locator(".notice.good").last).to_be_visible()

    visit.panel("diagnostics")
    main.locator("[data-key^='fence ']").first.click()
    dialog.get_by_role("button").last.click()
    expect(main.locator("[data-key^='fence ']")).to_have_count(0)
    main.get_by_role("button", name=re.compile("Isolation|Health", re.I)).first.click()
    expect(main.locator(".notice.good").first).to_be_visible()

    visit.panel("settings")
    row = main.locator("form.setting", has_text="injection_budget")
    row.locator("input").fill("5")
    assert row.locator("input").get_attribute("aria-invalid") == "true"
    row.locator("input").fill("5000")
    row.locator("button[type=submit]").click()
    expect(toasts).to_contain_text("Saved")
    with ltm.open(path) as memory:
        assert memory.settings()["injection_budget"] == 5000
        space = memory.space(TEAM)
        found = {each.content for each in space.list(limit=500).episodes}
        assert {"brought in by the page", "Alice travels often and likes windows."} <= found
        assert space.audit.verify() == []
    visit.close()


def test_the_keyboard_alone_is_enough(browser: Browser, served: str) -> None:
    visit = Visit(browser, served)
    page = visit.page
    page.locator("[data-key='open bot-1:group_team-42']").focus()
    page.keyboard.press("Enter")
    visit.settled()
    page.locator("[data-key^='episode ']").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("aside.detail")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("aside.detail")).to_be_hidden()
    assert page.evaluate("document.activeElement.dataset.key || ''").startswith("episode ")
    seen = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.tagName"))
    assert {"BUTTON", "INPUT", "SELECT"} <= seen
    visit.close()


def test_a_file_for_reading_only_offers_no_writing(browser: Browser, path: Path) -> None:
    for link in serve(path, "--read-only"):
        visit = Visit(browser, link, language="zh-CN")
        visit.open()
        visit.page.locator("[data-key^='episode ']").first.click()
        side = visit.page.locator("aside.detail")
        expect(side).to_be_visible()
        for button in side.get_by_role("button", name=re.compile("编辑|归档|遗忘|删除")).all():
            assert button.is_disabled() or button.get_attribute("aria-disabled") == "true"
        expect(visit.page.locator(".banners")).to_contain_text("只读")
        visit.close()


def test_a_wrong_token_asks_for_the_right_one(browser: Browser, served: str) -> None:
    visit_page = browser.new_page()
    visit_page.set_default_timeout(10_000)
    visit_page.goto(served.split("#")[0])
    dialog = visit_page.locator("dialog[open]")
    dialog.locator("input").fill("nonsense")
    dialog.locator("button[type=submit]").click()
    expect(visit_page.locator("dialog[open] [role=alert]").first).to_be_visible()
    visit_page.locator("dialog[open] input").fill(served)
    visit_page.locator("dialog[open] button[type=submit]").click()
    visit_page.wait_for_selector("nav.nav button")
    assert "token" not in visit_page.url
    visit_page.close()


def words(name: str) -> dict[str, str]:
    text = (ROOT / "console" / "static" / "words" / f"{name}.js").read_text("utf-8")
    found: dict[str, str] = json.loads(text.removeprefix("export default ").strip().rstrip(";"))
    return found


def test_both_languages_have_the_same_words() -> None:
    english, chinese = words("en_US"), words("zh_Hans")
    assert list(english) == list(chinese)
    for key, text in english.items():
        assert set(re.findall(r"\{\w+\}", text)) >= set(re.findall(r"\{\w+\}", chinese[key])), key
    plain = {key: re.sub(r"\{\w+\}", "", text) for key, text in english.items() if text == chinese[key]}
    same = {key for key, text in plain.items() if re.search("[a-z]{2}", text)}
    assert all(len(plain[key]) < 30 or key.startswith("language.") for key in same), same
