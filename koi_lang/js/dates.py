"""The global `Date`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, TypeVar

from koi_lang.js import timestamps
from koi_lang.js.calendar_days import clip, join, offset_ms, part, to_utc
from koi_lang.js.clock import wall_ms
from koi_lang.js.conversions import number, primitive, text
from koi_lang.js.environment import current_environment
from koi_lang.js.errors import RangeErrorValue
from koi_lang.js.method_tables import Constructor, MethodTable, holder
from koi_lang.js.number_format import NAN
from koi_lang.js.undefined import Value, undefined
from koi_lang.lazy import lazy_module

if TYPE_CHECKING:
    from koi_lang.js import intl_dates
else:
    intl_dates = lazy_module("koi_lang.js.intl_dates")

C = TypeVar("C", bound=type)
_INVALID = "Invalid Date"
_FIELDS = ("FullYear", "Month", "Date", "Hours", "Minutes", "Seconds", "Milliseconds")
# How many fields a setter may change: the day by `setFullYear` and `setMonth`, the time by the others.
_SETTABLE = (3, 2, 1, 4, 3, 2, 1)


def _with_fields(kind: C) -> C:
    """Give a class `getHours`, `setUTCHours` and all the others."""
    for index, field in enumerate(_FIELDS):
        for zone, local in (("", True), ("UTC", False)):
            setattr(kind, f"get{zone}{field}", _getter(index, local))
            setattr(kind, f"set{zone}{field}", _setter(index, local))
            members: dict[str, str] = vars(kind)["__koi_members__"]
            members.update({name: name for name in (f"get{zone}{field}", f"set{zone}{field}")})
    return kind


def _getter(index: int, local: bool) -> Callable[[DateValue], int | float]:
    def get(date: DateValue) -> int | float:
        return NAN if date.ms != date.ms else part(date.local_ms(local))[index]

    return get


def _setter(index: int, local: bool) -> Callable[..., int | float]:
    def put(date: DateValue, *values: Value) -> int | float:
        numbers = [number(value) for value in values[: _SETTABLE[index]]] or [NAN]
        if date.ms != date.ms and index:
            return NAN
        parts: list[int | float] = [*part(date.local_ms(local) if date.ms == date.ms else 0)]
        parts[index : index + len(numbers)] = numbers
        date.ms = moment(parts, local)
        return date.ms

    return put


def moment(parts: list[int | float], local: bool) -> int | float:
    """The numbers of a date to milliseconds, NaN if one of them is no finite number."""
    if any(not abs(n) < 1e15 for n in parts):
        return NAN
    ms = join([int(n) for n in parts])
    return clip(to_utc(ms) if local else ms)


@_with_fields
class DateValue:
    """A moment; `ms` counts from 1970 in UTC and is NaN for an invalid one."""

    __slots__ = ("ms",)
    __koi_members__: ClassVar[dict[str, str]] = {
        "getTime": "time", "valueOf": "time", "setTime": "set_time", "getDay": "day", "getUTCDay": "utc_day",
        "getTimezoneOffset": "zone_offset", "toISOString": "iso", "toJSON": "json", "toString": "__str__",
        "toDateString": "date_text", "toTimeString": "time_text", "toUTCString": "utc_text", "toGMTString": "utc_text",
        "toLocaleDateString": "locale_date", "toLocaleTimeString": "locale_time", "toLocaleString": "locale_text",
    }  # fmt: skip

    def __init__(self, ms: int | float) -> None:
        self.ms = ms

    def __koi_primitive__(self, hint: str) -> Value:
        return self.ms if hint == "number" else str(self)

    def __str__(self) -> str:
        return self._local(lambda ms: f"{self.date_text()} {timestamps.zoned_clock(ms)}")

    @property
    def valid(self) -> bool:
        """Whether this is a moment at all."""
        return self.ms == self.ms

    def local_ms(self, local: bool) -> int:
        """Milliseconds as if UTC were the local time zone."""
        return int(self.ms) + (offset_ms(int(self.ms)) if local else 0)

    def _local(self, write: Callable[[int], str]) -> str:
        return write(int(self.ms)) if self.valid else _INVALID

    def time(self) -> int | float:
        """Milliseconds since 1970."""
        return self.ms

    def set_time(self, ms: Value) -> int | float:
        """Move to another moment."""
        self.ms = clip(number(ms))
        return self.ms

    def day(self) -> int | float:
        """The weekday, 0 is Sunday."""
        return part(self.local_ms(True)).weekday if self.valid else NAN

    def utc_day(self) -> int | float:
        """The weekday in UTC."""
        return part(self.local_ms(False)).weekday if self.valid else NAN

    def zone_offset(self) -> int | float:
        """Minutes from local time to UTC, negative in the east."""
        return -int(offset_ms(int(self.ms)) / 60_000) if self.valid else NAN

    def iso(self) -> str:
        """`2024-03-07T10:00:00.000Z`. Raises RangeErrorValue when invalid."""
        if not self.valid:
            raise RangeErrorValue("Invalid time value")
        return timestamps.iso(int(self.ms))

    def json(self) -> Value:
        """The text in JSON, null when invalid."""
        return self.iso() if self.valid else None

    def date_text(self) -> str:
        """`Thu Mar 07 2024`."""
        return self._local(lambda ms: timestamps.day_text(part(self.local_ms(True))))

    def time_text(self) -> str:
        """`10:00:00 GMT+0000 (Coordinated Universal Time)`."""
        return self._local(timestamps.zoned_clock)

    def utc_text(self) -> str:
        """`Thu, 07 Mar 2024 10:00:00 GMT`."""
        return self._local(timestamps.utc_text)

    def locale_date(self, locales: Value = undefined, options: Value = undefined) -> str:
        """`3/7/2024`, or as options say. Raises RangeErrorValue or TypeErrorValue for such that are not known."""
        return self._american(locales, options, date=True, time=False)

    def locale_time(self, locales: Value = undefined, options: Value = undefined) -> str:
        """`10:00:00 AM`, or as options say. Raises like `locale_date`."""
        return self._american(locales, options, date=False, time=True)

    def locale_text(self, locales: Value = undefined, options: Value = undefined) -> str:
        """`3/7/2024, 10:00:00 AM`, or as options say. Raises like `locale_date`."""
        return self._american(locales, options, date=True, time=True)

    def _american(self, locales: Value, options: Value, *, date: bool, time: bool) -> str:
        intl_dates.require_american(locales)
        form = intl_dates.form_of(options, date=date, time=time)
        return self._local(lambda ms: intl_dates.format_date(ms, form))


STATICS = MethodTable()


@STATICS.add_as("now")
def now() -> int:
    """Milliseconds since 1970."""
    return int(current_environment().observe("clock", wall_ms))


@STATICS.add_as("parse")
def _parse(source: Value) -> int | float:
    return timestamps.parse(text(source))


@STATICS.add_as("UTC")
def _utc(*values: Value) -> int | float:
    return _moment(values, local=False)


def _moment(values: tuple[Value, ...], local: bool) -> int | float:
    """Year, month, day… with what is left out at its start; years up to 99 are in the twentieth century."""
    numbers = [number(value) for value in values[:7]]
    parts: list[int | float] = [*numbers, *(NAN, 0, 1, 0, 0, 0, 0)[len(numbers) :]]
    if 0 <= parts[0] <= 99:
        parts[0] += 1900
    return moment(parts, local)


def _build(*values: Value) -> DateValue:
    if not values:
        return DateValue(now())
    if len(values) > 1:
        return DateValue(_moment(values, local=True))
    value = values[0].ms if isinstance(values[0], DateValue) else primitive(values[0])
    return DateValue(timestamps.parse(value) if isinstance(value, str) else clip(number(value)))


def _text_now(*values: Value) -> str:
    return str(DateValue(now()))


DATE = Constructor("Date", _build, _text_now, holder(DateValue), STATICS)
