"""A report: months."""

from ledger.entries import parse


def months(text: str):
    """The months on which something happened."""
    return sorted({each.day[:7] for each in parse(text)})
