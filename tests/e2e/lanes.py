"""Make the virtual environments that a lane needs: the host with its runtime, from the index that pip is configured with.

    python tests/e2e/lanes.py [411] [410]

uv does the installing (pip alone takes minutes over the host's dependencies), told what pip is told; without uv, pip does it.
Ends with status 75 when the package index cannot be reached, after a line that says so.
"""

from __future__ import annotations

import ast
import configparser
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent
UNREACHABLE = 75
# SQLAlchemy 2.1 breaks the host's first write of a plugin-storage key, and the host has no upper bound on it.
# Playwright drives the Chromium of the system.
BESIDE = ["sqlalchemy[asyncio]<2.1", "playwright>=1.45"]
LANES = {"411": ["langbot==4.11.2", *BESIDE], "410": ["langbot==4.10.11", *BESIDE]}
SMALL = "langbot-plugin==0.7.16"  # asked for to see whether the index answers
NO_LINK = re.compile(
    r"connection broken|Connection refused|timed? ?out|Name or service|name resolution|ProxyError|unreachable", re.I
)


def pip_options() -> dict[str, str]:
    """What pip is configured with: files, then the command's section, then the environment."""
    told = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True).stdout
    rows = re.findall(r"^(global|install|:env:)\.([\w-]+)=(.+)$", told, re.M)
    rows.sort(key=lambda row: ("global", "install", ":env:").index(row[0]))
    return {name: str(ast.literal_eval(value)) for _, name, value in rows}


def uv_environment(options: dict[str, str]) -> dict[str, str]:
    """The same for uv, which reads nothing of pip's; what its user set for it counts more."""
    known = {"index-url": "UV_DEFAULT_INDEX", "cert": "SSL_CERT_FILE", "proxy": "ALL_PROXY"}
    made = {ours: options[name] for name, ours in known.items() if options.get(name)}
    lists = {"extra-index-url": "UV_INDEX", "find-links": "UV_FIND_LINKS", "trusted-host": "UV_INSECURE_HOST"}
    for name, ours in lists.items():
        places = [each for each in options.get(name, "").split() if "://" in each or name == "trusted-host" or Path(each).is_dir()]
        if places:
            made[ours] = ("," if name == "find-links" else " ").join(places)
    made["UV_INDEX_STRATEGY"] = "unsafe-best-match"  # as pip does: the best version of all indexes
    return {**made, **os.environ, "UV_PYTHON_DOWNLOADS": os.environ.get("UV_PYTHON_DOWNLOADS", "never")}


def runtime_environment(options: dict[str, str]) -> dict[str, str]:
    """The runtime passes pip an index of its own, so it must be told ours."""
    return {"LANGBOT_PLUGIN_PYPI_INDEX_URL": options["index-url"]} if options.get("index-url") else {}


def keep_options(venv: Path, options: dict[str, str]) -> None:
    """Leave the rest in the environment's own pip.conf: the runtime runs pip without our variables and our home."""
    names = ("index-url", "extra-index-url", "find-links", "trusted-host", "cert", "proxy")
    made = configparser.RawConfigParser()
    made["global"] = {name: options[name] for name in names if options.get(name)}
    with (venv / "pip.conf").open("w") as file:
        made.write(file)


def unreachable() -> str:
    """'' when the index answers; else what pip said of it."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir", "--retries", "1", "--timeout", "20"]
        done = subprocess.run([*command, "-d", folder, SMALL], capture_output=True, text=True)
    lines = [line for line in done.stderr.splitlines() if NO_LINK.search(line)] if done.returncode else []
    return lines[-1].strip() if lines else ""


def run(command: list[str], env: dict[str, str] | None = None) -> bool:
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode:
        print(f"failed: {' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-4000:]}", file=sys.stderr, flush=True)
    return done.returncode == 0


def find_uv() -> str:
    """uv in an environment of its own; '' when it cannot be had."""
    home = ROOT / ".uvbin"
    uv = home / "bin" / "uv"
    if not uv.exists():
        run([sys.executable, "-m", "venv", str(home)])
        run([str(home / "bin" / "python"), "-m", "pip", "install", "-q", "uv"])
    return str(uv) if uv.exists() else ""


def is_whole(lane: str) -> bool:
    """Whether a lane's environment was made to its end, of what it is to be made of."""
    venv = ROOT / f".venv-{lane}"
    mark = venv / "whole"
    return mark.exists() and mark.read_text() == str(LANES[lane]) and run([str(venv / "bin" / "python"), "-c", "pass"])


def make(lane: str, options: dict[str, str]) -> bool:
    """A lane's environment; True when it is whole."""
    if is_whole(lane):
        return True
    venv, started = ROOT / f".venv-{lane}", time.time()
    python, whole = venv / "bin" / "python", venv / "whole"
    if not run([sys.executable, "-m", "venv", "--clear", str(venv)]):
        return False
    keep_options(venv, options)
    uv = find_uv()
    done = bool(uv) and run([uv, "pip", "install", "-q", "-p", str(python), *LANES[lane]], uv_environment(options))
    if not done:
        run([str(python), "-m", "pip", "install", "-q", "--upgrade", "pip"])
        done = run([str(python), "-m", "pip", "install", "-q", *LANES[lane]])
    if done:
        whole.write_text(str(LANES[lane]))
        print(f"lane {lane}: {LANES[lane][0]} installed in {time.time() - started:.0f} s", flush=True)
    return done


def main() -> None:
    options, told = pip_options(), ""
    for lane in sys.argv[1:] or list(LANES):
        if not is_whole(lane) and (told := told or unreachable()):
            print(f"skipped: the package index cannot be reached: {told}", flush=True)
            sys.exit(UNREACHABLE)
        if not make(lane, options):
            sys.exit(f"lane {lane} could not be installed")


if __name__ == "__main__":
    main()
