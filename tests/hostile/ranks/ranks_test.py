"""Strangers at the port where a rank waits for the others, ranks without descriptors, ranks that compute while others dial them, and a rank that answers
otherwise than it was asked: nobody who lives is taken for dead, no thread spins, nobody waits for ever, and a limit that is met is named."""

import contextlib
import glob
import os
import re
import resource
import socket
import struct
import tempfile
import time

import mpi
import stock


HELLO_MAGIC = 0x57524D68  # mpi_hybrid/rma/wire.cc


def meet():
    return stock.workspace_file("tests/hostile/ranks/meet")


LISTEN, CLOSE_WAIT = "0A", "08"  # proc_net_tcp; the latter: the other side closed it


def ports_in(state, pid):
    """The ports on 127.0.0.1 of the process's TCP sockets in that state."""
    inodes = set()
    for path in glob.glob(f"/proc/{pid}/fd/*"):
        try:
            found = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(path))
        except OSError:
            continue
        if found:
            inodes.add(found[1])
    ports = []
    with open(f"/proc/{pid}/net/tcp") as file:
        for line in file.readlines()[1:]:
            fields = line.split()
            address, port = fields[1].split(":")
            if fields[3] == state and fields[9] in inodes and address == f"{struct.unpack('=I', bytes([127, 0, 0, 1]))[0]:08X}":
                ports.append(int(port, 16))
    return ports


def listening_ports(pid):
    return ports_in(LISTEN, pid)


class Limited(mpi.WeftApart):
    """mpiexec and all that it starts with few descriptors."""

    limit = 0

    @classmethod
    def launcher(cls):
        return ["sh", "-c", f'ulimit -n {cls.limit}; exec "$0" "$@"', *mpi.weft_mpiexec()]


def asks_in_vain(port, private_data):
    """Whether who sends this MPA Request is refused with an MPA Reply; False: whoever listens at the port speaks something else."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as stranger:
        stranger.sendall(b"MPA ID Req Frame" + struct.pack("!BBH", 0x40, 1, len(private_data)) + private_data)
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while b"MPA ID Rep Frame".startswith(answer[:16]) and (piece := stranger.recv(4096)):
                answer += piece
    if not answer.startswith(b"MPA ID Rep Frame"):
        return False
    assert answer[16] & 0x20, f"port {port} accepts whoever asks"
    return True


class Ranks(mpi.MpiTest):
    library = mpi.WeftApart  # ranks of one host need not dial one another

    def await_ready(self, job, directory):
        ready = [os.path.join(directory, f"ready.{rank}") for rank in range(4)]
        deadline = time.monotonic() + 20 * self.slow
        while not all(map(os.path.exists, ready)):
            self.assertLess(time.monotonic(), deadline, job.output)
            time.sleep(0.01)

    def test_who_proves_nothing_gets_no_one_sided_connection(self):
        with tempfile.TemporaryDirectory() as directory:
            job = self.start(4, meet(), directory, "windows")
            self.await_ready(job, directory)
            ports = [port for pid in job.members() for port in listening_ports(pid)]
            forged = struct.pack("!II", HELLO_MAGIC, 1) + bytes(16) + bytes(32)
            ports = [port for port in ports if asks_in_vain(port, b"")]
            self.assertEqual(len(ports), 4, job.output)
            for private_data in (b"x", bytes(56), os.urandom(56), forged, forged + bytes(200), struct.pack("!II", HELLO_MAGIC, 2**31) + bytes(48)):
                for port in ports:
                    self.assertTrue(asks_in_vain(port, private_data), (private_data, job.output))
            open(os.path.join(directory, "go"), "w").close()
            ended = job.wait(mpi.TIMEOUT * self.slow)
            self.assertTrue(ended, job.output)
            self.assertEqual((job.status, "all have met" in job.output), (0, True), job.output)
            self.assertIn("an RDMA connection was refused: it does not identify itself", job.output)

    def test_silent_strangers_keep_no_rank_out(self):
        with tempfile.TemporaryDirectory() as directory:
            job = self.start(4, meet(), directory)
            self.await_ready(job, directory)
            ports = [port for pid in job.members() for port in listening_ports(pid)]
            self.assertGreaterEqual(len(ports), 4)
            resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
            strangers = []
            for number in range(2048):
                for port in ports[:1] if number >= 1100 else ports[:2]:
                    stranger = socket.socket()
                    stranger.setblocking(False)
                    stranger.connect_ex(("127.0.0.1", port))
                    strangers.append(stranger)
                if number % 64 == 0:
                    time.sleep(0.01)
            open(os.path.join(directory, "go"), "w").close()
            ended = job.wait(mpi.TIMEOUT * self.slow)
            for stranger in strangers:
                stranger.close()
            self.assertTrue(ended, job.output)
            self.assertEqual((job.status, "all have met" in job.output), (0, True), job.output)

    def test_a_reply_of_the_wrong_length_fails_its_operation_and_leaves_nobody_waiting(self):
        for operation in ("get", "rget", "get_accumulate", "rget_accumulate", "fetch_and_op", "compare_and_swap", "lock", "fence"):
            for length in ("short", "long", "absent", "headless", "of_fence"):
                with self.subTest(operation=operation, length=length):
                    output = self.run_job(3, stock.workspace_file("tests/hostile/ranks/wrong_length"), operation, length)
                    self.assertEqual(sorted(re.findall(r"rank (\d) came to the end", output)), ["0", "1", "2"], output)

    def test_ranks_that_compute_between_a_send_and_its_wait_are_waited_for(self):
        with tempfile.TemporaryDirectory() as directory:
            job = self.start(4, stock.workspace_file("tests/hostile/ranks/away"), directory)
            self.await_ready(job, directory)
            time.sleep(11)
            closed = [port for pid in job.members() for port in ports_in(CLOSE_WAIT, pid)]
            open(os.path.join(directory, "go"), "w").close()
            ended = job.wait(mpi.TIMEOUT * self.slow)
            self.assertTrue(ended, job.output)
            self.assertEqual((job.status, "all have met" in job.output), (0, True), job.output)
            self.assertEqual(closed, [], "a rank closed the connection of one that computes")


class FewDescriptors(mpi.MpiTest):
    library = Limited

    def test_sixty_four_ranks_run_with_256(self):
        Limited.limit = 256
        self.assertIn("all have met", self.run_job(64, meet()))

    def test_a_launcher_names_the_limit_that_it_met(self):
        Limited.limit = 64
        output = self.run_job(64, meet(), status=1)
        self.assertRegex(output, r"3 descriptors per rank: Too many open files \(the limit is 64, see ulimit -n\)")

    def test_ranks_that_have_none_for_one_another_name_the_limit_and_take_nobody_for_dead(self):
        Limited.limit = 1024
        job = self.start(32, "env", "MEET_DESCRIPTORS=24", meet())
        self.assertTrue(job.wait(90 * self.slow), job.output)
        self.assertNotEqual(job.status, 0, job.output)
        self.assertIn("Too many open files (the limit is 24, see ulimit -n)", job.output)
        # What ends the job is the first failure; others see then that ranks end.
        first = next(line for line in job.output.splitlines() if " failed on MPI_COMM_WORLD" in line)
        # It is told by whichever call waited for it: MPI_Send with MPI_ERR_OTHER, MPI_Waitall with MPI_ERR_IN_STATUS.
        # Either end of a connection may be the one that has no descriptor.
        self.assertRegex(first, r"cannot connect to rank \d+ of MPI_COMM_WORLD: (Too many open files|it closes each connection; has it run out of descriptors)")
        self.assertEqual(job.left_behind(), [])

    def test_a_window_without_descriptors_fails_and_names_the_limit(self):
        Limited.limit = 1024
        with tempfile.TemporaryDirectory() as directory:
            job = self.start(2, "env", "MEET_DESCRIPTORS=14", meet(), directory, "windows")
            self.assertTrue(job.wait(90 * self.slow), job.output)
        self.assertNotEqual(job.status, 0, job.output)
        self.assertRegex(job.output, r"MPI_Win_allocate failed .*Too many open files \(the limit is 14, see ulimit -n\)")
        self.assertEqual(job.left_behind(), [])


if __name__ == "__main__":
    stock.main()
