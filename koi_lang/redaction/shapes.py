"""Shapes of secrets in any place: tokens with known beginnings, JSON web tokens, private keys, addresses.

A shape is found by a text that each of its kind contains, which is much faster than to look for the shape itself.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import log2

MAX_WORD_CHARS, MAX_NUMBER_CHARS = 14, 8
# Letters and digits that words in a row have on average at the least.
MIN_MEAN_WORD_CHARS = 3
# Parts of an identifier up to here say nothing: a year, something like `v2`.
MAX_PART_CHARS = 4
# In bits a character: six different ones have 2.6 if all are as frequent, five have 2.3.
MIN_ENTROPY = 2.5
MIN_CREDENTIAL, MIN_TOKEN = 6, 8
_PARTS = re.compile(r"[^A-Za-z0-9]+")
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_CONSONANTS = re.compile(r"[^aeiouyAEIOUY\d]{6,}")
_LETTER, _DIGIT = re.compile(r"[^\W\d_]"), re.compile(r"\d")
_DIGIT_OR_SIGN = re.compile(r"[\d!@#$%^&*+/=~:]")
# Characters of a private key, and line breaks as JSON writes them.
_IN_KEY = r"(?:[A-Za-z0-9+/=:,. \-\r\n]|\\+[nr])"


@dataclass(frozen=True, slots=True)
class Shape:
    """One kind of secret.

    Attributes:
        mark: a text that it begins with, or that stands in front of it.
        pattern: the secret, behind its mark.
        is_meant: tells a secret from what only has its form.
        has_mark: whether the mark is a part of the secret; then it begins no word inside of another one.
    """

    mark: str
    pattern: re.Pattern[str]
    is_meant: Callable[[str], bool] | None = None
    has_mark: bool = True

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where secrets of this kind stand in a text."""
        at = text.find(self.mark)
        while at >= 0:
            after = at + len(self.mark)
            found = None if self.has_mark and _is_in_word(text, at) else self.pattern.match(text, after)
            if found is not None:
                if self.is_meant is None or self.is_meant(found["secret"]):
                    yield at if self.has_mark else found.start("secret"), found.end("secret")
                after = found.end()
            at = text.find(self.mark, after)


def _is_in_word(text: str, at: int) -> bool:
    # `\n` of JSON stands in front of the next line.
    before = text[at - 1 : at]
    return (before.isalnum() or before == "_") and not (before in "nrt" and text[at - 2 : at - 1] == "\\")


def is_random(text: str) -> bool:
    """Whether a text was drawn and not written: not words, names and numbers joined with `-`, `_` and the like."""
    if all(_is_written(part) for part in _PARTS.split(text) if len(part) > MAX_PART_CHARS):
        return False
    return _entropy(text) >= MIN_ENTROPY


def is_drawn(text: str) -> bool:
    """Whether a text is random, or has small and capital letters, digits and signs."""
    if _LETTER.search(text) is None:
        return False
    has_case = any(map(str.islower, text)) and any(map(str.isupper, text))
    return is_random(text) or (has_case and _DIGIT.search(text) is not None and not text.isalnum())


@lru_cache(4096)
def _is_written(part: str) -> bool:
    """Whether a part of an identifier is a word, something with a year, or words in one as `SecretKey2`."""
    words = _WORDS.findall(part)
    if sum(map(len, words)) < len(part) or len(part) < MIN_MEAN_WORD_CHARS * len(words):
        return False
    return all(len(word) <= (MAX_NUMBER_CHARS if word.isdigit() else MAX_WORD_CHARS) for word in words) and not any(
        _CONSONANTS.search(word) for word in words if not word.isupper()
    )


def _entropy(text: str) -> float:
    """Bits for each character, by how often each of them occurs."""
    return -sum(n / len(text) * log2(n / len(text)) for n in Counter(text).values()) if text else 0.0


def is_credential(text: str) -> bool:
    """Whether a value with a telling name may be a credential: letters with digits or signs, or random text."""
    if len(text) < MIN_CREDENTIAL:
        return False
    return (_LETTER.search(text) is not None and _DIGIT_OR_SIGN.search(text) is not None) or is_random(text)


def is_token(text: str) -> bool:
    """Whether a value is hardly anything but a token, alone or behind the name of its kind."""
    words = text.split(maxsplit=2)
    if not words or len(words) > 2 or len(words[-1]) < MIN_TOKEN:
        return False
    return (_DIGIT.search(words[-1]) is not None and _LETTER.search(words[-1]) is not None) or is_random(words[-1])


def _is_basic(text: str) -> bool:
    """Whether a text is a name and a password as headers carry them."""
    try:
        return b":" in base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False


# What tokens begin with that are known by nothing else; `-` and `_` belong to it.
PREFIXES = (
    "sk- rk- pk- xai- gsk- glpat- glrt- xapp- tvly- pplx- nvapi- gsk_ hf_ npm_ r8_ whsec_ lin_api_ ntn_ figd_ "
    "dckr_pat_ dop_v1_ github_pat_ sntrys_ hvs. hvb. dp.pt. dp.st. sbp_ ATATT3x"
).split()


# Commands whose short options are passwords.
COMMANDS = ("curl ", "sshpass -p", "docker login ", "mysql")


def _rows() -> Iterator[Shape]:
    for mark in PREFIXES:
        yield Shape(mark, _secret(r"[A-Za-z0-9_\-]{16,}"), is_random)
    for mark in ("sk_", "rk_", "pk_"):
        yield Shape(mark, _secret(r"(?:live|test)_[A-Za-z0-9_]{16,}"))
    for mark in ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"):
        yield Shape(mark, _secret("[A-Za-z0-9]{20,}"))
    yield Shape("koi_", _secret(r"[A-Za-z0-9_\-]{43}(?![\w\-])"), is_random)  # of services of Koi
    for mark in ("AKIA", "ASIA"):
        yield Shape(mark, _secret(r"[A-Z0-9]{12,}\b"))
    yield Shape("xox", _secret(r"[a-z]-[A-Za-z0-9\-]{16,}"))
    yield Shape("shp", _secret("(?:at|ss|ca|pa)_[a-fA-F0-9]{20,}"))
    yield Shape("AIza", _secret(r"[A-Za-z0-9_\-]{20,}"))
    yield Shape("key-", _secret(r"[0-9a-f]{32}\b"))
    yield Shape("SK", _secret(r"[0-9a-f]{32}\b"))
    yield Shape("SG.", _secret(r"[A-Za-z0-9_\-]{16,}\.[A-Za-z0-9_\-]{16,}"))
    yield Shape("ya29.", _secret(r"[A-Za-z0-9_\-]{20,}"))
    yield Shape("pypi-AgE", _secret(r"[A-Za-z0-9_\-]{20,}"))
    yield Shape("AGE-SECRET-KEY-1", _secret("[0-9A-Z]{20,}"))
    yield Shape("eyJ", _secret(r"[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]*"))
    yield from _behind()


def _behind() -> Iterator[Shape]:
    """Secrets recognized by the text before them, which stays."""
    for mark in ("earer ", "EARER "):
        yield Shape(mark, _secret(r"[A-Za-z0-9._~+/\-]{8,}=*"), is_token, has_mark=False)
    yield Shape("asic ", _secret("[A-Za-z0-9+/]{8,}={0,2}"), _is_basic, has_mark=False)
    yield Shape("://", re.compile(r"(?P<secret>[^/\s:@\"'\\]*:[^/\s@\"'\\$<{]+)(?=@)"), has_mark=False)
    yield Shape(":AA", _secret(r"[A-Za-z0-9_\-]{33}(?![\w\-])"), is_random, has_mark=False)
    yield from _in_commands()
    yield Shape("hooks.slack.com/services/", _secret("[A-Za-z0-9/]{20,}"), has_mark=False)
    name = r"(?P<name>(?:[A-Z]+ )*PRIVATE KEY(?: BLOCK)?-----)"
    body = rf"(?P<secret>{_IN_KEY}+?)(?:-----END (?P=name)|(?!{_IN_KEY}))"
    yield Shape("-----BEGIN ", re.compile(name + body), has_mark=False)


def _in_commands() -> Iterator[Shape]:
    """Passwords in short options of well-known commands, in SQL, and in files for logging in."""
    rest, word = r"[^\r\n|;&]{0,200}?(?<= )", r"[^\s\"'\\$<>,()\[\]{}\-][^\s\"'\\]*"
    yield Shape("curl ", _secret(word, rf"{rest}-u ?[\"']?[^\s:\"'$]+:"), is_credential, has_mark=False)
    yield Shape("sshpass -p", _secret(word, " ?[\"']?"), has_mark=False)
    yield Shape("docker login ", _secret(word, rf"{rest}-p [\"']?"), has_mark=False)
    yield Shape("mysql", _secret(word, rf"(?:dump|admin)? {rest}-p[\"']?"), has_mark=False)
    for mark in ("DENTIFIED BY '", "dentified by '"):
        yield Shape(mark, _secret(word), has_mark=False)
    yield Shape(" login ", _secret(word, r"[^\s\\]+(?:\s|\\n)+password "), has_mark=False)


def _secret(pattern: str, before: str = "") -> re.Pattern[str]:
    return re.compile(f"{before}(?P<secret>{pattern})")


# What a text has that holds one of several marks; it is found faster than each of them.
_IN_TOKENS = {sign: re.compile(re.escape(sign) + r"[A-Za-z0-9_\-]{16}") for sign in "-_."}
_IN_COMMANDS = re.compile(" -[pu]")
_ANYTHING = re.compile("")


def _gate(shape: Shape) -> re.Pattern[str]:
    """The first, cheap pattern."""
    if shape.mark in COMMANDS:
        return _IN_COMMANDS
    return _IN_TOKENS.get(shape.mark[-1], _ANYTHING) if shape.has_mark else _ANYTHING


def _by_gate() -> dict[re.Pattern[str], list[tuple[str, Shape]]]:
    grouped: dict[re.Pattern[str], list[tuple[str, Shape]]] = {}
    for shape in _rows():
        grouped.setdefault(_gate(shape), []).append((shape.mark, shape))
    return grouped


_BY_GATE = tuple(_by_gate().items())


def spans_in(text: str) -> list[tuple[int, int]]:
    """Where secrets of any shape stand in a text."""
    return [span for shape in _likely(text) for span in shape.spans(text)]


def has_spans(text: str) -> bool:
    """Whether a secret of any shape stands in a text."""
    likely = _likely(text)
    return bool(likely) and any(True for shape in likely for _ in shape.spans(text))


def _likely(text: str) -> list[Shape]:
    """The shapes whose marks a text has."""
    return [shape for gate, rows in _BY_GATE if gate.search(text) for mark, shape in rows if mark in text]
