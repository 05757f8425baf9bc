"""Collective writes (filling.c) on a file system of a few megabytes, which gets full in the middle of them. It is a tmpfs of a mount namespace of the
job's own: it needs root, and is skipped without."""

import os
import subprocess
import tempfile

import mpi
import stock

DISK_BYTES = 8 << 20
IN_NAMESPACE = ["unshare", "--mount", "--propagation", "private"]


class FullDisk(mpi.MpiTest):

    def fill(self, library, ranks):
        self.library = library
        with tempfile.TemporaryDirectory() as disk:
            if subprocess.run([*IN_NAMESPACE, "mount", "-t", "tmpfs", "none", disk], capture_output=True).returncode != 0:
                self.skipTest("no mount namespace of its own, for which it must be root")
            program = [*library.launcher(), "-n", str(ranks), stock.workspace_file("tests/mpi_files/filling"), f"{disk}/file", f"{disk}/ballast",
                       str(DISK_BYTES)]
            words = [*IN_NAMESPACE, "sh", "-c", f'mount -t tmpfs -o size={DISK_BYTES} none {disk} && exec "$@"', "sh", *program]
            job = mpi.Job(words, library.settings())
            self.addCleanup(job.kill)
            if not job.wait(mpi.TIMEOUT * self.slow):
                self.fail(f"still runs; output:\n{job.output}\n{job.stacks()}")
            self.assertEqual(job.status, 0, job.output)
            self.assertEqual(job.left_behind(), [])

    def test_one_rank(self):
        self.fill(mpi.WeftUnderMpiexec, 1)

    def test_ranks_that_share_buffers(self):
        for ranks in 2, 4:
            self.fill(mpi.WeftUnderMpiexec, ranks)

    def test_ranks_that_send_each_other_what_they_write(self):
        for ranks in 2, 4:
            self.fill(mpi.WeftApart, ranks)


if __name__ == "__main__":
    stock.main()
