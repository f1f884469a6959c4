"""A report: grouped."""

from ledger.entries import parse
from ledger.reports.accounts import accounts


def grouped(text: str):
    """The amounts by account."""
    return {name: [each.amount for each in parse(text) if each.account == name] for name in accounts(text)}
