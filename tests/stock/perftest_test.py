"""The distribution's perftest on Weft: ib_{send,write,read}_{bw,lat}, connected by rdma_cm (-R)."""

import os
import re

import stock

ALL_SIZES = [1 << i for i in range(1, 24)]  # what -a runs
# Blanks, not line ends, between the columns: a row is one line. perftest's standard deviation is the root of a difference that
# rounding may bring below 0: "-nan" then. On a busy machine it may fail to measure the clock's frequency for a row: then times are "inf".
ROW = re.compile(r"^[ \t]*(\d+)[ \t]+(\d+)[ \t]+((?:[\d.]+|inf)(?:[ \t]+(?:[\d.]+|inf|-?nan))*)[ \t]*$", re.M)
TIMEOUT = 120


def rows(output):
    """{message size: columns behind the number of iterations} of a result table."""
    return {int(size): [float(x) for x in rest.split()] for size, _, rest in ROW.findall(output)}


class Perftest(stock.StockTest):
    program = ""
    persona = "roce"

    def quick_clock(self):
        """The setting with which perftest measures the processor's clock, which it does for each row, in an eighth of the time."""
        if self.slow > 1 or os.environ.get("STOCK_WEFT"):  # other libraries are preloaded, or it is the programs of another system
            return {}
        return {"LD_PRELOAD": stock.file_for_everyone("tests/stock/quick_clock.so")}

    def measure(self, options="", sizes=None, both=False, few=20, **settings):
        """Runs the pair over IPv4 (with -R this version resolves no IPv6 address); the client's table (with `both` the
        server's too) must have exactly the rows `sizes`, each with results that are not zero. `few`: iterations when a sanitizer
        or an emulator makes them slow."""
        # -F: no refusal to report because the CPU's frequency wanders.
        settings = {"WEFT_PERSONA": self.persona, **self.quick_clock(), **settings}
        command = f"{self.program} -R -F -p {{port}} {options} {f'-n {few}' if self.slow > 1 else ''}"
        server, client = self.run_pair(command, f"{command} 127.0.0.1", timeout=TIMEOUT, server_settings=settings,
                                       client_settings=settings)
        for out in (client, server) if both else (client,):
            table = rows(out)
            self.expect(sorted(table) == sizes, f"result rows for {sorted(table)} instead of {sizes}")
            for size, columns in table.items():
                self.expect(self.moved(columns), f"nothing moved at {size} bytes: {columns}")


# The mixins hold the tests, so that they run only for the programs below.


class MainBandwidthTests:

    def moved(self, columns):
        _, average_mb, mega_messages = columns[:3]  # rounded: of slow small messages the one is 0, of slow long ones the other
        return average_mb > 0 or mega_messages > 0

    def test_default(self):
        self.measure(sizes=[65536])

    def test_all_sizes(self):
        self.measure("-a -n 300", sizes=ALL_SIZES)

    def test_bidirectional_eight_qps(self):
        self.measure("-b -q 8", sizes=[65536], both=True)


class StreamTests:
    """What there is in a byte stream alone: these stay on TCP whatever the processes may share."""

    def moved(self, columns):
        return columns[1] > 0 or columns[2] > 0

    def test_crc_and_markers(self):
        self.measure("-a -n 100", sizes=ALL_SIZES, WEFT_MPA_CRC="on", WEFT_MPA_MARKERS="on")


class BandwidthTests(MainBandwidthTests):

    def test_eight_qps(self):
        self.measure("-q 8", sizes=[65536])

    def test_bidirectional(self):
        self.measure("-b", sizes=[65536], both=True)

    def test_bidirectional_all_sizes(self):
        self.measure("-b -a -n 200", sizes=ALL_SIZES, both=True)

    def test_on_demand_paging(self):
        self.measure("--odp", sizes=[65536])


class LatencyTests:
    # -C: in cycles of the processor.

    def moved(self, columns):
        least, _, typical = columns[:3]
        return least > 0 and typical > 0

    def test_default(self):
        self.measure(sizes=[2])

    def test_all_sizes(self):
        self.measure("-C -a -n 200", sizes=ALL_SIZES)


class BandwidthEventTests:

    def test_events(self):
        self.measure("-e", sizes=[65536], few=1000)

    def test_events_all_sizes(self):
        self.measure("-e -a -n 300", sizes=ALL_SIZES)


class LatencyEventTests:

    def test_events(self):
        self.measure("-e", sizes=[2])

    def test_events_all_sizes(self):
        self.measure("-C -e -a -n 200", sizes=ALL_SIZES)


class SharedReceiveTests:

    def test_shared_receive_queue(self):
        self.measure("--use-srq", sizes=[65536 if self.program == "ib_send_bw" else 2])


class SendBandwidth(BandwidthTests, BandwidthEventTests, SharedReceiveTests, Perftest):
    program = "ib_send_bw"

    def test_shared_receive_queue_of_eight_qps(self):
        self.measure("--use-srq -q 8", sizes=[65536])


class SendLatency(LatencyTests, LatencyEventTests, SharedReceiveTests, Perftest):
    program = "ib_send_lat"


class WriteBandwidth(BandwidthTests, Perftest):  # ib_write_* have no -e: nothing completes at the target
    program = "ib_write_bw"


class WriteLatency(LatencyTests, Perftest):
    program = "ib_write_lat"


class ReadBandwidth(BandwidthTests, BandwidthEventTests, Perftest):
    program = "ib_read_bw"


class ReadLatency(LatencyTests, LatencyEventTests, Perftest):
    program = "ib_read_lat"


class SendStream(StreamTests, Perftest):
    program = "ib_send_bw"


class WriteStream(StreamTests, Perftest):
    program = "ib_write_bw"


class ReadStream(StreamTests, Perftest):
    program = "ib_read_bw"


class IwarpSendStream(SendStream):
    persona = "iwarp"


class IwarpWriteStream(WriteStream):
    persona = "iwarp"


class IwarpReadStream(ReadStream):
    persona = "iwarp"


class IwarpPerftest(MainBandwidthTests, Perftest):
    """What perftest does otherwise on an iWARP device: ib_send_bw counts credits, as a Send must find its receive."""

    persona = "iwarp"


class IwarpSendBandwidth(SharedReceiveTests, IwarpPerftest):
    # Not --use-srq with -q: perftest counts the credits of a queue pair by wr_id, which names the receive. With a shared queue another queue
    # pair's message may have taken it, and the sender that is told of more than it sent waits for ever.
    # Without -e: the client, out of the server's credits, would sleep until one of its own Sends is complete, and they all may be, as TCP
    # has them (docs/supported.md, "Programs").
    program = "ib_send_bw"


class IwarpReadBandwidth(BandwidthEventTests, IwarpPerftest):
    program = "ib_read_bw"


class IwarpWriteBandwidth(IwarpPerftest):
    program = "ib_write_bw"


if __name__ == "__main__":
    stock.main()
