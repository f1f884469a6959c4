"""Keeping secrets out of what is shown or written: values with telling names, and what looks like a token."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from koi_lang.secret_fields import (
    HIDDEN,
    Change,
    changes_in,
    has_telling_name,
    without_named_values,
    without_option_values,
)
from koi_lang.secret_names import is_secret_variable, secrecy_of
from koi_lang.secret_shapes import spans_in

SHORTEST = 8
NOTHING: Mapping[str, Any] = {}


def redactor(*environments: Mapping[str, str], fields: Mapping[str, Any] = NOTHING) -> Callable[[str], str]:
    """A function that replaces secrets in a text.

    Args:
        environments: variables; the values of those with telling names are secrets wherever they stand, if they are at
            least 8 characters long: shorter ones are too common.
        fields: the same of a payload, of which fewer names are telling.
    """
    values = [value for variables in environments for name, value in variables.items() if is_secret_variable(name)]
    values += [str(value) for name, value in fields.items() if secrecy_of(name)]
    known = _Known(value for value in values if len(value) >= SHORTEST)

    def redact(text: str) -> str:
        hidden = known.hidden_in(text)
        changes = {*((start, end, HIDDEN) for start, end in spans_in(hidden)), *changes_in(hidden)}
        shown = _changed(hidden, sorted(changes)) if changes else hidden
        return shown if shown == text else _still_json(text, shown, redact)

    return redact


def _still_json(text: str, shown: str, redact: Callable[[str], str]) -> str:
    """What is shown of a text; where the text is JSON, its values decide what is hidden, and it stays JSON."""
    if not text.lstrip().startswith(("{", "[", '"')):
        return shown
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return shown
    by_value = _without_secrets(value, redact)
    try:
        return shown if json.loads(shown) == by_value else json.dumps(by_value)
    except (ValueError, RecursionError):
        return json.dumps(by_value)


def _without_secrets(value: Any, redact: Callable[[str], str]) -> Any:
    """A value that was read from JSON, without its secrets."""
    if isinstance(value, dict):
        hidden = without_named_values(value)
        return {redact(name): _without_secrets(item, redact) for name, item in hidden.items()}
    if isinstance(value, list):
        return [_without_secrets(item, redact) for item in without_option_values(value)]
    if value is None or isinstance(value, bool):
        return value
    written = str(value)
    shown = redact(written)
    return value if shown == written else shown


class _Known:
    """Values that are secrets, in every form in which they may stand in a text."""

    def __init__(self, values: Iterable[str]) -> None:
        self._forms = sorted({form for value in values for form in _forms(value)}, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(_as_pattern, self._forms))) if self._forms else None

    def hidden_in(self, text: str) -> str:
        """A text without them."""
        if self._pattern is None or not any(form in text for form in self._forms):
            return text
        return self._pattern.sub(HIDDEN, text)


def _forms(value: str) -> Iterator[str]:
    """A value as it is, and as it stands in JSON texts and in addresses."""
    yield value
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    yield quote(value, safe="")


def _as_pattern(form: str) -> str:
    """What finds a form of a value; one that is a common word counts as a whole word only."""
    escaped = re.escape(form)
    return rf"\b{escaped}\b" if form.isalpha() and form.islower() else escaped


def _changed(text: str, changes: Iterable[Change]) -> str:
    """A text with pieces of it replaced; of two that overlap the first one counts, as long as both."""
    pieces: list[str] = []
    done = 0
    for start, end, new in changes:
        if start >= done:
            pieces += [text[done:start], new]
        done = max(done, end)
    return "".join([*pieces, text[done:]]) if pieces else text


__all__ = ["HIDDEN", "has_telling_name", "redactor", "without_named_values", "without_option_values"]
