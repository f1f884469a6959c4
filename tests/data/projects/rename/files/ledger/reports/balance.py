"""A report: balance."""

from ledger.entries import parse


def balance(text: str):
    """What all amounts come to."""
    return sum(each.amount for each in parse(text))
