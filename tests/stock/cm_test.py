"""The connection manager's own stock programs on Weft: ucmatose, rdma_server and rdma_client, cmtime."""

import subprocess

import stock


class Ucmatose(stock.StockTest):

    def exchange(self, options=""):
        server, client = self.run_pair(f"ucmatose -p {{port}} {options}",
                                       f"ucmatose -s 127.0.0.1 -p {{port}} {options}")
        for side, out in (("server", server), ("client", client)):
            self.expect("test complete" in out and "return status 0" in out, f"the {side} did not complete")

    def test_defaults(self):
        self.exchange()

    def test_fifty_connections_with_a_hundred_messages_of_4096(self):
        self.exchange("-c 50 -C 100 -S 4096")

    def test_connections_without_messages(self):
        self.exchange("-c 20 -C 0")

    def test_migrated_event_channels(self):
        self.exchange("-m -c 5")

    def test_ipv6(self):
        self.run_pair("ucmatose -b ::1 -p {port}", "ucmatose -s ::1 -f ipv6 -p {port}")


class RdmaServer(stock.StockTest):

    def test_one_message_each_way(self):
        server, client = self.run_pair("rdma_server -p {port}", "rdma_client -s 127.0.0.1 -p {port}")
        self.expect("rdma_server: end 0" in server, "the server did not end well")
        self.expect("rdma_client: end 0" in client, "the client did not end well")


class RdmaXserver(stock.StockTest):

    def exchange(self, kind, **settings):
        server, client = self.run_pair(f"rdma_xserver -p {{port}} -c {kind}", f"rdma_xclient -s 127.0.0.1 -p {{port}} -c {kind}",
                                        server_settings=settings, client_settings=settings)
        self.expect("rdma_xserver: end 0" in server, "the server did not end well")
        self.expect("rdma_xclient: end 0" in client, "the client did not end well")

    def test_reliable_connected(self):
        self.exchange("r")

    def test_extended_reliable_connected(self):
        self.exchange("x", WEFT_PERSONA="roce")


class Cmtime(stock.StockTest):

    def test_two_hundred_connections(self):
        usage = subprocess.run(["cmtime", "-h"], capture_output=True, text=True).stdout
        if "socket baseline" in usage:
            self.skipTest("this cmtime listens at TCP and at rdma_cm with one number (docs/supported.md, rdma_cm)")
        port = stock.free_port()
        server = self.start(f"cmtime -p {port} -c 200")  # serves until it is killed
        self.await_listener(server, port)
        client = self.run_one(f"cmtime -s 127.0.0.1 -p {port} -c 200")
        self.expect(server.running(), "the server ended")
        for step in ("create id", "resolve addr", "resolve route", "create qp", "connect", "disconnect",
                     "destroy"):
            self.expect(step in client, f"no timing of '{step}'")


if __name__ == "__main__":
    stock.main()
