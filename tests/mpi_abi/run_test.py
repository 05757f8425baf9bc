"""Programs compiled and linked by MPICH's own compiler wrappers, run on MPICH and on our library: C, C++, mpif.h, use mpi, use mpi_f08.

usage: run_test.py OUR_LIBMPICH
"""

import os
import subprocess
import sys
import tempfile
import unittest

import stock

OURS = os.path.dirname(os.path.abspath(sys.argv.pop(1)))
HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = {
    "environment": ["mpicc.mpich", "environment.c"],
    "hooks": ["mpicxx.mpich", "-std=c++14", "-w", "hooks.cxx"],
    "legacy": ["mpifort.mpich", "-w", "legacy.f"],
    "attributes": ["mpifort.mpich", "-w", "-fallow-argument-mismatch", "attributes.f90"],
    "interfaces": ["mpifort.mpich", "-w", "interfaces.f90"],
    "tool": ["mpicc.mpich", "tool.c"],
}
SECONDS = 60


class RunTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        for name, (compiler, *rest) in PROGRAMS.items():
            command = [compiler, *rest[:-1], os.path.join(HERE, rest[-1]), "-o", os.path.join(cls.directory.name, name)]
            subprocess.run(command, check=True, cwd=cls.directory.name)

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def run_program(self, name, library, ranks, launcher):
        command = [os.path.join(self.directory.name, name), str(ranks)]
        environment = dict(os.environ)
        environment.pop("LD_LIBRARY_PATH", None)
        if library:
            environment.update(stock.sanitizer_settings(), LD_LIBRARY_PATH=library)
        if launcher:
            # The launcher itself needs nothing of ours.
            command = ["mpiexec.hydra", "-n", str(ranks), *command]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "ok\n", ""), f"{name} on {ranks} ranks")

    def test_the_programs_pass_on_mpich(self):
        for name in PROGRAMS:
            with self.subTest(name):
                self.run_program(name, None, 2, True)

    def test_the_same_binaries_pass_on_ours_without_a_launcher(self):
        for name in PROGRAMS:
            with self.subTest(name):
                self.run_program(name, OURS, 1, False)

    def test_the_same_binaries_pass_on_ours_on_two_ranks(self):
        for name in PROGRAMS:
            with self.subTest(name):
                self.run_program(name, OURS, 2, True)

    def test_the_library_that_is_loaded_is_ours(self):
        environment = dict(os.environ, LD_LIBRARY_PATH=OURS)
        loaded = subprocess.run(["ldd", os.path.join(self.directory.name, "legacy")], env=environment, check=True, capture_output=True,
                                text=True).stdout
        self.assertIn(os.path.join(OURS, "libmpich.so.12"), loaded)


unittest.main()
