#!/usr/bin/env python3
"""Starts jobs on many hosts that are none, ranks that do nothing but exchange a value each, and prints what mpiexec and its proxies said to one
another: how much each of them has to do when a job starts. A script stands in for ssh, so that all proxies are here.

    tests/mpi_launch/start_messages.py [MPIEXEC EXCHANGE]      (by default those of bazel-bin)
"""

import os
import subprocess
import sys
import tempfile
import time

ROUNDS = ((16, 4), (16, 16), (64, 4), (64, 16))  # hosts, ranks on each
TREE, FLAT = 16, 1000


class Role:
    """What the busiest of those with this part in the tree sent and received."""

    def __init__(self):
        self.count = self.neighbours = self.messages = self.bytes = 0

    def add(self, neighbours, sent, sent_bytes, received, received_bytes):
        self.count += 1
        self.neighbours = max(self.neighbours, neighbours)
        self.messages = max(self.messages, sent + received)
        self.bytes = max(self.bytes, sent_bytes + received_bytes)


class Start:
    """One start of `ranks` ranks on each of `hosts` hosts, where one process starts no more than `branches` proxies."""

    def __init__(self, mpiexec, exchange, hosts, ranks, branches, environment=None):
        self.hosts, self.ranks, self.branches = hosts, ranks, branches
        with tempfile.TemporaryDirectory() as directory:
            shell = os.path.join(directory, "shell")
            with open(shell, "w") as file:
                file.write('#!/bin/sh\nshift\nexec sh -c "$*"\n')
            os.chmod(shell, 0o755)
            # Addresses of nobody's (RFC 5737): no name server is asked.
            names = ",".join(f"198.51.100.{number}:{ranks}" for number in range(hosts))
            words = [mpiexec, "-profile", "-branches", branches, "-launcher-exec", shell, "-hosts", names, exchange, "brief"]
            begin = time.monotonic()
            done = subprocess.run(list(map(str, words)), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300,
                                  env={**os.environ, **(environment or {})})
            self.seconds = time.monotonic() - begin
        if done.returncode != 0 or len(done.stdout.splitlines()) != hosts * ranks:
            raise RuntimeError(f"{words}: status {done.returncode}, {len(done.stdout.splitlines())} ranks spoke\n{done.stderr[-3000:]}")
        self.roles = {"mpiexec": Role(), "inner": Role(), "leaf": Role()}
        for line in done.stderr.splitlines():
            if not line.startswith("  "):
                continue
            name, *numbers = line.split()
            if name == "of":
                continue
            numbers = list(map(int, numbers))
            self.roles["mpiexec" if name == "mpiexec" else "inner" if numbers[0] > 1 else "leaf"].add(*numbers)


HEADER = "hosts x ranks      how   | of       number neighbours messages     bytes | seconds"


def rows(start):
    how = "flat" if start.branches >= start.hosts else f"by {start.branches}"
    for name, role in start.roles.items():
        if role.count != 0:
            yield (f"{start.hosts:5} x {start.ranks:3} = {start.hosts * start.ranks:5} {how:5} | {name:8} {role.count:6} {role.neighbours:10} "
                   f"{role.messages:8} {role.bytes:9} | {start.seconds:.2f}")


def starts(mpiexec, exchange, environment=None):
    for hosts, ranks in ROUNDS:
        for branches in (FLAT, TREE) if hosts > TREE else (FLAT,):
            yield Start(mpiexec, exchange, hosts, ranks, branches, environment)


def main():
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    programs = sys.argv[1:] or [os.path.join(root, "bazel-bin", path) for path in ("pmi/mpiexec", "tests/mpi_launch/exchange")]
    print("What the busiest of each kind sent and received together, from the first proxy to the end of the job\n" + HEADER)
    for start in starts(*programs):
        print(*rows(start), sep="\n", flush=True)


if __name__ == "__main__":
    main()
