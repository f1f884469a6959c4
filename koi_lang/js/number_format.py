"""Numbers to the text JavaScript prints for them, and back."""

from __future__ import annotations

import math
import re

MAX_EXACT, MIN_EXACT = 2**53, -(2**53)
NAN = math.nan
INFINITY = math.inf
BLANKS = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_PREFIXED = re.compile(r"0(?:[xX][0-9a-fA-F]+|[oO][0-7]+|[bB][01]+)")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def to_compact(x: float) -> int | float:
    """A double to the way it is kept: an int when it is whole and at most 2**53 (-0 stays a float)."""
    if x == x and MIN_EXACT <= x <= MAX_EXACT and x == int(x) and (x or math.copysign(1.0, x) > 0):
        return int(x)
    return x


def double(n: int | float) -> float:
    """A Python number to the nearest double; integers beyond the range become infinite."""
    try:
        return float(n)
    except OverflowError:
        return INFINITY if n > 0 else -INFINITY


def fit(n: int) -> int | float:
    """An exact integer to the number a double would hold."""
    return n if MIN_EXACT <= n <= MAX_EXACT else to_compact(double(n))


def number_text(n: int | float) -> str:
    """A number as `String(n)` writes it: `1e+21`, `0.1`, `NaN`, `0` for -0."""
    if type(n) is int and MIN_EXACT <= n <= MAX_EXACT:
        return str(n)
    x = double(n)
    if x != x:
        return "NaN"
    if math.isinf(x):
        return "Infinity" if x > 0 else "-Infinity"
    if x == 0:
        return "0"
    if x == int(x) and abs(x) <= MAX_EXACT:
        return str(int(x))
    sign = "-" if x < 0 else ""
    digits, point = shortest(abs(x))
    return sign + _place(digits, point)


def shortest(x: int | float) -> tuple[str, int]:
    """The fewest digits that name a positive double, and where the point stands after the first of them."""
    mantissa, _, exponent = f"{double(x)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0)
    if whole == "0":
        point = len(digits) - len(fraction) + int(exponent or 0)
    return digits.rstrip("0"), point


def _place(digits: str, point: int) -> str:
    count = len(digits)
    if count <= point <= 21:
        return digits + "0" * (point - count)
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return "0." + "0" * -point + digits
    return exponential(digits, point - 1)


def exponential(digits: str, exponent: int) -> str:
    """Digits and a power of ten as `1.5e+21`."""
    mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
    return f"{mantissa}e{'+' if exponent >= 0 else '-'}{abs(exponent)}"


def parse_number(text: str) -> int | float:
    """A whole text to a number as `Number(text)` reads it; blank is 0, anything odd is NaN."""
    text = text.strip(BLANKS)
    if not text:
        return 0
    if text.isascii() and text.isdigit() and len(text) < 16:
        return int(text)
    if _DECIMAL.fullmatch(text):
        return to_compact(float(text))
    if _PREFIXED.fullmatch(text):
        return fit(int(text, 0))
    return {"Infinity": INFINITY, "+Infinity": INFINITY, "-Infinity": -INFINITY}.get(text, NAN)


def parse_float(text: str) -> int | float:
    """The decimal number a text begins with, NaN if it begins with none."""
    text = text.lstrip(BLANKS)
    if found := re.match(r"([+-]?)Infinity", text):
        return -INFINITY if found[1] == "-" else INFINITY
    found = _DECIMAL.match(text)
    return to_compact(float(found[0])) if found else NAN


def parse_int(text: str, radix: int = 0) -> int | float:
    """The integer a text begins with; radix 0 means decimal unless the text begins with 0x."""
    text = text.lstrip(BLANKS)
    sign = -1 if text[:1] == "-" else 1
    text = text[1:] if text[:1] in ("+", "-") else text
    if radix in (0, 16) and text[:2] in ("0x", "0X"):
        text, radix = text[2:], 16
    radix = radix or 10
    if not 2 <= radix <= 36:
        return NAN
    return _whole(text, sign, radix)


def _whole(text: str, sign: int, radix: int) -> int | float:
    allowed = _DIGITS[:radix]
    total = count = 0
    for character in text:
        digit = allowed.find(character.lower()) if character.isascii() else -1
        if digit < 0:
            break
        total, count = total * radix + digit, count + 1
    if not count:
        return NAN
    return -0.0 if sign < 0 and not total else fit(sign * total)


def radix_text(n: int | float, radix: int) -> str:
    """A finite number in a base from 2 to 36."""
    if n < 0:
        return "-" + radix_text(-n, radix)
    whole = int(n)
    text = _whole_digits(whole, radix)
    fraction = double(n) - whole
    return text + "." + _fraction_digits(double(n), fraction, radix) if fraction else text


def _whole_digits(n: int, radix: int) -> str:
    digits = ""
    while n:
        n, digit = divmod(n, radix)
        digits = _DIGITS[digit] + digits
    return digits or "0"


def _fraction_digits(x: float, fraction: float, radix: int) -> str:
    """As many digits as tell the double from its neighbours."""
    delta = max(0.5 * (math.nextafter(x, INFINITY) - x), math.nextafter(0.0, 1.0))
    digits: list[int] = []
    while fraction >= delta:
        fraction, delta = fraction * radix, delta * radix
        digit = int(fraction)
        fraction -= digit
        digits.append(digit)
        if (fraction > 0.5 or (fraction == 0.5 and digit % 2)) and fraction + delta > 1:
            _round_up(digits, radix)
            break
    return "".join(_DIGITS[digit] for digit in digits)


def _round_up(digits: list[int], radix: int) -> None:
    """Add one to the last digit and carry."""
    while digits and digits[-1] + 1 == radix:
        digits.pop()
    if digits:
        digits[-1] += 1
