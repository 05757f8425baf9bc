"""UCX on Weft: ucx_perftest over each transport that the devices offer. Each run is one pair that carries a list of tests out."""

import functools
import os
import re
import subprocess
import tempfile

import stock

# Short ones go inline or through a bounce buffer, long ones by rendezvous (Reads) or as many segments.
SIZES = (8, 65536, 1 << 20)
TWO_SIDED = ("tag_lat", "tag_bw", "tag_sync_lat", "ucp_am_lat", "ucp_am_bw", "stream_lat", "stream_bw")
ONE_SIDED = ("ucp_put_lat", "ucp_put_bw", "ucp_get")
ATOMICS = ("ucp_add", "ucp_fadd", "ucp_swap", "ucp_cswap")
TIMES = 20


@functools.lru_cache(maxsize=None)
def without_mpi():
    """The option that has a ucx_perftest which was built with MPI (Debian 13's) meet its peer by a socket."""
    usage = subprocess.run(["ucx_perftest", "-h"], capture_output=True, text=True).stdout
    return "-P 0" if "disable/enable MPI mode" in usage else ""


class UcxTest(stock.StockTest):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if cls.sanitizer == "tsan":
            # Nor without them (UCX_MEM_EVENTS=n): UCX 1.13 then takes implicit on-demand paging, and
            # uct_ib_md_close() hands uct_ib_mem_dereg() a handle where that wants parameters.
            raise stock.unittest.SkipTest("UCX's hooks of mmap() crash under libtsan, with Weft or without")

    def perftest(self, tests, options="", **settings):
        """Runs `tests` (ucx_perftest's options) one after the other between two processes; returns both outputs."""
        with tempfile.NamedTemporaryFile("w") as batch:
            batch.writelines(f"t{number} {test}\n" for number, test in enumerate(tests))
            batch.flush()
            settings = {"UCX_LOG_LEVEL": "info", "WEFT_STATS": "1", **stock.ucx_settings(), **settings}
            common = f"ucx_perftest {without_mpi()} {options} -p {{port}} -b {batch.name} -n {TIMES} -w 5"
            outputs = self.run_pair(common, common + " 127.0.0.1", server_settings=settings, client_settings=settings)
        self.expect(outputs[1].count("Final:") == len(tests), f"{outputs[1].count('Final:')} results of {len(tests)} tests")
        for output in outputs:
            self.expect("UCX  ERROR" not in output and "UCX  WARN" not in output, "UCX complains")
        return outputs

    def expect_traffic(self, output, kind, least, device=None):
        """Weft's queue pairs of `kind` sent at least `least` bytes, as its statistics say."""
        rows = [row for row in output.splitlines() if re.match(rf"weft: +qp \S+ {kind} ", row)]
        sent = sum(int(re.search(r"(\d+) bytes sent", row).group(1)) for row in rows)
        self.expect(sent >= least, f"{kind} queue pairs sent {sent} bytes, expected {least}")
        self.expect(all(" 0 with errors" in row for row in rows), "requests failed")
        if device:
            self.expect(device in output, f"UCX chose something else than {device}")


class Protocols(UcxTest):
    """Tag matching, active messages, streams, remote memory and atomics, as programs use UCX."""

    def carry(self, transports, kind, lane, sizes=SIZES):
        tests = [f"-t {test} -s {size}" for test in TWO_SIDED + ONE_SIDED for size in sizes]
        tests += [f"-t {test} -s {size}" for test in ATOMICS for size in (4, 8)]
        settings = {"UCX_TLS": transports, "UCX_NET_DEVICES": "weft_lo:1"} if kind != "all" else {"UCX_TLS": transports}
        for output in self.perftest(tests, **settings):
            self.expect_traffic(output, "RC" if kind == "all" else kind, TIMES * max(sizes), lane)

    def test_over_reliable_connections(self):
        # rc_v: rc_verbs, and ud_verbs for finding each other only. UCX takes rc_verbs alone for nothing, on any adapter.
        self.carry("rc_v,self", "RC", "rc_verbs/weft_lo:1")

    def test_over_datagrams(self):
        self.carry("ud_v,self", "UD", "ud_verbs/weft_lo:1", sizes=(8, 65536))

    def test_over_all_transports_of_all_devices(self):
        self.carry("ib", "all", "rc_verbs/weft_", sizes=(8, 1 << 20))

    def test_reliable_connections_alone_lack_a_transport_to_meet_over(self):
        settings = {"UCX_TLS": "rc_verbs,self", "UCX_NET_DEVICES": "weft_lo:1"}
        port = stock.free_port()
        server = self.start(f"ucx_perftest {without_mpi()} -p {port}", **settings)
        self.await_listener(server, port)
        client = self.start(f"ucx_perftest {without_mpi()} -p {port} 127.0.0.1 -t tag_lat -n 10", **settings)
        self.await_condition(lambda: not client.running(), "the client's end")
        self.expect("no auxiliary transport" in client.output, "UCX no longer needs one: use rc_verbs alone in these tests")


class Addresses(UcxTest):
    """Programs that UCX connects through rdma_cm: it carries private data only, the queue pairs connect themselves."""

    def test_client_and_server(self):
        settings = {"UCX_TLS": "rc_v,self", "UCX_SOCKADDR_TLS_PRIORITY": "rdmacm", "UCX_NET_DEVICES": "weft_lo:1", "WEFT_STATS": "1"}
        with tempfile.TemporaryDirectory() as directory:
            program = os.path.join(directory, "ucx_program")
            subprocess.run(["gcc", "-O1", stock.workspace_file("tests/stock/ucx_program.c"), "-o", program, "-lucp", "-lucs"], check=True)
            outputs = self.run_pair(f"{program} 127.0.0.1 {{port}} server", f"{program} 127.0.0.1 {{port}}", server_settings=settings,
                                    client_settings=settings)
        for output in outputs:
            self.expect("right\n" in output, "a program did not get to its end")
            sent = sum(int(n) for n in re.findall(r"weft: +qp \S+ RC .*; (\d+) bytes sent", output))
            self.expect(sent > 20_000_000, f"queue pairs sent {sent} bytes")


class Transports(UcxTest):
    """UCX's transport layer, in which the operations reach the verbs as they are: atomics are the adapter's."""

    def test_reliable_connections(self):
        tests = [f"-t {test} -D {way} -s {size}"
                 for test, way, size in (("am_lat", "short", 8), ("am_lat", "bcopy", 8000), ("am_lat", "zcopy", 4096), ("am_bw", "zcopy", 8192),
                                         ("put_lat", "short", 64), ("put_lat", "bcopy", 8000), ("put_lat", "zcopy", 1 << 20),
                                         ("put_bw", "short", 8), ("put_bw", "zcopy", 65536), ("get", "bcopy", 8), ("get", "bcopy", 8000),
                                         ("get", "zcopy", 65), ("get", "zcopy", 1 << 20))]
        tests += [f"-t {test} -D short -s 8" for test in ("add_lat", "add_mr", "fadd", "cswap")]
        for output in self.perftest(tests, "-d weft_lo:1 -x rc_verbs"):
            self.expect_traffic(output, "RC", TIMES << 20)

    def test_datagrams(self):
        tests = [f"-t {test} -D {way} -s {size}" for test in ("am_lat", "am_bw")
                 for way, size in (("short", 8), ("bcopy", 4000), ("zcopy", 3000))]
        for output in self.perftest(tests, "-d weft_lo:1 -x ud_verbs"):
            self.expect_traffic(output, "UD", TIMES * 4000)

    def test_the_devices_offer_both_with_their_atomics(self):
        out = self.run_one("ucx_info -d", UCX_LOG_LEVEL="fatal")
        found = re.search(r"#      Transport: rc_verbs\n#         Device: weft_lo:1\n(.*?)#      Transport: ud_verbs\n#         Device: weft_lo:1\n",
                          out, re.DOTALL)
        self.expect(found, "no rc_verbs or no ud_verbs")
        for wanted in ("domain: device", "atomic_add: 64 bit", "atomic_fadd: 64 bit", "atomic_cswap: 64 bit"):
            self.expect(wanted in found.group(1), f"rc_verbs has no '{wanted}'")

    def test_ucx_wants_the_device_nodes(self):
        out = self.run_one("ucx_info -d", WEFT_PATHS="off", UCX_LOG_LEVEL="fatal")
        self.expect("rc_verbs" not in out, "UCX no longer looks at /dev/infiniband: a test of the preload is gone")


if __name__ == "__main__":
    stock.main()
