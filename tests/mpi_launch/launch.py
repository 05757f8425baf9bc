"""Runs mpiexec, ours or hydra's, and looks at what is left of a job: every process of a test's job has a variable of its own in its
environment, by which it is found wherever it went."""

import glob
import hmac
import os
import signal
import subprocess
import tempfile
import time
import unittest
import uuid

import stock

__unittest = True  # failures show the test's line, not this file's

TIMEOUT = 60
MARK = "WEFT_MPI_LAUNCH_TEST"


def mpiexec():
    return stock.workspace_file("pmi/mpiexec")


def exchange():
    return stock.workspace_file("tests/mpi_launch/exchange")


def spawner():
    return stock.workspace_file("tests/mpi_launch/spawner")


def pmi2_rank():
    return stock.workspace_file("tests/mpi_launch/pmi2_rank.py")


def late_reader():
    return stock.workspace_file("tests/mpi_launch/late_reader.py")


def most_resident():
    """KiB that a launcher takes that keeps nothing for anybody, with room to spare."""
    return (1 << 20) if stock.sanitizer()[0] else 64 << 10


def proof(secret, side, said):
    """What shows that `side` knows the job's secret (base/job_secret.h)."""
    return hmac.new(bytes.fromhex(secret), bytes([len(side)]) + side.encode() + said.encode(), "sha256").hexdigest()


class Done:
    def __init__(self, process, out, err, seconds):
        self.status = process.returncode
        self.out = out
        self.err = err
        self.seconds = seconds

    def __repr__(self):
        return f"status {self.status} after {self.seconds:.2f} s\nstdout: {self.out[-2000:]}\nstderr: {self.err[-2000:]}"


class LaunchTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="launch", dir=os.environ.get("TEST_TMPDIR"))
        self._mark = f"{MARK}={uuid.uuid4().hex}"

    def tearDown(self):
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def environment(self, **settings):
        # WEFT_SAME_HOST is what `./test --same-host-off` sets for all tests.
        not_the_test = ("WEFT_", "PMI_", "MPI_", "MPIR_", "MPIEXEC_", "HYDRA_")
        env = {k: v for k, v in os.environ.items() if not k.startswith(not_the_test) or k == "WEFT_SAME_HOST"}
        env["LC_ALL"] = "C"
        name, value = self._mark.split("=")
        env[name] = value
        env.update(settings)
        return env

    def start(self, *words, launcher=None, **options):
        """mpiexec with these words, not waited for."""
        settings = options.pop("settings", {})
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        options.setdefault("cwd", self.directory)
        return subprocess.Popen([launcher or mpiexec(), *map(str, words)], env=self.environment(**settings), text=True, **options)

    def run_job(self, *words, timeout=TIMEOUT, given=None, **options):
        begin = time.monotonic()
        if given is not None:
            options["stdin"] = subprocess.PIPE
        process = self.start(*words, **options)
        try:
            out, err = process.communicate(given, timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            self.fail(f"not done within {timeout} s: {words}\n{process.communicate()}")
        return Done(process, out or "", err or "", time.monotonic() - begin)

    def succeed(self, *words, **options):
        done = self.run_job(*words, **options)
        self.assertEqual(done.status, 0, done)
        return done

    def processes(self):
        """The pids of what runs with this test's mark."""
        found = []
        for path in glob.glob("/proc/[0-9]*/environ"):
            try:
                with open(path, "rb") as file:
                    if self._mark.encode() in file.read().split(b"\0"):
                        found.append(int(path.split("/")[2]))
            except OSError:
                continue
        return found

    def await_condition(self, condition, what, timeout=20):
        deadline = time.monotonic() + timeout
        while not condition():
            self.assertLess(time.monotonic(), deadline, f"{what}: not within {timeout} s")
            time.sleep(0.01)

    def await_files(self, *names):
        paths = [os.path.join(self.directory, name) for name in names]
        self.await_condition(lambda: all(map(os.path.exists, paths)), f"the files {names}")

    def expect_nothing_left(self):
        self.await_condition(lambda: not self.processes(), "the end of every process of the job", 10)

    def compile(self, text, name="program", compiler="mpicc.mpich", suffix=".c", *options):
        source = os.path.join(self.directory, name + suffix)
        with open(source, "w") as file:
            file.write(text)
        done = subprocess.run([compiler, "-O1", "-o", os.path.join(self.directory, name), source, *options], capture_output=True,
                              text=True, timeout=TIMEOUT)
        self.assertEqual(done.returncode, 0, done.stderr)
        return os.path.join(self.directory, name)


main = stock.main
