"""Conformance programs on the MPI_COMM_WORLD of several clients of an IMPI job:

    clients_test.py PROGRAM... RANKS+RANKS[+RANKS]...        PROGRAM: its path in the workspace

Each program runs with each number of ranks in each client, all on this host: an `impirun -server`, and an `impirun -client` for each number. --test_filter
chooses some by name.
"""

import os
import sys

import impi_jobs
import stock


class ImpiClients(impi_jobs.ImpiTest):

    def run_clients(self, ranks, program):
        server, address = self.serve(len(ranks))
        clients = [self.start_words("-client", str(number), address, "-n", str(count), program) for number, count in enumerate(ranks)]
        self.await_end(server, clients)


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
