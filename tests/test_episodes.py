"""remember, get, list, supersede: limits, times, duplicates, exactly-once, atomicity."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ltm

from .conftest import ALICE, BOB, GROUP, Clock, counting_ids, texts

ALL = ltm.Filter(statuses=ltm.STATUSES)


def dump(memory: ltm.Memory) -> list[Any]:
    """Every row of every base and derived table: what must not change when a write fails."""
    with memory._file.read() as db:
        tables = [
            t
            for (t,) in db.execute(
                "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'episode_fts%' ORDER BY 1"
            )
        ]
        rows = [(table, db.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall()) for table in tables]
        return [*rows, db.execute("SELECT id FROM episode_fts_docsize ORDER BY id").fetchall()]


# ---------------------------------------------------------------------------------------------- storing


@given(st.text(min_size=1, max_size=200))
def test_content_comes_back_exactly_as_given(text: str) -> None:
    with ltm.open(":memory:", clock=Clock(), ids=counting_ids()) as memory:
        space = memory.space(GROUP, speaker=ALICE)
        if not text.strip():
            with pytest.raises(ltm.InvalidInput):
                space.remember(text)
            return
        stored = space.remember(text)
        lost = sum(c == "\x00" or "\ud800" <= c <= "\udfff" for c in text)
        expected = "".join("\ufffd" if c == "\x00" or "\ud800" <= c <= "\udfff" else c for c in text)
        assert space.get(stored.id).content == expected
        assert bool(stored.notes) == bool(lost)
        assert memory.check() == []


def test_every_field_round_trips(space: ltm.Space) -> None:
    id = space.remember(
        "dinner with 王芳", importance=5, tags=["Food", "朋友", "a,b"], source="import", source_ref="msg:1", claim_type="user_statement",
        event_at="2026-12-08T09:00:00.123456+09:00", valid_from="2026-01-01T00:00:00Z", valid_until="2027-01-01T00:00:00-05:30", pinned=True,
    ).id  # fmt: skip
    episode = space.get(id)
    assert episode.to_json() == {
        "id": id, "content": "dinner with 王芳", "tags": ["a,b", "Food", "朋友"], "importance": 5, "timestamp": episode.created_at,
        "sender_id": "u1", "sender_name": "Alice", "source": "import", "status": "active", "superseded_by": "",
        "event_at": "2026-12-08T00:00:00.123456Z", "valid_from": "2026-01-01T00:00:00Z", "valid_until": "2027-01-01T05:30:00Z",
        "source_ref": "msg:1", "claim_type": "user_statement", "pinned": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"content": ""}, "content"),
        ({"content": " \n"}, "content"),
        ({"content": None}, "content"),
        ({"content": "x" * 20_001}, "20,001 characters; the limit is 20,000"),
        ({"importance": 0}, "importance"),
        ({"importance": 6}, "importance"),
        ({"importance": True}, "importance"),
        ({"importance": "3"}, "importance"),
        ({"importance": 2.5}, "importance"),
        ({"importance": float("nan")}, "importance"),
        ({"tags": "travel"}, "tags"),
        ({"tags": ["x"] * 33}, "at most 32"),
        ({"tags": ["x" * 65]}, "64"),
        ({"tags": [""]}, "empty"),
        ({"tags": [7]}, "tag"),
        ({"claim_type": "rumour"}, "claim_type"),
        ({"source": ""}, "source"),
        ({"source_ref": "x" * 513}, "512"),
        ({"event_at": "2026-12-08T09:00:00"}, "no time zone"),
        ({"event_at": "2026-12-08"}, "no time zone"),
        ({"event_at": "tomorrow"}, "ISO-8601"),
        ({"event_at": "2026-02-30T00:00:00Z"}, "ISO-8601"),
        ({"event_at": datetime(2026, 1, 1)}, "no time zone"),
        ({"valid_from": "2026-01-01T00:00:00Z", "valid_until": "2026-01-01T00:00:00Z"}, "before"),
        ({"valid_from": "2026-01-01T00:00:00+02:00", "valid_until": "2025-12-31T22:00:00Z"}, "before"),
        ({"supersedes": "abc"}, "list"),
        ({"operation_key": ""}, "operation_key"),
        ({"vector": [1.0]}, "embedder"),
    ],
)
def test_what_cannot_be_taken_is_named_and_changes_nothing(
    memory: ltm.Memory, space: ltm.Space, options: dict[str, Any], words: str
) -> None:
    space.remember("something")
    before = dump(memory)
    with pytest.raises(ltm.InvalidInput, match=words):
        space.remember(**{"content": "text", **options})
    assert dump(memory) == before


def test_limits_are_inclusive(space: ltm.Space) -> None:
    text = "字" * 20_000
    id = space.remember(text, tags=[f"{n}".rjust(64, "x") for n in range(32)], source_ref="r" * 512).id
    assert space.get(id).content == text
    assert len(space.get(id).tags) == 32


def test_tags_match_whatever_their_case_and_are_kept_as_given(space: ltm.Space) -> None:
    id = space.remember("x", tags=["Travel", "TRAVEL", "ｔｒａｖｅｌ", "旅遊"]).id
    assert space.get(id).tags == ("Travel", "旅遊")
    for tag in ("travel", "TRAVEL", "旅游"):
        assert space.list(ltm.Filter(tags=[tag])).total == 1


# ----------------------------------------------------------------------------------------------- times


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("2026-01-01T00:30:00+08:00", "2025-12-31T16:30:00Z"),
        ("2025-12-31T17:00:00+00:00", "2025-12-31T17:00:00Z"),
        ("2026-01-01 00:00:00Z", "2026-01-01T00:00:00Z"),
        ("2026-01-01T00:00Z", "2026-01-01T00:00:00Z"),
        ("2026-01-01T23:59:59.999999-0800", "2026-01-02T07:59:59.999999Z"),
        ("2026-01-01T00:00:00.1234567Z", "2026-01-01T00:00:00.123456Z"),
        ("2026-06-01T12:00:00+05:45", "2026-06-01T06:15:00Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
        ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"),
    ],
)
def test_times_are_read_with_their_zone_and_written_in_utc(text: str, iso: str) -> None:
    assert ltm.to_iso(ltm.to_us(text)) == iso


@pytest.mark.parametrize(
    "text",
    ["", "now", "2026-13-01T00:00:00Z", "2026-01-32T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01T00:60:00Z", "2026-1-1T00:00:00Z", "1767225600000",
     "2026-01-01Z", "2026-01-01T00:00:00+25:00", "2026-01-01T00:00:00+08:75", "２０２６-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00x", None, 1.5, True],
)  # fmt: skip
def test_what_is_no_time_is_refused(text: Any) -> None:
    with pytest.raises(ltm.InvalidInput):
        ltm.to_us(text)


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"])
def test_times_out_of_range_are_refused_or_exact(text: str, space: ltm.Space) -> None:
    with pytest.raises(ltm.InvalidInput):
        space.remember("x", event_at=text)


@pytest.fixture(params=["Asia/Shanghai", "America/Los_Angeles", "UTC"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    os.environ.pop("TZ", None) if "TZ" not in os.environ else None
    time.tzset()


def test_the_machine_s_zone_changes_nothing(zone: str, space: ltm.Space) -> None:
    moment = datetime(2026, 3, 8, 2, 30, tzinfo=timezone(timedelta(hours=-8)))
    episode = space.get(space.remember("x", event_at=moment, created_at="2026-03-08 02:30:00").id)
    assert (episode.event_at, episode.created_at) == ("2026-03-08T10:30:00Z", "2026-03-08T02:30:00Z")


@given(st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999))
def test_microseconds_survive_the_text(us: int) -> None:
    assert ltm.to_us(ltm.to_iso(us)) == us


# ------------------------------------------------------------------------------------------- duplicates


@pytest.mark.parametrize("again", ["养了一只狗叫豆豆", "养了一只狗叫豆豆 ", "養了一隻狗叫豆豆。", "\n养了一只狗叫豆豆！"])
def test_the_same_memory_twice_is_one(space: ltm.Space, again: str) -> None:
    first = space.remember("养了一只狗叫豆豆")
    second = space.remember(again, importance=5)
    assert (second.id, second.outcome) == (first.id, "duplicate")
    assert second.notes == ("already stored with another importance, left as it is",)
    assert space.list(ALL).total == 1


def test_similar_is_not_the_same(space: ltm.Space) -> None:
    for text in (
        "周游世界",
        "在周末吃夜宵",
        "王芳在A公司工作",
        "王芳管理A公司的代码库",
        "I like C",
        "I like C#",
        "Bob left.",
        "Bob left?",
    ):
        space.remember(text, tags=["correction"])
    assert space.list().total == 8


def test_two_speakers_may_say_the_same(space: ltm.Space) -> None:
    ids = {space.for_speaker(who).remember("I am hungry").id for who in (ALICE, BOB, None)}
    assert len(ids) == 3


def test_what_was_superseded_may_be_said_again(space: ltm.Space) -> None:
    tea = space.remember("drinks tea").id
    coffee = space.remember("drinks coffee", supersedes=[tea]).id
    again = space.remember("drinks tea", supersedes=[coffee])
    assert again.outcome == "stored"
    assert again.id != tea


def test_a_correction_that_repeats_a_known_fact_supersedes_by_it(space: ltm.Space) -> None:
    known, old = space.remember("drinks tea").id, space.remember("drinks coffee").id
    done = space.remember("drinks tea", supersedes=[old])
    assert (done.id, done.outcome, done.superseded) == (known, "duplicate", (old,))
    assert space.get(old).superseded_by == known


def test_equal_hashes_are_compared_in_full(space: ltm.Space, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ltm, "_content_hash", lambda *_: b"12345678")
    assert space.remember("one thing").id != space.remember("another thing").id
    assert space.remember("One thing. ").outcome == "duplicate"


# ------------------------------------------------------------------------------------------- supersede


def test_a_correction_replaces_what_it_names(space: ltm.Space) -> None:
    old = space.remember("爱喝咖啡", importance=4, tags=["偏好"]).id
    new = space.remember("不喝咖啡了，改喝茶", supersedes=[old])
    assert new.superseded == (old,)
    replaced = space.get(old)
    assert (replaced.status, replaced.superseded_by, replaced.importance, replaced.content) == ("superseded", new.id, 4, "爱喝咖啡")
    assert texts(space.recall("现在爱喝什么咖啡")) == ["不喝咖啡了，改喝茶"]
    assert space.list().total == 1
    assert space.list(ALL).total == 2


def test_a_bad_target_fails_before_any_write(memory: ltm.Memory, space: ltm.Space) -> None:
    good = space.remember("good").id
    bobs = space.for_speaker(BOB).remember("by bob").id
    foreign = memory.space(ltm.Scope("b1", "group", "8"), speaker=ALICE).remember("elsewhere").id
    gone = space.remember("gone").id
    winner = space.remember("winner", supersedes=[gone]).id
    before = dump(memory)
    for target, error, words in [
        (foreign, ltm.NotFound, "no episode"),
        ("12", ltm.NotFound, "no episode"),
        ("", ltm.NotFound, "no episode"),
        ("\ud800", ltm.NotFound, "no episode"),
        (bobs, ltm.InvalidInput, "another speaker"),
        (gone, ltm.Conflict, winner),
    ]:
        with pytest.raises(error, match=words):
            space.remember("new", supersedes=[good, target])
        assert dump(memory) == before
    with pytest.raises(ltm.InvalidInput, match="itself"):
        space.remember("good", supersedes=[good])
    assert dump(memory) == before


# --------------------------------------------------------------------------------------- exactly once


def test_an_operation_key_answers_the_first_result_again(memory: ltm.Memory, space: ltm.Space, clock: Clock) -> None:
    first = space.remember("x", operation_key="q1")
    before = dump(memory)
    clock.forward(3)
    again = space.remember("x", operation_key="q1")
    assert (again.id, again.outcome) == (first.id, "repeated")
    assert dump(memory) == before
    with pytest.raises(ltm.Conflict, match="q1"):
        space.remember("y", operation_key="q1")
    assert dump(memory) == before
    other = memory.space(ltm.Scope("b1", "group", "8"), speaker=ALICE).remember("y", operation_key="q1")
    assert other.outcome == "stored"


def test_a_fence_blocks_writes_and_not_reads(memory: ltm.Memory, space: ltm.Space) -> None:
    id = space.remember("kept").id
    memory._write(
        lambda db: db.execute("INSERT INTO fence (space, reason, operation, since_us) VALUES (1, 'a test', 'import', 0)").fetchall()
    )
    with pytest.raises(ltm.Fenced, match="a test"):
        space.remember("no")
    assert space.get(id).content == "kept"
    assert memory.space(ltm.Scope("b1", "group", "8")).remember("elsewhere").outcome == "stored"


def test_a_fault_at_any_statement_leaves_before_or_after(opened: Callable[..., ltm.Memory]) -> None:
    """Promise 2: raise at the nth statement of an operation, for every n: the file is as before or as after."""
    n = 0
    while True:
        memory = opened(embedder=ltm.HashEmbedder(16))
        space = memory.space(GROUP, speaker=ALICE)
        old = space.remember("drinks coffee", tags=["a"]).id
        before, left = dump(memory), [n]

        def fault(*_: Any, left: list[int] = left) -> bool:
            left[0] -= 1
            if left[0] == -1:  # once: the rollback goes through
                raise RuntimeError("injected")
            return True

        memory._file._writer.exec_trace = fault  # type: ignore[union-attr]
        try:
            space.remember("drinks tea", supersedes=[old], tags=["b", "correction"], operation_key="k")
            finished = True
        except RuntimeError:
            finished = False
        memory._file._writer.exec_trace = None  # type: ignore[union-attr]
        if finished:
            assert dump(memory) != before
            break
        assert dump(memory) == before, f"statement {n}"
        assert memory.check() == []
        memory.close()
        n += 1
    assert n > 15


def test_a_batch_is_all_or_nothing(memory: ltm.Memory, space: ltm.Space) -> None:
    space.remember("before")
    before = dump(memory)
    with pytest.raises(ZeroDivisionError), memory.batch():
        space.remember("one")
        assert space.list().total == 2  # the batch sees itself
        raise ZeroDivisionError
    assert dump(memory) == before
    with memory.batch():
        space.remember("one")
        with pytest.raises(ltm.InvalidInput):
            space.remember("")
        with pytest.raises(ltm.NotFound):
            space.remember("two", supersedes=["0" * 12])
        space.remember("three")
        with pytest.raises(ltm.InvalidInput, match="batch"), memory.batch():
            pass
    assert space.list().total == 3


# ------------------------------------------------------------------------------------------------ lists


def test_paging_is_newest_first_whole_and_stable_under_writes(memory: ltm.Memory, space: ltm.Space) -> None:
    with memory.batch():
        ids = [space.remember(f"row {n}", created_at="2026-01-01T00:00:00Z" if n % 3 else None).id for n in range(57)]
    seen: list[str] = []
    cursor = ""
    while True:
        page = space.list(limit=10, cursor=cursor)
        seen += [episode.id for episode in page.episodes]
        cursor = page.cursor
        space.remember(f"written meanwhile {len(seen)}")
        if not cursor:
            break
    assert sorted(seen) == sorted(ids)
    stamps = [(space.get(id).created_at, id) for id in seen]
    assert stamps == sorted(stamps, reverse=True)
    assert space.list(ltm.Filter(before="2026-01-01T00:00:00Z")).total == 38


@pytest.mark.parametrize("cursor", ["x", "1", "1.2.3", "'; --", None, "9" * 30 + ".1"])
def test_a_cursor_that_is_none_is_refused(space: ltm.Space, cursor: Any) -> None:
    with pytest.raises(ltm.InvalidInput):
        space.list(cursor=cursor)


def test_reading_an_empty_scope_writes_nothing(memory: ltm.Memory, space: ltm.Space) -> None:
    before = dump(memory)
    assert space.list().total == 0
    assert texts(space.recall("x")) == []
    assert space.find("0" * 12) is None
    assert not space.profiles.get("speaker")
    assert space.pending() == 0
    with pytest.raises(ltm.NotFound):
        space.get("0" * 12)
    assert dump(memory) == before
    assert memory.spaces() == []


def test_the_same_calls_give_the_same_file(opened: Callable[..., ltm.Memory]) -> None:
    dumps = []
    for _ in range(2):
        memory = ltm.open(":memory:", clock=Clock(), ids=counting_ids(), embedder=ltm.HashEmbedder(16))
        space = memory.space(GROUP, speaker=ALICE)
        old = space.remember("drinks coffee", tags=["b", "a"]).id
        space.remember("drinks tea", supersedes=[old])
        space.profiles.update("traits", "add", "curious")
        dumps.append(dump(memory))
        memory.close()
    assert dumps[0] == dumps[1]


def test_constraints_hold_against_other_programs(memory: ltm.Memory, space: ltm.Space) -> None:
    """Rules that SQL can hold are held by SQL: isolation of references, legal values, identity."""
    other = memory.space(ltm.Scope("b1", "group", "8"), speaker=BOB)
    mine, theirs = space.remember("mine").id, other.remember("theirs").id
    for sql in (
        f"UPDATE episode SET superseded_by = (SELECT key FROM episode WHERE id = '{theirs}'), status = 'superseded' WHERE id = '{mine}'",
        f"UPDATE episode SET speaker = (SELECT speaker FROM episode WHERE id = '{theirs}') WHERE id = '{mine}'",
        f"UPDATE episode SET space = 2 WHERE id = '{mine}'",
        f"UPDATE episode SET id = '000000000abc' WHERE id = '{mine}'",
        "UPDATE episode SET importance = 9",
        "UPDATE episode SET status = 'lost'",
        "UPDATE episode SET content = ''",
        "UPDATE episode SET importance = 'high'",
    ):
        with pytest.raises((ltm.LtmError, apsw.ConstraintError)):
            memory._write(lambda db, sql=sql: db.execute(sql).fetchall())


HOSTILE_TEXTS = ["\ud800", "\x00", "a\x00b", "\udfff\U0010ffff", "", "\u202e\u200b", "'; DROP TABLE episode; --"]


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_hostile_text_in_any_argument_is_taken_or_refused_by_name(memory: ltm.Memory, space: ltm.Space, text: str) -> None:
    """The whole class: nothing but an error of ours may come out, whatever argument holds the text."""
    calls: list[Callable[[], Any]] = [
        *(
            lambda name=name: space.remember("x", **{name: text})
            for name in ("source", "source_ref", "operation_key", "event_at", "created_at")
        ),
        lambda: space.remember(text),
        lambda: space.remember("x", tags=[text]),
        lambda: space.remember("x", supersedes=[text]),
        lambda: space.get(text),
        lambda: space.find(text),
        lambda: space.recall(text),
        lambda: space.why_not(text, text),
        lambda: space.list(cursor=text),
        *(
            lambda name=name: space.list(ltm.Filter(**{name: text}))
            for name in ("speaker_id", "speaker_name", "source", "after", "at")
        ),
        lambda: space.list(ltm.Filter(tags=[text])),
        lambda: space.profiles.update("traits", "add", text),
        lambda: space.profiles.update("traits", "add", "x", fact_key=text, previous_value=text, operation_key=text),
        lambda: space.profiles.history("speaker", text),
        lambda: memory.space(ltm.Scope(text, "group", "7")).remember("x"),
        lambda: memory.space(ltm.Scope("b", "group", text)).remember("x"),
        lambda: space.for_speaker(ltm.Speaker(text, "n")).remember("x"),
        lambda: space.for_speaker(ltm.Speaker("u", text)).remember("x"),
    ]
    for call in calls:
        with contextlib.suppress(ltm.LtmError):
            call()


def test_no_write_costs_more_in_a_large_space(memory: ltm.Memory, space: ltm.Space) -> None:
    """Counted in steps of SQLite's machine: a lookup that misses its index shows at once."""

    def steps(call: Callable[[], Any]) -> int:
        count = [0]

        def step() -> bool:
            count[0] += 1
            return False

        for db in memory._file._all:
            db.set_progress_handler(step, 1)
        call()
        for db in memory._file._all:
            db.set_progress_handler(None)
        return count[0]

    def round_(n: int) -> dict[str, int]:
        old = space.remember(f"old fact {n}").id
        return {
            "remember": steps(lambda: space.remember(f"a fact {n}", tags=["t"])),
            "duplicate": steps(lambda: space.remember(f"a fact {n}")),
            "supersede": steps(lambda: space.remember(f"a new fact {n}", supersedes=[old])),
            "profile": steps(lambda: space.profiles.update("traits", "set", f"{n}", fact_key="k")),
            "get": steps(lambda: space.get(old)),
            "list": steps(lambda: space.list(limit=5)),
        }

    round_(0)
    small = round_(1)
    with memory.batch():
        for n in range(3000):
            space.remember(f"filler {n}")
    large = round_(2)
    for name, count in small.items():
        assert large[name] <= 1.5 * count + 50, name


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("5 mg of melatonin", ".5 mg of melatonin"),
        (".NET is what I use", "net is what I use"),
        ("...", "~"),
        ("!!!", "..."),
        ("x² = 4", "x2 = 4"),
        ("-5 today", "5 today"),
    ],
)
def test_what_is_written_differently_at_its_start_or_in_its_signs_is_kept(space: ltm.Space, one: str, other: str) -> None:
    assert space.remember(one).outcome == space.remember(other).outcome == "stored"


def test_the_same_words_for_another_time_are_another_memory(space: ltm.Space) -> None:
    space.remember("Alice is on vacation", valid_until="2020-01-01T00:00:00Z")
    assert space.remember("Alice is on vacation", valid_until="2099-01-01T00:00:00Z").outcome == "stored"
    assert space.remember("Alice is on vacation.", valid_until="2099-01-01T00:00:00Z").outcome == "duplicate"
    assert texts(space.recall("who is on vacation")) == ["Alice is on vacation"]


def test_an_operation_key_of_the_other_isolation_is_a_conflict(memory: ltm.Memory, space: ltm.Space) -> None:
    space.remember("hello", operation_key="k")
    shared = memory.space(ltm.Scope("b1", "group", "7", "bot"), speaker=ALICE)
    with pytest.raises(ltm.Conflict):
        shared.remember("hello", operation_key="k")


def test_lists_may_be_any_iterable_and_nothing_else(space: ltm.Space) -> None:
    old = space.remember("old", tags=(tag for tag in ("a", "b"))).id
    assert space.get(old).tags == ("a", "b")
    space.remember("new", supersedes=(id for id in [old]))
    assert space.get(old).status == "superseded"
    for bad in (None, 5, "text", [None], {"a": 1}.values()):
        for name in ("tags", "supersedes"):
            with pytest.raises(ltm.InvalidInput, match="list"):
                space.remember("x", **{name: bad})  # type: ignore[arg-type]
        with pytest.raises(ltm.InvalidInput):
            ltm.Filter(tags=bad)  # type: ignore[arg-type]
        with pytest.raises(ltm.InvalidInput):
            ltm.Filter(statuses=bad)  # type: ignore[arg-type]


def test_arguments_of_a_wrong_kind_are_named(memory: ltm.Memory, space: ltm.Space) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: space.recall("x", where={}),  # type: ignore[arg-type]
        lambda: space.recall("x", weights=1),  # type: ignore[arg-type]
        lambda: space.recall("x", limit="5"),  # type: ignore[arg-type]
        lambda: space.why_not("0" * 12, "x", limit="a"),  # type: ignore[arg-type]
        lambda: space.list(where=[]),  # type: ignore[arg-type]
        lambda: memory.space(GROUP, via="\ud800"),
        lambda: memory.space("b1:group_7"),  # type: ignore[arg-type]
        lambda: memory.space(GROUP, speaker="u1"),  # type: ignore[arg-type]
        lambda: ltm.Weights(dense=1e308),
    ]
    for call in calls:
        with pytest.raises(ltm.InvalidInput):
            call()
    id = space.remember("red apple").id
    assert space.why_not(id, "apple", limit=0).code == "returned"  # held to 1, as recall holds it


def test_what_cannot_be_undone_with_a_batch_is_refused_inside_it(opened: Callable[..., ltm.Memory], tmp_path: Any) -> None:
    memory = opened(tmp_path / "a.db", embedder=ltm.HashEmbedder(16))
    space = memory.space(GROUP, speaker=ALICE)
    with memory.batch():
        space.remember("one")
        for call in (memory.close, memory.embed_pending, lambda: memory.backup(tmp_path / "b.db")):
            with pytest.raises(ltm.InvalidInput, match="batch"):
                call()
        space.remember("two")
    assert space.list().total == 2


def test_a_duplicate_says_what_it_was_told_otherwise_and_nothing_about_defaults(space: ltm.Space) -> None:
    space.remember("the key is under the mat", importance=4, tags=["home"], source="chat", created_at="2026-01-01T00:00:00Z")
    assert space.remember("the key is under the mat").notes == ()
    told = space.remember("the key is under the mat", importance=3, tags=["door"], created_at="2026-02-01T00:00:00Z")
    assert told.notes == ("already stored with another importance, created_at, tags, left as it is",)
