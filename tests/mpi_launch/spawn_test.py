"""Jobs that ranks spawn: what they see, how they end, and that nothing is left of them."""

import os
import signal

import launch


class Spawn(launch.LaunchTest):

    def parent(self, count, *words, size=1, program=None, options=(), **settings):
        return self.run_job(*options, "-n", size, launch.spawner(), "parent", program or launch.spawner(), count, *words, **settings)

    def test_a_spawned_job_is_one_of_its_own(self):
        for version in "1", "2":
            done = self.parent(3, "--", "child", size=2, settings={"WEFT_PMI": version}, options=("-usize", 9))
            self.assertEqual(done.status, 0, done)
            here = os.path.realpath(self.directory)
            wanted = [f"child {r} of 3, spawned 1, secret 32, universe 9, in {here}" for r in range(3)]
            self.assertEqual(sorted(done.out.splitlines()), wanted + ["spawned: '', errors 0 0 0"], done)
        self.expect_nothing_left()

    def test_labels_and_messages_name_the_job(self):
        done = self.parent(2, "--", "child", options=("-l",))
        self.assertEqual(done.status, 0, done)
        self.assertIn("[job 1 rank 0] child 0 of 2", done.out)
        self.assertIn("[0] spawned: ''", done.out)
        done = self.parent(2, "--", "child", "die", 9, options=("-l",))
        self.assertEqual(done.status, 137, done)
        self.assertIn("[job 1 rank 1] child 1 of 2", done.out)
        self.assertIn(f"mpiexec: job 1 rank 1 ({launch.spawner()}) was killed by signal 9", done.err)
        self.expect_nothing_left()

    def test_files_may_be_named_by_job(self):
        done = self.parent(2, "--", "child", options=("-outfile-pattern", "out.%g.%r"))
        self.assertEqual((done.status, done.out), (0, ""), done)
        for name, words in (("out.0.0", "spawned: ''"), ("out.1.0", "child 0 of 2"), ("out.1.1", "child 1 of 2")):
            with open(os.path.join(self.directory, name)) as file:
                self.assertTrue(file.read().startswith(words), name)

    def test_a_spawned_job_is_bound_beside_its_parent(self):
        own = sorted(os.sched_getaffinity(0))
        done = self.parent(1, "--", "-c", "grep Cpus_allowed_list /proc/self/status", program="/bin/sh", options=("-bind-to", f"user:{own[0]},{own[-1]}"))
        self.assertEqual(done.status, 0, done)
        self.assertIn(f"Cpus_allowed_list:\t{own[-1]}\n", done.out)

    def test_a_spawned_jobs_failure_ends_those_that_it_is_connected_with(self):
        for words, status, message in ((("abort", 7), 7, "job 1 rank 1 (%s) aborted the job with code 7: asked to; the job and those"),
                                       (("exit", 0), 1, "job 1 rank 1 (%s) exited with status 0 without MPI_Finalize")):
            done = self.parent(2, "wait", "/nonexistent", "--", "child", *words)
            self.assertEqual(done.status, status, done)
            self.assertIn(message % launch.spawner(), done.err)
            self.expect_nothing_left()

    def test_a_job_that_was_left_fails_alone(self):
        path, left = os.path.join(self.directory, "go on"), os.path.join(self.directory, "left")
        speak = os.path.join(self.directory, "speak")
        process = self.start("-n", 2, launch.spawner(), "parent", launch.spawner(), 1, "disconnect", "wait", path, "speak", speak, "--", "child", "die", 15,
                             left, settings={"WEFT_PMI": "2"})
        while process.stdout.readline().strip() != "disconnected":
            self.assertIsNone(process.poll())
        open(left, "w").close()
        line = process.stderr.readline()
        self.assertIn("was killed by signal 15", line)
        self.assertFalse(line.strip().endswith("connected with"), line)
        # Were this job to end as well, its ranks would have been told before mpiexec answers one of them.
        open(speak, "w").close()
        lines = iter(process.stdout.readline, "")  # the child's is among them
        self.assertIn("mpiexec answers\n", lines)
        open(path, "w").close()
        out, err = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 143, (out, err))
        self.expect_nothing_left()

    def test_info_says_where_and_what(self):
        done = self.parent(1, "info", "wdir", "/usr", "--", "child")
        self.assertIn("in /usr", done.out)
        directory, name = os.path.split(launch.spawner())
        done = self.parent(1, "info", "path", f"/nowhere:{directory}", "--", "child", program=name)
        self.assertEqual(done.status, 0, done)
        self.assertIn("child 0 of 1", done.out)
        done = self.parent(4, "info", "soft", "1:3:2", "--", "child")
        self.assertIn("child 2 of 3", done.out)
        self.assertIn("errors 0 0 0 1", done.out)
        done = self.parent(1, "info", "file", "x", "info", "unheard-of", "y", "--", "child")
        self.assertEqual(done.status, 0, done)
        self.assertIn("the info key file=x of a spawn of", done.err)

    def test_what_cannot_be_spawned_leaves_the_asker_alive(self):
        for words, program, why in (((), "/no/such", "cannot find /no/such"), ((), "/etc/passwd", "cannot execute /etc/passwd"),
                                    (("info", "wdir", "/no"), None, "cannot change to the directory /no"),
                                    (("info", "soft", "9"), None, "info key soft: '9' allows no number of processes from 0 to 2"),
                                    (("info", "host", "-"), None, "info key host: '-' is not a host name"),
                                    (("info", "path", "/opt"), "no-such-program", "cannot find no-such-program in the path /opt")):
            done = self.parent(2, *words, "--", "child", program=program)
            self.assertEqual(done.status, 0, done)
            self.assertIn(f"spawned: 'the launcher cannot spawn ({why}", done.out)
            self.assertIn("errors 1 1", done.out)
            self.assertIn("cannot spawn: " + why, done.err)
        self.expect_nothing_left()

    def test_children_may_outlive_their_parent(self):
        path = os.path.join(self.directory, "go on")
        process = self.start("-n", 1, launch.spawner(), "parent", launch.spawner(), 2, "--", "child", "linger", path)
        self.await_condition(lambda: len(self.processes()) == 3, "the end of all but mpiexec, its proxy and the last child")
        self.assertIsNone(process.poll())
        open(path, "w").close()
        out, err = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 0, (out, err))
        self.assertEqual(out.count("child "), 2)
        self.expect_nothing_left()

    def test_many_spawns_leave_nothing_behind(self):
        times = int(os.environ.get("WEFT_TEST_SPAWNS", "60"))
        path = os.path.join(self.directory, "go on")
        process = self.start("-n", 1, launch.spawner(), "parent", "/bin/true", 2, "times", times, "wait", path)
        self.assertIn("spawned: ''", process.stdout.readline())
        self.assertIn("spawned: ''", process.stdout.readline())
        self.await_condition(lambda: len(self.processes()) == 3, "the end of all that was spawned")
        for pid in self.processes():
            self.assertLess(len(os.listdir(f"/proc/{pid}/fd")), 16, pid)
        open(path, "w").close()
        out, err = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 0, (out, err))

    def test_a_signal_ends_a_spawn_that_is_under_way(self):
        script = os.path.join(self.directory, "spawned")
        with open(script, "w") as file:
            file.write(f"#!/bin/sh\necho >> {self.directory}/started\ntest $PMI_RANK = 20 && touch {self.directory}/under_way\nexec sleep 300\n")
        os.chmod(script, 0o755)
        process = self.start("-n", 1, launch.spawner(), "parent", script, 1000)
        self.await_files("under_way")
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 143, (out, err))
        self.expect_nothing_left()
        with open(os.path.join(self.directory, "started")) as file:
            self.assertLess(len(file.readlines()), 500, "the proxy hears of the end while it starts ranks")

    def test_names_go_with_the_job_that_published_them(self):
        path = os.path.join(self.directory, "go on")
        done = self.run_job("-n", 1, "sh", "-c", f"""{launch.spawner()} publish 'my service' 'tcp:1 2' && {launch.spawner()} lookup 'my service'
                            {launch.spawner()} parent {launch.spawner()} 1 -- publish other p && sleep 0.5; {launch.spawner()} lookup other""")
        self.assertEqual(done.status, 0, done)
        self.assertIn("tcp:1 2", done.out)
        self.assertIn("no process has published the service other", done.out)


class OtherHosts(launch.LaunchTest):

    def setUp(self):
        super().setUp()
        self.shell = os.path.join(self.directory, "shell")
        with open(self.shell, "w") as file:
            file.write('#!/bin/sh\nshift\nexec sh -c "$1"\n')
        os.chmod(self.shell, 0o755)

    def test_spawns_reach_hosts_that_the_job_did_not_have(self):
        done = self.run_job("-launcher-exec", self.shell, "-n", 1, launch.spawner(), "parent", launch.spawner(), 4, "info", "host",
                            "one.invalid,two.invalid", "--", "child")
        self.assertEqual(done.status, 0, done)
        self.assertEqual(done.out.count("child "), 4, done)
        self.assertIn("errors 0 0 0 0", done.out)
        self.expect_nothing_left()

    def start_slow_spawn(self, *words):
        """A spawn whose host's proxy waits until the file "gate" is there, beside a rank that does something else."""
        with open(self.shell, "w") as file:
            file.write(f'#!/bin/sh\ntouch {self.directory}/asked\nwhile test ! -e {self.directory}/gate; do sleep .01; done\nshift; exec sh -c "$1"\n')
        process = self.start("-launcher-exec", self.shell, "-n", 2, launch.spawner(), "parent", launch.spawner(), 1, "info", "host", "slow.invalid",
                             *words, "--", "child")
        self.await_files("asked")
        return process

    def touch(self, name):
        open(os.path.join(self.directory, name), "w").close()

    def test_jobs_go_on_while_proxies_for_another_are_started(self):
        process = self.start_slow_spawn("speak", "now")
        self.touch("now")
        self.assertEqual(process.stdout.readline(), "mpiexec answers\n")
        self.touch("gate")
        out, err = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 0, (out, err))
        self.assertIn("child 0 of 1", out)
        self.expect_nothing_left()

    def test_a_failure_ends_what_waits_for_a_host(self):
        process = self.start_slow_spawn("die", "now")
        self.touch("now")
        out, err = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 137, (out, err))
        self.expect_nothing_left()

    def test_an_interrupt_ends_what_waits_for_a_host(self):
        process = self.start_slow_spawn("speak", "never")
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 143, (out, err))
        self.expect_nothing_left()

    def test_spawns_on_the_same_new_host_share_its_proxy(self):
        log = os.path.join(self.directory, "log")
        with open(self.shell, "w") as file:
            file.write(f'#!/bin/sh\necho $1 >> {log}\nshift\nexec sh -c "$1"\n')
        done = self.run_job("-launcher-exec", self.shell, "-n", 1, launch.spawner(), "parent", launch.spawner(), 2, "info", "host", "one.invalid,two.invalid",
                            "times", 3, "--", "child")
        self.assertEqual(done.status, 0, done)
        with open(log) as file:
            self.assertEqual(sorted(file.read().split()), ["one.invalid", "two.invalid"])

    def test_a_program_that_one_host_lacks_is_spawned_on_none(self):
        with open(self.shell, "w") as file:  # what is open as 99 is there on one.invalid alone
            file.write(f'#!/bin/bash\n[ $1 = one.invalid ] && exec 99< {launch.spawner()}\nexec sh -c "$2"\n')
        done = self.run_job("-launcher-exec", self.shell, "-n", 1, launch.spawner(), "parent", "/dev/fd/99", 2, "info", "host",
                            "one.invalid,two.invalid", "--", "child")
        self.assertEqual(done.status, 0, done)
        self.assertRegex(done.out, "cannot (find|execute) /dev/fd/99.* on two.invalid")
        self.assertIn("errors 1 1", done.out)
        self.expect_nothing_left()


if __name__ == "__main__":
    launch.main()
