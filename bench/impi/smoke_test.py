"""bench/impi/run with short samples: all jobs run, and their figures are found in what they print."""

import json
import os
import subprocess
import tempfile
import unittest

import stock


class Smoke(unittest.TestCase):

    def test_all_jobs_have_all_figures(self):
        if stock.sanitizer()[0]:
            self.skipTest("figures are not measured under sanitizers")
        with tempfile.NamedTemporaryFile("r") as out:
            words = ["--quick", "--rounds", "1", "--json", out.name, "--prefix", os.path.dirname(os.path.dirname(stock.weft())),
                     "--program", stock.workspace_file("bench/impi/messages"), "--relays", stock.workspace_file("bench/impi/relays")]
            done = subprocess.run([stock.workspace_file("bench/impi/run"), *words], capture_output=True, text=True, timeout=120)
            self.assertIn(done.returncode, (0, 1), done.stdout + done.stderr)  # 1: a target is missed
            results = json.load(out)
        self.assertRegex(done.stdout, r"through two that only pass them on: [\d.]+ us if the ends spin, [\d.]+ us if they sleep")
        rows = {f"ping_pong/{size}" for size in (8, 1024, 4096, 65536, 1 << 20)} | {f"bandwidth/{1 << 20}"}
        self.assertEqual({name: set(figures) for name, figures in results.items()}, {"tcp": rows, "weft": rows, "agents": rows}, done.stdout + done.stderr)
        self.assertTrue(all(value > 0 for figures in results.values() for value in figures.values()), done.stdout)


if __name__ == "__main__":
    stock.main()
