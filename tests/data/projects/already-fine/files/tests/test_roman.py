"""There and back."""

import unittest

from roman import from_roman, to_roman


class Numerals(unittest.TestCase):
    def test_there_and_back(self):
        self.assertEqual(list(range(1, 4000)), [from_roman(to_roman(each)) for each in range(1, 4000)])

    def test_known_ones(self):
        self.assertEqual(["IV", "XLIX", "MCMXCIV"], [to_roman(each) for each in (4, 49, 1994)])

    def test_what_is_none(self):
        for text in ("", "IIII", "VX", "IC", "MMMM", "x"):
            with self.subTest(text), self.assertRaises(ValueError):
                from_roman(text)
        for number in (0, 4000):
            with self.subTest(number), self.assertRaises(ValueError):
                to_roman(number)
