"""archive, restore, supersede, edit, forget, forget_all: legal transitions, vectors, exactly-once, isolation."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

import ltm
import ltm_models

from .conftest import ALICE, BOB, GROUP, texts

ALL = ltm.Filter(statuses=ltm.STATUSES)
ELSEWHERE = ltm.Scope("b1", "group", "8")


def dump(memory: ltm.Memory) -> list[Any]:
    """Every row of every table but the word index: what must not change when a write fails."""
    with memory._file.read() as db:
        sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'episode_fts%' ORDER BY 1"
        return [(name, db.execute(f"SELECT * FROM {name} ORDER BY 1, 2").fetchall()) for (name,) in db.execute(sql).fetchall()]


def vector(memory: ltm.Memory, id: str) -> bytes | None:
    with memory._file.read() as db:
        sql = "SELECT v.vector FROM episode_vector v JOIN episode e ON v.key & ~(1 << 62) = e.key WHERE e.id = ?"
        found: bytes | None = db.execute(sql, (id,)).get
        return found


# Every verb on one episode, as name -> call with an id; the second argument is another episode's id.
VERBS: dict[str, Callable[..., Any]] = {
    "archive": lambda s, id, other, **o: s.archive(id, **o),
    "restore": lambda s, id, other, **o: s.restore(id, **o),
    "delete": lambda s, id, other, **o: s.set_status(id, "deleted", **o),
    "supersede": lambda s, id, other, **o: s.supersede(id, other, **o),
    "edit": lambda s, id, other, **o: s.edit(id, content="new words", **o),
    "forget": lambda s, id, other, **o: s.forget(id, **o),
}
each_verb = pytest.mark.parametrize("verb", VERBS)


# --------------------------------------------------------------------------------------------- statuses


@pytest.mark.parametrize("status", ["archived", "deleted"])
def test_what_is_put_away_is_kept_whole_and_not_recalled(space: ltm.Space, status: str) -> None:
    id = space.remember("Tokyo flight", tags=["Travel"], importance=4, event_at="2026-12-08T00:00:00Z").id
    before = space.get(id).to_json()
    done = space.set_status(id, status)
    assert (done.id, done.outcome) == (id, "changed")
    assert space.get(id).to_json() == {**before, "status": status}
    assert texts(space.recall("Tokyo flight")) == []
    assert space.list().total == 0
    assert [e.id for e in space.list(ltm.Filter(statuses=[status])).episodes] == [id]
    assert space.why_not(id, "Tokyo flight").code == "status"
    space.restore(id)
    assert space.get(id).to_json() == before
    assert texts(space.recall("Tokyo flight")) == ["Tokyo flight"]


@pytest.mark.parametrize("first", ["active", "archived", "deleted"])
@pytest.mark.parametrize("second", ["active", "archived", "deleted"])
def test_every_status_can_follow_every_other_and_the_same_is_no_change(space: ltm.Space, first: str, second: str) -> None:
    id = space.remember("x").id
    space.set_status(id, first)
    version, entries = space.get(id).version, space.audit.list().total
    done = space.set_status(id, second)
    assert space.get(id).status == second
    changed = first != second
    assert done.outcome == ("changed" if changed else "unchanged")
    assert bool(done.audit_id) == changed
    assert space.get(id).version == version + changed
    assert space.audit.list().total == entries + changed


@pytest.mark.parametrize("status", ["superseded", "", "ACTIVE", "gone", None, 1])
def test_no_other_status_can_be_set(memory: ltm.Memory, space: ltm.Space, status: Any) -> None:
    id = space.remember("x").id
    before = dump(memory)
    with pytest.raises(ltm.InvalidInput, match="status must be"):
        space.set_status(id, status)
    assert dump(memory) == before


def test_status_filters_part_the_whole(space: ltm.Space) -> None:
    ids = [space.remember(f"memory number {n}").id for n in range(4)]
    space.archive(ids[1])
    space.set_status(ids[2], "deleted")
    by = space.remember("better", supersedes=[ids[3]]).id
    found = {status: {e.id for e in space.list(ltm.Filter(statuses=[status])).episodes} for status in ltm.STATUSES}
    assert found == {"active": {ids[0], by}, "archived": {ids[1]}, "deleted": {ids[2]}, "superseded": {ids[3]}}
    for status in ltm.STATUSES:
        assert space.list(ltm.Filter(statuses=[status])).total == len(found[status])
        assert {h.episode.id for h in space.recall("memory number", where=ltm.Filter(statuses=[status]))} <= found[status]
    assert space.list(ALL).total == 5


@each_verb
@pytest.mark.parametrize("id", ["", "ffffffffffff", "' OR 1=1 --", "\x00", "\ud800", "ABCDEF"])
def test_an_id_that_is_not_here_is_not_found_and_changes_nothing(memory: ltm.Memory, space: ltm.Space, verb: str, id: str) -> None:
    other = space.remember("x").id
    before = dump(memory)
    with pytest.raises(ltm.NotFound):
        VERBS[verb](space, id, other)
    assert dump(memory) == before


@each_verb
@pytest.mark.parametrize("id", [None, 7, b"000000000001", ["000000000001"]])
def test_an_id_that_is_no_text_is_refused(memory: ltm.Memory, space: ltm.Space, verb: str, id: Any) -> None:
    other = space.remember("x").id
    before = dump(memory)
    with pytest.raises(ltm.InvalidInput):
        VERBS[verb](space, id, other)
    assert dump(memory) == before


@each_verb
def test_another_space_s_episode_cannot_be_touched(memory: ltm.Memory, space: ltm.Space, verb: str) -> None:
    id = memory.space(ELSEWHERE, speaker=ALICE).remember("theirs").id
    mine = space.remember("mine").id
    before = dump(memory)
    with pytest.raises(ltm.NotFound):
        VERBS[verb](space, id, mine)
    assert dump(memory) == before
    if verb == "supersede":
        with pytest.raises(ltm.NotFound):
            space.supersede(mine, id)
        assert dump(memory) == before


@each_verb
def test_a_space_that_was_never_written_to_stays_unwritten(memory: ltm.Memory, space: ltm.Space, verb: str) -> None:
    before = dump(memory)
    with pytest.raises(ltm.NotFound):
        VERBS[verb](space, "000000000001", "000000000002")
    assert dump(memory) == before


def test_chats_of_a_bot_share_episodes_and_keep_audits_apart(memory: ltm.Memory) -> None:
    one, two = (memory.space(ltm.Scope("b1", "group", n, "bot"), speaker=ALICE) for n in "12")
    alone = memory.space(ltm.Scope("b1", "group", "1"), speaker=ALICE)
    id = one.remember("shared").id
    done = two.archive(id)
    assert one.get(id).status == "archived"
    assert [e.operation for e in two.audit.list().entries] == ["archived"]
    assert [e.operation for e in one.audit.list().entries] == ["remember"]
    with pytest.raises(ltm.NotFound):
        alone.restore(id)
    with pytest.raises(ltm.NotFound):
        one.undo(done.audit_id)
    two.undo(done.audit_id)
    assert one.get(id).status == "active"


# ------------------------------------------------------------------------------------------ superseding


def test_a_superseded_episode_comes_back_only_after_its_successor_went(memory: ltm.Memory, space: ltm.Space) -> None:
    old = space.remember("flies on Tuesday").id
    new = space.remember("flies on Friday", supersedes=[old]).id
    before = dump(memory)
    with pytest.raises(ltm.Conflict, match=f"{new}.*archive or forget"):
        space.restore(old)
    assert dump(memory) == before
    space.archive(new)
    assert space.restore(old).outcome == "changed"
    assert (space.get(old).status, space.get(old).superseded_by) == ("active", "")


def test_forgetting_a_successor_leaves_what_it_replaced_superseded_until_restored(space: ltm.Space) -> None:
    old = space.remember("flies on Tuesday").id
    new = space.remember("flies on Friday", supersedes=[old]).id
    space.forget(new)
    assert (space.get(old).status, space.get(old).superseded_by) == ("superseded", "")
    space.restore(old)
    assert space.get(old).status == "active"


def test_a_superseded_episode_can_be_archived_and_still_does_not_come_back_beside_its_successor(space: ltm.Space) -> None:
    old = space.remember("a").id
    new = space.remember("b", supersedes=[old]).id
    space.archive(old)
    assert space.get(old).superseded_by == new
    with pytest.raises(ltm.Conflict, match=new):
        space.restore(old)


def test_what_can_supersede_is_active_of_the_same_speaker_and_another(memory: ltm.Memory, space: ltm.Space) -> None:
    a, b, c = (space.remember(text).id for text in ("alpha", "beta", "gamma"))
    bobs = space.for_speaker(BOB).remember("delta").id
    space.archive(c)
    before = dump(memory)
    with pytest.raises(ltm.Conflict, match="archived and cannot supersede"):
        space.supersede(a, c)
    with pytest.raises(ltm.Conflict, match="is archived"):
        space.supersede(c, a)
    with pytest.raises(ltm.InvalidInput, match="itself"):
        space.supersede(a, a)
    with pytest.raises(ltm.InvalidInput, match="another speaker"):
        space.supersede(a, bobs)
    assert dump(memory) == before
    assert space.for_speaker(BOB).supersede(a, b).outcome == "changed"  # the episodes' speaker counts, not who asks
    assert (space.get(a).status, space.get(a).superseded_by) == ("superseded", b)
    with pytest.raises(ltm.Conflict, match=f"by {b}: supersede that one"):
        space.supersede(a, b)
    with pytest.raises(ltm.Conflict):
        space.supersede(b, a)


def test_restoring_beside_a_twin_is_a_conflict_until_the_twin_goes(memory: ltm.Memory, space: ltm.Space) -> None:
    old = space.remember("the same text").id
    space.archive(old)
    twin = space.remember("The same text!").id
    assert twin != old
    before = dump(memory)
    with pytest.raises(ltm.Conflict, match="active already"):
        space.restore(old)
    assert dump(memory) == before
    space.forget(twin)
    space.restore(old)


# ------------------------------------------------------------------------------------------------- edit


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"content": "new text"}, {"content": "new text"}),
        ({"importance": 5}, {"importance": 5}),
        ({"tags": ["B", "b", "新"]}, {"tags": ["B", "新"]}),
        ({"tags": []}, {"tags": []}),
        ({"tags": ["A"]}, {"tags": ["A"]}),  # only the spelling
        ({"source_ref": "msg:9"}, {"source_ref": "msg:9"}),
        ({"source_ref": ""}, {"source_ref": ""}),
        ({"claim_type": "inference"}, {"claim_type": "inference"}),
        ({"pinned": False}, {"pinned": False}),
        ({"event_at": "2027-01-01T00:00:00+09:00"}, {"event_at": "2026-12-31T15:00:00Z"}),
        ({"event_at": ""}, {"event_at": ""}),
        ({"valid_from": ""}, {"valid_from": ""}),
        ({"valid_until": ""}, {"valid_until": ""}),
        ({"valid_from": "", "valid_until": "", "event_at": ""}, {"valid_from": "", "valid_until": "", "event_at": ""}),
        ({"valid_from": "2030-01-01T00:00:00Z", "valid_until": ""}, {"valid_from": "2030-01-01T00:00:00Z", "valid_until": ""}),
    ],
)
@pytest.mark.parametrize("status", ["active", "archived"])
def test_an_edit_changes_what_is_given_and_nothing_else(
    memory: ltm.Memory, space: ltm.Space, given: dict[str, Any], shown: dict[str, Any], status: str
) -> None:
    id = space.remember(
        "old text", importance=3, tags=["a"], source_ref="msg:1", claim_type="user_statement", pinned=True,
        event_at="2026-05-01T00:00:00Z", valid_from="2026-01-01T00:00:00Z", valid_until="2027-01-01T00:00:00Z",
    ).id  # fmt: skip
    space.set_status(id, status)
    before = space.get(id)
    done = space.edit(id, **given)
    after = space.get(id)
    assert done.outcome == "changed"
    assert after.to_json() == {**before.to_json(), **shown}
    assert after.version == before.version + 1
    assert space.audit.get(done.audit_id).operation == "edit"
    assert memory.check() == []
    assert space.edit(id, **given).outcome == "unchanged"
    assert space.get(id) == after
    space.undo(done.audit_id)
    assert space.get(id).to_json() == before.to_json()


@pytest.mark.parametrize(
    "given",
    [{"content": ""}, {"content": " "}, {"content": 5}, {"content": "x" * 20_001}, {"importance": 0}, {"importance": True}, {"importance": "3"},
     {"tags": "abc"}, {"tags": [""]}, {"tags": ["x"] * 33}, {"tags": [7]}, {"claim_type": "x"}, {"claim_type": ""}, {"source_ref": "x" * 513},
     {"event_at": "tomorrow"}, {"event_at": "2026-01-01"}, {"valid_until": "2025-01-01T00:00:00Z"}, {"valid_from": "2027-01-01T00:00:00Z"},
     {"vector": [1.0], "content": "y"}, {"operation_key": ""}],
)  # fmt: skip
def test_an_edit_that_cannot_be_is_refused_whole(memory: ltm.Memory, space: ltm.Space, given: dict[str, Any]) -> None:
    id = space.remember("x", valid_from="2026-01-01T00:00:00Z", valid_until="2027-01-01T00:00:00Z").id
    before = dump(memory)
    with pytest.raises(ltm.InvalidInput):
        space.edit(id, **{"importance": 4, **given})
    assert dump(memory) == before


def test_nothing_given_is_no_change(memory: ltm.Memory, space: ltm.Space) -> None:
    id = space.remember("x").id
    before = dump(memory)
    assert space.edit(id).outcome == "unchanged"
    assert dump(memory) == before


def test_an_edit_of_another_version_than_was_seen_is_a_conflict(memory: ltm.Memory, space: ltm.Space) -> None:
    id = space.remember("x").id
    seen = space.get(id).version
    space.edit(id, importance=4, version=seen)
    before = dump(memory)
    with pytest.raises(ltm.Conflict, match=f"version {seen + 1} by now, not {seen}"):
        space.edit(id, importance=5, version=seen)
    assert dump(memory) == before


def test_no_version_is_ever_seen_twice_for_different_states(space: ltm.Space) -> None:
    id, seen = space.remember("x").id, {}
    done = [space.edit(id, importance=4), space.edit(id, importance=5), space.archive(id), space.restore(id), space.forget(id)]
    seen[1] = None
    for audit in [done[4].audit_id, done[3].audit_id, done[2].audit_id, done[1].audit_id, done[0].audit_id]:
        space.undo(audit)
        episode = space.get(id)
        assert episode.version not in seen
        seen[episode.version] = episode.to_json()
    assert min(list(seen)[1:]) > 5


def test_an_edit_to_a_text_that_is_active_already_is_a_conflict(memory: ltm.Memory, space: ltm.Space) -> None:
    a, b = space.remember("alpha").id, space.remember("beta").id
    before = dump(memory)
    with pytest.raises(ltm.Conflict, match="active already"):
        space.edit(b, content="Alpha!")
    assert dump(memory) == before
    space.edit(b, content="alpha", valid_until="2030-01-01T00:00:00Z")  # valid for another time is another memory
    with pytest.raises(ltm.Conflict):
        space.edit(b, valid_until="")
    space.archive(a)
    space.edit(b, valid_until="")
    bobs = space.for_speaker(BOB).remember("beta").id
    space.edit(bobs, content="alpha")  # another's words
    assert memory.check() == []


def test_an_edit_that_only_respells_its_own_text_is_no_twin_of_itself(space: ltm.Space) -> None:
    id = space.remember("養了一隻狗").id
    assert space.edit(id, content="养了一只狗").outcome == "changed"
    assert space.get(id).content == "养了一只狗"


@pytest.mark.parametrize("text", ["a\x00b words", "half \ud800 pair"])
@pytest.mark.parametrize("embedder", [None, ltm.HashEmbedder()])
def test_an_edit_stores_what_can_be_stored_as_remember_does(opened: Callable[..., ltm.Memory], text: str, embedder: Any) -> None:
    space = opened(embedder=embedder).space(GROUP, speaker=ALICE)
    id = space.remember("x").id
    space.edit(id, content=text)
    assert space.get(id).content == text.replace("\x00", "\ufffd").replace("\ud800", "\ufffd")


def test_an_edit_that_alters_characters_says_so_as_remember_does(space: ltm.Space) -> None:
    id = space.remember("x").id
    assert space.edit(id, content="a\x00b").notes == space.remember("c\x00d").notes


def test_the_index_follows_an_edit(space: ltm.Space) -> None:
    id = space.remember("Alice flies to Tokyo", tags=["travel"]).id
    space.edit(id, content="Alice sails to Lisbon", tags=["ships"])
    assert texts(space.recall("Tokyo")) == []
    assert texts(space.recall("Lisbon")) == ["Alice sails to Lisbon"]
    assert space.list(ltm.Filter(tags=["travel"])).total == 0
    assert space.list(ltm.Filter(tags=["SHIPS"])).total == 1


def test_edits_need_no_speaker_to_match_and_keep_the_one_who_said_it(space: ltm.Space) -> None:
    id = space.remember("x").id
    done = space.for_speaker(BOB).edit(id, content="y")
    assert space.get(id).speaker == ALICE
    assert space.audit.get(done.audit_id).actor_id == "u2"


# ---------------------------------------------------------------------------------------------- vectors


class Counting(ltm.HashEmbedder):
    """Notes the texts it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def embed_passages(self, texts: Any) -> list[list[float]]:
        self.asked += texts
        return super().embed_passages(texts)


def test_the_vector_is_made_anew_for_new_text_only(opened: Callable[..., ltm.Memory]) -> None:
    embedder = Counting()
    memory = opened(embedder=embedder)
    space = memory.space(GROUP, speaker=ALICE)
    id = space.remember("tea in the morning").id
    first = vector(memory, id)
    assert first is not None
    embedder.asked.clear()
    for given in ({"tags": ["a"]}, {"importance": 5}, {"event_at": "2026-01-01T00:00:00Z"}, {"pinned": True}, {"content": "tea in the morning"},
                  {"valid_until": "2030-01-01T00:00:00Z"}):  # fmt: skip
        space.edit(id, **given)
    space.archive(id)
    space.restore(id)
    assert (vector(memory, id), embedder.asked) == (first, [])
    space.edit(id, content="coffee at night", tags=["b"])
    assert embedder.asked == ["Alice: coffee at night"]
    assert vector(memory, id) == ltm_models.embed_checked(embedder, ["Alice: coffee at night"])[0]
    assert space.pending() == 0
    assert space.recall("coffee").mode == "hybrid"


def test_an_edit_whose_embedder_fails_is_stored_and_queued(opened: Callable[..., ltm.Memory]) -> None:
    embedder = Counting()
    memory = opened(embedder=embedder)
    space = memory.space(GROUP, speaker=ALICE)
    id = space.remember("tea").id

    def fail(texts: Any) -> Any:
        raise ltm.EmbedderError("down")

    embedder.embed_passages = fail  # type: ignore[method-assign]
    done = space.edit(id, content="coffee")
    assert "down" in "".join(done.notes)
    assert (vector(memory, id), space.pending()) == (None, 1)
    del embedder.embed_passages
    memory.embed_pending()
    assert vector(memory, id) == ltm_models.embed_checked(embedder, ["Alice: coffee"])[0]


def test_a_vector_given_with_an_edit_is_the_one_stored(opened: Callable[..., ltm.Memory]) -> None:
    memory = opened(embedder=Counting())
    space = memory.space(GROUP, speaker=ALICE)
    id = space.remember("tea").id
    given = [1.0] + [0.0] * 255
    space.edit(id, content="coffee", vector=given)
    assert vector(memory, id) == ltm_models.pack(given, 256)


@pytest.mark.parametrize("verb", ["edit", "forget"])
def test_undoing_what_cost_a_vector_queues_it(opened: Callable[..., ltm.Memory], verb: str) -> None:
    memory = opened(embedder=Counting())
    space = memory.space(GROUP, speaker=ALICE)
    id = space.remember("tea").id
    first = vector(memory, id)
    space.undo(VERBS[verb](space, id, "").audit_id)
    assert (vector(memory, id), space.pending()) == (None, 1)
    memory.embed_pending()
    assert (vector(memory, id), space.pending()) == (first, 0)


# ----------------------------------------------------------------------------------------- exactly once


@each_verb
def test_an_operation_key_makes_a_change_once(memory: ltm.Memory, space: ltm.Space, verb: str) -> None:
    id, other = space.remember("one").id, space.remember("two").id
    if verb == "restore":
        space.archive(id)
    first = VERBS[verb](space, id, other, operation_key="k")
    before = dump(memory)
    again = VERBS[verb](space, id, other, operation_key="k")
    assert (first.outcome, again.outcome) == ("changed", "repeated")
    assert (again.id, again.audit_id) == (first.id, first.audit_id)
    assert dump(memory) == before
    with pytest.raises(ltm.Conflict, match="another request"):
        VERBS[verb](space, other, id, operation_key="k")
    with pytest.raises(ltm.Conflict, match="another request"):
        space.remember("three", operation_key="k")
    assert dump(memory) == before


@each_verb
def test_a_repeated_key_answers_the_same_after_the_episode_went(memory: ltm.Memory, space: ltm.Space, verb: str) -> None:
    id, other = space.remember("one").id, space.remember("two").id
    if verb == "restore":
        space.archive(id)
    first = VERBS[verb](space, id, other, operation_key="k")
    if verb != "forget":
        space.forget(id)
    before = dump(memory)
    again = VERBS[verb](space, id, other, operation_key="k")
    assert (again.id, again.audit_id, again.outcome) == (first.id, first.audit_id, "repeated")
    assert dump(memory) == before


def test_a_repeated_edit_answers_the_same_after_a_later_edit_that_forbids_it(space: ltm.Space) -> None:
    id = space.remember("one").id
    first = space.edit(id, valid_from="2026-06-01T00:00:00Z", operation_key="k")
    space.edit(id, valid_from="2026-01-01T00:00:00Z", valid_until="2026-02-01T00:00:00Z")
    assert space.edit(id, valid_from="2026-06-01T00:00:00Z", operation_key="k").audit_id == first.audit_id


def test_keys_of_two_chats_have_nothing_to_do_with_each_other(memory: ltm.Memory, space: ltm.Space) -> None:
    there = memory.space(ELSEWHERE, speaker=ALICE)
    here_id, there_id = space.remember("x").id, there.remember("x").id
    assert space.forget(here_id, operation_key="k").outcome == "changed"
    assert there.forget(there_id, operation_key="k").outcome == "changed"


# ---------------------------------------------------------------------------------------------- forget


def test_forgetting_takes_every_derived_row_along_and_no_id_comes_again(opened: Callable[..., ltm.Memory]) -> None:
    memory = opened(embedder=Counting())
    space = memory.space(GROUP, speaker=ALICE)
    id = space.remember("tea", tags=["drink"]).id
    space.forget(id)
    assert space.find(id) is None
    assert texts(space.recall("tea")) == []
    with memory._file.read() as db:
        for table in ("episode", "episode_tag", "episode_vector", "job", "episode_fts_docsize"):
            assert db.execute(f"SELECT count(*) FROM {table}").get == 0, table
    assert space.remember("tea").id != id
    with pytest.raises(ltm.NotFound):
        space.forget(id)


GONE: dict[str, Callable[[ltm.Space, str], Any]] = {
    "content": lambda space, id: space.edit(id, content="other words"),
    "validity": lambda space, id: space.edit(id, valid_until="2099-01-01T00:00:00Z"),
    "archive": lambda space, id: space.archive(id),
    "forget": lambda space, id: space.forget(id),
    "supersede": lambda space, id: space.for_speaker(None).remember("better", supersedes=[id]),
}


@pytest.mark.parametrize("change", GONE)
def test_what_was_drawn_from_a_summary_goes_with_the_first_source(space: ltm.Space, change: str) -> None:
    """Imports may hold summaries of summaries; none may go on saying what its first source no longer says."""
    episodes = [
        {"id": f"f{n:011x}", "content": f"level {n}", "timestamp": "2025-01-01T00:00:00Z", "source": "consolidation", **({"sources": [f"f{n - 1:011x}"]} if n else {})}
        for n in range(5)
    ]  # fmt: skip
    space.transfer.load(json.dumps({"format": "ltm", "version": 1, "episodes": episodes}).encode())
    before = {e.id: e.to_json() for e in space.list(ALL).episodes}
    first = next(id for id, e in before.items() if e["content"] == "level 0")
    lineage = {id: space.consolidation.lineage(id) for id in before}
    done = GONE[change](space, first)
    assert [e.content for e in space.list(ALL).episodes if e.content.startswith("level") and e.id != first] == []
    assert set(done.removed) == set(before) - {first}
    space.undo(done.audit_id)
    assert {e.id: e.to_json() for e in space.list(ALL).episodes} == before
    assert {id: space.consolidation.lineage(id) for id in before} == lineage


FILTERS = [
    ltm.Filter(tags=["Drink"]),
    ltm.Filter(speaker_id="u2", statuses=ltm.STATUSES),
    ltm.Filter(speaker_name="Alice"),
    ltm.Filter(source="import"),
    ltm.Filter(importance_min=4),
    ltm.Filter(statuses=("archived", "superseded")),
    ltm.Filter(after="2026-01-01T00:00:00Z", before="2026-01-02T00:00:00Z", statuses=ltm.STATUSES),
    ltm.Filter(at="2026-06-01T00:00:00Z"),
    ltm.Filter(),
]


def furnished(memory: ltm.Memory) -> ltm.Space:
    space = memory.space(GROUP, speaker=ALICE)
    space.remember("tea", tags=["drink"], importance=4)
    space.remember("coffee", tags=["DRINK", "hot"], created_at="2026-01-01T12:00:00Z")
    space.for_speaker(BOB).remember("wine", source="import", valid_until="2026-03-01T00:00:00Z")
    space.archive(space.remember("water").id)
    space.remember("milk", supersedes=[space.remember("cream").id], valid_from="2026-05-01T00:00:00Z")
    memory.space(ELSEWHERE, speaker=ALICE).remember("tea", tags=["drink"], importance=5)
    return space


@pytest.mark.parametrize("where", FILTERS, ids=str)
def test_forget_all_deletes_what_the_filter_lists_and_can_be_undone(memory: ltm.Memory, where: ltm.Filter) -> None:
    space = furnished(memory)
    listed, everything = space.list(where).episodes, {e.id: e.to_json() for e in space.list(ALL).episodes}
    before = dump(memory)
    preview = space.forget_all(where, dry_run=True)
    assert dump(memory) == before
    assert sum(preview.counts.values()) == len(listed) > 0
    assert preview.outcome == "unchanged"
    done = space.forget_all(where)
    assert (done.outcome, done.counts) == ("changed", preview.counts)
    assert {e.id for e in space.list(ALL).episodes} == set(everything) - {e.id for e in listed}
    assert memory.space(ELSEWHERE).list().total == 1
    assert space.forget_all(where).outcome == "unchanged"
    space.undo(done.audit_id)
    assert {e.id: e.to_json() for e in space.list(ALL).episodes} == everything


@pytest.mark.parametrize(
    "where",
    [
        ALL,
        ltm.Filter(statuses=(*ltm.STATUSES[::-1], "active")),
        ltm.Filter(statuses=ltm.STATUSES, include_ended=True),
        None,
        {},
        "all",
    ],
    ids=str,
)
@pytest.mark.parametrize("dry_run", [False, True])
def test_a_filter_that_lets_everything_pass_is_refused(memory: ltm.Memory, where: Any, dry_run: bool) -> None:
    space = furnished(memory)
    before = dump(memory)
    with pytest.raises(ltm.InvalidInput):
        space.forget_all(where, dry_run=dry_run)
    assert dump(memory) == before


def test_forget_all_of_an_empty_space_writes_no_entry(memory: ltm.Memory, space: ltm.Space) -> None:
    assert space.forget_all(ltm.Filter(tags=["x"]), dry_run=True).counts == {}
    assert space.forget_all(ltm.Filter(tags=["x"])).outcome == "unchanged"
    assert space.audit.list().total == 0


def test_forget_all_happens_once_for_a_key(space: ltm.Space) -> None:
    space.remember("tea", tags=["drink"])
    where = ltm.Filter(tags=["drink"])
    first = space.forget_all(where, operation_key="k")
    later = space.remember("coffee", tags=["drink"]).id
    again = space.forget_all(where, operation_key="k")
    assert (again.outcome, again.audit_id, again.counts) == ("repeated", first.audit_id, first.counts)
    assert space.get(later).status == "active"


# -------------------------------------------------------------------------------- the rules are the file's


@pytest.fixture
def raw(opened: Callable[..., ltm.Memory], tmp_path: Path) -> tuple[ltm.Memory, ltm.Space, apsw.Connection]:
    memory = opened(tmp_path / "a.db")
    space = memory.space(GROUP, speaker=ALICE)
    old = space.remember("one").id
    space.remember("two", supersedes=[old], tags=["t"])
    space.remember("three")
    memory.space(ELSEWHERE, speaker=ALICE).remember("there")
    return memory, space, apsw.Connection(str(tmp_path / "a.db"))


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE episode SET status = 'active' WHERE content = 'one'",
        "UPDATE episode SET status = 'active', superseded_by = NULL WHERE content = 'one'",
        "UPDATE episode SET status = 'gone' WHERE content = 'three'",
        "UPDATE episode SET superseded_by = (SELECT key FROM episode WHERE content = 'two') WHERE content = 'three'",
        "UPDATE episode SET status = 'superseded', superseded_by = key WHERE content = 'three'",
        "UPDATE episode SET status = 'superseded', superseded_by = (SELECT key FROM episode WHERE content = 'one') WHERE content = 'two'",
        "UPDATE episode SET status = 'superseded', superseded_by = (SELECT key FROM episode WHERE content = 'there') WHERE content = 'three'",
        "UPDATE episode SET content = '' WHERE content = 'three'",
        "UPDATE episode SET importance = 6 WHERE content = 'three'",
        "UPDATE episode SET valid_from_us = 2, valid_until_us = 2 WHERE content = 'three'",
        "UPDATE episode SET key = key + 10 WHERE content = 'three'",
        "UPDATE episode SET id = 'aaaaaaaaaaaa' WHERE content = 'three'",
        "UPDATE episode SET space = 2 WHERE content = 'three'",
        "UPDATE episode SET speaker = (SELECT speaker FROM episode WHERE content = 'there') WHERE content = 'three'",
        "UPDATE audit SET operation = 'x'",
        "DELETE FROM audit",
        "DELETE FROM space",
        "DELETE FROM speaker",
    ],
)
def test_plain_sqlite_cannot_break_the_lifecycle(raw: tuple[ltm.Memory, ltm.Space, apsw.Connection], sql: str) -> None:
    memory, _, db = raw
    before = dump(memory)
    db.execute("PRAGMA foreign_keys = ON")
    with pytest.raises(apsw.ConstraintError):
        db.execute(sql)
    assert dump(memory) == before


@pytest.mark.parametrize(
    "sql",
    [
        "REPLACE INTO episode (key, id, space, content, created_us, stored_us) SELECT key, id, space, 'replaced', created_us, stored_us"
        " FROM episode WHERE content = 'three'",
        "REPLACE INTO episode (key, id, space, content, created_us, stored_us) SELECT key + 50, id, space, 'replaced', created_us, stored_us"
        " FROM episode WHERE content = 'three'",
        "UPDATE OR REPLACE episode SET content_hash = (SELECT content_hash FROM episode WHERE content = 'two') WHERE content = 'three'",
    ],
)
def test_a_row_replaced_by_plain_sqlite_is_refused_or_leaves_its_history_and_right_counts(
    raw: tuple[ltm.Memory, ltm.Space, apsw.Connection], sql: str
) -> None:
    memory, space, db = raw
    before = sorted(e.content for e in space.list(ALL).episodes)
    try:
        db.execute(sql)
    except apsw.ConstraintError:
        return
    space.remember("four")  # takes in what another program did
    wrong = memory.check()
    images = db.execute("SELECT image FROM revision WHERE source = 'episode'").fetchall()
    known = {json.loads(image)["content"] for (image,) in images} | {e.content for e in space.list(ALL).episodes}
    memory.close()
    assert (wrong, set(before) - known) == ([], set())
