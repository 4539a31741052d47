"""A small conversation of three people in two languages, and five questions to it. No SQL."""

from __future__ import annotations

from typing import NamedTuple

import ltm

SCOPE = ltm.Scope("demo", "group", "weekend")
ALICE, BEN, LIN = ltm.Speaker("u1", "Alice"), ltm.Speaker("u2", "Ben"), ltm.Speaker("u3", "小林")
START_US = ltm.to_us("2026-11-23T09:00:00Z")  # a Monday
STEP_US = 90 * 60 * 1_000_000


class Line(NamedTuple):
    """One message. `corrects`: which earlier line it replaces."""

    speaker: ltm.Speaker
    text: str
    corrects: int | None = None
    event_at: str = ""
    tags: tuple[str, ...] = ()


CONVERSATION = (
    Line(
        ALICE,
        "My flight to Tokyo is on Tuesday, December 8 at nine in the morning.",
        None,
        "2026-12-08T09:00:00+09:00",
        ("travel",),
    ),
    Line(LIN, "我对花生过敏，订餐的时候请注意。", tags=("饮食",)),
    Line(BEN, "I moved from Berlin to Lisbon last month, the new flat is close to the river."),
    Line(LIN, "我家养了一只柯基，叫豆豆，今年三岁。"),
    Line(BEN, "I will bring the projector to the product review on Thursday.", None, "2026-11-26T14:00:00+00:00", ("work",)),
    Line(
        ALICE,
        "The airline moved it: I fly to Tokyo on Friday, December 11 now.",
        0,
        "2026-12-11T09:00:00+09:00",
        ("travel", "correction"),
    ),
    Line(LIN, "周末爬山的计划改到下个月，这周要下雨。", tags=("计划",)),
    Line(ALICE, "Concise answers, please, and no emoji."),
    Line(BEN, "哈哈，好的，那我周六在家看球。"),
    Line(BEN, "We agreed that Alice owns the release notes."),
)

QUESTIONS = (
    "When does Alice fly to Tokyo?",
    "小林吃什么会过敏？",
    "豆豆是谁？",
    "Which city did Ben move to?",
    "Who brings the projector to the review?",
)


class Clock:
    """A clock that the conversation moves: the demonstration prints the same on every day."""

    def __init__(self) -> None:
        self.now_us = START_US

    def __call__(self) -> int:
        return self.now_us


class Ids:
    """Ids that count."""

    def __init__(self) -> None:
        self.last = 0xD0E000000000

    def __call__(self) -> str:
        self.last += 1
        return f"{self.last:012x}"


def play(memory: ltm.Memory, clock: Clock) -> list[str]:
    """Store the conversation; return the episode ids, by line."""
    ids: list[str] = []
    for line in CONVERSATION:
        corrects = [ids[line.corrects]] if line.corrects is not None else []
        space = memory.space(SCOPE, speaker=line.speaker, via="cli")
        stored = space.remember(
            line.text,
            supersedes=corrects,
            event_at=line.event_at or None,
            tags=line.tags,
            claim_type="user_statement",
            operation_key=f"demo-{len(ids)}",
        )
        ids.append(stored.id)
        clock.now_us += STEP_US
    memory.space(SCOPE, speaker=ALICE, via="cli").profiles.update(
        "preferences", "set", "concise answers, no emoji", fact_key="style"
    )
    memory.space(SCOPE, speaker=LIN, via="cli").profiles.update("traits", "set", "对花生过敏", fact_key="allergy")
    return ids
