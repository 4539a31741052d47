"""What the answers of actions say to a person, in lines of text; and the JSON of those that carry a ranking.

Text from memories is data: it is cut to a line and cannot move a terminal. No SQL, no calls to the engine.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

import ltm


def printable(text: str, limit: int = 64) -> str:
    """Text on one line of a terminal: no control or direction characters, and an end that says what is missing."""
    flat = "".join(char if char.isprintable() else " " if char.isspace() else "\N{REPLACEMENT CHARACTER}" for char in text)
    return flat if len(flat) <= limit else f"{flat[:limit]}... ({len(text):,} characters)"


def block(text: str) -> str:
    """Text whole, its own lines kept."""
    return "\n".join(printable(each, 1 << 30) for each in text.splitlines())


def line(episode: ltm.Episode) -> str:
    """An episode in a line: id, day, tags, status, speaker, text."""
    who = f"{printable(episode.speaker.name or episode.speaker.id)}: " if episode.speaker else ""
    marks = "".join(f" [{printable(tag)}]" for tag in episode.tags) + ("" if episode.status == "active" else f" ({episode.status})")
    return f"{episode.id}  {episode.created_at[:10]}{marks}  {who}{printable(episode.content, 200)}"


def undo_hint(audit_id: str) -> list[str]:
    """How to take it back."""
    return [f"undo: ltm undo {audit_id}"] if audit_id else []


# ------------------------------------------------------------------------------------------- episodes


def remembered(stored: ltm.Remembered) -> str:
    """What became of a new memory."""
    said = {"stored": "stored", "duplicate": "already stored as", "repeated": "answered before:"}[stored.outcome]
    lines = [f"{said} {stored.id}"]
    lines += [f"superseded {id}" for id in stored.superseded] + [f"removed {id}, drawn from it" for id in stored.removed]
    return "\n".join(lines + [f"note: {note}" for note in stored.notes])


def points(hit: ltm.Hit) -> str:
    """The points of a hit: what its score is made of."""
    parts = [f"{name} {hit.why[name]:.3f} ({hit.signals[name]:.2f})" for name in ltm.SIGNALS if hit.why[name]]
    return "      " + " + ".join(parts) + f" = {hit.score:.3f}; relevance {hit.relevance:.2f}"


def recall(found: ltm.Recall, explain: bool = False) -> str:
    """Hits, best first, and what stood behind them."""
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
    return "\n".join([f"{found.code.replace('_', ' ')}: {found.words}"] + ([points(found.hit)] if found.hit else []))


def episode(found: ltm.Episode) -> str:
    """An episode whole."""
    data = found.to_json()
    labels = [(key.replace("_", " "), ", ".join(value) if isinstance(value, list) else value) for key, value in data.items()]
    said = [(label, printable(str(value), 600)) for label, value in labels if value not in ("", False) and label != "content"]
    said.append(("version", str(found.version)))
    return "\n".join([*(f"{label + ':':<15}{value}" for label, value in said), "", block(found.content)])


def page(found: ltm.Page) -> str:
    """A page of episodes."""
    lines = [f"{len(found.episodes)} of {found.total}", *(line(each) for each in found.episodes)]
    return "\n".join(lines + ([f"more: --cursor {found.cursor}"] if found.cursor else []))


def changed(done: ltm.Changed) -> str:
    """What became of a change, and how to take it back."""
    counts = ", ".join(f"{n} {what}" for what, n in done.counts.items())
    lines = [" ".join(filter(None, (done.outcome, printable(done.id)))) + (f": {counts}" if counts else "")]
    lines += [f"removed {id}, drawn from it" for id in done.removed] + [f"note: {note}" for note in done.notes]
    return "\n".join(lines + undo_hint(done.audit_id))


def edited(done: ltm.Changed) -> str:
    """How many were, or would be, changed."""
    counts = ", ".join(f"{n} {what}" for what, n in done.counts.items() if n)
    verb = "would edit" if done.counts.get("changed") and not done.audit_id else "edited"
    return "\n".join([f"{verb}: {counts}", *undo_hint(done.audit_id)])


def timeline(days: Sequence[ltm.Day]) -> str:
    """Counts by day, status and importance."""
    return "\n".join(f"{d.day}  {d.episodes:,} {d.status}, importance {d.importance}" for d in days) or "(nothing)"


def speakers(found: Sequence[ltm.SpeakerInfo]) -> str:
    """Who spoke, with counts."""
    rows = [
        f"{printable(s.id)}  {printable(s.name) or '-'}  {s.episodes:,} episodes, {s.facts} facts, last {s.last_at[:10]}"
        for s in found
    ]
    return "\n".join(rows) or "(nobody)"


def settled(done: ltm.Changed) -> str:
    """What became of a change that cannot be taken back."""
    return changed(dataclasses.replace(done, audit_id=""))


def deleted(done: ltm.Changed) -> str:
    """How many were, or would be, deleted."""
    counts = ", ".join(str(n) if what == "deleted" else f"{n} {what}" for what, n in done.counts.items() if n) or "none"
    lines = [f"{'deleted' if done.audit_id or not any(done.counts.values()) else 'would delete'}: {counts}"]
    return "\n".join([*lines, *(f"removed {id}, drawn from them" for id in done.removed), *undo_hint(done.audit_id)])


def several(done: Sequence[ltm.Changed]) -> str:
    """What became of each."""
    return "\n".join(changed(each) for each in done)


def history(versions: Sequence[ltm.Version]) -> str:
    """The states of an episode, oldest first."""
    lines = []
    for each in versions:
        ended = f"  ended by {each.operation} {each.audit_id}" if each.until else ""
        ended += f": {', '.join(name.replace('_', ' ') for name in each.changed)}" if each.changed else ""
        lines.append(f"{each.since} to {each.until or 'now'}{ended}")
        lines.append(f"  {line(each.episode)}")
    return "\n".join(lines)


def differences(found: Sequence[ltm.Difference]) -> str:
    """What differs between two moments."""
    lines = []
    for each in found:
        lines.append(f"{each.change} {each.kind} {each.id}")
        if each.change == "changed":
            lines += [f"  {name}: {_value(each.before.get(name))} -> {_value(each.after.get(name))}" for name in each.after]
        else:
            view = each.after or each.before
            status = f" ({view['status']})" if view.get("status") not in ("active", "current") else ""
            who = view.get("sender_name") or view.get("sender_id") or view.get("subject", "")
            lines.append(f"  {printable(who)}{': ' if who else ''}{_value(view.get('content', view.get('value', '')))}{status}")
    return "\n".join(lines) or "nothing differs"


def _value(value: Any) -> str:
    return printable(value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False), 120)


# ------------------------------------------------------------------------------------------- profiles


def profiles(found: Mapping[str, Any]) -> str:
    """Profiles, with their history if it was asked for."""
    blocks = []
    for subject in ("session", "speaker"):
        if subject in found:
            lines = [subject.capitalize(), block(found[subject].text()) or "(nothing known)"]
            for fact in found.get(f"{subject}_history", ()):
                span = f"{fact.created_at} to {fact.ended_at or 'now'}"
                lines.append(
                    f"  {span}  {fact.field} {fact.slot or '-'}: {printable(fact.value, 200)} ({fact.reason or fact.status})"
                )
            blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def profile_change(change: ltm.ProfileChange) -> str:
    """What a profile write did, and the profile after it."""
    lines = [f"{change.outcome}: {change.added} added, {change.ended} ended", block(change.profile.text()) or "(nothing known)"]
    return "\n".join(lines + undo_hint(change.audit_id))


# ---------------------------------------------------------------------------------------------- audit


def entry(each: ltm.AuditEntry) -> str:
    """An audit entry in a line."""
    who = f" by {printable(each.actor_name or each.actor_id)}" if each.actor_id else ""
    what = "(details erased)" if each.erased else printable(each.summary, 120)
    return f"{each.id}  {each.at[:19]}Z  {each.operation} {printable(each.target_id)}{who} via {each.via}  {what}".rstrip()


def audit_page(found: ltm.AuditPage) -> str:
    """A page of the audit."""
    lines = [f"{len(found.entries)} of {found.total}", *(entry(each) for each in found.entries)]
    return "\n".join(lines + ([f"more: --cursor {found.cursor}"] if found.cursor else []))


def audit_entries(found: Mapping[str, Any]) -> str:
    """Every entry of an export, a line each."""
    rows = []
    for each in found["audit"]:
        who = f" by {printable(each['sender_name'] or each['sender_id'])}" if each["sender_id"] else ""
        what = "(details erased)" if each["erased"] else printable(each["summary"], 120)
        head = f"{each['audit_id']}  {each['timestamp']}  {each['operation']} {printable(each['target_id'])}"
        rows.append(f"{head}{who} via {each['via']}  {what}".rstrip())
    return "\n".join(rows) or "(no entries)"


def problems(found: Mapping[str, Any]) -> str:
    """Whether the chain holds."""
    return "\n".join(found["problems"]) or f"whole up to {found['head'] or '(no entries)'}"


def head(found: Mapping[str, Any]) -> str:
    """The head of the chain."""
    return found["head"] or "(no entries)"


# --------------------------------------------------------------------------------------------- review


def candidate(each: ltm.Candidate) -> str:
    """A candidate in a line."""
    body = each.payload
    place = f"{body.get('field')}: " if each.type == "l1_profile" else ""
    who = f"{printable(each.sender_name or each.sender_id)}: " if each.sender_id else ""
    text = printable(str(body.get("content", body.get("value", ""))), 200)
    return f"{each.id}  {each.status} {each.type}  {who}{place}{text}  ({printable(each.reason, 120)})"


def extraction(found: ltm.Extraction) -> str:
    """What was found in a message."""
    lines = [candidate(each) for each in found.candidates] or ["nothing found"]
    return "\n".join(lines + [f"note: {note}" for note in found.notes])


def candidate_page(found: ltm.CandidatePage) -> str:
    """A page of candidates."""
    lines = [f"{len(found.candidates)} of {found.total}", *(candidate(each) for each in found.candidates)]
    return "\n".join(lines + ([f"more: --cursor {found.cursor}"] if found.cursor else []))


def preview(found: ltm.Preview) -> str:
    """What a consolidation would do."""
    lines = [f"{found.n_superseded} superseded episodes could be archived"] + [f"  {line(each)}" for each in found.superseded]
    lines += [f"{len(found.sources)} active episodes could be summarised"] + [f"  {line(each)}" for each in found.sources]
    return "\n".join(lines + [f"note: {note}" for note in found.notes])


def proposal(found: ltm.Proposal) -> str:
    """A proposal with all of its sources."""
    lines = [f"proposal {found.id} ({found.status}) by {printable(found.model)}, until {found.expires_at}"]
    lines += [f"  {block(found.content)}"] if found.content else []
    lines += ["drawn from"] + [f"  {line(each)}" for each in found.sources]
    lines += [f"publish: ltm consolidate run {found.id}"] if found.status == "pending" else []
    return "\n".join(lines)


def proposals(found: Sequence[ltm.Proposal]) -> str:
    """Proposals, newest first."""
    return "\n\n".join(proposal(each) for each in found) or "(no proposals)"


def lineage(found: Mapping[str, Any]) -> str:
    """What came from what."""
    lines = [f"drawn from {id}" for id in found["sources"]] + [f"summarised in {id}" for id in found["summaries"]]
    return "\n".join(lines) or "drawn from nothing, and nothing was drawn from it"


# ------------------------------------------------------------------------------------------- transfer


def export(found: Mapping[str, Any]) -> str:
    """An export is JSON, for people too."""
    return json.dumps(found, ensure_ascii=False, indent=2)


def import_report(report: ltm.ImportReport) -> str:
    """What was taken in, and what was not and why."""
    verb = "would be stored" if report.dry_run else "stored"
    lines = [f"{report.episodes} episodes and {report.facts} facts {verb}, {report.duplicates} there already"]
    lines += [f"record {position}: {printable(problem, 200)}" for position, problem in report.skipped]
    lines += [f"record {position}: was erased here and stays out" for position in report.erased]
    lines += [f"note: {printable(note, 300)}" for note in report.notes]
    return "\n".join(lines + [each for id in report.audit_ids for each in undo_hint(id)])


def injection(found: ltm.Injection) -> str:
    """The blocks as a prompt gets them."""
    lines = [found.text or f"(nothing: {found.reason.replace('_', ' ')})"]
    return "\n".join(lines + [f"note: {note}" for note in found.notes])


def injections(found: Sequence[Mapping[str, Any]]) -> str:
    """The last prompts, each in a few lines."""
    lines = []
    for each in found:
        lines.append(
            f"{each['recorded_at']}  {printable(each['query'], 120)}  ({each['reason']}, {each['injection_chars']} characters)"
        )
        lines += [f"  {printable(shown['content'], 200)}" for shown in each["episodes"]]
    return "\n".join(lines) or "(nothing was injected yet)"


# ----------------------------------------------------------------------------------------------- file


def erasure(done: ltm.Erasure) -> str:
    """What was erased, and the proof if it was asked for."""
    counts = ", ".join(f"{n} {what}" for what, n in done.counts.items()) or "nothing was there"
    lines = [f"erased: {counts}", f"certificate {done.certificate}"]
    lines += [f"kept: {id}, in which somebody else says the same" for id in done.kept]
    if done.files:
        lines.append(f"looked for {done.searched} texts, as they are and as JSON, in {', '.join(done.files)}")
        lines += [f"found in {each}" for each in done.found] or ["none of them was found"]
    lines += [f"note: {note}" for note in done.notes]
    verdict = "proven: nothing of it is left but what others hold" if done.found else "proven: nothing of it is left"
    lines += [verdict if done.proven else "NOT proven: see above"] if done.proven is not None else []
    return "\n".join(lines)


def spaces(found: Sequence[ltm.SpaceInfo]) -> str:
    """Spaces with their counts."""
    rows = [
        f"{s.kind:<8}{printable(s.key, 200)}  {s.active} active of {s.episodes}, {s.facts} facts, {s.speakers} speakers"
        for s in found
    ]
    return "\n".join(rows) or "(no space holds anything)"


def stats(data: Mapping[str, Any]) -> str:
    """Counts of the file."""
    counts = {**{f"{status} episodes": n for status, n in data["episodes"].items()}, **data}
    rows = [f"{name + ':':<22}{value:,}" for name, value in counts.items() if isinstance(value, int)]
    rows += [f"{'embedder:':<22}{g['fingerprint']} ({g['dim']} dimensions, {g['state']})" for g in data["embedders"]]
    return "\n".join(rows)


def health(found: ltm.Health) -> str:
    """Checks, and what they come to."""
    return "\n".join(
        [*(f"- {check.status:<5} {check.id}: {printable(check.detail, 300)}" for check in found.checks), f"Result: {found.status}"]
    )


def fence(each: ltm.FenceInfo) -> str:
    """A fence in a line."""
    return f"fence {each.id} on {printable(each.key) or 'the whole file'} since {each.since}: {printable(each.reason, 300)}"


def fences(found: Sequence[ltm.FenceInfo]) -> str:
    """The fences that stand."""
    return "\n".join(fence(each) for each in found) or "no fence stands"


def fence_cleared(each: ltm.FenceInfo) -> str:
    """That writes go on."""
    return f"cleared {fence(each)}"


def settings(found: Mapping[str, Any]) -> str:
    """Settings with what they do."""
    return "\n".join(f"{name} = {json.dumps(value)}  ({ltm.SETTINGS[name].words})" for name, value in found.items())


def setting(found: Mapping[str, Any]) -> str:
    """A setting as it is now."""
    return "\n".join(f"{name} = {json.dumps(value)}" for name, value in found.items())
