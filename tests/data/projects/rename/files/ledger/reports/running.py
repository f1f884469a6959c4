"""A report: running."""

from ledger.entries import parse


def running(text: str):
    """What it comes to after each entry."""
    return [sum(each.amount for each in found[: at + 1]) for at in range(len(found))] if (found := parse(text)) else []
