"""Prices and weights."""

import unittest

from postage import Parcel, price_of


class Prices(unittest.TestCase):
    def test_within_a_band(self):
        self.assertEqual([420, 690, 980, 1650], [price_of(each) for each in (500, 3_000, 7_500, 31_500)])

    def test_where_a_band_begins(self):
        self.assertEqual([690, 980, 1650], [price_of(each) for each in (2_000, 5_000, 10_000)])

    def test_what_is_not_taken(self):
        for grams in (0, -5, 31_501):
            with self.subTest(grams=grams), self.assertRaises(ValueError):
                price_of(grams)


class Parcels(unittest.TestCase):
    def test_the_box_counts(self):
        parcel = Parcel().add("book", 1_850)
        self.assertEqual((2_000, 690), (parcel.grams, parcel.price))

    def test_two_parcels_share_nothing(self):
        Parcel().add("brick", 3_000)
        self.assertEqual(150, Parcel().grams)


if __name__ == "__main__":
    unittest.main()
