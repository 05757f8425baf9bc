"""Weft against siw, the Linux kernel's iWARP driver, in a virtual machine: both roles, every operation that both know, CRC on
and off, sizes 1 byte to 1 MiB, and errors that end a connection in an orderly way.

The guest is emulated and slow: iterations are few. What is compared is behaviour, not speed."""

import concurrent.futures
import os
import re
import sys
import tempfile
import unittest

import capture
import guest
import stock

SIZES = [1, 2, 7, 100, 1460, 4096, 30000, 65536, 1048576]
TIMEOUT = 300  # the guest is emulated and slow, and another one runs beside it
ROCE = os.environ.get("STOCK_PERSONA") == "roce"

# Terminates, (layer, error type, error code), of RFC 5040 section 4.8
TAGGED_INVALID_STAG = (1, 1, 0)  # DDP, tagged buffer
PROTECTION_INVALID_STAG = (0, 1, 0)  # RDMAP, remote protection


def as_siw_has_it(terminate):
    """siw (Linux 6.1) exchanges layer and error type on the wire, both when it sends and when it reads: its bit field is declared
    as for a big-endian machine."""
    layer, error_type, code = terminate
    return error_type, layer, code


def setUpModule():
    global siw
    siw = guest.Guest(["tests/interop/bad_rkey"])


def tearDownModule():
    siw.stop()


def ending_as_it_likes(rping):
    """The shell command that runs `rping` in the guest and is content with the way in which its threads end. Its main thread, done,
    closes the descriptor of the event channel; its thread of events, when it is not asleep in a read of it just then (it may still
    have 64 KiB of a ping to print in front of it), says "Bad file descriptor" and ends the process with 255, whatever the pings were."""
    return (f"{{ {rping}; echo status $?; }} >/tmp/rping 2>&1; sed '$d' /tmp/rping; "
            "case $(tail -n 1 /tmp/rping) in 'status 0') ;; "
            "'status 255') grep -q '^rdma_get_cm_event: Bad file descriptor' /tmp/rping ;; *) false ;; esac")


class SiwTest(guest.GuestTest):

    def guest(self):
        return siw

    def setUp(self):
        super().setUp()
        siw.take_log()
        self._folder = tempfile.TemporaryDirectory()
        self.pcap = os.path.join(self._folder.name, "weft.pcap")

    def tearDown(self):
        super().tearDown()
        self._folder.cleanup()

    def guest_serves(self, server, client, crc, in_guest=str, pcap=None):
        """Weft as client: `server` runs in the guest, as `in_guest` wraps it, `client` here. Returns (server's output, client's output)."""
        port = siw.next_port()
        first = self.start(siw.command(in_guest(server.format(port=port))), under_weft=False)
        self.expect(siw.await_listener(port), f"siw does not listen on {port}")
        second = self.start(client.format(host=siw.address, port=port), WEFT_MPA_CRC=crc, WEFT_PCAP=pcap or self.pcap)
        return self.outputs(first, second, forget=pcap)

    def weft_serves(self, server, client, crc, in_guest=str, pcap=None):
        """Weft as server: `server` runs here, `client` in the guest, as `in_guest` wraps it. Returns (server's output, client's output)."""
        for more_attempts in (2, 1, 0):
            port = stock.free_port()
            first = self.start(server.format(port=port), WEFT_MPA_CRC=crc, WEFT_PCAP=pcap or self.pcap)
            self.await_listener(first, port)
            second = self.start(siw.command(in_guest(client.format(host=siw.host, port=port))), under_weft=False)
            if not more_attempts or not self.came_early(first, second):
                return self.outputs(first, second, forget=pcap)
            print(f"{self.id()}: the client came before its server listened:\n{second.output}", file=sys.stderr)
            first.kill()

    def came_early(self, server, client):
        """Waits for the first end of the two. perftest's server (create_rdma_cm_connection, 4.5) lets its client go on, over a first
        connection, and listens for the second only then. Where the host is busy a client in the guest can be there first: rdma_connect
        returns that the host's kernel refused it (what Weft refuses comes as an event), and perftest crashes in its next attempt."""
        self.await_condition(lambda: not (server.running() and client.running()), "an end", TIMEOUT)
        return client.status and server.running() and "Failed to connect through RDMA CM.\nERRNO: Connection refused" in client.output

    def outputs(self, first, second, forget):
        self.await_success(first, second, timeout=TIMEOUT)
        for process in (first, second) if forget else ():  # one of many pairs: a report is about the one that failed and those beside it
            self._started.remove(process)
        return first.output, second.output

    def check_capture(self, crc):
        faults = capture.complaints(self.pcap)
        self.expect(not faults, "\n".join(faults[:20]))
        reply = capture.handshakes(self.pcap)["rep"]
        self.expect(reply[1] == crc, f"the reply's CRC flag is {reply[1]}")
        self.expect((capture.good_crcs(self.pcap) > 0) == crc, "CRCs were (not) sent")


class BothWays:
    """The same tests for each role; `pair` is guest_serves or weft_serves."""

    def ping(self, crc, options="-C 100"):
        outputs = self.pair(f"rping -s -p {{port}} -v -V {options}", f"rping -c -a {{host}} -p {{port}} -v -V {options}", crc,
                            ending_as_it_likes)
        count = int(re.search(r"-C (\d+)", options).group(1))
        for out in outputs:
            self.expect(out.count("ping data: rdma-ping-") == count, "pings are missing")
        self.check_capture(crc == "on")

    def test_rping_with_crc(self):
        self.ping("on")

    def test_rping_without_crc(self):
        self.ping("off")

    def test_rping_of_the_largest_size(self):
        self.ping("on", "-C 5 -S 65535")

    def measure(self, program, crc):
        # Each pair waits for a second at its end. Of three at once siw in the emulated guest took some for refused.
        with concurrent.futures.ThreadPoolExecutor(2) as two_at_a_time:
            for done in [two_at_a_time.submit(self.measure_size, program, crc, size) for size in SIZES]:
                done.result()

    def measure_size(self, program, crc, size):
        command = f"{program} -R -F -p {{port}} -s {size} -n {10 if size < 100000 else 5}"
        # Who has heard the other's last word closes. siw (siw_qp_sq_proc_tx, Linux 6.1) calls a Send failed whose data are on
        # the wire when it sees the end before it gets to complete it, which takes it long here: both ends stay for a second.
        command += " --wait_destroy=1"
        _, client = self.pair(command, command + " {host}", crc, pcap=f"{self.pcap}.{size}")
        self.expect(re.search(rf"^\s*{size}\s+\d+\s+[\d.]+\s+[\d.]+", client, re.M), f"no result for {size} bytes:\n{client}")

    # Between two iWARP devices ib_send_bw has credits, with a RoCE device it counts on RNR: its two ends must see the same kind
    # (docs/supported.md, "Peers").
    @unittest.skipIf(ROCE, "perftest wants the same kind of device at both ends")
    def test_ib_send_bw_with_crc(self):
        self.measure("ib_send_bw", "on")

    @unittest.skipIf(ROCE, "perftest wants the same kind of device at both ends")
    def test_ib_send_bw_without_crc(self):
        self.measure("ib_send_bw", "off")

    def test_ib_write_bw_with_crc(self):
        self.measure("ib_write_bw", "on")

    def test_ib_write_bw_without_crc(self):
        self.measure("ib_write_bw", "off")

    def test_ib_read_bw_with_crc(self):
        self.measure("ib_read_bw", "on")

    def test_ib_read_bw_without_crc(self):
        self.measure("ib_read_bw", "off")


    # The guest's rsockets are rdma-core's.

    def rsockets(self, program, options, crc):
        outputs = self.pair(f"{program} -p {{port}} {options}", f"{program} -s {{host}} -p {{port}} {options}", crc)
        for out in outputs:
            self.expect("custom" in out, f"{program} did not come to its end")

    def test_rstream_with_crc(self):
        self.rsockets("rstream", "-T b -T v -I 5 -C 3 -S 100000", "on")

    def test_rstream_with_more_messages_than_credits(self):
        # Without CRC: siw takes a CRC that TCP cut in two for a wrong one, which is likely with messages this small.
        self.rsockets("rstream", "-T b -T v -I 2 -C 1000 -S 3", "off")

    def test_riostream(self):
        self.rsockets("riostream", "-T b -I 5 -C 3 -S 100000", "on")


class WeftAsClient(BothWays, SiwTest):
    pair = SiwTest.guest_serves

    # rdma-core's own rpoll says POLLHUP beside the last data once the peer said goodbye, which rstream takes for a failure.
    def test_rstream_polls(self):
        self.rsockets("rstream", "-T a -T b -I 5 -C 5 -S 5000", "on")

    def test_first_messages_that_siw_overlooks(self):
        with siw.forgetting(200):
            self.ping("on", "-C 10")

    def bad_access(self, kind, terminate):
        server, client = self.pair("/mnt/bad_rkey server {port}",
                                   f"{stock.workspace_file('tests/interop/bad_rkey')} client {{host}} {{port}} {kind}", "on")
        self.expect("memory: good" in server, "the bad access reached memory")
        self.expect("RDMA_CM_EVENT_DISCONNECTED" in server and "RDMA_CM_EVENT_DISCONNECTED" in client, "no orderly end")
        self.expect("completion of the last Read: none" not in client, "a posted Read never completed")
        # siw answered with a Terminate, and Weft's end understood it.
        found = capture.terminates(self.pcap)
        self.expect(found == [as_siw_has_it(terminate)], f"Terminates: {found}")

    def test_bad_rkey_of_a_write_is_an_error_here(self):
        self.bad_access("write", TAGGED_INVALID_STAG)

    def test_bad_rkey_of_a_read_is_an_error_here(self):
        self.bad_access("read", PROTECTION_INVALID_STAG)

    def test_siw_without_listener_refuses(self):
        client = self.start(f"rping -c -a {siw.address} -p {siw.next_port()} -C 1")
        self.await_condition(lambda: not client.running(), "the end of a client that nobody answers", 30)
        self.expect(client.status > 0, "it must fail, not crash")


class WeftAsServer(BothWays, SiwTest):
    pair = SiwTest.weft_serves

    def bad_access(self, kind, terminate):
        server, client = self.pair(f"{stock.workspace_file('tests/interop/bad_rkey')} server {{port}}",
                                   f"/mnt/bad_rkey client {{host}} {{port}} {kind}", "on")
        self.expect("memory: good" in server, "the bad access reached memory")
        self.expect("RDMA_CM_EVENT_DISCONNECTED" in server and "RDMA_CM_EVENT_DISCONNECTED" in client, "no orderly end")
        log = siw.take_log()
        wanted = "siw: got TERMINATE. layer %d, type %d, code %d" % as_siw_has_it(terminate)
        self.expect(wanted in log, f"siw did not log '{wanted}' but:\n{log}")
        self.expect(capture.terminates(self.pcap) == [terminate], f"Terminates: {capture.terminates(self.pcap)}")

    def test_bad_rkey_of_a_write_makes_siw_see_a_terminate(self):
        self.bad_access("write", TAGGED_INVALID_STAG)

    def test_bad_rkey_of_a_read_makes_siw_see_a_terminate(self):
        self.bad_access("read", PROTECTION_INVALID_STAG)

    def test_crc_that_siw_requires_is_used_although_off_here(self):
        siw.require_crc(True)
        try:
            self.pair("rping -s -p {port} -C 10 -v -V", "rping -c -a {host} -p {port} -C 10 -v -V", "off", ending_as_it_likes)
        finally:
            siw.require_crc(False)
        self.check_capture(crc=True)


if __name__ == "__main__":
    stock.main()
