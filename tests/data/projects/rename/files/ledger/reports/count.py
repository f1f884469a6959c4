"""A report: count."""

from ledger.entries import parse


def count(text: str):
    """How many entries there are."""
    return len(parse(text))
