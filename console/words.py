"""What the answers of actions say to a person, in lines of text; and the JSON of those that carry a ranking.

Text from memories is data: it is cut to a line and cannot move a terminal. What we say ourselves goes through language.py:
`say` for the words here, `term` for a status or another name, `translated` for sentences of the engine. No SQL, no calls to
the engine.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

import ltm

from .language import command, is_chinese, say, term, translated


def printable(text: str, limit: int = 64) -> str:
    """Text on one line of a terminal: no control or direction characters, and an end that says what is missing."""
    flat = "".join(char if char.isprintable() else " " if char.isspace() else "\N{REPLACEMENT CHARACTER}" for char in text)
    return flat if len(flat) <= limit else say("{flat}... ({n:,} characters)", flat=flat[:limit], n=len(text))


def block(text: str) -> str:
    """Text whole, its own lines kept."""
    return "\n".join(printable(each, 1 << 30) for each in text.splitlines())


def line(episode: ltm.Episode) -> str:
    """An episode in a line: id, day, tags, status, speaker, text."""
    who = _said_by(episode.speaker.name or episode.speaker.id) if episode.speaker else ""
    marks = "".join(f" [{printable(tag)}]" for tag in episode.tags)
    marks += "" if episode.status == "active" else say(" ({status})", status=term(episode.status))
    return f"{episode.id}  {episode.created_at[:10]}{marks}  {who}{printable(episode.content, 200)}"


def undo_hint(audit_id: str) -> list[str]:
    """How to take it back."""
    return [say("undo: {command} undo {id}", command=command.get(), id=audit_id)] if audit_id else []


def _said_by(who: str) -> str:
    return f"{printable(who)}{term(': ')}" if who else ""


def _notes(notes: Sequence[str], limit: int = 1 << 30) -> list[str]:
    """What the engine has to add, a line each."""
    return [say("note: {note}", note=printable(translated(note), limit) if limit < 1 << 30 else translated(note)) for note in notes]


def _counted(counts: Mapping[str, int]) -> str:
    return term(", ").join(say("{n} {what}", n=n, what=term(what)) for what, n in counts.items())


def _more(cursor: str) -> list[str]:
    of_chat = "more: the same command with {cursor} at its end"  # where cursors are no options
    template = "more: --cursor {cursor}" if command.get() == "ltm" else of_chat
    return [say(template, cursor=cursor)] if cursor else []


def _of_total(n: int, total: int) -> str:
    return say("{n} of {total}", n=n, total=total)


def _drawn(ids: Sequence[str]) -> list[str]:
    return [say("removed {id}, drawn from it", id=id) for id in ids]


def _label(name: str) -> str:
    """The name of a field or a code, for people."""
    return term(name.replace("_", " "))


# ------------------------------------------------------------------------------------------- episodes


def remembered(stored: ltm.Remembered) -> str:
    """What became of a new memory."""
    said = {"stored": "stored", "duplicate": "already stored as", "repeated": "answered before:"}[stored.outcome]
    lines = [f"{term(said)} {stored.id}"]
    lines += [say("superseded {id}", id=id) for id in stored.superseded] + _drawn(stored.removed)
    return "\n".join(lines + _notes(stored.notes))


def points(hit: ltm.Hit) -> str:
    """The points of a hit: what its score is made of."""
    parts = " + ".join(f"{term(name)} {hit.why[name]:.3f} ({hit.signals[name]:.2f})" for name in ltm.SIGNALS if hit.why[name])
    template = "{points} = {score:.3f}; relevance {relevance:.2f}"
    return "      " + say(template, points=parts, score=hit.score, relevance=hit.relevance)


def recall(found: ltm.Recall, explain: bool = False) -> str:
    """Hits, best first, and what stood behind them."""
    lines = []
    for number, hit in enumerate(found.hits, 1):
        lines.append(f"{number}. {hit.score:.3f}  {line(hit.episode)}")
        lines += [points(hit)] if explain else []
    dropped = term(", ").join(say("{n} by {reason}", n=n, reason=_label(reason)) for reason, n in found.dropped.items() if n)
    template = "{shown} shown; {considered} considered, {below} not relevant enough"
    counts = say(template, shown=len(found.hits), considered=found.considered, below=found.below_threshold)
    counts += say("; left out: {dropped}", dropped=dropped) if dropped else ""
    lines.append(f"   {counts}{term('; ')}{term(found.mode, 'mode')}")
    lines += [f"   {translated(found.reason)}"] if found.reason and explain else []
    return "\n".join(lines + [f"   {note}" for note in _notes(found.truncated)])


def hit_json(hit: ltm.Hit) -> dict[str, Any]:
    """An episode with its score and the reasons for it."""
    rank = {"score": hit.score, "relevance": hit.relevance, "why": dict(hit.why), "signals": dict(hit.signals)}
    return {**hit.episode.to_json(), **rank}


def recall_json(found: ltm.Recall) -> dict[str, Any]:
    """A recall without the time it took: the same answer is the same JSON."""
    rest = {each.name: getattr(found, each.name) for each in dataclasses.fields(found) if each.name not in ("hits", "elapsed")}
    rest |= {"dropped": dict(found.dropped), "truncated": list(found.truncated)}
    return {"hits": [hit_json(hit) for hit in found.hits], **rest}


def verdict(found: ltm.Verdict) -> str:
    """Why an episode is or is not in an answer."""
    said = say("{code}: {words}", code=_label(found.code), words=translated(found.words))
    return "\n".join([said] + ([points(found.hit)] if found.hit else []))


def episode(found: ltm.Episode) -> str:
    """An episode whole."""
    data = found.to_json()
    data |= {"status": term(found.status), "claim_type": term(found.claim_type), "pinned": found.pinned and term("True")}
    labels = [
        (_label(key), ", ".join(value) if isinstance(value, list) else value) for key, value in data.items() if key != "content"
    ]
    said = [(label, printable(str(value), 600)) for label, value in labels if value not in ("", False)]
    said.append((_label("version"), str(found.version)))
    return "\n".join([*(_row(label, value, 15) for label, value in said), "", block(found.content)])


def _row(label: str, value: str, width: int) -> str:
    """A label and what it names; English labels stand in a column, Chinese characters have no common width."""
    return f"{label}：{value}" if is_chinese() else f"{label + ':':<{width}}{value}"


def page(found: ltm.Page) -> str:
    """A page of episodes."""
    lines = [_of_total(len(found.episodes), found.total), *(line(each) for each in found.episodes)]
    return "\n".join(lines + _more(found.cursor))


def changed(done: ltm.Changed) -> str:
    """What became of a change, and how to take it back."""
    counts = _counted(done.counts)
    said = " ".join(filter(None, (term(done.outcome), printable(done.id))))
    lines = [said + (f"{term(': ')}{counts}" if counts else ""), *_drawn(done.removed), *_notes(done.notes)]
    return "\n".join(lines + undo_hint(done.audit_id))


def edited(done: ltm.Changed) -> str:
    """How many were, or would be, changed."""
    verb = "would edit" if done.counts.get("changed") and not done.audit_id else "edited"
    counts = _counted({what: n for what, n in done.counts.items() if n})
    return "\n".join([f"{term(verb)}{term(': ')}{counts}", *_drawn(done.removed), *undo_hint(done.audit_id)])


def timeline(days: Sequence[ltm.Day]) -> str:
    """Counts by day, status and importance."""
    template = "{day}  {n:,} {status}, importance {importance}"
    rows = (say(template, day=each.day, n=each.episodes, status=term(each.status), importance=each.importance) for each in days)
    return "\n".join(rows) or term("(nothing)")


def speakers(found: Sequence[ltm.SpeakerInfo]) -> str:
    """Who spoke, with counts."""
    rows = []
    for each in found:
        template = "{episodes:,} episodes, {facts} facts, last {day}"
        counts = say(template, episodes=each.episodes, facts=each.facts, day=each.last_at[:10])
        rows.append(f"{printable(each.id)}  {printable(each.name) or '-'}  {counts}")
    return "\n".join(rows) or term("(nobody)")


def settled(done: ltm.Changed) -> str:
    """What became of a change that cannot be taken back."""
    return changed(dataclasses.replace(done, audit_id=""))


def deleted(done: ltm.Changed) -> str:
    """How many were, or would be, deleted."""
    parts = [str(n) if what == "deleted" else _counted({what: n}) for what, n in done.counts.items() if n]
    is_done = done.audit_id or not any(done.counts.values())
    verb = "deleted" if is_done else "would delete"
    lines = [f"{term(verb)}{term(': ')}{term(', ').join(parts) or term('none')}"]
    drawn = "removed {id}, drawn from them" if is_done else "would remove {id}, drawn from them"
    lines += [say(drawn, id=id) for id in done.removed]
    return "\n".join(lines + undo_hint(done.audit_id))


def several(done: Sequence[ltm.Changed]) -> str:
    """What became of each."""
    return "\n".join(changed(each) for each in done)


def history(versions: Sequence[ltm.Version]) -> str:
    """The states of an episode, oldest first."""
    lines = []
    for each in versions:
        ended = (
            say("  ended by {operation} {id}", operation=term(each.operation, "operation"), id=each.audit_id) if each.until else ""
        )
        ended += f"{term(': ')}{term(', ').join(map(_label, each.changed))}" if each.changed else ""
        lines.append(_span(each.since, each.until) + ended)
        lines.append(f"  {line(each.episode)}")
    return "\n".join(lines)


def _span(start: str, end: str) -> str:
    return say("{start} to {end}", start=start, end=end or term("now"))


def differences(found: Sequence[ltm.Difference]) -> str:
    """What differs between two moments."""
    lines = []
    for each in found:
        lines.append(say("{change} {kind} {id}", change=term(each.change), kind=term(each.kind), id=each.id))
        if each.change == "changed":
            pairs = ((_label_of(name), each.before.get(name), each.after.get(name)) for name in each.after)
            lines += [f"  {name}{term(': ')}{_value(before)} -> {_value(after)}" for name, before, after in pairs]
        else:
            view = each.after or each.before
            status = say(" ({status})", status=term(view["status"])) if view.get("status") not in ("active", "current") else ""
            who = view.get("sender_name") or view.get("sender_id") or view.get("subject", "")
            lines.append(f"  {_said_by(who)}{_value(view.get('content', view.get('value', '')))}{status}")
    return "\n".join(lines) or term("nothing differs")


def _label_of(name: str) -> str:
    return _label(name) if is_chinese() else name


def _value(value: Any) -> str:
    return printable(value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False), 120)


# ------------------------------------------------------------------------------------------- profiles


def profiles(found: Mapping[str, Any]) -> str:
    """Profiles, with their history if it was asked for."""
    blocks = []
    for subject in ("session", "speaker"):
        if subject in found:
            lines = [term(subject.capitalize()), _profile(found[subject])]
            lines += [f"  {_fact(fact)}" for fact in found.get(f"{subject}_history", ())]
            blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _fact(fact: ltm.Fact) -> str:
    """A value of a profile in a line: its time, its place, what it was and why it ended."""
    place, why = f"{term(fact.field)} {fact.slot or '-'}", term(fact.reason or fact.status)
    said = say("{place}: {value} ({why})", place=place, value=printable(fact.value, 200), why=why)
    return f"{_span(fact.created_at, fact.ended_at)}  {said}"


def _profile(found: ltm.Profile) -> str:
    """A profile in lines."""
    if not is_chinese():
        return block(found.text()) or "(nothing known)"
    lines = [("Name", found.name), ("Traits", "、".join(found.traits)), ("Preferences", "、".join(found.preferences))]
    lines += [("Recent change", translated(hint)) for hint in found.hints[:2]] + [("Notes", found.notes)]
    hidden = [say("{n} more {name} not shown", n=n, name=term(name)) for name, n in found.hidden.items() if n]
    lines.append(("Note", "；".join(hidden)))
    return block("\n".join(f"{term(label)}：{value}" for label, value in lines if value)) or term("(nothing known)")


def profile_change(change: ltm.ProfileChange) -> str:
    """What a profile write did, and the profile after it."""
    template = "{outcome}: {added} added, {ended} ended"
    said = say(template, outcome=term(change.outcome), added=change.added, ended=change.ended)
    return "\n".join([said, _profile(change.profile), *undo_hint(change.audit_id)])


# ---------------------------------------------------------------------------------------------- audit


def entry(each: ltm.AuditEntry) -> str:
    """An audit entry in a line."""
    head = f"{each.id}  {each.at[:19]}Z  {term(each.operation, 'operation')} {printable(each.target_id)}"
    return _audited(head, each.actor_name or each.actor_id, each.via, None if each.erased else each.summary)


def _audited(head: str, actor: str, via: str, summary: str | None) -> str:
    """The line of an entry; no summary where its details were erased."""
    who = say(" by {who}", who=printable(actor)) if actor else ""
    what = term("(details erased)") if summary is None else printable(term(translated(summary)), 120)
    head = head.rstrip() if is_chinese() else head  # a full-width comma follows, and some entries have no target
    return f"{head}{who}{say(' via {via}', via=term(via, 'via'))}  {what}".rstrip()


def audit_page(found: ltm.AuditPage) -> str:
    """A page of the audit."""
    lines = [_of_total(len(found.entries), found.total), *(entry(each) for each in found.entries)]
    return "\n".join(lines + _more(found.cursor))


def audit_entries(found: Mapping[str, Any]) -> str:
    """Every entry of an export, a line each."""
    return "\n".join(map(_exported, found["audit"])) or term("(no entries)")


def _exported(each: Mapping[str, Any]) -> str:
    head = f"{each['audit_id']}  {each['timestamp']}  {term(each['operation'], 'operation')} {printable(each['target_id'])}"
    return _audited(head, each["sender_name"] or each["sender_id"], each["via"], None if each["erased"] else each["summary"])


def problems(found: Mapping[str, Any]) -> str:
    """Whether the chain holds."""
    return "\n".join(map(translated, found["problems"])) or say("whole up to {head}", head=head(found))


def head(found: Mapping[str, Any]) -> str:
    """The head of the chain."""
    return str(found["head"] or term("(no entries)"))


# --------------------------------------------------------------------------------------------- review


def candidate(each: ltm.Candidate) -> str:
    """A candidate in a line."""
    body = each.payload
    place = f"{term(str(body.get('field')))}{term(': ')}" if each.type == "l1_profile" else ""
    who = _said_by(each.sender_name or each.sender_id) if each.sender_id else ""
    text = printable(str(body.get("content", body.get("value", ""))), 200)
    kind = term(each.type)
    why = say("({reason})", reason=printable(translated(each.reason), 120))
    return f"{each.id}  {term(each.status)} {kind}  {who}{place}{text}  {why}"


def extraction(found: ltm.Extraction) -> str:
    """What was found in a message."""
    lines = [candidate(each) for each in found.candidates] or [term("nothing found")]
    return "\n".join(lines + _notes(found.notes))


def candidate_page(found: ltm.CandidatePage) -> str:
    """A page of candidates."""
    lines = [_of_total(len(found.candidates), found.total), *(candidate(each) for each in found.candidates)]
    return "\n".join(lines + _more(found.cursor))


def preview(found: ltm.Preview) -> str:
    """What a consolidation would do."""
    lines = [say("{n} superseded episodes could be archived", n=found.n_superseded)]
    lines += [f"  {line(each)}" for each in found.superseded]
    lines += [say("{n} active episodes could be summarised", n=len(found.sources))] + [f"  {line(each)}" for each in found.sources]
    return "\n".join(lines + _notes(found.notes))


def proposal(found: ltm.Proposal) -> str:
    """A proposal with all of its sources."""
    template = "proposal {id} ({status}) by {model}, until {expires}"
    lines = [say(template, id=found.id, status=term(found.status), model=printable(found.model), expires=found.expires_at)]
    lines += [f"  {block(found.content)}"] if found.content else []
    lines += [term("drawn from")] + [f"  {line(each)}" for each in found.sources]
    hint = say("publish: {command} consolidate run {id}", command=command.get(), id=found.id)
    return "\n".join(lines + ([hint] if found.status == "pending" else []))


def proposals(found: Sequence[ltm.Proposal]) -> str:
    """Proposals, newest first."""
    return "\n\n".join(proposal(each) for each in found) or term("(no proposals)")


def lineage(found: Mapping[str, Any]) -> str:
    """What came from what."""
    lines = [say("drawn from {id}", id=id) for id in found["sources"]]
    lines += [say("summarised in {id}", id=id) for id in found["summaries"]]
    return "\n".join(lines) or term("drawn from nothing, and nothing was drawn from it")


# ------------------------------------------------------------------------------------------- transfer


def export(found: Mapping[str, Any]) -> str:
    """An export is JSON, for people too."""
    return json.dumps(found, ensure_ascii=False, indent=2)


def import_report(report: ltm.ImportReport) -> str:
    """What was taken in, and what was not and why."""
    stored = "{episodes} episodes and {facts} facts stored, {duplicates} there already"
    foreseen = "{episodes} episodes and {facts} facts would be stored, {duplicates} there already"
    counts = {"episodes": report.episodes, "facts": report.facts, "duplicates": report.duplicates}
    lines = [say(foreseen if report.dry_run else stored, **counts)]
    for position, problem in report.skipped:
        lines.append(say("record {position}: {problem}", position=position, problem=printable(translated(problem), 200)))
    lines += [say("record {position}: was erased here and stays out", position=position) for position in report.erased]
    return "\n".join([*lines, *_notes(report.notes, 300), *(each for id in report.audit_ids for each in undo_hint(id))])


def injection(found: ltm.Injection) -> str:
    """The blocks as a prompt gets them."""
    lines = [found.text or say("(nothing: {reason})", reason=_label(found.reason))]
    return "\n".join(lines + _notes(found.notes))


def injections(found: Sequence[Mapping[str, Any]]) -> str:
    """The last prompts, each in a few lines."""
    lines = []
    for each in found:
        reason = _label(each["reason"]) if is_chinese() else each["reason"]
        size = say("({reason}, {n} characters)", reason=reason, n=each["injection_chars"])
        lines.append(f"{each['recorded_at']}  {printable(each['query'], 120)}  {size}")
        lines += [f"  {printable(shown['content'], 200)}" for shown in each["episodes"]]
    return "\n".join(lines) or term("(nothing was injected yet)")


# ----------------------------------------------------------------------------------------------- file


def erasure(done: ltm.Erasure) -> str:
    """What was erased, and the proof if it was asked for."""
    lines = [say("erased: {counts}", counts=_counted(done.counts) or term("nothing was there"))]
    lines += [say("certificate {id}", id=done.certificate)]
    lines += [say("kept: {id}, in which somebody else says the same", id=id) for id in done.kept]
    if done.files:
        template = "looked for {n} texts, as they are and as JSON, in {files}"
        lines.append(say(template, n=done.searched, files=term(", ").join(done.files)))
        lines += [say("found in {place}", place=each) for each in done.found] or [term("none of them was found")]
    lines += _notes(done.notes)
    verdict = (
        "proven: nothing of it is left in this scope; other chats or people hold the same words"
        if done.found
        else "proven: nothing of it is left"
    )
    lines += [term(verdict if done.proven else "NOT proven: see above")] if done.proven is not None else []
    return "\n".join(lines)


def spaces(found: Sequence[ltm.SpaceInfo]) -> str:
    """Spaces with their counts."""
    rows = []
    for each in found:
        template = "{active} active of {episodes}, {facts} facts, {speakers} speakers"
        counts = {"active": each.active, "episodes": each.episodes, "facts": each.facts, "speakers": each.speakers}
        kind = f"{term(each.kind)}  " if is_chinese() else f"{each.kind:<8}"
        rows.append(f"{kind}{printable(each.key, 200)}  {say(template, **counts)}")
    return "\n".join(rows) or term("(no space holds anything)")


def stats(data: Mapping[str, Any]) -> str:
    """Counts of the file."""
    counts = {say("{status} episodes", status=term(status)): n for status, n in data["episodes"].items()}
    counts |= {term(name, "stats"): value for name, value in data.items() if isinstance(value, int)}
    rows = [_row(name, f"{value:,}", 22) for name, value in counts.items()]
    template = "{fingerprint} ({dim} dimensions, {state})"
    for each in data["embedders"]:
        rows.append(_row(term("embedder"), say(template, **{**each, "state": term(each["state"])}), 22))
    return "\n".join(rows)


def health(found: ltm.Health) -> str:
    """Checks, and what they come to."""
    lines = []
    for check in found.checks:
        detail = printable(translated(check.detail), 300)
        lines.append(say("- {status:<5} {id}: {detail}", status=term(check.status), id=check.id, detail=detail))
    return "\n".join([*lines, say("Result: {status}", status=term(found.status))])


def embedded(report: ltm.EmbedReport) -> str:
    """How far the vectors are."""
    template = "{done} embedded, {failed} failed, {left} left ({state})"
    text = say(template, done=report.done, failed=report.failed, left=report.remaining, state=term(report.state))
    return text + ("\n" + say("last error: {error}", error=translated(report.error)) if report.error else "")


def fence(each: ltm.FenceInfo) -> str:
    """A fence in a line."""
    template = "fence {id} on {key} since {since}: {reason}"
    key, reason = printable(each.key) or term("the whole file"), printable(translated(each.reason), 300)
    return say(template, id=each.id, key=key, since=each.since, reason=reason)


def fences(found: Sequence[ltm.FenceInfo]) -> str:
    """The fences that stand."""
    return "\n".join(fence(each) for each in found) or term("no fence stands")


def fence_cleared(each: ltm.FenceInfo) -> str:
    """That writes go on."""
    return say("cleared {fence}", fence=fence(each))


def settings(found: Mapping[str, Any]) -> str:
    """Settings with what they do."""
    rows = ((name, json.dumps(value), translated(ltm.SETTINGS[name].words)) for name, value in found.items())
    return "\n".join(say("{name} = {value}  ({what})", name=name, value=value, what=what) for name, value, what in rows)


def setting(found: Mapping[str, Any]) -> str:
    """A setting as it is now."""
    return "\n".join(f"{name} = {json.dumps(value)}" for name, value in found.items())
