"""Prices by weight."""

from bisect import bisect_left
from dataclasses import dataclass


@dataclass(frozen=True)
class Band:
    """A price for parcels that weigh at least so much, in grams and cents."""

    least: int
    price: int


BANDS = [Band(0, 420), Band(2_000, 690), Band(5_000, 980), Band(10_000, 1_650)]
MOST = 31_500


def price_of(grams: int) -> int:
    """The price of a weight, in cents. Raises ValueError for what is not taken."""
    if not 0 < grams <= MOST:
        raise ValueError(f"a parcel may weigh 1 to {MOST} g, not {grams}")
    place = bisect_left([band.least for band in BANDS], grams)
    return BANDS[place - 1].price
