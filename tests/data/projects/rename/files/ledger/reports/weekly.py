"""A report: weekly."""

from ledger.entries import parse


def weekly(text: str):
    """How many entries a day has on average."""
    return len(parse(text)) / max(len({each.day for each in parse(text)}), 1)
