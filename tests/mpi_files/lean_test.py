"""Ranks without memory for what collective buffering exchanges (lean.c)."""

import os
import tempfile

import mpi
import stock

os.environ.pop("WEFT_SAME_HOST", None)  # it is about memory in common, also under `./test --same-host-off`


class Lean(mpi.MpiTest):

    def collect(self, library, where):
        self.library = library
        if self.sanitizer:
            self.skipTest("a sanitizer maps more than there may be")
        with tempfile.TemporaryDirectory() as directory:
            self.run_job(2, stock.workspace_file("tests/mpi_files/lean"), os.path.join(directory, "file"), where,
                         timeout=240)  # it computes for 16 s, most of them for lists of a million pieces; others compute beside it

    def test_with_buffers_in_common(self):
        self.collect(mpi.WeftUnderMpiexec, "together")

    def test_as_if_on_hosts_of_their_own(self):
        self.collect(mpi.WeftApart, "apart")


if __name__ == "__main__":
    stock.main()
