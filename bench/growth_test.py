"""Prints the table of costs against the number of queue pairs with hardly any samples. The figures mean nothing."""

import os
import subprocess
import sys
import unittest

GROWTH = os.path.abspath(sys.argv.pop())


def run(*options):
    return subprocess.run([GROWTH, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)


class Growth(unittest.TestCase):

    def test_every_row_has_every_figure(self):
        done = run("--smoke", "--connections=1,3,20")
        self.assertEqual(done.returncode, 0, done.stdout)
        heading, units, *rows = [line.split() for line in done.stdout.splitlines()]
        self.assertEqual([row[0] for row in rows], ["1", "3", "20"])
        for row in rows:
            self.assertEqual(len(row), 1 + len(units[1:]), done.stdout)
            memory = row.pop(6)  # may have been there already
            self.assertGreaterEqual(float(memory), 0)
            self.assertTrue(all(float(figure) > 0 for figure in row), row)

    def test_an_unknown_option_is_refused(self):
        for wrong in ("--smokey", "--connections=", "--connections=0", "--connections=1,x"):
            self.assertEqual(run(wrong).returncode, 2, wrong)

    def test_what_cannot_be_measured_is_said(self):
        done = run("--smoke", "--address=nowhere")
        self.assertEqual(done.returncode, 1)
        self.assertIn("nowhere", done.stdout)


if __name__ == "__main__":
    unittest.main()
