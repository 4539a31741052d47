"""What people and models read of the plugin, in English and Chinese: every reply of `!memory`, the tools' answers, the prompt.

Each language has its own chat with its own memories. Clock and ids are injected where the plugin opens the file; what is left of
the machine (a path, sizes, times that were measured) is replaced.
"""

from __future__ import annotations

import asyncio
import functools
import json
import re
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

import ltm

from .conftest import Clock, counting_ids
from .test_plugin import KB, answered, asked_in, begin, command, plugin_path, prompt, says  # noqa: F401
from .test_plugin import pytestmark as of_the_sdk

pytestmark = [of_the_sdk, pytest.mark.usefixtures("plugin_path", "one_clock")]
LEGACY = Path(__file__).parent / "data"
ADMINISTRATORS = ("root", "管理员")


@dataclass
class Talk:
    """Who speaks and what, in one language."""

    user: str
    other: str
    admin: str
    trip: str
    later: str
    also: str
    asked: str
    fact: str
    statement: str
    summary: str
    new_text: str
    tag: str
    reason: str


ENGLISH = Talk(
    "bob", "carol", "root", "Bob flies to Oslo on Friday", "Bob flies to Oslo on Sunday", "Carol is allergic to peanuts",
    "when does Bob fly to Oslo?", "green tea", "I like green tea. I decided to move to Lisbon next month.",
    "Bob's trip and Carol's allergy", "Bob flies to Oslo at noon", "travel", "moving the server",
)  # fmt: skip
CHINESE = Talk(
    "小林", "阿珍", "管理员", "小林周五飞往大阪", "小林改为周日飞往大阪", "阿珍对花生过敏",
    "小林什么时候飞大阪？", "绿茶", "我喜欢喝绿茶。 我决定下个月搬到深圳。",
    "小林的行程与阿珍的过敏", "小林中午飞往大阪", "旅行", "正在迁移服务器",
)  # fmt: skip
BOTH = pytest.mark.parametrize("talk", [ENGLISH, CHINESE], ids=["en", "zh"])


@pytest.fixture
def one_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plugin opens its file with our clock and ids, and without a model of this machine."""
    monkeypatch.setattr(ltm, "open", functools.partial(ltm.open, clock=Clock(), ids=counting_ids()))

    def none() -> None:
        raise ltm.EmbedderError("the local e5 model is not installed; install ltm-sqlite[e5]")

    monkeypatch.setattr(ltm, "E5", none)


class Chat:
    """A started plugin, and what was said; each call ends when what it left to do is done."""

    def __init__(self, world: Any, talk: Talk, folder: Path) -> None:
        self.world, self.talk, self.folder, self.said = world, talk, folder, dict[str, Any]()

    async def settle(self) -> None:
        """Wait for what the plugin left to do; not for its attempts to reach a model that is down, which have no end."""
        bridge = self.world.bridge
        is_down = "invoke_embedding" in self.world.host.fail
        if tasks := [each for each in bridge._tasks if not (is_down and each is bridge._catching)]:
            await asyncio.wait(tasks)

    def clean(self, text: str) -> str:
        text = text.replace(str(self.folder), "FOLDER").encode("utf-8", "replace").decode()
        text = re.sub(r"[\d.]+( ms| 毫秒)", r"N\1", text)
        text = re.sub(r"(?<=asked again in )\d+|\d+(?= 秒后再次调用)", "N", text)
        text = re.sub(r"\b\d{1,3}(,\d{3})+( bytes|\b)|\b\d{6,}( bytes| 字节)", r"N\2\3", text)
        return re.sub(r"\b[0-9a-f]{64}\b", "HASH", text)

    async def command(self, name: str, text: str, who: str = "", **given: Any) -> str:
        reply = await command(self.world, who or self.talk.user, text, **given)
        await self.settle()
        if name:
            assert name not in self.said
            self.said[name] = self.clean(reply)
        return reply

    async def tool(self, name: str, tool: str, who: str = "", **params: Any) -> dict[str, Any]:
        answer = await says(self.world, tool, who or self.talk.user, **params)
        await self.settle()
        if name:
            self.said[name] = self.clean(json.dumps(answer, ensure_ascii=False, indent=1))
        return answer

    async def turn(self, text: str, who: str = "", query: str = "") -> list[str]:
        found = await prompt(self.world, who or self.talk.user, text, query=query)
        await self.settle()
        return found


@asynccontextmanager
async def chat(talk: Talk, folder: Path, **config: Any) -> AsyncIterator[Chat]:
    """A chat of one language with an administrator."""
    world = await begin(folder / "memory.db", **{"administrators": list(ADMINISTRATORS), **config})
    made = Chat(world, talk, folder)
    await made.settle()
    try:
        yield made
    finally:
        for task in list(world.bridge._tasks):
            task.cancel()
        await asyncio.gather(*world.bridge._tasks, return_exceptions=True)
        if world.bridge.memory is not None:
            assert world.bridge.memory.check() == []
            world.bridge.memory.close()


@pytest.fixture
def told(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Run a scenario in a chat; what was said in it, by name."""

    def told_(talk: Talk, scenario: Callable[[Chat], Coroutine[Any, Any, None]], **config: Any) -> dict[str, Any]:
        async def all_of_it() -> dict[str, Any]:
            async with chat(talk, tmp_path, **config) as here:
                await scenario(here)
            return here.said

        return asyncio.run(all_of_it())

    return told_


def audit_of(reply: str) -> str:
    """The audit id that a reply offers to undo."""
    return reply.rpartition("!memory undo ")[2].split()[0]


def first_id(reply: str) -> str:
    found = re.search(r"\b[0-9a-f]{12}\b", reply)
    assert found, reply
    return found[0]


# --------------------------------------------------------------------------------------------- the states


@BOTH
def test_the_overview_in_each_state(told: Callable[..., dict[str, Any]], talk: Talk, snapshot: SnapshotAssertion) -> None:
    async def scenario(here: Chat) -> None:
        await here.command("no knowledge base", "!memory")
        await here.world.long_term_memory.on_knowledge_base_create(KB, {})
        await here.tool("", "remember", content=talk.trip)
        await here.tool("", "update_profile", field="preferences", action="set", value=talk.fact, fact_key="drink")
        await here.command("attached", "!memory", _knowledge_base_uuids=[KB, "other"])
        await here.command("not attached", "!memory", _knowledge_base_uuids=["other"])
        await here.turn(talk.asked)
        await here.command("after a turn", "!memory")
        await here.command("", "!memory config set embedding_model_uuid m1", talk.admin)
        await here.command("with an embedding model", "!memory")
        here.world.host.fail = {"invoke_embedding"}
        await here.tool("", "remember", content=talk.also)
        while "wait for a vector" not in here.world.bridge.troubles["meaning"]:
            await asyncio.sleep(0.01)
        await here.command("embedding model fails", "!memory")
        await here.command("", "!memory config set embedding_model_uuid m2", talk.admin)
        await here.command("embedding model cannot be used", "!memory")
        here.world.bridge.trouble("turn", "memory took longer than 4 s, and the turn went on without it")
        await here.command("a turn went without memory", "!memory")
        await here.command("not by a name, but for the language of its words", "!memory search " + talk.asked, "u9")
        here.world.host.fail |= {"get_query_vars"}
        await here.command("the host is silent", "!memory")

    assert told(talk, scenario) == snapshot(name=f"overview {talk.user}")


@BOTH
def test_a_file_that_cannot_be_opened(
    told: Callable[..., dict[str, Any]], talk: Talk, snapshot: SnapshotAssertion, tmp_path: Path
) -> None:
    (tmp_path / "broken.db").write_bytes(b"not a database at all, but long enough to be read as one" * 40)

    async def scenario(here: Chat) -> None:
        for text in ("!memory", "!memory list", "!memory config", "!memory help"):
            await here.command(text, text)
        await here.tool("remember", "remember", content=talk.trip)
        assert await here.turn(talk.asked) == []

    assert told(talk, scenario, database_path=str(tmp_path / "broken.db")) == snapshot(name=f"broken {talk.user}")


# ------------------------------------------------------------------------------------------- the commands


@BOTH
def test_finding_and_correcting(told: Callable[..., dict[str, Any]], talk: Talk, snapshot: SnapshotAssertion) -> None:
    async def scenario(here: Chat) -> None:
        for text in ("profile", "list", "search " + talk.asked, "superseded", "audit", "audit export", "audit verify", "export"):
            await here.command(f"{text.split(' ' + talk.asked)[0]}, empty", "!memory " + text)
        trip = (await here.tool("", "remember", content=talk.trip, tags=[talk.tag], importance=4))["episode_id"]
        later = (await here.tool("", "remember", content=talk.later, supersedes=[trip], event_at="2026-03-08T09:00:00+08:00"))[
            "episode_id"
        ]
        await here.tool("", "remember", talk.other, content=talk.also)
        await here.command("help", "!memory help")
        await here.command("health", "!memory health")
        await here.command("profile edit set", f"!memory profile edit set preferences {talk.fact}")
        await here.command("profile edit add", f"!memory profile edit add traits {talk.tag}")
        await here.command("profile edit set name", f"!memory profile edit set name {talk.user}")
        await here.command("profile edit add notes", f"!memory profile edit add notes {talk.reason}")
        await here.command("profile", "!memory profile")
        await here.command("profile edit remove", f"!memory profile edit remove traits {talk.tag}")
        await here.command("profile edit remove what is not there", f"!memory profile edit remove traits {talk.tag}")
        await here.command("search", f"!memory search {talk.asked}")
        await here.command("search in all states", f"!memory s --all-statuses {talk.asked}")
        await here.command("search in vain", "!memory search zzz")
        await here.command("list", "!memory list")
        await here.command("list in two states", "!memory ls --include-superseded")
        await here.command("show", f"!memory show {later}")
        await here.command("show what was superseded", f"!memory show {trip}")
        await here.command("superseded", "!memory superseded")
        await here.command("edit", f"!memory edit {later} --importance 5 --tag {talk.tag} {talk.new_text}")
        await here.command("edit without a change", f"!memory edit {later} --importance 5")
        await here.command("edit another's", f"!memory edit {later} --importance 4", talk.other)
        done = await here.command("archive", f"!memory archive {later}")
        await here.command("archived", "!memory archived")
        await here.command("restore", f"!memory restore {later}")
        await here.command("undo what changed since", f"!memory undo {audit_of(done)}")
        done = await here.command("forget", f"!memory forget {later}")
        await here.command("history", f"!memory history {later}")
        await here.command("undo", f"!memory undo {audit_of(done)}")
        await here.command("undo twice", f"!memory undo {audit_of(done)}")
        await here.command("restore what was superseded", f"!memory restore {trip}")
        await here.command("forget what is not there", "!memory forget nothing")
        listed = await here.command("audit", "!memory audit")
        await here.command("audit, more", f"!memory audit {re.findall('[0-9]+', listed)[-1]}")
        await here.command("audit export", "!memory audit export")
        await here.command("audit verify", "!memory audit verify")
        await here.command("export", "!memory export")
        await here.command("export l2", "!memory export l2")
        await here.command("export l2 of a state", "!memory export l2 --status superseded")
        await here.command("export all-current-scope", "!memory export all-current-scope")

    assert told(talk, scenario) == snapshot(name=f"finding and correcting {talk.user}")


@BOTH
def test_what_administrators_do(told: Callable[..., dict[str, Any]], talk: Talk, snapshot: SnapshotAssertion) -> None:
    async def scenario(here: Chat) -> None:
        async def admin(name: str, text: str) -> str:
            return await here.command(name, f"!memory {text}", talk.admin)

        async def complete(uuid: str, messages: list[Any]) -> Any:
            ids = sorted(set(re.findall(r"\b[0-9a-f]{12}\b", str(messages[1].content))))
            return SimpleNamespace(content=json.dumps({"summary": talk.summary, "cites": ids}, ensure_ascii=False))

        await here.world.long_term_memory.on_knowledge_base_create(KB, {})
        for text in ("candidates", "consolidate run", "fence", "stats", "delete --speaker nobody --dry-run"):
            await admin(f"{text}, empty", text)
        await admin("config", "config")
        await admin("config set", "config set auto_recall_top_k 5")
        await admin("config set text", "config set isolation session")
        await admin("config reset", "config reset auto_recall_top_k")
        await admin("consolidate preview, empty", "consolidate preview")
        await admin("config set candidate_extraction_enabled", "config set candidate_extraction_enabled true")
        await here.turn(talk.statement, query="q1")
        await answered(here.world, "OK", "q1")
        await here.settle()
        listed = await admin("candidates", "candidates")
        one, other = (line.split()[0] for line in listed.splitlines()[1:3])
        await admin("candidate accept", f"candidate accept {one}")
        await admin("candidate accept twice", f"candidate accept {one}")
        await admin("candidate reject", f"candidate reject {other}")
        await admin("candidates in all states", "candidates --all-statuses")
        await admin("candidates of a state", "candidates --status rejected")
        trip = (await here.tool("", "remember", content=talk.trip))["episode_id"]
        await here.tool("", "remember", content=talk.later, supersedes=[trip])
        await here.tool("", "remember", content=talk.also)
        await admin("", "config set consolidation_enabled true")
        await admin("", "config set consolidation_min_age_days 0")
        await admin("consolidate preview", "consolidate preview")
        await admin("consolidate run", "consolidate run")
        here.world.plugin.invoke_llm = complete
        await admin("", "config set consolidation_model_uuid l1")
        drafted = await admin("consolidate preview with a draft", "consolidate preview")
        proposal = drafted.rpartition("consolidate run ")[2].split()[0]
        await admin("consolidate run, publishing", f"consolidate run {proposal}")
        await admin("consolidate run, publishing twice", f"consolidate run {proposal}")
        await admin("stats", "stats")
        rows = json.dumps([{"content": "an old  memory", "sender_id": "u7"}, {"content": "", "sender_id": "u7"}])
        await admin("import l2 with a flaw", f"import l2 {rows}")
        rows = json.dumps([{"content": "an old  memory", "sender_id": "u7"}])
        await admin("import l2", f"import l2 {rows}")
        await admin("import l2 again", f"import l2 {rows}")
        await admin("import l2 of nonsense", "import l2 {nonsense")
        await admin("import legacy L1", "import legacy " + (LEGACY / "legacy_l1.json").read_text(encoding="utf-8"))
        await admin("import legacy L2", "import legacy " + (LEGACY / "legacy_l2.json").read_text(encoding="utf-8"))
        legacy = json.loads((LEGACY / "legacy_l2.json").read_text(encoding="utf-8"))
        legacy["episodes"] = legacy["episodes"][:2]
        await admin("import legacy L2 without a flaw", "import legacy " + json.dumps(legacy, ensure_ascii=False))
        await admin("delete, dry run", f"delete --speaker {talk.user} --dry-run")
        done = await admin("delete", f"delete --speaker {talk.user} --status active")
        await admin("undo a delete", f"undo {audit_of(done)}")
        await admin("delete by tag and time", "delete --tag none --before 2026-01-01T00:00:00Z")
        await admin("delete everything", "delete")
        await admin("fence set", f"fence set {talk.reason}")
        await admin("fence set twice", f"fence set {talk.reason}")
        await admin("fence list", "fence list")
        await here.command("a write at a fence", f"!memory forget {trip}")
        await here.tool("remember at a fence", "remember", content=talk.trip)
        await admin("fence clear", "fence clear 1")
        await admin("fence clear twice", "fence clear 1")
        await admin("audit", "audit")

    assert told(talk, scenario) == snapshot(name=f"administrators {talk.user}")


WRONG = (
    "show", "show a b", "history", "archive", "restore", "forget", "undo", "edit", "edit x", "edit x --importance high", "search",
    "search --all-statuses", "list a b", "list --status", "list --status nonsense", "list nonsense", "profile edit",
    "profile edit put name x", "profile edit set colour x", "profile edit set name", "audit nonsense", "export l1",
    "export l2 x", "import", "import l3 []", "import l2", "delete --who x", "delete --tag", "delete --status nonsense",
    "delete --before soon", "consolidate", "consolidate draft", "consolidate run x y", "consolidate run x", "candidate",
    "candidate accept", "candidate keep x", "candidate accept x", "candidates --status nonsense", "fence set", "fence clear x",
    "fence clear 99", "fence drop", "config set", "config set x", "config get x", "config set nonsense 1",
    "config reset", "config reset nonsense", "config set auto_recall_top_k many", "config set auto_recall_top_k 900", "config set isolation all",
    "config set exact_match_boost perhaps", "config set injection_budget 1", "show nothing", "history nothing", "undo nothing",
    "edit nothing --importance 9", "edit nothing --event-at soon", "nonsense", "nonsense with words",
)  # fmt: skip


@BOTH
def test_what_makes_no_sense(told: Callable[..., dict[str, Any]], talk: Talk, snapshot: SnapshotAssertion) -> None:
    async def scenario(here: Chat) -> None:
        for text in WRONG:
            await here.command(text, f"!memory {text}", talk.admin)
        await here.command("config with a problem", "!memory config")

    assert told(talk, scenario, max_profile_traits=0) == snapshot(name=f"wrong {talk.user}")


@BOTH
def test_what_only_administrators_may(told: Callable[..., dict[str, Any]], talk: Talk, snapshot: SnapshotAssertion) -> None:
    async def scenario(here: Chat) -> None:
        stored = await here.tool("", "remember", talk.other, content=talk.also)
        entry = first_id((await here.command("", "!memory audit")).split("\n")[1])
        refused = (
            "stats", "import l2 []", "import legacy []", "delete --speaker x", "delete --speaker x --dry-run", "candidates",
            "candidate accept x", "candidate reject x", "consolidate preview", "consolidate run", "fence", "fence set x",
            "fence clear 1", "config set isolation bot", "config reset isolation", f"undo {entry}",
        )  # fmt: skip
        replies = {await here.command("", f"!memory {text}") for text in refused}
        replies |= {await here.command("", f"!memory {text}", privilege=2) for text in refused}  # a group's right is nobody's
        (here.said["refused"],) = replies
        await here.command("its author may", f"!memory undo {entry}", talk.other)
        assert stored["outcome"] == "stored"

    assert told(talk, scenario) == snapshot(name=f"refusals {talk.user}")


# ---------------------------------------------------------------------------------------------- the model


@BOTH
def test_what_the_model_reads(told: Callable[..., dict[str, Any]], talk: Talk, snapshot: SnapshotAssertion) -> None:
    async def scenario(here: Chat) -> None:
        await here.world.long_term_memory.on_knowledge_base_create(KB, {})
        event = {"event_at": "2026-03-06T09:00:00+08:00"}
        trip = (await here.tool("remember", "remember", content=talk.trip, tags=[talk.tag], importance=4, **event))["episode_id"]
        await here.tool("remember again", "remember", content=talk.trip)
        given = {"supersedes": [trip], "tags": [talk.tag], "importance": 4, "event_at": "2026-03-08T09:00:00+08:00"}
        await here.tool("remember in its place", "remember", content=talk.later, **given)
        await here.tool("remember nothing", "remember", content="")
        await here.tool("remember with what cannot be stored", "remember", content="\udc00")
        await here.tool("remember with a wrong time", "remember", content=talk.also, event_at="soon")
        await here.tool("remember in another's place", "remember", talk.other, content=talk.also, supersedes=[trip])
        await here.tool("", "remember", talk.other, content=talk.also, importance=5)
        drink = {"field": "preferences", "action": "set", "fact_key": "drink"}
        await here.tool("update_profile", "update_profile", value="coffee", **drink)
        await here.tool("update_profile, correcting", "update_profile", value=talk.fact, **drink)
        await here.tool("update_profile of the chat", "update_profile", field="notes", action="add", value=talk.reason)
        await here.tool("update_profile, wrong", "update_profile", field="colour", action="set", value="x")
        await here.tool("recall_memory", "recall_memory", query=talk.asked)
        await here.tool(
            "recall_memory, filtered", "recall_memory", query=talk.also, speaker_name=talk.other.title(), importance_min=2
        )
        await here.tool("recall_memory of nothing", "recall_memory", query="")
        await here.tool("recall_memory, wrong", "recall_memory", query=talk.asked, top_k=99)
        await here.tool("forget, wrong", "forget", episode_id="0" * 12)
        here.said["prompt"] = "\n---\n".join(await here.turn(talk.asked))
        here.said["prompt of another"] = "\n---\n".join(await here.turn(talk.also, talk.other))
        found = await here.world.long_term_memory.retrieve(asked_in(sender=talk.user, query=talk.asked + "?"))
        here.said["retrieve"] = [entry.model_dump() for entry in found.results]
        found = await here.world.long_term_memory.retrieve(asked_in(group="g9", sender="nobody", query=talk.asked))
        here.said["retrieve in another chat"] = [entry.model_dump() for entry in found.results]
        await here.settle()
        await here.tool("forget", "forget", episode_id=trip)

    assert told(talk, scenario) == snapshot(name=f"model {talk.user}")
