"""Entries of a ledger, one a line: a day, an account, an amount."""

from typing import NamedTuple


class Entry(NamedTuple):
    """One line."""

    day: str
    account: str
    amount: int


def parse_amount(text: str) -> int:
    """An amount with its sign; thousands may be told apart by `_`."""
    return int(text)


def parse(text: str) -> list[Entry]:
    """The entries in a text; blank lines and those that begin with `#` are left out."""
    lines = (line.split() for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return [Entry(day, account, parse_amount(amount)) for day, account, amount in lines]
