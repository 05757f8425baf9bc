"""Stock programs over SCTP: as an ordinary user and natively, beside TCP and instead of it, and what is said when it does not work."""

import json
import os
import signal
import socket
import unittest

import stock

SCTP, AUTO = {"WEFT_LLP": "sctp"}, {"WEFT_LLP": "auto"}
# One end is enough for a connection to stay on TCP, which says so then.
TCP = {"WEFT_LLP": "tcp", "WEFT_SAME_HOST": "off"}
SHARED = {"WEFT_LLP": "tcp", "WEFT_SAME_HOST": "auto"}
PING = "rping {side} -a {address} -p {port} -C 50 -v -V"


class SctpTest(stock.StockTest):

    def ping(self, server_settings, client_settings, address="127.0.0.1", prefix=""):
        """Both outputs, with a line per event (WEFT_TRACE): a connection says by what it goes."""
        commands = [prefix + PING.format(side=side, address=address, port="{port}") for side in ("-s", "-c")]
        outputs = self.run_pair(*commands, server_settings={"WEFT_TRACE": 1, **server_settings},
                                client_settings={"WEFT_TRACE": 1, **client_settings})
        for output in outputs:
            self.expect(output.count("ping data: rdma-ping-") == 50, "pings are missing")
        return outputs

    def went_over(self, outputs, what):
        for output in outputs:
            self.expect(f", {what}" in output, f"no connection over {what}")


class Choice(SctpTest):

    def test_sctp_over_ipv4_and_ipv6(self):
        for address in ("127.0.0.1", "::1"):
            self.went_over(self.ping(SCTP, SCTP, address), "SCTP stream")

    def test_auto_takes_sctp_where_it_is(self):
        self.went_over(self.ping(SCTP, AUTO), "SCTP stream")
        self.went_over(self.ping(AUTO, AUTO), "SCTP stream")

    def test_auto_takes_tcp_where_there_is_nothing_else(self):
        self.went_over(self.ping(TCP, AUTO), "MPA revision")

    def test_auto_shares_memory_where_the_other_end_does(self):
        same_host = {**AUTO, "WEFT_SAME_HOST": "auto"}
        self.expect(", shared memory" in self.ping(SHARED, same_host)[1], "the client's connection is not shared")

    def test_a_listener_serves_tcp_too(self):
        for server in (SCTP, AUTO):
            self.went_over(self.ping(server, TCP), "MPA revision")

    def test_sctp_alone_is_refused_where_it_is_not(self):
        port = stock.free_port()
        server = self.start(f"rping -s -a 127.0.0.1 -p {port}", **TCP)
        self.await_listener(server, port)
        client = self.start(f"rping -c -a 127.0.0.1 -p {port} -C 1", **SCTP)
        self.await_condition(lambda: not client.running(), "the client's end")
        self.expect("REJECTED" in client.output or "UNREACHABLE" in client.output, "it does not say that it was refused")

    def test_another_servers_udp_port_is_named(self):
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as other:
            other.bind(("::", 0))
            taken = other.getsockname()[1]
            server = self.start(f"rping -s -a 127.0.0.1 -p {stock.free_port()}", WEFT_SCTP_UDP_PORT=taken, **SCTP)
            self.await_condition(lambda: not server.running(), "the server's end")
            self.expect("another process has WEFT_SCTP_UDP_PORT" in server.output, "it does not say why")


    def test_an_address_that_is_none_of_ours_is_named(self):
        server = self.start(f"rping -s -a 0.0.0.0 -p {stock.free_port()}", WEFT_SCTP_ADDRESSES="127.0.0.1,192.0.2.77", **SCTP)
        self.await_condition(lambda: not server.running(), "the server's end")
        self.expect("WEFT_SCTP_ADDRESSES=127.0.0.1,192.0.2.77" in server.output, "it does not say why")


class Carriage(SctpTest):

    @unittest.skipUnless(os.geteuid() == 0, "needs CAP_NET_RAW")
    def test_in_ip_itself(self):
        for address in ("127.0.0.1", "::1"):
            native = {**SCTP, "WEFT_SCTP_CARRIAGE": "ip"}
            self.went_over(self.ping(native, native, address), "SCTP stream")

    @unittest.skipUnless(os.geteuid() == 0, "needs to become another user")
    def test_an_ordinary_user(self):
        as_nobody = [*stock.as_ordinary_user(), stock.weft_for_everyone(), "run"]
        programs = []
        port = stock.free_port()
        for side in ("-s", "-c"):
            command = [*as_nobody, *PING.format(side=side, address="127.0.0.1", port=port).split()]
            programs.append(self.start(command, under_weft=False, WEFT_TRACE=1, **SCTP))
            if side == "-s":
                self.await_listener(programs[0], port)
        self.await_success(*programs)
        self.went_over([program.output for program in programs], "SCTP stream")
        refused = self.start([*as_nobody, "rping", "-s", "-a", "127.0.0.1", "-p", str(port)], under_weft=False, WEFT_SCTP_CARRIAGE="ip", **SCTP)
        self.await_condition(lambda: not refused.running(), "its end")
        self.expect("WEFT_SCTP_CARRIAGE=ip needs CAP_NET_RAW" in refused.output, "it does not say what is needed")


class Statistics(SctpTest):

    def test_weft_stat_shows_each_path(self):
        port = stock.free_port()
        server = self.start(f"rping -s -a 127.0.0.1 -p {port}", **SCTP)
        self.await_listener(server, port)
        client = self.start(f"rping -c -a 127.0.0.1 -p {port} -v", **SCTP)
        self.await_condition(lambda: "rdma-ping-100:" in client.output, "pings")
        asked = [stock.weft(), "stat", str(client.pid)]
        answer = json.loads(self.run_one_outside(asked + ["--json"]))
        self.assertEqual(len(answer["paths"]), 1, answer)
        path = answer["paths"][0]
        self.assertEqual((path["peer"], path["state"], path["primary"], path["failures"]), (f"127.0.0.1:{port}", "active", 1, 0))
        self.assertGreater(path["bytes_sent"], 64 * 100)
        self.assertGreater(path["packets_received"], 100)
        self.assertRegex(self.run_one_outside(asked), rf"PATH TO(.|\n)*127\.0\.0\.1:{port} +active\*")

    def run_one_outside(self, words):
        process = self.start(words, under_weft=False)
        self.await_success(process)
        return process.output


class Faults(SctpTest):

    def test_a_connection_is_cut(self):
        port = stock.free_port()
        server = self.start(f"rping -s -a 127.0.0.1 -p {port}", **SCTP)
        self.await_listener(server, port)
        client = self.start(f"rping -c -a 127.0.0.1 -p {port} -C 1000 -v", **SCTP, WEFT_FAULTS="cut after_bytes=10K")
        self.await_condition(lambda: not client.running() and not server.running(), "the end of both")
        self.expect(0 < client.output.count("ping data: rdma-ping-") < 1000, "it was not cut")


class Silence(SctpTest):

    def test_nothing_is_said_of_the_hosts_other_addresses(self):
        """To which there is no way from the loopback, on which a listener at the wildcard names them too."""
        port = stock.free_port()
        server = self.start(f"rping -s -p {port}", **SCTP)
        self.await_listener(server, port)
        client = self.start(f"timeout 5 rping -c -a 127.0.0.1 -p {port}", **SCTP)
        self.await_condition(lambda: not client.running(), "5 s", 20)
        for output in (server.output, client.output):
            self.expect("does not answer" not in output, "a path is missed")


class Ends(SctpTest):
    """What becomes of the other end; TCP's kernel would see to it."""

    QUICK = {"WEFT_SCTP_RTO_MAX": 200, "WEFT_SCTP_RTO_INITIAL": 100, "WEFT_SCTP_RETRIES": 3}

    def start_pings(self, **settings):
        port = stock.free_port()
        server = self.start(f"rping -s -a 127.0.0.1 -p {port} -v", **SCTP, **settings)
        self.await_listener(server, port)
        client = self.start(f"rping -c -a 127.0.0.1 -p {port} -v", **SCTP, **settings)
        self.await_condition(lambda: client.output.count("rdma-ping") > 100, "pings", 20)
        return server, client

    def test_a_killed_peer_is_noticed(self):
        """With the usual times, which would take 20 s: its kernel says so."""
        for victim in (0, 1):
            ends = self.start_pings()
            ends[victim].kill(signal.SIGKILL)
            other = ends[1 - victim]
            self.await_condition(lambda: not other.running(), "the end of the one that is left", 10)

    def test_a_silent_peer_is_given_up(self):
        for victim in (0, 1):
            ends = self.start_pings(**self.QUICK)
            ends[victim].kill(signal.SIGSTOP)
            other = ends[1 - victim]
            self.await_condition(lambda: not other.running(), "the end of the one that is left", 30)
            ends[victim].kill(signal.SIGKILL)

    def test_a_server_that_is_started_anew_is_found(self):
        """Its UDP port is another one. A client that still has an association to the old one: tests/stack/sctp/peers_test."""
        port = stock.free_port()
        for _ in range(3):
            server = self.start(f"rping -s -a 127.0.0.1 -p {port} -C 5", **SCTP)
            self.await_listener(server, port)
            client = self.start(f"rping -c -a 127.0.0.1 -p {port} -C 5", **SCTP)
            self.await_success(server, client)


if __name__ == "__main__":
    stock.main()
