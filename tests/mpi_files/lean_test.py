"""An aggregator without memory for what a rank tells it (lean.c)."""

import os
import tempfile

import mpi
import stock


class Lean(mpi.MpiTest):

    def collect(self, library):
        self.library = library
        if self.sanitizer:
            self.skipTest("a sanitizer maps more than there may be")
        with tempfile.TemporaryDirectory() as directory:
            self.run_job(2, stock.workspace_file("tests/mpi_files/lean"), os.path.join(directory, "file"))

    def test_with_buffers_in_common(self):
        self.collect(mpi.WeftUnderMpiexec)

    def test_as_if_on_hosts_of_their_own(self):
        self.collect(mpi.WeftApart)


if __name__ == "__main__":
    stock.main()
