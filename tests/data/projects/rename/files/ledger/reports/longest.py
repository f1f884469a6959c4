"""A report: longest."""

from ledger.entries import parse


def longest(text: str):
    """The length of the longest name."""
    return max((len(each.account) for each in parse(text)), default=0)
