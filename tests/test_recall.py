"""Recall: the ranking against an independent scoring, filters before cut-offs, explanations, any text at all."""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ltm
import ltm_models
import ltm_text

from .conftest import ALICE, BOB, GROUP, Clock, counting_ids, texts

WORDS = [
    "fox",
    "den",
    "river",
    "tea",
    "coffee",
    "train",
    "ticket",
    "狐狸",
    "茶",
    "火车",
    "咖啡",
    "周末",
    "上海",
    "guitar",
    "concert",
    "budget",
]
NOTHING = {
    "dense": 0,
    "lexical": 0,
    "named": 0,
    "exact": 0,
    "recency": 0,
    "importance": 0,
    "speaker": 0,
    "update": 0,
    "min_relevance": 0,
}
WEIGHTS = {
    "default": ltm.Weights(),
    "no threshold": ltm.Weights(min_relevance=0),
    "dense alone": ltm.Weights(**{**NOTHING, "dense": 1}),
    "lexical alone": ltm.Weights(**{**NOTHING, "lexical": 1}),
    "named alone": ltm.Weights(**{**NOTHING, "named": 1}),
    "exact alone": ltm.Weights(**{**NOTHING, "exact": 1}),
    "recency alone": ltm.Weights(**{**NOTHING, "recency": 1}),
    "importance alone": ltm.Weights(**{**NOTHING, "importance": 1}),
    "speaker alone": ltm.Weights(**{**NOTHING, "speaker": 1}),
    "update alone": ltm.Weights(**{**NOTHING, "update": 1}),
    "fast decay": ltm.Weights(recency=1, half_life_days=0.5, floor=0),
    "high threshold": ltm.Weights(min_relevance=0.5),
    "recency against words": ltm.Weights(dense=0.2, lexical=0.2, recency=0.6, min_relevance=0.05),
}


@pytest.fixture(scope="module")
def corpus() -> Any:
    """300 episodes of one space and a neighbour; some pending, pinned, superseded, ended, tagged."""
    rng, clock = random.Random(11), Clock()
    memory = ltm.open(":memory:", clock=clock, ids=counting_ids(), embedder=ltm.HashEmbedder(64))
    rows: list[dict[str, Any]] = []
    for n in range(300):
        clock.forward(rng.random() / 4)
        who = rng.choice([ALICE, BOB, None])
        space = memory.space(GROUP, speaker=who)
        text = " ".join(rng.choices(WORDS, k=rng.randint(2, 12))) + f" {n}"
        old = [rows[-1]["id"]] if rows and rng.random() < 0.1 and rows[-1]["who"] == who and rows[-1]["status"] == "active" else []
        until = ltm.to_iso(clock.now_us + rng.choice([1, 400]) * 86_400_000_000) if rng.random() < 0.2 else None
        tags = rng.sample(["travel", "correction", "茶", "fox den"], k=rng.choice([0, 0, 1, 2]))
        if n % 17 == 0:
            memory.embedder = None  # stays pending
        pinned, importance = rng.random() < 0.1, rng.randint(1, 5)
        stored = space.remember(text, importance=importance, tags=tags, pinned=pinned, valid_until=until, supersedes=old)
        memory.embedder = ltm.HashEmbedder(64)
        for row in rows:
            row["status"] = "superseded" if row["id"] in old else row["status"]
        row = {"id": stored.id, "text": text, "who": who, "tags": tags, "importance": importance, "pinned": pinned, "seq": n}
        rows.append({**row, "status": "active", "until": until, "vector": n % 17 != 0, "created": space.get(stored.id).created_at})
        memory.space(ltm.Scope("b1", "group", "other"), speaker=who).remember(text + " elsewhere", tags=tags)
    yield memory, clock, rows
    assert memory.check() == []
    memory.close()


def independent(
    rows: list[dict[str, Any]], query: str, w: ltm.Weights, now_us: int, me: ltm.Speaker | None, keep: Callable[..., bool]
) -> list[Any]:
    """Score the whole space in plain Python from the documented formulas; no SQL, no shortcut."""
    embedder = ltm.HashEmbedder(64)
    calibration = ltm_models.calibrate(embedder)
    question = ltm_models.unpack(ltm_models.centre(ltm_models.embed_checked(embedder, [query], query=True)[0], calibration.mean))
    cuts = [ltm_text.cut(row["text"]) for row in rows]
    average = sum(cut.length for cut in cuts) / len(cuts)
    weights = {}
    for term in ltm_text.query_terms(query):

        def holds(cut: Any, term: Any = term) -> bool:
            return any(t.startswith(term.text) for t in cut.counts) if term.prefix else term.text in cut.counts

        df = sum(map(holds, cuts)) + ltm.PRIOR_MESSAGES * term.prior
        weights[term.text] = (math.log(1 + (len(rows) + ltm.PRIOR_MESSAGES - df + 0.5) / (df + 0.5)), holds)
    most = max((weight for weight, _ in weights.values()), default=0)
    weights = {text: pair for text, pair in weights.items() if pair[0] >= ltm.LEAST_WEIGHT * most}
    ideal = max(1e-9, sum(sorted((weight for weight, _ in weights.values()), reverse=True)[: ltm.TELLING_TERMS]))
    mentions = ltm_text.mentions(query)
    scored = []
    for row, cut in zip(rows, cuts, strict=True):
        if not keep(row):
            continue
        s: dict[str, float] = {}
        passage = f"{row['who'].name}: {row['text']}" if row["who"] else row["text"]
        vector = ltm_models.unpack(ltm_models.embed_checked(embedder, [passage])[0])
        cosine = sum(a * b for a, b in zip(question, vector, strict=True)) / math.sqrt(
            sum(a * a for a in question) * sum(b * b for b in vector)
        )
        scaled = (cosine - calibration.low) / (calibration.high - calibration.low)
        s["dense"] = max(0.0, min(1.0, scaled)) if row["vector"] else 0.0
        length = ltm.K1 * (1 - ltm.B + ltm.B * cut.length / average)
        bm = 0.0
        for text, (weight, holds) in weights.items():
            if holds(cut):
                tf = min(cut.counts.get(text, 1), 2)
                bm += weight * tf * (ltm.K1 + 1) / (tf + length)
        s["lexical"] = min(1.0, bm / ideal)
        s["named"] = float(
            bool(row["who"] and (ltm_text.aliases(row["who"].name) | ltm_text.aliases(row["who"].id)) & set(mentions))
        )
        s["exact"] = (
            1.0
            if row["id"] == query.strip()
            else max((1.0 if at == 0 else ltm.PART_MATCH for at, m in enumerate(mentions) if m in row["tags"]), default=0.0)
        )
        age_us = max(0, now_us - ltm.to_us(row["created"]))
        s["recency"] = 1.0 if row["pinned"] else max(w.floor, 0.5 ** (age_us / (w.half_life_days * 86_400e6)))
        s["importance"] = (row["importance"] - 1) / 4
        s["speaker"] = float(bool(me and row["who"] and row["who"].id == me.id))
        s["update"] = float("correction" in row["tags"])
        likeness = (w.dense * s["dense"] + w.lexical * s["lexical"]) / ((w.dense + w.lexical) or 1.0)
        if not row["vector"]:  # words alone
            likeness = math.sqrt(s["lexical"])
        total = sum(getattr(w, name) for name in ltm.SIGNALS) or 1.0
        words = 0.0 if row["vector"] else w.dense * s["lexical"]
        score = (sum(getattr(w, name) * s[name] for name in ltm.SIGNALS) + words) / total
        if max(s["exact"], likeness) >= w.min_relevance:
            scored.append((-score, -ltm.to_us(row["created"]), -row["seq"], row["id"]))
    return sorted(scored)


FILTERS: dict[str, tuple[ltm.Filter, Callable[..., bool]]] = {
    "active": (ltm.Filter(), lambda row: row["status"] == "active"),
    "superseded": (ltm.Filter(statuses=["superseded", "active"]), lambda row: True),
    "by bob": (ltm.Filter(speaker_id="u2"), lambda row: row["status"] == "active" and row["who"] == BOB),
    "travel": (ltm.Filter(tags=["Travel"]), lambda row: row["status"] == "active" and "travel" in row["tags"]),
    "important": (ltm.Filter(importance_min=4), lambda row: row["status"] == "active" and row["importance"] >= 4),
}


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("which", FILTERS)
def test_the_ranking_equals_an_independent_scoring_of_the_whole_space(corpus: Any, name: str, which: str) -> None:
    memory, clock, rows = corpus
    where, keep = FILTERS[which]
    space = memory.space(GROUP, speaker=ALICE)
    for query in ("fox tea", "travel", "狐狸 火车 what did Bob say about coffee", rows[3]["id"], "茶", "fox den"):
        for limit in (1, 20):
            found = space.recall(query, limit=limit, where=where, weights=WEIGHTS[name])
            now = clock.now_us

            def valid(row: dict[str, Any], now: int = now) -> bool:
                return keep(row) and (row["until"] is None or ltm.to_us(row["until"]) > now)

            wanted = independent(rows, query, WEIGHTS[name], now, ALICE, valid)
            assert found.considered == sum(map(valid, rows))
            assert found.considered - found.below_threshold == len(wanted)
            # float32 distances: equal to 1e-6; the order is compared unless two scores differ by less than that
            assert [hit.score for hit in found] == pytest.approx([-score for score, *_ in wanted[:limit]], abs=1e-6)
            ranked = [-score for score, *_ in wanted[: limit + 1]]
            if not any(0 < a - b < 2e-6 for a, b in itertools.pairwise(ranked)):
                assert [hit.episode.id for hit in found] == [id for *_, id in wanted[:limit]]
            for hit in found:
                assert hit.score == pytest.approx(sum(hit.why.values()), abs=1e-12)
                assert 0 <= hit.score <= 1 + 1e-12


def test_the_same_question_gives_the_same_answer_to_the_last_bit(corpus: Any) -> None:
    memory, clock, _ = corpus
    space, now = memory.space(GROUP, speaker=ALICE), clock.now_us
    one = space.recall("fox tea 火车", limit=50)
    clock.now_us = now
    assert space.recall("fox tea 火车", limit=50) == one


FORBIDDEN = re.compile(r"SCAN (e|v|g|t2|episode\w*)\b(?! VIRTUAL)|AUTOMATIC")


@pytest.mark.parametrize("vectors", [True, False])
@pytest.mark.parametrize("threshold", [0.0, 0.25])
@pytest.mark.parametrize(
    "where",
    [
        ltm.Filter(),
        ltm.Filter(statuses=ltm.STATUSES),
        ltm.Filter(speaker_id="u1", tags=["a"], after=0, before=1, importance_min=2, at=1, source="x"),
    ],
)
def test_no_plan_scans_a_table_of_all_spaces(corpus: Any, vectors: bool, threshold: float, where: ltm.Filter) -> None:
    memory, _, _ = corpus
    space = memory.space(GROUP)
    with memory._file.read() as db:
        search = ltm._Search(space, "fox", where, ltm.Weights(min_relevance=threshold), 5)
        if vectors:
            search.vector, search.generation, _ = memory._query_vector("fox", None)
        chosen = ltm._where(db, space._home(db), where, 0, drop_ended=True)
        values = {**search._values(db, space._home(db), chosen, 0), "terms": "[]"}
        plan = [row[3] for row in db.execute("EXPLAIN QUERY PLAN " + search._statement(chosen), values)]
    assert any("SEARCH e USING INTEGER PRIMARY KEY" in step for step in plan)
    assert [step for step in plan if FORBIDDEN.search(step)] == []


def test_filters_act_before_any_cut_off(space: ltm.Space, memory: ltm.Memory) -> None:
    """The one row that passes is found behind hundreds that match better."""
    with memory.batch():
        for n in range(300):
            space.remember(f"umbrella umbrella umbrella {n}", importance=5)
    bob = space.for_speaker(BOB)
    bob.remember(
        "an old umbrella stood in the hall of the long house by the sea",
        source="import",
        tags=["Relic"],
        importance=1,
        created_at="2020-01-01",
    )
    wanted = ["an old umbrella stood in the hall of the long house by the sea"]
    for where in (
        ltm.Filter(speaker_id="u2"),
        ltm.Filter(speaker_name="Bob"),
        ltm.Filter(source="import"),
        ltm.Filter(tags=["relic"]),
        ltm.Filter(tags=["ＲＥＬＩＣ"]),
        ltm.Filter(before="2021-01-01T00:00:00Z"),
    ):
        assert texts(space.recall("umbrella", limit=1, where=where)) == wanted
        assert [e.content for e in space.list(where, limit=1).episodes] == wanted
    assert texts(space.recall("umbrella", limit=3, where=ltm.Filter(speaker_name="bob"))) == []


def test_validity_filters_and_says_how_many_it_dropped(space: ltm.Space, clock: Clock) -> None:
    space.remember("the shop code is 1111", valid_until="2026-03-03T00:00:00+00:00")
    space.remember("the shop code is 2222", valid_from="2026-03-03T00:00:00+00:00", valid_until="2026-04-01T00:00:00+00:00")
    clock.now_us = ltm.to_us("2026-03-03T00:00:00Z") - 10_000_000
    assert len(space.recall("shop code")) == 2
    clock.now_us = ltm.to_us("2026-03-03T00:00:00Z")
    found = space.recall("shop code")
    assert texts(found) == ["the shop code is 2222"]
    assert found.dropped["ended"] == 1
    assert texts(space.recall("shop code", where=ltm.Filter(at="2026-03-02T12:00:00Z"))) == ["the shop code is 1111"]
    assert texts(space.recall("shop code", where=ltm.Filter(at="2026-03-03T00:00:00Z"))) == ["the shop code is 2222"]
    assert texts(space.recall("shop code", where=ltm.Filter(at="2026-05-01T00:00:00Z"))) == []
    assert len(space.recall("shop code", where=ltm.Filter(include_ended=True))) == 2


def test_exact_ids_and_tags_win_in_both_languages(space: ltm.Space) -> None:
    ids = [
        space.remember(text, tags=tags).id for text, tags in [("甲乙丙", ["旅行"]), ("nothing alike", ["C++"]), ("旅行 旅行", [])]
    ]
    for id in ids:
        assert space.recall(id).hits[0].episode.id == id
        assert space.recall(f"  {id} ").hits[0].episode.id == id
    assert space.recall("旅行").hits[0].episode.id == ids[0]
    assert space.recall("c++").hits[0].episode.id == ids[1]


def test_a_question_that_names_the_speaker_prefers_what_they_said(space: ltm.Space) -> None:
    lin = space.for_speaker(ltm.Speaker("u3", "王小明"))
    (
        space.remember("the concert was great"),
        space.for_speaker(BOB).remember("the concert was dull"),
        lin.remember("the concert was loud"),
    )
    assert space.recall("What did Bob think of the concert?").hits[0].episode.speaker == BOB
    assert space.recall("小明觉得 concert 怎么样").hits[0].episode.content == "the concert was loud"
    space.for_speaker(ltm.Speaker("u2", "Robert")).remember("hi")
    assert space.recall("What did Bob think of the concert?").hits[0].episode.speaker == ltm.Speaker(
        "u2", "Robert"
    )  # an earlier name


def test_decay_has_a_floor_and_spares_what_is_pinned(space: ltm.Space, clock: Clock) -> None:
    space.remember("apple pie recipe")
    space.remember("apple tart recipe", pinned=True)
    clock.forward(4000)
    old, pinned = sorted(space.recall("apple recipe").hits, key=lambda hit: hit.episode.pinned)
    assert old.signals["recency"] == ltm.Weights().floor
    assert pinned.signals["recency"] == 1.0
    assert old.relevance >= ltm.Weights().min_relevance  # age never makes a memory irrelevant


def test_irrelevant_memories_are_not_returned_and_are_counted(space: ltm.Space) -> None:
    space.remember("the boiler was repaired"), space.remember("我喜欢喝茶")
    found = space.recall("quantum chromodynamics lecture")
    assert (len(found), found.considered, found.below_threshold) == (0, 2, 2)


def test_why_not_names_the_reason(space: ltm.Space, memory: ltm.Memory) -> None:
    old = space.remember("the meeting is on Monday").id
    new = space.remember("the meeting is on Tuesday", supersedes=[old]).id
    other = space.remember("我养了一只狗").id
    more = [space.remember(f"meeting meeting notes {n}").id for n in range(5)]
    ask = "when is the meeting on Tuesday?"
    assert space.why_not(new, ask).code == "returned"
    assert space.why_not(new, ask).rank == 1
    assert space.why_not(old, ask).code == "status"
    assert space.why_not(other, ask).code == "below_threshold"
    assert space.why_not(more[0], ask, limit=1).code == "outranked"
    assert space.why_not("f" * 12, ask).code == "not_found"
    for name, where in {
        "speaker": ltm.Filter(speaker_id="u9"),
        "tags": ltm.Filter(tags=["x"]),
        "source": ltm.Filter(source="x"),
    }.items():
        assert space.why_not(new, ask, where=where).code == name


HOSTILE = [
    "pre-edit", "POL-358", "don't", "ubuntu 20.04", "Downloads/transcripts", "rm -rf", "C++", "C#", "50%", '"unbalanced', "()", "*", "AND",
    "OR NOT", "NEAR(", "x:", "", "   ", '"', "\x00", "a\x00b", "\ud800", "a" * 100_000, "字" * 50_000, "' OR 1=1 --", "{}", "[1]", "^x", "-", "+",
    "word " * 20_000, "🍜", "\u202e", "x AND (", "col:val", "NEAR/3", "%_%", ";DROP TABLE episode", "\\", "\n", "~" * 500, "１９９０", "\U0010ffff",
]  # fmt: skip


@pytest.mark.parametrize("query", HOSTILE, ids=range(len(HOSTILE)))
def test_no_query_can_raise(space: ltm.Space, query: str) -> None:
    space.remember("C++ and don't 50% 🍜 字字字 a word")
    found = space.recall(query)
    assert len(found) <= 1
    space.why_not(found.hits[0].episode.id if found.hits else "0" * 12, query)


@pytest.fixture(scope="module")
def searched() -> Any:
    memory = ltm.open(":memory:", clock=Clock(), ids=counting_ids(), embedder=ltm.HashEmbedder(32))
    space = memory.space(GROUP, speaker=ALICE)
    for text in ("C++ 端到端", "the quick brown fox", "🍜 面条", "a_b-c@d.e #1", "don't", "AND OR NOT NEAR"):
        space.remember(text, tags=["x-y", "标签"])
    yield space
    memory.close()


@given(st.text(max_size=300) | st.text(alphabet="\"'()*:^-+{}[]ANDORNTE \x00\ud800字~%_", max_size=60))
def test_no_text_whatsoever_can_raise(searched: ltm.Space, text: str) -> None:
    found = searched.recall(text)
    assert len(found) + found.below_threshold <= found.considered or not text.strip()


def test_long_questions_are_cut_and_say_so(space: ltm.Space) -> None:
    space.remember("fox")
    found = space.recall(" ".join(f"word{n}" for n in range(5_000)))
    assert any("4,000" in note for note in found.truncated)
    assert any("rarest terms" in note for note in found.truncated)
    assert any("held to 500" in note for note in space.recall("fox", limit=10_000).truncated)


def test_a_slow_search_gives_up_terms_and_says_so(space: ltm.Space, memory: ltm.Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    with memory.batch():
        for n in range(3_000):
            space.remember(f"fox {n}")
    monkeypatch.setattr(ltm, "RECALL_SECONDS", -1.0)
    found = space.recall("fox")
    assert any("8 rarest" in note for note in found.truncated)
    assert len(found) == 5


@pytest.mark.parametrize("value", [-1, math.nan, math.inf, "1", None, True])
@pytest.mark.parametrize("name", [each.name for each in fields(ltm.Weights)])
def test_weights_that_would_break_exactness_are_refused(name: str, value: Any) -> None:
    with pytest.raises(ltm.InvalidInput):
        ltm.Weights(**{name: value})


@pytest.mark.parametrize(
    "bad",
    [{"statuses": ()}, {"statuses": "active"}, {"statuses": ["gone"]}, {"importance_min": 0}, {"importance_min": "3"}, {"tags": "x"},
     {"after": "yesterday"}, {"speaker_id": 7}, {"at": "2026-02-30T00:00:00Z"}],
)  # fmt: skip
def test_filters_are_checked(bad: dict[str, Any]) -> None:
    with pytest.raises(ltm.InvalidInput):
        ltm.Filter(**bad)


def test_a_query_that_is_no_text_is_refused(space: ltm.Space) -> None:
    with pytest.raises(ltm.InvalidInput):
        space.recall(None)  # type: ignore[arg-type]


def test_without_weight_on_words_and_vectors_only_exact_matches_pass(opened: Callable[..., ltm.Memory]) -> None:
    space = opened(embedder=ltm.HashEmbedder()).space(GROUP)
    with space.memory.batch():
        space.remember("no vector yet, but the right words")
    id = space.remember("a vector and the right words").id
    weights = ltm.Weights(dense=0, lexical=0)
    assert space.recall("the right words", weights=weights).hits == ()
    assert [hit.episode.id for hit in space.recall(id, weights=weights).hits] == [id]
