"""Redaction of secrets from shown and written texts: values with telling names, and texts like tokens."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any
from urllib.parse import quote, unquote

from koi_lang.redaction.fields import (
    HIDDEN,
    Change,
    changes_in,
    changes_in_source,
    has_telling_name,
    without_named_values,
    without_option_values,
)
from koi_lang.redaction.names import is_secret_variable, secrecy_of
from koi_lang.redaction.shapes import has_spans, is_credential, is_drawn, spans_in

MIN_CHARS, MAX_FOUND_CHARS = 8, 512
# How many secrets are remembered of those that were found by their names, and of one text.
MAX_FOUND, MAX_AT_ONCE = 1000, 100
NOTHING: Mapping[str, Any] = {}
# A field of a connection string, of a query, or of options, and the user of an address without a password.
_FIELD = re.compile(r"(?<![\w-])(?P<name>\w+)=(?=[^\s;&$<{])")
_USER = re.compile(r"://(?P<name>[^/\s:@]+)@")
_NOT_ALONE = re.compile(r"[\s\"'`\\]")


class Secrets:
    """Values that are secrets, in every form in which they may stand in a text; more may come up later.

    Args:
        values: those that are known from the beginning; shorter ones than 8 characters are too common to be looked for.
        most: how many are looked for; the latest count.
    """

    def __init__(self, values: Iterable[str] = (), most: int | None = None) -> None:
        self._values: dict[str, None] = {}
        self._forms: list[tuple[str, re.Pattern[str] | None]] = []
        self._most = most
        self.count = 0
        for value in values:
            self.add(value)

    def add(self, value: str) -> None:
        """Look for a value from now on."""
        if len(value) < MIN_CHARS or value in self._values:
            return
        if self._most is not None and len(self._values) >= self._most:
            oldest = next(iter(self._values))
            del self._values[oldest]
            gone = set(_forms(oldest))
            self._forms = [row for row in self._forms if row[0] not in gone]
        self._values[value] = None
        self._forms += [(form, _whole_word(form)) for form in {*_forms(value)} if form not in HIDDEN]
        self._forms.sort(key=lambda row: len(row[0]), reverse=True)
        self.count += 1

    def hidden_in(self, text: str) -> str:
        """A text without them."""
        for form, word in self._forms:
            if form in text:
                text = text.replace(form, HIDDEN) if word is None else word.sub(HIDDEN, text)
        return text

    def is_in(self, text: str) -> bool:
        """Whether there is something to hide."""
        return any(form in text and (word is None or word.search(text)) for form, word in self._forms)


class Redactor:
    """Replaces secrets in texts and values. A value found by its name is replaced without it from then on, too.

    Args:
        known: secrets wherever they stand.
        found: gets what is found by its name, and stands for nothing but itself: words are not remembered.
    """

    def __init__(self, known: Sequence[Secrets], found: Secrets) -> None:
        self._known, self._found = (*known, found), found

    @property
    def count(self) -> int:
        """The number of known secrets; a text redacted before may contain later ones."""
        return self._found.count

    def __call__(self, text: str) -> str:
        """A text without its secrets."""
        hidden = text
        for secrets in self._known:
            hidden = secrets.hidden_in(hidden)
        changes = {*((start, end, HIDDEN) for start, end in spans_in(hidden)), *changes_in(hidden)}
        shown = _apply_changes(hidden, sorted(changes)) if changes else hidden
        if changes and self._learn(hidden[start:end] for start, end, _ in changes):
            shown = self._found.hidden_in(shown)
        return shown if shown == text else _still_json(text, shown, self)

    def source(self, text: str) -> str:
        """The text of a program without its secrets: also without those that a run of it hides by their names."""
        changes = sorted({*changes_in_source(text)})
        self._learn(text[start:end] for start, end, _ in changes)
        return self(_apply_changes(text, changes))

    def is_clean(self, text: str) -> bool:
        """Whether a text has neither secrets in it nor names of any, so that it is shown as it is, by value, too."""
        for known in self._known:
            if known.is_in(text):
                return False
        return not (has_telling_name(text) or has_spans(text))

    def fields(self, fields: Mapping[Any, Any]) -> dict[Any, Any]:
        """The fields of an object as they may be shown by their names."""
        shown = without_named_values(fields)
        self._learn(text for name in fields if shown[name] is not fields[name] for text in _texts(fields[name]))
        return shown

    def items(self, items: Sequence[Any]) -> list[Any]:
        """The redacted items of a list: the item behind an option is its value."""
        shown = without_option_values(items)
        self._learn(item for item, seen in zip(items, shown, strict=True) if seen is not item)
        return shown

    def _learn(self, texts: Iterable[str]) -> bool:
        """Look for texts from now on, as far as they stand for nothing but themselves; whether there are new ones."""
        before = self._found.count
        for text in islice(texts, MAX_AT_ONCE):
            bare = text.rpartition(":")[2].rstrip(".,:?") if HIDDEN not in text else ""
            for value in {bare, unquote(bare)}:
                if _is_distinctive(value):
                    self._found.add(value)
        return self._found.count > before


def _is_distinctive(value: str) -> bool:
    """Whether a value was drawn and not chosen among words, so that it is the same secret wherever it stands."""
    return MIN_CHARS <= len(value) <= MAX_FOUND_CHARS and not _NOT_ALONE.search(value) and is_drawn(value)


def _texts(value: Any) -> Iterator[str]:
    """The texts of a value that was hidden: itself, or those in a flat list or object."""
    items = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else (value,)
    return (item for item in items if isinstance(item, str))


def redactor(
    *environments: Mapping[str, str],
    fields: Mapping[str, Any] = NOTHING,
    known: Sequence[Secrets] = (),
    found: Secrets | None = None,
) -> Redactor:
    """The redactor of secrets.

    Args:
        environments: variables; the values of those with telling names are secrets wherever they stand, if they are at
            least 8 characters long: shorter ones are too common. So are passwords in addresses, unless they are words.
        fields: the same of a payload, of which fewer names are telling.
        known: further secrets.
        found: those that were found by their names, where several share them.
    """
    variables = [pair for environment in environments for pair in environment.items()]
    values = [value for name, value in variables if is_secret_variable(name)]
    values += [password for _, value in variables for password in _passwords_in(value) if _is_distinctive(password)]
    values += [str(value) for name, value in fields.items() if secrecy_of(name)]
    return Redactor([Secrets(values), *known], Secrets(most=MAX_FOUND) if found is None else found)


def is_secret(name: str, value: str) -> bool:
    """Whether a variable of the environment must not reach programs that a model starts.

    A telling name is enough, and so is a value that holds a key, such as an address with a password.
    """
    return is_secret_variable(name) or _holds_secret(value)


@lru_cache(1024)
def _holds_secret(value: str) -> bool:
    fields = _FIELD.finditer(value)
    users = _USER.finditer(value)
    return (
        redactor()(value) != value
        or any(secrecy_of(field["name"]) in ("always", "text") or field["name"].lower() == "sig" for field in fields)
        or any(is_credential(user["name"]) for user in users)
    )


@lru_cache(1024)
def _passwords_in(value: str) -> tuple[str, ...]:
    """The passwords in addresses, as they stand there and without their signs."""
    passwords = [value[start:end].rpartition(":")[2] for start, end in spans_in(value)] if "://" in value else []
    return tuple({*passwords, *map(unquote, passwords)})


def _still_json(text: str, shown: str, redact: Redactor) -> str:
    """A redacted text; JSON is redacted by its values, and stays JSON."""
    if not text.lstrip().startswith(("{", "[", '"')):
        return shown
    try:
        by_value = _without_secrets(json.loads(text), redact)
    except (ValueError, RecursionError):
        return shown
    try:
        return shown if json.loads(shown) == by_value else json.dumps(by_value)
    except (ValueError, RecursionError):
        return json.dumps(by_value)


def _without_secrets(value: Any, redact: Redactor) -> Any:
    """A value that was read from JSON, without its secrets."""
    if isinstance(value, dict):
        hidden = redact.fields(value)
        return {redact(name): _without_secrets(item, redact) for name, item in hidden.items()}
    if isinstance(value, list):
        return [_without_secrets(item, redact) for item in redact.items(value)]
    if value is None or isinstance(value, bool):
        return value
    written = str(value)
    shown = redact(written)
    return value if shown == written else shown


def _forms(value: str) -> Iterator[str]:
    """A value as it is, and as it stands in JSON texts and in addresses."""
    yield value
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    yield quote(value, safe="")


def _whole_word(form: str) -> re.Pattern[str] | None:
    """A pattern for a value that is a common word, and only matches as a whole word; None for others."""
    return re.compile(rf"\b{form}\b") if form.isalpha() and form.islower() else None


def _apply_changes(text: str, changes: Iterable[Change]) -> str:
    """A text with pieces of it replaced; of two that overlap the first one counts, as long as both."""
    pieces: list[str] = []
    done = 0
    for start, end, new in changes:
        if start >= done:
            pieces += [text[done:start], new]
        done = max(done, end)
    return "".join([*pieces, text[done:]]) if pieces else text


__all__ = ["HIDDEN", "Redactor", "Secrets", "is_secret", "redactor"]
