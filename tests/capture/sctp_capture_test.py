"""Captures of connections over SCTP, natively and in UDP: what tshark says of them."""

import os
import subprocess
import tempfile
import unittest

import capture
import stock

CHECKSUMS = ["-o", "sctp.checksum:CRC 32c", "-o", "udp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]
SESSION_CONTROL, SEGMENT = "17", "16"


def tshark(path, *arguments):
    script = stock.workspace_file("docs/wireshark/weft.lua")
    done = subprocess.run(["tshark", "-X", f"lua_script:{script}", *CHECKSUMS, "-r", path, *arguments], capture_output=True, text=True)
    if done.returncode != 0 or "Lua" in done.stderr:
        raise RuntimeError(f"tshark {path}: {done.stderr}")
    return done.stdout


class SctpCaptureTest(stock.StockTest):
    carriage = "udp"
    addresses = ("127.0.0.1", "::1")

    def captured(self, address, program=None, **settings):
        with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as folder:
            path = os.path.join(folder, "client.pcapng")
            common = {"WEFT_LLP": "sctp", "WEFT_SCTP_CARRIAGE": self.carriage}
            ping = program or f"rping {{side}} -a {address} -p {{port}} -C 30 -S 5000 -V"
            self.run_pair(ping.format(side="-s", port="{port}"), ping.format(side="-c", port="{port}"),
                          server_settings=common, client_settings={**common, "WEFT_PCAP": path, **settings})
            frames = tshark(path).splitlines()
            rows = tshark(path, "-T", "fields", "-e", "sctp.checksum.status", "-e", "udp.checksum.status", "-e", "sctp.chunk_type",
                          "-e", "sctp.data_payload_proto_id",
                          "-e", "sctp.adaptation_layer_indication").splitlines()
            return frames, [row.split("\t") for row in rows], capture.complaints_in(tshark(path, "-V"))

    def check(self, address):
        frames, rows, complaints = self.captured(address)
        self.assertEqual(complaints, [])
        packets = [row for frame, row in zip(frames, rows) if " SCTP " in frame]
        self.assertGreater(len(packets), 60, "there and back")
        for checksum, udp, *_ in packets:
            self.assertEqual(set(checksum.split(",")), {"1"}, "the packet's checksum is good")
            self.assertEqual(udp, "1" if self.carriage == "udp" else "", "of UDP as well")
        protocols = {protocol for row in packets for protocol in row[3].split(",") if protocol}
        self.assertEqual(protocols, {SESSION_CONTROL, SEGMENT})
        return frames


class InUdp(SctpCaptureTest):

    def test_every_packet_is_dissected(self):
        for address in self.addresses:
            self.check(address)


@unittest.skipUnless(os.geteuid() == 0, "SCTP in IP itself needs CAP_NET_RAW")
class InIp(SctpCaptureTest):
    carriage = "ip"

    def test_every_packet_is_dissected(self):
        for address in self.addresses:
            self.check(address)


class Together(SctpCaptureTest):

    def test_both_ends_in_one_process_are_shown_once(self):
        """ucmatose's two ends cannot share a process, but doctor's self test has both."""
        with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as folder:
            path = os.path.join(folder, "both.pcapng")
            self.await_success(self.start([stock.weft(), "doctor"], under_weft=False, WEFT_LLP="sctp", WEFT_PCAP=path))
            sequence = [line for line in tshark(path, "-T", "fields", "-e", "sctp.chunk_type").splitlines() if line]
            self.assertEqual(sum(line.split(",").count("1") for line in sequence), 1, "one INIT")
            self.assertEqual(capture.complaints_in(tshark(path, "-V")), [])


if __name__ == "__main__":
    stock.main()
