"""Ranks on several hosts. A script stands in for ssh: it runs the command here, so that the proxies that it starts are at the other ends
of real TCP connections; names that do not resolve are other hosts to mpiexec."""

import os
import signal
import socket
import sys
import threading

import launch

FAKE_SSH = """#!/bin/sh
echo "$@" >> "$SSH_LOG"
host=$1; shift
case $host in
  refused.invalid) echo "ssh: connect to host refused.invalid: Connection refused" >&2; exit 255 ;;
  noisy.invalid) echo "Welcome to noisy"; exec sh -c "$*" ;;
esac
exec env -i PATH="$PATH" WEFT_MPI_LAUNCH_TEST="$WEFT_MPI_LAUNCH_TEST" sh -c "$*"
"""

# In PMI-1 by hand: many requests before their answers.
PUTS_MEGABYTES = """
import os, socket, sys

talk = socket.socket(fileno=int(os.environ["PMI_FD"]))
answers = talk.makefile("rb")

def ask(*requests):
    talk.sendall(b"".join(request + b"\\n" for request in requests))
    return [answers.readline() for _ in requests]

ask(b"cmd=init pmi_version=1 pmi_subversion=1")
name = ask(b"cmd=get_my_kvsname")[0].split(b"kvsname=")[1].split()[0]
head = b"cmd=put kvsname=" + name + b" key=" + os.environ["PMI_RANK"].encode()
for megabyte in range(int(sys.argv[1])):
    ask(*(b"%s-%d-%d value=%s" % (head, megabyte, i, b"x" * 1000) for i in range(1000)))
if b"barrier_out" in ask(b"cmd=barrier_in")[0]:
    print("together", flush=True)
ask(b"cmd=finalize")
"""


class Hosts(launch.LaunchTest):

    def setUp(self):
        super().setUp()
        self.ssh = os.path.join(self.directory, "fake-ssh")
        with open(self.ssh, "w") as file:
            file.write(FAKE_SSH)
        os.chmod(self.ssh, 0o755)
        self.settings = {"SSH_LOG": os.path.join(self.directory, "log")}

    def job(self, *words, **options):
        return self.run_job("-launcher-exec", self.ssh, *words, settings=self.settings, **options)

    def log(self):
        with open(self.settings["SSH_LOG"]) as file:
            return file.read()

    def test_ranks_on_three_hosts_exchange(self):
        done = self.job("-hosts", "localhost:2,a.invalid:2,b.invalid", "-n", 7, launch.exchange(), "get-early")
        self.assertEqual(done.status, 0, done)
        self.assertEqual(sorted(done.out.splitlines()), [f"rank {r} of 7, application 0, universe -1, secret 32" for r in range(7)])
        self.assertEqual(self.log().count("--proxy"), 2)

    def test_a_host_that_is_lost_does_not_end_the_others_where_nothing_is_to_be_cleaned_up(self):
        done = self.job("-disable-auto-cleanup", "-hosts", "localhost,a.invalid", "-n", 2, "sh", "-c",
                        "test $PMI_RANK = 1 && kill -9 $PPID; sleep 1; echo $PMI_RANK lived")
        self.assertEqual((done.status, done.out), (1, "0 lived\n"), done)
        self.assertIn("the connection to a.invalid ended; the others go on", done.err)
        self.expect_nothing_left()

    def test_mpich_itself_runs_on_several_hosts(self):
        program = self.compile("""
            #include <mpi.h>
            #include <stdio.h>
            int main(int argc, char** argv) {
              int rank, sum;
              MPI_Init(&argc, &argv);
              MPI_Comm_rank(MPI_COMM_WORLD, &rank);
              MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
              printf("%d\\n", sum);
              MPI_Finalize();
            }""")
        done = self.job("-hosts", "a.invalid,b.invalid", "-n", 4, program)
        self.assertEqual((done.status, done.out.split()), (0, ["6"] * 4), done)

    def test_each_rank_knows_its_place_on_its_host(self):
        done = self.job("-hosts", "localhost:2,a.invalid", "-n", 4, "sh", "-c", "echo $PMI_RANK $MPI_LOCALRANKID/$MPI_LOCALNRANKS")
        self.assertEqual(sorted(done.out.splitlines()), ["0 0/3", "1 1/3", "2 0/1", "3 2/3"], done)

    def test_a_host_file_and_ppn(self):
        path = os.path.join(self.directory, "hosts")
        with open(path, "w") as file:
            file.write("a.invalid:3  # three\nb.invalid\n")
        done = self.job("-l", "-f", path, "-ppn", 2, "sh", "-c", "echo $MPI_LOCALNRANKS")
        self.assertEqual(sorted(done.out.splitlines()), [f"[{r}] 2" for r in range(4)], done)

    def test_output_goes_to_files_of_this_host(self):
        done = self.job("-hosts", "localhost,a.invalid,b.invalid", "-n", 4, "-outfile-pattern", "%h.%p.%r", "sh", "-c", "cd /; echo $PMI_RANK")
        self.assertEqual((done.status, done.out), (0, ""), done)
        for name in ("localhost.0.0", "a.invalid.1.1", "b.invalid.2.2", "localhost.0.3"):
            with open(os.path.join(self.directory, name)) as file:
                self.assertEqual(file.read(), name[-1] + "\n")

    def test_environment_and_directory_go_along(self):
        done = self.job("-hosts", "a.invalid", "-genv", "B", "two words", "-env", "C", "'", "sh", "-c", 'pwd; echo "$HERE|$B|$C"')
        self.assertEqual(done.out.splitlines(), [os.path.realpath(self.directory), "|two words|'"], done)
        self.settings["HERE"] = "x y"
        self.assertEqual(self.job("-hosts", "a.invalid", "sh", "-c", 'echo "$HERE"').out, "x y\n")

    def test_rank_0_has_the_input_wherever_it_is(self):
        done = self.job("-l", "-hosts", "a.invalid,localhost", "-n", 2, "cat", given="hello\n" * 50000)
        self.assertEqual(done.out, "[0] hello\n" * 50000)

    def test_what_the_remote_shell_says_is_no_output_of_the_program(self):
        done = self.job("-hosts", "noisy.invalid", "echo", "output")
        self.assertEqual(done.out, "output\n")
        self.assertIn("Welcome to noisy", done.err)

    def test_a_host_that_cannot_be_reached_is_named(self):
        done = self.job("-hosts", "localhost,a.invalid,refused.invalid", "-n", 3, "sleep", 300)
        self.assertEqual(done.status, 1)
        self.assertIn("refused.invalid ended with status 255 before mpiexec's proxy there connected", done.err)
        self.assertIn("Connection refused", done.err)
        self.expect_nothing_left()

    def test_a_missing_remote_shell_is_named(self):
        done = self.run_job("-launcher-exec", "/no/such/ssh", "-hosts", "a.invalid", "true")
        self.assertEqual(done.status, 1)
        self.assertIn("/no/such/ssh", done.err)

    def test_failures_name_the_host(self):
        done = self.job("-hosts", "localhost,a.invalid", "-n", 2, "sh", "-c", "test $PMI_RANK = 0 && sleep 300; kill -9 $$")
        self.assertEqual(done.status, 137)
        self.assertIn("rank 1 on a.invalid (sh) was killed by signal 9", done.err)
        done = self.job("-hosts", "localhost,a.invalid", "-n", 1, "sleep", 300, ":", "-n", 1, "./missing")
        self.assertEqual(done.status, 127)
        self.assertIn("cannot find ./missing", done.err)
        self.assertIn("on a.invalid", done.err)
        self.expect_nothing_left()

    def test_a_rank_that_is_gone_from_one_host_is_not_waited_for_on_another(self):
        done = self.job("-hosts", "localhost,a.invalid", "-n", 1, launch.exchange(), ":", "-n", 1, "true")
        self.assertEqual(done.status, 1)
        self.assertIn("rank 1 on a.invalid (true) has ended", done.err)
        self.expect_nothing_left()

    def test_more_than_a_frame_holds_before_a_barrier_is_the_jobs_error(self):
        def put(*megabytes):
            hosts = ["a.invalid", "b.invalid"]
            programs = [word for count in megabytes for word in (":", "-n", 1, sys.executable, "-c", PUTS_MEGABYTES, count)]
            return self.job("-hosts", ",".join(hosts), *programs[1:])

        done = put(20, 20)
        self.assertEqual((done.status, done.out), (0, "together\n" * 2), done)
        done = put(1, 70)
        self.assertEqual((done.status, done.out), (1, ""), done)
        self.assertRegex(done.err, r"mpiexec: rank 1 on b.invalid \(.*\) and the others of its host put 7\d{7} bytes into the key-value space before one "
                                   r"barrier; the limit is 67108864; the job ends\n")
        done = put(40, 40)
        self.assertEqual((done.status, done.out), (1, ""), done)
        self.assertRegex(done.err, r"mpiexec: the ranks put 8\d{7} bytes into the key-value space before one barrier; the limit is 67108864; the job ends\n")
        self.expect_nothing_left()

    def test_nothing_outlives_a_killed_launcher(self):
        process = self.start("-launcher-exec", self.ssh, "-hosts", "localhost,a.invalid", "-n", 2, "sh", "-c",
                             "setsid sleep 300 & touch ready$PMI_RANK; sleep 300", settings=self.settings)
        self.await_files("ready0", "ready1")
        process.kill()
        process.wait()
        self.expect_nothing_left()
        process.stdout.close(), process.stderr.close()

    def test_signals_reach_other_hosts(self):
        process = self.start("-launcher-exec", self.ssh, "-hosts", "a.invalid,b.invalid", "-n", 2, "sh", "-c",
                             "trap 'exit 6' USR1; touch ready$PMI_RANK; while :; do sleep .05; done", settings=self.settings)
        self.await_files("ready0", "ready1")
        process.send_signal(signal.SIGUSR1)
        _, err = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 6, err)
        self.expect_nothing_left()


class Strangers(launch.LaunchTest):

    def test_connections_that_were_not_invited_get_nothing(self):
        # This remote shell keeps the invitation to itself for a moment, while strangers knock at the port in it.
        gate = os.path.join(self.directory, "gate")
        ssh = os.path.join(self.directory, "slow-ssh")
        with open(ssh, "w") as file:
            file.write(f"#!/bin/sh\nread invitation; echo \"$invitation\" > {gate}.new; mv {gate}.new {gate}\n"
                       f"while test ! -e {gate}.open; do sleep .01; done; shift; echo \"$invitation\" | sh -c \"$*\"\n")
        os.chmod(ssh, 0o755)
        process = self.start("-launcher-exec", ssh, "-hosts", "a.invalid", "echo", "hello")
        self.await_files("gate")
        with open(gate) as file:
            _, node, port, secret, *_ = file.read().split()
        nonce = "0" * 32
        right = launch.proof(secret, "weft-proxy", f"0 {nonce} {nonce}")  # of a challenge that was not made
        for greeting in (b"GET / HTTP/1.1\r\n\r\n", b"weft-proxy 0 " + b"0" * 32 + b"\n", b"weft-proxy 0\n",
                         b"weft-proxy 0 " + secret.encode() + b"\n", f"weft-proxy 0 {nonce} {right}\n".encode(),
                         b"x" * 100000, b"\0" * 100):
            with socket.create_connection(("127.0.0.1", int(port)), timeout=20) as stranger:
                try:
                    stranger.sendall(greeting)
                    stranger.shutdown(socket.SHUT_WR)
                    self.assertRegex(stranger.makefile().read(), "^weft-mpiexec [0-9a-f]{32}\n$", greeting[:40])
                except OSError:
                    pass  # a reset is as good an answer
        silent = socket.create_connection(("127.0.0.1", int(port)))
        open(gate + ".open", "w").close()
        out, err = process.communicate(timeout=30)
        silent.close()
        self.assertEqual((process.returncode, out), (0, "hello\n"), err)

    def test_a_proxy_trusts_no_one_who_does_not_know_the_secret(self):
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        def answer():
            connection, _ = listener.accept()
            connection.sendall(b"weft-mpiexec " + b"0" * 32 + b"\n")
            connection.recv(1000)
            connection.sendall(b"weft-mpiexec " + b"0" * 64 + b"\n")
            connection.close()

        thread = threading.Thread(target=answer)
        thread.start()
        invitation = f"weft-proxy 0 {listener.getsockname()[1]} {'1' * 32} 127.0.0.1\n"
        done = self.run_job("--proxy", given=invitation)
        thread.join()
        listener.close()
        self.assertEqual(done.status, 1)
        self.assertIn("cannot connect to mpiexec", done.err)

    def test_proxy_mode_is_not_for_people(self):
        done = self.run_job("--proxy", given="hello\n")
        self.assertEqual(done.status, 1)
        self.assertIn("for mpiexec's own use", done.err)


if __name__ == "__main__":
    launch.main()
