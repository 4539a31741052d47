"""The plugin inside the real host: installed by upload, driven through a real platform adapter and a loopback model.

    python tests/e2e/run_memory.py [--lane 411|410] [--only NAME,NAME] [--episodes N] [--keep]

One line a check, and last "N passed, M failed"; status 0 when none failed. Scenarios share one host, one after the other, and each
can run without those before it (`start` and `chats` always run). Two people speak in one group (bob, carol), one in private
(alice), and root is named as administrator. "fact N" are those of the host's ten facts that a check would fail without.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import signal
import sqlite3
import statistics
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from console_page import console
from stack import ApiError, Stack

ROOT = Path(__file__).resolve().parent
PROJECT = ROOT.parent.parent
PLUGIN = ("ltm", "LongTermMemory")
LOCK_SECONDS = 5.0
LOCK = """
import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)
db.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
time.sleep(float(sys.argv[2]))
db.execute("ROLLBACK")
"""


class World:
    """The host with its resources, who speaks in it, and the checks, printed as they are made."""

    def __init__(self, stack: Stack, episodes: int) -> None:
        self.s, self.episodes = stack, episodes
        self.passed = self.failed = 0
        self.kb = self.bot = self.pipeline = self.llm = self.embedding = ""

    def check(self, name: str, good: object, detail: object = "") -> None:
        self.passed += bool(good)
        self.failed += not good
        print(f"{'PASS' if good else 'FAIL'} {name}" + ("" if good or detail == "" else f"  [{str(detail)[:700]}]"), flush=True)

    def alice(self, text: str, **options: object) -> str:
        """Said in private."""
        return self.s.say(self.bot, "alice", text, name="Alice", quiet=0.4, **options)

    def room(self, who: str, text: str, room: str = "room", **options: object) -> str:
        """Said in a group."""
        return self.s.say(self.bot, room, text, group=True, sender=who, name=who.title(), quiet=0.4, **options)

    def call(self, who: str, tool: str, **params: object) -> str:
        """A turn in the group in which the model calls a tool."""
        return self.room(who, f"CALL {tool} {json.dumps(params, ensure_ascii=False)}")

    def sent(self) -> list[list[dict]]:
        """The messages of every chat request that the model got, without those of the plugin itself."""
        bodies = [entry["body"]["messages"] for entry in self.s.fake_log() if entry["path"] == "chat"]
        return [each for each in bodies if re.search("BASE PROMPT|AGENT PROMPT", json.dumps(each))]

    def prompt(self) -> str:
        """What the model was last sent, without the conversation before: that repeats what was said."""
        sent = self.sent()
        kept = [each for each in sent[-1] if each["role"] == "system"] + sent[-1][-1:] if sent else []
        return json.dumps(kept, ensure_ascii=False)

    def injected(self) -> str:
        """What the listener put into that prompt: the runner's own search goes into the message instead."""
        return json.dumps([each for each in json.loads(self.prompt() or "[]") if each["role"] == "system"], ensure_ascii=False)

    def asks(self, who: str, text: str, room: str = "room") -> str:
        """The prompt that a question in the group led to."""
        self.room(who, text, room)
        return self.prompt()

    def path(self) -> str:
        """Of the memory file, as the plugin tells it."""
        return re.findall(r"^File: (.+)$", self.room("bob", "!memory"), re.M)[0]

    def log(self) -> str:
        """What the plugin logged."""
        return (self.s.run / "rt.log").read_text(errors="replace")


def wait(look: Callable[[], object], seconds: float = 30.0) -> object:
    """Look until there is something, for some time; what was seen last."""
    end = time.time() + seconds
    while not (seen := look()) and time.time() < end:
        time.sleep(0.3)
    return seen


def answers(ask: Callable[[], str]) -> bool:
    """Whether the plugin answers: while its process starts the host knows no such command, or says nothing."""
    try:
        return "File:" in ask()
    except TimeoutError:
        return False


def package(w: World, version: str) -> Path:
    out = w.s.run / "packages"
    command = [sys.executable, str(PROJECT / "plugin" / "build.py"), "--out", str(out), "--version", version]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return out / f"ltm-LongTermMemory-{version}.lbpkg"


def configure(w: World, **values: object) -> None:
    """The plugin's configuration: root is always an administrator."""
    w.s.config(*PLUGIN, {"administrators": ["root"], **values})
    time.sleep(1)


# ---------------------------------------------------------------------------------------------- scenarios


def start(w: World) -> None:
    """Install by upload, knowledge base, pipeline, bot."""
    s = w.s
    s.up(fresh=True)
    provider = s.provider()
    w.llm, w.embedding = s.llm(provider), s.embedding(provider)
    if s.lane == "411":
        s.install(s.build(ROOT / "plugins" / "HarnessRunner"))
    s.install(s.build(ROOT / "plugins" / "HarnessTalk"))
    s.install(package(w, "0.1.0"))
    states = {p["manifest"]["manifest"]["metadata"]["name"]: p["status"] for p in s.api("GET", "/api/v1/plugins")["plugins"]}
    w.check("the package is installed by upload and started", states.get("LongTermMemory") == "initialized", states)
    engines = [each["plugin_id"] for each in s.api("GET", "/api/v1/knowledge/engines")["engines"]]
    w.check("its knowledge engine is offered", "ltm/LongTermMemory" in engines, engines)
    w.kb = s.kb("ltm/LongTermMemory", {"embedding_model_uuid": w.embedding}, {"top_k": 5}, name="memory")
    w.pipeline = s.pipeline(w.llm, [w.kb])
    w.bot = s.http_bot(w.pipeline)
    configure(w)
    out = w.alice("hello there")
    w.check("a turn without memories is answered", "ECHO" in out, out)


def chats(w: World) -> None:
    """Remembered by a tool, told in a new conversation, corrected; nobody else's."""
    w.alice("hello")  # somebody opens each session before those who matter speak
    w.room("carol", "hello all")
    out = w.call("bob", "remember", content="Bob flies to Oslo on Friday", tags=["travel"])
    w.check("fact 1: the model, through a runner of the marketplace's kind, remembers by the tool", "episode_id" in out, out)
    w.room("carol", "!newtalk")
    prompt = w.asks("carol", "when does Bob fly to Oslo?")
    told = "Bob flies to Oslo on Friday"
    w.check("fact 2: in a new conversation the memory is in what the model got", told in w.injected(), prompt)
    w.check("the conversation is new", "CALL remember" not in json.dumps(w.sent()[-1]), w.sent()[-1])
    w.check("it is there once", prompt.count(told) == 1, prompt)
    w.check("fact 7: the prompt says who speaks, not who opened the session", "Carol, id carol" in prompt, prompt)
    prompt = w.asks("bob", "and when do I fly to Oslo?")
    w.check("fact 7: and that another speaks in the next turn", "Bob, id bob" in prompt and "Carol, id" not in prompt, prompt)
    w.alice("when does Bob fly to Oslo?")
    w.check("a private chat sees nothing of it", told not in w.prompt(), w.prompt())
    prompt = w.asks("bob", "when do I fly to Oslo?", room="room2")
    w.check("nor does the same speaker in another group", told not in prompt, prompt)
    out = w.room("bob", "!memory list")
    w.check("fact 7: the tool stores it as the speaker's", "Bob: " + told in out, out)
    (id,) = re.findall(r"\b[0-9a-f]{12}\b", out)
    out = w.call("carol", "remember", content="Bob stays at home", supersedes=[id])
    w.check("fact 7: another speaker cannot correct it", "another speaker" in out, out)
    out = w.call("bob", "remember", content="Bob flies to Oslo on Sunday", supersedes=[id])
    w.check("a correction is stored", "episode_id" in out, out)
    prompt = w.asks("bob", "when does Bob fly to Oslo again?")
    w.check("only the correction is in the prompt", "on Sunday" in prompt and "on Friday" not in prompt, prompt)
    out = w.call("bob", "update_profile", field="preferences", action="set", value="window seats", fact_key="seat")
    w.check("update_profile answers", "window seats" in out, out)
    prompt = w.asks("bob", "hello again")
    w.check("the profile is in its speaker's prompt", "window seats" in prompt, prompt)
    w.check("and not in another's", "window seats" not in w.asks("carol", "hello again"), w.prompt())
    out = w.call("carol", "recall_memory", query="Oslo")
    w.check("recall_memory answers", "on Sunday" in out, out)
    out = w.call("bob", "remember", content="小明周五去上海出差", tags=["出差"])
    w.check("a Chinese memory is stored", "episode_id" in out, out)
    prompt = w.asks("carol", "小明什么时候去上海？")
    w.check("and in the prompt of a Chinese question", "小明周五去上海出差" in prompt, prompt)
    out = w.call("bob", "remember", content="to be forgotten soon")
    (gone,) = re.findall(r"episode_id\W+([0-9a-f]{12})", out)
    w.check("forget answers", "was deleted" in w.call("bob", "forget", episode_id=gone))
    w.check("what is forgotten is gone", "no episode" in w.room("bob", f"!memory show {gone}"))


def commands(w: World) -> None:
    """`!memory` and every subcommand of it."""
    (old,) = re.findall(r"\b([0-9a-f]{12})\b", w.room("bob", "!memory superseded"))[:1]
    (new,) = re.findall(r"\b([0-9a-f]{12})\b[^\n]*on Sunday", w.room("bob", "!memory list"))[:1]
    rows = json.dumps([{"content": "an imported  memory", "sender_id": "bob"}])
    for who, words, wanted in (
        ("bob", "!memory", "Isolation: session"),
        ("bob", "!memory  ", "Isolation: session"),
        ("bob", "！memory", "隔离方式：session"),
        ("bob", "!memory help", "consolidate"),
        ("bob", "!memory health", "Result: OK"),
        ("bob", "!memory profile", "window seats"),
        ("bob", "!memory profile edit add traits likes mountains", "likes mountains"),
        ("bob", "!memory search Oslo", "on Sunday"),
        ("bob", "!memory s Oslo", "on Sunday"),
        ("bob", "!memory search 上海", "小明周五去上海出差"),
        ("bob", "！memory search 上海", "小明周五去上海出差"),
        ("bob", "！memory list", "小明周五去上海出差"),
        ("bob", "!memory list --all-statuses", "on Friday"),
        ("bob", "!memory superseded", "on Friday"),
        ("bob", f"!memory show {old}", "superseded"),
        ("bob", f"!memory history {old}", "ended by remember"),
        ("bob", f"!memory edit {new} --tag 旅行 --importance 4 Bob flies to Oslo on Sunday at noon", "!memory undo"),
        ("bob", "!memory search 旅行", "at noon"),
        ("bob", f"!memory archive {new}", "changed"),
        ("bob", "!memory archived", "at noon"),
        ("bob", f"!memory restore {new}", "changed"),
        ("bob", "!memory audit", "remember"),
        ("bob", "!memory audit export", "remember"),
        ("bob", "!memory audit verify", "whole"),
        ("bob", "!memory export", "profiles"),
        ("bob", "!memory export l2", "episodes"),
        ("bob", "!memory export all-current-scope", "audit"),
        ("bob", "!memory config", "auto_recall_top_k"),
        ("bob", "!memory show nothing", "no episode"),
        ("bob", "!memory nonsense", "not known"),
        ("bob", "!memory delete --tag x", "administrator"),
        ("bob", "!memory config set auto_recall_top_k 5", "administrator"),
        ("root", "!memory config set auto_recall_top_k 5", "auto_recall_top_k = 5"),
        ("root", "!memory delete --tag nothing --dry-run", "deleted: none"),
        ("root", f"!memory import l2 {rows}", "1 episodes"),
        ("bob", "!memory search imported", "an imported  memory"),
        ("root", "!memory stats", "episode"),
        ("root", "!memory consolidate preview", ""),
        ("root", "!memory fence", "no fence"),
        ("root", "!memory candidates", "0"),
    ):
        try:
            out = w.room(who, words, timeout=20)
        except TimeoutError as error:
            out = f"(no answer: {error})"
        shown = re.sub(r"[0-9a-f]{12}", "ID", words)
        w.check(
            f"fact 4: {shown} is answered to {who}", wanted in out and "no answer" not in out and "did not work" not in out, out
        )
    at = w.room("bob", "!memory audit").split("\n")
    entry = next(word for row in at for word in row.split() if re.fullmatch(r"[0-9a-f-]{8,}", word))
    out = w.room("carol", f"!memory undo {entry}")
    w.check("nobody undoes what an administrator did", "administrator" in out, out)
    out = w.room("root", f"!memory undo {entry}")
    w.check("the administrator does", "undo" in out.lower() and "Error" not in out, out)
    w.check("it is undone", "an imported" not in w.room("bob", "!memory search imported"))


def nobody(w: World) -> None:
    """A retrieval outside of any chat: the dashboard's test of a knowledge base."""
    found = w.s.api("POST", f"/api/v1/knowledge/bases/{w.kb}/retrieve", {"query": "Oslo", "retrieval_settings": {"top_k": 5}})
    w.check("a retrieval without a session finds nothing", "Oslo" not in json.dumps(found), found)
    w.check("and the log says why", "without a session" in w.log())


def documents(w: World) -> None:
    """A JSON document, taken in and deleted."""
    s = w.s
    document = {
        "scope": {"bot": w.bot, "launcher_type": "group", "launcher_id": "room"},
        "episodes": [{"content": "The club meets in the blue house"}, {"content": "俱乐部在蓝房子见面"}],
    }
    s.kb_file(w.kb, "club.json", json.dumps(document).encode())
    files = ended(w)
    w.check("a JSON document is taken in", [f["status"] for f in files] == ["completed"], files)
    prompt = w.asks("carol", "where does the club meet?")
    w.check("what it says is told in its chat", "blue house" in prompt, prompt)
    w.alice("where does the club meet?")
    w.check("and nowhere else", "blue house" not in w.prompt(), w.prompt())
    made = wait(lambda: all_embedded(w.room("carol", "!memory")), 20)
    w.check("fact 5: its vectors are made after the handler ended", made, w.room("carol", "!memory"))
    for each in files:
        s.api("DELETE", f"/api/v1/knowledge/bases/{w.kb}/files/{each['uuid']}")
    gone = wait(lambda: not s.api("GET", f"/api/v1/knowledge/bases/{w.kb}/files")["files"], 20)
    w.check("the document is deleted", gone)
    out = w.room("carol", "!memory search blue house")
    w.check("a deleted document is not found", "blue house" not in out.replace("!memory search", ""), out)
    prompt = w.asks("carol", "where does the club meet?")
    w.check("nor told", "blue house" not in prompt, prompt)
    s.kb_file(w.kb, "nobody.json", b'[{"content": "of no chat"}]')
    files = ended(w)
    w.check("a document of no chat is refused", [f["status"] for f in files] == ["failed"], files)
    for each in files:
        s.api("DELETE", f"/api/v1/knowledge/bases/{w.kb}/files/{each['uuid']}")


def ended(w: World, count: int = 1, seconds: float = 60) -> list[dict]:
    """The files of the knowledge base when none is under way."""

    def look() -> list[dict]:
        files = w.s.api("GET", f"/api/v1/knowledge/bases/{w.kb}/files")["files"]
        return files if len(files) >= count and all(f["status"] in ("completed", "failed", "interrupted") for f in files) else []

    found = wait(look, seconds)
    assert isinstance(found, list)
    return found


def streaming(w: World) -> None:
    """A streamed answer is told many times, and the message is looked through once, after the turn's end."""
    long = " STREAM " + "lorem ipsum " * 150
    before = w.log().count("candidates from a message")
    out = w.room("root", "!memory config set candidate_extraction_enabled true")
    w.check("extraction can be turned on after the knowledge base was created", "= true" in out, out)
    out = w.room("carol", "On Friday I meet Dora at 6 pm." + long, timeout=60)
    w.check("a streamed answer arrives", "lorem ipsum" in out, out[:200])
    time.sleep(2)
    made = w.log().count("candidates from a message") - before
    w.check("fact 8: a streamed answer makes one extraction", made == 1, made)
    out = w.room("root", "!memory candidates")
    w.check("fact 6: what was said waits for review, as the speaker's", "meet Dora at 6 pm" in out, out)
    out = w.room("root", f"!memory config set candidate_model_uuid {w.llm}")
    w.check("so can the model be that selects", w.llm in out, out)
    w.s.fake_clear()
    w.room("carol", "Tomorrow I meet Emil at 5 pm." + long, timeout=60)

    def own() -> list[dict]:
        return [e for e in w.s.fake_log() if e["path"] == "chat" and "BASE PROMPT" not in json.dumps(e)]

    w.check("fact 5: the host's model is asked when the handler has ended", wait(own, 15))
    time.sleep(2)
    w.check("fact 8: once", len(own()) == 1, len(own()))
    w.room("root", "!memory config set candidate_extraction_enabled false")


def agents(w: World) -> None:
    """The same bot, bound to an agent: no listener is called (4.11)."""
    if w.s.lane != "411":
        return
    same = "when does Bob fly to Oslo, before all?"
    w.asks("bob", same)
    agent = w.s.agent(w.llm, [w.kb])
    w.s.bind(w.bot, "agent", agent)
    try:
        time.sleep(1)
        prompt = w.asks("bob", "Oslo: when will Bob be there?")
        w.check("the agent was asked", "AGENT PROMPT" in prompt, prompt)
        w.check("fact 3: an agent's retrieval brings the memory", "on Sunday" in prompt, prompt)
        w.check("fact 3: and the profile", "window seats" in prompt, prompt)
        w.check("fact 3: once", prompt.count("on Sunday") == 1, prompt)
        prompt = w.asks("carol", "Oslo: when will Bob be there?")
        w.check("fact 3, fact 7: of the speaker", "on Sunday" in prompt and "window seats" not in prompt, prompt)
        # Fails on the code of today: the bridge remembers for two minutes that these very words had their memories in a pipeline.
        prompt = w.asks("bob", same)
        w.check("fact 3: also where the same was asked in a pipeline just now", "on Sunday" in prompt, prompt)
        w.alice("Oslo: when will Bob be there?")
        w.check("fact 3: isolated by chat", "AGENT PROMPT" in w.prompt() and "on Sunday" not in w.prompt(), w.prompt())
        out = w.call("bob", "recall_memory", query="Oslo")
        w.check("a tool call in an agent's turn ends in an answer", out, out)
    finally:
        w.s.bind(w.bot, "pipeline", w.pipeline)
        time.sleep(1)
    prompt = w.asks("bob", "when does Bob fly to Oslo, in the pipeline?")
    w.check("back in the pipeline it is told once", prompt.count("on Sunday") == 1, prompt)


def locked(w: World) -> None:
    """Another process holds the file."""
    path = w.path()

    def hold() -> subprocess.Popen[str]:
        command = [sys.executable, "-c", LOCK, path, str(LOCK_SECONDS)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout and process.stdout.readline().strip() == "locked"
        return process

    # Fails on the code of today: the snapshot of an injection waits for the file, and the turn for the snapshot, 4 s and in vain.
    holder, started = hold(), time.time()
    prompt = w.asks("carol", "when does Bob fly to Oslo, now?")
    took = time.time() - started
    w.check("a turn is answered while the file is locked", "BASE PROMPT" in prompt, prompt)
    w.check("with what memory knows: reading needs no lock", "on Sunday" in w.injected(), prompt)
    w.check("and without waiting", took < 3, f"{took:.1f} s")
    holder.wait()
    for what, say, wanted in (
        ("remember", lambda: w.call("bob", "remember", content="Said while the file was locked"), "TOOL_RESULT"),
        ("!memory", lambda: w.room("bob", "!memory"), "Isolation"),
        ("!memory search", lambda: w.room("bob", "!memory search Oslo"), "on Sunday"),
    ):
        holder, started = hold(), time.time()
        try:
            out = say()
        except TimeoutError as error:
            out = f"(no answer: {error})"
        took = time.time() - started
        w.check(f"{what} is answered while the file is locked", wanted in out, out)
        print(f"     after {took:.1f} s of a lock of {LOCK_SECONDS:g} s", flush=True)
        holder.wait()
    w.s._callbacks()
    holder, started = hold(), time.time()
    with ThreadPoolExecutor(8) as pool:
        said = list(pool.map(lambda n: w.room("bob", f"hello {n} of many", room=f"many{n}"), range(8)))
    took = time.time() - started
    w.check("eight chats at once are answered while the file is locked", all("ECHO" in each for each in said), said)
    print(f"     after {took:.1f} s", flush=True)
    holder.wait()
    holder = hold()
    configure(w)  # the worker starts again, and finds the file locked
    out = w.alice("hello, are you there?")
    w.check("a plugin that starts while the file is locked ends no turn", "ECHO" in out, out)
    holder.wait()
    prompt = w.asks("carol", "when does Bob fly to Oslo, then?")
    w.check("and memory is on after it", "on Sunday" in prompt, prompt)


def disk_full(w: World) -> None:
    """The file lies on a small disk, which fills up."""
    # Fails on the code of today: database_path is not seen at the start (tests/test_plugin.py, the configuration counts at the start).
    small = w.s.run / "small"
    small.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(small)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode:
        print("not checked here: a full disk (it needs root and the right to mount)", flush=True)
        return
    try:
        configure(w, database_path=str(small))
        out = w.call("bob", "remember", content="Bob keeps bees")
        w.check("the file lies where the configuration says", "episode_id" in out and list(small.iterdir()), out)
        filler = small / "filler"
        with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(b"x" * 4096):
                pass
        out = w.alice("hello on a full disk")
        w.check("a turn is answered on a full disk", "ECHO" in out, out)
        for n in range(40):  # what the file has free is used first
            out = w.call("bob", "remember", content=f"Bob keeps {n} bees " + "buzz " * 200)
            if "episode_id" not in out:
                break
        w.check("remember says that the disk is full", re.search("full|space", out), out)
        out = w.room("bob", "!memory health")
        w.check("!memory health is answered and says so", re.search("full|space", out), out)
        w.check("recall goes on", "bees" in w.call("bob", "recall_memory", query="bees"))
        configure(w, database_path=str(small / "other"))
        out = w.alice("hello, no room for a file")
        w.check("a turn is answered where the file cannot be made", "ECHO" in out, out)
        out = w.room("bob", "!memory health")
        w.check("!memory health says why there is no memory", re.search("full|space", out), out)
        filler.unlink()
        configure(w, database_path=str(small))
        out = w.call("bob", "remember", content="Bob keeps bees again")
        w.check("and all goes on when there is room", "episode_id" in out, out)
    finally:
        configure(w)
        subprocess.run(["umount", str(small)], check=True)
    prompt = w.asks("carol", "when does Bob fly to Oslo, after the disk?")
    w.check("the file of before is in use again", "on Sunday" in prompt, prompt)


def no_vectors(w: World) -> None:
    """The embedding model fails, in each way that models do: by words memory goes on."""
    faults = {"500": {"status": 500}} | {kind: {"vectors": kind} for kind in ("nan", "few", "none", "zero", "short")}
    for kind, fault in faults.items():
        w.s.fault(path="embeddings", times=1000, **fault)
        try:
            prompt = w.asks("carol", f"Oslo, when does Bob fly there? ({kind})")
            w.check(f"embeddings {kind}: memories are found by words", "on Sunday" in prompt, prompt)
            out = w.call("bob", "remember", content=f"Embeddings were {kind}")
            w.check(f"embeddings {kind}: remember stores", "episode_id" in out, out)
            out = w.room("bob", "!memory")
            w.check(f"embeddings {kind}: !memory says why meaning is off", re.search("embedding|meaning", out), out)
        finally:
            w.s.fault_end()
    configure(w)  # a new worker, that asks for the size of a vector while the model is down
    w.s.fault(path="embeddings", times=1000, status=500)
    configure(w)
    prompt = w.asks("carol", "Oslo, when does Bob fly there? (at the start)")
    w.check("embeddings down at the start: memories are found by words", "on Sunday" in prompt, prompt)
    out = w.room("bob", "!memory")
    w.check("embeddings down at the start: !memory says why meaning is off", re.search("embedding|meaning", out), out)
    w.s.fault_end()

    def hybrid() -> bool:
        return '"mode": "hybrid"' in w.call("bob", "recall_memory", query="Oslo").replace('\\"', '"')

    w.check("when the model is back, meaning counts again without a restart", wait(hybrid, 25), w.room("bob", "!memory"))
    w.check("and nothing waits for a vector", wait(lambda: all_embedded(w.room("bob", "!memory")), 25), w.room("bob", "!memory"))


def no_knowledge_base(w: World) -> None:
    """The knowledge base is deleted; memories stay."""
    w.s.api("DELETE", f"/api/v1/knowledge/bases/{w.kb}")
    out = w.room("carol", "when does Bob fly to Oslo, without a knowledge base?")
    w.check("without a knowledge base a turn is answered", "ECHO" in out, out)
    out = w.room("bob", "!memory")
    w.check("!memory says that there is none", "Knowledge base: none" in out, out)
    w.check("what was remembered is still found", "on Sunday" in w.room("bob", "!memory search Oslo"))
    w.kb = w.s.kb("ltm/LongTermMemory", {"embedding_model_uuid": w.embedding}, {"top_k": 5}, name="memory")
    w.pipeline = w.s.pipeline(w.llm, [w.kb], name="second")
    w.s.bind(w.bot, "pipeline", w.pipeline)
    time.sleep(1)
    prompt = w.asks("carol", "when does Bob fly to Oslo, with a new one?")
    w.check("with a new one the memory is told again", "on Sunday" in prompt, prompt)


def ends(w: World) -> None:
    """Upgrade, kill -9 of the worker and of the host: whatever ends the process, what was answered is kept."""
    s, path = w.s, w.path()
    s.install(package(w, "0.2.0"))
    versions = {p["manifest"]["manifest"]["metadata"]["name"]: p["manifest"]["manifest"]["metadata"]["version"]
                for p in s.api("GET", "/api/v1/plugins")["plugins"]}  # fmt: skip
    w.check("the plugin is upgraded", versions.get("LongTermMemory") == "0.2.0", versions)
    prompt = w.asks("carol", "when does Bob fly to Oslo, once more?")
    w.check("fact 10: the memory survives the upgrade", "on Sunday" in prompt, prompt)
    out = w.call("bob", "remember", content="Said just before the worker was killed")
    worker = s.worker("LongTermMemory")
    if worker is None:
        w.check("the plugin's process is found", False)
    else:
        os.kill(worker, signal.SIGKILL)
        wait(lambda: s.worker("LongTermMemory") not in (None, worker), 30)
        wait(lambda: answers(lambda: w.room("bob", "!memory", timeout=10)), 60)
        out = w.room("bob", "!memory search killed")
        w.check("fact 10: what was remembered survives kill -9 of the worker", "Said just before" in out, out)
    w.call("bob", "remember", content="Said just before the host was killed")
    for name in ("host", "rt"):
        os.kill(s._pid(name), signal.SIGKILL)
    time.sleep(1)
    s.up()
    s.started(*versions)
    prompt = w.asks("carol", "when does Bob fly to Oslo, after all?")
    w.check("fact 10: the memory survives kill -9 of the host", "on Sunday" in prompt, prompt)
    w.check("fact 10: to the last word", "Said just before" in w.room("bob", "!memory search host was killed"))
    w.check("the file is where it was", w.path() == path, w.path())
    with sqlite3.connect(path) as db:
        w.check("and whole", db.execute("PRAGMA quick_check").fetchall() == [("ok",)])
    db.close()


def all_embedded(overview: str) -> bool:
    """Whether `!memory` says that no episode waits for its vector."""
    return bool(re.search(r"\b([\d,]+) of \1 episodes have their vector", overview))


def latency(w: World) -> None:
    """What the listener adds to a turn in a chat of many episodes, embedding apart."""
    seed = random.Random(7)
    words = [
        f"{a}{b}"
        for a in ("lan", "mor", "tis", "ver", "qual", "sen", "dor", "pel")
        for b in ("den", "ta", "rio", "mik", "os", "une")
    ]
    scope = {"bot": w.bot, "launcher_type": "person", "launcher_id": "big"}
    parts, each = 4, max(1, w.episodes // 4)
    started = time.time()
    for n in range(parts):
        rows = [{"content": f"note {n * each + i}: " + " ".join(seed.choices(words, k=14))} for i in range(each)]
        w.s.kb_file(w.kb, f"big{n}.json", json.dumps({"scope": scope, "episodes": rows}).encode())
        files = ended(w, n + 1, 240)
        if not files:
            break
    w.check(f"{parts * each:,} episodes are taken in", [f["status"] for f in files] == ["completed"] * parts, files)
    print(f"     loaded in {time.time() - started:.0f} s", flush=True)

    def say(text: str, chat: str = "big") -> str:
        return w.s.say(w.bot, chat, text, name="Big", quiet=0.0)

    wait(lambda: all_embedded(say("!memory")), 90)
    print("     " + next((row for row in say("!memory").split("\n") if "have their vector" in row), ""), flush=True)
    for chat in ("small", "big"):
        times = []
        for _ in range(50):  # as many as the plugin keeps the times of
            w.s.fake_clear()
            sent = time.time()
            say("tell me of " + " ".join(seed.choices(words, k=5)), chat)
            times.append(next(e["t"] for e in w.s.fake_log() if e["path"] == "chat") - sent)
        cut = statistics.quantiles(times, n=20)
        told = f"p50 {cut[9] * 1e3:.0f} ms, p95 {cut[18] * 1e3:.0f} ms"
        print(f"     from the message to the model's call, the host's own time with it, in a {chat} chat: {told}", flush=True)
    own = re.search(r"Last turns: .*", say("!memory"))
    print(f"     {own[0] if own else '!memory tells no times'}", flush=True)
    w.check("!memory tells what memory added to the last turns", own)


SCENARIOS: tuple[Callable[[World], None], ...] = (
    start,
    chats,
    commands,
    nobody,
    documents,
    console,
    streaming,
    agents,
    locked,
    disk_full,
    no_vectors,
    no_knowledge_base,
    latency,
    ends,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lane", default="411", choices=["411", "410"])
    parser.add_argument("--only", default="", help="scenarios, by name")
    parser.add_argument("--episodes", type=int, default=10_000, help="of the chat in which latency is measured")
    parser.add_argument("--keep", action="store_true", help="leave the host running")
    options = parser.parse_args()
    world = World(Stack(options.lane), options.episodes)
    chosen = {"start", "chats", *options.only.split(",")} if options.only else {each.__name__ for each in SCENARIOS}
    try:
        for scenario in SCENARIOS:
            if scenario.__name__ not in chosen:
                continue
            began = time.time()
            try:
                scenario(world)
            except (ApiError, TimeoutError, IndexError, ValueError, AssertionError, StopIteration, OSError) as error:
                traceback.print_exc()
                world.check(f"{scenario.__name__} runs to its end", False, repr(error))
                if scenario in (start, chats):
                    break
            print(f"     ({scenario.__name__}: {time.time() - began:.0f} s)", flush=True)
    finally:
        if not options.keep:
            world.s.down()
    print(f"{world.passed} passed, {world.failed} failed", flush=True)
    sys.exit(bool(world.failed))


if __name__ == "__main__":
    main()
