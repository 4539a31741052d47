"""The command line: a click command for each action of the table, and a few of its own that deal with files and models.

No SQL, no ranking. One line on stderr and exit status 1 for every error that ltm raises on purpose; a traceback is a bug.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
import sys
import typing
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import click

import ltm
import ltm_models

from . import demo as demonstration
from . import words
from .actions import ACTIONS, Action, fields_of, to_data

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

    def label(self, action: Action) -> str:
        """Where it would happen, for a question."""
        return f"{self.db}, {self.scope().user_key}:" if action.on is ltm.Space else f"{self.db}:"


def command(group: click.Group, name: str | None = None) -> Callable[[F], click.Command]:
    """A command that returns its answer: (data for --json, text for people)."""

    def decorate(function: F) -> click.Command:
        @functools.wraps(function)
        def run(*args: Any, as_json: bool, **options: Any) -> None:
            data, text = function(*args, **options)
            answer(data, text, as_json)

        option = click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
        return group.command(name or function.__name__.replace("_", "-"))(option(run))

    return decorate


def answer(data: Any, text: str, as_json: bool) -> None:
    """Print an answer; exit status 1 when it tells of something wrong."""
    click.echo(json.dumps(data, ensure_ascii=False, indent=2) if as_json else text)
    wrong = isinstance(data, dict) and (data.get("problems") or ("checks" in data and data.get("status") == "ERROR"))
    if wrong or (isinstance(data, dict) and data.get("proven") is False):
        raise click.exceptions.Exit(1)


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


# ------------------------------------------------------------------------------------- from the table

GROUPS = {
    "profile": "What is known of the chat and of who speaks.",
    "audit": "Who did what, in one chain of hashes.",
    "candidate": "What may be worth remembering, until a person decides.",
    "consolidate": "Archive what was superseded; publish summaries.",
    "document": "What was taken in as one.",
    "fence": "Blocks on writes.",
    "config": "Settings of the file.",
}
OWN = ("export", "import", "embed")  # they deal with files or models, so their commands are written below


def parameters(action: Action) -> Iterator[click.Parameter]:
    """The arguments and options that an action's input asks for."""
    for each in fields_of(action):
        meta = each.meta
        if each.required or meta.get("rest"):
            rest: dict[str, Any] = {"nargs": -1} if each.several else {} if each.required else {"default": each.default}
            yield click.Argument([each.name], required=each.required, type=each.kind, **rest)
            continue
        flag = "--" + (meta["name"] or each.name).replace("_", "-")
        options: dict[str, Any] = {"help": meta["help"], "metavar": meta["metavar"] or None, "multiple": each.several}
        if each.kind is bool:
            flag += f"/--no-{flag[2:]}" if each.optional else ""
            options |= {"is_flag": True, "default": None if each.optional else False}
        else:
            options["type"] = click.Choice(meta["choices"]) if meta["choices"] else each.kind
            if not each.several:
                options |= {"default": each.default, "show_default": each.default not in (None, "")}
        yield click.Option([flag, each.name], **options)


def run_action(action: Action, target: Target, options: dict[str, Any]) -> None:
    """Ask if it has to be asked, do it, print the answer."""
    as_json, explain = options.pop("as_json"), options.pop("explain", False)
    asked = action.confirm and not options.pop("yes") and not options.get("dry_run")
    lists = {each.name for each in dataclasses.fields(action.input) if isinstance(options.get(each.name), tuple)}
    given = {name: list(value) if name in lists else value for name, value in options.items()}
    fields = {each.name: each for each in dataclasses.fields(action.input)}
    given = {name: None if value == [] and fields[name].default is None else value for name, value in given.items()}
    with target.memory() as memory:
        on = target.space(memory) if action.on is ltm.Space else memory
        if asked:
            ask(f"{target.label(action)}{foreseen(action, on, given)} {action.confirm}")
        found = action.run(on, action.input(**given))
        data = to_data(found, target.scope() if action.on is ltm.Space else None)
    answer(data, words.recall(found, True) if explain else action.text(found), as_json)


def foreseen(action: Action, on: Any, given: dict[str, Any]) -> str:
    """What it would come to, for the question: an input that makes no sense is refused before anybody is asked."""
    if action.name == "delete":
        counts = action.run(on, action.input(**{**given, "dry_run": True})).counts
        return f" {sum(counts.values())} episodes."
    if action.name == "erase" and given.get("speaker") is not None:
        return f" speaker {given['speaker']}."
    if action.name == "audit close":
        ltm.to_us(given["before"], "--before", zone_required=False)
    return ""


def ask(question: str) -> None:
    """Go on at yes; at no, or where nobody can be asked, say that nothing was done."""
    try:
        agreed = click.confirm(question, err=True)
    except click.Abort:
        raise ltm.InvalidInput("nobody answered the question, so nothing was done; --yes answers it") from None
    if not agreed:
        raise ltm.InvalidInput("nothing was done")


def add_action(action: Action) -> None:
    """Make the command of an action."""
    *path, name = action.name.split()
    group = cli
    for each in path:
        if each not in group.commands:
            group.add_command(click.Group(each, help=GROUPS[each]))
        group = typing.cast(click.Group, group.commands[each])
    extra = (
        [click.Option(["--explain"], is_flag=True, help="Print the points of each signal.")] if action.output is ltm.Recall else []
    )
    extra += [click.Option(["--yes"], is_flag=True, help="Do not ask.")] if action.confirm else []
    json_option = click.Option(["--json", "as_json"], is_flag=True, help="Print the answer as JSON.")

    def run(**options: Any) -> None:
        run_action(action, click.get_current_context().obj, options)

    params = [*parameters(action), *extra, json_option]
    group.add_command(click.Command(name, callback=run, params=params, help=action.words + told(action)))


def told(action: Action) -> str:
    """What each argument is: click shows help for options alone."""
    fields = [each for each in dataclasses.fields(action.input) if each.metadata.get("argument") or each.metadata.get("rest")]
    lines = [f"  {each.name.upper():<12} {each.metadata['help']}" for each in fields]
    return "\n\n\b\n" + "\n".join(["Arguments:", *lines]) if lines else ""


for each in ACTIONS.values():
    if each.name not in OWN:
        add_action(each)


@command(cli, "export")
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True), default="-")
@click.option("--kind", "kinds", multiple=True, type=click.Choice(ltm.EXPORT_KINDS), help="What to export; default: everything.")
@click.option(
    "--status", "statuses", multiple=True, type=click.Choice(ltm.STATUSES), help="Only episodes in this state; default: all."
)
@click.option("--lines", is_flag=True, help="JSON Lines, one record a line, written as it is read: for large spaces.")
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
@click.pass_obj
def export_space(target: Target, file: str, kinds: tuple[str, ...], statuses: tuple[str, ...], lines: bool, overwrite: bool) -> Any:
    """Export profiles, episodes and audit of the space, to FILE or to the screen."""
    if file != "-" and os.path.exists(file) and not overwrite:
        raise ltm.Conflict(f"{file} exists; choose another name or say --overwrite")
    file = os.path.realpath(file) if file != "-" else file  # a link stays a link
    if os.path.exists(file) and not os.path.isfile(file):
        raise ltm.InvalidInput(f"{file} is no ordinary file; it was left as it is")
    chosen: dict[str, Any] = {"kinds": kinds or ltm.EXPORT_KINDS, "statuses": statuses or ltm.STATUSES}
    with target.memory() as memory, bar("exporting") as shown:
        desk = target.space(memory).transfer
        if file == "-" and lines:
            desk.write(sys.stdout, **chosen)
            raise click.exceptions.Exit(0)
        if file == "-":
            data = desk.export(**chosen)
            return data, json.dumps(data, ensure_ascii=False, indent=2)
        draft = Path(f"{file}.{os.getpid()}.tmp")
        try:
            with draft.open("w", encoding="utf-8", newline="\n") as stream:
                counts = whole(desk, stream, chosen) if not lines else desk.write(stream, progress=advance(shown), **chosen)
            os.replace(draft, file)
        finally:
            draft.unlink(missing_ok=True)
    return {"path": file, **counts}, f"wrote {', '.join(f'{n} {kind}' for kind, n in counts.items())} to {file}"


def whole(desk: ltm.Transfer, stream: typing.TextIO, chosen: dict[str, Any]) -> dict[str, int]:
    """Write an export as one JSON document."""
    data = desk.export(**chosen)
    json.dump(data, stream, ensure_ascii=False, indent=1)
    return {kind: len(data[kind]) for kind in chosen["kinds"]}


@command(cli, "import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option("--skip-bad", is_flag=True, help="Leave out records that cannot be taken instead of refusing all.")
@click.option("--allow-erased", is_flag=True, help="Bring back texts that were erased here.")
@click.option("--dry-run", is_flag=True, help="Only count.")
@click.option("--document", default="", metavar="ID", help="Take it in as this document, to be deleted as one later.")
@click.pass_obj
def import_file(target: Target, /, file: str, document: str, **options: Any) -> Any:
    """Take an export into this space: ours, LongTermMemory's or LivingMemory's. The same file again adds nothing.

    Whatever scope the file names, all of it lands in this one. Vectors are made by `ltm embed`.
    """
    with target.memory() as memory, bar("importing") as shown:
        desk = target.space(memory).transfer
        load = functools.partial(desk.load_document, document) if document else desk.load
        try:
            report = load(file, progress=advance(shown), **options)
        except (KeyboardInterrupt, click.Abort):
            fences = [fence.reason for fence in memory.fences() if fence.operation == "import_l2"]
            raise ltm.Fenced(f"interrupted; {fences[-1]}" if fences else "interrupted; nothing was stored") from None
    return to_data(report), words.import_report(report)


# ---------------------------------------------------------------------------------------- of its own


@cli.command()
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="The port; 0 takes a free one.")
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="The address to listen on.")
@click.option("--allow-remote", is_flag=True, help="Other machines are meant to reach it: whoever has the link can do everything.")
@click.option("--open", "open_page", is_flag=True, help="Open the page in the browser.")
@click.option("--read-only", is_flag=True, help="Open the file for reading only: nothing can be changed.")
@click.option("--token-file", type=click.Path(dir_okay=False), help="Also write the link to this file, readable by you alone.")
@click.option("--actor", default="", metavar="NAME", help="Who acts, for the audit.")
@click.pass_obj
def serve(
    target: Target, /, port: int, host: str, open_page: bool, read_only: bool, token_file: str | None, **options: Any
) -> None:
    """Show the memory console in a browser, for one file and all of its chats. Ctrl-C stops it.

    The link holds a token: whoever has it can do what the page can.
    """
    from . import api, web

    with target.memory(readonly=read_only) as memory:
        console = api.Console(memory, host="serve", actor=options["actor"])
        with web.Server(console, host=host, port=port, remote=options["allow_remote"]) as server:
            if options["allow_remote"]:
                click.echo(f"warning: {host} can be reached from elsewhere, and what is sent can be read on the way", err=True)
            if token_file:
                write_private(token_file, server.url + "\n")
            click.echo(f"The memory console of {memory.path} is at\n  {server.url}\nCtrl-C stops it.")
            if open_page:
                click.launch(server.url)
            web.serve(server)
    click.echo("stopped")


def write_private(path: str, text: str) -> None:
    """Write a file that nobody else can read, also when it was there before."""
    draft = f"{path}.{os.getpid()}.tmp"
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
            stream.write(text)
        os.replace(draft, path)
    except OSError as error:
        raise ltm.StorageError(f"{path} cannot be written: {error.strerror}") from error
    finally:
        Path(draft).unlink(missing_ok=True)


@command(cli)
@click.pass_obj
def init(target: Target) -> Any:
    """Make the file, or migrate an older one."""
    fresh = not os.path.exists(target.db or "")
    with target.memory(create=True) as memory:
        path = memory.path
    return {"path": path, "created": fresh}, f"{'made' if fresh else 'ready'}: {path}"


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
    return dataclasses.asdict(report), words.embedded(report)


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
        lines += ["", f"? {question}", words.recall(found, explain=True)]
    lines += ["", f"Why not {ids[0]}, Alice's first plan? {verdict.words}."]
    lines += ["", "Profiles:", f"Alice\n{profiles[0].text('')}", f"小林\n{profiles[1].text('')}"]
    if target.db:
        lines += ["", f"Kept in {target.db}; ask on: ltm --db {target.db} --bot demo --chat group:weekend recall QUESTION"]
    return {"answers": [{"question": question, **words.recall_json(found)} for question, found in answers]}, "\n".join(lines)


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
