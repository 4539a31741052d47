"""Speed and size, as ratios inside one run.

    python bench/speed.py [--sizes 1000,10000,100000] [--only recall|governance] [--json]

Each comparison is timed in thread CPU time, its sides in turn on the same questions, and printed as medians and
their ratio; commits are wall clock. The corpus is made here: 60-character chat lines, half of them Chinese, with 384-dimensional
unit vectors spread like a sentence model's. Nothing asserts a time: the bars that must hold are printed beside the figure.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import statistics
import sys
import tempfile
import threading
import time
import tracemalloc
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import apsw
import sqlite_vec

import ltm
import ltm_models
import ltm_text

DIM, K, QUESTIONS = 384, 20, 15


class Spread:
    """Unit vectors spread as e5's are on LoCoMo: a common mean, calibration pairs that belong together, and chat lines
    whose similarity to a question passes the threshold for 2 to 31 % of a space (LoCoMo: 1 to 36 %)."""

    fingerprint, dim = "bench:spread", DIM
    centre, chat = np.random.default_rng(7).normal(size=(2, DIM))
    pairs = {text: at for at, pair in enumerate(ltm_models.CALIBRATION) for text in pair}

    def _vector(self, text: str) -> list[float]:
        noise = np.random.default_rng(zlib.crc32(text.encode())).normal(size=DIM)
        at = self.pairs.get(text)
        shared = 0.4 * self.chat if at is None else 0.8 * np.random.default_rng(at).normal(size=DIM)
        row = noise + 1.7 * self.centre + shared
        return (row / np.linalg.norm(row)).tolist()  # type: ignore[no-any-return]

    def _embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [self._vector(text) for text in texts]

    embed_passages = embed_queries = _embed


class Words:
    """A vocabulary of two languages drawn by Zipf's law, as in chat: a few words everywhere, most of them rare."""

    def __init__(self, size: int = 20_000) -> None:
        rng = random.Random(3)
        syllables = [a + b for a in "bcdfghklmnprstvw" for b in ("a", "e", "i", "o", "u", "an", "er", "in", "or", "el")]
        self.english = ["".join(rng.choices(syllables, k=rng.choice((1, 2, 2, 3)))) for _ in range(size)]
        han = [chr(code) for code in range(0x4E00, 0x4E00 + 3000)]
        self.chinese = ["".join(rng.choices(han, k=rng.choice((1, 2, 2, 2, 3)))) for _ in range(size)]
        self.weights = list(itertools.accumulate(1.0 / (rank + 10) for rank in range(size)))

    def line(self, rng: random.Random) -> str:
        """Sixty characters in one of the languages."""
        if rng.random() < 0.5:
            return "".join(rng.choices(self.chinese, cum_weights=self.weights, k=30))[:60]
        return " ".join(rng.choices(self.english, cum_weights=self.weights, k=12))[:60]


WORDS = Words()


def build(path: Path, sizes: dict[str, int], seed: int = 1) -> ltm.Memory:
    """A file whose spaces hold so many episodes each, with vectors, through the public API."""
    memory = ltm.open(path, embedder=Spread())
    for name, size in sizes.items():
        rng = random.Random(f"{seed}{name}")  # a space holds the same in every file
        space = memory.space(ltm.Scope("bench", "group", name), speaker=ltm.Speaker("u1", "Ann"))
        for at in range(0, size, 500):
            with memory.batch():
                for _ in range(min(500, size - at)):
                    text = WORDS.line(rng)
                    space.remember(text, importance=rng.randint(1, 5), vector=Spread().embed_passages([text])[0])
    return memory


def questions(n: int = QUESTIONS) -> list[str]:
    """Questions of some six words, as drawn from the same chat."""
    rng = random.Random(5)
    drawn = [rng.choices(words, cum_weights=WORDS.weights, k=6) for words in (WORDS.english, WORDS.chinese) * n]
    return ["".join(words) if words[0][0] > "z" else " ".join(words) for words in drawn[:n]]


def compare(sides: dict[str, Callable[[str, bytes], Any]], rounds: int = 3) -> dict[str, float]:
    """Median thread CPU milliseconds of each side; sides in turn on each question, first round not counted."""
    vectors = [(text, ltm_models.pack(Spread().embed_queries([text])[0], DIM)) for text in questions()]
    spent: dict[str, list[float]] = {name: [] for name in sides}
    for round_ in range(rounds + 1):
        for text, vector in vectors:
            for name, side in sides.items():
                started = time.thread_time()
                side(text, vector)
                if round_:
                    spent[name].append((time.thread_time() - started) * 1e3)
    return {name: round(statistics.median(values), 3) for name, values in spent.items()}


def vec0_side(memory: ltm.Memory, path: Path) -> Callable[[str, bytes], Any]:
    """The common design: vec0 with a partition key, FTS5 with bm25() joined on the space, fused by rank."""
    db = apsw.Connection(str(path))
    db.enable_load_extension(True)
    db.load_extension(sqlite_vec.loadable_path())
    db.execute(
        f"CREATE VIRTUAL TABLE v USING vec0(space INTEGER PARTITION KEY, e FLOAT[{DIM}] distance_metric=cosine);"
        "CREATE TABLE doc(id INTEGER PRIMARY KEY, space INTEGER, status TEXT); CREATE INDEX doc_space ON doc(space, status);"
        "CREATE VIRTUAL TABLE f USING fts5(t, content='', tokenize='ascii')"
    )
    sql = "SELECT e.key, e.space, e.content, v.vector FROM episode e JOIN episode_vector v ON v.key = e.key"
    with memory._file.read() as source, db:
        for key, space, content, vector in source.execute(sql):
            db.execute("INSERT INTO v(rowid, space, e) VALUES (?, ?, ?)", (key, space, vector))
            db.execute("INSERT INTO doc VALUES (?, ?, 'active')", (key, space))
            db.execute("INSERT INTO f(rowid, t) VALUES (?, ?)", (key, " ".join(ltm_text.cut(content).counts)))
    space = db.execute("SELECT space FROM doc GROUP BY space ORDER BY count(*) DESC LIMIT 1").get
    sql = f"""
        WITH a AS (SELECT rowid id, row_number() OVER (ORDER BY distance) r FROM v WHERE e MATCH ?1 AND space = ?2 AND k = {K}),
        b AS (SELECT f.rowid id, row_number() OVER (ORDER BY bm25(f)) r FROM f JOIN doc d ON d.id = f.rowid
          WHERE f MATCH ?3 AND d.space = ?2 AND d.status = 'active' ORDER BY bm25(f) LIMIT {K})
        SELECT id, sum(1.0 / (60 + r)) s FROM (SELECT * FROM a UNION ALL SELECT * FROM b) GROUP BY id ORDER BY s DESC LIMIT {K}"""

    def side(text: str, vector: bytes) -> Any:
        terms = " OR ".join(f'"{term.text}"' for term in ltm_text.query_terms(text))
        return db.execute(sql, (vector, space, terms)).fetchall()

    return side


def numpy_side(memory: ltm.Memory, space: int) -> Callable[[str, bytes], Any]:
    with memory._file.read() as db:
        rows = db.execute(
            "SELECT vector FROM episode_vector WHERE key BETWEEN ?1 << 32 AND (?1 << 32) + 0xffffffff", (space,)
        ).fetchall()
    matrix = np.frombuffer(b"".join(row[0] for row in rows), dtype=np.float32).reshape(-1, DIM)

    def side(text: str, vector: bytes) -> Any:
        scores = matrix @ np.frombuffer(vector, dtype=np.float32)
        return np.argpartition(-scores, min(K, len(scores) - 1))[:K]

    return side


def scan_side(memory: ltm.Memory, space: int) -> Callable[[str, bytes], Any]:
    """The bare scan: distances of one space's vectors, nearest K."""
    sql = (
        f"SELECT key FROM episode_vector WHERE key BETWEEN ?1 << 32 AND (?1 << 32) + 0xffffffff"
        f" ORDER BY {memory._file.distance}(vector, ?2) LIMIT {K}"
    )

    def side(text: str, vector: bytes) -> Any:
        with memory._file.read() as db:
            return db.execute(sql, (space, vector)).fetchall()

    return side


def recall_side(memory: ltm.Memory, name: str) -> Callable[[str, bytes], Any]:
    space = memory.space(ltm.Scope("bench", "group", name))
    return lambda text, vector: space.recall(text, limit=K, vector=vector)


def space_id(memory: ltm.Memory, name: str) -> int:
    with memory._file.read() as db:
        return int(db.execute("SELECT id FROM space WHERE launcher_id = ?", (name,)).get)


def steps(memory: ltm.Memory, name: str) -> int:
    """Virtual machine steps of one recall, free of noise: the counters run on, so two runs are compared."""
    last: dict[int, int] = {}

    def profile(event: dict[str, Any]) -> None:
        last[event["id"]] = event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]

    once = lambda: recall_side(memory, name)(questions(1)[0], ltm_models.pack(Spread().embed_queries(["q"])[0], DIM))  # noqa: E731
    once()
    with memory._file.read() as db:
        db.trace_v2(apsw.SQLITE_TRACE_PROFILE, profile)
        inner = lambda: sum(last.values())  # noqa: E731
    once()
    before = inner()
    once()
    with memory._file.read() as db:
        db.trace_v2(0, None)
    return inner() - before


def durable(folder: Path, threads: int, seconds: float = 3.0) -> float:
    """Acknowledged remember() a second, each on disk when it returns."""
    with ltm.open(folder / f"durable{threads}.db") as memory:
        memory.space(ltm.Scope("bench", "group", "w")).remember("warm up")
        counts = [0] * threads
        end = time.monotonic() + seconds

        def work(n: int) -> None:
            space = memory.space(ltm.Scope("bench", "group", "w"), speaker=ltm.Speaker(f"u{n}"))
            rng = random.Random(n)
            while time.monotonic() < end:
                space.remember(f"{WORDS.line(rng)} {counts[n]}")
                counts[n] += 1

        workers = [threading.Thread(target=work, args=(n,)) for n in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    return round(sum(counts) / seconds, 1)


def real_words() -> tuple[list[str], list[float]]:
    """The dictionary's 20,000 most common words with their running frequencies: coined ones take the cutter three times as long."""
    tokenizer = ltm_text._jieba()
    common = sorted(((n, word) for word, n in tokenizer.FREQ.items() if n and len(word) < 5), reverse=True)[:20_000]
    return [word for _, word in common], list(itertools.accumulate(float(n) for n, _ in common))


def governance(folder: Path, size: int, emit: Callable[[dict[str, Any]], None]) -> None:
    """Export, import, deep pages and a long audit, without vectors."""
    rng = random.Random(5)
    ltm.warm_up()
    chinese, weights = real_words()
    lines = folder / f"export_{size}.jsonl"
    with lines.open("w", encoding="utf-8") as out:
        for number in range(size):
            at = ltm.to_iso(1_700_000_000_000_000 + number * 60_000_000)
            english = " ".join(rng.choices(WORDS.english, cum_weights=WORDS.weights, k=12))[:60]
            text = english if number % 2 else "".join(rng.choices(chinese, cum_weights=weights, k=40))[:60]
            record = {"type": "episode", "id": f"{number:012x}", "content": text, "timestamp": at}
            record |= {"sender_id": f"u{number % 5}", "sender_name": f"Name{number % 5}", "tags": ["t"] if number % 10 == 0 else []}
            out.write(json.dumps(record, ensure_ascii=False) + "\n")
    memory = ltm.open(folder / f"governance_{size}.db")
    space = memory.space(ltm.Scope("b", "group", "large"), speaker=ltm.Speaker("u1"))
    started = time.perf_counter()
    report = space.transfer.load(lines)
    took = time.perf_counter() - started
    emit({"import": report.episodes, "per_second": round(report.episodes / took), "bar": ">= 2000"})
    again = time.perf_counter()
    report = space.transfer.load(lines)
    emit({"import_again": report.duplicates, "per_second": round(report.duplicates / (time.perf_counter() - again))})
    tracemalloc.start()
    started = time.perf_counter()
    with (folder / "out.jsonl").open("w", encoding="utf-8") as out:
        counts = space.transfer.write(out, ["episodes"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    size_mib = (folder / "out.jsonl").stat().st_size / 2**20
    emit(
        {"export": counts["episode"], "file_mib": round(size_mib, 1), "peak_python_mib": round(peak / 2**20, 1), "bar": "constant"}
    )
    pages: list[float] = []
    cursor, first, deep = "", "", ""
    for number in range(1, 5_001):  # noqa: B007
        page = space.list(limit=20, cursor=cursor)
        deep = cursor
        if not page.cursor:
            break
        cursor = page.cursor
    for chosen in (first, deep):
        times = [timed(lambda chosen=chosen: space.list(limit=20, cursor=chosen)) for _ in range(50)]
        pages.append(statistics.median(times))
    emit(
        {
            "list_page": {"1": round(pages[0], 2), str(number): round(pages[1], 2)},
            "ratio": round(pages[1] / pages[0], 2),
            "bar": "1",
        }
    )
    grow_audit(memory, space, 200_000)
    listing = statistics.median(timed(lambda: space.audit.list(limit=50)) for _ in range(50))
    total = space.audit.list(limit=1).total
    deep_listing = statistics.median(timed(lambda: space.audit.list(limit=50, cursor=str(total // 2))) for _ in range(50))
    emit({"audit_list_of": total, "ms": round(listing, 2), "ms_in_the_middle": round(deep_listing, 2), "bar": "< 10 ms"})
    started = time.perf_counter()
    problems = space.audit.verify()
    emit({"audit_verify_of": total, "seconds": round(time.perf_counter() - started, 2), "problems": len(problems)})
    found = statistics.median(timed(lambda: space.recall("weather in the city", limit=5)) for _ in range(5))
    past = timed(lambda: space.recall("weather in the city", limit=5, as_of=memory._clock()))
    emit({"recall_ms": round(found, 1), "first_recall_as_of_ms": round(past, 1)})
    memory.close()


def timed(work: Callable[[], Any]) -> float:
    """Milliseconds of the wall clock."""
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1e3


def grow_audit(memory: ltm.Memory, space: ltm.Space, entries: int) -> None:
    """Entries as operations leave them, in large transactions."""
    left = entries - space.audit.list(limit=1).total
    while left > 0:
        batch = min(left, 5_000)

        def work(change: ltm._Change, batch: int = batch) -> int:
            for number in range(batch):
                change.record("episode", f"{number:012x}", "an entry like any other", operation="edit")
            return batch

        space._change("edit", work, None, None)
        left -= batch


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed and size as ratios inside one run.")
    parser.add_argument("--sizes", default="1000,10000,100000", help="episodes in the large space of each file")
    parser.add_argument("--only", choices=("recall", "governance"), help="one half")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    emit = (lambda row: print(json.dumps(row), flush=True)) if options.json else (lambda row: print(row, flush=True))
    ltm.warm_up()
    small: dict[int, tuple[ltm.Memory, int]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.only != "recall":
            governance(folder, max(map(int, options.sizes.split(","))), emit)
        if options.only == "governance":
            return
        for size in map(int, options.sizes.split(",")):
            path = folder / f"m{size}.db"
            started = time.time()
            memory = build(path, {"six": 6, "large": size - 6})
            built = (time.time() - started) * 1e6 / size
            large = space_id(memory, "large")
            sides = {
                "recall": recall_side(memory, "large"),
                "bare_scan": scan_side(memory, large),
                "vec0_bm25": vec0_side(memory, folder / f"vec0_{size}.db"),
                "numpy": numpy_side(memory, large),
            }
            figures = compare(sides)
            ratios = {f"recall/{side}": round(figures["recall"] / figures[side], 2) for side in ("bare_scan", "vec0_bm25", "numpy")}
            emit(
                {
                    "episodes": size,
                    "cpu_ms": figures,
                    **ratios,
                    "bar": "recall/bare_scan <= 3 at 10,000",
                    "build_us_each": round(built),
                }
            )
            memory.close()
            emit({"episodes": size, "bytes_each": round(path.stat().st_size / size), "bar": "<= 2300"})
            started = time.perf_counter()
            memory = ltm.open(path, embedder=Spread())
            emit({"episodes": size, "open_ms": round((time.perf_counter() - started) * 1e3, 2)})
            small[size] = (memory, steps(memory, "six"))
        first, last = min(small), max(small)
        if first != last:
            sides = {str(size): recall_side(memory, "six") for size, (memory, _) in small.items()}
            figures = compare(sides, rounds=20)
            ratio = round(figures[str(last)] / figures[str(first)], 2)
            emit({"six_episodes_in_file_of": figures, "ratio": ratio, "bar": "<= 2"})
            emit(
                {
                    "vm_steps": {k: v[1] for k, v in small.items()},
                    "ratio": round(small[last][1] / small[first][1], 2),
                    "bar": "<= 1.5",
                }
            )
        for memory, _ in small.values():
            memory.close()
        one, ten = durable(folder, 1), durable(folder, 10)
        emit({"durable_remember_per_second": {"1 thread": one, "10 threads": ten}, "ratio": round(ten / one, 2)})


if __name__ == "__main__":
    main()
