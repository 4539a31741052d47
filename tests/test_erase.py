"""erase: no byte of what was erased stays, nothing else is touched, and it never comes back unasked."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

import ltm
import ltm_models

from .conftest import BOB, GROUP, Clock
from .test_episodes import ALL, dump

Open = Callable[..., ltm.Memory]

# Every text to be erased is made of these; nothing else in a file is. The latin ones end alike, so that an index that
# stores only what differs from the term before shows at least the end.
LATIN = (b"zqxwv", b"xwvb", b"kjhqz")
HAN = tuple(pair.encode() for pair in ("饕餮", "餮貔", "貔貅"))  # one character is three bytes, which chance puts into a log index
NEEDLES = LATIN + HAN
SENDER, NAME = "zqxwv-sender-kjhqz", "饕餮貔貅"
MARY = ltm.Speaker(SENDER, NAME)
PRIVATE = ltm.Scope("b1", "person", "9")
KEPT = "Bob keeps bees in the garden"


def needle(place: str) -> str:
    return f"zqxwv{place}kjhqz 饕餮貔貅{place}"


def bytes_of(folder: Path) -> dict[str, list[bytes]]:
    """Which needles lie in which file of a folder, byte for byte."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            if hits := [each for each in NEEDLES if each in data]:
                found[path.name] = hits
    return found


def rows_with_needles(memory: ltm.Memory) -> list[str]:
    """Tables whose rows still say it: what to look at when a byte test fails."""
    return [table for table, rows in dump(memory)[:-1] if any(each in repr(rows).encode() for each in NEEDLES)]


def bystanders(memory: ltm.Memory, speaker: str = SENDER) -> list[Any]:
    """Rows that erasing a speaker of GROUP must leave as they are: by others, and of other spaces."""
    sql = {
        "episode": "SELECT e.* FROM episode e LEFT JOIN speaker p ON p.id = e.speaker JOIN space s ON s.id = e.space"
        " WHERE (s.launcher_id <> '7' OR p.sender_id IS NOT :who) AND e.source <> 'consolidation'",
        "episode_tag": "SELECT t.* FROM episode_tag t JOIN episode e ON e.key = t.key JOIN speaker p ON p.id = e.speaker"
        " JOIN space s ON s.id = e.space WHERE s.launcher_id <> '7' OR p.sender_id <> :who",
        "profile_fact": "SELECT f.* FROM profile_fact f LEFT JOIN speaker p ON p.id = f.speaker JOIN space s ON s.id = f.space"
        " WHERE s.launcher_id <> '7' OR p.sender_id IS NOT :who",
        "speaker": "SELECT p.id, p.space, p.sender_id, p.name, p.first_us, (SELECT group_concat(n.name, '|') FROM speaker_name n WHERE n.speaker = p.id)"
        " FROM speaker p JOIN space s ON s.id = p.space WHERE s.launcher_id <> '7' OR p.sender_id <> :who",
        "candidate": "SELECT c.* FROM candidate c JOIN space s ON s.id = c.space WHERE s.launcher_id <> '7' OR c.sender_id <> :who",
        "audit": "SELECT a.* FROM audit a JOIN space s ON s.id = a.space WHERE s.launcher_id <> '7'",
        "revision": "SELECT r.* FROM revision r JOIN space s ON s.id = r.space WHERE s.launcher_id <> '7'",
        "operation": "SELECT o.* FROM operation o JOIN space s ON s.id = o.space WHERE s.launcher_id <> '7'",
    }
    with memory._file.read() as db:
        return [(table, db.execute(f"{text} ORDER BY 1, 2", {"who": speaker}).fetchall()) for table, text in sql.items()]


def bystander_rows(memory: ltm.Memory) -> None:
    """What others said in the same chat, and anybody in another chat."""
    for scope, who in ((GROUP, BOB), (PRIVATE, BOB), (ltm.Scope("b2", "group", "7x"), ltm.Speaker("u9", "Zoe"))):
        space = memory.space(scope, speaker=who)
        id = space.remember(KEPT, tags=["bees", "Garten"], operation_key="bees").id
        space.remember("bees sleep in winter")
        space.edit(id, importance=4)
        space.profiles.update("traits", "add", "patient", fact_key="manner")
        space.profiles.update("preferences", "add", "honey")
        space.forget(space.remember("a slip").id)
        space.candidates.add("l2_episode", {"content": "Bob buys a hive", "tags": [], "importance": 2})
        space.inject("bees")


def summarise(space: ltm.Space, *ids: str, text: str) -> str:
    """Publish a summary of episodes; return its id."""
    memory = space._memory
    memory.configure("consolidation_enabled", True)
    proposal = space.consolidation.draft(ltm_models.ScriptedModel(json.dumps({"summary": text, "cites": list(ids)})), ids)
    return space.consolidation.run(proposal.id).id


def draft(space: ltm.Space, *ids: str, text: str) -> str:
    return space.consolidation.draft(ltm_models.ScriptedModel(json.dumps({"summary": text, "cites": list(ids)})), ids).id


# Each puts needles into one more place of the file, through the calls a host makes.


def put_content(space: ltm.Space, bob: ltm.Space) -> None:
    space.remember(needle("content"), importance=5)
    space.remember(needle("long") + " 饕餮貔貅 zqxwvpadkjhqz" * 600)


def put_tags(space: ltm.Space, bob: ltm.Space) -> None:
    space.remember("a tagged one", tags=["zqxwvtagkjhqz", "饕餮貔貅"])


def put_references(space: ltm.Space, bob: ltm.Space) -> None:
    space.remember("a referenced one", source_ref="msg:zqxwvrefkjhqz", source="zqxwvsourcekjhqz")


def put_forgotten(space: ltm.Space, bob: ltm.Space) -> None:
    space.forget(space.remember(needle("forgotten"), tags=["zqxwvgonekjhqz"]).id)
    space.remember("soon gone", tags=["zqxwvbulkkjhqz"])
    space.forget_all(ltm.Filter(tags=["zqxwvbulkkjhqz"]))


def put_edited(space: ltm.Space, bob: ltm.Space) -> None:
    id = space.remember(needle("edited"), tags=["zqxwvoldtagkjhqz"], source_ref="zqxwvoldrefkjhqz").id
    space.edit(id, content="an innocent text", tags=["innocent"], source_ref="")
    id = space.remember("another innocent text").id
    undone = space.edit(id, content=needle("undone"))
    space.undo(undone.audit_id)


def put_superseded(space: ltm.Space, bob: ltm.Space) -> None:
    first = space.remember(needle("first")).id
    second = space.remember(needle("second"), supersedes=[first]).id
    third = space.remember(needle("third")).id
    space.supersede(second, third)
    space._memory.configure("consolidation_enabled", True)
    space.consolidation.run()


def put_profile(space: ltm.Space, bob: ltm.Space) -> None:
    profiles = space.profiles
    profiles.update("traits", "add", needle("trait"), fact_key="zqxwvslotkjhqz")
    profiles.update("traits", "add", needle("newtrait"), fact_key="zqxwvslotkjhqz")
    profiles.update("preferences", "add", needle("preference"))
    profiles.update("preferences", "remove", needle("preference"))
    profiles.update("name", "set", "饕餮貔貅 zqxwvformerkjhqz")
    profiles.update("name", "set", "貔貅")
    profiles.update("notes", "add", needle("note"), subject="speaker")


def put_candidates(space: ltm.Space, bob: ltm.Space) -> None:
    for fate in ("pending", "accepted", "rejected"):
        body = {"content": needle(f"candidate{fate}"), "tags": [f"zqxwv{fate}kjhqz"], "importance": 2}
        fact = {"target_scope": "speaker", "field": "traits", "action": "add", "value": needle(f"fact{fate}")}
        ids = [space.candidates.add("l2_episode", body, "zqxwvreasonkjhqz").id, space.candidates.add("l1_profile", fact).id]
        if fate == "accepted":
            bob.candidates.accept(*ids)
        if fate == "rejected":
            space.candidates.reject(*ids)


def put_own_words_in_the_chats_profile(space: ltm.Space, bob: ltm.Space) -> None:
    """Notes go to the chat's own profile, also when they are a speaker's own words that somebody accepted."""
    fact = {"target_scope": "session", "field": "notes", "action": "add", "value": needle("sessionnote")}
    bob.candidates.accept(space.candidates.add("l1_profile", fact).id)


def put_proposals(space: ltm.Space, bob: ltm.Space) -> None:
    a, b = space.remember(needle("sourcea")).id, bob.remember("Bob was there").id
    summarise(space, a, b, text=needle("summary"))
    draft(space, a, b, text=needle("draft"))
    space.consolidation.reject(draft(space, a, b, text=needle("rejected")))


def put_summary_that_went(space: ltm.Space, bob: ltm.Space) -> None:
    """A published summary that a trigger took away when a source changed: its text is history."""
    a, b = space.remember("the source of it").id, bob.remember("Bob was there too").id
    summarise(space, a, b, text=needle("summarygone"))
    bob.edit(b, content="Bob was elsewhere")


def put_summary_forgotten(space: ltm.Space, bob: ltm.Space) -> None:
    a, b = space.remember("another source of it").id, bob.remember("Bob came along").id
    bob.forget(summarise(space, a, b, text=needle("summaryforgotten")))


def put_summary_edited(space: ltm.Space, bob: ltm.Space) -> None:
    a, b = space.remember("a third source of it").id, bob.remember("Bob came last").id
    bob.edit(summarise(space, a, b, text=needle("summaryedited")), content="a quieter summary")


def put_injection(space: ltm.Space, bob: ltm.Space) -> None:
    space.remember(needle("injected"))
    bob.inject("zqxwvinjectedkjhqz 饕餮")
    space.inject("zqxwvaskedkjhqz")


def put_operations(space: ltm.Space, bob: ltm.Space) -> None:
    id = space.remember("with a key", operation_key="zqxwvkeykjhqz").id
    space.edit(id, importance=5, operation_key="zqxwveditkjhqz")
    space.profiles.update("traits", "add", "calm", operation_key="zqxwvprofilekjhqz")


def put_bulk_operations(space: ltm.Space, bob: ltm.Space) -> None:
    space.remember("many of them", tags=["mass"])
    space.forget_all(ltm.Filter(tags=["mass"]), operation_key="zqxwvmasskjhqz")


def put_bulk_by_another(space: ltm.Space, bob: ltm.Space) -> None:
    """Somebody else deletes what a name said: the filter is kept in the audit."""
    space.remember("to be cleared")
    bob.forget_all(ltm.Filter(speaker_name=NAME, tags=[]), operation_key="clear")


def put_import(space: ltm.Space, bob: ltm.Space) -> None:
    record = {"id": "zqxwvoldidkjhqz", "content": needle("imported"), "sender_id": SENDER, "sender_name": "饕餮貔貅"}
    record |= {"mood": "zqxwvmoodkjhqz", "deep": {"zqxwvfieldkjhqz": ["饕餮貔貅"]}}
    lost = {**record, "id": "x2", "content": needle("lost"), "status": "superseded", "superseded_by": "zqxwvlostkjhqz"}
    bob.transfer.load(json.dumps([record, lost]).encode())


def put_document(space: ltm.Space, bob: ltm.Space) -> None:
    record = {"content": needle("document"), "sender_id": SENDER, "sender_name": NAME}
    space.transfer.load_document("zqxwvdockjhqz.pdf", json.dumps([record]).encode())


def put_deleted_document(space: ltm.Space, bob: ltm.Space) -> None:
    record = {"content": needle("document"), "sender_id": SENDER, "sender_name": NAME}
    space.transfer.load_document("zqxwvdeldockjhqz.pdf", json.dumps([record]).encode())
    space.transfer.delete_document("zqxwvdeldockjhqz.pdf", operation_key="d")


def put_names(space: ltm.Space, bob: ltm.Space) -> None:
    for name in ("zqxwvearlierkjhqz", "饕餮", "貔貅 zqxwvlaterkjhqz"):
        space.for_speaker(ltm.Speaker(SENDER, name)).remember(f"said as {len(name)}")


def put_query_id(space: ltm.Space, bob: ltm.Space) -> None:
    memory = space._memory
    memory.space(space.scope, speaker=space.speaker, query_id="zqxwvquerykjhqz").remember("asked for")


PLACES = [value for name, value in list(globals().items()) if name.startswith("put_")]
# Each has its own test; in one heap they would hide each other. Bob's bulk deletion would leave nothing to erase.
FAIL_ALONE = (
    put_own_words_in_the_chats_profile,
    put_summary_that_went,
    put_summary_forgotten,
    put_bulk_operations,
    put_bulk_by_another,
    put_document,
    put_deleted_document,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    return folder / "bot.db"


def spaces_of(memory: ltm.Memory, scope: ltm.Scope = GROUP) -> tuple[ltm.Space, ltm.Space]:
    return memory.space(scope, speaker=MARY), memory.space(scope, speaker=BOB)


# ------------------------------------------------------------------------------------------ raw bytes


@pytest.mark.parametrize("put", PLACES, ids=lambda put: put.__name__[4:])
@pytest.mark.parametrize("what", ["speaker", "everything"])
def test_no_byte_of_an_erased_text_stays_wherever_it_was(path: Path, opened: Open, put: Callable[..., None], what: str) -> None:
    memory = opened(path)
    bystander_rows(memory)
    put(*spaces_of(memory))
    assert bytes_of(path.parent)
    admin = memory.space(GROUP)
    done = admin.erase(speaker=SENDER) if what == "speaker" else admin.erase(everything=True)
    assert done.truncated
    assert (rows_with_needles(memory), bytes_of(path.parent)) == ([], {})
    assert list(admin.audit.verify()) == []
    assert memory.check() == []


def test_everything_at_once_goes_and_bystanders_stay_as_they_are(path: Path, opened: Open) -> None:
    memory = opened(path, embedder=ltm.HashEmbedder())
    bystander_rows(memory)
    mary, bob = spaces_of(memory)
    for put in PLACES:
        if put not in FAIL_ALONE:
            put(mary, bob)
    memory.embed_pending()
    before = bystanders(memory)
    done = memory.space(GROUP, speaker=BOB).erase(speaker=SENDER)
    assert bystanders(memory) == before
    assert done.counts["episodes"] >= 8
    assert done.counts["candidates"] == 6
    assert (rows_with_needles(memory), bytes_of(path.parent)) == ([], {})
    assert list(bob.audit.verify()) == []
    assert bob.get(next(e.id for e in bob.list().episodes)).speaker == BOB
    assert KEPT in [hit.episode.content for hit in bob.recall("bees garden")]


def test_erasing_everything_leaves_the_other_chats_as_they_are(path: Path, opened: Open) -> None:
    memory = opened(path)
    bystander_rows(memory)
    mary, _ = spaces_of(memory)
    put_content(mary, mary)
    before = bystanders(memory)
    space = memory.space(GROUP)
    space.erase(everything=True)
    after = dict(bystanders(memory))
    assert {table: rows for table, rows in before if table in ("audit", "revision", "operation")} == {
        table: after[table] for table in ("audit", "revision", "operation")
    }
    assert space.list(ALL).total == 0
    assert not space.profiles.get("session")
    assert space.candidates.list(status=None).total == 0
    assert space.injections() == []
    for scope in (PRIVATE, ltm.Scope("b2", "group", "7x")):
        assert memory.space(scope).list(ALL).total == 2
        assert memory.space(scope).candidates.list().total == 1


@pytest.mark.parametrize("seed", range(3))
def test_pages_that_were_split_and_merged_keep_no_stale_copies(path: Path, opened: Open, seed: int) -> None:
    """Rows that a b-tree moved from page to page leave copies behind in the space between; those must go too."""
    chance = random.Random(seed)
    memory = opened(path)
    mary, bob = spaces_of(memory)
    ids: list[tuple[ltm.Space, str]] = []
    for round in range(8):
        with memory.batch():
            for n in range(40):
                who, word = (
                    (mary, f"zqxwv{chance.randrange(10**9)}kjhqz") if chance.random() < 0.4 else (bob, f"bob{chance.random()}")
                )
                text = f"{word} {round} {n} " + "ab " * chance.randrange(120)
                ids.append((who, who.remember(text, tags=[word[:40], f"{chance.random()}"], operation_key=f"{word}:{n}").id))
                who.profiles.update("preferences", "add", f"{chance.randrange(10**6)} {word} " + "x" * chance.randrange(200))
        with memory.batch():
            for who, id in chance.sample(ids, 25):
                word = f"zqxwv{chance.randrange(10**9)}kjhqz" if who is mary else "bob"
                who.edit(id, content=f"{word} {round} {id} " + "cd " * chance.randrange(400))
    memory.space(GROUP).erase(speaker=SENDER)
    assert (rows_with_needles(memory), bytes_of(path.parent)) == ([], {})


def test_many_speakers_come_and_one_goes(path: Path, opened: Open) -> None:
    chance = random.Random(5)
    memory = opened(path)
    with memory.batch():
        for n in range(500):
            who = f"{chance.random():.12f}"
            names = [f"zqxwv{n}kjhqz {who}" if n % 7 == 0 else f"name {who}" + "n" * chance.randrange(60) for _ in range(2)]
            for name in names:
                sender = f"zqxwv-{who}" if n % 7 == 0 else f"u-{who}"
                memory.space(GROUP, speaker=ltm.Speaker(sender, name)).profiles.update("name", "set", name[:40])
    with memory._file.read() as db:
        senders = [id for (id,) in db.execute("SELECT sender_id FROM speaker WHERE sender_id LIKE 'zqxwv%' ORDER BY 1")]
    for sender in senders:
        memory.space(GROUP).erase(speaker=sender)
    assert (rows_with_needles(memory), bytes_of(path.parent)) == ([], {})


def test_copies_in_a_folder_of_backups_are_erased_too(path: Path, tmp_path: Path, opened: Open) -> None:
    memory = opened(path)
    bystander_rows(memory)
    mary, bob = spaces_of(memory)
    put_content(mary, bob)
    put_edited(mary, bob)
    folder = tmp_path / "backups"
    folder.mkdir()
    copies = [memory.backup(folder / "monday.db"), memory.backup(folder / "tuesday.db")]
    put_profile(mary, bob)
    copies.append(memory.backup(folder / "wednesday.db"))
    assert set(bytes_of(folder)) == {"monday.db", "tuesday.db", "wednesday.db"}
    done = memory.space(GROUP).erase(speaker=SENDER, also=copies, prove=True)
    assert done.found == ()
    assert {path.name for path in copies} <= set(done.files)
    assert (bytes_of(path.parent), bytes_of(folder)) == ({}, {})
    assert sum(str(folder) in note for note in done.notes) == 3
    for copy in copies:
        with ltm.open(copy, clock=Clock()) as again:
            assert again.check() == []
            assert KEPT in [episode.content for episode in again.space(GROUP).list(limit=50).episodes]


def test_a_copy_that_is_fenced_is_said_before_anything_is_erased(path: Path, tmp_path: Path, opened: Open) -> None:
    memory = opened(path)
    mary, bob = spaces_of(memory)
    put_content(mary, bob)
    copy = memory.backup(tmp_path / "copy.db")
    with ltm.open(copy, clock=Clock()) as other:
        other.fence("frozen")
    before = dump(memory)
    try:
        done = mary.erase(speaker=SENDER, also=[copy])
    except ltm.Fenced:
        assert dump(memory) == before
    else:
        assert any("frozen" in note for note in done.notes)


@pytest.mark.parametrize("wrong", ["missing.db", "folder", "text.db"])
def test_a_copy_that_is_none_is_said_before_anything_is_erased(path: Path, tmp_path: Path, opened: Open, wrong: str) -> None:
    """Else the call fails half way: the certificate is lost, or an empty file stands where a backup was thought to be."""
    memory = opened(path)
    mary, bob = spaces_of(memory)
    put_content(mary, bob)
    (tmp_path / "folder").mkdir()
    (tmp_path / "text.db").write_text("not a database " * 100)
    before = dump(memory)
    with pytest.raises(ltm.LtmError):
        mary.erase(speaker=SENDER, also=[tmp_path / wrong])
    assert dump(memory) == before
    assert not (tmp_path / "missing.db").exists()


@pytest.mark.parametrize("name", ["bot.db", "bot [1].db", "b?t*.db", "机器人.db"])
def test_copies_that_a_migration_made_are_deleted_whatever_the_file_is_called(path: Path, opened: Open, name: str) -> None:
    path = path.with_name(name)
    memory = opened(path)
    mary, bob = spaces_of(memory)
    put_content(mary, bob)
    memory.backup(path.with_name(f"{name}.v1.bak"))
    bystander = path.with_name("other.db.v1.bak")
    bystander.write_bytes(b"not ours")
    done = mary.erase(speaker=SENDER)
    assert bytes_of(path.parent) == {}
    assert bystander.exists()
    assert any(".v1.bak" in note for note in done.notes)


def test_a_reader_that_holds_the_log_is_told_and_the_next_open_finishes(
    path: Path, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ltm, "BUSY_SECONDS", 0.05)
    memory = opened(path)
    bystander_rows(memory)
    mary, bob = spaces_of(memory)
    put_content(mary, bob)
    reader = apsw.Connection(str(path))
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM episode").get > 0
    done = mary.erase(speaker=SENDER)
    assert not done.truncated
    assert any("next open" in note for note in done.notes)
    assert [hit.episode.content for hit in bob.recall("zqxwvcontentkjhqz")] == []
    assert reader.execute("SELECT count(*) FROM episode WHERE content LIKE '%zqxwv%'").get == 2
    reader.execute("ROLLBACK")
    reader.close()
    with ltm.open(path, clock=Clock()) as again:  # while the process that erased goes on
        assert bytes_of(path.parent) == {}
        with again._file.read() as db:
            assert db.execute("SELECT count(*) FROM intent").get == 0
        assert again.fences() == []


KILLED = """
import os, signal, sys
sys.path.insert(0, {root!r})
import ltm
from tests.conftest import Clock, counting_ids
memory = ltm.open({path!r}, clock=Clock())
ltm.Memory._finish_erase = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
memory.space(ltm.Scope("b1", "group", "7")).erase(speaker={sender!r}, also={also!r})
"""


def killed_erasing(path: Path, also: list[str]) -> None:
    root = str(Path(ltm.__file__).parent)
    code = KILLED.format(root=root, path=str(path), sender=SENDER, also=also)
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == -9


@pytest.mark.skipif(os.name != "posix", reason="needs kill -9")
def test_killed_between_the_commit_and_the_checkpoint_the_next_open_finishes(path: Path, opened: Open) -> None:
    with ltm.open(path, clock=Clock()) as memory:
        bystander_rows(memory)
        mary, bob = spaces_of(memory)
        put_content(mary, bob)
        put_profile(mary, bob)
    killed_erasing(path, [])
    assert bytes_of(path.parent)
    memory = opened(path)
    assert bytes_of(path.parent) == {}
    assert memory.fences() == []
    assert memory.space(GROUP).audit.verify() == []
    with memory._file.read() as db:
        assert db.execute("SELECT count(*) FROM intent").get == 0


@pytest.mark.skipif(os.name != "posix", reason="needs kill -9")
def test_killed_before_the_copies_of_migrations_were_deleted_the_next_open_deletes_them(path: Path, opened: Open) -> None:
    with ltm.open(path, clock=Clock()) as memory:
        mary, bob = spaces_of(memory)
        put_content(mary, bob)
        memory.backup(path.with_name("bot.db.v1.bak"))
    killed_erasing(path, [])
    opened(path)
    assert bytes_of(path.parent) == {}


def test_erasing_again_or_somebody_unknown_is_refused_and_touches_nothing(path: Path, opened: Open) -> None:
    memory = opened(path)
    bystander_rows(memory)
    mary, bob = spaces_of(memory)
    put_content(mary, bob)
    mary.erase(speaker=SENDER)
    before = bystanders(memory)
    for sender in (SENDER, "nobody"):
        with pytest.raises(ltm.NotFound, match="nothing was erased"):
            memory.space(GROUP).erase(speaker=sender, prove=True)
    assert bystanders(memory) == before
    assert bytes_of(path.parent) == {}


@pytest.mark.parametrize("given", [{}, {"speaker": "u1", "everything": True}, {"speaker": ""}, {"speaker": 7}, {"speaker": "a\0b"}])
def test_what_to_erase_must_be_said(memory: ltm.Memory, space: ltm.Space, given: dict[str, Any]) -> None:
    space.remember("stays")
    before = dump(memory)
    with pytest.raises(ltm.InvalidInput):
        space.erase(**given)
    assert dump(memory) == before


def test_a_fenced_space_a_batch_and_a_read_only_file_refuse(path: Path, opened: Open) -> None:
    memory = opened(path)
    mary, _ = spaces_of(memory)
    mary.remember(needle("content"))
    fence = memory.fence("frozen", mary)
    with pytest.raises(ltm.Fenced):
        mary.erase(speaker=SENDER)
    memory.clear_fence(fence.id)
    with pytest.raises(ltm.InvalidInput), memory.batch():
        mary.erase(speaker=SENDER)
    with ltm.open(path, readonly=True) as reader, pytest.raises(ltm.ReadOnly):
        reader.space(GROUP).erase(speaker=SENDER)
    assert mary.list().total == 1


def test_an_erasure_cannot_be_undone_nor_looked_back_past(path: Path, opened: Open, clock: Clock) -> None:
    memory = opened(path)
    mary, bob = spaces_of(memory)
    bob.remember(KEPT)
    edit = mary.edit(mary.remember(needle("content")).id, importance=5)
    moment = ltm.to_iso(clock())
    assert mary.list(as_of=moment).total == 2
    mary.erase(speaker=SENDER)
    erased = mary.audit.list(operation="erase").entries[0]
    for id in (erased.id, edit.audit_id):
        with pytest.raises(ltm.Conflict):
            mary.undo(id)
    assert [episode.content for episode in mary.list(as_of=moment).episodes] == [KEPT]
    assert mary.profiles.get("speaker", as_of=moment) == ltm.Profile()
    assert all(entry.erased or "zqxwv" not in json.dumps(entry.to_json(GROUP)) for entry in mary.audit.list().entries)


def test_what_a_chain_of_summaries_was_drawn_from_takes_all_of_it_along(path: Path, opened: Open) -> None:
    """Exports of others may cite summaries in summaries."""
    memory = opened(path)
    _, bob = spaces_of(memory)
    records = [
        {"id": "s0", "content": needle("source"), "sender_id": SENDER},
        {"id": "s1", "content": needle("one"), "sources": ["s0"], "source": "consolidation"},
        {"id": "s2", "content": needle("two"), "sources": ["s1"], "source": "consolidation"},
        {"id": "s3", "content": needle("three"), "sources": ["s2"], "source": "consolidation"},
    ]
    bob.transfer.load(json.dumps(records).encode())
    bob.erase(speaker=SENDER)
    assert (rows_with_needles(memory), bytes_of(path.parent)) == ([], {})


# -------------------------------------------------------------------------------------- coming back


def exported(space: ltm.Space) -> bytes:
    return json.dumps(space.transfer.export(), ensure_ascii=False).encode()


def test_an_export_from_before_does_not_bring_it_back(path: Path, opened: Open) -> None:
    memory = opened(path)
    mary, bob = spaces_of(memory)
    mary.remember(needle("content"))
    mary.remember("it was 马 and 国 there")
    mary.profiles.update("traits", "add", needle("trait"))
    bob.remember(KEPT)
    data = exported(mary)
    mary.erase(speaker=SENDER)
    before = bystanders(memory)
    report = bob.transfer.load(data)
    assert len(report.erased) == 2
    assert (report.episodes, report.facts) == (0, 0)
    assert bystanders(memory) == before
    assert bob.list(ALL).total == 1
    assert bytes_of(path.parent) == {}, "not even the id and the name of who was erased"
    report = bob.transfer.load(data, allow_erased=True)
    assert (report.episodes, report.facts, report.erased) == (2, 1, ())
    assert mary.recall("zqxwvcontentkjhqz").hits
    assert bob.transfer.load(data).duplicates >= 3


def test_a_profile_that_is_kept_out_brings_no_speaker_back(path: Path, opened: Open) -> None:
    memory = opened(path)
    mary, bob = spaces_of(memory)
    mary.profiles.update("traits", "add", needle("trait"))
    data = json.dumps(mary.transfer.export(["profiles"])).encode()
    mary.erase(speaker=SENDER)
    before = dump(memory)
    bob.transfer.load(data, dry_run=True)
    assert dump(memory) == before
    bob.transfer.load(data)
    assert bytes_of(path.parent) == {}


@pytest.mark.parametrize(
    "variant",
    ["ＺＱＸＷＶ the SECRET of 马国", "zqxwv the secret of 馬國", "  Zqxwv the\tsecret  of 马国\n", "ZQXWV THE SECRET OF 马国"],
)
def test_a_variant_of_the_text_is_known_too(memory: ltm.Memory, variant: str) -> None:
    mary, bob = spaces_of(memory)
    mary.remember("zqxwv the secret of 马国")
    mary.profiles.update("traits", "add", "zqxwv the secret of 马国")
    mary.erase(speaker=SENDER)
    profile = {"sender_id": "u5", "profile": {"traits": [variant]}}
    data = {"format": "ltm", "version": 1, "episodes": [{"content": variant, "status": "archived"}], "profiles": [profile]}
    report = bob.transfer.load(json.dumps(data).encode())
    assert (report.erased, report.episodes, report.facts) == ((1,), 0, 0)


def test_another_space_may_import_the_same_text(memory: ltm.Memory) -> None:
    mary, _ = spaces_of(memory)
    mary.remember(needle("content"))
    mary.profiles.update("traits", "add", needle("trait"))
    data = exported(mary)
    mary.erase(speaker=SENDER)
    other = memory.space(PRIVATE)
    assert (other.transfer.load(data).episodes, other.list().total) == (1, 1)
    assert other.for_speaker(MARY).profiles.get("speaker").traits == (needle("trait"),)


def test_what_a_person_says_again_is_kept(memory: ltm.Memory) -> None:
    mary, _ = spaces_of(memory)
    mary.remember(needle("content"))
    mary.erase(speaker=SENDER)
    assert mary.remember(needle("content")).outcome == "stored"
    assert mary.transfer.load(json.dumps([{"content": needle("content"), "sender_id": SENDER}]).encode()).duplicates == 1


def test_a_profile_stays_erased_whatever_the_isolation_it_is_imported_with(memory: ltm.Memory) -> None:
    """Profiles are the chat's own with either isolation, so what was erased of them is known with either."""
    mary, _ = spaces_of(memory)
    mary.profiles.update("traits", "add", needle("trait"))
    data = json.dumps(mary.transfer.export(["profiles"])).encode()
    mary.erase(speaker=SENDER)
    shared = memory.space(ltm.Scope("b1", "group", "7", isolation="bot"))
    assert shared.transfer.load(data).facts == 0


def test_the_digests_tell_nothing_without_the_key_of_the_space(memory: ltm.Memory) -> None:
    digests = []
    for scope in (GROUP, PRIVATE):
        space = memory.space(scope, speaker=MARY)
        space.remember(needle("content"))
        space.erase(speaker=SENDER)
        with memory._file.read() as db:
            digests.append({row[0] for row in db.execute("SELECT digest FROM erased")})
    assert len(digests[1] - digests[0]) == len(digests[0]) > 0


# -------------------------------------------------------------------------------------- bot isolation

A = ltm.Scope("b1", "group", "7", isolation="bot")
B = ltm.Scope("b1", "group", "8", isolation="bot")


def test_with_bot_isolation_a_speaker_goes_from_all_chats_of_the_bot(path: Path, opened: Open) -> None:
    memory = opened(path)
    for scope in (A, B):
        mary, bob = spaces_of(memory, scope)
        mary.remember(needle(f"content{scope.launcher_id}"), operation_key=f"zqxwv{scope.launcher_id}kjhqz")
        bob.remember(f"Bob said so in {scope.launcher_id}")
        bob.inject("zqxwvcontent7kjhqz")
        bob.forget_all(ltm.Filter(speaker_id=SENDER, tags=["nothing"]))
    alone = memory.space(ltm.Scope("b2", "group", "7"), speaker=BOB)
    alone.remember(KEPT)
    done = memory.space(A).erase(speaker=SENDER)
    assert done.counts["episodes"] == 2
    assert (rows_with_needles(memory), bytes_of(path.parent)) == ([], {})
    assert memory.space(B).list(ALL).total == 2
    for scope in (A, B, alone.scope):
        assert memory.space(scope).audit.verify() == []


@pytest.mark.parametrize("fate", ["accepted", "pending", "rejected"])
def test_with_bot_isolation_candidates_of_other_chats_do_not_keep_an_erased_text(path: Path, opened: Open, fate: str) -> None:
    memory = opened(path)
    mary, bob = spaces_of(memory, B)
    id = mary.candidates.add("l2_episode", {"content": needle("candidate"), "tags": [], "importance": 2}).id
    if fate == "pending":
        mary.remember(needle("candidate"))
    else:
        getattr(bob.candidates, {"accepted": "accept", "rejected": "reject"}[fate])(id)
    memory.space(A).erase(speaker=SENDER)
    assert (rows_with_needles(memory), bytes_of(path.parent)) == ([], {})


def test_with_bot_isolation_profiles_of_other_chats_stay(memory: ltm.Memory) -> None:
    for scope in (A, B):
        spaces_of(memory, scope)[0].profiles.update("traits", "add", "tall")
    memory.space(A).erase(speaker=SENDER)
    assert not spaces_of(memory, A)[0].profiles.get("speaker")
    assert spaces_of(memory, B)[0].profiles.get("speaker").traits == ("tall",)
    data = json.dumps({"profiles": [{"sender_id": "u5", "profile": {"traits": ["tall"]}}]}).encode()
    assert memory.space(B).transfer.load(data).facts == 1, "what was erased in one chat is another chat's to take in"


def test_with_session_isolation_the_shared_episodes_of_the_bot_stay(memory: ltm.Memory) -> None:
    shared = spaces_of(memory, A)[0]
    shared.remember("said to the bot")
    own = spaces_of(memory)[0]
    own.remember("said to the chat")
    own.erase(speaker=SENDER)
    assert (shared.list().total, own.list().total) == (1, 0)


# ------------------------------------------------------------------------------------------- the proof


def erased_with_proof(memory: ltm.Memory, plant: Callable[[ltm.Memory], None], text: str) -> ltm.Erasure:
    mary, _ = spaces_of(memory)
    mary.remember(text)
    plant(memory)
    return memory.space(GROUP).erase(speaker=SENDER, prove=True)


def test_proof_of_a_clean_file_says_so(path: Path, opened: Open) -> None:
    done = erased_with_proof(opened(path), bystander_rows, needle("content"))
    assert done.found == ()
    assert done.searched >= 1
    assert "bot.db" in done.files
    assert done.kept == ()


PLANTS: dict[str, Callable[[ltm.Memory, str], Any]] = {
    "an episode by another": lambda memory, text: memory.space(GROUP, speaker=BOB).remember(f"she said {text}"),
    "an episode of another chat": lambda memory, text: memory.space(PRIVATE, speaker=BOB).remember(f"she said {text}"),
    "a profile of another chat": lambda memory, text: memory.space(PRIVATE).profiles.update("notes", "add", text[:2000]),
    "history of another chat": lambda memory, text: memory.space(PRIVATE).forget(memory.space(PRIVATE).remember(text).id),
    "a candidate by another": lambda memory, text: memory.space(GROUP, speaker=BOB).candidates.add(
        "l2_episode", {"content": text, "tags": [], "importance": 2}
    ),
    "a fence": lambda memory, text: memory.fence(text[:400], memory.space(PRIVATE)),
}
TEXTS = {"short": 'zqxwv\tkjhqz "quoted" 饕餮', "long": "zqxwv " + "\n".join(f"line {n} of a long story" for n in range(700))}


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("plant", PLANTS)
def test_proof_finds_what_another_row_still_says(path: Path, opened: Open, plant: str, text: str) -> None:
    """A text longer than a page lies in pieces; it is there all the same."""
    if text == "long" and plant in ("a profile of another chat", "a fence"):
        pytest.skip("such rows hold no long text")
    done = erased_with_proof(opened(path), lambda memory: PLANTS[plant](memory, TEXTS[text]), TEXTS[text])
    assert done.found, "the bytes are there and the proof says they are not"


def test_proof_cleans_what_lies_in_free_pages(path: Path, opened: Open) -> None:
    """Another program wrote without secure_delete: freed pages hold what no row does."""
    text = "zqxwv in a freed page kjhqz"
    memory = opened(path)
    mary, _bob = spaces_of(memory)
    mary.remember(text)
    with contextlib.closing(apsw.Connection(str(path))) as db:
        db.execute("PRAGMA secure_delete = OFF").fetchall()
        db.execute("CREATE TABLE scratch (x)")
        db.executemany("INSERT INTO scratch VALUES (?)", [(f"{text} {n} " + "pad" * 200,) for n in range(60)])
        db.execute("DROP TABLE scratch")
    assert path.read_bytes().count(b"freed page") or Path(f"{path}-wal").read_bytes().count(b"freed page")
    done = memory.space(GROUP).erase(speaker=SENDER, prove=True)
    assert done.found == ()
    assert b"freed page" not in path.read_bytes()


def test_proof_sees_pieces_that_a_moved_row_left_between_rows(path: Path, opened: Open) -> None:
    memory = opened(path)
    mary, bob = spaces_of(memory)
    chance = random.Random(0)
    with memory.batch():
        for n in range(320):
            who, word = (mary, f"zqxwv{chance.randrange(10**9)}kjhqz") if chance.random() < 0.4 else (bob, f"bob{chance.random()}")
            who.remember(f"{word} {n}", tags=[word, f"{chance.random()}"])
    done = memory.space(GROUP).erase(speaker=SENDER, prove=True)
    assert done.found or bytes_of(path.parent) == {}, "neither cleaned nor told"


def test_proof_tells_of_bytes_that_it_cannot_clean(path: Path, tmp_path: Path, opened: Open) -> None:
    """A copy whose own row by another says the same is reported by the copy's name."""
    memory = opened(path)
    mary, _bob = spaces_of(memory)
    mary.remember(needle("content"))
    copy = memory.backup(tmp_path / "copy.db")
    with ltm.open(copy, clock=Clock()) as other:
        other.space(PRIVATE).remember(f"quoted: {needle('content')}")
    done = memory.space(GROUP).erase(speaker=SENDER, also=[copy], prove=True)
    assert done.found
    assert all(each.startswith("copy.db") for each in done.found)


def test_proof_looks_for_tags_names_and_references_too(path: Path, opened: Open) -> None:
    """They are erased like texts, so what is left of them is a finding like any other."""
    memory = opened(path)
    mary, _bob = spaces_of(memory)
    mary.remember("a plain text of hers", tags=["zqxwvtagkjhqz"], source_ref="msg:zqxwvrefkjhqz")
    memory.space(PRIVATE, speaker=BOB).remember("other", tags=["zqxwvtagkjhqz"], source_ref="msg:zqxwvrefkjhqz")
    memory.space(PRIVATE, speaker=MARY).remember("hers elsewhere")
    done = memory.space(GROUP).erase(speaker=SENDER, prove=True)
    said = " ".join(done.found) + " ".join(done.notes)
    assert [each for each in ("zqxwvtagkjhqz", "zqxwvrefkjhqz", SENDER) if each not in said] == []


def test_proof_says_how_many_texts_it_did_not_look_for(path: Path, opened: Open) -> None:
    memory = opened(path)
    mary, _ = spaces_of(memory)
    with memory.batch():
        for n in range(ltm.PROOF_TEXTS + 30):
            mary.remember(f"text number {n}")
        mary.remember("花生")
    done = memory.space(GROUP).erase(speaker=SENDER, prove=True)
    assert done.searched >= ltm.PROOF_TEXTS
    assert any(re.search(r"\b31\b", note) for note in done.notes), "31 texts were not looked for, and nothing says so"


def test_others_who_said_the_same_are_named(path: Path, opened: Open) -> None:
    memory = opened(path)
    mary, bob = spaces_of(memory)
    mary.remember(needle("content"))
    theirs = bob.remember(needle("content")).id
    done = bob.erase(speaker=SENDER, prove=True)
    assert done.kept == (theirs,)
    assert bob.get(theirs).content == needle("content")
    assert any("episode" in note for note in done.notes)
