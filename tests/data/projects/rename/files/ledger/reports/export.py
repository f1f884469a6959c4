"""A report: export."""

from ledger.entries import parse


def export(text: str):
    """The entries as rows of a table."""
    return ["\t".join(map(str, each)) for each in parse(text)]
