"""IMPI jobs with real processes: an `impirun -server` and its clients, all on this host."""

import time

import mpi
import stock


class ImpiTest(mpi.MpiTest):
    library = mpi.WeftUnderMpiexec

    def start_words(self, *words, before=(), **settings):
        """impirun with these words; `before` them another command that starts it."""
        return self.start_any(*before, stock.workspace_file("impi/impirun"), *words, **settings)

    def start_any(self, *words, **settings):
        job = mpi.Job(list(words), {**self.library.settings(), "IMPI_AUTH_NONE": "1", **settings})
        self.addCleanup(job.kill)
        return job

    def serve(self, clients, before=()):
        """The server, and its HOST:PORT."""
        server = self.start_words("-server", str(clients), before=before)
        deadline = time.monotonic() + mpi.TIMEOUT * self.slow
        while "\n" not in server.output:
            self.assertIsNone(server.status, server.output)
            self.assertLess(time.monotonic(), deadline, "the server does not say where it is")
            time.sleep(mpi.POLL_SECONDS)
        return server, server.output.splitlines()[0]

    def await_end(self, server, clients, timeout=mpi.TIMEOUT):
        """All end with status 0, and leave nothing behind."""
        deadline = time.monotonic() + timeout * self.slow
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
