"""Secrets that are known by the name they have: in objects, and in texts as JSON, options, headers and assignments."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from string import ascii_letters, digits
from typing import Any, TypeAlias

from koi_lang.redaction.names import Secrecy, secrecy_of, words_of
from koi_lang.redaction.shapes import is_credential, is_random, is_token

HIDDEN = "[redacted]"
# Where something is to be replaced in a text, and by what.
Change: TypeAlias = tuple[int, int, str]
# Every name of a secret contains one of these.
STEMS = ("pass", "pwd", "secret", "token", "key", "credential", "auth", "cookie", "jwt", "bearer")
# What is hardly ever a part of such a name, and stands in most events.
COUNTED = "tokens"
MAX_NAME_CHARS = 64
OF_NAMES = frozenset(ascii_letters + digits + "_-.")
# What is written where a secret would stand.
PLACEHOLDERS = frozenset("none null true false undefined required optional string str text bytes boolean".split())
# What stands for something that is put in later, or for nothing.
_ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z0-9_.\-]{3,64})[:=][^\s\"'`\\,;&<>(){}\[\]|#:=]")
_IS_PUT_IN = re.compile(r"\$[{(]|\{|<|%|[^A-Za-z0-9]*\Z")
# What stands behind a quote that ends a text, and not behind one that begins a secret.
NO_BEGINNING = frozenset("),]}:\\")
MAX_TEXTS = 1000
# What is looked at of a value without quotes to tell whether it is a secret.
MAX_CHECKED_CHARS, MAX_BARE_CHARS = 64, 4096
# What follows an option in a sentence about it, and is no value of it.
IN_SENTENCES = frozenset(
    "a an and are argument as be by can flag for from given if in instead is it its may must no not of on option or "
    "parameter setting should switch that the then this to use used value via was when which will with "
    "angeben das dem den der die ein eine für geben gibt ist kann mit muss oder setzt sind und wird".split()
)
PLURALS = frozenset("passwords passphrases secrets credentials".split())
QUOTES = frozenset("\"'")
WHOLE_LINES = frozenset("authorization cookie cookies".split())
# Keys of a JSON Schema, in which a field of a telling name is described and not given.
DESCRIBING = frozenset(("type", "$ref", "description", "anyOf", "enum", "const", "properties", "items"))
_ASCII = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
# A text in quotes: as it is, inside of JSON, and inside of JSON inside of JSON.
_ENDED = (
    r"\"(?P<double>(?:[^\"\\]|\\.)*)\"|'(?P<single>(?:[^'\\]|\\.)*)'"
    r"|\\\"(?P<inner>(?:[^\"\\]|\\\\(?:\\.|[^\\]))*)\\\"|(?P<quote>\\\\\\+[\"'])(?P<deep>[^\"'\\]*)(?P=quote)"
)
_WHOLE = re.compile(_ENDED, re.DOTALL)
_QUOTED = re.compile(rf"{_ENDED}|\\*[\"'](?P<unended>[^\"'\\]+)", re.DOTALL)
_BETWEEN = re.compile(r"[\s,:\w.+\-]*")
_BARE = re.compile(r"(?!#)[^\s\"'`\\,;&<>(){}\[\]|]+")
_BEFORE_VARIABLES = frozenset(("", " ", "\n", "\t", '"', "'", ";"))
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?![\w.])")
_HEADER = re.compile(
    r"(?:(?:basic|bearer|token|negotiate|apikey)[ ]+(?P<token>[^\s\"'\\,;`]+)"
    r"|(?:digest|aws4-hmac-sha256)[ ]+(?P<fields>[^\r\n\"'\\]+)"
    r"|(?P<cookies>(?:[\w.\-]+=[^\s;\"'\\]{,5};[ ]*){,20}[\w.\-]+=[^\s;=\"'\\]{6,}(?:;[^\r\n\"'\\]*)?))",
    re.IGNORECASE,
)
# Blanks, also as JSON writes them.
_BLANK = r"(?:[ \t]|\\t)*"
_LINE_BEGINS = re.compile(rf"(?:\A|[\r\n\"']|(?<!\\)\\[nr]){_BLANK}(?:[-<>] )?\Z")
# What stands in front of a name that begins a line; `n`, `r` and `t` are line breaks and blanks as JSON writes them.
_BEFORE_LINES = frozenset(("", *"\r\n\t \"'nrt"))
_ONE_WORD = re.compile(rf"(?!#)[^\s\"'`\\,;&<>(){{}}\[\]|]+{_BLANK}(?:\Z|[\r\n\"']|\\[nr\"])")
_CLOSED = re.compile(r"\Z|[\s,;)}\]\\\"'>]|/>")
_OPENING = re.compile(r"\\*[\"']\Z")
_OF_KEY = re.compile(r"(?P<quote>\\*[\"'])\]?\s*[:=](?!>)\s*")
# What stands between the name and the value of a setting that is an object, and between two items of a list.
_OF_NAMED = re.compile(r"(?P<quote>\\*[\"'])\s*,\s*(?P=quote)value(?P=quote)\s*:\s*(?=(?P=quote))")
_NEXT_ITEM = re.compile(r"(?P<quote>\\*[\"'])\s*,\s*(?=(?P=quote))")
_ARROW = re.compile(r"[\"']?\s*=>\s*(?=[\"'])")
_ELEMENT = re.compile(r">(?P<inside>[^<>\s]+)</")
_SAID = re.compile(r" (?:is|ist):? ")
_WORD_BEFORE = re.compile(r"[A-Za-z]+ \Z")
_SETTING = re.compile(r"[A-Za-z_]+=[^=]")
_SIGN = re.compile(rf"{_BLANK}(?P<sign>[:=])(?![:=>]){_BLANK}")
_COLON = re.compile(r"\s*:")
# In programs: a literal, what is given with a telling name, and the declaration of a variable or a field.
_LITERAL = r"(?:\"(?P<double>(?:[^\"\\\n]|\\.)*)\"|'(?P<single>(?:[^'\\\n]|\\.)*)'|`(?P<back>(?:[^`\\\n]|\\.)*)`)"
_GIVEN = re.compile(
    r"(?:[(\[]|\b(?P<is_field>key|name)[\"']?\s{0,9}:)\s{0,99}(?P<quote>[\"'`])(?P<name>[^\"'`\\\n]{3,64})(?P=quote)"
    r"\s{0,9},\s{0,99}(?P<is_value>[\"']?value[\"']?\s{0,9}:\s{0,9})?"
    rf"(?:(?P<variable>[A-Za-z_$][\w$]{{,63}})\s{{0,99}}[,)\]}}]|{_LITERAL})"
)
_DECLARED = re.compile(
    r"(?<![\w$.])(?P<name>[A-Za-z_$][\w$]{,63})\??(?:\s{0,9}:\s{0,9}[\w<>\[\]|&. ]{1,80})?\s{0,9}=\s{0,99}" + _LITERAL
)
_SET = re.compile(r"(?:\b|_)(?:set|put)\s{0,9}\Z", re.IGNORECASE)
MAX_CALLEE_CHARS = 20


def without_secret(name: str, value: Any) -> Any:
    """A redacted value of an object, by its name there; one without a secret is returned unchanged."""
    secrecy = secrecy_of(name)
    if not secrecy:
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return HIDDEN if secrecy == "always" else value
    if isinstance(value, (list, tuple)) and not any(isinstance(item, (list, tuple, dict)) for item in value):
        return [_without_secret_text(name, item, secrecy) for item in value]
    if isinstance(value, dict) and _is_plural(name) and not DESCRIBING.intersection(value):
        is_flat = not any(isinstance(item, (list, tuple, dict)) for item in value.values())
        return {key: _without_secret_text(name, item, secrecy) for key, item in value.items()} if is_flat else value
    return _without_secret_text(name, value, secrecy)


def without_named_values(fields: Mapping[Any, Any]) -> dict[Any, Any]:
    """The fields of an object as they may be shown: each by its name, `value` also by the `name` or `key` beside it."""
    shown = {name: without_secret(str(name), value) for name, value in fields.items()}
    name, value = fields.get("name", fields.get("key")), fields.get("value")
    if isinstance(name, str) and isinstance(value, str):
        shown["value"] = without_secret(name, value)
    return shown


def without_option_values(items: Sequence[Any]) -> list[Any]:
    """The redacted items of a list: the item behind an option such as `--password` is its value."""
    shown = list(items)
    for n, item in enumerate(items[:-1]):
        value = items[n + 1]
        if isinstance(item, str) and item.startswith("--") and isinstance(value, str):
            secrecy = secrecy_of(item) if len(item) <= MAX_NAME_CHARS and not _SETTING.search(item) else ""
            if secrecy and _is_of_option(value) and _is_secret(item, value, secrecy):
                shown[n + 1] = HIDDEN
    return shown


def _without_secret_text(name: str, value: Any, secrecy: Secrecy) -> Any:
    return HIDDEN if isinstance(value, str) and _is_secret(name, value, secrecy) else value


def changes_in(text: str) -> Iterator[Change]:
    """The replacements in a text because of the names before its values."""
    for start, end, name, secrecy in _telling_names(text):
        yield from _Named(text, start, end, name, secrecy).changes()


def changes_in_source(text: str) -> Iterator[Change]:
    """The replacements in a program: literals that a run hides, too, because of the names they are given with there.

    These are the values of `registry_set("token", "…")`, of `{ key: "token", value: "…" }`, and of declarations with a
    type; also where a variable stands in place of the literal.
    """
    names: dict[str, str] = {}
    for found in _GIVEN.finditer(text):
        name, is_sure = found["name"], found["is_value"] is not None
        if is_sure != (found["is_field"] is not None) or not secrecy_of(name):
            continue
        is_sure = is_sure or _SET.search(text, max(0, found.start() - MAX_CALLEE_CHARS), found.start()) is not None
        if found["variable"] is not None:
            names |= {found["variable"]: name} if is_sure else {}
        elif is_sure or is_random(_inside(found)[0]):
            yield from _hidden_literal(found, name)
    for found in _DECLARED.finditer(text):
        yield from _hidden_literal(found, names.get(found["name"], found["name"]))


def _hidden_literal(found: re.Match[str], name: str) -> Iterator[Change]:
    """The replacement of the literal at the end of a match, where it is a secret by a name."""
    inside, start = _inside(found)
    if (secrecy := secrecy_of(name)) and _is_secret(name, inside, secrecy):
        yield start, start + len(inside), HIDDEN


def has_telling_name(text: str) -> bool:
    """Whether a text contains the name of a secret."""
    lower = text.lower()
    for stem in STEMS:
        if stem in lower:
            break
    else:
        if len(lower) == len(text):
            return False  # most texts hold no part of such a name
    return any(True for _ in _telling_names(text))


def _telling_names(text: str) -> Iterator[tuple[int, int, str, Secrecy]]:
    """Where names of secrets stand, and which."""
    for start, end in _names(text):
        name = text[start:end].strip("-.")
        secrecy = secrecy_of(name)
        if not secrecy and name in ("key", "keys") and (before := _WORD_BEFORE.search(text, max(0, start - 20), start)):
            secrecy = secrecy_of(f"{before[0]}{name}")
        if secrecy:
            yield start, end, name, secrecy


def _names(text: str) -> Iterator[tuple[int, int]]:
    """Where names stand that may be those of secrets."""
    lower = text.lower()
    if len(lower) != len(text):
        lower = text.translate(_ASCII)
    seen = set()
    for stem in STEMS:
        at = lower.find(stem)
        while at >= 0:
            if lower.startswith(COUNTED, at):
                at = lower.find(stem, at + len(COUNTED))
                continue
            start, end = _extent(text, at, at + len(stem))
            if end - start <= MAX_NAME_CHARS and start not in seen:
                seen.add(start)
                yield start, end
            at = lower.find(stem, max(end, at + 1))


def _extent(text: str, start: int, end: int) -> tuple[int, int]:
    """The whole name around a part of it; too long ones are cut off."""
    least, most = max(0, start - MAX_NAME_CHARS), min(len(text), end + MAX_NAME_CHARS)
    while start > least and text[start - 1] in OF_NAMES:
        start -= 1
    if _is_escape(text, start):
        start += 1
    while end < most and text[end] in OF_NAMES:
        end += 1
    return start, end


def _is_escape(text: str, at: int) -> bool:
    """Whether a letter belongs to a line break as JSON writes it."""
    return text[at : at + 1] in ("n", "r", "t") and text[at - 1 : at] == "\\" and text[at - 2 : at - 1] != "\\"


def _is_plural(name: str) -> bool:
    return words_of(name)[-1] in PLURALS


def _is_secret(name: str, value: str, secrecy: Secrecy) -> bool:
    """Whether a text with a telling name is a secret, and not empty, or a word that stands for one."""
    if not value.strip() or value == HIDDEN:
        return False
    if secrecy == "credential":
        return is_token(value)
    if words_of(name)[-1] == "pwd" and value[0] in "/~.":
        return False
    is_name = value.isupper() and value.isidentifier() and secrecy_of(value) != ""
    return not is_name and value.lower() not in PLACEHOLDERS and not _IS_PUT_IN.match(value)


def _is_of_option(value: str) -> bool:
    """Whether a word behind an option is its value, and no next option, name of a value, or part of a sentence."""
    word = value.rstrip(".,:!?")
    if not word or value.startswith(("-", "$", "<", "{")) or word.lower() in IN_SENTENCES:
        return False
    is_placeholder = word.isupper() and word.replace("_", "").replace("-", "").isalpha()
    return not is_placeholder and (_SETTING.match(value) is None or is_random(value))


def _inside(found: re.Match[str]) -> tuple[str, int]:
    """The quoted content, and its start."""
    name = found.lastgroup or ""
    return found[name], found.start(name)


def _flat_texts(text: str, at: int) -> tuple[list[re.Match[str]], int]:
    """The texts in quotes with only numbers, words and signs between them, and where that ends."""
    found: list[re.Match[str]] = []
    while between := _BETWEEN.match(text, at):
        quoted = _WHOLE.match(text, between.end()) if len(found) < MAX_TEXTS else None
        if quoted is None:
            return found, between.end()
        found.append(quoted)
        at = quoted.end()
    raise AssertionError("a pattern that fits nothing did not fit")


class _Named:
    """A telling name in a text, and the text behind it."""

    def __init__(self, text: str, start: int, end: int, name: str, secrecy: Secrecy) -> None:
        self.text = text
        self.start = start
        self.end = end
        self.name = name
        self.secrecy = secrecy
        self.before = "\n" if _is_escape(text, start - 1) else text[start - 1 : start]
        self.quote = ""
        if self.before in QUOTES and (quote := _OPENING.search(text, max(0, start - MAX_NAME_CHARS), start)):
            self.quote = quote[0]
        self.is_option = text.startswith("--", start)

    def changes(self) -> Iterator[Change]:
        """The replacements."""
        if self.quote and (key := _OF_KEY.match(self.text, self.end)) and key["quote"] == self.quote:
            yield from self._of_key(key.end())
        elif self.quote and (value := _OF_NAMED.match(self.text, self.end)) and value["quote"] == self.quote:
            yield from self._of_key(value.end())
        elif self.quote and self.is_option and (item := _NEXT_ITEM.match(self.text, self.end)):
            yield from self._find_quoted(item.end(), _is_of_option)
        elif sign := _SIGN.match(self.text, self.end):
            yield from self._find_assigned(sign)
        elif arrow := _ARROW.match(self.text, self.end):
            yield from self._find_quoted(arrow.end(), is_credential)
        elif self.before == "<" and (element := _ELEMENT.match(self.text, self.end)):
            if _is_secret(self.name, element["inside"], self.secrecy):
                yield *element.span("inside"), HIDDEN
        elif self.text.startswith(" ", self.end):
            yield from self._behind_blank()

    def _behind_blank(self) -> Iterator[Change]:
        """The value of an option, of an SQL statement or sentence, or of a variable."""
        at = self.end + 1
        if self.is_option:
            yield from self._check_bare(at, _is_of_option)
        elif self.text[at : at + 1] in QUOTES:
            yield from self._find_quoted(at, is_credential)
        elif said := _SAID.match(self.text, self.end):
            yield from self._check_bare(said.end(), is_random)
        elif self.name.isupper():
            yield from self._check_bare(at, is_random)

    def _find_quoted(self, at: int, is_meant: Callable[[str], bool]) -> Iterator[Change]:
        """A text in quotes, if it is meant; a quote that ends the text of which the name is a part begins none."""
        found = _WHOLE.match(self.text, at)
        inside = _inside(found)[0] if found else ""
        if found and "\n" not in inside and inside[:1] not in (*NO_BEGINNING, " ") and is_meant(inside):
            yield from self._hidden(found)

    def _of_key(self, at: int) -> Iterator[Change]:
        """The value of a key in quotes: a text, a number, or a flat list or object of texts."""
        if number := _NUMBER.match(self.text, at):
            if self.secrecy == "always":
                yield number.start(), number.end(), f"{self.quote}{HIDDEN}{self.quote}"
        elif self.text[at : at + 1] in ("[", "{"):
            for found in self._texts_in(at):
                yield from self._hidden(found)
        elif self.text.startswith("\\" * (len(self.quote) - 1), at) and (quoted := _QUOTED.match(self.text, at)):
            yield from self._hidden(quoted)

    def _texts_in(self, at: int) -> list[re.Match[str]]:
        """The texts in a list, or in an object of a plural name, without further lists and objects in it."""
        is_object = self.text[at] == "{"
        found, end = _flat_texts(self.text, at + 1)
        if self.text[end : end + 1] != ("}" if is_object else "]"):
            return []
        if not is_object:
            return found
        keys = [text for text in found if _COLON.match(self.text, text.end())]
        is_described = any(_inside(key)[0] in DESCRIBING for key in keys)
        return [text for text in found if text not in keys] if _is_plural(self.name) and not is_described else []

    def _hidden(self, found: re.Match[str]) -> Iterator[Change]:
        """The inside of a text in quotes."""
        inside, start = _inside(found)
        is_behind = found.lastgroup == "unended" and inside[0] in NO_BEGINNING
        if not is_behind and _is_secret(self.name, inside, self.secrecy):
            yield start, start + len(inside), HIDDEN

    def _find_assigned(self, sign: re.Match[str]) -> Iterator[Change]:
        """The value behind `=` or `:`, without quotes around the name."""
        at = sign.end()
        if self.text[at : at + 1] in ("'", '"', "\\"):
            yield from self._in_line(at)
        elif words_of(self.name)[-1] in WHOLE_LINES and sign["sign"] == ":":
            yield from self._in_header(at)
        elif self._says_that(sign):
            is_alone = sign["sign"] == ":"
            yield from self._check_bare(at, self._is_given_alone if is_alone else self._is_given)
        else:
            is_sure = self.secrecy == "always" or sign[0] == sign["sign"] or self._has_line(sign)
            yield from self._check_bare(at, is_credential if is_sure else is_random)

    def _in_header(self, at: int) -> Iterator[Change]:
        """The credentials behind the name of a scheme in a header, or its cookies."""
        found = _HEADER.match(self.text, at)
        name = "" if found is None else next(name for name, value in found.groupdict().items() if value is not None)
        if found is not None and (name != "token" or is_token(found[name]) or self._is_last(found)):
            yield found.start(name), found.end(name), HIDDEN

    def _is_last(self, token: re.Match[str]) -> bool:
        """Whether a text or a line ends behind a token that may be a word."""
        word, after = token["token"], self.text[token.end() : token.end() + 1]
        return after in ("", "\r", "\n", *QUOTES) and _is_of_option(word) and not secrecy_of(word)

    def _in_line(self, at: int) -> Iterator[Change]:
        """A text in quotes on the same line; a quote that ends the text of which the name is a part begins none."""
        found = _QUOTED.match(self.text, at)
        if found is None or "\n" in found[0] or not _CLOSED.match(self.text, found.end()):
            return
        if _inside(found)[0][:1] not in (*NO_BEGINNING, " "):
            yield from self._hidden(found)

    def _says_that(self, sign: re.Match[str]) -> bool:
        """Whether a secret follows for sure: in the query of an address, an option, a variable, a line of its own."""
        if sign[0] == "=" and self.secrecy != "credential":
            return (
                self.before in ("?", "&")
                or self.is_option
                or (self.name.isupper() and self.before in _BEFORE_VARIABLES)
                or (self.secrecy == "always" and self._has_line(sign))
            )
        return self.secrecy == "always" and sign["sign"] == ":" and self._has_line(sign)

    def _has_line(self, sign: re.Match[str]) -> bool:
        """Whether there is nothing on the line but the name and one word."""
        if self.before not in _BEFORE_LINES or not _ONE_WORD.match(self.text, sign.end()):
            return False
        return _LINE_BEGINS.search(self.text, max(0, self.start - MAX_NAME_CHARS), self.start) is not None

    def _is_given(self, value: str) -> bool:
        return value.lower() not in PLACEHOLDERS and words_of(value) != words_of(self.name)

    def _is_given_alone(self, value: str) -> bool:
        is_type = value.isalpha() and not value.islower() and not is_random(value)
        return not is_type and self._is_given(value)

    def _check_bare(self, at: int, is_meant: Callable[[str], bool]) -> Iterator[Change]:
        if self.text[at : at + 1] in ("'", '"', "\\"):
            yield from self._in_line(at)
            return
        if self.secrecy == "credential" and (inner := _ASSIGNMENT.match(self.text, at)) and secrecy_of(inner["name"]):
            return  # the name that follows tells more
        found = _BARE.match(self.text, at, at + MAX_CHECKED_CHARS)
        is_call = found is not None and self.text[found.end() : found.end() + 1] in ("(", "[")
        value = "" if found is None or is_call or found[0].startswith(("-", "$", HIDDEN)) else found[0]
        if value and is_meant(value) and _is_secret(self.name, value, self.secrecy):
            whole = _BARE.match(self.text, at, at + MAX_BARE_CHARS)
            yield at, at if whole is None else whole.end(), HIDDEN
