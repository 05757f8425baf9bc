"""Other people's halves: MPICH's ranks under our mpiexec, our client under MPICH's launcher."""

import os

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
