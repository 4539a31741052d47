"""`ltm serve`: the console's page over HTTP, for the person at this machine. On http.server; what it asks is answered by api.py.

Invariants, which tests/test_web.py holds by raw sockets: nothing is answered to a request whose form leaves room for two
readings, whose Host or Origin is not ours, or which brings no token; no file is named by a request (static files are those that
were read at the start); every answer closes its connection; a client that is slow, large or frequent and has no session costs
those that have one nothing. Binding beyond loopback needs `remote=True`.

Of http.server only the loop and the writing of heads are used. Its reading of a request is not: the e-mail parser behind it
raises on some headers, and takes "+5", folded lines and bare CR.
"""

from __future__ import annotations

import collections
import contextlib
import hmac
import http.server
import ipaddress
import json
import logging
import os
import re
import secrets
import signal
import socket
import socketserver
import threading
import time
import typing
from importlib import resources
from typing import Any

import ltm

from .api import Console
from .language import known, language, translated

log = logging.getLogger("ltm.console")

HEAD_BYTES, HEAD_LINES = 16_384, 64
TOKEN_BYTES = 4_096  # of the one body that is read from a stranger
BODY_BYTES = 1 << 20
IMPORT_BYTES = 64 << 20  # the JSON of an export
HEAD_SECONDS, BODY_SECONDS = 10.0, 60.0
CHUNK_BYTES = 64 << 10
LINGER_SECONDS = 1.0  # for what a client still sends when it has its answer
STOP_SECONDS = 5.0  # for running jobs at the end
CONNECTIONS = 256  # at once; for more, those that have shown no session make room, the oldest first
RATE, BURST = 100.0, 400.0  # requests a second of each session, and of all that have none; how many may come at once
WRONG = 20.0  # requests that a wrong token or session counts as
SESSIONS = 64  # browsers that hold a session; the one that asked longest ago is let go
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
# One star after the colon: with a second one for the blanks, 16 KB of blanks and a NUL took four seconds.
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t\x20-\x7e\x80-\xff]*)\r\n")
_REQUEST = re.compile(rb"(GET|POST) (/[\x21-\x7e]*) HTTP/1\.1\r\n")
_ONCE = {"host", "origin", "sec-fetch-site", "content-length", "content-type", "authorization", "expect"}


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


class Bucket:
    """Requests that may come: BURST at once, then RATE a second."""

    def __init__(self) -> None:
        self._left, self._at, self._lock = BURST, time.monotonic(), threading.Lock()

    def spend(self, requests: float = 1.0) -> None:
        """Count a request. Raises Refused when there were too many."""
        with self._lock:
            now = time.monotonic()
            self._left, self._at = min(BURST, self._left + (now - self._at) * RATE), now
            if self._left < 1:
                raise Refused(429, "too many requests; wait a moment")
            self._left -= requests


class Gate:
    """Who may ask, and how often: the token, the sessions it was exchanged for, the rate of each and of all strangers.

    A wrong token costs more than other requests but blocks nobody for long: 256 random bits are not guessed, and whoever could
    lock the gate would do so.
    """

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(32)
        self.strangers = Bucket()
        self._sessions: collections.OrderedDict[str, Bucket] = collections.OrderedDict()
        self._lock = threading.Lock()

    def exchange(self, token: object) -> str:
        """A session for the token. Raises Refused."""
        if not isinstance(token, str) or not _is_same(token, self.token):
            self.refuse("the token is not right; open the link that `ltm serve` printed")
        session = secrets.token_urlsafe(32)
        with self._lock:
            self._sessions[session] = Bucket()
            while len(self._sessions) > SESSIONS:
                self._sessions.popitem(last=False)
        return session

    def find_session(self, header: str) -> Bucket | None:
        """What a session may spend, from the header that names it."""
        if not header.startswith("Bearer "):
            return None
        given = header.removeprefix("Bearer ")
        with self._lock:
            found = next((session for session in self._sessions if _is_same(given, session)), None)
            if found is not None:
                self._sessions.move_to_end(found)
            return self._sessions.get(found or "")

    def refuse(self, message: str) -> typing.NoReturn:
        """Count a wrong token or session. Raises Refused."""
        self.strangers.spend(WRONG)
        raise Refused(401, message)


def _is_same(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), secret.encode())


class Server(http.server.ThreadingHTTPServer):
    """The console on one address. `url` holds the token; `remote`: other addresses than loopback are meant."""

    daemon_threads = True
    request_queue_size = 256
    allow_reuse_address = os.name == "posix"  # elsewhere it lets two programs listen on one port

    def __init__(self, console: Console, *, host: str = "127.0.0.1", port: int = 0, remote: bool = False) -> None:
        if not remote and not _is_loopback(host):
            raise ltm.InvalidInput(f"{host} is not this machine alone; say --allow-remote if others are meant to reach it")
        self.console, self.gate, self.remote, self.files = console, Gate(), remote, static_files()
        self._open: dict[Any, bool] = {}  # connections, the oldest first, and whether each has shown a session
        self._closed = threading.Condition(threading.RLock())
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            super().__init__((host, port), Handler)
        except OSError as error:
            raise ltm.StorageError(f"cannot listen on {host} port {port}: {error.strerror or error}") from error
        self.port: int = self.server_address[1]
        self._names = {"127.0.0.1", "localhost", "[::1]", f"[{host}]" if ":" in host else host}

    @property
    def url(self) -> str:
        """What to open, once for each browser."""
        host = str(self.server_address[0])
        host = "127.0.0.1" if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
        return f"http://{host}:{self.port}/#token={self.gate.token}"

    def is_ours(self, host: str) -> bool:
        """Whether a Host is one that leads here. A name that somebody else's DNS leads here is not; an address cannot be led."""
        found = re.fullmatch(r"(\[[0-9a-f:.]+\]|[^:\[\]]+)(?::([0-9]+))?", host)
        if found is None or (found[2] or "80") != str(self.port):  # browsers leave out 80
            return False
        return found[1] in self._names or (self.remote and _is_address(found[1].strip("[]")))

    def server_bind(self) -> None:
        """Bind, without asking a name server for a name that nothing here uses."""
        socketserver.TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for a connection."""
        with self._closed:
            if len(self._open) >= CONNECTIONS and not self._make_room():
                self.shutdown_request(request)
                return
            self._open[request] = False
        super().process_request(request, client_address)

    def _make_room(self) -> bool:
        """Cut off the oldest connection that has shown no session. Its thread wakes up and ends."""
        oldest = next((each for each, known in self._open.items() if not known), None)
        if oldest is None:
            return False
        del self._open[oldest]
        with contextlib.suppress(OSError):
            oldest.shutdown(socket.SHUT_RDWR)
        return True

    def admit(self, request: Any) -> None:
        """Note that a connection has shown a session: it is not cut off for others."""
        with self._closed:
            if request in self._open:
                self._open[request] = True

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        with self._closed:
            self._open.pop(request, None)
            self._closed.notify_all()
        super().shutdown_request(request)

    def settle(self, seconds: float) -> bool:
        """Cut off strangers and let the others have their answers; whether they had them in that time."""
        with self._closed:
            while self._make_room():
                pass
            return self._closed.wait_for(lambda: not self._open, seconds)

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
        server.settle(STOP_SECONDS)
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
        self.requestline, self.request_version, self.command = "", "HTTP/1.1", ""
        self.given: dict[str, str] = {}
        try:
            self._read_head()
            # For this thread, whose only request this is; what the page speaks stands in a body that is not read yet.
            language.set(known(self.given.get("accept-language", "")))
            self.session = self.server.gate.find_session(self.given.get("authorization", ""))
            (self.session or self.server.gate.strangers).spend()
            self._route()
        except (TimeoutError, ConnectionError):
            return
        except Exception as error:
            self._refuse(error)
        self._linger()

    def _refuse(self, error: Exception) -> None:
        if isinstance(error, Refused):
            answer = {"kind": _KINDS.get(error.status, "Refused"), "message": translated(str(error))}
            self._send(error.status, {"error": answer})
        else:
            self._send(*self.server.console.refusal(error))

    # -- reading

    def _read_head(self) -> None:
        """The request line and headers, each of a form that has one reading. Raises Refused."""
        deadline = time.monotonic() + HEAD_SECONDS
        line = self._line(deadline, HEAD_BYTES)
        if not (asked := _REQUEST.fullmatch(line)):
            raise Refused(400, "this is no request that is understood here")
        self.command, self.path = (part.decode("ascii") for part in asked.groups())
        size, lines = len(line), 0
        while (line := self._line(deadline, HEAD_BYTES - size)) != b"\r\n":
            size, lines = size + len(line), lines + 1
            if lines > HEAD_LINES or not (found := _HEADER.fullmatch(line)):
                raise Refused(400, "the headers of the request are malformed or too many")
            name, value = found[1].decode("ascii").lower(), found[2].strip(b" \t").decode("latin-1")
            if name in self.given and name in _ONCE:
                raise Refused(400, f"the header {name} is given twice")
            self.given[name] = value
        if "transfer-encoding" in self.given or "upgrade" in self.given:
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
        text = self.given.get("content-length", "")
        if not re.fullmatch("[0-9]{1,12}", text):
            raise Refused(411, "a request says how long its body is")
        size = int(text)
        if size > limit:
            raise Refused(413, f"a request of {size:,} bytes is too large; the limit is {limit:,}")
        if self.given.get("expect", "").lower() == "100-continue":
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        deadline, parts, left = time.monotonic() + BODY_SECONDS, [], size
        while left:
            part = self.rfile.read(min(left, len(self._peek(deadline))))
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def _linger(self) -> None:
        """Wait for the client to close. Closing over bytes that were not read would reset the connection under the answer."""
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_WR)
            deadline = time.monotonic() + LINGER_SECONDS
            while True:
                self.rfile.read(len(self._peek(deadline)))

    # -- answering

    def _route(self) -> None:
        host, origin = self.given.get("host", ""), self.given.get("origin")
        if not self.server.is_ours(host):
            raise Refused(403, "this name does not lead here")
        if origin is not None and origin != f"http://{host}":
            raise Refused(403, "this page is asked by its own origin alone")
        if self.given.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            raise Refused(403, "this page is asked by its own origin alone")
        path = self.path.partition("?")[0]
        if self.command == "GET":
            self._get(path)
        elif not path.startswith("/api/"):
            raise Refused(405, "only the page's own calls are posted")
        else:
            self._post(path.removeprefix("/api/"))

    def _get(self, path: str) -> None:
        if self.given.get("content-length", "0") != "0":
            raise Refused(400, "a GET has no body")
        found = self.server.files.get(path)
        if found is None:
            raise Refused(404, "there is no such page")
        self._send(200, found[1], found[0])

    def _post(self, endpoint: str) -> None:
        if self.given.get("content-type", "").partition(";")[0].strip() != "application/json":
            raise Refused(415, "a call is JSON")
        if endpoint == "session":
            body = self._json(TOKEN_BYTES)
            self._send(200, {"session": self.server.gate.exchange(body.get("token") if isinstance(body, dict) else None)})
            return
        if self.session is None:
            self.server.gate.refuse("no session; open the link that `ltm serve` printed")
        self.server.admit(self.request)
        body = self._json(IMPORT_BYTES if endpoint == "do" else BODY_BYTES)
        if endpoint == "export":
            self._export(body)
        else:
            self._send(*self.server.console.answer(endpoint, body))

    def _json(self, limit: int) -> Any:
        try:
            body = json.loads(self._body(limit).decode("utf-8"), object_pairs_hook=_once, parse_constant=_no_number)
        except (ValueError, RecursionError):
            raise Refused(400, "the body is not JSON") from None
        if isinstance(body, dict) and isinstance(asked := body.get("language"), str):
            language.set(known(asked))
        return body

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


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, unless a name stands in it twice: which of the two counts is read differently by others."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


def _no_number(name: str) -> typing.NoReturn:
    raise ValueError


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
