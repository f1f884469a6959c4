"""The global `Math`."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable

from koi_lang.js.conversions import number, to_int32
from koi_lang.js.environment import current_environment
from koi_lang.js.method_tables import MethodTable, namespace
from koi_lang.js.number_format import INFINITY, MAX_EXACT, NAN, to_compact
from koi_lang.js.operators import power
from koi_lang.js.undefined import Value, undefined

METHODS = MethodTable()


def _wrap(function: Callable[[float], float], beyond: float = NAN) -> Callable[[Value], int | float]:
    """A function of `math` to one that answers NaN where that raises, and `beyond` where the result is too large."""

    def compute(value: Value = undefined) -> int | float:
        try:
            return to_compact(function(float(number(value))))
        except ValueError:
            return NAN
        except OverflowError:
            return beyond

    return compute


for _name in ("sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "tanh", "asinh", "acosh"):
    METHODS.add_as(_name)(_wrap(getattr(math, _name)))
for _name in ("exp", "expm1", "cosh"):
    METHODS.add_as(_name)(_wrap(getattr(math, _name), INFINITY))


def _logarithm(function: Callable[[float], float], pole: float = 0.0) -> Callable[[float], float]:
    """A logarithm that is -Infinity at its pole."""
    return lambda x: -INFINITY if x == pole else function(x)


for _name in ("log", "log2", "log10"):
    METHODS.add_as(_name)(_wrap(_logarithm(getattr(math, _name))))
METHODS.add_as("log1p")(_wrap(_logarithm(math.log1p, -1.0)))


@METHODS.add_as("cbrt")
def _cbrt(value: Value = undefined) -> int | float:
    x = float(number(value))
    root = math.cbrt(x)
    if root == 0 or not math.isfinite(root):
        return to_compact(root)
    return to_compact(root - (root * root * root - x) / (3 * root * root))


@METHODS.add_as("sinh")
def _sinh(value: Value = undefined) -> int | float:
    x = float(number(value))
    try:
        return to_compact(math.sinh(x))
    except OverflowError:
        return math.copysign(INFINITY, x)


@METHODS.add_as("atanh")
def _atanh(value: Value = undefined) -> int | float:
    x = float(number(value))
    if abs(x) == 1:
        return math.copysign(INFINITY, x)
    return to_compact(math.atanh(x)) if abs(x) < 1 else NAN


def _whole(function: Callable[[float], int]) -> Callable[[Value], int | float]:
    """A rounding function to one that keeps -0, NaN and what is whole already."""

    def compute(value: Value = undefined) -> int | float:
        x = number(value)
        if type(x) is int or x != x or abs(x) > MAX_EXACT:
            return x
        return to_compact(math.copysign(function(x), x))

    return compute


METHODS.add_as("floor")(_whole(math.floor))
METHODS.add_as("ceil")(_whole(math.ceil))
METHODS.add_as("trunc")(_whole(math.trunc))
METHODS.add_as("round")(_whole(lambda x: math.floor(x) + (x - math.floor(x) >= 0.5)))


@METHODS.add_as("abs")
def _abs(value: Value = undefined) -> int | float:
    return to_compact(abs(number(value)))


@METHODS.add_as("sign")
def _sign(value: Value = undefined) -> int | float:
    x = number(value)
    return x if x == 0 or x != x else (1 if x > 0 else -1)


@METHODS.add_as("max")
def _max(*values: Value) -> int | float:
    return _extreme([number(value) for value in values], -INFINITY, max)


@METHODS.add_as("min")
def _min(*values: Value) -> int | float:
    return _extreme([number(value) for value in values], INFINITY, min)


def _extreme(numbers: list[int | float], empty: float, choose: Callable[..., int | float]) -> int | float:
    if any(n != n for n in numbers):
        return NAN
    return choose(numbers, key=lambda n: (n, math.copysign(1, n)), default=empty)


@METHODS.add_as("pow")
def _pow(base: Value, exponent: Value) -> int | float:
    return power(base, exponent)


@METHODS.add_as("atan2")
def _atan2(y: Value, x: Value) -> int | float:
    return to_compact(math.atan2(number(y), number(x)))


@METHODS.add_as("hypot")
def _hypot(*values: Value) -> int | float:
    """Scaled and summed with compensation, which rounds as JavaScript's engines do."""
    numbers = [abs(float(number(value))) for value in values]
    largest = max(numbers, default=0.0)
    if INFINITY in numbers or largest == 0 or any(n != n for n in numbers):
        return INFINITY if INFINITY in numbers else to_compact(sum(numbers))
    total = lost = 0.0
    for n in numbers:
        summand = (n / largest) ** 2 - lost
        lost = (total + summand) - total - summand
        total += summand
    return to_compact(math.sqrt(total) * largest)


@METHODS.add_as("random")
def _random() -> float:
    # 53 bits are all that a float can hold.
    return (int.from_bytes(current_environment().random_bytes(7)) >> 3) / (1 << 53)


@METHODS.add_as("fround")
def _fround(value: Value = undefined) -> int | float:
    return to_compact(array("f", [number(value)])[0])


@METHODS.add_as("imul")
def _imul(a: Value, b: Value) -> int:
    exact = to_int32(a) * to_int32(b)  # of which a number of the language would keep the first digits
    return ((exact + 0x80000000) & 0xFFFFFFFF) - 0x80000000


@METHODS.add_as("clz32")
def _clz32(value: Value = undefined) -> int:
    return 32 - (to_int32(value) & 0xFFFFFFFF).bit_length()


MATH = namespace(
    METHODS,
    PI=math.pi,
    E=math.e,
    LN2=math.log(2),
    LN10=math.log(10),
    LOG2E=math.log2(math.e),
    LOG10E=math.log10(math.e),
    SQRT2=math.sqrt(2),
    SQRT1_2=math.sqrt(0.5),
)
