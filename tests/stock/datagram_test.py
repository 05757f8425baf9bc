"""Unreliable datagrams: the distribution's programs that use UD queue pairs, without rdma_cm."""

import stock

ROCE = {"WEFT_PERSONA": "roce"}


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


if __name__ == "__main__":
    stock.main()
