"""Keeping secrets out of what is shown or written: values of secret variables, and what looks like a token."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping

from koi_lang.settings import is_secret

# The shapes that providers and forges give their keys, and credentials in headers and addresses.
TOKEN = re.compile(
    r"\b(?:sk|pk|rk|xai|gsk|key|glpat|xox[a-z])-[A-Za-z0-9_\-]{16,}|\bgh[pousr]_[A-Za-z0-9]{20,}"
    r"|\b(?:github_pat|gsk|hf|[spr]k_live)_[A-Za-z0-9_]{20,}|\bAIza[A-Za-z0-9_\-]{20,}"
    r"|\bAKIA[A-Z0-9]{12,}|(?<=Bearer )[A-Za-z0-9._\-]{8,}|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"
)
# Each shape contains one of these, which are found much faster than the shapes themselves.
MARKS = (
    *"sk- pk- rk- xai- key- glpat- xox ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ gsk_ hf_ k_live_ AIza AKIA ://".split(),
    "Bearer ",
)
SHORTEST = 8
HIDDEN = "[redacted]"


def redactor(*environments: Mapping[str, str]) -> Callable[[str], str]:
    """A function that replaces secrets in a text; values shorter than 8 characters are too common to be replaced."""
    found = (
        value
        for environment in environments
        for name, value in environment.items()
        if is_secret(name) and len(value) >= SHORTEST
    )
    values = {form for value in found for form in _forms(value)}
    known = (
        re.compile("|".join(re.escape(value) for value in sorted(values, key=len, reverse=True))) if values else None
    )

    def redact(text: str) -> str:
        hidden = known.sub(HIDDEN, text) if known is not None else text
        return TOKEN.sub(HIDDEN, hidden) if any(mark in hidden for mark in MARKS) else hidden

    return redact


def _forms(value: str) -> Iterator[str]:
    """A value as it is, and as it stands in JSON texts."""
    yield value
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
