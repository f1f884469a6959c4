"""What is read from a text."""

import unittest

import ledger
from ledger.entries import Entry, parse_amount

# Called by either name, so that the tests hold before and after.
entries_of = getattr(ledger, "read", None) or ledger.parse


class Entries(unittest.TestCase):
    def test_lines(self):
        self.assertEqual([Entry("2024-03-01", "rent", -700)], entries_of("# March\n\n2024-03-01 rent -700\n"))

    def test_amounts(self):
        self.assertEqual([1_200, -5], [parse_amount("1_200"), parse_amount("-5")])
