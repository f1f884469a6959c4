"""A report: negative."""

from ledger.entries import parse


def negative(text: str):
    """Whether anything has gone out."""
    return any(each.amount < 0 for each in parse(text))
