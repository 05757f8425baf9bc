"""Conformance programs on the MPI_COMM_WORLD of several clients of an IMPI job:

    clients_test.py PROGRAM... [apart:]RANKS+RANKS[+RANKS]...        PROGRAM: its path in the workspace

Each program runs with each number of ranks in each client: an `impirun -server`, and an `impirun -client` for each number. RANKS of a client with several
hosts is RANKS/RANKS[/RANKS]...: its hosts get their ranks in turns, so that the order of MPI_COMM_WORLD is not that of the client. All runs on this machine: a
script stands in for ssh, and names that do not resolve are other hosts to mpiexec. apart: each client is in a network namespace of its own (root).
--test_filter chooses some by name.
"""

import os
import sys
import tempfile

import impi_jobs
import namespaces
import stock


class ImpiClients(impi_jobs.ImpiTest):

    def run_clients(self, ranks, program, apart):
        machines = namespaces.Hosts(self, len(ranks)) if apart else None

        def on(number):
            return machines.words(number + 1) if apart else ()
        server, address = self.serve(len(ranks), before=on(0))
        clients = [self.start_words("-client", str(number), address, *self.hosts(counts), "-n", str(sum(counts)), program, before=on(number),
                                    HOSTS_OF_JOB=str(sum(map(len, ranks))))
                   for number, counts in enumerate(ranks)]
        self.await_end(server, clients)

    def hosts(self, counts):
        """The options of mpiexec for so many ranks on each host."""
        if len(counts) == 1:
            return []
        self.assertEqual(counts, [len(range(host, sum(counts), len(counts))) for host in range(len(counts))], "not in turns")
        with tempfile.NamedTemporaryFile("w", encoding="ascii", delete=False) as file:
            self.addCleanup(os.unlink, file.name)
            file.write('#!/bin/sh\nshift\nexec sh -c "$*"\n')
        os.chmod(file.name, 0o755)
        return ["-launcher-exec", file.name, "-hosts", ",".join(f"host{number}.invalid" for number in range(len(counts)))]


def add_case(program, ranks, apart):
    def case(self):
        self.run_clients(ranks, stock.workspace_file(program), apart)
    sizes = "_and_".join("_".join(map(str, counts)) for counts in ranks) + ("_apart" if apart else "")
    setattr(ImpiClients, f"test_{program.replace('/', '_')}_at_{sizes}", case)


def main():
    sizes = [word for word in sys.argv[1:] if "+" in word]
    for program in sys.argv[1:]:
        for size in sizes if program not in sizes else ():
            apart, _, clients = size.rpartition(":")
            add_case(program, [[int(count) for count in counts.split("/")] for counts in clients.split("+")], apart == "apart")
    chosen = os.environ.get("TESTBRIDGE_TEST_ONLY")
    sys.argv[1:] = ["-k", chosen] if chosen else []
    stock.main()


if __name__ == "__main__":
    main()
