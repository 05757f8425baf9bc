"""Every suite of bench/against once, with hardly any messages, on the Weft of this tree. The figures mean nothing."""

import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import stock

BENCH = os.path.dirname(stock.workspace_file("bench/against"))


def load():
    sys.path.insert(0, BENCH)
    loader = importlib.machinery.SourceFileLoader("against", os.path.join(BENCH, "against"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("against", loader))
    loader.exec_module(module)
    return module


against = load()


class EverySuite(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        built = os.path.dirname(BENCH)
        cls.prefix = cls.installed()
        cls.runs = against.Runs(built, quick=True, effort="--smoke", messages=200)

    @staticmethod
    def installed():
        return against.installed(os.path.dirname(os.path.dirname(stock.workspace_file("tools/stage/bin/weft"))))

    def rows(self, suite):
        rows = {(name, size): (value, unit, more) for name, size, value, unit, more in getattr(self.runs, suite)(self.prefix)}
        self.assertTrue(all(value >= 0 for value, _, _ in rows.values()), rows)
        return rows

    def test_verbs(self):
        rows = self.rows("verbs")
        self.assertEqual(rows["half_round_trip/polling/64", 0][1:], ("us", False))
        self.assertEqual(rows["bandwidth/Write/65536/crc_off", 0][1:], ("GB/s", True))
        self.assertEqual(rows["bandwidth/Write/65536/crc_off cpu", 0][1:], ("s/GiB", False))
        self.assertEqual({name.partition("/")[0] for name, _ in rows if not name.startswith("raw TCP: ")},
                         {"half_round_trip", "bandwidth", "cpu", "rate", "connect", "memory", "idle", "sctp_half_round_trip", "sctp_bandwidth"})
        self.assertIn(("raw TCP: half_round_trip/polling/64", 0), rows)

    def test_mpi_between_hosts(self):
        rows = self.rows("mpi")
        self.assertEqual(rows["put_fence", 8][1:], ("us", False))
        self.assertEqual(rows["put_rate", 8][1:], ("1/s", True))
        self.assertIn(("write_at", 16 << 20), rows)
        self.assertTrue(any(name == "barrier(4)" for name, _ in rows), rows)

    def test_mpi_on_one_host(self):
        rows = self.rows("mpi_same_host")
        self.assertIn(("ping_pong", 8), rows)
        self.assertLessEqual({"barrier(2)", "barrier(4)"}, {name for name, _ in rows})

    def test_fabrics(self):
        for suite in ("fabrics", "fabrics_same_host"):
            with unittest.mock.patch.dict(os.environ, stock.sanitizer_settings()):
                rows = self.rows(suite)
            self.assertEqual(rows["write latency", 64][1:], ("us", False))
            self.assertEqual(rows["write bandwidth", 65536][1:], ("MB/s", True))


class OlderWeft(unittest.TestCase):

    def test_is_given_no_setting_that_it_would_refuse(self):
        with tempfile.TemporaryDirectory() as prefix:
            os.mkdir(f"{prefix}/bin")
            with open(f"{prefix}/bin/weft", "w") as weft:
                weft.write("#!/bin/sh\necho 'WEFT_CRC=on|off|auto [auto]'\n")
            os.chmod(weft.name, 0o755)
            self.assertEqual(against.mpi.installed(prefix, "mpi_bench", same_host=False).over_tcp, ([], {}))
        settings = against.fabrics.path(same_host=False)
        self.assertEqual(against.mpi.known(EverySuite.installed(), settings), settings)


class Refusals(unittest.TestCase):

    def said(self, *words):
        done = subprocess.run([sys.executable, os.path.join(BENCH, "against"), *words], capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        return done.stderr

    def test_a_suite_that_is_unknown(self):
        self.assertIn("unknown suite verb:", self.said("/usr", "--only", "verb"))

    def test_no_rounds(self):
        self.assertIn("--rounds 0", self.said("/usr", "--rounds", "0"))

    def test_a_prefix_without_weft(self):
        with tempfile.TemporaryDirectory() as nothing, self.assertRaises(SystemExit) as left:
            against.installed(nothing)
        self.assertIn("has no bin/weft", str(left.exception))


if __name__ == "__main__":
    stock.main()
