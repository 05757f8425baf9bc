"""The cluster itself: it comes, goes without a trace, and has room for another beside it."""

import glob
import os
import subprocess
import time
import unittest

import slurm


def processes(directory):
    """What runs with the cluster of this directory in its command line or environment."""
    found = []
    for path in glob.glob("/proc/[0-9]*"):
        try:
            with open(path + "/environ", "rb") as environment, open(path + "/cmdline", "rb") as command:
                if directory.encode() in environment.read() + command.read():
                    found.append(path)
        except OSError:
            pass
    return found


def plain():
    return {name: os.environ[name] for name in slurm.PLAIN if name in os.environ}


def run(*words, env=None):
    return subprocess.run([slurm.cluster(), *words], capture_output=True, text=True, timeout=120, env=env or plain(), check=False)


@unittest.skipIf(slurm.missing(), slurm.missing())
class Cluster(unittest.TestCase):

    def expect_nothing_of(self, directory):
        self.assertTrue(directory.startswith("/tmp/weft-slurm-"), directory)
        self.assertFalse(os.path.exists(directory))
        self.assertEqual(processes(directory), [])

    def test_a_command_has_one_of_its_own(self):
        # Two at a time, and each ends while a step of its own runs that has left its parents and its environment behind.
        script = ("srun --nodes=2 --label hostname && echo $SLURM_CONF && srun sh -c 'env -i setsid sleep 1000 & touch '$SLURM_CONF.ready'; sleep 1000' &"
                  "while test ! -e $SLURM_CONF.ready; do sleep .05; done; exit 3")
        both = [subprocess.Popen([slurm.cluster(), "run", "sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=plain())
                for _ in range(2)]
        directories = set()
        for one in both:
            out, err = one.communicate(timeout=120)
            self.assertEqual(one.returncode, 3, out + err)
            self.assertEqual([line[:2] for line in sorted(out.splitlines())[1:]], ["0:", "1:"], out + err)
            directories.add(os.path.dirname(min(out.splitlines())))
        self.assertEqual(len(directories), 2)
        for directory in directories:
            self.expect_nothing_of(directory)

    def test_it_ends_when_who_holds_it_is_killed(self):
        holder = subprocess.Popen([slurm.cluster(), "run", "sh", "-c", "echo $SLURM_CONF; exec sleep 1000"], stdout=subprocess.PIPE, text=True, env=plain())
        directory = os.path.dirname(holder.stdout.readline())
        self.assertTrue(os.path.exists(directory))
        command = [path for path in processes(directory) if b"sleep" in open(path + "/cmdline", "rb").read()]
        holder.kill()
        holder.wait()
        holder.stdout.close()
        deadline = time.monotonic() + 30
        while os.path.exists(directory) and time.monotonic() < deadline:
            time.sleep(0.05)
        for path in command:
            os.kill(int(path.split("/")[2]), 9)
        while processes(directory) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.expect_nothing_of(directory)

    def test_what_a_killed_holder_leaves_goes_with_the_next(self):
        holder = subprocess.Popen([slurm.cluster(), "hold"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=plain())
        directory = os.path.dirname(holder.stdout.readline().strip().partition("=")[2])
        holder.kill()
        holder.communicate()
        deadline = time.monotonic() + 30
        while processes(directory) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(run("run", "true").returncode, 0)
        self.expect_nothing_of(directory)

    def test_start_and_stop(self):
        started = run("start")
        self.assertEqual(started.returncode, 0, started.stderr)
        setting = started.stdout.strip().removeprefix("export SLURM_CONF=")
        env = dict(plain(), SLURM_CONF=setting)
        seen = subprocess.run(["sinfo", "--noheader", "--format=%N %T"], capture_output=True, text=True, env=env, timeout=60, check=False)
        self.assertEqual(seen.stdout, "node[1-2] idle\n", seen.stderr)
        stopped = run("stop", env=env)
        self.assertEqual((stopped.returncode, stopped.stdout), (0, ""), stopped.stderr)
        self.expect_nothing_of(os.path.dirname(setting))

    def test_stop_ends_no_other(self):
        for setting in ("", "/etc/slurm/slurm.conf"):
            refused = run("stop", env=dict(plain(), SLURM_CONF=setting))
            self.assertEqual(refused.returncode, 1)
            self.assertIn(f"SLURM_CONF={setting} is not of a cluster", refused.stderr)


if __name__ == "__main__":
    slurm.main()
