"""The console's server as an attacker and as two browsers meet it: raw sockets against a real server on a real file.

`Answer` holds what every answer must have, so each test also tests that: one status line, the security headers, an end, and in an
error a kind and a message without a path, SQL or a traceback.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ltm
from ltm_console import api, web
from ltm_console.actions import ACTIONS, Field, fields_of, parse

from .conftest import ALICE, BOB, GROUP

SPACE = {"bot": "b1", "launcher_type": "group", "launcher_id": "7"}
ELSEWHERE = ltm.Scope("b2", "group", "1")
LEAK = re.compile(
    r'Traceback|File "|line \d+, in|\.py\b|\bSELECT\b|\bINSERT\b|\bUPDATE\b|sqlite|apsw|pydantic|/home/|/tmp/|/root/|/etc/'
)
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "javascript:alert(1)",
    "\u202eevil\u2066",
    "\0",
    "n" * 5_000,
]


class Answer:
    """What came back on a connection until it was closed."""

    def __init__(self, raw: bytes) -> None:
        assert raw.startswith(b"HTTP/1.1 "), raw[:200]
        head, _, body = raw.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        self.status, self.raw, self.body = int(first.split(" ")[1]), raw, body
        self.headers = dict(line.split(": ", 1) for line in lines)
        assert {name: self.headers.get(name) for name in web.ALWAYS} == web.ALWAYS
        self.whole = (
            body.endswith(b"0\r\n\r\n") if "Transfer-Encoding" in self.headers else len(body) == int(self.headers["Content-Length"])
        )
        if self.status >= 400:
            error = self.json()["error"]
            assert error.keys() == {"kind", "message"}, error
            assert error["message"] and not LEAK.search(error["message"]), error

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def kind(self) -> str:
        return str(self.json()["error"]["kind"])

    def text(self) -> str:
        """The body, taken out of its chunks."""
        found, rest = b"", self.body
        while rest and (size := int(rest.partition(b"\r\n")[0], 16)):
            rest = rest.partition(b"\r\n")[2]
            found, rest = found + rest[:size], rest[size + 2 :]
        return found.decode()


class Site:
    """A server in a thread, and a browser that has opened its link."""

    def __init__(self, memory: ltm.Memory, **options: Any) -> None:
        self.memory, self.console = memory, api.Console(memory, host="serve", actor="op1")
        self.server = web.Server(self.console, **options)
        self.port, self.host = self.server.port, f"127.0.0.1:{self.server.port}"
        self.session = self.server.gate.exchange(self.server.gate.token)
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=10)

    def raw(self, data: bytes) -> bytes:
        with self.connect() as talk:
            with contextlib.suppress(ConnectionError):
                talk.sendall(data)
            return read_all(talk)

    def ask(self, *lines: str, first: str = "GET / HTTP/1.1", body: bytes = b"", host: bool = True) -> Answer:
        """A request of these header lines, as they are."""
        head = [first, *([f"Host: {self.host}"] if host else []), *lines]
        return Answer(self.raw("\r\n".join(head).encode("latin-1") + b"\r\n\r\n" + body))

    def post(self, endpoint: str, data: Any, *lines: str, session: str | None = None, kind: str = "application/json") -> Answer:
        body = data if isinstance(data, bytes) else json.dumps(data).encode()
        head = [f"Content-Type: {kind}", f"Content-Length: {len(body)}", f"Authorization: Bearer {session or self.session}", *lines]
        return self.ask(*head, first=f"POST /api/{endpoint} HTTP/1.1", body=body)

    def do(self, action: str, space: Any = None, **given: Any) -> Answer:
        return self.post("do", {"action": action, "input": given, "space": space or SPACE})

    def job(self, action: str, **given: Any) -> dict[str, Any]:
        """Run an action that goes on in the background, to its end."""
        id = self.do(action, **given).json()["job"]
        assert self.console.wait(20)
        return next(each for each in self.post("jobs", {}).json()["jobs"] if each["id"] == id)

    def stop(self) -> None:
        self.server.shutdown()
        self.thread.join()
        assert self.console.wait(5)
        assert self.server.settle(5)
        self.server.server_close()


def read_all(talk: socket.socket) -> bytes:
    parts = []
    with contextlib.suppress(ConnectionError):
        while part := talk.recv(1 << 16):
            parts.append(part)
    return b"".join(parts)


@pytest.fixture
def start(tmp_path: Path, opened: Callable[..., ltm.Memory], monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Site]]:
    """Start servers on this test's file."""
    monkeypatch.setattr(web, "BURST", 1e9)  # but where the rate is tested
    monkeypatch.setattr(web, "LINGER_SECONDS", 0.2)
    sites: list[Site] = []

    def start_(memory: ltm.Memory | None = None, **options: Any) -> Site:
        sites.append(Site(memory or opened(tmp_path / "bot.db"), **options))
        return sites[-1]

    yield start_
    for site in sites:
        site.stop()


@pytest.fixture
def site(start: Callable[..., Site]) -> Site:
    return start()


# ---------------------------------------------------------------------------------- who may ask


@pytest.mark.parametrize("token", ["", "x", None, 5, ["x"], {"a": 1}, "\ud800", "ä", "x" * 3_000])
def test_a_wrong_token_opens_nothing(site: Site, token: object) -> None:
    assert site.post("session", {"token": token}).kind == "Unauthorized"
    assert site.post("session", [token]).kind == "Unauthorized"


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Bearer x", "Basic {}", "bearer {}", "{}", "Bearer {} x", "Bearer \xe4"]
)
def test_without_a_session_nothing_is_answered(site: Site, header: str) -> None:
    lines = ["Content-Type: application/json", "Content-Length: 2", "Authorization: " + header.format(site.session)]
    for endpoint in ("start", "do", "jobs", "changes", "option", "export", "nothing"):
        assert site.ask(*lines, first=f"POST /api/{endpoint} HTTP/1.1", body=b"{}").kind == "Unauthorized"
    assert site.ask(*lines[:2], first="POST /api/start HTTP/1.1", body=b"{}").kind == "Unauthorized"
    assert site.post("start", {}, session=site.server.gate.token).kind == "Unauthorized", "the token is no session"


def test_several_browsers_have_sessions_and_the_oldest_of_too_many_goes(site: Site) -> None:
    sessions = [site.session] + [
        site.post("session", {"token": site.server.gate.token}).json()["session"] for _ in range(web.SESSIONS)
    ]
    assert len(set(sessions)) == web.SESSIONS + 1
    assert site.post("changes", {}, session=sessions[0]).status == 401
    assert {site.post("changes", {}, session=each).status for each in sessions[1:]} == {200}


def test_who_asks_too_often_is_told_to_wait_and_costs_a_browser_with_a_session_nothing(
    start: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "BURST", 60.0)
    monkeypatch.setattr(web, "RATE", 0.0)
    site = start()
    answers = [site.post("session", {"token": "wrong"}).status for _ in range(6)]
    assert (answers[0], answers[-1]) == (401, 429)
    assert site.ask().kind == "TooMany"
    assert [site.post("changes", {}).status for _ in range(70)] == [200] * 54 + [429] * 16


@pytest.mark.parametrize("host", ["evil.example:{}", "localhost.evil.example:{}", "127.0.0.1.evil.example:{}", "localhost.:{}", "127.0.0.1.:{}", "127.0.0.1:1", "127.0.0.1", "127.0.0.1:0{}",
                                  "user@127.0.0.1:{}", "127.0.0.1:{}@evil.example", "127.0.0.1:{}, evil.example", "127.0.0.2:{}", "10.0.0.1:{}", "0x7f000001:{}", "2130706433:{}", "[::1%25evil.example]:{}", ""])  # fmt: skip
def test_a_name_that_does_not_lead_here_is_refused(site: Site, host: str) -> None:
    assert site.ask(f"Host: {host.format(site.port)}", host=False).status == 403


def test_a_host_is_named_once(site: Site) -> None:
    assert site.ask(host=False).status == 403
    assert site.ask(f"host: {site.host}").status == 400
    assert site.ask("Host: evil.example").status == 400
    assert site.ask(f"Host: localhost:{site.port}", host=False).status == 200


@pytest.mark.parametrize("line", ["Origin: http://evil.example", "Origin: null", "Origin: https://{}", "Origin: http://localhost:{port}", "Origin:", "Origin: http://{}/",
                                  "Origin: http://{}, http://evil.example", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Sec-Fetch-Site: SAME-ORIGIN"])  # fmt: skip
def test_a_page_of_others_asks_nothing(site: Site, line: str) -> None:
    line = line.format(site.host, port=site.port)
    assert site.post("start", {}, line).status == 403
    assert site.ask(line).status == 403
    assert site.post("start", {}, f"Origin: http://{site.host}", "Sec-Fetch-Site: same-origin").status == 200
    assert site.post("start", {}, f"Origin: http://{site.host}", line).status in (400, 403)


@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "",
        "text/plain; application/json",
        "application/json, text/plain",
    ],
)
def test_a_form_of_another_site_is_no_call(site: Site, kind: str) -> None:
    assert site.post("start", {}, kind=kind).status == 415


def test_addresses_beyond_loopback_want_to_be_meant(site: Site, start: Callable[..., Site]) -> None:
    for host in ("0.0.0.0", "::", "10.0.0.1", "", "127.1", "localhost.evil.example"):
        with pytest.raises(ltm.InvalidInput, match="allow-remote"):
            web.Server(site.console, host=host)
    remote = start(host="0.0.0.0", remote=True)
    for name, status in (
        ("127.0.0.1", 200),
        ("10.1.2.3", 200),
        ("[fe80::1]", 200),
        ("evil.example", 403),
        ("[evil]", 403),
        ("[10.1.2.3", 403),
    ):
        assert remote.ask(f"Host: {name}:{remote.port}", host=False).status == status


def test_a_browser_leaves_out_port_80(site: Site) -> None:
    site.server.port, site.server._ports = 80, ("80", None)
    site.server._names |= {"localhost"}
    assert site.ask("Host: localhost", "Origin: http://localhost", host=False).status == 200


# ------------------------------------------------------------------------------ what a request is

POST = "POST /api/session HTTP/1.1"


@pytest.mark.parametrize("first", ["GET / HTTP/2.0", "GET / HTTP/0.9", "GET / HTTP/1.2", "GET /", "GET", "", "TRACE / HTTP/1.1", "PUT / HTTP/1.1", "OPTIONS * HTTP/1.1", "OPTIONS / HTTP/1.1", "HEAD / HTTP/1.1",
                                   "CONNECT x:1 HTTP/1.1", "DELETE / HTTP/1.1", "get / HTTP/1.1", "GET * HTTP/1.1", "GET http://{}/ HTTP/1.1", "GET  / HTTP/1.1", "GET / HTTP/1.1 ", " GET / HTTP/1.1", "GET /\t HTTP/1.1",
                                   "GET /\x00 HTTP/1.1", "GET /ä HTTP/1.1", "GET / x HTTP/1.1", "GET / HTTP/1.1\r", "GET / http/1.1", "GET / HTTP/1.\xb2", "PRI * HTTP/2.0", "POST / HTTP/1.1", "POST /api HTTP/1.1"])  # fmt: skip
def test_a_first_line_of_another_form_is_refused(site: Site, first: str) -> None:
    assert site.ask(first=first.format(site.host)).status in (400, 405)


@pytest.mark.parametrize("lines", ["Content-Length: 2\r\nContent-Length: 2", "Content-Length: 2\r\nContent-Length: 9", "Content-Length: 2\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked", "Transfer-Encoding: xchunked",
                                   "Transfer-Encoding:\tchunked", "Transfer-Encoding: identity", "transfer-encoding:", "Content-Length: +2", "Content-Length: 0_2", "Content-Length: 0x2", "Content-Length: -2", "Content-Length: 2, 2",
                                   "Content-Length: 2 2", "Content-Length: \xb2", "Content-Length:", "Content-Length: 9999999999999", "Content-Length : 2", "Content-Length: 2\r\n folded: 1", " Content-Length: 2",
                                   "Content-Length: 2\rX: 1", "Content-Length: 2\x00", "Content-Length: 2\nX: 1", "X: \x00\r\nContent-Length: 2", "X\r\nContent-Length: 2", ": x\r\nContent-Length: 2", "Content-Length: 2\x0b",
                                   "Content-Length: 2\x0c\r\nX: 1", "Content-Length: 2\x85", "Upgrade: h2c\r\nContent-Length: 2", "X: 1\x7f\r\nContent-Length: 2", "Sp ace: 1\r\nContent-Length: 2", "Content\xadLength: 2"])  # fmt: skip
def test_a_request_of_two_readings_is_refused(site: Site, lines: str) -> None:
    assert site.ask("Content-Type: application/json", lines, first=POST, body=b"{}").status in (400, 411)


@pytest.mark.parametrize(
    "head",
    [
        "GET / HTTP/1.1\nHost: {}\n\n",
        "GET / HTTP/1.1\r\nHost: {}\n\r\n",
        "GET / HTTP/1.1\r\nHost: {}\r\n\n",
        "GET / HTTP/1.1\rHost: {}\r\r\n\r\n",
        "\r\nGET / HTTP/1.1\r\nHost: {}\r\n\r\n",
    ],
)
def test_lines_end_in_one_way(site: Site, head: str) -> None:
    assert Answer(site.raw(head.format(site.host).encode())).status == 400


@pytest.mark.parametrize(
    "kind",
    [
        "multipart/x; boundary*=idna''a",
        "multipart/x; boundary*=undefined''a",
        "multipart/x; boundary*0*=punycode''a%ff",
        "message/rfc822",
        "message/delivery-status",
    ],
)
def test_headers_are_no_mail(site: Site, kind: str) -> None:
    assert site.ask(f"Content-Type: {kind}").status == 200


def test_a_head_or_body_that_is_too_large_is_refused_before_it_is_read(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    assert site.ask(first=f"GET /{'x' * web.HEAD_BYTES} HTTP/1.1").status == 431
    assert site.ask(f"X: {'x' * web.HEAD_BYTES}").status == 431
    assert site.ask(*[f"X-{n}: {'x' * 400}" for n in range(42)]).status == 431
    assert site.ask(*[f"X-{n}: 1" for n in range(web.HEAD_LINES)]).status == 400
    assert site.ask(*[f"X-{n}: 1" for n in range(web.HEAD_LINES - 1)]).status == 200
    assert site.ask("Content-Type: application/json", f"Content-Length: {web.TOKEN_BYTES + 1}", first=POST).status == 413
    assert site.post("session", {"token": "x" * web.TOKEN_BYTES}).kind == "TooLarge", "a stranger's body is small"
    assert site.post("start", {"x": "x" * web.BODY_BYTES}).kind == "TooLarge"
    monkeypatch.setattr(web, "IMPORT_BYTES", 2_000_000)
    assert site.post("do", {"x": "x" * 5_000_000}).kind == "TooLarge", "also told to a client that goes on sending"
    assert site.ask("Content-Length: 1", body=b"x").status == 400


def test_blanks_in_a_header_cost_no_time(site: Site) -> None:
    before = time.process_time()
    assert site.ask(f"X:{' ' * 16_000}\x00").status == 400
    assert time.process_time() - before < 1, "it was four seconds, in which nobody else was answered"


def test_a_second_request_on_a_connection_is_not_answered(site: Site) -> None:
    one = f"GET /nothing HTTP/1.1\r\nHost: {site.host}\r\nConnection: keep-alive\r\n\r\n".encode()
    answer = site.raw(one * 3)
    assert (answer.count(b"HTTP/1.1"), Answer(answer).status) == (1, 404)
    assert b"keep-alive" not in answer
    hidden = site.post("changes", b"{}GET / HTTP/1.1\r\n\r\n"[:2], f"X: {len(one)}")
    assert hidden.raw.count(b"HTTP/1.1") == 1


def test_a_client_that_waits_for_the_go_ahead_gets_it_when_it_has_a_session(site: Site) -> None:
    head = f"POST /api/changes HTTP/1.1\r\nHost: {site.host}\r\nContent-Type: application/json\r\nContent-Length: 2\r\nExpect: 100-continue\r\n"
    with site.connect() as talk:
        talk.sendall(f"{head}Authorization: Bearer {site.session}\r\n\r\n".encode())
        assert talk.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        talk.sendall(b"{}")
        assert Answer(read_all(talk)).status == 200
    assert Answer(site.raw(f"{head}\r\n".encode())).status == 401


@pytest.mark.parametrize("path", ["/../ltm.py", "/%2e%2e/ltm.py", "/..%2fltm.py", "/%252e%252e/", "/..\\ltm.py", "/static/../../web.py", "//etc/passwd", "/etc/passwd", "/%00", "/index.html%00.js", "/.", "/..;/", "/%c0%ae%c0%ae/", "/panels",
                                  "/panels/", "/file:///etc/passwd", "/INDEX.HTML", "/index.html/", "/api/start", "//index.html", "//evil.example/", "/./index.html", "/index.html#x", "/web.py"])  # fmt: skip
def test_no_path_leads_out_of_the_page(site: Site, path: str) -> None:
    assert site.ask(first=f"GET {path} HTTP/1.1").kind == "NotFound"


def test_the_files_are_those_of_the_folder(site: Site) -> None:
    folder = Path(web.__file__).parent / "static"
    files = {f"/{path.relative_to(folder).as_posix()}": path for path in folder.rglob("*") if path.is_file()}
    assert site.server.files.keys() == files.keys() | {"/"}
    for name, path in {**files, "/": folder / "index.html", "/?x=1": folder / "index.html"}.items():
        answer = site.ask(first=f"GET {name} HTTP/1.1")
        assert (answer.status, answer.body, answer.whole) == (200, path.read_bytes(), True)
        assert answer.headers["Content-Type"] == f"{web.TYPES[path.suffix]}; charset=utf-8"
    assert b"<script>" not in site.ask().body, "the policy lets no script stand in the page"


@pytest.mark.parametrize("body", [b"", b"{", b"x", b"\xff\xfe{\x00}\x00", '{"a":1}'.encode("utf-16"), b"\xef\xbb\xbf{}", b'{"\xff": 1}', b"[" * 100_000, b'{"a":' * 50_000, b'{"a": NaN}', b'{"a": -Infinity}', b'{"a": 1, "a": 2}',
                                  b'{"a": ' + b"9" * 5_000 + b"}", b"[]", b"null", b"5", b'"x"', b"{} {}", b'{"action": "recall"}\0'])  # fmt: skip
def test_what_is_not_one_json_object_is_refused(site: Site, body: bytes) -> None:
    for endpoint in ("start", "do", "jobs", "changes", "option", "export"):
        assert site.post(endpoint, body).status == 400


# ------------------------------------------------------------------------------- slow and many


def test_a_slow_client_has_no_more_time_than_any_other(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "HEAD_SECONDS", 0.2)
    monkeypatch.setattr(web, "BODY_SECONDS", 0.2)
    head = f"{POST}\r\nHost: {site.host}\r\nContent-Type: application/json\r\nContent-Length: 500\r\n".encode()
    for begun in (b"", head + b"X: ", head + b"\r\n"):
        with site.connect() as talk:
            talk.sendall(begun)
            started, sent = time.monotonic(), 0
            with contextlib.suppress(ConnectionError):
                while sent < 200 and not gone(talk):
                    talk.sendall(b"x")
                    sent += 1
                    time.sleep(0.01)
            assert 3 < sent < 150, "it is let go although it sends a byte now and then"
            assert time.monotonic() - started < 5


def gone(talk: socket.socket) -> bool:
    """Whether the other side has closed."""
    talk.setblocking(False)
    try:
        return talk.recv(1) == b""
    except BlockingIOError:
        return False
    finally:
        talk.settimeout(10)


@pytest.mark.parametrize(
    "begun",
    [
        "",
        "GET / HTTP/1.1\r\nHost:",
        "POST /api/session HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n",
    ],
)
@pytest.mark.parametrize("many", [200, 400])
def test_many_connections_that_say_nothing_keep_nobody_out(site: Site, many: int, begun: str) -> None:
    with contextlib.ExitStack() as held:
        for _ in range(many):
            held.enter_context(site.connect()).sendall(begun.format(site.host).encode())
        assert {site.ask().status, site.post("start", {}).status, site.do("list").status} == {200}
        assert threading.active_count() < web.CONNECTIONS + 20


def test_who_has_shown_a_session_is_not_cut_off_for_strangers(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "CONNECTIONS", 4)
    head = f"POST /api/changes HTTP/1.1\r\nHost: {site.host}\r\nContent-Type: application/json\r\nContent-Length: 2\r\nExpect: 100-continue\r\n"
    with contextlib.ExitStack() as held:
        mine = [held.enter_context(site.connect()) for _ in range(4)]
        for each in mine:
            each.sendall(f"{head}Authorization: Bearer {site.session}\r\n\r\n".encode())
            assert each.recv(100).startswith(b"HTTP/1.1 100")
        assert site.raw(b"") == b"", "there is no room at all"
        for each in mine:
            each.sendall(b"{}")
            assert Answer(read_all(each)).status == 200


def test_clients_that_leave_in_the_middle_cost_nothing(site: Site) -> None:
    fill(site.memory, 3_000)
    head = f"Host: {site.host}\r\nContent-Type: application/json\r\nAuthorization: Bearer {site.session}\r\n"
    body = json.dumps({"space": SPACE, "action": "list", "input": {"limit": 500}})
    for _ in range(10):
        for request in (
            f"POST /api/export HTTP/1.1\r\n{head}Content-Length: {len(body)}\r\n\r\n{body}",
            f"POST /api/do HTTP/1.1\r\n{head}Content-Length: {len(body)}\r\n\r\n{body}",
            f"POST /api/do HTTP/1.1\r\n{head}Content-Length: 900\r\n\r\n{{",
        ):
            with site.connect() as talk:
                talk.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # closing resets
                talk.sendall(request.encode())
                if body in request:
                    talk.recv(1_000)
    assert site.do("remember", content="it goes on").status == 200
    assert site.server.settle(5)
    exports = [entry for entry in site.memory.space(GROUP).audit.list(limit=100).entries if entry.operation == "export_l2"]
    assert exports == [], "what was not taken is not said to have been exported"


def fill(memory: ltm.Memory, many: int, size: int = 100) -> None:
    space = memory.space(GROUP, speaker=ALICE)
    with memory.batch():
        for number in range(many):
            space.remember(f"number {number} " + "x" * size)


def test_memory_and_threads_do_not_grow_with_requests(site: Site) -> None:
    fill(site.memory, 50)

    def some(many: int) -> None:
        for _ in range(many):
            assert site.do("list").status == 200
            site.ask(first="nonsense")

    some(100)
    tracemalloc.start()
    gc.collect()
    before, files = tracemalloc.get_traced_memory()[0], len(os.listdir("/dev/fd")) if os.path.isdir("/dev/fd") else 0
    some(500)
    assert site.server.settle(5)
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 500_000
    assert threading.active_count() < 10
    assert not files or len(os.listdir("/dev/fd")) < files + 10


# ------------------------------------------------------------------------------ the table of actions

WORDS = [
    "",
    "x",
    "0" * 12,
    "2026-03-02T09:00:00Z",
    "0001-01-01T00:00:00+14:00",
    "1:" + "a" * 64,
    "dense=nan",
    "dense=1e999",
    "..",
    "\ud800",
    *HOSTILE,
]
NUMBERS = st.sampled_from([0, -1, 1, 5, 2**31, 2**63, -(2**63) - 1, 10**300]) | st.floats(allow_nan=False, allow_infinity=False)
NONSENSE = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.sampled_from(WORDS) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=3),
    max_leaves=5,
)


def filled(field: Field) -> st.SearchStrategy[Any]:
    """Values for a field: mostly of its type and mostly wrong."""
    text = st.sampled_from([*WORDS, *field.meta.get("choices", ())]) | st.text(max_size=9)
    one = {str: text, int: st.integers(-3, 40) | st.sampled_from([2**63, 10**300]), float: NUMBERS, bool: st.booleans()}[field.kind]
    return (st.lists(one, max_size=3) if field.several else one) | NONSENSE


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    action = draw(st.sampled_from(sorted(ACTIONS)))
    fields = [each for each in fields_of(ACTIONS[action]) if draw(st.booleans()) or each.required]
    return action, {each.name: draw(filled(each)) for each in fields}


def test_no_input_of_any_action_is_answered_with_more_than_an_error_of_ours(site: Site) -> None:
    site.memory.configure("consolidation_enabled", True)
    seen = set()

    @given(requests())
    @settings(max_examples=1_500)
    def check(request: tuple[str, dict[str, Any]]) -> None:
        answer = site.post("do", {"action": request[0], "input": request[1], "space": SPACE, "language": "zh_Hans"})
        assert answer.status < 500 or answer.kind == "ModelError", (request, answer.body)
        seen.add((request[0], answer.status))
        site.console.wait(5)
        for fence in site.memory.fences():
            site.memory.clear_fence(fence.id)

    check()
    assert {name for name, _ in seen} == ACTIONS.keys()
    assert {job["error"]["kind"] for job in site.post("jobs", {}).json()["jobs"] if job["error"]} <= {
        "EmbedderError",
        "InvalidInput",
        "NotFound",
        "Conflict",
    }


@given(
    NONSENSE,
    st.sampled_from(["start", "do", "jobs", "changes", "option", "export", "session", "nothing", "", "../do"]),
    st.sampled_from(["action", "input", "space", "language", "kinds", "statuses", "name", "value", "speaker"]),
)
@settings(max_examples=150)
def nonsense(site: Site, value: Any, endpoint: str, name: str) -> None:
    body = {"action": "list", "space": SPACE, name: value}
    answers = [
        site.post(endpoint, value),
        site.post(endpoint, body),
        site.post(endpoint, {**body, "space": {**SPACE, "isolation": value}}),
    ]
    answers += [
        site.post(endpoint, {**body, "space": {**SPACE, "speaker": each}}) for each in (value, {"id": value, "name": value})
    ]
    answers += [
        site.post(endpoint, {**body, "space": {**SPACE, "bot": value}}),
        site.post(endpoint, {"action": value, "input": value, "space": value}),
    ]
    assert all(each.status < 500 for each in answers), (value, endpoint, name)


def test_no_body_of_any_endpoint_is_answered_with_more_than_an_error_of_ours(site: Site) -> None:
    nonsense(site)


def test_every_action_answers_not_found_for_what_another_space_holds(site: Site) -> None:
    """Also for the actions in the background; the table says which take ids. A new field must be named here."""
    site.memory.configure("consolidation_enabled", True)
    theirs = site.memory.space(ELSEWHERE, speaker=BOB)
    first, second = theirs.remember("their first"), theirs.remember("their second")
    site.memory.space(GROUP, speaker=ALICE).remember("mine")
    candidate = theirs.candidates.extract("I prefer tea.", force=True).candidates[0].id
    theirs.transfer.load_document("theirs", json.dumps([{"content": "their document"}]).encode())
    fence = site.memory.fence("theirs", theirs).id
    ids = {
        "id": first.id,
        "by": second.id,
        "audit_id": first.audit_id,
        "ids": [first.id],
        "proposal_id": "0" * 12,
        "document": "theirs",
    }
    more = {"edit": {"content": "mine"}, "edit-all": {"importance": 5}, "candidate accept": {"ids": [candidate]}, "candidate reject": {"ids": [candidate]}, "consolidate draft": {"model": "http:http://127.0.0.1:9#none"},
            "fence clear": {"id": fence}, "why-not": {"query": "their first"}, "erase": {"speaker": BOB.id}}  # fmt: skip
    names = {
        name
        for action in ACTIONS.values()
        for name in action.input.__dataclass_fields__
        if name == "by" or name.endswith(("id", "ids"))
    }
    assert names <= ids.keys() | {"speaker_id"}
    before = (theirs.list(ltm.Filter(statuses=ltm.STATUSES)), theirs.audit.list(), theirs.candidates.list())
    tried = 0
    for name, action in ACTIONS.items():
        given = {
            key: value for key, value in ids.items() if key in action.input.__dataclass_fields__ and not action.has_progress
        } | more.get(name, {})
        if not given or action.on is not ltm.Space:
            continue
        tried += 1
        for space in (
            SPACE,
            {**SPACE, "isolation": "bot"},
            {**SPACE, "bot": "b2"},
            {**SPACE, "speaker": {"id": BOB.id, "name": "Bob"}},
        ):
            answer = site.do(name, space, **given)
            assert answer.kind == "NotFound" if name != "why-not" else answer.json()["result"]["code"] == "not_found", (
                name,
                space,
                answer.body,
            )
    assert tried > 17
    assert (theirs.list(ltm.Filter(statuses=ltm.STATUSES)), theirs.audit.list(), theirs.candidates.list()) == before


def test_a_page_names_no_file_of_the_machine(site: Site, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    other.touch()
    assert site.do("erase", everything=True, also=[str(other)]).kind == "InvalidInput"
    assert (
        site.do("erase", everything=True, also=[str(tmp_path / "none")]).body
        == site.do("erase", everything=True, also=[str(other)]).body
    )
    assert other.stat().st_size == 0
    assert "also" not in str(site.post("start", {}).json()["actions"]["erase"]["fields"])
    assert (
        str(tmp_path)
        not in site.post("start", {}).body.decode()
        + site.do("erase", everything=True, prove=True).body.decode()
        + site.do("doctor").body.decode()
    )


def test_what_is_hostile_comes_back_as_it_was(site: Site) -> None:
    for text in [*(each for each in HOSTILE if each != "\0"), "名" * 1_000, "</script>", "\u2028", "{{x}}", "a\r\nSet-Cookie: x"]:
        id = site.do("remember", content=text, tags=["<b>"]).json()["result"]["id"]
        assert site.do("show", id=id).json()["result"]["content"] == text
    big = "<" * 1_000_000
    answer = site.do("show", {**SPACE, "launcher_id": big}, id="x")
    assert answer.status in (400, 404)


def test_the_audit_says_who_did_it_and_where(site: Site) -> None:
    site.do("remember", content="mine")
    site.do("remember", {**SPACE, "speaker": {"id": "u1", "name": "Alice"}}, content="hers")
    entries = site.memory.space(GROUP).audit.list().entries
    assert [(entry.via, entry.actor_id) for entry in entries] == [("console", "op1"), ("console", "op1")]


# --------------------------------------------------------------------------------- reading only


def test_reading_only_changes_no_byte(start: Callable[..., Site], opened: Callable[..., ltm.Memory], tmp_path: Path) -> None:
    writer = opened(tmp_path / "bot.db")
    writer.configure("consolidation_enabled", True)
    fill(writer, 20)
    mine = writer.space(GROUP, speaker=ALICE)
    id, other = mine.remember("the one"), mine.remember("the other")
    candidate = mine.candidates.extract("I prefer tea.", force=True).candidates[0].id
    site = start(opened(tmp_path / "bot.db", readonly=True))
    files = [tmp_path / "bot.db", tmp_path / "bot.db-wal"]
    before = [path.read_bytes() for path in files]
    values = {"id": id.id, "by": other.id, "audit_id": id.audit_id, "ids": [id.id], "content": "x", "field": "name", "value": "x", "reason": "x", "name": "injection_budget", "text": "I prefer coffee.", "query": "one",
              "data": "[]", "everything": True, "document": "x", "proposal_id": "0" * 12, "importance": 3, "repair": True}  # fmt: skip
    more = {
        "candidate accept": {"ids": [candidate]},
        "candidate reject": {"ids": [candidate]},
        "audit close": {"before": "2030-01-01T00:00:00Z"},
        "fence clear": {"id": 1},
        "config set": {"value": "900"},
    }
    for name, action in ACTIONS.items():
        given = {key: value for key, value in values.items() if key in action.input.__dataclass_fields__} | more.get(name, {})
        parse(name, given)
        answer = site.do(name, {**SPACE, "speaker": {"id": "u1", "name": "Alice"}}, **given)
        if action.writes:
            assert answer.kind in ("ReadOnly", "NotFound", "InvalidInput"), (name, answer.body)
            assert answer.kind == "ReadOnly" or name in (
                "document delete",
                "consolidate reject",
                "fence clear",
                "consolidate run",
                "consolidate draft",
            ), (name, answer.body)
        elif name not in ("doctor", "audit close"):
            assert answer.status == 200, (name, answer.body)
    assert site.post("export", {"space": SPACE}).whole
    assert site.post("start", {}).json()["read_only"] is True
    with site.memory._file.read() as db:
        for sql in ("INSERT INTO tag VALUES (1)", "DELETE FROM episode", "UPDATE episode SET content = ''", "DROP TABLE episode", "ATTACH 'x.db' AS x", "PRAGMA writable_schema = 1", "PRAGMA query_only = 0", "PRAGMA journal_mode = DELETE",
                    "PRAGMA wal_checkpoint", "CREATE TEMP TABLE x (y)", "VACUUM", "REINDEX", "ANALYZE", "INSERT INTO episode_fts (episode_fts) VALUES ('optimize')", "SELECT load_extension('x')"):  # fmt: skip
            with pytest.raises(apsw.Error):
                db.execute(sql).fetchall()
    assert [path.read_bytes() for path in files] == before
    assert site.do("import", data="[]", dry_run=True).status == 200


# ------------------------------------------------------------------------------ jobs and exports


class Held(ltm.HashEmbedder):
    """An embedder that waits until it is let go, or fails."""

    def __init__(self) -> None:
        super().__init__(16)
        self.go, self.fails = threading.Event(), False

    def embed_passages(self, texts: Any) -> Any:
        self.go.wait(10)
        if self.fails:
            raise ValueError("/home/somebody/model.py: SELECT secret")
        return super().embed_passages(texts)


def test_a_job_says_how_far_it_is_and_runs_once(
    start: Callable[..., Site], opened: Callable[..., ltm.Memory], tmp_path: Path
) -> None:
    memory = opened(tmp_path / "bot.db")
    fill(memory, 100)
    memory.embedder = held = Held()
    site = start(memory)
    id = site.do("embed").json()["job"]
    assert site.post("jobs", {}).json()["jobs"][0]["state"] == "running"
    assert site.do("embed").kind == "Conflict", "not twice at the same time"
    assert site.do("list").status == 200
    held.go.set()
    assert site.console.wait(10)
    job = site.post("jobs", {}).json()["jobs"][0]
    assert (job["id"], job["state"], job["done"], job["total"], job["result"]["done"]) == (id, "done", 100, 100, 100)
    data = json.dumps([{"id": f"e{n}", "content": f"imported {n}"} for n in range(1_200)])
    job = site.job("import", data=data)
    assert (job["state"], job["done"], job["total"], job["result"]["episodes"]) == ("done", 1_200, 1_200, 1_200)
    job = site.job("import", data="nonsense")
    assert (job["state"], job["error"]["kind"], job["result"]) == ("failed", "InvalidInput", None)
    held.fails = True
    job = site.job("embed")
    assert job["error"] and not LEAK.search(job["error"]["message"]) or job["result"]["failed"], job
    assert not LEAK.search(site.post("jobs", {}).body.decode())


def test_jobs_that_have_ended_are_forgotten_and_running_ones_are_not(site: Site) -> None:
    fill(site.memory, 5)
    site.memory.embedder = held = Held()
    running = site.do("embed").json()["job"]
    for _ in range(api.JOBS + 5):
        site.do("import", data="[]")
        while len(site.console._running) > 1:
            time.sleep(0.001)
    jobs = site.post("jobs", {}).json()["jobs"]
    held.go.set()
    assert (len(jobs), jobs[-1]["id"]) == (api.JOBS, running)


def test_an_export_that_breaks_off_is_told_from_one_that_ended(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(site.memory, 3_000)
    answer = site.post("export", {"space": SPACE, "kinds": ["episodes"]})
    lines = [json.loads(line) for line in answer.text().splitlines()]
    assert (answer.status, answer.whole, len(lines), lines[0]["count"]) == (200, True, 3_001, 3_000)
    for kinds in (["nothing"], "episodes", 5, [5], [[]]):
        assert site.post("export", {"space": SPACE, "kinds": kinds}).status == 400
    assert site.post("export", {}).kind == "InvalidInput"
    real = ltm.Transfer._records

    def breaks(*given: Any) -> Iterator[Any]:
        for number, each in enumerate(real(*given)):
            if number == 2_000:
                raise ltm.Corrupt("/home/x: SELECT")
            yield each

    monkeypatch.setattr(ltm.Transfer, "_records", breaks)
    answer = site.post("export", {"space": SPACE})
    assert (answer.status, answer.whole) == (200, False)


# ------------------------------------------------------------------------- other processes, the end


@contextlib.contextmanager
def served(path: Path, *options: str, before: tuple[str, ...] = ()) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """A real `ltm serve`: the process, its host with port, its token."""
    command = [sys.executable, "-m", "ltm_console", "--db", str(path), *before, "serve", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8") as process:
        try:
            assert process.stdout
            assert "is at" in process.stdout.readline()
            host, token = re.findall(r"http://(\S+)/#token=(\S+)", process.stdout.readline())[0]
            assert process.stdout.readline() == "Ctrl-C stops it.\n"
            yield process, host, token
        finally:
            process.kill()


def call(host: str, endpoint: str, data: Any, session: str = "") -> Answer:
    body = json.dumps(data).encode()
    head = f"POST /api/{endpoint} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\nAuthorization: Bearer {session}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", int(host.rpartition(":")[2])), timeout=10) as talk:
        talk.sendall(head.encode() + body)
        return Answer(read_all(talk))


def ltm_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ltm_console", *arguments], capture_output=True, text=True, encoding="utf-8", timeout=30
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_a_file_in_use_and_stops_when_told_to(tmp_path: Path, number: int) -> None:
    path, link = tmp_path / "bot.db", tmp_path / "link"
    with ltm.open(path) as memory:
        fill(memory, 2_000)
        with served(path, "--token-file", str(link), "--actor", "me", before=("--embedder", "hash")) as (process, host, token):
            assert link.read_text() == f"http://{host}/#token={token}\n"
            assert stat.S_IMODE(link.stat().st_mode) == 0o600
            one, two = (call(host, "session", {"token": token}).json()["session"] for _ in range(2))
            seen = call(host, "changes", {}, one).json()["version"]
            assert call(host, "changes", {}, two).json()["version"] == seen
            memory.space(GROUP).remember("from another process")
            assert call(host, "changes", {}, two).json()["version"] != seen
            assert (
                call(host, "do", {"action": "remember", "input": {"content": "from the page"}, "space": SPACE}, one).status == 200
            )
            assert memory.space(GROUP).list(limit=1).total == 2_002
            data = json.dumps([{"id": f"e{n}", "content": f"imported {n}"} for n in range(3_000)])
            assert call(host, "do", {"action": "import", "input": {"data": data}, "space": SPACE}, one).status == 200
            with contextlib.ExitStack() as held:
                idle = held.enter_context(socket.create_connection(("127.0.0.1", int(host.rpartition(":")[2]))))
                idle.sendall(b"GET")
                process.send_signal(number)
                output, errors = process.communicate(timeout=15)
            assert (process.returncode, output, errors) == (0, "stopped\n", "")
        assert memory.space(GROUP).audit.list(limit=1).entries[0].actor_id == "me"
    assert ltm_command("--db", str(path), "check").stdout == "sound\n"


def test_it_stops_although_a_client_does_not_take_its_export(tmp_path: Path) -> None:
    path = tmp_path / "bot.db"
    with ltm.open(path) as memory:
        fill(memory, 800, 8_000)
    script = f"import sys, ltm_console.web as web, ltm_console.cli as cli; web.STOP_SECONDS = 0.3; sys.argv[1:] = ['--db', {str(path)!r}, 'serve']; cli.main()"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        process.stdout.readline()
        host, token = re.findall(r"http://(\S+)/#token=(\S+)", process.stdout.readline())[0]
        session = call(host, "session", {"token": token}).json()["session"]
        body = json.dumps({"space": SPACE})
        with socket.socket() as talk:
            talk.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            talk.connect(("127.0.0.1", int(host.rpartition(":")[2])))
            talk.sendall(
                f"POST /api/export HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\nAuthorization: Bearer {session}\r\n\r\n{body}".encode()
            )
            assert talk.recv(100).startswith(b"HTTP/1.1 200")
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=15)
        assert (process.returncode, errors) == (0, "")
    assert ltm_command("--db", str(path), "check").stdout == "sound\n"


def test_what_cannot_be_served_is_said_in_one_line(site: Site, tmp_path: Path) -> None:
    path, none = str(tmp_path / "bot.db"), str(tmp_path / "none.db")
    for arguments, words in [(("--db", path, "serve", "--port", str(site.port)), "cannot listen on 127.0.0.1 port"), (("--db", none, "serve"), "does not exist"), (("--db", none, "serve", "--read-only"), "does not exist"),
                             (("--db", path, "serve", "--host", "0.0.0.0"), "--allow-remote"), (("--db", path, "serve", "--host", "no.such.name.invalid", "--allow-remote"), "cannot listen"),
                             (("--db", path, "serve", "--token-file", str(tmp_path / "no" / "link")), "cannot be written")]:  # fmt: skip
        done = ltm_command(*arguments)
        assert (done.returncode, done.stdout) == (1, ""), done
        assert words in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert not os.path.exists(none)


def test_served_for_reading_only(tmp_path: Path) -> None:
    path = tmp_path / "bot.db"
    with ltm.open(path) as memory:
        fill(memory, 5)
    before = path.read_bytes()
    with served(path, "--read-only") as (process, host, token):
        session = call(host, "session", {"token": token}).json()["session"]
        assert call(host, "start", {}, session).json()["file"] == "bot.db"
        assert call(host, "do", {"action": "remember", "input": {"content": "x"}, "space": SPACE}, session).kind == "ReadOnly"
        assert len(call(host, "do", {"action": "list", "space": SPACE}, session).json()["result"]["episodes"]) == 5
        process.terminate()
        assert process.wait(10) == 0
    assert path.read_bytes() == before
