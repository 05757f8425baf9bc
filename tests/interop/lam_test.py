"""Weft and LAM/MPI 7.1.4 in one IMPI job, as client 0 and as client 1: whatever LAM can do (docs/supported.md, "IMPI"). See lam-peer and lam_job.c.
And LAM under weft-impi-test: it departs from the specification where the table of impi/tester/README.md says so, and nowhere else.

The daemons that LAM's clients start live until the module ends."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

import impi_jobs
import stock

LAM = stock.workspace_file("tests/interop/lam-peer")
PARTS = ["send", "bsend", "ssend", "rsend", "sendrecv", "many", "persistent", "struct", "probe", "barrier", "reduce", "allreduce"]
TIMEOUT = 120
TESTER, SCRIPTS = stock.workspace_file("impi/tester/weft-impi-test"), stock.workspace_file("impi/tester/scripts")

# Scripts for a client that LAM fails, by what it does.
DEPARTURES = {
    "MPI_LONG has 8 bytes in external32, and MPI_Pack_size says so": ["1.2.2-external32", "4.1-pack"],
    "offers the key also when the user has consented to no authentication only": ["2.3.3-client-none"],
    "follows a server that chooses a method that it did not offer": ["2.3.3-client-not-offered"],
    "joins clients that lack version 0.0": ["2.3.5-client-no-version"],
    "refuses a label that it does not know": ["2.3.5-client-unknown-labels"],
    "goes on when the server or another host has gone": ["2.3.7-client-server-dies", "2.4-client-lost-host"],
    "has the attributes on MPI_COMM_WORLD only": ["2.5-attributes"],
    "sends nothing behind a message whose SYNCACK is missing": ["3.7.1-synchronous-isends"],
    "finds a long message by MPI_Probe only when all of it is there": ["3.7.3-probe"],
    "never cancels, and answers CANCELNO": ["3.7.4-cancel-refused", "3.7.4-cancelled-here", "3.7.4-cancelled-short", "3.7.4-cancels-long",
                                           "3.7.4-cancels-synchronous", "3.7.4-last-of-several"],
    "accepts ackmark 0 or above hiwater, DATALEN 0, and a TAGUB below 32767": ["3.9-ackmark-0-refused", "3.9-ackmark-refused", "3.9-datalen-0-refused",
                                                                              "3.9-tagub-refused"],
    "makes no communicators that span clients": ["4.3.1-context-ids", "4.4-create", "4.5-free", "4.5-free-intercomm", "4.5-free-intercomm-two", "4.6-dup",
                                                 "4.6-dup-intercomm", "4.6-dup-intercomm-two", "4.7-split", "4.8-intercomm-create", "4.9-merge", "4.9-merge-two"],
    "has gather, scatter and what is made of them its own way, in the context -1": [
        "4.12-gather-at-root", "4.12-gather-long", "4.12-gather-short", "4.12-gather-tree", "4.13-gatherv", "4.14-scatter-at-root", "4.14-scatter-long",
        "4.14-scatter-short", "4.14-scatter-tree", "4.15-scatterv", "4.18-scan", "4.19-allgather", "4.20-allgatherv", "4.22-alltoall", "4.23-alltoallv"],
    "reduces in the context for messages": ["4.16-reduce", "4.16-reduce-at-root", "4.16-reduce-in-order", "4.16-reduce-in-order-at-root", "4.16-reduce-tree",
                                            "4.17-reduce-scatter", "4.21-allreduce"],
}


def setUpModule():
    global folder, program, rank
    subprocess.run([LAM, "build"], check=True, timeout=1800)
    folder = tempfile.TemporaryDirectory()
    os.chmod(folder.name, 0o755)  # LAM's ranks are nobody's
    program = os.path.join(folder.name, "lam_job")
    subprocess.run([LAM, "compile", stock.workspace_file("tests/interop/lam_job.c"), program], check=True, timeout=60)
    rank = os.path.join(folder.name, "rank")
    subprocess.run([LAM, "compile", stock.workspace_file("impi/tester/rank.c"), rank], check=True, timeout=60)


def tearDownModule():
    for client in ("0", "1"):
        subprocess.run([LAM, "halt", client], check=False, timeout=60)
    folder.cleanup()


class WithLam(impi_jobs.ImpiTest):

    def run_parts(self, weft, ranks, parts, options=()):
        """Weft is client `weft`; `ranks`: of client 0 and of client 1."""
        server, address = self.serve(2)
        lam = 1 - weft
        # LAM takes the address from which somebody connects for his name, so the two have different ones.
        clients = [
            self.start_words("-client", str(weft), address, "-impi-peer", "lam", "-address", "127.0.0.2", *options, "-n", str(ranks[weft]),
                             stock.workspace_file("tests/interop/lam_job"), *parts),
            self.start_any(LAM, "client", str(lam), address, str(ranks[lam]), program, *parts, TIME_LIMIT=str(TIMEOUT), IMPI_HOST_NAME="127.0.0.1"),
        ]
        self.await_end(server, clients, timeout=TIMEOUT)
        lines = clients[weft].output.splitlines()  # rank 0 is of client 0, and clients[1] is LAM
        self.assertEqual([line for line in lines if line.startswith(("passed", "lam_job.c"))], [f"passed {part}" for part in parts], self.report(server, clients))

    def test_all_parts_with_weft_as_client_0(self):
        self.run_parts(0, (1, 1), [*PARTS, "bcast65536"])

    def test_all_parts_with_weft_as_client_1(self):
        self.run_parts(1, (1, 1), [*PARTS, "bcast65536"])

    def test_two_ranks_at_each(self):
        for weft in (0, 1):
            self.run_parts(weft, (2, 2), [*PARTS, "bcast65536"])

    def test_little_packets_and_a_narrow_window(self):
        for weft in (0, 1):
            self.run_parts(weft, (1, 1), [*PARTS, "bcast1000"], ["-datalen", "1000", "-ackmark", "3", "-hiwater", "5"])


class UnderTheTester(unittest.TestCase):

    def failures(self, scripts):
        """Which of these LAM fails, and what the tester printed. Each host of the tester has an address of its own: LAM knows hosts by theirs."""
        addresses = ",".join(f"127.0.0.{number}" for number in range(2, 9))
        words = [TESTER, "client", "-address", addresses, "-patience", "5", *scripts, "--", LAM, "client", "{client}", "{server}", "{ranks}", rank, "{script}"]
        names = {name: value for name, value in os.environ.items() if not name.startswith("IMPI_")}
        done = subprocess.run(words, env={**names, "TIME_LIMIT": str(TIMEOUT)}, capture_output=True, text=True, timeout=1200, check=False)
        lines = re.findall(r"^[\d.]+ +(passed|FAILED) .*\(.*/(.*)\.script, [\d.]+ s\)$", done.stdout, re.M)
        found = {name: verdict for verdict, name in lines}
        self.assertEqual(len(found), len(scripts), done.stdout + done.stderr)
        return {name for name, verdict in found.items() if verdict == "FAILED"}, done.stdout

    def test_it_departs_where_the_table_says_so(self):
        scripts = []
        for name in sorted(os.listdir(SCRIPTS)):
            with open(os.path.join(SCRIPTS, name), encoding="utf-8") as file:
                if "target client\n" in file:
                    scripts.append(shutil.copy(os.path.join(SCRIPTS, name), folder.name))
        listed = {name for names in DEPARTURES.values() for name in names}
        failed, output = self.failures(scripts)
        self.assertEqual(listed - failed, set(), "it passes these, which the table lists\n" + output)
        unlisted = failed - listed
        if unlisted:  # the daemon of LAM, left over from a job that was cut off, sometimes fails the next one
            print(f"once more: {sorted(unlisted)}")
            again, output = self.failures([os.path.join(folder.name, name + ".script") for name in sorted(unlisted)])
            self.assertEqual(again, set(), output)


if __name__ == "__main__":
    stock.main()
