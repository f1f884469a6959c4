"""Lines of cron: their fields, and their faults."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from koi_lang.lazy import lazy_module
from koi_lang.schedules.job import ScheduleError

if TYPE_CHECKING:
    import datetime

    import cronsim
else:
    datetime = lazy_module("datetime")
    cronsim = lazy_module("cronsim")

FIELD = re.compile(r"[\d*][\d*/,\-]*")
# What each of the five fields takes.
FIELDS = (
    ("minute", "0 to 59"),
    ("hour", "0 to 23"),
    ("day of the month", "1 to 31, or `L` for the last"),
    ("month", "1 to 12, or `JAN` to `DEC`"),
    ("day of the week", "0 to 7, where both ends are Sunday, or `SUN` to `SAT`"),
)


def is_cron(tokens: Sequence[str]) -> bool:
    """Whether words look like a line of cron: their first two are made of digits and the marks of cron."""
    return len(tokens) > 1 and all(FIELD.fullmatch(token) for token in tokens[:2])


def check_line(tokens: Sequence[str]) -> str:
    """A valid line of cron from its fields. Raises ScheduleError for an invalid one."""
    if len(tokens) != len(FIELDS):
        help = "write minute, hour, day of the month, month and day of the week, as `0 9 * * 1-5`."
        raise ScheduleError(f"a line of cron has five fields, and this one has {len(tokens)}", help)
    for place, (token, (name, range)) in enumerate(zip(tokens, FIELDS, strict=True)):
        alone = ["0", "0", "*", "*", "*"]
        alone[place] = token
        if not _is_valid(alone):
            raise ScheduleError(f"`{token}` is no {name} of cron", f"write {range}; lists, `-` and `/` go, too.")
    return " ".join(tokens)


def _is_valid(fields: Sequence[str]) -> bool:
    try:
        cronsim.CronSim(" ".join(fields), datetime.datetime(2000, 1, 1))
    except (cronsim.CronSimError, ValueError, IndexError, AssertionError):
        return False
    return True
