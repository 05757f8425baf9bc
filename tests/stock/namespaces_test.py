"""Network namespaces: interfaces that come and go under a running program, and two hosts on one machine. Needs root."""

import re
import subprocess

import stock
from namespaces import NamespaceTest


class PortEvents(NamespaceTest):

    def watch(self, namespace, **settings):
        watcher = self.start_in(namespace, "stdbuf -oL ibv_asyncwatch -d weft_w0", **settings)
        self.await_condition(lambda: "weft_w0: async event FD" in watcher.output or not watcher.running(), "ibv_asyncwatch", 20)
        self.expect(watcher.running(), "ibv_asyncwatch ended")
        return watcher

    def await_event(self, watcher, event, count=1):
        self.await_condition(lambda: watcher.output.count(event) >= count or not watcher.running(), f"event '{event}'", 20)
        self.expect(watcher.running(), "ibv_asyncwatch ended")

    def link_down_and_up(self, persona):
        one, _ = self.pair()
        watcher = self.watch(one, WEFT_PERSONA=persona)
        self.ip(one, "link set w0 down")
        self.await_event(watcher, "IBV_EVENT_PORT_ERR (10)")
        self.expect("PORT_DOWN" in self.run_in(one, "ibv_devinfo -d weft_w0"), "the port is not down")
        self.expect("1: DOWN" in self.run_in(one, "cat /sys/class/infiniband/weft_w0/ports/1/state"), "/sys differs")
        self.ip(one, "link set w0 up")
        self.await_event(watcher, "IBV_EVENT_PORT_ACTIVE (9)")
        self.expect("PORT_ACTIVE" in self.run_in(one, "ibv_devinfo -d weft_w0"), "the port is not active")
        self.expect("4: ACTIVE" in self.run_in(one, "cat /sys/class/infiniband/weft_w0/ports/1/state"), "/sys differs")

    def test_link_down_and_up(self):
        self.link_down_and_up("iwarp")

    def test_link_down_and_up_of_a_roce_device(self):
        self.link_down_and_up("roce")

    def test_peer_that_goes_takes_the_carrier_along(self):
        one, two = self.pair()
        watcher = self.watch(one)
        self.ip(two, "link set w0 down")
        self.await_event(watcher, "IBV_EVENT_PORT_ERR (10)")

    def test_addresses_that_come_and_go(self):
        one, _ = self.pair()
        watcher = self.watch(one)
        before = watcher.output.count("IBV_EVENT_GID_CHANGE (18)")
        self.ip(one, "addr add 10.9.1.1/24 dev w0")
        self.await_event(watcher, "IBV_EVENT_GID_CHANGE (18)", before + 1)
        self.ip(one, "addr del 10.9.1.1/24 dev w0")
        self.await_event(watcher, "IBV_EVENT_GID_CHANGE (18)", before + 2)

    def test_an_interface_that_is_removed(self):
        one, _ = self.pair()
        watcher = self.watch(one)
        self.ip(one, "link del w0")
        self.await_event(watcher, "IBV_EVENT_PORT_ERR (10)")


class GidTable(NamespaceTest):

    PROGRAM = """
import subprocess
import pyverbs.device as device
context = device.Context(name='weft_w0')
def ip(command):
    subprocess.run(['ip', *command.split()], check=True)
def table():
    length = context.query_port(1).gid_tbl_len
    return {e.gid_index: e.gid_str() for e in context.query_gid_table(length) if not e.gid_str().startswith('fe80')}
def mapped(address):
    return '0000:0000:0000:0000:0000:ffff:' + '%02x%02x:%02x%02x' % tuple(int(part) for part in address.split('.'))
ip('addr add 10.9.1.1/24 dev w0')
before = table()
assert before[0] == mapped('10.9.0.1'), before
second = [i for i, gid in before.items() if gid == mapped('10.9.1.1')][0]
ip('addr del 10.9.0.1/24 dev w0')
without = table()
assert 0 not in without and without[second] == mapped('10.9.1.1'), without
assert str(context.query_gid(1, 0)) == ':'.join(['0000'] * 8)
ip('addr add 10.9.2.1/24 dev w0')
after = table()
assert after[0] == mapped('10.9.2.1') and after[second] == mapped('10.9.1.1'), after
print('stable')
"""

    def test_indices_stay_while_addresses_come_and_go(self):
        one, _ = self.pair()
        command = ["ip", "netns", "exec", one, stock.weft(), "run", "/usr/bin/python3", "-c", self.PROGRAM]
        process = self.start(command, under_weft=False, WEFT_PERSONA="roce")
        self.await_success(process)
        self.expect("stable" in process.output, "GIDs moved")


class TwoHosts(NamespaceTest):

    def test_each_sees_its_own_devices(self):
        one, two = self.pair()
        alone = self.namespace("alone")
        for name, address in ((one, "10.9.0.1"), (two, "10.9.0.2")):
            out = self.run_in(name, "ibv_devinfo -v -d weft_w0", WEFT_PERSONA="roce")
            self.expect(f"::ffff:{address}, RoCE v2" in out, f"no GID of {address}")
            gid = self.run_in(name, "cat /sys/class/infiniband/weft_w0/ports/1/gids/0")
            self.expect(gid.strip().endswith("0a09:000" + address[-1]), f"{gid} is not {address}")
        listed = self.run_in(alone, "ls /sys/class/infiniband")
        self.expect(listed == "weft_lo\n", f"{listed} is listed")

    def test_the_first_device_is_one_that_reaches_the_other(self):
        """Programs that are not told which take the first: the loopback's only where no other works."""
        one, _ = self.pair()
        def names():
            return re.findall(r"weft_\w+", self.run_in(one, "ibv_devices"))
        self.expect(names() == ["weft_w0", "weft_lo"], "the order")
        self.ip(one, "link set w0 down")
        self.expect(names() == ["weft_lo", "weft_w0"], "the order with w0 down")

    def test_one_shell_that_enters_another_namespace_sees_its_devices(self):
        one, _ = self.pair()
        script = f"ls /sys/class/infiniband; ip netns exec {one} ls /sys/class/infiniband"
        out = self.run_one(["sh", "-c", script], LD_PRELOAD="")
        self.expect("weft_w0\n" in out, "w0 of the other namespace is not listed")

    def test_rping_between_them_while_another_pair_does_the_same(self):
        one, two = self.pair()
        third = self.namespace("third")
        servers = [self.start_in(one, "rping -s -a 10.9.0.1 -p 7174 -C 200 -v -V"),
                   self.start_in(third, "rping -s -a 127.0.0.1 -p 7174 -C 200 -v -V")]
        for name in (one, third):
            self.await_listener_in(name)
        clients = [self.start_in(two, "rping -c -a 10.9.0.1 -p 7174 -C 200 -v -V"),
                   self.start_in(third, "rping -c -a 127.0.0.1 -p 7174 -C 200 -v -V")]
        self.await_success(*servers, *clients)

    def test_rping_over_ipv6(self):
        one, two = self.pair()
        server = self.start_in(one, "rping -s -a fd09::1 -p 7174 -C 10 -v -V")
        self.await_listener_in(one)
        client = self.start_in(two, "rping -c -a fd09::1 -p 7174 -C 10 -v -V")
        self.await_success(server, client)

    def ping_within_a_host(self, server, client):
        one, _ = self.pair()
        for wire in ("tcp", "sctp"):
            listening = self.start_in(one, f"rping -s -a {server} -p 7174 -C 10 -v -V", WEFT_LLP=wire)
            self.await_listener_in(one)
            self.await_success(listening, self.start_in(one, f"rping -c -a {server} -I {client} -p 7174 -C 10 -v -V", WEFT_LLP=wire))

    def test_from_the_loopback_to_another_address_of_the_host(self):
        self.ping_within_a_host("10.9.0.1", "127.0.0.1")

    def test_from_another_address_of_the_host_to_the_loopback(self):
        self.ping_within_a_host("127.0.0.1", "10.9.0.1")


if __name__ == "__main__":
    stock.main()
