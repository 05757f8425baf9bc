"""The arithmetic of bench/against: nothing is measured."""

import unittest

from comparison import Comparison, Row, table

LATENCY, RATE = Row("mpi", "ping_pong", 8), Row("mpi", "bandwidth", 65536)


def compared(row, this, other, **unit):
    comparison = Comparison()
    for number, (mine, theirs) in enumerate(zip(this, other)):
        comparison.add("this", number, row, mine, "us", **unit)
        comparison.add("other", number, row, theirs, "us", **unit)
    return comparison


class Ratios(unittest.TestCase):

    def test_a_longer_time_costs_more(self):
        self.assertEqual(compared(LATENCY, [4, 6, 50], [2, 3, 3]).ratio(LATENCY), 2)

    def test_a_higher_rate_costs_less(self):
        self.assertEqual(compared(RATE, [4, 4, 4], [2, 2, 2], more_is_better=True).ratio(RATE), 0.5)

    def test_rounds_are_compared_in_pairs(self):
        self.assertEqual(compared(LATENCY, [1, 5, 3], [2, 4, 2]).rounds_worse(LATENCY), (2, 3))

    def test_a_round_that_one_side_lacks_is_not_compared(self):
        comparison = compared(LATENCY, [1, 5], [2, 4])
        comparison.add("this", 2, LATENCY, 9, "us")
        self.assertEqual(comparison.rounds_worse(LATENCY), (1, 2))

    def test_no_figure_is_no_ratio(self):
        comparison = Comparison()
        comparison.add("this", 0, LATENCY, 3, "us")
        self.assertIsNone(comparison.ratio(LATENCY))
        self.assertEqual(comparison.missing(), [("other", LATENCY)])
        self.assertIn(" - ", table(comparison)[2])

    def test_a_figure_of_zero_is_no_ratio(self):
        self.assertIsNone(compared(LATENCY, [0], [0]).ratio(LATENCY))


class Marks(unittest.TestCase):

    def test_a_tenth_is_let_pass(self):
        comparison = compared(LATENCY, [11], [10])
        self.assertEqual(comparison.marked(), [])
        self.assertNotIn(">", table(comparison)[2])

    def test_more_than_a_tenth_is_marked(self):
        comparison = compared(LATENCY, [11.2], [10])
        self.assertEqual(comparison.marked(), [LATENCY])
        self.assertTrue(table(comparison)[2].endswith("> 1.10"))

    def test_a_rate_that_fell_by_a_tenth_is_marked(self):
        self.assertEqual(compared(RATE, [0.9], [1], more_is_better=True).marked(), [RATE])

    def test_what_is_faster_is_not_marked(self):
        self.assertEqual(compared(LATENCY, [1], [10]).marked(), [])


class Tables(unittest.TestCase):

    def test_suites_and_rows_keep_their_order(self):
        comparison = compared(RATE, [1], [1], more_is_better=True)
        comparison.add("this", 0, LATENCY, 1, "us")
        self.assertEqual(comparison.rows(), [RATE, LATENCY])
        self.assertEqual(sum("worse in" in line for line in table(comparison)), 1)


if __name__ == "__main__":
    unittest.main()
