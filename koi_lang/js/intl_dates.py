"""A moment and options such as `{ weekday: "long" }` to its text in American English, as Node has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from koi_lang.diagnostics import nearest
from koi_lang.js.calendar_days import DateParts, offset_ms, part
from koi_lang.js.conversions import text, truth
from koi_lang.js.errors import RangeErrorValue, TypeErrorValue
from koi_lang.js.own_properties import is_array
from koi_lang.js.undefined import Value, nullish, undefined
from koi_lang.js.zones import full_name, offset_in, short_name

DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
NUMBERS, WORDS = ("numeric", "2-digit"), ("long", "short", "narrow")
DATE = {"weekday": WORDS, "year": NUMBERS, "month": (*NUMBERS, *WORDS), "day": NUMBERS}
TIME = dict.fromkeys(("hour", "minute", "second"), NUMBERS)
# Two fields, and one between them without which nobody writes them together.
GAPS = (
    ("year", "day", "month"), ("hour", "second", "minute"), ("weekday", "month", "day"), ("weekday", "year", "month"),
)  # fmt: skip
STYLES = ("full", "long", "medium", "short")
FIELDS = (*DATE, *TIME, "dateStyle", "timeStyle")
KNOWN: Mapping[str, tuple[str, ...]] = {
    **DATE, **TIME, "dateStyle": STYLES, "timeStyle": STYLES, "hourCycle": ("h12", "h23"), "hour12": (), "timeZone": (),
}  # fmt: skip
# What they say about a text in English makes no difference.
IGNORED = frozenset({"localeMatcher", "formatMatcher"})
OF_STYLE: Mapping[str, Mapping[str, str]] = {
    "full": {"weekday": "long", "month": "long", "day": "numeric", "year": "numeric"},
    "long": {"month": "long", "day": "numeric", "year": "numeric"},
    "medium": {"month": "short", "day": "numeric", "year": "numeric"},
    "short": {"month": "numeric", "day": "numeric", "year": "2-digit"},
}
DEFAULT_DATE = {"year": "numeric", "month": "numeric", "day": "numeric"}
DEFAULT_TIME = dict.fromkeys(TIME, "numeric")


@dataclass(frozen=True, slots=True)
class DateFormat:
    """How a moment is written: options with one of the values that `KNOWN` names, and what they leave open."""

    fields: Mapping[str, str]
    zone: str = ""
    hours: str = "h12"
    zone_style: str = ""


def require_american(locales: Value) -> None:
    """Raise RangeErrorValue where texts are wanted in another language, or as another country writes them."""
    wanted = locales[0] if is_array(locales) and locales else locales
    if nullish(wanted) or is_array(wanted) or text(wanted) in ("en", "en-US"):
        return
    message = f"`{text(wanted)}` is not known here, only `en-US` is"
    raise RangeErrorValue(f"{message}; put the text together yourself, or import a Python module that knows it")


def form_of(options: Value, *, date: bool, time: bool) -> DateFormat:
    """What options ask for; where they name no field that is wanted, all of these are.

    Args:
        date: whether the fields of a date are wanted, and `time` those of a time.

    Raises:
        RangeErrorValue: an option or its value is not known.
        TypeErrorValue: options do not go together.
    """
    fields = read_options(options, KNOWN)
    zone, hours = fields.pop("timeZone", ""), fields.pop("hourCycle", "h12")
    if fields.pop("hour12", undefined) is not undefined:
        hours = "h12" if truth(options["hour12"]) else "h24"
    if "dateStyle" in fields or "timeStyle" in fields:
        return _apply_styles(fields, zone, hours, date=date, time=time)
    if not any(name in fields for name in (*(DATE if date else ()), *(TIME if time else ()))):
        fields |= {**(DEFAULT_DATE if date else {}), **(DEFAULT_TIME if time else {})}
    for one, other, missing in GAPS:
        if one in fields and other in fields and missing not in fields:
            raise RangeErrorValue(f"`{one}` and `{other}` need `{missing}`, too")
    return DateFormat(fields, zone, hours)


def read_options(options: Value, known: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """The options that are said, each as text.

    Args:
        known: the values of each option that there is; empty where any may stand.

    Raises:
        RangeErrorValue: an option or its value is not known.
        TypeErrorValue: what was given is no object.
    """
    if not nullish(options) and not isinstance(options, Mapping):
        raise TypeErrorValue(f"options are an object, not {text(options)}")
    chosen = {name: text(value) for name, value in (options or {}).items() if value is not undefined}
    for name in chosen.keys() - IGNORED:
        if name not in known:
            near = nearest(name, known)
            raise RangeErrorValue(f"the option `{name}` is not known here{f'; did you mean `{near}`?' if near else ''}")
        if known[name] and chosen[name] not in known[name]:
            raise RangeErrorValue(f'"{chosen[name]}" is no value of `{name}`, only {", ".join(known[name])}')
    return {name: value for name, value in chosen.items() if name not in IGNORED}


def _apply_styles(fields: dict[str, str], zone: str, hours: str, *, date: bool, time: bool) -> DateFormat:
    """What `dateStyle` and `timeStyle` stand for. Raises TypeErrorValue where they are not wanted."""
    wrong = next((name for name in fields if name not in ("dateStyle", "timeStyle")), None)
    if wrong is not None or ("dateStyle" in fields and not date) or ("timeStyle" in fields and not time):
        message = f"`{wrong}` beside a style" if wrong else "`timeStyle` in a date, or `dateStyle` in a time"
        raise TypeErrorValue(f"{message} is not possible")
    of_time = fields.get("timeStyle", "")
    clock = {} if not of_time else DEFAULT_TIME if of_time != "short" else {"hour": "numeric", "minute": "numeric"}
    of_date = OF_STYLE[fields["dateStyle"]] if "dateStyle" in fields else {}
    return DateFormat({**of_date, **clock}, zone, hours, of_time if of_time in ("full", "long") else "")


def format_date(ms: int, form: DateFormat) -> str:
    """A moment as text. Raises RangeErrorValue for a time zone that does not exist."""
    shift_ms = offset_in(ms, form.zone) if form.zone else offset_ms(ms)
    at, fields = part(ms + shift_ms), form.fields
    day, clock = _day(at, fields), _clock(at, fields, form.hours)
    if form.zone_style:
        name = full_name if form.zone_style == "full" else short_name
        clock = f"{clock} {name(ms, form.zone, shift_ms)}"
    return _date_separator(fields, form.hours).join(filter(None, (day, clock)))


def _date_separator(fields: Mapping[str, str], hours: str) -> str:
    """What stands between a day and a time."""
    if fields.get("month") == "long":
        return " at "
    is_short = not fields.keys() & {"year", "month", "day"} and "hour" in fields
    return " " if is_short and (hours == "h12" or "minute" in fields) else ", "


def _number(n: int, width: str | None) -> str:
    return "" if width is None else f"{n % 100:02}" if width == "2-digit" else str(n)


def _word(name: str, width: str | None) -> str:
    return {"long": name, "short": name[:3], "narrow": name[0]}.get(width or "", "")


def _day(at: DateParts, fields: Mapping[str, str]) -> str:
    """`Sunday, June 1, 2025`, `6/1/25` or what else of it is wanted."""
    weekday, width = _word(DAYS[at.weekday], fields.get("weekday")), fields.get("month")
    year = _number(at.year if at.year > 0 else 1 - at.year, fields.get("year"))
    day = _number(at.day, fields.get("day"))
    if width in WORDS:
        month_day = " ".join(filter(None, (_word(MONTHS[at.month], width), day)))
        body = (", " if day else " ").join(filter(None, (month_day, year)))
    else:
        body = "/".join(filter(None, (_number(at.month + 1, width), day, year)))
    return f"{weekday}, {body}" if weekday and width and day else " ".join(filter(None, (body, weekday)))


def _clock(at: DateParts, fields: Mapping[str, str], hours: str) -> str:
    """`3:04:09 PM`, `15:04` or what else of it is wanted."""
    wanted = [(name, n) for name, n in (("minute", at.minute), ("second", at.second)) if name in fields]
    if "hour" not in fields and len(wanted) == 1:
        return str(wanted[0][1])
    parts = [f"{n:02}" for _, n in wanted]
    if "hour" not in fields:
        return ":".join(parts)
    if hours != "h12":
        return ":".join([f"{24 if hours == 'h24' and not at.hour else at.hour:02}", *parts])
    hour = _number(at.hour % 12 or 12, fields["hour"])
    return f"{':'.join([hour, *parts])} {'PM' if at.hour >= 12 else 'AM'}"
