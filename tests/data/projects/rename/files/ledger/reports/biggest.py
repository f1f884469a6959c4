"""A report: biggest."""

from ledger.entries import parse


def biggest(text: str):
    """The largest amount, 0 without any."""
    return max((each.amount for each in parse(text)), default=0)
