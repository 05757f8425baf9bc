"""The stock programs over rsockets on Weft: rstream, riostream, rcopy, udpong."""

import os
import tempfile

import stock


class Rstream(stock.StockTest):

    def exchange(self, options, address="127.0.0.1", server="", timeout=stock.DEFAULT_TIMEOUT):
        outputs = self.run_pair(f"rstream -p {{port}} {server} {options}", f"rstream -s {address} -p {{port}} {options}",
                                timeout=timeout)
        for output in outputs:
            for word in ("rsend", "rrecv", "error", "mismatch"):
                self.expect(word not in output, f"a program says '{word}'")
        return outputs[1]

    def test_defaults(self):
        out = self.exchange("", timeout=200)  # 200,000 hand-overs between two programs that spin
        for name in ("64_lat", "1m_lat", "64_bw", "1m_bw"):
            self.expect(name in out, f"no row '{name}'")

    def test_sizes_around_the_limits_verified(self):
        # rstream begins and ends with 16 bytes of its buffer, however small that is: the sanitizer would end it.
        for size in (16 if self.sanitizer else 1, 64, 65, 4095, 65536, 65537, 131073, 1000000):
            self.expect("custom" in self.exchange(f"-T v -T b -I 5 -C 3 -S {size}"), f"no row for {size}")

    def test_blocking(self):
        self.expect("custom" in self.exchange("-T b -I 200 -C 10 -S 3000"), "no row")

    def test_poll(self):
        self.expect("custom" in self.exchange("-T a -I 100 -C 10 -S 3000"), "no row")

    def test_blocking_with_poll(self):
        self.expect("custom" in self.exchange("-T a -T b -I 100 -C 10 -S 100000"), "no row")

    def test_nonblocking(self):
        self.expect("custom" in self.exchange("-T n -I 100 -C 10 -S 3000"), "no row")

    def test_resolved_by_rdma_cm(self):
        self.expect("custom" in self.exchange("-T r -I 100 -C 1 -S 1000"), "no row")

    def test_small_buffers(self):
        self.expect("custom" in self.exchange("-T b -T v -B 4096 -I 20 -C 10 -S 50000"), "no row")

    def test_bound_address(self):
        self.expect("custom" in self.exchange("-I 20 -C 1", server="-b 127.0.0.1"), "no row")

    def test_ipv6(self):
        self.expect("custom" in self.exchange("-I 20 -C 1", address="::1", server="-b ::1"), "no row")

    def test_keepalive(self):
        self.exchange("-k 10 -I 20 -C 1")

    def test_without_server(self):
        client = self.start(f"rstream -s 127.0.0.1 -p {stock.free_port()} -T b")
        self.await_condition(lambda: not client.running(), "the end")
        self.expect("rconnect: Connection refused" in client.output, "it must say why")


class Riostream(stock.StockTest):

    def exchange(self, options):
        _, client = self.run_pair(f"riostream -p {{port}} {options}", f"riostream -s 127.0.0.1 -p {{port}} {options}")
        self.expect("custom" in client, "no row")

    def test_one_at_a_time(self):
        self.exchange("-I 50 -C 1 -S 1000")

    def test_many_behind_each_other(self):
        self.exchange("-I 1 -C 100 -S 100000")

    def test_blocking(self):
        self.exchange("-T b -I 20 -C 2 -S 300000")

    def test_poll(self):
        self.exchange("-T a -I 20 -C 2 -S 65536")


class Rcopy(stock.StockTest):

    def test_files_arrive_whole(self):
        port = stock.free_port()
        server = self.start(f"rcopy -p {port}")  # serves until it is killed
        self.await_listener(server, port)
        with tempfile.TemporaryDirectory() as directory:
            for size in (1, 100000, 5000000):
                content = os.urandom(size)
                source, copy = os.path.join(directory, f"{size}.source"), os.path.join(directory, f"{size}.copy")
                with open(source, "wb") as file:
                    file.write(content)
                self.run_one(f"rcopy {source} 127.0.0.1:{copy} -p {port}")
                with open(copy, "rb") as file:
                    self.expect(file.read() == content, f"the copy of {size} bytes differs")


class Udpong(stock.StockTest):
    """Datagrams may get lost, also here when the machine is busy: what arrived is what its table counts."""

    def exchange(self, options, least, address="127.0.0.1"):
        port = stock.free_port()
        # It serves until it is killed.
        server = self.start(f"udpong -b {address} -p {port} {options}", WEFT_PERSONA="roce")
        self.await_condition(lambda: stock.has_udp_port(port) or not server.running(), "a UDP port", 20)
        out = self.run_one(f"udpong -s {address} -p {port} {options}", WEFT_PERSONA="roce")
        self.expect(server.running(), "the server ended")
        rows = [line.split() for line in out.splitlines() if line.startswith("custom")]
        self.expect(len(rows) == 1, "a row")
        arrived = float(rows[0][2].replace("k", "e3"))
        self.expect(arrived >= least, f"{arrived} datagrams of {least}")

    def test_one_way(self):
        for size in (16, 64, 1000, 2048):
            self.exchange(f"-S {size} -C 300", 200)

    def test_echo_with_poll(self):
        for size in (64, 2048):
            self.exchange(f"-T e -T a -S {size} -C 300", 500)

    def test_echo_blocking(self):
        self.exchange("-T e -T b -S 500 -C 100", 150)

    def test_blocking_and_nonblocking(self):
        self.exchange("-T b -S 64 -C 300", 200)
        self.exchange("-T n -S 64 -C 300", 200)

    def test_ipv6(self):
        self.exchange("-S 64 -C 100", 80, address="::1")

    def test_iwarp_persona_has_none(self):
        process = self.start("udpong", WEFT_PERSONA="iwarp")
        self.await_condition(lambda: not process.running(), "the end")
        self.expect("not supported" in process.output, "it must say why")


if __name__ == "__main__":
    stock.main()
