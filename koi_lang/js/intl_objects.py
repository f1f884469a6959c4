"""What the global `Intl` has: the formats that numbers and dates are shown in.

Signs, digits and units of numbers are those of CLDR, release 47, for `en-US`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import ClassVar
from unicodedata import category

from koi_lang.js.conversions import number, to_double
from koi_lang.js.dates import DATE, DateValue
from koi_lang.js.errors import RangeErrorValue, TypeErrorValue
from koi_lang.js.intl_dates import FIELDS, form_of, read_options, require_american
from koi_lang.js.method_tables import Constructor, holder
from koi_lang.js.undefined import Value, undefined

KNOWN: Mapping[str, tuple[str, ...]] = {
    "style": ("decimal", "percent", "currency", "unit"), "currency": (), "currencyDisplay": ("symbol", "code"),
    "currencySign": ("standard", "accounting"), "unit": (), "unitDisplay": ("short", "long"),
    "notation": ("standard", "scientific", "engineering", "compact"), "compactDisplay": ("short", "long"),
    "signDisplay": ("auto", "always", "never", "exceptZero", "negative"),
    "useGrouping": ("true", "false", "always", "auto", "min2"), "minimumIntegerDigits": (),
    "minimumFractionDigits": (), "maximumFractionDigits": (), "minimumSignificantDigits": (),
    "maximumSignificantDigits": (),
}  # fmt: skip
SIGNS = {
    "USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "AUD": "A$", "BRL": "R$", "CAD": "CA$", "CNY": "CN¥", "HKD": "HK$",
    "ILS": "₪", "INR": "₹", "KRW": "₩", "MXN": "MX$", "NZD": "NZ$", "PHP": "₱", "TWD": "NT$", "VND": "₫", "XAF": "FCFA",
    "XCD": "EC$", "XCG": "Cg.", "XOF": "F\u202fCFA", "XPF": "CFPF",
}  # fmt: skip
# Currencies without cents, and with three digits.
WHOLE = frozenset(
    "AFN ALL BIF CLP COP DJF GNF HUF IDR IQD IRR ISK JPY KMF KPW KRW LAK LBP MGA MMK PKR PYG RWF SLL SOS SYP UGX VND "
    "VUV XAF XOF XPF YER".split()
)
IN_THOUSANDTHS = frozenset("BHD JOD KWD LYD OMR TND".split())
UNITS = dict(
    each.split("=")
    for each in (
        "acre= ac|bit= bit|byte= byte|celsius=°C|centimeter= cm|day= day|degree= deg|fahrenheit=°F|"
        "fluid-ounce= fl oz|foot= ft|gallon= gal|gigabit= Gb|gigabyte= GB|gram= g|hectare= ha|hour= hr|inch= in|"
        "kilobit= kb|kilobyte= kB|kilogram= kg|kilometer= km|liter= L|megabit= Mb|megabyte= MB|meter= m|"
        "microsecond= μs|mile= mi|mile-scandinavian= smi|milliliter= mL|millimeter= mm|millisecond= ms|minute= min|"
        "month= mth|nanosecond= ns|ounce= oz|percent=%|petabyte= PB|pound= lb|second= sec|stone= st|terabit= Tb|"
        "terabyte= TB|week= wk|yard= yd|year= yr"
    ).split("|")
)
WITH_PLURAL = frozenset({"day", "month", "week", "year"})
LONG = {"celsius": "degree Celsius", "fahrenheit": "degree Fahrenheit"}
PLURALS = {
    "celsius": "degrees Celsius", "fahrenheit": "degrees Fahrenheit", "foot": "feet", "inch": "inches",
    "percent": "percent", "mile-scandinavian": "miles-scandinavian", "stone": "stones",
}  # fmt: skip
PER = {"second": "s", "hour": "h", "day": "d", "week": "w", "month": "m", "year": "y"}
COMPOUND = {"mile-per-hour": " mph", "mile-per-gallon": " mpg"}
COMPACT = {
    "short": ("", "K", "M", "B", "T"), "long": ("", " thousand", " million", " billion", " trillion")
}  # fmt: skip
EXACT = Context(prec=800, rounding=ROUND_HALF_UP)


@dataclass(frozen=True, slots=True)
class NumberForm:
    """How numbers are written: options with one of the values that `KNOWN` names, and how many digits are shown.

    Attributes:
        places: the least and the most digits behind the point.
        significant: the least and the most digits in all, which count in place of `places` where they are said.
        is_compact: whether digits are as many as fit a notation such as `1.2K`.
    """

    options: Mapping[str, str]
    places: tuple[int, int]
    significant: tuple[int | None, int | None]
    is_compact: bool

    @staticmethod
    def of(options: Value) -> NumberForm:
        """What options ask for.

        Raises:
            RangeErrorValue: an option or its value is not known.
            TypeErrorValue: the currency or the unit is missing.
        """
        wanted = read_options(options, KNOWN)
        style = wanted.get("style", "decimal")
        if style in ("currency", "unit") and not wanted.get(style):
            raise TypeErrorValue(f"the option `{style}` is needed with the style `{style}`")
        currency = wanted.get("currency", "").upper()
        if currency and not re.fullmatch("[A-Z]{3}", currency):
            raise RangeErrorValue(f"Invalid currency code : {wanted['currency']}")
        if "unit" in wanted and not all(part in UNITS for part in wanted["unit"].split("-per-", 1)):
            raise RangeErrorValue(f"Invalid unit argument for Intl.NumberFormat() '{wanted['unit']}'")
        wanted.pop("compactDisplay" if style == "currency" else "currencySign", None)
        cents = 0 if currency in WHOLE else 3 if currency in IN_THOUSANDTHS else 2
        usual = {"percent": (0, 0), "currency": (cents, cents)}.get(style, (0, 3))
        _read_digits(wanted, "IntegerDigits", 1, 21)
        least, most = _read_digits(wanted, "SignificantDigits", 1, 21)
        if least or most:
            return NumberForm({**wanted, "currency": currency}, usual, (least or 1, most or 21), False)
        least, most = _read_digits(wanted, "FractionDigits", 0, 100)
        is_compact = wanted.get("notation") == "compact" and least is most is None
        first = least if least is not None else usual[0] if most is None else min(usual[0], most)
        last = most if most is not None else max(usual[1], first)
        return NumberForm({**wanted, "currency": currency}, (first, last), (None, None), is_compact)

    def write(self, n: int | float) -> str:
        """A number as text."""
        digits = "NaN" if n != n else "∞"
        suffix = ""
        is_zero = False
        if math.isfinite(n):
            value = EXACT.multiply(
                abs(Decimal(repr(to_double(n)))), 100 if self.options.get("style") == "percent" else 1
            )
            scaled, exponent = self._scale(value)
            is_zero = not scaled
            digits = self._group(scaled)
            notation = self.options.get("notation", "standard")
            compact = COMPACT[self.options.get("compactDisplay", "short")]
            suffix = {"standard": "", "compact": compact[max(0, min(exponent // 3, 4))]}.get(notation, f"E{exponent}")
        body = self._dress(digits, suffix)
        is_negative = n == n and math.copysign(1, n) < 0
        display = self.options.get("signDisplay", "auto")
        if display == "never" or (display in ("exceptZero", "negative") and is_zero):
            return body
        if is_negative:
            is_accounting = self.options.get("currencySign") == "accounting" and suffix not in COMPACT["short"][1:]
            return f"({body})" if is_accounting else f"-{body}"
        return f"+{body}" if display == "always" or (display == "exceptZero" and n == n) else body

    def _scale(self, value: Decimal) -> tuple[Decimal, int]:
        """A number as it is rounded in its notation, and the power of ten it is to be read with."""
        rounded = value
        exponent = 0
        for _ in range(2):  # 999.9 is 1K, since what counts is how it is shown
            size = rounded.adjusted() if rounded else 0
            notation = {"compact": min(max(size // 3 * 3, 0), 12), "scientific": size, "engineering": size // 3 * 3}
            exponent = notation.get(self.options.get("notation", ""), 0)
            rounded = self._round(value.scaleb(-exponent)).scaleb(exponent, EXACT)
        return rounded.scaleb(-exponent, EXACT), exponent

    def _round(self, value: Decimal) -> Decimal:
        """A number with the digits that are shown, zeros behind them included."""
        least, most = self.places
        for _ in range(2):  # 9.999 with three digits is 10.0
            size = value.adjusted() if value else 0
            if self.significant[0] and self.significant[1]:
                least = max(self.significant[0] - 1 - size, 0)
                most = self.significant[1] - 1 - size
            elif self.is_compact:
                least = 0
                most = max(1 - size, 0)
            value = EXACT.quantize(value, Decimal((0, (1,), -most)))
        while -int(value.as_tuple().exponent) > max(least, 0) and value.as_tuple().digits[-1] == 0:
            value = EXACT.quantize(value, Decimal((0, (1,), int(value.as_tuple().exponent) + 1)))
        return value

    def _group(self, value: Decimal) -> str:
        """Digits with at least so many before the point, and with or without commas."""
        whole, dot, fraction = f"{value:f}".partition(".")
        whole = whole.rjust(int(number(self.options.get("minimumIntegerDigits", 1))), "0")
        usual = "min2" if self.options.get("notation") == "compact" else "auto"
        grouping = self.options.get("useGrouping", usual)
        if grouping != "false" and len(whole) > (4 if grouping == "min2" else 3):
            whole = re.sub(r"\B(?=(?:\d{3})+$)", ",", whole)
        return whole + dot + fraction

    def _dress(self, digits: str, suffix: str) -> str:
        """Digits with their currency, unit or percent."""
        style = self.options.get("style")
        if style == "unit":
            unit = self.options["unit"]
            is_one = re.fullmatch("[0,]*1(E0)?", digits + suffix) is not None
            suffix += _write_unit(unit, is_long=self.options.get("unitDisplay") == "long", is_one=is_one)
        if style != "currency":
            return digits + suffix + ("%" if style == "percent" else "")
        currency = self.options["currency"]
        sign = currency if self.options.get("currencyDisplay") == "code" else SIGNS.get(currency, currency)
        gap = "" if category(sign[-1]).startswith("S") or not digits[0].isdigit() else "\u00a0"
        return f"{sign}{gap}{digits}{suffix}"


def _read_digits(options: Mapping[str, str], kind: str, least: int, most: int) -> tuple[int | None, int | None]:
    """The least and the most digits of a kind, where they are said. Raises RangeErrorValue."""
    bounds: list[int | None] = []
    for name in (f"minimum{kind}", f"maximum{kind}"):
        value = number(options[name]) if name in options else None
        if value is not None and not least <= value <= most:
            raise RangeErrorValue(f"{name} value is out of range.")
        bounds.append(None if value is None else int(value))
    if bounds[0] is not None and bounds[1] is not None and bounds[0] > bounds[1]:
        raise RangeErrorValue(f"maximum{kind} value is out of range.")
    return bounds[0], bounds[1]


def _write_unit(name: str, *, is_long: bool, is_one: bool) -> str:
    """What stands behind the digits of a number with a unit."""
    first, *per = name.split("-per-", 1)
    if is_long:
        one = LONG.get(first, first.replace("-", " ") if first != "mile-scandinavian" else first)
        words = one if is_one else PLURALS.get(first, f"{one}s")
        return f" {words}" + "".join(f" per {LONG.get(each, each.replace('-', ' '))}" for each in per)
    if name in COMPOUND:
        return COMPOUND[name]
    short = UNITS[first] + ("s" if first in WITH_PLURAL and not is_one else "")
    return short + "".join(f"/{PER.get(each, UNITS[each].strip())}" for each in per)


class NumberFormatValue:
    """How numbers are shown; `format` may be passed on alone."""

    __slots__ = ("_form",)
    __koi_members__: ClassVar[dict[str, str]] = {"format": "format"}

    def __init__(self, locales: Value = undefined, options: Value = undefined) -> None:
        require_american(locales)
        self._form = NumberForm.of(options)

    def __repr__(self) -> str:
        return "NumberFormat [Intl.NumberFormat] {}"

    def format(self, value: Value = undefined) -> str:
        """A number as text."""
        return self._form.write(number(value))


class DateTimeFormatValue:
    """How dates are shown; `format` may be passed on alone."""

    __slots__ = ("_locales", "_options")
    __koi_members__: ClassVar[dict[str, str]] = {"format": "format"}

    def __init__(self, locales: Value = undefined, options: Value = undefined) -> None:
        require_american(locales)
        form_of(options, date=True, time=True)  # what is wrong with them is said here
        self._locales, self._options = locales, options

    def __repr__(self) -> str:
        return "DateTimeFormat [Intl.DateTimeFormat] {}"

    def format(self, value: Value = undefined) -> str:
        """A date, or milliseconds since 1970, as text; now, when there is none."""
        given = DATE.build() if value is undefined else value
        date = given if isinstance(given, DateValue) else DATE.build(number(given))
        chosen = self._options if isinstance(self._options, Mapping) else {}
        has_fields = any(chosen.get(name, undefined) is not undefined for name in FIELDS)
        write = date.locale_text if has_fields else date.locale_date
        return str(write(self._locales, self._options))


NUMBERFORMAT = Constructor("NumberFormat", NumberFormatValue, NumberFormatValue, holder(NumberFormatValue))
DATETIMEFORMAT = Constructor("DateTimeFormat", DateTimeFormatValue, DateTimeFormatValue, holder(DateTimeFormatValue))
