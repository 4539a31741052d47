"""`!memory`: the words of a user become actions of the table, and their answers words again."""

from __future__ import annotations

import json
import logging
import re
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
from ltm_console.language import say, speaking, translated, typed

log = logging.getLogger("ltm.plugin")
ALIASES = {"h": "health", "p": "profile", "s": "search", "l": "list", "ls": "list", "f": "forget", "del": "forget", "e": "export"}
PAGE = 10
REPLY_CHARS = 3_500  # chat platforms cut or refuse longer messages


ADMINISTRATORS = "Only an administrator may do this. Administrators are named in the plugin's configuration."


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
        known = ", ".join(ltm.STATUSES)
        raise _Usage(say("{word} is no status; there are {known}", word=wrong[0] or say("(nothing)"), known=known))
    return list(dict.fromkeys(chosen)), rest


class MemoryCommand(Command):
    """One handler for every subcommand: the host matches exact names alone, and ends the turn on what it does not know."""

    def __init__(self) -> None:
        super().__init__()

        async def answer(self: MemoryCommand, context: Any) -> AsyncGenerator[CommandReturn, None]:
            try:
                text = await self.reply(context)
            except Exception:
                log.exception("a command failed")
                text = "Error: this did not work; the log of the plugin says why."
            yield CommandReturn(text=text)

        for name in ("", "*"):
            self.subcommand(name=name, help="what the bot remembers", usage="!memory help")(answer)  # type: ignore[arg-type]

    async def reply(self, context: Any) -> str:
        """The answer to a command; never an exception, which would leave the user without any."""
        try:
            who, known = await identity.of_context(context)
        except Exception:
            log.exception("a command came without its query")
            return say("Error: the host did not say whose command this is.")
        written = str(getattr(context, "full_command_text", "") or "")
        written = re.split(r"[\[{]", written, maxsplit=1)[0] + str(known.get("group_name") or "")  # not by what is imported
        with speaking(self.plugin.bridge.language(who, written)), typed("!memory"):
            text = await self._answer(context, who, known)
        if len(text) <= REPLY_CHARS:
            return text
        return text[:REPLY_CHARS] + say("\n... ({n:,} characters; use the console or the command line)", n=len(text))

    async def _answer(self, context: Any, who: bridges.Who, known: dict[str, Any]) -> str:
        bridge = self.plugin.bridge
        try:
            given = [word for word in context.params if word]
            given = given[1:] if given[:1] == ["memory"] else given  # "*" is called with the name of the command in front
            attached = known.get("_knowledge_base_uuids")
            return await self._dispatch(who, int(context.privilege), given, _tail(context), attached)
        except _Usage as usage:
            return str(usage)
        except ltm.LtmError as error:
            why = translated(str(error))
            return say("Memory is off: {why}", why=why) if bridge.memory is None else say("Error: {why}", why=why)
        except Exception:
            log.exception("a command failed")
            return say("Error: this did not work; the log of the plugin says why.")

    async def _dispatch(self, who: bridges.Who, privilege: int, given: list[str], tail: str, attached: Any) -> str:
        bridge = self.plugin.bridge
        name, rest = (ALIASES.get(given[0], given[0]), given[1:]) if given else ("", [])
        if name == "config":
            return await self._config(who, privilege, rest)
        if name == "help":
            return say(HELP)
        reader = READERS.get(name)
        if name and reader is None:
            raise _Usage(say("!memory {name} is not known.", name=name[:80]) + "\n" + say(HELP))
        action, data = reader(rest, tail) if reader else ("", {})
        space = await bridge.space(who, "command")
        if not action:
            return await bridge.run(_overview, bridge, space, await bridge.kb_id(), attached)
        await self._permit(action, who, privilege, space, data)
        if action == "consolidate draft":
            return await self._draft(space)
        text = await bridge.run(_run, action, space, data)
        if ACTIONS[action].writes:
            await bridge.wrote(space)
        return str(text)

    async def _permit(self, name: str, who: bridges.Who, privilege: int, space: ltm.Space, data: dict[str, Any]) -> None:
        need, bridge = ACTIONS[name].who, self.plugin.bridge
        if need == "anyone" or bridge.is_admin(who, privilege):
            return
        if need == "author" and (await bridge.run(space.audit.get, data["audit_id"])).actor_id == who.sender_id:
            return
        raise _Usage(say(ADMINISTRATORS))

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
            found = await bridge.settings()
            lines = [f"{name} = {json.dumps(value)}  ({translated(bridges.OPTIONS[name].words)})" for name, value in found.items()]
            return "\n".join(lines + [translated(each) for each in bridge.problems])
        if not (len(rest) >= 3 and rest[0] == "set") and not (len(rest) == 2 and rest[0] == "reset"):
            raise usage("config [set NAME VALUE | reset NAME]")
        if not bridge.is_admin(who, privilege):
            raise _Usage(say(ADMINISTRATORS))
        value = await (bridge.reset(rest[1]) if rest[0] == "reset" else bridge.configure(rest[1], " ".join(rest[2:])))
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
    return action.text(found)


def _overview(bridge: bridges.Bridge, space: ltm.Space, kb: str, attached: Any) -> str:
    """Where this chat's memory is, how much of it there is, and what does not work."""
    scope, speaker = space.scope, space.speaker
    lines = [say("Isolation: {isolation}", isolation=scope.isolation), say("Session: {key}", key=scope.session_key)]
    lines.append(say("User key: {key}", key=scope.user_key))
    lines.append(say("Speaker: {name} ({id})", name=speaker.name or "-", id=speaker.id) if speaker else say("Speaker: (unknown)"))
    lines.append(say("Session profile: {counts}", counts=_counts(space.profiles.get("session"))))
    if speaker:
        lines.append(say("Speaker profile: {counts}", counts=_counts(space.profiles.get("speaker"))))
    lines.append(say("Episodes: {n:,} active", n=space.list(limit=1).total))
    lines.append(say("Knowledge base: {base}", base=_base(kb, attached)))
    lines.append(say("Search by meaning: {meaning}", meaning=_meaning(bridge, space.memory.stats())))
    if times := bridge.turn_times():
        lines.append(say("Last turns: {n:.0f}, memory took {p50:.1f} ms (95 %: {p95:.1f} ms), vectors {model:.1f} ms", **times))
    lines += [say("Trouble: {why}", why=translated(why)) for kind, why in bridge.troubles.items() if kind != "meaning"]
    return "\n".join([*lines, say("File: {path}", path=space.memory.path)])


def _counts(profile: ltm.Profile) -> str:
    if not profile:
        return say("(empty)")
    return say("{traits} traits, {preferences} preferences", traits=len(profile.traits), preferences=len(profile.preferences))


def _base(kb: str, attached: Any) -> str:
    if not kb:
        return say(
            "none, so nothing is put into prompts; create one with the engine Long-term memory and attach it to the pipeline"
        )
    if isinstance(attached, list) and kb not in attached:
        return say("{id}, not attached to this pipeline, so nothing is put into its prompts", id=kb[:12])
    return say("{id}, active", id=kb[:12])


def _meaning(bridge: bridges.Bridge, stats: dict[str, Any]) -> str:
    if why := bridge.troubles.get("meaning"):
        return say("off, memories are found by their words; {why}", why=translated(why))
    if bridge.memory is None or bridge.memory.embedder is None:
        return say("no embedding model, memories are found by their words")
    total = sum(stats["episodes"].values())
    models = [f"{each['fingerprint']} ({each['state']})" for each in stats["embedders"]] or [bridge.memory.embedder.fingerprint]
    done = total - stats["pending"]
    return say("{models}; {done:,} of {total:,} episodes have their vector", models=", ".join(models), done=done, total=total)


# ------------------------------------------------------------------------------- words to actions

Reader = Callable[[list[str], str], tuple[str, dict[str, Any]]]


def usage(form: str) -> _Usage:
    """How a subcommand is written."""
    return _Usage(say("Usage: !memory {form}", form=form))


def _one(action: str, form: str, field: str = "id") -> Reader:
    """A subcommand that takes one word."""

    def read(rest: list[str], tail: str) -> tuple[str, dict[str, Any]]:
        if len(rest) != 1:
            raise usage(form)
        return action, {field: rest[0]}

    return read


def _none(action: str) -> Reader:
    return lambda rest, tail: (action, {})


def _search(rest: list[str], tail: str) -> tuple[str, dict[str, Any]]:
    statuses, query = _statuses(rest, ("active",))
    if not query:
        raise usage("search [--status STATUS | --include-STATUS | --all-statuses] QUESTION")
    return "recall", {"query": " ".join(query), "limit": PAGE, "statuses": statuses}


def _list(base: Sequence[str]) -> Reader:
    def read(rest: list[str], tail: str) -> tuple[str, dict[str, Any]]:
        statuses, more = _statuses(rest, base)
        if len(more) > 1:
            raise usage("list [--status STATUS | --include-STATUS | --all-statuses] [CURSOR]")
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
    raise usage("export [l2 [--status STATUS | --include-STATUS | --all-statuses] | all-current-scope]")


def _import(rest: list[str], tail: str) -> tuple[str, dict[str, Any]]:
    if not rest or rest[0] not in ("l2", "legacy") or not tail.strip():
        raise usage("import l2|legacy JSON")
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
            if name == "statuses":
                _statuses([word, value], ())
            data[name] = [*data.get(name, []), value] if name in ("tags", "statuses") else value
        else:
            raise usage("delete [--speaker ID] [--tag TAG] [--before TIME] [--status STATUS] [--dry-run]")
    return "delete", data


def _consolidate(rest: list[str], tail: str) -> tuple[str, dict[str, Any]]:
    if rest[:1] == ["preview"]:
        return "consolidate draft", {}
    if rest[:1] == ["run"] and len(rest) <= 2:
        return "consolidate run", {"proposal_id": rest[1] if len(rest) == 2 else None}
    raise usage("consolidate preview | run [PROPOSAL]")


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
        raise usage("candidate accept|reject ID...")
    return f"candidate {rest[0]}", {"ids": rest[1:]}


def _edit(rest: list[str], tail: str) -> tuple[str, dict[str, Any]]:
    """ID and the new text, or --tag, --importance, --event-at."""
    form = "edit ID [--importance N] [--tag TAG] [--event-at TIME] [NEW TEXT]"
    if len(rest) < 2:
        raise usage(form)
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
                raise usage(form)
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
    raise usage("profile [edit set|add|remove FIELD VALUE]")


def _fence(rest: list[str], tail: str) -> tuple[str, dict[str, Any]]:
    if rest[:1] == ["set"] and len(rest) > 1:
        return "fence set", {"reason": " ".join(rest[1:])}
    if rest[:1] == ["clear"] and len(rest) == 2 and rest[1].isdecimal():
        return "fence clear", {"id": int(rest[1])}
    if not rest or rest == ["list"]:
        return "fence list", {}
    raise usage("fence [list | set REASON | clear NUMBER]")


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
HELP = """\
!memory: what is kept here, and what does not work
search QUESTION, list, show ID, history ID, superseded, archived: find and look back
edit ID NEW TEXT, archive ID, restore ID, forget ID, undo AUDIT-ID: correct
profile, profile edit set|add|remove FIELD VALUE: lasting facts
audit, audit export, audit verify: who did what
export, export l2, export all-current-scope: the data as JSON
health, config, help: whether it works, how it is set
For administrators: stats, import l2|legacy JSON, delete FILTER, candidates, candidate accept|reject ID, consolidate preview|run, \
fence, config set NAME VALUE, config reset NAME"""
