"""The language of answers: which one is spoken here, and the Chinese of what is said in English.

`say` is for words.py: it fills a template. `translated` is for what the engine has finished saying: it finds the English
template that the whole text fits and fills the Chinese one with the same values. Both look into zh_hans.py, and what is not
in it stays English. In en_US both give what they were given, so the English of an answer never depends on the catalogue.

Invariant: neither raises nor takes longer than in proportion to its text, whatever the text; tests/test_language.py proves
both, and that the catalogue has an entry for everything that the sources say.
"""

from __future__ import annotations

import functools
import string
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from .zh_hans import SENTENCES, WORDS

ENGLISH, CHINESE = "en_US", "zh_Hans"
LONGEST = 8_000  # characters; what is longer is data, not a sentence
PARTS = 24  # sentences joined by "; ", or words by ", ", that are translated one by one
NAME = 100  # characters of what a sentence is about
LOOKS = 200  # sentences looked for inside one text, in all
DEPTH = 4  # of sentences inside sentences: an error inside a note inside a record of a report

language: ContextVar[str] = ContextVar("ltm_language", default=ENGLISH)
command: ContextVar[str] = ContextVar("ltm_command", default="ltm")  # what hints tell people to type first


def known(name: str) -> str:
    """The language of ours that a locale's name means.

    >>> known("zh-CN"), known("zh_TW"), known("fr_FR"), known("")
    ('zh_Hans', 'zh_Hans', 'en_US', 'en_US')
    """
    return CHINESE if name[:2].lower() == "zh" else ENGLISH


@contextmanager
def speaking(name: str) -> Iterator[None]:
    """Speak a language in a `with` block, in this thread or task and what it calls."""
    token = language.set(known(name))
    try:
        yield
    finally:
        language.reset(token)


@contextmanager
def typed(prefix: str) -> Iterator[None]:
    """Name the command of hints in a `with` block: "ltm", or "!memory" in a chat."""
    token = command.set(prefix)
    try:
        yield
    finally:
        command.reset(token)


def is_chinese() -> bool:
    """Whether Chinese is spoken here."""
    return known(language.get()) == CHINESE


def say(template: str, /, **values: object) -> str:
    """Fill an English template, or the Chinese one that goes with it.

    >>> with speaking("zh_CN"): say("{n} of {total}", n=1, total=9)
    '1 条，共 9 条'
    """
    return (WORDS.get(template, template) if is_chinese() else template).format(**values)


def term(word: str, sense: str = "") -> str:
    """A word or phrase of ours without places, such as a status or an outcome; any other text is returned as it is.

    `sense` chooses where an English word means two things.

    >>> with speaking("zh"): term("archived"), term("archived", "operation")
    ('已归档', '归档')
    """
    return WORDS.get(f"{sense}|{word}", WORDS.get(word, word)) if is_chinese() else word


def translated(text: str) -> str:
    """Say in the language spoken here what the engine said in English; a text that it does not say is returned as it is.

    >>> with speaking("zh"): translated("content has 30,000 characters; the limit is 20,000")
    'content 有 30,000 个字符，上限是 20,000'
    """
    if not is_chinese() or not text or len(text) > LONGEST:
        return text
    found = _sentence(text, DEPTH, {})
    return found.text if found else text


# ------------------------------------------------------------------------------------------ templates


class _Found(NamedTuple):
    """A translation, and how much of the text was recognised."""

    letters: int
    text: str


_Seen = dict[tuple[str, int], "_Found | None"]  # what was looked for in one text already


class _Place(NamedTuple):
    """Where a value goes. `kind`: 'd' a number; 'n' the name of something; 'w' words that must be in the catalogue;
    's' words that may be; '' anything."""

    name: str
    kind: str


class _Template(NamedTuple):
    """An English sentence as the literals between its places, and the Chinese as literals and names of places."""

    literals: tuple[str, ...]
    places: tuple[_Place, ...]
    chinese: tuple[tuple[str, str], ...]

    @property
    def letters(self) -> int:
        return sum(map(len, self.literals))

    def matches(self, text: str) -> Iterator[list[str]]:
        """The values of a text that has this form: each literal where it first occurs, and then where it last does.

        Two passes, so time is linear. A regular expression would try every other place for each literal too, and where a
        text nearly fits take a power of its length; what that would find more are values with our own sentences in them.
        """
        first, *middle, last = self.literals
        begin, end = len(first), len(text) - len(last)
        if begin > end or not text.startswith(first) or not text.endswith(last):
            return
        early = _cut(text, middle, begin, end)
        if early is not None:
            yield early
            if middle and (late := _cut_late(text, middle, begin, end)) != early and late is not None:
                yield late

    def fill(self, text: str, depth: int, seen: _Seen) -> _Found | None:
        """Translate a text that has this form."""
        for given in self.matches(text):
            pairs = list(zip(given, self.places, strict=True))
            if not all(_is_taken(value, place.kind) for value, place in pairs):
                continue
            letters, values = self.letters, {}
            for value, place in pairs:
                if (inner := _value(value, place, depth, seen)) is None:
                    break
                letters += inner.letters
                values[place.name] = inner.text
            else:
                return _Found(letters, "".join(literal + values.get(name, "") for literal, name in self.chinese))
        return None


def _cut(text: str, literals: list[str], at: int, end: int) -> list[str] | None:
    """What stands between literals, from the left; None if one is not there."""
    values = []
    for literal in literals:
        found = text.find(literal, at, end)
        if found < 0:
            return None
        values.append(text[at:found])
        at = found + len(literal)
    return [*values, text[at:end]]


def _cut_late(text: str, literals: list[str], begin: int, end: int) -> list[str] | None:
    """The same, from the right."""
    values = []
    for literal in reversed(literals):
        found = text.rfind(literal, begin, end)
        if found < 0:
            return None
        values.append(text[found + len(literal) : end])
        end = found
    return [text[begin:end], *reversed(values)]


def parsed(template: str) -> tuple[tuple[str, ...], tuple[_Place, ...]]:
    """The literals of a template, one more than its places, and the places."""
    literals, places = [""], []
    for literal, name, kind, _ in string.Formatter().parse(template):
        literals[-1] += literal
        if name is not None:
            places.append(_Place(name, kind or ""))
            literals.append("")
    return tuple(literals), tuple(places)


def _compiled(english: str, chinese: str) -> _Template:
    parts = tuple((literal, name or "") for literal, name, _, _ in string.Formatter().parse(chinese))
    return _Template(*parsed(english), parts)


@functools.cache
def _templates() -> dict[str, tuple[_Template, ...]]:
    """Templates with places by the word that they begin with, '' if none; of two that fit as well the first is taken."""
    found: dict[str, list[_Template]] = {}
    for english, chinese in SENTENCES.items():
        made = _compiled(english, chinese)
        if made.places:
            found.setdefault(_first_word(made.literals[0]), []).append(made)
    every = found.pop("", [])
    order = {word: sorted((*some, *every), key=lambda each: (-each.letters, each.literals)) for word, some in found.items()}
    return {"": tuple(sorted(every, key=lambda each: (-each.letters, each.literals))), **{w: tuple(t) for w, t in order.items()}}


def _first_word(text: str) -> str:
    """The first word if a space ends it: a template that begins otherwise may go on inside the word."""
    word, space, _ = text.partition(" ")
    return word if space else ""


def _sentence(text: str, depth: int, seen: _Seen) -> _Found | None:
    """Translate a sentence, or several joined by "; ", in the way in which most of it is recognised."""
    if depth == 0 or text in SENTENCES:
        return _exact(text)
    key = (text, depth)
    if key not in seen:
        if len(seen) >= LOOKS:
            return None
        seen[key] = None
        seen[key] = _read(text, depth - 1, seen)
    return seen[key]


def _read(text: str, depth: int, seen: _Seen) -> _Found | None:
    index = _templates()
    some = index.get(_first_word(text), index[""])
    found = filter(None, (template.fill(text, depth, seen) for template in some))
    whole = max(found, key=lambda each: each.letters, default=None)
    parts = text.split("; ", PARTS)
    if not 1 < len(parts) <= PARTS:
        return whole
    each = [_sentence(part, depth, seen) for part in parts]
    if not all(each):
        return whole
    joined = _Found(sum(part.letters for part in each if part), "；".join(part.text for part in each if part))
    return joined if whole is None or joined.letters > whole.letters else whole


def _exact(text: str) -> _Found | None:
    return _Found(len(text), SENTENCES[text]) if text in SENTENCES else None


def _is_taken(value: str, kind: str) -> bool:
    """Whether a place takes a value, as far as a look at it tells."""
    if kind == "d":
        return bool(value) and not value.strip("0123456789.,-")
    return kind != "n" or (len(value) <= NAME and ": " not in value and "; " not in value and not value.endswith(":"))


def _value(value: str, place: _Place, depth: int, seen: _Seen) -> _Found | None:
    """What goes into the place of a Chinese template, or None if it must be translated and cannot be."""
    plain = _Found(0, value)
    if place.kind in ("d", ""):
        return plain
    if place.kind == "n":
        return _exact(value) or plain
    found = _words(value, place.name) or _sentence(value, depth, seen)
    return found or (plain if place.kind == "s" or not value else None)


def _words(text: str, sense: str) -> _Found | None:
    """Translate words joined by commas, if all of them are ours."""
    words = text.split(", ", PARTS)
    return _Found(len(text), "、".join(term(word, sense) for word in words)) if all(word in WORDS for word in words) else None
