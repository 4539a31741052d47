"""One table of operations: name, input, output, function, who may. The command line, the web console and `!memory` are made of it.

An action is a function of a space (or, where it concerns the whole file, of a memory) and one input. Its input is a
dataclass whose fields tell each host what to ask for; its annotations are the table's types. `parse` checks input that comes
as JSON, `to_data` turns any output into JSON. No SQL, no printing: words for people are in words.py.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import ltm
import ltm_models

from . import words

Who = Literal["anyone", "author", "admin"]  # author: who made the change, or an administrator


class Action(NamedTuple):
    """An operation. `on`: what its function takes first, ltm.Space or ltm.Memory; `confirm`: asked before it cannot be undone."""

    name: str
    words: str
    on: type
    input: type
    output: Any
    run: Callable[..., Any]
    text: Callable[[Any], str]
    who: Who
    writes: bool
    confirm: str

    @property
    def has_progress(self) -> bool:
        """Whether `run` takes progress=, called with (done, total)."""
        return "progress" in inspect.signature(self.run).parameters


ACTIONS: dict[str, Action] = {}


def action(
    name: str, text: Callable[[Any], str], *, who: Who = "anyone", writes: bool = False, confirm: str = ""
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function in the table; its docstring tells people what it does."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        hints = typing.get_type_hints(function)
        on, given = list(inspect.signature(function).parameters)[:2]
        row = (hints[on], hints[given], hints["return"], function, text, who, writes, confirm)
        ACTIONS[name] = Action(name, inspect.getdoc(function) or "", *row)
        return function

    return enter


def arg(help: str) -> Any:
    """A field that must be given; on the command line by its place."""
    return dataclasses.field(metadata={"help": help, "argument": True})


def opt(default: Any, help: str, *, choices: Sequence[str] = (), name: str = "", metavar: str = "", rest: bool = False) -> Any:
    """A field that may be given. `name`: on the command line, where it is another; `rest`: taken by its place, any number."""
    metadata = {"help": help, "choices": tuple(choices), "name": name, "metavar": metavar, "rest": rest}
    if isinstance(default, list):
        return dataclasses.field(default_factory=lambda: list(default), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


class Field(NamedTuple):
    """One thing that an input asks for. `kind`: str, int, float or bool; `several`: a list of them; `meta`: of `arg` and `opt`."""

    name: str
    kind: type
    several: bool
    optional: bool
    default: Any
    meta: Mapping[str, Any]

    @property
    def required(self) -> bool:
        """Whether it must be given."""
        return bool(self.meta.get("argument"))


def fields_of(action: Action) -> list[Field]:
    """What an action's input asks for, what must be given first."""
    hints, found = typing.get_type_hints(action.input), []
    for each in dataclasses.fields(action.input):
        parts = [part for part in typing.get_args(hints[each.name]) if part is not type(None)]
        optional = type(None) in typing.get_args(hints[each.name])
        kind = parts[0] if optional else hints[each.name]
        several = typing.get_origin(kind) is list
        default = None if each.default is dataclasses.MISSING else each.default
        found.append(Field(each.name, typing.get_args(kind)[0] if several else kind, several, optional, default, each.metadata))
    return sorted(found, key=lambda field: not field.required)


class _Input:
    """Base of inputs: JSON with a field that an action does not know is refused."""

    __pydantic_config__ = {"extra": "forbid", "strict": True}


@functools.cache
def _adapter(kind: type) -> Any:
    import pydantic

    return pydantic.TypeAdapter(kind)


def parse(name: str, given: Mapping[str, Any]) -> Any:
    """Return the input of an action from JSON. Raises InvalidInput: no such action, a field missing, unknown or of another type."""
    import pydantic

    if not isinstance(name, str) or name not in ACTIONS:
        raise ltm.InvalidInput(f"there is no action {name!r}")
    try:
        return _adapter(ACTIONS[name].input).validate_json(json.dumps(dict(given)))  # strict JSON takes objects, not dicts
    except (TypeError, ValueError, RecursionError) as error:
        if not isinstance(error, pydantic.ValidationError):
            raise ltm.InvalidInput(f"the input of {name} is not a JSON object: {error}") from error
        first = error.errors(include_url=False)[0]
        raise ltm.InvalidInput(f"{'.'.join(map(str, first['loc'])) or name}: {first['msg']}") from error


def perform(name: str, space: ltm.Space, given: Mapping[str, Any]) -> Any:
    """Run an action on JSON and return JSON: what the web console and other hosts call."""
    found = parse(name, given)
    chosen = ACTIONS[name]
    return to_data(chosen.run(space if chosen.on is ltm.Space else space.memory, found), space.scope)


def to_data(value: Any, scope: ltm.Scope | None = None) -> Any:
    """Return any output as JSON values; times are text already."""
    if isinstance(value, ltm.Episode):
        return {**value.to_json(), "version": value.version}
    if hasattr(value, "to_json"):
        own = inspect.signature(value.to_json).parameters
        return to_data(value.to_json(scope) if own and scope is not None else value.to_json())
    if isinstance(value, ltm.Recall):
        return words.recall_json(value)
    if isinstance(value, ltm.Hit):
        return words.hit_json(value)
    if hasattr(value, "_asdict"):
        return to_data(value._asdict(), scope)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [each.name for each in dataclasses.fields(value) if not each.name.startswith("_")]
        return {name: to_data(getattr(value, name), scope) for name in names}
    if isinstance(value, Mapping):
        return {key: to_data(each, scope) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_data(each, scope) for each in value]
    return value


# --------------------------------------------------------------------------------------------- inputs


@dataclass(kw_only=True)
class Nothing(_Input):
    """No input."""


@dataclass(kw_only=True)
class One(_Input):
    id: str = arg("The episode.")


@dataclass(kw_only=True)
class Filters(_Input):
    """The conditions of an ltm.Filter."""

    statuses: list[str] = opt([], "Only in this state; several may be given.", choices=ltm.STATUSES, name="status")
    speaker_id: str | None = opt(None, "Only what this speaker said.", metavar="ID")
    speaker_name: str | None = opt(None, "Only what a speaker of this name said.", metavar="NAME")
    source: str | None = opt(None, "Only from this source.")
    tags: list[str] = opt([], "Only with this tag; several: with all of them.", name="tag")
    after: str | None = opt(None, "Stored or said at this time or later.", metavar="TIME")
    before: str | None = opt(None, "Stored or said at this time or earlier.", metavar="TIME")
    importance_min: int = opt(1, "At least this important, 1 to 5.")
    at: str | None = opt(None, "Only what is valid at this time.", metavar="TIME")
    include_ended: bool = opt(False, "Also what is no longer valid.")

    def where(self, statuses: Sequence[str] = ("active",)) -> ltm.Filter:
        """The filter; `statuses` stands in when none is given."""
        given = {each.name: getattr(self, each.name) for each in dataclasses.fields(ltm.Filter)}
        return ltm.Filter(**{**given, "statuses": given["statuses"] or statuses})


AS_OF = "As it was stored at this time."


@dataclass(kw_only=True)
class Content(_Input):
    content: str = arg("The memory, exactly as it is to be kept.")
    importance: int = opt(2, "How much it matters, 1 to 5.")
    tags: list[str] = opt([], "A tag; may be given several times.", name="tag")
    supersedes: list[str] = opt([], "An episode that this replaces; may be given several times.", metavar="ID")
    source: str = opt("cli", "Where it comes from.")
    source_ref: str = opt("", "The message or document it was read from.")
    claim_type: str = opt("unknown", "Who vouches for it.", choices=ltm.CLAIM_TYPES)
    event_at: str | None = opt(None, "When it happens; ISO-8601 with zone.", metavar="TIME")
    valid_from: str | None = opt(None, "From when it holds; with zone.", metavar="TIME")
    valid_until: str | None = opt(None, "Until when it holds, exclusive; with zone.", metavar="TIME")
    pinned: bool = opt(False, "It never fades.")
    operation_key: str | None = opt(None, "The same key answers the first result again.", metavar="KEY")


@dataclass(kw_only=True)
class Weighed(Filters):
    weights: list[str] = opt([], "Weigh a signal otherwise, as dense=0.3; several may be given.", name="weight", metavar="NAME=N")

    def weighed(self, usual: ltm.Weights) -> ltm.Weights:
        """The weights that a file has, with what is given in their place."""
        known = {each.name for each in dataclasses.fields(ltm.Weights)}
        given: dict[str, float] = {}
        for each in self.weights:
            name, _, value = each.partition("=")
            try:
                given[name] = float(value)
            except ValueError:
                given[name] = -1
            if name not in known or given[name] < 0:
                raise ltm.InvalidInput(f"a weight is NAME=NUMBER with a name of {', '.join(sorted(known))}, not {each[:80]!r}")
        return dataclasses.replace(usual, **given)


@dataclass(kw_only=True)
class Question(Weighed):
    query: str = arg("What is asked.")
    limit: int = opt(5, f"At most so many, 1 to {ltm.RECALL_LIMIT}.")
    as_of: str | None = opt(None, AS_OF, metavar="TIME")


@dataclass(kw_only=True)
class WhyNot(Weighed):
    id: str = arg("The episode.")
    query: str = arg("What was asked.")
    limit: int = opt(5, "As given to recall.")


@dataclass(kw_only=True)
class Listing(Filters):
    limit: int = opt(20, f"Rows on a page, 1 to {ltm.RECALL_LIMIT}.")
    cursor: str = opt("", "Go on where a page ended.")
    order: str = opt("newest", "Which come first.", choices=ltm.ORDERS)
    as_of: str | None = opt(None, AS_OF, metavar="TIME")


@dataclass(kw_only=True)
class Show(One):
    as_of: str | None = opt(None, AS_OF, metavar="TIME")


@dataclass(kw_only=True)
class Edit(One):
    content: str | None = opt(None, "The new text.")
    importance: int | None = opt(None, "1 to 5.")
    tags: list[str] | None = opt(None, "A tag; given tags replace all there are.", name="tag")
    source_ref: str | None = opt(None, "The message or document it was read from.")
    claim_type: str | None = opt(None, "Who vouches for it.", choices=ltm.CLAIM_TYPES)
    event_at: str | None = opt(None, "When it happens; with zone; '' clears it.", metavar="TIME")
    valid_from: str | None = opt(None, "From when it holds; with zone; '' clears it.", metavar="TIME")
    valid_until: str | None = opt(None, "Until when it holds, exclusive; with zone; '' clears it.", metavar="TIME")
    pinned: bool | None = opt(None, "Whether it never fades.")
    version: int | None = opt(None, "Refuse if it is at another version by now.")


@dataclass(kw_only=True)
class EditAll(_Input):
    ids: list[str] = opt([], f"The episodes, up to {ltm.BULK_IDS:,}.", rest=True)
    importance: int | None = opt(None, "1 to 5.")
    status: str | None = opt(None, "Move them to this state.", choices=("active", "archived", "deleted"))
    pinned: bool | None = opt(None, "Whether they never fade.")
    add_tags: list[str] = opt([], "A tag that they get.", name="add-tag", metavar="TAG")
    remove_tags: list[str] = opt([], "A tag that they lose.", name="remove-tag", metavar="TAG")
    dry_run: bool = opt(False, "Only count.")


@dataclass(kw_only=True)
class Days(Filters):
    utc_offset_minutes: int = opt(0, "Minutes east of UTC at which days begin.")


@dataclass(kw_only=True)
class Supersede(One):
    by: str = arg("The episode that replaces it.")


@dataclass(kw_only=True)
class Bulk(Filters):
    dry_run: bool = opt(False, "Only count.")


@dataclass(kw_only=True)
class AuditId(_Input):
    audit_id: str = arg("The audit entry, as audit list shows it.")


@dataclass(kw_only=True)
class Span(_Input):
    start: str = opt("", "The earlier moment.", name="from", metavar="TIME")
    end: str | None = opt(None, "The later one; default: now.", name="to", metavar="TIME")


SUBJECT = "Whose; default: the session for notes, else the speaker."


@dataclass(kw_only=True)
class Fact(_Input):
    field: str = arg("name, traits, preferences or notes.")
    value: str = arg("The value.")
    fact_key: str = opt("", "The slot of a trait or preference; it holds one value at a time.")
    previous_value: str = opt("", "A value that the new one replaces.")
    subject: str | None = opt(None, SUBJECT, choices=("session", "speaker"))


@dataclass(kw_only=True)
class NoFact(_Input):
    field: str = arg("name, traits, preferences or notes.")
    value: str = opt("", "The value; a slot, the name and all notes need none.", rest=True)
    fact_key: str = opt("", "The slot of a trait or preference.")
    subject: str | None = opt(None, SUBJECT, choices=("session", "speaker"))


@dataclass(kw_only=True)
class ProfileShow(_Input):
    history: bool = opt(False, "Also what was so before.")
    as_of: str | None = opt(None, AS_OF, metavar="TIME")


@dataclass(kw_only=True)
class AuditListing(_Input):
    limit: int = opt(20, f"Rows on a page, 1 to {ltm.RECALL_LIMIT}.")
    cursor: str = opt("", "Go on where a page ended.")
    operation: str | None = opt(None, "Only this operation.")
    target: str | None = opt(None, "Only what concerns this id.", metavar="ID")


@dataclass(kw_only=True)
class Head(_Input):
    head: str = opt("", "What audit head printed earlier and was kept elsewhere; default: none.", rest=True)


@dataclass(kw_only=True)
class Before(_Input):
    before: str = opt("", "Entries older than this.", metavar="TIME")


@dataclass(kw_only=True)
class Message(_Input):
    text: str = arg("What the user said.")
    model: str = opt("", "A language model that selects: http:URL#MODEL. Default: rules.")


@dataclass(kw_only=True)
class CandidateListing(_Input):
    status: str = opt("pending", "Only these.", choices=(*ltm.CANDIDATE_STATUSES, "all"))
    limit: int = opt(20, f"Rows on a page, 1 to {ltm.RECALL_LIMIT}.")
    cursor: str = opt("", "Go on where a page ended.")


@dataclass(kw_only=True)
class Ids(_Input):
    ids: list[str] = opt([], "One or several; all of them or none.", rest=True)


@dataclass(kw_only=True)
class Draft(_Input):
    model: str = opt("", "The language model that drafts: http:URL#MODEL.")
    ids: list[str] = opt([], "Episodes to summarise; default: the oldest active ones.", rest=True)


@dataclass(kw_only=True)
class Run(_Input):
    proposal_id: str | None = opt(None, "Publish this proposal; without one, archive what was superseded.", rest=True)


@dataclass(kw_only=True)
class Proposals(_Input):
    status: str = opt("pending", "Only these.", choices=(*ltm.PROPOSAL_STATUSES, "all"))


@dataclass(kw_only=True)
class ProposalId(_Input):
    proposal_id: str = arg("The proposal.")


@dataclass(kw_only=True)
class Export(_Input):
    kinds: list[str] = opt([], "What to export; default: everything.", choices=ltm.EXPORT_KINDS, name="kind")
    statuses: list[str] = opt([], "Only episodes in this state; default: all.", choices=ltm.STATUSES, name="status")


@dataclass(kw_only=True)
class Import(_Input):
    data: str = arg("The export itself, JSON or JSON Lines.")
    skip_bad: bool = opt(False, "Leave out records that cannot be taken instead of refusing all.")
    allow_erased: bool = opt(False, "Bring back texts that were erased here.")
    dry_run: bool = opt(False, "Only count.")
    document: str = opt("", "Take it in as this document, to be deleted as one later.", metavar="ID")


@dataclass(kw_only=True)
class DocumentId(_Input):
    document: str = arg("The document.")


@dataclass(kw_only=True)
class Erase(_Input):
    speaker: str | None = opt(None, "Erase this speaker.", name="who", metavar="ID")
    everything: bool = opt(False, "Erase all that this scope holds.")
    prove: bool = opt(False, "Look for the texts in every byte of the files, and say what was looked for.")
    also: list[str] = opt([], "A copy of the file to be treated the same way.", metavar="FILE")


@dataclass(kw_only=True)
class FenceReason(_Input):
    reason: str = arg("Why; whoever is stopped reads it.")
    file: bool = opt(False, "Block the whole file, not this chat.")


@dataclass(kw_only=True)
class FenceId(_Input):
    id: int = arg("The fence.")


@dataclass(kw_only=True)
class Repair(_Input):
    repair: bool = opt(False, "First rebuild what is derived; base tables are never touched.")


@dataclass(kw_only=True)
class Injected(Filters):
    query: str = arg("The message.")
    limit: int = opt(3, "At most so many memories.")
    budget: int | None = opt(None, "Characters of both blocks; default: the setting injection_budget.")


@dataclass(kw_only=True)
class Few(_Input):
    limit: int = opt(10, "At most so many, 1 to 50.")


@dataclass(kw_only=True)
class SettingValue(_Input):
    name: str = arg("The setting.")
    value: str = arg("A whole number, true or false.")


# ------------------------------------------------------------------------------------------- episodes


@action("remember", words.remembered, writes=True)
def remember(space: ltm.Space, given: Content) -> ltm.Remembered:
    """Store an episode."""
    return space.remember(**dataclasses.asdict(given))


@action("recall", words.recall)
def recall(space: ltm.Space, given: Question) -> ltm.Recall:
    """Find what is relevant to a question."""
    weights = given.weighed(space.memory.weights)
    return space.recall(given.query, limit=given.limit, where=given.where(), weights=weights, as_of=given.as_of)


@action("why-not", words.verdict)
def why_not(space: ltm.Space, given: WhyNot) -> ltm.Verdict:
    """Say why an episode is not in the answer to a question."""
    weights = given.weighed(space.memory.weights)
    return space.why_not(given.id, given.query, limit=given.limit, where=given.where(), weights=weights)


@action("show", words.episode)
def show(space: ltm.Space, given: Show) -> ltm.Episode:
    """Show an episode whole."""
    return space.get(given.id, as_of=given.as_of)


@action("list", words.page)
def list_(space: ltm.Space, given: Listing) -> ltm.Page:
    """List episodes, newest first."""
    return space.list(given.where(), limit=given.limit, cursor=given.cursor, order=given.order, as_of=given.as_of)


@action("timeline", words.timeline)
def timeline(space: ltm.Space, given: Days) -> Sequence[ltm.Day]:
    """Count episodes by day, status and importance."""
    return space.timeline(given.where(ltm.STATUSES), utc_offset_minutes=given.utc_offset_minutes)


@action("speakers", words.speakers)
def speakers(space: ltm.Space, given: Nothing) -> Sequence[ltm.SpeakerInfo]:
    """List who spoke, the last one first."""
    return space.speakers()


@action("edit", words.changed, writes=True)
def edit(space: ltm.Space, given: Edit) -> ltm.Changed:
    """Change what is given of an episode; the rest stays."""
    values = dataclasses.asdict(given)
    return space.edit(values.pop("id"), **values)


@action("edit-all", words.edited, who="admin", writes=True)
def edit_all(space: ltm.Space, given: EditAll) -> ltm.Changed:
    """Change several episodes in one step that undo takes back: all of them or none."""
    return space.edit_all(**dataclasses.asdict(given))


@action("archive", words.changed, writes=True)
def archive(space: ltm.Space, given: One) -> ltm.Changed:
    """Keep an episode but recall it no more."""
    return space.archive(given.id)


@action("restore", words.changed, writes=True)
def restore(space: ltm.Space, given: One) -> ltm.Changed:
    """Make an episode active again."""
    return space.restore(given.id)


@action("supersede", words.changed, writes=True)
def supersede(space: ltm.Space, given: Supersede) -> ltm.Changed:
    """Let an active episode replace another one of the same speaker."""
    return space.supersede(given.id, given.by)


@action("forget", words.changed, writes=True)
def forget(space: ltm.Space, given: One) -> ltm.Changed:
    """Delete one episode. Its history is kept, so undo brings it back; erase leaves nothing."""
    return space.forget(given.id)


@action("delete", words.deleted, who="admin", writes=True, confirm="Delete every episode that the filter lets pass?")
def delete(space: ltm.Space, given: Bulk) -> ltm.Changed:
    """Delete every episode that a filter lets pass, in any state unless a status is given. Undo brings them back."""
    return space.forget_all(given.where(ltm.STATUSES), dry_run=given.dry_run)


@action("history", words.history)
def history(space: ltm.Space, given: One) -> Sequence[ltm.Version]:
    """Show every state that an episode was in, also of a forgotten one."""
    return space.history(given.id)


@action("undo", words.changed, who="author", writes=True)
def undo(space: ltm.Space, given: AuditId) -> ltm.Changed:
    """Put back what an operation changed, unless a later one changed the same."""
    return space.undo(given.audit_id)


@action("diff", words.differences)
def diff(space: ltm.Space, given: Span) -> Sequence[ltm.Difference]:
    """Say what differs between two moments."""
    return space.diff(given.start, given.end)


# ------------------------------------------------------------------------------------------- profiles


@action("profile show", words.profiles)
def profile_show(space: ltm.Space, given: ProfileShow) -> dict[str, Any]:
    """Show the profiles of the chat and of the speaker."""
    subjects: list[Literal["session", "speaker"]] = ["session", "speaker"] if space.speaker is not None else ["session"]
    found: dict[str, Any] = {subject: space.profiles.get(subject, as_of=given.as_of) for subject in subjects}
    if given.history:
        found |= {f"{subject}_history": space.profiles.history(subject) for subject in subjects}
    return found


@action("profile set", words.profile_change, writes=True)
def profile_set(space: ltm.Space, given: Fact) -> ltm.ProfileChange:
    """Set a value; in a slot it supersedes the one before, without a slot all of the field."""
    return space.profiles.update(action="set", **dataclasses.asdict(given))


@action("profile add", words.profile_change, writes=True)
def profile_add(space: ltm.Space, given: Fact) -> ltm.ProfileChange:
    """Add a value beside the others."""
    return space.profiles.update(action="add", **dataclasses.asdict(given))


@action("profile remove", words.profile_change, writes=True)
def profile_remove(space: ltm.Space, given: NoFact) -> ltm.ProfileChange:
    """Remove a value, a slot, the name, or all notes."""
    return space.profiles.update(action="remove", **dataclasses.asdict(given))


# ---------------------------------------------------------------------------------------------- audit


@action("audit list", words.audit_page)
def audit_list(space: ltm.Space, given: AuditListing) -> ltm.AuditPage:
    """List what was done in this chat, newest first."""
    return space.audit.list(**dataclasses.asdict(given))


@action("audit export", words.audit_entries)
def audit_export(space: ltm.Space, given: Nothing) -> dict[str, Any]:
    """Print every entry, oldest first; that it was exported becomes the next one."""
    return space.transfer.export(["audit"])


@action("audit verify", words.problems)
def audit_verify(space: ltm.Space, given: Head) -> dict[str, Any]:
    """Recompute the chain of hashes of this chat; exit status 1 if an entry was changed, removed or moved."""
    return {"problems": list(space.audit.verify(given.head)), "head": space.audit.head()}


@action("audit head", words.head)
def audit_head(space: ltm.Space, given: Nothing) -> dict[str, Any]:
    """Print number and hash of the newest entry, to be kept elsewhere and given to audit verify."""
    return {"head": space.audit.head()}


@action("audit close", words.settled, who="admin", writes=True, confirm="Let go of the older entries and of the history they own?")
def audit_close(space: ltm.Space, given: Before) -> ltm.Changed:
    """Let go of old entries; the hash of the last stays, and the chain goes on from it. Export them first."""
    return space.audit.close(given.before)


# ------------------------------------------------------------------------------------ candidates


def _model(name: str) -> ltm.Model:
    if not name:
        raise ltm.InvalidInput("say which model: http:URL#MODEL")
    return ltm_models.named_model(name)


@action("candidate extract", words.extraction, who="admin", writes=True)
def candidate_extract(space: ltm.Space, given: Message) -> ltm.Extraction:
    """Look for memories in a message and keep them as candidates."""
    return space.candidates.extract(given.text, model=_model(given.model) if given.model else None, force=True)


@action("candidate list", words.candidate_page, who="admin")
def candidate_list(space: ltm.Space, given: CandidateListing) -> ltm.CandidatePage:
    """List what waits for a decision, newest first."""
    status = None if given.status == "all" else given.status
    return space.candidates.list(status=status, limit=given.limit, cursor=given.cursor)


@action("candidate accept", words.several, who="admin", writes=True)
def candidate_accept(space: ltm.Space, given: Ids) -> Sequence[ltm.Changed]:
    """Make memory of candidates; all of them or none. Each can be undone."""
    return space.candidates.accept(*given.ids)


@action("candidate reject", words.several, who="admin", writes=True)
def candidate_reject(space: ltm.Space, given: Ids) -> Sequence[ltm.Changed]:
    """Turn down candidates; they stay listed as rejected."""
    return space.candidates.reject(*given.ids)


# --------------------------------------------------------------------------------- consolidation


@action("consolidate preview", words.preview, who="admin")
def consolidate_preview(space: ltm.Space, given: Nothing) -> ltm.Preview:
    """Show what a run would archive and a draft would summarise. Writes nothing."""
    return space.consolidation.preview()


@action("consolidate draft", words.proposal, who="admin", writes=True)
def consolidate_draft(space: ltm.Space, given: Draft) -> ltm.Proposal:
    """Let a language model summarise episodes, and keep that as a proposal for one use."""
    return space.consolidation.draft(_model(given.model), given.ids)


@action("consolidate proposals", words.proposals, who="admin")
def consolidate_proposals(space: ltm.Space, given: Proposals) -> Sequence[ltm.Proposal]:
    """List proposals with their sources, newest first."""
    return space.consolidation.proposals(status=None if given.status == "all" else given.status)


@action("consolidate run", words.changed, who="admin", writes=True)
def consolidate_run(space: ltm.Space, given: Run) -> ltm.Changed:
    """Archive what was superseded, or publish a proposal."""
    return space.consolidation.run(given.proposal_id)


@action("consolidate reject", words.settled, who="admin", writes=True)
def consolidate_reject(space: ltm.Space, given: ProposalId) -> ltm.Changed:
    """Turn down a proposal; its text goes."""
    return space.consolidation.reject(given.proposal_id)


@action("consolidate lineage", words.lineage)
def consolidate_lineage(space: ltm.Space, given: One) -> dict[str, Any]:
    """Name what a summary was drawn from, and what was drawn from an episode."""
    space.get(given.id)  # of what is not here there is nothing to name
    sources, summaries = space.consolidation.lineage(given.id)
    return {"id": given.id, "sources": list(sources), "summaries": list(summaries)}


# ---------------------------------------------------------------------------------------------- transfer


@action("export", words.export)
def export(space: ltm.Space, given: Export) -> dict[str, Any]:
    """Export profiles, episodes and audit of the space."""
    return space.transfer.export(given.kinds or ltm.EXPORT_KINDS, statuses=given.statuses or ltm.STATUSES)


@action("import", words.import_report, who="admin", writes=True)
def import_(space: ltm.Space, given: Import, progress: Callable[[int, int], None] | None = None) -> ltm.ImportReport:
    """Take an export into this space: ours, LongTermMemory's or LivingMemory's. The same file again adds nothing."""
    options = dataclasses.asdict(given)
    data = options.pop("data").encode("utf-8", "surrogatepass")
    if options["document"]:
        return space.transfer.load_document(options.pop("document"), data, **options, progress=progress)
    return space.transfer.load(data, **options, progress=progress)


@action("document delete", words.deleted, who="admin", writes=True)
def document_delete(space: ltm.Space, given: DocumentId) -> ltm.Changed:
    """Delete every episode that was taken in with a document."""
    done = space.transfer.delete_document(given.document)
    if not done.audit_id:
        raise ltm.NotFound(f"no document {given.document[:80]!r} was taken into this space, or nothing is left of it")
    return done


# ---------------------------------------------------------------------------------------------- prompts


@action("inject", words.injection)
def inject(space: ltm.Space, given: Injected) -> ltm.Injection:
    """Make the blocks that a prompt would get for a message, and keep a snapshot."""
    return space.inject(given.query, limit=given.limit, budget=given.budget, where=given.where())


@action("injections", words.injections)
def injections(space: ltm.Space, given: Few) -> Sequence[Mapping[str, Any]]:
    """Show what was put into the last prompts of this chat, newest first."""
    return space.injections(limit=given.limit)


# ------------------------------------------------------------------------------------------------- file


@action("erase", words.erasure, who="admin", writes=True, confirm="Erase it for good? This cannot be undone.")
def erase(space: ltm.Space, given: Erase) -> ltm.Erasure:
    """Remove a speaker, or all that the scope holds, so that no byte of it is left. It cannot be undone."""
    return space.erase(**dataclasses.asdict(given))


@action("spaces", words.spaces, who="admin")
def spaces(memory: ltm.Memory, given: Nothing) -> list[ltm.SpaceInfo]:
    """List every space of the file with its counts."""
    return memory.spaces()


@action("stats", words.stats, who="admin")
def stats(memory: ltm.Memory, given: Nothing) -> dict[str, Any]:
    """Count what the file holds."""
    return memory.stats()


@action("health", words.health)
def health(memory: ltm.Memory, given: Nothing) -> ltm.Health:
    """Prove on this file that one chat cannot see another's memory; leaves nothing behind. Exit status 1 if it can."""
    return memory.health()


@action("doctor", words.health, who="admin")
def doctor(memory: ltm.Memory, given: Repair) -> ltm.Health:
    """Look at everything: pages, index, vectors, audit, jobs, fences, disk. Exit status 1 on an error."""
    return memory.doctor(repair=given.repair)


@action("embed", words.embedded, who="admin", writes=True)
def embed(memory: ltm.Memory, given: Nothing, progress: Callable[[int, int], None] | None = None) -> ltm.EmbedReport:
    """Make the vectors that are missing. Stopped in between, it goes on where it was."""
    return memory.embed_pending(progress=progress)


@action("fence list", words.fences, who="admin")
def fence_list(memory: ltm.Memory, given: Nothing) -> list[ltm.FenceInfo]:
    """List the blocks on writes that stand."""
    return memory.fences()


@action("fence set", words.fence, who="admin", writes=True)
def fence_set(space: ltm.Space, given: FenceReason) -> ltm.FenceInfo:
    """Block writes to this chat, or to the whole file, until the fence is cleared. Reading goes on."""
    return space.memory.fence(given.reason, None if given.file else space)


@action("fence clear", words.fence_cleared, who="admin", writes=True)
def fence_clear(space: ltm.Space, given: FenceId) -> ltm.FenceInfo:
    """Let writes to this chat, or to the whole file, go on, once you have looked at what the fence was about."""
    if not any(
        each.id == given.id and each.scope in (None, dataclasses.replace(space.scope, isolation="session"))
        for each in space.memory.fences()
    ):
        raise ltm.NotFound(f"no standing fence {given.id} on this chat or on the whole file")
    return space.memory.clear_fence(given.id, via=space.via, actor=space.acting)


@action("config list", words.settings)
def config_list(memory: ltm.Memory, given: Nothing) -> dict[str, Any]:
    """List the settings of the file."""
    return memory.settings()


@action("config set", words.setting, who="admin", writes=True)
def config_set(memory: ltm.Memory, given: SettingValue) -> dict[str, Any]:
    """Change a setting of the file."""
    try:
        value = json.loads(given.value)
    except (ValueError, RecursionError):
        value = given.value
    return {given.name: memory.configure(given.name, value)}
