"""Programs that connect their queue pairs themselves, by an exchanged number and GID: the distribution's ping-pongs and perftest."""

import contextlib
import glob
import os

import stock

ROCE = {"WEFT_PERSONA": "roce"}


class SelfConnectedTest(stock.StockTest):

    def pair(self, command, **options):
        return self.run_pair(command, command + " 127.0.0.1", server_settings=ROCE, client_settings=ROCE, **options)


class PingPong(SelfConnectedTest):

    def check(self, program, options="-g 0"):
        for output in self.pair(f"{program} -d weft_lo -p {{port}} {options}"):
            self.expect("1000 iters in" in output, "no result")

    def test_rc(self):
        self.check("ibv_rc_pingpong")

    def test_rc_over_ipv6_with_events(self):
        self.check("ibv_rc_pingpong", "-g 1 -e")

    def test_rc_of_one_byte_and_few_receives(self):
        self.check("ibv_rc_pingpong", "-g 0 -s 1 -r 2")

    def test_uc(self):
        self.check("ibv_uc_pingpong")

    def test_uc_with_events(self):
        self.check("ibv_uc_pingpong", "-g 0 -e")

    def test_shared_receives_of_many_queue_pairs(self):
        self.check("ibv_srq_pingpong")

    def test_shared_receives_with_events(self):
        self.check("ibv_srq_pingpong", "-g 0 -e -q 4")

    def test_without_a_gid_the_peer_is_on_the_own_host(self):
        self.check("ibv_rc_pingpong", "")


class DescriptorLimit(SelfConnectedTest):
    """64 queue pairs in a process that may have 64 descriptors: it ends, by itself, and says what it lacked. Over SCTP all have one socket."""

    def meet(self, options):
        port = stock.free_port()
        command = f"ib_write_bw -F -q 64 -n 10 -p {port} {options}"
        server = self.start(command, **ROCE)
        self.await_listener(server, port)
        client = self.start(f"prlimit --nofile=64:64 {command} 127.0.0.1", **ROCE)
        self.await_condition(lambda: not client.running(), "the end of the client")
        if "WEFT_LLP=sctp" in os.environ.get("STOCK_SETTINGS", ""):
            self.expect(client.status == 0, "it lacked something")
            return
        self.expect(client.status > 0, "it was ended by a signal, or there was nothing that it lacked")
        self.expect("the limit is 64" in client.output, "the limit is not named")

    def test_by_rdma_cm(self):
        self.meet("-R")

    def test_self_connected(self):
        self.meet("-d weft_lo -x 0")


class ExtendedPingPong(SelfConnectedTest):
    """ibv_xsrq_pingpong: one shared receive queue for all, and the server sends its answers where each client said."""

    def check(self, options="", clients=1):
        port = stock.free_port()
        command = f"ibv_xsrq_pingpong -d weft_lo -g 0 -p {port} {options}"
        server = self.start(f"{command} -c {clients}", **ROCE)
        self.await_listener(server, port)
        others = [self.start(command + " 127.0.0.1", **ROCE) for _ in range(clients)]
        self.await_success(server, *others)
        for process in [server, *others]:
            self.expect("success" in process.output, "no result")

    def test_one_client(self):
        self.check("-n 1000")

    def test_three_clients_with_events(self):
        self.check("-e -n 100", clients=3)

    def test_small_messages_on_demand_memory(self):
        self.check("-o -s 1")


class Perftest(SelfConnectedTest):

    def check(self, command, size):
        command += " -F -d weft_lo -p {port}" + (" -n 20" if self.sanitizer else "")
        client = self.pair(command, timeout=120)[1]
        self.expect(any(line.split()[:1] == [str(size)] for line in client.splitlines()), f"no row for {size} bytes")

    def test_send_latency(self):
        self.check("ib_send_lat", 2)

    def test_over_ipv6(self):
        self.check("ib_send_lat -x 1", 2)
        self.check("ib_write_bw -x 1", 65536)
        self.check("ib_read_bw -x 1 -n 200", 65536)

    def test_write_latency(self):
        self.check("ib_write_lat", 2)

    def test_read_latency(self):
        self.check("ib_read_lat", 2)

    def test_atomic_latency(self):
        self.check("ib_atomic_lat -n 200", 8)

    def test_fetch_and_add_bandwidth(self):
        self.check("ib_atomic_bw -A FETCH_AND_ADD", 8)

    def test_compare_and_swap_bandwidth(self):
        self.check("ib_atomic_bw -A CMP_AND_SWAP", 8)

    def test_send_bandwidth_in_all_sizes_with_events(self):
        self.check("ib_send_bw -e -a -n 50", 8388608)

    def test_write_bandwidth_of_four_queue_pairs(self):
        self.check("ib_write_bw -q 4", 65536)

    def test_read_bandwidth_both_ways(self):
        self.check("ib_read_bw -b", 65536)

    def test_send_bandwidth_with_shared_receives(self):
        self.check("ib_send_bw --use-srq -q 4", 65536)

    def test_the_old_way_to_post(self):
        self.check("ib_write_bw --use_old_post_send", 65536)

    def test_the_old_way_to_post_reads_and_atomics(self):
        self.check("ib_read_bw --use_old_post_send -n 200", 65536)
        self.check("ib_atomic_bw --use_old_post_send -n 200", 8)

    def test_inline_sizes(self):
        self.check("ib_write_lat -I 64 -s 64 -n 200", 64)
        self.check("ib_send_lat -I 200 -s 200 -n 200", 200)
        self.check("ib_send_lat -I 0 -s 32 -n 200", 32)

    def test_latency_of_both_atomics(self):
        self.check("ib_atomic_lat -A CMP_AND_SWAP -n 200", 8)
        self.check("ib_atomic_lat -A FETCH_AND_ADD -n 200", 8)

    def test_latency_with_shared_receives(self):
        self.check("ib_send_lat --use-srq -n 200", 2)

    def test_unreliable_connections(self):
        self.check("ib_write_bw -c UC", 65536)

    def test_sends_of_unreliable_connections(self):
        self.check("ib_send_bw -c UC -n 500", 65536)
        self.check("ib_send_lat -c UC -n 200", 2)

    def forget_xrc_domains(self):
        """perftest makes files of fixed names for its XRC domains, which its user alone may open, and leaves them: the next one may be another user."""
        for name in glob.glob("/tmp/xrc_domain*"):
            with contextlib.suppress(OSError):  # another user's, and this is not root: perftest will say so
                os.remove(name)

    def test_extended_reliable_connections(self):
        self.forget_xrc_domains()
        self.addCleanup(self.forget_xrc_domains)
        self.check("ib_send_bw -c XRC -n 200", 65536)
        self.check("ib_send_lat -c XRC -n 200", 2)
        self.check("ib_write_bw -c XRC -n 200", 65536)


class Qperf(SelfConnectedTest):
    """Without rdma_cm qperf tells its peer a LID and a QPN, no GID: it reaches the own host only."""

    RELIABLE = ["rc_lat", "rc_bw", "rc_bi_bw", "rc_rdma_read_lat", "rc_rdma_read_bw", "rc_rdma_write_lat", "rc_rdma_write_bw",
                "rc_rdma_write_poll_lat", "rc_compare_swap_mr", "rc_fetch_add_mr", "ver_rc_compare_swap", "ver_rc_fetch_add"]
    UNRELIABLE = ["uc_lat", "uc_bw", "uc_bi_bw", "uc_rdma_write_lat", "uc_rdma_write_bw", "uc_rdma_write_poll_lat"]

    def measure(self, tests, options=""):
        port = stock.free_port()
        server = self.start(f"qperf -lp {port}", **ROCE)
        self.await_listener(server, port)
        for test in tests:
            if test.endswith("_poll_lat") and self.sanitizer == "tsan":
                continue  # qperf's alarm ends its loop over memory, and ThreadSanitizer holds signals back until the program calls something
            client = self.start(f"qperf -lp {port} -t 1 {options} 127.0.0.1 {test}", **ROCE)
            self.await_success(client)
            self.expect("=" in client.output, "no result")
        server.kill()

    def test_reliable_connections(self):
        self.measure(self.RELIABLE)

    def test_reliable_connections_by_rdma_cm(self):
        self.measure(self.RELIABLE, "-cm1")

    def test_unreliable_connections(self):
        self.measure(self.UNRELIABLE)


if __name__ == "__main__":
    stock.main()
