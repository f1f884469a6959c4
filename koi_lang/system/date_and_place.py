"""The date and the place, for models."""

from __future__ import annotations

import os
import time
from pathlib import Path

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
LINKED = Path("/etc/localtime")
# Where names of zones begin in the path of what that links to.
ZONES = "zoneinfo/"


def today(zone: str | None = None, seconds: float | None = None) -> str:
    """The day at a moment, now by default, and the time zone of this machine: `Monday, 2026-11-23, Europe/Berlin`.

    Args:
        zone: as the environment names it; None where it does not.
    """
    then = time.localtime(seconds)
    return f"{DAYS[then.tm_wday]}, {then.tm_year}-{then.tm_mon:02}-{then.tm_mday:02}, {_zone(zone, then)}"


def local_zone(zone: str | None = None) -> str:
    """The name of the time zone of this machine, such as `Europe/Berlin`; `UTC` where it has none.

    Args:
        zone: as the environment names it; None where it does not.
    """
    import zoneinfo

    try:
        return zoneinfo.ZoneInfo(_zone(zone, time.localtime())).key
    except (OSError, ValueError, KeyError):
        return "UTC"


def _zone(zone: str | None, then: time.struct_time) -> str:
    """The name of the zone where the system knows it, which gives the place; else its abbreviation."""
    try:
        _, _, linked = os.readlink(LINKED).rpartition(ZONES)
    except OSError:
        linked = ""
    found = linked if zone is None else zone.removeprefix(":")
    return found if found.replace("/", "").replace("_", "").isalnum() else then.tm_zone
