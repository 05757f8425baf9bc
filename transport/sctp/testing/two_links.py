"""Two hosts with two links between them: network namespaces and two veth pairs on one machine. Needs root."""

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys

ONE = ["10.71.1.1", "10.71.2.1"]
TWO = ["10.71.1.2", "10.71.2.2"]
CANNOT = 77  # exit status of programs that need such hosts where they cannot be made


class CannotBeMade(Exception):
    """What the system said."""


def why_not():
    """Why this process cannot make such hosts, for its user; None: it can."""
    if os.geteuid() != 0:
        return "making network namespaces needs root"
    for tool in ("ip", "tc"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed (apt-get install iproute2)"
    try:
        TwoLinks("1gbit").close()
    except CannotBeMade as said:
        return f"network namespaces cannot be made here: {said}"
    return None


def end_with_clean_up():
    """SIGTERM and SIGHUP end this process as Ctrl-C does, by an exception: what `finally` clears away is cleared away."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, frame: sys.exit(128 + number))


def _run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        raise CannotBeMade(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


class TwoLinks:
    """Hosts `one` and `two`, whose link 0 has the first addresses of ONE and TWO, and link 1 the second. `rate`: of each link and direction,
    as tc writes it ("1gbit"); none: as fast as the machine. `mtu`: of both links, bytes. To be closed."""

    _numbers = itertools.count()

    def __init__(self, rate=None, mtu=1500):
        number = next(self._numbers)
        self.names = {host: f"weft-sctp-{os.getpid()}-{number}-{host}" for host in ("one", "two")}  # of the namespaces
        self._processes = []
        try:
            for host, name in self.names.items():
                _run("ip", "netns", "add", name)
                self._ip(host, "link set lo up")
            for link in (0, 1):
                self._ip("one", f"link add w{link} type veth peer name w{link} netns {self.names['two']}")
                for host, addresses in (("one", ONE), ("two", TWO)):
                    self._ip(host, f"addr add {addresses[link]}/24 dev w{link}")
                    self._ip(host, f"link set w{link} up mtu {mtu}")
                    if rate is not None:
                        # A queue of 4 ms at 1 Gbit/s, as a switch has it.
                        _run("tc", "-n", self.names[host], *f"qdisc add dev w{link} root tbf rate {rate} burst 128kb limit 512kb".split())
        except BaseException:
            self.close()
            raise

    def close(self):
        for process in list(self._processes):
            self.end(process)
        for name in self.names.values():
            subprocess.run(["ip", "netns", "del", name], capture_output=True)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def _ip(self, host, command):
        return _run("ip", "-n", self.names[host], *command.split())

    def start(self, host, *command, **options):
        """A process of that host, whose output is to be read. `options`: of subprocess.Popen."""
        process = subprocess.Popen(["ip", "netns", "exec", self.names[host], *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   **options)
        self._processes.append(process)
        return process

    def end(self, process):
        process.kill()
        process.wait()
        process.stdout.close()
        self._processes.remove(process)

    def set_link(self, host, link, up):
        """At one end: that host has no route over it; for the other packets vanish."""
        self._ip(host, f"link set w{link} {'up' if up else 'down'}")

    def received(self, host):
        """Bytes that came to that host, by link, headers of Ethernet included."""
        return [json.loads(self._ip(host, f"-s -j link show w{link}"))[0]["stats64"]["rx"]["bytes"] for link in (0, 1)]
