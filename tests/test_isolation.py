"""Promise 1: nothing that another space holds changes what a space returns."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ltm

from .conftest import ALICE, BOB, GROUP, START_US, Clock, counting_ids, texts

MINE = [
    ("the flight to Tokyo leaves on Tuesday", ["travel"]),
    ("我养了一只狗叫豆豆", ["宠物"]),
    ("Alice prefers green tea to coffee", []),
    ("the server migration is planned for May", ["work"]),
    ("周末去爬山，带上相机", []),
]
QUESTIONS = ("flight Tokyo", "豆豆", "tea or coffee?", "travel", "server", "周末", "nothing of the kind", "%", "")


def fill(space: ltm.Space, now: list[int]) -> None:
    for text, tags in MINE:
        now[0] += 1_000_000
        space.remember(text, tags=tags)


def answers(space: ltm.Space) -> list[Any]:
    """Everything a space says to a set of questions: ids, order, scores, reasons, counts."""
    found: list[Any] = [space.recall(question, limit=10) for question in QUESTIONS]
    found += [
        space.recall("flight", where=ltm.Filter(tags=["travel"])),
        space.list(),
        space.list(ltm.Filter(statuses=ltm.STATUSES)),
    ]
    return [*found, space.pending(), space.profiles.get("speaker"), space.profiles.history("speaker")]


def hostile(memory: ltm.Memory, spaces: int) -> None:
    """Other spaces that repeat my words, my tags, my speaker, and drown them."""
    for n in range(spaces):
        other = memory.space(ltm.Scope(f"b{n % 7}", "group", f"7-{n}"), speaker=ALICE)
        other.remember(f"{MINE[n % 5][0]} {n}", tags=MINE[n % 5][1])
        other.remember("flight flight Tokyo 豆豆 tea server " * 20, tags=["travel", "work"])
        if n % 50 == 0:
            other.profiles.update("preferences", "add", f"tea {n}")


@pytest.mark.parametrize("embedder", [None, ltm.HashEmbedder()])
def test_recall_is_bit_identical_with_and_without_a_thousand_other_spaces(embedder: ltm.Embedder | None) -> None:
    foreign, results = itertools.count(10**6), []
    for crowded in (False, True):
        now, source, mine = [START_US], [counting_ids()], counting_ids()
        with ltm.open(":memory:", embedder=embedder, clock=lambda now=now: now[0], ids=lambda source=source: source[0]()) as memory:
            space = memory.space(GROUP, speaker=ALICE)
            for turn, spaces in enumerate((500, 0, 1000)):  # half of the others before, half after
                source[0] = mine if turn == 1 else (lambda: f"{next(foreign):012x}")
                if turn == 1:
                    fill(space, now)
                    space.profiles.update("traits", "set", "vegetarian", fact_key="diet")
                elif crowded:
                    with memory.batch():
                        hostile(memory, spaces)
            if embedder:
                memory.embed_pending()
            results.append(answers(space))
            assert memory.check() == []
    assert results[0] == results[1]


SCOPES = [
    ltm.Scope("", "group", "7"),
    ltm.Scope("", "person", "7"),
    ltm.Scope("%", "group", "7"),
    ltm.Scope("_", "group", "7"),
    ltm.Scope("*", "group", "7"),
    ltm.Scope("a:b", "group", "c"),
    ltm.Scope("a", "group", "b:c"),
    ltm.Scope("a", "group", "b_c"),
    ltm.Scope("A", "group", "b_c"),
    ltm.Scope("a ", "group", "b_c"),
    ltm.Scope(" a", "group", "b_c"),
    ltm.Scope("a", "group", "群/1"),
    ltm.Scope("a", "group", "群/１"),
    ltm.Scope("bot", "group", "7", "bot"),
    ltm.Scope("", "group", "7", "bot"),
    ltm.Scope("global", "group", "7", "bot"),
    ltm.Scope("a", "group", "' OR 1=1 --"),
    ltm.Scope("a", "group", "\u200b"),
]


def test_scopes_that_look_alike_never_meet(memory: ltm.Memory) -> None:
    ids = {}
    for n, scope in enumerate(SCOPES):
        ids[scope] = memory.space(scope, speaker=ALICE).remember(f"secret number {n}").id
    for n, scope in enumerate(SCOPES):
        space = memory.space(scope, speaker=BOB)
        assert texts(space.recall("secret number", limit=50)) == [f"secret number {n}"]
        assert [e.content for e in space.list().episodes] == [f"secret number {n}"]
        for other, id in ids.items():
            if other != scope:
                assert space.find(id) is None
                assert texts(space.recall(id)) == []


@pytest.mark.parametrize("part", [None, 7, b"x", True])
@pytest.mark.parametrize("at", range(4))
def test_a_missing_part_of_a_scope_is_an_error_and_no_wildcard(part: object, at: int) -> None:
    parts: list[Any] = ["b", "group", "7", "session"]
    parts[at] = part
    with pytest.raises(ltm.InvalidInput):
        ltm.Scope(*parts)


@pytest.mark.parametrize(
    "parts",
    [
        ("b", "", "7"),
        ("b", "Group", "7"),
        ("b", "group", ""),
        ("b", "group", "7", "all"),
        ("b\x00", "group", "7"),
        ("b", "group", "x" * 300),
    ],
)
def test_a_wrong_part_of_a_scope_is_an_error(parts: tuple[str, ...]) -> None:
    with pytest.raises(ltm.InvalidInput):
        ltm.Scope(*parts)


@pytest.mark.parametrize(
    ("scope", "session_key", "user_key"),
    [
        (ltm.Scope("B", "person", "42"), "B:person_42", "B:person_42"),
        (ltm.Scope("B", "group", "7"), "B:group_7", "B:group_7"),
        (ltm.Scope("B", "group", "7", "bot"), "B:group_7", "bot:B"),
        (ltm.Scope("", "person", "42"), "person_42", "person_42"),
        (ltm.Scope("", "group", "7", "bot"), "group_7", "global"),
    ],
)
def test_display_keys_are_those_that_hosts_know(scope: ltm.Scope, session_key: str, user_key: str) -> None:
    assert (scope.session_key, scope.user_key) == (session_key, user_key)


def test_bot_isolation_shares_episodes_and_not_profiles(memory: ltm.Memory) -> None:
    one = memory.space(ltm.Scope("b", "group", "1", "bot"), speaker=ALICE)
    two = memory.space(ltm.Scope("b", "person", "2", "bot"), speaker=ALICE)
    id = one.remember("the door code is on the fridge").id
    one.profiles.update("name", "set", "Alice")
    assert two.get(id).content == "the door code is on the fridge"
    assert not two.profiles.get("speaker")
    assert memory.space(ltm.Scope("b", "group", "1"), speaker=ALICE).find(id) is None
    assert memory.space(ltm.Scope("c", "group", "1", "bot")).find(id) is None


READS: dict[str, Callable[[ltm.Space, str], Any]] = {
    "recall": lambda space, text: [hit.episode.id for hit in space.recall(text, limit=100)],
    "recall all": lambda space, text: [
        hit.episode.id
        for hit in space.recall(text, limit=100, where=ltm.Filter(statuses=ltm.STATUSES), weights=ltm.Weights(min_relevance=0))
    ],
    "list": lambda space, text: [episode.id for episode in space.list(limit=100).episodes],
    "list all": lambda space, text: [e.id for e in space.list(ltm.Filter(statuses=ltm.STATUSES), limit=100).episodes],
    "by speaker": lambda space, text: [e.id for e in space.list(ltm.Filter(speaker_id="u1"), limit=100).episodes],
    "by name": lambda space, text: [e.id for e in space.list(ltm.Filter(speaker_name="Alice"), limit=100).episodes],
    "by tag": lambda space, text: [e.id for e in space.list(ltm.Filter(tags=["t"]), limit=100).episodes],
}


@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["red fox", "blue fox", "狐狸", "fox den"]), st.booleans()), max_size=12),
    st.sampled_from(["fox", "狐狸", "red", "t", "Alice", "u1", ""]),
)
def test_every_read_returns_rows_of_its_space_alone(writes: list[tuple[int, str, bool]], query: str) -> None:
    scopes = [
        ltm.Scope("b", "group", "1"),
        ltm.Scope("b", "group", "2"),
        ltm.Scope("b", "group", "1", "bot"),
        ltm.Scope("", "person", "1"),
    ]
    with ltm.open(":memory:", clock=Clock(), ids=counting_ids(), embedder=ltm.HashEmbedder(32)) as memory:
        owned: dict[int, set[str]] = {n: set() for n in range(4)}
        for n, text, tagged in writes:
            who = ALICE if tagged else BOB
            owned[n].add(memory.space(scopes[n], speaker=who).remember(text, tags=["t"] if tagged else []).id)
        for n, scope in enumerate(scopes):
            space = memory.space(scope, speaker=ALICE)
            for name, read in READS.items():
                assert set(read(space, query)) <= owned[n], name
            assert set(READS["list all"](space, query)) == owned[n]
            for other in range(4):
                for id in owned[other] - owned[n]:
                    assert space.find(id) is None
                    assert space.why_not(id, query).code == "not_found"
        assert memory.check() == []


def test_another_space_s_id_is_answered_like_one_that_never_was(memory: ltm.Memory, space: ltm.Space) -> None:
    foreign = memory.space(ltm.Scope("b1", "group", "8"), speaker=ALICE).remember("theirs").id
    messages = []
    for id in (foreign, "0" * 12):
        for call in (lambda id=id: space.get(id), lambda id=id: space.remember("x", supersedes=[id])):
            with pytest.raises(ltm.NotFound) as caught:
                call()
            messages.append(str(caught.value).replace(id, "ID"))
    assert messages[:2] == messages[2:]
    assert space.list().total == 0


def test_two_thousand_nearer_rows_elsewhere_do_not_starve_the_only_one_here(opened: Callable[..., ltm.Memory]) -> None:
    memory = opened(embedder=ltm.HashEmbedder(64))
    crowd = memory.space(ltm.Scope("b", "group", "crowd"), speaker=ALICE)
    with memory.batch():
        for n in range(2000):
            crowd.remember(f"umbrella {n}", vector=[1.0] + [0.0] * 63)
    me = memory.space(ltm.Scope("b", "group", "me"), speaker=ALICE)
    me.remember("an umbrella of mine")
    assert texts(me.recall("umbrella", limit=10)) == ["an umbrella of mine"]
