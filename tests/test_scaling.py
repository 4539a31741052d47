"""What an operation on one thing costs does not grow with what else the space holds. Counted in steps of SQLite's machine, not in time."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import ltm
import ltm_models

from .conftest import ALICE, GROUP, Clock, counting_ids

SMALL, LARGE = 30, 3_000
OPERATIONS: dict[str, Callable[[ltm.Space, str], Any]] = {
    "remember": lambda s, id: s.remember("something new"),
    "remember again": lambda s, id: s.remember(s.get(id).content),
    "correct": lambda s, id: s.remember("something corrected", supersedes=[id]),
    "edit": lambda s, id: s.edit(id, content=f"another text {id}", tags=["x"]),
    "archive": lambda s, id: s.archive(id),
    "restore": lambda s, id: (s.archive(id), s.restore(id)),
    "forget": lambda s, id: s.forget(id),
    "undo": lambda s, id: s.undo(s.forget(id).audit_id),
    "find": lambda s, id: s.get(id),
    "list": lambda s, id: s.list(limit=10),
    "list the oldest": lambda s, id: s.list(limit=10, order="oldest"),
    "edit several": lambda s, id: s.edit_all([id], importance=5, add_tags=["x"], status="archived"),
    "list on": lambda s, id: s.list(limit=10, cursor=s.list(limit=20).cursor),
    "audit list": lambda s, id: s.audit.list(limit=10),
    "import": lambda s, id: s.transfer.load(json.dumps([{"id": "zz", "content": "imported", "sender_id": "u1"}]).encode()),
    "delete a document": lambda s, id: (s.transfer.load_document("d", b'[{"content": "page"}]'), s.transfer.delete_document("d")),
    "publish": lambda s, id: publish(s, [id, s.list(limit=9).episodes[-1].id]),
    "profile": lambda s, id: s.profiles.update("preferences", "set", "tea", fact_key="drink"),
    "extract": lambda s, id: s.candidates.extract("I prefer tea.", force=True),
    "fence": lambda s, id: s.memory.clear_fence(s.memory.fence("x", s).id),
}


def publish(space: ltm.Space, ids: list[str]) -> None:
    model = ltm_models.ScriptedModel(json.dumps({"summary": f"both {ids[0]}", "cites": ids}))
    space.consolidation.run(space.consolidation.draft(model, ids).id)


def steps_of(size: int, operation: Callable[[ltm.Space, str], Any]) -> int:
    """Hundreds of machine steps of an operation in a space of so many episodes."""
    with ltm.open(":memory:", clock=Clock(), ids=counting_ids()) as memory:
        memory.configure("consolidation_enabled", True)
        space = memory.space(GROUP, speaker=ALICE)
        with memory.batch():
            ids = [space.remember(f"text number {number}").id for number in range(size)]
        operation(space, ids[-1])  # connections, caches, statistics
        return counted(memory, lambda: operation(space, ids[-3] if operation is not OPERATIONS["import"] else ""))


def counted(memory: ltm.Memory, work: Callable[[], Any]) -> int:
    """Hundreds of machine steps that something takes."""
    steps = [0]

    def count() -> bool:
        steps[0] += 1
        return False

    for db in memory._file._all:
        db.set_progress_handler(count, 100)
    work()
    for db in memory._file._all:
        db.set_progress_handler(None)
    return steps[0]


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_costs_the_same_in_a_large_space(name: str) -> None:
    small, large = steps_of(SMALL, OPERATIONS[name]), steps_of(LARGE, OPERATIONS[name])
    assert large <= 2 * small + 20, f"{small} and {large} hundred steps"


def test_speakers_cost_in_proportion_to_how_many_there_are() -> None:
    def steps(size: int) -> int:
        with ltm.open(":memory:", clock=Clock(), ids=counting_ids()) as memory:
            space = memory.space(GROUP)
            with memory.batch():
                for number in range(size):
                    speaker = space.for_speaker(ltm.Speaker(f"u{number}", "Bob"))
                    speaker.profiles.update("traits", "add", "tall", subject="speaker")
            assert sum(each.facts for each in space.speakers()) == size
            return counted(memory, space.speakers)

    small, large = steps(50), steps(500)
    assert large <= 15 * small, f"{small} and {large} hundred steps"
