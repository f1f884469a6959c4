"""A report: highest."""

from ledger.entries import parse
from ledger.reports.accounts import accounts


def highest(text: str):
    """The account with the highest sum."""
    return max((sum(each.amount for each in parse(text) if each.account == name), name) for name in accounts(text))[1] if parse(text) else ""
