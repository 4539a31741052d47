"""The command line as a person uses it: what is printed is snapshotted, errors are one line, JSON is JSON."""

from __future__ import annotations

import http.server
import inspect
import json
import re
import subprocess
import sys
import threading
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
            raise AssertionError(result.output) if isinstance(result.exception, SystemExit) else result.exception
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
        assert "--json" in result.output or path == ("serve",), path


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


GONE = {"LTM_SPEAKER": None}
LEGACY = Path(__file__).parent / "data" / "legacy_l2.json"


class _Completions(http.server.BaseHTTPRequestHandler):
    """An endpoint as language models have it: summarises what it is given by quoting the first of it."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"][1]["content"]
        memories = json.loads(asked)
        answer = {"summary": f"In short: {memories[0]['memory']}", "cites": [each["id"] for each in memories]}
        body = json.dumps({"choices": [{"message": {"content": json.dumps(answer)}}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def model() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Completions)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http:http://127.0.0.1:{server.server_port}#loopback"
    server.shutdown()
    thread.join()
    server.server_close()


def _governance(step: Callable[..., str], json_of: Callable[..., Any], model: str) -> None:
    """A person's way through every command that governs memory."""

    def last() -> str:
        return str(json_of("audit", "list", "--limit", "1")["entries"][0]["audit_id"])

    step("init")
    step("remember", "Alice's flight to Tokyo is on Tuesday", "--tag", "travel", "--importance", "4")
    (first,) = [each["id"] for each in json_of("list")["episodes"]]
    step("remember", "Alice flies to Tokyo on Friday now", "--supersedes", first)
    second = json_of("list")["episodes"][0]["id"]
    step("restore", first, fails=ltm.Conflict)
    step(
        "edit",
        second,
        "--content",
        "Alice flies to Tokyo on Saturday now",
        "--tag",
        "travel",
        "--event-at",
        "2026-12-12T09:00:00+09:00",
    )
    step("history", second)
    step("diff", "--from", "2026-03-02T09:00:03Z")
    step("show", second, "--as-of", "2026-03-02T09:00:05Z")
    step("recall", "Alice flies to Tokyo", "--as-of", "2026-03-02T09:00:02Z")
    step("undo", last())
    step("archive", second)
    step("restore", second)
    step("remember", "我对花生过敏", env={"LTM_SPEAKER": "u3:小林"})
    third = json_of("list")["episodes"][0]["id"]
    step("remember", "花生和开心果都不能吃", env={"LTM_SPEAKER": "u3:小林"})
    fourth = json_of("list")["episodes"][0]["id"]
    step("supersede", third, fourth)
    step("forget", fourth)
    step("undo", last())
    step("edit-all", third, fourth, "--importance", "5", "--add-tag", "food", "--dry-run")
    step("edit-all", third, fourth, "--importance", "5", "--add-tag", "food")
    step("undo", last())
    step("timeline")
    step("speakers")
    step("profile", "set", "preferences", "tea", "--fact-key", "drink")
    step("profile", "show", "--history")
    step("candidate", "extract", "我叫小林。明天下午三点我们开会。今天天气怎么样？", env={"LTM_SPEAKER": "u3:小林"})
    step("candidate", "extract", "my password is hunter2-not-real")
    step("candidate", "list")
    ids = [each["candidate_id"] for each in json_of("candidate", "list")["candidates"]]
    step("candidate", "reject", ids[0])
    step("candidate", "accept", *ids[1:])
    step("candidate", "list", "--status", "all")
    step("config", "set", "consolidation_enabled", "true")
    step("config", "set", "consolidation_enabled", "perhaps", fails=ltm.InvalidInput)
    step("config", "list")
    step("consolidate", "preview")
    step("consolidate", "draft", "--model", model, second, fourth)
    step("consolidate", "proposals")
    (proposal,) = [each["proposal_id"] for each in json_of("consolidate", "proposals")]
    step("consolidate", "run", proposal)
    step("consolidate", "lineage", second)
    step("consolidate", "run")
    step("consolidate", "draft", "--model", model, second, fourth)
    step("consolidate", "reject", json_of("consolidate", "proposals")[0]["proposal_id"])
    step("inject", "when does Alice fly to Tokyo?", "--budget", "900")
    step("injections")
    step("import", str(LEGACY), fails=ltm.InvalidInput)
    step("import", str(LEGACY), "--skip-bad", "--dry-run")
    step("import", str(LEGACY), "--skip-bad", "--document", "d1")
    step("document", "delete", "d1")
    step("delete", "--tag", "travel", "--dry-run")
    step("delete", "--tag", "travel", "--yes")
    step("export", "space.json")
    step("export", "space.jsonl", "--lines")
    step("export", "--kind", "episodes", "--status", "archived")
    step("audit", "list", "--limit", "5")
    step("audit", "head")
    step("audit", "verify", json_of("audit", "head")["head"])
    step("audit", "verify", "1:" + "0" * 64, fails=SystemExit)
    step("fence", "set", "we are moving house")
    step("fence", "list")
    step("remember", "x", fails=ltm.Fenced)
    step("fence", "clear", "1")
    step("health")
    step("doctor", "--repair")
    step("erase", "--who", "u3", "--prove", "--yes", env=GONE)
    step("audit", "export")
    step("audit", "close", "--before", "2026-03-02T09:00:30Z", "--yes")
    step("audit", "verify")


@pytest.mark.parametrize("form", ["plain", "json"])
def test_every_command_that_governs(run: Run, model: str, snapshot: SnapshotAssertion, form: str) -> None:
    outputs: dict[str, str] = {}

    def clean(text: str) -> str:
        text = (
            re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", text).replace(str(LEGACY), "legacy_l2.json").replace(str(Path.cwd()), ".")
        )
        return re.sub(r"\d[\d,]* (bytes|of them free)", r"N \1", text)

    def step(*arguments: str, **options: Any) -> str:
        output = run(*arguments, *(["--json"] if form == "json" else []), **options)
        outputs[f"{len(outputs):02} {clean(' '.join(arguments))}"] = clean(output)
        return output

    def json_of(*arguments: str) -> Any:
        return json.loads(run(*arguments, "--json"))

    _governance(step, json_of, model)
    assert outputs == snapshot(name=form)
    if form == "json":
        for name, output in outputs.items():
            if output[:1] in "[{":
                json.loads(output)
            else:
                assert name.split(" ", 1)[1].split()[0] in ("restore", "config", "import", "remember"), name


def test_every_command_is_run_by_a_session() -> None:
    source = inspect.getsource(_governance) + inspect.getsource(test_a_session_from_init_to_backup)
    for path in commands():
        words = r",\s*".join(f'"{word}"' for word in path)
        assert re.search(rf"step\(\s*{words}", source) or path[0] in ("demo", "import-chat", "serve"), path


def test_a_dangerous_command_asks_first(run: Run) -> None:
    run("init")
    run("remember", "keep me")
    for command in (("erase", "--everything"), ("delete", "--tag", "x")):
        assert "nothing was done" in run(*command, fails=ltm.InvalidInput)
    assert "1 of 1" in run("list")
    with pytest.raises(ltm.InvalidInput, match="ISO-8601"):
        run("audit", "close")
    assert "u1 is called so; nothing was erased" in run("erase", "--who", "Alice", "--yes", fails=ltm.NotFound)
    assert "erased: 1 episodes" in run("erase", "--everything", "--yes")


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
