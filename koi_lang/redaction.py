"""Keeping secrets out of what is shown or written: values of secret variables, and what looks like a token."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|AUTH", re.IGNORECASE)
# The shapes that providers and forges give their keys, and credentials in headers and addresses.
TOKEN = re.compile(
    r"\b(?:sk|pk|rk|xai|gsk|key)-[A-Za-z0-9_\-]{16,}|\bgh[pousr]_[A-Za-z0-9]{20,}|\bAIza[A-Za-z0-9_\-]{20,}"
    r"|\bAKIA[A-Z0-9]{12,}|(?<=Bearer )[A-Za-z0-9._\-]{8,}|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"
)
SHORTEST = 8
HIDDEN = "[redacted]"


def redactor(environment: Mapping[str, str]) -> Callable[[str], str]:
    """A function that replaces secrets in a text; values shorter than 8 characters are too common to be replaced."""
    values = {value for name, value in environment.items() if SECRET_NAME.search(name) and len(value) >= SHORTEST}
    known = (
        re.compile("|".join(re.escape(value) for value in sorted(values, key=len, reverse=True))) if values else None
    )

    def redact(text: str) -> str:
        hidden = known.sub(HIDDEN, text) if known is not None else text
        return TOKEN.sub(HIDDEN, hidden)

    return redact
