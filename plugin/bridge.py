"""Between the host and the engine: where the file lies, how it is configured, who speaks, embeddings, threads. No SQL, no ranking.

Every component of the plugin goes through one `Bridge`. Invariants: the engine is never called on the event loop (a small pool of
threads does it, with the caller's context), and no failure of memory becomes a failure of the turn: what cannot be done is
answered in words, and why is kept in `Bridge.trouble`.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import json
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import ltm

T = TypeVar("T")
log = logging.getLogger("ltm.plugin")

THREADS = 4
FILE_NAME = "memory.db"
EMBED_SECONDS = 20.0  # for one call of the host's model; the host itself waits 60
TURN_MEMORY_SECONDS = 120.0  # for which a turn is known to have its memories
TURN_SECONDS = 4.0  # that a turn waits for its memories before it goes on without

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
}


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


# ---------------------------------------------------------------------------------------------- embeddings


class HostEmbedder:
    """The host's embedding model, asked from a worker thread. `dim` was learnt by asking it once."""

    def __init__(self, plugin: Any, loop: asyncio.AbstractEventLoop, uuid: str, dim: int) -> None:
        self._plugin, self._loop, self._uuid, self.dim = plugin, loop, uuid, dim
        self.fingerprint = f"langbot:{uuid}:{dim}"

    def _embed(self, texts: Sequence[str]) -> list[list[float]]:
        call = asyncio.run_coroutine_threadsafe(self._plugin.invoke_embedding(self._uuid, list(texts)), self._loop)
        try:
            return call.result(EMBED_SECONDS)  # type: ignore[no-any-return]
        except TimeoutError:
            call.cancel()
            raise ltm.EmbedderError(f"the host's embedding model did not answer within {EMBED_SECONDS:g} s") from None

    embed_passages = embed_queries = _embed


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
    """One per plugin process: the open file, the pool, the configuration."""

    def __init__(self, plugin: Any) -> None:
        self.plugin = plugin
        self.memory: ltm.Memory | None = None
        self.trouble = "memory is not open yet"
        self.options, self.problems = effective({}, {})
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="ltm")
        self._opening = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._injected: dict[tuple[str, ...], float] = {}

    async def run(self, work: Callable[..., T], *args: Any, **options: Any) -> T:
        """Run a blocking call in the pool, in the caller's context, so that the host's calls it makes are the caller's."""
        call = functools.partial(contextvars.copy_context().run, work, *args, **options)
        return await asyncio.get_running_loop().run_in_executor(self._pool, call)

    def background(self, work: Any) -> None:
        """Start a coroutine that outlives the handler: from an empty context, or the host refuses its calls."""
        task = contextvars.Context().run(asyncio.get_running_loop().create_task, work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("background work failed", exc_info=task.exception())

    # -- opening

    async def open(self) -> ltm.Memory:
        """The open file; opened at first need. Raises LtmError."""
        async with self._opening:
            if self.memory is None:
                try:
                    self.memory = await self.run(self._open)
                    self.trouble = ""
                except ltm.LtmError as error:
                    self.trouble = str(error)
                    raise
                await self._adopt()
            return self.memory

    def _open(self) -> ltm.Memory:
        configured = str((self.plugin.get_config() or {}).get("database_path") or "")
        folder = find_folder(configured)
        path = Path(configured) if configured.endswith(".db") else folder / FILE_NAME
        memory = ltm.open(path)
        log.info("memory file: %s", path)
        for warning in memory.warnings:
            log.warning("%s", warning)
        return memory

    async def _adopt(self) -> None:
        """Take up the configuration that the file keeps, and the embedder that it names."""
        assert self.memory is not None
        kept = await self.run(self.memory.host_config)
        self.options, self.problems = effective(kept.get("creation", {}), kept.get("overrides", {}))
        for problem in self.problems:
            log.warning("%s", problem)
        await self._choose_embedder()

    async def _choose_embedder(self) -> None:
        """The host's model if one is configured, else the local one if it is installed, else none."""
        assert self.memory is not None
        uuid = self.options["embedding_model_uuid"]
        if not uuid:
            try:
                self.memory.embedder = await self.run(ltm.E5)
            except ltm.EmbedderError:
                self.memory.embedder = None
            return
        try:
            (probe,) = await asyncio.wait_for(self.plugin.invoke_embedding(uuid, ["dimensions"]), EMBED_SECONDS)
            self.memory.embedder = HostEmbedder(self.plugin, asyncio.get_running_loop(), uuid, len(probe))
        except Exception as error:  # the host's or a provider's: whatever it is, memory goes by words
            self.memory.embedder = None
            log.warning("the embedding model %s cannot be used (%s): memory goes by words", uuid, error)

    # -- configuration

    async def created(self, kb_id: str, settings: Mapping[str, Any]) -> None:
        """A knowledge base was created with these settings."""
        memory = await self.open()
        kept = await self.run(memory.host_config)
        await self.run(memory.set_host_config, {**kept, "kb": kb_id, "creation": dict(settings)})
        await self._apply()

    async def deleted(self, kb_id: str) -> None:
        """The knowledge base is gone; the memories are not."""
        memory = await self.open()
        kept = await self.run(memory.host_config)
        if kept.get("kb") == kb_id:
            await self.run(memory.set_host_config, {**kept, "kb": ""})

    async def configure(self, name: str, text: str) -> Any:
        """Change a tunable after creation. Raises LtmError."""
        if name not in OPTIONS:
            raise ltm.InvalidInput(f"no option is called {name}; there are {', '.join(OPTIONS)}")
        value = OPTIONS[name].check(name, text)
        memory = await self.open()
        kept = await self.run(memory.host_config)
        await self.run(memory.set_host_config, {**kept, "overrides": {**kept.get("overrides", {}), name: value}})
        await self._apply()
        return value

    async def _apply(self) -> None:
        assert self.memory is not None
        before = self.options["embedding_model_uuid"]
        await self._adopt_options()
        for name, option in OPTIONS.items():
            if option.engine:
                await self.run(self.memory.configure, name, self.options[name])
        if self.options["embedding_model_uuid"] != before:
            await self._choose_embedder()
            self.background(self.embed())

    async def _adopt_options(self) -> None:
        assert self.memory is not None
        kept = await self.run(self.memory.host_config)
        self.options, self.problems = effective(kept.get("creation", {}), kept.get("overrides", {}))

    async def embed(self) -> ltm.EmbedReport | None:
        """Make the vectors that are missing."""
        memory = await self.open()
        if memory.embedder is None:
            return None
        return await self.run(memory.embed_pending)

    def weights(self) -> ltm.Weights:
        """The engine's weights under the options."""
        plain = {each.name: each.default for each in fields(ltm.Weights)}
        dense = 1.0 if self.options["retrieval_strategy"] == "vector" else self.options["vector_weight"]
        exact = plain["exact"] if self.options["exact_match_boost"] else 0.0
        return ltm.Weights(dense=dense, lexical=1.0 - dense, exact=exact, half_life_days=self.options["recency_half_life_days"])

    # -- what a prompt has already

    def note_injected(self, who: Who, text: str) -> None:
        """The prompt of this turn has its memories."""
        now = time.monotonic()
        self._injected = {turn: at for turn, at in self._injected.items() if now - at < TURN_MEMORY_SECONDS}
        self._injected[(who.bot, who.launcher_type, who.launcher_id, text.strip())] = now

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
        memory = await self.open()
        return str((await self.run(memory.host_config)).get("kb") or "")

    async def note_document(self, document: str, who: Who | None) -> None:
        """Keep which chat a document was taken into, or that it is gone."""
        memory = await self.open()
        kept = await self.run(memory.host_config)
        documents = {name: scope for name, scope in kept.get("documents", {}).items() if name != document}
        if who is not None:
            documents[document] = [who.bot, who.launcher_type, who.launcher_id]
        await self.run(memory.set_host_config, {**kept, "documents": documents})

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


def session_of(session_name: str) -> tuple[str, str]:
    """Launcher type and id of a session name: split at the first underscore alone, since ids may hold more."""
    kind, _, id = session_name.partition("_")
    return kind, id


def to_json(value: Any) -> str:
    """JSON as answers carry it: readable, one line."""
    return json.dumps(value, ensure_ascii=False)
