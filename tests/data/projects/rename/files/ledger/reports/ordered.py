"""A report: ordered."""

from ledger.entries import parse


def ordered(text: str):
    """The entries by day."""
    return sorted(parse(text), key=lambda each: each.day)
