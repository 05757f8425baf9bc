"""iSCSI over RDMA (iSER, RFC 7145): tgt's target and libiscsi's initiator."""

import os
import tempfile

import stock

TARGET = "iqn.2026-11.test:disk"
INITIATOR = "iqn.2026-11.test:initiator"
TESTS = "ALL.Read10.Simple,ALL.Write10.Simple,ALL.Read16.Simple,ALL.Write16.Simple,ALL.Verify10.Simple,ALL.Verify10.Mismatch,ALL.WriteVerify10.Simple"


class Iser(stock.StockTest):

    def setUp(self):
        super().setUp()
        if self.sanitizer:
            self.skipTest("libiscsi 1.19 reads memory that it did not initialise, which a sanitizer's malloc() fills with garbage")
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        place = place.name
        self._environment = {"TGT_IPC_SOCKET": os.path.join(place, "control")}
        disk = os.path.join(place, "disk")
        with open(disk, "wb") as file:
            file.write(os.urandom(8 << 20))
        # The listener of rdma_cm has the TCP port of its number: the two portals need different ones.
        self.port, tcp_port = stock.free_port(), stock.free_port()
        self.target = self.start(f"tgtd -f --iscsi portal=127.0.0.1:{tcp_port} --iser port={self.port},pool_sz_mb=16", **self._environment)
        self.await_listener(self.target, self.port)
        self.administer("--op new --mode target -T " + TARGET)
        self.administer("--op new --mode logicalunit --lun 1 -b " + disk)
        # Over iSER tgtd asks for both, where over TCP one is enough; without the second the initiator reads "Target not found".
        self.administer("--op bind --mode target -I ALL")
        self.administer("--op bind --mode target -Q " + INITIATOR)
        self.url = f"iser://127.0.0.1:{self.port}/{TARGET}/1"

    def administer(self, command):
        self.await_success(self.start(f"tgtadm --lld iser --tid 1 {command}", under_weft=False, **self._environment))

    def test_inquiry(self):
        output = self.run_one(f"iscsi-inq -i {INITIATOR} {self.url}")
        self.expect("Product:VIRTUAL-DISK" in output, "it says nothing of the disk")

    def test_capacity(self):
        self.expect(f"Total size:{8 << 20}\n" in self.run_one(f"iscsi-readcapacity16 -i {INITIATOR} {self.url}"), "another size")

    def test_reading_writing_and_comparing(self):
        # libiscsi 1.19 does not initialise a connection's list of descriptors, which the first one of a process finds empty by chance alone: each
        # test has one of its own. malloc() is to give memory of zeros (mallopt(3), M_PERTURB).
        output = self.run_one(f"iscsi-test-cu -i {INITIATOR} -d -t {TESTS} {self.url}", MALLOC_PERTURB_="255")
        self.expect(output.count("...passed") == len(TESTS.split(",")), "not all passed")

    def test_an_initiator_that_is_not_bound_finds_no_target(self):
        process = self.start(f"iscsi-inq -i {INITIATOR}:other {self.url}")
        self.await_condition(lambda: not process.running(), "the end")
        self.expect("Target not found(515)" in process.output, "another answer")
        self.test_inquiry()


if __name__ == "__main__":
    stock.main()
