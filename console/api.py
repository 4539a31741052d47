"""What the page of the console may ask, whatever carries it: `ltm serve` (web.py) or the page of the LangBot plugin.

One class, `Console`, over an open memory. A request is an endpoint and a JSON object, an answer a status and a JSON object; every
operation goes through the table of actions. No HTTP, no SQL. An error answer names no path and no line of ours.
"""

from __future__ import annotations

import dataclasses
import itertools
import logging
import os
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import ltm

from .actions import ACTIONS, Action, Field, fields_of, parse, to_data
from .language import ENGLISH, say, speaking, translated

log = logging.getLogger("ltm.console")

STATUSES = {
    "InvalidInput": 400, "SecretDetected": 400, "NotFound": 404, "Conflict": 409, "Fenced": 423, "ReadOnly": 403, "Busy": 503,
    "StorageError": 507, "EmbedderError": 502, "ModelError": 502, "Corrupt": 500, "NotAMemory": 500, "SchemaTooNew": 500,
}  # fmt: skip
JOBS = 20  # that are remembered
SENTENCES = frozenset(  # what the engine says of a result, by the name of its place
    {"notes", "detail", "words", "reason", "truncated", "error", "problems", "help", "confirm", "message", "summary"}
)
FILES = frozenset({"export", "audit export"})  # whose result is a file: the same one in every language

_FOLDERS = re.compile(r"""(?<![\w:/.\\])(?:[A-Za-z]:)?[/\\](?:[^\s/\\:'"]+[/\\])+""")  # before a file's name; not within a URL


class Options(Protocol):
    """Tunables of the host that the page may show and change, beside the settings of the file."""

    def shown(self) -> dict[str, dict[str, Any]]:
        """Each option as {value, default, least, most, type, choices, words}."""

    def change(self, name: str, value: Any) -> Any:
        """Set one; returns the value. Raises LtmError."""


@dataclasses.dataclass
class Job:
    """An action that goes on while the page asks how far it is."""

    id: str
    action: str
    started: str
    state: str = "running"
    done: int = 0
    total: int = 0
    result: Any = None
    error: dict[str, str] | None = None

    def advance(self, done: int, total: int) -> None:
        """Note how far it is."""
        self.done, self.total = done, total


class Console:
    """Answers the page. `actor`: who acts, for the audit; `host`: serve or langbot; `options`: of the host, or None."""

    def __init__(self, memory: ltm.Memory, *, host: str, actor: str = "", options: Options | None = None) -> None:
        self.memory, self.host, self.actor, self.options = memory, host, actor, options
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._numbers, self._lock = itertools.count(1), threading.Lock()
        self._running: dict[threading.Thread, tuple[str, ltm.Scope | None]] = {}
        self._endpoints: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            "start": self._start, "do": self._do, "jobs": self._list_jobs, "changes": self._changes, "option": self._option,
        }  # fmt: skip

    def answer(self, endpoint: str, body: Any) -> tuple[int, dict[str, Any]]:
        """A status and an object for any request; what is wrong is answered, never raised."""
        given = body if isinstance(body, dict) else {}
        language = given.get("language")
        with speaking(language if isinstance(language, str) else ENGLISH):
            try:
                if not isinstance(body, dict):
                    raise ltm.InvalidInput("a request is a JSON object")
                if endpoint not in self._endpoints:
                    raise ltm.NotFound("there is no such endpoint")
                return 200, self._endpoints[endpoint](given)
            except Exception as error:
                return self.refusal(error)

    def refusal(self, error: BaseException) -> tuple[int, dict[str, Any]]:
        """An error as an answer: ours in words, without the path of the file; anything else is a bug, and told to the log alone."""
        if not isinstance(error, ltm.LtmError):
            log.error("a request failed", exc_info=error)
            return 500, {"error": {"kind": "Internal", "message": say("This did not work; the log says why.")}}
        kind = type(error).__name__
        return STATUSES.get(kind, 500), {"error": {"kind": kind, "message": self._without_path(translated(str(error)))}}

    def _without_path(self, text: str) -> str:
        """The text with names of files alone: of the memory, whose folder may hold blanks, and of what a model or system names."""
        path = self.memory.path
        text = text.replace(path, os.path.basename(path)).replace(os.path.dirname(os.path.abspath(path)) + os.sep, "")
        return _FOLDERS.sub("", text)

    def space(self, given: Any) -> ltm.Space:
        """The space that a request names; complete, or InvalidInput. Its writes are the console's."""
        if not isinstance(given, dict):
            raise ltm.InvalidInput("choose a memory space first")
        parts = {name: given.get(name) for name in ("bot", "launcher_type", "launcher_id")}
        if not all(isinstance(part, str) for part in parts.values()):
            raise ltm.InvalidInput("a memory space is named by bot, launcher_type and launcher_id")
        scope = ltm.Scope(**parts, isolation=given.get("isolation", "session"))  # type: ignore[arg-type]
        speaker = given.get("speaker")
        if speaker is not None and not isinstance(speaker, dict):
            raise ltm.InvalidInput("a speaker is named by id and name")
        who = ltm.Speaker(speaker.get("id", ""), speaker.get("name", "")) if speaker else None
        return self.memory.space(scope, speaker=who, via="console", actor=self.actor or "console")

    # -- endpoints

    def _start(self, given: Mapping[str, Any]) -> dict[str, Any]:
        defaults = ltm.SETTINGS
        settings = {
            name: {
                "value": value,
                "default": defaults[name].default,
                "least": defaults[name].least,
                "most": defaults[name].most,
                "type": "boolean" if isinstance(defaults[name].default, bool) else "integer",
                "words": translated(defaults[name].words),
            }
            for name, value in self.memory.settings().items()
        }
        weights = {each.name: getattr(self.memory.weights, each.name) for each in dataclasses.fields(ltm.Weights)}
        return {
            "version": ltm.__version__,
            "host": self.host,
            "file": os.path.basename(self.memory.path),
            "read_only": self.memory.readonly,
            "actions": {name: _described(action) for name, action in ACTIONS.items()},
            "settings": settings,
            "options": self.options.shown() if self.options else None,
            "weights": weights,
            "signals": list(ltm.SIGNALS),
            "statuses": list(ltm.STATUSES),
            "claim_types": list(ltm.CLAIM_TYPES),
        }

    def _do(self, given: Mapping[str, Any]) -> dict[str, Any]:
        name = given.get("action", "")
        asked = parse(name, given.get("input") or {})
        action = ACTIONS[name]
        if any(getattr(asked, each.name) for each in fields_of(action) if _is_file(each)):
            raise ltm.InvalidInput("a page names no file of this machine; use the command line")
        model: Any = getattr(asked, "model", None)
        if model and self.host != "serve":  # or a page could send the host's machine to any address
            raise ltm.InvalidInput("a page inside a host names no model; configure one there")
        on: Any = self.space(given.get("space")) if action.on is ltm.Space else self.memory
        scope = on.scope if action.on is ltm.Space else None
        if action.has_progress:
            return {"job": self._begin(action, on, asked, scope)}
        result = to_data(action.run(on, asked), scope)
        return {"result": result if name in FILES else localised(result)}

    def _list_jobs(self, given: Mapping[str, Any]) -> dict[str, Any]:
        with self._lock:
            return {"jobs": [localised(dataclasses.asdict(job)) for job in reversed(self._jobs.values())]}

    def _changes(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return {"version": self.memory.changes()}

    def _option(self, given: Mapping[str, Any]) -> dict[str, Any]:
        if self.options is None:
            raise ltm.NotFound("this host has no options of its own")
        return {"value": self.options.change(str(given.get("name", "")), given.get("value"))}

    # -- jobs

    def _begin(self, action: Action, on: Any, asked: Any, scope: ltm.Scope | None) -> str:
        if self.memory.readonly and action.writes:
            raise ltm.ReadOnly("the file is open for reading only")
        job = Job(str(next(self._numbers)), action.name, ltm.to_iso(time.time_ns() // 1000))

        def work() -> None:
            try:
                job.result = to_data(action.run(on, asked, progress=job.advance), scope)
                job.state = "done"
            except Exception as error:
                job.error = self.refusal(error)[1]["error"]
                job.state = "failed"
            finally:
                self._running.pop(threading.current_thread(), None)

        thread = threading.Thread(target=work, name=f"ltm-job-{job.id}", daemon=True)
        with self._lock:
            running = list(self._running.values())
            if (action.name, scope) in running:
                raise ltm.Conflict(f"{action.name} is running already; wait until it has ended")
            if len(running) >= JOBS:
                raise ltm.Busy("too many jobs are running; wait until one has ended")
            self._jobs[job.id] = job
            for id in [id for id, each in self._jobs.items() if each.state != "running"][: max(0, len(self._jobs) - JOBS)]:
                del self._jobs[id]
            self._running[thread] = (action.name, scope)
        thread.start()
        return job.id

    def wait(self, seconds: float) -> bool:
        """Let running jobs end; whether they did in that time."""
        deadline = time.monotonic() + seconds
        for thread in list(self._running):
            thread.join(max(0.0, deadline - time.monotonic()))
        return not self._running


def localised(value: Any) -> Any:
    """A result with the sentences that the engine made of it in the language of the request.

    Its notes are a list; a text of that name is the notes of a profile, and somebody's own.
    """
    if isinstance(value, dict):
        said = SENTENCES - {"notes"} if isinstance(value.get("notes"), str) else SENTENCES
        return {key: _sentences(each) if key in said else localised(each) for key, each in value.items()}
    return [localised(each) for each in value] if isinstance(value, list) else value


def _sentences(value: Any) -> Any:
    if isinstance(value, str):
        return translated(value)
    return [_sentences(each) for each in value] if isinstance(value, list) else localised(value)


def _is_file(field: Field) -> bool:
    """Whether an input names a file of this machine. A page may not: it would be opened, and made a memory if it is empty."""
    return field.meta.get("metavar") == "FILE"


def _described(action: Action) -> dict[str, Any]:
    names = {str: "text", int: "integer", float: "number", bool: "boolean"}
    fields = [
        {
            "name": each.name,
            "type": names[each.kind],
            "several": each.several,
            "required": each.required,
            "default": [] if each.several else each.default,
            "choices": list(each.meta.get("choices", ())),
            "help": translated(each.meta.get("help", "")),
        }
        for each in fields_of(action)
        if not _is_file(each)
    ]
    return {
        "words": translated(action.words),
        "on": "space" if action.on is ltm.Space else "file",
        "who": action.who,
        "writes": action.writes,
        "confirm": translated(action.confirm),
        "progress": action.has_progress,
        "fields": fields,
    }
