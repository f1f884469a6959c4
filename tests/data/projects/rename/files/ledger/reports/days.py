"""A report: days."""

from ledger.entries import parse


def days(text: str):
    """The days on which something happened."""
    return sorted({each.day for each in parse(text)})
