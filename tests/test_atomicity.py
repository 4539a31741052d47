"""One operation, one transaction: whatever SQL statement of it fails, the file is as before or as after, and its audit agrees."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

import ltm
import ltm_models

from .conftest import ALICE, BOB, GROUP, Clock, counting_ids

TABLES = (
    *("space", "speaker", "speaker_name", "profile_fact", "episode", "episode_tag", "lineage", "candidate", "proposal"),
    *(
        "proposal_source",
        "injection",
        "audit",
        "audit_segment",
        "revision",
        "operation",
        "intent",
        "fence",
        "certificate",
        "erased",
    ),
    *("setting", "speaker_alias", "episode_fts_docsize", "episode_vector", "job", "stale"),
)


def dump(db: apsw.Connection) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all tables, base and derived."""
    return {table: sorted(db.execute(f"SELECT * FROM {table}").fetchall(), key=repr) for table in TABLES}


class Failing(Exception):
    """What a statement is made to raise."""


def prepared(path: Path) -> None:
    """A file with something of everything in it."""
    with ltm.open(path, clock=Clock(), ids=counting_ids(), embedder=ltm.HashEmbedder(32)) as memory:
        memory.configure("candidate_extraction_enabled", True)
        memory.configure("consolidation_enabled", True)
        memory.configure("consolidation_min_age_days", 0)
        space = memory.space(GROUP, speaker=ALICE)
        first = space.remember("the flight is on Tuesday", tags=["travel"])
        second = space.remember("the flight is on Friday", supersedes=[first.id])
        third = space.remember("the hotel is by the river")
        space.profiles.update("preferences", "set", "tea", fact_key="drink")
        space.candidates.extract("I prefer window seats. Tomorrow we meet Bob at 5 pm.")
        answer = json.dumps({"summary": "travel plans", "cites": [second.id, third.id]})
        space.consolidation.draft(ltm_models.ScriptedModel(answer), [second.id, third.id])
        space.inject("when is the flight?")
        fourth = space.remember("the dog is called Rex", tags=["pets"])
        space.remember("Rex is seven", tags=["pets"])
        space.forget(fourth.id)


def of(space: ltm.Space, content: str) -> str:
    found = [each.id for each in space.list(ltm.Filter(statuses=ltm.STATUSES)).episodes if each.content == content]
    return found[0]


EXPORT = json.dumps(
    [
        {"id": "a" * 12, "content": "imported", "status": "superseded", "superseded_by": "b" * 12, "sender_id": "u7"},
        {"id": "b" * 12, "content": "imported later", "tags": ["x"], "sender_id": "u7", "sender_name": "Zed", "odd": 1},
    ]
).encode()
PROFILES = json.dumps(
    {"version": 1, "profiles": [{"type": "session", "profile": {"name": "Club", "freeform_traits": ["loud"]}}]}
).encode()

OPERATIONS: dict[str, Callable[[ltm.Space], Any]] = {
    "remember": lambda s: s.remember("a new thing", tags=["a", "b"], operation_key="k1"),
    "remember as somebody new": lambda s: s.for_speaker(BOB).remember("Bob's thing"),
    "remember superseding": lambda s: s.remember("the flight is on Sunday", supersedes=[of(s, "the flight is on Friday")]),
    "edit": lambda s: s.edit(of(s, "the hotel is by the river"), content="the hotel is by the sea", tags=["travel"], importance=5),
    "edit_all": lambda s: s.edit_all(
        [of(s, "Rex is seven"), of(s, "the hotel is by the river")], status="archived", add_tags=["x"]
    ),
    "archive with a draft that cites it": lambda s: s.archive(of(s, "the hotel is by the river")),
    "restore": lambda s: s.restore(s.archive(of(s, "Rex is seven")).id),
    "supersede": lambda s: s.supersede(of(s, "Rex is seven"), of(s, "the flight is on Friday")),
    "forget": lambda s: s.forget(of(s, "Rex is seven")),
    "forget_all": lambda s: s.forget_all(ltm.Filter(statuses=ltm.STATUSES, tags=["travel"])),
    "undo": lambda s: s.undo(s.audit.list(operation="forget").entries[0].id),
    "undo of a correction": lambda s: s.undo(s.audit.list(target=of(s, "the flight is on Friday")).entries[0].id),
    "profile set": lambda s: s.profiles.update("preferences", "set", "coffee", fact_key="drink", operation_key="k2"),
    "profile remove": lambda s: s.profiles.update("preferences", "remove", fact_key="drink"),
    "extract": lambda s: s.candidates.extract("I like jazz. On Friday we leave for Rome."),
    "accept": lambda s: s.candidates.accept(*[each.id for each in s.candidates.list().candidates]),
    "reject": lambda s: s.candidates.reject(*[each.id for each in s.candidates.list().candidates]),
    "archive superseded": lambda s: s.consolidation.run(),
    "publish": lambda s: s.consolidation.run(s.consolidation.proposals()[0].id),
    "reject a proposal": lambda s: s.consolidation.reject(s.consolidation.proposals()[0].id),
    "import": lambda s: s.transfer.load(EXPORT),
    "import of profiles": lambda s: s.transfer.load(PROFILES),
    "import of a document": lambda s: s.transfer.load_document("d1", EXPORT),
    "inject": lambda s: s.inject("when is the flight?"),
    "erase a speaker": lambda s: s.erase(speaker=ALICE.id),
    "erase everything": lambda s: s.erase(everything=True),
    "audit close": lambda s: s.audit.close(s.audit.list().entries[3].at),
    "fence": lambda s: s.memory.fence("stop", s),
    "configure": lambda s: s.memory.configure("injection_budget", 900),
    "reindex": lambda s: s.memory.reindex(),
}
STEPS = {"restore": 2, "erase a speaker": 2, "erase everything": 2, "reindex": 3, "edit": 1}  # transactions an operation has


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_that_fails_at_any_statement_leaves_the_file_as_before_or_after(tmp_path: Path, name: str) -> None:
    prepared(tmp_path / "start.db")
    states: list[Any] = []
    for number in range(1, 2_000):
        path = tmp_path / f"{number}.db"
        path.write_bytes((tmp_path / "start.db").read_bytes())
        clock = Clock()
        clock.forward(1)
        memory = ltm.open(path, clock=clock, ids=counting_ids_from(0xF000), embedder=ltm.HashEmbedder(32))
        space = memory.space(GROUP, speaker=ALICE)
        memory._ensure_index(writing=True)
        memory._calibrated(memory.embedder)
        before = read(memory)
        count = fail_at(memory, number)
        failed = False
        try:
            OPERATIONS[name](space)
        except (Failing, ltm.LtmError):
            failed = True
        memory._file._writer.exec_trace = None  # type: ignore[union-attr]
        after = read(memory)
        assert memory.check() == [], number
        assert space.audit.verify() == [], number
        memory.close()
        path.unlink()
        if not states or after != states[-1]:
            states.append(after)
        assert after == before or len(states) <= STEPS.get(name, 1) + 1, f"statement {number} left a state between"
        if count[0] < number:
            assert not failed
            assert after != before
            break
    else:
        raise AssertionError("it never came to an end")
    assert number > 5
    assert states[0] == before
    assert len(states) <= STEPS.get(name, 1) + 1


def counting_ids_from(start: int) -> Callable[[], str]:
    ids = iter(range(start, start + 10_000))
    return lambda: f"{next(ids):012x}"


def read(memory: ltm.Memory) -> dict[str, list[tuple[Any, ...]]]:
    with memory._file.read() as db:
        return dump(db)


def fail_at(memory: ltm.Memory, number: int) -> list[int]:
    """Make the nth statement of the writer raise; returns a cell that counts statements."""
    count = [0]

    def trace(cursor: apsw.Cursor, sql: str, bindings: Any) -> bool:
        if sql.lstrip().upper().startswith(("ROLLBACK", "SAVEPOINT", "RELEASE")):
            return True
        count[0] += 1
        if count[0] == number:
            raise Failing(sql[:80])
        return True

    memory._file._writer.exec_trace = trace  # type: ignore[union-attr]
    return count


def test_a_full_disk_in_the_middle_changes_nothing(tmp_path: Path) -> None:
    prepared(tmp_path / "a.db")
    with ltm.open(tmp_path / "a.db", clock=Clock(), ids=counting_ids_from(0xF000)) as memory:
        space = memory.space(GROUP, speaker=ALICE)
        before = read(memory)
        writer = memory._file._writer
        assert writer is not None
        writer.execute(f"PRAGMA max_page_count = {writer.execute('PRAGMA page_count').get}")
        with pytest.raises(ltm.StorageError, match="full"):
            for number in range(2_000):
                space.remember("x" * 5_000 + str(number))
        writer.execute("PRAGMA max_page_count = 1073741823")
        assert memory.check() == []
        stored = space.list(ltm.Filter(), limit=500).total
        assert stored >= len([row for row in before["episode"] if "active" in row])
        space.remember("and it goes on")


class Disk(apsw.VFS):
    """A disk on which writing to the log back to stable storage fails when told to."""

    def __init__(self) -> None:
        self.name, self.failing = "ltm-failing-disk", 0
        super().__init__(self.name, "")

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        return DiskFile(self, name, flags)


class DiskFile(apsw.VFSFile):
    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self.disk, self.is_log = disk, str(name.filename() if hasattr(name, "filename") else name).endswith("-wal")

    def xSync(self, flags: int) -> None:
        if self.is_log and self.disk.failing:
            self.disk.failing -= 1
            raise apsw.IOError("the disk does not answer")
        super().xSync(flags)


@pytest.fixture
def disk() -> Iterator[Disk]:
    disk = Disk()
    yield disk
    disk.unregister()


@pytest.mark.parametrize("failures", [1, 2, 3])
def test_a_commit_that_ends_in_an_io_error_is_looked_up_and_not_guessed(tmp_path: Path, disk: Disk, failures: int) -> None:
    memory = ltm.open(tmp_path / "a.db", clock=Clock(), ids=counting_ids(), vfs=disk.name)
    space = memory.space(GROUP, speaker=ALICE)
    space.remember("before")
    disk.failing = failures
    told: list[bool] = []
    for number in range(4):
        try:
            space.remember(f"attempt {number}", operation_key=f"k{number}")
            told.append(True)
        except (ltm.StorageError, ltm.Fenced):
            told.append(False)
        assert space.recall("before").hits, "reading goes on"
    assert told[-1], "writing goes on once the disk does"
    assert not told[0] or failures == 0
    stored = {each.content for each in space.list(limit=50).episodes}
    assert stored == {"before"} | {f"attempt {number}" for number, ok in enumerate(told) if ok}
    assert memory.check() == []
    memory.close()
    with ltm.open(tmp_path / "a.db") as again:
        assert {each.content for each in again.space(GROUP).list(limit=50).episodes} == stored
