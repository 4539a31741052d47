"""Threads, processes, kill -9, fork: nothing lost, nobody starved, no lock error."""

from __future__ import annotations

import gc
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import ltm

from .conftest import ALICE, GROUP, texts

HEAD = f"import sys; sys.path[:0] = {sys.path!r}\nimport ltm\n"

WRITER = (
    HEAD
    + """
import threading
memory = ltm.open(sys.argv[1])
errors = []
counts = [0] * 8
def work(n):
    try:
        space = memory.space(ltm.Scope("b", "group", f"{n % 2}"), speaker=ltm.Speaker(f"{sys.argv[2]}-{n}", "N"))
        for i in range(int(sys.argv[3])):
            space.remember(f"fact {sys.argv[2]} {n} {i}")
            counts[n] += 1
            if i % 5 == 0:
                space.recall(f"fact {n} {i}")
                space.list(limit=5)
    except BaseException as error:
        errors.append(repr(error))
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
memory.close()
print(errors, counts)
"""
)


def test_two_processes_and_eight_threads_each_lose_nothing(tmp_path: Path) -> None:
    path, each = tmp_path / "a.db", 40
    processes = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(n), str(each)], stdout=subprocess.PIPE, text=True)
        for n in range(2)
    ]
    for process in processes:
        answer, _ = process.communicate(timeout=300)
        assert answer.strip() == f"[] {[each] * 8}"  # no error, and every thread got all its writes in
    with ltm.open(path) as memory:
        totals = [memory.space(ltm.Scope("b", "group", f"{n}")).list().total for n in range(2)]
        assert totals == [2 * 4 * each] * 2
        assert memory.check() == []


def test_the_same_text_at_the_same_moment_is_one_row(tmp_path: Path) -> None:
    memory = ltm.open(tmp_path / "a.db")
    barrier, ids = threading.Barrier(8), []

    def work() -> None:
        barrier.wait()
        ids.append(memory.space(GROUP, speaker=ALICE).remember("said at once").id)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(ids)) == 1
    assert memory.space(GROUP).list().total == 1
    assert memory.check() == []
    memory.close()


def test_two_corrections_at_once_the_second_names_the_winner(tmp_path: Path) -> None:
    memory = ltm.open(tmp_path / "a.db")
    space = memory.space(GROUP, speaker=ALICE)
    old, barrier = space.remember("drinks coffee").id, threading.Barrier(4)
    won, lost = [], []

    def work(n: int) -> None:
        barrier.wait()
        try:
            won.append(space.remember(f"drinks tea {n}", supersedes=[old]).id)
        except ltm.Conflict as error:
            lost.append(str(error))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert len(lost) == 3
    assert all(won[0] in message for message in lost)
    assert memory.check() == []
    memory.close()


def test_a_writer_waits_for_another_process_and_gives_up_clearly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.db"
    holder = ltm.open(path)
    waiter = ltm.open(path)
    released, held = threading.Event(), threading.Event()

    def hold() -> None:
        with holder.batch():
            held.set()
            released.wait()

    thread = threading.Thread(target=hold, daemon=True)
    thread.start()
    held.wait()
    try:
        monkeypatch.setattr(ltm, "BUSY_SECONDS", 0.05)
        with pytest.raises(ltm.Busy, match="nothing was written"):
            waiter.space(GROUP, speaker=ALICE).remember("x")
        assert waiter.space(GROUP).list().total == 0  # readers do not wait
        ltm.open(path).close()  # nor does opening
    finally:
        released.set()
        thread.join()
    monkeypatch.undo()
    assert waiter.space(GROUP, speaker=ALICE).remember("x").outcome == "stored"
    for memory in (holder, waiter):
        assert memory.check() == []
        memory.close()


def test_one_failing_write_of_a_group_takes_no_other_with_it(tmp_path: Path) -> None:
    memory = ltm.open(tmp_path / "a.db")
    space = memory.space(GROUP, speaker=ALICE)
    outcomes: list[str] = []

    def work(n: int) -> None:
        for i in range(20):
            try:
                space.remember(f"fact {n} {i}", supersedes=["0" * 12] if (n + i) % 3 == 0 else [])
                outcomes.append("stored")
            except ltm.NotFound:
                outcomes.append("refused")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count("refused") == 40
    assert space.list().total == 80
    assert memory.check() == []
    memory.close()


KILLED = (
    HEAD
    + """
memory = ltm.open(sys.argv[1], embedder=ltm.HashEmbedder(16))
space = memory.space(ltm.Scope("b", "group", "1"), speaker=ltm.Speaker("u", "N"))
last = None
i = 0
print("ready", flush=True)
while True:
    stored = space.remember(f"round {sys.argv[2]} fact {i}", supersedes=[last] if last and i % 3 == 0 else [])
    last = stored.id
    print(stored.id, flush=True)
    i += 1
"""
)


def test_kill_9_fifty_times_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    path, rng, acknowledged = tmp_path / "a.db", random.Random(9), []
    for round_ in range(50):
        process = subprocess.Popen([sys.executable, "-c", KILLED, str(path), str(round_)], stdout=subprocess.PIPE, text=True)
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        for _ in range(rng.randint(1, 8)):  # so many acknowledgements, then in the middle of whatever comes next
            acknowledged.append(process.stdout.readline().strip())
        process.send_signal(signal.SIGKILL)
        acknowledged += [line.strip() for line in process.stdout.readlines() if len(line) == 13]
        process.stdout.close()
        process.wait()
    with ltm.open(path, embedder=ltm.HashEmbedder(16)) as memory:
        space = memory.space(ltm.Scope("b", "group", "1"))
        assert len(acknowledged) >= 50
        for id in acknowledged:
            assert space.find(id) is not None
        assert memory.check() == []  # includes PRAGMA integrity_check


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_memory_works_on_both_sides_of_a_fork(tmp_path: Path, opened: Callable[..., ltm.Memory]) -> None:
    memory = opened(tmp_path / "a.db", ids=lambda: os.urandom(6).hex())
    space = memory.space(GROUP, speaker=ALICE)
    space.remember("before the fork")
    child = os.fork()
    if child == 0:
        status = 1
        try:
            space.remember("from the child")
            status = 0 if sorted(texts(space.recall("the fork child"))) == ["before the fork", "from the child"] else 2
        finally:
            os._exit(status)
    space.remember("from the parent")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert space.list().total == 3


def test_a_thread_of_readers_never_sees_half_an_operation(tmp_path: Path) -> None:
    memory = ltm.open(tmp_path / "a.db")
    space = memory.space(GROUP, speaker=ALICE)
    last, stop, seen = space.remember("state 0").id, threading.Event(), []

    def look() -> None:
        while not stop.is_set():
            seen.append(space.list().total)

    thread = threading.Thread(target=look)
    thread.start()
    for n in range(1, 60):
        last = space.remember(f"state {n}", supersedes=[last]).id
    stop.set()
    thread.join()
    assert set(seen) == {1}  # a correction replaces in one step: never none, never two
    memory.close()


def test_time_is_only_told_by_the_injected_clock(opened: Callable[..., ltm.Memory]) -> None:
    memory = opened(clock=lambda: 0)
    space = memory.space(GROUP, speaker=ALICE)
    assert space.get(space.remember("x").id).created_at == "1970-01-01T00:00:00Z"
    assert time.time() > 0


def test_readers_of_finished_threads_are_closed(tmp_path: Path) -> None:
    with ltm.open(tmp_path / "a.db") as memory:
        memory.space(GROUP, speaker=ALICE).remember("x")
        for _ in range(30):
            thread = threading.Thread(target=lambda: memory.space(GROUP).list())
            thread.start()
            thread.join()
        gc.collect()
        assert len(memory._file._all) <= 3


def test_more_writers_than_a_group_all_get_their_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ltm, "GROUP", 3)
    memory = ltm.open(tmp_path / "a.db")
    answers: list[str] = []

    def work(n: int) -> None:
        for i in range(3):
            answers.append(memory.space(GROUP, speaker=ALICE).remember(f"fact {n} {i}").id)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(40)]
    with memory.batch():
        for thread in threads:
            thread.start()
    for thread in threads:
        thread.join()
    assert len(set(answers)) == 120
    assert memory.check() == []
    memory.close()


def test_a_writer_interrupted_while_it_waits_writes_nothing_later(tmp_path: Path) -> None:
    memory = ltm.open(tmp_path / "a.db")
    space, held, go_on = memory.space(GROUP, speaker=ALICE), threading.Event(), threading.Event()

    def hold() -> None:
        with memory.batch():
            held.set()
            go_on.wait()

    def interrupt(*_: object) -> None:
        raise TimeoutError

    thread = threading.Thread(target=hold, daemon=True)
    thread.start()
    held.wait()
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(TimeoutError):
            space.remember("perhaps")
    finally:
        signal.signal(signal.SIGALRM, before)
        go_on.set()
        thread.join()
    space.remember("surely")
    assert [episode.content for episode in space.list().episodes] == ["surely"]
    memory.close()


def test_in_memory_a_reader_waits_for_a_batch(opened: Callable[..., ltm.Memory]) -> None:
    memory = opened()
    seen: list[int] = []
    with memory.batch():
        memory.space(GROUP, speaker=ALICE).remember("one")
        thread = threading.Thread(target=lambda: seen.append(memory.space(GROUP).list().total))
        thread.start()
        memory.space(GROUP, speaker=ALICE).remember("two")
    thread.join()
    assert seen == [2]
