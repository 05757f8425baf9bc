"""mpiexec on this host: what ranks see, input, output, exit codes, wrong arguments."""

import os
import subprocess
import sys
import tempfile
import time

import launch


def sh(script):
    return ["sh", "-c", script]


class Ranks(launch.LaunchTest):

    def test_our_client_exchanges_with_1_to_32_ranks(self):
        for size in (1, 2, 7, 32):
            done = self.succeed("-n", size, launch.exchange(), "get-early")
            wanted = [f"rank {r} of {size}, application 0, universe -1, secret 32" for r in range(size)]
            self.assertEqual(sorted(done.out.splitlines()), sorted(wanted), done)

    def test_the_universe_has_a_size_if_an_option_says_so(self):
        for words, universe in (((), -1), (("-usize", "INFINITE"), -1), (("-usize", "9"), 9), (("-usize", "SYSTEM", "-hosts", "localhost:3"), 3)):
            done = self.succeed(*words, "-n", 2, launch.exchange())
            self.assertEqual(sorted(done.out.splitlines()), [f"rank {r} of 2, application 0, universe {universe}, secret 32" for r in range(2)], done)

    def test_32_ranks_start_and_finish_in_under_3_seconds(self):
        done = self.succeed("-n", 32, launch.exchange())
        self.assertLess(done.seconds, 3, done)

    def test_a_rank_that_reads_late_is_answered_and_costs_no_memory_meanwhile(self):
        process = self.start("-n", 1, sys.executable, launch.late_reader(), stdin=subprocess.PIPE)
        sent = int(process.stdout.readline())
        self.assertLess(sent, 16 << 20)
        for pid in self.processes():
            with open(f"/proc/{pid}/status") as status:
                values = dict(line.rstrip("\n").split(":", 1) for line in status if ":" in line)
            self.assertLess(int(values["VmRSS"].split()[0]), launch.most_resident(), values["Name"])
        out, err = process.communicate("go on\n", timeout=launch.TIMEOUT)
        self.assertEqual((process.returncode, out, err), (0, "", ""))

    def test_each_job_has_another_secret(self):
        script = 'exec %s' % launch.exchange()
        self.assertIn("secret 32", self.succeed("-n", 1, *sh(script)).out)

    def test_two_programs_after_each_other_in_one_script(self):
        done = self.succeed("-n", 3, *sh(f"{launch.exchange()} && {launch.exchange()}"))
        self.assertEqual(done.out.count("rank 2 of 3"), 2, done)

    def test_ranks_know_their_place(self):
        done = self.succeed("-n", 3, *sh("echo $PMI_RANK $PMI_SIZE $PMI_ID $MPI_LOCALRANKID $MPI_LOCALNRANKS; test -e /proc/$$/fd/$PMI_FD"))
        self.assertEqual(sorted(done.out.splitlines()), ["0 3 0 0 3", "1 3 1 1 3", "2 3 2 2 3"])

    def test_several_programs_share_a_job(self):
        done = self.succeed("-n", 1, launch.exchange(), ":", "-n", 2, launch.exchange())
        self.assertEqual(sorted(done.out.splitlines()),
                         [f"rank {r} of 3, application {min(r, 1)}, universe -1, secret 32" for r in range(3)])

    def test_a_file_may_name_the_programs(self):
        path = os.path.join(self.directory, "jobs")
        with open(path, "w") as file:
            file.write(f"# one and two\n-n 1 {launch.exchange()}\n-n 2 -env A 'x  y' sh -c 'echo \"<$A>\"; exec {launch.exchange()}'\n")
        done = self.succeed("-configfile", path)
        self.assertEqual(sorted(done.out.splitlines()),
                         ["<x  y>"] * 2 + [f"rank {r} of 3, application {min(r, 1)}, universe -1, secret 32" for r in range(3)])
        with open(path, "a") as file:
            file.write("-n 0 true\n")
        done = self.run_job("-configfile", path)
        self.assertEqual((done.status, done.err[:done.err.index(" is not")]), (2, f"mpiexec: {path}, line 4: -n: '0'"))

    def test_each_rank_has_a_session_also_where_there_are_more_than_processors(self):
        """Several in one, that hand the processor on to each other: Linux 6.18 with autogroup let nobody else run for up to half a minute."""
        show = sh("read -r pid name state parent group session rest < /proc/$$/stat; echo $pid $group $session")
        size = len(os.sched_getaffinity(0)) + 3
        ranks = [line.split() for line in self.succeed("-n", size, *show).out.splitlines()]
        self.assertEqual(len(ranks), size, ranks)
        for pid, group, session in ranks:
            self.assertEqual((group, session), (pid, pid), ranks)

    def test_signals_are_as_a_shell_leaves_them(self):
        done = self.succeed("-n", 1, *sh("grep -E 'Sig(Blk|Ign)' /proc/self/status"), settings={}, restore_signals=True)
        for line in done.out.splitlines():
            self.assertEqual(int(line.split()[1], 16) & ~0x7 & 0xffff, 0, done)  # SIGPIPE is 13

    def test_no_descriptor_of_the_launcher_leaks_into_ranks(self):
        done = self.succeed("-n", 2, "ls", "/proc/self/fd")
        self.assertEqual(len(done.out.split()), 2 * 5, done)  # stdin, stdout, stderr, PMI_FD, and the directory


class Environment(launch.LaunchTest):

    def test_genv_env_and_lists(self):
        show = sh('echo "$A|$B|$C"')
        own = {"A": "a", "B": "b"}
        for options, wanted in (((), "a|b|"), (("-genv", "C", "c d"), "a|b|c d"), (("-genvlist", "A"), "a||"),
                                (("-genvnone", "-genv", "B", "2"), "|2|"), (("-genv", "A", "1", "-env", "A", "2"), "2|b|"),
                                (("-genvnone", "-envlist", "B"), "|b|"), (("-genvlist", "A", "-envall"), "a|b|")):
            done = self.succeed(*options, *show, settings=own)
            self.assertEqual(done.out.strip(), wanted, options)

    def test_working_directory(self):
        self.assertEqual(self.succeed("-wdir", "/usr", "pwd").out.strip(), "/usr")
        self.assertEqual(self.succeed("pwd").out.strip(), os.path.realpath(self.directory))
        done = self.run_job("-wdir", "/nonexistent", "true")
        self.assertEqual(done.status, 1)
        self.assertIn("cannot change to the directory /nonexistent: No such file or directory", done.err)


class InputAndOutput(launch.LaunchTest):

    def test_rank_0_alone_has_the_input(self):
        done = self.succeed("-l", "-n", 3, "cat", given="to be\nor not\n")
        self.assertEqual(done.out, "[0] to be\n[0] or not\n")

    def test_megabytes_of_input_arrive(self):
        text = "x" * 99 + "\n"
        done = self.succeed("-n", 2, *sh("wc -c"), given=text * 40000)
        self.assertEqual(sorted(done.out.split()), ["0", "4000000"])

    def test_input_that_nobody_reads_does_no_harm(self):
        self.succeed("-n", 2, "true", given="x" * 1000000)

    def test_closed_input_and_output(self):
        self.assertEqual(self.succeed("-n", 2, *sh("cat; echo done"), preexec_fn=lambda: os.close(0), stdin=None).out, "done\n" * 2)
        done = self.run_job("-n", 2, "echo", "lost", preexec_fn=lambda: os.close(1), stdout=None)
        self.assertEqual(done.status, 1)
        self.assertIn("cannot write the standard output: Bad file descriptor", done.err)
        self.assertEqual(self.run_job("-n", 2, "echo", "kept", preexec_fn=lambda: os.close(2), stderr=None).out, "kept\n" * 2)

    def test_labels(self):
        done = self.succeed("-l", "-n", 2, *sh("echo out; echo err >&2; printf part"))
        self.assertEqual(sorted(done.out.split("\n")), ["[0] out", "[0] part", "[1] out", "[1] part"])
        self.assertEqual(sorted(done.err.splitlines()), ["[0] err", "[1] err"])

    def test_lines_are_not_torn(self):
        writer = ("import os,sys\nr=os.environ['PMI_RANK']\nfor i in range(300):\n"
                  "  os.write(1,(r*40).encode()); os.write(1,(r*40).encode()+b'\\n')\n")
        done = self.succeed("-n", 4, "python3", "-c", writer)
        self.assertEqual(sorted(done.out.splitlines()), sorted(str(r) * 80 for r in range(4) for _ in range(300)))

    def test_all_output_of_many_megabytes_arrives_whole(self):
        done = self.succeed("-n", 3, *sh("yes 0123456789abcde | head -n 200000"))
        self.assertEqual(len(done.out), 3 * 200000 * 16)
        self.assertEqual(set(done.out.splitlines()), {"0123456789abcde"})

    def test_a_prompt_is_shown_before_it_is_answered(self):
        process = self.start("-n", 2, *sh('test $PMI_RANK = 1 || { printf "number? "; read n; echo got $n; }'), stdin=subprocess.PIPE)
        self.assertEqual(os.read(process.stdout.fileno(), 100), b"number? ")
        self.assertEqual(process.communicate("7\n", timeout=20)[0], "got 7\n")

    def test_full_disk_is_reported_and_does_not_hang(self):
        with open("/dev/full", "w") as full:
            done = self.run_job("-n", 4, *sh("yes | head -n 100000; touch finished$PMI_RANK"), stdout=full)
        self.assertEqual(done.status, 1)
        self.assertEqual(done.err.count("No space left on device"), 1, done)
        self.await_files("finished0", "finished3")

    def test_a_reader_that_goes_away_ends_the_job(self):
        process = self.start("-n", 2, "yes")
        process.stdout.readline()
        process.stdout.close()
        self.assertEqual(process.wait(timeout=20), 141)
        self.assertIn("the standard output is no longer read", process.stderr.read())
        process.stderr.close()
        self.expect_nothing_left()

    def test_a_reader_that_pauses_stops_nothing_for_good(self):
        process = self.start("-n", 2, *sh("yes | head -n 2000000"))
        time.sleep(0.5)  # a pause is what is tested
        out, _ = process.communicate(timeout=60)
        self.assertEqual(len(out), 2 * 2000000 * 2)


class Files(launch.LaunchTest):

    def read(self, name):
        with open(os.path.join(self.directory, name)) as file:
            return file.read()

    def test_each_rank_has_files_of_its_own(self):
        with open(os.path.join(self.directory, "out.1"), "w") as file:
            file.write("what an earlier run\nleft\n")
        done = self.succeed("-l", "-n", 3, "-outfile-pattern", "out.%r", "-errfile-pattern", "err.%r-%g-%p-%h%%",
                            *sh("echo out; test $PMI_RANK = 0 || { echo err >&2; printf part; }"))
        self.assertEqual((done.out, done.err), ("", ""))
        host = os.uname().nodename
        self.assertEqual(sorted(os.listdir(self.directory)), sorted([f"err.{r}-0-0-{host}%" for r in (1, 2)] + [f"out.{r}" for r in range(3)]))
        self.assertEqual(self.read("out.0"), "[0] out\n")
        self.assertEqual(self.read("out.1"), "[1] out\n[1] part")
        self.assertEqual(self.read(f"err.2-0-0-{host}%"), "[2] err\n")

    def test_ranks_may_share_a_file(self):
        script = sh("for i in $(seq 500); do echo $PMI_RANK $i; echo $PMI_RANK err $i >&2; done")
        done = self.succeed("-n", 4, "-outfile-pattern", "all", "-errfile-pattern=all", *script)
        self.assertEqual((done.out, done.err), ("", ""))
        wanted = [f"{rank} {word}{i}" for rank in range(4) for word in ("", "err ") for i in range(1, 501)]
        self.assertEqual(sorted(self.read("all").splitlines()), sorted(wanted))

    def test_two_hundred_ranks_fill_their_files(self):
        self.succeed("-n", 200, "-outfile-pattern", "o%r", "-errfile-pattern", "e%r", *sh("seq 2000; sleep .1; seq 2000 >&2"))
        wanted = "".join(f"{i}\n" for i in range(1, 2001))
        for rank in range(200):
            self.assertEqual((self.read(f"o{rank}"), self.read(f"e{rank}")), (wanted, wanted), rank)

    def test_a_file_that_cannot_be_written_ends_the_job(self):
        for pattern, wanted in (("/dev/full", "/dev/full: No space left on device"), ("none/%r", "none/1: No such file or directory"),
                                (".", ".: Is a directory")):
            done = self.run_job("-n", 2, "-outfile-pattern", pattern, *sh("test $PMI_RANK = 0 || echo out; sleep 300"))
            self.assertEqual((done.status, done.err), (1, f"mpiexec: cannot write the ranks' output to {wanted}; the job ends\n"))
            self.expect_nothing_left()
        done = self.run_job("-outfile-pattern", "%d", "true")
        self.assertEqual(done.status, 2)
        self.assertIn("-outfile-pattern: '%d' is unknown", done.err)


def cpus(text):
    """The numbers in a list such as 0-3,8."""
    ranges = [part.split("-") for part in text.split(",")]
    return {cpu for part in ranges for cpu in range(int(part[0]), int(part[-1]) + 1)}


class Binding(launch.LaunchTest):
    show = sh("echo $PMI_RANK $(grep Cpus_allowed_list /proc/self/status)")

    def setUp(self):
        super().setUp()
        self.own = sorted(os.sched_getaffinity(0))

    def bound(self, *words, **options):
        """The CPUs of each rank."""
        done = self.succeed(*words, *self.show, **options)
        self.assertEqual(done.err, "")
        lines = sorted(line.split() for line in done.out.splitlines())
        self.assertEqual([int(line[0]) for line in lines], list(range(len(lines))))
        return [cpus(line[2]) for line in lines]

    def test_each_rank_has_a_thread_of_its_own(self):
        bound = self.bound("-n", 3 * len(self.own), "-bind-to", "hwthread")
        self.assertTrue(all(len(one) == 1 for one in bound), bound)
        first = [one.copy().pop() for one in bound[:len(self.own)]]
        self.assertEqual(sorted(first), self.own)
        self.assertEqual(bound, bound[:len(self.own)] * 3)

    def test_without_binding_ranks_have_what_mpiexec_has(self):
        for words in ((), ("-bind-to", "none"), ("-bind-to", "machine"), ("-bind-to", "core:9999", "-map-by", "numa")):
            self.assertEqual(self.bound("-n", 2, *words), [set(self.own)] * 2, words)

    def test_a_list_says_which(self):
        first, last = self.own[0], self.own[-1]
        bound = self.bound("-n", 3, "-bind-to", f"user:{last},{first}+{last}")
        self.assertEqual(bound, [{last}, {first, last}, {last}])
        done = self.run_job("-n", 2, "-bind-to", "user:99999", "true")
        self.assertEqual(done.status, 1)
        self.assertIn("mpiexec: -bind-to user: names CPU 99999, but the usable CPUs are ", done.err)

    def test_only_cpus_that_mpiexec_may_use(self):
        last = self.own[-1]
        only = {"preexec_fn": lambda: os.sched_setaffinity(0, {last})}
        for words in (("core",), ("socket", "-map-by", "hwthread"), ("numa:2",), (f"user:{last}",)):
            self.assertEqual(self.bound("-n", 2, "-bind-to", *words, **only), [{last}] * 2, words)

    def test_ranks_on_other_hosts_are_bound_there(self):
        path = os.path.join(self.directory, "fake-ssh")
        with open(path, "w") as file:
            file.write('#!/bin/sh\nshift\nexec sh -c "$*"\n')
        os.chmod(path, 0o755)
        bound = self.bound("-launcher-exec", path, "-hosts", "a.invalid,b.invalid", "-n", 2, "-bind-to", f"user:{self.own[-1]}")
        self.assertEqual(bound, [{self.own[-1]}] * 2)

    def test_where_nothing_can_be_bound_the_job_runs(self):
        done = self.succeed("-n", 2, "-bind-to", "core", "echo", "here", settings={"HWLOC_SYNTHETIC": "core:4 pu:1"})
        self.assertEqual(done.out, "here\n" * 2)
        self.assertEqual(done.err.count("mpiexec: the ranks are not bound: hwloc's variables describe another machine"), 1, done)


class ExitCodes(launch.LaunchTest):

    def test_the_exit_code_is_the_first_that_is_not_zero(self):
        self.assertEqual(self.run_job("-n", 3, *sh("exit 0")).status, 0)
        done = self.run_job("-n", 3, *sh("test $PMI_RANK != 2 || exit 7"))
        self.assertEqual(done.status, 7)
        self.assertIn("mpiexec: rank 2 (sh) exited with status 7\n", done.err)
        done = self.run_job("-n", 2, *sh("test $PMI_RANK = 0 || { while test ! -e one; do sleep .01; done; exit 9; }; touch one; exit 5"))
        self.assertIn(done.status, (5, 9))
        self.assertEqual(done.err.count("exited with status"), 1)

    def test_ranks_that_do_without_mpi_may_fail_alone(self):
        done = self.run_job("-n", 2, *sh("test $PMI_RANK = 0 && exit 4; sleep .3; echo still here"))
        self.assertEqual((done.status, done.out), (4, "still here\n"))

    def test_a_killed_rank_is_128_and_the_signal(self):
        for number, name in ((9, "SIGKILL: Killed"), (11, "SIGSEGV: Segmentation fault"), (6, "SIGABRT: Aborted")):
            done = self.run_job("-n", 2, *sh(f"test $PMI_RANK = 0 || {{ ulimit -c 0; kill -{number} $$; }}; sleep 60"))
            self.assertEqual(done.status, 128 + number)
            self.assertIn(f"mpiexec: rank 1 (sh) was killed by signal {number} ({name})", done.err)
            self.expect_nothing_left()

    def test_programs_that_cannot_be_started_are_named_once(self):
        self.assertEqual(self.run_job("-n", 8, "no-such-program").status, 127)
        done = self.run_job("-n", 8, "./no-such-program")
        self.assertEqual((done.status, done.err.count("no-such-program")), (127, 1), done)
        with open(os.path.join(self.directory, "plain"), "w") as file:
            file.write("no program")
        done = self.run_job("-n", 2, "./plain")
        self.assertEqual(done.status, 126)
        self.assertIn("cannot execute ./plain: Permission denied", done.err)
        with open(os.path.join(self.directory, "script"), "w") as file:
            file.write("#!/no/such/interpreter\n")
        os.chmod(os.path.join(self.directory, "script"), 0o755)
        done = self.run_job("./script")
        self.assertEqual(done.status, 127)
        self.assertIn("its interpreter does not exist", done.err)
        self.expect_nothing_left()

    def test_when_the_second_program_is_missing_the_first_is_ended(self):
        done = self.run_job("-n", 2, "sleep", 60, ":", "-n", 1, "./missing")
        self.assertEqual(done.status, 127)
        self.assertLess(done.seconds, 10)
        self.expect_nothing_left()


class CommandLine(launch.LaunchTest):

    def test_a_program_of_the_working_directory_is_named_with_it(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "my_job"), "w"):
                pass
            done = self.run_job("-wdir", folder, "my_job", settings={"PATH": "/usr/bin:/bin"})
        self.assertEqual(done.status, 127)
        self.assertIn("cannot find my_job in PATH, but it is in the working directory: ./my_job", done.err)

    def test_wrong_arguments_are_named(self):
        for words, wanted in ((["-n", "many", "true"], "-n: 'many'"), (["-n", "2"], "no program"), ([], "no program given"),
                              (["-frobnicate", "true"], "unknown option -frobnicate"),
                              (["-f", "/no/such/file", "true"], "/no/such/file: No such file or directory"),
                              (["-hosts", "a:0", "true"], "'a:0'"), (["-n", "1", "true", ":", "-n"], "-n needs COUNT")):
            done = self.run_job(*words)
            self.assertEqual(done.status, 2, words)
            self.assertIn(wanted, done.err)

    def test_help_and_version(self):
        for word in ("-h", "--help"):
            done = self.succeed(word)
            self.assertIn("-hosts", done.out)
        self.assertRegex(self.succeed("-version").out, r"^mpiexec \(Weft\) \d+\.\d+\.\d+(\+[\w.]+)?\n$")

    def test_help_that_cannot_be_written_is_an_error(self):
        with open("/dev/full", "w") as full:
            self.assertEqual(self.run_job("--help", stdout=full).status, 1)

    def test_options_without_effect_are_mentioned(self):
        self.assertIn("-membind has no effect here", self.succeed("-membind", "none", "true").err)


if __name__ == "__main__":
    launch.main()
