"""A Slurm cluster for the tests of a file, and jobs in it: ./cluster holds it until this process ends, however it ends."""

import atexit
import functools
import os
import shutil
import subprocess
import unittest

import mpi
import stock

__unittest = True  # failures show the test's line, not this file's

TIMEOUT = 60
PER_NODE = 2  # ranks, on each of the two nodes
PLAIN = ("PATH", "HOME", "TMPDIR", "TEST_TMPDIR", "LC_ALL")  # of the environment: not Bazel's, nor that of a job around this one


def cluster():
    return stock.workspace_file("tests/slurm/cluster")


def missing():
    """Why there can be no cluster here; empty when there can."""
    if os.geteuid() != 0:
        return "a Slurm cluster needs root"
    absent = [name for name in ("munged", "slurmctld", "slurmd", "srun") if not shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin")]
    return f"there is no {', '.join(absent)}; as root: tools/setup slurm" if absent else ""


def on_weft(program, *arguments):
    """A program of the tree with Weft's library, as words of a command. Slurm's own commands keep clear of that, and of a sanitizer's runtime."""
    settings = mpi.WeftUnderHydra.settings()
    return ["env", *(f"{name}={value}" for name, value in settings.items()), stock.workspace_file(program), *arguments]


class Done:
    def __init__(self, words, job):
        self.status = job.status
        self.output = job.output
        self._words = words

    def __repr__(self):
        return f"{' '.join(self._words)}\nexit status {self.status}; output:\n{self.output}"

    @property
    def lines(self):
        return sorted(self.output.splitlines())


@functools.lru_cache(maxsize=None)
def configuration():
    """SLURM_CONF of this process's cluster, which is made when it is first asked for."""
    holder = subprocess.Popen([cluster(), "hold"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env={name: os.environ[name] for name in PLAIN if name in os.environ})
    atexit.register(holder.communicate)
    line = holder.stdout.readline()
    if not line:
        raise AssertionError(f"there is no cluster: {holder.stderr.read()}")
    return line.strip().partition("=")[2]


class SlurmTest(unittest.TestCase):
    """All of a process share one cluster of two nodes."""

    @classmethod
    def setUpClass(cls):
        if missing():
            raise unittest.SkipTest(missing())
        cls.configuration = configuration()
        cls.slow = 4 if stock.sanitizer()[0] else 1

    def in_cluster(self, *words, timeout=TIMEOUT, **settings):
        """Runs a command of Slurm's in the cluster to its end; whatever it started must be gone with it."""
        words = list(map(str, words))
        job = mpi.Job(words, {"SLURM_CONF": self.configuration, **settings})
        self.addCleanup(job.kill)
        if not job.wait(timeout * self.slow):
            self.fail(f"{' '.join(words)}\nstill runs after {timeout * self.slow} s; output:\n{job.output}\n{job.stacks()}")
        left = job.left_behind()
        self.assertFalse(left, f"{' '.join(words)}\nleft processes behind; output:\n{job.output}")
        return Done(words, job)

    def succeed(self, *words, **options):
        done = self.in_cluster(*words, **options)
        self.assertEqual(done.status, 0, done)
        return done

    def srun(self, *words, **options):
        """Two ranks on each of the two nodes, unless `words` say otherwise."""
        return self.in_cluster("srun", "--mpi=pmi2", "--nodes=2", f"--ntasks-per-node={PER_NODE}", *words, **options)


main = stock.main
