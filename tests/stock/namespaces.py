"""Network namespaces for tests: several hosts on one machine. Needs root; tests are skipped without."""

import os
import subprocess

import stock


def can_make_namespaces():
    name = f"weft-probe-{os.getpid()}"  # tests run side by side
    done = subprocess.run(["ip", "netns", "add", name], capture_output=True)
    if done.returncode == 0:
        subprocess.run(["ip", "netns", "del", name], check=True)
    return done.returncode == 0


class Hosts:
    """Hosts 1 to `count`: a network namespace for each, with the address 10.79.0.N on w0, all at a bridge. They end with `test`, which is skipped without root."""

    def __init__(self, test, count):
        if os.geteuid() != 0 or not can_make_namespaces():
            test.skipTest("making network namespaces needs root")
        self.bridge = f"weft-hosts-{os.getpid()}"
        for name in (self.bridge, *map(self.name, range(1, count + 1))):
            self.ip("netns", "add", name)
            test.addCleanup(self.ip, "netns", "del", name)
        self.ip("-n", self.bridge, "link", "add", "bridge", "type", "bridge")
        self.ip("-n", self.bridge, "link", "set", "bridge", "up")
        for number in range(1, count + 1):
            self.ip("-n", self.bridge, "link", "add", f"w{number}", "type", "veth", "peer", "name", "w0", "netns", self.name(number))
            self.ip("-n", self.bridge, "link", "set", f"w{number}", "master", "bridge", "up")
            self.ip("-n", self.name(number), "link", "set", "lo", "up")
            self.ip("-n", self.name(number), "addr", "add", f"10.79.0.{number}/24", "dev", "w0")
            self.ip("-n", self.name(number), "link", "set", "w0", "up")

    def name(self, number):
        return f"{self.bridge}-{number}"

    def words(self, number):
        """In front of a command that is to run on that host."""
        return ("ip", "netns", "exec", self.name(number))

    def cut_off(self, number):
        self.ip("-n", self.bridge, "link", "set", f"w{number}", "down")

    @staticmethod
    def ip(*words):
        subprocess.run(["ip", *words], check=True)


class NamespaceTest(stock.StockTest):

    def setUp(self):
        super().setUp()
        self._namespaces = []

    def tearDown(self):
        super().tearDown()
        for name in self._namespaces:
            subprocess.run(["ip", "netns", "del", name], check=True)

    def namespace(self, suffix):
        if os.geteuid() != 0 or not can_make_namespaces():
            self.skipTest("making network namespaces needs root")
        name = f"weft-{os.getpid()}-{suffix}"
        subprocess.run(["ip", "netns", "add", name], check=True)
        self._namespaces.append(name)
        self.ip(name, "link set lo up")
        return name

    def ip(self, namespace, command):
        subprocess.run(["ip", "-n", namespace] + command.split(), check=True)

    def start_in(self, namespace, command, **settings):
        """`command` under `weft run` in `namespace`."""
        return self.start(f"ip netns exec {namespace} {stock.weft()} run -- {command}", under_weft=False, **settings)

    def run_in(self, namespace, command, **settings):
        process = self.start_in(namespace, command, **settings)
        self.await_success(process)
        return process.output

    def await_listener_in(self, namespace, port=7174):
        command = ["ip", "netns", "exec", namespace, "ss", "-ltn"]
        self.await_condition(lambda: f":{port}" in subprocess.run(command, capture_output=True, text=True, check=True).stdout,
                             "a listener", 20)

    def pair(self):
        """Two namespaces, "hosts" 10.9.0.1 and 10.9.0.2 (fd09::1, fd09::2) on interface w0 of each."""
        one, two = self.namespace("one"), self.namespace("two")
        self.ip(one, f"link add w0 type veth peer name w0 netns {two}")
        for number, name in ((1, one), (2, two)):
            self.ip(name, f"addr add 10.9.0.{number}/24 dev w0")
            self.ip(name, f"addr add fd09::{number}/64 dev w0 nodad")
            self.ip(name, "link set w0 up")
        for name in (one, two):
            self.await_condition(lambda: "state UP" in self.shown(name, "link show w0"), "w0 that is up", 20)
        return one, two

    def shown(self, namespace, command):
        return subprocess.run(["ip", "-n", namespace] + command.split(), check=True, capture_output=True, text=True).stdout
