"""A report: busiest."""

from ledger.entries import parse


def busiest(text: str):
    """The day with most entries."""
    return max(days, key=days.count) if (days := [each.day for each in parse(text)]) else ""
