"""The headers of an answer turned into the wait they ask for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from email.utils import parsedate_to_datetime


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """How many seconds to wait; None when the headers do not say.

    Providers tell milliseconds, seconds, or a date, which is measured against the date of the answer itself.
    """
    milliseconds = _seconds(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    asked = headers.get("retry-after", "")
    seconds = _seconds(asked)
    return _seconds_between(headers.get("date", ""), asked) if seconds is None else seconds


def _seconds(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _seconds_between(start: str, end: str) -> float | None:
    try:
        return max(0.0, (parsedate_to_datetime(end) - parsedate_to_datetime(start)).total_seconds())
    except (TypeError, ValueError):  # no dates, or only one with a time zone
        return None
