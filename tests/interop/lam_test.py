"""Weft and LAM/MPI 7.1.4 in one IMPI job, as client 0 and as client 1: whatever LAM can do (docs/supported.md, "IMPI"). See lam-peer and lam_job.c.

The daemons that LAM's clients start live until the module ends."""

import os
import subprocess
import tempfile

import impi_jobs
import stock

LAM = stock.workspace_file("tests/interop/lam-peer")
PARTS = ["send", "bsend", "ssend", "rsend", "sendrecv", "many", "persistent", "struct", "probe", "barrier", "reduce", "allreduce"]
TIMEOUT = 120


def setUpModule():
    global folder, program
    subprocess.run([LAM, "build"], check=True, timeout=1800)
    folder = tempfile.TemporaryDirectory()
    os.chmod(folder.name, 0o755)  # LAM's ranks are nobody's
    program = os.path.join(folder.name, "lam_job")
    subprocess.run([LAM, "compile", stock.workspace_file("tests/interop/lam_job.c"), program], check=True, timeout=60)


def tearDownModule():
    for client in ("0", "1"):
        subprocess.run([LAM, "halt", client], check=False, timeout=60)
    folder.cleanup()


class WithLam(impi_jobs.ImpiTest):

    def run_parts(self, weft, ranks, parts, options=()):
        """Weft is client `weft`; `ranks`: of client 0 and of client 1."""
        server, address = self.serve(2)
        lam = 1 - weft
        # LAM takes the address from which somebody connects for his name, so the two have different ones.
        clients = [
            self.start_words("-client", str(weft), address, "-impi-peer", "lam", "-address", "127.0.0.2", *options, "-n", str(ranks[weft]),
                             stock.workspace_file("tests/interop/lam_job"), *parts),
            self.start_any(LAM, "client", str(lam), address, str(ranks[lam]), program, *parts, TIME_LIMIT=str(TIMEOUT), IMPI_HOST_NAME="127.0.0.1"),
        ]
        self.await_end(server, clients, timeout=TIMEOUT)
        lines = clients[weft].output.splitlines()  # rank 0 is of client 0, and clients[1] is LAM
        self.assertEqual([line for line in lines if line.startswith(("passed", "lam_job.c"))], [f"passed {part}" for part in parts], self.report(server, clients))

    def test_all_parts_with_weft_as_client_0(self):
        self.run_parts(0, (1, 1), [*PARTS, "bcast65536"])

    def test_all_parts_with_weft_as_client_1(self):
        self.run_parts(1, (1, 1), [*PARTS, "bcast65536"])

    def test_two_ranks_at_each(self):
        for weft in (0, 1):
            self.run_parts(weft, (2, 2), [*PARTS, "bcast65536"])

    def test_little_packets_and_a_narrow_window(self):
        for weft in (0, 1):
            self.run_parts(weft, (1, 1), [*PARTS, "bcast1000"], ["-datalen", "1000", "-ackmark", "3", "-hiwater", "5"])


if __name__ == "__main__":
    stock.main()
