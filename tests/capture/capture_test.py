"""Wireshark's iWARP dissector on captures of every operation: nothing malformed, every CRC right, opcodes and lengths as
intended, with CRC and markers on and off. Captured twice: by Weft itself (WEFT_PCAP) and, as root, on the loopback interface."""

import os
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest

import capture
import stock
import stream
from capture import Message

SIZES = [0, 1, 7, 1000, 5000, 70000]  # as in every_operation.c
INVALIDATED = 100
READ_REQUEST_HEADER = 28

CLIENT = [Message(opcode, size) for n in SIZES
          for opcode, size in ((capture.SEND, n), (capture.SEND_SOLICITED, n), (capture.WRITE, n),
                               (capture.READ_REQUEST, READ_REQUEST_HEADER))]
CLIENT += [Message(capture.SEND_INVALIDATE, INVALIDATED), Message(capture.SEND_INVALIDATE_SOLICITED, INVALIDATED),
           Message(capture.READ_REQUEST, READ_REQUEST_HEADER)]
DELIVERY = Message(capture.DELIVERY, 16)  # rdmap/delivery.h
SERVER = [Message(capture.READ_RESPONSE, n) for n in SIZES]


class Wire:
    """A capture of one port of the loopback interface while a `with` block runs."""

    def __init__(self, path, port):
        self._path, self._port = path, port
        self._capture = subprocess.Popen(
            ["dumpcap", "-q", "-i", "lo", "-B", "64", "-f", f"tcp port {port}", "-w", path], stderr=subprocess.PIPE,
            text=True)
        for line in self._capture.stderr:  # it says so when it has begun
            if line.startswith("File:"):
                break

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # Packets come to the file late, but in order: a connection of our own, which nobody answers, marks the end.
        with socket.socket() as mark:
            mark.connect_ex(("127.0.0.1", self._port))
            deadline = time.monotonic() + 20
            while not capture.has_port(self._path, mark.getsockname()[1]) and time.monotonic() < deadline:
                time.sleep(0.1)
        self._capture.send_signal(signal.SIGINT)
        self._capture.wait(20)
        self._capture.stderr.close()


class CaptureTest(stock.StockTest):

    def setUp(self):
        super().setUp()
        self._folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.folder = self._folder.name

    def tearDown(self):
        super().tearDown()
        self._folder.cleanup()

    def check_frames(self, path, crc, markers):
        """What must be true of any capture of one connection. Returns {source port: messages}."""
        faults = capture.complaints(path)
        self.expect(not faults, f"{path}: " + "\n".join(faults[:20]))
        greetings = capture.handshakes(path)
        self.expect(set(greetings) == {"req", "rep"}, f"start-up frames: {greetings}")
        for kind, (wants_markers, wants_crc, _) in greetings.items():
            self.expect(wants_crc == crc, f"CRC flag of the {kind} is {wants_crc}")
            self.expect(wants_markers == markers, f"marker flag of the {kind} is {wants_markers}")
        self.expect((capture.good_crcs(path) > 0) == crc, f"{capture.good_crcs(path)} CRCs were verified")
        if not markers:
            rest = capture.undissected_bytes(path)
            self.expect(rest == 0, f"{rest} bytes belong to no frame")
        return capture.messages(path)

    def read_stream(self, path, crc, markers):
        """The same by a reader of our own, which Wireshark's troubles with markers do not touch (see stream.py)."""
        return {port: stream.messages(stream.parse(data, crc, markers)) for port, data in stream.payloads(path).items()}

    def check_every_operation(self, flows, port, persona):
        server = flows.pop(port)
        self.expect(len(flows) == 1, f"{len(flows)} clients")
        client = flows.popitem()[1]
        if persona == "roce":  # beside what they are about, the two tell each other what they carried out
            self.expect(DELIVERY in server, "the server acknowledges nothing")
            server, client = ([m for m in side if m != DELIVERY] for side in (server, client))
        if client[0] != CLIENT[0] or client[1] != CLIENT[1]:
            ready_to_receive = client.pop(0)  # RFC 6581 section 9: an empty Write, Read or Send
            self.expect(ready_to_receive.length in (0, READ_REQUEST_HEADER), f"{ready_to_receive} begins")
            if ready_to_receive.opcode == capture.READ_REQUEST:
                server.pop(0)
        self.expect(client == CLIENT, f"the client sent {client} instead of {CLIENT}")
        self.expect(server[:-1] == SERVER, f"the server sent {server[:-1]} instead of {SERVER}")
        self.expect(server[-1].opcode == capture.TERMINATE, f"the server ends with {server[-1]}")

    def every_operation(self, wire=False, crc=False, markers=False, persona="iwarp", **settings):
        port = stock.free_port()
        program = stock.workspace_file("tests/capture/every_operation")
        settings = dict(settings, WEFT_PERSONA=persona, WEFT_MPA_CRC="on" if crc else "off", WEFT_MPA_MARKERS="on" if markers else "off")
        path = os.path.join(self.folder, "lo.pcap")
        own = {side: {"WEFT_SAME_HOST": "off"} if wire else {"WEFT_PCAP": os.path.join(self.folder, side + ".pcap")}
               for side in ("server", "client")}
        with Wire(path, port) if wire else tempfile.TemporaryFile():
            server = self.start(f"{program} server {port}", **settings, **own["server"])
            self.await_listener(server, port)
            client = self.start(f"{program} client 127.0.0.1 {port}", **settings, **own["client"])
            self.await_success(server, client)
        self.expect(server.output.count(f"received {INVALIDATED} and invalidated") == 2, "no rkey was invalidated")
        if wire:
            self.check_every_operation(self.read_stream(path, crc, markers), port, persona)
        for file in [path] if wire and not markers else [own[side]["WEFT_PCAP"] for side in own if not wire]:
            self.check_every_operation(self.check_frames(file, crc, markers), port, persona)
            self.expect(capture.terminates(file) == [(0, 1, 0)], f"Terminates: {capture.terminates(file)}")


class Counting(CaptureTest):

    def test_bytes_that_were_sent_twice_count_once(self):
        # 3 segments of 100 bytes, which are no frames; the second is sent again, as TCP's loss probe does, and then a part of the third.
        path = os.path.join(self.folder, "twice.pcap")
        with open(path, "wb") as file:
            file.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 101))
            for sequence, size in ((1, 100), (101, 100), (101, 100), (201, 100), (251, 50)):
                tcp = struct.pack(">HHIIBBHHH", 40000, 14000, sequence, 1, 0x50, 0x10, 1000, 0, 0) + b"x" * size
                ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0, bytes([127, 0, 0, 1]), bytes([127, 0, 0, 2]))
                file.write(struct.pack("<IIII", 0, 0, len(ip + tcp), len(ip + tcp)) + ip + tcp)
        self.assertEqual(capture.undissected_bytes(path), 300)


class EveryOperation(CaptureTest):
    """By Weft's own capture, at both ends."""

    def test_plain(self):
        self.every_operation()

    def test_roce(self):
        self.every_operation(crc=True, persona="roce")

    def test_crc(self):
        self.every_operation(crc=True)

    def test_markers(self):
        self.every_operation(markers=True)

    def test_crc_and_markers(self):
        self.every_operation(crc=True, markers=True)

    def test_revision_1(self):
        self.every_operation(crc=True, WEFT_MPA_REVISION="1")

    def test_without_extensions(self):
        self.every_operation(crc=True, WEFT_EXTENSIONS="off")

    def test_without_extensions_with_markers(self):
        self.every_operation(crc=True, markers=True, WEFT_EXTENSIONS="off")


@unittest.skipUnless(os.geteuid() == 0, "capturing on lo needs root")
class EveryOperationOnTheWire(CaptureTest):
    """What really went over the loopback interface."""

    def test_plain(self):
        self.every_operation(wire=True)

    def test_crc(self):
        self.every_operation(wire=True, crc=True)

    def test_markers(self):
        self.every_operation(wire=True, markers=True)

    def test_crc_and_markers(self):
        self.every_operation(wire=True, crc=True, markers=True)

    def test_crc_without_extensions(self):
        self.every_operation(wire=True, crc=True, WEFT_EXTENSIONS="off")


class StockPrograms(CaptureTest):

    def captured_pair(self, server, client, crc, markers=False):
        path = os.path.join(self.folder, "client.pcap")
        settings = {"WEFT_MPA_CRC": "on" if crc else "off", "WEFT_MPA_MARKERS": "on" if markers else "off"}
        self.run_pair(server, client, server_settings=settings, client_settings=dict(settings, WEFT_PCAP=path))
        return path

    def test_rping_moves_what_it_says(self):
        count, size = 10, 5000
        for crc in (False, True):
            path = self.captured_pair(f"rping -s -a 127.0.0.1 -p {{port}} -C {count} -S {size}",
                                      f"rping -c -a 127.0.0.1 -p {{port}} -C {count} -S {size}", crc)
            total = {}
            for flow in self.check_frames(path, crc, False).values():
                for message in flow:
                    if message.length:
                        total.setdefault(message.opcode, []).append(message.length)
            self.assertEqual(total[capture.READ_REQUEST], [READ_REQUEST_HEADER] * count)
            self.assertEqual(total[capture.READ_RESPONSE], [size] * count)
            self.assertEqual(total[capture.WRITE], [size] * count)
            self.assertEqual(set(total[capture.SEND]), {16})

    def test_ib_write_bw_writes_what_it_says(self):
        command = "ib_write_bw -R -F -p {port} -s 65536 -n 20"
        path = self.captured_pair(command, command + " 127.0.0.1", crc=True, markers=True)
        # Two connections, the exchange of parameters and the test's: only what frames must be is checked.
        faults = capture.complaints(path)
        self.expect(not faults, "\n".join(faults[:20]))
        writes = [m.length for flow in capture.messages(path).values() for m in flow if m.opcode == capture.WRITE]
        self.assertEqual([n for n in writes if n], [65536] * 20)


if __name__ == "__main__":
    stock.main()
