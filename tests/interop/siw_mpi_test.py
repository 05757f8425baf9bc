"""Weft's MPI library on verbs that are not Weft's: the one-sided conformance programs and examples, inside the guest, on the
distribution's libibverbs and librdmacm and the kernel's siw. Of Weft there are only libmpich.so.12 and mpiexec.

Each rank says which verbs libraries and device it has mapped (show_verbs.c)."""

import os
import re

import guest
import stock

TIMEOUT = 300  # a job takes about 4 s in the emulated guest, the longest 11, and 50 on a busy machine
DEVICE = "/dev/infiniband/uverbs0"
LIBRARIES = [f"/usr/lib/x86_64-linux-gnu/{name}" for name in
             ["libibverbs.so.1", "librdmacm.so.1", "libibverbs/libsiw-rdmav"]]
EXAMPLES = ["heat", "mixed", "work_queue"]
# Their operations are surely RDMA Writes and Reads; those of the others may go as messages.
PUT_AND_GET = ["fence", "get_then_put", "lock", "pscw", "requests", "window_objects"]


def setUpModule():
    global siw
    siw = guest.Guest(["mpi_hybrid/api/libmpich.so.12", "pmi/mpiexec", "tests/interop/libshow_verbs.so",
                       *(f"examples/mpi/{name}" for name in EXAMPLES), *conformance_programs()])


def tearDownModule():
    siw.stop()


def conformance_programs():
    folder = "tests/mpi/rma"
    found = [f"{folder}/{name}" for name in sorted(os.listdir(stock.workspace_file(folder))) if "." not in name]
    if not set(PUT_AND_GET) <= {os.path.basename(path) for path in found}:
        raise FileNotFoundError(f"of {PUT_AND_GET} {folder} has only {found}")
    return found


class OneSided(guest.GuestTest):

    def guest(self):
        return siw

    def run_job(self, ranks, program, settings=""):
        """Returns the output. Every rank must have used the distribution's verbs and siw."""
        # The ranks are on one host: without the setting they would share memory and leave siw alone.
        job = self.start(siw.command(f"cd /tmp && LD_LIBRARY_PATH=/mnt WEFT_SAME_HOST=off {settings} timeout {TIMEOUT - 10} "
                                     f"/mnt/mpiexec -n {ranks} -env LD_PRELOAD /mnt/libshow_verbs.so /mnt/{program}"),
                         under_weft=False)
        self.await_success(job, timeout=TIMEOUT)
        left = siw.output("readlink /proc/[0-9]*/exe | grep ^/mnt/")
        self.expect(not left.strip(), f"left behind: {left}")
        for rank in range(ranks):
            self.check_verbs(rank, job.output)
        return job.output

    def check_verbs(self, rank, output):
        mapped = re.findall(rf"^verbs: rank {rank}: maps (.*)$", output, re.M)
        self.expect(DEVICE in mapped, f"rank {rank} has no queue of {DEVICE} mapped")
        for library in LIBRARIES:
            self.expect(any(path.startswith(library) for path in mapped), f"rank {rank} does not use {library}")
        ours = {path for path in mapped if not path.startswith(("/usr/lib/", "/dev/"))}
        self.expect(ours == {"/mnt/libmpich.so.12"}, f"rank {rank} uses {ours}")

    def expect_operations(self, output):
        posted = re.findall(r"^verbs: rank \d+: posted (\d+) RDMA operations$", output, re.M)
        self.expect(sum(map(int, posted)) > 0, "not one RDMA Write or Read was posted")

    def test_the_device_is_siw(self):
        self.assertEqual(siw.output("cat /sys/class/infiniband_verbs/uverbs*/ibdev").split(), ["siw0"])

    def test_connections_made_with_the_window(self):
        self.expect_operations(self.run_job(4, "fence", "WEFT_MPI_RMA_CONNECT=static"))

    def test_a_target_that_never_slept_in_mpi(self):
        """siw tells a queue that waits for solicited completions of no receive."""
        self.expect_operations(self.run_job(2, "passive_progress", "WEFT_MPI_SPIN_US=2000000"))

    def test_first_messages_that_siw_overlooks(self):
        with siw.forgetting(50):
            self.expect_operations(self.run_job(4, "heat 48 10"))
            self.expect_operations(self.run_job(4, "fence", "WEFT_MPI_RMA_CONNECT=static"))

    def test_heat(self):
        output = self.run_job(4, "heat 48 10")
        self.assertIn("; 0 places differ", output)
        self.expect_operations(output)

    def test_mixed(self):
        for ranks in (2, 4):
            output = self.run_job(ranks, "mixed 5")
            self.assertIn("; 0 bytes are wrong", output)
            self.expect_operations(output)

    def test_work_queue(self):
        self.assertIn("work_queue: 40 tasks on 4 ranks", self.run_job(4, "work_queue 40"))


def add_conformance(program, ranks):
    def case(self):
        output = self.run_job(ranks, program)
        if program in PUT_AND_GET:
            self.expect_operations(output)
    setattr(OneSided, f"test_{program}_at_{ranks}_ranks", case)


if __name__ == "__main__":
    for path in conformance_programs():
        for count in (2, 4):
            add_conformance(os.path.basename(path), count)
    stock.main()
