"""impirun -client with ranks on several hosts: an agent on each. Most tests have a script in the place of ssh, which runs the command here; names that do not
resolve are other hosts to mpiexec. Those with network namespaces need root."""

import os
import signal
import subprocess
import tempfile
import time

import namespaces
import stock
from client_jobs import IMPIRUN, KEY, RANK, Job

SOON = 30  # seconds: less than hosts wait for one another
NOTICED = 60  # seconds, until the loss of a host has ended a job: connections notice it after 30

FAKE_SSH = """#!/bin/sh
case $1 in refused.invalid) echo "no route to $1" >&2; exit 255 ;; esac
shift
exec sh -c "$*"
"""

# In ssh's place: runs the command in the namespace that has the host's address.
NAMESPACE_SSH = """#!/bin/sh
host=$1; shift
exec ip netns exec {0}-${{host##*.}} sh -c "$*"
"""


class Several(Job):

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.ssh = self.script("fake-ssh", FAKE_SSH)

    def script(self, name, text):
        path = os.path.join(self.directory, name)
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        os.chmod(path, 0o755)
        return path

    def on(self, number, where, hosts, *words, **settings):
        """A client with ranks on these hosts."""
        return self.client(number, where, "-launcher-exec", self.ssh, "-hosts", hosts, *words, **settings)

    def agents(self, client):
        """The process of each agent, by the number of its host."""
        found = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as line, open(f"/proc/{pid}/environ", "rb") as environment:
                    words, variables = line.read().split(b"\0"), environment.read().split(b"\0")
            except OSError:
                continue
            if len(words) < 2 or words[1] != b"--agent" or f"TEST_CLIENT={client}".encode() not in variables:
                continue
            found[int(next(one for one in variables if one.startswith(b"PMI_RANK=")).split(b"=")[1])] = int(pid)
        return found

    def marked(self, number):
        """For agents(): which client it is."""
        return {**KEY, "TEST_CLIENT": f"{os.getpid()}-{number}"}


class Whole(Several):

    def exchange(self, hosts, ranks):
        """A client with these ranks on each of these lists of hosts; an empty list is this host."""
        server, where = self.serve(len(hosts))
        clients = []
        for number, (names, count) in enumerate(zip(hosts, ranks)):
            words = ("-n", str(count), RANK, "exchange", "65536")
            clients.append(self.on(number, where, names, *words) if names else self.client(number, where, *words))
        self.all_exchanged(server, clients, ranks)

    def test_ranks_on_two_hosts_and_on_one_exchange_packets(self):
        self.exchange(["a.invalid,localhost", ""], [4, 2])

    def test_ranks_in_turns_and_in_blocks_exchange_packets(self):
        self.exchange(["a.invalid,b.invalid", "c.invalid:3,d.invalid:1", "e.invalid"], [5, 4, 1])

    def test_a_host_without_ranks_is_not_started(self):
        self.exchange(["a.invalid,b.invalid,refused.invalid", ""], [2, 1])

    def test_many_hosts(self):
        self.exchange([",".join(f"h{number}.invalid" for number in range(12)), "x.invalid,y.invalid"], [24, 3])

    def test_a_host_file_and_options_of_mpiexec_work(self):
        server, where = self.serve(2)
        names = self.script("hosts", "a.invalid:2 # a comment\nb.invalid\n")
        first = self.client(0, where, "-launcher-exec", self.ssh, "-f", names, "-l", "-n", "3", RANK, "exchange", "100")
        second = self.client(1, where, "-n", "1", RANK, "exchange", "100")
        status, output, errors = self.outcome(first)
        self.assertEqual((status, errors), (0, ""))
        self.assertEqual(sorted(output.splitlines()), [f"[{rank}] rank {rank} of 4" for rank in range(3)])
        self.assertEqual(self.outcome(second)[0], 0)
        self.assertEqual(self.outcome(server)[0], 0)

    def test_the_hosts_of_a_batch_job_are_used(self):
        server, where = self.serve(2)
        batch = {**KEY, "SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "n[1-2].invalid", "SLURM_TASKS_PER_NODE": "1(x2)"}
        first = self.client(0, where, "-launcher-exec", self.ssh, "-prepend-pattern", "%h: ", "-n", "2", RANK, "exchange", "8", environment=batch)
        second = self.client(1, where, "-n", "1", RANK, "exchange", "8")
        status, output, errors = self.outcome(first)
        self.assertEqual((status, errors), (0, ""))
        self.assertEqual(sorted(output.splitlines()), ["n1.invalid: rank 0 of 3", "n2.invalid: rank 1 of 3"])
        self.assertEqual(self.outcome(second)[0], 0)
        self.assertEqual(self.outcome(server)[0], 0)

    def test_the_exit_status_is_that_of_the_ranks(self):
        server, where = self.serve(2)
        first = self.on(0, where, "a.invalid,b.invalid", "-n", "2", "sh", "-c", f"{RANK} exchange 8; test $PMI_RANK = 0 || exit 7")
        second = self.client(1, where, "-n", "1", RANK, "exchange", "8")
        self.assertEqual(self.outcome(first)[0], 7)
        self.assertEqual(self.outcome(second)[0], 0)
        self.assertEqual(self.outcome(server)[0], 0)

    def test_the_ranks_and_the_agents_do_not_get_the_key(self):
        server, where = self.serve(2)
        first = self.on(0, where, "a.invalid,b.invalid", "-n", "2", "sh", "-c", f'echo "key: $IMPI_AUTH_KEY"; {RANK} exchange 8')
        second = self.client(1, where, "-n", "1", RANK, "exchange", "8")
        status, output, errors = self.outcome(first)
        self.assertEqual((status, errors), (0, ""))
        self.assertEqual(output.splitlines().count("key: "), 2)
        self.assertEqual(self.outcome(second)[0], 0)
        self.assertEqual(self.outcome(server)[0], 0)

    def test_each_host_announces_its_own_address(self):
        _, where = self.serve(2)
        first = self.client(0, where, "-address", "127.0.0.21,127.0.0.22", "-launcher-exec", self.ssh, "-hosts", "a.invalid,b.invalid", "-n", "2", RANK, "die", "9")
        second = self.client(1, where, "-address", "127.0.0.31", "-n", "1", RANK, "wait")
        self.failed(first, r"rank 1 \(127\.0\.0\.22/\d+\) of client 0 ended without MPI_Finalize")
        self.failed(second, r"host [01] of client 0 \(127\.0\.0\.2[12]\) left before it sent FINI|client 1: the server")


class Failing(Several):

    def test_a_rank_that_dies_ends_all_clients(self):
        server, where = self.serve(2)
        first = self.client(0, where, "-n", "1", RANK, "wait")
        second = self.on(1, where, "a.invalid,b.invalid", "-n", "4", RANK, "die", "9")
        self.failed(second, r"impirun: rank 4 \([0-9.]+/\d+\) of client 1 ended without MPI_Finalize", "on b.invalid .* signal 9")
        self.failed(first, r"host [12] of client 1 \([0-9.]+\) left before it sent FINI|client 0: the server")
        self.failed(server, "client 1 .* left")

    def test_a_killed_agent_is_named_and_ends_all_clients(self):
        for victim, name in enumerate(("a.invalid", "b.invalid")):
            with self.subTest(host=name):
                server, where = self.serve(2)
                first = self.client(0, where, "-n", "1", RANK, "wait")
                second = self.on(1, where, "a.invalid,b.invalid", "-n", "4", RANK, "wait", environment=self.marked(victim))
                self.until_ranks_wait(first, 1)
                self.until_ranks_wait(second, 4)
                agents = self.agents(f"{os.getpid()}-{victim}")
                self.assertEqual(sorted(agents), [0, 1])
                os.kill(agents[victim], signal.SIGKILL)
                self.failed(second, rf"impirun: the agent of host {victim + 1} of client 1 \([0-9.]+, '{name}'\) ended before the job did",
                            rf"mpiexec: rank {victim} on {name} \(.*impirun\) was killed by signal 9")
                self.failed(first, r"host [12] of client 1 \([0-9.]+\) left before it sent FINI|client 0: the server")
                self.failed(server, "client 1 .* left")
                self.assertEqual(self.agents(f"{os.getpid()}-{victim}"), {})

    def test_an_agent_that_dies_before_the_others_have_joined_is_noticed(self):
        server, where = self.serve(2)
        client = self.on(0, where, "a.invalid,b.invalid", "-n", "2", RANK, "wait", environment=self.marked(0))
        self.await_joined(where)
        os.kill(self.agents(f"{os.getpid()}-0")[1], signal.SIGKILL)
        self.failed(client, r"impirun: the agent of host 'b.invalid' of client 0 \([0-9.]+\) ended before the job did")
        self.assertEqual(self.agents(f"{os.getpid()}-0"), {})
        self.failed(server, "client 0 .* left")

    def test_a_failure_elsewhere_ends_the_ranks_on_all_hosts(self):
        server, where = self.serve(2)
        first = self.on(0, where, "a.invalid,b.invalid", "-n", "4", RANK, "wait", environment=self.marked(0))
        second = self.client(1, where, "-n", "1", RANK, "wait")
        self.until_ranks_wait(first, 4)
        self.until_ranks_wait(second, 1)
        second.kill()
        self.failed(first, r"host 2 of client 1 \([0-9.]+\) left before it sent FINI|client 0: the server")
        self.failed(server, "client 1 .* left")
        self.assertEqual(self.agents(f"{os.getpid()}-0"), {})

    def test_an_interrupt_from_the_terminal_is_for_the_ranks(self):
        _, where = self.serve(2)
        second = self.client(1, where, "-n", "1", RANK, "wait")
        master, terminal = os.openpty()
        self.addCleanup(os.close, master)
        words = ["setsid", "--ctty", IMPIRUN, "-client", "0", where, "-launcher-exec", self.ssh, "-hosts", "a.invalid,localhost", "-n", "2", RANK, "wait"]
        names = {name: value for name, value in os.environ.items() if not name.startswith(("IMPI_", "PMI_", "HYDRA_"))}
        first = subprocess.Popen(words, env={**names, **self.marked(0)}, stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, first)
        os.close(terminal)
        self.until_ranks_wait(first, 2)
        os.write(master, b"\x03")
        errors = self.failed(first, r"rank [01] \([0-9.]+/\d+\) of client 0 ended without MPI_Finalize", r"mpiexec: rank [01] on \S+ \(.*rank\) was killed by signal 2")
        self.assertNotIn("the agent of host", errors)
        self.failed(second, r"host [01] of client 0 \([0-9.]+\) left before it sent FINI|client 1: the server")
        self.assertEqual(self.agents(f"{os.getpid()}-0"), {})

    def test_nothing_outlives_a_killed_client(self):
        server, where = self.serve(2)
        first = self.on(0, where, "a.invalid,localhost", "-n", "2", RANK, "wait", environment=self.marked(0))
        second = self.client(1, where, "-n", "1", RANK, "wait")
        self.until_ranks_wait(first, 2)
        first.kill()
        self.failed(second, r"host [01] of client 0 \([0-9.]+\) left before it sent FINI|client 1: the server")
        self.failed(server, "client 0 .* left")
        self.outcome(first)  # its output ends when all that it started has ended
        self.assertEqual(self.agents(f"{os.getpid()}-0"), {})

    def test_a_server_that_disappears_ends_the_client(self):
        server, where = self.serve(2)
        clients = [self.on(number, where, "a.invalid,b.invalid", "-n", "2", RANK, "wait") for number in (0, 1)]
        for client in clients:
            self.until_ranks_wait(client, 2)
        server.kill()
        errors = [self.failed(client) for client in clients]
        self.assertTrue(any("closed the connection while the job ran" in error for error in errors), errors)

    def test_a_rank_without_mpi_ends_the_job(self):
        server, where = self.serve(2)
        first = self.client(0, where, "-n", "1", RANK, "wait")
        second = self.on(1, where, "a.invalid,b.invalid", "-n", "2", "true")
        self.failed(second, r"rank [12] \(.*\) of client 1 ended without MPI_Init \(mpiexec's exit status is 0\); all ranks of a client have to call it")
        self.failed(first, "client 1|the server")
        self.failed(server, "client 1 .* left")

    def test_a_host_that_cannot_be_reached_is_named(self):
        server, where = self.serve(1)
        self.failed(self.on(0, where, "a.invalid,refused.invalid", "-n", "2", RANK, "wait"), "no route to refused.invalid",
                    "refused.invalid ended with status 255", "mpiexec has not started the agents of all hosts of client 0")
        self.assertIsNone(server.poll())

    def test_an_address_that_is_not_the_hosts_is_named(self):
        for start_first in (self.client, lambda number, where, *words: self.on(number, where, "c.invalid", *words)):
            _, where = self.serve(2)
            first = start_first(0, where, "-n", "1", RANK, "wait")
            second = self.client(1, where, "-address", "127.0.0.1,198.51.100.99", "-launcher-exec", self.ssh, "-hosts", "a.invalid,b.invalid", "-n", "2", RANK, "wait")
            self.failed(second, r"host 2 of client 1 \(198.51.100.99, 'b.invalid'\): .*the address 198.51.100.99, which this host announced, cannot be its own")
            self.failed(first, timeout=SOON)

    def test_as_many_addresses_as_hosts(self):
        for hosts, addresses, text in (("a.invalid,b.invalid", "127.0.0.1,127.0.0.2,127.0.0.3", "3 addresses, and the ranks run on 2 hosts"),
                                       ("localhost", "127.0.0.1,127.0.0.2", "2 addresses, and the ranks run on 1 host")):
            client = self.client(0, "127.0.0.1:1", "-address", addresses, "-launcher-exec", self.ssh, "-hosts", hosts, "-n", "2", RANK, "wait")
            self.failed(client, text)

    def test_the_agents_are_for_impirun_only(self):
        for words in (("--agent",), ("--agent", "1", "127.0.0.1", "127.0.0.1", "2", "0:0", "-", "-")):
            status, output, errors = self.outcome(self.start(*words))
            self.assertEqual((status, output), (2, ""))
            self.assertIn("for impirun's own use", errors)


class Apart(Several):
    """Hosts of their own: a network namespace for each."""

    def setUp(self):
        super().setUp()
        self.machines = namespaces.Hosts(self, 4)
        self.ssh = self.script("namespace-ssh", NAMESPACE_SSH.format(self.machines.bridge))

    def start(self, *words, **settings):
        number, *words = words
        return super().start(*words, program=(*self.machines.words(number), stock.workspace_file("impi/impirun")), **settings)

    def job(self, first, second):
        """Client 0 on hosts 1 and 2, client 1 on hosts 3 and 4."""
        server = self.start(1, "-server", "2")
        where = server.stdout.readline().strip()
        self.assertRegex(where, r"^10\.79\.0\.1:\d+$")
        clients = []
        for number, (hosts, words) in enumerate((("10.79.0.1:2,10.79.0.2:1", first), ("10.79.0.3,10.79.0.4", second))):
            clients.append(self.start(2 * number + 1, "-client", str(number), where, "-launcher-exec", self.ssh, "-hosts", hosts, "-n", "3", RANK, *words))
        return server, clients

    def test_hosts_connect_from_the_addresses_that_they_announced(self):
        server, clients = self.job(("exchange", "65536"), ("exchange", "65536"))
        for client in clients:
            status, _, errors = self.outcome(client)
            self.assertEqual((status, errors), (0, ""))
        self.assertEqual(self.outcome(server)[0], 0)

    def test_the_loss_of_a_host_ends_all_clients(self):
        server, clients = self.job(("wait",), ("wait",))
        for client in clients:
            self.until_ranks_wait(client, 3)
        began = time.monotonic()
        self.machines.cut_off(4)
        self.failed(clients[1], r"impirun: (the agent of )?host 3 of client 1 \(10\.79\.0\.4", timeout=NOTICED)
        self.failed(clients[0], r"impirun: host [23] of client 1 \(10\.79\.0\.[34]\)|impirun: client 0: the server", timeout=NOTICED)
        self.failed(server, "client [01] .* left")
        self.assertLess(time.monotonic() - began, NOTICED)


if __name__ == "__main__":
    stock.main()
