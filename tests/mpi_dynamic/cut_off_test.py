"""Ranks on two hosts that no launcher watches over, network namespaces whose link is cut: each finds out in the time that mpiexec(1) says, whether it waits
for the other or sends to it. Needs root."""

import os
import subprocess
import tempfile
import time
import unittest

import mpi
import namespaces
import stock

NOTICED = 100  # seconds, as the man page says
MPIX_ERR_PROC_FAILED = 101


class CutOff(mpi.MpiTest):
    library = mpi.WeftUnderMpiexec

    def setUp(self):
        if os.geteuid() != 0 or not namespaces.can_make_namespaces():
            self.skipTest("making network namespaces needs root")
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.places = [f"weft-cut-{os.getpid()}-{number}" for number in (1, 2)]
        for name in self.places:
            self.ip("netns", "add", name)
            self.addCleanup(self.ip, "netns", "del", name)
        self.ip("-n", self.places[0], "link", "add", "w0", "type", "veth", "peer", "name", "w0", "netns", self.places[1])
        for number, name in enumerate(self.places, 1):
            self.ip("-n", name, "link", "set", "lo", "up")
            self.ip("-n", name, "addr", "add", f"10.78.0.{number}/24", "dev", "w0")
            self.ip("-n", name, "link", "set", "w0", "up")

    def ip(self, *words):
        subprocess.run(["ip", *words], check=True)

    def launch(self, place, how, file):
        words = ["ip", "netns", "exec", self.places[place], stock.workspace_file("tests/mpi_dynamic/wait"), how, os.path.join(self.directory, file)]
        job = mpi.Job(words, {**self.library.settings(), "WEFT_MPI_HOST": f"10.78.0.{place + 1}"})
        self.addCleanup(job.kill)
        return job

    def await_line(self, job, line):
        deadline = time.monotonic() + mpi.TIMEOUT * self.slow
        while line not in job.output.splitlines():
            self.assertLess(time.monotonic(), deadline, job.output)
            self.assertIsNone(job.status, job.output)
            time.sleep(mpi.POLL_SECONDS)

    def crossed(self):
        """Packets that have come over the link to the second place."""
        words = ["ip", "netns", "exec", self.places[1], "cat", "/sys/class/net/w0/statistics/rx_packets"]
        return int(subprocess.run(words, check=True, capture_output=True).stdout)

    def await_waits(self, jobs):
        """Until those who only wait sleep, and messages of the one who sends cross the link."""
        def sleeps(job):
            with open(f"/proc/{job.pid}/stat") as file:
                return file.read().rpartition(") ")[2][0] == "S"

        deadline = time.monotonic() + mpi.TIMEOUT * self.slow
        before = self.crossed()
        while self.crossed() < before + 3 or not all(map(sleeps, jobs.values())):
            self.assertLess(time.monotonic(), deadline, "nothing crosses the link, or somebody does not wait")
            for name, job in jobs.items():
                self.assertNotIn("heard", job.output, name)
            time.sleep(mpi.POLL_SECONDS)

    def test_both_sides_notice(self):
        jobs = {}
        for how in ("talk", "tell"):
            first = self.launch(0, "listen", how)
            self.await_line(first, "waits 0")
            second = self.launch(1, how, how)
            self.await_line(first, "met 0")
            self.await_line(second, "met 0")
            jobs["who waits for one that " + how + "s"], jobs["who " + how + "s"] = first, second
        self.await_waits(jobs)
        self.ip("-n", self.places[1], "link", "set", "w0", "down")
        cut = time.monotonic()
        for name, job in jobs.items():
            with self.subTest(name):
                self.assertTrue(job.wait(max(1, NOTICED + 30 - (time.monotonic() - cut))), f"{name} still runs: {job.output}\n{job.stacks()}")
                print(f"{name}: {time.monotonic() - cut:.0f} s after the cut")
                self.assertIn(f"heard {MPIX_ERR_PROC_FAILED}", job.output)
                self.assertEqual(job.status, 0, job.output)


if __name__ == "__main__":
    unittest.main()
