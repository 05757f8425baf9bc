"""bench/fabrics/run with few messages: each program runs, and its figures are found in what it prints."""

import json
import os
import subprocess
import tempfile
import unittest

import stock


class Smoke(unittest.TestCase):

    def test_send_and_atomics(self):
        if stock.sanitizer()[0]:
            self.skipTest("figures are not measured under sanitizers, and perftest and UCX run there in tests of their own")
        with tempfile.NamedTemporaryFile("r") as out:
            command = [stock.workspace_file("bench/fabrics/run"), "--quick", "--messages", "200", "--unpinned", "--only", "send,fetch_add",
                       "--json", out.name]
            done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "WEFT": stock.weft()})
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            results = json.load(out)
        self.assertEqual(set(results), {"send/latency/64", "fetch_add/latency/8", "send/bandwidth/65536", "fetch_add/bandwidth/8"})
        for row, figures in results.items():
            wanted = {"weft", "ucx_tcp", "ucx_weft"} | ({"libfabric_tcp"} if row.startswith("send") else set())
            self.assertLessEqual(wanted, set(figures), done.stdout)
            self.assertTrue(all(value > 0 for value in figures.values()), done.stdout)

    def test_same_host(self):
        if stock.sanitizer()[0]:
            self.skipTest("figures are not measured under sanitizers")
        command = [stock.workspace_file("bench/fabrics/run"), "--same-host", "--quick", "--messages", "200", "--unpinned", "--only", "send"]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "WEFT": stock.weft()})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for column in ("weft", "ucx_shm", "libfabric_shm"):
            self.assertIn(column, done.stdout)


if __name__ == "__main__":
    stock.main()
