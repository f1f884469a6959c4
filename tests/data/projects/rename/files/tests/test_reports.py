"""Every report, of the same three entries."""

import unittest
from importlib import import_module
from pathlib import Path

import ledger.reports

TEXT = "2024-03-01 rent -700\n2024-03-01 wage 2_000\n2024-04-02 rent -700\n"
EXPECTED = {
    "accounts": ["rent", "wage"],
    "balance": 600,
    "biggest": 2000,
    "busiest": "2024-03-01",
    "changes": [-700, 2000, -700],
    "count": 3,
    "credits": 2000,
    "debits": 1400,
    "highest": "wage",
    "first": "2024-03-01",
    "grouped": {"rent": [-700, -700], "wage": [2000]},
    "last": "2024-04-02",
    "longest": 4,
    "median": -700,
    "months": ["2024-03", "2024-04"],
    "negative": True,
    "running": [-700, 1300, 600],
    "smallest": -700,
    "sparse": ["2024-04-02"],
    "weekly": 1.5,
}


class Reports(unittest.TestCase):
    def test_each(self):
        for path in sorted(Path(ledger.reports.__file__).parent.glob("[a-z]*.py")):
            report = getattr(import_module(f"ledger.reports.{path.stem}"), path.stem)
            with self.subTest(path.stem):
                found = report(TEXT)
                self.assertEqual(EXPECTED.get(path.stem, found), found)
                report("")
