"""Weft's dissector for Wireshark (docs/wireshark/weft.lua): what it says of captures is what went over the wire."""

import os
import re
import struct
import subprocess
import tempfile

import capture
import stock

# DDP control (untagged, last segment), RDMAP control of opcode 15, RsvdULP[8:39], queue 4, MSN, MO: in front of the 16 bytes of payload.
DELIVERY_HEADER = b"\x41\x4f" + bytes(4) + b"\x00\x00\x00\x04" + bytes(8)
SEND_HEADER = re.compile(rb"\x41[\x43\x63]\x00{4}\x00{4}")  # RDMAP control 0x43, or 0x63: an acknowledgement is wanted


def tshark(path, *arguments):
    script = stock.workspace_file("docs/wireshark/weft.lua")
    done = subprocess.run([*capture.TSHARK, "-X", f"lua_script:{script}", "-r", path, *arguments], capture_output=True, text=True)
    if done.returncode != 0 or "Lua" in done.stderr or "Lua Error" in done.stdout:
        raise RuntimeError(f"tshark {path}: {done.stderr}{done.stdout[:2000]}")
    return done.stdout


def values(path, field):
    """Every value of a field in the order of the capture."""
    out = tshark(path, "-T", "fields", "-E", "occurrence=a", "-E", "aggregator=,", "-e", field)
    return [int(value, 0) for line in out.splitlines() for value in line.split(",") if value]


class DissectorTest(stock.StockTest):

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "client.pcap")

    def captured_rping(self, **server_settings):
        settings = {"WEFT_PERSONA": "roce", "WEFT_MPA_CRC": "off"}
        self.run_pair("rping -s -a 127.0.0.1 -p {port} -C 5", "rping -c -a 127.0.0.1 -p {port} -C 5",
                      server_settings=dict(settings, **server_settings), client_settings=dict(settings, WEFT_PCAP=self.path))


class Opcode15(DissectorTest):

    def test_every_message_of_opcode_15_is_dissected(self):
        self.captured_rping()
        opcodes = values(self.path, "iwarp_rdma.opcode")
        self.assertGreater(opcodes.count(capture.DELIVERY), 0)
        kinds = values(self.path, "weft.kind")
        self.assertEqual(kinds, [0] * opcodes.count(capture.DELIVERY))
        self.assertEqual(len(values(self.path, "weft.sequence")), len(kinds))
        self.assertRegex(tshark(self.path), r"\[Weft: acknowledges \d+\]")

    def test_wishes_for_an_acknowledgement_are_shown(self):
        self.captured_rping()
        asked = [rsv & 2 for rsv in values(self.path, "iwarp_rdma.rsv")]
        self.assertGreater(sum(asked), 0)
        self.assertEqual(len(values(self.path, "weft.acknowledge")), sum(map(bool, asked)))

    def test_a_missing_receive_is_told_with_its_time_and_taken_up_again(self):
        self.captured_rping(WEFT_FAULTS="rnr nth=2")
        kinds = values(self.path, "weft.kind")
        self.assertEqual((kinds.count(1), kinds.count(2)), (1, 1), kinds)
        self.assertRegex(tshark(self.path, "-Y", "weft.kind == 1"), r"\[Weft: not ready for \d+, again after \d+\.\d+ ms\]")
        self.assertRegex(tshark(self.path, "-Y", "weft.kind == 2"), r"\[Weft: resumes with \d+\]")

    def rewritten(self, change):
        """The capture with its first message of opcode 15 changed by `change`, which gets and returns the 16 bytes."""
        self.captured_rping()
        with open(self.path, "rb") as file:
            data = file.read()
        at = data.index(DELIVERY_HEADER) + len(DELIVERY_HEADER)
        with open(self.path, "wb") as file:
            file.write(data[:at] + change(data[at:at + 16]) + data[at + 16:])

    def test_a_target_is_shown(self):
        self.rewritten(lambda payload: b"\x03" + payload[1:4] + b"\x00\x00\x12\x34" + payload[8:])
        self.assertIn("[Weft: target 4660]", tshark(self.path))

    def test_an_unknown_kind_is_named(self):
        self.rewritten(lambda payload: b"\x09" + payload[1:])
        self.assertIn("Unknown kind", tshark(self.path, "-V"))
        self.assertEqual(values(self.path, "weft.kind")[0], 9)

    def test_immediate_data_of_a_send_are_shown(self):
        self.captured_rping()
        with open(self.path, "rb") as file:
            data = file.read()
        send = SEND_HEADER.search(data).start()
        control = bytes([data[send + 1] | 0x10])
        with open(self.path, "wb") as file:
            file.write(data[:send + 1] + control + b"\xca\xfe\x00\x01" + data[send + 6:])
        self.assertEqual(values(self.path, "weft.immediate"), [0xcafe0001])


class Datagrams(DissectorTest):

    def test_both_queue_pairs_and_the_length_are_those_that_the_program_names(self):
        settings = {"WEFT_PERSONA": "roce"}
        program = "ibv_ud_pingpong -d weft_lo -g 0 -p {port} -n 3 -s 100"
        output = self.run_pair(program, program + " 127.0.0.1", server_settings=settings,
                               client_settings=dict(settings, WEFT_PCAP=self.path))[1]
        local, remote = (int(re.search(side + r" address:.*QPN (0x\w+)", output).group(1), 16) for side in ("local", "remote"))
        ways = set(zip(values(self.path, "weft_ud.source"), values(self.path, "weft_ud.destination")))
        self.assertEqual(ways, {(local, remote), (remote, local)})
        self.assertEqual(set(values(self.path, "weft_ud.length")), {100})
        self.assertEqual(set(values(self.path, "weft_ud.qkey")), {0x11111111})
        self.assertNotIn("Malformed", tshark(self.path, "-V"))

    def write_capture(self, *payloads):
        """A classic pcap of raw IP with a UDP datagram for each of `payloads`."""
        with open(self.path, "wb") as file:
            file.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 101))
            for payload in payloads:
                udp = struct.pack(">HHHH", 40000, 14000, 8 + len(payload), 0) + payload
                packet = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, bytes([127, 0, 0, 1]), bytes([127, 0, 0, 1])) + udp
                file.write(struct.pack("<IIII", 0, 0, len(packet), len(packet)) + packet)

    @staticmethod
    def datagram(payload, opcode=0, length=None, version=1, flags=0):
        """sim/datagram/header.h"""
        return struct.pack(">2sBBIIIIHH", b"WU", version, opcode, 0x02_123400, 0x40_567800, 0x11111111, 0xcafe0001, flags,
                           len(payload) if length is None else length) + payload

    def test_every_field_of_a_datagram(self):
        self.write_capture(self.datagram(b"hello", opcode=1, flags=1))
        for field, wanted in (("opcode", 1), ("traffic_class", 2), ("destination", 0x123400), ("hop_limit", 0x40), ("source", 0x567800),
                              ("qkey", 0x11111111), ("immediate", 0xcafe0001), ("length", 5)):
            self.assertEqual(values(self.path, f"weft_ud.{field}"), [wanted], field)
        self.assertIn("Solicited event: True", tshark(self.path, "-V"))
        self.assertIn("Send with Immediate, queue pair 0x567800 to 0x123400, 5 bytes", tshark(self.path))

    def test_what_is_no_datagram_of_ours_is_left_to_others(self):
        self.write_capture(self.datagram(b"hello", length=6), self.datagram(b"hello", version=2), self.datagram(b"hello", opcode=2),
                           self.datagram(b"")[:-1], b"WU", b"")
        self.assertEqual(values(self.path, "weft_ud.version"), [])

    def test_the_look_up_of_a_queue_pair(self):
        request = struct.pack(">2sBBQIIH", b"WS", 1, 1, 0x1122334455667788, 0, 0, 3) + b"abc"
        reply = struct.pack(">2sBBQIIH", b"WS", 1, 2, 0x1122334455667788, 0x00_123400, 0x11111111, 0)
        self.write_capture(request, reply, request[:-1])
        self.assertEqual(values(self.path, "weft_sidr.type"), [1, 2])
        self.assertEqual(values(self.path, "weft_sidr.transaction"), [0x1122334455667788] * 2)
        self.assertEqual(values(self.path, "weft_sidr.qp"), [0x123400])
        self.assertIn("Reply: accepted, queue pair 0x123400", tshark(self.path))


if __name__ == "__main__":
    stock.main()
