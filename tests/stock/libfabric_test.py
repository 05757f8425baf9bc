"""libfabric's verbs provider on Weft: fi_info and fi_pingpong. The provider leaves the loopback interface out, so it gets hosts of its own."""

import re

import stock
from namespaces import NamespaceTest


class Libfabric(NamespaceTest):

    # rxm (1.17) destroys its queue pair as soon as it sees that the peer has gone. Messages that it had not polled are lost then, with every
    # verbs device that removes a queue pair's completions: fi_pingpong fails with ECANCELED, or waits. It polls, and
    # every 10 ms it then asks rdma_cm. If it asks once a second only, it rarely loses its processor between the two.
    RXM = {"FI_OFI_RXM_CM_PROGRESS_INTERVAL": "1000000"}

    PORT = 47592  # fi_pingpong's default, on which both ends tell each other their addresses by TCP

    def pingpong(self, options, address="10.9.0.1", count=18, **settings):
        """fi_pingpong between two hosts, data checked; `count` sizes, of which the largest is 6 MiB."""
        one, two = self.pair()
        command = f"fi_pingpong {options} -c -I 5"
        settings = {"WEFT_STATS": "1", **settings}
        server = self.start_in(one, command, **settings)
        self.await_listener_in(one, self.PORT)
        client = self.start_in(two, f"{command} {address}", **settings)
        self.await_success(server, client)
        rows = re.findall(r"^\d\S*\s+5\s+=5\s", client.output, re.MULTILINE)
        self.expect(len(rows) >= count, f"{len(rows)} sizes were transferred")
        return client.output

    def expect_traffic(self, output, kind, least):
        sent = sum(int(n) for n in re.findall(rf"weft: +qp \S+ {kind} .*; (\d+) bytes sent", output))
        self.expect(sent >= least, f"{kind} queue pairs sent {sent} bytes")

    def test_connected_endpoints(self):
        self.expect_traffic(self.pingpong("-p verbs -e msg -S all"), "RC", 30 << 20)

    def test_connected_endpoints_over_ipv6(self):
        self.expect_traffic(self.pingpong("-p verbs -e msg -6", "fd09::1", count=3), "RC", 1 << 20)

    def test_connected_endpoints_of_the_iwarp_persona(self):
        self.expect_traffic(self.pingpong("-p verbs -e msg", count=3, WEFT_PERSONA="iwarp"), "RC", 1 << 20)

    def test_reliable_datagrams_over_connections(self):
        self.expect_traffic(self.pingpong("-p verbs;ofi_rxm -e rdm", count=6, **self.RXM), "RC", 5 << 20)

    def test_tagged_messages_over_connections(self):
        self.expect_traffic(self.pingpong("-p verbs;ofi_rxm -e rdm -m tagged", count=3, **self.RXM), "RC", 1 << 20)

    def test_datagrams(self):
        # libfabric's hook of madvise() takes a lock in a thread that has ended for libtsan, which crashes.
        settings = {"FI_MR_CACHE_MONITOR": "disabled"} if self.sanitizer == "tsan" else {}
        # Without a domain it takes the first, which is the loopback's.
        self.expect_traffic(self.pingpong("-p verbs -e dgram -d weft_w0-dgram", count=3, **settings), "UD", 5 * 1024)

    def test_provider_of_an_address(self):
        one, _ = self.pair()
        out = self.run_in(one, "fi_info -p verbs -s 10.9.0.1")
        for wanted in ("provider: verbs\n", "domain: weft_w0\n", "type: FI_EP_MSG", "protocol: FI_PROTO_RDMA_CM_IB_RC", "provider: verbs;ofi_rxm"):
            self.expect(wanted in out, f"no '{wanted}'")

    def test_provider_of_any_address(self):
        # libfabric asks rdma_cm about "localhost" then, and goes through all devices if that names none of them.
        one, _ = self.pair()
        out = self.run_in(one, "fi_info -p verbs -t FI_EP_MSG")
        self.expect("domain: weft_w0\n" in out, "weft_w0 is not listed")


if __name__ == "__main__":
    stock.main()
