"""The SCTP of a kernel, in the guest: Weft on it there, and Weft here, with usrsctp, against it, as a foreign peer of SCTP."""

import os
import re
import tempfile

import capture
import guest
import stock

TIMEOUT = 300  # the guest is emulated and slow, and another one runs beside it
KERNEL = "WEFT_LLP=sctp WEFT_SCTP_CARRIAGE=kernel"
UDP_PORT = 9899  # of the guest's kernel
FILES = ["transport/sctp/kernel/kernel_sctp_test", "tools/stage/lib/weft/libibverbs.so.1", "tools/stage/lib/weft/librdmacm.so.1",
         "mpi_hybrid/api/libmpich.so.12", "pmi/mpiexec", "tests/mpi/rma/fence", "tests/mpi/rma/passive_progress", "examples/mpi/heat"]


def setUpModule():
    global linux
    linux = guest.Guest(FILES)


def tearDownModule():
    linux.stop()


class KernelSctp(guest.GuestTest):

    def guest(self):
        return linux

    def in_guest(self, command, settings=KERNEL):
        return self.start(linux.command(f"cd /tmp && LD_LIBRARY_PATH=/mnt {settings} timeout {TIMEOUT - 10} {command}"), under_weft=False)

    def associations(self):
        """How many the guest's kernel made or accepted so far."""
        return sum(map(int, re.findall(r"^Sctp(?:Active|Passive)Estabs\s+(\d+)$", linux.output("cat /proc/net/sctp/snmp"), re.M)))

    def ping(self, start_server, start_client, wait):
        before = self.associations()
        server = start_server("rping -s -v -V -C 50 -S 30000 -p {port}")
        wait(server)
        client = start_client("rping -c -v -V -C 50 -S 30000 -a {host} -p {port}")
        self.await_success(server, client, timeout=TIMEOUT)
        for process in (server, client):
            self.expect(process.output.count("ping data: rdma-ping-") == 50, "pings are missing")
        self.expect(self.associations() > before, "the kernel's SCTP carried nothing")

    def check_capture(self, pcap):
        faults = capture.complaints(pcap)
        self.expect(not faults, "\n".join(faults[:20]))


class Alone(KernelSctp):

    def test_the_interface(self):
        """Unit tests of transport/sctp/kernel."""
        run = self.in_guest("/mnt/kernel_sctp_test", settings="")
        self.await_success(run, timeout=TIMEOUT)
        self.expect("[  PASSED  ]" in run.output, "nothing ran")

    def test_rping_between_two_processes(self):
        port = linux.next_port()
        self.ping(lambda text: self.in_guest(text.format(port=port)),
                  lambda text: self.in_guest(text.format(host=linux.address, port=port)),
                  lambda server: self.expect(linux.await_listener(port), "nobody listens"))

    def test_it_needs_no_privilege(self):
        port = linux.next_port()
        user = "setpriv --reuid=1000 --regid=1000 --clear-groups "
        self.ping(lambda text: self.in_guest(user + text.format(port=port)),
                  lambda text: self.in_guest(user + text.format(host=linux.address, port=port)),
                  lambda server: self.expect(linux.await_listener(port), "nobody listens"))

    def test_mpi_messages_and_windows(self):
        before = self.associations()
        for program in ("fence", "passive_progress", "heat"):
            job = self.in_guest(f"/mnt/mpiexec -n 3 /mnt/{program}", settings=f"{KERNEL} WEFT_MPI_LLP=sctp")
            self.await_success(job, timeout=TIMEOUT)
        self.expect(self.associations() > before + 3, "the kernel's SCTP carried nothing")


class AgainstUsrsctp(KernelSctp):
    """Weft with usrsctp here, in IP or in UDP; with the kernel's in the guest."""

    def setUp(self):
        super().setUp()
        self._folder = tempfile.TemporaryDirectory()
        self.pcap = os.path.join(self._folder.name, "weft.pcap")

    def tearDown(self):
        super().tearDown()
        self._folder.cleanup()

    def here(self, command, carriage):
        return self.start(command, WEFT_LLP="sctp", WEFT_SCTP_CARRIAGE=carriage, WEFT_PCAP=self.pcap)

    def guest_serves(self, carriage):
        port = linux.next_port()
        self.ping(lambda text: self.in_guest(text.format(port=port)),
                  lambda text: self.here(text.format(host=linux.address, port=port), carriage),
                  lambda server: self.expect(linux.await_listener(port), "nobody listens"))
        self.check_capture(self.pcap)

    def test_the_guest_serves_in_ip(self):
        self.guest_serves("ip")

    def test_the_guest_serves_in_udp(self):
        linux.output(f"echo {UDP_PORT} > /proc/sys/net/sctp/udp_port")
        try:
            self.guest_serves("udp")
        finally:
            linux.output("echo 0 > /proc/sys/net/sctp/udp_port")

    def test_the_guest_connects_in_ip(self):
        port = stock.free_port()
        self.ping(lambda text: self.here(text.format(port=port), "ip"),
                  lambda text: self.in_guest(text.format(host=linux.host, port=port)),
                  lambda server: self.await_listener(server, port))
        self.check_capture(self.pcap)

    def test_where_nobody_listens_it_is_refused(self):
        for client in (self.here(f"rping -c -C 1 -a {linux.address} -p {linux.next_port()}", "ip"),
                       self.in_guest(f"rping -c -C 1 -a {linux.host} -p {stock.free_port()}")):
            self.await_condition(lambda: not client.running(), "the end", timeout=30)
            self.expect("REJECTED" in client.output or "UNREACHABLE" in client.output or "CONNECT_ERROR" in client.output,
                        "no event of rdma_cm")


if __name__ == "__main__":
    stock.main()
