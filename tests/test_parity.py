"""Behaviours that users of LongTermMemory know, line by line, in the form they have here. The number is that of the checklist;
lines about the host's own storage and pages belong to the plugin."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import ltm
import ltm_models
from ltm_console.actions import ACTIONS, perform

from .conftest import ALICE, BOB, GROUP, texts

OTHER = ltm.Scope("b1", "group", "8")
ALL = ltm.Filter(statuses=ltm.STATUSES)


def operations(space: ltm.Space) -> list[str]:
    return [entry.operation for entry in space.audit.list(limit=500).entries]


@pytest.fixture
def other(memory: ltm.Memory) -> ltm.Space:
    return memory.space(OTHER, speaker=ALICE)


@pytest.fixture
def reviewed(space: ltm.Space) -> ltm.Space:
    """Extraction and consolidation turned on."""
    for name in ("candidate_extraction_enabled", "consolidation_enabled"):
        space.memory.configure(name, True)
    space.memory.configure("consolidation_min_age_days", 0)
    return space


def test_01_and_02_audit_listing_and_export_hold_the_current_scope_alone(space: ltm.Space, other: ltm.Space) -> None:
    mine, theirs = space.remember("mine").id, other.remember("theirs").id
    assert [entry.target_id for entry in space.audit.list().entries] == [mine]
    exported = json.dumps(space.transfer.export(["audit"]))
    assert mine in exported
    assert theirs not in exported


def test_03_and_04_list_shows_active_and_on_request_superseded(space: ltm.Space) -> None:
    old = space.remember("Tuesday", importance=4).id
    new = space.remember("Friday", supersedes=[old]).id
    assert [each.id for each in space.list().episodes] == [new]
    both = perform("list", space, {"statuses": ["active", "superseded"]})["episodes"]
    assert [(each["id"], each["status"], each["importance"]) for each in both] == [(new, "active", 2), (old, "superseded", 4)]


def test_05_31_and_55_health_of_a_sound_file_reports_each_check_and_leaves_nothing(space: ltm.Space) -> None:
    space.remember("x")
    found = space.memory.health()
    assert (found.status, [check.id for check in found.checks]) == ("OK", ["write", "search", "list", "delete", "cleanup"])
    assert [info.key for info in space.memory.spaces()] == ["b1:group_7"]


def test_06_07_and_56_health_names_a_leak(space: ltm.Space, monkeypatch: pytest.MonkeyPatch) -> None:
    """Isolation itself is broken: both probe chats are led to one space."""
    space.remember("x")
    real = ltm.Space._identity
    monkeypatch.setattr(ltm.Space, "_identity", lambda self, kind: (*real(self, kind)[:3], "the same for all"))
    found = space.memory.health()
    monkeypatch.undo()
    assert found.status == "ERROR"
    states = {check.id: check.status for check in found.checks}
    assert (states["search"], states["list"], states["delete"]) == ("ERROR", "ERROR", "ERROR")
    assert len(space.memory.spaces()) == 1


def test_09_show_tells_status_successor_and_content(space: ltm.Space) -> None:
    old = space.remember("Tuesday").id
    new = space.remember("Friday", supersedes=[old]).id
    text = ACTIONS["show"].text(space.get(old))
    for words in ("superseded", new, "Tuesday"):
        assert words in text


def test_10_hidden_rows_are_listed_by_status(space: ltm.Space) -> None:
    old = space.remember("Tuesday").id
    space.remember("Friday", supersedes=[old])
    kept = space.archive(space.remember("the old office").id).id
    assert [each.id for each in space.list(ltm.Filter(statuses=["superseded"])).episodes] == [old]
    assert [each.id for each in space.list(ltm.Filter(statuses=["archived"])).episodes] == [kept]


def test_11_27_archive_and_restore_are_audited_under_their_names(space: ltm.Space) -> None:
    id = space.remember("x").id
    space.archive(id)
    space.restore(id)
    assert operations(space) == ["restore", "archived", "remember"]
    row = space.audit.list().entries[0].to_json(space.scope)
    assert (row["scope_key"], row["user_key"], row["target_id"]) == ("b1:group_7", "b1:group_7", id)


def test_12_29_and_48_export_has_all_statuses_of_the_scope_and_is_audited(space: ltm.Space, other: ltm.Space) -> None:
    kept = space.remember("a").id
    space.archive(space.remember("b").id)
    other.remember("foreign")
    data = space.transfer.export(["episodes"])
    assert data["statuses"] == sorted(ltm.STATUSES)
    assert [each["content"] for each in data["episodes"]] == ["a", "b"]
    assert [each["id"] for each in space.transfer.export(["episodes"], statuses=["active"])["episodes"]] == [kept]
    assert operations(space)[:2] == ["export_l2", "export_l2"]


def test_13_and_49_import_lands_in_the_current_scope_whatever_the_file_says(space: ltm.Space, other: ltm.Space) -> None:
    foreign = other.remember("theirs")
    rows = [{"id": "e1", "content": "moved", "status": "archived", "user_key": "b1:group_8", "tags": ["t"]}]
    space.transfer.load(json.dumps({"user_key": "b1:group_8", "episodes": rows}).encode())
    (episode,) = space.list(ALL).episodes
    assert (episode.content, episode.status) == ("moved", "archived")
    assert episode.id != "e1"
    assert space.transfer.export(["episodes"])["episodes"][0]["imported_episode_id"] == "e1"
    assert [each.id for each in other.list(ALL).episodes] == [foreign.id]
    assert "import_l2" in operations(space)


def test_14_28_and_50_bulk_delete_takes_only_what_the_filter_lets_pass(space: ltm.Space, other: ltm.Space) -> None:
    kept, gone = space.remember("kept").id, space.archive(space.remember("gone").id).id
    foreign = other.archive(other.remember("gone").id).id
    done = space.forget_all(ltm.Filter(statuses=["archived"]))
    assert done.counts == {"archived": 1}
    assert [each.id for each in space.list(ALL).episodes] == [kept]
    assert other.get(foreign).status == "archived"
    entry = space.audit.list().entries[0]
    assert (entry.operation, entry.metadata["ids"], entry.metadata["deleted"]) == ("delete_l2_bulk", [gone], 1)


def test_15_and_51_consolidation_preview_writes_nothing(reviewed: ltm.Space) -> None:
    old = reviewed.remember("Tuesday").id
    reviewed.remember("Friday", supersedes=[old])
    before = (operations(reviewed), reviewed.list(ALL))
    assert [each.id for each in reviewed.consolidation.preview().superseded] == [old]
    assert (operations(reviewed), reviewed.list(ALL)) == before


def test_16_consolidation_is_refused_when_it_is_turned_off(space: ltm.Space) -> None:
    old = space.remember("Tuesday").id
    space.remember("Friday", supersedes=[old])
    with pytest.raises(ltm.Conflict, match="turned off"):
        space.consolidation.run()
    assert space.get(old).status == "superseded"


def test_17_52_and_h_a_run_archives_only_what_was_superseded_in_one_entry(reviewed: ltm.Space, clock: Callable[[], int]) -> None:
    old = reviewed.remember("Tuesday").id
    active = reviewed.remember("Friday", supersedes=[old], importance=1).id
    clock.forward(400)  # type: ignore[attr-defined]
    done = reviewed.consolidation.run()
    assert done.counts == {"archived": 1}
    assert (reviewed.get(old).status, reviewed.get(active).status) == ("archived", "active")
    entry = reviewed.audit.list().entries[0]
    assert (entry.operation, entry.metadata["archived"]) == ("consolidate_run", [old])
    assert reviewed.list(ALL).total == 2, "no summary of statistics"


def test_18_to_21_and_53_candidates_wait_and_decisions_are_audited(reviewed: ltm.Space) -> None:
    found = reviewed.candidates.extract("Tomorrow we meet Bob at 5 pm. I prefer tea.").candidates
    episode, profile = (next(each for each in found if each.type == kind) for kind in ("l2_episode", "l1_profile"))
    assert {each.id for each in reviewed.candidates.list().candidates} == {episode.id, profile.id}
    reviewed.candidates.reject(episode.id)
    reviewed.candidates.accept(profile.id)
    assert operations(reviewed)[:2] == ["candidate_accept", "candidate_reject"]
    assert reviewed.candidates.list().candidates == ()
    assert reviewed.candidates.get(episode.id).status == "rejected"
    assert reviewed.profiles.get("speaker").preferences == ("I prefer tea.",)


def test_22_extraction_is_off_until_it_is_turned_on(space: ltm.Space) -> None:
    assert space.candidates.extract("Tomorrow we meet Bob at 5 pm.").candidates == ()
    assert space.candidates.list(status=None).total == 0


def test_23_extraction_proposes_the_user_s_words_and_stores_no_memory(reviewed: ltm.Space) -> None:
    (candidate,) = reviewed.candidates.extract("Tomorrow we meet Bob at 5 pm.").candidates
    assert (candidate.type, candidate.status, candidate.payload["content"]) == (
        "l2_episode",
        "pending",
        "Tomorrow we meet Bob at 5 pm.",
    )
    assert reviewed.list(ALL).total == 0


def test_24_a_credential_is_noticed_and_never_stored(tmp_path: Path, opened: Callable[..., ltm.Memory]) -> None:
    memory = opened(tmp_path / "a.db")
    space = memory.space(GROUP, speaker=ALICE)
    (candidate,) = space.candidates.extract("I prefer tea and my password is zebra-hammer-77", force=True).candidates
    assert (candidate.type, candidate.payload["redacted"]) == ("ignore", True)
    for path in tmp_path.iterdir():
        assert b"zebra-hammer" not in path.read_bytes()


def test_25_41_to_43_only_active_memories_are_recalled_unless_asked(space: ltm.Space) -> None:
    stored = space.remember("the flight is on Tuesday")
    assert space.get(stored.id).status == "active"
    space.archive(stored.id)
    space.remember("the flight is on Friday")
    assert texts(space.recall("when is the flight?")) == ["the flight is on Friday"]
    assert len(space.recall("when is the flight?", where=ltm.Filter(statuses=["active", "archived"]))) == 2
    assert space.list().total == 1


def test_26_and_46_with_a_failing_model_recall_goes_by_words(opened: Callable[..., ltm.Memory]) -> None:
    class Failing(ltm.HashEmbedder):
        broken = False

        def embed_queries(self, texts: object) -> list[list[float]]:  # type: ignore[override]
            if self.broken:
                raise ltm.EmbedderError("down")
            return super().embed_passages(texts)  # type: ignore[arg-type]

        def embed_passages(self, texts: object) -> list[list[float]]:  # type: ignore[override]
            return ltm.HashEmbedder.embed_passages(self, texts)  # type: ignore[arg-type]

    embedder = Failing()
    space = opened(embedder=embedder).space(GROUP)
    space.remember("the flight is on Friday")
    assert space.recall("flight").mode == "hybrid"
    embedder.broken = True
    found = space.recall("flight")
    assert (found.mode, found.reason, texts(found)) == ("lexical", "down", ["the flight is on Friday"])


def test_30_profile_export_is_audited(space: ltm.Space) -> None:
    space.profiles.update("name", "set", "Alice")
    (profile,) = space.transfer.export(["profiles"])["profiles"]
    assert (profile["type"], profile["sender_id"], profile["profile"]["name"]) == ("speaker", "u1", "Alice")
    assert operations(space)[0] == "export_profiles"


def test_34_35_and_57_the_snapshot_of_a_prompt_is_kept_by_chat(space: ltm.Space, other: ltm.Space) -> None:
    assert space.injections() == []
    space.remember("the flight is on Friday")
    space.inject("flight?")
    space.inject("which flight?")
    assert [each["query"] for each in space.injections()] == ["which flight?", "flight?"]
    assert other.injections() == []


def test_36_to_39_fences_are_listed_and_cleared_one_by_one(space: ltm.Space) -> None:
    one, whole = space.memory.fence("a chat", space), space.memory.fence("everything")
    assert [(fence.key, fence.reason) for fence in space.memory.fences()] == [("b1:group_7", "a chat"), ("", "everything")]
    with pytest.raises(ltm.NotFound):
        space.memory.clear_fence(99)
    space.memory.clear_fence(one.id)
    with pytest.raises(ltm.Fenced, match="everything"):
        space.remember("x")
    space.memory.clear_fence(whole.id)
    space.remember("x")


def test_40_audit_is_listed_newest_first_and_exported_oldest_first(space: ltm.Space) -> None:
    ids = [space.remember(text).id for text in "abc"]
    assert [entry.target_id for entry in space.audit.list().entries] == ids[::-1]
    assert [entry["target_id"] for entry in space.transfer.export(["audit"])["audit"]] == ids


def test_44_and_b_a_correction_tag_or_likeness_replaces_nothing(space: ltm.Space) -> None:
    old = space.remember("the flight is on Tuesday").id
    space.remember("the flight is on Friday", tags=["correction", "fact-update"])
    assert space.get(old).status == "active"


def test_45_a_change_of_status_keeps_the_rest_and_stays_in_its_scope(space: ltm.Space, other: ltm.Space) -> None:
    id = space.remember("x", tags=["t"], importance=5, source_ref="m1").id
    before = space.get(id)
    space.archive(id)
    after = space.get(id)
    assert (after.content, after.tags, after.importance, after.source_ref) == (before.content, ("t",), 5, "m1")
    with pytest.raises(ltm.NotFound):
        other.archive(id)


def test_47_and_f_an_exact_id_or_tag_wins_at_any_rank(space: ltm.Space) -> None:
    ids = [space.remember(f"a message about nothing number {n}", tags=[f"tag{n}"]).id for n in range(60)]
    assert space.recall(ids[7], limit=1).hits[0].episode.id == ids[7]
    assert space.recall("tag9", limit=1).hits[0].episode.id == ids[9]


def test_54_and_71_an_accepted_episode_is_its_speaker_s_by_the_normal_path(reviewed: ltm.Space) -> None:
    (candidate,) = reviewed.for_speaker(BOB).candidates.extract("Tomorrow we meet Ann at 5 pm.").candidates
    reviewed.candidates.accept(candidate.id)
    (episode,) = reviewed.list().episodes
    assert (episode.source, episode.speaker) == ("candidate", BOB)
    assert texts(reviewed.recall("when do we meet Ann?")) == ["Tomorrow we meet Ann at 5 pm."]


def test_61_and_62_a_document_is_deleted_whole_or_not_at_all(tmp_path: Path, opened: Callable[..., ltm.Memory]) -> None:
    memory = opened(tmp_path / "a.db")
    rows = json.dumps([{"content": f"line {n}"} for n in range(400)]).encode()
    memory.space(GROUP).transfer.load_document("d0", rows)
    seen: list[int] = []

    def load() -> None:
        memory.space(GROUP).transfer.load_document("d1", rows.replace(b"line", b"row"))

    def delete() -> None:
        for _ in range(20):
            seen.append(memory.space(GROUP).transfer.delete_document("d1").counts["deleted"])

    threads = [threading.Thread(target=work) for work in (load, delete)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(seen) <= {0, 400}
    assert memory.space(GROUP).list(ALL).total in (400, 800)


def test_63_to_66_and_73_a_fence_stops_every_write_of_its_scope_and_survives(
    tmp_path: Path, opened: Callable[..., ltm.Memory]
) -> None:
    memory = opened(tmp_path / "a.db")
    space, free = memory.space(GROUP, speaker=ALICE), memory.space(OTHER, speaker=ALICE)
    id = space.remember("x").id
    fence = memory.fence("being looked at", space)
    memory.close()
    memory = opened(tmp_path / "a.db")
    space, free = memory.space(GROUP, speaker=ALICE), memory.space(OTHER, speaker=ALICE)
    writes: list[Callable[[], object]] = [
        lambda: space.remember("y"),
        lambda: space.forget(id),
        lambda: space.profiles.update("name", "set", "A"),
        lambda: space.transfer.load(b'[{"content": "z"}]'),
        lambda: space.transfer.delete_document("d"),
        lambda: space.candidates.extract("I prefer tea.", force=True),
        lambda: space.erase(everything=True),
        lambda: space.undo(space.audit.list(operation="remember").entries[0].id),
    ]
    for write in writes:
        with pytest.raises(ltm.Fenced, match=f"being looked at. Clear fence {fence.id}"):
            write()
    assert texts(space.recall("x")) == ["x"]
    free.remember("free")
    memory.clear_fence(fence.id)
    space.remember("y")


def test_67_a_refused_value_fences_nothing(space: ltm.Space) -> None:
    with pytest.raises(ltm.InvalidInput):
        space.remember("x", importance=9)
    assert space.memory.fences() == []


def test_70_and_72_writes_within_an_operation_do_not_block_it(reviewed: ltm.Space) -> None:
    (candidate,) = reviewed.candidates.extract("I prefer tea.").candidates
    done: list[object] = []
    thread = threading.Thread(target=lambda: done.append(reviewed.candidates.accept(candidate.id)))
    thread.start()
    thread.join(20)
    assert done


def test_74_a_fence_on_the_file_stops_all_of_it(space: ltm.Space, other: ltm.Space) -> None:
    space.memory.fence("maintenance")
    for each in (space, other):
        with pytest.raises(ltm.Fenced, match="maintenance"):
            each.remember("x")


def test_77_remember_is_audited_with_who_and_which_message(memory: ltm.Memory) -> None:
    space = memory.space(GROUP, speaker=ALICE, via="tool", query_id="q-17")
    stored = space.remember("x")
    row = space.audit.get(stored.audit_id).to_json(space.scope)
    wanted = {
        "operation": "remember",
        "sender_id": "u1",
        "sender_name": "Alice",
        "query_id": "q-17",
        "via": "tool",
        "target_id": stored.id,
    }
    assert wanted.items() <= row.items()


@pytest.mark.parametrize("kind", ["unknown id", "other scope", "other speaker", "not active"])
def test_a_a_bad_target_of_supersedes_writes_nothing(space: ltm.Space, other: ltm.Space, kind: str) -> None:
    mine = space.remember("mine", importance=5).id
    targets = {"unknown id": "0" * 12, "other scope": other.remember("theirs").id}
    targets |= {
        "other speaker": space.for_speaker(BOB).remember("Bob's").id,
        "not active": space.archive(space.remember("old").id).id,
    }
    before = (space.list(ALL), operations(space))
    with pytest.raises((ltm.NotFound, ltm.InvalidInput, ltm.Conflict)):
        space.remember("new", supersedes=[mine, targets[kind]])
    assert (space.list(ALL), operations(space)) == before
    space.remember("new", supersedes=[mine])
    assert (space.get(mine).status, space.get(mine).importance) == ("superseded", 5)


@pytest.mark.parametrize("name", ["event_at", "valid_from", "valid_until"])
def test_c_times_need_a_zone_and_keep_microseconds(space: ltm.Space, name: str) -> None:
    with pytest.raises(ltm.InvalidInput, match="zone"):
        space.remember("x", **{name: "2026-12-08T09:00:00"})  # type: ignore[arg-type]
    id = space.remember("x", **{name: "2026-12-08T09:00:00.000001+09:00"}).id  # type: ignore[arg-type]
    assert getattr(space.get(id), name) == "2026-12-08T00:00:00.000001Z"
    with pytest.raises(ltm.InvalidInput, match="before"):
        space.remember("y", valid_from="2026-12-08T09:00:00Z", valid_until="2026-12-08T09:00:00Z")
    assert space.get(id).claim_type == "unknown"
    with pytest.raises(ltm.InvalidInput, match="claim_type"):
        space.remember("z", claim_type="rumour")


def test_d_one_bad_time_in_an_import_and_nothing_is_written(space: ltm.Space) -> None:
    rows = [{"content": "good"}, {"content": "bad", "event_at": "2026-12-08T09:00:00"}]
    with pytest.raises(ltm.InvalidInput, match="1 of 2"):
        space.transfer.load(json.dumps(rows).encode())
    assert space.list(ALL).total == 0


def test_e_what_a_host_needs_of_memory_comes_in_one_answer(space: ltm.Space) -> None:
    space.profiles.update("notes", "add", "a quiet group")
    space.remember("the flight is on Friday")
    context = space.inject("flight").context
    assert (context["session_profile"]["notes"], context["episodes"][0]["text"]) == ("a quiet group", "the flight is on Friday")
    assert context["speaker_profile"]["name"] == ""


def test_g_a_model_may_only_quote_and_always_waits(reviewed: ltm.Space) -> None:
    reviewed.memory.configure("candidate_auto_apply", True)
    said = "We moved to Lisbon. It is sunny."
    quote = json.dumps({"items": [{"evidence_quote": "We moved to Lisbon.", "class": "l2_episode", "field": ""}]})
    (candidate,) = reviewed.candidates.extract(said, model=ltm_models.ScriptedModel(quote)).candidates
    assert (candidate.status, candidate.payload["claim_type"]) == ("pending", "inference")
    twisted = quote.replace("Lisbon.", "Lisboa.")
    with pytest.raises(ltm.ModelError):
        reviewed.candidates.extract(said, model=ltm_models.ScriptedModel(twisted))
    assert reviewed.candidates.list(status=None).total == 1


def published(space: ltm.Space) -> tuple[str, list[str]]:
    ids = [
        space.remember("Ann flies to Rome", valid_from="2026-01-01T00:00:00Z", valid_until="2027-06-01T00:00:00Z").id,
        space.remember("Ann stays a week", valid_from="2026-02-01T00:00:00Z", valid_until="2027-01-01T00:00:00Z").id,
    ]
    model = ltm_models.ScriptedModel(json.dumps({"summary": "Ann has a week in Rome", "cites": ids}))
    return space.consolidation.run(space.consolidation.draft(model, ids).id).id, ids


def test_i_a_proposal_is_of_one_use_and_one_scope_and_carries_its_sources(reviewed: ltm.Space, other: ltm.Space) -> None:
    summary, ids = published(reviewed)
    episode = reviewed.get(summary)
    assert (episode.status, episode.claim_type) == ("active", "inference")
    assert (episode.valid_from, episode.valid_until) == ("2026-02-01T00:00:00Z", "2027-01-01T00:00:00Z")
    assert list(reviewed.consolidation.lineage(summary)[0]) == ids
    (proposal,) = reviewed.consolidation.proposals(status=None)
    with pytest.raises(ltm.Conflict, match="approved"):
        reviewed.consolidation.run(proposal.id)
    with pytest.raises(ltm.NotFound):
        other.consolidation.run(proposal.id)


@pytest.mark.parametrize("how", ["supersede", "archive", "tombstone", "forget", "bulk", "edit"])
def test_j_a_summary_goes_with_its_source(reviewed: ltm.Space, how: str) -> None:
    summary, (first, second) = published(reviewed)
    ends: dict[str, Callable[[], object]] = {
        "supersede": lambda: reviewed.remember("Ann flies to Paris", supersedes=[first]),
        "archive": lambda: reviewed.archive(first),
        "tombstone": lambda: reviewed.set_status(first, "deleted"),
        "forget": lambda: reviewed.forget(first),
        "bulk": lambda: reviewed.forget_all(ltm.Filter(before=reviewed.get(first).created_at)),
        "edit": lambda: reviewed.edit(first, content="Ann flies to Oslo"),
    }
    ends[how]()
    assert reviewed.find(summary) is None
    assert reviewed.get(second).status == "active"
