"""Files that MPICH wrote are read by Weft, and the other way round: native through a strided view, and external32."""

import os
import tempfile

import mpi
import stock


class FileExchange(mpi.MpiTest):
    def exchange(self, writer, reader):
        program = stock.workspace_file("tests/mpi/io/exchange")
        with tempfile.TemporaryDirectory() as directory:
            for ranks in (1, 2, 4):
                name = os.path.join(directory, f"of_{ranks}_ranks")
                for self.library, word in ((writer, "write"), (reader, "read")):
                    self.run_job(ranks, program, word, name)

    def test_weft_reads_what_mpich_wrote(self):
        self.exchange(mpi.Mpich, mpi.WeftUnderMpiexec)

    def test_mpich_reads_what_weft_wrote(self):
        self.exchange(mpi.WeftUnderMpiexec, mpi.Mpich)


if __name__ == "__main__":
    stock.main()
