"""A report: last."""

from ledger.entries import parse


def last(text: str):
    """The last day, empty without any."""
    return max((each.day for each in parse(text)), default="")
