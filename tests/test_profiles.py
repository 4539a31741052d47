"""L1: facts with slots and history; every action of the interface, and what it keeps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

import ltm

from .conftest import ALICE, BOB, GROUP, Clock, counting_ids


def statuses(space: ltm.Space, field: str) -> list[tuple[str, str, str]]:
    return [(fact.value, fact.status, fact.reason) for fact in space.profiles.history("speaker", field)]


def test_name_is_one_value_and_remove_clears_it(space: ltm.Space) -> None:
    desk = space.profiles
    desk.update("name", "set", "Alice")
    desk.update("name", "add", "Ali")
    assert desk.get("speaker").name == "Ali"
    assert desk.update("name", "remove").profile.name == ""
    assert statuses(space, "name") == [("Alice", "superseded", "profile_update"), ("Ali", "removed", "explicit_remove")]


def test_a_slot_holds_one_value_and_its_history(space: ltm.Space) -> None:
    desk = space.profiles
    desk.update("preferences", "add", "coffee", fact_key="  Hot   Drink ")
    change = desk.update("preferences", "set", "tea", fact_key="hot_drink")
    assert (change.added, change.ended, change.outcome) == (1, 1, "changed")
    assert change.profile.preferences == ("tea",)
    assert desk.update("preferences", "set", "tea", fact_key="hot_drink").outcome == "unchanged"
    assert desk.update("preferences", "remove", fact_key="hot_drink").profile.preferences == ()
    assert statuses(space, "preferences") == [("coffee", "superseded", "profile_update"), ("tea", "removed", "explicit_remove")]


def test_a_previous_value_enters_the_history_of_a_new_slot(space: ltm.Space) -> None:
    space.profiles.update("preferences", "set", "tea", fact_key="drink", previous_value="coffee")
    assert statuses(space, "preferences") == [("coffee", "superseded", "provided_previous_value"), ("tea", "current", "")]
    assert space.profiles.get("speaker").hints == ("preference drink: now tea, before coffee",)


def test_a_slot_takes_over_equal_free_values(space: ltm.Space) -> None:
    for value in ("coffee", "tea", "cake"):
        space.profiles.update("preferences", "add", value)
    found = space.profiles.update("preferences", "set", "tea", fact_key="drink", previous_value="coffee").profile
    assert found.preferences == ("tea", "cake")


def test_free_values_are_a_list_and_set_resets_all(space: ltm.Space) -> None:
    desk = space.profiles
    desk.update("traits", "add", "curious")
    desk.update("traits", "add", "patient")
    assert desk.update("traits", "add", "curious").outcome == "unchanged"
    desk.update("traits", "set", "tall", fact_key="height")
    assert desk.get("speaker").traits == ("tall", "curious", "patient")
    assert desk.update("traits", "remove", "tall").profile.traits == ("curious", "patient")
    desk.update("traits", "set", "short", fact_key="height")
    assert desk.update("traits", "set", "quiet").profile.traits == ("quiet",)
    assert ("short", "superseded", "field_set_reset") in statuses(space, "traits")


def test_notes_belong_to_the_session_add_up_and_are_not_cut(space: ltm.Space) -> None:
    desk = space.profiles
    for n in range(5):
        desk.update("notes", "add", f"{n}" * 900)
    notes = desk.get("session").notes
    assert notes == "; ".join(f"{n}" * 900 for n in range(5))
    assert not desk.get("speaker")
    assert "1" * 900 not in desk.update("notes", "remove", "1" * 900).profile.notes
    assert desk.update("notes", "remove").profile.notes == ""
    desk.update("notes", "add", "kept?")
    assert desk.update("notes", "remove", "whatever is said").profile.notes == ""  # as hosts expect
    assert desk.update("notes", "set", "fresh").profile.notes == "fresh"


def test_what_is_not_shown_is_counted(space: ltm.Space) -> None:
    for n in range(25):
        found = space.profiles.update("traits", "add", f"trait {n}").profile
    assert len(found.traits) == ltm.SETTINGS["max_profile_traits"].default
    assert found.hidden["traits"] == 5
    assert "5 more traits not shown" in found.text()
    assert len(space.profiles.history("speaker", "traits")) == 25


def test_profiles_are_apart_by_speaker_and_by_session(memory: ltm.Memory, space: ltm.Space) -> None:
    space.profiles.update("name", "set", "Alice")
    space.profiles.update("name", "set", "The weekend group", subject="session")
    assert space.profiles.get("session").name == "The weekend group"
    assert not space.for_speaker(BOB).profiles.get("speaker")
    assert not memory.space(ltm.Scope("b1", "group", "8"), speaker=ALICE).profiles.get("speaker")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("mood", "set", "x"), "field"),
        (("name", "clear", "x"), "action"),
        (("name", "set", ""), "value"),
        (("traits", "remove", ""), "value"),
        (("notes", "add", " "), "value"),
        (("notes", "set", "x" * 2001), "2,000"),
        (("name", "set", None), "value"),
    ],
)
def test_wrong_edits_are_named(space: ltm.Space, arguments: tuple[str, str, str], words: str) -> None:
    with pytest.raises(ltm.InvalidInput, match=words):
        space.profiles.update(*arguments)
    assert space.profiles.history("speaker") == []


def test_keys_and_subjects_are_checked(space: ltm.Space) -> None:
    with pytest.raises(ltm.InvalidInput, match="fact_key"):
        space.profiles.update("notes", "add", "x", fact_key="k")
    with pytest.raises(ltm.InvalidInput, match="subject"):
        space.profiles.update("name", "set", "x", subject="group")  # type: ignore[arg-type]
    with pytest.raises(ltm.InvalidInput, match="speaker"):
        space.for_speaker(None).profiles.update("name", "set", "x")


def test_an_operation_key_makes_it_once(space: ltm.Space) -> None:
    first = space.profiles.update("traits", "add", "curious", operation_key="k")
    space.profiles.update("traits", "remove", "curious")
    again = space.profiles.update("traits", "add", "curious", operation_key="k")
    assert (first.outcome, again.outcome) == ("changed", "repeated")
    assert space.profiles.get("speaker").traits == ()


def test_the_text_is_what_a_tool_and_a_prompt_show(space: ltm.Space, clock: Clock, snapshot: SnapshotAssertion) -> None:
    desk = space.profiles
    desk.update("name", "set", "小林")
    desk.update("traits", "set", "vegetarian", fact_key="diet", previous_value="eats everything")
    clock.forward(40)
    desk.update("preferences", "set", "绿茶", fact_key="drink", previous_value="咖啡")
    desk.update("preferences", "add", "concise answers")
    desk.update("notes", "add", "off on Fridays", subject="speaker")
    found = desk.get("speaker")
    assert found.text() == snapshot(name="tool")
    assert found.text("## Current Speaker Profile") == snapshot(name="prompt")
    assert ltm.Profile().text() == ""


EDITS = st.tuples(
    st.sampled_from(ltm.PROFILE_FIELDS),
    st.sampled_from(["set", "add", "remove"]),
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from(["", "k", "l"]),
)


@given(st.lists(EDITS, max_size=15))
def test_no_fact_is_ever_lost_and_a_slot_never_holds_two(edits: list[tuple[str, str, str, str]]) -> None:
    with ltm.open(":memory:", clock=Clock(), ids=counting_ids()) as memory:
        space = memory.space(GROUP, speaker=ALICE)
        began = 0
        for field, action, value, key in edits:
            key = key if field in ("traits", "preferences") else ""
            before = len(space.profiles.history("speaker"))
            change = space.profiles.update(field, action, value, subject="speaker", fact_key=key)
            began += change.added
            assert len(space.profiles.history("speaker")) == before + change.added
            current = [
                (f.field, f.slot)
                for f in space.profiles.history("speaker")
                if f.status == "current" and (f.slot or f.field == "name")
            ]
            assert len(current) == len(set(current))
            if action == "remove":
                assert value not in getattr(change.profile, field) or key
        assert began == len(space.profiles.history("speaker"))
        assert memory.check() == []
