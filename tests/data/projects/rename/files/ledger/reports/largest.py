"""A report: largest."""

from ledger.entries import parse


def largest(text: str):
    """The entry with the largest amount."""
    return max(parse(text), key=lambda each: each.amount, default=None)
