"""impirun -client: whole jobs of a server and clients on this host, whose ranks (rank.cc) send packets without MPI."""

import os
import resource
import signal
import socket
import time

import stock
from client_jobs import BOUND, RANK, Job


class Whole(Job):
    def test_ranks_of_two_and_three_clients_exchange_packets(self):
        for counts in ((1, 1), (2, 3), (4, 1, 2)):
            with self.subTest(counts=counts):
                server, where = self.serve(len(counts))
                clients = [self.client(number, where, "-n", str(count), RANK, "exchange", "65536") for number, count in enumerate(counts)]
                self.all_exchanged(server, clients, counts)

    def test_options_are_agreed_on(self):
        server, where = self.serve(2)
        clients = [
            self.client(0, where, "-address", "127.0.0.2", "-datalen", "1000", "-ackmark", "3", "-hiwater", "5", "-n", "1", RANK, "exchange", "1000"),
            self.client(1, where, "-address", "127.0.0.1", "-np", "1", RANK, "exchange", "1000", ":", "-np", "1", RANK, "exchange", "1000"),
        ]
        for number, client in enumerate(clients):
            status, _, errors = self.outcome(client)
            self.assertEqual(status, 0, errors)
            self.assertEqual("-hiwater 5 is less than twice -ackmark 3" in errors, number == 0)
            self.assertIn("the hosts agreed on a hiwater of 5 and an ackmark of 3", errors)
        self.assertEqual(self.outcome(server)[0], 0)

    def test_clients_that_choose_different_values_are_told(self):
        _, where = self.serve(2)
        clients = [self.client(number, where, "-xsize", str(number), "-n", "1", RANK, "wait") for number in (0, 1)]
        for client in clients:
            status, output, errors = self.outcome(client)
            self.assertEqual((status, output), (1, ""))
            self.assertIn("IMPI_C_COLL_XSIZE", errors)

    def test_without_a_key_by_consent(self):
        none = {"IMPI_AUTH_NONE": "1"}
        server, where = self.serve(2, environment=none)
        clients = [self.client(number, where, "-n", "1", RANK, "exchange", "8", environment=none) for number in (0, 1)]
        for client in clients:
            self.assertEqual(self.outcome(client)[0], 0)
        self.assertEqual(self.outcome(server)[0], 0)

    def test_the_exit_status_is_that_of_the_ranks(self):
        server, where = self.serve(2)
        first = self.client(0, where, "-n", "1", "sh", "-c", f"{RANK} exchange 8; exit 7")
        second = self.client(1, where, "-n", "1", RANK, "exchange", "8")
        self.assertEqual(self.outcome(first)[0], 7)
        self.assertEqual(self.outcome(second)[0], 0)
        self.assertEqual(self.outcome(server)[0], 0)

    def test_many_ranks(self):
        count = int(os.environ.get("IMPI_TEST_RANKS", "100"))
        server, where = self.serve(2)
        clients = [self.client(0, where, "-n", str(count), RANK, "exchange", "1000"), self.client(1, where, "-n", "2", RANK, "exchange", "1000")]
        for client in clients:
            status, _, errors = self.outcome(client)
            self.assertEqual((status, errors), (0, ""))
        self.assertEqual(self.outcome(server)[0], 0)


class Failing(Job):
    def test_a_rank_that_dies_ends_all_clients(self):
        server, where = self.serve(3)
        clients = [self.client(number, where, "-n", "2", RANK, *(("die", "9") if number == 1 else ("wait",))) for number in range(3)]
        self.failed(clients[1], r"rank 3 \([0-9.]+/\d+\) of client 1 ended without MPI_Finalize", "signal 9")
        for number in (0, 2):
            self.failed(clients[number], r"host 1 of client 1 \([0-9.]+\) left before it sent FINI|client [02]: the server")
        self.failed(server, "client 1 .* left")

    def test_a_killed_agent_ends_all_clients_and_its_ranks(self):
        server, where = self.serve(2)
        clients = [self.client(number, where, "-n", "2", RANK, "wait") for number in range(2)]
        for client in clients:
            self.until_ranks_wait(client, 2)
        clients[1].kill()
        self.failed(clients[0], r"host 1 of client 1 \([0-9.]+\) left before it sent FINI|client 0: the server")
        self.failed(clients[1])  # its output ends when its mpiexec has ended
        self.failed(server, "client 1 .* left")

    def test_a_server_that_disappears_ends_all_clients(self):
        server, where = self.serve(2)
        clients = [self.client(number, where, "-n", "1", RANK, "wait") for number in range(2)]
        for client in clients:
            self.until_ranks_wait(client, 1)
        server.kill()
        errors = [self.failed(client) for client in clients]
        self.assertTrue(any("closed the connection while the job ran" in error for error in errors), errors)

    def test_a_rank_without_mpi_ends_the_job(self):
        server, where = self.serve(2)
        first = self.client(0, where, "-n", "1", RANK, "wait")
        second = self.client(1, where, "-n", "1", "true")
        self.failed(second, r"rank 1 \(.*\) of client 1 ended without MPI_Init \(mpiexec's exit status is 0\); all ranks of a client have to call it")
        self.failed(first, "client 1|the server")
        self.failed(server, "client 1 .* left")

    def test_a_program_that_does_not_exist(self):
        _, where = self.serve(2)
        clients = [self.client(0, where, "-n", "1", "./no-such-program"), self.client(1, where, "-n", "1", RANK, "wait")]
        status, _, errors = self.outcome(clients[0])
        self.assertEqual(status, 127, errors)
        self.assertIn("no-such-program", errors)
        self.failed(clients[1])

    def test_a_signal_reaches_the_ranks(self):
        _, where = self.serve(2)
        clients = [self.client(number, where, "-n", "1", RANK, "wait", process_group=0) for number in range(2)]
        for client in clients:
            self.until_ranks_wait(client, 1)
        clients[0].send_signal(signal.SIGTERM)
        self.failed(clients[0], "signal 15", "rank 0 .* ended without MPI_Finalize")
        self.failed(clients[1])

    def test_two_clients_with_one_number(self):
        _, where = self.serve(2)
        first = self.client(0, where, "-n", "1", RANK, "exchange", "8")
        self.await_joined(where)
        second = [self.client(0, where, "-n", "1", RANK, "exchange", "8"), self.client(1, where, "-n", "1", RANK, "exchange", "8")]
        outcomes = [self.outcome(client) for client in (first, *second)]
        self.assertEqual(sorted(status for status, _, _ in outcomes), [0, 0, 1])
        refused = next(errors for status, _, errors in outcomes if status == 1)
        self.assertIn("is 0 a client of this job that nobody else is?", refused)

    def test_strangers_at_the_agents_port_are_refused(self):
        server, where = self.serve(2)
        first = self.client(0, where, "-address", "127.0.0.1", "-n", "1", RANK, "exchange", "8")
        port = self.listening(first)
        strangers = [socket.create_connection(("127.0.0.1", port), timeout=BOUND, source_address=(source, 0)) for source in ("127.0.0.1", "127.0.0.3")]
        strangers[0].sendall(b"\0\0\0\1")  # says that it is host 1
        strangers[1].sendall(b"GET ")  # from the address of host 1
        second = self.client(1, where, "-address", "127.0.0.3", "-n", "1", RANK, "exchange", "8")
        status, _, errors = self.outcome(first)
        self.assertEqual(status, 0, errors)
        self.assertIn("warning: 127.0.0.1 is not the address of a host that is missing", errors)
        self.assertRegex(errors, "warning: 127.0.0.3 .*1195725856")
        self.assertEqual(self.outcome(second)[0], 0)
        self.assertEqual(self.outcome(server)[0], 0)
        for stranger in strangers:
            stranger.close()

    def listening(self, client):
        """The port at which the client waits for others, when it does."""
        while True:
            inodes = {os.readlink(entry.path) for entry in self.descriptors(client)}
            with open("/proc/net/tcp", encoding="ascii") as v4, open("/proc/net/tcp6", encoding="ascii") as v6:
                for line in (*v4, *v6):
                    words = line.split()
                    if words[3] == "0A" and f"socket:[{words[9]}]" in inodes:
                        return int(words[1].split(":")[1], 16)
            time.sleep(stock.POLL_SECONDS)

    @staticmethod
    def descriptors(process):
        return [entry for entry in os.scandir(f"/proc/{process.pid}/fd") if entry.is_symlink()]

    def test_too_few_descriptors_for_all_ranks(self):
        _, where = self.serve(2)
        client = self.client(0, where, "-n", "200", RANK, "wait", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100)))
        self.failed(client, "200 ranks need 264 open files in their agent, and the limit is 100; raise it")

    def test_wrong_command_lines(self):
        for words, text in [
            (("-client", "0"), "impirun -client K HOST:PORT"),
            (("-client", "0", "127.0.0.1:1", "-skip-launch-node", "-hosts", "localhost", RANK), "only this host is named"),
            (("-client", "0", "127.0.0.1:1", "-nonsense", RANK), "unknown option -nonsense"),
            (("-client", "0", "127.0.0.1:1", "-nameserver-run", "/nowhere"), "starts no ranks"),
            (("-client", "0", "127.0.0.1:1", "-n", "40000", RANK), "a client has 1 to 32768"),
        ]:
            status, output, errors = self.outcome(self.start(*words))
            self.assertEqual((status, output), (2, ""), errors)
            self.assertIn(text, errors)
        status, output, errors = self.outcome(self.start("-client", "0", "127.0.0.1:1", RANK))
        self.assertEqual((status, errors),
                         (1, "impirun: cannot connect to the server at 127.0.0.1:1; is it running, and is this the address that it printed?\n"))
        status, output, errors = self.outcome(self.start("--help"))
        self.assertEqual((status, errors), (0, ""))
        self.assertIn("-client K HOST:PORT", output)


if __name__ == "__main__":
    stock.main()
