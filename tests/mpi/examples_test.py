"""The programs of examples/mpi on MPICH and on Weft: each compares its result with a serial one and says so."""

import os
import re
import sys
import tempfile

import mpi
import stock


class Examples(mpi.MpiTest):

    def example(self, ranks, name, *arguments, **options):
        return self.run_job(ranks, stock.workspace_file(f"examples/mpi/{name}"), *arguments, **options)

    def expect(self, output, wanted):
        self.assertIn(wanted, output)

    def test_heat_agrees_with_the_serial_field_and_writes_a_picture(self):
        for ranks in (1, 2, 4):
            with tempfile.TemporaryDirectory() as directory:
                self.expect(self.example(ranks, "heat", "97", "60", "heat.pgm", directory=directory), "; 0 places differ")
                with open(os.path.join(directory, "heat.pgm"), "rb") as picture:
                    data = picture.read()
                self.assertTrue(data.startswith(b"P5\n97 97\n255\n"))
                self.assertEqual(len(data), len(b"P5\n97 97\n255\n") + 97 * 97)
                self.assertGreater(len(set(data)), 20, "the picture shows nothing")

    def test_heat_with_a_picture_that_cannot_be_written_fails(self):
        self.assertIn("/nonexistent/x.pgm", self.example(2, "heat", "32", "2", "/nonexistent/x.pgm", status=1))

    def test_work_queue_does_each_task_once(self):
        for ranks in (1, 2, 4):
            self.expect(self.example(ranks, "work_queue", "300"), "work_queue: 300 tasks on %d ranks" % ranks)

    def test_mixed_moves_every_byte(self):
        for ranks in (2, 4):
            self.expect(self.example(ranks, "mixed", "5"), "; 0 bytes are wrong")

    def test_passive_target_finds_the_last_number(self):
        took = re.search(r"lock, Put, unlock took ([\d.]+) us", self.example(2, "passive_target", "1"))
        self.assertTrue(took)
        if self.library is not mpi.Mpich:  # its target must call MPI first
            self.assertLess(float(took.group(1)), 200000)

    def test_transpose(self):
        for ranks in (1, 2, 4, 7):
            self.expect(self.example(ranks, "transpose", "200"), "; 0 elements are wrong")

    def test_bucket_sort(self):
        for ranks in (1, 2, 4, 7):
            self.expect(self.example(ranks, "bucket_sort", "5000"), "as a serial sort has them")

    def test_conjugate_gradient(self):
        for ranks in (1, 2, 4):
            self.expect(self.example(ranks, "conjugate_gradient", "24"), ": good")


if __name__ == "__main__":
    Examples.library = mpi.LIBRARIES[sys.argv.pop(1)]
    stock.main()
