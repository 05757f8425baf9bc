"""Partitioned communication with a rank that dies in the middle. A seed is printed with each failure; PARTITIONED_SEEDS (3) from PARTITIONED_FIRST (100)
on: bazel test --test_env=PARTITIONED_SEEDS=200 //tests/mpi:partitioned_test
"""

import os
import re
import time

import mpi
import stock

FIRST, SEEDS = int(os.environ.get("PARTITIONED_FIRST", 100)), int(os.environ.get("PARTITIONED_SEEDS", 3))
BOUND = 30  # seconds, for everything to end after the death


class Partitioned(mpi.MpiTest):
    def outlive(self, library, seed):
        """What ranks 0, 2 and 3 say when rank 1 dies. Each rank has a shell, so that no launcher notices."""
        program = stock.workspace_file("tests/mpi/scale/mortal_partitioned")
        job = mpi.Job([*mpi.hydra(), "-n", "4", "sh", "-c", '"$@"; sleep 60', "sh", program, str(seed)], library.settings())
        try:
            deadline = time.monotonic() + BOUND * self.slow
            while True:
                said = {int(rank): text for rank, text in re.findall(r"^rank (\d): (.*)$", job.output, re.M)}
                if sorted(said) == [0, 2, 3]:
                    return said
                if time.monotonic() > deadline:
                    self.fail(f"not all were heard of:\n{job.output}\n{job.stacks()}")
                time.sleep(mpi.POLL_SECONDS)
        finally:
            job.kill()

    def test_who_waits_for_partitions_of_a_dead_rank_hears_of_it(self):
        for library in mpi.WeftUnderMpiexec, mpi.WeftApart, mpi.WeftOverSctp:
            for seed in range(FIRST, FIRST + SEEDS):
                with self.subTest(library=library.__name__, seed=seed):
                    self.assertEqual(set(self.outlive(library, seed).values()), {"an error"})


if __name__ == "__main__":
    stock.main()
