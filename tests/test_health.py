"""health and doctor: what is wrong is seen, what is derived is mended, and looking changes nothing."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

import ltm

from .conftest import ALICE, BOB, GROUP, Clock, counting_ids
from .test_episodes import ALL, dump

Open = Callable[..., ltm.Memory]
PRIVATE = ltm.Scope("b1", "person", "9")
CHECKS = ("integrity", "foreign_keys", "index", "vectors", "audit", "embedder", "jobs", "stale", "fences", "storage", "probe")

BASE = [
    "space",
    "speaker",
    "speaker_name",
    "profile_fact",
    "lineage",
    "candidate",
    "proposal",
    "proposal_source",
    "injection",
    "audit",
    "audit_segment",
    "revision",
    "operation",
    "fence",
    "certificate",
    "erased",
    "intent",
    "episode_tag",
]


def filled(memory: ltm.Memory) -> ltm.Space:
    space = memory.space(GROUP, speaker=ALICE)
    old = space.remember("Alice's flight to Tokyo is on Tuesday", tags=["travel"]).id
    space.remember("Alice's flight to Tokyo moved to Friday", supersedes=[old])
    space.for_speaker(BOB).remember("Bob 对花生过敏", importance=5)
    space.profiles.update("traits", "add", "tall", fact_key="height")
    space.candidates.add("l2_episode", {"content": "Alice buys a kite", "tags": [], "importance": 2})
    memory.space(PRIVATE, speaker=BOB).remember("a secret of another chat")
    return space


def base_rows(memory: ltm.Memory) -> list[Any]:
    """Base rows without the counters and lengths that are derived from texts, and without the audit of the repair itself."""
    columns = {"space": "id, kind, bot, launcher_type, launcher_id, created_us"}
    episode = "key, id, space, speaker, content, importance, source, status, created_us, stored_us, superseded_by, version, extra"
    with memory._file.read() as db:
        rows = [
            (
                table,
                db.execute(
                    f"SELECT {columns.get(table, '*')} FROM {table}{' WHERE space > 0' if table == 'audit' else ''} ORDER BY 1, 2"
                ).fetchall(),
            )
            for table in BASE
        ]
        return [*rows, db.execute(f"SELECT {episode} FROM episode ORDER BY key").fetchall()]


def plainly(path: Path | str, *statements: str, keep_triggers: bool = True) -> None:
    """What somebody does with a plain shell: no engine, foreign keys off."""
    db = apsw.Connection(str(path))
    try:
        db.execute("PRAGMA foreign_keys = OFF").fetchall()
        triggers = db.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        if not keep_triggers:
            for name, _ in triggers:
                db.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            db.execute(statement).fetchall()
        if not keep_triggers:
            for _, sql in triggers:
                db.execute(sql)
    finally:
        db.close()


def worst(health: ltm.Health, id: str) -> str:
    order = ("OK", "WARN", "ERROR")
    return max((check.status for check in health.checks if check.id == id), key=order.index, default="none")


def words(health: ltm.Health) -> str:
    return "; ".join(f"{check.id} {check.status}: {check.detail}" for check in health.checks)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bot.db"


# --------------------------------------------------------------------------------------------- health


@pytest.mark.parametrize("embedder", [False, True])
@pytest.mark.parametrize("full", [False, True])
def test_health_is_green_and_leaves_nothing_behind(path: Path, opened: Open, full: bool, embedder: bool) -> None:
    memory = opened(path, embedder=ltm.HashEmbedder() if embedder else None)
    if full:
        filled(memory)
    before = dump(memory)
    with memory._file.read() as db:
        sequence = db.execute("SELECT * FROM sqlite_sequence").fetchall()
    for _ in range(2):
        health = memory.health()
        assert health.status == "OK", words(health)
        assert [check.id for check in health.checks] == ["write", "search", "list", "delete", "cleanup"]
    assert dump(memory) == before
    with memory._file.read() as db:
        assert db.execute("SELECT * FROM sqlite_sequence").fetchall() == sequence
    assert not any("ltm-health" in info.bot for info in memory.spaces())
    if full:
        assert memory.space(GROUP).audit.verify() == []
    assert json.loads(json.dumps(health.to_json()))["status"] == "OK"


def test_health_in_memory_is_green(memory: ltm.Memory) -> None:
    filled(memory)
    before = dump(memory)
    assert memory.health().status == "OK"
    assert dump(memory) == before


def test_health_of_a_read_only_and_of_a_fenced_file_is_a_warning(path: Path, opened: Open) -> None:
    memory = opened(path)
    filled(memory)
    before = dump(memory)
    with ltm.open(path, readonly=True, clock=Clock()) as reader:
        health = reader.health()
        assert (health.status, [check.id for check in health.checks]) == ("WARN", ["probe"])
    fence = memory.fence("frozen for a move")
    assert "frozen for a move" in words(memory.health())
    assert memory.health().status == "WARN"
    memory.clear_fence(fence.id)
    assert memory.health().status == "OK"
    after = dump(memory)
    assert [rows for rows in after if rows[0] not in ("fence", "audit")] == [
        rows for rows in before if rows[0] not in ("fence", "audit")
    ]


def test_a_fence_on_one_chat_is_no_matter_of_health(memory: ltm.Memory) -> None:
    space = filled(memory)
    memory.fence("frozen", space)
    assert memory.health().status == "OK"
    assert worst(memory.doctor(), "fences") == "WARN"


def test_health_says_when_another_chat_is_seen(memory: ltm.Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A probe that cannot fail proves nothing: an engine that mixes chats up is found out."""
    filled(memory)
    monkeypatch.setattr(
        ltm.Space,
        "_identity",
        lambda self, kind: (kind, self.scope.bot, "group" if kind == "session" else "", "one" if kind == "session" else ""),
    )
    health = memory.health()
    assert health.status == "ERROR", words(health)


def test_health_does_not_hide_that_the_file_needs_a_new_index(path: Path) -> None:
    """Its probe runs in a transaction that is taken back; so was a reindex in it, and the next search must still do it."""
    with ltm.open(path, clock=Clock(), ids=counting_ids()) as memory:
        filled(memory)
    plainly(path, "UPDATE setting SET value = 'an older cutter' WHERE name = 'text_fingerprint'", "DELETE FROM episode_fts")
    with ltm.open(path, clock=Clock()) as memory:
        memory.health()
        space = memory.space(GROUP)
        assert space.recall("flight to Tokyo").hits
        space.remember("something new")
        assert memory.check() == []
    with ltm.open(path, clock=Clock()) as memory, memory._file.read() as db:
        assert db.execute("SELECT value FROM setting WHERE name = 'text_fingerprint'").get != "an older cutter"


def test_health_inside_a_batch_touches_nothing_of_it(memory: ltm.Memory) -> None:
    space = filled(memory)
    with memory.batch():
        space.remember("in the batch")
        health = memory.health()
        assert health.status != "OK"
    assert "in the batch" in [episode.content for episode in space.list().episodes]
    assert memory.check() == []


# --------------------------------------------------------------------------------------------- doctor


@pytest.mark.parametrize("embedder", [False, True])
def test_a_sound_file_is_all_green(path: Path, opened: Open, embedder: bool) -> None:
    memory = opened(path, embedder=ltm.HashEmbedder() if embedder else None)
    assert memory.doctor().status == "OK", words(memory.doctor())
    filled(memory)
    memory.embed_pending() if embedder else None
    before = dump(memory)
    health = memory.doctor()
    assert health.status == "OK", words(health)
    assert dict.fromkeys(check.id for check in health.checks if check.id != "embedder") == dict.fromkeys(
        id for id in CHECKS if id != "embedder"
    )
    assert dump(memory) == before


def test_repair_of_a_sound_file_changes_no_base_row(path: Path, opened: Open) -> None:
    memory = opened(path)
    space = filled(memory)
    before, episodes = base_rows(memory), space.list(ALL).episodes
    assert memory.doctor(repair=True).status == "OK"
    assert base_rows(memory) == before
    assert space.list(ALL).episodes == episodes


NEWEST = "(SELECT max(key) FROM episode)"
VECTOR = "(SELECT max(key) FROM episode_vector)"
# name: (check that must see it, statements, whether triggers stay, whether repair mends it)
DAMAGE: dict[str, tuple[str, list[str], bool, bool]] = {
    "an index row is gone": ("index", [f"DELETE FROM episode_fts WHERE rowid = {NEWEST}"], True, True),
    "the newest is not in the index": ("probe", [f"DELETE FROM episode_fts WHERE rowid = {NEWEST}"], True, True),
    "an index row is too many": ("index", ["INSERT INTO episode_fts (rowid, terms) VALUES (4294967999, '1_x')"], True, True),
    "an index row has other words": (
        "index",
        [f"DELETE FROM episode_fts WHERE rowid = {NEWEST}", f"INSERT INTO episode_fts (rowid, terms) VALUES ({NEWEST}, '1_other')"],
        True,
        True,
    ),
    "the index is empty": ("index", ["DELETE FROM episode_fts"], True, True),
    "a length is wrong": ("index", [f"UPDATE episode SET n_terms = 99 WHERE key = {NEWEST}"], True, True),
    "a counter is wrong": ("index", ["UPDATE space SET n_active = 99"], True, True),
    "a sum of lengths is wrong": ("index", ["UPDATE space SET n_terms = 0"], True, True),
    "a sequence would be used again": ("index", ["UPDATE space SET next_seq = 1"], True, True),
    "a vector is gone": ("index", [f"DELETE FROM episode_vector WHERE key = {VECTOR}"], True, True),
    "every vector is gone": ("vectors", ["DELETE FROM episode_vector"], True, False),
    "a vector belongs to nothing": ("index", ["INSERT INTO episode_vector SELECT 4294967999, vector FROM episode_vector LIMIT 1"], True, True),
    "a vector has a wrong size": ("index", [f"UPDATE episode_vector SET vector = x'00000000' WHERE key = {VECTOR}"], True, True),
    "a job belongs to nothing": ("index", ["INSERT INTO job (kind, target) VALUES ('embed', 4294967999)"], True, True),
    "an alias is gone": ("index", ["DELETE FROM speaker_alias"], True, True),
    "an alias is wrong": ("index", ["UPDATE speaker_alias SET alias = 'mallory' || alias"], True, True),
    "a tag belongs to nothing": ("index", ["INSERT INTO episode_tag VALUES (4294967999, 'x', 'x')"], True, False),
    "a reference leads nowhere": ("foreign_keys", ["INSERT INTO erased VALUES (1, x'00', 'nothing')"], True, False),
    "an audit entry was changed": ("audit", ["UPDATE audit SET detail = json_set(detail, '$.summary', 'nothing happened') WHERE key = (SELECT min(key) FROM audit WHERE space = 1)"], False, False),
    "an audit entry was taken out": ("audit", ["DELETE FROM audit WHERE key = (SELECT min(key) FROM audit WHERE space = 1)"], False, False),
    "an episode waits for its vector": ("jobs", ["INSERT INTO job (kind, target, attempts, last_error) SELECT 'embed', max(key), 3, 'no answer' FROM episode"], True, False),
    "a fence stands": ("fences", ["INSERT INTO fence (reason, operation, since_us) VALUES ('x', 'manual', 0)"], True, False),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGE)
def test_a_planted_damage_is_seen_and_what_is_derived_is_mended(path: Path, name: str) -> None:
    check, statements, keep, mends = DAMAGE[name]
    with ltm.open(path, clock=Clock(), ids=counting_ids(), embedder=ltm.HashEmbedder()) as memory:
        filled(memory)
        memory.embed_pending()
        assert memory.doctor().status == "OK", words(memory.doctor())
        plainly(path, *statements, keep_triggers=keep)
        before, found = base_rows(memory), dump(memory)
        health = memory.doctor()
        assert worst(health, check) in ("WARN", "ERROR"), words(health)
        assert dump(memory) == found
        healed = memory.doctor(repair=True)
        assert base_rows(memory) == before
        if mends:
            assert "ERROR" not in {each.status for each in healed.checks}, words(healed)
            memory.embed_pending()
            assert memory.doctor().status == "OK", words(memory.doctor())
            assert memory.check() == []
            assert memory.space(GROUP).recall("flight to Tokyo").hits


@pytest.mark.parametrize("wrong", ["nan", "zero", "long"])
def test_a_vector_that_cannot_be_compared_is_seen_and_mended(path: Path, wrong: str) -> None:
    with ltm.open(path, clock=Clock(), ids=counting_ids(), embedder=ltm.HashEmbedder()) as memory:
        filled(memory)
        memory.embed_pending()
        db = apsw.Connection(str(path))
        # not the newest, whose own vector is the one that is looked at
        vector = struct.pack("<256f", *({"nan": [math.nan], "zero": [0.0], "long": [9.0]}[wrong] * 256))
        db.execute("UPDATE episode_vector SET vector = ? WHERE key = (SELECT min(key) FROM episode_vector)", (vector,))
        db.close()
        health = memory.doctor()
        assert health.status != "OK", words(health)
        memory.doctor(repair=True)
        memory.embed_pending()
        assert memory.doctor().status == "OK"


def test_a_page_that_was_overwritten_is_seen_and_not_fatal(path: Path) -> None:
    with ltm.open(path, clock=Clock(), ids=counting_ids()) as memory:
        space = filled(memory)
        with memory.batch():
            for n in range(400):
                space.remember(f"filler number {n} " + "x" * 200)
        with memory._file.read() as db:
            root, size = db.execute(
                "SELECT rootpage, (SELECT * FROM pragma_page_size) FROM sqlite_schema WHERE name = 'episode_newest'"
            ).fetchone()
    data = bytearray(path.read_bytes())
    start = (root - 1) * size
    data[start + 200 : start + size] = hashlib.sha256(b"noise").digest() * ((size - 200) // 32) + b"\0" * ((size - 200) % 32)
    path.write_bytes(data)
    with ltm.open(path, readonly=True, clock=Clock()) as memory:
        health = memory.doctor()
        assert worst(health, "integrity") == "ERROR", words(health)
        assert {check.id for check in health.checks} >= {"integrity", "audit", "fences"}
    with ltm.open(path, clock=Clock()) as memory, contextlib.suppress(ltm.Corrupt):
        assert memory.doctor(repair=True).status == "ERROR"


def test_an_edit_by_another_program_waits_until_it_is_taken_in(path: Path) -> None:
    with ltm.open(path, clock=Clock(), ids=counting_ids()) as memory:
        filled(memory)
        plainly(path, f"UPDATE episode SET content = 'said otherwise' WHERE key = {NEWEST}")
        assert worst(memory.doctor(), "stale") == "WARN"
        assert memory.doctor(repair=True).status == "OK"
        assert memory.check() == []


def test_a_model_the_file_does_not_know_is_said(path: Path) -> None:
    with ltm.open(path, clock=Clock(), embedder=ltm.HashEmbedder()) as memory:
        filled(memory)
        memory.embed_pending()
    with ltm.open(path, clock=Clock(), embedder=ltm.HashEmbedder(dim=48)) as memory:
        assert worst(memory.doctor(), "embedder") == "WARN"


def test_an_older_index_is_said_and_mended(path: Path) -> None:
    with ltm.open(path, clock=Clock()) as memory:
        filled(memory)
        plainly(path, "UPDATE setting SET value = 'an older cutter' WHERE name = 'text_fingerprint'")
        assert worst(memory.doctor(), "stale") == "WARN"
        assert memory.doctor(repair=True).status == "OK"


def test_a_missing_derived_table_comes_back_without_touching_base_rows(path: Path) -> None:
    with ltm.open(path, clock=Clock(), ids=counting_ids()) as memory:
        filled(memory)
        before = base_rows(memory)
    plainly(path, "DROP TABLE episode_fts", "DROP TABLE job")
    with ltm.open(path, clock=Clock()) as memory:
        assert memory.doctor(repair=True).status == "OK", words(memory.doctor())
        assert base_rows(memory) == before


def test_an_intent_that_never_ended_is_seen(path: Path) -> None:
    """An operation that a living process left half done: nothing else would tell of it."""
    with ltm.open(path, clock=Clock()) as memory:
        space = filled(memory)
        records = [{"content": f"number {n}"} for n in range(600)]
        with pytest.raises(ZeroDivisionError):
            space.transfer.load(json.dumps(records).encode(), progress=lambda done, total: 1 / 0)  # type: ignore[arg-type, return-value]
        assert memory.doctor().status != "OK", words(memory.doctor())


def test_a_read_only_file_is_looked_at_whole_and_not_repaired(path: Path, opened: Open) -> None:
    filled(opened(path))
    with ltm.open(path, readonly=True, clock=Clock()) as reader:
        health = reader.doctor()
        assert health.status == "OK", words(health)
        with pytest.raises(ltm.ReadOnly):
            reader.doctor(repair=True)


def test_the_doctor_says_nothing_of_what_is_remembered(path: Path) -> None:
    """Its words go to logs and screens of operators: no text, no name."""
    with ltm.open(path, clock=Clock(), ids=counting_ids()) as memory:
        filled(memory)
        plainly(path, "DELETE FROM episode_fts", "UPDATE episode SET n_terms = 99")
        said = words(memory.doctor()) + words(memory.health())
        assert [word for word in ("secret", "Tokyo", "花生", "Alice", "flight", "tuesday", "过敏") if word in said] == []
