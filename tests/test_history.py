"""undo, as_of, at, history, diff: what was can be seen again, and put back."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ltm
import ltm_models

from .conftest import ALICE, BOB, GROUP, START_US, Clock, counting_ids

ALL = ltm.Filter(statuses=ltm.STATUSES)


class Still:
    """A clock that stands unless it is told to go on, so that what is read twice is read at one moment."""

    def __init__(self) -> None:
        self.now_us = START_US

    def __call__(self) -> int:
        return self.now_us

    def tick(self, seconds: float = 60) -> None:
        self.now_us += int(seconds * 1e6)


@pytest.fixture
def still() -> Still:
    return Still()


@pytest.fixture
def quiet(opened: Callable[..., ltm.Memory], still: Still) -> ltm.Space:
    """A space under a clock that stands."""
    return opened(clock=still).space(GROUP, speaker=ALICE)


def state(memory: ltm.Memory) -> dict[str, Any]:
    """Everything that an operation says something of, without versions, times of keeping books, and what only grows."""
    tables = {
        "episode": "key, id, space, speaker, content, importance, source, status, created_us, stored_us, event_us, valid_from_us,"
        " valid_until_us, source_ref, claim_type, superseded_by, pinned, is_update, content_hash, n_terms, document, extra",
        "episode_tag": "key, folded, tag",
        "profile_fact": "id, space, speaker, field, slot, value, status, reason, confidence, created_us, ended_us, stored_us",
        "lineage": "summary, source, source_hash",
        "candidate": "key, id, status, payload, result, updated_us",
    }
    with memory._file.read() as db:
        return {name: db.execute(f"SELECT {columns} FROM {name} ORDER BY 1, 2").fetchall() for name, columns in tables.items()}


def summarised(space: ltm.Space, *ids: str, text: str = "a summary of it all") -> str:
    """Publish a summary of episodes; its id."""
    space._memory.configure("consolidation_enabled", True)
    model = ltm_models.ScriptedModel(json.dumps({"summary": text, "cites": list(ids)}))
    return space.consolidation.run(space.consolidation.draft(model, ids).id).id


# ------------------------------------------------------------------------------------- a machine of operations

WORDS = ["tea in the morning", "coffee at night", "a flight to Tokyo", "喜欢喝绿茶", "the dog is called Bean", "tea, green"]


class Machine:
    """A memory on which drawn operations are run; each that changed something leaves its audit ids."""

    def __init__(self, clock: Any) -> None:
        self.clock = clock
        self.memory = ltm.open(":memory:", clock=clock, ids=counting_ids())
        self.memory.configure("consolidation_enabled", True)
        self.space = self.memory.space(GROUP, speaker=ALICE)
        for n, speaker in enumerate((ALICE, ALICE, BOB, None)):
            self.space.for_speaker(speaker).remember(f"first memory {n}", tags=["x"] if n % 2 else [], importance=n + 1)

    def ids(self, *statuses: str) -> list[str]:
        where = ltm.Filter(statuses=statuses or ltm.STATUSES)
        return sorted(e.id for e in self.space.list(where, limit=500).episodes)

    def pick(self, n: int, *statuses: str) -> str:
        found = self.ids(*statuses)
        return found[n % len(found)] if found else "ffffffffffff"

    def run(self, operation: tuple[str, int, int, int]) -> list[str]:
        """Run one; audit ids of what it did, oldest first. What the product refuses has done nothing."""
        name, a, b, c = operation
        try:
            done = getattr(self, f"do_{name}")(a, b, c)
        except (ltm.NotFound, ltm.Conflict, ltm.InvalidInput):
            return []
        if isinstance(done, (list, tuple)):
            return [each for each in done if each]
        return [done.audit_id] if done.audit_id else []

    def who(self, n: int) -> ltm.Space:
        return self.space.for_speaker([ALICE, BOB, None][n % 3])

    def do_remember(self, a: int, b: int, c: int) -> Any:
        times = {"valid_until": "2027-01-01T00:00:00Z"} if c % 3 == 0 else {}
        return self.who(b).remember(
            WORDS[a % 6] + "!" * (b % 2), importance=1 + c % 5, tags=[["x"], [], ["更正", "Y"]][c % 3], **times
        )

    def do_correct(self, a: int, b: int, c: int) -> Any:
        return self.who(b).remember(f"{WORDS[a % 6]} now", supersedes=[self.pick(n, "active") for n in {b, c}])

    def do_edit(self, a: int, b: int, c: int) -> Any:
        given: list[dict[str, Any]] = [
            {"content": WORDS[b % 6]}, {"content": f"words {b}", "tags": ["n"]}, {"tags": [f"t{b % 3}", "T0"]}, {"importance": 1 + b % 5},
            {"valid_until": "2026-06-01T00:00:00Z"}, {"valid_until": ""}, {"valid_from": "2026-01-01T00:00:00Z", "event_at": "2026-04-01T00:00:00Z"},
            {"pinned": True, "source_ref": "r", "claim_type": "inference"},
        ]  # fmt: skip
        return self.space.edit(self.pick(a), **given[c % len(given)])

    def do_status(self, a: int, b: int, c: int) -> Any:
        return self.space.set_status(self.pick(a), ["active", "archived", "deleted"][b % 3])

    def do_supersede(self, a: int, b: int, c: int) -> Any:
        return self.space.supersede(self.pick(a, "active"), self.pick(b, "active"))

    def do_forget(self, a: int, b: int, c: int) -> Any:
        return self.space.forget(self.pick(a))

    def do_edit_all(self, a: int, b: int, c: int) -> Any:
        status = [None, "active", "archived", "deleted"][c % 4]
        return self.space.edit_all([self.pick(a), self.pick(b)], status=status, importance=a % 5 + 1, add_tags=[WORDS[b % 6]])

    def do_forget_all(self, a: int, b: int, c: int) -> Any:
        wheres = [
            ltm.Filter(tags=["x"]),
            ltm.Filter(speaker_id="u2"),
            ltm.Filter(statuses=["superseded", "archived"]),
            ltm.Filter(importance_min=3),
        ]
        return self.space.forget_all(wheres[a % 4])

    def do_profile(self, a: int, b: int, c: int) -> Any:
        field, slot = [
            ("preferences", "style"),
            ("preferences", ""),
            ("traits", ""),
            ("traits", "job"),
            ("name", ""),
            ("notes", ""),
        ][a % 6]
        values = ["brief", "long", "kind", "tall"]
        previous = values[(b + 1) % 4] if c % 4 == 3 and field != "notes" else ""
        action = ["add", "set", "remove", "add"][c % 4]
        return self.who(b % 2).profiles.update(field, action, values[b % 4], fact_key=slot, previous_value=previous)

    def do_candidate(self, a: int, b: int, c: int) -> Any:
        desk = self.who(b).candidates
        if a % 2:
            found = desk.add("l2_episode", {"content": WORDS[b % 6], "tags": ["candidate"], "importance": 3})
        else:
            found = desk.add(
                "l1_profile",
                {"target_scope": "session", "field": "preferences", "action": "add", "value": f"v{b % 3}", "fact_key": "k"},
            )
        return [each.audit_id for each in (desk.accept(found.id) if c % 3 else desk.reject(found.id))]

    def do_consolidate(self, a: int, b: int, c: int) -> Any:
        return self.space.consolidation.run()

    def do_publish(self, a: int, b: int, c: int) -> Any:
        ids = sorted({self.pick(a, "active"), self.pick(b, "active"), self.pick(c, "active")})
        model = ltm_models.ScriptedModel(json.dumps({"summary": f"summary {a}", "cites": ids}))
        return self.space.consolidation.run(self.space.consolidation.draft(model, ids).id)

    def do_load(self, a: int, b: int, c: int) -> Any:
        old = f"f000000000{a % 2}"
        episodes = [
            {"id": old + "a", "content": f"imported {a % 4}", "timestamp": "2025-01-01T00:00:00Z", "status": "superseded",
             "superseded_by": [old + "b", "0000000000ff"][b % 2], "tags": ["x"], "sender_id": "u2", "sender_name": "Bob", "confidence": 1},
            {"id": old + "b", "content": WORDS[b % 6], "timestamp": "2025-01-02T00:00:00Z", "status": ["active", "archived"][c % 2]},
            {"id": old + "c", "content": f"summary of {a}", "timestamp": "2025-01-03T00:00:00Z", "source": "consolidation", "sources": [old + "b"]},
        ]  # fmt: skip
        fact = {
            "field": "preferences",
            "slot": "style",
            "value": f"p{b % 3}",
            "status": "current",
            "reason": "",
            "confidence": 1 / (3 + c % 3),
        }
        facts = [{**fact, "created_at": ["2025-01-01T00:00:00Z", "2027-01-01T00:00:00Z"][c % 2], "ended_at": ""}]
        profiles = [{"type": "session", "profile": {}, "facts": facts}]
        data = {"format": "ltm", "version": 1, "episodes": episodes, "profiles": profiles}
        return self.space.transfer.load(json.dumps(data).encode(), document=["", "d1", "d2"][c % 3]).audit_ids

    def do_delete_document(self, a: int, b: int, c: int) -> Any:
        return self.space.transfer.delete_document(["d1", "d2"][a % 2])


KINDS = [name.removeprefix("do_") for name in dir(Machine) if name.startswith("do_")]
number = st.integers(0, 11)
operations = st.lists(
    st.tuples(st.sampled_from([*KINDS, "remember", "remember", "edit", "publish"]), number, number, number), min_size=1, max_size=14
)


def test_the_machine_can_do_all_that_it_names() -> None:
    machine, drawn = Machine(Clock()), random.Random(1)
    script = [(drawn.choice(KINDS), *(drawn.randrange(12) for _ in "abc")) for _ in range(150)]
    assert {operation[0] for operation in script if machine.run(operation)} == set(KINDS)
    machine.memory.close()


@settings(max_examples=120)
@given(operations)
def test_operations_undone_newest_first_give_back_the_start(drawn: list[tuple[str, int, int, int]]) -> None:
    machine = Machine(Clock())
    with machine.memory as memory:
        before, done = [], []
        for operation in drawn:
            seen = state(memory)
            for audit in machine.run(operation):
                before.append(seen)
                done.append((operation, audit))
        for seen, (operation, audit) in zip(before[::-1], done[::-1], strict=True):
            if operation[0] == "candidate":  # proposing one is not undone
                seen = {**seen, "candidate": []}
            machine.space.undo(audit)
            found = state(memory)
            if operation[0] == "candidate":
                assert found["candidate"][-1][2] == "pending"
            assert {**found, "candidate": []} == {**seen, "candidate": []}, operation
        assert memory.check() == []


@settings(max_examples=60)
@given(operations)
def test_undoing_each_undo_in_turn_gives_back_the_end(drawn: list[tuple[str, int, int, int]]) -> None:
    machine = Machine(Clock())
    with machine.memory as memory:
        done = [audit for operation in drawn for audit in machine.run(operation)]
        end = state(memory)
        undos = [machine.space.undo(audit).audit_id for audit in done[::-1]]
        start = state(memory)
        redos = [machine.space.undo(audit).audit_id for audit in undos[::-1]]
        assert state(memory) == end
        for audit in redos[::-1]:
            machine.space.undo(audit)
        assert state(memory) == start
        assert memory.check() == []


def seen(space: ltm.Space, ids: list[str], as_of: int | None = None) -> dict[str, Any]:
    """What a space answers to every kind of reading, scores and all."""
    when: dict[str, Any] = {} if as_of is None else {"as_of": ltm.to_iso(as_of)}
    found: dict[str, Any] = {"list": space.list(ALL, limit=500, **when), "active": space.list(limit=2, **when)}
    found["get"] = [space.find(id, **when) for id in ids]
    for text in ("tea", "flight to Tokyo Bob", "绿茶 summary", "words imported x"):
        found[text] = replace(space.recall(text, limit=20, weights=replace(ltm.Weights(), min_relevance=0.0), **when), elapsed=0.0)
    found["ended"] = replace(space.recall("tea", where=ltm.Filter(tags=["x"], at=START_US), **when), elapsed=0.0)
    found["session"], found["alice"] = space.profiles.get("session", **when), space.profiles.get("speaker", **when)
    found["bob"] = space.for_speaker(BOB).profiles.get("speaker", **when)
    return found


@settings(max_examples=20)
@given(operations, st.data())
def test_as_of_answers_what_was_read_then(drawn: list[tuple[str, int, int, int]], data: st.DataObject) -> None:
    clock = Still()
    machine = Machine(clock)
    with machine.memory as memory:
        for speaker in (ALICE, BOB):  # speakers are no part of history; a test of its own is about them
            machine.space.for_speaker(speaker).remember(f"{speaker.name} is here")
            machine.space.for_speaker(speaker).profiles.update("traits", "add", "here")
        moments: list[tuple[int, dict[str, Any]]] = []
        undoable: list[str] = []
        for operation in drawn:
            clock.tick()
            undoable += machine.run(operation)
            if undoable and operation[3] % 4 == 0:
                try:
                    machine.space.undo(undoable.pop())
                except ltm.Conflict:
                    pass
            moments.append((clock.now_us, seen(machine.space, machine.ids())))
        clock.tick(86_400 * 40)
        for at, then in data.draw(st.permutations(moments))[:4]:
            ids = [e.id for e in then["get"]]
            assert seen(machine.space, ids, at) == then
            assert seen(machine.space, ids, at + 59_999_999)["list"] == then["list"]
        assert memory.check() == []


def shown(space: ltm.Space, as_of: int) -> dict[str, Any]:
    page = space.list(ALL, limit=500, as_of=ltm.to_iso(as_of))
    return {episode.id: episode.to_json() for episode in page.episodes}


@settings(max_examples=40)
@given(operations, st.data())
def test_a_diff_leads_from_one_moment_to_the_other(drawn: list[tuple[str, int, int, int]], data: st.DataObject) -> None:
    clock = Still()
    machine = Machine(clock)
    with machine.memory:
        moments = [clock.now_us]
        for operation in drawn:
            clock.tick()
            machine.run(operation)
            moments.append(clock.now_us)
        first, last = sorted(data.draw(st.tuples(st.sampled_from(moments), st.sampled_from(moments))))
        states = [shown(machine.space, at) for at in (first, last)]
        found = [each for each in machine.space.diff(ltm.to_iso(first), ltm.to_iso(last)) if each.kind == "episode"]
        assert len({each.id for each in found}) == len(found)
        patched = {id: dict(values) for id, values in states[0].items()}
        for each in found:
            assert (each.change == "added") == (each.id not in states[0])
            assert (each.change == "removed") == (each.id not in states[1])
            if each.change == "removed":
                assert patched.pop(each.id) == each.before
            else:
                assert all(patched.get(each.id, {}).get(name) == value for name, value in each.before.items())
                patched.setdefault(each.id, {}).update(each.after)
        assert patched == states[1]
        assert machine.space.diff(ltm.to_iso(first), ltm.to_iso(first)) == []


# ---------------------------------------------------------------------------------------------------- undo


def test_an_undo_is_an_operation_that_can_be_undone(space: ltm.Space) -> None:
    id = space.remember("one").id
    edit = space.edit(id, content="two", tags=["t"]).audit_id
    audit, wanted = edit, ["one", "two", "one", "two"]
    for text in wanted:
        audit = space.undo(audit).audit_id
        assert space.get(id).content == text
    entry = space.audit.list().entries[0]
    assert (entry.operation, entry.target_id) == ("undo", id)


@pytest.mark.parametrize("times", [1, 2, 3, 4])
def test_an_operation_is_undone_only_when_nothing_later_holds(space: ltm.Space, times: int) -> None:
    """The later edit is undone and redone by turns; only while it is undone may the first be undone."""
    id = space.remember("one").id
    first = space.edit(id, content="two").audit_id
    last = space.edit(id, content="three").audit_id
    for _ in range(times):
        last = space.undo(last).audit_id
    if times % 2:
        space.undo(first)
        assert space.get(id).content == "one"
    else:
        assert space.get(id).content == "three"
        with pytest.raises(ltm.Conflict):
            space.undo(first)
        assert space.get(id).content == "three"


def test_what_cannot_be_undone_says_why(memory: ltm.Memory, space: ltm.Space) -> None:
    id = space.remember("one").id
    first = space.edit(id, content="two").audit_id
    second = space.edit(id, importance=4).audit_id
    with pytest.raises(ltm.Conflict, match=f"edit {second}"):
        space.undo(first)
    undone = space.undo(second).audit_id
    with pytest.raises(ltm.Conflict, match=f"undone by {undone} already"):
        space.undo(second)
    space.undo(first)
    for unknown in ("ffffffffffff", "", "x' OR 1"):
        with pytest.raises(ltm.NotFound):
            space.undo(unknown)
    export = space.transfer.export() and space.audit.list().entries[0].id
    with pytest.raises(ltm.Conflict, match="nothing that can be put back"):
        space.undo(export)
    fence = memory.fence("frozen", space)
    memory.clear_fence(fence.id)
    with pytest.raises(ltm.Conflict, match="nothing that can be put back"):
        space.undo(space.audit.list(operation="fence_set").entries[0].id)


def test_another_chat_s_operations_are_not_found(memory: ltm.Memory, space: ltm.Space) -> None:
    there = memory.space(ltm.Scope("b1", "group", "8"), speaker=ALICE)
    audit = there.remember("x").audit_id
    space.remember("x")
    with pytest.raises(ltm.NotFound):
        space.undo(audit)


@pytest.mark.parametrize("id", [None, 7, b"x", []])
def test_an_audit_id_that_is_no_text_is_an_error_of_ours(space: ltm.Space, id: Any) -> None:
    space.remember("x")
    with pytest.raises(ltm.LtmError):
        space.undo(id)


def test_undoing_a_second_import_leaves_the_summary_of_the_first(space: ltm.Space) -> None:
    """The same ids with other texts: the summary is known, and what it was drawn from is what it was."""

    def load(text: str) -> str:
        source = {"id": "f0000000000b", "content": text, "timestamp": "2025-01-02T00:00:00Z"}
        summary = {"id": "f0000000000c", "content": "a summary", "timestamp": "2025-01-03T00:00:00Z", "source": "consolidation"}
        data = {"format": "ltm", "version": 1, "episodes": [source, {**summary, "sources": [source["id"]]}]}
        return space.transfer.load(json.dumps(data).encode()).audit_ids[0]

    space.for_speaker(None).remember("tea in the morning")
    load("tea in the morning")
    before = space.list()
    space.undo(load("coffee at night"))
    assert space.list() == before


def test_undo_happens_once_for_a_key(space: ltm.Space) -> None:
    id = space.remember("one").id
    edit = space.edit(id, content="two").audit_id
    first = space.undo(edit, operation_key="k")
    again = space.undo(edit, operation_key="k")
    assert (again.outcome, again.audit_id) == ("repeated", first.audit_id)
    assert space.get(id).content == "one"


def test_undoing_a_correction_lets_both_be_as_they_were(space: ltm.Space) -> None:
    old = space.remember("Tuesday").id
    new = space.remember("Friday", supersedes=[old])
    space.undo(new.audit_id)
    assert (space.get(old).status, space.find(new.id)) == ("active", None)


def test_an_undo_that_would_make_a_twin_is_a_conflict(memory: ltm.Memory, space: ltm.Space) -> None:
    id = space.remember("one").id
    gone = space.forget(id).audit_id
    space.remember("one")
    before = state(memory)
    with pytest.raises(ltm.Conflict, match="active already"):
        space.undo(gone)
    assert state(memory) == before


def test_undo_in_a_bot_s_shared_space_sees_what_other_chats_did(memory: ltm.Memory) -> None:
    one, two = (memory.space(ltm.Scope("b1", "group", n, "bot"), speaker=ALICE) for n in "12")
    id = one.remember("x").id
    edit = one.edit(id, content="y").audit_id
    later = two.edit(id, content="z").audit_id
    with pytest.raises(ltm.Conflict, match=later):
        one.undo(edit)
    two.undo(later)
    one.undo(edit)
    assert one.get(id).content == "x"


SOURCE_CHANGES: dict[str, Callable[[ltm.Space, str], Any]] = {
    "content": lambda space, id: space.edit(id, content="other words"),
    "validity": lambda space, id: space.edit(id, valid_until="2027-01-01T00:00:00Z"),
    "archive": lambda space, id: space.archive(id),
    "forget": lambda space, id: space.forget(id),
    "supersede": lambda space, id: space.remember("better", supersedes=[id]),
}


@pytest.mark.parametrize("change", SOURCE_CHANGES)
def test_undoing_a_change_of_a_source_brings_its_summary_back(memory: ltm.Memory, space: ltm.Space, change: str) -> None:
    a, b = space.remember("alpha").id, space.remember("beta").id
    summary = summarised(space, a, b)
    before = state(memory)
    done = SOURCE_CHANGES[change](space, a)
    assert space.find(summary) is None
    assert done.removed == (summary,)
    undo = space.undo(done.audit_id)
    assert state(memory) == before
    assert space.consolidation.lineage(summary)[0] == [a, b]
    space.undo(undo.audit_id)
    assert space.find(summary) is None


def test_undoing_a_restore_leaves_the_summary_that_was_there_before_it(memory: ltm.Memory, space: ltm.Space) -> None:
    """An export may hold an archived episode and a summary of it."""
    episodes = [
        {"id": "0000000000aa", "content": "alpha", "timestamp": "2025-01-01T00:00:00Z", "status": "archived"},
        {"id": "0000000000bb", "content": "of alpha", "timestamp": "2025-01-01T00:00:00Z", "source": "consolidation", "sources": ["0000000000aa"]},
    ]  # fmt: skip
    space.transfer.load(json.dumps({"format": "ltm", "version": 1, "episodes": episodes}).encode())
    before = state(memory)
    source = space.list(ltm.Filter(statuses=["archived"])).episodes[0].id
    space.undo(space.restore(source).audit_id)
    assert state(memory) == before


def test_a_summary_that_one_operation_touches_twice_comes_back_with_its_lineage(memory: ltm.Memory, space: ltm.Space) -> None:
    nobody = space.for_speaker(None)
    better = nobody.remember("better", tags=["x"]).id
    a, b = space.remember("alpha", tags=["x"]).id, space.remember("beta").id
    summary = summarised(space, a, b)
    nobody.supersede(summary, better)
    before = state(memory)
    done = space.forget_all(ltm.Filter(tags=["x"]))  # first its successor goes, then its source and it with it
    assert space.find(summary) is None
    space.undo(done.audit_id)
    assert state(memory) == before


def test_undoing_an_external_edit_that_swapped_two_texts(opened: Callable[..., ltm.Memory], tmp_path: Path) -> None:
    memory = opened(tmp_path / "a.db")
    space = memory.space(GROUP, speaker=ALICE)
    ids = [space.remember(text).id for text in ("alpha", "beta")]
    with sqlite3.connect(tmp_path / "a.db") as db:
        db.execute("UPDATE episode SET content = iif(content = 'alpha', 'beta', 'alpha')")
    db.close()
    space.remember("gamma")
    edit = space.audit.list(operation="external_edit").entries[0]
    assert [space.get(id).content for id in ids] == ["beta", "alpha"]
    space.undo(edit.id)
    assert [space.get(id).content for id in ids] == ["alpha", "beta"]


def test_undoing_an_external_delete_brings_rows_and_tags_back(opened: Callable[..., ltm.Memory], tmp_path: Path) -> None:
    memory = opened(tmp_path / "a.db")
    space = memory.space(GROUP, speaker=ALICE)
    space.remember("alpha", tags=["a", "B"])
    space.profiles.update("traits", "add", "kind")
    before = state(memory)
    with sqlite3.connect(tmp_path / "a.db") as db:
        db.execute("DELETE FROM episode")
        db.execute("UPDATE profile_fact SET value = 'cruel'")
    db.close()
    space.for_speaker(BOB).remember("gamma")
    assert {fact.value for fact in space.profiles.history("speaker")} == {"cruel"}
    space.undo(space.audit.list(operation="external_edit").entries[0].id)
    space.undo(space.audit.list(operation="remember").entries[0].id)
    assert state(memory) == before


@pytest.mark.parametrize("confidence", [0.1, 1 / 3, 0.1 + 0.2, 0.123456789012345678, 1.0, 5e-324])
def test_numbers_come_back_to_the_last_bit(memory: ltm.Memory, space: ltm.Space, confidence: float) -> None:
    fact = {
        "field": "preferences",
        "slot": "style",
        "value": "p",
        "status": "current",
        "confidence": confidence,
        "created_at": "2025-01-01T00:00:00Z",
    }
    data = {"format": "ltm", "version": 1, "profiles": [{"type": "session", "profile": {}, "facts": [fact]}]}
    space.transfer.load(json.dumps(data).encode())
    before = state(memory)
    space.undo(space.profiles.update("preferences", "set", "q", subject="session", fact_key="style").audit_id)
    assert state(memory) == before


@pytest.mark.parametrize("text", ['quote " and \\ and \n\t\u2028', "\x01\x7f", "😀𠮷", "\ufeff", "'); DROP TABLE x"])
def test_any_text_comes_back_exactly(memory: ltm.Memory, space: ltm.Space, text: str) -> None:
    id = space.remember(f"x{text}", tags=[f"t{text}"], source_ref=f"r{text}").id
    space.profiles.update("notes", "set", f"n{text}")
    before = state(memory)
    audits = [
        space.edit(id, content="y", tags=["t"]).audit_id,
        space.forget(id).audit_id,
        space.profiles.update("notes", "set", "m").audit_id,
    ]
    for audit in audits[::-1]:
        space.undo(audit)
    assert state(memory) == before


def test_undoing_one_batch_of_an_import_takes_its_episodes_back(space: ltm.Space) -> None:
    episodes = [{"id": f"f{n:011x}", "content": f"number {n}", "timestamp": "2025-01-01T00:00:00Z"} for n in range(501)]
    data = json.dumps({"format": "ltm", "version": 1, "episodes": episodes}).encode()
    audits = space.transfer.load(data).audit_ids
    assert len(audits) == 2
    space.undo(audits[0])
    assert space.list(ALL).total == 1
    assert space.transfer.load(data).episodes == 500


# --------------------------------------------------------------------------------------------------- as_of


def test_before_the_first_memory_there_was_nothing(quiet: ltm.Space, still: Still) -> None:
    start = still.now_us
    unwritten = seen(quiet, [])
    still.tick()
    id = quiet.remember("tea", tags=["x"]).id
    quiet.for_speaker(BOB).remember("flight")
    quiet.profiles.update("traits", "add", "kind")
    quiet.for_speaker(BOB).profiles.update("traits", "add", "kind")
    assert quiet.find(id, as_of=ltm.to_iso(start)) is None
    with pytest.raises(ltm.NotFound, match="at 2026"):
        quiet.get(id, as_of=ltm.to_iso(start))
    assert seen(quiet, [], start) == unwritten


def test_the_past_is_read_with_the_embedder_the_weights_and_the_settings_of_today(quiet: ltm.Space, still: Still) -> None:
    memory = quiet.memory
    quiet.remember("Alice likes tea")
    for n in range(3):
        quiet.profiles.update("traits", "add", f"trait {n}", subject="session")
    memory.embedder = ltm.HashEmbedder(32)
    memory.embed_pending()
    at = ltm.to_iso(still.now_us)
    still.tick()
    memory.embedder = None
    assert quiet.recall("tea", as_of=at).mode == "lexical"
    memory.embedder = ltm.HashEmbedder(32)
    assert quiet.recall("tea", as_of=at).mode == "hybrid"
    memory.weights = ltm.Weights(recency=0.0)
    assert quiet.recall("tea", as_of=at).hits[0].why["recency"] == 0
    memory.configure("max_profile_traits", 2)
    assert quiet.profiles.get("session", as_of=at) == quiet.profiles.get("session")


def test_a_moment_begins_with_its_own_microsecond(quiet: ltm.Space, still: Still) -> None:
    id = quiet.remember("one").id
    still.tick()
    quiet.edit(id, content="two")
    at = still.now_us
    still.tick()
    assert quiet.get(id, as_of=ltm.to_iso(at)).content == "two"
    assert quiet.get(id, as_of=ltm.to_iso(at - 1)).content == "one"
    assert quiet.get(id, as_of="2099-01-01T00:00:00Z") == quiet.get(id)


def test_a_name_was_what_it_was(quiet: ltm.Space, still: Still) -> None:
    """A speaker renamed later is shown, listed and found by the name of then."""
    quiet.remember("tea in the morning")
    quiet.remember("the dog is called Bean")
    moment = still.now_us
    where = ltm.Filter(speaker_name="Alice")
    then = (quiet.list(), quiet.list(where).total, replace(quiet.recall("what does Alice drink"), elapsed=0.0))
    still.tick()
    quiet.for_speaker(ltm.Speaker("u1", "Zoe")).remember("coffee")
    at = ltm.to_iso(moment)
    assert quiet.list(where, as_of=at).total == then[1]
    assert quiet.list(as_of=at) == then[0]
    assert replace(quiet.recall("what does Alice drink", as_of=at), elapsed=0.0) == then[2]


def test_a_former_name_finds_its_speaker_in_the_past_as_well(quiet: ltm.Space, still: Still) -> None:
    quiet.remember("tea in the morning")
    still.tick()
    quiet.for_speaker(ltm.Speaker("u1", "Zoe")).remember("coffee")
    still.tick()
    where = ltm.Filter(speaker_name="Alice")
    then = (quiet.list(where).total, replace(quiet.recall("what does Alice drink"), elapsed=0.0))
    moment = ltm.to_iso(still.now_us)
    still.tick()
    assert (
        quiet.list(where, as_of=moment).total,
        replace(quiet.recall("what does Alice drink", as_of=moment), elapsed=0.0),
    ) == then


def test_the_past_is_read_with_the_vectors_that_still_fit(opened: Callable[..., ltm.Memory], still: Still) -> None:
    space = opened(clock=still, embedder=ltm.HashEmbedder()).space(GROUP, speaker=ALICE)
    space.remember("tea in the morning")
    gone = space.remember("coffee at night").id
    then, moment = replace(space.recall("tea", limit=20), elapsed=0.0), ltm.to_iso(still.now_us)
    still.tick()
    space.archive(gone)
    space.remember("tea with milk")
    again = replace(space.recall("tea", limit=20, as_of=moment), elapsed=0.0)
    assert again == then
    assert again.mode == "hybrid"


def test_the_past_is_of_one_scope_only(memory: ltm.Memory, space: ltm.Space) -> None:
    memory.space(ltm.Scope("b1", "group", "8"), speaker=ALICE).remember("theirs")
    memory.space(ltm.Scope("b1", "group", "9", "bot"), speaker=ALICE).remember("the bot's")
    space.remember("mine")
    assert [e.content for e in space.list(ALL, as_of="2099-01-01T00:00:00Z").episodes] == ["mine"]


def test_reading_the_past_writes_nothing_and_what_is_read_cannot_be_written_to(memory: ltm.Memory, space: ltm.Space) -> None:
    space.remember("x")
    with memory._file.read() as db:
        before = db.execute("SELECT count(*), total_changes() FROM audit").fetchone()
    space.recall("x", as_of="2099-01-01T00:00:00Z")
    with memory._file.read() as db:
        assert db.execute("SELECT count(*), total_changes() FROM audit").fetchone() == before
    assert memory.spaces()[0].episodes == 1


@pytest.mark.parametrize("as_of", ["", "yesterday", "2026-13-01T00:00:00Z", True, 1.5, b"x"])
def test_what_is_no_moment_is_refused(space: ltm.Space, as_of: Any) -> None:
    id = space.remember("x").id
    for read in (lambda: space.get(id, as_of=as_of), lambda: space.list(as_of=as_of), lambda: space.recall("x", as_of=as_of),
                 lambda: space.profiles.get(as_of=as_of), lambda: space.diff(as_of)):  # fmt: skip
        with pytest.raises(ltm.InvalidInput):
            read()


def test_history_that_was_let_go_is_not_answered_with_the_present(quiet: ltm.Space, still: Still) -> None:
    """After a close the states before it are gone: to say so is right, to show today's text as that of then is not."""
    id = quiet.remember("one").id
    moment = still.now_us
    still.tick()
    quiet.edit(id, content="two")
    still.tick()
    quiet.remember("three")
    still.tick()
    quiet.audit.close(ltm.to_iso(still.now_us))
    try:
        found = quiet.get(id, as_of=ltm.to_iso(moment)).content
    except ltm.LtmError:
        return
    assert found == "one"


# ------------------------------------------------------------------------------------------------------ at


def test_at_shows_what_holds_at_a_moment(space: ltm.Space) -> None:
    space.remember("rent one", valid_until="2026-02-01T00:00:00Z")
    space.remember("rent two", valid_from="2026-02-01T00:00:00Z", valid_until="2026-04-01T00:00:00Z")
    space.remember("rent always")
    for at, wanted in [("2026-01-31T23:59:59.999999Z", {"one", "always"}), ("2026-02-01T00:00:00Z", {"two", "always"}),
                       ("2026-03-31T23:59:59.999999Z", {"two", "always"}), ("2026-04-01T00:00:00Z", {"always"})]:  # fmt: skip
        where = ltm.Filter(at=at)
        assert {e.content.split()[1] for e in space.list(where).episodes} == wanted
        assert {h.episode.content.split()[1] for h in space.recall("rent", where=where)} == wanted


def test_recall_drops_what_has_ended_and_says_how_many(space: ltm.Space) -> None:
    space.remember("rent one", valid_until="2026-02-01T00:00:00Z")
    space.remember("rent two")
    found = space.recall("rent")
    assert ([h.episode.content for h in found], found.dropped["ended"]) == (["rent two"], 1)
    assert len(space.recall("rent", where=ltm.Filter(include_ended=True))) == 2


# ------------------------------------------------------------------------------------------------- history


def test_history_of_what_never_changed_is_its_one_state(quiet: ltm.Space, still: Still) -> None:
    id = quiet.remember("one").id
    (only,) = quiet.history(id)
    assert (only.episode, only.since, only.until, only.audit_id) == (quiet.get(id), ltm.to_iso(still.now_us), "", "")


def test_history_shows_every_state_with_what_ended_it(quiet: ltm.Space, still: Still) -> None:
    id = quiet.remember("one", tags=["t"]).id
    steps: list[tuple[str, str, str]] = []
    wanted = []
    calls: list[Callable[[], Any]] = [
        lambda: quiet.edit(id, content="two", tags=["u", "T"]), lambda: quiet.archive(id), lambda: quiet.restore(id),
        lambda: quiet.remember("three", supersedes=[id]), lambda: quiet.forget(id),
    ]  # fmt: skip
    since = still.now_us
    for call in calls:
        state_now = quiet.get(id)
        still.tick()
        audit = call().audit_id
        wanted.append((state_now, ltm.to_iso(since), ltm.to_iso(still.now_us), audit))
        since = still.now_us
    assert [(v.episode, v.since, v.until, v.audit_id) for v in quiet.history(id)] == wanted
    steps = [(v.operation, "", "") for v in quiet.history(id)]
    assert [name for name, _, _ in steps] == ["edit", "archived", "restore", "remember", "forget"]
    still.tick()
    quiet.undo(wanted[-1][3])
    last = quiet.history(id)[-1]
    assert (last.episode, last.since, last.until) == (quiet.get(id), ltm.to_iso(still.now_us), "")
    assert len(quiet.history(id)) == 6


@pytest.mark.parametrize("id", ["ffffffffffff", "", "\ud800"])
def test_history_of_nothing_is_not_found(memory: ltm.Memory, space: ltm.Space, id: str) -> None:
    with pytest.raises(ltm.NotFound):
        space.history(id)
    there = memory.space(ltm.Scope("b1", "group", "8")).remember("x").id
    space.remember("y")
    memory.space(ltm.Scope("b1", "group", "8")).edit(there, content="z")
    for each in (id, there):
        with pytest.raises(ltm.NotFound):
            space.history(each)


# ---------------------------------------------------------------------------------------------------- diff


def test_diff_names_the_fields_that_changed(quiet: ltm.Space, still: Still) -> None:
    kept, gone = quiet.remember("one").id, quiet.remember("two").id
    quiet.profiles.update("traits", "add", "kind", fact_key="t")
    start = ltm.to_iso(still.now_us)
    still.tick()
    quiet.edit(kept, importance=5, tags=["n"])
    quiet.forget(gone)
    new = quiet.remember("three").id
    quiet.profiles.update("traits", "add", "tall", fact_key="t")
    episodes = {d.id: d for d in quiet.diff(start) if d.kind == "episode"}
    assert set(episodes) == {kept, gone, new}
    assert (episodes[kept].before, episodes[kept].after) == ({"importance": 2, "tags": []}, {"importance": 5, "tags": ["n"]})
    assert (episodes[gone].change, episodes[gone].after) == ("removed", {})
    assert (episodes[new].change, episodes[new].before) == ("added", {})
    facts = [(d.change, d.after.get("value"), d.after.get("status")) for d in quiet.diff(start) if d.kind == "fact"]
    assert facts == [("changed", None, "superseded"), ("added", "tall", "current")]


def test_what_came_and_went_between_is_no_difference(quiet: ltm.Space, still: Still) -> None:
    id = quiet.remember("one").id
    start = ltm.to_iso(still.now_us)
    still.tick()
    quiet.forget(quiet.remember("two").id)
    quiet.undo(quiet.edit(id, content="x").audit_id)
    assert quiet.diff(start) == []
    with pytest.raises(ltm.InvalidInput, match="must not be after"):
        quiet.diff("2099-01-01T00:00:00Z")


def test_diff_of_one_space_tells_nothing_of_another(memory: ltm.Memory, space: ltm.Space) -> None:
    space.remember("mine")
    memory.space(ltm.Scope("b1", "group", "8"), speaker=ALICE).remember("theirs")
    memory.space(ltm.Scope("b1", "group", "8"), speaker=ALICE).profiles.update("notes", "set", "theirs")
    assert [d.after["content"] for d in space.diff("2020-01-01T00:00:00Z")] == ["mine"]


# ------------------------------------------------------------------------------- files of schema version 1


class Old:
    """Writes a file as the first version did: base rows, revisions by its triggers, audit entries in its words."""

    def __init__(self, path: Path) -> None:
        self.db = apsw.Connection(str(path))
        self.db.execute(f"PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA application_id = {ltm.APPLICATION_ID}")
        self.db.execute(ltm._migrations()[0])
        self.db.execute("PRAGMA user_version = 1")
        self.at = START_US - 86_400_000_000
        self.db.execute(
            "INSERT INTO space (kind, bot, launcher_type, launcher_id, created_us) VALUES ('session', 'b1', 'group', '7', ?)",
            (self.at,),
        )
        self.db.execute(
            "INSERT INTO speaker (space, sender_id, name, first_us, last_us) VALUES (1, 'u1', 'Alice', ?1, ?1)", (self.at,)
        )
        self.db.execute("INSERT INTO speaker_name VALUES (1, 'Alice', ?)", (self.at,))

    def done(self, operation: str, target_type: str, target: str, **detail: Any) -> tuple[str, int]:
        """Close an operation: its entry, its revisions, its index rows. The audit id, and when it was."""
        entry = {
            "space": 1,
            "at_us": self.at,
            "operation": operation,
            "target_type": target_type,
            "target_id": target,
            "via": "api",
        }
        key, id = ltm._append_audit(self.db, entry, {"actor_id": "u1", **detail})
        self.db.execute("UPDATE revision SET audit = ?, ended_us = ? WHERE audit IS NULL", (key, self.at))
        ltm._index_edits(self.db, {})
        at, self.at = self.at, self.at + 60_000_000
        return id, at

    def remember(self, n: int, text: str, tags: tuple[str, ...] = (), supersedes: int = 0) -> tuple[str, int]:
        key, id = (1 << 32) + n, f"{n:012x}"
        digest = ltm._content_hash(text, None, None)
        sql = "INSERT INTO episode (key, id, space, speaker, content, created_us, stored_us, content_hash) VALUES (?, ?, 1, 1, ?, ?, ?, ?)"
        self.db.execute(sql, (key, id, text, self.at, self.at, digest))
        ltm._set_tags(self.db, key, {tag.lower(): tag for tag in tags})
        if supersedes:
            sql = "UPDATE episode SET status = 'superseded', superseded_by = ?, version = version + 1 WHERE key = ?"
            self.db.execute(sql, (key, (1 << 32) + supersedes))
        return self.done("remember", "episode", id, supersedes=[f"{supersedes:012x}"] if supersedes else [])

    def prefer(self, slot: str, value: str, replaces: str = "") -> tuple[str, int]:
        self.db.execute(
            "UPDATE profile_fact SET status = 'superseded', reason = 'profile_update', ended_us = ? WHERE value = ?",
            (self.at, replaces),
        )
        sql = "INSERT INTO profile_fact (space, speaker, field, slot, value, created_us) VALUES (1, 1, 'preferences', ?, ?, ?)"
        self.db.execute(sql, (slot, value, self.at))
        return self.done(
            "update_profile",
            "speaker_profile",
            "speaker:1",
            field="preferences",
            action="add",
            target_scope="speaker",
            fact_key=slot,
        )


@pytest.fixture
def old(tmp_path: Path) -> Iterator[Old]:
    made = Old(tmp_path / "old.db")
    yield made
    made.db.close()


def upgraded(opened: Callable[..., ltm.Memory], old: Old, tmp_path: Path) -> ltm.Space:
    old.db.close()
    memory = opened(tmp_path / "old.db")
    assert memory.check() == []
    return memory.space(GROUP, speaker=ALICE)


def test_the_past_of_an_old_file_can_be_seen(opened: Callable[..., ltm.Memory], old: Old, tmp_path: Path) -> None:
    _, first = old.remember(1, "flies on Tuesday", ("Travel", "b"))
    _, second = old.remember(2, "flies on Friday", supersedes=1)
    _, third = old.prefer("style", "brief")
    _, fourth = old.prefer("style", "long", replaces="brief")
    space = upgraded(opened, old, tmp_path)
    was, now = f"{1:012x}", f"{2:012x}"
    then = space.get(was, as_of=ltm.to_iso(first))
    assert (then.status, then.superseded_by, then.tags, then.version) == ("active", "", ("b", "Travel"), 1)
    assert [e.id for e in space.list(as_of=ltm.to_iso(first)).episodes] == [was]
    assert [e.id for e in space.list(as_of=ltm.to_iso(second)).episodes] == [now]
    assert [h.episode.id for h in space.recall("Tuesday", as_of=ltm.to_iso(first))] == [was]
    found = {at: space.profiles.get("speaker", as_of=ltm.to_iso(at)).preferences for at in (second, third, fourth)}
    assert found == {second: (), third: ("brief",), fourth: ("long",)}
    assert [(v.episode.status, v.operation) for v in space.history(was)] == [("active", "remember"), ("superseded", "")]
    changes = {d.id: d.change for d in space.diff(ltm.to_iso(first), ltm.to_iso(second))}
    assert changes == {was: "changed", now: "added"}


def test_an_old_file_s_memories_can_be_undone_newest_first(opened: Callable[..., ltm.Memory], old: Old, tmp_path: Path) -> None:
    first, _ = old.remember(1, "flies on Tuesday", ("Travel", "b"))
    second, _ = old.remember(2, "flies on Friday", supersedes=1)
    space = upgraded(opened, old, tmp_path)
    with pytest.raises(ltm.Conflict):
        space.undo(first)
    space.undo(second)
    assert (space.get(f"{1:012x}").status, space.get(f"{1:012x}").tags) == ("active", ("b", "Travel"))
    assert space.find(f"{2:012x}") is None
    space.undo(first)
    assert space.list(ALL).total == 0


@pytest.mark.parametrize("slot", ["style", ""])
def test_an_old_profile_edit_is_undone_whole_or_not_at_all(
    opened: Callable[..., ltm.Memory], old: Old, tmp_path: Path, slot: str
) -> None:
    """Entries of the first version do not name the facts they made."""
    old.prefer(slot, "brief")
    audit, _ = old.prefer(slot, "long", replaces="brief")
    space = upgraded(opened, old, tmp_path)
    before = state(space._memory)
    try:
        space.undo(audit)
    except ltm.Conflict as error:
        words = str(error)
    else:
        assert space.profiles.get("speaker").preferences == ("brief",)
        return
    assert state(space._memory) == before
    assert "holds a value by now" not in words  # nobody changed it since: those words mislead


def test_an_old_file_deletes_and_edits_go_on_from_old_images(opened: Callable[..., ltm.Memory], old: Old, tmp_path: Path) -> None:
    old.remember(1, "flies on Tuesday", ("Travel",))
    old.db.execute("UPDATE episode SET content = 'flies on Monday', version = 2")
    edit, _ = old.done("edit", "episode", f"{1:012x}")
    old.db.execute("DELETE FROM episode")
    gone, _ = old.done("forget", "episode", f"{1:012x}")
    space = upgraded(opened, old, tmp_path)
    space.undo(gone)
    assert (space.get(f"{1:012x}").content, space.get(f"{1:012x}").tags) == ("flies on Monday", ("Travel",))
    space.undo(edit)
    assert space.get(f"{1:012x}").content == "flies on Tuesday"
    assert space.get(f"{1:012x}").version > 2


def test_undoing_an_old_correction_by_a_text_that_was_there_keeps_that_text(
    opened: Callable[..., ltm.Memory], old: Old, tmp_path: Path
) -> None:
    """The first version did not note that `remember` found its text stored already."""
    old.remember(1, "flies on Tuesday")
    old.remember(2, "flies on Friday")
    old.db.execute("UPDATE episode SET status = 'superseded', superseded_by = (1 << 32) + 2, version = 2 WHERE key = (1 << 32) + 1")
    audit, _ = old.done("remember", "episode", f"{2:012x}", supersedes=[f"{1:012x}"])
    space = upgraded(opened, old, tmp_path)
    space.undo(audit)
    assert {e.content for e in space.list().episodes} == {"flies on Tuesday", "flies on Friday"}
