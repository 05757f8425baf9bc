"""Ranks die and the others go on, on the library that the first argument names (tests/mpi/mpi.py): each call by itself (recover.c), with those of other
MPI_COMM_WORLDs (worlds.c), and ranks that kill themselves at times that a seed picks while the others agree, shrink and revoke (mortal.c). Whoever lives comes to the end, and all that say what they agreed on
say the same.

SURVIVE_RUNS (12) seeds from SURVIVE_FIRST (1) on, or SURVIVE_SEED alone:
bazel test --test_env=SURVIVE_RUNS=1000 --test_timeout=7200 //tests/mpi_survive:survive_apart_test
"""

import collections
import os
import random
import re
import sys
import time
import unittest

import mpi
import stock

LIBRARY = mpi.LIBRARIES[sys.argv.pop(1)]
KILLED = 137
BOUND = 60  # seconds
TOLD = 15   # ... in which a job ends whose ranks are told of a death: less than any wire takes to notice one


class Survive(mpi.MpiTest):
    library = LIBRARY

    def program(self, name):
        return stock.workspace_file(f"tests/mpi_survive/{name}")

    def outlive(self, ranks, program, *arguments):
        """The lines of a job that goes on without those who die, if anybody does."""
        job = self.start(ranks, self.program(program), *arguments, launcher_options=("-disable-auto-cleanup",))
        self.assertTrue(job.wait(BOUND * self.slow), f"{job.words} still runs: {job.output}\n{job.stacks()}")
        output = job.output
        self.assertEqual(job.status, KILLED if "was killed by signal 9" in output else 0, output)
        self.assertEqual(job.left_behind(), [])
        self.assertNotIn("recover.c:", output)
        self.assertNotIn("mortal.c:", output)
        self.assertNotIn("worlds.c:", output)
        return output

    def test_the_living_go_on(self):
        for what in ("ack", "agree", "shrink", "revoke", "collective", "collectives", "world", "inter", "held", "windows", "gets_from_it", "it_gets", "finalize"):
            for ranks in (3, 5):
                with self.subTest(what=what, ranks=ranks):
                    output = self.outlive(ranks, "recover", what)
                    self.assertEqual(sorted(re.findall(r"lived (\d+)", output)), [str(rank) for rank in range(ranks - 1)], output)

    def test_an_abort_ends_the_processes_of_its_communicator(self):
        for what, ended, status in (("abort_pair", 2, 5), ("abort_pair_by_error", 2, 6), ("abort_self", 1, 5), ("abort_world", 5, 5)):
            with self.subTest(what=what):
                job = self.start(5, self.program("recover"), what, launcher_options=("-disable-auto-cleanup",))
                self.assertTrue(job.wait(BOUND * self.slow), f"{job.words} still runs: {job.output}\n{job.stacks()}")
                self.assertEqual(job.status, status, job.output)
                self.assertEqual(job.left_behind(), [])
                self.assertNotIn("recover.c:", job.output)
                self.assertEqual(sorted(re.findall(r"lived (\d+)", job.output)), [str(rank) for rank in range(5 - ended)], job.output)

    @unittest.skipUnless(LIBRARY is mpi.WeftApart, "there is a connection between each two only where messages go over TCP")
    def test_who_is_taken_for_dead_hears_it(self):
        for ranks in (3, 5):
            output = self.outlive(ranks, "recover", "cut")
            self.assertEqual(sorted(re.findall(r"lived (\d+)", output)), [str(rank) for rank in range(ranks)], output)

    def test_other_worlds_hear_of_a_death_that_no_connection_tells(self):
        for what in ("child", "parent", "sibling"):
            for ranks, children in ((1, 1), (1, 2), (3, 2)):
                with self.subTest(what=what, ranks=ranks, children=children):
                    begun = time.monotonic()
                    output = self.outlive(ranks, "worlds", what, str(children))
                    self.assertLess(time.monotonic() - begun, TOLD * self.slow, output)
                    sizes = {"parent": ranks, **dict.fromkeys(("first", "second") if what == "sibling" else ("child",), children)}
                    lived = [f"{role} {rank}" for role, size in sizes.items() for rank in range(size)]
                    lived.remove({"child": f"child {children - 1}", "parent": f"parent {ranks - 1}", "sibling": f"second {children - 1}"}[what])
                    self.assertEqual(sorted(re.findall(r"(\w+ \d+) lived", output)), sorted(lived), output)

    def test_a_job_replaces_what_it_lost(self):
        for ranks in (2, 4):
            job = self.start(ranks, stock.workspace_file("examples/mpi/survivor"), "20", launcher_options=("-disable-auto-cleanup",))
            self.assertTrue(job.wait(BOUND * self.slow), f"{job.words} still runs: {job.output}\n{job.stacks()}")
            self.assertIn(f"survivor: 20 steps of {ranks} ranks, the sum is right", job.output)
            self.assertEqual(job.status, KILLED, job.output)

    def check_run(self, seed):
        choice = random.Random(seed)
        ranks = choice.randint(2, 6)
        window = choice.choice([300, 3000, 30000])
        output = self.outlive(ranks, "mortal", str(seed), str(window))
        dead = set(re.findall(r"rank (\d+) \(\S*mortal\) was killed by signal 9", output))
        lived = set(re.findall(r"lived (\d+)", output))
        self.assertEqual(lived | dead, {str(rank) for rank in range(ranks)}, output)
        said = collections.defaultdict(set)
        for step, words in re.findall(r"^said (\d+ \w+) (.*)$", output, re.M):
            said[step].add(words)
        for step, words in said.items():
            self.assertEqual(len(words), 1, f"{step}: {words}\n{output}")
            self.assertNotIn("wrongly", "".join(words), output)

    def test_whoever_lives_agrees_with_all_others(self):
        one = os.environ.get("SURVIVE_SEED")
        first = int(os.environ.get("SURVIVE_FIRST", 1))
        seeds = [int(one)] if one else range(first, first + int(os.environ.get("SURVIVE_RUNS", 12)))
        for seed in seeds:
            with self.subTest(SURVIVE_SEED=seed):
                self.check_run(seed)


if __name__ == "__main__":
    unittest.main()
