"""A report: reverse."""

from ledger.entries import parse


def reverse(text: str):
    """The entries from the end."""
    return parse(text)[::-1]
