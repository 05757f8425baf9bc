"""What a rank costs in a job of many ranks, against a smaller job in the same run: memory, with the page tables that the kernel has for it, and
the time until all ranks are through MPI_Init, and of a fence in which each rank gets from all. A busy machine slows both jobs, but a rank waits no more often on
it."""

import os
import re
import time

import mpi
import stock

APART = os.environ.get("WEFT_SAME_HOST") == "off"  # as under `./test --same-host-off`
# KiB of a rank for each rank that it has to do with: about 6 on one host; over TCP about 75, for a socket and an RDMA connection in each direction.
KILOBYTES, KILOBYTES_APART = 16, 96
TABLES, TABLES_APART = 3, 8  # KiB of page tables for each; about 1 on one host
# Of one communicator more, after collectives: KiB of a rank, and of its page tables for 32 ranks and for each rank above. About 5, 8 and 0.1.
COMMUNICATOR, COMMUNICATOR_TABLES, COMMUNICATOR_GROWTH = 12, 14, 1 / 8
# So many times with a sanitizer: what it adds to each allocation, and the tables of what it keeps elsewhere.
SANITIZED = 4


class Growth(mpi.MpiTest):
    library = mpi.WeftUnderMpiexec
    rounds = 3  # of which the quickest start counts
    kilobytes, tables = (KILOBYTES_APART, TABLES_APART) if APART else (KILOBYTES, TABLES)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.times = SANITIZED if cls.sanitizer else 1
        cls.few, cls.many = (32, 128) if not cls.sanitizer else (8, 32)  # sanitizers take memory and time of their own
        cls.found = {}

    def measure(self, ranks):
        """(seconds to start, KiB of a rank, KiB of its page tables, how often it waits in MPI_Init, us of a fence with Gets from all, KiB of a communicator,
        KiB of its page tables)."""
        if ranks in self.found:
            return self.found[ranks]
        starts, kilobytes, tables, waits, gets, each, each_tables = [], [], [], [], [], [], []
        for _ in range(self.rounds):
            begin = time.clock_gettime(time.CLOCK_MONOTONIC)
            output = self.run_job(ranks, stock.workspace_file("tests/mpi/scale/growth"))
            starts.append(float(re.search(r"started at ([\d.]+)", output)[1]) - begin)
            for found, value in zip((kilobytes, tables, waits), re.search(r"memory=(\d+),tables=(\d+),waits=(\d+)", output).groups()):
                found.append(int(value))
            gets.append(int(re.search(r"gets=(\d+)", output)[1]))
            for found, value in zip((each, each_tables), re.search(r"each=([-\d.]+),each_tables=([-\d.]+)", output).groups()):
                found.append(float(value))
        self.found[ranks] = min(starts), min(kilobytes), min(tables), min(waits), min(gets), min(each), min(each_tables)
        print(ranks, "ranks: start %.2f s, %d KiB each and %d KiB of page tables, %d waits, a fence with Gets from all %d us; each communicator "
              "%.1f KiB and %.1f KiB of page tables" % self.found[ranks], flush=True)
        return self.found[ranks]

    def test_four_times_the_ranks_start_in_less_than_six_times_the_time(self):
        self.assertLess(self.measure(self.many)[0], 6 * self.measure(self.few)[0])

    def test_a_rank_asks_the_launcher_no_more_where_there_are_more_ranks(self):
        # With one question for each other rank the time above stays within its limit: it is 4.4 times that of the smaller job.
        few, many = self.measure(self.few), self.measure(self.many)
        self.assertLess(many[3] - few[3], (self.many - self.few) / 2, "waits in MPI_Init")

    def test_memory_of_a_rank_grows_slowly_with_the_ranks(self):
        few, many = self.measure(self.few), self.measure(self.many)
        more = self.many - self.few
        self.assertLess(many[1] - few[1], self.kilobytes * more * self.times, "KiB")
        self.assertLess(many[2] - few[2], self.tables * more * self.times, "KiB of page tables")

    def test_a_communicator_takes_few_pages_of_memory(self):
        for ranks in self.few, self.many:
            with self.subTest(ranks=ranks):
                found = self.measure(ranks)
                self.assertLess(found[5], COMMUNICATOR * self.times, "KiB")
                self.assertLess(found[6], (COMMUNICATOR_TABLES + COMMUNICATOR_GROWTH * max(0, ranks - 32)) * self.times, "KiB of page tables")

    def test_a_fence_with_gets_from_all_grows_with_their_number(self):
        few, many = self.measure(self.few), self.measure(self.many)
        self.assertLess(many[4], 3 * (self.many / self.few) ** 2 * few[4], "us")  # what the ranks do, they do on the same processors


class GrowthBetweenHosts(Growth):
    library = mpi.WeftApart
    rounds = 1
    kilobytes, tables = KILOBYTES_APART, TABLES_APART


if __name__ == "__main__":
    stock.main()
