"""Every MPI benchmark once, on Weft's library."""

import mpi
import stock

CREATED = {f"{name}_fence_{memory}" for name in ("put", "get", "accumulate") for memory in ("alloc_mem", "malloc")}  # windows of MPI_Win_create
CREATED |= {f"{name}_pieces_malloc" for name in ("put", "get", "accumulate")}
PAIR = CREATED | {"ping_pong", "message_rate", "bandwidth", "put_fence", "get_fence", "accumulate_fence", "put_flush", "get_flush",
        "fetch_and_op", "lock_put_unlock", "put_rate", "get_rate", "passive_put", "mixed", "mixed_emulated", "partitioned", "part_range", "part_computed"}
MESSAGES = {"ping_pong", "message_rate", "bandwidth"}
ONE_SIDED = CREATED | {"by_hand", "put_fence", "get_fence", "accumulate_fence", "put_flush", "get_flush", "fetch_and_op", "lock_put_unlock", "put_rate",
                       "get_rate", "passive_put"}
WINDOWS = {"put_fence", "get_fence", "put_fence_emulated", "get_fence_emulated", "mixed", "mixed_emulated"}
FILES = {"write_all", "write_all_file", "write_all_exchange", "read_all", "read_all_file", "read_all_exchange", "write_at", "read_at", "write_shared"}
NEW = {"bcast", "alltoall", "allgather", "gather", "scatter"}  # measured with data just written, too
COLLECTIVE = {"barrier", "allreduce"} | NEW | {name + "_new" for name in NEW}
BY_VECTOR = {"barrier", "bcast", "reduce", "allreduce", "allgather", "alltoall", "gather", "reduce_scatter"}


class Benchmarks(mpi.MpiTest):
    library = mpi.WeftUnderMpiexec

    def figures(self, ranks, suite):
        output = self.run_job(ranks, stock.workspace_file("bench/mpi/mpi_bench"), suite, "--quick", timeout=120)
        rows = [line.split() for line in output.splitlines()]
        self.assertTrue(all(len(row) == 3 and float(row[2]) > 0 for row in rows), output)
        return {row[0] for row in rows}

    def test_two_ranks(self):
        self.assertEqual(self.figures(2, "pair"), PAIR)

    def test_two_ranks_in_parts(self):
        self.assertEqual(self.figures(2, "messages"), MESSAGES)
        self.assertEqual(self.figures(2, "one_sided"), ONE_SIDED)

    def test_two_ranks_by_size(self):
        self.assertEqual(self.figures(2, "bandwidth"), {"bandwidth"})
        self.assertEqual(self.figures(2, "windows"), WINDOWS)

    def test_four_ranks(self):
        self.assertEqual(self.figures(4, "collective"), COLLECTIVE)

    def test_four_ranks_by_vector(self):
        self.assertEqual(self.figures(4, "by_vector"), BY_VECTOR)

    def test_growth(self):
        self.assertEqual(self.figures(8, "growth"), {"started", "memory", "barrier", "alltoall", "memory_all_pairs"})

    def test_files(self):
        self.assertEqual(self.figures(2, "files"), FILES)


if __name__ == "__main__":
    stock.main()
