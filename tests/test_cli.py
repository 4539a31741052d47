"""The command line as a person uses it: what is printed is snapshotted, errors are one line, JSON is JSON."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from syrupy.assertion import SnapshotAssertion

import ltm
import ltm_console.cli
from ltm_console.cli import cli

from .conftest import Clock, counting_ids


def commands(group: click.Group = cli, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, command in sorted(group.commands.items()):
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name)


Run = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command on a file of this test, with a scope and a speaker; the clock and the ids are injected."""
    clock, ids, real = Clock(), counting_ids(), ltm.open
    monkeypatch.setattr(ltm, "open", lambda path, **options: real(path, **{"clock": clock, "ids": ids, **options}))
    monkeypatch.chdir(tmp_path)
    base = {"LTM_DB": "bot.db", "LTM_BOT": "b1", "LTM_CHAT": "group:7", "LTM_SPEAKER": "u1:Alice"}

    def run_(*arguments: str, env: dict[str, str | None] | None = None, fails: type[BaseException] | None = None) -> str:
        result = CliRunner().invoke(cli, list(arguments), env={**base, **(env or {})}, catch_exceptions=True)
        if fails:
            assert isinstance(result.exception, fails), result.exception
            return str(result.exception) if not isinstance(result.exception, SystemExit) else result.output
        if result.exception:
            raise result.exception
        return result.output

    return run_


def test_help_of_every_command(snapshot: SnapshotAssertion) -> None:
    pages = {}
    for path in [(), *commands(), ("profile",)]:
        result = CliRunner().invoke(cli, [*path, "--help"], prog_name="ltm", env={"COLUMNS": "100"})
        pages[" ".join(("ltm", *path))] = result.output
    assert pages == snapshot(name="help")


def test_every_command_answers_json() -> None:
    for path in commands():
        result = CliRunner().invoke(cli, [*path, "--help"])
        assert "--json" in result.output, path


def test_demo_prints_the_same_every_day(run: Run, snapshot: SnapshotAssertion) -> None:
    assert run("demo", env={"LTM_DB": None}) == snapshot(name="demo")


def test_the_demo_answers_all_five_questions(run: Run) -> None:
    answers = json.loads(run("demo", "--json", env={"LTM_DB": None}))["answers"]
    assert len(answers) == 5
    for answer, words in zip(answers, ("Friday, December 11", "花生", "柯基", "Lisbon", "projector"), strict=True):
        assert words in answer["hits"][0]["content"], answer["question"]


def test_the_demo_keeps_a_file_and_refuses_to_overwrite(run: Run) -> None:
    run("demo", env={"LTM_DB": "demo.db"})
    scope = {"LTM_DB": "demo.db", "LTM_BOT": "demo", "LTM_CHAT": "group:weekend"}
    assert "Lisbon" in run("recall", "Ben moved to which city?", env=scope)
    assert "exists" in run("demo", env={"LTM_DB": "demo.db"}, fails=ltm.Conflict)


def test_a_session_from_init_to_backup(run: Run, snapshot: SnapshotAssertion) -> None:
    outputs = {}

    def step(*arguments: str, **options: Any) -> str:
        name = f"{len(outputs):02} {' '.join(arguments)}"
        outputs[name] = re.sub(r"\d[\d,]* bytes|bytes: +[\d,]+", "N bytes", run(*arguments, **options)).replace(
            str(Path.cwd()), "."
        )
        return outputs[name]

    step("init")
    step("init")
    first = step("remember", "Alice's flight to Tokyo is on Tuesday", "--tag", "travel", "--importance", "4").split()[-1]
    step("remember", "Alice's flight to Tokyo is on Tuesday ")
    step("remember", "Alice flies to Tokyo on Friday now", "--supersedes", first, "--event-at", "2026-12-11T09:00:00+09:00")
    step("remember", "我对花生过敏", "--tag", "饮食", env={"LTM_SPEAKER": "u3:小林"})
    step("recall", "when does Alice fly to Tokyo?", "--explain")
    step("recall", "花生")
    step("recall", "花生", "--json")
    step("why-not", first, "when does Alice fly?")
    step("why-not", first, "when does Alice fly?", "--status", "superseded")
    step("show", first)
    step("list")
    step("list", "--status", "active", "--status", "superseded", "--limit", "1")
    step("profile", "set", "preferences", "tea", "--fact-key", "drink", "--previous-value", "coffee")
    step("profile", "add", "notes", "release on Friday")
    step("profile", "remove", "preferences", "--fact-key", "drink")
    step("profile", "show", "--history")
    step("spaces")
    step("stats")
    step("check")
    step("embed", env={"LTM_EMBEDDER": "hash"})
    step("reindex")
    step("backup", "copy.db")
    assert outputs == snapshot(name="session")


@pytest.mark.parametrize(
    ("arguments", "env", "error", "words"),
    [
        (["recall", "x"], {"LTM_DB": None}, SystemExit, "--db"),
        (["recall", "x"], {"LTM_DB": "none.db"}, ltm.NotFound, "init"),
        (["recall", "x"], {"LTM_BOT": None}, SystemExit, "--bot"),
        (["recall", "x"], {"LTM_CHAT": None}, SystemExit, "--chat"),
        (["recall", "x"], {"LTM_CHAT": "room:7"}, ltm.InvalidInput, "person"),
        (["recall", "x"], {"LTM_CHAT": "group:"}, ltm.InvalidInput, "launcher_id"),
        (["recall", "x"], {"LTM_ISOLATION": "all"}, SystemExit, "isolation"),
        (["recall", "x"], {"LTM_EMBEDDER": "bert"}, ltm.EmbedderError, "bert"),
        (["show", "0" * 12], {}, ltm.NotFound, "000000000000"),
        (["remember", ""], {}, ltm.InvalidInput, "empty"),
        (["remember", "x", "--event-at", "tomorrow"], {}, ltm.InvalidInput, "tomorrow"),
        (["embed"], {}, ltm.EmbedderError, "no embedder"),
        (["recall", "x", "--after", "yesterday"], {}, ltm.InvalidInput, "yesterday"),
        (["profile", "set", "name", "x"], {"LTM_SPEAKER": None}, ltm.InvalidInput, "speaker"),
        (["backup", "no/such/folder.db"], {}, ltm.StorageError, "does not exist"),
    ],
)
def test_errors_are_named(run: Run, arguments: list[str], env: dict[str, Any], error: type[BaseException], words: str) -> None:
    run("init")
    assert words in run(*arguments, env=env, fails=error)


def test_an_empty_bot_is_a_bot_and_a_missing_one_is_not(run: Run) -> None:
    run("init")
    run("remember", "said to the nameless", env={"LTM_BOT": None, "LTM_CHAT": None}, fails=SystemExit)
    run("--bot", "", "remember", "said to the nameless", env={"LTM_BOT": None})
    assert "0 of 0" in run("list")
    assert "1 of 1" in run("--bot", "", "list", env={"LTM_BOT": None})


def test_a_real_process_prints_one_line_and_exits_1(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "ltm_console",
        "--db",
        str(tmp_path / "a.db"),
        "--bot",
        "b",
        "--chat",
        "group:1",
        "recall",
        "x",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("ltm: ")
    assert subprocess.run([*command[:3], "nonsense"], capture_output=True).returncode == 2
    assert subprocess.run([*command[:3], "--version"], capture_output=True, text=True).stdout == f"ltm, version {ltm.__version__}\n"


LINES = [
    '{"speaker": "u1", "speaker_name": "Alice", "text": "The picnic is on Sunday", "at": "2026-05-01T10:00:00Z"}',
    "not json",
    "",
    '{"speaker": "u2", "speaker_name": "王小明", "text": "我带相机", "at": "2026-05-01 10:01:00"}',
    '{"speaker": "u2", "text": ""}',
    '{"speaker": "u2"}',
    '{"text": 7}',
    "[1, 2]",
    '{"speaker": "u2", "text": "x", "at": "noon"}',
    '{"speaker": "u1", "speaker_name": "Alice", "text": "The picnic is on Sunday.", "at": null}',
    '{"text": "nobody said this", "unknown": [1]}',
    '{"speaker": "\\ud800", "text": "a half character"}',
]


def test_import_chat_stores_what_it_can_and_reports_each_bad_line(run: Run, snapshot: SnapshotAssertion, tmp_path: Path) -> None:
    (tmp_path / "chat.jsonl").write_bytes(b"\xef\xbb\xbf" + "\n".join(LINES).encode() + b'\n{"text": "\xff"}\n')
    assert run("import-chat", "chat.jsonl") == snapshot(name="import")
    again = json.loads(run("import-chat", "chat.jsonl", "--json"))
    assert (again["stored"], again["duplicate"]) == (0, 4)
    assert "王小明" in run("recall", "谁带相机")
    stamps = {episode["content"]: episode["timestamp"] for episode in json.loads(run("list", "--json"))["episodes"]}
    assert stamps["我带相机"] == "2026-05-01T10:01:00Z"


def test_import_chat_of_a_long_conversation_embeds_it(run: Run, tmp_path: Path) -> None:
    rows = [
        {"speaker": f"u{n % 3}", "speaker_name": "N", "text": f"message number {n}", "at": "2026-05-01T10:00:00Z"}
        for n in range(1200)
    ]
    (tmp_path / "chat.jsonl").write_text("\n".join(map(json.dumps, rows)))
    answer = json.loads(run("import-chat", "chat.jsonl", "--json", env={"LTM_EMBEDDER": "hash"}))
    assert (answer["stored"], answer["skipped"], answer["embedded"]["remaining"]) == (1200, 0, 0)
    found = json.loads(run("recall", "message number 777", "--json", env={"LTM_EMBEDDER": "hash"}))
    assert (found["hits"][0]["content"], found["mode"]) == ("message number 777", "hybrid")


def test_what_is_printed_cannot_move_the_terminal(run: Run) -> None:
    run("init")
    run("remember", "red\x1b[2J\r\n\u202egreen\x07" + "x" * 300, "--tag", "a\x1bb", env={"LTM_SPEAKER": "u1:Al\x1bice"})
    for output in (run("list"), run("recall", "red green")):
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", output)
        assert "characters)" in output


def test_the_progress_bar_counts_up() -> None:
    seen: list[int] = []

    class Bar:
        length, pos = 1, 0

        def update(self, n: int) -> None:
            self.pos += n
            seen.append(self.pos)

    step = ltm_console.cli.advance(Bar())
    for done in (3, 7, 10):
        step(done, 10)
    assert seen == [3, 7, 10]


def test_reading_a_conversation_again_does_not_bring_back_what_was_corrected(run: Run, tmp_path: Path) -> None:
    (tmp_path / "chat.jsonl").write_text('{"speaker": "u1", "speaker_name": "Alice", "text": "the flight is on Tuesday"}')
    run("import-chat", "chat.jsonl")
    (old,) = json.loads(run("list", "--json"))["episodes"]
    run("remember", "the flight is on Friday", "--supersedes", old["id"])
    assert "0 stored, 1 already there" in run("import-chat", "chat.jsonl")
    assert [episode["content"] for episode in json.loads(run("list", "--json"))["episodes"]] == ["the flight is on Friday"]


def test_import_chat_makes_no_file_before_it_knows_where_to(run: Run, tmp_path: Path) -> None:
    (tmp_path / "chat.jsonl").write_text('{"text": "x"}')
    run("import-chat", "chat.jsonl", env={"LTM_CHAT": None}, fails=SystemExit)
    assert not (tmp_path / "bot.db").exists()


def test_a_full_disk_or_a_closed_pipe_is_no_traceback(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ltm_console", "demo"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    odd = subprocess.run([*command[:3], "--db", b"\xff.db", "init"], cwd=tmp_path, capture_output=True, text=True)
    assert odd.returncode == 1
    assert odd.stderr.startswith("ltm: the database must be a path in UTF-8")
