"""PMI for ranks that somebody else started: mpiexec -kvs-server."""

import hashlib
import os
import pwd
import resource
import select
import signal
import socket
import subprocess
import time

import launch
import mpi

RING = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char** argv) {
  int rank, size, sum = 0, length = 0;
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Get_library_version(version, &length);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("rank %d of %d sum %d %s\n", rank, size, sum, strstr(version, "Weft") ? "Weft" : "MPICH");
  fflush(stdout);
  if (argc > 1 && rank == atoi(argv[1])) _exit(0);
  if (argc > 1) pause();
  MPI_Finalize();
  return 0;
}
"""


class Server:
    """mpiexec -kvs-server, and the ranks that a test starts beside it."""

    def __init__(self, test, ranks, *words, **options):
        self.test = test
        self.size = ranks
        self.process = test.start("-kvs-server", *words, "-n", ranks, **options)
        test.addCleanup(self.process.communicate)
        test.addCleanup(self.process.kill)
        self.environment = {}
        wanted = 4 + ("-secret-file" in words) + ("-socktype" in words)
        while len(self.environment) < wanted:
            line = self.process.stdout.readline()
            if not line:
                test.fail(f"the server did not start: {self.process.communicate()}")
            name, value = line.rstrip("\n").split("=", 1)
            self.environment[name] = value
        host, _, port = self.environment["PMI_PORT"].rpartition(":")
        self.address = (host, int(port))

    def start(self, rank, *command, user=None, out_of_band="NONE", **settings):
        environment = self.test.environment(**{**self.environment, "WEFT_PMI_OOB": out_of_band}, PMI_ID=str(rank), **settings)
        process = subprocess.Popen(list(map(str, command)), env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   cwd="/", user=user)
        self.test.addCleanup(process.communicate)
        self.test.addCleanup(process.kill)
        return process

    def start_all(self, *command, **settings):
        return [self.start(rank, *command, **settings) for rank in range(self.size)]

    def end(self, timeout=launch.TIMEOUT):
        """The exit status, and what it said."""
        try:
            _, err = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.test.fail("the server does not end")
        return self.process.returncode, err

    def connect(self):
        stranger = socket.create_connection(self.address, timeout=20)
        self.test.addCleanup(stranger.close)
        return stranger


def finish(process, timeout=launch.TIMEOUT):
    out, err = process.communicate(timeout=timeout)
    return process.returncode, out, err


def said(stranger):
    """All that comes until the other end closes."""
    answer = b""
    try:
        while block := stranger.recv(4096):
            answer += block
    except ConnectionResetError:
        pass
    return answer


class KvsServer(launch.LaunchTest):

    def expect_ranks_done(self, server, ranks):
        for rank, process in enumerate(ranks):
            status, out, err = finish(process)
            self.assertEqual((status, out, err), (0, f"rank {rank} of {server.size}, application 0, universe {server.size}, secret 32\n", ""))
        self.assertEqual(server.end()[0], 0)

    def test_ranks_that_were_started_by_hand_are_a_job(self):
        for size, versions in ((1, "1"), (1, "2"), (5, "12")):
            server = Server(self, size)
            ranks = [server.start(rank, launch.exchange(), WEFT_PMI=versions[rank % len(versions)]) for rank in range(size)]
            self.expect_ranks_done(server, ranks)

    def test_programs_on_weft_and_on_mpich(self):
        ring = self.compile(RING)
        for name, settings in (("Weft", mpi.WeftUnderHydra.settings()), ("MPICH", {})):
            for size in (1, 4):
                server = Server(self, size)
                outputs = [finish(process) for process in server.start_all(ring, **settings)]
                total = size * (size - 1) // 2
                self.assertEqual([(status, out) for status, out, _ in outputs], [(0, f"rank {r} of {size} sum {total} {name}\n") for r in range(size)], outputs)
                self.assertEqual(server.end()[0], 0)

    def test_a_rank_that_dies_ends_the_others(self):
        ring = self.compile(RING)
        server = Server(self, 3)
        ranks = server.start_all(ring, 1, **mpi.WeftUnderHydra.settings())
        status, err = server.end()
        self.assertEqual(status, 1)
        self.assertRegex(err, r"rank 1 \(127.0.0.1:\d+\) closed its connection without MPI_Finalize; the job ends")
        for rank in 0, 2:
            status, _, err = finish(ranks[rank])
            self.assertNotEqual(status, 0)
            self.assertIn("launcher", err)
        self.expect_nothing_left()

    def test_an_abort_ends_the_others_with_its_code(self):
        server = Server(self, 2)
        ranks = server.start_all(launch.exchange(), "abort", 7)
        status, err = server.end()
        self.assertEqual(status, 7)
        self.assertIn("rank 1 called MPI_Abort: asked to", err)
        status, _, err = finish(ranks[0])
        self.assertEqual(status, 3)
        # Rank 1 may abort while rank 0 still puts.
        self.assertRegex(err, "the launcher closed its connection before it sent cmd=(put_result|barrier_out); it says: rank 1 called MPI_Abort: asked to")

    def test_the_others_hear_why_the_job_ends(self):
        for version in "1", "2":
            server = Server(self, 2)
            ranks = server.start_all(launch.exchange(), "die", signal.SIGKILL, WEFT_PMI=version)
            self.assertEqual(server.end()[0], 1)
            status, _, err = finish(ranks[0])
            self.assertEqual(status, 3)
            self.assertRegex(err, r"; it says: rank 1 \(127.0.0.1:\d+\) closed its connection without MPI_Finalize; the job ends")

    def test_no_signal_comes_with_out_of_band_messages(self):
        server = Server(self, 1)
        for version in "1", "2":
            status, _, err = finish(server.start(0, launch.exchange(), WEFT_PMI=version, out_of_band="SIGUSR1"))
            self.assertEqual(status, 3)
            self.assertIn("WEFT_PMI_OOB=SIGUSR1: the launcher opens no out-of-band channel", err)
            status, err = server.end()
            self.assertEqual(status, 1)
            self.assertIn("it wanted the signal SIGUSR1 with out-of-band messages", err)
            server = Server(self, 1)

    def test_out_of_band_connections_only_listen(self):
        server = Server(self, 1)
        rank = server.connect()
        rank.sendall(b"cmd=initack pmiid=0\ncmd=init pmi_version=1 pmi_subversion=1\n")
        for _ in range(2):
            listener = server.connect()
            listener.sendall(b"cmd=initack pmiid=0\ncmd=init_oob signal=NONE pmi_version=1 pmi_subversion=1\ncmd=get_maxes\n")
            answer = b""
            while b"response_to_init" not in answer:
                answer += listener.recv(1000)
            listener.sendall(b"cmd=get_maxes\n")
            self.assertNotIn(b"maxes", said(listener))  # and is closed
        first, second = server.connect(), server.connect()
        for listener in first, second:
            listener.sendall(b"cmd=initack pmiid=0\ncmd=init_oob signal=NONE pmi_version=1 pmi_subversion=1\n")
        self.assertNotIn(b"response_to_init", said(second))
        rank.close()
        answers = said(first)
        self.assertIn(b"cmd=abort msg=rank%200%20(127.0.0.1", answers)
        status, err = server.end()
        self.assertEqual(status, 1)
        self.assertIn("it sent a request on a connection where rank 0 only listens", err)
        self.assertIn("it wanted to receive out-of-band messages for rank 0, which does already", err)

    def test_a_signal_and_the_time_limit_end_it(self):
        server = Server(self, 2)
        rank = server.start(0, launch.exchange())
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.end(10)[0], 128 + signal.SIGTERM)
        self.assertEqual(finish(rank, 10)[0], 3)
        server = Server(self, 2, "-timeout", 1)
        self.assertEqual(server.end(10), (255, server_note(2) + "mpiexec: the time limit has passed: 0 of 2 ranks had finished\n"))

    def test_what_is_wrong_is_said(self):
        for words, expected in ((("-kvs-server",), "-kvs-server needs -n COUNT"), (("-kvs-server", "-n", 2, "./a"), "'./a' after -kvs-server: it starts no program"),
                                (("-kvs-server=http", "-n", 2), "-kvs-server: 'http' is not a TCP port"),
                                (("-kvs-server", 65536, "-n", 2), "'65536' is not a TCP port")):
            done = self.run_job(*words)
            self.assertEqual(done.status, 2, done)
            self.assertIn(expected, done.err)
        server = Server(self, 1)
        port = server.address[1]
        done = self.run_job("-kvs-server", port, "-n", 1)
        self.assertEqual((done.status, done.err), (1, f"mpiexec: cannot listen for the ranks at port {port}: Address already in use\n"))
        done = self.run_job("-kvs-server", "-n", 1, "-secret-file", "/nonexistent")
        self.assertIn("cannot read the file of the secret, /nonexistent: No such file", done.err)
        with open("/dev/full", "w") as full:
            done = self.run_job("-kvs-server", "-n", 1, stdout=full)
        self.assertEqual(done.status, 1)
        self.assertIn("cannot write the ranks' environment", done.err)


def server_note(size):
    return f"mpiexec: each rank needs these variables, and PMI_ID, from 0 to {size - 1}\n"


class Strangers(launch.LaunchTest):

    def expect_job(self, server, **settings):
        """What strangers do is nothing to the ranks."""
        ranks = server.start_all(launch.exchange(), **settings)
        for process in ranks:
            status, _, err = finish(process)
            self.assertEqual(status, 0, err)
        status, err = server.end()
        self.assertEqual(status, 0, err)
        return err

    def test_what_is_no_pmi_is_turned_away(self):
        server = Server(self, 2)
        for words in (b"GET / HTTP/1.1\r\n\r\n", b"\0" * 100, b"x" * 100_000, b"cmd=get_maxes\n", b"cmd=initack pmiid=2\n", b"cmd=initack pmiid=-1\n",
                      b"cmd=init pmi_version=1 pmi_subversion=1\n", b"cmd=init pmi_version=2 pmi_subversion=0\n999999", b"mcmd=spawn\n" * 5000,
                      b"cmd=init pmi_version=2 pmi_subversion=0\n    38cmd=fullinit;pmijobid=other;pmirank=0;"):
            stranger = server.connect()
            try:
                stranger.sendall(words)
                stranger.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # it has closed already
            said(stranger)
        err = self.expect_job(server)
        self.assertIn("was closed: it sent", err)
        self.assertIn("it claims to be rank 2 of 2", err)
        self.assertIn("pmijobid other is not kvs_", err)

    def test_a_rank_comes_once(self):
        server = Server(self, 1)
        first = server.connect()
        first.sendall(b"cmd=initack pmiid=0\ncmd=init pmi_version=1 pmi_subversion=1\n")
        self.assertIn(b"rank=0", first.recv(1000))
        second = server.connect()
        second.sendall(b"cmd=initack pmiid=0\ncmd=init pmi_version=1 pmi_subversion=1\n")
        self.assertNotIn(b"response_to_init", said(second))
        first.sendall(b"cmd=finalize\n")
        while not (answer := first.recv(1000)).endswith(b"cmd=finalize_ack\n"):
            self.assertTrue(answer)
        first.close()
        status, err = server.end()
        self.assertEqual(status, 0, err)
        self.assertIn("it claims to be rank 0, which has already connected", err)

    def test_a_thousand_who_say_nothing_hold_nobody_up_for_long(self):
        resource.setrlimit(resource.RLIMIT_NOFILE, (2048, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        server = Server(self, 2)
        strangers = []
        for _ in range(1000):
            stranger = socket.socket()
            stranger.setblocking(False)
            stranger.connect_ex(server.address)
            strangers.append(stranger)
            self.addCleanup(stranger.close)
        begin = time.monotonic()
        self.expect_job(server)
        self.assertLess(time.monotonic() - begin, 20)

    def test_a_server_without_descriptors_goes_on(self):
        words = ["bash", "-c", 'ulimit -n 40; exec "$@"', "-", launch.mpiexec()]
        process = subprocess.run([*words, "-kvs-server", "-n", "20"], env=self.environment(), capture_output=True, text=True, timeout=launch.TIMEOUT)
        self.assertEqual(process.returncode, 1)
        self.assertIn("a server of 20 ranks needs 72 descriptors, and may have 40 (ulimit -n)", process.stderr)
        limited = os.path.join(self.directory, "mpiexec")
        with open(limited, "w") as file:
            file.write(f"#!/bin/bash\nulimit -n 39\nexec {launch.mpiexec()} \"$@\"\n")
        os.chmod(limited, 0o755)
        server = Server(self, 3, launcher=limited)
        strangers = [server.connect() for _ in range(20)]  # one at a time
        self.expect_job(server)
        del strangers

    def test_other_users_are_turned_away(self):
        if os.geteuid() != 0:
            self.skipTest("only root can be another user")
        server = Server(self, 1)
        nobody = pwd.getpwnam("nobody").pw_uid
        script = f"exec 3<>/dev/tcp/127.0.0.1/{server.address[1]}; printf 'cmd=initack pmiid=0\\ncmd=init pmi_version=1 pmi_subversion=1\\n' >&3; cat <&3"
        status, out, _ = finish(server.start(0, "bash", "-c", script, user=nobody))
        self.assertNotIn("response_to_init", out)
        self.assertIn(f"it is of another user: {nobody}", self.expect_job(server))

    def test_one_who_does_not_read_is_asked_nothing_more(self):
        server = Server(self, 1)
        rank = server.connect()
        rank.sendall(b"cmd=initack pmiid=0\ncmd=init pmi_version=1 pmi_subversion=1\n")
        rank.sendall(b"cmd=put kvsname=%s key=a value=%s\n" % (server.environment["PMI_JOBID"].encode(), b"x" * 1000))
        question = b"cmd=get kvsname=%s key=a\n" % server.environment["PMI_JOBID"].encode() * 200
        rank.setblocking(False)
        sent = 0
        while select.select([], [rank], [], 0.5)[1] and sent < 64 << 20:
            sent += rank.send(question)
        self.assertLess(sent, 32 << 20, "it takes questions without end")
        with open(f"/proc/{server.process.pid}/status") as status:
            resident = int(next(line for line in status if line.startswith("VmRSS")).split()[1])
        self.assertLess(resident, launch.most_resident())
        rank.setblocking(True)
        rank.close()
        self.assertIn("without MPI_Finalize", server.end()[1])


class SecretTest(launch.LaunchTest):

    def setUp(self):
        super().setUp()
        self.file = os.path.join(self.directory, "secret")
        self.write(self.file, "open sesame")

    @staticmethod
    def write(path, secret):
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(secret + "\n")


class Secret(SecretTest):

    def test_who_knows_it_is_served(self):
        server = Server(self, 3, "-secret-file", self.file)
        self.assertEqual(server.environment["WEFT_PMI_SECRET_FILE"], self.file)
        for process in server.start_all(launch.exchange()):
            status, _, err = finish(process)
            self.assertEqual(status, 0, err)
        self.assertEqual(server.end()[0], 0)

    def test_others_are_not(self):
        server = Server(self, 1, "-secret-file", self.file)
        wrong = os.path.join(self.directory, "wrong")
        self.write(wrong, "guess")
        environment = dict(server.environment)
        server.environment["WEFT_PMI_SECRET_FILE"] = wrong
        status, _, err = finish(server.start(0, launch.exchange()))
        self.assertEqual(status, 3)
        self.assertIn("the launcher closed its connection", err)
        del server.environment["WEFT_PMI_SECRET_FILE"]
        for version, expected in (("2", "authtype=challenge-sha256 is needed here"), ("1", "the launcher closed its connection before it sent cmd=initack")):
            status, _, err = finish(server.start(0, launch.exchange(), WEFT_PMI=version))
            self.assertEqual(status, 3)
            self.assertIn(expected, err)
        server.environment = environment
        self.assertEqual(finish(server.start(0, launch.exchange()))[0], 0)
        status, err = server.end()
        self.assertEqual(status, 0)
        for expected in "does not know the secret", "authtype=challenge-sha256 is needed", "used PMI version 1, which cannot prove":
            self.assertIn(expected, err)


class Tls(SecretTest):
    """PMI_SOCKTYPE=OpenSSL, and peers that lie."""

    IDENTITY = ["-psk_identity", "weft-pmi", "-psk", hashlib.sha256(b"open sesame").hexdigest()]

    def serve(self, ranks):
        server = Server(self, ranks, "-secret-file", self.file, "-socktype", "OpenSSL")
        self.assertEqual(server.environment["PMI_SOCKTYPE"], "OpenSSL")
        return server

    def expect_job(self, server):
        for process in server.start_all(launch.exchange()):
            status, _, err = finish(process)
            self.assertEqual(status, 0, err)
        status, err = server.end()
        self.assertEqual(status, 0, err)
        return err

    def test_both_versions_and_mpi_programs_are_served(self):
        for version in "1", "2":
            server = self.serve(3)
            for process in server.start_all(launch.exchange(), WEFT_PMI=version):
                status, _, err = finish(process)
                self.assertEqual(status, 0, err)
            self.assertEqual(server.end()[0], 0)
        server = self.serve(3)
        ring = self.compile(RING)
        for process in server.start_all(ring, **mpi.WeftUnderHydra.settings()):
            status, out, err = finish(process)
            self.assertEqual((status, out[-6:]), (0, " Weft\n"), err)
        self.assertEqual(server.end()[0], 0)

    def test_a_rank_that_dies_ends_the_others(self):
        server = self.serve(2)
        ranks = server.start_all(launch.exchange(), "die", signal.SIGKILL)
        self.assertEqual(server.end()[0], 1)
        status, _, err = finish(ranks[0])
        self.assertEqual(status, 3)
        self.assertIn("the launcher closed its connection", err)

    def test_openssl_itself_can_be_a_rank(self):
        server = self.serve(1)
        client = subprocess.Popen(["openssl", "s_client", "-connect", "%s:%d" % server.address, "-tls1_3", "-quiet", *self.IDENTITY], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(client.communicate)
        client.stdin.write(b"cmd=initack pmiid=0\ncmd=init pmi_version=1 pmi_subversion=1\ncmd=finalize\n")
        client.stdin.flush()
        answer = b""
        while not answer.endswith(b"cmd=finalize_ack\n"):
            answer += os.read(client.stdout.fileno(), 1000)
        client.kill()
        self.assertEqual(server.end()[0], 0)

    def test_strangers_are_named_and_hold_nobody_up(self):
        server = self.serve(2)
        silent = server.connect()
        begin = time.monotonic()
        listener, waiting = self.silent_launcher()
        hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
        for words in (b"GET / HTTP/1.1\r\n\r\n", b"cmd=initack pmiid=0\n", b"\0" * 100, hello, hello + b"\xff" * 70_000, b"\x16\x03\x03\xff\xff" + b"x" * 70_000, b"\x16"):
            stranger = server.connect()
            try:
                stranger.sendall(words)
                stranger.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # it has closed already
            answer = said(stranger)
            self.assertNotIn(b"initack", answer)
        self.write(wrong := os.path.join(self.directory, "wrong"), "guess")
        server.environment["WEFT_PMI_SECRET_FILE"] = wrong
        status, _, err = finish(server.start(0, launch.exchange()))
        self.assertEqual(status, 3)
        self.assertIn("cannot use PMI_SOCKTYPE=OpenSSL with the launcher: it did not prove by TLS that it knows the secret", err)
        server.environment["WEFT_PMI_SECRET_FILE"] = self.file
        del server.environment["PMI_SOCKTYPE"]
        status, _, err = finish(server.start(0, launch.exchange()))
        self.assertEqual(status, 3)
        self.assertIn("the launcher", err)
        server.environment["PMI_SOCKTYPE"] = "OpenSSL"
        said(silent)  # closed at last
        status, _, err = finish(waiting)
        self.assertEqual(status, 3)
        self.assertIn("cannot use PMI_SOCKTYPE=OpenSSL with the launcher: it did not complete the TLS handshake within 10 s", err)
        listener.close()
        self.assertLess(time.monotonic() - begin, 15)
        err = self.expect_job(server)
        self.assertIn("it did not prove by TLS that it knows the secret", err)
        self.assertIn("it did not tell its rank within 10 s", err)

    def start_rank_of(self, listener):
        environment = self.environment(PMI_PORT="127.0.0.1:%d" % listener.getsockname()[1], PMI_ID="0", PMI_SIZE="1", PMI_SOCKTYPE="OpenSSL", WEFT_PMI_SECRET_FILE=self.file)
        return subprocess.Popen([launch.exchange()], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def silent_launcher(self):
        """One that takes connections and says nothing, and a rank that has come to it."""
        listener = socket.create_server(("127.0.0.1", 0))
        return listener, self.start_rank_of(listener)

    def test_a_launcher_that_lies_is_named(self):
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def error_when(answer):
            process = self.start_rank_of(listener)
            connection = listener.accept()[0]
            with connection:
                connection.recv(4096)
                try:
                    connection.sendall(answer)
                    connection.shutdown(socket.SHUT_WR)
                except OSError:
                    pass  # it has gone already
                status, _, err = finish(process, 20)
            self.assertEqual(status, 3)
            return err

        for answer, expected in ((b"HTTP/1.1 400\r\n\r\n", "it did not prove by TLS"), (b"cmd=initack\n", "it did not prove by TLS"),
                                 (b"\x15\x03\x03\x00\x02\x02\x28", "it did not prove by TLS"), (b"\x16\x03\x03\xff\xff" + b"x" * 70_000, "it did not prove by TLS"),
                                 (b"", "it closed the connection during the TLS handshake"), (b"\x16\x03\x03\x00\x7a\x02", "it closed the connection during the TLS handshake")):
            self.assertIn("cannot use PMI_SOCKTYPE=OpenSSL with the launcher: " + expected, error_when(answer))

    def test_what_is_missing_is_said(self):
        done = self.run_job("-kvs-server", "-n", 1, "-socktype", "OpenSSL")
        self.assertEqual((done.status, done.err), (1, "mpiexec: -socktype OpenSSL needs a secret, from -secret-file or WEFT_PMI_SECRET_FILE\n"))
        done = self.run_job("-kvs-server", "-n", 1, "-socktype", "GnuTLS")
        self.assertIn("'GnuTLS' is unknown; it can be POSIX or OpenSSL", done.err)
        for settings, expected in (({"PMI_SOCKTYPE": "OpenSSL"}, "PMI_SOCKTYPE=OpenSSL needs a secret, and WEFT_PMI_SECRET_FILE is not set"),
                                   ({"PMI_SOCKTYPE": "x"}, "PMI_SOCKTYPE=x is unknown; it can be POSIX or OpenSSL")):
            done = self.run_job(launcher=launch.exchange(), settings={"PMI_PORT": "127.0.0.1:1", "PMI_ID": "0", **settings})
            self.assertEqual((done.status, done.err), (3, f"exchange: {expected}\n"))


if __name__ == "__main__":
    launch.main()
