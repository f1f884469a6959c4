"""A report: median."""

from ledger.entries import parse


def median(text: str):
    """The amount in the middle, 0 without any."""
    return sorted(each.amount for each in found)[len(found) // 2] if (found := parse(text)) else 0
