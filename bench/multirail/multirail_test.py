"""The experiments, briefly: right bytes, a cut that is survived, both networks in use, nothing left behind. Needs root, and says so without."""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

import by_size
import mpi
import mpi_job
import over_time
import schedule
import two_links

SECONDS = 4


def namespaces():
    return subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout


class Experiments(unittest.TestCase):

    def setUp(self):
        obstacle = two_links.why_not()
        if obstacle is not None:
            self.skipTest(obstacle)
        self.links = two_links.TwoLinks("1gbit", mtu=9000)
        self.addCleanup(self.links.close)

    def test_every_byte_is_right_and_both_links_carry_while_each_is_cut(self):
        measured = over_time.measure(self.links, "pf", schedule.THESIS.scaled(SECONDS), 0.2)
        self.assertGreater(measured["bytes"], 0)
        self.assertLess(measured["longest_stall_s"], 2, measured)
        self.assertGreater(min(measured["link_bytes"]), measured["bytes"] / 20, measured)
        # What arrived is what was sent, and went over the two links.
        self.assertGreater(sum(measured["link_bytes"]), measured["bytes"])
        self.assertGreaterEqual(len(measured["samples_mbit_s"]), SECONDS / 0.2 - 2, measured)

    def test_failover_moves_to_the_second_link(self):
        measured = over_time.measure(self.links, "failover", schedule.THESIS.scaled(SECONDS), 0.2)
        self.assertGreater(min(measured["link_bytes"]), measured["bytes"] / 20, measured)

    def test_one_path_is_one_path(self):
        measured = over_time.measure(self.links, "one path", schedule.Schedule(1, ()), 0.2)
        self.assertLess(measured["link_bytes"][1], measured["link_bytes"][0] / 100, measured)
        self.assertLess(measured["mbit_s"], 1000, "the link does not hold back")

    def test_links_that_both_stay_down_are_a_failure_and_no_figure(self):
        forever = schedule.Schedule(2, (schedule.Cut(0, 0.3, 40), schedule.Cut(1, 0.3, 40)))
        with unittest.mock.patch.dict(os.environ, WEFT_SCTP_RETRIES="3"), self.assertRaisesRegex(over_time.Failed, "lost"):
            over_time.measure(self.links, "failover", forever, 0.2)

    def test_what_sctp_over_two_links_is_compared_with_is_held_back_by_one(self):
        for rate in (by_size.tcp_rate(self.links, 65536, 1), by_size.sctp_rate(self.links, 65536, 1, "sctp")):
            self.assertGreater(rate, 0)
            self.assertLess(rate, 1000)

    def mpi_figures(self, suite, paths, **settings):
        return mpi_job.figures(self.links, suite, True, paths, {**mpi.WeftUnderMpiexec.settings(), **mpi_job.SCTP, **settings})

    def test_ranks_of_mpi_use_both_links_with_cmt(self):
        before = self.links.received("two")
        figures = self.mpi_figures("bandwidth", 2, WEFT_SCTP_CMT="on")
        self.assertEqual([name for name, _ in figures], ["bandwidth"] * 3)
        carried = [after - then for after, then in zip(self.links.received("two"), before)]
        self.assertGreater(min(carried), sum(carried) / 20, carried)

    def test_windows_and_mixed_program_over_sctp(self):
        figures = self.mpi_figures("windows", 1)
        for name in ("put_fence", "put_fence_emulated", "get_fence", "get_fence_emulated"):
            self.assertGreater(figures[name, 1 << 20], 8000, "a MiB in less time than the link takes")
        self.assertIn(("mixed", 0), figures)
        self.assertIn(("mixed_emulated", 0), figures)


class Leftovers(unittest.TestCase):
    SCRIPT = """
import sys
sys.path[:0] = {path!r}
import over_time, schedule, two_links
two_links.end_with_clean_up()
try:
    with two_links.TwoLinks("1gbit") as links:
        print(*links.names.values(), flush=True)
        over_time.measure(links, "cmt", schedule.Schedule(50, (schedule.Cut(0, 0.1, 45),)), 1)
except KeyboardInterrupt:
    sys.exit(130)
"""

    def test_nothing_is_left_after_a_signal(self):
        obstacle = two_links.why_not()
        if obstacle is not None:
            self.skipTest(obstacle)
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number.name):
                # A group of its own: a terminal's Ctrl-C goes to all of it.
                process = subprocess.Popen([sys.executable, "-c", self.SCRIPT.format(path=sys.path)], stdout=subprocess.PIPE, text=True,
                                           start_new_session=True)
                names = process.stdout.readline().split()
                self.assertEqual(len(names), 2)
                while "transfer_benchmark" not in self.commands_of(process.pid):
                    self.assertIsNone(process.poll())
                    time.sleep(0.01)
                os.killpg(process.pid, number)
                self.assertNotEqual(process.wait(20), 0)
                process.stdout.close()
                self.assertEqual(self.commands_of(process.pid), "")
                for name in names:
                    self.assertNotIn(name, namespaces())

    @staticmethod
    def commands_of(session):
        return subprocess.run(["ps", "-o", "args=", "-s", str(session)], capture_output=True, text=True).stdout


class WithoutRoot(unittest.TestCase):

    def test_it_says_what_is_needed_and_has_a_status_of_its_own(self):
        run = os.path.join(os.path.dirname(os.path.realpath(over_time.__file__)), "run")
        with tempfile.TemporaryDirectory() as directory:
            # Nobody has root; as an ordinary user already.
            drop = ["setpriv", "--reuid", "65534", "--clear-groups"] if os.geteuid() == 0 else []
            done = subprocess.run([*drop, "/usr/bin/python3", run, "--quick"], cwd=directory if not drop else "/", capture_output=True, text=True, timeout=50)
        self.assertEqual(done.returncode, two_links.CANNOT, done)
        self.assertIn("needs root", done.stderr)
        self.assertIn("as root", done.stderr)
        self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    unittest.main(verbosity=2)
