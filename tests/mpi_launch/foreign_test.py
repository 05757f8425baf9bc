"""Other people's halves: MPICH's ranks under our mpiexec, our client under MPICH's launcher."""

import ctypes
import os
import sys
import unittest

import launch

RING = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char** argv) {
  int rank, size, sum = 0, *appnum, flag;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &appnum, &flag);
  if (argc > 1 && rank == size - 1) {
    if (!strcmp(argv[1], "abort")) MPI_Abort(MPI_COMM_WORLD, 9);
    if (!strcmp(argv[1], "exit")) _exit(4);
  }
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("rank %d of %d sum %d appnum %d\n", rank, size, sum, flag ? *appnum : -1);
  MPI_Finalize();
  return 0;
}
"""


def sh(script):
    return ["sh", "-c", script]


class Mpich(launch.LaunchTest):

    def setUp(self):
        super().setUp()
        self.ring = self.compile(RING)

    def test_its_ranks_start_under_our_mpiexec(self):
        for size in (1, 2, 3, 4, 8, 32):
            done = self.succeed("-n", size, self.ring)
            wanted = [f"rank {r} of {size} sum {size * (size - 1) // 2} appnum 0" for r in range(size)]
            self.assertEqual(sorted(done.out.splitlines()), sorted(wanted), done)

    def test_its_ranks_see_which_program_they_are(self):
        done = self.succeed("-n", 1, self.ring, ":", "-n", 2, self.ring)
        self.assertEqual(sorted(line.split()[-1] for line in done.out.splitlines()), ["0", "1", "1"])

    def test_its_abort_ends_the_job_with_its_code(self):
        done = self.run_job("-n", 3, self.ring, "abort")
        self.assertEqual(done.status, 9, done)
        self.expect_nothing_left()

    def test_its_dead_rank_ends_the_job(self):
        done = self.run_job("-n", 3, self.ring, "exit")
        self.assertEqual(done.status, 4, done)
        self.assertIn("without MPI_Finalize", done.err)
        self.expect_nothing_left()


def has_slurms_library():
    try:
        ctypes.CDLL("libpmi2.so.0")
        return True
    except OSError:
        return False


@unittest.skipUnless(has_slurms_library(), "libpmi2.so.0 (Debian's libpmi2-0) is not installed")
class Pmi2(launch.LaunchTest):

    def rank(self, *words):
        return [sys.executable, launch.pmi2_rank(), *words]

    def test_slurms_library_speaks_to_our_mpiexec_as_to_hydra(self):
        for launcher, words in ((None, ("lookup",)), ("mpiexec.hydra", ())):
            for size in (1, 3):
                done = self.succeed("-n", size, *self.rank(*words), launcher=launcher)
                wanted = [f"rank {r} of {size}, application 0, spawned 0, mapping (vector,(0,1,1))" for r in range(size)]
                self.assertEqual(sorted(done.out.splitlines()), wanted, done)

    def test_ranks_of_both_versions_share_a_job(self):
        one, two = sh(f"WEFT_PMI=1 exec {launch.exchange()}"), sh(f"WEFT_PMI=2 exec {launch.exchange()}")
        done = self.succeed("-n", 2, *one, ":", "-n", 2, *two)
        self.assertEqual(sorted(done.out.splitlines()),
                         [f"rank {r} of 4, application {r // 2}, universe -1, secret 32" for r in range(4)], done)

    def test_our_client_speaks_it_under_hydra(self):
        for size in (1, 3):
            done = self.succeed("-n", size, launch.exchange(), launcher="mpiexec.hydra", settings={"WEFT_PMI": "2"})
            self.assertEqual(len(done.out.splitlines()), size, done)

    def test_slurms_library_spawns(self):
        done = self.succeed("-n", 1, *self.rank("spawn", "lookup"))
        mapping = "mapping (vector,(0,1,%d))"
        self.assertEqual(sorted(done.out.splitlines()), [
            "rank 0 of 1, application 0, spawned 0, " + mapping % 1, "rank 0 of 2, application 0, spawned 1, " + mapping % 2,
            "rank 1 of 2, application 0, spawned 1, " + mapping % 2, "spawned [0, 0], another job: True"], done)

    def test_a_rank_that_breaks_it_is_named(self):
        script = "printf 'cmd=init pmi_version=2 pmi_subversion=0\\n    14cmd=kvs-fence;' >&$PMI_FD; sleep 60"
        done = self.run_job("-n", 1, "bash", "-c", script)
        self.assertEqual(done.status, 1, done)
        self.assertIn("rank 0 (bash) sent a PMI command before fullinit, whose answer is kvs-fence-response", done.err)


class Hydra(launch.LaunchTest):

    def test_it_starts_our_client(self):
        for options in ([], ["-pmi-port"]):
            for size in (1, 2, 7):
                done = self.succeed(*options, "-n", size, launch.exchange(), "get-early", launcher="mpiexec.hydra")
                ranks = sorted(line.split(",")[0] for line in done.out.splitlines())
                self.assertEqual(ranks, [f"rank {r} of {size}" for r in range(size)], done)

    def test_our_abort_ends_its_job(self):
        done = self.run_job("-n", 3, launch.exchange(), "abort", 7, launcher="mpiexec.hydra")
        self.assertEqual(done.status, 7, done)


class Nobody(launch.LaunchTest):

    def test_our_client_is_a_job_of_one(self):
        done = self.succeed(launcher=launch.exchange())
        self.assertEqual(done.out, "rank 0 of 1, application -1, universe -1, secret 0\n")


class Nested(launch.LaunchTest):

    def test_a_job_inside_a_job(self):
        done = self.succeed("-n", 2, launch.mpiexec(), "-n", 2, launch.exchange())
        self.assertEqual(sorted(line.split(",")[0] for line in done.out.splitlines()),
                         ["rank 0 of 2"] * 2 + ["rank 1 of 2"] * 2)

    def test_a_program_that_a_rank_starts_does_not_speak_for_it(self):
        script = f"{launch.exchange()} && exec {launch.exchange()} {os.devnull}"
        self.succeed("-n", 2, "sh", "-c", script)


if __name__ == "__main__":
    launch.main()
