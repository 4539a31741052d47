"""Answers in Chinese: the catalogue has all that the sources say, and nothing else; renderings are snapshotted."""

from __future__ import annotations

import ast
import asyncio
import dataclasses
import http.client
import inspect
import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

import ltm
import ltm_models
import ltm_text
from ltm_console import api, language, web, words
from ltm_console.actions import ACTIONS
from ltm_console.language import is_chinese, parsed, say, speaking, term, translated, typed
from ltm_console.zh_hans import SENTENCES, WORDS

from .conftest import ALICE, GROUP, Clock
from .sentences import IN_TEMPLATES, JOINED, ROOT, SOURCES, UNSAID, all_said, shape

LIN = ltm.Speaker("u3", "小林")
HAN = re.compile("[\u4e00-\u9fff]")


# -------------------------------------------------------------------------------------- the catalogue


def test_every_sentence_of_the_sources_has_a_chinese_one() -> None:
    had = set(map(shape, SENTENCES))
    missing = [f"{place}: {template}" for template, place in all_said().items() if template not in had | UNSAID]
    assert not missing, "\n".join(missing)


def test_every_chinese_sentence_is_of_the_sources() -> None:
    found = all_said().keys() | JOINED
    assert [english for english in SENTENCES if shape(english) not in found] == []
    assert [each for each in UNSAID if each not in found] == []
    assert [each for each in JOINED if each not in set(map(shape, SENTENCES))] == []


def said_by_words() -> set[str]:
    """What words.py, the console and the plugin give to say and term, wherever it is written out in the same function or file."""
    found: set[str] = set()
    for name in IN_TEMPLATES:
        tree = ast.parse((ROOT / name).read_text(encoding="utf-8"))
        of_file = _named(tree.body)
        for function in [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]:
            named = of_file | _named(ast.walk(function))
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("say", "term", "_label"):
                    given: list[ast.expr] = [node.args[0]]
                    if isinstance(node.args[0], ast.IfExp):
                        given = [node.args[0].body, node.args[0].orelse]
                    for each in given:
                        for value in named.get(each.id, []) if isinstance(each, ast.Name) else [each]:
                            found |= set(_texts(value))
    return found


def _named(nodes: Iterable[ast.AST]) -> dict[str, list[ast.expr]]:
    """What names are set to in some statements."""
    named: dict[str, list[ast.expr]] = {}
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            named.setdefault(node.targets[0].id, []).append(node.value)
    return named


def _texts(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from _texts(node.body)
        yield from _texts(node.orelse)
    elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Dict):
        for value in node.value.values:
            yield from _texts(value)


def literals() -> set[str]:
    """Every text that stands in the sources."""
    found: set[str] = set()
    for name in (*SOURCES, "console/words.py"):
        for node in ast.walk(ast.parse((ROOT / name).read_text(encoding="utf-8"))):
            found |= {node.value} if isinstance(node, ast.Constant) and isinstance(node.value, str) else set()
    return found


def vocabulary() -> set[str]:
    """Statuses, outcomes, operations and other names that reach people by way of `term`."""
    found = {*ltm.STATUSES, *ltm.CLAIM_TYPES, *ltm.PROFILE_FIELDS, *ltm.SIGNALS, *ltm.CANDIDATE_STATUSES, *ltm.PROPOSAL_STATUSES}
    found |= {
        "added",
        "removed",
        "changed",
        "True",
        "set",
        "add",
        "remove",
        *ltm.EXPORT_KINDS,
        *ltm.CANDIDATE_TYPES,
        *ltm_text._SECRET_KINDS,
        *ltm_models_classes(),
    }
    found |= {each.name.replace("_", " ") for each in dataclasses.fields(ltm.Episode)}
    tree = ast.parse((ROOT / "ltm.py").read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            place = {"_change": 0, "_changed": 0, "_decide": 0, "_audit_file": 1, "_delete": 0}.get(node.func.attr)
            if place is not None and len(node.args) > place:
                found |= set(_texts(node.args[place]))
            found |= {text for each in node.keywords if each.arg == "operation" for text in _texts(each.value)}
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Verdict":
            found |= {text.replace("_", " ") for text in _texts(node.args[0])}
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value in ("operation", "outcome"):
                    found |= set(_texts(value))
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "conditions":
            found |= set(_texts(node.slice))
    return found


def ltm_models_classes() -> tuple[str, ...]:
    return ltm_models.CLASSES


def test_every_word_has_a_chinese_one() -> None:
    assert sorted(said_by_words() - WORDS.keys()) == []
    assert sorted(vocabulary() - WORDS.keys()) == []


def test_every_chinese_word_is_of_the_sources() -> None:
    found = literals() | vocabulary() | {text.replace("_", " ") for text in literals()}
    shown = {shape(english) for english in all_said()} | said_by_words() | {"Session", "Speaker", "WARN"}
    shown |= {"records", "retired"}  # a keyword and a value in SQL, not texts of their own
    assert [word for word in WORDS if not {word, word.partition("|")[2]} & (found | shown)] == []


def test_both_languages_of_a_sentence_have_the_same_places() -> None:
    for english, chinese in [*SENTENCES.items(), *WORDS.items()]:
        of_english, of_chinese = ([place.name for place in parsed(each)[1]] for each in (english, chinese))
        assert sorted(of_english) == sorted(of_chinese), english
        assert len(set(of_english)) == len(of_english), english


def test_places_of_a_sentence_do_not_touch_and_are_of_a_known_kind() -> None:
    for english in SENTENCES:
        between, places = parsed(english)
        assert all(between[1:-1]), english
        assert {place.kind for place in places} <= {"", "d", "n", "w", "s"}, english


SAMPLES = {"d": "7", "n": "somewhat", "w": "active", "s": "something else", "": "'any; thing: at all'"}


def test_each_sentence_is_found_by_its_own_template() -> None:
    """Filled with samples, every template gives its own Chinese: none is hidden by another one that fits as well."""
    with speaking("zh"):
        for english, chinese in SENTENCES.items():
            between, places = parsed(english)
            if not places:
                assert translated(english) == chinese
                continue
            text = "".join(a + b for a, b in zip(between, [*(SAMPLES[place.kind] for place in places), ""], strict=True))
            filled = {place.name: "有效" if place.kind == "w" else SAMPLES[place.kind] for place in places}
            assert translated(text) == chinese.format(**filled), english


def test_chinese_is_chinese() -> None:
    typed_as_they_are = {"1 to 5.", "{name} = {value}  ({what})", "{old:w} to {new:w}", ": ", ", ", "; "}
    for english, chinese in [*SENTENCES.items(), *WORDS.items()]:
        bare = re.sub(r"\{[^{}]*\}|!memory", "", chinese)
        assert HAN.search(bare) or english in typed_as_they_are or not re.search("[A-Za-z]", bare), english
        assert not re.search("[\u4e00-\u9fff] ?[,;:?!]|[,;?!] ?[\u4e00-\u9fff]", bare), f"{english}: half-width mark"


def test_a_term_is_always_the_same() -> None:
    """English words whose Chinese must appear wherever they do."""
    terms = {
        "proposal": "提案",
        "candidate": "候选",
        "vector": "向量",
        "embedder": "嵌入模型",
        "lineage": "来源",
        "fence": "写入锁定",
    }
    for english, chinese in SENTENCES.items():
        plain = re.sub(r"\{[^{}]*\}|`[^`]*`|'[^']*'|\w*_\w*(?:\(\))?|http:\S+", "", english)
        for word, said in terms.items():
            if re.search(rf"\b{word}s?\b", plain):
                assert said in chinese, f"{english}: {word}"


# ---------------------------------------------------------------------------------------- the language


def test_english_is_spoken_unless_asked_otherwise() -> None:
    text = "content must not be empty"
    assert (translated(text), term("active"), say("{n} of {total}", n=1, total=2)) == (text, "active", "1 of 2")
    with speaking("zh-CN"):
        assert is_chinese()
        assert (translated(text), term("active")) == ("content 不能为空", "有效")
        with speaking("de"):
            assert translated(text) == text
        assert is_chinese()
    assert not is_chinese()


def test_a_language_is_of_its_task_and_not_of_another_thread() -> None:
    async def main() -> str:
        with speaking("zh_Hans"):
            inner = await asyncio.to_thread(translated, "the query is blank")
            other: list[str] = []
            thread = threading.Thread(target=lambda: other.append(translated("the query is blank")))
            thread.start()
            thread.join()
        return f"{inner} / {other[0]}"

    assert asyncio.run(main()) == "提问为空 / the query is blank"


def test_hints_name_the_command_of_the_host() -> None:
    assert words.undo_hint("a1") == ["undo: ltm undo a1"]
    with typed("!memory"):
        assert words.undo_hint("a1") == ["undo: !memory undo a1"]
        with speaking("zh"):
            assert words.undo_hint("a1") == ["撤销：!memory undo a1"]


@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        ("episode 'a' is superseded by 'b': supersede that one instead; nothing was written", "记忆 'a' 已取代，取代者是 'b'"),
        (
            "2 of 9 records cannot be taken, so none was: 1: content is missing; 4: type is missing and 3 more",
            "1：缺少 content；4：缺少 type",
        ),
        (
            "the file is unreadable: nested too deeply; expected a JSON or JSON Lines export of ltm, LongTermMemory or LivingMemory",
            "嵌套太深",
        ),
        ("the candidate holds a credential (password, token); it was not stored", "候选含有凭据（密码、令牌）；未存入"),
        ("not embedded yet: the embedding endpoint answered 500 for m", "尚未生成向量：嵌入接口对 m 返回了状态 500"),
        ("nobody of the id 'x' is known here; u1, u2 is called so; nothing was erased", "没有编号为 'x' 的人（u1, u2 叫这个名字）"),
        ("nobody of the id 'x' is known here; nothing was erased", "没有编号为 'x' 的人；"),
        ("record 3: fact 2: field must be one of a, b, not 'c'", "记录 3：第 2 个条目：field 必须是"),
        ("skipped: writes are blocked: the write was interrupted. Clear fence 4 to go on; reading works", "写入被中断"),
        ("edited content, tags", "编辑了内容、标签"),
        (
            "the embedder 'x answered 3 vectors for 4 texts' answered 2 vectors for 9 texts; none was used",
            "对 9 段文字返回了 2 个向量",
        ),
        (
            "7 memories wait for a vector: the embedding model of the host failed: no; it gave up; it is asked again in 30 s",
            "宿主的嵌入模型出错：no; it gave up；30 秒后再次调用",
        ),
        ("vector_weight must be from 0 to 1, not '2'; 0.45 is used", "vector_weight 必须在 0 到 1 之间，而不是 '2'；现采用 0.45"),
        ("of 9 lines 2 cut short, 3 left out, to fit 400 characters", "截短 2 行、略去 3 行"),
        ("the filter on status takes it out: it is archived", "被状态筛除：它已归档"),
    ],
)
def test_sentences_inside_sentences_are_translated_too(english: str, chinese: str) -> None:
    with speaking("zh"):
        assert chinese in translated(english)


@pytest.mark.parametrize(
    "text", ["", "Lunch at noon", "go to bed", "we moved to Lisbon", "a: b", "3 of a kind", "你好", "{n}", "{", "x; y"]
)
def test_what_the_engine_does_not_say_stays(text: str) -> None:
    with speaking("zh"):
        assert translated(text) == text


def test_values_are_never_read_as_templates() -> None:
    with speaking("zh"):
        assert translated("no candidate '{id} {x.__class__}' in this space; nothing was written").count("{x.__class__}") == 1


# Made of pieces of our own sentences, in any order: near misses are the worst case for a matcher.
PIECES = sorted({piece for english in SENTENCES for piece in parsed(english)[0] if piece})
HOSTILE = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=8), st.sampled_from(["; ", ", ", ": ", "1"])), max_size=30)


@given(HOSTILE)
def test_any_text_is_taken_and_english_stays_as_it_is(parts: list[str]) -> None:
    text = "".join(parts)
    with speaking("zh"):
        assert isinstance(translated(text), str)
    assert translated(text) == text


class Counted(str):
    """A text that counts the characters that are looked through in it."""

    looked = 0

    def find(self, *given: Any) -> int:
        at = super().find(*given)
        begin, end = given[1], given[2]
        Counted.looked += (at if at >= 0 else end) - begin
        return at

    def rfind(self, *given: Any) -> int:
        at = super().rfind(*given)
        begin, end = given[1], given[2]
        Counted.looked += end - (at if at >= 0 else begin)
        return at


@given(HOSTILE, st.integers(1, 6))
def test_the_work_is_in_proportion_to_the_text(parts: list[str], times: int) -> None:
    """Each template looks at each character twice at most; counted, because a time proves nothing."""
    text = Counted("".join(parts) * times)
    Counted.looked = 0
    n_templates = 0
    for english, chinese in SENTENCES.items():
        made = language._compiled(english, chinese)
        if made.places:
            list(made.matches(text))
            n_templates += 1
    assert Counted.looked <= 2 * n_templates * len(text)


def test_hostile_texts_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long and however nested: sentences looked into are no more than the parts and the depth allow."""
    calls = 0
    real = language._read

    def counting(*given: Any) -> Any:
        nonlocal calls
        calls += 1
        return real(*given)

    monkeypatch.setattr(language, "_read", counting)
    near = "skipped: not embedded yet: record 1: the file is unreadable: "
    with speaking("zh"):
        for text in (
            "; " * 500_000,
            "record 1: " * 700,
            "a; b" * 1900,
            near * 120,
            f"{near}; " * 20,
            "1: 1: " * 1300,
            ", " * 4000,
            "x" * 1_000_000,
        ):
            calls = 0
            assert isinstance(translated(text), str)
            assert calls <= language.LOOKS, text[:20]


# ------------------------------------------------------------------------------------------ renderings


@pytest.fixture
def chat(opened: Callable[..., ltm.Memory], clock: Clock) -> ltm.Space:
    """A chat with memories in both languages, and the settings that reviews need."""
    memory = opened(embedder=ltm.HashEmbedder())
    for name in ("candidate_extraction_enabled", "consolidation_enabled"):
        memory.configure(name, True)
    memory.configure("consolidation_min_age_days", 0)
    return memory.space(GROUP, speaker=ALICE, via="cli")


FLIGHT, LATER, PEANUTS, DOG = (
    "My flight to Tokyo is on Tuesday",
    "I fly to Tokyo on Friday now",
    "我对花生过敏",
    "我家养了一只柯基，叫豆豆",
)


def answers(chat: ltm.Space) -> dict[str, str]:
    """Every renderer of words.py on real data."""
    lin = chat.memory.space(GROUP, speaker=LIN, via="cli")
    said: dict[str, str] = {}

    def note(name: str, text: str) -> None:
        said[name] = text

    first = chat.remember(FLIGHT, tags=["travel"], importance=4, event_at="2026-12-08T09:00:00+09:00")
    note("remembered", words.remembered(first))
    note("remembered again", words.remembered(chat.remember(FLIGHT, importance=1)))
    second = chat.remember(LATER, supersedes=[first.id])
    note("remembered in its place", words.remembered(second))
    note("remembered with what cannot be stored", words.remembered(chat.remember("a \udc00 b")))
    lin.remember(PEANUTS, tags=["饮食"])
    lin.remember(DOG)
    question = "when do I fly to Tokyo?"
    found = chat.recall(question)
    note("recall explained", words.recall(found, explain=True))
    note("recall of nothing", words.recall(chat.recall(" "), explain=True))
    note("recall filtered", words.recall(chat.recall("花生", where=ltm.Filter(speaker_id="u3", tags=["饮食"]))))
    note("points", words.points(found.hits[0]))
    for name, id in (("superseded", first.id), ("returned", second.id), ("absent", "nope")):
        note(f"verdict {name}", words.verdict(chat.why_not(id, question)))
    note("verdict low", words.verdict(chat.why_not(second.id, "花生")))
    note("episode", words.episode(chat.get(first.id)))
    note("page", words.page(chat.list(ltm.Filter(statuses=ltm.STATUSES), limit=3)))
    edited = chat.edit(second.id, content="I fly to Tokyo on Saturday", importance=5)
    note("changed", words.changed(edited))
    note("unchanged", words.changed(chat.edit(second.id, importance=5)))
    note("settled", words.settled(edited))
    note("several", words.several([chat.archive(second.id), chat.restore(second.id)]))
    note("undone", words.changed(chat.undo(chat.archive(second.id).audit_id)))
    some = [each.id for each in lin.list(ltm.Filter(speaker_id="u3")).episodes]
    note("edited, only counted", words.edited(lin.edit_all(some, importance=3, dry_run=True)))
    note("edited", words.edited(lin.edit_all(some, importance=3)))
    note("edited nothing", words.edited(lin.edit_all(some, importance=3)))
    note("timeline", words.timeline(lin.timeline(ltm.Filter(statuses=ltm.STATUSES))))
    note("no timeline", words.timeline([]))
    note("speakers", words.speakers(lin.speakers()))
    note("no speakers", words.speakers([]))
    note("history", words.history(chat.history(second.id)))
    note("deleted, only counted", words.deleted(chat.forget_all(ltm.Filter(statuses=ltm.STATUSES, tags=["travel"]), dry_run=True)))
    note("deleted", words.deleted(chat.forget_all(ltm.Filter(statuses=ltm.STATUSES, tags=["travel"]))))
    note("deleted nothing", words.deleted(chat.forget_all(ltm.Filter(tags=["none"]))))
    note("differences", words.differences(chat.diff("2026-03-02T09:00:05Z")))
    note("no differences", words.differences(chat.diff("2026-03-01T00:00:00Z", "2026-03-01T00:00:01Z")))
    note(
        "profile change",
        words.profile_change(lin.profiles.update("preferences", "set", "绿茶", fact_key="drink", previous_value="coffee")),
    )
    lin.profiles.update("preferences", "set", "白茶", fact_key="drink")
    lin.profiles.update("traits", "add", "tall")
    note(
        "profiles",
        words.profiles(
            {each: lin.profiles.get(each) for each in ("session", "speaker")} | {"speaker_history": lin.profiles.history("speaker")}
        ),
    )
    for value in range(12):
        lin.profiles.update("preferences", "add", f"p{value}")
    note("profile with more", words.profiles({"speaker": lin.profiles.get("speaker")}))
    secret = lin.candidates.extract("我的密码是 hunter2x9K", force=True)
    note("extraction of a secret", words.extraction(secret))
    extracted = lin.candidates.extract("我喜欢喝绿茶。 I decided to move to Lisbon next month.", force=True)
    note("extraction", words.extraction(extracted))
    note("extraction of nothing", words.extraction(lin.candidates.extract("哈哈", force=True)))
    note("candidate", words.candidate(extracted.candidates[0]))
    note("candidates accepted", words.several(lin.candidates.accept(extracted.candidates[0].id)))
    note("candidates rejected", words.several(lin.candidates.reject(extracted.candidates[1].id)))
    note("candidate page", words.candidate_page(lin.candidates.list(status=None, limit=2)))
    note("preview", words.preview(lin.consolidation.preview()))
    ids = [each.id for each in lin.list().episodes][:2]
    model = ltm_models.ScriptedModel(f'{{"summary": "小林的事", "cites": ["{ids[0]}", "{ids[1]}"]}}')
    drafted = lin.consolidation.draft(model, ids)
    note("proposal", words.proposal(drafted))
    note("proposals", words.proposals(lin.consolidation.proposals()))
    note("no proposals", words.proposals([]))
    published = lin.consolidation.run(drafted.id)
    note("published", words.changed(published))
    summary = published.id if published.id in {each.id for each in lin.list().episodes} else lin.list().episodes[0].id
    for name, id in (("of a summary", summary), ("of a source", ids[0])):
        sources, summaries = lin.consolidation.lineage(id)
        note(f"lineage {name}", words.lineage({"sources": sources, "summaries": summaries}))
    note("lineage of nothing", words.lineage({"sources": (), "summaries": ()}))
    note("injection", words.injection(lin.inject("花生", budget=400)))
    note("no injection", words.injection(lin.inject(" ")))
    note("injections", words.injections(lin.injections()))
    note("no injections", words.injections([]))
    exported = lin.transfer.export()
    note("export", words.export({"profiles": []}))
    taken = chat.memory.space(ltm.Scope("b1", "group", "8")).transfer
    whole = words.export(exported).encode()
    note("import, only counted", words.import_report(taken.load(whole, dry_run=True)))
    bad = b'[{"content": "ok", "timestamp": "x"}, {"content": ""}, {"text": "fine"}]'
    note("import with flaws", words.import_report(taken.load(bad, skip_bad=True)))
    note("import", words.import_report(taken.load(whole)))
    note("spaces", words.spaces(chat.memory.spaces()))
    note("no spaces", words.spaces([]))
    note("stats", re.sub(r"[\d,]{6,}", "N", words.stats(chat.memory.stats())))
    note("embedded", words.embedded(chat.memory.embed_pending()))
    note(
        "embedded not at all",
        words.embedded(ltm.EmbedReport(0, 2, 2, "the vector is zero: it has no direction to compare", "building")),
    )
    note("health", words.health(chat.memory.health()))
    fence = chat.memory.fence("维护 maintenance", chat)
    note("fence", words.fence(fence))
    note("fences", words.fences(chat.memory.fences()))
    note("doctor", re.sub(r"[\d,]{6,}", "N", words.health(chat.memory.doctor())))
    note("fence cleared", words.fence_cleared(chat.memory.clear_fence(fence.id)))
    note("no fences", words.fences([]))
    note("settings", words.settings(chat.memory.settings()))
    note("setting", words.setting({"injection_budget": 6000}))
    note("audit page", words.audit_page(lin.audit.list(limit=100)))
    note("entry", words.entry(lin.audit.list().entries[-1]))
    note("erasure", words.erasure(lin.erase(speaker="u3")))
    note("audit entries", words.audit_entries(lin.transfer.export(["audit"])))
    note("head", re.sub("[0-9a-f]{64}", "HASH", words.head({"head": lin.audit.head()})))
    note("no head", words.head({"head": ""}))
    note("problems", words.problems({"problems": ["entry 3, whose hash was kept, is gone"], "head": ""}))
    note("no problems", words.problems({"problems": [], "head": "9:HASH"}))
    proven = ltm.Erasure(
        "c1",
        {"episodes": 2, "audit details": 1},
        True,
        ("e1",),
        ("bot.db",),
        3,
        ("bot.db: 2 x 'abc'",),
        ("bot.db: 3 rows erased",),
        True,
    )
    note("erasure proven", words.erasure(proven))
    note("erasure clean", words.erasure(dataclasses.replace(proven, found=(), kept=())))
    note("erasure not proven", words.erasure(dataclasses.replace(proven, proven=False)))
    note("line", words.line(lin.list().episodes[0]))
    note("printable", words.printable("长" * 70))
    return said


@pytest.fixture
def chinese(chat: ltm.Space) -> dict[str, str]:
    with speaking("zh_Hans"):
        return answers(chat)


def test_every_answer_in_chinese(chinese: dict[str, str], snapshot: SnapshotAssertion) -> None:
    assert chinese == snapshot(name="answers")


def test_every_renderer_is_called(chat: ltm.Space, monkeypatch: pytest.MonkeyPatch) -> None:
    public = {name: each for name, each in vars(words).items() if inspect.isfunction(each) and each.__module__ == words.__name__}
    public = {name: each for name, each in public.items() if not name.startswith("_") and not name.endswith("_json")}
    called = set()
    for name, each in public.items():
        monkeypatch.setattr(words, name, lambda *given, name=name, each=each, **more: called.add(name) or each(*given, **more))
    answers(chat)
    assert called == set(public)


# Names that people type, ids of checks, and what comes from users and programs in `answers`.
TYPED = {"undo", "ltm", "cursor", "consolidate", "run", "cli", "api", "true", "false", "json", "bot", "group", "person"}
TYPED |= {
    "Alice",
    "Lisbon",
    "travel",
    "coffee",
    "tall",
    "drink",
    "scripted",
    "maintenance",
    "abc",
    "HASH",
    "agent",
    "JSON",
    "redacted",
}
TYPED |= {"timestamp", "content", "text", "summary", "memory", "value", "ISO", "FFFD", "UTC", "nope"}
TYPED |= {*ltm.SETTINGS, "profiles"}


def left_over(name: str, text: str) -> list[str]:
    for data in (FLIGHT, LATER, "I fly to Tokyo on Saturday", "when do I fly to Tokyo?", "I decided to move to Lisbon next month."):
        text = text.replace(data, "")
    text = re.sub(
        r"(?:Memories that|Known of).*\[ltm-memory \w+ end\]", "", text, flags=re.DOTALL
    )  # a prompt's blocks, as the model gets them
    text = re.sub(r"^- (\w+) [\w-]+：", "", text, flags=re.MULTILINE)  # the id of a check
    text = re.sub(
        r" \((?:importance \d; )?tags \S+\)|\(erased\)|\b[0-9a-f]{12,}\b|\bb1:\w+(?::\w+)?|hash:\S+|\w+\.db|\w+:speaker\b|speaker:\d+",
        "",
        text,
    )
    return [word for word in re.findall(r"(?<![\w])[A-Za-z_]{3,}", text) if word not in TYPED]


def test_no_chinese_answer_has_english_left_over(chinese: dict[str, str]) -> None:
    assert {name: found for name, text in chinese.items() if (found := left_over(name, text))} == {}


def test_what_the_console_shows_of_actions_is_chinese() -> None:
    with speaking("zh"):
        for action in ACTIONS.values():
            helps = [each.metadata["help"] for each in dataclasses.fields(action.input)]
            for text in (action.words, action.confirm, *helps):
                assert not text or translated(text) != text or not re.search("[A-Za-z]{2}", text.replace("to", "")), text
        for setting in ltm.SETTINGS.values():
            assert HAN.search(translated(setting.words))


def test_real_errors_are_chinese(chat: ltm.Space, tmp_path: Path) -> None:
    """A sample of calls that fail; what each raises is translated whole."""
    calls: list[Callable[[], Any]] = [
        lambda: chat.remember(""),
        lambda: chat.remember("x", importance=9),
        lambda: chat.remember("x", event_at="2026-12-08T09:00"),
        lambda: chat.remember("x", tags=["t"] * 40),
        lambda: chat.get("nope"),
        lambda: chat.get("nope", as_of="2026-12-08T09:00Z"),
        lambda: chat.recall("x", limit="y"),  # type: ignore[arg-type]
        lambda: chat.list(cursor="?"),
        lambda: chat.undo("nope"),
        lambda: chat.profiles.update("wrong", "set", "x"),
        lambda: chat.candidates.accept("nope"),
        lambda: chat.consolidation.run("nope"),
        lambda: chat.transfer.load(b"{"),
        lambda: chat.transfer.load(b'[{"content": ""}, {"content": "x", "importance": "z"}]'),
        lambda: chat.erase(speaker="nobody"),
        lambda: chat.memory.configure("injection_budget", 1),
        lambda: chat.memory.clear_fence(99),
        lambda: ltm.open(tmp_path),
        lambda: ltm_models.named("nope"),
    ]
    with speaking("zh"):
        for call in calls:
            with pytest.raises(ltm.LtmError) as caught:
                call()
            assert HAN.search(translated(str(caught.value))), caught.value


def test_the_page_is_refused_in_its_language(memory: ltm.Memory) -> None:
    def asked(**body: Any) -> str:
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        connection.request("POST", "/api/session", json.dumps(body), {"Content-Type": "application/json"})
        message: str = json.loads(connection.getresponse().read())["error"]["message"]
        connection.close()
        return message

    with web.Server(api.Console(memory, host="serve"), port=0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            assert asked(token="x", language="zh_Hans") == "令牌不正确；请打开 `ltm serve` 输出的链接"
            assert (
                asked(token="x") == asked(token="x", language=7) == "the token is not right; open the link that `ltm serve` printed"
            )
        finally:
            server.shutdown()
            thread.join()
