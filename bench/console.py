"""How the console feels on a large file: the browser's own timing of panels, paging, search and detail; the server's memory.

    python bench/console.py [--episodes 100000] [--requests 1000]

Needs Chromium (LTM_CHROMIUM, or `chromium` on the path) and the extra `test`. Prints milliseconds, and mebibytes.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.browser_data import TEAM, fill

KEY = '[data-key="open bot-1:group_team-42"]'


def resident(pid: int) -> float:
    """MiB that a process holds."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


STILL = "!document.querySelector('.spinner')"
UNTIL = """() => new Promise((resolve) => {
  const look = () => (%s) ? resolve(performance.now() - (window.began ?? 0)) : requestAnimationFrame(look);
  look();
})"""


def looked_at(link: str) -> None:
    """Time what a person waits for, by the browser's clock: from the start, or from a click, until it is there."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        chromium = os.environ.get("LTM_CHROMIUM") or shutil.which("chromium")
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()

        def click(selector: str) -> None:
            page.evaluate("(it) => { window.began = performance.now(); document.querySelector(it).click(); }", selector)

        def until(condition: str) -> float:
            return float(page.evaluate(UNTIL % condition))

        def told(what: str, condition: str) -> None:
            print(f"{what:<26}{until(condition):8.0f} ms")

        page.goto(link)
        told("first panel (spaces)", f"{STILL} && document.querySelector('.rows .row')")
        click(KEY)
        told("episodes, first page", f"{STILL} && document.querySelector('main .row-text')")
        times = []
        for _ in range(20):
            before = page.locator(".pager .hint").first.inner_text()
            click('[data-key="pager-forth"]')
            times.append(until(f"document.querySelector('.pager .hint').innerText !== {json.dumps(before)}"))
        print(f"{'next page, median of 20':<26}{statistics.median(times):8.0f} ms")
        page.locator("[role=search] input").fill("when does Alice fly to Tokyo?")
        click("[role=search] button")
        told("search", "document.querySelector('main .score')")
        click("main .row-text")
        told("detail with history", "document.querySelector('aside.detail .history')")
        for name in ("profiles", "timeline", "audit", "diagnostics"):
            click(f'[data-key="nav {name}"]')
            told(name, f"{STILL} && document.querySelector('main h1')")
        browser.close()


def requests(link: str, pid: int, n: int) -> None:
    """Ask many times; the server's memory before and after."""
    base, token = link.split("#token=")

    def ask(endpoint: str, body: object, session: str = "") -> dict[str, object]:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {session}"}
        request = urllib.request.Request(f"{base}api/{endpoint}", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request) as answer:
            found: dict[str, object] = json.load(answer)
        return found

    session = str(ask("session", {"token": token})["session"])
    space = {"bot": TEAM.bot, "launcher_type": TEAM.launcher_type, "launcher_id": TEAM.launcher_id, "isolation": "session"}
    calls: list[tuple[str, dict[str, object]]] = [("list", {"limit": 50}), ("recall", {"query": "flight to Tokyo"})]
    calls += [("audit list", {}), ("timeline", {}), ("speakers", {})]
    held = []
    for k in range(n):
        action, given = calls[k % len(calls)]
        ask("do", {"action": action, "space": space, "input": given}, session)
        if k % max(1, n // 10) == n // 10 - 1:
            held.append(resident(pid))
            time.sleep(1)  # the rate is limited
    print(f"memory over {n:,} requests  " + " ".join(f"{each:.0f}" for each in held) + " MiB")


def main() -> None:
    """Fill, serve, look, ask."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=100_000)
    parser.add_argument("--requests", type=int, default=1_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        fill(path, options.episodes)
        command = [sys.executable, "-m", "ltm_console", "--db", str(path), "--embedder", "hash", "serve"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})
        assert server.stdout
        try:
            link = next(line.strip() for line in server.stdout if "#token=" in line)
            print(f"{options.episodes:,} episodes, {path.stat().st_size / 2**20:.0f} MiB")
            looked_at(link)
            requests(link, server.pid, options.requests)
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
