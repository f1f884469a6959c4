"""Intervals for shares and means, and whether a paired difference is more than chance.

The unit that is counted is the case, never the single run: the repeats of a case depend on each other, so they are
averaged first (E. Miller, "Adding Error Bars to Evals", 2024, on clustered questions), and what is said of n cases
with several repeats is never surer than what n cases tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, stdev

# Of intervals.
CONFIDENCE = 0.95
# A difference is called more than chance below this; it is small because several scores are looked at at once.
SIGNIFICANCE = 0.01
# So many differences are tried out with all signs; the t distribution is near enough for more.
MAX_FLIPPED = 14
# When a sum of signs counts as large as the one that was seen, though its last digits differ.
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Interval:
    """A share or mean with its 95 % interval; `low` and `high` are None where one case tells nothing of others.

    Attributes:
        cases: how many were counted.
    """

    value: float
    low: float | None
    high: float | None
    cases: int


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """The paired difference of the same cases.

    Attributes:
        p: how likely a difference as large as this is by chance alone.
        cases: how many were compared.
    """

    value: float
    p: float
    cases: int

    @property
    def is_more_than_chance(self) -> bool:
        """Whether chance is an unlikely reason."""
        return self.p < SIGNIFICANCE


def pass_rate(shares: Sequence[float]) -> Interval:
    """The share of passed cases, with the score interval of Wilson.

    Counts cases: each of the n cases adds the share of its repeats that passed, and the interval is that of n
    observations (E. B. Wilson, "Probable inference, the law of succession, and statistical inference", 1927).

    Args:
        shares: of each case, 0 to 1; not empty.
    """
    n, rate = len(shares), fmean(shares)
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    low = 0.0 if rate == 0 else centre - half
    high = 1.0 if rate == 1 else centre + half
    return Interval(rate, low, high, n)


def mean_score(means: Sequence[float]) -> Interval:
    """The mean of a score, with the interval of Student's t over the cases.

    After Student, "The probable error of a mean", 1908.

    Args:
        means: of each case over its repeats; not empty.
    """
    n, mean = len(means), fmean(means)
    if n < 2:
        return Interval(mean, None, None, n)
    half = t_quantile((1 + CONFIDENCE) / 2, n - 1) * stdev(means) / math.sqrt(n)
    return Interval(mean, mean - half, mean + half, n)


def paired_difference(before: Sequence[float], after: Sequence[float]) -> PairedDifference:
    """The mean difference of the same cases, and its p-value from both sides.

    For up to 14 cases that differ, all signs of their differences are tried out (R. A. Fisher, "The Design of
    Experiments", 1935, section 21); for more it is the paired t test.

    Args:
        before: a value for each case, the mean over its repeats; not empty.
        after: for the same cases in the same order.
    """
    found = [new - old for old, new in zip(before, after, strict=True)]
    differing = [each for each in found if each]
    if len(differing) <= MAX_FLIPPED:
        return PairedDifference(fmean(found), _sign_flip_p(differing), len(found))
    return PairedDifference(fmean(found), _paired_t_p(found), len(found))


def _sign_flip_p(differences: Sequence[float]) -> float:
    """The share of all choices of signs whose sum is as far from 0 as that of the differences."""
    sums = [0.0]
    for each in differences:
        sums = [total + sign for total in sums for sign in (each, -each)]
    least = abs(math.fsum(differences)) - ROUNDING * math.fsum(map(abs, differences))
    return sum(abs(total) >= least for total in sums) / len(sums)


def _paired_t_p(differences: Sequence[float]) -> float:
    error = stdev(differences) / math.sqrt(len(differences))
    if error == 0:
        return 0.0  # all cases have changed by the same
    return 2 * t_cdf(-abs(fmean(differences) / error), len(differences) - 1)


# ---------------------------------------------------------------- Student's t


def t_cdf(t: float, freedom: float) -> float:
    """How likely a value of at most t is, by the incomplete beta function.

    After M. Abramowitz and I. A. Stegun, "Handbook of Mathematical Functions", 1964, 26.7.1.
    """
    tail = incomplete_beta(freedom / (freedom + t * t), freedom / 2, 0.5) / 2
    return 1 - tail if t > 0 else tail


def t_quantile(share: float, freedom: float) -> float:
    """The value below which that share of Student's t distribution is, for shares from 0.5 to 1."""
    high = 1.0
    while t_cdf(high, freedom) < share:
        high *= 2
    return _bisect(lambda t: t_cdf(t, freedom) < share, 0.0, high)


def _bisect(is_low: Callable[[float], bool], low: float, high: float) -> float:
    while low < (middle := (low + high) / 2) < high:
        if is_low(middle):
            low = middle
        else:
            high = middle
    return high


def incomplete_beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function, by its continued fraction (Abramowitz and Stegun, 26.5.8)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):  # where the fraction converges slowly
        return 1 - incomplete_beta(1 - x, b, a)
    logarithm = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(logarithm) / a / _continued_fraction(x, a, b)


def _continued_fraction(x: float, a: float, b: float) -> float:
    """1 + d1 / (1 + d2 / (1 + …)), from the front (the method of W. J. Lentz, 1976)."""
    tiny = 1e-300
    value = 1.0
    c = 1.0
    d = 0.0
    for step in range(1, 10_000):
        m = step // 2
        if step % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 / ((1 + term * d) or tiny)
        c = (1 + term / c) or tiny
        value *= c * d
        if abs(c * d - 1) < 1e-16:
            return value
    return value
