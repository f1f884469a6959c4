"""What sending a parcel costs."""

from postage.bands import Band, price_of
from postage.parcels import Parcel

__all__ = ["Band", "Parcel", "price_of"]
