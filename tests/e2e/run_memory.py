"""The plugin inside the real host: installed by upload, driven through a real platform adapter and a loopback model.

    python tests/e2e/run_memory.py [--lane 411|410] [--keep]

Exit status 0 when every check passed; one line a check.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
import traceback
from pathlib import Path

from stack import Stack

ROOT = Path(__file__).resolve().parent
PROJECT = ROOT.parent.parent
PLUGIN = ("ltm", "LongTermMemory")


class Run:
    """Checks, printed as they are made."""

    def __init__(self, stack: Stack) -> None:
        self.stack, self.failed, self.count = stack, 0, 0

    def check(self, name: str, good: object, detail: object = "") -> None:
        self.count += 1
        self.failed += not good
        print(
            f"{'PASS' if good else 'FAIL'} {name}" + (f"  [{str(detail)[:500]}]" if detail != "" and not good else ""), flush=True
        )

    def prompt(self) -> str:
        """What the model was last sent, without the conversation before: that repeats what was said."""
        sent = [entry["body"]["messages"] for entry in self.stack.fake_log() if entry["path"] == "chat"]
        kept = [each for each in sent[-1] if each["role"] == "system"] + sent[-1][-1:] if sent else []
        return json.dumps(kept, ensure_ascii=False)


def package(out: Path, version: str) -> Path:
    command = [sys.executable, str(PROJECT / "plugin" / "build.py"), "--out", str(out), "--version", version]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return out / f"ltm-LongTermMemory-{version}.lbpkg"


def scenario(run: Run) -> None:
    s = run.stack
    s.up(fresh=True)
    provider = s.provider()
    llm, embedding = s.llm(provider), s.embedding(provider)
    if s.lane == "411":
        s.install(s.build(ROOT / "plugins" / "HarnessRunner"))
    s.install(package(s.run / "packages", "0.1.0"))
    states = {p["manifest"]["manifest"]["metadata"]["name"]: p["status"] for p in s.api("GET", "/api/v1/plugins")["plugins"]}
    run.check("installed and initialised", states.get("LongTermMemory") == "initialized", states)
    kb = s.kb("ltm/LongTermMemory", {"embedding_model_uuid": embedding}, {"top_k": 5}, name="memory")
    pipeline = s.pipeline(llm, [kb])
    bot = s.http_bot(pipeline)

    out = s.say(bot, "alice", "hello there", name="Alice")
    run.check("a turn without memories is answered", "ECHO" in out, out)
    out = s.say(bot, "room", 'CALL remember {"content": "Bob flies to Oslo on Friday"}', group=True, sender="bob", name="Bob")
    run.check("the model remembers by the tool", "episode_id" in out, out)
    out = s.say(bot, "room", "when does Bob fly to Oslo?", group=True, sender="carol", name="Carol")
    run.check("what was remembered is in the next prompt", "Bob flies to Oslo on Friday" in run.prompt(), run.prompt())
    run.check(
        "the prompt says who speaks now, not who opened the session",
        "Carol" in run.prompt() and "id carol" in run.prompt(),
        run.prompt(),
    )
    run.check("it is framed once", run.prompt().count("Bob flies to Oslo on Friday") == 1, run.prompt())
    s.say(bot, "alice", "when does Bob fly to Oslo?", name="Alice")
    run.check("another chat sees nothing of it", "Bob flies to Oslo on Friday" not in run.prompt(), run.prompt())
    out = s.say(bot, "room", "!memory list", group=True, sender="bob", name="Bob")
    run.check("!memory list answers", "Bob flies to Oslo on Friday" in out, out)
    (id,) = re.findall(r"\b[0-9a-f]{12}\b", out)
    out = s.say(
        bot,
        "room",
        f'CALL remember {{"content": "Bob flies to Oslo on Sunday", "supersedes": ["{id}"]}}',
        group=True,
        sender="bob",
        name="Bob",
    )
    run.check("a correction replaces", "episode_id" in out, out)
    s.say(bot, "room", "when does Bob fly to Oslo again?", group=True, sender="bob", name="Bob")
    run.check("only the correction is in the prompt", "on Sunday" in run.prompt() and "on Friday" not in run.prompt(), run.prompt())
    for words, wanted in {
        "!memory": "Isolation: session",
        "!memory search Oslo": "on Sunday",
        "!memory superseded": "on Friday",
        f"!memory show {id}": "superseded",
        f"!memory history {id}": "ended by remember",
        "!memory audit": "remember",
        "!memory health": "Result: OK",
        "!memory profile": "Session",
        "!memory config": "auto_recall_top_k",
        "!memory nonsense": "not known",
        "!memory s Oslo": "on Sunday",
        "！memory list": "on Sunday",
        "!memory delete --tag x": "administrator",
        "!memory export l2": "episodes",
    }.items():
        out = s.say(bot, "room", words, group=True, sender="bob", name="Bob")
        run.check(f"{words} is answered", wanted in out, out)
    out = s.say(
        bot,
        "room",
        'CALL update_profile {"field": "preferences", "action": "set", "value": "window seats", "fact_key": "seat"}',
        group=True,
        sender="bob",
        name="Bob",
    )
    run.check("update_profile answers", "window seats" in out, out)
    s.say(bot, "room", "hello again", group=True, sender="bob", name="Bob")
    run.check("the profile is in the prompt", "window seats" in run.prompt(), run.prompt())
    out = s.say(bot, "room", 'CALL recall_memory {"query": "Oslo"}', group=True, sender="carol", name="Carol")
    run.check("recall_memory answers", "on Sunday" in out, out)

    document = {
        "scope": {"bot": bot, "launcher_type": "group", "launcher_id": "room"},
        "episodes": [{"content": "The club meets in the blue house"}],
    }
    s.kb_file(kb, "club.json", json.dumps(document).encode())
    files = wait_for_files(s, kb)
    run.check("a JSON document is taken in", [f["status"] for f in files] == ["completed"], files)
    s.say(bot, "room", "where does the club meet?", group=True, sender="carol", name="Carol")
    run.check("the document is remembered in its chat", "blue house" in run.prompt(), run.prompt())
    for each in files:
        s.api("DELETE", f"/api/v1/knowledge/bases/{kb}/files/{each['uuid']}")
    s.say(bot, "room2", "hello", group=True, sender="carol", name="Carol")
    s.say(bot, "room", "!memory search blue house", group=True, sender="carol", name="Carol")
    out = s.say(bot, "room", "!memory search blue house", group=True, sender="carol", name="Carol")
    run.check("a deleted document is not found", "blue house" not in out, out)
    s.say(bot, "room", "where does the club meet?", group=True, sender="carol", name="Carol")
    run.check("a deleted document is forgotten", "blue house" not in run.prompt(), run.prompt())

    s.install(package(s.run / "packages", "0.2.0"))
    s.say(bot, "room", "when does Bob fly to Oslo, once more?", group=True, sender="carol", name="Carol")
    run.check("the memory survives an upgrade", "on Sunday" in run.prompt(), run.prompt())
    kill_host(s)
    s.up()
    s.say(bot, "room", "when does Bob fly to Oslo, after all?", group=True, sender="carol", name="Carol")
    run.check("the memory survives kill -9 of the host", "on Sunday" in run.prompt(), run.prompt())


def wait_for_files(s: Stack, kb: str) -> list[dict]:
    end = time.time() + 60
    files: list[dict] = []
    while time.time() < end:
        files = s.api("GET", f"/api/v1/knowledge/bases/{kb}/files")["files"]
        if files and all(f["status"] in ("completed", "failed", "interrupted") for f in files):
            break
        time.sleep(0.3)
    return files


def kill_host(s: Stack) -> None:
    import os
    import signal

    for name in ("host", "rt"):
        os.kill(s._pid(name), signal.SIGKILL)
    time.sleep(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lane", default="411", choices=["411", "410"])
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    run = Run(Stack(options.lane))
    try:
        scenario(run)
    except Exception:
        traceback.print_exc()
        run.failed += 1
    finally:
        if not options.keep:
            run.stack.down()
    print(f"{run.count} checks, {run.failed} failed")
    sys.exit(bool(run.failed))


if __name__ == "__main__":
    main()
