"""A moment and a time zone to how far its clocks are ahead, and to what the zone is called in English."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from koi_lang.js.calendar_days import offset_ms, zone_name
from koi_lang.js.errors import RangeErrorValue
from koi_lang.lazy import lazy_module

if TYPE_CHECKING:
    import datetime
    import zoneinfo
else:
    datetime = lazy_module("datetime")
    zoneinfo = lazy_module("zoneinfo")

HOUR_MS = 3_600_000
# Years that Python's dates know; farther moments have the offset of the nearest of these.
FIRST_S, LAST_S = -62_135_510_400, 253_402_214_400
# Names by abbreviation and hours ahead of UTC, since some abbreviations mean several zones.
NAMES = {
    ("UTC", 0): "Coordinated Universal Time", ("GMT", 0): "Greenwich Mean Time", ("BST", 1): "British Summer Time",
    ("WET", 0): "Western European Standard Time", ("WEST", 1): "Western European Summer Time",
    ("CET", 1): "Central European Standard Time", ("CEST", 2): "Central European Summer Time",
    ("EET", 2): "Eastern European Standard Time", ("EEST", 3): "Eastern European Summer Time",
    ("MSK", 3): "Moscow Standard Time", ("IST", 5.5): "India Standard Time", ("PKT", 5): "Pakistan Standard Time",
    ("CST", 8): "China Standard Time", ("HKT", 8): "Hong Kong Standard Time", ("JST", 9): "Japan Standard Time",
    ("KST", 9): "Korean Standard Time", ("SAST", 2): "South Africa Standard Time", ("EAT", 3): "East Africa Time",
    ("WAT", 1): "West Africa Time", ("AEST", 10): "Australian Eastern Standard Time",
    ("AEDT", 11): "Australian Eastern Daylight Time", ("AWST", 8): "Australian Western Standard Time",
    ("NZST", 12): "New Zealand Standard Time", ("NZDT", 13): "New Zealand Daylight Time",
    ("EST", -5): "Eastern Standard Time", ("EDT", -4): "Eastern Daylight Time",
    ("CST", -6): "Central Standard Time", ("CDT", -5): "Central Daylight Time",
    ("MST", -7): "Mountain Standard Time", ("MDT", -6): "Mountain Daylight Time",
    ("PST", -8): "Pacific Standard Time", ("PDT", -7): "Pacific Daylight Time",
    ("AKST", -9): "Alaska Standard Time", ("AKDT", -8): "Alaska Daylight Time",
    ("HST", -10): "Hawaii-Aleutian Standard Time", ("AST", -4): "Atlantic Standard Time",
    ("ADT", -3): "Atlantic Daylight Time",
}  # fmt: skip
# Abbreviations that Americans know; other zones are told by their offset.
AMERICAN = frozenset("UTC EST EDT CST CDT MST MDT PST PDT AKST AKDT HST AST ADT".split())


def offset_in(ms: int, zone: str) -> int:
    """How far the clocks of a zone are ahead of UTC at a moment. Raises RangeErrorValue when there is no such zone."""
    return _zone(zone)(ms)[0]


def full_name(ms: int, zone: str, shift_ms: int) -> str:
    """`Eastern Standard Time`, of a zone or, where none is named, of here; `GMT+05:45` where there is no name."""
    name = NAMES.get((_abbreviation(ms, zone), shift_ms / HOUR_MS))
    return name or _by_offset(shift_ms, full=True)


def local_name(ms: int) -> str:
    """`Eastern Standard Time`, of here; else the abbreviation of the zone."""
    short = zone_name(ms)
    return NAMES.get((short, offset_ms(ms) / HOUR_MS), short)


def short_name(ms: int, zone: str, shift_ms: int) -> str:
    """`EST`, or `GMT+1` where Americans know no abbreviation."""
    short = _abbreviation(ms, zone)
    is_known = short in AMERICAN and (short, shift_ms / HOUR_MS) in NAMES and (short, shift_ms) != ("CST", 8 * HOUR_MS)
    return short if is_known else _by_offset(shift_ms, full=False)


def _abbreviation(ms: int, zone: str) -> str:
    return _zone(zone)(ms)[1] if zone else zone_name(ms)


def _by_offset(shift_ms: int, *, full: bool) -> str:
    minutes = abs(shift_ms) // 60_000
    if not minutes:
        return "GMT"
    sign = "-" if shift_ms < 0 else "+"
    hours = minutes // 60
    rest = minutes % 60
    if full:
        return f"GMT{sign}{hours:02}:{rest:02}"
    return f"GMT{sign}{hours}{f':{rest:02}' if rest else ''}"


@lru_cache(maxsize=64)
def _zone(name: str) -> Callable[[int], tuple[int, str]]:
    """What tells the offset and the abbreviation of a zone at a moment. Raises RangeErrorValue."""
    try:
        zone = zoneinfo.ZoneInfo(name if "/" in name else name.upper())
    except (OSError, ValueError, KeyError) as error:
        raise RangeErrorValue(f"Invalid time zone specified: {name}") from error

    def look(ms: int) -> tuple[int, str]:
        at = datetime.datetime.fromtimestamp(min(max(ms // 1000, FIRST_S), LAST_S), zone)
        ahead = at.utcoffset()
        return int(ahead.total_seconds() * 1000) if ahead else 0, at.tzname() or ""

    return look
