"""Unreliable datagrams: the distribution's programs that use UD queue pairs, with and without rdma_cm."""

import os
import subprocess
import tempfile

import stock

ROCE = {"WEFT_PERSONA": "roce"}


GROUP_PORT = 14791  # where groups' datagrams go
UDADDY_PORT = 7174  # it takes no other


class UdPingpong(stock.StockTest):

    def pair(self, options=""):
        command = "ibv_ud_pingpong -d weft_lo -p {port} " + options
        return self.run_pair(command, command + " 127.0.0.1", server_settings=ROCE, client_settings=ROCE)

    def check(self, outputs):
        for output in outputs:
            self.expect("1000 iters in" in output, "no result")

    def test_ipv4(self):
        self.check(self.pair("-g 0"))

    def test_ipv6(self):
        self.check(self.pair("-g 1"))

    def test_events(self):
        self.check(self.pair("-g 0 -e"))

    def test_one_byte(self):
        self.check(self.pair("-g 0 -s 1"))

    def test_largest_message(self):
        self.check(self.pair("-g 0 -s 4096"))

    def test_deep_queue(self):
        self.check(self.pair("-g 0 -r 8"))

    def test_captured(self):
        """Wireshark sees UDP with right checksums, and which queue pairs talk."""
        with tempfile.TemporaryDirectory() as directory:
            file = os.path.join(directory, "ud.pcapng")
            command = "ibv_ud_pingpong -d weft_lo -g 0 -n 100 -p {port}"
            self.run_pair(command, command + " 127.0.0.1", server_settings=dict(ROCE, WEFT_PCAP=file), client_settings=ROCE)
            shown = subprocess.run(["tshark", "-r", file, "-o", "udp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", "-T", "fields",
                                    "-e", "udp.checksum.status", "-e", "ip.checksum.status", "-e", "udp.length", "-e", "frame.comment"],
                                   capture_output=True, text=True, timeout=60, check=True).stdout.splitlines()
        self.assertEqual(len(shown), 200, "100 each way")
        for packet in shown:
            self.assertRegex(packet, r"^1\t1\t1056\tWeft: datagram of queue pair 0x\w+ to queue pair 0x\w+$")

    def test_iwarp_persona_has_none(self):
        process = self.start("ibv_ud_pingpong -d weft_lo -g 0", WEFT_PERSONA="iwarp")
        self.await_condition(lambda: not process.running(), "the end")
        self.expect(process.status == 1 and "Couldn't create QP" in process.output, "a queue pair was made")


class PerftestDatagrams(stock.StockTest):

    def pair(self, command, timeout=120):
        command += " -c UD -F -d weft_lo -x 0 -p {port}" + (" -n 20" if self.sanitizer else "")
        return self.run_pair(command, command + " 127.0.0.1", timeout=timeout, server_settings=ROCE, client_settings=ROCE)

    def check(self, outputs, size):
        client = outputs[1]
        self.expect(any(line.split()[:1] == [str(size)] for line in client.splitlines()), f"no row for {size} bytes")

    def test_latency(self):
        self.check(self.pair("ib_send_lat"), 2)

    def test_latency_with_events(self):
        self.check(self.pair("ib_send_lat -e"), 2)

    def test_latency_of_the_largest_message(self):
        self.check(self.pair("ib_send_lat -s 4096"), 4096)

    def test_bandwidth(self):
        self.check(self.pair("ib_send_bw"), 4096)

    def test_bandwidth_of_two_queue_pairs(self):
        self.check(self.pair("ib_send_bw -q 2 -s 1024"), 1024)

    def test_latency_with_rdma_cm(self):
        self.check(self.pair("ib_send_lat -R"), 2)

    def test_bandwidth_with_rdma_cm(self):
        self.check(self.pair("ib_send_bw -R"), 4096)


class QperfDatagrams(stock.StockTest):
    """qperf tells its peer a LID and a QPN, no GID: it reaches the own host only. Its datagrams of 2 KiB need a port with room for them; without -i it
    takes the first device, whose interface may have an MTU of 1,500 bytes."""

    def measure(self, test):
        port = stock.free_port()
        server = self.start(f"qperf -lp {port}", **ROCE)
        self.await_listener(server, port)
        client = self.start(f"qperf -lp {port} -t 1 -i weft_lo 127.0.0.1 {test}", **ROCE)
        self.await_success(client)
        self.expect("=" in client.output, "no result")

    def test_latency(self):
        self.measure("ud_lat")

    def test_bandwidth(self):
        self.measure("ud_bw")

    def test_bandwidth_both_ways(self):
        self.measure("ud_bi_bw")


class CmDatagrams(stock.StockTest):

    def pair(self, server, client, port):
        first = self.start(server, **ROCE)
        self.await_condition(lambda: stock.has_udp_port(port) or not first.running(), f"UDP port {port}")
        if not first.running():
            self.explain("the server ended early")
        second = self.start(client, **ROCE)
        self.await_success(first, second)
        for process in (first, second):
            self.expect("return status 0" in process.output, "no success")

    def test_udaddy(self):
        self.pair("udaddy", "udaddy -s 127.0.0.1", UDADDY_PORT)

    def test_udaddy_ipv6(self):
        self.pair("udaddy -b ::1", "udaddy -s ::1", UDADDY_PORT)

    def test_udaddy_many_connections(self):
        options = "-c 8 -C 50 -S 4000"
        self.pair(f"udaddy {options}", f"udaddy -s 127.0.0.1 {options}", UDADDY_PORT)

    def test_udaddy_nobody_listens(self):
        process = self.start("udaddy -s 127.0.0.1", **ROCE)
        self.await_condition(lambda: not process.running(), "the end")
        self.expect("RDMA_CM_EVENT_UNREACHABLE" in process.output, "no event")

    def test_mckey(self):
        self.pair("mckey -m 239.1.2.3 -b 127.0.0.1", "mckey -m 239.1.2.3 -b 127.0.0.1 -s", GROUP_PORT)

    def test_mckey_many_messages(self):
        options = "-m 239.1.2.3 -b 127.0.0.1 -C 100 -S 1000"
        self.pair(f"mckey {options}", f"mckey {options} -s", GROUP_PORT)

    def test_mckey_two_receivers_on_one_host(self):
        other = self.start("mckey -m 239.1.2.3 -b 127.0.0.1", **ROCE)
        self.await_condition(lambda: stock.has_udp_port(GROUP_PORT) or not other.running(), "the first receiver")
        first = self.start("mckey -m 239.1.2.3 -b 127.0.0.1", **ROCE)
        self.await_condition(lambda: len(self.members()) == 2, "the second receiver")
        sender = self.start("mckey -m 239.1.2.3 -b 127.0.0.1 -s", **ROCE)
        self.await_success(other, first, sender)

    def members(self):
        with open("/proc/net/udp") as rows:
            return [row for row in rows if row.split()[1].endswith(f":{GROUP_PORT:04X}")]


if __name__ == "__main__":
    stock.main()
