"""A report: sparse."""

from ledger.entries import parse


def sparse(text: str):
    """The days with a single entry."""
    return [day for day in days if days.count(day) == 1] if (days := [each.day for each in parse(text)]) else []
