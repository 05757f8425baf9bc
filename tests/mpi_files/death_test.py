"""A rank dies in the middle of collective calls on a file (mortal.c): each of the others gets an error, can close the file, and waits for nobody.

Seeds pick calls and moments. DEATH_RUNS (8) of them from DEATH_FIRST (100) on; the one that failed is printed:
bazel test --test_env=DEATH_RUNS=500 --test_timeout=7200 //tests/mpi_files:death_test
"""

import os
import re
import tempfile
import time

import mpi
import stock

FIRST, RUNS = int(os.environ.get("DEATH_FIRST", "100")), int(os.environ.get("DEATH_RUNS", "8"))
VERBOSE = "DEATH_VERBOSE" in os.environ
BOUND = 30  # seconds, for all to hear of it
SURVIVORS = [0, 2, 3]


class Death(mpi.MpiTest):

    def outlive(self, seed, file_name):
        """What each rank but 1 says in the end. Each has a shell, so that no launcher notices and ends the job."""
        words = [*mpi.hydra(), "-n", "4", "sh", "-c", '"$@"; sleep 600', "sh", stock.workspace_file("tests/mpi_files/mortal"), str(seed), file_name]
        job = mpi.Job(words, self.library.settings())
        try:
            deadline = time.monotonic() + BOUND * self.slow
            while True:
                said = {int(rank): text for rank, text in re.findall(r"^rank (\d): (.*)$", job.output, re.M)}
                if sorted(said) == SURVIVORS:
                    return said
                if time.monotonic() > deadline:
                    self.fail(f"seed {seed}: not all were heard of:\n{job.output}\n{job.stacks()}")
                time.sleep(mpi.POLL_SECONDS)
        finally:
            job.kill()

    def outlive_all(self, library):
        self.library = library
        for seed in range(FIRST, FIRST + RUNS):
            with self.subTest(seed=seed), tempfile.TemporaryDirectory() as directory:
                said = self.outlive(seed, os.path.join(directory, "file"))
                self.assertTrue(all(text.startswith("a death: ") for text in said.values()), f"seed {seed}: {said}")
                if VERBOSE:
                    print(f"seed {seed}: {said}", flush=True)

    def test_with_buffers_in_common(self):
        self.outlive_all(mpi.WeftUnderMpiexec)

    def test_as_if_on_hosts_of_their_own(self):
        self.outlive_all(mpi.WeftApart)


if __name__ == "__main__":
    stock.main()
