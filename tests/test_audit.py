"""audit: every change, by whom, in a chain that shows any tampering; fences, and intents of operations that died."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

import ltm
import ltm_models

from .conftest import ALICE, BOB, GROUP, START_US, Clock

ALL = ltm.Filter(statuses=ltm.STATUSES)
ELSEWHERE = ltm.Scope("b1", "group", "8")


def export_of(n: int, **more: Any) -> bytes:
    episodes = [{"id": f"f{i:011x}", "content": f"number {i}", "timestamp": "2025-01-01T00:00:00Z", **more} for i in range(n)]
    return json.dumps({"format": "ltm", "version": 1, "episodes": episodes}).encode()


def publish(space: ltm.Space, ids: list[str]) -> Any:
    space._memory.configure("consolidation_enabled", True)
    model = ltm_models.ScriptedModel(json.dumps({"summary": "in short", "cites": ids}))
    return space.consolidation.run(space.consolidation.draft(model, ids).id)


def state(memory: ltm.Memory) -> list[Any]:
    with memory._file.read() as db:
        tables = (
            "episode",
            "episode_tag",
            "profile_fact",
            "candidate",
            "proposal",
            "lineage",
            "audit",
            "revision",
            "injection",
            "operation",
        )
        return [(table, db.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall()) for table in tables]


# ------------------------------------------------------------------------------------- every change, by whom


def changes(space: ltm.Space) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Every verb that changes memory: the operation its entry has, and a call that changes something."""
    ids = [space.remember(f"kept {n}", tags=["t"]).id for n in range(8)]
    space._memory.configure("consolidation_enabled", True)
    accepted, rejected = (space.candidates.add("l2_episode", {"content": f"maybe {n}"}).id for n in "ab")
    model = ltm_models.ScriptedModel(*(json.dumps({"summary": f"sum {n}", "cites": ids[:2]}) for n in "ab"))
    drafts = [space.consolidation.draft(model, ids[:2]).id for _ in "ab"]
    edit = space.edit(ids[7], importance=4).audit_id
    yield "remember", lambda: space.remember("new")
    yield "update_profile", lambda: space.profiles.update("traits", "add", "kind")
    yield "edit", lambda: space.edit(ids[2], content="edited")
    yield "archived", lambda: space.archive(ids[3])
    yield "restore", lambda: space.restore(ids[3])
    yield "deleted", lambda: space.set_status(ids[3], "deleted")
    yield "superseded", lambda: space.supersede(ids[4], ids[5])
    yield "consolidate_run", lambda: space.consolidation.run()
    yield "consolidate_run", lambda: space.consolidation.run(drafts[0])
    yield "proposal_reject", lambda: space.consolidation.reject(drafts[1])
    yield "candidate_accept", lambda: space.candidates.accept(accepted)[0]
    yield "candidate_reject", lambda: space.candidates.reject(rejected)[0]
    yield "undo", lambda: space.undo(edit)
    yield "forget", lambda: space.forget(ids[6])
    yield "import_l2", lambda: space.transfer.load_document("doc", export_of(2))
    yield "delete_document", lambda: space.transfer.delete_document("doc")
    yield "delete_l2_bulk", lambda: space.forget_all(ltm.Filter(tags=["t"]))


def test_every_change_leaves_one_entry_with_who_and_through_what(memory: ltm.Memory) -> None:
    space = memory.space(GROUP, speaker=ALICE, via="tool", query_id="q-17")
    for operation, call in changes(space):
        total = space.audit.list().total
        done = call()
        entry = space.audit.list().entries[0]
        assert (entry.operation, space.audit.list().total) == (operation, total + 1)
        assert (entry.actor_id, entry.actor_name, entry.via, entry.query_id) == ("u1", "Alice", "tool", "q-17"), operation
        made = done.audit_ids[0] if isinstance(done, ltm.ImportReport) else done.audit_id
        assert made == entry.id
        assert space.audit.get(entry.id) == entry
        assert space.audit.verify() == []
    shown = {entry.operation for entry in space.audit.list(limit=500).entries}
    assert {"candidate_add", "consolidate_draft"} <= shown


def test_what_changes_nothing_leaves_no_entry(memory: ltm.Memory, space: ltm.Space) -> None:
    id = space.remember("one").id
    space.profiles.update("traits", "add", "kind")
    before = state(memory)
    space.remember("one")
    space.profiles.update("traits", "add", "kind")
    space.restore(id)
    space.edit(id, content="one", importance=2, tags=[])
    space.transfer.delete_document("none")
    space.forget_all(ltm.Filter(tags=["none"]))
    space.audit.close("2020-01-01T00:00:00Z")
    assert state(memory) == before


def test_an_entry_does_not_repeat_the_text(memory: ltm.Memory, space: ltm.Space) -> None:
    id = space.remember("xyzzy the first").id
    space.edit(id, content="xyzzy the second")
    space.forget(id)
    with memory._file.read() as db:
        assert "xyzzy" not in "".join(text for (text,) in db.execute("SELECT detail FROM audit"))


def test_entries_are_listed_newest_first_in_pages_without_gap(space: ltm.Space) -> None:
    ids = [space.remember(f"n{n}").audit_id for n in range(7)]
    found, cursor = [], ""
    while True:
        page = space.audit.list(limit=3, cursor=cursor)
        assert page.total == 7
        found += [entry.id for entry in page.entries]
        cursor = page.cursor
        if not cursor:
            break
    assert found == ids[::-1]
    assert [entry.id for entry in space.audit.export()] == ids


def test_a_page_is_not_moved_by_what_is_written_meanwhile(space: ltm.Space) -> None:
    ids = [space.remember(f"n{n}").audit_id for n in range(4)]
    page = space.audit.list(limit=2)
    space.remember("later")
    assert [entry.id for entry in space.audit.list(limit=2, cursor=page.cursor).entries] == ids[1::-1]


@pytest.mark.parametrize("cursor", ["x", "-1", "1.5", " ", 7])
def test_what_is_no_cursor_is_refused(space: ltm.Space, cursor: Any) -> None:
    space.remember("x")
    with pytest.raises(ltm.InvalidInput):
        space.audit.list(cursor=cursor)


def test_entries_can_be_chosen_by_operation_and_target(space: ltm.Space) -> None:
    id = space.remember("x").id
    space.edit(id, content="y")
    space.remember("z")
    assert [e.operation for e in space.audit.list(target=id).entries] == ["edit", "remember"]
    page = space.audit.list(operation="remember", limit=1)
    assert (page.total, len(page.entries)) == (2, 1)
    assert len(space.audit.list(operation="remember", limit=1, cursor=page.cursor).entries) == 1


def test_every_entry_is_found_by_the_target_it_shows(space: ltm.Space) -> None:
    space.remember("x")
    space.profiles.update("traits", "add", "kind")
    space.profiles.update("notes", "set", "calm")
    for entry in space.audit.list().entries:
        assert entry in space.audit.list(target=entry.target_id).entries


def test_a_chat_sees_its_own_entries_alone(memory: ltm.Memory, space: ltm.Space) -> None:
    memory.configure("consolidation_enabled", True)
    there = memory.space(ELSEWHERE, speaker=BOB)
    theirs = there.remember("x").audit_id
    for _ in range(2):  # before and after anything is written here
        assert theirs not in {entry.id for entry in space.audit.export()}
        for chosen in ({}, {"operation": "remember"}, {"operation": "configure"}, {"target": "consolidation_enabled"}):
            page = space.audit.list(**chosen)
            assert page.total == len(page.entries) == sum(e.actor_id == "u1" for e in page.entries)
        with pytest.raises(ltm.NotFound):
            space.audit.get(theirs)
        space.remember("mine")


def test_the_audit_of_a_chat_that_was_never_written_is_empty(memory: ltm.Memory, space: ltm.Space) -> None:
    memory.configure("consolidation_enabled", True)
    assert (space.audit.list().entries, list(space.audit.export()), space.audit.head(), space.audit.verify()) == ((), [], "", [])
    assert memory.spaces() == []


# ------------------------------------------------------------------------------------------------- the chain


@pytest.fixture
def chain(opened: Callable[..., ltm.Memory], tmp_path: Path) -> tuple[ltm.Space, apsw.Connection]:
    memory = opened(tmp_path / "a.db")
    space = memory.space(GROUP, speaker=ALICE)
    for n in range(6):
        space.remember(f"n{n}")
    memory.space(ELSEWHERE, speaker=BOB).remember("there")
    db = apsw.Connection(str(tmp_path / "a.db"))
    return space, db


def tamper(db: apsw.Connection, sql: str) -> None:
    """As somebody who knows the file: without its triggers, foreign keys or checks."""
    db.execute("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON")
    triggers = db.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
    for name, _ in triggers:
        db.execute(f"DROP TRIGGER {name}")
    db.execute(sql)
    for _, text in triggers:
        db.execute(text)


def done_with(space: ltm.Space) -> None:
    """Close the memory without the fixture's check: it was tampered with."""
    space._memory.close()


K = "(SELECT min(key) FROM audit WHERE space = 1)"
EDITS = {
    column: f"UPDATE audit SET {column} = {value} WHERE key = {K} + 2"
    for column, value in {
        "at_us": "at_us + 1", "operation": "'forget'", "target_type": "'space'", "target_id": "'ffffffffffff'", "via": "'cli'",
        "detail": "json_set(detail, '$.actor_id', 'u2')", "hash": "zeroblob(32)",
    }.items()
}  # fmt: skip
TAMPERINGS = {
    **{f"edit {column}": sql for column, sql in EDITS.items()},
    "whitespace in a detail": f"UPDATE audit SET detail = ' ' || detail WHERE key = {K} + 2",
    "a detail erased to another hash": f"UPDATE audit SET detail = NULL, detail_hash = zeroblob(32) WHERE key = {K} + 2",
    "first removed": f"DELETE FROM audit WHERE key = {K}",
    "middle removed": f"DELETE FROM audit WHERE key = {K} + 2",
    "middle removed, rest moved up": f"DELETE FROM audit WHERE key = {K} + 2; UPDATE audit SET key = key - 1 WHERE space = 1 AND key > {K} + 2",
    "two exchanged": f"UPDATE audit SET key = -key WHERE key = {K} + 1; UPDATE audit SET key = key - 1 WHERE key = (1 << 32) + 3;"
    " UPDATE audit SET key = (1 << 32) + 3 WHERE key < 0",
    "one doubled": "INSERT INTO audit (key, space, at_us, operation, target_type, target_id, via, detail, hash) SELECT key + 1, space, at_us,"
    " operation, target_type, target_id, via, detail, hash FROM audit WHERE space = 1 ORDER BY key DESC LIMIT 1",
    "one from elsewhere": "UPDATE audit SET (at_us, target_id, detail, hash) = (SELECT at_us, target_id, detail, hash FROM audit WHERE space = 2)"
    f" WHERE key = {K} + 2",
    "moved to another space": "UPDATE audit SET space = 2, key = (2 << 32) + 2 WHERE key = (1 << 32) + 6",
}


@pytest.mark.parametrize("how", TAMPERINGS)
def test_tampering_with_a_chain_is_found(chain: tuple[ltm.Space, apsw.Connection], how: str) -> None:
    space, db = chain
    assert space.audit.verify() == []
    tamper(db, TAMPERINGS[how])
    found, everything = space.audit.verify(), space._memory.check()
    there = space._memory.space(ELSEWHERE).audit.verify()
    done_with(space)
    assert found or there
    assert [line for line in everything if "audit" in line]


@pytest.mark.parametrize("column", EDITS)
def test_every_column_of_every_entry_is_under_the_hash(chain: tuple[ltm.Space, apsw.Connection], column: str) -> None:
    space, db = chain
    for n in range(6):
        db.execute("SAVEPOINT one")
        tamper(db, EDITS[column].replace("+ 2", f"+ {n}"))
        db.execute("RELEASE one")
        assert any("was changed" in line for line in space.audit.verify()), (column, n)
    done_with(space)


def test_erasing_a_detail_by_its_hash_keeps_the_chain(chain: tuple[ltm.Space, apsw.Connection]) -> None:
    space, db = chain
    text = db.execute(f"SELECT detail FROM audit WHERE key = {K} + 2").get
    db.execute(f"UPDATE audit SET detail = NULL, detail_hash = ? WHERE key = {K} + 2", (hashlib.sha256(text.encode()).digest(),))
    assert space.audit.verify() == []
    assert [entry.erased for entry in space.audit.export()] == [False, False, True, False, False, False]


CUTS = {
    "cut at the end": "DELETE FROM audit WHERE key >= (1 << 32) + 5",
    "taken away": "DELETE FROM audit WHERE space = 1",
}


@pytest.mark.parametrize("how", CUTS)
def test_a_head_kept_elsewhere_shows_a_cut(chain: tuple[ltm.Space, apsw.Connection], how: str) -> None:
    space, db = chain
    head = space.audit.head()
    space.remember("later")
    assert space.audit.verify(head) == []
    tamper(db, CUTS[how])
    found = space.audit.verify(head)
    done_with(space)
    assert any("gone" in line for line in found)


def test_a_head_kept_elsewhere_shows_a_chain_written_anew(chain: tuple[ltm.Space, apsw.Connection]) -> None:
    space, db = chain
    head = space.audit.head()
    tamper(db, "DELETE FROM audit WHERE space = 1")
    for n in range(6):
        entry = {
            "space": 1,
            "at_us": START_US,
            "operation": "remember",
            "target_type": "episode",
            "target_id": f"{n}",
            "via": "api",
        }
        ltm._append_audit(db, entry, {})
    assert space.audit.verify() == []
    found = space.audit.verify(head)
    done_with(space)
    assert any("written anew" in line for line in found)


@pytest.mark.parametrize("head", ["x", "1", "1:", "1:abc", f":{'0' * 64}", f"-1:{'0' * 64}", f"1:{'G' * 64}", f"1:{'0' * 64}\n"])
def test_what_is_no_head_is_refused(space: ltm.Space, head: str) -> None:
    space.remember("x")
    with pytest.raises(ltm.InvalidInput):
        space.audit.verify(head)


@pytest.mark.parametrize("sequence", [0, 2, 99, 1 << 32, (1 << 32) + 1, 1 << 62, 10**30])
def test_a_head_of_an_entry_that_is_not_here_is_told_as_gone(memory: ltm.Memory, space: ltm.Space, sequence: int) -> None:
    """Whatever its number: not an error, and no word of another chat's chain."""
    space.remember("x")
    memory.space(ELSEWHERE).remember("there")
    found = space.audit.verify(f"{sequence}:{'0' * 64}")
    assert len(found) == 1
    assert "gone" in found[0]


def test_a_head_of_another_chat_s_chain_proves_nothing_here(memory: ltm.Memory, space: ltm.Space) -> None:
    space.remember("x")
    there = memory.space(ELSEWHERE)
    there.remember("there")
    digest = there.audit.head().partition(":")[2]
    assert space.audit.verify(f"{(1 << 32) + 1}:{digest}") != []
    assert space.audit.verify(f"1:{digest}") != []


# -------------------------------------------------------------------------------------------------- closing


def test_closing_lets_go_of_the_old_and_the_chain_goes_on(memory: ltm.Memory, space: ltm.Space, clock: Clock) -> None:
    first = space.remember("one")
    head = space.audit.head()
    clock.forward(1)
    middle = clock.now_us
    later = space.remember("two").audit_id
    done = space.audit.close(ltm.to_iso(middle))
    assert (done.outcome, done.counts) == ("changed", {"closed": 1})
    assert [entry.id for entry in space.audit.export()] == [later, done.audit_id]
    assert (space.audit.verify(), space.audit.verify(head), memory.check()) == ([], [], [])
    assert space.audit.list().total == 2
    for read in (space.audit.get, space.undo):
        with pytest.raises(ltm.NotFound):
            read(first.audit_id)
    assert space.get(first.id).content == "one"
    clock.forward(1)
    again = space.audit.close(ltm.to_iso(clock.now_us))
    assert [entry.id for entry in space.audit.export()] == [done.audit_id, again.audit_id]
    assert (space.audit.verify(), space.audit.verify(head)) == ([], [])
    space.remember("three")
    assert space.audit.verify(space.audit.head()) == []


def test_closing_everything_keeps_the_newest(space: ltm.Space) -> None:
    assert space.audit.close("2099-01-01T00:00:00Z").outcome == "unchanged"
    last = [space.remember(text).audit_id for text in ("one", "two")][-1]
    assert space.audit.close("2099-01-01T00:00:00Z").counts == {"closed": 1}
    assert next(e.id for e in space.audit.export()) == last


def test_closing_one_chat_leaves_others_alone(memory: ltm.Memory, space: ltm.Space) -> None:
    there = memory.space(ELSEWHERE)
    for each in (space, there):
        each.remember("one")
        each.remember("two")
    space.audit.close("2099-01-01T00:00:00Z")
    assert there.audit.list().total == 2
    assert there.audit.verify() == []


def test_a_closed_part_that_nobody_closed_is_found(chain: tuple[ltm.Space, apsw.Connection]) -> None:
    """Plain SQL may say of any part that it was closed; the chain knows what it closed itself."""
    space, db = chain
    db.execute(f"INSERT INTO audit_segment SELECT 1, {K}, key, hash, at_us, 0 FROM audit WHERE key = {K} + 2")
    db.execute(f"DELETE FROM audit WHERE key <= {K} + 2")
    found = space.audit.verify()
    done_with(space)
    assert found != []


def test_a_closed_part_altered_afterwards_is_found(chain: tuple[ltm.Space, apsw.Connection]) -> None:
    space, db = chain
    space.audit.close("2099-01-01T00:00:00Z")
    space.remember("more")
    tamper(db, "DELETE FROM audit_segment")
    found = space.audit.verify()
    done_with(space)
    assert found != []


# --------------------------------------------------------------------------------------------------- fences


def test_a_fence_blocks_every_write_and_no_read(memory: ltm.Memory) -> None:
    space = memory.space(GROUP, speaker=ALICE, via="console")
    calls = list(changes(space))
    calls += [
        ("candidate_add", lambda: space.candidates.add("l2_episode", {"content": "other"})),
        ("extract", lambda: space.candidates.extract("My name is Alice.", force=True)),
        ("expire", lambda: space.candidates.expire()),
        ("erase", lambda: space.erase(everything=True)),
        ("audit_close", lambda: space.audit.close("2099-01-01T00:00:00Z")),
        ("draft", lambda: publish(space, [e.id for e in space.list().episodes[:2]])),
        ("import of many", lambda: space.transfer.load(export_of(501))),
    ]
    memory.configure("consolidation_enabled", True)
    fence = memory.fence("being moved", space)
    before = state(memory)
    for name, call in calls:
        with pytest.raises(ltm.Fenced, match=f"being moved. Clear fence {fence.id} to go on; reading works"):
            call()
        assert [t for t in state(memory) if t[0] != "audit"] == [t for t in before if t[0] != "audit"], name
    assert space.list().total == 8
    assert len(space.recall("kept")) > 0
    assert space.inject("kept").text
    assert space.transfer.export()["count"] > 0
    assert space.list(as_of="2099-01-01T00:00:00Z").total == 8
    assert space.history(space.list().episodes[0].id)
    assert space.audit.verify() == []
    memory.clear_fence(fence.id)
    space.remember("works again")
    assert [e.operation for e in space.audit.list(limit=2).entries] == ["remember", "fence_clear"]


def test_previews_are_reads_and_go_on_behind_a_fence(memory: ltm.Memory, space: ltm.Space) -> None:
    space.remember("x", tags=["t"])
    memory.fence("frozen", space)
    assert space.forget_all(ltm.Filter(tags=["t"]), dry_run=True).counts == {"active": 1}
    assert space.consolidation.preview().n_superseded == 0
    assert space.transfer.load(export_of(1), dry_run=True).episodes == 1


def test_a_fence_s_own_space_is_named_and_others_go_on(memory: ltm.Memory, space: ltm.Space) -> None:
    space.remember("x")
    there = memory.space(ELSEWHERE)
    fence = memory.fence("frozen", space)
    assert memory.fences() == [fence]
    assert (fence.key, fence.reason, fence.operation) == (GROUP.session_key, "frozen", "manual")
    there.remember("goes on")
    whole = memory.fence("all frozen")
    assert (whole.key, memory.fences()) == ("", [fence, whole])
    with pytest.raises(ltm.Fenced, match="all frozen"):
        there.remember("no")
    with pytest.raises(ltm.Fenced, match=f"Clear fence {fence.id} "):
        space.remember("no")
    memory.clear_fence(fence.id)
    with pytest.raises(ltm.Fenced, match=f"Clear fence {whole.id} "):
        space.remember("no")
    assert memory.clear_fence(whole.id) == whole
    assert memory.fences() == []
    space.remember("yes")
    assert memory.check() == []


def test_a_fence_outlives_the_process_and_is_cleared_once(opened: Callable[..., ltm.Memory], tmp_path: Path) -> None:
    first = opened(tmp_path / "a.db")
    id = first.fence("frozen", first.space(GROUP)).id
    first.close()
    second = opened(tmp_path / "a.db")
    with pytest.raises(ltm.Fenced):
        second.space(GROUP).remember("x")
    second.clear_fence(id, via="cli")
    for unknown in (id, 99, 0, -1, None, "1"):
        with pytest.raises(ltm.NotFound):
            second.clear_fence(unknown)  # type: ignore[arg-type]
    entries = second.space(GROUP).audit.list().entries
    assert [(e.operation, e.via, e.target_id) for e in entries] == [("fence_clear", "cli", str(id)), ("fence_set", "api", str(id))]


@pytest.mark.parametrize("reason", ["", " ", None, 5, "x" * 501])
def test_a_fence_needs_a_reason(memory: ltm.Memory, space: ltm.Space, reason: Any) -> None:
    with pytest.raises(ltm.InvalidInput):
        memory.fence(reason, space)
    assert memory.fences() == []


def test_a_fence_on_a_chat_of_a_bot_blocks_that_chat(memory: ltm.Memory) -> None:
    one, two = (memory.space(ltm.Scope("b1", "group", n, "bot"), speaker=ALICE) for n in "12")
    memory.fence("frozen", one)
    with pytest.raises(ltm.Fenced):
        one.remember("x")
    two.remember("y")


# -------------------------------------------------------------------------------------------------- intents

CHILD = """
import sys, ltm
def step(done, total):
    print(done, flush=True)
    if sys.stdin.readline().strip() == "fail":
        raise RuntimeError("the disk went away")
with ltm.open(sys.argv[1]) as memory:
    space = memory.space(ltm.Scope("b1", "group", "7"), speaker=ltm.Speaker("u1", "Alice"))
    try:
        space.transfer.load(sys.argv[2], progress=step)
    except RuntimeError:
        for n in range(2):
            print("failed", flush=True)
            if sys.stdin.readline().strip() == "again":
                space.transfer.load(sys.argv[2])
    print("end", flush=True)
    sys.stdin.readline()
"""


class Child:
    """Another process that imports, a batch at each word; it stands after each."""

    def __init__(self, db: Path, source: Path) -> None:
        folder = str(Path(ltm.__file__).parent)
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (folder, os.environ.get("PYTHONPATH", ""))))}
        command = [sys.executable, "-c", CHILD, str(db), str(source)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)

    def reads(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def say(self, word: str = "go") -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()


@pytest.fixture
def child(tmp_path: Path) -> Iterator[Callable[[int], Child]]:
    started: list[Child] = []

    def start(records: int = 1100) -> Child:
        source = tmp_path / "in.json"
        source.write_bytes(export_of(records))
        started.append(Child(tmp_path / "a.db", source))
        return started[-1]

    yield start
    for each in started:
        if each.process.poll() is None:
            each.kill()


@pytest.mark.parametrize("batches", [1, 2])
def test_an_import_killed_in_the_middle_is_fenced_and_finished_by_itself(
    opened: Callable[..., ltm.Memory], child: Callable[..., Child], tmp_path: Path, batches: int
) -> None:
    other = child()
    for n in range(batches):
        assert other.reads() == str((n + 1) * 500)
        other.say() if n + 1 < batches else None
    other.kill()
    memory = opened(tmp_path / "a.db")
    space = memory.space(GROUP, speaker=ALICE)
    (fence,) = memory.fences()
    assert (fence.operation, fence.key) == ("import_l2", GROUP.session_key)
    assert f"{batches * 500:,} of 1,100 records" in fence.reason
    assert "run it again with the same input" in fence.reason
    assert fence.reason.partition(";")[0] in " ".join(memory.warnings)
    assert space.list().total == batches * 500
    assert len(space.recall("number 7")) > 0
    for blocked in (
        lambda: space.remember("x"),
        lambda: space.transfer.load(export_of(3)),
        lambda: space.transfer.load(export_of(700)),
    ):
        with pytest.raises(ltm.Fenced, match=rf"run it again.*Clear fence {fence.id}"):
            blocked()
    assert memory.space(ELSEWHERE).remember("goes on").outcome == "stored"
    report = space.transfer.load(tmp_path / "in.json")
    assert (report.episodes, report.duplicates) == (1100 - batches * 500, batches * 500)
    assert memory.fences() == []
    assert space.remember("x").outcome == "stored"
    assert [e.operation for e in space.audit.list(limit=500).entries].count("fence_clear") == 1
    assert (space.list().total, memory.check()) == (1101, [])
    memory.close()
    assert opened(tmp_path / "a.db").fences() == []


def test_a_person_may_clear_the_fence_of_an_import_that_died(
    opened: Callable[..., ltm.Memory], child: Callable[..., Child], tmp_path: Path
) -> None:
    other = child()
    other.reads()
    other.kill()
    memory = opened(tmp_path / "a.db")
    memory.clear_fence(memory.fences()[0].id)
    memory.space(GROUP).remember("x")
    memory.close()
    assert opened(tmp_path / "a.db").fences() == []


def test_a_live_import_is_not_taken_for_dead(
    opened: Callable[..., ltm.Memory], child: Callable[..., Child], tmp_path: Path
) -> None:
    other = child()
    assert other.reads() == "500"
    memory = opened(tmp_path / "a.db")
    assert (memory.fences(), memory.warnings) == ([], [])
    memory.space(GROUP, speaker=ALICE).remember("beside it")
    other.say()
    assert other.reads() == "1000"
    other.say()
    assert other.reads() == "1100"
    other.say()
    assert other.reads() == "end"
    assert memory.space(GROUP).list().total == 1101
    other.kill()
    memory.close()
    again = opened(tmp_path / "a.db")
    assert again.fences() == []


def test_an_import_killed_twice_leaves_fences_that_one_run_lifts(
    opened: Callable[..., ltm.Memory], child: Callable[..., Child], tmp_path: Path
) -> None:
    for _ in range(2):
        other = child()
        other.reads()
        other.kill()
    memory = opened(tmp_path / "a.db")
    assert memory.fences() != []
    memory.space(GROUP, speaker=ALICE).transfer.load(tmp_path / "in.json")
    assert memory.fences() == []


def test_an_import_that_failed_and_was_run_again_to_its_end_leaves_no_fence(
    opened: Callable[..., ltm.Memory], child: Callable[..., Child], tmp_path: Path
) -> None:
    """The first attempt ends in an error (not a crash), the second in the same process does it all."""
    other = child()
    other.reads()
    other.say("fail")
    assert other.reads() == "failed"
    other.say("again")
    assert other.reads() == "failed"
    other.kill()
    memory = opened(tmp_path / "a.db")
    assert memory.space(GROUP).list().total == 1100
    assert memory.fences() == []


def test_an_import_that_failed_and_was_finished_by_the_same_process_leaves_no_intent(
    opened: Callable[..., ltm.Memory], tmp_path: Path
) -> None:
    memory = opened(tmp_path / "a.db")
    space = memory.space(GROUP, speaker=ALICE)

    def fail(done: int, total: int) -> None:
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        space.transfer.load(export_of(600), progress=fail)
    space.transfer.load(export_of(600))
    assert memory.fences() == []
    with memory._file.read() as db:
        assert db.execute("SELECT count(*) FROM intent").get == 0


@pytest.mark.parametrize("n", [2, 600])
def test_an_import_of_episodes_that_supersede_each_other_in_a_circle_is_refused_before_the_first_write(
    memory: ltm.Memory, n: int
) -> None:
    space = memory.space(GROUP, speaker=ALICE)
    space.remember("x")
    episodes = [
        {"id": f"f{i:011x}", "content": f"n {i}", "timestamp": "2025-01-01T00:00:00Z", "status": "superseded", "superseded_by": f"f{(i + 1) % n:011x}"}
        for i in range(n)
    ]  # fmt: skip
    before = state(memory)
    try:
        space.transfer.load(json.dumps({"format": "ltm", "version": 1, "episodes": episodes}).encode())
    except ltm.LtmError:
        assert state(memory) == before
        with memory._file.read() as db:
            assert db.execute("SELECT count(*) FROM intent").get == 0


def died() -> str:
    """A holder that has run on this machine and does no more."""
    script = "import ltm; print(ltm._holder())"
    env = {**os.environ, "PYTHONPATH": str(Path(ltm.__file__).parent)}
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=env).stdout.strip()


def with_intent(path: Path, opened: Callable[..., ltm.Memory], holder: str, lease_us: int, key: str = "k") -> ltm.Memory:
    memory = opened(path)
    memory.space(GROUP, speaker=ALICE).remember("x", operation_key="known")
    memory.close()
    db = apsw.Connection(str(path))
    sql = "INSERT INTO intent (space, operation, operation_key, progress, holder, lease_us) VALUES (1, 'import_l2', ?, '', ?, ?)"
    db.execute(sql, (key, holder, lease_us))
    db.close()
    return opened(path)


def test_an_intent_whose_record_exists_resolves_itself(opened: Callable[..., ltm.Memory], tmp_path: Path) -> None:
    memory = with_intent(tmp_path / "a.db", opened, died(), 0, key="known")
    space = memory.space(GROUP, speaker=ALICE)
    assert (memory.fences(), memory.warnings) == ([], [])
    assert space.audit.list().entries[0].operation == "intent_resolved"
    space.remember("y")
    assert space.audit.verify() == []
    memory.close()
    assert opened(tmp_path / "a.db").space(GROUP).audit.list(operation="intent_resolved").total == 1


def test_an_intent_without_a_record_becomes_a_fence_that_says_it_never_began(
    opened: Callable[..., ltm.Memory], tmp_path: Path
) -> None:
    memory = with_intent(tmp_path / "a.db", opened, died(), START_US * 2)  # its lease runs on, but the process is known to be gone
    assert "before its first step" in memory.fences()[0].reason
    with pytest.raises(ltm.Fenced):
        memory.space(GROUP).remember("y")
    memory.clear_fence(memory.fences()[0].id)


def test_where_a_process_cannot_be_seen_its_lease_decides(opened: Callable[..., ltm.Memory], tmp_path: Path, clock: Clock) -> None:
    memory = with_intent(tmp_path / "a.db", opened, "another-machine 1 77", START_US + 3_600_000_000)
    assert memory.fences() == []
    memory.close()
    clock.forward(1)
    assert [f.operation for f in opened(tmp_path / "a.db").fences()] == ["import_l2"]


def test_a_number_given_to_another_process_later_is_not_the_holder(opened: Callable[..., ltm.Memory], tmp_path: Path) -> None:
    host, pid, started = ltm._holder().rsplit(" ", 2)
    if not started:
        pytest.skip("this system does not tell when a process started")
    memory = with_intent(tmp_path / "a.db", opened, f"{host} {pid} {int(started) - 1}", START_US * 2)
    assert len(memory.fences()) == 1


@pytest.mark.parametrize("holder", ["", "x", "x y", "host notanumber 1", "host 99999999999999999999 1", "host -1 1", "\n \n \n"])
def test_a_holder_that_nobody_can_read_does_not_keep_the_file_shut(
    opened: Callable[..., ltm.Memory], tmp_path: Path, holder: str
) -> None:
    holder = holder.replace("host", ltm._holder().rsplit(" ", 2)[0])
    memory = with_intent(tmp_path / "a.db", opened, holder, 0)
    assert len(memory.fences()) == 1


def test_a_file_opened_for_reading_leaves_intents_alone(opened: Callable[..., ltm.Memory], tmp_path: Path) -> None:
    with_intent(tmp_path / "a.db", opened, ltm._holder(), START_US * 2).close()
    db = apsw.Connection(str(tmp_path / "a.db"))
    db.execute("UPDATE intent SET holder = ?", (died(),))
    db.close()
    memory = opened(tmp_path / "a.db", readonly=True)
    assert memory.fences() == []
    memory.close()
    assert len(opened(tmp_path / "a.db").fences()) == 1


def test_two_processes_that_open_together_make_one_fence(opened: Callable[..., ltm.Memory], tmp_path: Path) -> None:
    with_intent(tmp_path / "a.db", opened, ltm._holder(), START_US * 2).close()
    db = apsw.Connection(str(tmp_path / "a.db"))
    db.execute("UPDATE intent SET holder = ?", (died(),))
    db.close()
    script = "import ltm, sys; m = ltm.open(sys.argv[1]); print(len(m.fences()))"
    env = {**os.environ, "PYTHONPATH": str(Path(ltm.__file__).parent)}
    command = [sys.executable, "-c", script, str(tmp_path / "a.db")]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) for _ in range(2)]
    assert [each.communicate()[0].strip() for each in both] == ["1", "1"]
    assert len(opened(tmp_path / "a.db").fences()) == 1


def test_sequences_of_the_chain_have_no_gap_whatever_fails_between(memory: ltm.Memory, space: ltm.Space) -> None:
    counter = itertools.count()
    id = space.remember("x").id
    for n in range(5):
        with pytest.raises(ltm.LtmError):
            space.remember(f"n{next(counter)}", supersedes=["ffffffffffff"])
        with pytest.raises(ltm.LtmError):
            space.edit(id, content=f"y{n}", version=99)
        space.edit(id, content=f"z{n}")
    assert space.audit.head().partition(":")[0] == "6"
    assert space.audit.verify() == []
