"""Somebody dies while jobs meet, spawn and part: a seed picks who, when and in what (mortal.c), over the wire that the first argument names. Whoever it is, in half
a minute everything has ended, nothing is left of it, and a job that had no part in the death has ended in order, with no descriptor more than before.

DEATH_RUNS (25) seeds from DEATH_FIRST (1000) on, or DEATH_SEED alone; DEATH_VERBOSE says a line for each, DEATH_TRACE has the jobs say all they do:
bazel test --test_env=DEATH_RUNS=1000 --test_timeout=7200 //tests/mpi_dynamic:death_tcp_test
"""

import collections
import ctypes
import os
import random
import signal
import sys
import tempfile
import time
import unittest

import mpi
import stock

WIRE = sys.argv.pop(1)
BOUND = 30  # seconds, for everything to end
MOST_FAILURES = 5
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 1 << 18

# What each role says of itself when nobody dies (mortal.c).
BEGIN, END = ["starts", "initialised", "begins"], ["checks", "finalizes", "ends"]


def rounds(names, count=2):
    return [f"{name}.{number}" for number in range(count) for name in names.split()]


MEETING = rounds("meets met talks merges puts parts disconnects parted")
SPAWNING = rounds("spawns spawned disconnects parted")
CROSSING = ["accepts", "accepted", "connects", "connected", "disconnects", "parted"]
STEPS = {
    "accept": MEETING,
    "connect": MEETING,
    "cross0": CROSSING,
    "cross1": CROSSING,
    "alone": ["waits"],
    "serve": ["publishes", "looks", *MEETING, "unpublishes"],
    "ask": ["looks", *MEETING],
    "spawn": SPAWNING,
    "grow": SPAWNING,
    "branch": [*SPAWNING, "talks", "parts"],
    "child": ["talks", "parts"],
}
ROOT_ONLY = ("publishes", "unpublishes")

# The roles that jobs are started with; whom these spawn.
SCENARIOS = {
    "meet": ["accept", "connect"],
    "part": ["accept", "connect"],
    "cross": ["cross0", "cross1"],
    "alone": ["alone"],
    "names": ["serve", "ask"],
    "spawn": ["spawn"],
    "grow": ["grow"],
}
SPAWNED = {"spawn": ["child"], "grow": ["branch", "child"]}


class Plan:
    """What a seed picks."""

    def __init__(self, scenario, choice):
        self.scenario = scenario
        self.ranks = {role: choice.randint(1, 3 if scenario != "grow" else 2) for role in SCENARIOS[scenario]}
        self.children = choice.randint(1, 3 if scenario != "grow" else 2)
        self.singletons = {role for role, ranks in self.ranks.items() if scenario in ("meet", "part") and ranks == 1 and choice.random() < 0.3}
        self.order = choice.sample(SCENARIOS[scenario], len(SCENARIOS[scenario]))
        self.pause = choice.choice([0, 0, choice.uniform(0, 0.1)])  # seconds between their starts
        self.role = choice.choice(SCENARIOS[scenario] + SPAWNED.get(scenario, []))
        steps = BEGIN + STEPS[self.role] + END
        if scenario == "part":
            steps = [step for step in steps if step.startswith(("parts", "disconnects", "parted"))]
        self.step = choice.choice(steps)
        self.rank = 0 if self.step in ROOT_ONLY else choice.randrange(self.ranks.get(self.role, self.children))
        self.microseconds = choice.choice([0, 0, round(10 ** choice.uniform(1, 4.5))])
        victims = ["self"] * 3 + ["proxy", "mpiexec"] + ["names"] * (scenario == "names")
        self.victim = "self" if self.role in self.singletons else choice.choice(victims)

    def doomed(self):
        """The role of the job that whoever dies belongs to; None: of none."""
        if self.victim == "names":
            return None
        return self.role if self.role in self.ranks else next(iter(self.ranks))

    def __str__(self):
        jobs = ", ".join(f"{role} of {ranks}" + (" without mpiexec" if role in self.singletons else "") for role, ranks in self.ranks.items())
        return (f"{self.scenario}: {jobs}, {self.children} children each, {self.order[0]} first, {self.pause:.3f} s between; {self.microseconds} us after "
                f"rank {self.rank} of {self.role} comes to '{self.step}' it kills {self.victim}")


def have_own_temporary_directories():
    """Empty ones at /tmp and /dev/shm for this process and its children. False: it may not."""
    libc = ctypes.CDLL(None, use_errno=True)
    places = [__file__, tempfile.gettempdir(), stock.workspace_file("tests/mpi_dynamic/mortal"), sys.executable]
    if any(os.path.realpath(place).startswith(("/tmp/", "/dev/shm/")) for place in places) or libc.unshare(CLONE_NEWNS) != 0:
        return False
    if libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) != 0:
        return False
    return all(libc.mount(b"none", place, b"tmpfs", 0, b"mode=1777") == 0 for place in (b"/tmp", b"/dev/shm"))


class Run:
    """The jobs of one plan."""

    def __init__(self, test, plan, directory, **settings):
        self.plan = plan
        self.test = test
        self.jobs = {}
        self.names = None
        self.mark = os.path.join(directory, "dead")
        words = []
        names_file = os.path.join(directory, "names")
        if plan.scenario == "names":
            self.names = test.launch([*mpi.weft_mpiexec(), "-nameserver-run", names_file])
            test.await_file(names_file)
            words = ["-nameserver", names_file]
        victim = str(self.names.pid) if plan.victim == "names" else plan.victim
        death = f"{plan.role} {plan.rank} {plan.step} {plan.microseconds} {victim}"
        for role in plan.order:
            command = [] if role in plan.singletons else [*mpi.weft_mpiexec(), *words, "-n", str(plan.ranks[role])]
            number = role[-1] if plan.scenario == "cross" else str(plan.children)
            self.jobs[role] = test.launch([*command, test.program, role, os.path.join(directory, "port"), number],
                                          **{"DEATH": death, "DEATH_MARK": self.mark, **settings})
            time.sleep(plan.pause)

    def died(self):
        return os.path.exists(self.mark)

    def may_fail(self, role):
        """It lost one of its own, or came when the name server was dead already."""
        came_late = self.plan.victim == "names" and "mpiexec: cannot use the name server" in self.jobs[role].output
        return self.died() and (role == self.plan.doomed() or came_late)

    def everyone(self):
        return {**self.jobs, **({"name server": self.names} if self.names else {})}

    def story(self):
        return "\n".join(f"{role}: status {job.status}\n{job.output}" for role, job in self.everyone().items())

    def stacks(self):
        return "\n".join(f"{role}:\n{job.stacks()}" for role, job in self.everyone().items() if job.members())

    def await_end(self, seconds):
        """What is wrong with it; empty: nothing is."""
        deadline = time.monotonic() + seconds
        for role, job in self.jobs.items():
            if not job.wait(max(0, deadline - time.monotonic())):
                return f"{role} still runs after {seconds} s\n{self.stacks()}"
        if self.names:
            self.names.terminate()
            if not self.names.wait(mpi.LINGER_SECONDS):
                return "the name server still runs"
        for role, job in self.everyone().items():
            if left := job.left_behind():
                return f"{role} left processes behind: {left}\n{self.stacks()}"
        return ""

    def end(self):
        for job in self.everyone().values():
            job.kill()


class DeathTest(unittest.TestCase):
    library = {"tcp": mpi.WeftApart, "sctp": mpi.WeftOverSctp, "same_host": mpi.WeftUnderMpiexec}[WIRE]

    @classmethod
    def setUpClass(cls):
        cls.slow = 8 if stock.sanitizer()[0] else 1
        cls.program = stock.workspace_file("tests/mpi_dynamic/mortal")
        cls.own_directories = have_own_temporary_directories()
        if not cls.own_directories:
            print("no mount namespace of its own: what is left in /tmp and /dev/shm is not looked for")

    def launch(self, words, **settings):
        trace = {"WEFT_TRACE": "1"} if os.environ.get("DEATH_TRACE") else {}
        return mpi.Job(words, {**self.library.settings(), **trace, **settings})

    def await_file(self, path):
        deadline = time.monotonic() + BOUND * self.slow
        while not os.path.exists(path):
            self.assertLess(time.monotonic(), deadline, path)
            time.sleep(mpi.POLL_SECONDS)

    def play(self, plan, check, **settings):
        with tempfile.TemporaryDirectory() as directory:
            run = Run(self, plan, directory, **settings)
            try:
                wrong = run.await_end(BOUND * self.slow) or check(run)
                if not wrong and self.own_directories:
                    left = [os.path.join(place, name) for place in ("/tmp", "/dev/shm") for name in os.listdir(place)
                            if os.path.join(place, name) != directory]
                    wrong = f"left behind: {left}" if left else ""
                return run.died(), f"{wrong}\n{run.story()}" if wrong else ""
            finally:
                run.end()

    def test_when_nobody_dies_every_step_is_taken(self):
        for scenario in SCENARIOS:
            with self.subTest(scenario=scenario):
                plan = Plan(scenario, random.Random(1))
                plan.rank = -1

                def check(run):
                    said = {tuple(line.split(" ")) for job in run.jobs.values() for line in job.output.splitlines()}
                    return "\n".join(f"{role} does not come to {step}" for role in SCENARIOS[scenario] + SPAWNED.get(scenario, [])
                                     for step in BEGIN + STEPS[role] + END if (role, "0", step) not in said)

                died, wrong = self.play(plan, check, PATIENCE="1" if scenario == "alone" else "20")
                self.assertEqual((died, wrong), (False, ""), wrong)

    def test_whoever_dies(self):
        runs = int(os.environ.get("DEATH_RUNS", "25"))
        first = int(os.environ.get("DEATH_FIRST", "1000"))
        seeds = range(first, first + runs)
        if "DEATH_SEED" in os.environ:
            seeds = [int(os.environ["DEATH_SEED"])]
        print(f"DEATH_FIRST={first} DEATH_RUNS={runs}", flush=True)
        deaths = failures = 0
        counts = {kind: collections.Counter() for kind in ("scenario", "step", "victim")}
        for seed in seeds:
            choice = random.Random(seed)
            plan = Plan(choice.choice(list(SCENARIOS)), choice)

            def check(run):
                return "\n".join(f"{role} lost nobody and ended with status {job.status}" for role, job in run.jobs.items()
                                 if job.status != 0 and not run.may_fail(role))

            began = time.monotonic()
            died, wrong = self.play(plan, check)
            deaths += died
            if died:
                for kind, name in (("scenario", plan.scenario), ("step", plan.step.split(".")[0]), ("victim", plan.victim)):
                    counts[kind][name] += 1
            if os.environ.get("DEATH_VERBOSE"):
                print(f"DEATH_SEED={seed} {time.monotonic() - began:.2f} s {plan}", flush=True)
            if wrong:
                failures += 1
                with self.subTest(DEATH_SEED=seed):
                    print(f"DEATH_SEED={seed} {plan}\n{wrong}", flush=True)
                    self.fail(f"DEATH_SEED={seed}\n{plan}")
            if failures >= MOST_FAILURES:
                break
        print(f"{deaths} deaths in {len(seeds)} runs", flush=True)
        for kind, count in counts.items():
            print(f"by {kind}: " + ", ".join(f"{name} {number}" for name, number in sorted(count.items())), flush=True)


if __name__ == "__main__":
    stock.main()
