"""What a call waits for beside messages - the launcher, a name server, a socket - holds up neither other threads of the process nor its messages (beside.c)."""

import os
import tempfile
import time
import unittest

import mpi
import stock


class Beside(mpi.MpiTest):
    library = mpi.WeftUnderMpiexec

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.gate = os.path.join(directory.name, "gate")
        self.shell = os.path.join(directory.name, "shell")
        self.names = os.path.join(directory.name, "names")
        with open(self.shell, "w") as file:
            file.write(f'#!/bin/sh\nwhile test ! -e {self.gate}; do sleep .01; done\nexec sh -c "$2"\n')
        os.chmod(self.shell, 0o755)

    def call(self, how, name, *options, **settings):
        with self.subTest(how=how, call=name):
            self.run_job(2, stock.workspace_file("tests/mpi_dynamic/beside"), how, name, launcher_options=options, **settings)

    def test_join(self):
        for how in "threads", "progress":
            self.call(how, "join")

    def test_spawn_on_a_host_that_is_slow(self):
        for how in "threads", "progress":
            self.call(how, "spawn", "-launcher-exec", self.shell, GATE=self.gate)
            os.remove(self.gate)

    def test_names_where_the_name_server_says_nothing(self):
        server = mpi.Job([*mpi.weft_mpiexec(), "-nameserver-run", self.names], self.library.settings())
        self.addCleanup(server.kill)
        deadline = time.monotonic() + mpi.TIMEOUT * self.slow
        while not os.path.exists(self.names):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(mpi.POLL_SECONDS)
        for name in "publish", "lookup", "unpublish":
            for how in "threads", "progress":
                self.call(how, name, "-nameserver", self.names, NAMES=str(server.pid))


if __name__ == "__main__":
    unittest.main()
