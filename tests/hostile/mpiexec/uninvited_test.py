"""Strangers at the port where mpiexec waits for its proxies, and what they could learn. A script stands in for ssh: it keeps the invitation
to itself until the test lets it go on."""

import os
import socket
import threading
import time

import launch

SSH = """#!/bin/sh
read invitation
echo "$invitation" > {gate}.new; mv {gate}.new {gate}
while test ! -e {gate}.open; do sleep .01; done
shift
cat {gate}.open | exec sh -c "$*"
"""
LIMITED = """#!/bin/sh
ulimit -n {limit}
exec {mpiexec} "$@"
"""


class Relay:
    """Carries one connection to `port`, and keeps what it saw."""

    def __init__(self, port):
        self.seen = b""
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        client, _ = self._listener.accept()
        server = socket.create_connection(("127.0.0.1", self._port))
        back = threading.Thread(target=self._carry, args=(server, client), daemon=True)
        back.start()
        self._carry(client, server)
        back.join()

    def _carry(self, source, target):
        try:
            while data := source.recv(65536):
                self.seen += data
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass


class Uninvited(launch.LaunchTest):

    def setUp(self):
        super().setUp()
        self.gate = os.path.join(self.directory, "gate")
        self.ssh = self.script("slow-ssh", SSH.format(gate=self.gate))

    def script(self, name, text):
        path = os.path.join(self.directory, name)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, 0o755)
        return path

    def start_job(self, *words, **options):
        """mpiexec, and the words of the invitation that its proxy has not got yet."""
        process = self.start("-launcher-exec", self.ssh, "-hosts", "a.invalid", *words, **options)
        self.await_files("gate")
        with open(self.gate) as file:
            return process, file.read().split()

    def let_go_on(self, invitation):
        with open(self.gate + ".new", "w") as file:
            file.write(" ".join(invitation) + "\n")
        os.rename(self.gate + ".new", self.gate + ".open")

    def expect_hello(self, process):
        out, err = process.communicate(timeout=launch.TIMEOUT)
        self.assertEqual((process.returncode, out), (0, "hello\n"), err)

    def connect(self, count, port):
        strangers = [socket.create_connection(("127.0.0.1", int(port)), timeout=20) for _ in range(count)]
        self.addCleanup(lambda: [stranger.close() for stranger in strangers])

    def test_silent_strangers_give_way_to_the_proxy(self):
        process, invitation = self.start_job("echo", "hello")
        self.connect(300, invitation[2])
        self.let_go_on(invitation)
        self.expect_hello(process)

    def test_without_a_descriptor_mpiexec_waits_for_one_and_does_not_spin(self):
        limited = self.script("limited", LIMITED.format(limit=40, mpiexec=launch.mpiexec()))
        process, invitation = self.start_job("echo", "hello", launcher=limited)
        self.connect(100, invitation[2])
        time.sleep(0.2)
        before = self.processor_seconds(process.pid)
        time.sleep(0.5)
        self.assertLess(self.processor_seconds(process.pid) - before, 0.2)
        self.let_go_on(invitation)
        self.expect_hello(process)

    def processor_seconds(self, pid):
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def test_the_secret_is_seen_neither_on_the_network_nor_in_a_list_of_processes(self):
        process, invitation = self.start_job("-n", 2, launch.exchange(), "get-early")
        secret = invitation[3]
        relay = Relay(int(invitation[2]))
        self.assertEqual(len(secret), 32)
        looked_at = []
        for pid in self.processes():
            for what in ("cmdline", "environ"):
                try:
                    with open(f"/proc/{pid}/{what}", "rb") as file:
                        self.assertNotIn(secret.encode(), file.read(), f"{what} of {pid}")
                except (FileNotFoundError, ProcessLookupError):
                    continue  # it ended since it was listed
                looked_at.append((pid, what))
        self.assertIn((process.pid, "cmdline"), looked_at)
        self.assertIn((process.pid, "environ"), looked_at)
        invitation[2] = str(relay.port)
        self.let_go_on(invitation[:4] + ["127.0.0.1"])
        out, err = process.communicate(timeout=launch.TIMEOUT)
        self.assertEqual(process.returncode, 0, err)
        # The ranks have it all the same.
        self.assertEqual(sorted(out.splitlines()), [f"rank {r} of 2, application 0, universe -1, secret 32" for r in range(2)])
        self.assertIn(b"get-early", relay.seen)
        self.assertNotIn(secret.encode(), relay.seen)
        self.assertNotIn(bytes.fromhex(secret), relay.seen)


if __name__ == "__main__":
    launch.main()
