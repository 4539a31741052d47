"""The file: opening in every state, several processes at once, other programs, backups, the schema as written."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
from syrupy.assertion import SnapshotAssertion

import ltm

from .conftest import ALICE, GROUP, texts

ROOT = Path(__file__).resolve().parent.parent


def structure(sql: str) -> dict[str, str]:
    """Every object of a schema, without comments and spacing."""
    db = apsw.Connection(":memory:")
    db.execute(sql)
    return stored(db)


def stored(db: apsw.Connection) -> dict[str, str]:
    rows = db.execute("SELECT type || ' ' || name, coalesce(sql, '') FROM sqlite_schema ORDER BY 1")
    plain = ((name, re.sub(r"\s+", " ", re.sub(r"--[^\n]*", "", text)).strip()) for name, text in rows)
    return {name: re.sub(r" (?=[,)])", "", text) for name, text in plain}  # ALTER TABLE adds a space of its own


def test_schema_sql_is_what_the_migrations_build(snapshot: SnapshotAssertion) -> None:
    migrated = structure(";".join(ltm._migrations()))
    assert structure((ROOT / "schema.sql").read_text()) == migrated
    assert migrated == snapshot(name="schema")


def test_every_table_is_strict_and_every_check_is_named() -> None:
    for name, sql in structure((ROOT / "schema.sql").read_text()).items():
        if name.startswith("table ") and "episode_fts" not in name and not name.endswith("sqlite_sequence"):
            assert "STRICT" in sql, name
        assert not re.search(r"(?<!CONSTRAINT )(?<!\w )\bCHECK\b", re.sub(r"CONSTRAINT \w+ CHECK", "", sql)), name


def test_a_new_file_is_wal_with_our_id(tmp_path: Path, opened: Callable[..., ltm.Memory]) -> None:
    memory = opened(tmp_path / "a.db")
    with memory._file.read() as db:
        assert db.execute("PRAGMA journal_mode").get == "wal"
        assert db.execute("PRAGMA application_id").get == ltm.APPLICATION_ID
        assert db.execute("PRAGMA page_size").get == ltm.PAGE_SIZE
        assert db.execute("PRAGMA synchronous").get == 2
        assert db.execute("PRAGMA secure_delete").get == 1
        assert db.execute("PRAGMA foreign_keys").get == 1


def test_an_existing_file_is_opened_with_what_it_holds(tmp_path: Path, opened: Callable[..., ltm.Memory]) -> None:
    path = tmp_path / "记忆 with space.db"
    with opened(path) as memory:
        id = memory.space(GROUP, speaker=ALICE).remember("kept").id
    assert not Path(f"{path}-wal").exists()
    assert opened(path).space(GROUP).get(id).content == "kept"


def test_a_newer_file_is_refused_and_left_alone(tmp_path: Path, opened: Callable[..., ltm.Memory]) -> None:
    path = tmp_path / "a.db"
    opened(path).close()
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 99")
    db.close()
    before = path.read_bytes()
    with pytest.raises(ltm.SchemaTooNew, match="99"):
        ltm.open(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("kind", ["other database", "text", "other application", "folder"])
def test_what_is_not_ours_is_refused_and_left_alone(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x.db"
    if kind == "folder":
        path.mkdir()
    elif kind == "text":
        path.write_text("not a database, but long enough to have a header of sixteen bytes and more\n" * 20)
    else:
        db = sqlite3.connect(path)
        db.executescript("CREATE TABLE t (a)" if kind == "other database" else "PRAGMA application_id = 77; CREATE TABLE t (a)")
        db.close()
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(ltm.NotAMemory, match=r"x\.db"):
        ltm.open(path)
    assert (path.read_bytes() if path.is_file() else b"") == before


def test_an_older_file_is_copied_and_migrated(
    tmp_path: Path, opened: Callable[..., ltm.Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.db"
    with opened(path) as memory:
        memory.space(GROUP, speaker=ALICE).remember("from before")
    steps = [*ltm._migrations(), "CREATE TABLE later (a INTEGER) STRICT; INSERT INTO later VALUES (1)"]
    monkeypatch.setattr(ltm, "_migrations", lambda: steps)
    memory = opened(path)
    assert texts(memory.space(GROUP).recall("from before")) == ["from before"]
    copy = Path(f"{path}.v{len(steps) - 1}.bak")
    assert any(copy.name in warning for warning in memory.warnings)
    db = sqlite3.connect(copy)
    assert db.execute("PRAGMA user_version").fetchone() == (len(steps) - 1,)
    assert db.execute("SELECT content FROM episode").fetchall() == [("from before",)]
    db.close()


def test_a_migration_that_fails_changes_nothing(
    tmp_path: Path, opened: Callable[..., ltm.Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.db"
    opened(path).close()
    steps = [*ltm._migrations(), "CREATE TABLE later (a INTEGER) STRICT; INSERT INTO missing VALUES (1)"]
    monkeypatch.setattr(ltm, "_migrations", lambda: steps)
    with pytest.raises(ltm.Corrupt, match="missing"):
        ltm.open(path)
    monkeypatch.undo()
    with opened(path)._file.read() as db:
        assert db.execute("PRAGMA user_version").get == len(ltm._migrations())
        assert not db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'later'").get


def test_read_only_reads_and_refuses_to_write(tmp_path: Path, opened: Callable[..., ltm.Memory]) -> None:
    path = tmp_path / "a.db"
    with opened(path) as memory:
        memory.space(GROUP, speaker=ALICE).remember("kept")
    reader = opened(path, readonly=True)
    assert texts(reader.space(GROUP).recall("kept")) == ["kept"]
    with pytest.raises(ltm.ReadOnly):
        reader.space(GROUP).remember("no")
    with pytest.raises(ltm.StorageError):
        ltm.open(tmp_path / "none.db", readonly=True)


UNPRIVILEGED = (  # what lies in root's folders is loaded before the rights are dropped
    "import os, sys; sys.path[:0] = {path!r}; import apsw, apsw.sqlite_extra, sqlite_vec, encodings.idna, ltm\n"
    "ltm.warm_up(); ltm.ltm_text.fingerprint(); ltm.open(':memory:').close(); os.setuid(65534)\n"
)


@pytest.mark.skipif(os.name == "nt" or os.getuid() != 0, reason="needs root to drop its rights")
@pytest.mark.parametrize("protect", ["file", "folder"])
def test_a_write_protected_file_is_read_and_says_so(tmp_path: Path, opened: Callable[..., ltm.Memory], protect: str) -> None:
    folder = Path("/var/tmp") / f"ltm-test-{os.getpid()}-{protect}"
    folder.mkdir(mode=0o755)
    try:
        path = folder / "a.db"
        with opened(path) as memory:
            memory.space(GROUP, speaker=ALICE).remember("kept")
        path.chmod(0o444)
        script = UNPRIVILEGED.format(path=sys.path) + (
            f"m = ltm.open({str(path)!r}); s = m.space(ltm.Scope('b1', 'group', '7'))\n"
            "print([h.episode.content for h in s.recall('kept')], m.readonly, m.warnings)\n"
            "try: s.remember('x')\nexcept ltm.ReadOnly as e: print('refused')"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        assert "['kept'] True" in done.stdout, done.stderr
        assert "write-protected" in done.stdout
        assert "refused" in done.stdout
    finally:
        shutil.rmtree(folder)


def test_where_wal_is_impossible_it_falls_back_and_says_so(tmp_path: Path, opened: Callable[..., ltm.Memory]) -> None:
    memory = opened(tmp_path / "a.db", vfs="unix-dotfile")  # a VFS without shared memory
    assert any("write-ahead logging is not possible" in warning for warning in memory.warnings)
    space = memory.space(GROUP, speaker=ALICE)
    space.remember("kept")
    assert texts(space.recall("kept")) == ["kept"]


@pytest.mark.parametrize("path", ["", "/nonexistent/folder/a.db"])
def test_paths_that_cannot_be_are_clear_errors(path: str) -> None:
    with pytest.raises(ltm.LtmError, match=r"empty|does not exist"):
        ltm.open(path)


def test_a_closed_memory_says_so(tmp_path: Path) -> None:
    memory = ltm.open(tmp_path / "a.db")
    memory.close()
    memory.close()
    with pytest.raises(ltm.InvalidInput, match="closed"):
        memory.space(GROUP).recall("x")


def test_several_processes_may_make_a_file_at_the_same_moment(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    script = (
        f"import sys, time; sys.path[:0] = {sys.path!r}\nimport apsw, ltm\n"
        "while time.time() < float(sys.argv[2]): pass\n"
        f"with ltm.open({str(path)!r}) as m: m.space(ltm.Scope('b', 'group', '1'), speaker=ltm.Speaker('u')).remember('from ' + sys.argv[1])"
    )
    import time

    start = str(time.time() + 1.5)
    processes = [
        subprocess.Popen([sys.executable, "-c", script, str(n), start], stderr=subprocess.PIPE, text=True) for n in range(6)
    ]
    for process in processes:
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
    with ltm.open(path) as memory:
        assert memory.space(ltm.Scope("b", "group", "1")).list().total == 6
        assert memory.check() == []


def shell(path: Path, sql: str) -> str:
    """Run the plain SQLite of the standard library: no extension, no function of ours, foreign keys off."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        rows = db.execute(sql).fetchall()
        db.commit()
    return repr(rows)


def test_a_plain_sqlite_reads_edits_and_deletes_and_the_next_open_repairs(
    tmp_path: Path, opened: Callable[..., ltm.Memory]
) -> None:
    path = tmp_path / "a.db"
    with opened(path, embedder=ltm.HashEmbedder(32)) as memory:
        space = memory.space(GROUP, speaker=ALICE)
        ids = [space.remember(text, tags=["t"]).id for text in ("red apple", "green pear", "blue plum")]
        ids.append(space.remember("red apple pie", supersedes=[ids[0]]).id)
    assert "'green pear'" in shell(path, "SELECT id, speaker, content FROM memory WHERE status = 'active'")
    shell(path, f"DELETE FROM episode WHERE id = '{ids[1]}'")
    shell(path, f"UPDATE episode SET content = 'violet fig' WHERE id = '{ids[2]}'")
    shell(path, f"DELETE FROM episode WHERE id = '{ids[3]}'")  # a successor: the old one keeps no dangling reference
    memory = opened(path, embedder=ltm.HashEmbedder(32))
    assert any("another program" in warning for warning in memory.warnings)
    assert memory.check() == []
    space = memory.space(GROUP, speaker=ALICE)
    assert texts(space.recall("pear")) == []
    assert texts(space.recall("plum")) == []
    assert texts(space.recall("fig")) == ["violet fig"]
    assert space.get(ids[0]).superseded_by == ""
    assert space.pending() == 1
    with memory._file.read() as db:
        assert db.execute("SELECT operation, via FROM audit WHERE space = 1 ORDER BY key DESC LIMIT 1").fetchone() == (
            "external_edit",
            "external",
        )
        assert db.execute("SELECT count(*) FROM revision WHERE audit IS NULL").get == 0


def test_edits_by_another_program_are_taken_in_while_the_file_is_open(tmp_path: Path, opened: Callable[..., ltm.Memory]) -> None:
    path = tmp_path / "a.db"
    memory = opened(path)
    space = memory.space(GROUP, speaker=ALICE)
    id = space.remember("red apple").id
    shell(path, f"DELETE FROM episode WHERE id = '{id}'")
    assert space.find(id) is None
    assert texts(space.recall("apple")) == []
    space.remember("green pear")
    assert memory.check() == []


@pytest.mark.skipif(not shutil.which("sqlite3"), reason="no sqlite3 shell on this machine")
def test_the_sqlite3_shell_itself_can_delete(tmp_path: Path, opened: Callable[..., ltm.Memory]) -> None:
    path = tmp_path / "a.db"
    with opened(path) as memory:
        id = memory.space(GROUP, speaker=ALICE).remember("red apple").id
    done = subprocess.run(
        ["sqlite3", str(path), f"SELECT content FROM memory; DELETE FROM episode WHERE id = '{id}'; PRAGMA integrity_check"],
        capture_output=True,
        text=True,
    )
    assert done.stdout.splitlines()[0] == "red apple", done.stderr
    memory = opened(path)
    assert memory.space(GROUP).list().total == 0
    assert memory.check() == []


def test_the_audit_cannot_be_rewritten(tmp_path: Path, opened: Callable[..., ltm.Memory]) -> None:
    memory = opened(tmp_path / "a.db")
    memory.space(GROUP, speaker=ALICE).remember("x")
    for sql in ("UPDATE audit SET operation = 'y'", "DELETE FROM audit", "UPDATE audit SET detail = '{}'"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            shell(tmp_path / "a.db", sql)


@pytest.mark.parametrize(
    "sql",
    ["UPDATE audit SET operation = 'forged' WHERE key = (SELECT min(key) FROM audit WHERE space = 1)",
     "DELETE FROM audit WHERE key = (SELECT min(key) FROM audit WHERE space = 1)",
     "UPDATE audit SET detail = '{\"summary\":\"forged\"}' WHERE key = (SELECT max(key) FROM audit WHERE space = 1)"],
)  # fmt: skip
def test_check_finds_a_forged_audit(tmp_path: Path, sql: str) -> None:
    path = tmp_path / "a.db"
    with ltm.open(path) as memory:
        for n in range(3):
            memory.space(GROUP, speaker=ALICE).remember(f"x{n}")
    shell(path, "DROP TRIGGER audit_no_update")
    shell(path, "DROP TRIGGER audit_no_delete")
    shell(path, sql)
    with ltm.open(path) as memory:
        assert any("audit entry" in problem for problem in memory.check())


def test_backup_is_whole_checked_and_never_overwrites_unasked(tmp_path: Path, opened: Callable[..., ltm.Memory]) -> None:
    memory = opened(tmp_path / "a.db")
    space = memory.space(GROUP, speaker=ALICE)
    space.remember("not yet checkpointed")
    target = memory.backup(tmp_path / "copy.db")
    with pytest.raises(ltm.Conflict, match=r"copy\.db"):
        memory.backup(target)
    space.remember("later")
    memory.backup(target, overwrite=True)
    with pytest.raises(ltm.InvalidInput):
        memory.backup(tmp_path / "a.db", overwrite=True)
    with pytest.raises(ltm.StorageError):
        memory.backup(tmp_path / "no" / "copy.db")
    copy = opened(target)
    assert texts(copy.space(GROUP).recall("checkpointed later")) == ["later", "not yet checkpointed"]
    assert sorted(path.name for path in tmp_path.iterdir() if "tmp" in path.name) == []


def test_a_damaged_file_is_called_damaged(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with ltm.open(path) as memory, memory.batch():
        for n in range(500):
            memory.space(GROUP, speaker=ALICE).remember(f"row {n} " + "x" * 200)
    data = bytearray(path.read_bytes())
    for page in range(3, len(data) // 8192):
        data[page * 8192 : page * 8192 + 100] = b"\xff" * 100
    path.write_bytes(data)
    with pytest.raises(ltm.LtmError), ltm.open(path) as memory:
        memory.space(GROUP).recall("row")
        memory.space(GROUP).remember("y")


def test_import_is_light() -> None:
    """Nothing native or slow at `import ltm`."""
    script = f"import sys; sys.path[:0] = {sys.path!r}; import ltm; print(sorted({{'apsw', 'pydantic', 'jieba', 'numpy', 'sqlite_vec', 'opencc'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_both_distance_functions_agree() -> None:
    import struct

    import sqlite_vec
    from apsw import sqlite_extra

    db = apsw.Connection(":memory:")
    if not sqlite_extra.has("vec1"):
        pytest.skip("this apsw has no vec1")
    sqlite_extra.load(db, "vec1")
    db.enable_load_extension(True)
    db.load_extension(sqlite_vec.loadable_path())
    import random

    rng = random.Random(1)
    for _ in range(200):
        one, two = (struct.pack("384f", *(rng.gauss(0, 1) for _ in range(384))) for _ in range(2))
        a, b = db.execute("SELECT vec1_cos_distance(?1, ?2), vec_distance_cosine(?1, ?2)", (one, two)).fetchone()
        assert a == pytest.approx(b, abs=1e-6)


@pytest.mark.parametrize("missing", ["vec1", "both"])
def test_without_vec1_or_without_any_vector_extension(
    missing: str, monkeypatch: pytest.MonkeyPatch, opened: Callable[..., ltm.Memory]
) -> None:
    from apsw import sqlite_extra

    monkeypatch.setattr(sqlite_extra, "load", lambda *_: (_ for _ in ()).throw(sqlite_extra.NotAvailable("gone")))
    if missing == "both":
        monkeypatch.setitem(sys.modules, "sqlite_vec", None)
    memory = opened(embedder=ltm.HashEmbedder(32))
    space = memory.space(GROUP, speaker=ALICE)
    space.remember("red apple")
    found = space.recall("apple")
    assert texts(found) == ["red apple"]
    assert found.mode == ("lexical" if missing == "both" else "hybrid")
    assert ("extension" in found.reason) == (missing == "both")


def test_a_backup_never_goes_under_a_log_that_would_be_played_into_it(tmp_path: Path, opened: Callable[..., ltm.Memory]) -> None:
    killed = (
        f"import os, sys; sys.path[:0] = {sys.path!r}\nimport ltm\nm = ltm.open({str(tmp_path / 'copy.db')!r})\n"
        "m.space(ltm.Scope('b1', 'group', '7')).remember('old content')\nos._exit(9)"
    )
    subprocess.run([sys.executable, "-c", killed])
    assert (tmp_path / "copy.db-wal").stat().st_size
    memory = opened(tmp_path / "a.db")
    memory.space(GROUP).remember("new content")
    with pytest.raises(ltm.Conflict, match=r"copy\.db-wal"):
        memory.backup(tmp_path / "copy.db", overwrite=True)
    opened(tmp_path / "copy.db").close()  # closed properly, it may be replaced
    memory.backup(tmp_path / "copy.db", overwrite=True)
    assert texts(opened(tmp_path / "copy.db").space(GROUP).recall("content")) == ["new content"]


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM space",
        "DELETE FROM speaker",
        "INSERT INTO episode (key, id, space, content, created_us, stored_us) VALUES (99 << 32 | 1, 'aaaaaaaaaaaa', 99, 'x', 0, 0)",
        "UPDATE episode SET created_us = 9000000000000000000",
    ],
)
def test_edits_that_would_orphan_memories_or_hand_them_on_are_refused(
    tmp_path: Path, opened: Callable[..., ltm.Memory], sql: str
) -> None:
    memory = opened(tmp_path / "a.db")
    memory.space(GROUP, speaker=ALICE).remember("mine")
    memory.space(GROUP, speaker=ALICE).profiles.update("name", "set", "Alice")
    with pytest.raises(sqlite3.IntegrityError):
        shell(tmp_path / "a.db", sql)


def test_a_speaker_that_is_deleted_never_lends_its_number(tmp_path: Path, opened: Callable[..., ltm.Memory]) -> None:
    memory = opened(tmp_path / "a.db")
    id = memory.space(GROUP, speaker=ALICE).remember("mine").id
    shell(tmp_path / "a.db", f"DELETE FROM episode WHERE id = '{id}'")
    shell(tmp_path / "a.db", "DELETE FROM speaker")
    memory.space(GROUP, speaker=ltm.Speaker("u9", "Zoe")).remember("hers")
    with memory._file.read() as db:
        assert db.execute("SELECT id FROM speaker").get == 2


@pytest.mark.parametrize("sql", ["UPDATE speaker SET name = 'Zebulon'", "UPDATE speaker SET name = '" + "n" * 300 + " Zebulon'"])
def test_a_name_edited_by_hand_is_found_and_shown(tmp_path: Path, opened: Callable[..., ltm.Memory], sql: str) -> None:
    path = tmp_path / "a.db"
    memory = opened(path)
    space = memory.space(GROUP, speaker=ALICE)
    space.remember("the concert was great")
    shell(path, sql)
    memory.close()
    memory = opened(path)
    hit = memory.space(GROUP).recall("what did Zebulon say of the concert?").hits[0]
    assert hit.signals["named"] == 1
    assert hit.episode.speaker
    assert "Zebulon" in hit.episode.speaker.name


def test_two_texts_swapped_by_hand_are_still_known(tmp_path: Path, opened: Callable[..., ltm.Memory]) -> None:
    path = tmp_path / "a.db"
    with opened(path) as memory:
        for text in ("one", "two"):
            memory.space(GROUP, speaker=ALICE).remember(text)
    shell(path, "UPDATE episode SET content = CASE content WHEN 'one' THEN 'two' ELSE 'one' END")
    memory = opened(path)
    assert {memory.space(GROUP, speaker=ALICE).remember(text).outcome for text in ("one", "two")} == {"duplicate"}


def test_reindex_repairs_counters_that_were_overwritten(tmp_path: Path, opened: Callable[..., ltm.Memory]) -> None:
    path = tmp_path / "a.db"
    with opened(path) as memory:
        for text in ("one", "two"):
            memory.space(GROUP, speaker=ALICE).remember(text)
    shell(path, "UPDATE space SET n_episodes = 7, n_active = 0, n_terms = 1")
    memory = opened(path)
    assert memory.check() != []
    memory.reindex()
    assert memory.check() == []
    assert memory.space(GROUP).list().total == 2


@pytest.mark.parametrize("table", [name for name in ltm._DERIVED if name != "episode_fts"])
def test_a_derived_table_may_be_dropped_and_comes_back(tmp_path: Path, opened: Callable[..., ltm.Memory], table: str) -> None:
    path = tmp_path / "a.db"
    with opened(path, embedder=ltm.HashEmbedder(16)) as memory:
        memory.space(GROUP, speaker=ALICE).remember("red apple")
        structure_before = stored(memory._file._writer)  # type: ignore[arg-type]
    shell(path, f"DROP TABLE {table}")
    memory = opened(path, embedder=ltm.HashEmbedder(16))
    assert any("derived" in warning for warning in memory.warnings)
    space = memory.space(GROUP, speaker=ALICE)
    assert texts(space.recall("what did Alice say of the apple")) == ["red apple"]
    space.remember("green pear")
    assert memory.embed_pending().remaining == 0
    assert space.recall("Alice apple").hits[0].signals["named"] == 1
    assert stored(memory._file._writer) == structure_before  # type: ignore[arg-type]


def test_a_read_only_memory_says_when_its_index_is_behind(tmp_path: Path, opened: Callable[..., ltm.Memory]) -> None:
    path = tmp_path / "a.db"
    with opened(path) as memory:
        memory.space(GROUP, speaker=ALICE).remember("red apple")
    shell(path, "UPDATE episode SET content = 'green pear'")
    reader = ltm.open(path, readonly=True)
    assert any("edited" in warning for warning in reader.warnings)
    reader.close()
    assert texts(opened(path).space(GROUP).recall("pear")) == ["green pear"]


def test_text_that_is_not_utf_8_is_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with ltm.open(path) as memory:
        memory.space(GROUP, speaker=ALICE).remember("red apple")
    shell(path, "UPDATE episode SET content = CAST(x'ff61' AS TEXT)")
    with pytest.raises(ltm.Corrupt, match="UTF-8"):
        ltm.open(path)


@pytest.mark.parametrize("path", [5, None, "a\x00b", "\udcff.db", b"x.db"])
def test_a_path_that_names_no_file_is_refused(tmp_path: Path, opened: Callable[..., ltm.Memory], path: object) -> None:
    with pytest.raises(ltm.InvalidInput):
        ltm.open(path)  # type: ignore[arg-type]
    with pytest.raises(ltm.InvalidInput):
        opened().backup(path)  # type: ignore[arg-type]
    with pytest.raises(ltm.InvalidInput, match="folder"):
        opened().backup(tmp_path, overwrite=True)


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE speaker SET id = 9",
        "UPDATE speaker SET space = 9",
        "UPDATE space SET id = 9",
        "UPDATE space SET launcher_id = '8'",
        "REPLACE INTO speaker (id, space, sender_id, name, first_us, last_us) VALUES (1, 1, 'u9', 'Zoe', 0, 0)",
        "REPLACE INTO speaker (space, sender_id, name, first_us, last_us) VALUES (1, 'u1', 'Zoe', 0, 0)",
        "REPLACE INTO space (id, kind, bot, launcher_type, launcher_id, created_us) VALUES (1, 'session', 'b2', 'group', '9', 0)",
        "REPLACE INTO space (kind, bot, launcher_type, launcher_id, created_us) VALUES ('session', 'b1', 'group', '7', 0)",
    ],
)
def test_no_identity_can_be_changed_or_replaced_with_foreign_keys_off(
    tmp_path: Path, opened: Callable[..., ltm.Memory], sql: str
) -> None:
    memory = opened(tmp_path / "a.db")
    memory.space(GROUP, speaker=ALICE).remember("mine")
    with pytest.raises(sqlite3.IntegrityError):
        shell(tmp_path / "a.db", sql)
    assert [each.content for each in memory.space(GROUP).list().episodes] == ["mine"]


def test_the_twin_of_a_text_written_twice_by_hand_is_known_once_the_other_is_gone(
    tmp_path: Path, opened: Callable[..., ltm.Memory]
) -> None:
    memory = opened(tmp_path / "a.db")
    space = memory.space(GROUP)
    first = space.remember("the same words").id
    shell(
        tmp_path / "a.db",
        "INSERT INTO episode (key, id, space, content, created_us, stored_us)"
        " VALUES ((1 << 32) | 50, 'aaaaaaaaaaaa', 1, 'The same words.', 5, 5)",
    )
    space.remember("something else")
    space.forget(first)
    assert space.remember("the same words").id == "aaaaaaaaaaaa"


@pytest.mark.parametrize("sql", ["UPDATE speaker SET sender_id = 'zebulon'", "INSERT INTO speaker_name VALUES (1, 'Zebulon', 0)"])
def test_an_id_or_a_further_name_given_by_hand_is_found(tmp_path: Path, opened: Callable[..., ltm.Memory], sql: str) -> None:
    memory = opened(tmp_path / "a.db")
    memory.space(GROUP, speaker=ALICE).remember("the rent is due")
    shell(tmp_path / "a.db", sql)
    memory.space(GROUP).remember("anything")
    hits = memory.space(GROUP).recall("what did Zebulon say about the rent?").hits
    assert hits[0].why["named"] > 0


@pytest.mark.parametrize("table", ltm._DERIVED)
def test_a_read_only_file_without_a_derived_table_says_so(tmp_path: Path, opened: Callable[..., ltm.Memory], table: str) -> None:
    memory = opened(tmp_path / "a.db")
    memory.space(GROUP).remember("x")
    memory.close()
    db = apsw.Connection(str(tmp_path / "a.db"))
    db.execute(f"DROP TABLE {table}")
    db.close()
    with pytest.raises(ltm.ReadOnly, match=f"{table}.*open it for writing"):
        ltm.open(tmp_path / "a.db", readonly=True)
    assert texts(opened(tmp_path / "a.db").space(GROUP).recall("x")) == ["x"]
    assert texts(opened(tmp_path / "a.db", readonly=True).space(GROUP).recall("x")) == ["x"]


def test_a_write_that_waits_while_the_memory_is_closed_does_not_open_it_again(tmp_path: Path) -> None:
    memory = ltm.open(tmp_path / "a.db")
    errors: list[Exception] = []

    def write() -> None:
        try:
            memory.space(GROUP).remember("too late")
        except Exception as error:
            errors.append(error)

    file = memory._file
    file._writer_lock.acquire()
    thread = threading.Thread(target=write)
    thread.start()
    while not file._queue:
        pass
    file.closed = True  # what close() does first, under the lock
    file._writer_lock.release()
    thread.join()
    assert [type(error) for error in errors] == [ltm.InvalidInput]
    file.closed = False
    memory.close()


def test_a_version_1_file_with_rows_is_upgraded_and_keeps_them(
    tmp_path: Path, opened: Callable[..., ltm.Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows are as a version 1 engine wrote them: history with tags as text, an audit without what came later."""
    path, steps = tmp_path / "a.db", ltm._migrations()
    db = apsw.Connection(str(path))
    db.execute(steps[0])
    db.execute("PRAGMA user_version = 1")
    db.execute(
        """
        INSERT INTO space (id, kind, bot, launcher_type, launcher_id, created_us) VALUES (1, 'session', 'b1', 'group', '7', 1);
        INSERT INTO speaker (id, space, sender_id, name, first_us, last_us) VALUES (1, 1, 'u1', 'Alice', 1, 1);
        INSERT INTO episode (key, id, space, speaker, content, created_us, stored_us)
          VALUES ((1 << 32) | 1, 'aaaaaaaaaaaa', 1, 1, 'the old text', 1000000, 1000000);
        INSERT INTO episode_tag VALUES ((1 << 32) | 1, 'travel', 'Travel');
        INSERT INTO profile_fact (space, speaker, field, slot, value, created_us) VALUES (1, 1, 'name', '', 'Alice', 1000000);
        INSERT INTO fence (reason, operation, since_us, cleared_us) VALUES ('past', 'manual', 1, 2);
        UPDATE episode SET content = 'the new text', version = 2;
        """
    )
    db.close()
    memory = opened(path)
    assert Path(f"{path}.v1.bak").exists()
    space = memory.space(GROUP, speaker=ALICE)
    assert texts(space.recall("new text")) == ["the new text"]
    (entry,) = space.audit.list(operation="external_edit").entries
    space.undo(entry.id)
    assert (space.get("aaaaaaaaaaaa").content, space.get("aaaaaaaaaaaa").tags) == ("the old text", ("Travel",))
    assert space.profiles.get("speaker").name == "Alice"
    assert memory.fences() == []
