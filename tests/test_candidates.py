"""Candidates: what is proposed from a message, what a model may say, what a credential leaves behind, and what a person decides."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ltm
import ltm_models

from .conftest import ALICE, BOB, GROUP, Clock, counting_ids
from .test_episodes import dump

DATA = Path(__file__).parent / "data"
SECRETS = [line.split("\t", 1) for line in (DATA / "secrets.txt").read_text("utf-8").split("\n") if line]
STATEMENTS = [json.loads(line) for line in (DATA / "statements.jsonl").read_text("utf-8").split("\n") if line]
Opened = Callable[..., ltm.Memory]


def scripted(*items: tuple[str, str, str]) -> ltm_models.ScriptedModel:
    """A model that selects (quote, class, field)."""
    found = [{"evidence_quote": quote, "class": kind, "field": field} for quote, kind, field in items]
    return ltm_models.ScriptedModel(json.dumps({"items": found}))


class Calling:
    """A model that does something while it is asked."""

    name = "calling"

    def __init__(self, work: Callable[[], Any], answer: str = '{"items": []}') -> None:
        self.work, self.answer, self.result = work, answer, None

    def complete(self, system: str, user: str) -> str:
        self.result = self.work()
        return self.answer


def raw_bytes(memory: ltm.Memory) -> bytes:
    path = Path(memory.path)
    return b"".join(p.read_bytes() for p in path.parent.iterdir() if p.name.startswith(path.name))


def operations(space: ltm.Space) -> list[str]:
    return [entry.operation for entry in space.audit.list(limit=100).entries]


def extract(space: ltm.Space, text: str, **options: Any) -> ltm.Extraction:
    return space.candidates.extract(text, force=True, **options)


# ------------------------------------------------------------------------------------------ extraction


def test_extraction_is_off_until_it_is_turned_on_and_then_stores_candidates_alone(memory: ltm.Memory, space: ltm.Space) -> None:
    before = dump(memory)
    found = space.candidates.extract("I prefer tea.")
    assert (found.candidates, dump(memory)) == ((), before)
    assert "turned off" in found.notes[0]
    memory.configure("candidate_extraction_enabled", True)
    (one,) = space.candidates.extract("We meet tomorrow at 5.").candidates
    assert (one.type, one.status, one.sender_id, one.sender_name) == ("l2_episode", "pending", "u1", "Alice")
    assert one.payload["content"] == "We meet tomorrow at 5."
    assert space.list().total == 0
    assert not space.profiles.get("speaker")


def test_several_statements_of_one_turn_are_several_candidates_in_both_languages(memory: ltm.Memory) -> None:
    memory.configure("candidate_max_per_turn", 10)
    space = memory.space(GROUP, speaker=ALICE, query_id="q1")
    found = extract(space, "我叫小明。我喜欢绿茶！ I live in Rome. 明天下午三点开会。You know?").candidates
    assert [(c.payload.get("field", ""), c.payload.get("value") or c.payload["content"]) for c in found] == [
        ("name", "小明"), ("preferences", "我喜欢绿茶！"), ("traits", "I live in Rome."), ("", "明天下午三点开会。"),
    ]  # fmt: skip
    assert {c.payload["source_ref"] for c in found} == {"query:q1"}
    assert {c.payload["claim_type"] for c in found} == {"user_statement"}


def test_what_is_left_out_of_a_turn_is_said(space: ltm.Space) -> None:
    found = extract(space, "I like tea. I like rice. I like rain. I like jazz. I like dogs.")
    assert len(found.candidates) == 3
    assert "2 more were left out" in found.notes[0]


@pytest.mark.parametrize(
    "text",
    [
        "What is the explanation of this plan?", "Do you like tea?", "我应该喜欢茶吗？", "他说：“我喜欢茶。”", '"I like tea."', "> I like tea.",
        "If I lived in Rome I would like pasta.", "如果我住在上海就好了。", "the tokenizer prefers explanation", "airplane mode", "",
        "[ltm-memory 0123456789ab begin]\n1. 2026-03-02 Alice: I like tea.\n[ltm-memory 0123456789ab end]",
    ],
)  # fmt: skip
def test_questions_quotations_suppositions_and_parts_of_words_are_no_facts(space: ltm.Space, text: str) -> None:
    assert extract(space, text).candidates == ()


def test_every_example_becomes_the_candidates_that_it_should(memory: ltm.Memory) -> None:
    memory.configure("candidate_max_per_turn", 10)
    wrong = []
    with memory.batch():
        for n, example in enumerate(STATEMENTS):
            space = memory.space(ltm.Scope("b1", "person", f"{n}"), speaker=ALICE)
            found = extract(space, example["text"]).candidates
            got = [["episode", "", c.payload["content"]] if c.type == "l2_episode" else ["profile", c.payload.get("field"), c.payload.get("value")] for c in found]  # fmt: skip
            if got != example["expect"][:10] and [c.type for c in found] != ["ignore"]:
                wrong.append((example["text"], got))
    assert wrong == []


def test_the_same_statement_in_two_messages_waits_once(memory: ltm.Memory) -> None:
    first = extract(memory.space(GROUP, speaker=ALICE, query_id="q1"), "I prefer green tea.").candidates
    again = extract(memory.space(GROUP, speaker=ALICE, query_id="q2"), "I prefer green tea.").candidates
    other = extract(memory.space(GROUP, speaker=BOB, query_id="q3"), "I prefer green tea.").candidates
    assert [c.id for c in again] == [c.id for c in first]
    assert other[0].id != first[0].id


def test_a_message_too_long_or_blank_is_skipped_and_that_is_said(memory: ltm.Memory, space: ltm.Space) -> None:
    model = ltm_models.ScriptedModel()
    for text in ("", " \n", "I like tea. " * 700):
        found = extract(space, text, model=model)
        assert found.candidates == ()
        assert "1 to 8,000" in found.notes[0]
    assert model.asked == []
    assert extract(space, ("x" * 7_988) + " I like tea.").notes == ()


@given(st.text(max_size=80))
def test_any_message_can_be_looked_at(text: str) -> None:
    with ltm.open(":memory:", clock=Clock(), ids=counting_ids()) as memory:
        found = extract(memory.space(GROUP, speaker=ALICE), text)
        for each in found.candidates:
            if each.type != "ignore":
                memory.space(GROUP).candidates.accept(each.id)
        assert memory.check() == []


# ----------------------------------------------------------------------------------------- credentials


def test_a_credential_leaves_one_redacted_note_and_no_byte_of_itself(opened: Opened, tmp_path: Path) -> None:
    memory = opened(tmp_path / "m.db")
    secrets = [text for tag, text in SECRETS if tag == "yes"]
    model = ltm_models.ScriptedModel()
    for n, text in enumerate(secrets):
        space = memory.space(ltm.Scope("b1", "person", f"{n}"), speaker=ALICE)
        message = f"I like tea. {text}"
        (one,) = extract(space, message, model=model).candidates
        (same,) = extract(space, message).candidates
        assert one.id == same.id
        assert (one.type, one.status, one.payload["content"], one.payload["redacted"]) == ("ignore", "pending", "[redacted]", True)
        if n % 20 == 0:  # whatever else a host does with it
            space.inject(message)
            space.inject("well " * 90 + message)
            space.candidates.accept(one.id)
    assert model.asked == []
    stored = raw_bytes(memory)
    assert [text for text in secrets if len(text) > 12 and text.encode() in stored] == []


def test_auto_apply_accepts_no_note_of_a_credential(memory: ltm.Memory, space: ltm.Space) -> None:
    memory.configure("candidate_auto_apply", True)
    (one,) = extract(space, "my password is hunter2").candidates
    assert one.status == "pending"
    assert space.candidates.accept(one.id)[0].outcome == "changed"
    assert (space.list().total, space.candidates.get(one.id).status) == (0, "accepted")


@pytest.mark.parametrize(
    ("type", "payload", "reason"),
    [
        ("ignore", {"content": "my password is hunter2"}, ""),
        ("l2_episode", {"content": "he told me the code"}, "password: hunter2"),
        ("l2_episode", {"content": "fine", "note": "my password is hunter2"}, ""),
        ("l2_episode", {"content": "fine", "tags": ["password=hunter2"]}, ""),
        ("l1_profile", {"field": "notes", "value": "my password is hunter2"}, ""),
    ],
)
def test_a_candidate_of_the_host_s_making_holds_no_credential_anywhere(
    opened: Opened, tmp_path: Path, type: str, payload: dict[str, Any], reason: str
) -> None:
    memory = opened(tmp_path / "m.db")
    space = memory.space(GROUP, speaker=ALICE)
    with contextlib.suppress(ltm.SecretDetected):  # refused, or stored without it
        space.candidates.add(type, payload, reason)
    assert b"hunter2" not in raw_bytes(memory)


def test_every_example_of_a_credential_is_refused_as_a_payload_and_nothing_else_is(memory: ltm.Memory) -> None:
    space, wrong = memory.space(GROUP, speaker=ALICE), []
    with memory.batch():
        for tag, text in SECRETS:
            for content in (text, "note:\n" + text, text + "\nbye"):
                try:
                    space.candidates.add("l2_episode", {"content": content})
                    refused = False
                except ltm.SecretDetected:
                    refused = True
                if refused != (tag == "yes"):
                    wrong.append((tag, content))
    assert wrong == []


@pytest.mark.parametrize(
    ("type", "payload"),
    [
        ("rumour", {"content": "x"}), (None, {"content": "x"}), ([], {"content": "x"}), ("l2_episode", {}), ("l2_episode", {"content": ""}), ("l2_episode", {"content": 3}),
        ("l2_episode", {"content": "x", "importance": 9}), ("l2_episode", {"content": "x", "tags": "ab"}), ("l2_episode", {"content": "x", "claim_type": "gossip"}),
        ("l2_episode", {"content": "x" * 20_001}), ("l2_episode", {"content": "x", "event_at": "2026-01-01T00:00:00"}), ("l2_episode", {"content": "x", "extra": float("nan")}),
        ("l2_episode", {"content": "x", "extra": {1, 2}}), ("l2_episode", {"content": "x", "extra": b"x"}), ("l2_episode", ["content"]), ("l2_episode", None), ("l2_episode", "content"),
        ("l1_profile", {"field": "hobby", "value": "x"}), ("l1_profile", {"field": "traits", "value": ""}), ("l1_profile", {"field": "traits", "value": "x", "target_scope": "world"}),
        ("l1_profile", {"field": "name", "value": "x", "fact_key": "k"}), ("l1_profile", {"field": [], "value": "x"}), ("ignore", "x"),
    ],
)  # fmt: skip
def test_what_is_no_candidate_is_refused_as_such_and_writes_nothing(
    memory: ltm.Memory, space: ltm.Space, type: Any, payload: Any
) -> None:
    before = dump(memory)
    with pytest.raises(ltm.InvalidInput):
        space.candidates.add(type, payload)
    assert dump(memory) == before


def test_what_the_database_cannot_hold_is_replaced_in_a_payload_as_it_is_in_a_memory(space: ltm.Space) -> None:
    one = space.candidates.add("l2_episode", {"content": "a\ud800b\x00c"})
    space.candidates.accept(one.id)
    assert space.list().episodes[0].content == "a\ufffdb\ufffdc"


# ------------------------------------------------------------------------------------------- the model

TEXT = "I am vegan. We moved to 柏林 in May. 我对花生过敏。Is that ok?"


def test_a_model_s_selection_is_always_pending_inference_with_its_field(memory: ltm.Memory) -> None:
    memory.configure("candidate_auto_apply", True)
    space = memory.space(GROUP, speaker=ALICE, query_id="q9")
    model = scripted(
        ("I am vegan.", "l1_profile", "traits"),
        ("我对花生过敏。", "l1_profile", "preferences"),
        ("We moved to 柏林 in May.", "l2_episode", ""),
    )
    found = extract(space, TEXT, model=model).candidates
    assert [(c.type, c.status, c.payload["claim_type"], c.payload["source_ref"]) for c in found] == [
        ("l1_profile", "pending", "inference", "query:q9"), ("l1_profile", "pending", "inference", "query:q9"), ("l2_episode", "pending", "inference", "query:q9"),
    ]  # fmt: skip
    assert model.asked[0][1] == TEXT
    space.candidates.accept(found[2].id)
    assert space.list().episodes[0].claim_type == "inference"


def test_what_a_model_notes_of_a_person_goes_to_that_person_s_profile(space: ltm.Space) -> None:
    (one,) = extract(space, "I am vegan.", model=scripted(("I am vegan.", "l1_profile", "notes"))).candidates
    space.candidates.accept(one.id)
    assert space.profiles.get("speaker").notes == "I am vegan."
    assert space.profiles.get("session").notes == ""


def item(**changes: Any) -> dict[str, Any]:
    return {"evidence_quote": "I am vegan.", "class": "l1_profile", "field": "traits", **changes}


BAD_ANSWERS = {
    "no JSON": "sure!",
    "empty": "",
    "a list": "[]",
    "null": "null",
    "a number": "1",
    "prose around it": 'Here: {"items": []}',
    "two objects": '{"items": []} {"items": []}',
    "cut off": '{"items": [',
    "single quotes": "{'items': []}",
    "NaN": '{"items": NaN}',
    "a huge number": '{"items": ' + "9" * 5000 + "}",
    "deep nesting": "[" * 8000 + "]" * 8000,
    "deep nesting inside": '{"items": ' + "[" * 7000 + "]" * 7000 + "}",
    "no items": "{}",
    "an extra field": json.dumps({"items": [], "note": "x"}),
    "items are null": '{"items": null}',
    "items are an object": '{"items": {}}',
    "items are text": '{"items": "I am vegan."}',
    "an item is text": json.dumps({"items": ["I am vegan."]}),
    "an item is null": json.dumps({"items": [None]}),
    "an item is a list": json.dumps({"items": [["I am vegan.", "l1_profile", "traits"]]}),
    "an item without field": json.dumps({"items": [{"evidence_quote": "I am vegan.", "class": "l2_episode"}]}),
    "an item with an extra field": json.dumps({"items": [item(importance=5)]}),
    "an unknown class": json.dumps({"items": [item(**{"class": "ignore"})]}),
    "a class of another case": json.dumps({"items": [item(**{"class": "L1_profile"})]}),
    "a class that is null": json.dumps({"items": [item(**{"class": None})]}),
    "an unknown field": json.dumps({"items": [item(field="name")]}),
    "a field on an episode": json.dumps({"items": [item(**{"class": "l2_episode"})]}),
    "no field on a profile": json.dumps({"items": [item(field="")]}),
    "a quote that is a number": json.dumps({"items": [item(evidence_quote=3)]}),
    "a blank quote": json.dumps({"items": [item(evidence_quote="  ")]}),
    "an empty quote": json.dumps({"items": [item(evidence_quote="")]}),
    "a quote of other words": json.dumps({"items": [item(evidence_quote="I eat meat.")]}),
    "a quote in other case": json.dumps({"items": [item(evidence_quote="i am vegan.")]}),
    "a quote with a space more": json.dumps({"items": [item(evidence_quote="I am  vegan.")]}),
    "a quote with a space around": json.dumps({"items": [item(evidence_quote=" I am vegan.")]}),
    "a quote without its full stop": json.dumps({"items": [item(evidence_quote="I am vegan")]}),
    "part of a sentence": json.dumps({"items": [item(evidence_quote="vegan.")]}),
    "a quote of another width": json.dumps({"items": [item(evidence_quote="Ｉ am vegan.")]}),
    "a traditional form": json.dumps({"items": [item(evidence_quote="我對花生過敏。")]}),
    "a lone surrogate": '{"items": [{"evidence_quote": "\\ud800", "class": "l1_profile", "field": "traits"}]}',
    "two joined that do not follow": json.dumps({"items": [item(evidence_quote="I am vegan. 我对花生过敏。")]}),
    "one good and one bad": json.dumps({"items": [item(), item(evidence_quote="I eat meat.")]}),
    "more than the limit": json.dumps({"items": [item()] * 4}),
    "too long an answer": json.dumps({"items": []}) + " " * 16_000,
    "a field named twice": '{"items": [], "items": [' + json.dumps(item()) + "]}",
    "a field of an item named twice": '{"items": [{"evidence_quote": "I eat meat.", "evidence_quote": "I am vegan.", "class": "l1_profile", "field": "traits"}]}',
}


@pytest.mark.parametrize("answer", BAD_ANSWERS.values(), ids=BAD_ANSWERS)
def test_one_flaw_rejects_the_whole_answer_and_stores_nothing(memory: ltm.Memory, space: ltm.Space, answer: str) -> None:
    before = dump(memory)
    with pytest.raises(ltm.ModelError):
        extract(space, TEXT, model=ltm_models.ScriptedModel(answer))
    assert dump(memory) == before


def test_a_quote_selected_twice_is_one_candidate(space: ltm.Space) -> None:
    found = extract(space, TEXT, model=ltm_models.ScriptedModel(json.dumps({"items": [item(), item()]})))
    assert len(found.candidates) == space.candidates.list().total == 1


@pytest.mark.parametrize(
    "failure", [ltm.ModelError("down"), RuntimeError("boom"), KeyError("x"), SystemExit(1), KeyboardInterrupt()]
)
def test_a_model_that_fails_is_a_model_error_and_rules_do_not_step_in(
    memory: ltm.Memory, space: ltm.Space, failure: BaseException
) -> None:
    def fail() -> None:
        raise failure

    before = dump(memory)
    with pytest.raises(ltm.ModelError):
        extract(space, TEXT, model=Calling(fail))
    assert dump(memory) == before


@pytest.mark.parametrize("answer", [None, b'{"items": []}', 3, {"items": []}])
def test_an_answer_that_is_no_text_is_refused(space: ltm.Space, answer: Any) -> None:
    with pytest.raises(ltm.ModelError, match="not with text"):
        extract(space, TEXT, model=Calling(lambda: None, answer))


def test_bounds_of_a_quote_and_of_an_answer_are_inclusive(space: ltm.Space) -> None:
    quote = "I like " + "a" * 1992 + "."
    assert len(quote) == 2000
    (one,) = extract(space, quote, model=scripted((quote, "l2_episode", ""))).candidates
    assert one.payload["content"] == quote
    with pytest.raises(ltm.ModelError, match="2,000"):
        extract(space, "x" + quote, model=scripted(("x" + quote, "l2_episode", "")))
    empty = '{"items": []}'
    assert extract(space, TEXT, model=ltm_models.ScriptedModel(empty + " " * (16_000 - len(empty)))).candidates == ()


def test_a_model_that_does_not_answer_is_left_behind() -> None:
    never = threading.Event()
    try:
        with pytest.raises(ltm.ModelError, match="did not answer"):
            ltm_models.ask(Calling(never.wait), "s", "u", seconds=0.01)
    finally:
        never.set()


def test_a_model_cannot_select_what_was_injected(space: ltm.Space) -> None:
    space.remember("I like tea")
    shown = space.inject("tea").memories
    line = shown.split("\n")[2]
    sentence = line.split(". ", 1)[1]
    for quote in (sentence, shown):
        with pytest.raises(ltm.ModelError):
            extract(space, shown, model=scripted((quote, "l2_episode", "")))


@pytest.mark.parametrize("isolation", ["session", "bot"])
def test_a_model_may_write_and_read_through_the_same_memory_while_it_is_asked(
    opened: Opened, tmp_path: Path, isolation: str
) -> None:
    memory = opened(tmp_path / "m.db")
    space = memory.space(ltm.Scope("b1", "group", "7", isolation), speaker=ALICE)

    def work() -> int:
        space.remember("written from the model's thread")
        other = threading.Thread(target=lambda: space.remember("written from another thread"))
        other.start()
        other.join()
        return space.list().total

    model = Calling(work, json.dumps({"items": [item()]}))
    (one,) = extract(space, TEXT, model=model).candidates
    assert model.result == 2
    space.candidates.accept(one.id)


def test_no_model_is_asked_while_a_batch_holds_the_writer(memory: ltm.Memory, space: ltm.Space) -> None:
    model = scripted(("I am vegan.", "l1_profile", "traits"))
    with memory.batch(), pytest.raises(ltm.InvalidInput, match="batch"):
        extract(space, TEXT, model=model)
    assert model.asked == []


def test_no_model_is_asked_where_nothing_could_be_stored(memory: ltm.Memory, space: ltm.Space) -> None:
    memory.fence("frozen", space)
    model = scripted(("I am vegan.", "l1_profile", "traits"))
    with pytest.raises(ltm.Fenced):
        extract(space, TEXT, model=model)
    assert model.asked == []


# ------------------------------------------------------------------------------------------- deciding


def test_accepting_an_episode_takes_the_normal_path_with_its_own_speaker(memory: ltm.Memory, space: ltm.Space) -> None:
    (one,) = extract(space, "My exam is tomorrow.").candidates
    operator = memory.space(GROUP, speaker=BOB, via="console")
    (done,) = operator.candidates.accept(one.id)
    (episode,) = space.list().episodes
    assert (episode.content, episode.source, episode.tags, episode.speaker) == (
        "My exam is tomorrow.",
        "candidate",
        ("candidate",),
        ALICE,
    )
    assert space.recall("exam").hits[0].episode.id == episode.id
    found = space.candidates.get(one.id)
    assert (found.status, found.result) == ("accepted", {"episode_id": episode.id, "outcome": "stored"})
    entry = space.audit.list(limit=1).entries[0]
    assert (entry.id, entry.operation, entry.via) == (done.audit_id, "candidate_accept", "console")


def test_an_accepted_episode_has_the_time_it_was_said_not_the_time_it_was_accepted(
    memory: ltm.Memory, space: ltm.Space, clock: Clock
) -> None:
    (one,) = extract(space, "My exam is tomorrow.").candidates
    clock.forward(20)
    space.candidates.accept(one.id)
    assert space.list().episodes[0].created_at == one.created_at


def test_accepting_an_old_candidate_does_not_give_a_speaker_the_old_name_again(memory: ltm.Memory, space: ltm.Space) -> None:
    (one,) = extract(space, "My exam is tomorrow.").candidates
    renamed = memory.space(GROUP, speaker=ltm.Speaker("u1", "Alicia"))
    renamed.remember("hello")
    space.candidates.accept(one.id)
    assert {e.speaker.name for e in renamed.list().episodes if e.speaker} == {"Alicia"}


def test_accepting_a_profile_writes_the_profile_of_whoever_said_it(memory: ltm.Memory, space: ltm.Space) -> None:
    (one,) = extract(space, "I prefer green tea.").candidates
    memory.space(GROUP, speaker=BOB).candidates.accept(one.id)
    assert space.profiles.get("speaker").preferences == ("I prefer green tea.",)
    assert not memory.space(GROUP, speaker=BOB).profiles.get("speaker")
    assert not space.profiles.get("session")


def test_accepting_what_is_stored_already_says_so(space: ltm.Space) -> None:
    stored = space.remember("My exam is tomorrow.").id
    (one,) = extract(space, "My exam is tomorrow.").candidates
    (done,) = space.candidates.accept(one.id)
    assert space.candidates.get(one.id).result == {"episode_id": stored, "outcome": "duplicate"}
    space.undo(done.audit_id)
    assert (space.candidates.get(one.id).status, space.get(stored).status) == ("pending", "active")


@pytest.mark.parametrize("text", ["My exam is tomorrow.", "I prefer green tea.", "My name is Ann.", "my password is hunter2"])
@pytest.mark.parametrize("auto", [False, True])
def test_undoing_an_accept_makes_it_pending_again_and_it_can_be_accepted_anew(
    memory: ltm.Memory, space: ltm.Space, text: str, auto: bool
) -> None:
    memory.configure("candidate_auto_apply", auto)
    space.profiles.update("name", "set", "Before")
    (one,) = extract(space, text).candidates
    if one.status == "pending":
        space.candidates.accept(one.id)
    entry = next(e for e in space.audit.list(limit=20).entries if e.operation in ("candidate_accept", "candidate_auto_apply"))
    undone = space.undo(entry.id)
    again = space.candidates.get(one.id)
    assert (again.status, again.result, again.payload) == ("pending", None, one.payload)
    assert (space.list().total, space.profiles.get("speaker").name, space.profiles.get("speaker").preferences) == (0, "Before", ())
    space.undo(undone.audit_id)
    assert space.candidates.get(one.id).status == "accepted"
    space.undo(space.audit.list(limit=1).entries[0].id)
    assert space.candidates.accept(one.id)[0].outcome == "changed"


def test_undoing_a_rejection_makes_it_pending_again(space: ltm.Space) -> None:
    (one,) = extract(space, "I prefer green tea.").candidates
    (done,) = space.candidates.reject(one.id)
    assert space.candidates.list().total == 0
    assert [c.id for c in space.candidates.list(status="rejected").candidates] == [one.id]
    assert [c.id for c in space.candidates.list(status=None).candidates] == [one.id]
    assert space.candidates.reject(one.id)[0].outcome == "unchanged"
    space.undo(done.audit_id)
    assert space.candidates.get(one.id).status == "pending"


def test_undo_of_an_accept_is_refused_once_the_memory_was_edited(space: ltm.Space) -> None:
    (one,) = extract(space, "My exam is tomorrow.").candidates
    (done,) = space.candidates.accept(one.id)
    space.edit(space.list().episodes[0].id, importance=5)
    with pytest.raises(ltm.Conflict):
        space.undo(done.audit_id)
    assert space.candidates.get(one.id).status == "accepted"


@pytest.mark.parametrize("verb", ["accept", "reject"])
def test_many_are_decided_together_or_not_at_all(memory: ltm.Memory, space: ltm.Space, verb: str) -> None:
    found = extract(space, "I prefer tea. My exam is tomorrow. We decided to stay.").candidates
    ids = [c.id for c in found]
    foreign = extract(memory.space(ltm.Scope("b1", "group", "8"), speaker=ALICE), "I prefer tea.").candidates[0].id
    done = space.candidates.add("l2_episode", {"content": "x"}).id
    space.candidates.accept(done)
    before = dump(memory)
    for bad, error in (
        (foreign, ltm.NotFound),
        ("nothing", ltm.NotFound),
        (done, ltm.Conflict),
        (None, ltm.InvalidInput),
        (["x"], ltm.InvalidInput),
    ):
        with pytest.raises(error):
            getattr(space.candidates, verb)(*ids, bad)
        assert dump(memory) == before
    with pytest.raises(ltm.InvalidInput):
        getattr(space.candidates, verb)()
    changed = getattr(space.candidates, verb)(*ids, ids[0])
    assert [c.id for c in changed] == ids
    assert len({c.audit_id for c in changed}) == 3
    assert {space.candidates.get(id).status for id in ids} == {verb + "ed"}


def test_an_error_in_the_middle_of_many_takes_back_the_first(memory: ltm.Memory, space: ltm.Space) -> None:
    """The second payload was broken by another program."""
    first, second = extract(space, "My exam is tomorrow. We decided to stay.").candidates
    with memory.batch():
        memory._file.batching.execute('UPDATE candidate SET payload = \'{"content":""}\' WHERE id = ?', (second.id,))  # type: ignore[union-attr]
    with pytest.raises(ltm.InvalidInput):
        space.candidates.accept(first.id, second.id)
    assert (space.candidates.get(first.id).status, space.list().total) == ("pending", 0)


def test_what_is_decided_is_not_decided_again(space: ltm.Space) -> None:
    one, other = extract(space, "I prefer tea. My exam is tomorrow.").candidates
    space.candidates.accept(one.id)
    space.candidates.reject(other.id)
    for verb, id in (("accept", one.id), ("reject", one.id), ("accept", other.id)):
        with pytest.raises(ltm.Conflict):
            getattr(space.candidates, verb)(id)


def test_two_reviewers_accept_one_candidate_once(opened: Opened, tmp_path: Path) -> None:
    memory = opened(tmp_path / "m.db")
    space = memory.space(GROUP, speaker=ALICE)
    (one,) = extract(space, "My exam is tomorrow.").candidates
    start, results = threading.Barrier(6), []

    def decide() -> None:
        start.wait()
        try:
            results.append(space.candidates.accept(one.id)[0].outcome)
        except ltm.Conflict:
            results.append("conflict")

    threads = [threading.Thread(target=decide) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == ["changed"] + ["conflict"] * 5
    assert space.list().total == 1


def test_another_chat_sees_and_decides_nothing(memory: ltm.Memory, space: ltm.Space) -> None:
    (one,) = extract(space, "I prefer tea.").candidates
    for other in (ltm.Scope("b1", "group", "8"), ltm.Scope("b1", "person", "7"), ltm.Scope("b2", "group", "7")):
        foreign = memory.space(other, speaker=ALICE)
        assert foreign.candidates.list(status=None).total == 0
        for verb in ("get", "accept", "reject"):
            with pytest.raises(ltm.NotFound):
                getattr(foreign.candidates, verb)(one.id)


def test_a_fenced_space_keeps_its_candidates_as_they_are(memory: ltm.Memory, space: ltm.Space) -> None:
    (one,) = extract(space, "I prefer tea.").candidates
    memory.fence("frozen", space)
    for work in (
        lambda: space.candidates.accept(one.id),
        lambda: space.candidates.reject(one.id),
        lambda: extract(space, "I like rice."),
    ):
        with pytest.raises(ltm.Fenced):
            work()
    assert space.candidates.get(one.id).status == "pending"


# --------------------------------------------------------------------------------- expiry and listing


def test_nothing_expires_unless_it_is_asked_for_and_what_did_is_kept_and_comes_back(
    memory: ltm.Memory, space: ltm.Space, clock: Clock
) -> None:
    (one,) = extract(space, "I prefer tea.").candidates
    clock.forward(5000)
    assert space.candidates.expire() == 0
    memory.configure("candidate_expiry_days", 30)
    (fresh,) = extract(space, "I prefer rice.").candidates
    assert space.candidates.get(one.id).status == "expired"
    assert space.candidates.list().total == 1
    assert [c.id for c in space.candidates.list(status="expired").candidates] == [one.id]
    entry = next(e for e in space.audit.list().entries if e.operation == "candidate_expire")
    with pytest.raises(ltm.Conflict, match="expired"):
        space.candidates.accept(one.id)
    space.undo(entry.id)
    assert {c.id for c in space.candidates.list().candidates} == {one.id, fresh.id}
    assert space.candidates.expire() == 1


def test_what_has_expired_cannot_be_accepted_before_somebody_marks_it(memory: ltm.Memory, space: ltm.Space, clock: Clock) -> None:
    memory.configure("candidate_expiry_days", 30)
    (one,) = extract(space, "I prefer tea.").candidates
    clock.forward(31)
    with pytest.raises(ltm.Conflict, match="expired"):
        space.candidates.accept(one.id)


def test_a_thousand_pending_candidates_are_all_kept_and_paged(memory: ltm.Memory, space: ltm.Space) -> None:
    with memory.batch():
        ids = [space.candidates.add("l2_episode", {"content": f"memory {n}"}).id for n in range(1050)]
    seen: list[str] = []
    cursor = ""
    while True:
        page = space.candidates.list(limit=200, cursor=cursor)
        seen += [c.id for c in page.candidates]
        assert page.total == 1050
        cursor = page.cursor
        if not cursor:
            break
    assert seen == ids[::-1]


@pytest.mark.parametrize("options", [{"status": "lost"}, {"limit": 0.5}, {"cursor": "x"}, {"limit": True}])
def test_a_listing_that_makes_no_sense_is_refused(space: ltm.Space, options: dict[str, Any]) -> None:
    with pytest.raises(ltm.InvalidInput):
        space.candidates.list(**options)


def test_every_step_is_in_the_audit_without_the_words(space: ltm.Space) -> None:
    one, other = extract(space, "I prefer green tea. My exam is tomorrow.").candidates
    space.candidates.accept(one.id)
    space.candidates.reject(other.id)
    assert operations(space)[:3] == ["candidate_reject", "candidate_accept", "candidate_add"]
    assert "green tea" not in json.dumps([repr(entry) for entry in space.audit.list().entries])
