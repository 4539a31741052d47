"""ltm_text: credentials and statements, judged by the examples in tests/data and by what must hold for any text."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ltm_text

DATA = Path(__file__).parent / "data"
SECRETS = [line.split("\t", 1) for line in (DATA / "secrets.txt").read_text("utf-8").split("\n") if line]
STATEMENTS = [json.loads(line) for line in (DATA / "statements.jsonl").read_text("utf-8").split("\n") if line]
BYPASSES = (DATA / "frame_bypass.txt").read_text("utf-8").split("\n")[:-1]

# Pieces that rules meet in odd company; no quotation mark, fence or frame that could pair across a doubled text.
PIECES = st.sampled_from(
    [
        "I like tea",
        "my name is Bob",
        "call me ",
        "我叫小明",
        "我喜欢茶",
        "叫我",
        "I am a nurse",
        "我住在上海",
        "tomorrow at 5",
        "我明天开会",
        "we decided",
        "password ",
        ": ",
        "密码",
        "是",
        "is ",
        "hunter2",
        ". ",
        "! ",
        "? ",
        "。",
        "！",
        "？",
        "；",
        "\n",
        "\r",
        "\u2028",
        "\t",
        " ",
        ",",
        "，",
        "if ",
        "如果",
        "he said ",
        "他说",
        "吗",
        "你呢",
        "3.5",
        "e.g. ",
        "Dr. ",
        "U.S. ",
        "https://a.b/?c=d. ",
        "> ",
        "- ",
        "什么",
        "\x85",
        "Ａ",
        "ﷺ",
        "İ",
        "王",
        "a",
        "1",
        "😀",
    ]
)
MIXED = st.lists(PIECES, max_size=12).map("".join)


def stated(text: str) -> list[list[str]]:
    return [[found.kind, found.field, found.value] for found in ltm_text.statements(text)]


def test_the_examples_are_many_and_each_is_one() -> None:
    for tag in ("yes", "no"):
        texts = [text for kind, text in SECRETS if kind == tag]
        assert len(set(texts)) == len(texts) >= 40
        assert sum(not text.isascii() for text in texts) >= 20
    assert len({example["text"] for example in STATEMENTS}) == len(STATEMENTS) >= 80
    assert sum(not example["expect"] for example in STATEMENTS) >= 40


def test_every_credential_of_the_examples_is_found_and_nothing_else() -> None:
    missed = [text for tag, text in SECRETS if tag == "yes" and not ltm_text.secrets(text)]
    wrong = [text for tag, text in SECRETS if tag == "no" and ltm_text.secrets(text)]
    true = sum(tag == "yes" for tag, _ in SECRETS)
    found = true - len(missed)
    print(f"secrets: recall {found / true:.3f}, precision {found / max(1, found + len(wrong)):.3f}")
    assert (missed, wrong) == ([], [])


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("my password is hunter2 and my PIN is 4821", ("password", "PIN")),
        ("PIN 4821, password: hunter2", ("password", "PIN")),
        ("验证码是482913，密码是abc123", ("code", "password")),
        ("-----BEGIN FAKE PRIVATE KEY-----", ("private key",)),
        ("11010519491231002X", ("identity number",)),
        ("110105194912310021", ()),  # the checksum is wrong
        ("4111 1111 1111 1111", ("card",)),
        ("4111 1111 1111 1112", ()),
        ("ftp://fakeuser:fakepass@example.com", ("URL with a password",)),
        ("", ()),
    ],
)
def test_the_kinds_come_in_a_fixed_order(text: str, kinds: tuple[str, ...]) -> None:
    assert ltm_text.secrets(text) == kinds


@given(st.one_of(st.text(max_size=200), MIXED))
def test_secrets_of_any_text_are_kinds_and_no_values(text: str) -> None:
    kinds = ltm_text.secrets(text)
    assert set(kinds) <= set(ltm_text._SECRET_KINDS)
    assert kinds == ltm_text.secrets(text)


@pytest.mark.parametrize("example", STATEMENTS, ids=lambda example: example["text"][:30] or "empty")
def test_a_message_states_what_its_example_says(example: dict[str, object]) -> None:
    assert stated(str(example["text"])) == example["expect"]


def test_a_sentence_tells_where_it_stands_and_why() -> None:
    text = "  My name is Ann.  我喜欢茶。 I live in Rome! We decided to stay. I have an exam on Monday."
    found = ltm_text.statements(text)
    assert [text[s.start : s.end] for s in found[1:]] == [s.value for s in found[1:]]
    assert text[found[0].start : found[0].end] == "My name is Ann."
    assert [s.reason for s in found] == [
        "states a name",
        "states a preference",
        "states a trait",
        "tells of a decision",
        "tells of a plan",
    ]


def test_a_document_is_no_statement_and_a_message_has_at_most_fifty() -> None:
    assert ltm_text.statements("I like " + "very " * 120 + "hot tea.") == []
    assert len(ltm_text.statements("I like tea. " * 80)) == ltm_text.STATEMENTS


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("一。二！三？四；五\n六", ["一。", "二！", "三？", "四；", "五", "六"]),
        ("It costs 3.5 yuan, e.g. here. Fine.", ["It costs 3.5 yuan, e.g. here.", "Fine."]),
        ("Dr. Li lives in the U.S. and works. She", ["Dr. Li lives in the U.S. and works.", "She"]),
        ("I live in the U.S. I like it.", ["I live in the U.S.", "I like it."]),
        ("See https://a.example/b.c?d=e!f=gh. Then go.", ["See https://a.example/b.c?d=e!f=gh.", "Then go."]),
        ("他说：“好。”然后走了。", ["他说：“好。”", "然后走了。"]),
        ("Wait... what?! No", ["Wait...", "what?!", "No"]),
        (" \n\n . ", ["."]),
        ("", []),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text: str, parts: list[str]) -> None:
    assert [text[start:end] for start, end in ltm_text.sentences(text)] == parts


@given(st.one_of(st.text(max_size=200), MIXED))
def test_sentences_of_any_text_hold_all_of_it_but_space(text: str) -> None:
    spans = ltm_text.sentences(text)
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert all(one[1] <= other[0] for one, other in pairwise(spans))
    assert "".join("".join(text[start:end] for start, end in spans).split()) == "".join(text.split())


@given(st.one_of(st.text(max_size=200), MIXED))
def test_statements_of_any_text_stand_in_it_in_order(text: str) -> None:
    found = ltm_text.statements(text)
    assert all(0 <= s.start < s.end <= len(text) and s.value and s.value in text[s.start : s.end] for s in found)
    assert all(one.end <= other.start for one, other in pairwise(found))
    assert all(s.field == "name" or s.value == text[s.start : s.end] == s.value.strip() for s in found)


@given(MIXED)
def test_a_message_said_twice_states_everything_twice(text: str) -> None:
    once = stated(text)
    assert stated(text + "\n" + text) == once + once


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "1 ",
        "password ",
        "密码是",
        "sk-a",
        "eyJ",
        "http://",
        "“",
        "「」",
        "`",
        "```\n",
        "'a ",
        ".",
        "a. ",
        "> ",
        "\n",
        "\t",
        "我",
        "叫我",
    ]
    + [
        "I like tea ",
        "if I would ",
        "我明天",
        "1月",
        "\u0315\u0300",
        "ﷺ",
        "<<<ltm-memory\n",
        "is my a b password ",
        "4111 ",
        "bearer ",
        "pass?",
        "eyJ密码",
        "(",
    ],
)
def test_hostile_runs_are_read_to_their_end(piece: str) -> None:
    """A rule that were quadratic in such a run would take minutes here."""
    text = (piece * 300_000)[:300_000]
    ltm_text.secrets(text)
    assert len(ltm_text.statements(text)) <= ltm_text.STATEMENTS
    assert all(end <= len(text) for _, end in ltm_text.sentences(text))


def test_the_attempts_to_leave_a_frame_are_many_and_each_is_one_text() -> None:
    attempts = [json.loads(line) for line in BYPASSES]
    assert all(isinstance(attempt, str) for attempt in attempts)
    assert len(set(attempts)) == len(attempts) >= 90
    for attempt in attempts:
        ltm_text.secrets(attempt)
        ltm_text.statements(attempt)
