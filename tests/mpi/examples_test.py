"""The programs of examples/mpi on MPICH and on Weft: each compares its result with a serial one and says so."""

import os
import re
import sys
import tempfile
import time

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

    def skip_where_jobs_cannot_meet(self):
        if self.library is mpi.Mpich:
            self.skipTest("Debian's MPICH, over UCX, has neither ports nor spawn")

    def test_spawn_workers(self):
        self.skip_where_jobs_cannot_meet()
        for workers in (1, 3):
            self.expect(self.example(1, "spawn_workers", str(workers), "100"), f"100 tasks by {workers} workers; 0 results are wrong")

    def finish(self, job):
        self.assertTrue(job.wait(mpi.TIMEOUT * self.slow), f"{job.output}\n{job.stacks()}")
        self.assertEqual((job.status, job.left_behind()), (0, []), job.output)
        return job.output

    def server_port(self, server):
        deadline = time.monotonic() + mpi.TIMEOUT * self.slow
        while not (found := re.search(r"^server: port (.*)\n", server.output, re.MULTILINE)):
            self.assertIsNone(server.status, server.output)
            self.assertLess(time.monotonic(), deadline, server.output)
            time.sleep(mpi.POLL_SECONDS)
        return found.group(1)

    def test_clients_come_to_a_server(self):
        self.skip_where_jobs_cannot_meet()
        server = self.start(2, stock.workspace_file("examples/mpi/server"), "2")
        port = self.server_port(server)
        for ranks in (1, 3):
            self.expect(self.example(ranks, "client", port), "2262 primes below 20000, by 2 ranks of the server; 0 too many")
        self.assertEqual(self.finish(server).count("questions answered"), 2)

    def test_clients_find_a_server_by_its_name(self):
        if self.library is not mpi.WeftUnderMpiexec:
            self.skipTest("the name server is mpiexec's own; hydra's has one for each host at a port that others may have")
        with tempfile.TemporaryDirectory() as directory:
            names = os.path.join(directory, "names")
            keeper = mpi.Job([*mpi.weft_mpiexec(), "-nameserver-run", names], {})
            self.addCleanup(keeper.kill)
            while not os.path.exists(names):
                self.assertIsNone(keeper.status, keeper.output)
                time.sleep(mpi.POLL_SECONDS)
            options = ("-nameserver", names)
            server = self.start(2, stock.workspace_file("examples/mpi/server"), launcher_options=options)
            self.server_port(server)
            self.expect(self.example(2, "client", launcher_options=options), "; 0 too many")
            self.finish(server)
            keeper.terminate()
            self.finish(keeper)


if __name__ == "__main__":
    Examples.library = mpi.LIBRARIES[sys.argv.pop(1)]
    stock.main()
