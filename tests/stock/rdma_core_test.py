"""rdma-core's own tests of libibverbs, as Debian ships them with python3-pyverbs, on Weft in the roce persona."""

import gzip
import json
import os
import shutil
import tempfile

import stock

PACKAGED = "/usr/share/doc/rdma-core/tests"


class RdmaCore(stock.StockTest):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        os.mkdir(cls.folder + "/tests")
        for name in os.listdir(PACKAGED) if os.path.isdir(PACKAGED) else []:
            opener = gzip.open if name.endswith(".gz") else open
            with opener(f"{PACKAGED}/{name}", "rb") as packed, open(f"{cls.folder}/tests/{name.removesuffix('.gz')}", "wb") as plain:
                shutil.copyfileobj(packed, plain)
        # Its modules would all be imported, the vendors' too.
        open(cls.folder + "/tests/__init__.py", "w").close()

    def run_modules(self, *modules, least, leave_out="", skipped=(), failed=()):  # names of methods, or how they begin
        """Every test of the modules is ok, and there are at least so many, but for those whose names match `leave_out`, which do not
        run, and begin with one of `skipped` or `failed`, which are just that."""
        if not os.path.isdir(PACKAGED):
            self.skipTest(f"{PACKAGED} is not there: the system leaves documentation out")
        program = stock.workspace_file("tests/stock/rdma_core_program.py")
        out = self.run_one(["/usr/bin/python3", "-W", "ignore", program, self.folder, "weft_lo", leave_out or "^$", *modules],
                           WEFT_PERSONA="roce")
        passed = 0
        for name, outcome, why in (json.loads(line) for line in out.splitlines() if line.startswith("[")):
            method = name.split(".")[1]
            wanted = "skipped" if method.startswith(tuple(skipped)) else "failed" if method.startswith(tuple(failed)) else "ok"
            self.expect(outcome == wanted, f"{name} {outcome}, not {wanted}: {why}")
            passed += outcome == "ok"
        self.expect(passed >= least, f"only {passed} tests passed")

    def test_devices_and_domains(self):
        self.run_modules("test_device", "test_pd", least=20, failed=("test_import_dm",))

    def test_memory(self):
        self.run_modules("test_mr", least=17, skipped=("test_dmabuf",))

    def test_completions(self):
        self.run_modules("test_cq", "test_cqex", "test_cq_events", least=9)

    def test_parent_domains(self):
        self.run_modules("test_parent_domain", least=5, skipped=("test_huge_page_traffic",))

    def test_on_demand_paging(self):
        self.run_modules("test_odp", least=12, skipped=("test_odp_rc_huge",))

    def test_queue_pairs(self):
        self.run_modules("test_qp", "test_qpex", least=29, leave_out="raw|_atomic_write", skipped=("test_qp_ex_rc_flush",))

    def test_atomics(self):
        self.run_modules("test_atomic", least=7, leave_out="_dc_")

    def test_addresses(self):
        # An address without a GID is the own host here, as qperf names it; RoCE hardware refuses it.
        self.run_modules("test_addr", "test_relaxed_ordering", least=4, failed=("test_create_ah_roce",))


if __name__ == "__main__":
    stock.main()
