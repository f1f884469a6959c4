"""A report: accounts."""

from ledger.entries import parse


def accounts(text: str):
    """The accounts that are mentioned, by name."""
    return sorted({each.account for each in parse(text)})
