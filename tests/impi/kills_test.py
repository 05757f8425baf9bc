"""Something of an IMPI job is killed at a time that a seed picks: the server, an impirun, its mpiexec, an agent, a rank (busy.c). All the rest ends soon, and
says where the fault was; nothing stays behind.

IMPI_KILLS (12) seeds from IMPI_KILLS_FIRST (1) on, or IMPI_KILLS_SEED alone:
bazel test --test_env=IMPI_KILLS=1000 --test_timeout=7200 //tests/impi:kills_test
"""

import os
import random
import re
import signal
import tempfile
import time

import impi_jobs
import mpi
import stock

NOTICED = 1  # seconds, until the server has seen that a connection ended
BOUND = 30  # seconds, from the kill until all has ended: mpiexec gives ranks 5 to end, and there are two steps of that
# Words by which a user finds the fault.
NAMED = re.compile(r"client \d+|rank \d+|the server|host \d+|was killed|agent")


class Kills(impi_jobs.ImpiTest):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with tempfile.NamedTemporaryFile("w", encoding="ascii", delete=False) as file:
            cls.addClassCleanup(os.unlink, file.name)
            file.write('#!/bin/sh\nshift\nexec sh -c "$*"\n')  # in ssh's place: the command runs here
        os.chmod(file.name, 0o755)
        cls.ssh = file.name

    def words_of(self, choice, number, where, milliseconds, seed):
        """A client with ranks on this host, or on two names of it: its ranks, and the words that start it."""
        several = choice.random() < 0.3
        ranks = choice.randint(2, 3) if several else choice.randint(1, 3)
        hosts = ["-launcher-exec", self.ssh, "-hosts", f"a{number}.invalid,b{number}.invalid"] if several else []
        return ranks, ["-client", str(number), where, *hosts, "-n", str(ranks), stock.workspace_file("tests/impi/busy"), str(milliseconds), str(seed)]

    def kill_one(self, choice, jobs):
        """Kills a process of all that there are, and tells whose it was and what it is."""
        found = [(job, pid) for job in jobs for pid in sorted(job.members())]
        if not found:
            return None, "nobody"
        job, pid = choice.choice(found)
        try:
            with open(f"/proc/{pid}/cmdline", encoding="utf-8") as file:
                words = file.read().replace("\0", " ")
            os.kill(pid, signal.SIGKILL)
        except OSError:
            words = ""
        return (job, words) if words else (None, "nobody")  # it ended before

    def has_never_joined(self, server, victim, clients):
        """Whether the server still waits for this client, which ended before it said who it is. All others have connected, and a while is over."""
        def connected():
            return server.output.count("has authenticated") - server.output.count("left before it joined")
        deadline = time.monotonic() + BOUND * self.slow
        while victim.status is None or connected() < len(clients) - 1:
            if server.status is not None or time.monotonic() > deadline:
                return False
            time.sleep(mpi.POLL_SECONDS)
        return victim in clients and not server.wait(NOTICED * self.slow) and connected() < len(clients)

    def check_run(self, seed):
        choice = random.Random(seed)
        count = choice.randint(2, 3)
        server, where = self.serve(count)
        milliseconds = choice.choice([10, 300, 1000])
        words = [self.words_of(choice, number, where, milliseconds, seed) for number in range(count)]
        clients = [self.start_words(*command) for _, command in words]
        jobs = [server, *clients]
        time.sleep(choice.uniform(0, 0.5 + milliseconds / 1000) * self.slow)
        victim, killed = self.kill_one(choice, jobs)
        if victim is not None and self.has_never_joined(server, victim, clients):
            self.assertEqual(victim.left_behind(), [], victim.output)
            at = clients.index(victim)  # the user starts it again
            clients[at] = jobs[at + 1] = self.start_words(*words[at][1])
            victim = None

        def story():
            return f"killed: {killed}\n" + self.report(server, clients)
        deadline = time.monotonic() + BOUND * self.slow
        for job in jobs:
            if not job.wait(max(0, deadline - time.monotonic())):
                self.fail(f"still runs: {' '.join(job.words)}\n{story()}" + "".join(job.stacks() for job in clients))
        for job in jobs:
            self.assertEqual(job.left_behind(), [], story())
            for wrong in ("busy.c:", "internal invariant broken", "signal 6 ", "signal 11 ", "Sanitizer"):
                self.assertNotIn(wrong, job.output, story())
            self.assertNotIn(job.status, (-signal.SIGABRT, -signal.SIGSEGV), story())
        for (ranks, _), job in zip(words, clients):
            if job.status == 0:
                self.assertEqual(len(re.findall("^over ", job.output, re.M)), ranks, story())
            elif job is not victim:
                self.assertRegex(job.output, NAMED, story())
        if all(job.status == 0 for job in clients):
            self.assertTrue(server.status == 0 or victim is server, story())
        if victim is None:
            self.assertEqual([job.status for job in jobs], [0] * len(jobs), story())
        # What was found, for who runs many.
        print(f"seed {seed}: {' '.join(map(os.path.basename, killed.split()[:2]))}: {[job.status for job in jobs]}", flush=True)

    def test_all_ends_when_one_is_killed(self):
        one = os.environ.get("IMPI_KILLS_SEED")
        first = int(os.environ.get("IMPI_KILLS_FIRST", 1))
        for seed in [int(one)] if one else range(first, first + int(os.environ.get("IMPI_KILLS", 12))):
            with self.subTest(IMPI_KILLS_SEED=seed):
                self.check_run(seed)
            self.doCleanups()  # files of many jobs


if __name__ == "__main__":
    stock.main()
