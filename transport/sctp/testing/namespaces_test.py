"""SCTP between two hosts with two links: network namespaces and two veth pairs on one machine. Needs root, and says so without."""

import os
import re
import subprocess
import time
import unittest

PROGRAM = os.path.join(os.environ.get("TEST_SRCDIR", "."), "weft", "transport", "sctp", "ping_pong_benchmark")
ONE = ["10.71.1.1", "10.71.2.1"]
TWO = ["10.71.1.2", "10.71.2.2"]


def can_make_namespaces():
    name = f"weft-sctp-probe-{os.getpid()}"
    done = subprocess.run(["ip", "netns", "add", name], capture_output=True)
    if done.returncode == 0:
        subprocess.run(["ip", "netns", "del", name], check=True)
    return done.returncode == 0


class TwoLinks(unittest.TestCase):

    def setUp(self):
        if os.geteuid() != 0 or not can_make_namespaces():
            self.skipTest("making network namespaces needs root")
        self._one, self._two = f"weft-sctp-{os.getpid()}-1", f"weft-sctp-{os.getpid()}-2"
        self._processes = []
        for name in (self._one, self._two):
            subprocess.run(["ip", "netns", "add", name], check=True)
            self.addCleanup(subprocess.run, ["ip", "netns", "del", name], check=True)
            self._ip(name, "link set lo up")
        for link in (0, 1):
            self._ip(self._one, f"link add w{link} type veth peer name w{link} netns {self._two}")
            for name, addresses in ((self._one, ONE), (self._two, TWO)):
                self._ip(name, f"addr add {addresses[link]}/24 dev w{link}")
                self._ip(name, f"link set w{link} up")
        self.addCleanup(self._end)

    def _ip(self, namespace, command):
        subprocess.run(["ip", "-n", namespace] + command.split(), check=True)

    def _end(self):
        for process in self._processes:
            process.kill()
            process.communicate()

    def _start(self, namespace, *arguments):
        process = subprocess.Popen(["ip", "netns", "exec", namespace, PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self._processes.append(process)
        return process

    def _serve(self, *options):
        server = self._start(self._two, "server", ",".join(TWO), *options)
        found = re.match(r"port (\d+) udp (\d+)", server.stdout.readline())
        return f"{','.join(TWO)}:{found[1]}:{found[2]}"

    def _stream(self, seconds, *options, cut=None):
        """The output of a transfer, during which link `cut` is down from 1 s on and up again from 4 s on."""
        client = self._start(self._one, "client", self._serve(*(o for o in options if o == "native")), "stream", "65536", str(seconds),
                             f"from={','.join(ONE)}", *options)
        if cut is not None:
            time.sleep(1)
            self._ip(self._one, f"link set w{cut} down")
            time.sleep(3)
            self._ip(self._one, f"link set w{cut} up")
        output = client.communicate(timeout=60)[0]
        self.assertEqual(client.returncode, 0, output)
        self.assertRegex(output, r"all \d+ arrived", output)
        print(output)
        return output

    def _assert_both_carried(self, output):
        carried = [self._megabytes(output, address) for address in TWO]
        self.assertGreater(min(carried), sum(carried) / 20, output)

    @staticmethod
    def _megabytes(output, address):
        return float(re.search(rf"path {re.escape(address)} .*: ([\d.]+) MB out", output)[1])

    def test_one_path_at_a_time_is_the_primary(self):
        output = self._stream(2)
        # What times out, on a machine that is busy, is sent again on the other.
        self.assertLess(10 * self._megabytes(output, TWO[1]), self._megabytes(output, TWO[0]), output)
        for address in TWO:
            self.assertRegex(output, rf"path {re.escape(address)} active( primary)?: ", output)

    def test_concurrent_transfer_uses_both(self):
        for option in ("cmt", "pf"):
            with self.subTest(option):
                output = self._stream(3, option)
                self._assert_both_carried(output)

    def test_natively_too(self):
        output = self._stream(3, "cmt", "native")
        self._assert_both_carried(output)

    def test_a_link_that_is_cut_and_comes_back_is_nothing_but_time(self):
        for option in ((), ("cmt",), ("pf",)):
            for cut in (0, 1):
                with self.subTest(option=option, cut=cut):
                    output = self._stream(6, *option, cut=cut)
                    stall = float(re.search(r"longest stall ([\d.]+) s", output)[1])
                    self.assertLess(stall, 10, output)


if __name__ == "__main__":
    unittest.main(verbosity=2)
