"""Runs every benchmark with hardly any iterations. Fails if one cannot be measured or the system's libraries were."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

BENCH = os.path.abspath(sys.argv.pop())
COUNTERS = {
    "half_round_trip": ["raw_us", "weft_us", "ratio_us"],
    "bandwidth": ["raw_GB_s", "weft_GB_s", "ratio_GB_s", "weft_cpu_s_per_GiB"],
    "cpu": ["raw_cpu_s_per_GiB", "weft_cpu_s_per_GiB"],
    "rate": ["weft_millions_s"],
    "connect": ["weft_s"],
    "memory": ["weft_KiB"],
    "idle": ["weft_ms_per_s"],
    "sctp_half_round_trip": ["raw_us", "weft_us", "ratio_us"],
    "sctp_bandwidth": ["raw_GB_s", "weft_GB_s", "ratio_GB_s"],
}


class Smoke(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        with tempfile.NamedTemporaryFile(suffix=".json") as out:
            cls.run_ = subprocess.run([BENCH, "--smoke", f"--benchmark_out={out.name}"],
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=240)
            cls.benchmarks = json.load(open(out.name))["benchmarks"]

    def test_every_benchmark_is_measured(self):
        self.assertEqual(self.run_.returncode, 0, self.run_.stdout)
        self.assertNotIn("Not measured", self.run_.stdout)

    def test_every_group_has_its_counters(self):
        groups = {benchmark["name"].split("/")[0] for benchmark in self.benchmarks}
        self.assertEqual(groups, set(COUNTERS))
        for benchmark in self.benchmarks:
            for counter in COUNTERS[benchmark["name"].split("/")[0]]:
                # What was not measured has no counters, and says why.
                self.assertIn(counter, benchmark, benchmark)
                self.assertGreaterEqual(benchmark[counter], 0)

    def test_the_libraries_of_this_tree_are_measured(self):
        library = self.run_.stdout.split("Verbs library ")[1].split("\n")[0]
        self.assertTrue(library.endswith("libibverbs.so.1"), library)
        self.assertFalse(library.startswith(("/lib", "/usr")), library)

    def test_an_unknown_option_is_refused(self):
        self.assertNotEqual(subprocess.run([BENCH, "--smokey"], stderr=subprocess.DEVNULL).returncode, 0)


if __name__ == "__main__":
    unittest.main()
