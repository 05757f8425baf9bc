"""Jobs that grow and meet print on Weft what they print on Open MPI, the reference: Debian's MPICH can do none of it (alike.c).

Open MPI 4.1 has its own conditions, for which alike.c is as it is:
- Jobs of several mpiruns meet through an ompi-server, names or not.
- MPI_Comm_disconnect of two communicators with the same processes, as an intercommunicator and what it merged to, hangs in the second: the merged one is freed.
- Windows over several jobs are made by its component pt2pt alone (MPI_ERR_WIN else).
What it cannot do at all is in CANNOT.
"""

import os
import subprocess
import tempfile
import time
import unittest

import mpi
import stock

TRIES = 3  # of the reference, which stops now and then; Weft has one
TIMEOUT = 20

# The jobs of each scenario: ranks (0: without a launcher), words. FILE is one that they have in common.
SCENARIOS = {
    "a job spawns another": [(1, "tree 1")],
    "several spawn together": [(2, "tree 1")],
    "a tree of jobs": [(1, "tree 3")],
    "a process without a launcher spawns": [(0, "tree 1")],
    "two commands": [(2, "several")],
    "a window over two jobs": [(2, "windows")],
    "a hundred meetings": [(1, "accept 100 FILE"), (2, "connect 100 FILE")],
    "jobs of many meet": [(3, "accept 2 FILE"), (2, "connect 2 FILE")],
    "three jobs in a ring": [(1, "ring 0 FILE"), (2, "ring 1 FILE"), (1, "ring 2 FILE")],
    "a server and a client": [(2, "serve"), (1, "ask")],
    "a socket becomes a communicator": [(2, "join")],
    "both communicators are disconnected": [(1, "tree 1 disconnect")],
}
CANNOT = {"both communicators are disconnected": "hangs in the second MPI_Comm_disconnect, at least to 4.1.4"}


class Weft:
    def __init__(self, test, directory):
        self.program = stock.workspace_file("tests/mpi_dynamic/alike")
        self.settings = {**mpi.WeftUnderMpiexec.settings(), "WEFT_PMI_MPIEXEC": mpi.weft_mpiexec()[0]}
        self.names = os.path.join(directory, "names")
        test.start_server([*mpi.weft_mpiexec(), "-nameserver-run", self.names], self.settings, self.names)

    def launcher(self, ranks):
        return [*mpi.weft_mpiexec(), "-nameserver", self.names, "-n", str(ranks)]


class OpenMpi:
    def __init__(self, test, directory):
        self.program = os.path.join(directory, "alike")
        source = stock.workspace_file("tests/mpi_dynamic/alike.c")
        root = source[:-len("tests/mpi_dynamic/alike.c")]
        done = subprocess.run(["mpicc.openmpi", "-O1", "-w", "-I", root, "-o", self.program, source], capture_output=True, text=True, timeout=60)
        test.assertEqual(done.returncode, 0, done.stderr)
        self.settings = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
                         "OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_MCA_pml": "ob1", "OMPI_MCA_osc": "pt2pt",
                         "TMPDIR": directory}
        self.names = os.path.join(directory, "ompi-server")
        test.start_server(["ompi-server", "--no-daemonize", "-r", self.names], self.settings, self.names)

    def launcher(self, ranks):
        return ["mpirun.openmpi", "--ompi-server", f"file:{self.names}", "-n", str(ranks)]


class AlikeTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(dir="/tmp")
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.weft, self.reference = Weft(self, self.directory), OpenMpi(self, self.directory)

    def start_server(self, words, settings, file):
        server = mpi.Job(words, settings)
        self.addCleanup(server.kill)
        deadline = time.monotonic() + TIMEOUT
        while not os.path.exists(file) or not os.path.getsize(file):
            self.assertLess(time.monotonic(), deadline, f"{words}: {server.output}")
            time.sleep(mpi.POLL_SECONDS)

    def play(self, library, jobs):
        """What they print, and what was wrong."""
        with tempfile.TemporaryDirectory() as directory:
            started = []
            for ranks, words in jobs:
                launcher = library.launcher(ranks) if ranks else []
                words = [os.path.join(directory, "file") if word == "FILE" else word for word in words.split()]
                started.append(mpi.Job([*launcher, library.program, *words], library.settings))
            try:
                deadline = time.monotonic() + TIMEOUT
                late = [job for job in started if not job.wait(max(0, deadline - time.monotonic()))]
                wrong = "".join(f"{' '.join(job.words)}: status {job.status}\n{job.output}\n" for job in started if job in late or job.status != 0)
                return sorted(line for job in started for line in job.output.splitlines()), wrong
            finally:
                for job in started:
                    job.kill()

    def reference_lines(self, jobs):
        for _ in range(TRIES):
            lines, wrong = self.play(self.reference, jobs)
            if not wrong:
                return lines
        self.fail(f"Open MPI, {TRIES} times:\n{wrong}")

    def test_weft_does_what_open_mpi_does(self):
        for name, jobs in SCENARIOS.items():
            with self.subTest(name):
                lines, wrong = self.play(self.weft, jobs)
                self.assertEqual(wrong, "")
                self.assertTrue(lines)
                if name in CANNOT:
                    print(f"{name}: not compared; Open MPI {CANNOT[name]}", flush=True)
                else:
                    self.assertEqual(lines, self.reference_lines(jobs))


if __name__ == "__main__":
    unittest.main()
