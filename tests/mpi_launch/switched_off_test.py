"""Hosts that are switched off: network namespaces whose link is cut. mpiexec, the proxies of a tree and those that are cut off themselves all find out
within the time that mpiexec(1) says, whether anything is said between them or not. Needs root."""

import os
import subprocess
import time

import launch
import namespaces

NOTICED = 35  # seconds, as the man page says
MUCH = 20000000  # bytes: more than fit between a rank and who reads mpiexec's output
ENDED = NOTICED + 15  # and all has ended

# In ssh's place: leaves what it is to do to the test, so that a proxy is no child of whoever asked for it.
SHELL = """#!/bin/sh
read line
echo "$line" > {0}/$1.invitation.new
echo "$2" > {0}/$1.command
mv {0}/$1.invitation.new {0}/$1.invitation
exec sleep 1000
"""


class SwitchedOff(launch.LaunchTest):

    def setUp(self):
        super().setUp()
        if os.geteuid() != 0 or not namespaces.can_make_namespaces():
            self.skipTest("making network namespaces needs root")
        self.made = 0

    def ip(self, *words):
        subprocess.run(["ip", *map(str, words)], check=True)

    def namespace(self):
        self.made += 1
        name = f"weft-off-{os.getpid()}-{self.made}"
        self.ip("netns", "add", name)
        self.addCleanup(self.ip, "netns", "del", name)
        self.ip("-n", name, "link", "set", "lo", "up")
        return name

    def join(self, one, two, net):
        """A link `net` between two of them, with addresses 10.77.`net`.1 and .2."""
        self.ip("-n", one, "link", "add", f"w{net}", "type", "veth", "peer", "name", f"w{net}", "netns", two)
        for number, name in ((1, one), (2, two)):
            self.ip("-n", name, "addr", "add", f"10.77.{net}.{number}/24", "dev", f"w{net}")
            self.ip("-n", name, "link", "set", f"w{net}", "up")

    def start_job(self, namespace, places, *words):
        """mpiexec in a namespace; `places`: (address, namespace) of hosts, in the order in which they are started. The job and the hosts' proxies."""
        directory = os.path.join(self.directory, places[0][0])
        os.mkdir(directory)
        shell = os.path.join(directory, "shell")
        with open(shell, "w") as file:
            file.write(SHELL.format(directory))
        os.chmod(shell, 0o755)
        hosts = ",".join(address for address, _ in places)
        job = self.start("netns", "exec", namespace, launch.mpiexec(), "-branches", 1, "-launcher-exec", shell, "-hosts", hosts, *words, launcher="ip")
        proxies = []
        for address, where in places:
            self.await_condition(lambda: os.path.exists(f"{directory}/{address}.invitation"), f"the start of the proxy on {address}")
            with open(f"{directory}/{address}.command") as command, open(f"{directory}/{address}.invitation") as invitation:
                proxies.append(subprocess.Popen(["ip", "netns", "exec", where, "sh", "-c", command.read()], stdin=invitation, env=self.environment(),
                                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.directory))
        return job, proxies

    def test_all_that_is_left_on_either_side_ends_and_names_the_host(self):
        # And one that is there, whose output nobody reads meanwhile.
        shell = os.path.join(self.directory, "shell")
        with open(shell, "w") as file:
            file.write('#!/bin/sh\nshift\nexec sh -c "$*"\n')
        os.chmod(shell, 0o755)
        full = self.start("-launcher-exec", shell, "-hosts", "198.51.100.1", "sh", "-c", f"yes | head -c {MUCH}")
        # Two hosts of their own: nothing is said on one link, much on the other. And a chain, whose last host is cut off from the second.
        here = self.namespace()
        quiet, busy, near, far = (self.namespace() for _ in range(4))
        for net, (one, two) in enumerate(((here, quiet), (here, busy), (here, near), (near, far)), 1):
            self.join(one, two, net)
        ready = "touch $0$PMI_RANK; "
        jobs = {}
        for name, places, script in (("quiet", [("10.77.1.2", quiet)], ready + "exec sleep 1000"),
                                     ("busy", [("10.77.2.2", busy)], ready + "exec yes"),
                                     ("chain", [("10.77.3.2", near), ("10.77.4.2", far)], ready + "exec sleep 1000")):
            jobs[name] = (*self.start_job(here, places, "-outfile-pattern", "/dev/null", "sh", "-c", script, f"{self.directory}/{name}"), places[-1])
        self.await_files("quiet0", "busy0", "chain0", "chain1")
        for place, net in ((quiet, 1), (busy, 2), (far, 4)):
            self.ip("-n", place, "link", "set", f"w{net}", "down")
        cut = time.monotonic()
        for name, (job, proxies, (address, _)) in jobs.items():
            with self.subTest(job=name):
                _, err = job.communicate(timeout=ENDED + 30)
                seconds = time.monotonic() - cut
                print(f"{name}: mpiexec ended {seconds:.1f} s after the cut")
                self.assertEqual(job.returncode, 1, err)
                self.assertIn(f"the connection to {address} ended", err)
                self.assertLess(seconds, ENDED)
                for proxy in proxies:
                    proxy.wait(timeout=ENDED)
                seconds = time.monotonic() - cut
                print(f"{name}: nothing is left on the other side after {seconds:.1f} s")
                self.assertLess(seconds, ENDED + 5)
        out, err = full.communicate(timeout=ENDED)
        self.assertEqual((full.returncode, len(out)), (0, MUCH), err)
        self.expect_nothing_left()


if __name__ == "__main__":
    launch.main()
