"""Transfer: exports, imports, documents, bulk deletion. What goes out comes in equal, twice is once, and bad files change nothing."""

from __future__ import annotations

import io
import itertools
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import ltm
import ltm_formats
import ltm_models

from .conftest import ALICE, BOB, GROUP, Clock
from .test_episodes import ALL, dump

Open = Callable[..., ltm.Memory]
DATA = Path(__file__).parent / "data"
OTHER = ltm.Scope("b9", "person", "x")
BOT = ltm.Scope("b1", "group", "7", isolation="bot")


def ids_from(first: int) -> Callable[[], str]:
    """Ids that do not meet those of another file: in life they are 48 random bits."""
    counter = itertools.count(first)
    return lambda: f"{next(counter):012x}"


def fresh(first: int = 1 << 40, clock: Clock | None = None) -> ltm.Memory:
    return ltm.open(":memory:", clock=clock or Clock(), ids=ids_from(first))


def as_bytes(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False).encode()


def lines(space: ltm.Space, *kinds: str) -> str:
    stream = io.StringIO()
    space.transfer.write(stream, kinds or ltm.EXPORT_KINDS)
    return stream.getvalue()


def plain(document: dict[str, Any]) -> dict[str, Any]:
    """An export without ids and marks: what a round trip must keep. Links are kept as positions."""
    at = {record["id"]: number for number, record in enumerate(document["episodes"])}
    episodes = []
    for record in document["episodes"]:
        kept = {name: value for name, value in record.items() if name not in ("id", "imported_episode_id")}
        kept["superseded_by"] = at.get(record["superseded_by"], record["superseded_by"])
        if "sources" in kept:
            kept["sources"] = sorted(at[id] for id in kept["sources"])
        episodes.append(kept)
    profiles = [{name: value for name, value in record.items() if name != "scope_key"} for record in document["profiles"]]
    return {"episodes": episodes, "profiles": profiles}


def logical(memory: ltm.Memory) -> list[Any]:
    return dump(memory)


def without_sightings(rows: list[Any]) -> list[Any]:
    """A dump without the times at which speakers were last seen."""
    return [[r[:5] for r in each[1]] if each and each[0] == "speaker" else each for each in rows]


def put(space: ltm.Space, *records: dict[str, Any], **options: Any) -> ltm.ImportReport:
    return space.transfer.load(as_bytes(list(records)), **options)


def numbered(count: int, **more: Any) -> list[dict[str, Any]]:
    return [{"id": f"n{n}", "content": f"record number {n}", **more} for n in range(count)]


def listed(space: ltm.Space) -> list[ltm.Episode]:
    found, cursor = [], ""
    while True:
        page = space.list(ALL, limit=200, cursor=cursor)
        found += page.episodes
        cursor = page.cursor
        if not cursor:
            return found[::-1]


def by_content(space: ltm.Space) -> dict[str, ltm.Episode]:
    return {episode.content: episode for episode in listed(space)}


# ------------------------------------------------------------------------------------------- round trip

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=30).filter(str.strip)
WORDS = st.one_of(st.sampled_from(["花生过敏", "flies to Tokyo", "  kept as is \n", "💥🀄", '"quoted" \\ {json}', "馬國"]), TEXT)
US = st.integers(ltm.to_us("1900-01-01T00:00:00Z"), ltm.to_us("2200-01-01T00:00:00Z"))
TIME = US.map(ltm.to_iso)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
SPEAKERS = st.sampled_from(
    [None, ltm.Speaker("u1", "Alice"), ltm.Speaker("u1", "Alice B"), ltm.Speaker("u2"), ltm.Speaker("王", "王芳")]
)


@st.composite
def acts(draw: st.DrawFn) -> list[Any]:
    """What a host does to a space, in any order."""
    act = st.one_of(
        st.tuples(
            st.just("remember"),
            SPEAKERS,
            WORDS,
            st.fixed_dictionaries(
                {},
                optional={
                    "importance": st.integers(1, 5),
                    "tags": st.lists(st.sampled_from(["Food", "food", "朋友", "a,b", "ＷＩＤＥ", "correction"]), max_size=3),
                    "source_ref": st.sampled_from(["", "msg:1"]),
                    "claim_type": st.sampled_from(ltm.CLAIM_TYPES),
                    "event_at": TIME,
                    "created_at": TIME,
                    "valid_from": US.filter(lambda us: us < 0).map(ltm.to_iso),
                    "valid_until": US.filter(lambda us: us > 0).map(ltm.to_iso),
                    "pinned": st.booleans(),
                },
            ),
        ),
        st.tuples(st.just("status"), st.integers(0, 9), st.sampled_from(["archived", "deleted", "active"])),
        st.tuples(st.just("supersede"), st.integers(0, 9), st.integers(0, 9)),
        st.tuples(st.just("edit"), st.integers(0, 9), WORDS),
        st.tuples(
            st.just("profile"),
            SPEAKERS,
            st.sampled_from(["name", "traits", "preferences", "notes"]),
            st.sampled_from(["set", "add", "remove"]),
            st.sampled_from(["左撇子", "tea", "Tea", "short answers", "周"]),
            st.sampled_from(["", "style", "home city"]),
        ),
        st.tuples(st.just("foreign"), WORDS, st.dictionaries(TEXT, JSON, max_size=2), st.sampled_from(ltm.STATUSES)),
        st.tuples(st.just("document"), st.sampled_from(["notes.pdf", "手册"]), st.lists(WORDS, max_size=3)),
        st.tuples(st.just("summary"), st.lists(st.integers(0, 9), min_size=2, max_size=3, unique=True)),
    )
    return draw(st.lists(act, max_size=14))


def perform(memory: ltm.Memory, scope: ltm.Scope, script: list[Any]) -> ltm.Space:
    """Do each act; what the engine refuses is refused."""
    space = memory.space(scope)
    for kind, *rest in script:
        ids = [episode.id for episode in listed(space)]
        pick: Callable[[int], str] = lambda n, ids=ids: ids[n % len(ids)] if ids else "0" * 12  # noqa: E731
        try:
            if kind == "remember":
                space.for_speaker(rest[0]).remember(rest[1], **rest[2])
            elif kind == "status":
                space.set_status(pick(rest[0]), rest[1])
            elif kind == "supersede":
                space.supersede(pick(rest[0]), pick(rest[1]))
            elif kind == "edit":
                space.edit(pick(rest[0]), content=rest[1])
            elif kind == "profile":
                field, action, value, slot = rest[1:]
                subject = "speaker" if rest[0] else "session"
                space.for_speaker(rest[0]).profiles.update(field, action, value, fact_key=slot, subject=subject)  # type: ignore[arg-type]
            elif kind == "foreign":
                put(space, {"content": rest[0], "status": rest[2], "extra": rest[1]}, skip_bad=True)
            elif kind == "document":
                space.transfer.load_document(rest[0], as_bytes([{"content": text} for text in rest[1]]))
            elif kind == "summary":
                chosen = [pick(n) for n in rest[0]]
                memory.configure("consolidation_enabled", True)
                model = ltm_models.ScriptedModel(json.dumps({"summary": f"sum of {rest[0]}", "cites": chosen}))
                space.consolidation.run(space.consolidation.draft(model, chosen).id)
        except (ltm.InvalidInput, ltm.Conflict, ltm.NotFound, ltm.ModelError):
            pass
    return space


@pytest.mark.parametrize("scope", [GROUP, BOT], ids=["session", "bot"])
@given(script=acts(), jsonl=st.booleans())
@settings(max_examples=40)
@example(script=[("remember", ALICE, "x", {}), ("profile", BOB, "traits", "add", "tea", "style")], jsonl=True)
def test_out_in_and_out_again_is_equal_but_for_ids_and_marks(scope: ltm.Scope, script: list[Any], jsonl: bool) -> None:
    with fresh(1) as source, fresh() as target:
        space = perform(source, scope, script)
        first = space.transfer.export()
        data = lines(space).encode() if jsonl else as_bytes(first)
        into = target.space(ltm.Scope("new", "person", "p", isolation=scope.isolation))
        report = into.transfer.load(data)
        second = into.transfer.export()
        assert plain(second) == plain(first)
        assert report.skipped == ()
        assert report.episodes == len(first["episodes"])
        assert report.facts == sum(len(profile["facts"]) for profile in first["profiles"])
        marks = [record["imported_episode_id"] for record in second["episodes"]]
        assert marks == [record["id"] for record in first["episodes"]]
        before = logical(target)
        again = into.transfer.load(data)
        assert (again.episodes, again.facts) == (0, 0)
        assert again.duplicates == report.episodes + report.facts
        assert without_sightings(logical(target)) == without_sightings(before)
        assert source.check() == target.check() == []


@given(script=acts())
@settings(max_examples=30)
def test_a_dry_run_tells_what_the_import_then_does_and_changes_nothing(script: list[Any]) -> None:
    with fresh(1) as source, fresh() as target:
        data = as_bytes(perform(source, GROUP, script).transfer.export())
        into = perform(target, GROUP, [("remember", BOB, "here before", {}), *script[::2]])
        before = logical(target)
        told = into.transfer.load(data, dry_run=True)
        assert logical(target) == before
        done = into.transfer.load(data)
        for name in ("episodes", "facts", "duplicates", "skipped", "erased", "notes"):
            assert getattr(told, name) == getattr(done, name), name
        assert (told.dry_run, told.audit_ids) == (True, ())
        assert target.check() == []


def test_a_dry_run_into_a_file_that_holds_nothing_yet_writes_nothing(tmp_path: Path) -> None:
    with ltm.open(tmp_path / "a.db", clock=Clock()) as memory:
        before = logical(memory)
        report = put(memory.space(GROUP), {"content": "x", "sender_id": "u"}, dry_run=True)
        assert report.episodes == 1
        assert logical(memory) == before


def test_an_export_taken_home_again_adds_nothing() -> None:
    """From one file to a second, and the second's export back: the rows know where they come from."""
    with fresh(1) as one, fresh() as two:
        space = one.space(GROUP, speaker=ALICE)
        first = space.remember("first").id
        space.remember("second", supersedes=[first])
        space.archive(space.remember("third").id)
        there = two.space(GROUP)
        there.transfer.load(as_bytes(space.transfer.export()))
        report = space.transfer.load(as_bytes(there.transfer.export()))
        assert (report.episodes, report.duplicates) == (0, 3)


def test_json_lines_and_json_hold_the_same(space: ltm.Space) -> None:
    space.remember("one", tags=["x"])
    space.profiles.update("traits", "add", "tall")
    text = lines(space)
    document = space.transfer.export()
    header, *records = map(json.loads, text.splitlines())
    assert header["type"] == "header"
    assert header["count"] == len(records), "a count of what follows"
    assert [record for record in records if record["type"] == "episode"] == [
        {**record, "type": "episode"} for record in document["episodes"]
    ]
    assert document["count"] == len(document["episodes"]) + len(document["profiles"]) + len(document["audit"])


@pytest.mark.parametrize("kinds", [("profiles",), ("episodes",), ("audit",), ("audit", "profiles"), ltm.EXPORT_KINDS])
def test_each_kind_can_be_had_alone_and_is_audited(space: ltm.Space, kinds: tuple[str, ...]) -> None:
    space.remember("one")
    space.profiles.update("traits", "add", "tall")
    document = space.transfer.export(kinds)
    assert {"profiles", "episodes", "audit"} & document.keys() == set(kinds)
    assert all(document[kind] for kind in kinds)
    noted = [entry.operation for entry in space.audit.list(limit=len(kinds)).entries]
    assert sorted(noted) == sorted(
        {"profiles": "export_profiles", "episodes": "export_l2", "audit": "audit_export"}[k] for k in kinds
    )
    assert document["scope_key"] == "b1:group_7"


@pytest.mark.parametrize("kinds", [(), ("episode",), "episodes", ("episodes", "secrets")])
def test_an_unknown_kind_is_refused(space: ltm.Space, kinds: Any) -> None:
    with pytest.raises(ltm.InvalidInput):
        space.transfer.export(kinds)
    with pytest.raises(ltm.InvalidInput):
        space.transfer.write(io.StringIO(), kinds)


@pytest.mark.parametrize("status", ltm.STATUSES)
def test_statuses_choose_episodes(space: ltm.Space, status: str) -> None:
    for each in ltm.STATUSES:
        put(space, {"content": f"a {each} one", "status": each})
    document = space.transfer.export(["episodes"], statuses=[status])
    assert [record["content"] for record in document["episodes"]] == [f"a {status} one"]
    with pytest.raises(ltm.InvalidInput):
        space.transfer.export(statuses=["draft"])


def test_progress_never_passes_its_total(space: ltm.Space) -> None:
    with space._memory.batch():
        for n in range(600):
            space.for_speaker(ltm.Speaker(f"u{n}", "")).profiles.update("traits", "add", "tall")
    seen: list[tuple[int, int]] = []
    space.transfer.write(io.StringIO(), ["profiles"], progress=lambda done, total: seen.append((done, total)))
    assert seen == sorted(seen)
    assert all(done <= total for done, total in seen)
    assert seen[-1] == (600, 600)


def test_reading_out_works_where_nothing_can_be_written(tmp_path: Path, opened: Open) -> None:
    memory = opened(tmp_path / "a.db")
    memory.space(GROUP).remember("one")
    memory.fence("frozen")
    assert len(memory.space(GROUP).transfer.export()["episodes"]) == 1
    with ltm.open(tmp_path / "a.db", readonly=True) as reader:
        assert reader.space(GROUP).transfer.export(["episodes"])["count"] == 1


# --------------------------------------------------------------------------------------- other programs


def test_the_plugin_before_us_is_read(memory: ltm.Memory) -> None:
    space = memory.space(OTHER)
    with pytest.raises(ltm.InvalidInput, match="2 of 8 records"):
        space.transfer.load(DATA / "legacy_l2.json")
    assert space.list(ALL).total == 0
    report = space.transfer.load(DATA / "legacy_l2.json", skip_bad=True)
    assert (report.episodes, [position for position, _ in report.skipped]) == (6, [5, 7])
    found = by_content(space)
    old = found["小林以前住在成都武侯区。"]
    assert (old.status, old.superseded_by) == ("superseded", found["小林搬到了重庆南岸区。"].id)
    record = next(each for each in space.transfer.export()["episodes"] if each["content"].startswith("小林搬到了"))
    assert (record["imported_episode_id"], record["extra"]) == ("5a1b2c3d4e5f", {"score": 0.83})
    assert (record["event_at"], record["source_ref"]) == ("2025-11-01T02:00:00Z", "query:8841")
    assert memory.spaces()[0].launcher_id == "x", "the scope of the file is not looked at"
    assert len(memory.spaces()) == 1


def test_profiles_of_the_plugin_before_us_are_read_with_their_history(memory: ltm.Memory) -> None:
    space = memory.space(OTHER)
    report = space.transfer.load(DATA / "legacy_l1.json")
    assert report.facts == 17
    lin = space.for_speaker(ltm.Speaker("u-1001"))
    profile = lin.profiles.get("speaker")
    assert (profile.name, profile.traits, set(profile.preferences)) == ("小林", ("重庆", "爱开玩笑"), {"不吃花生", "short answers"})
    past = [(fact.value, fact.status, fact.reason) for fact in lin.profiles.history("speaker") if fact.status != "current"]
    assert sorted(past) == [("成都", "superseded", "profile_update"), ("绿茶", "removed", "explicit_remove")]
    assert space.profiles.get("session").name == "周末读书会"
    assert space.transfer.load(DATA / "legacy_l1.json").facts == 0
    shown = space.transfer.export(["profiles"])["profiles"]
    assert shown[1]["profile"]["profile_slots"]["traits"]["home_city"]["value"] == "重庆"


def test_livingmemory_is_read(memory: ltm.Memory) -> None:
    space = memory.space(OTHER)
    report = space.transfer.load(DATA / "livingmemory.json")
    assert (report.episodes, report.skipped) == (6, ())
    assert Counter(episode.status for episode in listed(space)) == {"active": 4, "archived": 1, "deleted": 1}
    first = by_content(space)["老周准备四月带女儿去青岛看海，还没订酒店。"]
    assert (first.created_at, first.importance, first.tags) == ("2026-01-01T00:00:00.500000Z", 4, ("旅行", "青岛"))
    assert space.transfer.load(DATA / "livingmemory.json").episodes == 0
    extra = space.transfer.export()["episodes"][0]["extra"]
    assert extra["metadata"]["key_facts"] == ["老周四月去青岛", "酒店没订"]


# -------------------------------------------------------------------------------------------- scope


def test_whatever_scope_a_file_names_everything_lands_in_the_space_that_takes_it(memory: ltm.Memory) -> None:
    victim = memory.space(ltm.Scope("b1", "group", "8"), speaker=ALICE)
    theirs = victim.remember("theirs").id
    victim.profiles.update("traits", "add", "tall")
    before = list(victim.transfer.export(["episodes", "profiles"])["episodes"])
    file = {
        "format": "ltm", "version": 1, "scope_key": "b1:group_8", "user_key": "b1:group_8", "isolation": "bot",
        "episodes": [
            {"id": theirs, "content": "mine", "user_key": "b1:group_8", "bot_uuid": "b1", "scope_key": "b1:group_8", "space": 1},
            {"id": "z", "content": "old", "status": "superseded", "superseded_by": theirs, "key": 4294967297},
            {"id": "y", "content": "lost", "status": "superseded", "superseded_by": victim.list().episodes[0].id},
        ],
        "profiles": [{"type": "speaker", "scope_key": "b1:group_8", "sender_id": "u1", "profile": {"traits": ["small"]}}],
    }  # fmt: skip
    space = memory.space(GROUP)
    space.transfer.load(as_bytes(file))
    assert victim.transfer.export(["episodes"])["episodes"] == before
    assert victim.profiles.get("speaker").traits == ("tall",)
    assert space.for_speaker(ALICE).profiles.get("speaker").traits == ("small",)
    found = by_content(space)
    assert found["old"].superseded_by == found["mine"].id != theirs


def test_an_id_of_another_space_is_no_successor_and_no_source(memory: ltm.Memory) -> None:
    theirs = memory.space(OTHER).remember("theirs").id
    space = memory.space(GROUP)
    report = put(
        space,
        {"id": "a", "content": "old", "status": "superseded", "superseded_by": theirs},
        {"id": "b", "content": "summary", "sources": [theirs], "source": "consolidation"},
    )
    assert by_content(space)["old"].superseded_by == ""
    assert len(report.notes) == 2
    assert space.consolidation.lineage(by_content(space)["summary"].id) == ([], [])


def test_bot_isolation_takes_episodes_for_the_bot_and_profiles_for_the_chat(memory: ltm.Memory) -> None:
    a = memory.space(BOT, speaker=ALICE)
    b = memory.space(ltm.Scope("b1", "person", "2", isolation="bot"), speaker=ALICE)
    file = {
        "episodes": [{"id": "e", "content": "shared", "sender_id": "u1"}],
        "profiles": [{"sender_id": "u1", "profile": {"traits": ["tall"]}}],
    }
    report = a.transfer.load(as_bytes(file))
    assert (report.episodes, report.facts) == (1, 1)
    assert b.list().total == 1
    assert not b.profiles.get("speaker")
    report = b.transfer.load(as_bytes(file))
    assert (report.episodes, report.facts, report.duplicates) == (0, 1, 1)
    assert memory.space(GROUP).list(ALL).total == 0
    assert [e["content"] for e in b.transfer.export()["episodes"]] == ["shared"]


# ------------------------------------------------------------------------------------------- bad files

POISON: dict[str, bytes] = {
    "not json": b"{",
    "empty": b"",
    "binary": bytes(range(256)),
    "a bad record": as_bytes([{"content": "good"}, {"content": ""}]),
    "no object": as_bytes([{"content": "good"}, 7]),
    "a megabyte of content": as_bytes([{"content": "good"}, {"content": "x" * (1 << 20)}]),
    "a bad time": as_bytes([{"content": "good"}, {"content": "x", "timestamp": "yesterday"}]),
    "a backward validity": as_bytes(
        [{"content": "good"}, {"content": "x", "valid_from": "2026-01-02T00:00:00Z", "valid_until": "2026-01-01T00:00:00Z"}]
    ),
    "NaN": b'[{"content": "good"}, {"content": "x", "mood": NaN}]',
    "infinite": b'[{"content": "good"}, {"content": "x", "importance": 1e999}]',
    "a key twice": b'[{"content": "good"}, {"content": "x", "content": "y"}]',
    "half a pair": b'[{"content": "good"}, {"content": "\\ud800"}]',
    "deep": b'[{"content": "good"}, {"content": "x", "deep": ' + b"[" * 5000 + b"]" * 5000 + b"}]",
    "deeper": b"[" * 200_000,
    "digits": b'[{"content": "good"}, {"content": "x", "importance": ' + b"9" * 5000 + b"}]",
    "newer": as_bytes({"format": "ltm", "version": 99, "episodes": []}),
    "unknown": as_bytes({"format": "mem0", "episodes": []}),
    "33 tags": as_bytes([{"content": "good"}, {"content": "x", "tags": [str(n) for n in range(33)]}]),
    "a bad fact": as_bytes({"episodes": [{"content": "good"}], "profiles": [{"facts": [{"field": "age", "value": "7"}]}]}),
    "cut short": as_bytes([{"content": "good"}, {"content": "second"}])[:-12],
}


@pytest.mark.parametrize("name", POISON)
@pytest.mark.parametrize("dry_run", [False, True])
def test_one_bad_record_and_nothing_is_written(memory: ltm.Memory, space: ltm.Space, name: str, dry_run: bool) -> None:
    space.remember("here before")
    before = dump(memory)
    with pytest.raises(ltm.InvalidInput):
        space.transfer.load(POISON[name], dry_run=dry_run)
    assert dump(memory) == before


@pytest.mark.parametrize("name", [name for name, data in POISON.items() if b"good" in data and name not in ("cut short", "deep")])
def test_on_request_the_good_records_are_taken_and_the_bad_ones_named(space: ltm.Space, name: str) -> None:
    report = space.transfer.load(POISON[name], skip_bad=True)
    assert (report.episodes, len(report.skipped)) == (1, 1)
    assert report.skipped[0][1]
    assert [episode.content for episode in listed(space)] == ["good"]


def hostile_records() -> st.SearchStrategy[Any]:
    """Fields of the right names with values of any kind, at the edges of every limit."""
    edge = st.sampled_from([1, 63, 64, 65, 255, 256, 257, 511, 512, 513]).map(lambda n: "y" * n)
    odd = st.sampled_from(
        ["", " ", "\0", "\0\0", "\u3000", "\u200b", "\ufeff", "\x1f", "\x85", "a\0b", "'; DROP TABLE episode; --", "$.x", "null"]
    )
    number = st.sampled_from([0, -1, 5, 6, 2**63, -(2**63), 1e308, 0.5, "3", "٣", True])
    value = st.one_of(
        odd,
        edge,
        number,
        JSON,
        st.lists(odd | edge, max_size=33),
        TIME,
        st.sampled_from(["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"]),
    )
    names = [
        "content", "tags", "importance", "timestamp", "status", "source", "sender_id", "sender_name", "superseded_by", "id",
        "imported_episode_id", "event_at", "valid_from", "valid_until", "source_ref", "claim_type", "pinned", "document", "sources",
        "extra", "other",
    ]  # fmt: skip
    return st.dictionaries(st.sampled_from(names), value, max_size=5).map(lambda record: {"content": "text", **record})


def hostile_profiles() -> st.SearchStrategy[Any]:
    odd = st.sampled_from(["", " ", "\0", "a\0", "\u3000", "x" * 256, "x" * 257, "y" * 2000, "y" * 2001, "tea", "TEA"])
    fact = st.fixed_dictionaries(
        {"field": st.sampled_from(["name", "traits", "preferences", "notes", "age"]), "value": odd},
        optional={
            "slot": odd, "status": st.sampled_from(["current", "superseded", "removed", "x"]), "reason": odd,
            "confidence": st.sampled_from([0, 1, 0.5, -1, 2, True, "1"]), "created_at": TIME, "ended_at": TIME,
        },
    )  # fmt: skip
    return st.fixed_dictionaries(
        {"facts": st.lists(fact, max_size=4)}, optional={"sender_id": odd, "sender_name": odd, "subject": odd}
    )


@given(records=st.lists(hostile_records(), max_size=6), profiles=st.lists(hostile_profiles(), max_size=3))
@settings(max_examples=150)
def test_what_the_readers_let_through_can_be_stored(records: list[Any], profiles: list[Any]) -> None:
    """With skip_bad no record, however odd, fails the others."""
    with fresh() as memory:
        space = memory.space(GROUP)
        good = [{"id": "good", "content": "the good one"}]
        report = space.transfer.load(
            as_bytes({"format": "ltm", "version": 1, "episodes": records + good, "profiles": profiles}), skip_bad=True
        )
        assert "the good one" in by_content(space)
        assert report.episodes + report.duplicates + len(report.skipped) >= len(records) + 1
        assert memory.check() == []
        ids = [record["id"] for record in space.transfer.export()["episodes"]]
        assert len(ids) == report.episodes
        again = fresh(1 << 41)
        with again:
            once_more = again.space(GROUP).transfer.load(as_bytes(space.transfer.export(["episodes", "profiles"])))
            assert once_more.episodes == report.episodes, "what we export we take back"
            assert once_more.facts == report.facts


ODD: list[tuple[list[Any], list[Any]]] = [
    ([{"content": "x", "source": "\0"}], []),
    ([{"content": "x", "tags": ["\u3000", "\0"]}], []),
    ([{"content": "x", "sender_id": " ", "sender_name": "\0"}], []),
    ([{"content": "x", "tags": ["\u200b"]}], []),
    ([{"content": "x", "source": " "}], []),
    ([{"content": "x", "id": "\0"}, {"content": "y", "id": "\0", "document": "\0"}], []),
    ([], [{"facts": [{"field": "traits", "value": "\0", "slot": "\0"}]}]),
]


@pytest.mark.parametrize(("records", "profiles"), ODD)
def test_an_odd_record_fails_no_other(space: ltm.Space, records: list[Any], profiles: list[Any]) -> None:
    file = {"format": "ltm", "version": 1, "episodes": [*records, {"content": "the good one"}], "profiles": profiles}
    space.transfer.load(as_bytes(file), skip_bad=True)
    assert "the good one" in by_content(space)


@pytest.mark.parametrize("where", ["missing", "folder", "unreadable"])
def test_a_file_that_cannot_be_read_is_said(memory: ltm.Memory, space: ltm.Space, tmp_path: Path, where: str) -> None:
    path = tmp_path / where
    if where == "folder":
        path.mkdir()
    elif where == "unreadable":
        path.write_bytes(b"[]")
        path.chmod(0)
        if os.access(path, os.R_OK):
            pytest.skip("this user reads everything")
    before = dump(memory)
    with pytest.raises(ltm.StorageError, match=where):
        space.transfer.load(path)
    assert dump(memory) == before


@pytest.mark.parametrize("given", [None, 7, "", ["a"], io.StringIO("[]")])
def test_what_is_no_path_and_no_bytes_is_refused(space: ltm.Space, given: Any) -> None:
    with pytest.raises(ltm.LtmError):
        space.transfer.load(given)


@pytest.mark.parametrize("as_text", [True, False])
def test_a_path_and_its_bytes_are_the_same_import(space: ltm.Space, tmp_path: Path, as_text: bool) -> None:
    path = tmp_path / "导出 1.json"
    path.write_bytes(as_bytes([{"id": "a", "content": "x"}, {"content": "nameless", "status": "archived"}]))
    assert space.transfer.load(str(path) if as_text else path).episodes == 2
    report = space.transfer.load(path.read_bytes())
    assert (report.episodes, report.duplicates) == (0, 2)


def test_nothing_to_take_in_is_nothing_done(memory: ltm.Memory, space: ltm.Space) -> None:
    space.remember("here")
    before = dump(memory)
    for data in (
        b"[]",
        as_bytes({"format": "ltm", "version": 1, "episodes": []}),
        b'{"type":"header","format":"ltm","version":1}\n',
    ):
        report = space.transfer.load(data)
        assert (report.episodes, report.facts, report.audit_ids) == (0, 0, ())
    assert dump(memory) == before


def test_records_that_are_left_out_are_counted(space: ltm.Space) -> None:
    space.remember("here")
    report = space.transfer.load(as_bytes({**space.transfer.export(), "graph": [1, 2]}))
    assert any("audit" in note for note in report.notes)
    assert any("other" in note for note in report.notes)


def test_what_a_record_loses_is_reported(space: ltm.Space) -> None:
    """An active row that names a successor, a status nobody knows, a name without an id: taken, and said what went."""
    active = put(space, {"id": "a", "content": "active", "superseded_by": "b"}, {"id": "b", "content": "b"})
    status = put(space, {"content": "draft", "status": "draft"})
    name = put(space, {"content": "named", "sender_name": "小林"})
    kept = {record["content"]: json.dumps(record, ensure_ascii=False) for record in space.transfer.export()["episodes"]}
    lost = [
        name
        for name, told in {
            "successor": active.notes or '"b"' in kept["active"],
            "status": status.notes or "draft" in kept["draft"].replace('"draft"', "", 1),
            "name": name.notes or "小林" in kept["named"],
        }.items()
        if not told
    ]
    assert lost == []


# ------------------------------------------------------------------------------------- links and duplicates


def test_successors_are_followed_wherever_they_stand_in_the_file(space: ltm.Space) -> None:
    report = put(
        space,
        {"id": "c", "content": "third"},
        {"id": "a", "content": "first", "status": "superseded", "superseded_by": "b"},
        {"id": "b", "content": "second", "status": "superseded", "superseded_by": "c"},
        {"id": "d", "content": "gone", "status": "archived", "superseded_by": "c"},
        {"id": "e", "content": "dangling", "status": "superseded", "superseded_by": "nowhere"},
    )
    found = by_content(space)
    ids = {episode.id: content for content, episode in found.items()}
    after = {content: ids.get(episode.superseded_by, "") for content, episode in found.items()}
    assert after == {"first": "second", "second": "third", "third": "", "gone": "third", "dangling": ""}
    assert len(report.notes) == 1
    assert "nowhere" in json.dumps(space.transfer.export()["episodes"])


CHAINS = {
    "itself": [("a", "a")],
    "a pair": [("a", "b"), ("b", "a")],
    "a ring": [("a", "b"), ("b", "c"), ("c", "a")],
    "a tail on a ring": [("t", "a"), ("a", "b"), ("b", "a")],
}


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("status", ["superseded", "archived", "deleted"])
def test_a_chain_that_bites_its_tail_fails_no_other_record(space: ltm.Space, chain: str, status: str) -> None:
    records = [{"id": id, "content": f"text {id}", "status": status, "superseded_by": by} for id, by in CHAINS[chain]]
    report = put(space, *records, {"id": "good", "content": "good"}, skip_bad=True)
    assert report.episodes + len(report.skipped) == len(records) + 1
    assert "good" in by_content(space)
    assert report.notes or report.skipped


def test_duplicates_in_a_file_are_one_memory(space: ltm.Space) -> None:
    report = put(
        space,
        {"id": "a", "content": "same text", "sender_id": "u1"},
        {"id": "b", "content": "SAME  text", "sender_id": "u1"},
        {"id": "c", "content": "same text", "sender_id": "u2"},
        {"id": "d", "content": "same text", "sender_id": "u1", "status": "archived"},
        {"id": "e", "content": "old", "sender_id": "u1", "status": "superseded", "superseded_by": "b"},
    )
    assert (report.episodes, report.duplicates) == (4, 1)
    found = {(e.content, e.speaker.id if e.speaker else "", e.status): e for e in listed(space)}
    assert found["old", "u1", "superseded"].superseded_by == found["same text", "u1", "active"].id


def test_an_id_twice_with_another_text_is_not_lost_in_silence(space: ltm.Space) -> None:
    report = put(space, {"id": "a", "content": "first text"}, {"id": "a", "content": "quite another text"})
    told = report.skipped or report.notes
    assert "quite another text" in by_content(space) or told


def test_records_without_an_id_are_known_again(space: ltm.Space) -> None:
    records = [{"content": f"text {n}", "status": status} for n, status in enumerate(ltm.STATUSES)]
    assert put(space, *records).episodes == 4
    assert put(space, *records).duplicates == 4
    assert put(space, *records[::-1]).episodes == 0


def test_a_second_import_after_edits_and_forgets(space: ltm.Space) -> None:
    records = [{"id": str(n), "content": f"text {n}", "sender_id": "u1", "sender_name": "Alice"} for n in range(5)]
    put(space, *records)
    found = by_content(space)
    space.edit(found["text 0"].id, content="edited here")
    space.archive(found["text 1"].id)
    space.forget(found["text 2"].id)
    space.for_speaker(ALICE).remember("text three, better", supersedes=[found["text 3"].id])
    report = put(space, *records)
    assert (report.episodes, report.duplicates) == (1, 4)
    now = by_content(space)
    assert {content: episode.status for content, episode in now.items()} == {
        "edited here": "active",
        "text 1": "archived",
        "text 2": "active",
        "text 3": "superseded",
        "text three, better": "active",
        "text 4": "active",
    }


def test_a_newer_fact_wins_and_an_older_one_becomes_history(space: ltm.Space, clock: Clock) -> None:
    alice = space.for_speaker(ALICE)
    alice.profiles.update("preferences", "add", "short", fact_key="style")

    def fact(value: str, at: str) -> bytes:
        body = {"field": "preferences", "slot": "style", "value": value, "created_at": at}
        return as_bytes({"profiles": [{"sender_id": "u1", "facts": [body]}]})

    for _ in range(2):
        space.transfer.load(fact("older", "2020-01-01T00:00:00Z"))
        assert alice.profiles.get("speaker").preferences == ("short",)
    for _ in range(2):
        space.transfer.load(fact("newer", "2030-01-01T00:00:00Z"))
        assert alice.profiles.get("speaker").preferences == ("newer",)
    assert sorted((f.value, f.status) for f in alice.profiles.history("speaker")) == [
        ("newer", "current"),
        ("older", "superseded"),
        ("short", "superseded"),
    ]


def test_a_name_in_a_file_renames_nobody_who_is_known(space: ltm.Space) -> None:
    space.for_speaker(ALICE).remember("hers")
    put(
        space,
        {"content": "older", "sender_id": "u1", "sender_name": "Alicia"},
        {"content": "x", "sender_id": "u3", "sender_name": "Zoe"},
    )
    assert {e.content: e.speaker for e in listed(space)} == {"hers": ALICE, "older": ALICE, "x": ltm.Speaker("u3", "Zoe")}
    assert space.recall("what did Alicia say", where=ltm.Filter(speaker_name="Alicia")).considered == 2


def test_unknown_fields_are_kept_and_come_out_again(space: ltm.Space) -> None:
    odd = {"mood": "merry", "nested": {"a": [1, None, {"饕餮": 2**70}]}, "imported_from_id": 7, "$.x": "y", 'q"': "'"}
    put(space, {"id": "a", "content": "x", **odd})
    assert space.transfer.export()["episodes"][0]["extra"] == odd


def test_lineage_goes_along_and_its_cascade_works_there(memory: ltm.Memory) -> None:
    memory.configure("consolidation_enabled", True)
    space = memory.space(GROUP, speaker=ALICE)
    ids = [space.remember(f"source {n}").id for n in range(2)]
    proposal = space.consolidation.draft(ltm_models.ScriptedModel(json.dumps({"summary": "sum", "cites": ids})), ids)
    space.consolidation.run(proposal.id)
    with fresh() as target:
        there = target.space(GROUP)
        there.transfer.load(as_bytes(space.transfer.export()))
        found = by_content(there)
        sources, _ = there.consolidation.lineage(found["sum"].id)
        assert sorted(sources) == sorted([found["source 0"].id, found["source 1"].id])
        assert there.forget(found["source 0"].id).removed == (found["sum"].id,)


def test_an_import_can_be_undone(memory: ltm.Memory, space: ltm.Space) -> None:
    space.for_speaker(ALICE).profiles.update("traits", "add", "small", fact_key="height")
    fact = {"field": "traits", "slot": "height", "value": "tall", "created_at": "2030-01-01T00:00:00Z"}
    data = as_bytes(
        {
            "episodes": [
                {"id": "a", "content": "old", "status": "superseded", "superseded_by": "b"},
                {"id": "b", "content": "new", "tags": ["x"]},
                {"id": "s", "content": "sum", "sources": ["b"]},
            ],
            "profiles": [{"sender_id": "u1", "facts": [fact]}],
        }
    )
    report = space.transfer.load(data)
    assert len(report.audit_ids) == 1
    space.undo(report.audit_ids[0])
    assert space.list(ALL).total == 0
    assert space.for_speaker(ALICE).profiles.get("speaker").traits == ("small",)
    assert space.transfer.load(data).episodes == 3


# ------------------------------------------------------------------------------------------ large imports


def chained(count: int) -> list[dict[str, Any]]:
    """Each superseded by one that is in another batch of 500."""
    records = numbered(count)
    for n in range(count // 3):
        records[n] |= {"status": "superseded", "superseded_by": f"n{count - 1 - n}"}
    return records


def test_a_large_import_goes_in_batches_and_links_across_them(memory: ltm.Memory, space: ltm.Space) -> None:
    seen: list[tuple[int, int]] = []
    data = as_bytes(chained(1200))
    report = space.transfer.load(data, progress=lambda done, total: seen.append((done, total)))
    assert (report.episodes, len(report.audit_ids)) == (1200, 3)
    assert seen == [(500, 1200), (1000, 1200), (1200, 1200)]
    with memory._file.read() as db:
        assert db.execute("SELECT count(*) FROM episode WHERE superseded_by IS NOT NULL").get == 400
        assert db.execute("SELECT count(*) FROM intent").get == 0
    found = by_content(space)
    assert found["record number 7"].superseded_by == found["record number 1192"].id
    again = space.transfer.load(data)
    assert (again.episodes, again.duplicates, again.audit_ids) == (0, 1200, ())


CHILD = """
import os, signal, sys
sys.path.insert(0, {root!r})
import ltm
from tests.conftest import Clock
memory = ltm.open({path!r}, clock=Clock())
memory.space(ltm.Scope("b1", "group", "7")).transfer.load({data!r}, progress=lambda done, total: {act})
"""


def in_a_child(path: Path, data: Path, act: str) -> int:
    root = str(Path(ltm.__file__).parent)
    code = CHILD.format(root=root, path=str(path), data=str(data), act=act)
    return subprocess.run([sys.executable, "-c", code], cwd=root, check=False, stderr=subprocess.DEVNULL).returncode


@pytest.mark.skipif(os.name != "posix", reason="needs kill -9")
def test_an_import_killed_between_batches_fences_its_space_until_it_is_run_again(tmp_path: Path, opened: Open) -> None:
    path, data = tmp_path / "a.db", tmp_path / "big.json"
    records = chained(1200)
    records[10] |= {"sources": ["n1100", "n1101"], "source": "consolidation"}
    data.write_bytes(as_bytes(records))
    assert in_a_child(path, data, "os.kill(os.getpid(), signal.SIGKILL)") == -signal.SIGKILL
    memory = opened(path, ids=ids_from(1 << 40))
    space = memory.space(GROUP)
    assert len(memory.fences()) == 1
    assert space.list(ALL).total == 500
    with pytest.raises(ltm.Fenced):
        space.remember("blocked")
    with pytest.raises(ltm.Fenced):
        put(space, {"content": "another file"})
    memory.space(OTHER).remember("other chats go on")
    report = space.transfer.load(data)
    assert (report.episodes, report.duplicates) == (700, 500)
    assert memory.fences() == []
    found = by_content(space)
    assert found["record number 7"].superseded_by == found["record number 1192"].id, "links of the first batches are made too"
    assert len(space.consolidation.lineage(found["record number 10"].id)[0]) == 2
    assert space.audit.verify() == []


def test_an_import_that_fails_between_batches_leaves_no_fence_once_it_was_run_again(tmp_path: Path) -> None:
    """The process lives on, runs it again, finishes, and ends: the next open has nothing to complain of."""
    path, data = tmp_path / "a.db", tmp_path / "big.json"
    data.write_bytes(as_bytes(numbered(1200)))
    root = str(Path(ltm.__file__).parent)
    code = f"""
import sys
sys.path.insert(0, {root!r})
import ltm
from tests.conftest import Clock
memory = ltm.open({str(path)!r}, clock=Clock())
space = memory.space(ltm.Scope("b1", "group", "7"))
try:
    space.transfer.load({str(data)!r}, progress=lambda done, total: 1 / 0)
except ZeroDivisionError:
    pass
report = space.transfer.load({str(data)!r})
assert (report.episodes, report.duplicates) == (700, 500), report
memory.close()
"""
    subprocess.run([sys.executable, "-c", code], cwd=root, check=True)
    with ltm.open(path, clock=Clock()) as memory:
        assert memory.fences() == []
        memory.space(GROUP).remember("goes on")


def test_a_bad_link_in_a_large_file_does_not_stop_it_half_way(memory: ltm.Memory, space: ltm.Space) -> None:
    records = numbered(1200)
    records[3] |= {"status": "superseded", "superseded_by": "n900"}
    records[900] |= {"status": "superseded", "superseded_by": "n3"}
    report = put(space, *records)
    assert report.episodes == 1200
    assert memory.fences() == []
    with memory._file.read() as db:
        assert db.execute("SELECT count(*) FROM intent").get == 0


@pytest.mark.parametrize("whole", [True, False])
def test_a_fence_stops_an_import_before_its_first_write(memory: ltm.Memory, space: ltm.Space, whole: bool) -> None:
    space.remember("here")
    memory.fence("frozen", None if whole else space)
    before = dump(memory)
    for records in (numbered(3), numbered(600)):
        with pytest.raises(ltm.Fenced):
            put(space, *records)
        assert put(space, *records, dry_run=True).episodes == len(records), "a preview is a read"
    assert dump(memory) == before
    if not whole:
        assert put(memory.space(OTHER), *numbered(3)).episodes == 3


def test_a_read_only_file_takes_nothing_in(tmp_path: Path, opened: Open) -> None:
    opened(tmp_path / "a.db").space(GROUP).remember("here")
    with ltm.open(tmp_path / "a.db", readonly=True) as reader, pytest.raises(ltm.ReadOnly):
        put(reader.space(GROUP), {"content": "x"})


# -------------------------------------------------------------------------------------------- documents


def test_a_document_comes_and_goes_as_one(memory: ltm.Memory, space: ltm.Space) -> None:
    space.remember("stays")
    other = memory.space(OTHER)
    other.transfer.load_document("手册.pdf", as_bytes(numbered(3)))
    report = space.transfer.load_document("手册.pdf", as_bytes([*numbered(3), {"content": "referred", "source_ref": "page:4"}]))
    assert report.episodes == 4
    assert {e.content: e.source_ref for e in listed(space) if e.source == "import"} == {
        **{f"record number {n}": "document:手册.pdf" for n in range(3)},
        "referred": "page:4",
    }
    assert [record.get("document") for record in space.transfer.export()["episodes"]] == [None, *["手册.pdf"] * 4]
    gone = space.transfer.delete_document("手册.pdf", operation_key="k")
    assert gone.counts == {"deleted": 4}
    assert [e.content for e in listed(space)] == ["stays"]
    assert other.list().total == 3
    assert space.transfer.delete_document("手册.pdf", operation_key="k").outcome == "repeated"
    assert space.transfer.delete_document("手册.pdf").counts == {"deleted": 0}
    space.undo(gone.audit_id)
    assert space.list(ALL).total == 5
    with pytest.raises(ltm.InvalidInput):
        space.transfer.delete_document(" ")
    with pytest.raises(ltm.InvalidInput):
        space.transfer.load_document("", b"[]")


def test_a_document_takes_along_what_was_drawn_from_it(memory: ltm.Memory) -> None:
    memory.configure("consolidation_enabled", True)
    space = memory.space(GROUP, speaker=ALICE)
    space.transfer.load_document("d", as_bytes(numbered(2)))
    mine = space.remember("mine").id
    ids = [mine, *(e.id for e in listed(space) if e.source == "import")]
    scripted = ltm_models.ScriptedModel(*[json.dumps({"summary": f"sum {n}", "cites": ids}) for n in range(2)])
    published = space.consolidation.run(space.consolidation.draft(scripted, ids).id).id
    pending = space.consolidation.draft(scripted, ids).id
    gone = space.transfer.delete_document("d")
    assert gone.removed == (published,)
    assert gone.counts == {"deleted": 2}
    assert space.consolidation.get(pending).status == "stale"
    assert space.consolidation.get(pending).content == ""
    assert [e.id for e in listed(space)] == [mine]


def test_a_document_is_deleted_by_its_exact_name(space: ltm.Space) -> None:
    for number, name in enumerate(("a", "A", "a ", "a%", "á")):
        space.transfer.load_document(name, as_bytes([{"content": f"the document number {number}"}]))
    assert space.transfer.delete_document("a").counts == {"deleted": 1}
    assert space.transfer.delete_document("a%").counts == {"deleted": 1}
    assert space.list().total == 3


# ----------------------------------------------------------------------------------------- bulk deletion


@st.composite
def filters(draw: st.DrawFn) -> ltm.Filter:
    given = st.fixed_dictionaries(
        {},
        optional={
            "statuses": st.lists(st.sampled_from(ltm.STATUSES), min_size=1, unique=True),
            "speaker_id": st.sampled_from(["u1", "u2", "nobody", "王"]),
            "speaker_name": st.sampled_from(["Alice", "Alice B", "王芳"]),
            "tags": st.lists(st.sampled_from(["food", "ＦＯＯＤ", "朋友"]), max_size=2),
            "before": US,
            "after": US,
            "source": st.sampled_from(["agent", "import"]),
            "importance_min": st.integers(1, 5),
        },
    )
    return ltm.Filter(**draw(given))


@given(script=acts(), where=filters())
@settings(max_examples=60)
def test_a_dry_run_counts_what_is_then_deleted_and_no_more(script: list[Any], where: ltm.Filter) -> None:
    with fresh() as memory:
        space = perform(memory, GROUP, script)
        perform(memory, OTHER, script[:3])
        others = memory.space(OTHER).transfer.export(["episodes"])["episodes"]
        before = dump(memory)
        episodes = {e.id for e in listed(space)}
        try:
            told = space.forget_all(where, dry_run=True)
        except ltm.InvalidInput:
            with pytest.raises(ltm.InvalidInput):
                space.forget_all(where)
            assert dump(memory) == before
            return
        assert dump(memory) == before
        matching = _matching(space, where)
        assert told.counts == Counter(e.status for e in matching)
        done = space.forget_all(where)
        assert dict(done.counts) == dict(told.counts)
        assert episodes - {e.id for e in listed(space)} == {e.id for e in matching} | set(done.removed)
        assert memory.space(OTHER).transfer.export(["episodes"])["episodes"] == others
        assert _matching(space, where) == []
        if done.audit_id:
            space.undo(done.audit_id)
            assert {e.id for e in listed(space)} == episodes
        assert memory.check() == []


def test_a_dry_run_names_the_summaries_that_would_go_too(memory: ltm.Memory) -> None:
    memory.configure("consolidation_enabled", True)
    space = memory.space(GROUP, speaker=ALICE)
    ids = [space.remember("hers").id, space.for_speaker(BOB).remember("his").id]
    model = ltm_models.ScriptedModel(json.dumps({"summary": "theirs", "cites": ids}))
    summary = space.consolidation.run(space.consolidation.draft(model, ids).id).id
    told = space.forget_all(ltm.Filter(speaker_id="u1"), dry_run=True)
    done = space.forget_all(ltm.Filter(speaker_id="u1"))
    assert done.removed == (summary,)
    assert told.removed == done.removed


def _matching(space: ltm.Space, where: ltm.Filter) -> list[ltm.Episode]:
    found, cursor = [], ""
    while True:
        page = space.list(where, limit=200, cursor=cursor)
        found += page.episodes
        cursor = page.cursor
        if not cursor:
            return found


@pytest.mark.parametrize(
    "where", [ltm.Filter(statuses=ltm.STATUSES), ltm.Filter(statuses=ltm.STATUSES[::-1]), None, {"tags": ["x"]}]
)
def test_a_filter_that_lets_everything_pass_is_refused(memory: ltm.Memory, space: ltm.Space, where: Any) -> None:
    space.remember("stays")
    before = dump(memory)
    for dry_run in (True, False):
        with pytest.raises(ltm.InvalidInput):
            space.forget_all(where, dry_run=dry_run)
    assert dump(memory) == before


def test_bulk_deletion_with_a_key_happens_once(space: ltm.Space) -> None:
    space.remember("one", tags=["x"])
    first = space.forget_all(ltm.Filter(tags=["x"]), operation_key="k")
    space.remember("two", tags=["x"])
    again = space.forget_all(ltm.Filter(tags=["x"]), operation_key="k")
    assert (first.outcome, again.outcome, dict(again.counts)) == ("changed", "repeated", {"active": 1})
    assert space.list().total == 1
    with pytest.raises(ltm.Conflict):
        space.forget_all(ltm.Filter(tags=["y"]), operation_key="k")


def test_readers_and_engine_agree_on_limits() -> None:
    for name in ("CONTENT_CHARS", "TAGS", "TAG_CHARS", "NAME_CHARS", "REF_CHARS", "VALUE_CHARS"):
        assert getattr(ltm, name) == getattr(ltm_formats, name), name
