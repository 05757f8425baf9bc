"""One-sided communication where memory or descriptors are wanting, at the origin or at the target: nobody who lives is declared dead for it."""

import mpi
import stock

# As many registrations and more than a rank makes in this program.
REGISTRATIONS = 12
# As many receives for answers and more than its second half posts, with those of the first.
RECEIVES = 30


class Scarce(mpi.MpiTest):
    library = mpi.WeftApart  # connections of the RNIC are what there is no room for

    def run_with_fault(self, rank, fault, most_errors, status=0):
        """Two ranks, of which one has the fault."""
        program = stock.workspace_file("tests/mpi/scale/scarce")
        script = f'if [ "$PMI_RANK" = {rank} ]; then export WEFT_FAULTS="{fault}"; fi; exec {program} {most_errors}'
        return self.run_job(2, "sh", "-c", script, status=status, timeout=90)

    def fail_each_registration(self, rank, most_errors):
        went_on = 0
        for nth in range(1, REGISTRATIONS + 1):
            with self.subTest(rank=rank, nth=nth):
                output = self.run_with_fault(rank, f"fail call=ibv_reg_mr errno=ENOMEM nth={nth}", most_errors)
                went_on += "no window" not in output
        self.assertGreater(went_on, 3)

    def test_a_target_without_memory_for_messages_serves_its_origins_with_what_it_has(self):
        self.fail_each_registration(rank=0, most_errors=0)

    def test_an_origin_without_memory_for_messages_says_so_and_goes_on(self):
        self.fail_each_registration(rank=1, most_errors=3)

    def test_an_origin_that_cannot_post_the_receive_for_an_answer_does_not_wait_for_it(self):
        errors = 0
        for nth in range(1, RECEIVES + 1):
            with self.subTest(nth=nth):
                output = self.run_with_fault(1, f"fail call=ibv_post_recv errno=ENOMEM nth={nth}", most_errors=1)
                errors += "rank 1: MPI_Win_unlock" in output
        self.assertGreater(errors, 2)  # the end of an epoch is one of the calls

    def test_an_origin_without_room_for_a_connection_tries_again(self):
        self.run_with_fault(1, "fail call=ibv_create_qp errno=ENOMEM times=7", most_errors=0)

    def test_a_target_without_room_for_a_connection_is_asked_again(self):
        self.run_with_fault(0, "fail call=ibv_create_qp errno=EMFILE times=12", most_errors=0)

    def test_an_origin_that_finds_no_room_for_30_seconds_names_the_limit_and_takes_nobody_for_dead(self):
        output = self.run_with_fault(1, "fail call=ibv_create_qp errno=EMFILE", most_errors=0, status=1)
        self.assertRegex(output, r"no RDMA connection to rank 0 of MPI_COMM_WORLD can be made: .*Too many open files \(the limit is \d+, see ulimit -n\), "
                                 "for 30 s")
        self.assertNotRegex(output, "rank 1: .*PROC_ABORTED")  # rank 0 may say so, of rank 1, which aborts


if __name__ == "__main__":
    stock.main()
