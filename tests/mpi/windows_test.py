"""A window over many ranks: all of them put to all others and fence, and the memory that each other rank costs stays small; or accumulate
at one rank at once. Through the memory of the host, and over RDMA as between hosts."""

import re

import mpi
import stock

LIMIT_KIB = 64  # a window peer; under a sanitizer memory means nothing


class Windows(mpi.MpiTest):
    library = mpi.WeftUnderMpiexec

    def test_128_ranks_put_to_all(self):
        limit = [] if self.sanitizer else [str(LIMIT_KIB)]
        ranks = 32 if self.sanitizer else 128
        output = self.run_job(ranks, stock.workspace_file("tests/mpi/scale/windows"), *limit, timeout=240)
        print(f"{ranks} ranks, {re.search('KiB per window peer: .*', output).group(0)}")

    def test_260_ranks_accumulate_at_one_of_them_that_computes(self):
        self.run_job(32 if self.sanitizer else 260, stock.workspace_file("tests/mpi/scale/origins"), timeout=240)


class WindowsOverRdma(Windows):
    library = mpi.WeftApart

    def test_a_thread_that_connects_to_a_stopped_target_holds_no_other_up(self):
        self.run_job(3, stock.workspace_file("tests/mpi/scale/stopped_target"))

    def traffic(self, **settings):
        """{case: (messages, RDMA operations)} of 50 times each."""
        output = self.run_job(2, stock.workspace_file("tests/mpi/scale/window_traffic"), **settings)
        said = re.findall(r"(\w+): (\d+) messages, (\d+) RDMA operations", output)
        return {case: (int(messages), int(operations)) for case, messages, operations in said}

    def test_a_word_costs_one_atomic_of_the_rnic_and_an_epoch_of_a_lock_two_messages(self):
        atomics = {"fetch_and_op": (0, 50), "accumulate": (0, 50), "compare_and_swap": (0, 50)}
        self.assertEqual(self.traffic(WEFT_MPI_RMA_ATOMICS="on"), {**atomics, "lock_put_unlock": (100, 50)})
        # By default they are messages. The iwarp persona has no atomics, as siw.
        for settings in {}, {"WEFT_MPI_RMA_ATOMICS": "on", "WEFT_PERSONA": "iwarp"}:
            said = self.traffic(**settings)
            self.assertTrue(all(said[case][0] >= 50 for case in atomics), said)
            self.assertEqual(said["lock_put_unlock"], (100, 50))

    def test_atomics_of_the_rnic_among_messages_keep_atomicity_and_order(self):
        for ranks in 2, 4:
            self.run_job(ranks, stock.workspace_file("tests/mpi/rma/atomic_words"), WEFT_MPI_RMA_ATOMICS="on")
        self.run_job(3, stock.workspace_file("tests/mpi/rma/atomic_words"), WEFT_MPI_RMA_ATOMICS="on", WEFT_LLP="sctp")
        # Only some ranks have them.
        self.run_job(3, "sh", "-c", f'test $PMI_RANK = 1 || export WEFT_MPI_RMA_ATOMICS=on; exec {stock.workspace_file("tests/mpi/rma/atomic_words")}')
        self.run_job(3, stock.workspace_file("tests/mpi/threads/queued_lock"), WEFT_MPI_RMA_ATOMICS="on")

    def test_a_setting_that_makes_no_sense_is_named(self):
        output = self.run_job(2, stock.workspace_file("tests/mpi/rma/atomic_words"), status=None, WEFT_MPI_RMA_ATOMICS="perhaps")
        self.assertIn("WEFT_MPI_RMA_ATOMICS is 'perhaps'; it can be on or off", output)

    def test_a_target_that_waits_for_a_message_carries_operations_out_without_its_other_thread(self):
        print(self.run_job(2, stock.workspace_file("tests/mpi/scale/attended_target"), WEFT_MPI_SPIN_US="10000000"))


if __name__ == "__main__":
    stock.main()
