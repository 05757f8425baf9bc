"""Unmodified TCP programs whose sockets librspreload.so turns into rsockets."""

import os
import shutil
import tempfile

import stock

# A child of vfork closes all numbers, and the parent keeps its socket; then the parent closes it in the same way.
CLOSED_RANGES = """
import os, socket, subprocess, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
subprocess.run(["true"], close_fds=True, check=True)
s.sendall(b"still here")
assert s.recv(100) == b"still here"
number = s.detach()
os.closerange(number, number + 1)
while (fd := os.open(__file__, os.O_RDONLY)) != number:
    assert fd < number
assert os.read(number, 100) != b""
print("its own again")
"""

ECHO_SERVER = """
import asyncio, sys
async def serve(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]))
    async with server:
        await server.serve_forever()
asyncio.run(main())
"""

ECHO_CLIENT = """
import asyncio, os, sys
async def one():
    reader, writer = await asyncio.open_connection("127.0.0.1", int(sys.argv[1]))
    content = os.urandom(300000)
    async def send():
        writer.write(content)
        await writer.drain()
    sending = asyncio.create_task(send())
    assert await reader.readexactly(len(content)) == content
    await sending
    writer.write_eof()
    assert await reader.read() == b""
    writer.close()
async def main():
    await asyncio.gather(*(one() for _ in range(8)))
    print("all came back")
asyncio.run(main())
"""

OPTIONS_AND_ENDS = """
import socket, sys
client = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=20)
assert client.getpeername() == ("127.0.0.1", int(sys.argv[1]))
client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
assert client.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
copy = client.dup()          # dup
client.close()               # the other stays
copy.sendall(b"hello")
assert copy.recv(5, socket.MSG_WAITALL) == b"hello"
copy.settimeout(0.05)
try:
    copy.recv(1)
    sys.exit("recv returned")
except socket.timeout:
    pass
copy.settimeout(20)
with open(sys.argv[0], "rb") as file:
    whole = file.read()
    copy.sendfile(file)      # from its beginning: Python seeks
    assert copy.recv(len(whole), socket.MSG_WAITALL) == whole
copy.shutdown(socket.SHUT_WR)
assert copy.recv(1) == b""
print("as sockets are")
"""


def rspreload():
    return os.path.join(os.path.dirname(os.path.realpath(stock.weft())), "../lib/weft/rsocket/librspreload.so")


class Rspreload(stock.StockTest):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # It knows Weft's own sockets by who calls, and libtsan's interceptors stand between them.
        if cls.sanitizer == "tsan":
            raise stock.unittest.SkipTest("ThreadSanitizer's interceptors call librspreload's functions in the program's place")

    def setUp(self):
        super().setUp()
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def path(self, name, content=None):
        path = os.path.join(self.directory.name, name)
        if content is not None:
            with open(path, "wb") as file:
                file.write(content if isinstance(content, bytes) else content.encode())
        return path

    def preloaded(self, command, **settings):
        others = stock.sanitizer_settings().get("LD_PRELOAD")
        preload = f"{others}:{rspreload()}" if others else rspreload()
        return self.start(command, LD_PRELOAD=preload, **settings)

    def program(self, name):
        found = shutil.which(name)
        self.expect(found, f"{name} is not installed: tools/setup test")
        return found

    def test_a_socket_is_an_rsocket(self):
        # One end knows of rsockets, the other does not.
        port = stock.free_port()
        server = self.preloaded(f"rstream -T s -T b -T v -p {port} -I 20 -C 5 -S 100000")
        self.await_listener(server, port)
        client = self.start(f"rstream -T b -T v -s 127.0.0.1 -p {port} -I 20 -C 5 -S 100000")
        self.await_success(server, client)

    def fetch(self, url, into):
        # Debian's curl hangs in setlocale() with libasan in front of it, Weft or not.
        if self.sanitizer == "asan":
            return self.preloaded(["python3", "-c", "import sys, urllib.request; urllib.request.urlretrieve(*sys.argv[1:])", url, into])
        return self.preloaded([self.program("curl"), "-sS", "-f", "-o", into, url])

    def test_python_http_server_and_curl(self):
        content = os.urandom(3000000)
        self.path("file", content)
        port = stock.free_port()
        server = self.preloaded(f"python3 -m http.server -b 127.0.0.1 -d {self.directory.name} {port}")
        self.await_listener(server, port)
        for i in range(3):
            client = self.fetch(f"http://127.0.0.1:{port}/file", self.path("copy"))
            self.await_success(client)
            with open(self.path("copy"), "rb") as file:
                self.expect(file.read() == content, "the copy differs")
        missing = self.fetch(f"http://127.0.0.1:{port}/no-such-file", self.path("copy"))
        self.await_condition(lambda: not missing.running(), "the end")
        self.expect("404" in missing.output, "the client did not get the server's answer")

    def test_netcat(self):
        nc = self.program("nc")
        source, copy, port = self.path("source", os.urandom(1000000)), self.path("copy"), stock.free_port()
        server = self.preloaded(["sh", "-c", f"exec {nc} -l 127.0.0.1 {port} > {copy}"])
        self.await_listener(server, port)
        client = self.preloaded(["sh", "-c", f"exec {nc} -N 127.0.0.1 {port} < {source}"])
        self.await_success(server, client)
        with open(source, "rb") as one, open(copy, "rb") as other:
            self.expect(one.read() == other.read(), "the copy differs")

    def test_iperf3_both_ways(self):
        iperf = self.program("iperf3")
        for direction in ("", "-R"):
            port = stock.free_port()
            server = self.preloaded(f"{iperf} -s -1 -p {port}")
            self.await_listener(server, port)
            client = self.preloaded(f"{iperf} -c 127.0.0.1 -p {port} -n 20M -P 2 {direction}")
            self.await_success(server, client)
            self.expect("iperf Done" in client.output, "iperf3 did not say that it is done")

    def test_asyncio_on_epoll(self):
        port = stock.free_port()
        server = self.preloaded(["python3", self.path("server.py", ECHO_SERVER), str(port)])
        self.await_listener(server, port)
        client = self.preloaded(["python3", self.path("client.py", ECHO_CLIENT), str(port)])
        self.await_success(client)
        self.expect("all came back" in client.output, "not all came back")

    def test_duplicates_options_files_and_ends(self):
        port = stock.free_port()
        server = self.preloaded(["python3", self.path("server.py", ECHO_SERVER), str(port)])
        self.await_listener(server, port)
        client = self.preloaded(["python3", self.path("client.py", OPTIONS_AND_ENDS), str(port)])
        self.await_success(client)
        self.expect("as sockets are" in client.output, "it ended early")

    def test_a_number_that_close_range_closed_is_a_socket_no_more(self):
        port = stock.free_port()
        server = self.preloaded(["python3", self.path("server.py", ECHO_SERVER), str(port)])
        self.await_listener(server, port)
        client = self.preloaded(["python3", self.path("client.py", CLOSED_RANGES), str(port)])
        self.await_success(client)
        self.expect("its own again" in client.output, "it ended early")


if __name__ == "__main__":
    stock.main()
