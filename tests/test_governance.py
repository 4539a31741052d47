"""Where the desks meet each other, other chats, other processes and failures: each of these was a fault once."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

import ltm
from ltm_console.actions import ACTIONS, perform

from .conftest import ALICE, BOB, GROUP, Clock, counting_ids

Opened = Callable[..., ltm.Memory]
ELSEWHERE = ltm.Scope("b2", "group", "1")


def test_undo_never_reaches_a_fact_that_was_given_an_erased_one_s_number(memory: ltm.Memory, space: ltm.Space) -> None:
    profiles = [{"type": "speaker", "sender_id": id, "profile": {"freeform_traits": [f"trait of {id}"]}} for id in ("x1", "x2")]
    report = space.transfer.load(json.dumps({"version": 1, "profiles": profiles}).encode())
    space.erase(speaker="x2")
    theirs = memory.space(ELSEWHERE, speaker=BOB)
    theirs.profiles.update("preferences", "add", "no peanuts")
    with pytest.raises(ltm.Conflict):
        space.undo(report.audit_ids[0])
    assert theirs.profiles.get("speaker").preferences == ("no peanuts",)


def test_a_prompt_read_before_an_erasure_is_not_written_after_it(tmp_path: Path, opened: Opened) -> None:
    memory = opened(tmp_path / "a.db")
    mine, bobs = memory.space(GROUP, speaker=ALICE), memory.space(GROUP, speaker=BOB)
    mine.remember("zqxwv banana")
    real = ltm.Space._inject

    def slow(self: ltm.Space, *arguments: object) -> ltm.Injection:
        made = real(self, *arguments)  # type: ignore[arg-type]
        memory.space(GROUP).erase(speaker="u1")
        return made

    ltm.Space._inject = slow  # type: ignore[method-assign, assignment]
    try:
        made = bobs.inject("banana")
    finally:
        ltm.Space._inject = real  # type: ignore[method-assign]
    assert (made.snapshot_id, bobs.injections()) == ("", [])
    assert any("erased" in note for note in made.notes)
    assert all(b"zqxwv" not in path.read_bytes() for path in tmp_path.iterdir())


def test_what_another_process_erased_is_not_in_the_past_either(tmp_path: Path, opened: Opened, clock: Clock) -> None:
    one, other = opened(tmp_path / "a.db"), opened(tmp_path / "a.db", ids=counting_ids())
    one.space(GROUP, speaker=ALICE).remember("hers")
    moment = ltm.to_iso(clock())
    assert other.space(GROUP).list(as_of=moment).total == 1
    one.space(GROUP).erase(speaker="u1")
    assert other.space(GROUP).list(as_of=moment).total == 0


def test_looking_back_goes_on_while_others_are_erased(memory: ltm.Memory, space: ltm.Space, clock: Clock) -> None:
    space.remember("number five")
    moment = ltm.to_iso(clock())
    errors: list[BaseException] = []
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            try:
                assert space.recall("five", as_of=moment).hits
            except BaseException as error:
                errors.append(error)
                return

    threads = [threading.Thread(target=look) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(6):
        other = memory.space(ltm.Scope("b1", "group", f"x{number}"), speaker=BOB)
        other.remember("theirs")
        other.erase(everything=True)
    done.set()
    for thread in threads:
        thread.join()
    assert errors == []


def test_a_reader_that_holds_the_log_after_an_erasure_keeps_no_writer(tmp_path: Path, opened: Opened) -> None:
    memory = opened(tmp_path / "a.db")
    memory.space(GROUP, speaker=ALICE).remember("hers alone")
    reader = apsw.Connection(str(tmp_path / "a.db"))
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM episode").fetchall()
    patience: list[bool] = []
    real = memory._file._exclusively

    def watched(sql: str, patient: bool) -> bool:
        patience.append(patient)
        return real(sql, patient)

    memory._file._exclusively = watched  # type: ignore[method-assign]
    ltm.BUSY_SECONDS, kept = 0.05, ltm.BUSY_SECONDS
    try:
        assert not memory.space(GROUP).erase(speaker="u1").truncated
    finally:
        ltm.BUSY_SECONDS = kept
    patience.clear()
    memory._retry_at = 0.0
    for number in range(20):
        memory.space(GROUP, speaker=BOB).remember(f"text {number}")
    assert patience == [False], "one attempt, without waiting"
    reader.close()
    memory._retry_at = 0.0
    memory.space(GROUP, speaker=BOB).remember("and then")
    assert memory._unfinished == []
    assert all(b"hers alone" not in path.read_bytes() for path in tmp_path.iterdir())


def test_an_erasure_that_cannot_be_finished_answers_and_the_file_opens(tmp_path: Path, opened: Opened) -> None:
    memory = opened(tmp_path / "a.db")
    memory.space(GROUP, speaker=ALICE).remember("hers")
    blocker = tmp_path / "a.db.v1.bak"
    blocker.mkdir()
    done = memory.space(GROUP).erase(speaker="u1")
    assert done.certificate
    assert not done.truncated
    assert any("tried again" in note for note in done.notes)
    memory.close()
    again = opened(tmp_path / "a.db")
    assert any("tried again" in warning for warning in again.warnings)
    again.space(GROUP).remember("it goes on")
    blocker.rmdir()
    again.close()
    with opened(tmp_path / "a.db")._file.read() as db:
        assert db.execute("SELECT count(*) FROM intent").get == 0


def test_history_that_another_chat_closed_is_not_undone_over(memory: ltm.Memory, clock: Clock) -> None:
    shared = [memory.space(ltm.Scope("b1", "group", id, "bot"), speaker=ALICE) for id in ("1", "2")]
    id = shared[1].remember("version one").id
    mine = shared[1].edit(id, content="version two")
    moment = ltm.to_iso(clock())
    shared[0].edit(id, content="version three")
    shared[0].remember("more")
    shared[0].audit.close(ltm.to_iso(clock()))
    with pytest.raises(ltm.Conflict, match="closed"):
        shared[1].undo(mine.audit_id)
    with pytest.raises(ltm.Conflict, match="closed"):
        shared[1].diff(moment)
    assert shared[1].get(id).content == "version three"


@pytest.mark.parametrize("what", ["erase", "forget"])
def test_an_import_goes_on_when_what_it_stored_is_taken_away_meanwhile(space: ltm.Space, what: str) -> None:
    rows = [{"id": f"e{n}", "content": f"text {n}", "sender_id": "s1", "sender_name": "Sam"} for n in range(1_100)]
    rows[3] |= {"status": "superseded", "superseded_by": "e1050"}

    def meanwhile(done: int, total: int) -> None:
        if done == 500:
            admin = space.for_speaker(None)
            admin.erase(speaker="s1") if what == "erase" else admin.forget_all(ltm.Filter(statuses=ltm.STATUSES, source="import"))

    report = space.transfer.load(json.dumps(rows).encode(), progress=meanwhile)
    assert report.episodes == 1_100
    assert space.memory.fences() == []
    assert space.list(ltm.Filter(statuses=ltm.STATUSES)).total == 600


def test_a_fork_while_the_past_is_built_does_not_hang(tmp_path: Path) -> None:
    script = f"""
import os, signal, sys
sys.path.insert(0, {str(Path(ltm.__file__).parent)!r})
import ltm
memory = ltm.open({str(tmp_path / "a.db")!r})
space = memory.space(ltm.Scope("b", "group", "1"))
space.remember("x")
moment = memory._clock() + 1
with memory._locks.past, memory._locks.calibrating:
    child = os.fork()
    if not child:
        signal.alarm(20)
        os._exit(0 if space.list(as_of=moment).total == 1 else 3)
print(os.waitpid(child, 0)[1])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("0", "")


def test_what_an_export_calls_may_write(space: ltm.Space) -> None:
    """Also in memory, where a read keeps writers out."""
    for number in range(600):
        space.remember(f"text {number}")
    counts = space.transfer.write(io.StringIO(), ["episodes"], progress=lambda done, total: space.remember(f"at {done}") and None)
    assert counts["episode"] == 600
    with pytest.raises(ltm.InvalidInput, match="text file"):
        space.transfer.write(b"")  # type: ignore[arg-type]


def test_a_head_of_a_closed_part_is_not_called_right(space: ltm.Space, clock: Clock) -> None:
    for text in "abcd":
        space.remember(text)
    space.audit.close(ltm.to_iso(clock()))
    assert any("cannot be compared" in each for each in space.audit.verify("2:" + "a" * 64))
    assert space.audit.verify() == []


def test_closing_goes_by_order_where_the_clock_went_back(space: ltm.Space, clock: Clock) -> None:
    space.remember("a")
    late = space.remember("b").audit_id
    before = space.audit.get(late).at
    clock.now_us -= 3_600_000_000
    space.remember("c")
    clock.now_us += 7_200_000_000
    space.remember("d")
    space.audit.close(before)
    assert late in {entry.id for entry in space.audit.list().entries}


@pytest.mark.parametrize(("year", "offset"), [("1965", 0), ("0001", -840), ("9999", 840)])
def test_a_prompt_shows_any_date(memory: ltm.Memory, space: ltm.Space, year: str, offset: int) -> None:
    memory.configure("utc_offset_minutes", offset)
    space.remember("the old house", created_at=f"{year}-06-15T12:00:00Z")
    assert f"{year}-06-1" in space.inject("the old house").memories


def test_what_did_not_fit_is_not_called_unknown(space: ltm.Space) -> None:
    space.for_speaker(None).remember("zebra", tags=[f"{n}" + "t" * 62 for n in range(8)])
    made = space.for_speaker(None).inject("zebra", budget=400)
    assert made.text or made.reason == "over_budget"


@pytest.mark.parametrize("given", [None, 5, "x", [1], {1: 2}, {"id": b"x"}, {"query": float("nan")}, {"unknown": 1}])
@pytest.mark.parametrize("name", ["show", "recall", "config set", "export", "nothing", None])
def test_an_action_given_nonsense_answers_with_an_error_of_ours(space: ltm.Space, name: object, given: object) -> None:
    with pytest.raises(ltm.LtmError):
        perform(name, space, given)  # type: ignore[arg-type]


def test_every_action_answers_not_found_for_what_another_space_holds(memory: ltm.Memory, space: ltm.Space) -> None:
    """Whatever ids an action takes: those of another chat are nobody's here. A new action that takes ids is covered at once."""
    memory.configure("consolidation_enabled", True)
    space.remember("mine")
    theirs = memory.space(ELSEWHERE, speaker=BOB)
    first, second = theirs.remember("their first"), theirs.remember("their second")
    candidate = theirs.candidates.extract("I prefer tea.", force=True).candidates[0].id
    values = {"id": first.id, "by": second.id, "audit_id": first.audit_id, "ids": [first.id], "proposal_id": "0" * 12}
    more = {
        "edit": {"content": "mine now"},
        "edit-all": {"importance": 5},
        "candidate accept": {"ids": [candidate]},
        "candidate reject": {"ids": [candidate]},
        "consolidate draft": {"model": "http:http://127.0.0.1:9#none"},
        "fence clear": {"id": memory.fence("theirs", theirs).id},
        "why-not": {"query": "their first"},
    }
    before = (theirs.list(ltm.Filter(statuses=ltm.STATUSES)), theirs.audit.list(), theirs.candidates.list())
    tried = 0
    for name, action in ACTIONS.items():
        fields = action.input.__dataclass_fields__
        given = {key: value for key, value in values.items() if key in fields} | more.get(name, {})
        if not given or action.on is not ltm.Space:
            continue
        tried += 1
        if name == "why-not":
            assert perform(name, space, given)["code"] == "not_found"
            continue
        with pytest.raises(ltm.NotFound):
            perform(name, space, given)
    assert tried > 15
    assert len(memory.fences()) == 1
    assert (theirs.list(ltm.Filter(statuses=ltm.STATUSES)), theirs.audit.list(), theirs.candidates.list()) == before


def test_a_killed_erasure_is_finished_by_the_next_open(tmp_path: Path, opened: Opened) -> None:
    script = f"""
import os, signal, sys
sys.path.insert(0, {str(Path(ltm.__file__).parent)!r})
import ltm
memory = ltm.open({str(tmp_path / "a.db")!r})
space = memory.space(ltm.Scope("b1", "group", "7"), speaker=ltm.Speaker("u1", "Alice"))
space.remember("zqxwv one"), space.remember("zqxwv two")
memory._file.sweep = lambda **_: os.kill(os.getpid(), signal.SIGKILL)
space.erase(speaker="u1")
"""
    assert subprocess.run([sys.executable, "-c", script]).returncode == -signal.SIGKILL
    assert os.path.getsize(tmp_path / "a.db-wal") > 0
    memory = opened(tmp_path / "a.db")
    assert memory.space(GROUP).list().total == 0
    assert all(b"zqxwv" not in path.read_bytes() for path in tmp_path.iterdir())
