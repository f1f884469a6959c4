"""A report: changes."""

from ledger.entries import parse


def changes(text: str):
    """The amounts one after the other."""
    return [each.amount for each in parse(text)]
