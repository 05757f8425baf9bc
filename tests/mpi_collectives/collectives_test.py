"""Collectives of Weft's library beyond what the standard says: each algorithm over real sockets, settings, calls that do not match."""

import os
import tempfile

import mpi
import stock

# Each algorithm of coll/tuning.h at least once.
ALGORITHMS = [
    "bcast:binomial,gather:linear,scatter:linear,allgather:ring,allgatherv:ring",
    "bcast:scatter_ring,gather:binomial,scatter:binomial,allgather:bruck,allgatherv:bruck",
    "bcast:scatter_doubling,allgather:doubling,alltoall:bruck",
    "alltoall:linear,reduce:binomial,allreduce:doubling,reduce_scatter:doubling",
    "alltoall:pairwise,reduce:rabenseifner,allreduce:rabenseifner,reduce_scatter:halving",
    "allreduce:ring,reduce_scatter:pairwise",
]


def program(name):
    return stock.workspace_file(f"tests/mpi_collectives/{name}")


class Collectives(mpi.MpiTest):
    library = mpi.WeftUnderHydra

    def test_the_table_chooses_right_algorithms(self):
        for ranks in (1, 2, 3, 4, 7):
            self.run_job(ranks, program("every_size"))

    def on_hosts(self):
        """(options of mpiexec, ranks) of several layouts of ranks on hosts."""
        self.library = mpi.WeftUnderMpiexec
        shell = os.path.join(self.enterContext(tempfile.TemporaryDirectory()), "shell")
        with open(shell, "w") as file:
            file.write('#!/bin/sh\nshift\nexec sh -c "$*"\n')
        os.chmod(shell, 0o755)
        for hosts, ranks in (("localhost:2,a.invalid:2", 4), ("localhost:4,a.invalid:4", 8), ("localhost:1,a.invalid:3,b.invalid:2", 7),
                             ("localhost,a.invalid", 5)):
            with self.subTest(hosts=hosts, ranks=ranks):
                yield ("-launcher-exec", shell, "-hosts", hosts), ranks

    def test_by_hosts_where_there_are_several(self):
        for options, ranks in self.on_hosts():
            self.run_job(ranks, program("every_size"), launcher_options=options)

    def test_calls_that_do_not_match_by_hosts_are_errors_and_no_hangs(self):
        for options, ranks in self.on_hosts():
            lines = [line for line in self.run_job(ranks, program("mismatched"), launcher_options=options).splitlines() if line.endswith("seen")]
            self.assertEqual(len(lines), 7, lines)
            self.assertNotIn("not seen", " ".join(lines))

    def test_each_algorithm_works_over_sockets(self):
        for setting in ALGORITHMS:
            for ranks in (1, 3, 4):
                with self.subTest(setting=setting, ranks=ranks):
                    self.run_job(ranks, program("every_size"), WEFT_MPI_COLL=setting)

    def test_an_unknown_algorithm_is_refused(self):
        self.library = mpi.WeftUnderMpiexec  # hydra may drop the last words of a job that aborts
        job = self.start(2, program("every_size"), WEFT_MPI_COLL="bcast:teleport")
        self.assertTrue(job.wait(mpi.TIMEOUT * self.slow), job.output)
        self.assertNotEqual(job.status, 0)
        self.assertIn('"teleport" is not one of the algorithms of bcast: binomial', job.output)

    def test_calls_that_do_not_match_are_errors_and_no_hangs(self):
        for ranks in (2, 3, 4, 7):
            lines = [line for line in self.run_job(ranks, program("mismatched")).splitlines() if line.endswith("seen")]
            self.assertEqual(len(lines), 8 if ranks == 2 else 7, lines)
            for line in lines:
                self.assertNotIn("not seen", line, f"at {ranks} ranks")

    def test_reduction_functions_may_ask_mpi_while_threads_are_enabled(self):
        for ranks in (1, 2, 4):
            self.run_job(ranks, program("threaded_op"))


if __name__ == "__main__":
    stock.main()
