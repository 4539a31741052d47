"""Reading of export files into checked records: our own, LongTermMemory's, LivingMemory's. No SQL, no storage.

`read` finds out the format by content and never by name. JSON Lines are read line by line in constant memory; anything
else is one JSON document, loaded whole. One bad record is an `Item` that says what is wrong with it, and reading goes
on; only a file that is no export as a whole raises `FormatError`.

The files come from strangers, so the JSON itself is checked too: NaN and Infinity, a key given twice, half a surrogate
pair, numbers of a hundred digits and nesting without end are refused, because no two programs agree on them.

The checks are written by hand: a model of pydantic's would have to be told every leniency below as a validator, and
its messages would not be ours. What they let through, `ltm` can store.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta, timezone
from itertools import chain
from typing import Any, BinaryIO, NamedTuple

# ------------------------------------------------------------------------------------------ constants

VERSION = 1  # of our own export format
LINE_BYTES = 16 << 20  # a longer line is refused unread: constant memory is what JSON Lines are for
DEPTH = 64  # levels of nesting inside one record; the same on every Python, whose own limits differ
NUMBER_CHARS = 100  # digits of a whole number
# The limits of ltm.py, which imports this module and so cannot be asked for them; a test keeps them equal.
CONTENT_CHARS, TAGS, TAG_CHARS = 20_000, 32, 64
NAME_CHARS, REF_CHARS, VALUE_CHARS = 256, 512, 2_000
STATUSES = ("active", "superseded", "archived", "deleted")
CLAIM_TYPES = ("unknown", "user_statement", "inference")
PROFILE_FIELDS = ("name", "traits", "preferences", "notes")
FACT_STATUSES = ("current", "superseded", "removed")
EXPECTED = "expected a JSON or JSON Lines export of ltm, LongTermMemory or LivingMemory"


class FormatError(ValueError):
    """The file as a whole cannot be read. The message says what was expected."""


class Item(NamedTuple):
    """One record of a file: `data` with every field present, or {} and the `problem` in one line.

    `position`: the line of JSON Lines, else the place in its list, counted from 1; 0 for what is in no list.
    `type`: 'episode', 'profile', 'header', 'audit', or 'other': not known to us, told so that it is not lost in silence.
    """

    position: int
    type: str
    data: dict[str, Any]
    problem: str


class _Problem(Exception):
    """What is wrong with one record."""


Check = Callable[[Any], dict[str, Any]]

# ------------------------------------------------------------------------------------------- entrance


def read(source: str | os.PathLike[str] | BinaryIO | bytes) -> Iterator[Item]:
    """Yield the records of an export: a path, an open binary file, or the bytes themselves.

    Raises FormatError when the file is none we know, and OSError when it cannot be opened. Nothing is read before the
    first record is asked for.
    """
    if isinstance(source, bytes):
        yield from _read(io.BytesIO(source))
    elif isinstance(source, (str, os.PathLike)):
        with open(source, "rb") as stream:
            yield from _read(stream)
    else:
        yield from _read(source)


def _read(stream: BinaryIO) -> Iterator[Item]:
    lines = _lines(stream)
    number, first = next(lines, (0, b""))
    if not number:
        raise FormatError(f"the file is empty; {EXPECTED}")
    try:
        value = _decode(first)
    except _Problem:
        value = None
    if _is_json_line(value):
        return (_line_item(number, raw) for number, raw in chain([(number, first)], lines))
    rest = stream.read()
    whole = isinstance(value, (list, dict)) and not rest.strip()  # a document on one line is not decoded again
    return _document_items(value if whole else _decode_file(first + rest))


def _lines(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers; of one that is too long no more than what tells so."""
    number = 0
    while raw := stream.readline(LINE_BYTES + 1):
        number += 1
        if number == 1:
            raw = raw.removeprefix(b"\xef\xbb\xbf")
        if raw.strip():
            yield number, raw
        while len(raw) > LINE_BYTES and not raw.endswith(b"\n"):
            raw = stream.readline(LINE_BYTES + 1)


def _is_json_line(value: Any) -> bool:
    """Whether the first line is a record of JSON Lines, and not a document that is written on one line."""
    record = value.seen if isinstance(value, _Flaw) else value
    if not isinstance(record, dict) or record.get("type") == "header":
        return isinstance(record, dict)
    return (record.get("format") == "ltm" or isinstance(record.get("type"), str)) and not record.keys() & _LISTS.keys()


# ----------------------------------------------------------------------------------------------- JSON


class _Flaw(NamedTuple):
    """Stands in decoded JSON where something is refused, so that only the record that holds it is lost."""

    words: str
    seen: Any = None


def _pairs(pairs: list[tuple[str, Any]]) -> Any:
    made = dict(pairs)
    if len(made) == len(pairs):
        return made
    twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
    return _Flaw(f"the key {_short(twice)} is given twice", made)


def _whole(digits: str) -> Any:
    return int(digits) if len(digits) <= NUMBER_CHARS else _Flaw(f"a number of {len(digits):,} digits")


def _fraction(digits: str) -> Any:
    value = float(digits)
    return value if math.isfinite(value) else _Flaw(f"the number {digits[:40]} is too large")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_pairs,
    parse_int=_whole,
    parse_float=_fraction,
    parse_constant=lambda name: _Flaw(f"{name} is not a number of JSON"),
)
_SURROGATE = re.compile("[\ud800-\udfff]")


def _decode(raw: bytes) -> Any:
    """Decode one JSON value; what is refused in it is a `_Flaw`. Raises _Problem when there is no value."""
    if len(raw) > LINE_BYTES:
        raise _Problem(f"the line is longer than {LINE_BYTES:,} bytes")
    return _decode_text(raw)


def _decode_text(raw: bytes) -> Any:
    try:
        return _DECODER.decode(raw.decode())
    except UnicodeDecodeError as error:
        raise _Problem(f"not UTF-8 at byte {error.start:,}") from error
    except json.JSONDecodeError as error:
        raise _Problem(f"not JSON: {error.msg} at character {error.pos + 1:,}") from error
    except RecursionError as error:
        raise _Problem("nested too deeply") from error


def _decode_file(raw: bytes) -> Any:
    try:
        value = _decode_text(raw)
    except _Problem as problem:
        raise FormatError(f"the file is unreadable: {problem}; {EXPECTED}") from problem
    if isinstance(value, _Flaw):
        raise FormatError(f"the file is unreadable: {value.words}; {EXPECTED}")
    return value


def _flaw(value: Any, depth: int = 1) -> str:
    """What no record may hold, at any depth; '' if there is none."""
    if isinstance(value, dict):
        parts: Iterable[Any] = chain(value, value.values())
    elif isinstance(value, list):
        parts = value
    else:
        return _text_flaw(value) if isinstance(value, str) else value.words if isinstance(value, _Flaw) else ""
    if depth == DEPTH:
        return f"nested more than {DEPTH} levels deep"
    for part in parts:
        # Most parts are plain ASCII texts: seen to here, without a call.
        if not (type(part) is str and part.isascii()) and (found := _flaw(part, depth + 1)):
            return found
    return ""


def _text_flaw(text: str) -> str:
    found = None if text.isascii() else _SURROGATE.search(text)
    return f"{_short(text[found.start() :])} begins with half a surrogate pair" if found else ""


def _short(value: object) -> str:
    """Show a value in one short line, whatever it is."""
    if isinstance(value, (list, dict)):
        return "a list" if isinstance(value, list) else "an object"
    text = repr(value[:80] if isinstance(value, str) else value)
    return text if len(text) <= 80 else text[:77] + "..."


# ------------------------------------------------------------------------------------- shapes of files


def _line_item(number: int, raw: bytes) -> Item:
    try:
        value = _decode(raw)
    except _Problem as problem:
        return Item(number, "other", {}, str(problem))
    record = value.seen if isinstance(value, _Flaw) else value
    if not isinstance(record, dict):
        return Item(number, "other", {}, f"the line must hold an object, not {_short(record)}")
    kind = record.get("type", "header" if "format" in record else None)
    if kind not in ("header", *_LINES):
        words = "" if isinstance(kind, str) else f"type {_short(kind)} is not text" if kind is not None else "type is missing"
        return _item(number, "other", _Flaw(words) if words else value, dict)
    if kind == "header":
        return _item(number, kind, value, lambda given: _header(given, "ltm"))
    record.pop("type")  # it named the line and is no field of the record
    return _item(number, kind, value, _LINES[kind])


def _item(position: int, kind: str, record: Any, check: Check) -> Item:
    """Check one record; whatever is wrong with it becomes its problem."""
    try:
        for name, value in record.items() if isinstance(record, dict) else (("", record),):
            if words := (_flaw(name) or _flaw(value)):
                raise _Problem(f"{_name(name)}: {words}" if name else words)
        return Item(position, kind, check(record), "")
    except _Problem as problem:
        return Item(position, kind, {}, str(problem))


def _name(name: str) -> str:
    return name if name.isidentifier() and len(name) <= 40 else _short(name)


def _document_items(document: Any) -> Iterator[Item]:
    """Yield the records of one JSON document, whatever its shape."""
    while isinstance(document, dict) and isinstance(document.get("data"), (list, dict)):
        if document.keys() & {*_LISTS, "format"}:
            break
        document = document["data"]
    if isinstance(document, dict) and (document.keys() & _LISTS.keys() or "format" in document):
        yield from _wrapped(document)
    elif isinstance(document, list):
        yield from _listed(document, "episode", _list_check(document))
    elif isinstance(document, dict) and isinstance(_first(document, _TEXT_KEYS)[1], str):
        yield from _listed([document], "episode", _list_check([document]))
    elif isinstance(document, dict) and document and "version" not in document and all(map(_is_text, document.values())):
        yield from _listed(_map_entries(document), "episode", _living)
    else:
        raise FormatError(f"the JSON has an unknown shape; {EXPECTED}")


def _is_text(value: Any) -> bool:
    """Whether the value of a map from ids is a memory."""
    return isinstance(value, str) or (isinstance(value, dict) and isinstance(_first(value, _TEXT_KEYS)[1], str))


def _listed(records: list[Any], kind: str, check: Check) -> Iterator[Item]:
    return (_item(position, kind, record, check) for position, record in enumerate(records, 1))


def _wrapped(document: dict[str, Any]) -> Iterator[Item]:
    """Yield the header and the lists of an object that holds them; what we do not know of it as 'other'."""
    name = document.get("format", "livingmemory" if document.keys() & set(_LIVING_LISTS) else "longtermmemory")
    if name not in ("ltm", "longtermmemory", "livingmemory"):
        raise FormatError(f"unknown format {_short(name)}; {EXPECTED}")
    try:
        yield Item(0, "header", _header(document, name), "")
    except _Problem as problem:
        raise FormatError(f"the file is unreadable: {problem}; {EXPECTED}") from problem
    for key, value in document.items():
        if key in _LISTS:
            kind, check = _LISTS[key]
            if isinstance(value, dict) and check is _living:
                value = _map_entries(value)
            if not isinstance(value, list):
                raise FormatError(f"{key} must be a list, not {_short(value)}; {EXPECTED}")
            yield from _listed(value, kind, check)
        elif isinstance(value, (list, dict)) and key != "statuses":
            yield _item(0, "other", {"type": key, "count": len(value)}, dict)


def _map_entries(texts: dict[str, Any]) -> list[Any]:
    """The entries of a map from ids to texts or objects, as a list."""
    return [
        {"original_id": id, **value} if isinstance(value, dict) else {"original_id": id, "content": value}
        for id, value in texts.items()
    ]


def _header(document: dict[str, Any], name: str) -> dict[str, Any]:
    """Check what a file says of itself. Of another program's file any version is tried; a newer one of ours is not."""
    version = document.get("version", document.get("schema_version", VERSION))
    for key in ("format", "version", "exported_at", "scope_key", "user_key", "count"):
        if words := _flaw(document.get(key)):
            raise _Problem(f"{key}: {words}")
    if document.get("format", name) != name:
        raise FormatError(f"unknown format {_short(document['format'])}; {EXPECTED}")
    if name == "ltm" and (type(version) is not int or version < 1):
        raise FormatError(f"version {_short(version)} is unknown; expected {VERSION}")
    if name == "ltm" and version > VERSION:
        raise FormatError(f"written by a newer ltm: version {version}; expected {VERSION}")
    data: dict[str, Any] = {"format": name, "version": version if type(version) is int else 0}
    for key in ("exported_at", "scope_key", "user_key"):
        data[key] = document[key] if isinstance(document.get(key), str) else ""
    return {**data, "count": document["count"] if type(document.get("count")) is int else None}


# ------------------------------------------------------------------------------------- values of fields

_ISO = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?)?\s*(Z|z|[+-]\d\d(?::?\d\d)?)?", re.ASCII
)
_NUMBER = re.compile(r"\s*[+-]?\d{1,40}(?:\.\d{0,40})?\s*", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_FIRST_US, _LAST_US = -62_135_596_800_000_000, 253_402_300_799_999_999  # the years 1 to 9999


def time_ok(text: str, zone_required: bool) -> bool:
    """Whether a text is an ISO-8601 time: a real date, maybe a time of day, and then maybe a zone. Exactly what `ltm` takes.

    >>> time_ok("2026-12-08", False), time_ok("2026-12-08T09:00", True), time_ok("2026-02-30T09:00Z", True)
    (True, False, False)
    """
    return _us(text, zone_required) is not None


def _us(text: str, zone_required: bool) -> int | None:
    """Microseconds UTC of an ISO-8601 time, None if it is none.

    `datetime.fromisoformat` takes more from Python 3.11 on than in 3.10, so the form is decided here.
    """
    match = _ISO.fullmatch(text.strip())
    if not match:
        return None
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    if (zone and hour is None) or (zone_required and not zone):
        return None
    try:
        moment = datetime(int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0), tzinfo=timezone.utc)
    except ValueError:
        return None
    us = (moment - _EPOCH) // timedelta(microseconds=1) + int((fraction or "0").ljust(6, "0")[:6])
    if zone and zone not in "Zz":
        hours, minutes = int(zone[1:3]), int(zone[3:].lstrip(":") or 0)
        if hours > 23 or minutes > 59:
            return None
        us -= (hours * 60 + minutes) * 60_000_000 * (-1 if zone[0] == "-" else 1)
    return us if _FIRST_US <= us <= _LAST_US else None


def _object(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _Problem(f"{name} must be an object, not {_short(value)}")
    return value


def _list(value: Any, name: str) -> list[Any]:
    """A list; a missing one is empty."""
    if value is not None and not isinstance(value, list):
        raise _Problem(f"{name} must be a list, not {_short(value)}")
    return value or []


def _text(given: dict[str, Any], name: str, limit: int = REF_CHARS, where: str = "") -> str:
    """A text exactly as given; '' if it is missing."""
    value = given.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _Problem(f"{where}{name} must be text, not {_short(value)}")
    if len(value) > limit:
        raise _Problem(f"{where}{name} {_short(value[:20])} has {len(value):,} characters; the limit is {limit:,}")
    return value


def _sender_id(given: dict[str, Any]) -> str:
    """The id of a speaker. An identity is refused rather than repaired, so it may hold nothing that cannot be stored."""
    sender = _text(given, "sender_id", NAME_CHARS)
    if "\0" in sender:
        raise _Problem(f"sender_id {_short(sender)} holds a character that cannot be stored")
    return sender


def _texts(value: Any, name: str) -> list[str]:
    found = _list(value, name)
    for each in found:
        if not isinstance(each, str):
            raise _Problem(f"{name} must hold texts, not {_short(each)}")
    return found


def _time(given: dict[str, Any], name: str, where: str = "") -> str:
    """A time as given, in any zone or none; '' if it is missing."""
    text = _text(given, name, where=where)
    if text and _us(text, False) is None:
        raise _Problem(f"{where}{name} {_short(text)} is not an ISO-8601 time like 2026-12-08T09:00:00Z")
    return text


def _zoned(given: dict[str, Any], name: str) -> tuple[str, int | None]:
    """A time with its zone, which is never guessed, and the same in microseconds."""
    text = _text(given, name)
    us = _us(text, True) if text else None
    if text and us is None:
        raise _Problem(f"{name} {_short(text)} is not an ISO-8601 time with a zone, like 2026-12-08T09:00:00+08:00")
    return text, us


def _number(value: Any, name: str) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return float(value)
    raise _Problem(f"{name} {_short(value)} is not a number")


def _first(given: dict[str, Any], names: Sequence[str]) -> tuple[str, Any]:
    """The first of several names for a field that has a value, and the value; the first of all and None if none has."""
    return next(((name, given[name]) for name in names if given.get(name) not in (None, "")), (names[0], None))


# -------------------------------------------------------------------------------------------- episodes

_IDS, _DOCUMENTS = ("id", "episode_id", "original_id"), ("document", "document_id")
_TEXT_KEYS = ("content", "text", "summary", "memory", "value")
_KNOWN = frozenset(
    (
        "content",
        "tags",
        "importance",
        "timestamp",
        "status",
        "source",
        "sender_id",
        "sender_name",
        "superseded_by",
        "imported_episode_id",
        "event_at",
        "valid_from",
        "valid_until",
        "source_ref",
        "claim_type",
        "pinned",
        "version",
        "sources",
        "extra",
    )
)


def _episode(record: Any) -> dict[str, Any]:
    """Check an episode of ours or of LongTermMemory's, which ours extends."""
    given = _object(record, "an episode")
    event_at = _zoned(given, "event_at")[0]
    (valid_from, start), (valid_until, end) = _zoned(given, "valid_from"), _zoned(given, "valid_until")
    if start is not None and end is not None and start >= end:
        raise _Problem(f"valid_from {_short(valid_from)} must be before valid_until {_short(valid_until)}")
    id_name, document_name = _first(given, _IDS)[0], _first(given, _DOCUMENTS)[0]
    status = given.get("status")
    return {
        "content": _content(given),
        "tags": _tags(given.get("tags")),
        "importance": _importance(given.get("importance")),
        "timestamp": _time(given, "timestamp"),
        "status": status if status in STATUSES else "active",
        "source": _text(given, "source").strip() or "import",
        "sender_id": _sender_id(given),
        "sender_name": _text(given, "sender_name", NAME_CHARS),
        "superseded_by": _text(given, "superseded_by"),
        "id": _text(given, id_name),
        "imported_episode_id": _text(given, "imported_episode_id"),
        "event_at": event_at,
        "valid_from": valid_from,
        "valid_until": valid_until,
        "source_ref": _text(given, "source_ref"),
        "claim_type": _claim_type(given.get("claim_type")),
        "pinned": _pinned(given.get("pinned")),
        "document": _text(given, document_name),
        "sources": _texts(given.get("sources"), "sources"),
        "extra": _extra(given, id_name, document_name) | ({"status": status} if status not in (None, "", *STATUSES) else {}),
    }


def _content(given: dict[str, Any]) -> str:
    content = _text(given, "content", CONTENT_CHARS)
    if not content.strip():
        raise _Problem(f"content {_short(content)} is blank" if content else "content is missing")
    return content


def _tags(value: Any) -> list[str]:
    """Tags without empty ones; a text is cut at its commas, and what is no list is none, as the original reads it."""
    given = value.split(",") if isinstance(value, str) else _texts(value, "tags") if isinstance(value, list) else []
    tags = [tag.strip() for tag in given if tag.strip()]
    if len(tags) > TAGS:
        raise _Problem(f"tags: there are {len(tags):,}; the limit is {TAGS}")
    for tag in tags:
        if len(tag) > TAG_CHARS:
            raise _Problem(f"tags: {_short(tag[:20])} has {len(tag):,} characters; the limit is {TAG_CHARS}")
    return tags


def _importance(value: Any) -> int:
    return 2 if value is None else int(min(5, max(1, _number(value, "importance"))))


def _claim_type(value: Any) -> str:
    if value is None or value == "":
        return "unknown"
    if value not in CLAIM_TYPES:
        raise _Problem(f"claim_type must be one of {', '.join(CLAIM_TYPES)}, not {_short(value)}")
    return str(value)


def _pinned(value: Any) -> bool:
    if value is not None and not isinstance(value, bool):
        raise _Problem(f"pinned must be true or false, not {_short(value)}")
    return bool(value)


def _extra(given: dict[str, Any], *used: str) -> dict[str, Any]:
    """The fields that are none of ours, as they are. Our own exports carry them in an object `extra`, which is opened."""
    kept = given.get("extra")
    extra = dict(kept) if isinstance(kept, dict) else {} if kept is None else {"extra": kept}
    for name, value in given.items():
        if name in _KNOWN or name in used or (name in _IDS + _DOCUMENTS and value in (None, "")):
            continue
        extra[name] = value
    return extra


# ------------------------------------------------------------------------------- LivingMemory's episodes

_LONG_TERM_MARKS = frozenset(("sender_id", "sender_name", "superseded_by", "claim_type", "event_at", "source_ref"))
_LIVING_MARKS = frozenset(
    ("session_id", "persona_id", "original_id", "storage_created_at", "source_messages", "topics", "key_facts")
)
_CREATED = ("storage_created_at", "created_at", "create_time", "timestamp")


def _list_check(records: list[Any]) -> Check:
    """Decide whose list it is when nothing says so: the two count importance differently, so all of it is one or the other."""
    objects = [record for record in records if isinstance(record, dict)]
    if any(_LONG_TERM_MARKS & record.keys() for record in objects):
        return _episode
    living = len(objects) < len(records) and any(isinstance(record, str) for record in records)
    return _living if living or any(map(_looks_living, objects)) else _episode


def _looks_living(record: dict[str, Any]) -> bool:
    importance = record.get("importance")
    named = _first(record, _TEXT_KEYS)[0] != "content"
    return bool(_LIVING_MARKS & record.keys()) or named or (isinstance(importance, float) and 0 < importance < 1)


def _living(record: Any) -> dict[str, Any]:
    """Check a memory of LivingMemory's: put it in our terms, what has no counterpart into `extra`, and check that."""
    given: dict[str, Any] = {"content": record} if isinstance(record, str) else dict(_object(record, "a memory"))
    metadata = dict(given.pop("metadata")) if isinstance(given.get("metadata"), dict) else {}
    made: dict[str, Any] = {"source": "import", "content": _living_text(given)}
    id_name, id = _first(given, ("original_id", "id", "episode_id"))
    given.pop(id_name, None)
    made["id"] = str(id) if type(id) is int else id
    for name in ("sender_id", "sender_name", "tags"):
        made[name] = given.pop(name, None)
    topics = given.pop("topics", None) or metadata.pop("topics", None)
    made["tags"] = list(dict.fromkeys(_tags(made["tags"]) + _tags(topics)))
    made["importance"] = _living_importance(_take(given, metadata, "importance"))
    status = _take(given, metadata, "status")
    made["status"] = status if status in ("archived", "deleted") else "active"
    made["timestamp"] = _living_time(given, metadata)
    if metadata:
        given["metadata"] = metadata
    return _episode({**made, "extra": given})


def _living_text(given: dict[str, Any]) -> Any:
    """Take the text out, under whichever of its names it is."""
    for name in _TEXT_KEYS:
        value = given.get(name)
        if value is not None and not (isinstance(value, str) and not value.strip()):
            return given.pop(name)
    raise _Problem(f"the memory has no text; one of {', '.join(_TEXT_KEYS)} must hold it")


def _take(given: dict[str, Any], metadata: dict[str, Any], name: str) -> Any:
    """Take a field that is on the memory or in its metadata."""
    return given.pop(name) if given.get(name) is not None else metadata.pop(name, None)


def _living_importance(value: Any) -> int | None:
    """0..1 becomes 1..5; a number above 1 is on a scale to 10."""
    if value is None:
        return None
    number = _number(value, "importance")
    share = min(1.0, max(0.0, number / 10 if number > 1 else number))
    return int(1.5 + 4 * share)


def _living_time(given: dict[str, Any], metadata: dict[str, Any]) -> str:
    """When the memory was made, which the metadata knows best; seconds since 1970 or ISO, taken out and made ISO."""
    place = metadata if metadata.get("create_time") not in (None, "") else given
    name, value = _first(place, ("create_time",) if place is metadata else _CREATED)
    if value is None:
        return ""
    del place[name]
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        return _time({name: value}, name)
    seconds = _number(value, name)
    if not _FIRST_US <= seconds * 1_000_000 <= _LAST_US:
        raise _Problem(f"{name} {_short(value)} is not a time in seconds since 1970")
    return (_EPOCH + timedelta(microseconds=round(seconds * 1_000_000))).isoformat().replace("+00:00", "Z")


# --------------------------------------------------------------------------------------------- profiles


def _profile(record: Any) -> dict[str, Any]:
    """Check a profile: our list of facts when it is there, else the facts that LongTermMemory's object amounts to."""
    given = _object(record, "a profile")
    sender_id = _sender_id(given)
    subject = given.get("subject", given.get("type", "speaker" if sender_id else "session"))
    if subject not in ("session", "speaker"):
        raise _Problem(f"subject must be session or speaker, not {_short(subject)}")
    if subject == "speaker" and not sender_id:
        raise _Problem("sender_id is missing; a speaker's profile needs it")
    facts = given.get("facts")
    if facts is None:
        facts = _reference_facts(_object(given.get("profile"), "profile"))
    return {
        "subject": subject,
        "scope_key": _text(given, "scope_key", 4 * NAME_CHARS),
        "sender_id": sender_id if subject == "speaker" else "",
        "sender_name": _text(given, "sender_name", NAME_CHARS),
        "facts": _facts(_list(facts, "facts")),
    }


def _facts(given: list[Any]) -> list[dict[str, Any]]:
    """Check facts and drop blank ones. A name or a slot holds one current value; the same free one again is nothing new."""
    facts: list[dict[str, Any]] = []
    current: set[tuple[str, ...]] = set()
    for number, each in enumerate(given, 1):
        fact = _fact(_object(each, f"fact {number}"), f"fact {number}: ")
        place = (fact["field"], fact["slot"])
        free = not fact["slot"] and fact["field"] != "name"
        key = (*place, fact["value"]) if free else place
        if not fact["value"] or (free and fact["status"] == "current" and key in current):
            continue
        if fact["status"] == "current" and key in current:
            raise _Problem(f"fact {number}: {' '.join(place).strip()} has a current value already, not {_short(fact['value'])} too")
        if fact["status"] == "current":
            current.add(key)
        facts.append(fact)
    return facts


def _fact(given: dict[str, Any], where: str) -> dict[str, Any]:
    field, status = given.get("field"), given.get("status", "current")
    if field not in PROFILE_FIELDS:
        raise _Problem(f"{where}field must be one of {', '.join(PROFILE_FIELDS)}, not {_short(field)}")
    where += f"{field} "
    if status not in FACT_STATUSES:
        raise _Problem(f"{where}status must be one of {', '.join(FACT_STATUSES)}, not {_short(status)}")
    slot = re.sub(r"\s+", "_", _text(given, "slot", NAME_CHARS, where).strip().lower())
    if slot and field not in ("traits", "preferences"):
        raise _Problem(f"{where}slot {_short(slot)}: only traits and preferences have slots")
    ended_at = _time(given, "ended_at", where)
    if ended_at and status == "current":
        raise _Problem(f"{where}ended_at {_short(ended_at)}: a current value has no end")
    return {
        "field": field,
        "slot": slot,
        "value": _value(given, where),
        "status": status,
        "reason": _text(given, "reason", where=where),
        "confidence": _confidence(given.get("confidence"), where),
        "created_at": _time(given, "created_at", where),
        "ended_at": ended_at,
    }


def _value(given: dict[str, Any], where: str) -> str:
    """A value without the space around it, which does not count against its limit."""
    value = given.get("value")
    return _text({"value": value.strip() if isinstance(value, str) else value}, "value", VALUE_CHARS, where)


def _confidence(value: Any, where: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise _Problem(f"{where}confidence must be a number from 0 to 1, not {_short(value)}")
    return float(value)


def _reference_facts(profile: dict[str, Any]) -> list[dict[str, Any]]:
    """Turn LongTermMemory's profile object into facts, unchecked. Composed lists repeat slots and free values, so they
    count only where there is no list of free values: in profiles that are older than it."""
    at = {"created_at": _time(profile, "updated_at")}
    facts: list[dict[str, Any]] = [{"field": "name", "value": profile.get("name"), **at}]
    slots = _object(profile.get("profile_slots") or {}, "profile_slots")
    for field in ("traits", "preferences"):
        held = set()
        for slot, kept in _object(slots.get(field) or {}, f"profile_slots.{field}").items():
            facts += _slot_facts(field, slot, _object(kept, f"profile_slots.{field}.{_name(slot)}"), at)
            held.add(kept.get("value") if isinstance(kept.get("value"), str) else "")
        free = profile.get(f"freeform_{field}")
        values = _texts(free, f"freeform_{field}")
        if free is None:
            values = [value for value in _texts(profile.get(field), field) if value not in held]
        facts += [{"field": field, "value": value, **at} for value in values]
    return [*facts, {"field": "notes", "value": profile.get("notes"), **at}]


def _slot_facts(field: str, slot: str, kept: dict[str, Any], at: dict[str, Any]) -> list[dict[str, Any]]:
    """The values a slot has had, the oldest first, and the one it has."""
    facts: list[dict[str, Any]] = []
    place = {"field": field, "slot": slot}
    for past in _list(kept.get("history"), f"profile_slots.{field}.{_name(slot)}.history"):
        past = _object(past, f"profile_slots.{field}.{_name(slot)}.history")
        status = past.get("status", "superseded")
        if status == "current":
            raise _Problem(f"profile_slots.{field}.{_name(slot)}.history: status must be superseded or removed, not 'current'")
        ended = {"status": status, "reason": past.get("reason"), "ended_at": past.get("timestamp")}
        facts.append({**place, "value": past.get("value"), **ended})
    created = {"created_at": kept.get("updated_at") or at["created_at"], "confidence": kept.get("confidence")}
    return [*facts, {**place, "value": kept.get("value"), **created}]


# ------------------------------------------------------------------------------------------------ audit


def _audit(record: Any) -> dict[str, Any]:
    """Check an audit entry no further than that it is one: it is kept as the record of another program's doings."""
    given = _object(record, "an audit entry")
    if not _text(given, "operation", NAME_CHARS):
        raise _Problem("operation is missing")
    _time(given, "timestamp")
    return given


_LINES: dict[str, Check] = {"episode": _episode, "profile": _profile, "audit": _audit}
_LIVING_LISTS = ("memories", "long_term_memories", "longTermMemories", "long_term_memory")
_LISTS: dict[str, tuple[str, Check]] = {
    "episodes": ("episode", _episode),
    "profiles": ("profile", _profile),
    "audit": ("audit", _audit),
    "entries": ("audit", _audit),
    **dict.fromkeys(_LIVING_LISTS, ("episode", _living)),
}
