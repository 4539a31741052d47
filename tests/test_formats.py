"""ltm_formats: every shape of file, every rule of a field, and files that mean harm."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import ltm
import ltm_formats
from ltm_formats import FormatError, Item

DATA = Path(__file__).parent / "data"
EMPTY = {
    "tags": [], "importance": 2, "timestamp": "", "status": "active", "source": "import", "sender_id": "", "sender_name": "",
    "superseded_by": "", "id": "", "imported_episode_id": "", "event_at": "", "valid_from": "", "valid_until": "",
    "source_ref": "", "claim_type": "unknown", "pinned": False, "document": "", "sources": [], "extra": {},
}  # fmt: skip
EARLY, LATE = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"


def read(value: Any) -> list[Item]:
    """Read bytes as they are, or a value as one JSON document."""
    return list(ltm_formats.read(value if isinstance(value, bytes) else json.dumps(value).encode()))


def lines(*records: Any) -> list[Item]:
    return read(b"\n".join(each if isinstance(each, bytes) else json.dumps(each).encode() for each in records))


def episode(**fields: Any) -> dict[str, Any]:
    """The data of one episode that is read without a problem."""
    (item,) = read([{"content": "a", "sender_id": "", **fields}])
    assert (item.type, item.problem) == ("episode", "")
    return item.data


def problem(**fields: Any) -> str:
    (item,) = read([{"content": "a", "sender_id": "", **fields}])
    assert item.data == {}
    return item.problem


def living(**fields: Any) -> dict[str, Any]:
    items = read({"memories": [{"content": "a", **fields}]})
    assert items[1].problem == ""
    return items[1].data


def facts(**profile: Any) -> list[dict[str, Any]]:
    item = read({"profiles": [{"type": "session", "scope_key": "k", "profile": profile}]})[1]
    assert item.problem == ""
    return list(item.data["facts"])


def brief(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [tuple(fact[name] for name in ("field", "slot", "value", "status", "created_at", "ended_at")) for fact in found]


# ------------------------------------------------------------------------------------------- our own


def test_our_json() -> None:
    header = {"format": "ltm", "version": 1, "exported_at": EARLY, "scope_key": "b:group_1", "user_key": "bot:b", "count": 1}
    lists = {
        "episodes": [{"content": "a"}],
        "profiles": [{"subject": "session", "scope_key": "b:group_1", "facts": []}],
        "audit": [{"operation": "remember", "summary": "x"}],
        "statuses": ["active"],
    }
    items = read({**header, **lists})
    assert [(item.position, item.type) for item in items] == [(0, "header"), (1, "episode"), (1, "profile"), (1, "audit")]
    assert items[0].data == header
    assert items[1].data == {"content": "a", **EMPTY}
    assert items[3].data == {"operation": "remember", "summary": "x"}


def test_our_json_lines() -> None:
    items = lines(
        {"type": "header", "format": "ltm", "version": 1, "scope_key": "k"},
        b"  \r",
        {"type": "episode", "content": "记住"},
        {"type": "profile", "subject": "speaker", "sender_id": "u", "sender_name": "小明", "scope_key": "k", "facts": []},
        {"type": "audit", "operation": "forget"},
    )
    assert [(item.position, item.type) for item in items] == [(1, "header"), (3, "episode"), (4, "profile"), (5, "audit")]
    assert items[1].data == {"content": "记住", **EMPTY}
    assert items[2].data == {"subject": "speaker", "scope_key": "k", "sender_id": "u", "sender_name": "小明", "facts": []}
    assert items[3].data == {"operation": "forget"}


def test_json_lines_may_lack_the_header_or_its_type() -> None:
    assert [item.type for item in lines({"type": "episode", "content": "a"})] == ["episode"]
    assert [item.type for item in lines({"format": "ltm"}, {"type": "episode", "content": "a"})] == ["header", "episode"]


def test_one_document_on_one_line_is_no_json_lines() -> None:
    assert [item.type for item in read(b'{"format":"ltm","version":1,"episodes":[{"content":"a"}]}\n')] == ["header", "episode"]


@pytest.mark.parametrize("version", [2, 99])
def test_a_newer_file_of_ours_is_refused(version: int) -> None:
    for file in ({"format": "ltm", "version": version, "episodes": []}, {"type": "header", "format": "ltm", "version": version}):
        with pytest.raises(FormatError, match="written by a newer ltm"):
            read(file)


@pytest.mark.parametrize("version", ["1", True, None, 0, [1]])
def test_a_version_that_is_none_is_refused(version: Any) -> None:
    with pytest.raises(FormatError, match="expected 1"):
        read({"format": "ltm", "version": version, "episodes": []})


def test_a_header_line_of_another_format_is_refused() -> None:
    with pytest.raises(FormatError, match="unknown format 'x'"):
        read({"type": "header", "format": "x"})


def test_an_unknown_type_is_told_as_other() -> None:
    items = lines({"type": "header", "format": "ltm"}, {"type": "dream", "text": "a"}, {"content": "a"}, {"type": 5}, [1])
    assert items[1] == Item(2, "other", {"type": "dream", "text": "a"}, "")
    assert [item.problem for item in items[2:]] == [
        "type is missing",
        "type 5 is not text",
        "the line must hold an object, not a list",
    ]


def test_an_unknown_list_is_told_as_other() -> None:
    items = read({"version": 1, "episodes": [], "candidates": [1, 2]})
    assert items[1] == Item(0, "other", {"type": "candidates", "count": 2}, "")


def test_a_bad_line_is_one_problem() -> None:
    items = lines({"type": "header", "format": "ltm"}, b"{oops", b"\xff\xfe", {"type": "episode", "content": "a"})
    assert [(item.position, item.type, bool(item.problem)) for item in items[1:]] == [
        (2, "other", True),
        (3, "other", True),
        (4, "episode", False),
    ]
    assert "not JSON" in items[1].problem
    assert "not UTF-8" in items[2].problem


def test_a_line_too_long_is_one_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ltm_formats, "LINE_BYTES", 100)
    items = lines(
        {"type": "episode", "content": "a"}, {"type": "episode", "content": "a" * 350}, {"type": "episode", "content": "b"}
    )
    assert [(item.position, item.problem) for item in items] == [(1, ""), (2, "the line is longer than 100 bytes"), (3, "")]


def test_a_document_may_be_longer_than_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ltm_formats, "LINE_BYTES", 100)
    assert read(["a" * 300])[0].data["content"] == "a" * 300


def test_json_lines_are_read_in_constant_memory() -> None:
    class Endless(io.RawIOBase):
        """Lines made as they are read."""

        left = 5_000

        def readline(self, size: int | None = -1, /) -> bytes:
            self.left -= 1
            return json.dumps({"type": "episode", "content": "x" * 5_000}).encode() + b"\n" if self.left >= 0 else b""

    tracemalloc.start()
    try:
        assert sum(1 for _ in ltm_formats.read(Endless())) == 5_000  # type: ignore[arg-type]
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


# ----------------------------------------------------------------------------------------- the source


def test_sources(tmp_path: Path) -> None:
    path = tmp_path / "export"
    path.write_bytes(b'\xef\xbb\xbf[{"content": "a"}]')
    with path.open("rb") as stream:
        found = [list(ltm_formats.read(source)) for source in (path, str(path), path.read_bytes(), stream)]
    assert [items[0].data["content"] for items in found] == ["a"] * 4
    with pytest.raises(FileNotFoundError):
        list(ltm_formats.read(tmp_path / "none"))


def test_a_byte_order_mark_is_accepted_before_json_lines() -> None:
    assert read(b'\xef\xbb\xbf{"type": "episode", "content": "a"}')[0].problem == ""


@pytest.mark.parametrize(
    "file",
    [b"", b" \n\n", b"hello", b"{", b"[1,", b"\xff\xfe[\x00]\x00", b"5", b'"text"', b"null", b"{}", b'{"a": 1}', b'{"version": 1}',
     b'{"format": "mem0", "memories": []}', b'{"format": "x", "a": "b"}', b'{"episodes": {}}', b'{"memories": 5}', b'{"data": 5}',
     b'{"episodes": [], "episodes": []}', b'{"episodes": [], "count": NaN}', b'{"episodes": [], "scope_key": "\\ud800"}',
     b"[" * 100_000, b'{"data":' * 100_000, b'[{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}]"],
    ids=lambda file: file[:20].decode("ascii", "replace"),
)  # fmt: skip
def test_no_export(file: bytes) -> None:
    with pytest.raises(FormatError, match=r"^[^\n]*expected [^\n]*$"):
        read(file)


# ------------------------------------------------------------------------------------------- episodes


def test_a_field_is_taken_as_it_is() -> None:
    full = {
        "content": " 第一行\n second ", "tags": ["旅行", "b"], "importance": 4, "timestamp": "2026-03-02 09:00", "status": "archived",
        "source": "agent", "sender_id": " u1 ", "sender_name": "小明", "superseded_by": "x", "id": "0a", "imported_episode_id": "old",
        "event_at": "2026-03-02T09:00:00.125+08:00", "valid_from": EARLY, "valid_until": LATE, "source_ref": "query:1",
        "claim_type": "inference", "pinned": True, "document": "d", "sources": ["0b", "0c"], "extra": {},
    }  # fmt: skip
    assert episode(**full) == full


def test_null_is_as_good_as_missing() -> None:
    assert episode(**{name: None for name in EMPTY if name != "sender_id"}) == {"content": "a", **EMPTY}


@pytest.mark.parametrize("content", [None, "", " \n\t", 5, ["a"], "x" * 20_001])
def test_content_that_is_none(content: Any) -> None:
    assert "content" in problem(content=content)


@pytest.mark.parametrize(
    ("tags", "found"),
    [("a, b,,c ", ["a", "b", "c"]), ("", []), ([" a", "", "b,c"], ["a", "b,c"]), (5, []), ({"a": 1}, []), (True, [])],
)
def test_tags(tags: Any, found: list[str]) -> None:
    assert episode(tags=tags)["tags"] == found


@pytest.mark.parametrize("tags", [[5], [None], ["a", ["b"]], ["x" * 65], "x" * 65, list("abc" * 11)])
def test_bad_tags(tags: Any) -> None:
    assert problem(tags=tags).startswith("tags")


@pytest.mark.parametrize(
    ("importance", "found"), [(1, 1), (5, 5), ("4", 4), (" 3.9 ", 3), (2.9, 2), (0, 1), (-7, 1), ("10", 5), (10**60, 5), (None, 2)]
)
def test_importance(importance: Any, found: int) -> None:
    assert episode(importance=importance)["importance"] == found


@pytest.mark.parametrize("importance", [True, "high", "", "1_0", "٣", "1e3", [3], {}, "9" * 500])
def test_bad_importance(importance: Any) -> None:
    assert problem(importance=importance).startswith("importance ")


@pytest.mark.parametrize(
    "time", ["yesterday", "2026-02-30", "2026-13-01T00:00Z", "2026-01-01T25:00", "20260101", "2026-W01-1", 5, [], " "]
)
def test_bad_timestamp(time: Any) -> None:
    assert problem(timestamp=time).startswith("timestamp ")


@pytest.mark.parametrize("name", ["event_at", "valid_from", "valid_until"])
@pytest.mark.parametrize("time", ["2026-01-01T00:00:00", "2026-01-01", "soon", 5])
def test_a_validity_needs_its_zone(name: str, time: Any) -> None:
    assert problem(**{name: time}).startswith(name)


def test_a_validity_ends_after_it_begins() -> None:
    assert "must be before" in problem(valid_from=LATE, valid_until=LATE)
    assert "must be before" in problem(valid_from="2026-01-01T08:00:00+08:00", valid_until=EARLY)
    assert episode(valid_from="2026-01-01T00:00:00.000001Z", valid_until="2026-01-01T00:00:00.000002Z")


def test_small_fields() -> None:
    assert [episode(status=each)["status"] for each in ("deleted", "superseded", "draft", 5)] == [
        "deleted",
        "superseded",
        "active",
        "active",
    ]
    assert episode(source="")["source"] == "import"
    assert episode(claim_type="")["claim_type"] == "unknown"
    assert [episode(**{name: "7"})["id"] for name in ("id", "episode_id", "original_id")] == ["7", "7", "7"]
    assert episode(document_id="d")["document"] == "d"


@pytest.mark.parametrize(
    ("name", "value"),
    [("claim_type", "guess"), ("claim_type", 5), ("claim_type", []), ("pinned", 1), ("pinned", "yes"), ("sources", "0a"), ("sources", [1]),
     ("sender_id", 10001), ("sender_id", "x" * 257), ("sender_id", "a\0"), ("sender_name", "x" * 257), ("source", {}), ("source_ref", "x" * 513),
     ("superseded_by", 5), ("id", 5), ("imported_episode_id", []), ("document", 5), ("status", "\ud800")],
)  # fmt: skip
def test_a_bad_field_is_named(name: str, value: Any) -> None:
    said = problem(**{name: value})
    assert said.startswith(name)
    assert len(said) < 200


def test_what_is_unknown_is_kept() -> None:
    unknown = {"metadata": {"a": [1, None]}, "score": 0.5, "user_key": "k", "bot_uuid": "b", "": 1}
    assert episode(**unknown)["extra"] == unknown
    assert episode(id="a", episode_id="b", document_id="")["extra"] == {"episode_id": "b"}
    assert episode(extra={"score": 1}, mood="好")["extra"] == {"score": 1, "mood": "好"}
    assert episode(extra=5)["extra"] == {"extra": 5}


@pytest.mark.parametrize("record", [5, None, "text", [], True])
def test_a_record_that_is_no_object(record: Any) -> None:
    assert "must be an object" in read({"episodes": [record]})[1].problem


# --------------------------------------------------------------------------------- LongTermMemory's files


def test_a_bare_list() -> None:
    assert [item.data for item in read([{"content": "a", "importance": 3}])] == [{"content": "a", **EMPTY, "importance": 3}]


def test_one_bare_object() -> None:
    assert read({"content": "a", "tags": ["b"]})[0].data["tags"] == ["b"]


def test_an_export_of_episodes() -> None:
    items = list(ltm_formats.read(DATA / "legacy_l2.json"))
    assert items[0].data == {
        "format": "longtermmemory", "version": 1, "exported_at": "2026-02-11T08:30:00Z",
        "scope_key": "bot-7:group_3301", "user_key": "bot-7:group_3301", "count": 8,
    }  # fmt: skip
    assert [item.position for item in items if item.problem] == [5, 7]
    assert items[5].problem == "importance '很高' is not a number"
    assert items[7].problem.startswith("timestamp '2026-02-30T09:00:00Z' is not")
    assert items[3].data["content"] == "  周五的读书会改到线上，链接发在 group 里。\n"
    assert items[3].data["tags"] == ["读书会", "online"]
    assert [item.data["importance"] for item in items[1:] if item.data] == [5, 4, 5, 2, 4, 3]
    assert [item.data["status"] for item in items[1:] if item.data] == [
        "active",
        "active",
        "archived",
        "superseded",
        "active",
        "active",
    ]
    assert items[6].data["extra"] == {"score": 0.83}


def test_an_export_of_profiles() -> None:
    items = list(ltm_formats.read(DATA / "legacy_l1.json"))
    assert [(item.type, item.problem) for item in items] == [("header", "")] + [("profile", "")] * 5
    assert [item.data["sender_id"] for item in items[1:]] == ["", "u-1001", "u-1002", "u-1003", "u-1004"]
    moved = "2025-11-08T07:15:09Z"
    assert brief(items[2].data["facts"]) == [
        ("name", "", "小林", "current", "2026-02-01T09:00:00Z", ""),
        ("traits", "home_city", "成都", "superseded", "", moved),
        ("traits", "home_city", "重庆", "current", moved, ""),
        ("traits", "", "爱开玩笑", "current", "2026-02-01T09:00:00Z", ""),
        ("preferences", "peanuts", "不吃花生", "current", "2025-11-02T12:04:31Z", ""),
        ("preferences", "tea", "绿茶", "removed", "", "2025-12-01T00:00:00Z"),
        ("preferences", "", "short answers", "current", "2026-02-01T09:00:00Z", ""),
    ]
    assert [(fact["reason"], fact["confidence"]) for fact in items[2].data["facts"][1:6]] == [
        ("profile_update", None), ("", None), ("", None), ("", 0.9), ("explicit_remove", None),
    ]  # fmt: skip
    assert [fact["value"] for fact in items[3].data["facts"]] == ["Priya", "engineer", "周末不谈工作", "说话很直接"]
    assert [fact["value"] for fact in items[4].data["facts"]] == ["Tomás"]


def test_an_export_of_audit() -> None:
    entries = [{"audit_id": "0a", "operation": "remember", "timestamp": EARLY, "metadata": {}}, {"audit_id": "0b"}, {}, 5]
    items = read({"entries": entries})
    assert items[1] == Item(1, "audit", entries[0], "")  # type: ignore[arg-type]
    assert [item.problem for item in items[2:]] == ["operation is missing"] * 2 + ["an audit entry must be an object, not 5"]


# ---------------------------------------------------------------------------------------------- profiles


def test_facts_are_preferred_to_the_profile() -> None:
    fact = {
        "field": "traits", "slot": "city", "value": "上海", "status": "superseded", "reason": "profile_update", "confidence": 1,
        "created_at": EARLY, "ended_at": LATE,
    }  # fmt: skip
    record = {"subject": "session", "scope_key": "k", "facts": [fact], "profile": {"name": "other"}}
    assert read({"format": "ltm", "profiles": [record]})[1].data["facts"] == [fact]


def test_a_fact_needs_little() -> None:
    given = [{"field": "notes", "value": " a "}, {"field": "name", "value": "  "}, {"field": "notes", "value": "a"}]
    (item,) = lines({"type": "profile", "facts": given})
    assert brief(item.data["facts"]) == [("notes", "", "a", "current", "", "")]
    assert item.data["subject"] == "session"


@pytest.mark.parametrize(
    ("wrong", "word"),
    [({"field": "mood"}, "field"), ({"field": ["name"]}, "field"), ({"value": 5}, "value"), ({"value": "x" * 2_001}, "value"),
     ({"status": "gone"}, "status"), ({"slot": 5}, "slot"), ({"field": "name", "slot": "a"}, "slot"), ({"reason": 5}, "reason"),
     ({"confidence": 2}, "confidence"), ({"confidence": "1"}, "confidence"), ({"confidence": True}, "confidence"),
     ({"created_at": "soon"}, "created_at"), ({"status": "removed", "ended_at": "soon"}, "ended_at"), ({"ended_at": EARLY}, "ended_at")],
)  # fmt: skip
def test_a_bad_fact(wrong: dict[str, Any], word: str) -> None:
    (item,) = lines({"type": "profile", "facts": [{"field": "traits", "value": "a", **wrong}]})
    assert item.problem.startswith("fact 1: ")
    assert word in item.problem


def test_a_slot_holds_one_current_value() -> None:
    two = [{"field": "traits", "slot": "city", "value": "a"}, {"field": "traits", "slot": " City", "value": "b"}]
    (item,) = lines({"type": "profile", "facts": two})
    assert item.problem == "fact 2: traits city has a current value already, not 'b' too"


@pytest.mark.parametrize(
    ("record", "word"),
    [({"type": "speaker", "profile": {}}, "sender_id"), ({"type": "bot", "profile": {}}, "subject"), ({"type": "session"}, "profile"),
     ({"type": "session", "profile": []}, "profile"), ({"type": "session", "facts": {}}, "facts"), ({"type": "session", "scope_key": 5}, "profile"),
     ({"type": "session", "profile": {"name": 5}}, "name"), ({"type": "session", "profile": {"traits": "a"}}, "traits"),
     ({"type": "session", "profile": {"updated_at": "x"}}, "updated_at"), ({"type": "session", "profile": {"profile_slots": [1]}}, "profile_slots"),
     ({"type": "session", "profile": {"profile_slots": {"traits": {"a": "b"}}}}, "profile_slots.traits.a"),
     ({"type": "session", "profile": {"profile_slots": {"traits": {"a": {"history": [{"value": "b", "status": "current"}]}}}}}, "history"),
     ({"type": "session", "profile": {"notes": "x" * 2_001}}, "notes value"), (5, "profile")],
)  # fmt: skip
def test_a_bad_profile(record: Any, word: str) -> None:
    item = read({"profiles": [record]})[1]
    assert word in item.problem


def test_composed_lists_count_only_without_free_ones() -> None:
    slot = {"city": {"value": "上海", "updated_at": EARLY}}
    assert [f["value"] for f in facts(traits=["上海", "tall"], profile_slots={"traits": slot}, freeform_traits=[])] == ["上海"]
    assert [f["value"] for f in facts(traits=["上海", "tall"], profile_slots={"traits": slot})] == ["上海", "tall"]
    assert [f["value"] for f in facts(traits=["tall"], preferences=["tea"])] == ["tall", "tea"]


def test_updated_at_stands_in_for_a_better_time() -> None:
    found = facts(
        name="a",
        notes="b",
        updated_at=LATE,
        profile_slots={"traits": {"x": {"value": "c"}, "y": {"value": "d", "updated_at": EARLY}}},
    )
    assert [fact["created_at"] for fact in found] == [LATE, LATE, EARLY, LATE]


# ------------------------------------------------------------------------------------- LivingMemory's files


def test_its_native_export() -> None:
    items = list(ltm_formats.read(DATA / "livingmemory.json"))
    assert [item.problem for item in items] == [""] * 7
    assert items[0].data["format"] == "livingmemory"
    data = [item.data for item in items[1:]]
    assert [each["id"] for each in data] == ["11", "12", "13", "14", "15", "16"]
    assert [each["importance"] for each in data] == [4, 3, 1, 5, 3, 5]
    assert [each["status"] for each in data] == ["active", "archived", "deleted", "active", "active", "active"]
    assert [each["timestamp"] for each in data] == [
        "2026-01-01T00:00:00.500000Z", "2026-01-01T01:00:00Z", "2026-01-01T02:00:00Z", "2026-01-03T08:00:00+08:00", "", "2026-01-05T12:30:00",
    ]  # fmt: skip
    assert data[0]["tags"] == ["旅行", "青岛"]
    assert data[0]["source"] == "import"
    assert data[0]["extra"]["session_id"] == "qq:GroupMessage:552"
    assert data[0]["extra"]["metadata"]["key_facts"] == ["老周四月去青岛", "酒店没订"]
    assert data[0]["extra"]["source_messages"][0]["role"] == "user"
    assert not {"create_time", "topics", "status"} & data[0]["extra"]["metadata"].keys()
    assert data[4]["content"] == "Group agreed: 周三晚上打羽毛球。"
    assert data[5]["extra"] == {}


@pytest.mark.parametrize("key", ["memories", "long_term_memories", "longTermMemories", "long_term_memory"])
def test_its_wrappers(key: str) -> None:
    assert [item.data["content"] for item in read({key: ["a", {"text": "b"}]})[1:]] == ["a", "b"]
    assert [item.data["id"] for item in read({key: {"7": "a", "8": {"text": "b"}}})[1:]] == ["7", "8"]
    assert read({key: {"7": 5}})[1].problem.startswith("content must be text")


def test_its_other_shapes() -> None:
    assert [item.data["content"] for item in read(["a", "b"])] == ["a", "b"]
    assert [item.data["content"] for item in read({"data": {"data": ["a"]}, "code": 0})] == ["a"]
    assert [item.data["content"] for item in read({"data": {"memories": ["a"]}})[1:]] == ["a"]
    assert [(item.data["id"], item.data["content"]) for item in read({"7": "a", "8": {"value": "b"}})] == [("7", "a"), ("8", "b")]


@pytest.mark.parametrize("key", ["content", "text", "summary", "memory", "value"])
def test_its_names_for_the_text(key: str) -> None:
    assert read([{key: " a ", "session_id": "s"}])[0].data["content"] == " a "


@pytest.mark.parametrize(
    ("importance", "found"),
    [(0, 1), (0.1, 1), (0.125, 2), (0.3, 2), (0.5, 3), (0.75, 4), (0.9, 5), (1, 5), (1.0, 5), (2, 2), (5, 3), (7, 4), (10, 5), (99, 5),
     (-1, 1), ("0.5", 3), ("10", 5), (None, 2)],
)  # fmt: skip
def test_its_importance(importance: Any, found: int) -> None:
    assert living(importance=importance)["importance"] == found
    assert living(metadata={"importance": importance})["importance"] == found


@pytest.mark.parametrize(
    ("time", "found"),
    [(1767225600, EARLY), (1767225600.25, "2026-01-01T00:00:00.250000Z"), ("1767225600", EARLY), ("2026-01-01 00:00:00", "2026-01-01 00:00:00"),
     (0, "1970-01-01T00:00:00Z"), (None, ""), ("", "")],
)  # fmt: skip
def test_its_times(time: Any, found: str) -> None:
    assert living(storage_created_at=time)["timestamp"] == found
    assert living(metadata={"create_time": time})["timestamp"] == found


@pytest.mark.parametrize(
    "fields", [{"created_at": 10**15}, {"created_at": -1e300}, {"created_at": True}, {"created_at": []}, {"created_at": "soon"},
               {"importance": "high"}, {"importance": True}, {"topics": [5]}, {"content": 5}, {"content": " "}, {"original_id": []}],
)  # fmt: skip
def test_a_bad_memory(fields: dict[str, Any]) -> None:
    (name,) = fields
    item = read({"memories": [{"content": "a", **fields}]})[1]
    assert {"topics": "tags", "original_id": "id"}.get(name, name) in item.problem
    assert read({"memories": [5]})[1].problem == "a memory must be an object, not 5"


def test_its_tags_and_extra() -> None:
    found = living(tags=["a"], topics=["b", "a"], metadata="{}", mood="good", sender_id="u")
    assert (found["tags"], found["sender_id"], found["extra"]) == (["a", "b"], "u", {"metadata": "{}", "mood": "good"})


def test_whose_list_it_is() -> None:
    assert [item.data["importance"] for item in read([{"content": "a", "importance": 0.9}, {"content": "b", "importance": 1}])] == [
        5,
        5,
    ]
    assert [item.data["importance"] for item in read([{"content": "a", "importance": 3}, {"content": "b", "importance": 1}])] == [
        3,
        1,
    ]
    mixed = read([{"content": "a", "importance": 3, "sender_id": "u"}, "oops"])
    assert (mixed[0].data["importance"], mixed[1].problem) == (3, "an episode must be an object, not 'oops'")


# ------------------------------------------------------------------------------------------- hostile files


@pytest.mark.parametrize(
    ("part", "word"),
    [('"score": NaN', "NaN"), ('"score": -Infinity', "-Infinity"), ('"score": 1e999', "too large"), ('"metadata": {"a": [NaN]}', "metadata: NaN"),
     ('"content": "b"', "given twice"), ('"metadata": {"a": 1, "a": 2}', "metadata: the key 'a' is given twice"),
     ('"score": ' + "9" * 5_000, "5,000 digits"), ('"sender_name": "\\ud800"', "sender_name: '\\ud800' begins with half"),
     ('"\\udc00": 1', "half a surrogate"), ('"metadata": ' + "[" * 70 + "]" * 70, "nested"), ('"metadata": ' + '{"a":' * 70 + "1" + "}" * 70, "nested")],
)  # fmt: skip
def test_json_that_programs_disagree_on(part: str, word: str) -> None:
    record = f'{{"type": "episode", "content": "a", {part}}}'
    for file in (record, f'{{"format": "ltm", "episodes": [{record}, {{"content": "fine"}}]}}'):
        items = [item for item in read(file.encode()) if item.type == "episode"]
        assert word in items[0].problem
        assert "\n" not in items[0].problem
        assert len(items[0].problem) < 200
        assert all(not item.problem for item in items[1:])


def test_a_line_nested_without_end() -> None:
    items = lines({"type": "episode", "content": "a"}, b"[" * 200_000, b'{"type": "episode", "content": "b"}')
    assert [bool(item.problem) for item in items] == [False, True, False]


def test_emoji_and_astral_characters_are_no_half_pairs() -> None:
    assert read(b'[{"content": "\\ud83c\\udf5c \xf0\xa0\xae\xb7"}]')[0].data["content"] == "🍜 𠮷"


KEYS = st.sampled_from(
    ["type", "format", "version", "episodes", "profiles", "audit", "entries", "memories", "data", "content", "text", "tags", "importance",
     "timestamp", "created_at", "metadata", "create_time", "topics", "id", "sender_id", "status", "claim_type", "valid_from", "valid_until",
     "profile", "facts", "field", "value", "slot", "profile_slots", "traits", "history", "updated_at", "extra", "", "operation"],
) | st.text(max_size=5)  # fmt: skip
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.text(st.characters(), max_size=5)
    | st.sampled_from(["ltm", "livingmemory", "header", "episode", "profile", "session", "traits", "current", "a\ud800", EARLY, LATE, 10**200])
)  # fmt: skip
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=6), max_leaves=25)
EPISODES = st.dictionaries(KEYS, VALUES, max_size=8).map(lambda fields: {"content": "a", **fields})


def checked(file: bytes) -> Iterator[Item]:
    """Read a file; nothing but FormatError may come of it, and of each item either data or a problem."""
    with contextlib.suppress(FormatError):
        for item in ltm_formats.read(file):
            assert bool(item.data) != bool(item.problem)
            assert "\n" not in item.problem
            assert item.type in ("episode", "profile", "header", "audit", "other")
            yield item


@given(VALUES | st.lists(EPISODES, max_size=3) | st.dictionaries(KEYS, st.lists(EPISODES, max_size=3), max_size=3))
def test_any_json_is_read_or_refused(value: Any) -> None:
    for item in checked(json.dumps(value).encode()):
        json.dumps(item.data, allow_nan=False, ensure_ascii=False).encode()
        if item.type == "episode" and item.data:
            assert item.data.keys() == {"content", *EMPTY}
            assert item.data["importance"] in (1, 2, 3, 4, 5)


@given(st.lists(VALUES | EPISODES | st.binary(max_size=40), max_size=5))
def test_any_lines_are_read_or_refused(records: list[Any]) -> None:
    made = [
        each if isinstance(each, bytes) else json.dumps({"type": "episode", **each} if isinstance(each, dict) else each).encode()
        for each in records
    ]
    assert list(checked(b"\n".join([b'{"type": "header", "format": "ltm"}', *made])))


@given(st.binary(max_size=200))
@example(b"\xef\xbb\xbf")
@example(b"[\x00]")
@example(b'{"type": "header", "a": 1, "a": 2}')
def test_any_bytes_are_read_or_refused(file: bytes) -> None:
    list(checked(file))


@given(EPISODES)
def test_what_is_read_can_be_remembered(fields: dict[str, Any]) -> None:
    for item in checked(json.dumps({"format": "ltm", "episodes": [fields]}).encode()):
        if item.type == "episode" and item.data:
            names = ("source", "event_at", "valid_from", "valid_until", "source_ref", "claim_type", "pinned")
            details = {name: item.data[name] for name in names} | {"created_at": item.data["timestamp"]}
            ltm._draft(item.data["content"], item.data["tags"], item.data["importance"], details)


# ----------------------------------------------------------------------------------------------- agreement


@given(
    st.from_regex(ltm_formats._ISO, fullmatch=True)
    | st.datetimes().map(str)
    | st.datetimes(timezones=st.timezones()).map(lambda moment: moment.isoformat())
    | st.text(max_size=12),
    st.booleans(),
)
@example("0001-01-01T00:00:00+08:00", True)
@example("9999-12-31T23:59:59-01:00", True)
@example("2026-01-01T00:00:00+24:00", True)
@example("2026-01-01T00:00:00+08", True)
@example("2026-01-01T00:00:60Z", True)
@example("2026-01-01Z", False)
@example(" 2026-01-01 09:00:00,5 +0800 ", True)
@example("２０２６-01-01", False)
@example("2026-01-01T00:00:00\n", False)
def test_a_time_is_what_ltm_takes(text: str, zone_required: bool) -> None:
    try:
        us: int | None = ltm.to_us(text, zone_required=zone_required)
    except ltm.InvalidInput:
        us = None
    assert ltm_formats._us(text, zone_required) == us
    assert ltm_formats.time_ok(text, zone_required) == (us is not None)


@pytest.mark.parametrize(
    "name",
    ["CONTENT_CHARS", "TAGS", "TAG_CHARS", "NAME_CHARS", "REF_CHARS", "VALUE_CHARS", "STATUSES", "CLAIM_TYPES", "PROFILE_FIELDS"],
)
def test_limits_are_those_of_ltm(name: str) -> None:
    assert getattr(ltm_formats, name) == getattr(ltm, name)


def test_it_stands_alone() -> None:
    probe = "import sys, ltm_formats; sys.exit(bool({'ltm', 'pydantic', 'apsw'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", probe], cwd=Path(ltm_formats.__file__).parent).returncode == 0
