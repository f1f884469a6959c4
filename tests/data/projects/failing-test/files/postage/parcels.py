"""Parcels and what is in them."""

from dataclasses import dataclass, field

from postage.bands import price_of

BOX = 150


@dataclass
class Parcel:
    """Things in a box; the box weighs something, too."""

    things: list[tuple[str, int]] = field(default_factory=list)

    def add(self, name: str, grams: int) -> "Parcel":
        """Put something in."""
        self.things.append((name, grams))
        return self

    @property
    def grams(self) -> int:
        """What it weighs."""
        return BOX + sum(grams for _, grams in self.things)

    @property
    def price(self) -> int:
        """What it costs, in cents."""
        return price_of(self.grams)
