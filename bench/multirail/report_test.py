"""The arithmetic of the tables, the thesis's figures, and the times of the cuts: nothing is measured."""

import unittest

import over_time
import picture
import printed
import report
import schedule
from table import Table, bytes_text


def transfer(mbit_s, stall=0.1):
    return {"mbit_s": mbit_s, "longest_stall_s": stall, "link_bytes": [750, 250], "samples_mbit_s": [], "every_s": 1, "bytes": 1, "stalled_at_s": 0}


def cell(table, row, column):
    return table.rows[row][table.columns.index(column)]


class Tables(unittest.TestCase):

    def test_text_is_aligned_and_markdown_is_a_table(self):
        table = Table("T", ["", "a", "long"], [["x", "1", "2"], ["yy", "10", "20"]], ["note"])
        self.assertEqual(table.text(), "T\n     a  long\nx    1     2\nyy  10    20\nnote")
        self.assertEqual(table.markdown(), "**T**\n\n|  | a | long |\n| --- | --: | --: |\n| x | 1 | 2 |\n| yy | 10 | 20 |\n\nnote")

    def test_a_row_that_does_not_fit_is_refused(self):
        with self.assertRaises(ValueError):
            Table("T", ["a", "b"], [["1"]])

    def test_sizes(self):
        self.assertEqual([bytes_text(n) for n in (2, 1000, 1024, 65536, 1 << 20)], ["2 B", "1000 B", "1 KiB", "64 KiB", "1 MiB"])


class OverTime(unittest.TestCase):

    def table(self, failover, pf):
        results = {"seconds": 120, "cuts": [[0, 15, 35], [1, 55, 75]],
                   "modes": {"one path": transfer(1000), "failover": transfer(failover), "cmt": transfer(1500), "pf": transfer(pf, 0.25)}}
        targets = report.Targets()
        return report.over_time(results, targets), targets.missed

    def test_ratios_are_to_the_measured_path_and_the_thesiss_to_its_own(self):
        table, missed = self.table(950, 1600)
        self.assertEqual([row[2] for row in table.rows], ["1.00", "0.95", "1.50", "1.60"])
        self.assertEqual([row[3] for row in table.rows], ["-", "911", "1270", "1320"])
        self.assertEqual([row[4] for row in table.rows], ["-", "0.93", "1.30", "1.35"])
        self.assertEqual(cell(table, 3, "stall s"), "0.25")
        self.assertEqual(cell(table, 3, "links %"), "75 / 25")
        self.assertIn("at most 1.67", table.notes[0])
        self.assertEqual(missed, 0)

    def test_what_is_below_the_thesis_is_missed(self):
        table, missed = self.table(929, 1340)
        self.assertEqual(missed, 2)
        self.assertTrue(cell(table, 1, "target").endswith("NO"))
        self.assertTrue(cell(table, 3, "target").endswith("NO"))

    def test_what_a_client_prints_is_read(self):
        output = ("1.0 s: 100.0 MB/s\n1.50 s: path 10.71.1.2 inactive\n2.0 s: 200.5 MB/s\n"
                  "65536 bytes: 150.0 MB/s, all 300000000 arrived and are right, longest stall 0.093 s at 1.46 s\n")
        read = over_time.parse(output)
        self.assertEqual(read["samples_mbit_s"], [800, 1604])
        self.assertEqual((read["mbit_s"], read["bytes"], read["longest_stall_s"], read["stalled_at_s"]), (1200, 300000000, 0.093, 1.46))

    def test_a_client_that_failed_is_no_figure(self):
        right = "65536 bytes: 150.0 MB/s, all 3 arrived and are right, longest stall 0.093 s at 1.46 s\n"
        for output, status in (("transfer_benchmark: 3 messages with wrong bytes\n", 1), ("", 0), (right, -9)):
            with self.assertRaises(over_time.Failed):
                over_time.parse(output, status)


class BySize(unittest.TestCase):

    def table(self, two):
        results = {"tcp": [[1024, 700], [1 << 20, 990]], "sctp": [[1024, 800], [1 << 20, 1000]], "cmt": [[1024, 1200], [1 << 20, two]]}
        targets = report.Targets()
        return report.by_size(results, "somewhere", targets), targets.missed

    def test_the_target_is_at_one_mebibyte(self):
        table, missed = self.table(1800)
        self.assertEqual(table.rows[0], ["1 KiB", "700", "800", "1200", "1.50", "-", "-", "-"])
        self.assertEqual(table.rows[1], ["1 MiB", "990", "1000", "1800", "1.80", "980 / 980 / 1700", "1.73", ">= 1.8: yes"])
        self.assertEqual(missed, 0)
        self.assertEqual(self.table(1799)[1], 1)


class Windows(unittest.TestCase):
    RESULTS = {"fences": {"put hybrid": [[8, 40.0]], "put messages": [[8, 32.0]], "get hybrid": [[8, 30.0]], "get messages": [[8, 60.0]]},
               "mixed": {"hybrid": 8000.0, "messages": 10000.0}}

    def test_ratios_are_hybrid_to_messages(self):
        self.assertEqual(report.fences(self.RESULTS).rows, [["8 B", "40.0", "32.0", "1.25", "30.0", "60.0", "0.50", "1.02 to 1.08"]])
        self.assertEqual(report.mixed(self.RESULTS).rows,
                         [["measured, a round", "8.00 ms", "10.00 ms", "0.80"], ["thesis, its program", "3.82 s", "4.52 s", "0.85"]])

    def test_only_what_was_measured_has_a_table(self):
        self.assertEqual(len(report.tables({"windows": self.RESULTS})[0]), 2)
        self.assertEqual(report.tables({}), ([], 0))


class Picture(unittest.TestCase):

    def test_each_figure_has_a_panel_with_its_points_and_the_thesiss(self):
        sizes = {"tcp": [[1024, 701]], "sctp": [[1024, 802]], "cmt": [[1024, 1203]]}
        over = {"seconds": 120, "cuts": [[0, 15, 35]], "modes": {"pf": {**transfer(1600), "samples_mbit_s": [1501.5, 1502.5]}}}
        script = picture.script({"over_time": over, "transport": sizes, "mpi": sizes, "windows": Windows.RESULTS}, "x.png")
        self.assertEqual(script.count("\nplot "), 5)
        for point in ("0.5 1501.5", "1.5 1502.5", "120 1320", "1024 1203", "1048576 1700", "8 1.25", "8 0.5", "0.82 0.8", "8 1.02 1.08"):
            self.assertIn(f"\n{point}\n", script)

    def test_what_was_not_measured_has_none(self):
        self.assertEqual(picture.script({"windows": Windows.RESULTS}, "x.png").count("\nplot "), 2)


class Cuts(unittest.TestCase):

    def test_the_thesiss_and_the_same_in_less_time(self):
        self.assertEqual(schedule.THESIS.changes(), [(15, 0, False), (35, 0, True), (55, 1, False), (75, 1, True)])
        self.assertEqual(schedule.THESIS.scaled(12).changes(), [(1.5, 0, False), (3.5, 0, True), (5.5, 1, False), (7.5, 1, True)])
        self.assertAlmostEqual(schedule.THESIS.most(), 200 / 120)
        self.assertAlmostEqual(schedule.THESIS.scaled(12).most(), 200 / 120)

    def test_they_are_made_in_order_while_the_transfer_runs(self):
        seen = []
        schedule.THESIS.scaled(0.12).run(lambda link, up: seen.append((link, up)), lambda: True)
        self.assertEqual(seen, [(0, False), (0, True), (1, False), (1, True)])
        seen.clear()
        schedule.THESIS.scaled(0.12).run(lambda link, up: seen.append((link, up)), lambda: len(seen) < 2)
        self.assertEqual(seen, [(0, False), (0, True)])


class Printed(unittest.TestCase):

    def test_the_thesis_agrees_with_itself(self):
        self.assertAlmostEqual(printed.ratio_to_one_path("pf"), 1.347, 3)
        self.assertAlmostEqual(printed.MIXED["hybrid"] / printed.MIXED["messages"], 0.846, 3)


if __name__ == "__main__":
    unittest.main()
