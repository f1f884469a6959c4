"""Entries of a ledger, and reports of them."""

from ledger.entries import Entry, parse, parse_amount

__all__ = ["Entry", "parse", "parse_amount"]
