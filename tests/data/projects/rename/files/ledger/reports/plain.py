"""A report: plain."""

from ledger.entries import parse


def plain(text: str):
    """The entries as lines."""
    return [f"{each.day} {each.account} {each.amount}" for each in parse(text)]
