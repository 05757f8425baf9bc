"""impirun -server, asked by clients that are written here from IMPI 0.0, chapter 2."""

import os
import resource
import signal
import socket
import struct
import subprocess
import time
import unittest

import stock

BOUND = 20  # seconds, for whatever must happen
KEY = 5678
HOSTS, PORTS = 0x1100, 0x2100  # IMPI_C_NHOSTS, IMPI_H_PORT


class Client:
    """A connection to the server. Each receive() must come in time."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=BOUND)

    def send(self, command, payload=b""):
        self.socket.sendall(command.encode() + struct.pack(">i", len(payload)) + payload)

    def receive_bytes(self, count):
        got = b""
        while len(got) < count:
            more = self.socket.recv(count - len(got))
            if not more:
                raise EOFError(got)
            got += more
        return got

    def receive(self):
        command, length = self.receive_bytes(4).decode(), struct.unpack(">i", self.receive_bytes(4))[0]
        return command, self.receive_bytes(length)

    def authenticate(self, mask=2, key=KEY):
        """Which method the server chose."""
        self.send("AUTH", struct.pack(">I", mask))
        which, length = struct.unpack(">ii", self.receive_bytes(8))
        assert length == 0, length
        if which == 1:
            self.socket.sendall(struct.pack(">Q", key))
        return which

    def join(self, rank):
        self.authenticate()
        self.send("IMPI", struct.pack(">i", rank))
        return self

    def collect(self, label, *values):
        self.send("COLL", struct.pack(f">i{len(values)}i", label, *values))

    def is_closed(self):
        """Whether the server ends the connection, in time."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def close(self):
        self.socket.close()


class ServerTest(unittest.TestCase):
    def serve(self, *words, environment=None, **settings):
        """The server, and the port that its first line names."""
        given = {"IMPI_AUTH_KEY": str(KEY)} if environment is None else environment
        names = {name: value for name, value in os.environ.items() if not name.startswith("IMPI_")}
        server = subprocess.Popen([stock.workspace_file("impi/impirun"), *words], env={**names, **given}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True, **settings)
        self.addCleanup(self.end, server)
        line = server.stdout.readline()
        self.assertRegex(line, r"^\d+\.\d+\.\d+\.\d+:\d+\n$")
        return server, int(line.split(":")[1])

    def end(self, server):
        server.kill()
        server.communicate()

    def outcome(self, server):
        """Its exit status, and what it said; on standard output nothing but the first line."""
        output, errors = server.communicate(timeout=BOUND)
        self.assertEqual(output, "")
        return server.returncode, errors

    def play(self, port, clients=2):
        """A whole job."""
        joined = [Client(port).join(rank) for rank in range(clients)]
        for client in joined:
            self.assertEqual(client.receive(), ("IMPI", struct.pack(">i", clients)))
        for rank, client in enumerate(joined):
            client.collect(HOSTS, rank + 1)
            client.collect(PORTS, *range(5000, 5001 + rank))
            client.send("DONE")
        mask = (1 << clients) - 1
        for client in joined:
            self.assertEqual(client.receive(), ("COLL", struct.pack(f">iI{clients}i", HOSTS, mask, *range(1, clients + 1))))
            ports = [port for rank in range(clients) for port in range(5000, 5001 + rank)]
            self.assertEqual(client.receive(), ("COLL", struct.pack(f">iI{len(ports)}i", PORTS, mask, *ports)))
            self.assertEqual(client.receive(), ("DONE", b""))
        for client in joined:
            client.send("FINI")
            self.assertTrue(client.is_closed())
            client.close()

    def test_clients_exchange_what_they_say_and_end(self):
        for clients in (1, 2, 3, 32):
            with self.subTest(clients=clients):
                server, port = self.serve("-server", str(clients))
                self.play(port, clients)
                self.assertEqual(self.outcome(server), (0, ""))

    def test_the_client_that_left_first_is_named_however_late_the_server_looks(self):
        for first in 0, 1:
            with self.subTest(first=first):
                server, port = self.serve("-server", "2")
                clients = [Client(port).join(rank) for rank in range(2)]
                for client in clients:
                    client.receive()
                os.kill(server.pid, signal.SIGSTOP)
                os.waitid(os.P_PID, server.pid, os.WSTOPPED)
                clients[first].close()
                clients[1 - first].close()
                os.kill(server.pid, signal.SIGCONT)
                status, errors = self.outcome(server)
                self.assertEqual(status, 1)
                self.assertRegex(errors, rf"client {first} .* left")

    def test_listens_at_the_port_that_is_asked_for(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            done = subprocess.run([stock.workspace_file("impi/impirun"), "-server", "1", "-port", str(port)], env={"IMPI_AUTH_NONE": ""}, capture_output=True,
                                  text=True, timeout=BOUND, check=False)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (1, "", f"impirun: cannot listen for clients at port {port}: Address already in use\n"))
        server, served = self.serve("-server", "1", "-port", str(port))
        self.assertEqual(served, port)
        self.play(port, 1)
        self.assertEqual(self.outcome(server), (0, ""))

    def test_methods_of_authentication(self):
        key, none = {"IMPI_AUTH_KEY": str(KEY)}, {"IMPI_AUTH_NONE": "1"}
        for environment, words, mask, chosen in [(key, [], 2, 1), (none, [], 1, 0), ({**key, **none}, [], 3, 1), ({**key, **none}, ["-auth", "0,1"], 3, 0),
                                                 ({**key, **none}, ["-auth", "3,1-0"], 1, 0)]:
            with self.subTest(environment=environment, words=words, mask=mask):
                server, port = self.serve("-server", "1", *words, environment=environment)
                client = Client(port)
                self.assertEqual(client.authenticate(mask), chosen)
                client.send("IMPI", struct.pack(">i", 0))
                self.assertEqual(client.receive()[0], "IMPI")
                client.send("DONE")
                self.assertEqual(client.receive()[0], "DONE")
                client.send("FINI")
                status, errors = self.outcome(server)
                self.assertEqual(status, 0)
                self.assertEqual("has authenticated with IMPI_AUTH_NONE" in errors, chosen == 0, errors)

    def test_without_a_method_it_says_what_to_set(self):
        done = subprocess.run([stock.workspace_file("impi/impirun"), "-server", "2"], env={}, capture_output=True, text=True, timeout=BOUND, check=False)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("set IMPI_AUTH_KEY to a number that server and clients share", done.stderr)

    def test_who_is_no_client_is_turned_away_and_the_job_goes_on(self):
        server, port = self.serve("-server", "2")
        wrong = Client(port)
        wrong.authenticate(key=KEY + 1)
        self.assertTrue(wrong.is_closed())
        other = Client(port)
        other.send("AUTH", struct.pack(">I", 1))
        self.assertTrue(other.is_closed())
        web = Client(port)
        web.socket.sendall(b"GET / HTTP/1.1\r\n\r\n")
        self.assertTrue(web.is_closed())
        third = Client(port).join(2)
        self.assertTrue(third.is_closed())
        self.play(port)
        status, errors = self.outcome(server)
        self.assertEqual(status, 0)
        for text in ("sent a wrong key", "none of which this server accepts", "wants to be client 2; this job has the clients 0 to 1"):
            self.assertIn(text, errors)
        self.assertRegex(errors, r"warning: 127\.0\.0\.1:\d+ sent a wrong key")

    def test_a_client_that_dies_ends_the_job_for_all(self):
        server, port = self.serve("-server", "2")
        first, second = Client(port).join(0), Client(port).join(1)
        self.assertEqual(first.receive()[0], "IMPI")
        second.receive()
        second.close()
        self.assertTrue(first.is_closed())
        status, errors = self.outcome(server)
        self.assertEqual(status, 1)
        self.assertRegex(errors, r"^impirun: client 1 \(.*\) left before it said that its processes have ended \(FINI\)\n$")

    def test_strangers_keep_no_client_out(self):
        server, port = self.serve("-server", "2")
        silent = [Client(port) for _ in range(60)]
        self.play(port)
        self.assertEqual(self.outcome(server)[0], 0)
        for stranger in silent:
            self.assertTrue(stranger.is_closed())
            stranger.close()

    def test_without_descriptors_it_waits_for_them(self):
        server, port = self.serve("-server", "2", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16)))
        silent = [Client(port) for _ in range(20)]
        began = os.times()
        time.sleep(0.5)  # in which it must not spin
        with open(f"/proc/{server.pid}/stat", encoding="ascii") as file:
            ticks = sum(int(word) for word in file.read().rsplit(")", 1)[1].split()[11:13])
        self.assertLess(ticks / os.sysconf("SC_CLK_TCK"), 0.25 * (os.times().elapsed - began.elapsed))
        for stranger in silent:
            stranger.close()
        self.play(port)
        self.assertEqual(self.outcome(server)[0], 0)

    def test_a_signal_ends_it(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            server, port = self.serve("-server", "2")
            client = Client(port).join(0)
            server.send_signal(number)
            self.assertTrue(client.is_closed())
            status, errors = self.outcome(server)
            self.assertEqual((status, errors), (1, "impirun: a signal ends the server, and with it the job\n"))


if __name__ == "__main__":
    stock.main()
