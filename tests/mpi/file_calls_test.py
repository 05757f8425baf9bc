"""Each function of files that mpi.h declares is called by a program of tests/mpi/io, all of which run at 1, 2 and 4 ranks on MPICH and on Weft."""

import glob
import os
import re
import unittest

import stock

COMMENT = re.compile(r"/\*.*?\*/", re.S)


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return COMMENT.sub("", file.read())


class FileCalls(unittest.TestCase):
    def test_each_is_called(self):
        header = stock.workspace_file("mpi_hybrid/include/mpi.h")
        declared = set(re.findall(r"\b(MPI_File_\w+|MPI_Register_datarep\w*)\s*\(", text_of(header)))
        self.assertGreaterEqual(len(declared), 90)
        programs = os.path.join(os.path.dirname(stock.workspace_file("tests/mpi/io/io.h")), "*.[ch]")
        called = {name for path in glob.glob(programs) for name in re.findall(r"\b(MPI_\w+)\s*\(", text_of(path))}
        self.assertEqual(sorted(declared - called), [])


if __name__ == "__main__":
    stock.main()
