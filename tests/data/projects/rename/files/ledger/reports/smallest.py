"""A report: smallest."""

from ledger.entries import parse


def smallest(text: str):
    """The smallest amount, 0 without any."""
    return min((each.amount for each in parse(text)), default=0)
