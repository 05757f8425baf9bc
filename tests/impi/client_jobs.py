"""Jobs of impirun whose ranks (rank.cc) send packets without MPI."""

import os
import re
import subprocess
import time
import unittest

import stock

BOUND = 60  # seconds, for whatever must happen
KEY = {"IMPI_AUTH_KEY": "0x123456789abcdef"}
IMPIRUN, RANK = (stock.workspace_file(name) for name in ("impi/impirun", "tests/impi/rank"))


class Job(unittest.TestCase):
    def start(self, *words, environment=None, program=(IMPIRUN,), **settings):
        names = {name: value for name, value in os.environ.items() if not name.startswith(("IMPI_", "PMI_", "HYDRA_"))}
        given = KEY if environment is None else environment
        process = subprocess.Popen([*program, *words], env={**names, **given}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                                   **settings)
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        process.kill()
        process.communicate()

    def serve(self, clients, **settings):
        """The server, and its HOST:PORT."""
        server = self.start("-server", str(clients), **settings)
        return server, server.stdout.readline().strip()

    def client(self, number, where, *words, **settings):
        return self.start("-client", str(number), where, *words, **settings)

    def outcome(self, process, timeout=BOUND):
        output, errors = process.communicate(timeout=timeout)
        return process.returncode, output, errors

    def all_exchanged(self, server, clients, counts):
        """The ranks, so many of each client, spoke with one another, and all ended in order."""
        first = 0
        for client, count in zip(clients, counts):
            status, output, errors = self.outcome(client)
            self.assertEqual((status, errors), (0, ""))
            self.assertEqual(sorted(output.splitlines()), sorted(f"rank {first + rank} of {sum(counts)}" for rank in range(count)))
            first += count
        self.assertEqual(self.outcome(server), (0, "", ""))

    def await_joined(self, where):
        """Until a client has connected to the server at HOST:PORT."""
        port = f":{int(where.rpartition(':')[2]):04X} "
        while True:
            with open("/proc/net/tcp", encoding="ascii") as v4, open("/proc/net/tcp6", encoding="ascii") as v6:
                if any(re.match(rf"\s*\d+: \S+{port}\S+ 01", line) for line in (*v4, *v6)):
                    return
            time.sleep(stock.POLL_SECONDS)

    def until_ranks_wait(self, client, ranks):
        for _ in range(ranks):
            self.assertEqual(client.stdout.readline(), "waits\n")

    def failed(self, client, *texts, timeout=BOUND):
        """It ended, and not in order; what it said, with each of these expressions in it."""
        status, _, errors = self.outcome(client, timeout)
        self.assertNotEqual(status, 0)
        for text in texts:
            self.assertRegex(errors, text)
        return errors
