"""Recall quality through the public API: what share of the evidence is among the first k.

    python bench/quality.py --set locomo --data DIR [--embedder e5] [--cache vectors.db] [--json]

DIR holds `NAME.json.gz` in the shape {"spaces": [{"id", "documents": [{"id", "text", "speaker", "at"}], "queries":
[{"text", "gold", "category"}]}]}. Each space is one memory space; documents go in with `remember`, vectors are made by
`embed_pending`, questions are asked with `recall`. Printed for k = 5, 10, 20: `fraction` of a question's evidence
found, `any` of it found. LoCoMo's adversarial category 5 is left out: its evidence does not answer.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import sqlite3
import sys
import time
from array import array
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import ltm
import ltm_models

SETS = ("locomo", "lifebench-zh", "memdaily-zh", "madial-zh")
KS = (5, 10, 20)


class Cached:
    """An embedder whose vectors are kept in a file, so that a second run measures ranking and not embedding."""

    def __init__(self, inner: ltm.Embedder, path: str) -> None:
        self.inner, self.fingerprint, self.dim = inner, inner.fingerprint, inner.dim
        self.db = sqlite3.connect(path, check_same_thread=False)
        self.db.execute("CREATE TABLE IF NOT EXISTS vector (key BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")

    def _embed(self, texts: Sequence[str], kind: str) -> Iterable[Sequence[float]]:
        keys = [hashlib.sha256(f"{self.fingerprint}|{kind}|{text}".encode("utf-8", "replace")).digest() for text in texts]
        found = {key: self.db.execute("SELECT vector FROM vector WHERE key = ?", (key,)).fetchone() for key in keys}
        missing = [(key, text) for key, text in zip(keys, texts, strict=True) if found[key] is None]
        if missing:
            embed = self.inner.embed_queries if kind == "q" else self.inner.embed_passages
            vectors = [array("f", vector).tobytes() for vector in embed([text for _, text in missing])]
            made = [(key, vector) for (key, _), vector in zip(missing, vectors, strict=True)]
            self.db.executemany("INSERT OR IGNORE INTO vector VALUES (?, ?)", made)
            self.db.commit()
            found |= {key: (vector,) for key, vector in made}
        return [ltm_models.unpack(found[key][0]) for key in keys]

    def embed_passages(self, texts: Sequence[str]) -> Iterable[Sequence[float]]:
        return self._embed(texts, "p")

    def embed_queries(self, texts: Sequence[str]) -> Iterable[Sequence[float]]:
        return self._embed(texts, "q")


def fill(space: ltm.Space, documents: list[dict[str, Any]]) -> dict[str, set[str]]:
    """Store a conversation; return which document ids each episode id stands for (the same text twice is one)."""
    ids: dict[str, set[str]] = {}
    for document in documents:
        speaker = ltm.Speaker(document["speaker"], document["speaker"]) if document.get("speaker") else None
        stored = space.for_speaker(speaker).remember(document["text"], created_at=document.get("at") or None)
        ids.setdefault(stored.id, set()).add(document["id"])
    return ids


def measure(name: str, data: dict[str, Any], memory: ltm.Memory, progress: bool) -> dict[str, Any]:
    spaces = []
    for n, part in enumerate(data["spaces"]):
        space = memory.space(ltm.Scope("bench", "group", f"{name}:{part['id']}"))
        spaces.append((space, part, fill(space, part["documents"])))
        if progress:
            print(f"\rstored {n + 1}/{len(data['spaces'])} spaces", end="", file=sys.stderr)
    if memory.embedder:
        memory.embed_pending(progress=lambda done, total: progress and print(f"\rembedded {done}/{total}", end="", file=sys.stderr))
    fractions: dict[int, list[float]] = {k: [] for k in KS}
    found_any: dict[int, list[float]] = {k: [] for k in KS}
    seconds = []
    for space, part, ids in spaces:
        known = {document for group in ids.values() for document in group}
        for query in part["queries"]:
            gold = set(query["gold"]) & known
            if not gold or (name == "locomo" and str(query.get("category")) == "5"):
                continue
            result = space.recall(query["text"], limit=max(KS))
            seconds.append(result.elapsed)
            ranked = [ids[hit.episode.id] for hit in result]
            for k in KS:
                hit = gold & set().union(*ranked[:k]) if ranked else set()
                fractions[k].append(len(hit) / len(gold))
                found_any[k].append(float(bool(hit)))
    mean = lambda values: round(sum(values) / max(1, len(values)), 4)  # noqa: E731
    return {
        "set": name,
        "embedder": memory.embedder.fingerprint if memory.embedder else None,
        "questions": len(seconds),
        "fraction": {f"@{k}": mean(fractions[k]) for k in KS},
        "any": {f"@{k}": mean(found_any[k]) for k in KS},
        "median_ms": round(sorted(seconds)[len(seconds) // 2] * 1e3, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--set", choices=SETS, action="append", help="default: all")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--embedder", help="e5, hash or http:URL#MODEL:DIM; default: none, words alone")
    parser.add_argument("--cache", help="file that keeps vectors between runs")
    parser.add_argument("--weights", type=json.loads, default={}, help='JSON, as {"dense": 0.5}')
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    embedder = ltm_models.named(options.embedder) if options.embedder else None
    if embedder and options.cache:
        embedder = Cached(embedder, options.cache)
    for name in options.set or SETS:
        data = json.loads(gzip.decompress((options.data / f"{name}.json.gz").read_bytes()))
        started = time.time()
        # Without the embedder first: then embed_pending makes the vectors in batches.
        with ltm.open(":memory:", weights=ltm.Weights(**options.weights)) as memory:
            memory.embedder = embedder
            row = measure(name, data, memory, progress=sys.stderr.isatty())
        row["seconds"] = round(time.time() - started, 1)
        print(json.dumps(row) if options.json else row, flush=True)


if __name__ == "__main__":
    main()
