"""Jobs that were started apart meet at ports: programs of this folder, over the wire that the first argument names."""

import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import mpi
import stock

WIRE = sys.argv.pop(1)
MPI_SUCCESS, MPI_ERR_PORT = 0, 38
MPIX_ERR_PROC_FAILED = 101
MOST_GROWTH = 8000  # bytes in 20 rounds, of a heap that is not quite the same each time (meet.c)
MADE_ONCE = 200_000  # bytes that a process may need for the first time later than others: a buffer of its RNIC


def program(name):
    return stock.workspace_file("tests/mpi_dynamic/" + name)


class Meeting(mpi.MpiTest):
    library = mpi.WeftOverSctp if WIRE == "sctp" else mpi.WeftUnderMpiexec

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.port = os.path.join(directory.name, "port")

    def launch(self, words, *arguments, **settings):
        job = mpi.Job([*words, *arguments], {**self.library.settings(), **settings})
        self.addCleanup(job.kill)
        return job

    def finish(self, job, timeout=mpi.TIMEOUT):
        command = " ".join(job.words)
        if not job.wait(timeout * self.slow):
            self.fail(f"{command}\nstill runs; output:\n{job.output}\n{job.stacks()}")
        self.assertEqual(job.status, 0, f"{command}\n{job.output}")
        self.assertEqual(job.left_behind(), [], command)
        return job.output

    def meet(self, accepting, connecting, rounds):
        first = self.launch(accepting, program("meet"), "accept", self.port, str(rounds))
        second = self.launch(connecting, program("meet"), "connect", self.port, str(rounds))
        for job in (first, second):
            self.finish(job)

    def mpiexec(self, ranks):
        return [*mpi.weft_mpiexec(), "-n", str(ranks)]

    def await_line(self, job, start, count=1):
        deadline = time.monotonic() + mpi.TIMEOUT * self.slow
        while True:
            lines = [l for l in job.output.splitlines() if l.startswith(start)]
            if len(lines) >= count:
                return lines[count - 1]
            self.assertLess(time.monotonic(), deadline, f"no '{start}' in: {job.output}")
            self.assertIsNone(job.status if not lines else None, job.output)
            time.sleep(mpi.POLL_SECONDS)

    def classes(self, job):
        return [tuple(line.split()) for line in job.output.splitlines() if line.split()[0] in ("waits", "met", "heard", "parted")]

    def kill_ranks(self, job):
        for pid in job.members():
            os.kill(pid, signal.SIGKILL)
        job.wait(mpi.TIMEOUT)


class MeetingTest(Meeting):
    def test_a_hundred_meetings_leave_nothing_behind(self):
        self.meet(self.mpiexec(2), self.mpiexec(3), 100 if not self.sanitizer else 20)

    def test_jobs_of_one_and_of_many(self):
        for ranks in ((1, 1), (1, 4), (4, 1), (1, 20)):  # the last: more than queues are made for at first
            with self.subTest(ranks=ranks):
                if os.path.exists(self.port):
                    os.remove(self.port)
                self.meet(self.mpiexec(ranks[0]), self.mpiexec(ranks[1]), 2)

    def test_no_queue_pair_and_no_byte_of_the_other_job_is_left(self):
        ranks, rounds = 2, 100
        held = {number: os.path.join(os.path.dirname(self.port), f"go_on_{number}") for number in (20, 40, 60, 80, rounds - 1)}
        hold = " ".join(f"{number} {path}" for number, path in held.items())
        jobs = [self.launch(self.mpiexec(ranks), program("meet"), how, self.port, str(rounds), HOLD=hold, GLIBC_TUNABLES="glibc.malloc.tcache_count=0") for how in ("accept", "connect")]
        found = {}
        for number, path in held.items():
            for job in jobs:
                self.await_line(job, f"holds {number} ", ranks)
            lines = [line.split() for job in jobs for line in job.output.splitlines() if line.startswith(f"holds {number} ")]
            found[number] = {pid: (self.queue_pairs(pid), int(heap)) for _, _, pid, heap in lines}
            with open(path, "w"):
                pass
        for job in jobs:
            self.finish(job)
        print(found, flush=True)
        stages = [found[number] for number in held]
        for pid in stages[0]:
            self.assertLessEqual(stages[-1][pid][0], stages[0][pid][0])
            if not self.sanitizer:  # which has a heap of its own
                growths = [after[pid][1] - before[pid][1] for before, after in itertools.pairwise(stages)]
                self.assertLess(min(growths), MOST_GROWTH, growths)  # what each meeting leaves is in all of them
                self.assertLess(max(growths), MADE_ONCE, growths)

    def queue_pairs(self, pid):
        done = subprocess.run([stock.weft(), "stat", pid, "--json"], capture_output=True, text=True, env={**os.environ, **self.library.settings()}, timeout=mpi.TIMEOUT)
        self.assertEqual(done.returncode, 0, done.stderr)
        return sum(pair["state"] != "RESET" for pair in json.loads(done.stdout)["queue_pairs"])

    def test_singletons_and_jobs_of_hydra(self):
        hydra = [*mpi.hydra(), "-n", "2"]
        for words in (([], []), ([], hydra), (hydra, self.mpiexec(2))):
            with self.subTest(words=words):
                if os.path.exists(self.port):
                    os.remove(self.port)
                self.meet(*words, 2)

    def test_three_jobs_in_a_ring_become_one(self):
        jobs = [self.launch(self.mpiexec(number + 1), program("trio"), str(number), self.port) for number in range(3)]
        for job in jobs:
            self.finish(job)

    def test_what_ports_refuse(self):
        for ranks in (1, 2):
            self.run_job(ranks, program("ports"))

    def test_spawn(self):
        for ranks in (1, 3):
            self.run_job(ranks, program("spawn"))

    def test_spawn_under_hydra(self):
        self.finish(self.launch([*mpi.hydra(), "-n", "2"], program("spawn"), "hydra"))

    def test_spawn_and_names_of_a_process_that_no_launcher_started(self):
        for name in ("spawn", "names"):
            self.finish(self.launch([], program(name), WEFT_PMI_MPIEXEC=mpi.weft_mpiexec()[0]))

    def test_spawn_of_what_ends_without_mpi_init_ends_the_job(self):
        job = self.launch(self.mpiexec(2), program("spawn"), "silent")
        self.assertTrue(job.wait(mpi.TIMEOUT * self.slow), job.output)
        self.assertEqual(job.status, 1, job.output)
        self.assertIn("(/bin/true) exited with status 0 without MPI_Init, where the job that spawned it waits for it", job.output)
        self.assertEqual(job.left_behind(), [])

    def test_info_of_a_spawn(self):
        directory = os.path.dirname(self.port)
        shell = os.path.join(directory, "shell")
        for name, text in (("one.invalid", "one.invalid"), ("two.invalid", "two.invalid"), ("hosts", "two.invalid\none.invalid\n"),
                           ("shell", f'#!/bin/bash\n[ $1 = one.invalid ] && exec 99< {program("spawn_info")}\nexec 98< {directory}/$1\nexec sh -c "$2"\n')):
            with open(os.path.join(directory, name), "w") as file:
                file.write(text)
        os.chmod(shell, 0o755)
        self.run_job(2, program("spawn_info"), directory, launcher_options=("-launcher-exec", shell, "-usize", "9"))

    def test_published_names(self):
        for ranks in (1, 2):
            self.run_job(ranks, program("names"))

    def test_join(self):
        self.run_job(2, program("join"))


class DeathTest(Meeting):
    def wait_program(self, how):
        return self.launch([], program("wait"), how, self.port)

    def test_one_who_waited_to_be_accepted_and_died_is_passed_over(self):
        dead = self.wait_program("accept")  # its port, while it lives
        self.await_line(dead, "waits")
        os.kill(dead.pid, signal.SIGSTOP)
        caller = self.wait_program("connect")
        self.await_caller_at(dead)
        self.kill_ranks(caller)
        os.kill(dead.pid, signal.SIGCONT)
        other = self.wait_program("connect")
        self.assertEqual(self.classes(self.done(other)), [("waits", "0"), ("met", "0"), ("heard", "0"), ("parted", "0")])
        self.assertEqual(self.classes(self.done(dead)), [("waits", "0"), ("met", "0"), ("heard", "0"), ("parted", "0")])

    def await_caller_at(self, stopped):
        """Until a process has connected with one that is stopped."""
        deadline = time.monotonic() + mpi.TIMEOUT * self.slow
        while not mpi.callers_at(stopped.pid):
            self.assertLess(time.monotonic(), deadline, "nobody called")
            time.sleep(mpi.POLL_SECONDS)

    def test_one_that_is_stopped_before_it_is_accepted_keeps_no_other_waiting(self):
        go = os.path.join(os.path.dirname(self.port), "go")
        owner = self.launch([], program("late"), self.port, go)
        self.await_line(owner, "waits")
        stopped = self.wait_program("connect")
        self.await_line(owner, "knocked")
        os.kill(stopped.pid, signal.SIGSTOP)
        other = self.wait_program("connect")
        self.await_line(other, "waits")
        with open(go, "w"):
            pass
        self.assertEqual(self.classes(self.done(other)), [("waits", "0"), ("met", "0"), ("heard", "0"), ("parted", "0")])
        # It goes on, and is met by the next call.
        os.kill(stopped.pid, signal.SIGCONT)
        self.assertEqual(self.classes(self.done(stopped)), [("waits", "0"), ("met", "0"), ("heard", "0"), ("parted", "0")])
        self.assertEqual(self.classes(self.done(owner)), [("waits", "0"), ("met", "0"), ("parted", "0"), ("met", "0"), ("parted", "0")])

    def test_a_caller_waits_as_long_as_the_setting_says(self):
        owner = self.launch([], program("late"), self.port, os.path.join(os.path.dirname(self.port), "go"))
        self.await_line(owner, "waits")
        caller = self.launch([], program("wait"), "connect", self.port, WEFT_MPI_CONNECT_TIMEOUT="1")
        self.assertEqual(self.classes(self.done(caller)), [("waits", "0"), ("met", str(MPI_ERR_PORT))])

    def done(self, job):
        self.finish(job)
        return job

    def test_a_port_whose_owner_died_is_refused_at_once(self):
        owner = self.wait_program("accept")
        self.await_line(owner, "waits")
        self.kill_ranks(owner)
        late = self.done(self.wait_program("connect"))
        self.assertEqual(self.classes(late), [("waits", "0"), ("met", str(MPI_ERR_PORT))])

    def test_the_owner_of_the_port_dies_while_one_waits_at_it(self):
        owner = self.wait_program("accept")
        self.await_line(owner, "waits")
        os.kill(owner.pid, signal.SIGSTOP)
        caller = self.wait_program("connect")
        self.await_caller_at(owner)
        self.kill_ranks(owner)
        self.assertEqual(self.classes(self.done(caller)), [("waits", "0"), ("met", str(MPI_ERR_PORT))])

    def test_who_dies_afterwards_is_an_error_of_calls_that_need_him(self):
        for killed in ("listen", "talk"):
            with self.subTest(killed=killed):
                first = self.wait_program("listen")
                self.await_line(first, "waits")
                second = self.wait_program("talk")
                for job in (first, second):
                    self.await_line(job, "met 0")
                self.kill_ranks(first if killed == "listen" else second)
                left = self.done(second if killed == "listen" else first)
                self.assertIn(("heard", str(MPIX_ERR_PROC_FAILED)), self.classes(left))
                os.remove(self.port)

    def test_who_dies_half_way_in_a_constructor_leaves_nobody_waiting_for_another(self):
        # Over SCTP those that do not speak to the dead learn of it after 20 s: the deaths of which all know before.
        few = ["26"] if WIRE == "sctp" else []
        living = self.launch(self.mpiexec(3), program("halfway"), "live", self.port, *few)
        deaths = int(self.await_line(living, "deaths").split()[1])
        for number in range(deaths):
            dying = self.launch([], program("halfway"), "die", self.port)
            if not dying.wait(mpi.TIMEOUT * self.slow) or dying.status != -signal.SIGKILL:
                self.fail(f"death {number}: status {dying.status}\n{dying.output}\n{living.output}\n{living.stacks()}")
        self.finish(living)

    def test_who_dies_between_the_rounds_of_a_constructor_leaves_nobody_waiting_for_another(self):
        deaths = int(os.environ.get("ROUNDS_DEATHS", "48" if WIRE == "tcp" and not self.sanitizer else "16"))
        first = int(os.environ.get("ROUNDS_FIRST", "1"))
        print(f"ROUNDS_FIRST={first} ROUNDS_DEATHS={deaths}", flush=True)
        living = self.launch(self.mpiexec(3), program("rounds"), "live", self.port, str(deaths))
        self.await_line(living, "ready")
        for number in range(deaths):
            dying = self.launch([], program("rounds"), "die", self.port, str(first + number))
            if not dying.wait(mpi.TIMEOUT * self.slow) or dying.status != -signal.SIGKILL:
                self.fail(f"death {number}: status {dying.status}\n{dying.output}\n{living.output}\n{living.stacks()}")
        print(self.finish(living).splitlines()[-1], flush=True)


if __name__ == "__main__":
    stock.main()
