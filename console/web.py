"""`ltm serve`: the console's page over HTTP, for the person at this machine. On http.server; what it asks is answered by api.py.

Invariants, which tests/test_web.py holds by raw sockets: nothing is answered to a request whose form leaves room for two
readings, whose Host or Origin is not ours, or which brings no token; no file is named by a request (static files are those that
were read at the start); every answer closes its connection; a slow, large or frequent client costs no other client anything but
its share. Binding beyond loopback needs `remote=True`.
"""

from __future__ import annotations

import collections
import hmac
import http.server
import io
import ipaddress
import json
import logging
import re
import secrets
import signal
import socket
import threading
import time
from importlib import resources
from typing import Any

import ltm

from .api import Console
from .language import known, language, translated

log = logging.getLogger("ltm.console")

HEAD_BYTES, HEAD_LINES = 16_384, 64
BODY_BYTES = 1 << 20
IMPORT_BYTES = 64 << 20  # the JSON of an export
HEAD_SECONDS, BODY_SECONDS = 10.0, 60.0
CHUNK_BYTES = 64 << 10
STOP_SECONDS = 5.0  # for running jobs at the end
CONNECTIONS = 256  # at once; more are told to come back
RATE, BURST = 100.0, 400.0  # requests a second, over all clients, and how many may come at once
FAILURES, FAILURE_SECONDS = 20, 60.0  # wrong tokens before all are refused, and for how long
SESSIONS = 64  # browsers that hold a session; the oldest is let go
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'"
)
ALWAYS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
    "Connection": "close",
}
_HEADER = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[ \t]*[\t\x20-\x7e\x80-\xff]*\r?\n")
_REQUEST = re.compile(rb"(GET|POST) /[\x21-\x7e]* HTTP/1\.[01]\r?\n")
_ONCE = ("host", "origin", "content-length", "content-type", "authorization")


def static_files() -> dict[str, tuple[str, bytes]]:
    """Every file of the page by its path in a URL, with its type. Read once: a request chooses among these and nothing else."""
    found = {}

    def walk(folder: Any, path: str) -> None:
        for entry in folder.iterdir():
            if entry.is_dir():
                walk(entry, f"{path}{entry.name}/")
            elif (kind := TYPES.get(entry.name[entry.name.rfind(".") :])) is not None:
                found[path + entry.name] = (f"{kind}; charset=utf-8", entry.read_bytes())

    walk(resources.files(__package__) / "static", "/")
    found["/"] = found["/index.html"]
    return found


class Refused(Exception):
    """A request that is not carried out: its status and why."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Gate:
    """Who may ask, and how often: the token, the sessions it was exchanged for, the rate."""

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(32)
        self._sessions: collections.OrderedDict[str, None] = collections.OrderedDict()
        self._failed: collections.deque[float] = collections.deque(maxlen=FAILURES)
        self._left, self._at = BURST, time.monotonic()
        self._lock = threading.Lock()

    def spend(self) -> None:
        """Count a request. Raises Refused when there are too many."""
        with self._lock:
            now = time.monotonic()
            self._left, self._at = min(BURST, self._left + (now - self._at) * RATE), now
            if self._left < 1:
                raise Refused(429, "too many requests; wait a moment")
            self._left -= 1

    def exchange(self, token: object) -> str:
        """A session for the token. Raises Refused."""
        self._check_failures()
        if not isinstance(token, str) or not hmac.compare_digest(token.encode(), self.token.encode()):
            self._fail("the token is not right; open the link that `ltm serve` printed")
        session = secrets.token_urlsafe(32)
        with self._lock:
            self._sessions[session] = None
            while len(self._sessions) > SESSIONS:
                self._sessions.popitem(last=False)
        return session

    def check(self, header: str) -> None:
        """Let a request with the header of a session pass. Raises Refused."""
        self._check_failures()
        given = header.removeprefix("Bearer ").encode()
        with self._lock:
            known = [each.encode() for each in self._sessions]
        if not header.startswith("Bearer ") or not any(hmac.compare_digest(given, each) for each in known):
            self._fail("no session; open the link that `ltm serve` printed")

    def _check_failures(self) -> None:
        now = time.monotonic()
        if len(self._failed) == FAILURES and now - self._failed[0] < FAILURE_SECONDS:
            raise Refused(429, "too many wrong tokens; wait a minute")

    def _fail(self, message: str) -> None:
        self._failed.append(time.monotonic())
        raise Refused(401, message)


class Server(http.server.ThreadingHTTPServer):
    """The console on one address. `url` holds the token; `remote`: other addresses than loopback are meant."""

    daemon_threads = True
    request_queue_size = 256
    allow_reuse_address = True

    def __init__(self, console: Console, *, host: str = "127.0.0.1", port: int = 0, remote: bool = False) -> None:
        if not remote and not _is_loopback(host):
            raise ltm.InvalidInput(f"{host} is not this machine alone; say --allow-remote if others are meant to reach it")
        self.console, self.gate, self.remote, self.files = console, Gate(), remote, static_files()
        self._slots = threading.BoundedSemaphore(CONNECTIONS)
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            super().__init__((host, port), Handler)
        except OSError as error:
            raise ltm.StorageError(f"cannot listen on {host} port {port}: {error.strerror or error}") from error
        self.port: int = self.server_address[1]
        self._names = {f"{name}:{self.port}" for name in ("127.0.0.1", "localhost", "[::1]", f"[{host}]" if ":" in host else host)}

    @property
    def url(self) -> str:
        """What to open, once for each browser."""
        host = str(self.server_address[0])
        host = "127.0.0.1" if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
        return f"http://{host}:{self.port}/#token={self.gate.token}"

    def is_ours(self, host: str) -> bool:
        """Whether a Host is one that leads here. A name that somebody else's DNS leads here is not; an address cannot be led."""
        if host in self._names:
            return True
        name, _, port = host.rpartition(":")
        return self.remote and port == str(self.port) and _is_address(name.strip("[]"))

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for a connection, unless there are too many."""
        if not self._slots.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._slots.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer a connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that broke is nobody's fault; the rest is logged."""
        log.debug("a connection ended", exc_info=True)


def _is_loopback(host: str) -> bool:
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def serve(server: Server) -> None:
    """Serve until SIGINT or SIGTERM; running jobs get some seconds to come to an end."""
    stop = threading.Event()
    kept = {number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, name="ltm-serve")
    thread.start()
    try:
        while not stop.wait(0.2):
            pass
    finally:
        server.shutdown()
        thread.join()
        server.console.wait(STOP_SECONDS)
        for number, handler in kept.items():
            signal.signal(number, handler)


class Handler(http.server.BaseHTTPRequestHandler):
    """One connection, one request."""

    server: Server
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "ltm", ""
    timeout = HEAD_SECONDS

    def handle(self) -> None:
        """Read a request strictly, answer it, close."""
        self.close_connection = True
        self.requestline, self.request_version, self.command = "", "HTTP/1.1", ""
        try:
            self._read_head()
            self.server.gate.spend()
            self._route()
        except Refused as refused:
            error = {"kind": _KINDS.get(refused.status, "Refused"), "message": translated(str(refused))}
            self._send(refused.status, {"error": error})
        except (TimeoutError, ConnectionError):
            pass
        except Exception as error:
            self._send(*self.server.console.refusal(error))

    # -- reading

    def _read_head(self) -> None:
        """The request line and headers, each of a form that has one reading. Raises Refused."""
        deadline = time.monotonic() + HEAD_SECONDS
        line = self._line(deadline, HEAD_BYTES)
        if not _REQUEST.fullmatch(line):
            raise Refused(400, "this is no request that is understood here")
        head: list[bytes] = []
        size = len(line)
        while (each := self._line(deadline, HEAD_BYTES - size)) not in (b"\r\n", b"\n"):
            size += len(each)
            if len(head) == HEAD_LINES or not _HEADER.fullmatch(each):
                raise Refused(400, "the headers of the request are malformed or too many")
            head.append(each)
        whole, self.raw_requestline = self.rfile, line
        self.rfile = io.BytesIO(b"".join(head) + b"\r\n")
        try:
            if not self.parse_request():
                raise Refused(400, "this is no request that is understood here")
        finally:
            self.rfile = whole
        self.close_connection = True
        for name in _ONCE:
            if len(self.headers.get_all(name, [])) > 1:
                raise Refused(400, f"the header {name} is given twice")
        if self.headers.get("Transfer-Encoding") is not None or self.headers.get("Upgrade") is not None:
            raise Refused(400, "a request says its length by Content-Length alone")

    def _line(self, deadline: float, limit: int) -> bytes:
        """One line, read as it comes: a client that sends a byte now and then has no more time than any other."""
        line = b""
        while not line.endswith(b"\n"):
            chunk = self._peek(deadline)
            end = chunk.find(b"\n") + 1 or len(chunk)
            line += self.rfile.read(end)
            if len(line) > limit:
                raise Refused(431, "the head of the request is too long")
        return line

    def _peek(self, deadline: float) -> bytes:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.connection.settimeout(left)
        chunk: bytes = self.rfile.peek(1)  # type: ignore[attr-defined]
        if not chunk:
            raise ConnectionError
        return chunk

    def _body(self, limit: int) -> bytes:
        text = self.headers.get("Content-Length", "")
        if not re.fullmatch("[0-9]{1,12}", text):
            raise Refused(411, "a request says how long its body is")
        size = int(text)
        if size > limit:
            raise Refused(413, f"a request of {size:,} bytes is too large; the limit is {limit:,}")
        deadline, parts, left = time.monotonic() + BODY_SECONDS, [], size
        while left:
            part = self.rfile.read(min(left, len(self._peek(deadline))))
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    # -- answering

    def _route(self) -> None:
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        if not self.server.is_ours(host):
            raise Refused(403, "this name does not lead here")
        if origin is not None and origin != f"http://{host}":
            raise Refused(403, "this page is asked by its own origin alone")
        if self.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none"):
            raise Refused(403, "this page is asked by its own origin alone")
        path = self.path.partition("?")[0]
        if self.command == "GET":
            self._get(path)
        elif not path.startswith("/api/"):
            raise Refused(405, "only the page's own calls are posted")
        else:
            self._post(path.removeprefix("/api/"))

    def _get(self, path: str) -> None:
        if self.headers.get("Content-Length", "0") != "0":
            raise Refused(400, "a GET has no body")
        found = self.server.files.get(path)
        if found is None:
            raise Refused(404, "there is no such page")
        self._send(200, found[1], found[0])

    def _post(self, endpoint: str) -> None:
        if self.headers.get("Content-Type", "").partition(";")[0].strip() != "application/json":
            raise Refused(415, "a call is JSON")
        if endpoint != "session":
            self.server.gate.check(self.headers.get("Authorization", ""))
        raw = self._body(IMPORT_BYTES if endpoint == "do" else BODY_BYTES)
        try:
            body = json.loads(raw)
        except (ValueError, RecursionError):
            raise Refused(400, "the body is not JSON") from None
        if isinstance(body, dict) and isinstance(asked := body.get("language"), str):
            language.set(known(asked))  # for this thread, whose only request this is
        if endpoint == "session":
            self._send(200, {"session": self.server.gate.exchange(body.get("token") if isinstance(body, dict) else None)})
        elif endpoint == "export":
            self._export(body)
        else:
            self._send(*self.server.console.answer(endpoint, body))

    def _export(self, body: Any) -> None:
        """Stream an export, in chunks: one that breaks off is told from one that ended."""
        given = body if isinstance(body, dict) else {}
        desk = self.server.console.space(given.get("space")).transfer
        rows = _Rows(self)
        kinds, statuses = given.get("kinds") or ltm.EXPORT_KINDS, given.get("statuses") or ltm.STATUSES
        try:
            desk.write(rows, kinds=kinds, statuses=statuses)  # type: ignore[arg-type]
            rows.end()
        except Exception:
            if not rows.begun:
                raise
            log.warning("an export broke off", exc_info=True)

    def _send(self, status: int, data: dict[str, Any] | bytes, kind: str = "application/json; charset=utf-8") -> None:
        raw = data if isinstance(data, bytes) else json.dumps(data, ensure_ascii=False).encode("utf-8", "replace")
        try:
            self.connection.settimeout(BODY_SECONDS)
            self._begin(status, kind, len(raw))
            self.wfile.write(raw)
        except (TimeoutError, ConnectionError):
            pass

    def _begin(self, status: int, kind: str, size: int | None) -> None:
        self.send_response(status)
        for name, value in ALWAYS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header(*(("Transfer-Encoding", "chunked") if size is None else ("Content-Length", str(size))))
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing by default: what is asked may be private."""
        log.debug(format, *args)


_KINDS = {401: "Unauthorized", 404: "NotFound", 413: "TooLarge", 429: "TooMany"}


class _Rows:
    """A text stream into an answer whose length is not known before."""

    def __init__(self, handler: Handler) -> None:
        self._handler, self.begun = handler, False
        self._kept = bytearray()

    def write(self, text: str) -> int:
        """Take some text; send what has come together."""
        self._kept += text.encode("utf-8", "replace")
        if len(self._kept) >= CHUNK_BYTES:
            self._flush()
        return len(text)

    def end(self) -> None:
        """Send the rest, and that it was all."""
        self._flush()
        self._handler.wfile.write(b"0\r\n\r\n")

    def _flush(self) -> None:
        if not self.begun:
            self.begun = True
            self._handler.connection.settimeout(BODY_SECONDS)
            self._handler._begin(200, "application/x-ndjson; charset=utf-8", None)
        if self._kept:
            self._handler.wfile.write(b"%x\r\n%b\r\n" % (len(self._kept), bytes(self._kept)))
            self._kept.clear()
