"""What the global `Intl` has: the formats that numbers and dates are shown in."""

from __future__ import annotations

from typing import ClassVar

from koi_lang.js.conversions import number
from koi_lang.js.dates import DATE, DateValue
from koi_lang.js.intl_dates import require_american
from koi_lang.js.method_tables import Constructor, holder
from koi_lang.js.number_object import METHODS
from koi_lang.js.undefined import Value, undefined


class NumberFormatValue:
    """How numbers are shown; `format` may be passed on alone."""

    __slots__ = ("_locales", "_options")
    __koi_members__: ClassVar[dict[str, str]] = {"format": "format"}

    def __init__(self, locales: Value = undefined, options: Value = undefined) -> None:
        require_american(locales)
        self._locales, self._options = locales, options

    def __repr__(self) -> str:
        return "NumberFormat [Intl.NumberFormat] {}"

    def format(self, value: Value = undefined) -> str:
        """A number as text."""
        return str(METHODS["toLocaleString"](number(value), self._locales, self._options))


class DateTimeFormatValue:
    """How dates are shown; `format` may be passed on alone."""

    __slots__ = ("_locales", "_options")
    __koi_members__: ClassVar[dict[str, str]] = {"format": "format"}

    def __init__(self, locales: Value = undefined, options: Value = undefined) -> None:
        require_american(locales)
        self._locales, self._options = locales, options

    def __repr__(self) -> str:
        return "DateTimeFormat [Intl.DateTimeFormat] {}"

    def format(self, value: Value = undefined) -> str:
        """A date, or milliseconds since 1970, as text; now, when there is none."""
        given = DATE.build() if value is undefined else value
        date = given if isinstance(given, DateValue) else DATE.build(number(given))
        return str(date.locale_date(self._locales, self._options))


NUMBERFORMAT = Constructor("NumberFormat", NumberFormatValue, NumberFormatValue, holder(NumberFormatValue))
DATETIMEFORMAT = Constructor("DateTimeFormat", DateTimeFormatValue, DateTimeFormatValue, holder(DateTimeFormatValue))
