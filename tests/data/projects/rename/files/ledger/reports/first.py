"""A report: first."""

from ledger.entries import parse


def first(text: str):
    """The first day, empty without any."""
    return min((each.day for each in parse(text)), default="")
