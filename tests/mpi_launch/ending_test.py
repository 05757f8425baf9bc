"""How jobs end: ranks that die, launchers that are killed, signals. Nothing is left."""

import os
import signal
import sys

import launch

# Leaves children of every kind behind: in the same group, in a session of its own, and its grandchild whose parent has gone.
SPREAD = "sleep 300 & setsid sleep 300 & (setsid sh -c 'sleep 300 & exec sleep 300' &); "

# Writes to its standard error until nobody takes any more, and aborts then.
SAYS_ALL_IT_CAN = """
import os, select, time

lines = 0
while select.select([], [2], [], 1)[1]:
    os.write(2, b"%015d\\n" % lines)
    lines += 1
os.write(int(os.environ["PMI_FD"]), b"cmd=abort exitcode=7\\n")
with open("said.new", "w") as file:
    file.write(str(lines))
time.sleep(0.5)  # for a launcher that would say it first
os.rename("said.new", "said")
time.sleep(300)
"""


def sh(script):
    return ["sh", "-c", script]


class Ranks(launch.LaunchTest):

    def expect_end(self, done, status, words):
        self.assertEqual(done.status, status, done)
        self.assertIn(words, done.err, done)
        self.assertLess(done.seconds, 15, done)
        self.expect_nothing_left()

    def test_a_rank_that_dies_before_finalize_ends_the_others(self):
        for words, status, wanted in ((("die", 9), 137, "rank 1 (%s) was killed by signal 9"),
                                      (("exit", 5), 5, "rank 1 (%s) exited with status 5 without MPI_Finalize; the job ends"),
                                      (("exit", 0), 1, "rank 1 (%s) exited with status 0 without MPI_Finalize; the job ends"),
                                      (("abort", 7), 7, "rank 1 (%s) aborted the job with code 7: asked to"),
                                      (("abort", 0), 0, "aborted the job with code 0"),
                                      (("abort", 256), 1, "aborted the job with code 256")):
            done = self.run_job("-n", 4, launch.exchange(), *words)
            self.expect_end(done, status, wanted.replace("%s", launch.exchange()))

    def test_what_a_rank_says_before_it_aborts_comes_before_the_news(self):
        process = self.start("-n", 1, sys.executable, "-c", SAYS_ALL_IT_CAN)
        self.await_files("said")
        _, err = process.communicate(timeout=launch.TIMEOUT)
        self.assertEqual(process.returncode, 7, err[-2000:])
        *said, news = err.splitlines()
        self.assertEqual(news.split(" (")[0], "mpiexec: rank 0", err[-2000:])
        with open(os.path.join(self.directory, "said")) as file:
            lines = int(file.read())
        self.assertEqual((len(said), said[-1]), (lines, f"{lines - 1:015}"))
        self.assertEqual(set(said), {f"{line:015}" for line in range(lines)})

    def test_a_rank_that_dies_does_not_end_the_others_where_nothing_is_to_be_cleaned_up(self):
        for script, status, words in (("kill -9 $$", 137, "rank 1 (sh) was killed by signal 9 (SIGKILL: Killed); the others go on"),
                                      ("exit 5", 5, "rank 1 (sh) exited with status 5")):
            done = self.run_job("-disable-auto-cleanup", "-n", 3, *sh(f"test $PMI_RANK = 1 && {script}; sleep .5; echo lived"))
            self.expect_end(done, status, words)
            self.assertEqual(done.out, "lived\n" * 2)
        # Who waits for it in a barrier of the launcher's, as that of MPI_Init, would do so for ever.
        done = self.run_job("-disable-auto-cleanup", "-n", 2, launch.exchange(), ":", "-n", 1, "true")
        self.expect_end(done, 1, "rank 2 (true) has ended, but other ranks wait for it")

    def test_a_rank_without_mpi_does_not_keep_the_others_waiting(self):
        done = self.run_job("-n", 2, launch.exchange(), ":", "-n", 1, "true")
        self.expect_end(done, 1, "rank 2 (true) has ended, but other ranks wait for it")

    def test_a_job_that_takes_longer_than_it_may_is_ended(self):
        done = self.run_job("-n", 2, *sh("sleep 300"), settings={"MPIEXEC_TIMEOUT": "1"})
        self.expect_end(done, 255, "the job has run for 1 s, the limit of -timeout or MPIEXEC_TIMEOUT")
        self.assertEqual(self.run_job("-n", 2, "true", settings={"MPIEXEC_TIMEOUT": "30"}).status, 0)
        done = self.run_job("-n", 1, "true", settings={"MPIEXEC_TIMEOUT": "soon"})
        self.assertEqual((done.status, done.err), (2, "mpiexec: MPIEXEC_TIMEOUT: 'soon' is not a number of seconds\n"))

    def test_the_option_goes_before_the_variable(self):
        done = self.run_job("-timeout", 1, "-n", 2, *sh("sleep 300"), settings={"MPIEXEC_TIMEOUT": "30"})
        self.expect_end(done, 255, "the job has run for 1 s")
        for option in (("-timeout", 0), ("-timeout", 30)):
            self.assertEqual(self.run_job(*option, "sleep", "1.5", settings={"MPIEXEC_TIMEOUT": "1"}).status, 0)

    def test_ranks_that_ignore_sigterm_are_killed(self):
        done = self.run_job("-n", 2, *sh("trap '' TERM; test $PMI_RANK = 0 && kill -9 $$; sleep 300; sleep 300"))
        self.expect_end(done, 137, "rank 0 (sh) was killed")

    def test_ranks_may_clean_up_after_sigterm(self):
        done = self.run_job("-n", 2, *sh("trap 'touch cleaned; exit' TERM; touch here$PMI_RANK; test $PMI_RANK = 1 || "
                                         "{ while test ! -e here1; do sleep .01; done; kill -9 $$; }; sleep 300 & wait"))
        self.expect_end(done, 137, "rank 0 (sh) was killed")
        self.assertTrue(os.path.exists(os.path.join(self.directory, "cleaned")))

    def test_stopped_ranks_end_too(self):
        done = self.run_job("-n", 2, *sh("test $PMI_RANK = 0 && { sleep .2; kill -9 $$; }; kill -STOP $$"))
        self.expect_end(done, 137, "rank 0 (sh) was killed")

    def test_what_ranks_leave_behind_ends_with_the_job(self):
        done = self.run_job("-n", 2, *sh(SPREAD + "echo done"))
        self.expect_end(done, 0, "")
        self.assertEqual(done.out, "done\n" * 2)

    def test_what_a_killed_rank_leaves_behind_ends_too(self):
        self.expect_end(self.run_job("-n", 2, *sh(SPREAD + "kill -9 $$")), 137, "was killed by signal 9")


class Signals(launch.LaunchTest):

    def start_two(self, script):
        process = self.start("-n", 2, *sh(script + "; touch ready$PMI_RANK; while :; do sleep .05; done"), start_new_session=True)
        self.await_files("ready0", "ready1")
        return process

    def finish(self, process):
        out, err = process.communicate(timeout=20)
        self.expect_nothing_left()
        return process.returncode, out, err

    def test_terminating_signals_reach_the_ranks(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            process = self.start_two("ulimit -c 0")
            process.send_signal(number)
            status, _, err = self.finish(process)
            self.assertEqual(status, 128 + number, err)
            self.assertIn(f"was killed by signal {int(number)} (SIG", err)
            for rank in (0, 1):
                os.remove(os.path.join(self.directory, f"ready{rank}"))

    def test_a_rank_that_handles_the_signal_decides(self):
        process = self.start_two("trap 'echo caught; exit 0' INT")
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(process)[:2], (0, "caught\ncaught\n"))

    def test_the_second_interrupt_kills(self):
        process = self.start_two("trap 'touch caught$PMI_RANK' INT")
        process.send_signal(signal.SIGINT)
        self.await_files("caught0", "caught1")
        process.send_signal(signal.SIGINT)
        status, _, err = self.finish(process)
        self.assertEqual(status, 130)
        self.assertIn("interrupted twice", err)

    def test_user_signals_are_passed_on(self):
        process = self.start_two("trap 'touch one$PMI_RANK' USR1; trap 'exit 0' USR2")
        process.send_signal(signal.SIGUSR1)
        self.await_files("one0", "one1")
        process.send_signal(signal.SIGUSR2)
        self.assertEqual(self.finish(process)[0], 0)

    # Of the shells, ranks or not: one that is about to start a program has a child (vfork(2)), and does not stop (D) before that has its program.
    def states(self):
        found = []
        for pid in self.processes():
            try:
                with open(f"/proc/{pid}/stat") as file:
                    name, _, rest = file.read().partition(") ")
            except FileNotFoundError:
                continue  # a sleep that ended
            if name.endswith("(sh"):
                found.append(rest[0])
        return found

    def test_stop_and_continue(self):
        process = self.start_two("trap 'exit 0' USR1")
        process.send_signal(signal.SIGTSTP)
        self.await_condition(lambda: len(states := self.states()) >= 2 and "T" in states and set(states) <= {"T", "D"}, "stopped ranks")
        self.assertEqual(os.waitpid(process.pid, os.WUNTRACED)[1] & 0xff, 0x7f, "mpiexec stops as well")
        process.send_signal(signal.SIGCONT)
        self.await_condition(lambda: "T" not in self.states(), "ranks that go on")
        process.send_signal(signal.SIGUSR1)
        self.assertEqual(self.finish(process)[0], 0)


class Launcher(launch.LaunchTest):

    def start_spread(self):
        process = self.start("-n", 2, *sh(SPREAD + "touch ready$PMI_RANK; sleep 300"))
        self.await_files("ready0", "ready1")
        self.await_condition(lambda: len(self.processes()) >= 2 + 2 * 5, "all processes of the job")
        return process

    def test_nothing_outlives_a_killed_launcher(self):
        process = self.start_spread()
        process.kill()
        process.wait()
        self.expect_nothing_left()
        process.stdout.close(), process.stderr.close()

    def test_nothing_outlives_a_killed_proxy(self):
        process = self.start_spread()
        with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
            proxy, = file.read().split()
        os.kill(int(proxy), signal.SIGKILL)
        _, err = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 1)
        self.assertIn(f"(pid {proxy}) was killed", err)
        self.expect_nothing_left()

    def test_ranks_themselves_outlive_neither_launcher_nor_proxy(self):
        process = self.start("-n", 2, *sh("touch ready$PMI_RANK; exec sleep 300"))
        self.await_files("ready0", "ready1")
        with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
            proxy, = file.read().split()
        process.kill()
        os.kill(int(proxy), signal.SIGKILL)
        process.wait()
        self.expect_nothing_left()
        process.stdout.close(), process.stderr.close()

    def test_a_launcher_whose_output_nobody_reads_can_be_ended(self):
        process = self.start("-n", 2, "yes")
        self.await_condition(lambda: len(self.processes()) == 4, "the job")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=20), 143)
        self.expect_nothing_left()
        process.stdout.close(), process.stderr.close()


if __name__ == "__main__":
    launch.main()
