"""Two hosts with two links between them: network namespaces and two veth pairs on one machine. Needs root."""

import itertools
import os
import subprocess

ONE = ["10.71.1.1", "10.71.2.1"]
TWO = ["10.71.1.2", "10.71.2.2"]


def can_be_made():
    """Whether this process may make namespaces."""
    if os.geteuid() != 0:
        return False
    name = f"weft-sctp-probe-{os.getpid()}"
    done = subprocess.run(["ip", "netns", "add", name], capture_output=True)
    if done.returncode == 0:
        subprocess.run(["ip", "netns", "del", name], check=True)
    return done.returncode == 0


class TwoLinks:
    """Hosts `one` and `two`, whose link 0 has the first addresses of ONE and TWO, and link 1 the second. `rate`: of each link and direction,
    as tc writes it ("1gbit"); none: as fast as the machine."""

    _numbers = itertools.count()

    def __init__(self, rate=None):
        number = next(self._numbers)
        self._names = {host: f"weft-sctp-{os.getpid()}-{number}-{host}" for host in ("one", "two")}
        self._processes = []
        for host, name in self._names.items():
            subprocess.run(["ip", "netns", "add", name], check=True)
            self._ip(host, "link set lo up")
        for link in (0, 1):
            self._ip("one", f"link add w{link} type veth peer name w{link} netns {self._names['two']}")
            for host, addresses in (("one", ONE), ("two", TWO)):
                self._ip(host, f"addr add {addresses[link]}/24 dev w{link}")
                self._ip(host, f"link set w{link} up")
                if rate is not None:
                    # A queue of 4 ms at 1 Gbit/s, as a switch has it.
                    subprocess.run(["tc", "-n", self._names[host]] + f"qdisc add dev w{link} root tbf rate {rate} burst 128kb limit 512kb".split(),
                                   check=True)

    def close(self):
        for process in self._processes:
            process.kill()
            process.communicate()
        for name in self._names.values():
            subprocess.run(["ip", "netns", "del", name], check=True)

    def _ip(self, host, command):
        subprocess.run(["ip", "-n", self._names[host]] + command.split(), check=True)

    def start(self, host, *command):
        """A process of that host, whose output is to be read."""
        process = subprocess.Popen(["ip", "netns", "exec", self._names[host], *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self._processes.append(process)
        return process

    def end(self, process):
        process.kill()
        process.communicate()
        self._processes.remove(process)

    def set_link(self, host, link, up):
        """At one end: that host has no route over it; for the other packets vanish."""
        self._ip(host, f"link set w{link} {'up' if up else 'down'}")
