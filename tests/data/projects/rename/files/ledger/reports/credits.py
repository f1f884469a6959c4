"""A report: credits."""

from ledger.entries import parse


def credits(text: str):
    """What has come in."""
    return sum(each.amount for each in parse(text) if each.amount > 0)
