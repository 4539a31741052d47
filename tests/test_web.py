"""The console's server as an attacker and as two browsers meet it: raw sockets against a real server on a real file.

`Answer` holds what every answer must have, so each test also tests that: one status line, the security headers, an end, and in an
error a kind and a message without a path, SQL or a traceback.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
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
from ltm_console.actions import ACTIONS, Field, fields_of

from .conftest import ALICE, BOB, GROUP

SPACE = {"bot": "b1", "launcher_type": "group", "launcher_id": "7"}
ELSEWHERE = ltm.Scope("b2", "group", "1")
LEAK = re.compile(
    r'Traceback|File "|line \d+, in|\.py\b|\bSELECT\b|\bINSERT\b|\bUPDATE\b|sqlite|apsw|pydantic|/home/|/tmp/|/root/|/etc/'
)
HOSTILE = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "javascript:alert(1)", "\u202eevil\u2066", "n" * 5_000]


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


class Client:
    """A browser, as far as sockets go; `token` is the link's or, in later requests, the session's."""

    def __init__(self, port: int, token: str) -> None:
        self.port, self.host, self.token, self.session = port, f"127.0.0.1:{port}", token, token

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

    def head(self, endpoint: str, size: int, session: str | None = None, kind: str = "application/json") -> str:
        lines = [f"POST /api/{endpoint} HTTP/1.1", f"Host: {self.host}", f"Content-Type: {kind}", f"Content-Length: {size}"]
        return "\r\n".join([*lines, f"Authorization: Bearer {session or self.session}", ""])

    def post(self, endpoint: str, data: Any, *lines: str, session: str | None = None, kind: str = "application/json") -> Answer:
        body = data if isinstance(data, bytes) else json.dumps(data).encode()
        head = self.head(endpoint, len(body), session, kind) + "".join(f"{line}\r\n" for line in lines)
        return Answer(self.raw(head.encode("latin-1") + b"\r\n" + body))

    def do(self, action: str, space: Any = None, **given: Any) -> Answer:
        return self.post("do", {"action": action, "input": given, "space": space or SPACE})


class Site(Client):
    """A server in a thread, and a browser that has opened its link."""

    def __init__(self, memory: ltm.Memory, **options: Any) -> None:
        self.memory, self.console = memory, api.Console(memory, host="serve", actor="op1")
        self.server = web.Server(self.console, **options)
        super().__init__(self.server.port, self.server.gate.exchange(self.server.gate.token))
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def job(self, action: str, **given: Any) -> dict[str, Any]:
        """Run an action that goes on in the background, to its end."""
        id = self.do(action, **given).json()["job"]
        assert self.console.wait(20)
        found: dict[str, Any] = next(each for each in self.post("jobs", {}).json()["jobs"] if each["id"] == id)
        return found

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


def fill(memory: ltm.Memory, many: int, size: int = 100) -> None:
    space = memory.space(GROUP, speaker=ALICE)
    with memory.batch():
        for number in range(many):
            space.remember(f"number {number} {'x' * size}")


Start = Callable[..., Site]


@pytest.fixture
def start(tmp_path: Path, opened: Callable[..., ltm.Memory], monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
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
def site(start: Start) -> Site:
    return start()


def forms(text: str) -> list[str]:
    """Several forms of a request: '|' between them, '¶' for the end of a line."""
    return [each.replace("¶", "\r\n") for each in text.split("|")]


# ---------------------------------------------------------------------------------- who may ask


@pytest.mark.parametrize("token", ["", "x", None, 5, ["x"], {"a": 1}, "\ud800", "ä", "x" * 3_000])
def test_a_wrong_token_opens_nothing(site: Site, token: object) -> None:
    assert site.post("session", {"token": token}).kind == "Unauthorized"
    assert site.post("session", [token]).kind == "Unauthorized"
    assert "令牌" in site.post("session", {}, "Accept-Language: zh-CN,zh;q=0.9").json()["error"]["message"]


HEADERS = forms("|Bearer|Bearer |Bearer x|Basic {}|bearer {}|{}|Bearer {} x|Bearer \xe4|Bearer {},")


def test_without_a_session_nothing_is_answered(site: Site) -> None:
    for header in HEADERS:
        lines = ["Content-Type: application/json", "Content-Length: 2", "Authorization: " + header.format(site.session)]
        for endpoint in ("start", "do", "jobs", "changes", "option", "export", "nothing"):
            assert site.ask(*lines, first=f"POST /api/{endpoint} HTTP/1.1", body=b"{}").kind == "Unauthorized"
        assert site.ask(*lines[:2], first="POST /api/start HTTP/1.1", body=b"{}").kind == "Unauthorized"
        assert site.post("start", {}, session=site.server.gate.token).kind == "Unauthorized", "the token is no session"


def test_several_browsers_have_sessions_and_of_too_many_the_idlest_goes(site: Site) -> None:
    link = {"token": site.server.gate.token}
    sessions = [site.session] + [site.post("session", link, session="none").json()["session"] for _ in range(web.SESSIONS)]
    assert len(set(sessions)) == web.SESSIONS + 1
    assert site.post("changes", {}, session=sessions[0]).status == 401
    assert {site.post("changes", {}, session=each).status for each in [*sessions[2:], sessions[1]]} == {200}
    site.post("session", link, session="none")
    assert [site.post("changes", {}, session=each).status for each in sessions[1:4]] == [200, 401, 200]


def test_who_asks_too_often_waits_and_a_browser_with_a_session_does_not(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "BURST", 60.0)
    monkeypatch.setattr(web, "RATE", 0.0)
    site = start()
    assert [site.post("changes", {}, session="wrong").status for _ in range(4)] == [401, 401, 401, 429]
    assert (site.ask().kind, site.post("session", {"token": site.server.gate.token}, session="x").kind) == ("TooMany", "TooMany")
    assert [site.post("changes", {}).status for _ in range(70)] == [200] * 60 + [429] * 10


HOSTS = forms(
    "evil.example:{}|localhost.evil.example:{}|127.0.0.1.evil.example:{}|localhost.:{}|127.0.0.1.:{}|127.0.0.1:1|127.0.0.1|"
    "127.0.0.1:0{}|user@127.0.0.1:{}|127.0.0.1:{}@evil.example|127.0.0.1:{}, evil.example|127.0.0.2:{}|10.0.0.1:{}|"
    "0x7f000001:{}|2130706433:{}|[::1%25evil.example]:{}|127.0.0.1:{}.|\xe4:{}|"
)


def test_a_name_that_somebody_else_may_lead_here_is_refused(site: Site) -> None:
    for host in HOSTS:
        assert site.ask(f"Host: {host.format(site.port)}", host=False).status == 403, host


def test_a_host_is_named_once(site: Site) -> None:
    assert site.ask(host=False).status == 403
    assert site.ask(f"host: {site.host}").status == 400
    assert site.ask("Host: evil.example").status == 400
    assert site.ask(f"Host: localhost:{site.port}", host=False).status == 200
    site.server.port = 80
    assert site.ask("Host: localhost", "Origin: http://localhost", host=False).status == 200, "browsers leave out 80"


OTHERS = forms(
    "Origin: http://evil.example|Origin: null|Origin: https://{}|Origin: http://localhost:{port}|Origin:|Origin: http://{}/|"
    "Origin: http://{}, http://evil.example|Sec-Fetch-Site: cross-site|Sec-Fetch-Site: same-site|Sec-Fetch-Site: SAME-ORIGIN"
)


def test_a_page_of_others_asks_nothing(site: Site) -> None:
    for line in OTHERS:
        line, ours = line.format(site.host, port=site.port), [f"Origin: http://{site.host}", "Sec-Fetch-Site: same-origin"]
        assert (site.post("start", {}, line).status, site.ask(line).status) == (403, 403)
        assert (site.post("start", {}, *ours).status, site.post("start", {}, *ours, line).status) == (200, 400)


KINDS = forms("text/plain|application/x-www-form-urlencoded|multipart/form-data; boundary=x||application/")


def test_a_form_of_another_site_is_no_call(site: Site) -> None:
    for kind in KINDS:
        assert site.post("start", {}, kind=kind).status == 415
        assert site.post("start", {}, kind=f"{kind}; application/json").status == 415


def test_addresses_beyond_loopback_want_to_be_meant(site: Site, start: Start) -> None:
    for host in ("0.0.0.0", "::", "10.0.0.1", "", "127.1", "localhost.evil.example"):
        with pytest.raises(ltm.InvalidInput, match="allow-remote"):
            web.Server(site.console, host=host)
    remote = start(host="0.0.0.0", remote=True)
    for host in ("127.0.0.1", "10.1.2.3", "[fe80::1]"):
        assert remote.ask(f"Host: {host}:{remote.port}", host=False).status == 200
    for host in ("evil.example", "[evil]", "[10.1.2.3", "1.2.3", "[fe80::1%25evil.example]"):
        assert remote.ask(f"Host: {host}:{remote.port}", host=False).status == 403


# ------------------------------------------------------------------------------ what a request is

POST = "POST /api/session HTTP/1.1"


FIRST = forms(
    "GET / HTTP/2.0|GET / HTTP/0.9|GET / HTTP/1.0|GET / HTTP/1.2|GET /|GET||TRACE / HTTP/1.1|PUT / HTTP/1.1|"
    "OPTIONS * HTTP/1.1|HEAD / HTTP/1.1|OPTIONS / HTTP/1.1|CONNECT x:1 HTTP/1.1|DELETE / HTTP/1.1|get / HTTP/1.1|GET * HTTP/1.1|GET http://{}/ HTTP/1.1|"
    "GET  / HTTP/1.1|GET / HTTP/1.1 | GET / HTTP/1.1|GET /\t HTTP/1.1|GET /\0 HTTP/1.1|GET /\xe4 HTTP/1.1|GET / x HTTP/1.1|"
    "GET / HTTP/1.1\r|GET / http/1.1|GET / HTTP/1.\xb2|PRI * HTTP/2.0|POST / HTTP/1.1|POST /api HTTP/1.1|¶GET / HTTP/1.1"
)


def test_a_first_line_of_another_form_is_refused(site: Site) -> None:
    for first in FIRST:
        assert site.ask(first=first.format(site.host)).status in (400, 405), first


LENGTHS = forms(
    "Content-Length: 2¶Content-Length: 2|Content-Length: 2¶Content-Length: 9|Content-Length: 2¶Transfer-Encoding: chunked|"
    "Transfer-Encoding: chunked|Transfer-Encoding: xchunked|Transfer-Encoding:\tchunked|Transfer-Encoding: identity|"
    "transfer-encoding:|Content-Length: +2|Content-Length: 0_2|Content-Length: 0x2|Content-Length: -2|Content-Length: 2, 2|"
    "Content-Length: 2 2|Content-Length: \xb2|Content-Length:|Content-Length: 9999999999999|Content-Length : 2|"
    "Content-Length: 2¶ folded: 1| Content-Length: 2|Content-Length: 2\rX: 1|Content-Length: 2\0|Content-Length: 2\nX: 1|"
    "X: \0¶Content-Length: 2|X¶Content-Length: 2|: x¶Content-Length: 2|Content-Length: 2\x0b|Content-Length: 2\x0c¶X: 1|"
    "Content-Length: 2\x85|Upgrade: h2c¶Content-Length: 2|X: 1\x7f¶Content-Length: 2|Sp ace: 1¶Content-Length: 2|"
    "Content\xadLength: 2|Content-Length: 2\n|Content-Length\t: 2|Content_Length: 2"
)


def test_a_request_of_two_readings_is_refused(site: Site) -> None:
    for lines in LENGTHS:
        assert site.ask("Content-Type: application/json", lines, first=POST, body=b"{}").status in (400, 411), lines


@pytest.mark.parametrize("head", ["{}\nHost: {}\n\n", "{}\r\nHost: {}\n\r\n", "{}\r\nHost: {}\r\n\n", "{}\rHost: {}\r\r\n\r\n"])
def test_lines_end_in_one_way(site: Site, head: str) -> None:
    assert Answer(site.raw(head.format("GET / HTTP/1.1", site.host).encode())).status == 400


@pytest.mark.parametrize("boundary", ["*=idna''a", "*=undefined''a", "*0*=punycode''a%ff"])
def test_headers_are_no_mail(site: Site, boundary: str) -> None:
    assert site.ask(f"Content-Type: multipart/x; boundary{boundary}").status == 200


def test_what_is_too_large_is_refused_and_the_client_told(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "IMPORT_BYTES", 2_000_000)
    assert site.ask(first=f"GET /{'x' * web.HEAD_BYTES} HTTP/1.1").status == 431
    assert site.ask(f"X: {'x' * web.HEAD_BYTES}").status == 431
    assert site.ask(*[f"X-{n}: {'x' * 400}" for n in range(42)]).status == 431
    assert site.ask(*[f"X-{n}: 1" for n in range(web.HEAD_LINES)]).status == 400
    assert site.ask(*[f"X-{n}: 1" for n in range(web.HEAD_LINES - 1)]).status == 200
    assert site.ask("Content-Length: 1", body=b"x").status == 400
    assert site.post("session", {"token": "x" * web.TOKEN_BYTES}).kind == "TooLarge", "a stranger's body is small"
    assert site.post("start", {"x": "x" * web.BODY_BYTES}).kind == "TooLarge"
    assert site.post("do", {"x": "x" * 5_000_000}).kind == "TooLarge", "also told to a client that goes on sending"


def test_blanks_in_a_header_cost_no_time(site: Site) -> None:
    before = time.process_time()
    assert site.ask(f"X:{' ' * 16_000}\0").status == 400
    assert time.process_time() - before < 1, "it was four seconds, in which nobody else was answered"


def test_a_second_request_on_a_connection_is_not_answered(site: Site) -> None:
    one = f"GET /nothing HTTP/1.1\r\nHost: {site.host}\r\nConnection: keep-alive\r\n\r\n".encode()
    answer = site.raw(one * 3)
    assert (answer.count(b"HTTP/1.1"), Answer(answer).status, b"keep-alive" in answer) == (1, 404, False)
    head = site.head("changes", 2)
    assert site.raw(f"{head}\r\n{{}}".encode() + one).count(b"HTTP/1.1") == 1


def test_a_client_that_waits_for_the_go_ahead_gets_it_when_it_has_a_session(site: Site) -> None:
    with site.connect() as talk:
        talk.sendall(f"{site.head('changes', 2)}Expect: 100-continue\r\n\r\n".encode())
        assert talk.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        talk.sendall(b"{}")
        assert Answer(read_all(talk)).status == 200
    assert Answer(site.raw(f"{site.head('changes', 2, 'wrong')}Expect: 100-continue\r\n\r\n".encode())).status == 401


PATHS = forms(
    "/../ltm.py|/%2e%2e/ltm.py|/..%2fltm.py|/%252e%252e/|/..\\ltm.py|/static/../../web.py|//etc/passwd|/etc/passwd|/%00|/panels/|"
    "/index.html%00.js|/.|/..;/|/%c0%ae%c0%ae/|/panels|/file:///etc/passwd|/INDEX.HTML|/index.html/|/api/start|//index.html|"
    "//evil.example/|/./index.html|/index.html#x|/web.py|/%69ndex.html|/__init__.py|/static/index.html"
)


def test_no_path_leads_out_of_the_page(site: Site) -> None:
    for path in PATHS:
        assert site.ask(first=f"GET {path} HTTP/1.1").kind == "NotFound", path


def test_the_files_are_those_of_the_folder(site: Site) -> None:
    folder = Path(web.__file__).parent / "static"
    files = {f"/{path.relative_to(folder).as_posix()}": path for path in folder.rglob("*") if path.is_file()}
    assert site.server.files.keys() == files.keys() | {"/"}
    for name, path in {**files, "/": folder / "index.html", "/?x=1": folder / "index.html"}.items():
        answer = site.ask(first=f"GET {name} HTTP/1.1")
        assert (answer.status, answer.body, answer.whole) == (200, path.read_bytes(), True)
        assert answer.headers["Content-Type"] == f"{web.TYPES[path.suffix]}; charset=utf-8"
    assert b"<script>" not in site.ask().body, "the policy lets no script stand in the page"


BODIES = [
    b"", b"{", b"x", b"\xff\xfe{\0}\0", '{"a":1}'.encode("utf-16"), b"\xef\xbb\xbf{}", b'{"\xff": 1}', b"[" * 100_000, b'{"a":' * 50_000,
    b'{"a": NaN}', b'{"a": -Infinity}', b'{"a": 1, "a": 2}', b'{"a": ' + b"9" * 5_000 + b"}", b"[]", b"null", b"5", b'"x"', b"{} {}", b"{}\0",
]  # fmt: skip


def test_what_is_not_one_json_object_is_refused(site: Site) -> None:
    for body in BODIES:
        for endpoint in ("start", "do", "jobs", "changes", "option", "export"):
            assert site.post(endpoint, body).status == 400, body[:80]


# ------------------------------------------------------------------------------- slow and many


@pytest.mark.parametrize("begun", forms("|{}X: |{}Content-Type: application/json¶Content-Length: 500¶¶"))
def test_a_client_that_sends_a_byte_now_and_then_is_let_go(site: Site, begun: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "HEAD_SECONDS", 0.2)
    monkeypatch.setattr(web, "BODY_SECONDS", 0.2)
    with site.connect() as talk:
        talk.sendall(begun.format(f"{POST}\r\nHost: {site.host}\r\n").encode())
        talk.settimeout(0.01)  # the pause between two bytes
        sent = 0
        with contextlib.suppress(ConnectionError):
            while sent < 400:
                talk.sendall(b"x")
                sent += 1
                with contextlib.suppress(TimeoutError):
                    if not talk.recv(1):
                        break
        assert 2 < sent < 400


@pytest.mark.parametrize("begun", forms("|GET / HTTP/1.1¶Host:|POST /api/session HTTP/1.1¶Host: {}¶Content-Type: application/json¶Content-Length: 9¶¶"))  # fmt: skip
@pytest.mark.parametrize("many", [200, 400])
def test_many_connections_that_say_nothing_keep_nobody_out(site: Site, many: int, begun: str) -> None:
    with contextlib.ExitStack() as held:
        for _ in range(many):
            held.enter_context(site.connect()).sendall(begun.format(site.host).encode())
        assert {site.ask().status, site.post("start", {}).status, site.do("list").status} == {200}
        assert threading.active_count() < web.CONNECTIONS + 20


def test_who_has_shown_a_session_is_not_cut_off_for_strangers(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "CONNECTIONS", 4)
    with contextlib.ExitStack() as held:
        mine = [held.enter_context(site.connect()) for _ in range(4)]
        for each in mine:
            each.sendall(f"{site.head('changes', 2)}Expect: 100-continue\r\n\r\n".encode())
            assert each.recv(100).startswith(b"HTTP/1.1 100")
        assert site.raw(b"") == b"", "there is no room at all"
        for each in mine:
            each.sendall(b"{}")
            assert Answer(read_all(each)).status == 200


def test_clients_that_leave_in_the_middle_cost_nothing(site: Site) -> None:
    fill(site.memory, 3_000)
    body = json.dumps({"space": SPACE, "action": "list", "input": {"limit": 500}})
    for _ in range(10):
        for endpoint, sent in (("export", body), ("do", body), ("do", body[:9])):
            with site.connect() as talk:
                talk.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # closing resets
                talk.sendall(f"{site.head(endpoint, len(body))}\r\n{sent}".encode())
                if sent == body:
                    talk.recv(1_000)
    assert site.do("remember", content="it goes on").status == 200
    assert site.server.settle(5)
    operations = {entry.operation for entry in site.memory.space(GROUP).audit.list(limit=100).entries}
    assert "export_l2" not in operations, "what was not taken is not said to have been exported"


def test_memory_and_threads_do_not_grow_with_requests(site: Site) -> None:
    def some(many: int) -> tuple[int, int]:
        for _ in range(many):
            assert site.do("list").status == 200
            assert {site.ask(first="nonsense").status, site.ask().status, site.post("nothing", {}).status} == {400, 200, 404}
        assert site.server.settle(5)
        gc.collect()
        return tracemalloc.get_traced_memory()[0], len(os.listdir("/dev/fd")) if os.path.isdir("/dev/fd") else 0

    fill(site.memory, 20)
    tracemalloc.start()
    before, after = some(50), some(250)
    tracemalloc.stop()
    assert after[0] - before[0] < 500_000
    assert after[1] - before[1] < 10
    assert threading.active_count() < 10


# ------------------------------------------------------------------------------ the table of actions

WORDS = ["", "x", "0" * 12, "2026-03-02T09:00:00Z", "0001-01-01T00:00:00+14:00", "1:" + "a" * 64, "dense=nan", "dense=1e999", "..",
         "\ud800", "\0", *HOSTILE]  # fmt: skip
NUMBERS = st.sampled_from([0, -1, 1, 5, 2**31, 2**63, -(2**63) - 1, 10**300]) | st.floats(allow_nan=False, allow_infinity=False)
NONSENSE = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.sampled_from(WORDS) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=3),
    max_leaves=5,
)


def filled(field: Field) -> st.SearchStrategy[Any]:
    """Values for a field: mostly of its type and mostly wrong."""
    text = st.sampled_from([*WORDS, *field.meta.get("choices", ())]) | st.text(max_size=9)
    whole = st.integers(-3, 40) | st.sampled_from([2**63, 10**300])
    one = {str: text, int: whole, float: NUMBERS, bool: st.booleans()}[field.kind]
    return (st.lists(one, max_size=3) if field.several else one) | NONSENSE


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    action = draw(st.sampled_from(sorted(ACTIONS)))
    fields = [each for each in fields_of(ACTIONS[action]) if draw(st.booleans()) or each.required]
    return action, {each.name: draw(filled(each)) for each in fields}


def test_what_a_person_wrote_and_what_is_exported_is_the_same_in_every_language(site: Site) -> None:
    site.memory.space(GROUP).profiles.update("notes", "set", "no embedder is configured")  # as the engine says too

    def both(action: str) -> tuple[Any, Any]:
        english, chinese = (
            site.post("do", {"action": action, "input": {}, "space": SPACE, "language": each}).json()["result"]
            for each in ("en_US", "zh_Hans")
        )
        return english, chinese

    english, chinese = both("profile show")
    assert chinese["session"]["notes"] == english["session"]["notes"] == "no embedder is configured"
    for action in ("export", "audit export"):
        english, chinese = both(action)
        assert english["audit"] == chinese["audit"][: len(english["audit"])]
        assert chinese.get("profiles") == english.get("profiles")


def test_nonsense_given_to_any_action_is_answered_with_an_error_of_ours(site: Site) -> None:
    site.memory.configure("consolidation_enabled", True)
    seen = set()

    def ask(request: tuple[str, dict[str, Any]]) -> None:
        answer = site.post("do", {"action": request[0], "input": request[1], "space": SPACE, "language": "zh_Hans"})
        assert answer.status < 500 or answer.kind == "ModelError", (request, answer.body)
        seen.add(request[0])
        site.console.wait(5)
        for fence in site.memory.fences():
            site.memory.clear_fence(fence.id)

    for name in ACTIONS:
        ask((name, {each.name: "x" for each in fields_of(ACTIONS[name])}))
    settings(max_examples=500)(given(requests())(ask))()
    assert seen == ACTIONS.keys()
    failed = {job["error"]["kind"] for job in site.post("jobs", {}).json()["jobs"] if job["error"]}
    assert failed <= {"EmbedderError", "InvalidInput", "Conflict"}


def test_nonsense_given_to_any_endpoint_is_answered_with_an_error_of_ours(site: Site) -> None:
    names = ["action", "input", "space", "language", "kinds", "statuses", "name", "value"]

    @given(NONSENSE, st.sampled_from(["start", "do", "jobs", "changes", "option", "export", "session", "nothing", "", "../do"]))
    @settings(max_examples=60)
    def check(value: Any, endpoint: str) -> None:
        body = {"action": "list", "space": SPACE}
        spaces = [{**SPACE, name: value} for name in ("bot", "isolation", "speaker")] + [
            {**SPACE, "speaker": {"id": value, "name": value}}
        ]
        given = [value, *({**body, name: value} for name in names), *({**body, "space": space} for space in spaces)]
        for each in given:
            assert site.post(endpoint, each).status < 500, (each, endpoint)

    check()


def test_every_action_answers_not_found_for_what_another_space_holds(site: Site) -> None:
    """From each place that is not theirs; a new field that takes ids must be named here, a new action is covered at once."""
    site.memory.configure("consolidation_enabled", True)
    theirs = site.memory.space(ELSEWHERE, speaker=BOB)
    first, second = theirs.remember("their first"), theirs.remember("their second")
    site.memory.space(GROUP, speaker=ALICE).remember("mine")
    candidate = theirs.candidates.extract("I prefer tea.", force=True).candidates[0].id
    theirs.transfer.load_document("theirs", json.dumps([{"content": "their document"}]).encode())
    ids = {
        "id": first.id,
        "by": second.id,
        "audit_id": first.audit_id,
        "ids": [first.id],
        "proposal_id": "0" * 12,
        "document": "theirs",
    }
    more = {
        "edit": {"content": "mine"}, "edit-all": {"importance": 5}, "candidate accept": {"ids": [candidate]}, "erase": {"speaker": BOB.id},
        "candidate reject": {"ids": [candidate]}, "consolidate draft": {"model": "http:http://127.0.0.1:9#none"},
        "fence clear": {"id": site.memory.fence("theirs", theirs).id}, "why-not": {"query": "their first"},
    }  # fmt: skip
    nothing = {"why-not": "'code': 'not_found'"}  # said in an answer, not as an error
    inputs = {name: action.input.__dataclass_fields__ for name, action in ACTIONS.items()}
    assert {each for fields in inputs.values() for each in fields if each.endswith(("id", "ids"))} <= ids.keys() | {"speaker_id"}
    before = (theirs.list(ltm.Filter(statuses=ltm.STATUSES)), theirs.audit.list(), theirs.candidates.list())
    tried = 0
    for name, action in ACTIONS.items():
        given = {} if action.has_progress else {key: ids[key] for key in ids.keys() & inputs[name]} | more.get(name, {})
        if not given or action.on is not ltm.Space:
            continue
        tried += 1
        for other in ({}, {"isolation": "bot"}, {"bot": "b2"}, {"speaker": {"id": BOB.id, "name": "Bob"}}):
            answer = site.do(name, {**SPACE, **other}, **given)
            assert nothing[name] in str(answer.json()) if name in nothing else answer.kind == "NotFound", (name, other, answer.body)
    assert tried > 17
    assert (theirs.list(ltm.Filter(statuses=ltm.STATUSES)), theirs.audit.list(), theirs.candidates.list()) == before


def test_a_page_names_no_file_of_the_machine(site: Site, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    answers = {site.do("erase", everything=True, also=[str(tmp_path / name)]).body for name in ("empty", "none", "bot.db")}
    assert len(answers) == 1, "nor learns whether there is one"
    assert b"InvalidInput" in answers.pop()
    assert (tmp_path / "empty").stat().st_size == 0
    assert "also" not in str(site.post("start", {}).json()["actions"]["erase"]["fields"])
    done = [site.post("start", {}), site.do("erase", everything=True, prove=True), site.do("doctor"), site.do("stats")]
    assert all(each.status == 200 and str(tmp_path).encode() not in each.body for each in done)


def test_what_is_hostile_comes_back_as_it_was(site: Site) -> None:
    for text in [*HOSTILE, "名" * 1_000, "</script>", "a\u2028b", "{{x}}", "a\r\nSet-Cookie: x"]:
        id = site.do("remember", content=text, tags=["<b>"]).json()["result"]["id"]
        assert site.do("show", id=id).json()["result"]["content"] == text
    assert len(site.do("list", {**SPACE, "launcher_id": "<" * 1_000_000}).body) < 1_000


def test_the_audit_says_who_did_it_and_where(site: Site) -> None:
    site.do("remember", content="mine")
    site.do("remember", {**SPACE, "speaker": {"id": "u1", "name": "Alice"}}, content="hers")
    entries = site.memory.space(GROUP).audit.list().entries
    assert [(entry.via, entry.actor_id) for entry in entries] == [("console", "op1"), ("console", "op1")]


# --------------------------------------------------------------------------------- reading only

STATEMENTS = """INSERT INTO fence VALUES (1); DELETE FROM episode; UPDATE episode SET content = ''; DROP TABLE episode;
ATTACH 'x.db' AS x; PRAGMA writable_schema = 1; PRAGMA query_only = 0; PRAGMA journal_mode = DELETE; PRAGMA wal_checkpoint; VACUUM;
CREATE TEMP TABLE x (y); REINDEX; ANALYZE; SELECT load_extension('x'); INSERT INTO episode_fts (episode_fts) VALUES ('optimize')"""


def test_reading_only_changes_no_byte(start: Start, opened: Callable[..., ltm.Memory], tmp_path: Path) -> None:
    writer = opened(tmp_path / "bot.db")
    writer.configure("consolidation_enabled", True)
    mine = writer.space(GROUP, speaker=ALICE)
    one, other = mine.remember("the one"), mine.remember("the other")
    candidate = mine.candidates.extract("I prefer tea.", force=True).candidates[0].id
    site = start(opened(tmp_path / "bot.db", readonly=True))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if not path.name.endswith("-shm")}
    values = {
        "id": one.id, "by": other.id, "audit_id": one.audit_id, "ids": [one.id], "content": "x", "field": "name", "value": "x",
        "reason": "x", "name": "injection_budget", "text": "I prefer coffee.", "query": "one", "data": "[]", "everything": True,
        "document": "x", "proposal_id": "0" * 12, "importance": 3, "importance_min": 2, "start": "2026-01-01T00:00:00Z", "repair": True,
    }  # fmt: skip
    more = {
        "candidate accept": {"ids": [candidate]}, "candidate reject": {"ids": [candidate]}, "audit close": {"before": "2030-01-01"},
        "config set": {"value": "900"}, "fence clear": {"id": 1}, "doctor": {"repair": False},
    }  # fmt: skip
    absent = {"fence clear", "consolidate reject", "consolidate run", "consolidate draft"}  # looked for first, and not there
    for name, action in ACTIONS.items():
        given = {key: values[key] for key in values.keys() & action.input.__dataclass_fields__} | more.get(name, {})
        answer = site.do(name, {**SPACE, "speaker": {"id": "u1", "name": "Alice"}}, **given)
        if action.writes:
            assert answer.kind == "ReadOnly" or (name in absent and answer.status >= 400), (name, answer.body)
        else:
            assert answer.status == 200, (name, answer.body)
    assert site.do("doctor", repair=True).kind == "ReadOnly"
    assert site.post("export", {"space": SPACE}).whole
    assert site.post("start", {}).json()["read_only"] is True
    assert site.do("import", data="[]", dry_run=True).kind == "ReadOnly", "what is only tried is written and taken back"
    with site.memory._file.read() as db:
        for sql in STATEMENTS.split(";"):
            with pytest.raises(apsw.Error):
                db.execute(sql).fetchall()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if not path.name.endswith("-shm")} == before


# ------------------------------------------------------------------------------ jobs and exports


class Held(ltm.HashEmbedder):
    """An embedder that waits until it is let go, or fails."""

    def __init__(self, dim: int = 16, fails: bool = False) -> None:
        super().__init__(dim)
        self.go, self.fails = threading.Event(), fails

    def embed_passages(self, texts: Any) -> Any:
        if self.fails:
            raise ValueError("no /home/somebody/model.bin")
        self.go.wait(10)
        return super().embed_passages(texts)


def test_a_job_says_how_far_it_is_and_runs_once(site: Site) -> None:
    fill(site.memory, 100)
    site.memory.embedder = held = Held()
    id = site.do("embed").json()["job"]
    assert site.post("jobs", {}).json()["jobs"][0]["state"] == "running"
    assert site.do("embed").kind == "Conflict", "not twice at the same time"
    assert site.do("list").status == 200
    held.go.set()
    assert site.console.wait(10)
    job = site.post("jobs", {}).json()["jobs"][0]
    assert (job["id"], job["state"], job["done"], job["total"], job["result"]["done"]) == (id, "done", 100, 100, 100)
    job = site.job("import", data=json.dumps([{"id": f"e{n}", "content": f"imported {n}"} for n in range(1_200)]))
    assert (job["state"], job["done"], job["total"], job["result"]["episodes"]) == ("done", 1_200, 1_200, 1_200)
    job = site.job("import", data="nonsense")
    assert (job["state"], job["error"]["kind"], job["result"]) == ("failed", "InvalidInput", None)
    site.memory.embedder = Held(8, fails=True)
    job = site.job("embed")
    assert (job["state"], "model.bin" in job["error"]["message"], LEAK.search(str(job))) == ("failed", True, None)


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

    def broken(*given: Any) -> Iterator[Any]:
        yield from itertools.islice(real(*given), 2_000)
        raise ltm.Corrupt("the disk is gone")

    monkeypatch.setattr(ltm.Transfer, "_records", broken)
    answer = site.post("export", {"space": SPACE})
    assert (answer.status, answer.whole, b"disk" in answer.body) == (200, False, False)


# ------------------------------------------------------------------------- other processes, the end


@contextlib.contextmanager
def served(path: Path, *options: str, setting: str = "pass") -> Iterator[tuple[subprocess.Popen[str], Client]]:
    """A real `ltm serve` and a browser that opened its link. `setting`: Python that runs first."""
    script = f"import sys, ltm_console.web as web, ltm_console.cli as cli; {setting}; cli.main()"
    command = [sys.executable, "-c", script, "--db", str(path), "--embedder", "hash", "serve", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8") as process:
        try:
            assert process.stdout
            lines = [process.stdout.readline() for _ in range(3)]
            port, token = re.findall(r"http://127\.0\.0\.1:(\d+)/#token=(\S+)", lines[1])[0]
            client = Client(int(port), token)
            client.session = client.post("session", {"token": token}).json()["session"]
            yield process, client
        finally:
            process.kill()


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ltm_console", *arguments], capture_output=True, text=True, encoding="utf-8", timeout=30
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_a_file_in_use_and_stops_when_told_to(tmp_path: Path, number: int) -> None:
    path, link = tmp_path / "bot.db", tmp_path / "link"
    with ltm.open(path) as memory:
        fill(memory, 300)
        with served(path, "--token-file", str(link), "--actor", "me") as (process, one):
            assert link.read_text() == f"http://{one.host}/#token={one.token}\n"
            assert stat.S_IMODE(link.stat().st_mode) == 0o600
            two = Client(one.port, one.post("session", {"token": one.token}).json()["session"])
            seen = one.post("changes", {}).json()
            assert two.post("changes", {}).json() == seen
            memory.space(GROUP).remember("from another process")
            assert two.post("changes", {}).json() != seen
            assert one.do("remember", content="from the page").status == 200
            assert memory.space(GROUP).list(limit=1).total == 302
            assert memory.space(GROUP).audit.list(limit=1).entries[0].actor_id == "me"
            assert one.do("embed").status == 200
            with one.connect() as idle:
                idle.sendall(b"GET")
                process.send_signal(number)
                assert (*process.communicate(timeout=20), process.returncode) == ("stopped\n", "", 0)
    assert command("--db", str(path), "check").stdout == "sound\n"


def test_it_stops_although_a_client_takes_no_answer_and_a_job_does_not_end(tmp_path: Path) -> None:
    with ltm.open(tmp_path / "bot.db") as memory:
        fill(memory, 800, 8_000)  # more than a connection holds
    setting = "import ltm, time; ltm.HashEmbedder.embed_passages = lambda *given: time.sleep(60); web.STOP_SECONDS = 0.2"
    body = json.dumps({"space": SPACE})
    with served(tmp_path / "bot.db", setting=setting) as (process, client), client.connect() as talk:
        assert client.do("embed").status == 200
        talk.sendall(f"{client.head('export', len(body))}\r\n{body}".encode())
        assert talk.recv(100).startswith(b"HTTP/1.1 200")
        process.terminate()
        assert (*process.communicate(timeout=20), process.returncode) == ("stopped\n", "", 0)
    assert command("--db", str(tmp_path / "bot.db"), "check").stdout == "sound\n"


def test_what_cannot_be_served_is_said_in_one_line(site: Site, tmp_path: Path) -> None:
    path, none = str(tmp_path / "bot.db"), str(tmp_path / "none.db")
    for arguments, words in {
        (path, "serve", "--port", str(site.port)): "cannot listen on 127.0.0.1 port",
        (none, "serve"): "does not exist",
        (none, "serve", "--read-only"): "does not exist",
        (path, "serve", "--host", "0.0.0.0"): "--allow-remote",
        (path, "serve", "--token-file", str(tmp_path / "no" / "link")): "cannot be written",
    }.items():
        done = command("--db", *arguments)
        assert (done.returncode, done.stdout, done.stderr.count("\n"), words in done.stderr) == (1, "", 1, True), done
    assert not os.path.exists(none)


def test_served_for_reading_only(tmp_path: Path) -> None:
    with ltm.open(tmp_path / "bot.db") as memory:
        fill(memory, 5)
    before = (tmp_path / "bot.db").read_bytes()
    with served(tmp_path / "bot.db", "--read-only") as (process, client):
        assert client.post("start", {}).json()["file"] == "bot.db"
        assert client.do("remember", content="x").kind == "ReadOnly"
        assert client.do("embed").kind == "ReadOnly"
        assert len(client.do("list").json()["result"]["episodes"]) == 5
        process.terminate()
        assert process.wait(10) == 0
    assert (tmp_path / "bot.db").read_bytes() == before
