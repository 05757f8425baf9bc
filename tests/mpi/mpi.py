"""Starts MPI programs on Weft's library or on the distribution's MPICH, and says what was wrong when one fails.

The program is one binary, linked with libmpich.so.12; LD_LIBRARY_PATH decides whose that is. A job must end in time, with exit
status 0, and leave no process behind.
"""

import os
import signal
import subprocess
import tempfile
import time
import unittest
import uuid

import stock

__unittest = True  # failures show the test's line, not this file's

POLL_SECONDS = 0.005
TIMEOUT = 60
LINGER_SECONDS = 5  # how long a process may outlive its launcher
MARK = "MPI_TEST_JOB_ID"  # in the environment of every process of a job


def weft_libraries():
    """The directories of libmpich.so.12 and of the verbs libraries that it needs."""
    mpi = os.path.dirname(stock.workspace_file("mpi_hybrid/api/libmpich.so.12"))
    verbs = os.path.join(os.path.dirname(stock.weft()), "../lib/weft")
    return f"{mpi}:{os.path.abspath(verbs)}"


def hydra():
    return ["mpiexec.hydra"]


def weft_mpiexec():
    return [stock.workspace_file("pmi/mpiexec")]


class Mpich:
    """The reference. Its ranks spin; "polite" lets them give the core away."""

    launcher = staticmethod(hydra)

    @staticmethod
    def settings():
        return {"LD_PRELOAD": stock.workspace_file("tests/mpi/libpolite.so")}


class WeftUnderHydra:
    launcher = staticmethod(hydra)

    @staticmethod
    def settings():
        settings = {"LD_LIBRARY_PATH": weft_libraries(), **stock.sanitizer_settings()}
        if stock.sanitizer()[0] == "tsan":
            suppressions = stock.workspace_file("tests/mpi/tsan.supp")
            settings["TSAN_OPTIONS"] = f"{os.environ.get('TSAN_OPTIONS', '')}:suppressions={suppressions}:history_size=7"
        return settings


class WeftUnderMpiexec:
    """As it comes: the ranks of this host go through its memory."""

    launcher = staticmethod(weft_mpiexec)
    settings = staticmethod(WeftUnderHydra.settings)


class WeftOverSctp(WeftUnderMpiexec):
    @staticmethod
    def settings():
        return {**WeftUnderHydra.settings(), "WEFT_MPI_LLP": "sctp", "WEFT_LLP": "sctp"}


class WeftRings(WeftUnderMpiexec):
    """The same where nobody may read another's memory."""

    @staticmethod
    def settings():
        return {**WeftUnderHydra.settings(), "WEFT_SAME_HOST": "rings"}


class WeftApart(WeftUnderMpiexec):
    """As if each rank had a host of its own: over TCP."""

    @staticmethod
    def settings():
        return {**WeftUnderHydra.settings(), "WEFT_SAME_HOST": "off"}


LIBRARIES = {"mpich": Mpich, "weft_under_hydra": WeftUnderHydra, "weft_under_mpiexec": WeftUnderMpiexec,
             "weft_over_sctp": WeftOverSctp, "weft_rings": WeftRings, "weft_apart": WeftApart}


def callers_at(pid):
    """How many have connected with TCP ports at which the process listens, and were not accepted yet, and UDP sockets of it that have datagrams it has not
    read: over SCTP in the process a caller comes in such a one."""
    inodes = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            inodes.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
        except FileNotFoundError:
            continue
    waiting = 0
    for table in "tcp", "tcp6":
        with open(f"/proc/{pid}/net/{table}") as file:
            rows = [line.split() for line in file.readlines()[1:]]
        # Of a listener (state 0A, include/net/tcp_states.h) the length of the receive queue is that of the queue of accept(2).
        waiting += sum(int(row[4].split(":")[1], 16) for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in inodes)
    for table in "udp", "udp6":
        with open(f"/proc/{pid}/net/{table}") as file:
            rows = [line.split() for line in file.readlines()[1:]]
        waiting += sum(int(row[4].split(":")[1], 16) > 0 for row in rows if f"socket:[{row[9]}]" in inodes)
    return waiting


class Job:
    """A launcher and its ranks; output in files, so that no pipe can fill up."""

    def __init__(self, words, settings, directory=None):
        self._mark = f"{MARK}={uuid.uuid4()}"
        # WEFT_SAME_HOST is what `./test --same-host-off` sets for all tests.
        not_the_test = ("WEFT_", "PMI_", "MPI", "UCX_", "HYDRA_")
        env = {k: v for k, v in os.environ.items() if not k.startswith(not_the_test) or k == "WEFT_SAME_HOST"}
        env["LC_ALL"] = "C"
        env.update(settings)
        env[MARK] = self._mark.split("=", 1)[1]
        self.words = words
        self._files = [tempfile.TemporaryFile(mode="w+b") for _ in range(2)]
        self._process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=self._files[0], stderr=self._files[1], env=env,
                                         cwd=directory, start_new_session=True)
        self.pid = self._process.pid

    @property
    def status(self):
        return self._process.poll()

    @property
    def output(self):
        return "".join(os.pread(f.fileno(), os.fstat(f.fileno()).st_size, 0).decode(errors="replace") for f in self._files)

    def wait(self, timeout):
        """Whether the launcher ended in time."""
        try:
            self._process.wait(timeout)
            return True
        except subprocess.TimeoutExpired:
            return False

    def members(self):
        """The pids of all living processes of the job, wherever they hang in the tree of processes."""
        found = []
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    if self._mark.encode() in file.read().split(b"\0"):
                        found.append(int(name))
            except OSError:
                continue  # it ended, or is a zombie
        return found

    def left_behind(self):
        """What still runs a while after the launcher ended."""
        deadline = time.monotonic() + LINGER_SECONDS
        while True:
            members = self.members()
            if not members or time.monotonic() > deadline:
                return members
            time.sleep(POLL_SECONDS)

    def terminate(self):
        self._process.terminate()

    def kill(self):
        for pid in self.members():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self._process.wait()

    def stacks(self):
        """Where the ranks are, for a report of a hang; empty without gdb."""
        text = ""
        for pid in self.members():
            try:
                done = subprocess.run(["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all bt 14"], capture_output=True,
                                      text=True, timeout=30)
            except (OSError, subprocess.TimeoutExpired):
                return text
            if "mpiexec" in done.stdout or "hydra" in done.stdout:
                continue
            text += f"  process {pid}\n" + "\n".join(l for l in done.stdout.splitlines() if l.startswith(("Thread", "#"))) + "\n"
        return text


class MpiTest(unittest.TestCase):
    """`library` is one of the classes above; run() starts a program on it."""

    library = None

    @classmethod
    def setUpClass(cls):
        cls.sanitizer = stock.sanitizer()[0]
        cls.slow = 8 if cls.sanitizer else 1
        if cls.sanitizer and cls.library is Mpich:
            raise unittest.SkipTest("MPICH is the reference in the ordinary build; it is not what a sanitizer is to look at")

    def start(self, ranks, program, *arguments, directory=None, launcher_options=(), **settings):
        words = [*self.library.launcher(), "-n", str(ranks), *launcher_options, program, *arguments]
        job = Job(words, {**self.library.settings(), **settings}, directory)
        self.addCleanup(job.kill)
        return job

    def run_job(self, ranks, program, *arguments, timeout=TIMEOUT, status=0, **options):
        """Runs to the end; returns the output. `status` None: whatever it is."""
        job = self.start(ranks, program, *arguments, **options)
        command = " ".join(job.words)
        if not job.wait(timeout * self.slow):
            self.fail(f"{command}\nstill runs after {timeout * self.slow} s; output:\n{job.output}\n{job.stacks()}")
        if status is not None and job.status != status:
            self.fail(f"{command}\nexit status {job.status}, not {status}; output:\n{job.output}")
        left = job.left_behind()
        if left:
            self.fail(f"{command}\nleft processes behind: {left}; output:\n{job.output}\n{job.stacks()}")
        return job.output
