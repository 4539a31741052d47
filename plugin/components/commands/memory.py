"""`!memory`: the words of a user become actions of the table, and their answers words again."""

from __future__ import annotations

import json
import logging
import shlex
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

import bridge as bridges
import identity
from langbot_plugin.api.definition.components.command.command import Command
from langbot_plugin.api.entities.builtin.command.context import CommandReturn

import ltm
from ltm_console import words
from ltm_console.actions import ACTIONS, to_data

log = logging.getLogger("ltm.plugin")
ALIASES = {"h": "health", "p": "profile", "s": "search", "l": "list", "ls": "list", "f": "forget", "del": "forget", "e": "export"}
PAGE = 10
REPLY_CHARS = 3_500  # chat platforms cut or refuse longer messages


class _Usage(Exception):
    """The words of a command make no sense; the message is how they would."""


def _statuses(given: list[str], base: Sequence[str]) -> tuple[list[str], list[str]]:
    """Take the status flags out of words, in their order: included ones are added, --status replaces."""
    chosen, rest, flags = list(base), [], iter(given)
    for word in flags:
        if word.startswith("--include-"):
            chosen.append(word.removeprefix("--include-"))
        elif word == "--all-statuses":
            chosen = list(ltm.STATUSES)
        elif word == "--status":
            chosen = [next(flags, "")]
        else:
            rest.append(word)
    if wrong := [each for each in chosen if each not in ltm.STATUSES]:
        raise _Usage(f"{wrong[0] or '(nothing)'} is no status; there are {', '.join(ltm.STATUSES)}")
    return list(dict.fromkeys(chosen)), rest


class MemoryCommand(Command):
    """One handler for every subcommand: the host matches exact names alone, and ends the turn on what it does not know."""

    def __init__(self) -> None:
        super().__init__()

        async def answer(self: MemoryCommand, context: Any) -> AsyncGenerator[CommandReturn, None]:
            yield CommandReturn(text=await self.reply(context))

        for name in ("", "*"):
            self.subcommand(name=name, help="what the bot remembers", usage="!memory help")(answer)  # type: ignore[arg-type]

    async def reply(self, context: Any) -> str:
        """The answer to a command; never an exception, which would leave the user without any."""
        try:
            who, known = await identity.of_context(context)
            given = [word for word in context.params if word]
            given = given[1:] if given[:1] == ["memory"] else given  # "*" is called with the name of the command in front
            attached = known.get("_knowledge_base_uuids")
            text = await self._dispatch(who, int(context.privilege), given, _tail(context), attached)
        except _Usage as usage:
            text = str(usage)
        except ltm.LtmError as error:
            text = f"Memory is off: {error}" if self.plugin.bridge.memory is None else f"Error: {error}"
        except Exception:
            log.exception("a command failed")
            text = "Error: this did not work; the log of the plugin says why."
        return (
            text
            if len(text) <= REPLY_CHARS
            else f"{text[:REPLY_CHARS]}\n... ({len(text):,} characters; use the console or the command line)"
        )

    async def _dispatch(self, who: bridges.Who, privilege: int, given: list[str], tail: str, attached: Any) -> str:
        bridge = self.plugin.bridge
        name, rest = (ALIASES.get(given[0], given[0]), given[1:]) if given else ("", [])
        if name == "config":
            return await self._config(who, privilege, rest)
        space = await bridge.space(who, "command")
        if name == "":
            kb = await bridge.kb_id()
            return await bridge.run(_overview, bridge, space, kb, attached)
        if name == "help":
            return HELP
        reader = READERS.get(name)
        if reader is None:
            raise _Usage(f"!memory {name} is not known.\n{HELP}")
        action, data = reader(rest, tail)
        self._permit(action, who, privilege, space, data)
        if action == "consolidate draft":
            return await self._draft(space)
        text = await bridge.run(_run, action, space, data)
        if ACTIONS[action].writes:
            await bridge.wrote(space)
        return str(text)

    def _permit(self, name: str, who: bridges.Who, privilege: int, space: ltm.Space, data: dict[str, Any]) -> None:
        need = ACTIONS[name].who
        if need == "anyone" or self.plugin.bridge.is_admin(who, privilege):
            return
        if need == "author" and space.audit.get(data["audit_id"]).actor_id == who.sender_id:
            return
        raise _Usage("Only an administrator may do this. Administrators are named in the plugin's configuration.")

    async def _draft(self, space: ltm.Space) -> str:
        """What a run would archive; and with a model, a summary to approve."""
        bridge = self.plugin.bridge
        text = words.preview(await bridge.run(space.consolidation.preview))
        uuid = bridge.options["consolidation_model_uuid"]
        if uuid:
            import asyncio

            model = bridges.HostModel(self.plugin, asyncio.get_running_loop(), uuid)
            text += "\n\n" + words.proposal(await bridge.run(space.consolidation.draft, model))
        return text

    async def _config(self, who: bridges.Who, privilege: int, rest: list[str]) -> str:
        bridge = self.plugin.bridge
        await bridge.open()
        if not rest:
            lines = [f"{name} = {json.dumps(bridge.options[name])}  ({option.words})" for name, option in bridges.OPTIONS.items()]
            return "\n".join(lines + bridge.problems)
        if len(rest) < 3 or rest[0] != "set":
            raise _Usage("Usage: !memory config [set NAME VALUE]")
        if not bridge.is_admin(who, privilege):
            raise _Usage("Only an administrator may do this. Administrators are named in the plugin's configuration.")
        value = await bridge.configure(rest[1], " ".join(rest[2:]))
        return f"{rest[1]} = {json.dumps(value)}"


def _tail(context: Any) -> str:
    """What stands after the first two words, as it was written: JSON must keep its spaces."""
    text = str(getattr(context, "full_command_text", "") or "")
    parts = text.split(None, 3)
    return parts[3] if len(parts) > 3 else ""


def _run(name: str, space: ltm.Space, data: dict[str, Any]) -> str:
    action = ACTIONS[name]
    found = action.run(space if action.on is ltm.Space else space.memory, action.input(**data))
    if name in ("export", "audit export"):
        return json.dumps(to_data(found, space.scope), ensure_ascii=False)
    return action.text(found).replace("ltm undo", "!memory undo").replace("ltm consolidate", "!memory consolidate")


def _overview(bridge: bridges.Bridge, space: ltm.Space, kb: str, attached: Any) -> str:
    """Where this chat's memory is, how much of it there is, and what does not work."""
    scope, speaker = space.scope, space.speaker
    lines = [f"Isolation: {scope.isolation}", f"Session: {scope.session_key}", f"User key: {scope.user_key}"]
    lines += [f"Speaker: {speaker.name or '-'} ({speaker.id})"] if speaker else ["Speaker: (unknown)"]
    for subject in ("session", "speaker") if speaker else ("session",):
        profile = space.profiles.get(subject)  # type: ignore[arg-type]
        counts = f"{len(profile.traits)} traits, {len(profile.preferences)} preferences" if profile else "(empty)"
        lines.append(f"{subject.capitalize()} profile: {counts}")
    lines.append(f"Episodes: {space.list(limit=1).total} active")
    lines.append(f"Knowledge base: {_base(kb, attached)}")
    lines.append(f"Meaning: {_meaning(bridge, space.memory.stats())}")
    if times := bridge.turn_times():
        lines.append("Last turns: {n:.0f}, memory took {p50:.1f} ms (95 %: {p95:.1f} ms), vectors {model:.1f} ms".format(**times))
    lines += [f"Trouble: {why}" for kind, why in bridge.troubles.items() if kind != "meaning"]
    return "\n".join([*lines, f"File: {space.memory.path}"])


def _base(kb: str, attached: Any) -> str:
    if not kb:
        return "none, so nothing is put into prompts; create one with the engine Long-term memory and attach it to the pipeline"
    if isinstance(attached, list) and kb not in attached:
        return f"{kb[:12]}, not attached to this pipeline, so nothing is put into its prompts"
    return f"{kb[:12]}, active"


def _meaning(bridge: bridges.Bridge, stats: dict[str, Any]) -> str:
    if why := bridge.troubles.get("meaning"):
        return f"off, memories are found by their words; {why}"
    if bridge.memory is None or bridge.memory.embedder is None:
        return "no embedding model, memories are found by their words"
    total = sum(stats["episodes"].values())
    said = [f"{each['fingerprint']} ({each['state']})" for each in stats["embedders"]] or [bridge.memory.embedder.fingerprint]
    return f"{', '.join(said)}; {total - stats['pending']} of {total} episodes have their vector"


# ------------------------------------------------------------------------------- words to actions

Reader = Callable[[list[str], str], tuple[str, dict[str, Any]]]


def _one(action: str, usage: str, field: str = "id") -> Reader:
    """A subcommand that takes one word."""

    def read(rest: list[str], tail: str) -> tuple[str, dict[str, Any]]:
        if len(rest) != 1:
            raise _Usage(f"Usage: !memory {usage}")
        return action, {field: rest[0]}

    return read


def _none(action: str) -> Reader:
    return lambda rest, tail: (action, {})


def _search(rest: list[str], tail: str) -> tuple[str, dict[str, Any]]:
    statuses, query = _statuses(rest, ("active",))
    if not query:
        raise _Usage("Usage: !memory search [status flags] QUESTION")
    return "recall", {"query": " ".join(query), "limit": PAGE, "statuses": statuses}


def _list(base: Sequence[str]) -> Reader:
    def read(rest: list[str], tail: str) -> tuple[str, dict[str, Any]]:
        statuses, more = _statuses(rest, base)
        if len(more) > 1:
            raise _Usage("Usage: !memory list [status flags] [CURSOR]")
        return "list", {"statuses": statuses, "limit": PAGE, "cursor": more[0] if more else ""}

    return read


def _audit(rest: list[str], tail: str) -> tuple[str, dict[str, Any]]:
    if rest == ["export"]:
        return "audit export", {}
    if rest == ["verify"]:
        return "audit verify", {}
    return "audit list", {"limit": PAGE, "cursor": rest[0] if rest else ""}


def _export(rest: list[str], tail: str) -> tuple[str, dict[str, Any]]:
    if not rest:
        return "export", {"kinds": ["profiles"]}
    if rest[0] == "all-current-scope":
        return "export", {}
    if rest[0] == "l2":
        statuses, more = _statuses(rest[1:], ltm.STATUSES if len(rest) == 1 else ("active",))
        if not more:
            return "export", {"kinds": ["episodes"], "statuses": statuses}
    raise _Usage("Usage: !memory export [l2 [status flags] | all-current-scope]")


def _import(rest: list[str], tail: str) -> tuple[str, dict[str, Any]]:
    if not rest or rest[0] not in ("l2", "legacy") or not tail.strip():
        raise _Usage("Usage: !memory import l2 JSON (or legacy JSON: an export of LongTermMemory)")
    return "import", {"data": tail}


def _delete(rest: list[str], tail: str) -> tuple[str, dict[str, Any]]:
    data: dict[str, Any] = {}
    names = {"--speaker": "speaker_id", "--tag": "tags", "--before": "before", "--status": "statuses"}
    flags = iter(rest)
    for word in flags:
        if word == "--dry-run":
            data["dry_run"] = True
        elif word in names and (value := next(flags, "")):
            name = names[word]
            data[name] = [*data.get(name, []), value] if name in ("tags", "statuses") else value
        else:
            raise _Usage("Usage: !memory delete [--speaker ID] [--tag TAG] [--before TIME] [--status STATUS] [--dry-run]")
    return "delete", data


def _consolidate(rest: list[str], tail: str) -> tuple[str, dict[str, Any]]:
    if rest[:1] == ["preview"]:
        return "consolidate draft", {}
    if rest[:1] == ["run"] and len(rest) <= 2:
        return "consolidate run", {"proposal_id": rest[1] if len(rest) == 2 else None}
    raise _Usage("Usage: !memory consolidate preview | run [PROPOSAL]")


def _candidates(rest: list[str], tail: str) -> tuple[str, dict[str, Any]]:
    status, words_ = "pending", iter(rest)
    cursor = ""
    for word in words_:
        if word == "--all-statuses":
            status = "all"
        elif word == "--status":
            status = next(words_, "")
        else:
            cursor = word
    return "candidate list", {"status": status, "limit": PAGE, "cursor": cursor}


def _candidate(rest: list[str], tail: str) -> tuple[str, dict[str, Any]]:
    if len(rest) < 2 or rest[0] not in ("accept", "reject"):
        raise _Usage("Usage: !memory candidate accept|reject ID...")
    return f"candidate {rest[0]}", {"ids": rest[1:]}


def _edit(rest: list[str], tail: str) -> tuple[str, dict[str, Any]]:
    """ID and the new text, or --tag, --importance, --event-at."""
    usage = "Usage: !memory edit ID [--importance N] [--tag TAG] [--event-at TIME] [NEW TEXT]"
    if len(rest) < 2:
        raise _Usage(usage)
    try:
        given = iter(shlex.split(" ".join(rest[1:])))
    except ValueError:
        given = iter(rest[1:])
    data: dict[str, Any] = {"id": rest[0]}
    text = []
    for word in given:
        if word == "--tag":
            data["tags"] = [*data.get("tags", []), next(given, "")]
        elif word == "--importance":
            value = next(given, "")
            if not value.isdecimal():
                raise _Usage(usage)
            data["importance"] = int(value)
        elif word == "--event-at":
            data["event_at"] = next(given, "")
        else:
            text.append(word)
    return "edit", data | ({"content": " ".join(text)} if text else {})


def _profile(rest: list[str], tail: str) -> tuple[str, dict[str, Any]]:
    if not rest:
        return "profile show", {}
    if rest[0] == "edit" and len(rest) >= 3 and rest[1] in ("set", "add", "remove"):
        value = " ".join(rest[3:])
        return f"profile {rest[1]}", {"field": rest[2], "value": value}
    raise _Usage("Usage: !memory profile [edit set|add|remove FIELD VALUE]")


def _fence(rest: list[str], tail: str) -> tuple[str, dict[str, Any]]:
    if rest[:1] == ["set"] and len(rest) > 1:
        return "fence set", {"reason": " ".join(rest[1:])}
    if rest[:1] == ["clear"] and len(rest) == 2 and rest[1].isdecimal():
        return "fence clear", {"id": int(rest[1])}
    if not rest or rest == ["list"]:
        return "fence list", {}
    raise _Usage("Usage: !memory fence [list | set REASON | clear NUMBER]")


READERS: dict[str, Reader] = {
    "health": _none("health"),
    "profile": _profile,
    "search": _search,
    "list": _list(("active",)),
    "superseded": _list(("superseded",)),
    "archived": _list(("archived",)),
    "show": _one("show", "show ID"),
    "history": _one("history", "history ID"),
    "forget": _one("forget", "forget ID"),
    "archive": _one("archive", "archive ID"),
    "restore": _one("restore", "restore ID"),
    "edit": _edit,
    "undo": _one("undo", "undo AUDIT-ID", "audit_id"),
    "audit": _audit,
    "stats": _none("stats"),
    "export": _export,
    "import": _import,
    "delete": _delete,
    "consolidate": _consolidate,
    "candidates": _candidates,
    "candidate": _candidate,
    "fence": _fence,
}
HELP = "!memory [" + " | ".join(sorted([*READERS, "config", "help"])) + "]"
