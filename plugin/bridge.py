"""Between the host and the engine: where the file lies, how it is configured, who speaks, embeddings, threads. No SQL, no ranking.

Every component of the plugin goes through one `Bridge`. Invariants: the engine is never called on the event loop (a small pool of
threads does it, with the caller's context), and no failure of memory becomes a failure of the turn: what cannot be done is
answered in words, and why is kept in `Bridge.troubles`, which `!memory` shows.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import logging
import math
import os
import re
import statistics
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import ltm

T = TypeVar("T")
log = logging.getLogger("ltm.plugin")

TURN_THREADS = 4  # for prompts: with the others they would wait behind writers that wait for another process
THREADS = 8  # for what else somebody waits for
LATER_THREADS = 2  # for what nobody does: vectors, candidates, snapshots of prompts
FILE_NAME = "memory.db"
QUERY_SECONDS = 2.0  # for the vector of a question; after that words alone decide
PASSAGE_SECONDS = 20.0  # for vectors of memories; the host itself waits 60
REST_SECONDS = 10.0  # in which a model that failed is not asked again
CATCH_UP_SECONDS = (10.0, 600.0)  # between attempts to make missing vectors, first and most
REOPEN_SECONDS = 5.0  # between attempts to open a file that could not be opened
TURN_MEMORY_SECONDS = 120.0  # for which a turn is known to have its memories
TURN_SECONDS = 4.0  # that a turn waits for its memories before it goes on without
TIMINGS = 50  # turns whose times are kept

# ------------------------------------------------------------------------------------------------ options


@dataclass(frozen=True)
class Option:
    """A tunable: its default, bounds or choices, and what it does. `engine`: the setting of the file it is kept in."""

    default: Any
    words: str
    least: float = 0
    most: float = 0
    choices: tuple[str, ...] = ()
    engine: bool = False

    def check(self, name: str, value: Any) -> Any:
        """Return a value as it is used. Raises ltm.InvalidInput, saying what can be given."""
        if isinstance(self.default, bool):
            known = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
            if isinstance(value, bool) or str(value).strip().lower() in known:
                return known[str(value).strip().lower()]
            raise ltm.InvalidInput(f"{name} must be true or false, not {value!r}")
        if self.choices:
            if value in self.choices:
                return value
            raise ltm.InvalidInput(f"{name} must be one of {', '.join(self.choices)}, not {value!r}")
        if isinstance(self.default, str):
            if isinstance(value, str):
                return value
            raise ltm.InvalidInput(f"{name} must be text, not {value!r}")
        try:
            number = float(value) if isinstance(self.default, float) else int(str(value).strip())
        except (TypeError, ValueError):
            raise ltm.InvalidInput(f"{name} must be a number, not {value!r}") from None
        if isinstance(value, bool) or not self.least <= number <= self.most:
            raise ltm.InvalidInput(f"{name} must be from {self.least:g} to {self.most:g}, not {value!r}")
        return number


OPTIONS: dict[str, Option] = {
    "isolation": Option("session", "episodes stay in the chat, or are shared by all chats of the bot", choices=("session", "bot")),
    "embedding_model_uuid": Option("", "the host's model that makes vectors; empty: words alone, or the local one if installed"),
    "recency_half_life_days": Option(30.0, "days after which a memory counts half as recent", 0.01, 36500),
    "auto_recall_top_k": Option(3, "memories put into a prompt", 1, 20),
    "retrieval_strategy": Option(
        "auto", "auto and hybrid go by words and meaning, vector by meaning", choices=("auto", "vector", "hybrid")
    ),
    "vector_weight": Option(0.45, "weight of meaning against words", 0, 1),
    "exact_match_boost": Option(True, "an id, tag or name that is asked for exactly comes first"),
    "candidate_extraction_enabled": Option(False, "look for memories in what users say", engine=True),
    "candidate_auto_apply": Option(False, "accept what rules found at once", engine=True),
    "candidate_max_per_turn": Option(3, "candidates of one message", 1, 10, engine=True),
    "candidate_model_uuid": Option("", "the host's language model that selects quotes; empty: rules"),
    "consolidation_enabled": Option(False, "permit consolidation to write", engine=True),
    "consolidation_model_uuid": Option("", "the host's language model that drafts summaries; empty: archival alone"),
    "consolidation_min_age_days": Option(7, "age at which an episode may be summarised", 0, 3650, engine=True),
    "consolidation_max_candidates": Option(20, "episodes of one consolidation", 1, 100, engine=True),
    "injection_budget": Option(6000, "characters put into a prompt", 400, 100_000, engine=True),
    "utc_offset_minutes": Option(0, "minutes east of UTC in which prompts show dates; 480 in China", -840, 840, engine=True),
    "max_profile_traits": Option(20, "traits of a profile that are shown", 1, 200, engine=True),
    "max_profile_preferences": Option(10, "preferences of a profile that are shown", 1, 200, engine=True),
}
FROM_PLUGIN = ("max_profile_traits", "max_profile_preferences")  # set in the plugin's configuration, not the knowledge base's


def effective(creation: Mapping[str, Any], overrides: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Options as they count: defaults, then what the knowledge base was created with, then what was set since; and what of it
    cannot be used, in words."""
    values, problems = {name: option.default for name, option in OPTIONS.items()}, []
    for source in (creation, overrides):
        for name, value in source.items():
            if name in OPTIONS and value not in (None, ""):
                try:
                    values[name] = OPTIONS[name].check(name, value)
                except ltm.InvalidInput as error:
                    problems.append(f"{error}; {values[name]!r} is used")
    return values, problems


# --------------------------------------------------------------------------------------------- where it is


def find_folder(configured: str, environment: Mapping[str, str] | None = None) -> Path:
    """The folder that outlives upgrades and restarts. Configured, or the installation's private one, or a data folder.

    Raises ltm.StorageError naming what was tried when none can be written to.
    """
    env = os.environ if environment is None else environment
    tried = []
    if configured:
        chosen = Path(configured)
        folder = chosen.parent if chosen.suffix == ".db" else chosen
        tried.append(folder)
    else:
        storage = env.get("LANGBOT_PLUGIN_FILE_STORAGE_DIR")
        tried += [Path(storage).parent / "data"] if storage else []
        tried += [Path("/data"), Path("data").absolute()] if not storage else [Path("/data")]
    for folder in tried:
        if folder == Path("data").absolute() or configured:
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError:
                continue
        if folder.is_dir() and os.access(folder, os.W_OK | os.X_OK):
            return folder
    raise ltm.StorageError(f"no folder for the memory file can be written to; tried {', '.join(map(str, tried))}")


# ------------------------------------------------------------------------------------------------- models

_UNKNOWN = ("ActionCallTimeoutError", "ConnectionClosedError", "TimeoutError", "RuntimeError: Plugin invocation has ended")


def is_unknown(error: BaseException) -> bool:
    """Whether nobody can tell if a call of the host was carried out: it timed out on some hop, or its answer was lost. Everything
    else was answered, and so failed for certain."""
    text = f"{type(error).__name__}: {error}".removeprefix("ActionCallError: ").removeprefix("ActionCallError: ")
    return isinstance(error, (TimeoutError, asyncio.TimeoutError)) or text.startswith(_UNKNOWN)


class HostEmbedder:
    """The host's embedding model, asked from a worker thread. `dim` was learnt by asking it once.

    A model that failed is left alone for a while, so that a turn does not wait for it again; the bridge is told why. A call whose
    outcome is not known may be repeated: vectors are made of their text alone.
    """

    def __init__(self, bridge: Bridge, loop: asyncio.AbstractEventLoop, uuid: str, dim: int) -> None:
        self._bridge, self._loop, self._uuid, self.dim = bridge, loop, uuid, dim
        self.fingerprint = f"langbot:{uuid}:{dim}"
        self.has_changed = False  # its vectors have another length by now
        self._rests_until, self._why = 0.0, ""
        self._spent = threading.local()

    def embed_queries(self, texts: Sequence[str]) -> list[list[float]]:
        """Vectors of questions. Raises ltm.EmbedderError soon: a turn waits."""
        return self._ask(texts, QUERY_SECONDS)

    def embed_passages(self, texts: Sequence[str]) -> list[list[float]]:
        """Vectors of memories. Raises ltm.EmbedderError."""
        return self._ask(texts, PASSAGE_SECONDS)

    def take_spent(self) -> float:
        """Seconds that this thread waited for the model since it last asked."""
        spent, self._spent.seconds = getattr(self._spent, "seconds", 0.0), 0.0
        return spent

    def _ask(self, texts: Sequence[str], seconds: float) -> list[list[float]]:
        started = time.monotonic()
        if started < self._rests_until:
            raise ltm.EmbedderError(f"{self._why}; it is asked again in {self._rests_until - started:.0f} s")
        call = asyncio.run_coroutine_threadsafe(self._bridge.plugin.invoke_embedding(self._uuid, list(texts)), self._loop)
        try:
            found = call.result(seconds)
            self._check(found, len(texts))
        except Exception as error:  # the host's, a provider's or ours: whatever it is, words decide
            call.cancel()
            if is_unknown(error):
                self._why = f"the embedding model of the host did not answer within {seconds:g} s"
            else:
                self._why = f"the embedding model of the host failed: {str(error)[:300]}"
            self._rests_until = time.monotonic() + (2.0 if "connection is busy" in str(error) else REST_SECONDS)
            self._bridge.trouble("meaning", self._why)
            if self.has_changed:
                self._loop.call_soon_threadsafe(self._bridge.catch_up)  # which asks how long its vectors are by now
            raise ltm.EmbedderError(self._why) from None
        finally:
            self._spent.seconds = getattr(self._spent, "seconds", 0.0) + time.monotonic() - started
        self._bridge.trouble("meaning", "")
        return found  # type: ignore[no-any-return]

    def _check(self, found: Any, n: int) -> None:
        if not isinstance(found, list) or len(found) != n:
            given = len(found) if isinstance(found, list) else 0
            raise ltm.EmbedderError(f"it gave {given} vectors for {n} texts")
        for vector in found:
            if len(vector) != self.dim:
                self.has_changed = True
                raise ltm.EmbedderError(f"it gives vectors of {len(vector)} numbers where it gave {self.dim}")
            if not all(isinstance(value, (int, float)) and math.isfinite(value) for value in vector):
                raise ltm.EmbedderError("it gave a vector with something that is not a finite number")


class HostModel:
    """The host's language model, asked from a worker thread."""

    def __init__(self, plugin: Any, loop: asyncio.AbstractEventLoop, uuid: str) -> None:
        self._plugin, self._loop, self.name, self._uuid = plugin, loop, f"langbot:{uuid}", uuid

    def complete(self, system: str, user: str) -> str:
        """One answer. Raises what the host raises; the engine makes a ModelError of it."""
        from langbot_plugin.api.entities.builtin.provider.message import Message

        messages = [Message(role="system", content=system), Message(role="user", content=user)]
        answer = asyncio.run_coroutine_threadsafe(self._plugin.invoke_llm(self._uuid, messages), self._loop).result(30)
        content = answer.content
        return content if isinstance(content, str) else "".join(part.text or "" for part in content)


# --------------------------------------------------------------------------------------------------- bridge


@dataclass(frozen=True)
class Who:
    """Where and who: what an invocation says of the bot, the chat and the speaker."""

    bot: str
    launcher_type: str
    launcher_id: str
    sender_id: str
    sender_name: str
    query_id: str = ""


class Bridge:
    """One per plugin process: the open file, the pools, the configuration, and what is wrong."""

    def __init__(self, plugin: Any) -> None:
        self.plugin = plugin
        self.memory: ltm.Memory | None = None
        self.troubles: dict[str, str] = {}  # what is off, and why: "file", "meaning", "turn"
        self.options, self.problems = effective({}, {})
        self._plugin_problems: list[str] = []
        self._kb = ""
        self._embeds: str | None = None  # the configuration by which the embedder was chosen
        self.timings: deque[tuple[float, float]] = deque(maxlen=TIMINGS)  # of turns: seconds, and of them for the vector
        self._turns = ThreadPoolExecutor(TURN_THREADS, thread_name_prefix="ltm-turn")
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="ltm")
        self._later = ThreadPoolExecutor(LATER_THREADS, thread_name_prefix="ltm-later")
        self._opening: asyncio.Task[ltm.Memory] | None = None
        self._failed_at = -REOPEN_SECONDS
        self._configuring = asyncio.Lock()
        self._catching: asyncio.Task[Any] | None = None
        self._wake = asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._injected: dict[tuple[str, ...], float] = {}

    async def run(self, work: Callable[..., T], *args: Any, **options: Any) -> T:
        """Run a blocking call in the pool, in the caller's context, so that the host's calls it makes are the caller's."""
        return await self._run_in(self._pool, work, *args, **options)

    async def run_later(self, work: Callable[..., T], *args: Any, **options: Any) -> T:
        """Run a blocking call that nobody waits for, so that it takes no thread from what somebody does."""
        return await self._run_in(self._later, work, *args, **options)

    @staticmethod
    async def _run_in(pool: ThreadPoolExecutor, work: Callable[..., T], *args: Any, **options: Any) -> T:
        call = functools.partial(contextvars.copy_context().run, work, *args, **options)
        return await asyncio.get_running_loop().run_in_executor(pool, call)

    def background(self, work: Any) -> asyncio.Task[Any]:
        """Start a coroutine that outlives the handler: from an empty context, or the host refuses its calls."""
        task = contextvars.Context().run(asyncio.get_running_loop().create_task, work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or task.exception() is None:
            return
        error = task.exception()
        if isinstance(error, ltm.LtmError):
            log.warning("background work: %s", error)
        else:
            log.error("background work failed", exc_info=error)

    def trouble(self, kind: str, why: str) -> None:
        """Note that something is off and why, or with '' that it is not; logged when it changes."""
        if why and self.troubles.get(kind) != why:
            log.warning("%s: %s", kind, why)
        elif not why and kind in self.troubles:
            log.info("%s: works again", kind)
        if why:
            self.troubles[kind] = why
        else:
            self.troubles.pop(kind, None)

    @staticmethod
    async def answered(work: Awaitable[dict[str, Any]]) -> dict[str, Any]:
        """The answer of a tool: what went wrong is answered too, since the host ends the turn on what is raised."""
        try:
            return await work
        except ltm.LtmError as error:
            return {"error": f"Error: {error}"}
        except Exception as error:
            log.exception("a tool failed")
            return {"error": f"Error: this did not work ({type(error).__name__}); the log of the plugin says why"}

    # -- opening

    async def open(self) -> ltm.Memory:
        """The open file; opened at first need, by one task that no caller's time limit ends. Raises LtmError."""
        if self.memory is not None:
            return self.memory
        if self._opening is None or self._opening.done():
            if time.monotonic() - self._failed_at < REOPEN_SECONDS:
                raise ltm.StorageError(self.troubles.get("file", "the memory file could not be opened"))
            self._opening = self.background(self._open())
        return await asyncio.shield(self._opening)

    async def _open(self) -> ltm.Memory:
        try:
            memory = await self.run(self._open_file)
            self.trouble("file", "")
        except ltm.LtmError as error:
            self._failed_at = time.monotonic()
            self.trouble("file", str(error))
            raise
        try:
            await self._adopt(memory)
        except ltm.LtmError as error:  # the configuration as it was read, or its defaults, will do
            self.trouble("configuration", str(error))
        finally:  # not before: whoever had it by then would take defaults for what the file says, such as the isolation
            self.memory = memory
        self.catch_up()  # chooses the embedder too: nobody waits for a model at the start
        return memory

    def _open_file(self) -> ltm.Memory:
        configured = str((self.plugin.get_config() or {}).get("database_path") or "")
        folder = find_folder(configured)
        path = Path(configured) if configured.endswith(".db") else folder / FILE_NAME
        memory = ltm.open(path)
        log.info("memory file: %s", path)
        for warning in memory.warnings:
            log.warning("%s", warning)
        return memory

    # -- configuration

    async def _adopt(self, memory: ltm.Memory) -> None:
        """Take up what the file keeps of the configuration, and what the plugin's own says that it did not say before."""
        kept = await self.run(memory.host_config)
        self._read(kept)
        config = self.plugin.get_config() or {}
        given = {name: config[name] for name in FROM_PLUGIN if config.get(name) not in (None, "")}
        values, problems = effective(given, {})
        if given != kept.get("plugin", {}):
            for name in given:
                await self.run(memory.configure, name, values[name])
            kept = {**kept, "plugin": given}
            await self.run(memory.set_host_config, kept)
        self._plugin_problems = problems
        self._read(kept)
        for problem in self.problems:
            log.warning("%s", problem)

    def _read(self, kept: Mapping[str, Any]) -> None:
        self.options, problems = effective(kept.get("creation", {}), kept.get("overrides", {}))
        self.problems = self._plugin_problems + problems
        self._kb = str(kept.get("kb") or "")

    async def _keep(self, change: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
        """Change what the file keeps for the host; one change at a time, or one would undo another."""
        memory = await self.open()
        async with self._configuring:
            kept = change(await self.run(memory.host_config))
            await self.run(memory.set_host_config, kept)
        self._read(kept)
        return kept

    async def created(self, kb_id: str, settings: Mapping[str, Any]) -> None:
        """A knowledge base was created with these settings."""
        memory = await self.open()
        await self._keep(lambda kept: {**kept, "kb": kb_id, "creation": dict(settings), "overrides": {}})
        for name, option in OPTIONS.items():  # those of the engine are the file's from now on; anybody may change them there
            if option.engine and name in settings:
                await self.run(memory.configure, name, self.options[name])
        if memory.embedder is None:  # without a knowledge base none was looked for
            self._embeds = None
        await self._embed_as_configured()

    async def deleted(self, kb_id: str) -> None:
        """The knowledge base is gone; the memories are not."""
        await self._keep(lambda kept: {**kept, "kb": ""} if kept.get("kb") == kb_id else kept)

    async def configure(self, name: str, text: str) -> Any:
        """Change a tunable after creation. Raises LtmError."""
        if name not in OPTIONS:
            raise ltm.InvalidInput(f"no option is called {name}; there are {', '.join(OPTIONS)}")
        value = OPTIONS[name].check(name, text)
        memory = await self.open()
        if OPTIONS[name].engine:
            await self.run(memory.configure, name, value)
            return value
        await self._keep(lambda kept: {**kept, "overrides": {**kept.get("overrides", {}), name: value}})
        await self._embed_as_configured()
        return value

    async def reset(self, name: str) -> Any:
        """Put a tunable back to what the knowledge base was created with, or its default; returns that. Raises LtmError."""
        if name not in OPTIONS:
            raise ltm.InvalidInput(f"no option is called {name}; there are {', '.join(OPTIONS)}")
        memory = await self.open()
        kept = await self._keep(
            lambda found: {**found, "overrides": {each: v for each, v in found.get("overrides", {}).items() if each != name}}
        )
        value = effective(kept.get("creation", {}), {})[0][name]
        if OPTIONS[name].engine:
            await self.run(memory.configure, name, value)
        await self._embed_as_configured()
        return value

    async def adopt_kb(self, kb_id: str) -> None:
        """The host asks for this knowledge base: a file that knows none (another one was chosen) learns it."""
        if kb_id and not await self.kb_id():
            await self._keep(lambda kept: {**kept, "kb": kb_id})

    async def settings(self) -> dict[str, Any]:
        """Every option with its value: ours, and those of the engine as the file has them."""
        memory = await self.open()
        engine = await self.run(memory.settings)
        return {name: engine[name] if option.engine else self.options[name] for name, option in OPTIONS.items()}

    # -- vectors

    async def _embed_as_configured(self) -> None:
        if self.options["embedding_model_uuid"] != self._embeds:
            await self._choose_embedder()
            self.catch_up()

    async def _choose_embedder(self) -> None:
        """The host's model if one is configured, else the local one if it is installed, else none."""
        memory = await self.open()
        uuid = self.options["embedding_model_uuid"]
        embedder, why = None, ""
        try:
            embedder = await self._find_embedder(memory, uuid)
        except ltm.EmbedderError as error:  # memory goes by words
            why = str(error)
        if uuid != self.options["embedding_model_uuid"]:  # while this waited; whoever configured that chooses it
            return
        memory.embedder, self._embeds = embedder, uuid
        self.trouble("meaning", why)

    async def _find_embedder(self, memory: ltm.Memory, uuid: str) -> Any:
        """The embedder of a configuration; None if it asks for none. Raises ltm.EmbedderError."""
        kept = await self.run(memory.host_config)
        if not uuid:
            if kept.get("kb"):  # before that nobody has said which model it is to be
                with contextlib.suppress(ltm.EmbedderError):
                    return await self.run(ltm.E5)
            return None
        dim = kept.get("dims", {}).get(uuid)
        if dim is None or getattr(memory.embedder, "has_changed", False):
            try:
                (probe,) = await asyncio.wait_for(self.plugin.invoke_embedding(uuid, ["dimensions"]), PASSAGE_SECONDS)
                dim = len(probe)
            except Exception as error:  # the host's or a provider's, whatever it is
                why = str(error)[:300] or type(error).__name__
                raise ltm.EmbedderError(f"the embedding model of the host cannot be used: {why}") from error
            await self._keep(lambda found: {**found, "dims": {uuid: dim}})
        return HostEmbedder(self, asyncio.get_running_loop(), uuid, int(dim))

    def catch_up(self) -> None:
        """Make the vectors that are missing, in the background, until none is."""
        self._wake.set()
        if self._catching is None or self._catching.done():
            self._catching = self.background(self._catch_up())

    async def _catch_up(self) -> None:
        wait, most = CATCH_UP_SECONDS
        while True:
            self._wake.clear()
            memory = await self.open()
            if memory.embedder is None or getattr(memory.embedder, "has_changed", False):
                await self._choose_embedder()
            if memory.embedder is None and not self.options["embedding_model_uuid"]:
                return
            embedder = memory.embedder
            if embedder is not None:
                try:
                    report = await self.run_later(memory.embed_pending)
                    if not report.remaining and not self._wake.is_set():
                        self.trouble("meaning", "")
                        return
                    if report.remaining:
                        self.trouble("meaning", f"{report.remaining} memories wait for a vector: {report.error}")
                except ltm.LtmError as error:
                    if memory.embedder is embedder:  # or another model took over meanwhile, and its turn comes next
                        self.trouble("meaning", str(error))
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._wake.wait(), wait)
                wait = CATCH_UP_SECONDS[0]
                continue
            wait = min(wait * 2, most)

    async def wrote(self, space: ltm.Space) -> None:
        """Something was written: make its vector if that could not be done at once."""
        if self.options["embedding_model_uuid"] and await self.run(space.pending):
            self.catch_up()

    def weights(self) -> ltm.Weights:
        """The engine's weights under the options."""
        plain = {each.name: each.default for each in fields(ltm.Weights)}
        dense = 1.0 if self.options["retrieval_strategy"] == "vector" else self.options["vector_weight"]
        exact = plain["exact"] if self.options["exact_match_boost"] else 0.0
        return ltm.Weights(dense=dense, lexical=1.0 - dense, exact=exact, half_life_days=self.options["recency_half_life_days"])

    # -- turns

    async def inject(self, space: ltm.Space, text: str, limit: int) -> tuple[ltm.Injection, float]:
        """What a prompt gets, and the seconds that its vector took. Its snapshot is written later: a turn waits for no writer."""

        def work() -> tuple[ltm.Injection, float]:
            embedder = space.memory.embedder
            watched = embedder if isinstance(embedder, HostEmbedder) else None
            if watched:
                watched.take_spent()
            made = space.inject(text, limit=limit, weights=self.weights(), keep=False)
            return made, watched.take_spent() if watched else 0.0

        made, spent = await self._run_in(self._turns, work)
        self.background(self._keep_injection(space, made))
        return made, spent

    async def _keep_injection(self, space: ltm.Space, made: ltm.Injection) -> None:
        for note in (await self.run_later(space.keep_injection, made)).notes:
            log.info("injection: %s", note)

    def turn_times(self) -> dict[str, float]:
        """Milliseconds that the last turns waited: for memory (median and 95th percentile), and apart from it for vectors."""
        if not self.timings:
            return {}
        own = sorted(1000 * (whole - model) for whole, model in self.timings)
        model = statistics.median(1000 * each for _, each in self.timings)
        return {"n": len(own), "p50": statistics.median(own), "p95": own[math.ceil(0.95 * len(own)) - 1], "model": model}

    def note_injected(self, who: Who, text: str) -> None:
        """The prompt of this turn has its memories."""
        now = time.monotonic()
        self._injected = {turn: at for turn, at in self._injected.items() if now - at < TURN_MEMORY_SECONDS}
        self._injected[(who.bot, who.launcher_type, who.launcher_id, text.strip())] = now

    def forget_injected(self, who: Who, text: str) -> None:
        """The turn has its answer: the same words asked again are another turn."""
        self._injected.pop((who.bot, who.launcher_type, who.launcher_id, text.strip()), None)

    def was_injected(self, who: Who, text: str) -> bool:
        """Whether the prompt of the turn that asks has its memories: some runners search the knowledge base as well."""
        at = self._injected.get((who.bot, who.launcher_type, who.launcher_id, text.strip()))
        return at is not None and time.monotonic() - at < TURN_MEMORY_SECONDS

    # -- spaces

    async def space(self, who: Who, via: str) -> ltm.Space:
        """The chat's memory, as who speaks. Raises LtmError: no identity (never a wildcard), or no file."""
        memory = await self.open()
        if not who.launcher_id:
            raise ltm.InvalidInput("the host did not say which chat this is, so no memory is used")
        scope = ltm.Scope(who.bot, who.launcher_type, who.launcher_id, self.options["isolation"])
        speaker = ltm.Speaker(who.sender_id, who.sender_name[: ltm.NAME_CHARS]) if who.sender_id else None
        return memory.space(scope, speaker=speaker, via=via, query_id=who.query_id)

    async def kb_id(self) -> str:
        """The knowledge base of this engine; '' when there is none."""
        await self.open()
        return self._kb

    async def note_document(self, document: str, who: Who | None) -> None:
        """Keep which chat a document was taken into, or that it is gone."""

        def change(kept: dict[str, Any]) -> dict[str, Any]:
            documents = {name: scope for name, scope in kept.get("documents", {}).items() if name != document}
            if who is not None:
                documents[document] = [who.bot, who.launcher_type, who.launcher_id]
            return {**kept, "documents": documents}

        await self._keep(change)

    async def document_scope(self, document: str) -> Who | None:
        """The chat that a document was taken into."""
        memory = await self.open()
        scope = (await self.run(memory.host_config)).get("documents", {}).get(document)
        return Who(*scope, "", "") if scope else None

    def is_admin(self, who: Who, privilege: int) -> bool:
        """Whether who speaks may do what concerns others: named in the configuration, or the host's administrator in private. In a
        group the host gives its right to everyone in it, which is no right of the speaker's."""
        named = (self.plugin.get_config() or {}).get("administrators") or []
        return (bool(who.sender_id) and who.sender_id in map(str, named)) or (privilege >= 2 and who.launcher_type == "person")

    def language(self, who: Who, text: str) -> str:
        """In which language to answer a command: the configured one, or Chinese where the command or a name is written in it."""
        configured = (self.plugin.get_config() or {}).get("language") or "auto"
        if configured != "auto":
            return str(configured)
        return "zh_Hans" if _CHINESE.search(text + who.sender_name) else "en_US"


_CHINESE = re.compile("[\u3400-\u9fff\uff01]")


def session_of(session_name: str) -> tuple[str, str]:
    """Launcher type and id of a session name: split at the first underscore alone, since ids may hold more."""
    kind, _, id = session_name.partition("_")
    return kind, id
