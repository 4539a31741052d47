"""A file for looking at: chats in Chinese and English, everything that the console shows, and hostile text in every place."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import ltm
import ltm_models

TEAM, SHOP = ltm.Scope("bot-1", "group", "team-42"), ltm.Scope("bot-1", "person", "alice")
FAMILY = ltm.Scope("助手", "group", "家庭群")
PEOPLE = [ltm.Speaker("u1", "Alice"), ltm.Speaker("u2", "小林"), ltm.Speaker("u3", "Bob O'Neil")]
HOSTILE = [
    "<script>window.pwned = 1</script>",
    '<img src=x onerror="window.pwned = 1">',
    '<a href="javascript:window.pwned = 1">click</a> \'"><svg onload=window.pwned=1>',
    "\u202etxet sdrawkcab\u202c and \u2066isolated\u2069 \u200b\ufeff text",
    "word" * 2_000,
    "很长的一段没有空格的中文" * 200,
]
SAID = [
    ("The team meets on Tuesday at ten in room {n}", ["meeting"]),
    ("Alice prefers the window seat on flight {n}", ["travel", "preference"]),
    ("小林下周三去东京出差，第 {n} 次", ["出差", "travel"]),
    ("周末一起去爬山，集合地点在北门 {n} 号", ["周末"]),
    ("The deploy of version {n} was moved to Friday", ["work", "release"]),
    ("妈妈的生日是 {n} 月，记得买蛋糕", ["家庭"]),
]


def fill(path: Path, n: int = 400) -> None:
    """Write the file. `n`: episodes of the first chat."""
    chance = random.Random(7)
    start = ltm.to_us("2026-09-01T08:00:00Z")
    with ltm.open(path, embedder=ltm.HashEmbedder(32)) as memory:
        team = memory.space(TEAM)
        for name in ("consolidation_enabled", "candidate_extraction_enabled"):
            memory.configure(name, True)
        for first in range(0, n, 500):
            with memory.batch():
                for k in range(first, min(first + 500, n)):
                    text, tags = SAID[k % len(SAID)]
                    at = ltm.to_iso(start + (k * 86_400_000_000 * 88) // n)
                    options = {"importance": chance.randint(1, 5), "created_at": at, "pinned": k % 50 == 0}
                    team.for_speaker(PEOPLE[k % 3]).remember(text.format(n=k), tags=tags, source="chat", **options)
        memory.embed_pending()
        alice, lin = team.for_speaker(PEOPLE[0]), team.for_speaker(PEOPLE[1])
        old = alice.remember("Alice flies to Tokyo on Tuesday", tags=["travel"], importance=4)
        alice.remember("Alice flies to Tokyo on Friday now", tags=["travel", "correction"], importance=5, supersedes=[old.id])
        for k, text in enumerate(HOSTILE):
            team.for_speaker(ltm.Speaker(f"h{k}", text[:200])).remember(text, tags=[text[:60]], importance=3)
        for value, slot in (("tea", "drink"), ("coffee", "drink"), ("green tea", "drink")):
            alice.profiles.update("preferences", "set", value, fact_key=slot)
        alice.profiles.update("traits", "add", HOSTILE[1], subject="speaker")
        lin.profiles.update("name", "set", "林小明")
        lin.profiles.update("traits", "add", "喜欢爬山")
        team.profiles.update("notes", "add", "The team speaks English and 中文.", subject="session")
        lin.candidates.extract("我叫小林。明天下午三点我们开会。我喜欢喝绿茶。")
        alice.candidates.extract("I am allergic to peanuts. We decided to move to Berlin. My password is hunter2-not-real.")
        ids = [each.id for each in team.list(limit=6).episodes if each.status == "active"][-3:]
        sources = [each.id for each in team.list(ltm.Filter(speaker_id="u1"), limit=6, order="oldest").episodes]
        answer = json.dumps({"summary": "Alice travels often and likes windows.", "cites": sources})
        team.consolidation.draft(ltm_models.ScriptedModel(answer), sources)
        alice.inject("when does Alice fly to Tokyo?")
        lin.inject("周末去哪里？")
        team.archive(ids[0])
        family = memory.space(FAMILY, speaker=PEOPLE[1])
        family.remember("妈妈的生日是 12 月 3 日", tags=["家庭"], importance=5)
        family.inject("妈妈生日")
        memory.space(SHOP, speaker=PEOPLE[0]).remember("Alice ordered a blue bicycle")
        memory.fence("moving to another machine", memory.space(FAMILY))


if __name__ == "__main__":
    fill(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 400)
