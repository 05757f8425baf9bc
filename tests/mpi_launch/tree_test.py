"""Ranks on more hosts than mpiexec speaks with itself: proxies start those below them, and pass on what is said."""

import os
import signal

import launch

HOSTS = 40
FAKE_SSH = """#!/bin/sh
host=$1; shift
echo "$PPID $host" >> "$SSH_LOG"
[ "$host" = 203.0.113.1 ] && { echo "ssh: connect to host 203.0.113.1: Connection refused" >&2; exit 255; }
exec env -i PATH="$PATH" SSH_LOG="$SSH_LOG" HOST="$host" WEFT_MPI_LAUNCH_TEST="$WEFT_MPI_LAUNCH_TEST" sh -c "$*"
"""


class Tree(launch.LaunchTest):

    def setUp(self):
        super().setUp()
        self.ssh = os.path.join(self.directory, "fake-ssh")
        with open(self.ssh, "w") as file:
            file.write(FAKE_SSH)
        os.chmod(self.ssh, 0o755)
        self.settings = {"SSH_LOG": os.path.join(self.directory, "log")}
        # Addresses of nobody's (RFC 5737): no name server is asked.
        self.hosts = [f"198.51.100.{number}" for number in range(HOSTS)]

    def words(self, hosts=None, slots=1):
        return ["-launcher-exec", self.ssh, "-hosts", ",".join(f"{host}:{slots}" for host in hosts or self.hosts)]

    def job(self, *words, hosts=None, slots=1, **options):
        return self.run_job(*self.words(hosts, slots), *words, settings=self.settings, **options)

    def test_nobody_starts_more_than_sixteen_proxies(self):
        done = self.job("true")
        self.assertEqual(done.status, 0, done)
        with open(self.settings["SSH_LOG"]) as file:
            starters = [line.split()[0] for line in file]
        self.assertEqual(len(starters), HOSTS)
        self.assertLessEqual(max(starters.count(starter) for starter in set(starters)), 16)
        self.assertGreater(len(set(starters)), 16)
        self.expect_nothing_left()

    def test_ranks_exchange_across_the_tree(self):
        done = self.job("-n", 2 * HOSTS, launch.exchange(), slots=2)
        self.assertEqual(done.status, 0, done)
        wanted = [f"rank {r} of {2 * HOSTS}, application 0, universe -1, secret 32" for r in range(2 * HOSTS)]
        self.assertEqual(sorted(done.out.splitlines()), sorted(wanted))
        self.expect_nothing_left()

    def test_each_rank_is_on_its_host(self):
        done = self.job("-l", "sh", "-c", "tr '\\0' '\\n' < /proc/$PPID/environ | sed -n 's/^HOST=//p'")
        self.assertEqual(sorted(done.out.splitlines()), sorted(f"[{r}] 198.51.100.{r}" for r in range(HOSTS)), done)

    def test_input_and_much_output_go_all_the_way(self):
        last_first = self.hosts[::-1]
        done = self.job("-n", HOSTS, "sh", "-c", "test $PMI_RANK = 0 && exec cat; yes $PMI_RANK | head -n 20000", hosts=last_first,
                        given="hello..\n" * 50000)  # eight bytes: buffers end with lines, and a pause shows no half ones
        self.assertEqual(done.status, 0, done)
        lines = done.out.splitlines()
        self.assertEqual(lines.count("hello.."), 50000)
        for rank in range(1, HOSTS):
            self.assertEqual(lines.count(str(rank)), 20000, rank)

    def test_a_host_below_another_that_cannot_be_reached_is_named(self):
        done = self.job("sleep", 300, hosts=[*self.hosts[:-1], "203.0.113.1"])
        self.assertEqual(done.status, 1, done)
        self.assertIn("203.0.113.1 ended with status 255 before mpiexec's proxy there connected", done.err)
        self.expect_nothing_left()

    def test_failures_far_away_end_the_job_and_name_the_host(self):
        last = HOSTS - 1
        done = self.job("sh", "-c", f"test $PMI_RANK = {last} || exec sleep 300; kill -9 $$")
        self.assertEqual(done.status, 137)
        self.assertIn(f"rank {last} on 198.51.100.{last} (sh) was killed by signal 9", done.err)
        done = self.job("-n", last, launch.exchange(), ":", "-n", 1, "true")
        self.assertEqual(done.status, 1)
        self.assertIn(f"rank {last} on 198.51.100.{last} (true) has ended", done.err)
        done = self.job("-n", last, "sleep", 300, ":", "-n", 1, "./missing")
        self.assertEqual(done.status, 127)
        self.assertIn(f"on 198.51.100.{last}", done.err)
        self.expect_nothing_left()

    def start_sleepers(self):
        process = self.start(*self.words(), "-n", HOSTS, "sh", "-c",
                             "trap 'exit 6' USR1; echo $PPID > pid$PMI_RANK; touch ready$PMI_RANK; while :; do sleep .2; done", settings=self.settings)
        self.await_files(*(f"ready{rank}" for rank in range(HOSTS)))
        return process

    def test_signals_reach_all(self):
        process = self.start_sleepers()
        process.send_signal(signal.SIGUSR1)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 6, err)
        self.expect_nothing_left()

    def test_a_proxy_that_dies_takes_the_job_with_it_and_those_below_it_end(self):
        for victim in (0, 1):  # with others below it, and below another
            with self.subTest(victim=victim):
                process = self.start_sleepers()
                with open(os.path.join(self.directory, f"pid{victim}")) as file:
                    os.kill(int(file.read()), signal.SIGKILL)
                _, err = process.communicate(timeout=60)
                self.assertEqual(process.returncode, 1, err)
                self.assertIn(f"the connection to 198.51.100.{victim} ended", err)
                self.expect_nothing_left()
                for rank in range(HOSTS):
                    os.remove(os.path.join(self.directory, f"ready{rank}"))

    def test_nothing_outlives_a_killed_launcher(self):
        process = self.start_sleepers()
        process.kill()
        process.wait()
        self.expect_nothing_left()
        process.stdout.close(), process.stderr.close()


if __name__ == "__main__":
    launch.main()
