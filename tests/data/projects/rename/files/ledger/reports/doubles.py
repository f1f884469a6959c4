"""A report: doubles."""

from ledger.entries import parse


def doubles(text: str):
    """Entries that stand there more than once."""
    return sorted({each for at, each in enumerate(parse(text)) if each in parse(text)[:at]})
