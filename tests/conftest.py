"""Fixtures: every Memory made in a test is checked and closed after it, so each test also tests consistency."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import ltm

settings.register_profile("ltm", deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), max_examples=60)
settings.load_profile("ltm")

START_US = ltm.to_us("2026-03-02T09:00:00Z")


class Clock:
    """A clock that moves a second at every look, and as far as a test wants."""

    def __init__(self) -> None:
        self.now_us = START_US

    def __call__(self) -> int:
        self.now_us += 1_000_000
        return self.now_us

    def forward(self, days: float) -> None:
        self.now_us += int(days * 86_400e6)


def counting_ids() -> Callable[[], str]:
    counter = itertools.count(1)
    return lambda: f"{next(counter):012x}"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def opened(clock: Clock) -> Iterator[Callable[..., ltm.Memory]]:
    """Open memories with an injected clock and counting ids; afterwards each passes its own check."""
    memories: list[ltm.Memory] = []

    def open_(path: str | Path = ":memory:", **options: Any) -> ltm.Memory:
        memory = ltm.open(path, **{"clock": clock, "ids": counting_ids(), **options})
        memories.append(memory)
        return memory

    yield open_
    for memory in memories:
        if not memory._file.closed:
            assert memory.check() == []
            memory.close()


@pytest.fixture
def memory(opened: Callable[..., ltm.Memory]) -> ltm.Memory:
    return opened()


ALICE, BOB = ltm.Speaker("u1", "Alice"), ltm.Speaker("u2", "Bob")
GROUP = ltm.Scope("b1", "group", "7")


@pytest.fixture
def space(memory: ltm.Memory) -> ltm.Space:
    return memory.space(GROUP, speaker=ALICE)


def texts(found: ltm.Recall) -> list[str]:
    return [hit.episode.content for hit in found]
