"""After MPI_Comm_disconnect a job and the one that spawned it are two: what becomes of one is not the other's affair."""

import os
import tempfile
import time
import unittest

import mpi
import stock

KILLED = 128 + 9
RANKS = {"parent": 2, "child": 3}


def touch(path):
    with open(path, "w"):
        pass


class Apart(mpi.MpiTest):
    library = mpi.WeftUnderMpiexec

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.go_on, self.die = os.path.join(directory.name, "go on"), os.path.join(directory.name, "die")

    def start_jobs(self, *words, version="1"):
        return self.start(RANKS["parent"], stock.workspace_file("tests/mpi_dynamic/apart"), *words, GO_ON=self.go_on, DIE=self.die, WEFT_PMI=version)

    def await_output(self, job, words):
        deadline = time.monotonic() + mpi.TIMEOUT * self.slow
        while words not in job.output:
            self.assertLess(time.monotonic(), deadline, job.output)
            self.assertIsNone(job.status, job.output)
            time.sleep(mpi.POLL_SECONDS)

    def kill_one(self, job):
        """When all are out of MPI_Comm_disconnect."""
        for role, ranks in RANKS.items():
            for rank in range(ranks):
                self.await_output(job, f"{role} {rank} has parted\n")
        touch(self.die)

    def end(self, job):
        self.assertTrue(job.wait(mpi.TIMEOUT * self.slow), job.output)
        self.assertEqual(job.left_behind(), [])
        return job.output

    def expect_that_the_other_goes_on(self, victim, *words, **options):
        other = "child" if victim == "parent" else "parent"
        job = self.start_jobs(victim, *words, **options)
        self.kill_one(job)
        self.await_output(job, "; the job ends\n")
        touch(self.go_on)
        output = self.end(job)
        for rank in range(RANKS[other]):
            self.assertIn(f"{other} {rank} goes on\n", output)
        self.assertNotIn("connected with", output)
        self.assertEqual(job.status, KILLED, "the exit status is that of the first failure of any job")
        os.remove(self.go_on)
        os.remove(self.die)

    def test_one_dies_and_the_other_goes_on(self):
        for version in "1", "2":
            for victim in "parent", "child":
                for words in ((), ("self",)):
                    with self.subTest(version=version, victim=victim, words=words):
                        self.expect_that_the_other_goes_on(victim, *words, version=version)

    def test_who_has_anything_in_common_ends_with_the_other(self):
        for victim in "parent", "child":
            with self.subTest(victim=victim):
                job = self.start_jobs(victim, "still")
                self.kill_one(job)
                output = self.end(job)
                self.assertIn("; the job and those connected with it end", output)
                self.assertNotIn("goes on", output)
                self.assertEqual(job.status, KILLED, output)
                os.remove(self.die)

    def test_both_go_on_when_nobody_dies(self):
        for version in "1", "2":
            touch(self.go_on)
            job = self.start_jobs("nobody", version=version)
            output = self.end(job)
            self.assertEqual((job.status, output.count("goes on")), (0, sum(RANKS.values())), output)


if __name__ == "__main__":
    unittest.main()
