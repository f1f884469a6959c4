"""A report: average."""

from ledger.entries import parse


def average(text: str):
    """The mean of all amounts, 0 without any."""
    return (sum(each.amount for each in found) / len(found)) if (found := parse(text)) else 0
