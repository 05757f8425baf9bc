"""weft-impi-test: all of its scripts against Weft's own client, whose ranks run its test program; and clients that are not what a script needs."""

import os
import subprocess
import sys
import unittest

import mpi
import stock

BOUND = 900  # seconds, for a run of the tester
TESTER, IMPIRUN, RANK = (stock.workspace_file(name) for name in ("impi/tester/weft-impi-test", "impi/impirun", "tests/impi/tester_rank"))
SCRIPTS = stock.workspace_file("impi/tester/scripts")


def test(scripts, *command, patience=60):
    """The exit status of the tester, and what it printed."""
    names = {name: value for name, value in os.environ.items() if not name.startswith(("IMPI_", "PMI_", "HYDRA_", "WEFT_"))}
    done = subprocess.run([TESTER, "client", "-patience", str(patience), *scripts, "--", *command], env={**names, **mpi.WeftUnderMpiexec.settings()},
                          capture_output=True, text=True, timeout=BOUND, check=False)
    return done.returncode, done.stdout + done.stderr


def client(ranks="{ranks}", program=(RANK, "{script}")):
    return [IMPIRUN, "-client", "{client}", "{server}", "{options}", "-n", ranks, *program]


class OwnClient(unittest.TestCase):
    """The scripts of each chapter: what its name begins with."""

    def chapter(self, number):
        scripts = []
        for name in sorted(os.listdir(SCRIPTS)):
            path = os.path.join(SCRIPTS, name)
            with open(path, encoding="utf-8") as file:
                if name.startswith(number) and "target client\n" in file:
                    scripts.append(path)
        self.assertTrue(scripts)
        status, output = test(scripts, *client())
        self.assertEqual(status, 0, output)
        self.assertIn(f"all: {len(scripts)} of {len(scripts)} passed", output)

    def test_chapter_1(self):
        self.chapter("1.")

    def test_chapter_2(self):
        self.chapter("2.")

    def test_chapter_3(self):
        self.chapter("3.")

    def test_chapter_4(self):
        self.chapter("4.")


class WrongClients(unittest.TestCase):
    def fails(self, script, command, *texts):
        status, output = test([os.path.join(SCRIPTS, script)], *command, patience=20)
        self.assertEqual(status, 1, output)
        self.assertIn("all: 0 of 1 passed", output)
        for text in texts:
            self.assertIn(text, output)

    def test_one_with_another_number_of_ranks(self):
        self.fails("3.7.1-eager.script", client(ranks="2"), "announces 2 processes; the script needs 1: start it with {ranks} ranks")

    def test_one_that_sends_nothing(self):
        self.fails("3.7.1-eager.script", client(program=(RANK, os.path.join(SCRIPTS, "4.24-finalize.script"))),
                   "pk_tag is 110, and expected is 1; this came: DATA len 0")

    def test_one_that_ends_at_once(self):
        self.fails("3.7.1-eager.script", ["false"], "ended with status 1 before it connected")

    def test_one_that_speaks_something_else(self):
        speaks = "import socket, sys; host, port = sys.argv[1].split(':'); s = socket.create_connection((host, int(port))); s.sendall(b'GET / HTTP/1.1\\r\\n\\r\\n'); s.recv(1)"
        self.fails("2.3.5-client-labels.script", [sys.executable, "-c", speaks, "{server}"], "the client under test sent a command with a payload of 790644820 bytes")


if __name__ == "__main__":
    stock.main()
