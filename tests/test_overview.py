"""What a person sees of a whole space: pages in an order, days, speakers, several episodes changed at once, and that a file changed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ltm
import ltm_models
from ltm_console import words

from .conftest import Clock

GROUP = ltm.Scope("b1", "group", "7")
ALICE, BOB = ltm.Speaker("u1", "Alice"), ltm.Speaker("u2", "小林")


@pytest.mark.parametrize("order", ltm.ORDERS)
def test_pages_in_any_order_hold_each_episode_once(space: ltm.Space, order: str) -> None:
    same = "2025-05-05T00:00:00Z"
    for n in range(23):
        space.remember(f"thing {n}", importance=n % 5 + 1, created_at=same if n % 3 else None)
    whole = space.list(limit=100, order=order).episodes
    pages: list[ltm.Episode] = []
    cursor = ""
    while True:
        page = space.list(limit=4, order=order, cursor=cursor)
        assert page.total == 23
        pages += page.episodes
        space.remember(f"meanwhile {len(pages)}", importance=1, created_at="1999-01-01T00:00:00Z") if order == "newest" else None
        if not (cursor := page.cursor):
            break
        if order == "newest":
            space.forget(space.recall(f"meanwhile {len(pages)}", limit=1).hits[0].episode.id)
    assert [each.id for each in pages] == [each.id for each in whole]
    times = [each.created_at for each in whole]
    if order == "important":
        assert [(-e.importance, -ltm.to_us(e.created_at)) for e in whole] == sorted(
            (-e.importance, -ltm.to_us(e.created_at)) for e in whole
        )
    else:
        assert times == sorted(times, reverse=order == "newest")


def test_a_cursor_is_of_its_order(space: ltm.Space) -> None:
    for n in range(5):
        space.remember(f"thing {n}")
    plain, weighty = space.list(limit=2).cursor, space.list(limit=2, order="important").cursor
    for cursor, order in ((plain, "important"), (weighty, "newest"), (weighty, "oldest")):
        with pytest.raises(ltm.InvalidInput, match="not a cursor"):
            space.list(cursor=cursor, order=order)
    with pytest.raises(ltm.InvalidInput, match="order must be one of"):
        space.list(order="best")


def test_days_begin_where_the_viewer_is(space: ltm.Space) -> None:
    for at in (
        "2026-01-01T23:30:00Z",
        "2026-01-02T00:30:00Z",
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:00:00Z",
        "1969-12-31T23:59:59Z",
    ):
        space.remember(f"at {at}", created_at=at)
    space.archive(space.remember("put away", importance=5, created_at="2026-01-02T01:00:00Z").id)
    every = ltm.Filter(statuses=ltm.STATUSES)
    assert space.timeline(every) == (
        ltm.Day("0001-01-01", "active", 2, 1),
        ltm.Day("1969-12-31", "active", 2, 1),
        ltm.Day("2026-01-01", "active", 2, 1),
        ltm.Day("2026-01-02", "active", 2, 1),
        ltm.Day("2026-01-02", "archived", 5, 1),
        ltm.Day("9999-12-31", "active", 2, 1),
    )
    assert ltm.Day("2026-01-02", "active", 2, 2) in space.timeline(utc_offset_minutes=480)
    assert ltm.Day("2026-01-01", "active", 2, 2) in space.timeline(utc_offset_minutes=-60)
    assert sum(day.episodes for day in space.timeline(every, utc_offset_minutes=840)) == 6
    assert {each.day for each in space.timeline(utc_offset_minutes=840)} >= {"0001-01-01", "9999-12-31"}
    with pytest.raises(ltm.InvalidInput, match="-840 to 840"):
        space.timeline(utc_offset_minutes=1000)


@pytest.mark.parametrize("second", ["2026-01-01T23:59:59.999999", "1969-12-31T23:59:59.999999", "2026-01-02T00:00:00.000001"])
def test_the_last_moment_of_a_day_is_of_that_day(space: ltm.Space, second: str) -> None:
    space.remember("late", created_at=second + "Z")
    assert [each.day for each in space.timeline()] == [second[:10]]


def test_speakers_are_counted_over_chat_and_bot(memory: ltm.Memory) -> None:
    shared = ltm.Scope("b1", "group", "7", "bot")
    here, there = memory.space(shared, speaker=ALICE), memory.space(ltm.Scope("b1", "group", "8", "bot"), speaker=BOB)
    here.remember("from seven")
    there.remember("from eight")
    here.for_speaker(ltm.Speaker("u1", "Alicia")).profiles.update("traits", "add", "tall", subject="speaker")
    there.profiles.update("traits", "add", "small", subject="speaker")
    found = {each.id: each for each in here.speakers()}
    assert (found["u1"].episodes, found["u1"].facts, set(found["u1"].names)) == (1, 1, {"Alice", "Alicia"})
    assert (found["u2"].episodes, found["u2"].facts, found["u2"].name) == (1, 0, "小林")
    assert memory.space(ltm.Scope("b1", "group", "9")).speakers() == ()


def test_several_are_changed_at_once_or_none(space: ltm.Space) -> None:
    ids = [space.remember(f"thing {n}", tags=["old", "Keep"]).id for n in range(4)]
    before = space.list()
    rehearsed = space.edit_all(ids, importance=5, add_tags=["new"], remove_tags=["OLD"], dry_run=True)
    assert (rehearsed.counts, rehearsed.audit_id, space.list()) == ({"changed": 4, "unchanged": 0}, "", before)
    done = space.edit_all([*ids, ids[0]], importance=5, add_tags=["new", "keep"], remove_tags=["OLD"], status="archived")
    assert done.counts == {"changed": 4, "unchanged": 0}
    changed = space.get(ids[0])
    assert (changed.importance, changed.tags, changed.status, changed.version) == (5, ("Keep", "new"), "archived", 3)
    assert space.edit_all(ids, importance=5).counts == {"changed": 0, "unchanged": 4}
    (entry,) = space.audit.list(operation="edit_bulk").entries
    assert entry.id == done.audit_id
    space.undo(done.audit_id)
    assert [(e.content, e.tags, e.status) for e in space.list().episodes] == [
        (e.content, e.tags, e.status) for e in before.episodes
    ]
    for wrong, error in (
        (lambda: space.edit_all([ids[0], "0" * 12], importance=1), ltm.NotFound),
        (lambda: space.edit_all(ids, importance=9), ltm.InvalidInput),
        (lambda: space.edit_all(ids, status="superseded"), ltm.InvalidInput),
        (lambda: space.edit_all(ids), ltm.InvalidInput),
        (lambda: space.edit_all([], importance=1), ltm.InvalidInput),
        (lambda: space.edit_all(["x"] * 2000 + [str(n) for n in range(1001)], importance=1), ltm.InvalidInput),
    ):
        with pytest.raises(error):
            wrong()
    assert {each.importance for each in space.list().episodes} == {2}


@pytest.mark.parametrize("order", [lambda ids: ids, lambda ids: ids[::-1]], ids=["sources first", "summary first"])
def test_a_summary_that_goes_with_its_sources_is_told_in_any_order(
    memory: ltm.Memory, space: ltm.Space, order: Callable[[list[str]], list[str]]
) -> None:
    memory.configure("consolidation_enabled", True)
    ids = [space.remember(f"thing {n}").id for n in range(2)]
    model = ltm_models.ScriptedModel(json.dumps({"summary": "two things", "cites": ids}))
    summary = space.consolidation.run(space.consolidation.draft(model, ids).id).id
    chosen, before = order([*ids, summary]), space.list()
    rehearsed = space.edit_all(chosen, status="archived", dry_run=True)
    done = space.edit_all(chosen, status="archived")
    assert (done.counts, done.removed) == ({"changed": 2, "unchanged": 0}, (summary,))
    assert (rehearsed.counts, rehearsed.removed) == (done.counts, done.removed)
    assert f"removed {summary}" in words.edited(done)
    space.undo(done.audit_id)
    assert {each.id for each in space.list().episodes} == {each.id for each in before.episodes}


def test_an_edit_of_several_repeats_by_its_key(space: ltm.Space) -> None:
    id = space.remember("thing").id
    first = space.edit_all([id], importance=4, operation_key="k")
    assert space.edit_all([id], importance=4, operation_key="k").audit_id == first.audit_id
    with pytest.raises(ltm.Conflict):
        space.edit_all([id], importance=3, operation_key="k")


def test_who_acts_is_not_who_spoke(memory: ltm.Memory) -> None:
    space = memory.space(GROUP, speaker=ALICE, via="console", actor="operator")
    stored = space.remember("said by Alice")
    entry = space.audit.get(stored.audit_id)
    assert (entry.actor_id, entry.via, space.get(stored.id).speaker) == ("operator", "console", ALICE)
    again = space.for_speaker(BOB)
    assert again.audit.get(again.archive(stored.id).audit_id).actor_id == "operator"


def test_a_follower_sees_that_anybody_wrote(tmp_path: Path, opened: Callable[..., ltm.Memory]) -> None:
    memory = opened(tmp_path / "a.db")
    space = memory.space(GROUP)
    seen = {memory.changes()}
    assert memory.changes() in seen
    space.remember("by ourselves")
    assert memory.changes() not in seen
    seen.add(memory.changes())
    script = f"import sys; sys.path.insert(0, {str(Path(ltm.__file__).parent)!r}); import ltm\n"
    script += f"ltm.open({str(tmp_path / 'a.db')!r}).space(ltm.Scope('b1', 'group', '7')).remember('by another process')"
    subprocess.run([sys.executable, "-c", script], check=True)
    assert memory.changes() not in seen


def test_a_prompt_waits_for_no_writer(tmp_path: Path, opened: Callable[..., Any], clock: Clock) -> None:
    import apsw

    memory = opened(tmp_path / "a.db")
    space = memory.space(GROUP, speaker=ALICE)
    space.remember("Alice flies to Oslo")
    space.inject("Oslo")
    other = apsw.Connection(str(tmp_path / "a.db"))
    other.execute("BEGIN EXCLUSIVE")
    made = space.inject("when does Alice fly to Oslo?", keep=False)
    assert "Oslo" in made.text
    other.execute("ROLLBACK")
    other.close()
    assert len(space.injections()) == 1
    kept = space.keep_injection(made)
    assert space.injections()[0]["id"] == kept.snapshot_id
    assert kept.text == made.text


def test_what_one_chat_s_prompt_got_is_not_kept_in_another(memory: ltm.Memory, space: ltm.Space) -> None:
    space.remember("Alice flies to Oslo")
    other = memory.space(ltm.Scope("b1", "group", "another"))
    other.remember("hello")
    with pytest.raises(ltm.InvalidInput, match="another"):
        other.keep_injection(space.inject("Oslo", keep=False))
    assert other.injections() == []


def test_profiles_show_as_much_as_the_file_says(memory: ltm.Memory, space: ltm.Space) -> None:
    for n in range(8):
        space.profiles.update("traits", "add", f"trait {n}")
    memory.configure("max_profile_traits", 3)
    found = space.profiles.get("speaker")
    assert (len(found.traits), found.hidden) == (3, {"traits": 5})
