"""Conformance programs on the MPI_COMM_WORLD of several clients of an IMPI job: clients_test.py PROGRAM... RANKS+RANKS[+RANKS]...   (PROGRAM: its path in the workspace)

Each program runs with each number of ranks in each client, all on this host: an `impirun -server`, and an `impirun -client` for each number. --test_filter
chooses some by name.
"""

import os
import sys
import time

import mpi
import stock


class ImpiClients(mpi.MpiTest):
    library = mpi.WeftUnderMpiexec

    def start_words(self, *words):
        job = mpi.Job([stock.workspace_file("impi/impirun"), *words], {**self.library.settings(), "IMPI_AUTH_NONE": "1"})
        self.addCleanup(job.kill)
        return job

    def address_of(self, server):
        deadline = time.monotonic() + mpi.TIMEOUT * self.slow
        while "\n" not in server.output:
            self.assertIsNone(server.status, server.output)
            self.assertLess(time.monotonic(), deadline, "the server does not say where it is")
            time.sleep(mpi.POLL_SECONDS)
        return server.output.splitlines()[0]

    def run_clients(self, ranks, program, *arguments):
        server = self.start_words("-server", str(len(ranks)))
        address = self.address_of(server)
        clients = [self.start_words("-client", str(number), address, "-n", str(count), program, *arguments) for number, count in enumerate(ranks)]
        deadline = time.monotonic() + mpi.TIMEOUT * self.slow
        for job in [*clients, server]:
            if not job.wait(max(0, deadline - time.monotonic())):
                self.fail(f"{' '.join(job.words)}\nstill runs; " + self.report(server, clients) + "".join(client.stacks() for client in clients))
        if any(job.status != 0 for job in [*clients, server]):
            self.fail(self.report(server, clients))
        for job in [*clients, server]:
            self.assertEqual(job.left_behind(), [], " ".join(job.words))

    @staticmethod
    def report(server, clients):
        return "".join(f"{' '.join(job.words)}\nexit status {job.status}; output:\n{job.output}\n" for job in [server, *clients])


def add_case(program, ranks):
    def case(self):
        self.run_clients(ranks, stock.workspace_file(program))
    setattr(ImpiClients, f"test_{program.replace('/', '_')}_at_{'_and_'.join(map(str, ranks))}", case)


def main():
    programs = [word for word in sys.argv[1:] if "/" in word]
    sizes = [[int(count) for count in word.split("+")] for word in sys.argv[1:] if "/" not in word]
    for program in programs:
        for ranks in sizes:
            add_case(program, ranks)
    chosen = os.environ.get("TESTBRIDGE_TEST_ONLY")
    sys.argv[1:] = ["-k", chosen] if chosen else []
    stock.main()


if __name__ == "__main__":
    main()
