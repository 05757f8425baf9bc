"""Runs the model with few ranks: its table has a row for each algorithm, says what is chosen, and is the same each time."""

import os
import subprocess
import sys
import unittest

MODEL = os.path.abspath(sys.argv.pop())


def table(*options):
    run = subprocess.run([MODEL, *options], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    lines = [line.split() for line in run.stdout.splitlines()]
    return [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]


class Model(unittest.TestCase):

    def test_every_case_has_a_choice_of_weft_and_of_mpich(self):
        rows = table("--layouts", "12/12,16/4", "--bytes", "8,64K")
        self.assertEqual(rows, table("--layouts", "12/12,16/4", "--bytes", "8,64K"))
        choices = {}
        for row in rows:
            self.assertGreater(float(row["us"]), 0, row)
            case = tuple(row[key] for key in ("collective", "ranks", "hosts", "bytes", "Gbit"))
            choices.setdefault(case, []).extend(row["chosen_by"].split(","))
        self.assertEqual(len(choices), 9 * 2 * 2 * 2)
        for case, chosen in choices.items():
            self.assertEqual((chosen.count("weft"), chosen.count("mpich")), (1, 1), case)

    def test_options_reach_the_model(self):
        case = ("--layouts", "8/8", "--bytes", "8", "--gbit", "1000", "--message-cpu", "0", "--collectives", "bcast")
        for latency in (100, 200):
            rows = {row["algorithm"]: row for row in table(*case, "--latency", str(latency))}
            self.assertAlmostEqual(float(rows["binomial"]["us"]), 3 * latency, delta=0.5)
            self.assertEqual(rows["binomial"]["rank_msgs"], "3")

    def test_what_is_too_large_is_named(self):
        rows = table("--layouts", "64/64", "--bytes", "8", "--collectives", "allreduce", "--most-actions", "2000")
        times = {row["algorithm"]: row["us"] for row in rows}
        self.assertEqual(times["ring"], "too_large")
        self.assertGreater(float(times["doubling"]), 0)

    def test_wrong_options_are_refused(self):
        for option in (("--layouts", "4/8"), ("--layouts", "4"), ("--collectives", "teleport"), ("--gbit", "0")):
            self.assertNotEqual(subprocess.run([MODEL, *option], capture_output=True).returncode, 0, option)


if __name__ == "__main__":
    unittest.main()
