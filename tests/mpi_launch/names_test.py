"""The name server that several mpiexecs share."""

import os
import resource
import signal
import socket
import stat
import time

import launch


class Names(launch.LaunchTest):

    def setUp(self):
        super().setUp()
        self.file = os.path.join(self.directory, "names")
        self.server = self.start("-nameserver-run", self.file)
        self.addCleanup(self.server.communicate)
        self.addCleanup(self.server.kill)
        self.await_files("names")

    def rank(self, *words, **options):
        return self.run_job("-nameserver", self.file, "-n", 1, launch.spawner(), *words, **options)

    def publish(self, service, port, *words):
        """A job that has published a name, and lives."""
        process = self.start("-nameserver", self.file, "-n", 1, launch.spawner(), "publish", service, port, os.path.join(self.directory, "go on"),
                             *words)
        self.await_condition(lambda: self.rank("lookup", service).out.strip() == port, "the name")
        return process

    def test_jobs_that_were_started_apart_share_names(self):
        for version in "1", "2":
            done = self.rank("lookup", "my service", settings={"WEFT_PMI": version})
            self.assertIn("no process has published the service my service", done.out)
        publisher = self.publish("my service", "tcp:1 2")
        done = self.run_job("-n", 1, launch.spawner(), "lookup", "my service", settings={"WEFT_PMI_NAMESERVER": self.file})
        self.assertEqual(done.out.strip(), "tcp:1 2", done)
        done = self.rank("publish", "my service", "other")
        self.assertIn("refuses to publish my service", done.err)
        publisher.send_signal(signal.SIGKILL)
        publisher.communicate()
        self.await_condition(lambda: "no process has published" in self.rank("lookup", "my service").out, "the end of the name")

    def test_only_who_can_read_the_file_is_served(self):
        self.assertEqual(os.stat(self.file).st_mode & 0o777, 0o600)
        with open(self.file) as file:
            name, port, secret, *addresses = file.read().split()
        for words, expected in ((b"GET / HTTP/1.1\r\n\r\n", b""), (b"cmd=init pmi_version=1 pmi_subversion=1\n", b"pmi_version=2 pmi_subversion=0 rc=-1"),
                                (b"cmd=init pmi_version=2 pmi_subversion=0\n    13cmd=fullinit;", b"authtype=challenge-sha256 is needed here"),
                                (b"cmd=init pmi_version=2 pmi_subversion=0\n    25cmd=name-lookup;name=abc;;", b"rc=0\n")):
            with socket.create_connection(("127.0.0.1", int(port)), timeout=10) as stranger:
                stranger.sendall(words)
                stranger.shutdown(socket.SHUT_WR)
                said = b""
                while block := stranger.recv(4096):
                    said += block
                self.assertIn(expected, said)
                self.assertNotIn(b"name-lookup-response", said)
        with open(self.file, "w") as file:
            file.write(" ".join([name, port, "0" * len(secret), *addresses]) + "\n")
        done = self.rank("lookup", "a")
        self.assertEqual(done.status, 1, done)
        self.assertIn(f"cannot use the name server of {self.file}: it closed the connection", done.err)
        os.chmod(self.file, 0o644)
        self.assertIn("others can read it: mode 644", self.rank("lookup", "a").err)
        os.unlink(self.file)
        self.assertIn("cannot read the name server's file", self.rank("lookup", "a").err)

    def processor_seconds(self):
        with open(f"/proc/{self.server.pid}/stat") as stat_file:
            fields = stat_file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def test_one_without_descriptors_lets_jobs_wait_and_does_not_spin(self):
        with open(self.file) as file:
            port = int(file.read().split()[1])
        open_files = len(os.listdir(f"/proc/{self.server.pid}/fd"))
        before = resource.prlimit(self.server.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(self.server.pid, resource.RLIMIT_NOFILE, (open_files + 1, before[1]))
        with socket.create_connection(("127.0.0.1", port), timeout=10):
            self.await_condition(lambda: len(os.listdir(f"/proc/{self.server.pid}/fd")) == open_files + 1, "the one that has a descriptor")
            with socket.create_connection(("127.0.0.1", port), timeout=10) as waiting:
                spent = self.processor_seconds()
                time.sleep(1)  # one that spins takes all of it, or its half on a busy machine
                self.assertLess(self.processor_seconds() - spent, 0.1)
                resource.prlimit(self.server.pid, resource.RLIMIT_NOFILE, before)
                waiting.sendall(b"cmd=init pmi_version=1 pmi_subversion=1\n")
                self.assertIn(b"rc=-1", waiting.recv(4096), "it is served when there is a descriptor again")

    def test_what_is_no_file_is_refused_at_once(self):
        fifo = os.path.join(self.directory, "fifo")
        os.mkfifo(fifo, 0o600)
        for option, words in (("-nameserver", f"cannot read the name server's file {fifo}: it is a pipe, not a file"),
                              ("-nameserver-run", f"cannot write the name server's file {fifo}: it is a pipe, not a file")):
            done = self.run_job(option, fifo, *(("-n", 1, "true") if option == "-nameserver" else ()))
            self.assertEqual(done.status, 1, done)
            self.assertIn(words, done.err)
        self.assertTrue(stat.S_ISFIFO(os.stat(fifo).st_mode))

    def test_a_signal_ends_mpiexec_while_the_name_server_is_silent(self):
        with open(self.file) as file:
            name, _, secret, *_ = file.read().split()
        with socket.create_server(("127.0.0.1", 0)) as silent:
            with open(self.file, "w") as file:
                file.write(f"{name} {silent.getsockname()[1]} {secret} 127.0.0.1\n")
            for number in (signal.SIGINT, signal.SIGTERM):
                process = self.start("-nameserver", self.file, "-n", 1, "true", preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [number]))
                with silent.accept()[0]:
                    process.send_signal(number)
                    process.communicate(timeout=20)
                    self.assertEqual(process.returncode, -number, "not what mpiexec says when it has waited long enough")

    def test_its_end_is_not_the_jobs_end(self):
        publisher = self.publish("a", "b")
        self.server.send_signal(signal.SIGTERM)
        self.assertEqual(self.server.wait(10), 0)
        self.assertFalse(os.path.exists(self.file))
        open(os.path.join(self.directory, "go on"), "w").close()
        out, err = publisher.communicate(timeout=20)
        self.assertEqual(publisher.returncode, 0, (out, err))
        self.assertIn(f"the name server of {self.file} is gone; the job goes on", err)


class WithoutAServer(launch.LaunchTest):
    """Jobs of one user on one host."""

    def setUp(self):
        super().setUp()
        self.runtime = {"XDG_RUNTIME_DIR": self.directory}
        self.names = os.path.join(self.directory, "weft-names")

    def lookup(self, service):
        return self.run_job("-n", 1, launch.spawner(), "lookup", service, settings=self.runtime).out.strip()

    def publish(self, service, port, go_on):
        process = self.start("-n", 1, launch.spawner(), "publish", service, port, os.path.join(self.directory, go_on), settings=self.runtime)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def test_jobs_that_were_started_apart_share_names(self):
        self.assertIn("no process has published the service my service", self.lookup("my service"))
        publisher = self.publish("my service", "tcp:1 2", "go on")
        self.await_condition(lambda: self.lookup("my service") == "tcp:1 2", "the name")
        # Another job's name of the same words is its own, as before; others find the first.
        other = self.publish("my service", "other", "go on too")
        open(os.path.join(self.directory, "go on too"), "w").close()
        out, err = other.communicate(timeout=20)
        self.assertEqual(other.returncode, 0, (out, err))
        self.assertEqual(self.lookup("my service"), "tcp:1 2")
        open(os.path.join(self.directory, "go on"), "w").close()
        out, err = publisher.communicate(timeout=20)
        self.assertEqual(publisher.returncode, 0, (out, err))
        self.assertIn("no process has published", self.lookup("my service"))
        self.assertFalse(os.path.exists(self.names))

    def test_the_names_of_an_mpiexec_that_was_killed_are_gone(self):
        publisher = self.publish("my service", "port", "go on")
        self.await_condition(lambda: self.lookup("my service") == "port", "the name")
        publisher.kill()
        publisher.communicate()
        self.assertIn("no process has published", self.lookup("my service"))

    def test_who_names_a_host_as_for_hydra_hears_what_to_do(self):
        for host in ("headnode", "headnode:6392"):
            done = self.run_job("-nameserver", host, "-n", 1, "/bin/true")
            self.assertEqual(done.status, 1, done)
            self.assertIn(f"if '{host}' is a host, as hydra's -nameserver has it: run 'mpiexec -nameserver-run FILE' there", done.err)


if __name__ == "__main__":
    launch.main()
