"""The command line: click commands that translate to calls of ltm, and print the answer for people or as JSON.

No SQL, no ranking. One line on stderr and exit status 1 for every error that ltm raises on purpose; a traceback is a bug.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import click

import ltm
import ltm_models

from . import demo as demonstration

F = TypeVar("F", bound=Callable[..., Any])
IMPORT_BATCH = 500  # lines in one transaction


@dataclasses.dataclass
class Target:
    """The global options: which file, which scope, who speaks."""

    db: str | None
    bot: str | None
    chat: str | None
    isolation: str
    speaker: str | None
    embedder: str

    def memory(self, *, readonly: bool = False, create: bool = False) -> ltm.Memory:
        if not self.db:
            raise click.UsageError("Say which file: --db FILE (or LTM_DB).")
        if not create and not os.path.exists(self.db):
            raise ltm.NotFound(f"{self.db} does not exist; `ltm --db {self.db} init` makes it")
        embedder = None if self.embedder == "none" else ltm_models.named(self.embedder)
        memory = ltm.open(self.db, embedder=embedder, readonly=readonly)
        for warning in memory.warnings:
            click.echo(f"note: {warning}", err=True)
        return memory

    def scope(self) -> ltm.Scope:
        if self.bot is None:
            raise click.UsageError("Say which bot: --bot ID (or LTM_BOT). An empty text is a bot of its own.")
        if not self.chat or ":" not in self.chat:
            raise click.UsageError("Say which chat: --chat group:ID or --chat person:ID (or LTM_CHAT).")
        kind, _, launcher = self.chat.partition(":")
        return ltm.Scope(self.bot, kind, launcher, self.isolation)

    def who(self) -> ltm.Speaker | None:
        if self.speaker is None:
            return None
        id, _, name = self.speaker.partition(":")
        return ltm.Speaker(id, name)

    def space(self, memory: ltm.Memory) -> ltm.Space:
        return memory.space(self.scope(), speaker=self.who(), via="cli")


def command(group: click.Group, name: str | None = None) -> Callable[[F], click.Command]:
    """A command that returns its answer: (data for --json, text for people)."""

    def decorate(function: F) -> click.Command:
        @functools.wraps(function)
        def run(*args: Any, as_json: bool, **options: Any) -> None:
            data, text = function(*args, **options)
            click.echo(json.dumps(data, ensure_ascii=False, indent=2) if as_json else text)

        option = click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
        return group.command(name or function.__name__.replace("_", "-"))(option(run))

    return decorate


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(ltm.__version__, prog_name="ltm")
@click.option("--db", envvar="LTM_DB", show_envvar=True, metavar="FILE", help="The memory file.")
@click.option("--bot", envvar="LTM_BOT", show_envvar=True, metavar="ID", help="The bot; may be empty.")
@click.option("--chat", envvar="LTM_CHAT", show_envvar=True, metavar="TYPE:ID", help="The chat: group:ID or person:ID.")
@click.option(
    "--isolation",
    envvar="LTM_ISOLATION",
    show_envvar=True,
    type=click.Choice(["session", "bot"]),
    default="session",
    show_default=True,
    help="Keep episodes in the chat, or share them among all chats of the bot.",
)
@click.option(
    "--speaker", envvar="LTM_SPEAKER", show_envvar=True, metavar="ID[:NAME]", help="Who speaks; the id ends at the first colon."
)
@click.option(
    "--embedder",
    envvar="LTM_EMBEDDER",
    show_envvar=True,
    default="none",
    show_default=True,
    metavar="NAME",
    help="none, e5 (local), hash (for trials) or http:URL#MODEL:DIMENSIONS.",
)
@click.pass_context
def cli(context: click.Context, /, **options: Any) -> None:
    """Long-term memory for chat bots in one SQLite file.

    Every command on memory needs a complete scope: --bot and --chat. `ltm demo` shows what it does.
    """
    context.obj = Target(**options)


# ------------------------------------------------------------------------------------------- episodes


@command(cli)
@click.pass_obj
def init(target: Target) -> Any:
    """Make the file, or migrate an older one."""
    fresh = not os.path.exists(target.db or "")
    with target.memory(create=True) as memory:
        path = memory.path
    return {"path": path, "created": fresh}, f"{'made' if fresh else 'ready'}: {path}"


@command(cli)
@click.argument("content")
@click.option("--importance", type=click.IntRange(1, 5), default=2, show_default=True, help="How much it matters.")
@click.option("--tag", "tags", multiple=True, help="A tag; may be given several times.")
@click.option("--supersedes", multiple=True, metavar="ID", help="An episode that this replaces; may be given several times.")
@click.option("--source", default="cli", show_default=True, help="Where it comes from.")
@click.option("--source-ref", default="", help="The message or document it was read from.")
@click.option("--claim-type", type=click.Choice(ltm.CLAIM_TYPES), default="unknown", show_default=True, help="Who vouches for it.")
@click.option("--event-at", metavar="TIME", help="When it happens; ISO-8601 with zone.")
@click.option("--valid-from", metavar="TIME", help="From when it holds; with zone.")
@click.option("--valid-until", metavar="TIME", help="Until when it holds, exclusive; with zone.")
@click.option("--pinned", is_flag=True, help="It never fades.")
@click.option("--operation-key", metavar="KEY", help="The same key answers the first result again.")
@click.pass_obj
def remember(target: Target, /, content: str, **options: Any) -> Any:
    """Store an episode."""
    with target.memory() as memory:
        stored = target.space(memory).remember(content, **options)
    words = {"stored": "stored", "duplicate": "already stored as", "repeated": "answered before:"}[stored.outcome]
    lines = [f"{words} {stored.id}" + (" (vector pending)" if stored.embedding == "pending" and target.embedder != "none" else "")]
    lines += [f"superseded {id}" for id in stored.superseded] + [f"note: {note}" for note in stored.notes]
    return dataclasses.asdict(stored), "\n".join(lines)


def filters(function: F) -> F:
    """The options that make an ltm.Filter."""
    options = [
        click.option("--status", "statuses", multiple=True, type=click.Choice(ltm.STATUSES), help="Default: active."),
        click.option("--speaker-id", metavar="ID", help="Only what this speaker said."),
        click.option("--speaker-name", metavar="NAME", help="Only what a speaker of this name said."),
        click.option("--source", help="Only from this source."),
        click.option("--tag", "tags", multiple=True, help="Only with this tag; several: with all of them."),
        click.option("--after", metavar="TIME", help="Stored or said at this time or later."),
        click.option("--before", metavar="TIME", help="Stored or said at this time or earlier."),
        click.option("--importance-min", type=click.IntRange(1, 5), default=1, help="At least this important."),
        click.option("--at", metavar="TIME", help="Only what is valid at this time."),
        click.option("--include-ended", is_flag=True, help="Also what is no longer valid."),
    ]
    for option in reversed(options):
        function = option(function)

    @functools.wraps(function)
    def run(*args: Any, **given: Any) -> Any:
        values = {each.name: given.pop(each.name) for each in dataclasses.fields(ltm.Filter)}
        values["statuses"] = values["statuses"] or ("active",)
        return function(*args, where=ltm.Filter(**values), **given)

    return run  # type: ignore[return-value]


@command(cli)
@click.argument("query")
@click.option("--limit", type=click.IntRange(1, ltm.RECALL_LIMIT), default=5, show_default=True, help="At most so many.")
@click.option("--explain", is_flag=True, help="Print the points of each signal.")
@filters
@click.pass_obj
def recall(target: Target, query: str, limit: int, explain: bool, where: ltm.Filter) -> Any:
    """Find what is relevant to a question."""
    with target.memory() as memory:
        found = target.space(memory).recall(query, limit=limit, where=where)
    return recall_json(found), recall_text(found, explain)


@command(cli)
@click.argument("id")
@click.argument("query")
@click.option("--limit", type=click.IntRange(1, ltm.RECALL_LIMIT), default=5, show_default=True, help="As given to recall.")
@filters
@click.pass_obj
def why_not(target: Target, id: str, query: str, limit: int, where: ltm.Filter) -> Any:
    """Say why an episode is not in the answer to a question."""
    with target.memory() as memory:
        verdict = target.space(memory).why_not(id, query, limit=limit, where=where)
    data: dict[str, Any] = {"code": verdict.code, "words": verdict.words, "rank": verdict.rank}
    data["hit"] = hit_json(verdict.hit) if verdict.hit else None
    lines = [f"{verdict.code.replace('_', ' ')}: {verdict.words}"]
    return data, "\n".join(lines + ([points(verdict.hit)] if verdict.hit else []))


@command(cli)
@click.argument("id")
@click.pass_obj
def show(target: Target, id: str) -> Any:
    """Show an episode whole."""
    with target.memory() as memory:
        episode = target.space(memory).get(id)
    data = episode.to_json()
    labels = [(key.replace("_", " "), ", ".join(value) if isinstance(value, list) else value) for key, value in data.items()]
    lines = [f"{label + ':':<15}{value}" for label, value in labels if value not in ("", False) and label != "content"]
    return data, "\n".join([*lines, "", episode.content])


@command(cli, "list")
@click.option("--limit", type=click.IntRange(1, ltm.RECALL_LIMIT), default=20, show_default=True, help="Rows on a page.")
@click.option("--cursor", default="", help="Go on where a page ended.")
@filters
@click.pass_obj
def list_episodes(target: Target, limit: int, cursor: str, where: ltm.Filter) -> Any:
    """List episodes, newest first."""
    with target.memory() as memory:
        page = target.space(memory).list(where, limit=limit, cursor=cursor)
    data = {"episodes": [episode.to_json() for episode in page.episodes], "total": page.total, "cursor": page.cursor}
    lines = [f"{len(page.episodes)} of {page.total}", *(line(episode) for episode in page.episodes)]
    return data, "\n".join(lines + ([f"more: --cursor {page.cursor}"] if page.cursor else []))


# ------------------------------------------------------------------------------------------- profiles


@cli.group()
def profile() -> None:
    """What is known of the chat and of who speaks."""


subject_option = click.option(
    "--subject", type=click.Choice(["session", "speaker"]), help="Whose; default: the session for notes, else the speaker."
)


@command(profile, "show")
@click.option("--history", is_flag=True, help="Also what was so before.")
@click.pass_obj
def profile_show(target: Target, history: bool) -> Any:
    """Show the profiles of the chat and of the speaker."""
    with target.memory() as memory:
        desk = target.space(memory).profiles
        subjects = ["session"] + (["speaker"] if target.speaker is not None else [])
        profiles = {subject: desk.get(subject) for subject in subjects}  # type: ignore[arg-type]
        facts = {subject: desk.history(subject) for subject in subjects} if history else {}  # type: ignore[arg-type]
    data = {subject: dataclasses.asdict(found) for subject, found in profiles.items()}
    blocks = []
    for subject, found in profiles.items():
        lines = [subject.capitalize(), found.text() or "(nothing known)"]
        for fact in facts.get(subject, ()):
            span = f"{fact.created_at} to {fact.ended_at or 'now'}"
            lines.append(f"  {span}  {fact.field} {fact.slot or '-'}: {fact.value} ({fact.reason or fact.status})")
        blocks.append("\n".join(lines))
    data |= {f"{subject}_history": [dataclasses.asdict(fact) for fact in found] for subject, found in facts.items()}  # type: ignore[misc]
    return data, "\n\n".join(blocks)


def profile_action(action: str, words: str) -> None:
    @command(profile, action)
    @click.argument("field", type=click.Choice(ltm.PROFILE_FIELDS))
    @click.argument("value", required=action != "remove", default="" if action == "remove" else None)
    @click.option("--fact-key", default="", help="The slot of a trait or preference; it holds one value at a time.")
    @click.option("--previous-value", default="", help="A value that the new one replaces.")
    @subject_option
    @click.pass_obj
    def run(target: Target, /, field: str, value: str, **options: Any) -> Any:
        with target.memory() as memory:
            change = target.space(memory).profiles.update(field, action, value, **options)
        counts = f"{change.outcome}: {change.added} added, {change.ended} ended"
        return dataclasses.asdict(change), f"{counts}\n{change.profile.text() or '(nothing known)'}"

    run.help = words


profile_action("set", "Set a value; in a slot it supersedes the one before, without a slot all of the field.")
profile_action("add", "Add a value beside the others.")
profile_action("remove", "Remove a value, a slot, the name, or all notes.")


# ----------------------------------------------------------------------------------------------- file


@command(cli)
@click.pass_obj
def spaces(target: Target) -> Any:
    """List every space of the file with its counts."""
    with target.memory() as memory:
        found = memory.spaces()
    data = [dataclasses.asdict(space) for space in found]
    rows = [f"{s.kind:<8}{s.key}  {s.active} active of {s.episodes}, {s.facts} facts, {s.speakers} speakers" for s in found]
    return data, "\n".join(rows) or "(no space holds anything)"


@command(cli)
@click.pass_obj
def stats(target: Target) -> Any:
    """Count what the file holds."""
    with target.memory() as memory:
        data = memory.stats()
    counts = {**{f"{status} episodes": n for status, n in data["episodes"].items()}, **data}
    rows = [f"{name + ':':<22}{value:,}" for name, value in counts.items() if isinstance(value, int)]
    rows += [f"{'embedder:':<22}{g['fingerprint']} ({g['dim']} dimensions, {g['state']})" for g in data["embedders"]]
    return data, "\n".join(rows)


@command(cli)
@click.pass_obj
def check(target: Target) -> Any:
    """Recompute everything derived and say what disagrees; exit status 1 if anything does."""
    with target.memory() as memory:
        problems = memory.check()
    if problems:
        raise ltm.Corrupt("; ".join(problems))
    return {"problems": []}, "sound"


def bar(label: str, length: int | None = None) -> Any:
    """A progress bar on stderr, where a person sees it."""
    return click.progressbar(length=length or 1, label=label, file=sys.stderr, hidden=not sys.stderr.isatty())


def advance(shown: Any) -> Callable[[int, int], None]:
    def progress(done: int, total: int) -> None:
        shown.length = max(total, done)
        shown.update(done - shown.pos)

    return progress


@command(cli)
@click.option("--abandon", is_flag=True, help="Give up a model that is being built; stay with the one that serves.")
@click.pass_obj
def embed(target: Target, abandon: bool) -> Any:
    """Make the vectors that are missing. Stopped in between, it goes on where it was."""
    if abandon:
        with target.memory() as memory:
            done = memory.abandon_building()
        return {"abandoned": done}, "abandoned" if done else "no model is being built"
    with target.memory() as memory, bar("embedding") as shown:
        report = memory.embed_pending(progress=advance(shown))
    text = f"{report.done} embedded, {report.failed} failed, {report.remaining} left ({report.state})"
    return dataclasses.asdict(report), text + (f"\nlast error: {report.error}" if report.error else "")


@command(cli)
@click.pass_obj
def reindex(target: Target) -> Any:
    """Rebuild the index of words from the episodes."""
    with target.memory() as memory, bar("indexing") as shown:
        done = memory.reindex(progress=advance(shown))
    return {"indexed": done}, f"{done} indexed"


@command(cli)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.pass_obj
def import_chat(target: Target, file: Path) -> Any:
    """Read a conversation: JSON lines of {"speaker", "speaker_name", "text", "at"}.

    A line that cannot be read is reported with its number and skipped. Reading a file again adds nothing.
    """
    counts = {"stored": 0, "duplicate": 0}
    bad: list[dict[str, Any]] = []
    target.scope(), target.who()  # before a file is made
    with target.memory(create=True) as memory:
        space = target.space(memory)
        with bar("reading", file.stat().st_size) as shown:
            for lines in batches(read_lines(file), IMPORT_BATCH):
                with memory.batch():
                    for number, raw in lines:
                        take_line(space, number, raw, counts, bad)
                shown.update(sum(len(raw) for _, raw in lines))
        report = None
        if memory.embedder:
            with bar("embedding") as shown:
                report = memory.embed_pending(progress=advance(shown))
    data = {**counts, "skipped": len(bad), "bad_lines": bad, "embedded": dataclasses.asdict(report) if report else None}
    text = [f"{counts['stored']} stored, {counts['duplicate']} already there, {len(bad)} lines skipped"]
    text += [f"line {each['line']}: {each['problem']}" for each in bad]
    text += [f"{report.done} embedded, {report.failed} failed, {report.remaining} left"] if report else []
    return data, "\n".join(text)


def read_lines(file: Path) -> Iterator[tuple[int, bytes]]:
    with file.open("rb") as lines:
        for number, raw in enumerate(lines, 1):
            if raw.strip(b" \t\r\n\xef\xbb\xbf"):
                yield number, raw


def batches(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    batch: list[Any] = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


@functools.cache
def message_model() -> Any:
    """One line of a conversation. Made at first need: pydantic takes longer to load than most commands to run."""
    import pydantic

    class Message(pydantic.BaseModel, extra="ignore", strict=True):
        speaker: str = ""
        speaker_name: str = ""
        text: str
        at: str | None = None

    return Message


def take_line(space: ltm.Space, number: int, raw: bytes, counts: dict[str, int], bad: list[dict[str, Any]]) -> None:
    """Store one line of a conversation, or note why not."""
    import pydantic

    try:
        message = message_model().model_validate_json(raw.lstrip(b"\xef\xbb\xbf"))
        speaker = ltm.Speaker(message.speaker, message.speaker_name) if message.speaker else None
        details = {"created_at": message.at, "source": "import", "claim_type": "user_statement"}
        # The key makes a second reading nothing, even if the line was corrected or forgotten since.
        key = hashlib.sha256(json.dumps([message.speaker, message.text, message.at]).encode()).hexdigest()
        stored = space.for_speaker(speaker).remember(message.text, operation_key=f"import-chat:{key}", **details)
        counts["stored" if stored.outcome == "stored" else "duplicate"] += 1
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        bad.append({"line": number, "problem": f"{where}: {first['msg']}" if where else first["msg"]})
    except (ltm.InvalidInput, ltm.Conflict) as error:
        bad.append({"line": number, "problem": str(error)})


@command(cli)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
@click.pass_obj
def backup(target: Target, file: Path, overwrite: bool) -> Any:
    """Write a consistent, checked copy, while the file is in use."""
    with target.memory() as memory:
        path = memory.backup(file, overwrite=overwrite)
    return {"path": str(path), "bytes": path.stat().st_size}, f"copied to {path} ({path.stat().st_size:,} bytes)"


@command(cli)
@click.pass_obj
def demo(target: Target) -> Any:
    """Store a small conversation, ask five questions, and explain the answers.

    In a file of its own (--db FILE, which must not exist yet) or in memory.
    """
    if target.db and os.path.exists(target.db):
        raise ltm.Conflict(f"{target.db} exists; the demonstration wants a new file")
    clock = demonstration.Clock()
    embedder = None if target.embedder == "none" else ltm_models.named(target.embedder)
    with ltm.open(target.db or ":memory:", embedder=embedder, clock=clock, ids=demonstration.Ids()) as memory:
        ids = demonstration.play(memory, clock)
        space = memory.space(demonstration.SCOPE)
        answers = [(question, space.recall(question, limit=2)) for question in demonstration.QUESTIONS]
        verdict = space.why_not(ids[0], demonstration.QUESTIONS[0])
        profiles = [space.for_speaker(who).profiles.get("speaker") for who in (demonstration.ALICE, demonstration.LIN)]
    lines = ["A group of three talks:", ""]
    lines += [f"  {each.speaker.name}: {each.text}" for each in demonstration.CONVERSATION]
    for question, found in answers:
        lines += ["", f"? {question}", recall_text(found, explain=True)]
    lines += ["", f"Why not {ids[0]}, Alice's first plan? {verdict.words}."]
    lines += ["", "Profiles:", f"Alice\n{profiles[0].text('')}", f"小林\n{profiles[1].text('')}"]
    if target.db:
        lines += ["", f"Kept in {target.db}; ask on: ltm --db {target.db} --bot demo --chat group:weekend recall QUESTION"]
    return {"answers": [{"question": question, **recall_json(found)} for question, found in answers]}, "\n".join(lines)


# ---------------------------------------------------------------------------------------------- words


def line(episode: ltm.Episode) -> str:
    """An episode in a line: id, day, speaker, tags, text."""
    who = f"{printable(episode.speaker.name or episode.speaker.id)}: " if episode.speaker else ""
    marks = "".join(f" [{printable(tag)}]" for tag in episode.tags) + ("" if episode.status == "active" else f" ({episode.status})")
    return f"{episode.id}  {episode.created_at[:10]}{marks}  {who}{printable(episode.content, 200)}"


def printable(text: str, limit: int = 64) -> str:
    """Text on one line of a terminal: no control or direction characters, and an end that says what is missing."""
    flat = "".join(char if char.isprintable() else " " if char.isspace() else "\N{REPLACEMENT CHARACTER}" for char in text)
    return flat if len(flat) <= limit else f"{flat[:limit]}... ({len(text):,} characters)"


def points(hit: ltm.Hit) -> str:
    """The points of a hit: what its score is made of."""
    parts = [f"{name} {hit.why[name]:.3f} ({hit.signals[name]:.2f})" for name in ltm.SIGNALS if hit.why[name]]
    return "      " + " + ".join(parts) + f" = {hit.score:.3f}; relevance {hit.relevance:.2f}"


def recall_text(found: ltm.Recall, explain: bool) -> str:
    lines = []
    for number, hit in enumerate(found.hits, 1):
        lines.append(f"{number}. {hit.score:.3f}  {line(hit.episode)}")
        lines += [points(hit)] if explain else []
    dropped = ", ".join(f"{n} by {reason}" for reason, n in found.dropped.items() if n)
    counts = f"{len(found.hits)} shown; {found.considered} considered, {found.below_threshold} not relevant enough"
    lines.append(f"   {counts}{f'; left out: {dropped}' if dropped else ''}; {found.mode}")
    lines += [f"   {found.reason}"] if found.reason and explain else []
    return "\n".join(lines + [f"   note: {note}" for note in found.truncated])


def hit_json(hit: ltm.Hit) -> dict[str, Any]:
    return {
        **hit.episode.to_json(),
        "score": hit.score,
        "relevance": hit.relevance,
        "why": dict(hit.why),
        "signals": dict(hit.signals),
    }


def recall_json(found: ltm.Recall) -> dict[str, Any]:
    data = {each.name: getattr(found, each.name) for each in dataclasses.fields(found) if each.name not in ("hits", "elapsed")}
    return {
        "hits": [hit_json(hit) for hit in found.hits],
        **data,
        "dropped": dict(found.dropped),
        "truncated": list(found.truncated),
    }


def main() -> None:
    """Run the command line; one line for an error of ltm's."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")
    try:
        cli.main(standalone_mode=False)
    except ltm.LtmError as error:
        click.echo(f"ltm: {error}", err=True)
        sys.exit(1)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except BrokenPipeError:  # the reader has seen enough
        sys.stdout = None
        sys.exit(1)
    except OSError as error:
        print(f"ltm: {error}", file=sys.stderr)
        sys.exit(1)
    except click.exceptions.Abort:
        click.echo("ltm: interrupted", err=True)
        sys.exit(130)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)


if __name__ == "__main__":
    main()
