"""Consolidation: what may be archived, what a model may draft, when a draft still holds, and what goes with its sources."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ltm
import ltm_models

from .conftest import ALICE, BOB, GROUP, Clock
from .test_candidates import SECRETS, Calling, raw_bytes
from .test_episodes import ALL, dump

Opened = Callable[..., ltm.Memory]
TEXT = "Alice's 豆豆 summary of it all"


@pytest.fixture
def desk(memory: ltm.Memory, space: ltm.Space) -> ltm.Consolidation:
    memory.configure("consolidation_enabled", True)
    return space.consolidation


def summarising(ids: list[str], text: str = TEXT) -> ltm_models.ScriptedModel:
    return ltm_models.ScriptedModel(json.dumps({"summary": text, "cites": ids}))


def stored(space: ltm.Space, *texts: str, **options: Any) -> list[str]:
    return [space.remember(text, **options).id for text in texts or ("Alice has a dog", "the dog is called 豆豆")]


def drafted(space: ltm.Space, ids: list[str], text: str = TEXT) -> ltm.Proposal:
    return space.consolidation.draft(summarising(ids, text), ids)


def published(space: ltm.Space, ids: list[str], text: str = TEXT) -> str:
    return space.consolidation.run(drafted(space, ids, text).id).id


# ------------------------------------------------------------------------------------------ archival


def test_a_preview_writes_nothing_and_says_what_a_run_then_does(
    memory: ltm.Memory, space: ltm.Space, desk: ltm.Consolidation, clock: Clock
) -> None:
    old, kept = stored(space)
    ended = space.remember("valid for a day", valid_until="2026-03-03T00:00:00Z").id
    space.remember("Alice has a cat", supersedes=[old])
    space.remember("not valid any more", supersedes=[ended])
    clock.forward(400)
    before = dump(memory)
    preview = desk.preview()
    assert dump(memory) == before
    done = desk.run()
    assert (
        {e.id for e in preview.superseded}
        == {e.id for e in space.list(ltm.Filter(statuses=("archived",))).episodes}
        == {old, ended}
    )
    assert (preview.n_superseded, done.counts) == (2, {"archived": 2})
    assert space.get(kept).status == "active"


def test_active_memories_are_never_archived_whatever_their_age_or_importance(
    space: ltm.Space, desk: ltm.Consolidation, clock: Clock
) -> None:
    ids = stored(space, "old and dull", "old and duller", importance=1)
    clock.forward(4000)
    assert desk.run().outcome == "unchanged"
    assert {space.get(id).status for id in ids} == {"active"}


def test_a_run_is_bounded_says_what_waits_and_is_undone_whole(
    memory: ltm.Memory, space: ltm.Space, desk: ltm.Consolidation
) -> None:
    memory.configure("consolidation_max_candidates", 2)
    for n in range(5):
        old = space.remember(f"version {n} of a fact").id
        space.remember(f"correction {n} of a fact", supersedes=[old])
    preview = desk.preview()
    assert (len(preview.superseded), preview.n_superseded) == (2, 5)
    assert "3 more" in preview.notes[0]
    done = desk.run()
    assert {e.id for e in space.list(ltm.Filter(statuses=("archived",))).episodes} == {e.id for e in preview.superseded}
    space.undo(done.audit_id)
    assert space.list(ltm.Filter(statuses=("superseded",))).total == 5


def test_nothing_runs_while_it_is_turned_off(memory: ltm.Memory, space: ltm.Space) -> None:
    proposal = drafted(space, stored(space))
    before = dump(memory)
    for id in (None, proposal.id):
        with pytest.raises(ltm.Conflict, match="turned off"):
            space.consolidation.run(id)
    assert dump(memory) == before


def test_a_run_with_an_operation_key_happens_once(space: ltm.Space, desk: ltm.Consolidation) -> None:
    proposal = drafted(space, stored(space))
    first = desk.run(proposal.id, operation_key="k")
    again = desk.run(proposal.id, operation_key="k")
    assert (again.id, again.outcome, space.list().total) == (first.id, "repeated", 3)


# -------------------------------------------------------------------------------------------- drafting


def test_a_draft_shows_its_sources_and_a_run_publishes_it_with_lineage(space: ltm.Space, desk: ltm.Consolidation) -> None:
    ids = [space.remember("a", importance=4, valid_from="2026-01-01T00:00:00Z", valid_until="2027-01-01T00:00:00Z").id]
    ids += [space.remember("b", valid_from="2026-02-01T00:00:00Z").id, space.remember("c", valid_until="2026-12-01T00:00:00Z").id]
    model = summarising(ids[::-1])
    proposal = desk.draft(model, ids)
    assert [e.id for e in proposal.sources] == ids
    assert json.loads(model.asked[0][1]) == [{"id": id, "memory": f"Alice: {text}"} for id, text in zip(ids, "abc", strict=True)]
    assert (proposal.content, proposal.status, proposal.model) == (TEXT, "pending", "scripted")
    done = desk.run(proposal.id)
    summary = space.get(done.id)
    assert (summary.content, summary.status, summary.claim_type, summary.source, summary.speaker) == (
        TEXT,
        "active",
        "inference",
        "consolidation",
        None,
    )
    assert (summary.valid_from, summary.valid_until) == ("2026-02-01T00:00:00Z", "2026-12-01T00:00:00Z")
    assert (summary.importance, summary.source_ref, summary.tags) == (4, f"proposal:{proposal.id}", ("summary",))
    assert desk.lineage(done.id) == (ids, [])
    assert [desk.lineage(id) for id in ids] == [([], [done.id])] * 3
    assert {space.get(id).status for id in ids} == {"active"}
    assert (desk.get(proposal.id).status, desk.get(proposal.id).content) == ("approved", "")
    assert done.id in {hit.episode.id for hit in space.recall("豆豆 summary").hits}


def test_without_ids_the_oldest_that_are_old_enough_are_summarised_and_no_summary_again(
    memory: ltm.Memory, space: ltm.Space, desk: ltm.Consolidation, clock: Clock
) -> None:
    memory.configure("consolidation_max_candidates", 3)
    ids = stored(space, *(f"memory {n}" for n in range(5)))
    assert desk.preview().sources == ()
    with pytest.raises(ltm.InvalidInput, match="two active"):
        desk.draft(ltm_models.ScriptedModel())
    clock.forward(8)
    assert [e.id for e in desk.preview().sources] == ids[:3]
    summary = desk.run(desk.draft(summarising(ids[:3])).id).id
    clock.forward(8)
    assert summary not in [e.id for e in desk.preview().sources]
    with pytest.raises(ltm.NotFound):
        desk.draft(ltm_models.ScriptedModel(), [ids[0], summary])


def test_what_a_model_is_given_is_bounded(memory: ltm.Memory, space: ltm.Space, desk: ltm.Consolidation, clock: Clock) -> None:
    ids = stored(space, *(f"{n} " + "字" * 3998 for n in range(5)))
    clock.forward(8)
    assert [e.id for e in desk.preview().sources] == ids[:3]
    with pytest.raises(ltm.InvalidInput, match="12,000"):
        desk.draft(ltm_models.ScriptedModel(), ids[:4])
    memory.configure("consolidation_max_candidates", 2)
    with pytest.raises(ltm.InvalidInput, match="at most 2"):
        desk.draft(ltm_models.ScriptedModel(), ids[:3])


@pytest.mark.parametrize("ids", [["x"], ["x", "y"], "xy", [3, 4], None, [None]])
def test_sources_that_do_not_exist_are_refused_before_a_model_is_asked(space: ltm.Space, desk: ltm.Consolidation, ids: Any) -> None:
    model = ltm_models.ScriptedModel()
    with pytest.raises((ltm.NotFound, ltm.InvalidInput)):
        desk.draft(model, ids)
    assert model.asked == []


def test_one_source_given_twice_is_one_source(space: ltm.Space, desk: ltm.Consolidation) -> None:
    (id,) = stored(space, "alone")
    model = ltm_models.ScriptedModel(json.dumps({"summary": "s", "cites": [id, id]}))
    with pytest.raises(ltm.InvalidInput):
        desk.draft(model, [id, id])
    assert model.asked == []


def test_sources_of_another_space_or_status_or_time_are_refused(
    memory: ltm.Memory, space: ltm.Space, desk: ltm.Consolidation
) -> None:
    (good,) = stored(space, "good")
    foreign = memory.space(ltm.Scope("b1", "group", "8"), speaker=ALICE).remember("foreign").id
    archived, gone, early = stored(space, "archived", "tombstoned", "early")
    space.archive(archived)
    space.set_status(gone, "deleted")
    space.edit(early, valid_until="2020-01-01T00:00:00Z")
    for bad, error in ((foreign, ltm.NotFound), (archived, ltm.NotFound), (gone, ltm.NotFound), (early, ltm.InvalidInput)):
        with pytest.raises(error):
            desk.draft(ltm_models.ScriptedModel(), [good, bad])


BAD_DRAFTS = {
    "no JSON": "here you are",
    "a list": "[]",
    "no cites": '{"summary": "s"}',
    "an extra field": '{"summary": "s", "cites": ["A", "B"], "x": 1}',
    "one not cited": '{"summary": "s", "cites": ["A"]}',
    "none cited": '{"summary": "s", "cites": []}',
    "a foreign one": '{"summary": "s", "cites": ["A", "B", "ffffffffffff"]}',
    "one cited twice": '{"summary": "s", "cites": ["A", "A", "B"]}',
    "one twice instead of both": '{"summary": "s", "cites": ["A", "A"]}',
    "cites are text": '{"summary": "s", "cites": "A B"}',
    "cites are lists": '{"summary": "s", "cites": [["A"], ["B"]]}',
    "cites are numbers": '{"summary": "s", "cites": [1, 2]}',
    "cites are null": '{"summary": "s", "cites": null}',
    "cites in another case": '{"summary": "s", "cites": ["A ", "B"]}',
    "an empty summary": '{"summary": "", "cites": ["A", "B"]}',
    "a blank summary": '{"summary": " \\n", "cites": ["A", "B"]}',
    "a summary that is a number": '{"summary": 1, "cites": ["A", "B"]}',
    "a summary too long": json.dumps({"summary": "s" * 2001, "cites": ["A", "B"]}),
    "an answer too long": '{"summary": "s", "cites": ["A", "B"]}' + " " * 16_000,
    "a field named twice": '{"summary": "other", "summary": "s", "cites": ["A", "B"]}',
}


@pytest.mark.parametrize("answer", BAD_DRAFTS.values(), ids=BAD_DRAFTS)
def test_a_flawed_draft_is_rejected_whole(memory: ltm.Memory, space: ltm.Space, desk: ltm.Consolidation, answer: str) -> None:
    one, other = stored(space)
    before = dump(memory)
    with pytest.raises(ltm.ModelError):
        desk.draft(ltm_models.ScriptedModel(answer.replace('"A', f'"{one}').replace('"B', f'"{other}')), [one, other])
    assert dump(memory) == before


def test_a_draft_that_tells_a_credential_is_refused_and_leaves_no_byte(opened: Opened, tmp_path: Path) -> None:
    memory = opened(tmp_path / "m.db")
    space = memory.space(GROUP, speaker=ALICE)
    ids = stored(space)
    for text in [text for tag, text in SECRETS if tag == "yes"]:
        with pytest.raises(ltm.SecretDetected) as error:
            drafted(space, ids, text)
        assert len(text) < 16 or text not in str(error.value)
    assert b"hunter2" not in raw_bytes(memory)


def test_a_source_that_holds_a_credential_is_not_shown_to_a_model(space: ltm.Space, desk: ltm.Consolidation, clock: Clock) -> None:
    ids = stored(space, "my password is hunter2", "I like tea", "I like rice")
    clock.forward(8)
    for chosen in (ids, ()):
        model = summarising(ids[1:])
        try:
            desk.draft(model, chosen)
        except ltm.LtmError:
            pass
        assert "hunter2" not in "".join(user for _, user in model.asked)


@pytest.mark.parametrize("isolation", ["session", "bot"])
def test_a_model_may_write_through_the_same_memory_while_it_drafts(opened: Opened, tmp_path: Path, isolation: str) -> None:
    memory = opened(tmp_path / "m.db")
    space = memory.space(ltm.Scope("b1", "group", "7", isolation), speaker=ALICE)
    ids = stored(space)

    def work() -> None:
        space.remember("written from the model's thread")
        other = threading.Thread(target=lambda: space.remember("written from another thread"))
        other.start()
        other.join()

    proposal = space.consolidation.draft(Calling(work, json.dumps({"summary": "s", "cites": ids})), ids)
    assert (proposal.status, space.list().total) == ("pending", 4)


@pytest.mark.parametrize("change", ["edit", "archive", "forget"])
def test_a_source_that_changes_while_the_model_thinks_makes_no_proposal(
    space: ltm.Space, desk: ltm.Consolidation, change: str
) -> None:
    ids = stored(space)
    work = {
        "edit": lambda: space.edit(ids[0], content="other"),
        "archive": lambda: space.archive(ids[0]),
        "forget": lambda: space.forget(ids[0]),
    }
    with pytest.raises(ltm.Conflict, match="stale"):
        desk.draft(Calling(work[change], json.dumps({"summary": "s", "cites": ids})), ids)
    assert desk.proposals(status=None) == []


def test_no_model_is_asked_inside_a_batch_or_where_nothing_could_be_stored(
    memory: ltm.Memory, space: ltm.Space, desk: ltm.Consolidation
) -> None:
    ids = stored(space)
    model = summarising(ids)
    with memory.batch(), pytest.raises(ltm.InvalidInput, match="batch"):
        desk.draft(model, ids)
    memory.fence("frozen", space)
    with pytest.raises(ltm.Fenced):
        desk.draft(model, ids)
    assert model.asked == []


# ------------------------------------------------------------------------------------------- approving

CHANGES: dict[str, Callable[[ltm.Space, str], Any]] = {
    "edited": lambda space, id: space.edit(id, content="something else"),
    "given another event": lambda space, id: space.edit(id, event_at="2026-05-05T00:00:00Z"),
    "given another claim": lambda space, id: space.edit(id, claim_type="inference"),
    "given a validity": lambda space, id: space.edit(id, valid_until="2030-01-01T00:00:00Z"),
    "archived": lambda space, id: space.archive(id),
    "tombstoned": lambda space, id: space.set_status(id, "deleted"),
    "forgotten": lambda space, id: space.forget(id),
    "superseded": lambda space, id: space.supersede(id, space.remember("its successor").id),
    "corrected": lambda space, id: space.remember("the correction", supersedes=[id]),
    "bulk-deleted": lambda space, id: space.forget_all(ltm.Filter(tags=["mark"])),
    "erased": lambda space, id: space.erase(speaker="u1"),
}
SQL_CHANGES = {
    "content": "UPDATE episode SET content = 'by hand' WHERE id = ?",
    "status": "UPDATE episode SET status = 'archived' WHERE id = ?",
    "row": "DELETE FROM episode WHERE id = ?",
    "valid_from": "UPDATE episode SET valid_from_us = 5 WHERE id = ?",
    "valid_until": "UPDATE episode SET valid_until_us = 250000000000000000 WHERE id = ?",
    "event": "UPDATE episode SET event_us = 5 WHERE id = ?",
    "speaker": "UPDATE episode SET speaker = (SELECT id FROM speaker WHERE sender_id = 'u2') WHERE id = ?",
    "claim": "UPDATE episode SET claim_type = 'inference' WHERE id = ?",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_draft_goes_stale_with_any_of_its_sources_and_loses_its_text(
    opened: Opened, tmp_path: Path, change: Callable[[ltm.Space, str], Any]
) -> None:
    memory = opened(tmp_path / "m.db")
    memory.configure("consolidation_enabled", True)
    space = memory.space(GROUP, speaker=ALICE)
    ids = [*stored(space, "first"), *stored(space, "second", tags=["mark"])]
    proposal = drafted(space, ids)
    change(space, ids[1])
    try:
        found = space.consolidation.get(proposal.id)
    except ltm.NotFound:  # an erasure takes the proposal as well
        return
    before = dump(memory)
    with pytest.raises(ltm.Conflict, match="stale"):
        space.consolidation.run(proposal.id)
    assert dump(memory) == before
    assert (found.status, found.content) == ("stale", "")


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_summary_goes_with_any_of_its_sources_and_nothing_else_does(
    opened: Opened, tmp_path: Path, change: Callable[[ltm.Space, str], Any]
) -> None:
    memory = opened(tmp_path / "m.db")
    memory.configure("consolidation_enabled", True)
    space = memory.space(GROUP, speaker=ALICE)
    bob = memory.space(GROUP, speaker=BOB)
    ids = [*stored(bob, "first"), *stored(space, "second", tags=["mark"])]
    others = stored(bob, "third", "fourth")
    gone, kept = published(space, ids, "one 豆豆"), published(bob, others, "other 豆豆")
    change(space, ids[1])
    assert space.find(gone) is None
    assert [space.get(id).status for id in (ids[0], *others, kept)] == ["active"] * 4
    assert [hit.episode.id for hit in space.recall("豆豆").hits] == [kept]


@pytest.mark.parametrize("sql", SQL_CHANGES.values(), ids=SQL_CHANGES)
@pytest.mark.parametrize("keys", [0, 1])
def test_what_another_program_edits_makes_drafts_stale_and_summaries_go(
    opened: Opened, tmp_path: Path, sql: str, keys: int
) -> None:
    memory = opened(tmp_path / "m.db")
    memory.configure("consolidation_enabled", True)
    space = memory.space(GROUP, speaker=ALICE)
    memory.space(GROUP, speaker=BOB).remember("I am here")
    ids = stored(space)
    summary = published(space, ids)
    proposal = drafted(space, ids, "another text")
    memory.close()
    db = sqlite3.connect(tmp_path / "m.db")
    db.execute(f"PRAGMA foreign_keys = {keys}")
    db.execute(sql, (ids[1],))
    db.commit()
    db.close()
    memory = opened(tmp_path / "m.db")
    space = memory.space(GROUP, speaker=ALICE)
    with pytest.raises(ltm.Conflict, match="stale"):
        space.consolidation.run(proposal.id)
    assert space.find(summary) is None
    assert (space.consolidation.get(proposal.id).status, space.consolidation.get(proposal.id).content) == ("stale", "")
    assert memory.check() == []


def test_what_changes_nothing_a_summary_says_leaves_it(space: ltm.Space, desk: ltm.Consolidation) -> None:
    ids = stored(space)
    summary, proposal = published(space, ids), drafted(space, ids, "another text")
    space.edit(ids[0], importance=5, tags=["x"], pinned=True, source_ref="m:1")
    space.recall("dog")
    assert space.get(summary).status == "active"
    assert desk.run(proposal.id).outcome == "changed"


def test_a_document_takes_what_was_drawn_from_it(memory: ltm.Memory, space: ltm.Space, desk: ltm.Consolidation) -> None:
    text = json.dumps({"episodes": [{"content": "from a document"}, {"content": "also from it"}]})
    space.transfer.load_document("d1", text.encode())
    ids = [e.id for e in space.list().episodes] + stored(space, "not from it")
    assert len(ids) == 3
    summary = published(space, ids)
    proposal = drafted(space, ids, "another text")
    space.transfer.delete_document("d1")
    assert space.find(summary) is None
    assert (desk.get(proposal.id).status, desk.get(proposal.id).content) == ("stale", "")
    assert space.list(ALL).total == 1


def test_a_change_in_another_space_takes_nothing(memory: ltm.Memory, space: ltm.Space, desk: ltm.Consolidation) -> None:
    other = memory.space(ltm.Scope("b1", "group", "8"), speaker=ALICE)
    mine, theirs = stored(space), stored(other)
    summaries = published(space, mine), published(other, theirs)
    pending = drafted(space, mine, "another text")
    for id in theirs:
        other.forget(id)
    assert (space.get(summaries[0]).status, other.find(summaries[1])) == ("active", None)
    assert desk.get(pending.id).status == "pending"


def test_a_proposal_is_of_its_space_of_one_use_and_of_its_time(
    memory: ltm.Memory, space: ltm.Space, desk: ltm.Consolidation, clock: Clock
) -> None:
    ids = stored(space)
    one, two, three = (drafted(space, ids, text) for text in ("one", "two", "three"))
    other = memory.space(ltm.Scope("b1", "group", "8"), speaker=ALICE)
    for work in (
        lambda: other.consolidation.run(one.id),
        lambda: other.consolidation.get(one.id),
        lambda: other.consolidation.reject(one.id),
        lambda: desk.run("nothing"),
    ):
        with pytest.raises(ltm.NotFound):
            work()
    desk.run(one.id)
    desk.reject(two.id)
    clock.forward(4)
    before = dump(memory)
    for proposal, word in ((one, "approved"), (two, "rejected"), (three, "expired")):
        with pytest.raises(ltm.Conflict, match=word):
            desk.run(proposal.id)
    assert dump(memory) == before
    assert desk.get(two.id).content == ""


def test_an_expired_proposal_does_not_wait_any_longer(space: ltm.Space, desk: ltm.Consolidation, clock: Clock) -> None:
    proposal = drafted(space, stored(space))
    clock.forward(4)
    assert desk.proposals() == []
    assert (desk.get(proposal.id).status, desk.get(proposal.id).content) == ("expired", "")


def test_a_proposal_whose_sources_ran_out_in_the_meantime_is_stale(space: ltm.Space, desk: ltm.Consolidation, clock: Clock) -> None:
    ids = stored(space, "a", "b", valid_until="2026-03-04T00:00:00Z")
    proposal = drafted(space, ids)
    clock.forward(2.5)
    with pytest.raises(ltm.Conflict, match="stale"):
        desk.run(proposal.id)


def test_two_reviewers_publish_one_summary(opened: Opened, tmp_path: Path) -> None:
    memory = opened(tmp_path / "m.db")
    memory.configure("consolidation_enabled", True)
    space = memory.space(GROUP, speaker=ALICE)
    proposal = drafted(space, stored(space))
    start, results = threading.Barrier(6), []

    def run() -> None:
        start.wait()
        try:
            results.append(space.consolidation.run(proposal.id).outcome)
        except ltm.Conflict:
            results.append("conflict")

    threads = [threading.Thread(target=run) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == ["changed"] + ["conflict"] * 5
    assert space.list().total == 3


def test_a_summary_that_is_there_already_is_refused_and_the_proposal_stays(space: ltm.Space, desk: ltm.Consolidation) -> None:
    ids = stored(space)
    published(space, ids)
    again = drafted(space, ids)
    with pytest.raises(ltm.Conflict):
        desk.run(again.id)
    assert (desk.get(again.id).status, space.list().total) == ("pending", 3)


def test_proposals_are_listed_newest_first_by_status(space: ltm.Space, desk: ltm.Consolidation) -> None:
    ids = stored(space)
    one, two = drafted(space, ids, "one"), drafted(space, ids, "two")
    desk.reject(one.id)
    assert [p.id for p in desk.proposals()] == [two.id]
    assert [p.id for p in desk.proposals(status=None)] == [two.id, one.id]
    with pytest.raises(ltm.InvalidInput):
        desk.proposals(status="lost")


def test_the_audit_tells_every_step(space: ltm.Space, desk: ltm.Consolidation) -> None:
    ids = stored(space)
    summary = published(space, ids)
    space.archive(ids[0])
    entries = space.audit.list().entries
    assert [e.operation for e in entries[:3]] == ["archived", "consolidate_run", "consolidate_draft"]
    assert summary in repr(entries[0])


# ------------------------------------------------------------------------------------------------ undo


@pytest.mark.parametrize("change", ["archived", "edited", "given a validity", "forgotten", "corrected", "superseded", "tombstoned"])
def test_undoing_the_end_of_a_source_brings_the_summary_back_with_its_lineage(
    space: ltm.Space, desk: ltm.Consolidation, change: str
) -> None:
    ids = stored(space)
    summary = published(space, ids)
    done = CHANGES[change](space, ids[1])
    assert space.find(summary) is None
    assert done.removed == (summary,)
    space.undo(done.audit_id)
    assert (space.get(summary).status, desk.lineage(summary)) == ("active", (ids, []))
    assert "豆豆" in space.recall("豆豆 summary").hits[0].episode.content


def test_undoing_a_publication_takes_the_summary_alone(space: ltm.Space, desk: ltm.Consolidation) -> None:
    ids = stored(space)
    proposal = drafted(space, ids)
    done = desk.run(proposal.id)
    space.undo(done.audit_id)
    assert (space.find(done.id), space.list().total) == (None, 2)
    with pytest.raises(ltm.Conflict):
        desk.run(proposal.id)


@pytest.mark.parametrize("later", ["edited", "archived", "forgotten", "given a validity"])
def test_no_undo_brings_back_a_summary_of_a_source_that_changed_since(
    space: ltm.Space, desk: ltm.Consolidation, later: str
) -> None:
    """The summary went with its first source; its second changed while nothing cited it."""
    ids = stored(space)
    summary = published(space, ids)
    done = space.archive(ids[0])
    CHANGES[later](space, ids[1])
    try:
        space.undo(done.audit_id)
    except ltm.Conflict:
        assert space.get(ids[0]).status == "archived"
    else:
        assert space.get(ids[0]).status == "active"
    assert space.find(summary) is None


def test_an_undo_that_cannot_be_leaves_the_rest_of_a_batch(memory: ltm.Memory, space: ltm.Space, desk: ltm.Consolidation) -> None:
    ids = stored(space)
    published(space, ids)
    done = space.forget(ids[0])
    space.forget(ids[1])
    with memory.batch():
        kept = space.remember("kept in the same batch").id
        try:
            space.undo(done.audit_id)
        except ltm.Conflict:
            pass
    assert space.get(kept).content == "kept in the same batch"


def test_a_source_restored_by_hand_does_not_bring_its_summary_back(space: ltm.Space, desk: ltm.Consolidation) -> None:
    ids = stored(space)
    summary = published(space, ids)
    space.archive(ids[0])
    space.restore(ids[0])
    assert space.find(summary) is None
