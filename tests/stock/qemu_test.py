"""QEMU's live migration over RDMA: a guest that never runs goes from one process to another, and its memory with it."""

import json
import os
import random
import socket
import tempfile

import stock

AT, LENGTH = 0x1000000, 4 << 20  # of the guest's memory what is looked at
GUEST = "qemu-system-x86_64 -accel tcg -m 64 -nodefaults -nographic -S"


def connected(path):
    """A socket with the server at `path`, or None while there is none: the file is there a moment before anyone listens."""
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(stock.DEFAULT_TIMEOUT)
    try:
        client.connect(path)
        return client
    except (FileNotFoundError, ConnectionRefusedError):
        client.close()
        return None


class Monitor:
    """QEMU's machine protocol on a socket."""

    def __init__(self, connection):
        self._socket = connection
        self._lines = self._socket.makefile("rw")
        self._lines.readline()
        self("qmp_capabilities")

    def __call__(self, command, **arguments):
        self._lines.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self._lines.flush()
        while True:
            answer = json.loads(self._lines.readline())
            if "event" not in answer:
                return answer["return"] if "return" in answer else answer

    def close(self):
        self._lines.close()
        self._socket.close()


class Qemu(stock.StockTest):

    def setUp(self):
        super().setUp()
        if self.sanitizer:
            self.skipTest("QEMU switches between stacks of its own, of which a sanitizer that is preloaded knows nothing")

    def guest(self, place, name, options=""):
        path = os.path.join(place, name)
        process = self.start(f"{GUEST} -qmp unix:{path},server=on,wait=off {options}")
        connections = []

        def answers():
            connections.append(connected(path))
            return connections[-1] or not process.running()

        self.await_condition(answers, "its monitor")
        self.expect(process.running(), "the guest ended")
        monitor = Monitor(connections[-1])
        self.addCleanup(monitor.close)
        return process, monitor

    def migrate(self, pinned):
        """`pinned`: all memory is registered beforehand and every page goes by RDMA Write; else 1 MiB at a time, and of zeros nothing goes."""
        port = stock.free_port()
        with tempfile.TemporaryDirectory() as place:
            memory, came = os.path.join(place, "memory"), os.path.join(place, "came")
            with open(memory, "wb") as file:
                file.write(random.Random(1).randbytes(LENGTH))
            target, at_target = self.guest(place, "target", f"-incoming rdma:127.0.0.1:{port}")
            source, at_source = self.guest(place, "source", f"-device loader,file={memory},addr={AT:#x},force-raw=on")
            for monitor in (at_source, at_target):
                monitor("migrate-set-capabilities", capabilities=[{"capability": "rdma-pin-all", "state": pinned}])
            at_source("migrate", uri=f"rdma:127.0.0.1:{port}")
            ended = lambda: at_source("query-migrate").get("status") in ("completed", "failed")
            self.await_condition(ended, "the migration")
            self.expect(at_source("query-migrate")["status"] == "completed", "it failed")
            self.await_condition(lambda: at_target("query-status")["status"] != "inmigrate", "the guest at the target")
            at_target("pmemsave", val=AT, size=LENGTH, filename=came)
            for monitor in (at_source, at_target):
                monitor("quit")
            self.await_success(source, target)
            with open(memory, "rb") as before, open(came, "rb") as after:
                self.expect(before.read() == after.read(), "the guest's memory is not what it was")

    def test_migration(self):
        self.migrate(pinned=False)

    def test_migration_with_all_memory_registered(self):
        self.migrate(pinned=True)


if __name__ == "__main__":
    stock.main()
