"""A report: debits."""

from ledger.entries import parse


def debits(text: str):
    """What has gone out."""
    return -sum(each.amount for each in parse(text) if each.amount < 0)
