"""The methods of strings."""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from unicodedata import normalize

from koi_lang.js import regexes
from koi_lang.js.conversions import integer, number, template, text, truth
from koi_lang.js.errors import RangeErrorValue, TypeErrorValue
from koi_lang.js.iteration import IteratorValue
from koi_lang.js.method_tables import Constructor, MethodTable
from koi_lang.js.number_format import BLANKS, NAN
from koi_lang.js.undefined import Value, undefined

METHODS = MethodTable()
STATICS = MethodTable()
_MAX_LENGTH = 2**29
_HALF = re.compile("[\ud800-\udfff]")


def span(start: Value, end: Value, length: int) -> tuple[int, int]:
    """The arguments of `slice` to positions; negative ones count from the end."""
    first, last = integer(start), integer(end, length)
    first = max(first + length, 0) if first < 0 else min(first, length)
    last = max(last + length, 0) if last < 0 else min(last, length)
    return first, last


def _clamp(position: Value, length: int, default: int = 0) -> int:
    return max(0, min(integer(position, default), length))


@METHODS.add_as("at")
def _at(subject: str, index: Value = 0) -> Value:
    position = integer(index)
    position += len(subject) if position < 0 else 0
    return subject[position] if 0 <= position < len(subject) else undefined


@METHODS.add_as("charAt")
def _char_at(subject: str, index: Value = 0) -> str:
    position = integer(index)
    return subject[position] if 0 <= position < len(subject) else ""


@METHODS.add_as("charCodeAt")
def _char_code_at(subject: str, index: Value = 0) -> Value:
    code = _code_point_at(subject, index)
    return NAN if code is undefined else code


@METHODS.add_as("codePointAt")
def _code_point_at(subject: str, index: Value = 0) -> Value:
    position = integer(index)
    return ord(subject[position]) if 0 <= position < len(subject) else undefined


@METHODS.add_as("concat")
def _concat(subject: str, *others: Value) -> str:
    return subject + template(*others)


def _plain(wanted: Value, method: str) -> str:
    """The argument of a method that takes no regular expression."""
    if isinstance(wanted, regexes.RegExpValue):
        raise TypeErrorValue(f"First argument to String.prototype.{method} must not be a regular expression")
    return text(wanted)


@METHODS.add_as("includes")
def _includes(subject: str, wanted: Value, start: Value = 0) -> bool:
    return subject.find(_plain(wanted, "includes"), _clamp(start, len(subject))) >= 0


@METHODS.add_as("startsWith")
def _starts_with(subject: str, wanted: Value, start: Value = 0) -> bool:
    return subject.startswith(_plain(wanted, "startsWith"), _clamp(start, len(subject)))


@METHODS.add_as("endsWith")
def _ends_with(subject: str, wanted: Value, end: Value = undefined) -> bool:
    return subject[: _clamp(end, len(subject), len(subject))].endswith(_plain(wanted, "endsWith"))


@METHODS.add_as("indexOf")
def _index_of(subject: str, wanted: Value, start: Value = 0) -> int:
    return subject.find(text(wanted), _clamp(start, len(subject)))


@METHODS.add_as("lastIndexOf")
def _last_index_of(subject: str, wanted: Value, start: Value = undefined) -> int:
    part, last = text(wanted), number(start)
    limit = len(subject) if last != last else _clamp(last, len(subject))
    return subject.rfind(part, 0, limit + len(part))


@METHODS.add_as("localeCompare")
def _locale_compare(subject: str, other: Value, locales: Value = undefined, options: Value = undefined) -> int:
    numeric = isinstance(options, dict) and truth(options.get("numeric", False))
    levels = {"base": 1, "accent": 2}.get(options.get("sensitivity", "") if isinstance(options, dict) else "", 3)
    ours, theirs = _collation(subject, numeric)[:levels], _collation(text(other), numeric)[:levels]
    return (ours > theirs) - (ours < theirs)


@lru_cache(maxsize=4096)
def _collation(subject: str, numeric: bool) -> tuple[tuple[object, ...], ...]:
    """Keys by which people sort: letters first, then accents, then small before capital."""
    parts = normalize("NFD", subject)
    letters = [character for character in parts if not 0x300 <= ord(character) < 0x370]
    accents = tuple(character for character in parts if 0x300 <= ord(character) < 0x370)
    base = _with_numbers(letters) if numeric else tuple(_rank(letter) for letter in letters)
    return base, accents, tuple(letter.isupper() for letter in letters)


def _rank(letter: str) -> tuple[int, int, str]:
    """Signs come before digits, digits before letters."""
    return (2 if letter.isalpha() else 1 if letter.isdigit() else 0), 0, letter.lower()


def _with_numbers(letters: list[str]) -> tuple[object, ...]:
    """Ranks in which a run of digits counts as one number."""
    ranks: list[tuple[int, int, str]] = []
    for letter in letters:
        if letter.isdecimal() and ranks and ranks[-1][0] == 1:
            ranks[-1] = (1, ranks[-1][1] * 10 + int(letter), "")
        else:
            ranks.append((1, int(letter), "") if letter.isdecimal() else _rank(letter))
    return tuple(ranks)


@METHODS.add_as("match")
def _match(subject: str, wanted: Value = undefined) -> Value:
    return regexes.match(subject, wanted)


@METHODS.add_as("matchAll")
def _match_all(subject: str, wanted: Value = undefined) -> IteratorValue:
    return IteratorValue("RegExp String Iterator", regexes.match_all(subject, wanted))


@METHODS.add_as("search")
def _search(subject: str, wanted: Value = undefined) -> int:
    return regexes.search(subject, wanted)


@METHODS.add_as("replace")
def _replace(subject: str, wanted: Value, replacement: Value) -> str:
    return regexes.replace(subject, wanted, replacement, every=False)


@METHODS.add_as("replaceAll")
def _replace_all(subject: str, wanted: Value, replacement: Value) -> str:
    return regexes.replace(subject, wanted, replacement, every=True)


@METHODS.add_as("split")
def _split(subject: str, separator: Value = undefined, limit: Value = undefined) -> list[Value]:
    if isinstance(separator, regexes.RegExpValue):
        pieces = regexes.split(subject, separator)
    elif separator is undefined:
        pieces = [subject]
    else:
        mark = text(separator)
        pieces = list(subject.split(mark)) if mark else list(subject)
    return pieces if limit is undefined else pieces[: integer(limit) % 2**32]


@METHODS.add_as("isWellFormed")
def _is_well_formed(subject: str) -> bool:
    return not _HALF.search(subject)


@METHODS.add_as("toWellFormed")
def _to_well_formed(subject: str) -> str:
    return _HALF.sub("\ufffd", subject)


@METHODS.add_as("normalize")
def _normalize(subject: str, form: Value = "NFC") -> str:
    name = "NFC" if form is undefined else text(form)
    if name not in ("NFC", "NFD", "NFKC", "NFKD"):
        raise RangeErrorValue("The normalization form should be one of NFC, NFD, NFKC, NFKD.")
    return normalize(name, subject)  # type: ignore[arg-type]


def _filler(subject: str, length: Value, fill: Value) -> str:
    """What pads a text to a length."""
    filler = " " if fill is undefined else text(fill)
    missing = integer(length) - len(subject)
    if missing <= 0 or not filler:
        return ""
    return _repeat(filler, missing // len(filler) + 1)[:missing]


@METHODS.add_as("padStart")
def _pad_start(subject: str, length: Value, fill: Value = undefined) -> str:
    return _filler(subject, length, fill) + subject


@METHODS.add_as("padEnd")
def _pad_end(subject: str, length: Value, fill: Value = undefined) -> str:
    return subject + _filler(subject, length, fill)


@METHODS.add_as("repeat")
def _repeat(subject: str, count: Value) -> str:
    times = integer(count)
    if times < 0 or times == 2**53:
        raise RangeErrorValue(f"Invalid count value: {text(count)}")
    if times * len(subject) > _MAX_LENGTH:
        raise RangeErrorValue("Invalid string length")
    return subject * times


@METHODS.add_as("slice")
def _slice(subject: str, start: Value = 0, end: Value = undefined) -> str:
    first, last = span(start, end, len(subject))
    return subject[first:last]


@METHODS.add_as("substring")
def _substring(subject: str, start: Value = 0, end: Value = undefined) -> str:
    first, last = sorted((_clamp(start, len(subject)), _clamp(end, len(subject), len(subject))))
    return subject[first:last]


@METHODS.add_as("substr")
def _substr(subject: str, start: Value = 0, length: Value = undefined) -> str:
    first, _ = span(start, undefined, len(subject))
    return subject[first : first + max(0, integer(length, len(subject)))]


@METHODS.add_as("toLowerCase", "toLocaleLowerCase")
def _to_lower_case(subject: str) -> str:
    return subject.lower()


@METHODS.add_as("toUpperCase", "toLocaleUpperCase")
def _to_upper_case(subject: str) -> str:
    return subject.upper()


@METHODS.add_as("trim")
def _trim(subject: str) -> str:
    return subject.strip(BLANKS)


@METHODS.add_as("trimStart", "trimLeft")
def _trim_start(subject: str) -> str:
    return subject.lstrip(BLANKS)


@METHODS.add_as("trimEnd", "trimRight")
def _trim_end(subject: str) -> str:
    return subject.rstrip(BLANKS)


@METHODS.add_as("toString", "valueOf")
def _to_string(subject: str) -> str:
    return subject


@STATICS.add_as("fromCharCode")
def _from_char_code(*codes: Value) -> str:
    """Units of UTF-16, whose halves are joined."""
    units = "".join([chr(integer(code) % 0x10000) for code in codes])
    return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


@STATICS.add_as("fromCodePoint")
def _from_code_point(*codes: Value) -> str:
    for code in codes:
        n = number(code)
        if not (0 <= n <= sys.maxunicode and n == int(n)):
            raise RangeErrorValue(f"Invalid code point {text(code)}")
    return "".join(chr(integer(code)) for code in codes)


def _convert(*values: Value) -> str:
    return text(values[0]) if values else ""


STRING = Constructor("String", _convert, _convert, lambda value: False, STATICS)
