"""rping on Weft: it verifies every byte itself (-V) and prints what came (-v)."""

import stock

SMALLEST = 23  # rping refuses less: its own text must fit
LARGEST = 65535


class Rping(stock.StockTest):

    def ping(self, address, count, options="", size=64):
        common = f"-a {address} -p {{port}} -C {count} -S {size} -v -V {options}"
        outputs = self.run_pair(f"rping -s {common}", f"rping -c {common}")
        for side, out in zip(("server", "client"), outputs):
            lines = [line for line in out.splitlines() if "ping data: rdma-ping-" in line]
            self.expect(len(lines) == count, f"the {side} shows {len(lines)} pings of {count}")
        return outputs

    def test_ipv4_thousand_pings(self):
        server, client = self.ping("127.0.0.1", 1000)
        self.expect("ping data: rdma-ping-999: " in client, "the last ping is missing")

    def test_ipv6_thousand_pings(self):
        self.ping("::1", 1000)

    def test_smallest_message(self):
        self.ping("127.0.0.1", 100, size=SMALLEST)

    def test_largest_message(self):
        self.ping("127.0.0.1", 100, size=LARGEST)

    def test_sizes_between(self):
        for size in (24, 100, 1447, 1448, 1449, 4096, 9000, 32768):
            self.ping("127.0.0.1", 20, size=size)

    def test_self_created_qp(self):
        self.ping("127.0.0.1", 100, "-q")

    def test_self_created_qp_over_ipv6(self):
        self.ping("::1", 100, "-q")

    def test_server_on_any_address(self):
        self.run_pair("rping -s -a 0.0.0.0 -p {port} -C 10 -v -V", "rping -c -a 127.0.0.1 -p {port} -C 10 -v -V")

    def test_server_on_any_ipv6_address(self):
        self.run_pair("rping -s -a ::0 -p {port} -C 10 -v -V", "rping -c -a ::1 -p {port} -C 10 -v -V")

    def test_client_that_binds_its_source(self):
        self.run_pair("rping -s -a 127.0.0.1 -p {port} -C 10 -v -V",
                      "rping -c -I 127.0.0.1 -a 127.0.0.1 -p {port} -C 10 -v -V")

    def test_persistent_server_with_eight_clients_at_once(self):
        port = stock.free_port()
        server = self.start(f"rping -s -P -a 127.0.0.1 -p {port} -v -V")
        self.await_listener(server, port)
        for _ in range(2):  # the second eight find a server that has let eight go
            clients = [self.start(f"rping -c -a 127.0.0.1 -p {port} -C 100 -v -V") for _ in range(8)]
            self.await_success(*clients)
            for client in clients:
                self.expect(client.output.count("ping data: rdma-ping-") == 100, "a client misses pings")
        self.expect(server.running(), "the persistent server ended")

    def test_client_without_server_fails_soon(self):
        client = self.start(f"rping -c -a 127.0.0.1 -p {stock.free_port()} -C 1")
        self.await_condition(lambda: not client.running(), "the end of a client that nobody answers", 20)
        self.expect(client.status > 0, "it must fail, not crash")
        self.expect("cma event RDMA_CM_EVENT_" in client.output, "it must be told by an event")


if __name__ == "__main__":
    stock.main()
