"""What Wireshark's iWARP dissector says about a capture."""

import collections
import functools
import math
import os
import re
import subprocess

# RFC 5040 section 4.3, figure 4
WRITE, READ_REQUEST, READ_RESPONSE, SEND, SEND_INVALIDATE, SEND_SOLICITED, SEND_INVALIDATE_SOLICITED, TERMINATE = range(8)
DELIVERY = 15  # of two Weft ends in the roce persona: acknowledgements and the like

TAGGED_HEADER = 14  # bytes of DDP and RDMAP control, STag and offset in front of a tagged payload
UNTAGGED_HEADER = 18

Message = collections.namedtuple("Message", "opcode length")  # length: payload of all its segments, in bytes
# What Wireshark would guess of the payload above RDMAP (it takes an empty Send for RPC) is not our protocol's business.
TSHARK = ["tshark", "-o", "tcp.try_heuristic_first:TRUE", "--disable-protocol", "rpcordma", "--disable-protocol",
          "smb_direct"]


# Read together, because tshark takes seconds for each run.
TERMINATE_FIELDS = ["iwarp_rdma." + name for name in (
    "term_layer", "term_etype_rdma", "term_etype_ddp", "term_etype_llp", "term_errcode_rdma", "term_errcode_ddp_tagged",
    "term_errcode_ddp_untagged", "term_errcode", "term_errcode_llp")]
FIELDS = ["tcp.srcport", "tcp.seq", "tcp.len", "iwarp_mpa.key.req", "iwarp_mpa.key.rep", "iwarp_mpa.marker_flag",
          "iwarp_mpa.crc_flag", "iwarp_mpa.rev", "iwarp_mpa.pdlength", "iwarp_mpa.ulpdulength", "iwarp_rdma.opcode",
          "iwarp_ddp.tagged_flag", "iwarp_ddp.last_flag", *TERMINATE_FIELDS]


def _tshark(path, *arguments):
    state = os.stat(path)
    return _tshark_of(path, (state.st_ino, state.st_size, state.st_mtime_ns), *arguments)


@functools.lru_cache(maxsize=4)
def _tshark_of(path, _, *arguments):
    done = subprocess.run([*TSHARK, "-r", path, *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"tshark -r {path}: {done.stderr}")
    return done.stdout


def complaints(path):
    """Every line of the full dissection that finds fault with a frame; [] for a capture that is right."""
    return complaints_in(_tshark(path, "-V"))


def complaints_in(dissection):
    """The same of the output of tshark -V."""
    fault = re.compile(r"Malformed|Bad CRC32|Expert Info \((Warning|Error)|Unreassembled|Dissector bug", re.I)
    benign = re.compile(r"Expert Info \(Warning/Sequence\)")  # of TCP: a full window, a reset
    faults, frame = [], "?"
    for line in dissection.splitlines():
        if line.startswith("Frame "):
            frame = line.split(":")[0]
        elif fault.search(line) and not benign.search(line):
            faults.append(f"{frame}: {line.strip()}")
    return faults


def good_crcs(path):
    return _tshark(path, "-V").count("(Good CRC32)")


def has_port(path, port):
    """Whether a packet of that port is in a capture that is still being written."""
    done = subprocess.run(["tshark", "-r", path, "-Y", f"tcp.port=={port}"], capture_output=True, text=True)
    return bool(done.stdout)


def rows(path, *names):
    """Per frame the values of each field, a list, since a TCP segment may hold several FPDUs."""
    read = FIELDS if set(names) <= set(FIELDS) else names
    fields = [word for name in read for word in ("-e", name)]
    out = _tshark(path, "-T", "fields", "-E", "occurrence=a", "-E", "aggregator=,", "-E", "separator=;", *fields)
    places = [read.index(name) for name in names]
    for line in out.splitlines():
        cells = line.split(";")
        yield [cells[place].split(",") if cells[place] else [] for place in places]


def handshakes(path):
    """{"req"/"rep": (markers, crc, revision)} of the connection's start-up frames."""
    found = {}
    for request, reply, markers, crc, revision in rows(
            path, "iwarp_mpa.key.req", "iwarp_mpa.key.rep", "iwarp_mpa.marker_flag", "iwarp_mpa.crc_flag",
            "iwarp_mpa.rev"):
        if request or reply:
            found["req" if request else "rep"] = (markers[0] in ("1", "True"), crc[0] in ("1", "True"), int(revision[0]))
    return found


def messages(path):
    """{source port: [Message...]} in the order in which they went."""
    done, open_bytes = collections.defaultdict(list), collections.Counter()
    for ports, lengths, opcodes, tagged, last in rows(
            path, "tcp.srcport", "iwarp_mpa.ulpdulength", "iwarp_rdma.opcode", "iwarp_ddp.tagged_flag",
            "iwarp_ddp.last_flag"):
        if not len(lengths) == len(opcodes) == len(tagged) == len(last):
            raise RuntimeError(f"{path}: an FPDU that is no DDP segment: {lengths} {opcodes} {tagged} {last}")
        for length, opcode, is_tagged, is_last in zip(lengths, opcodes, tagged, last):
            port, opcode = int(ports[0]), int(opcode, 0)
            header = TAGGED_HEADER if is_tagged in ("1", "True") else UNTAGGED_HEADER
            open_bytes[port, opcode] += int(length) - header
            if is_last in ("1", "True"):
                done[port].append(Message(opcode, open_bytes.pop((port, opcode))))
    if open_bytes:
        raise RuntimeError(f"{path}: messages without a last segment: {dict(open_bytes)}")
    return dict(done)


def undissected_bytes(path):
    """TCP payload that is neither a start-up frame nor an FPDU. Exact only without markers. What was sent twice counts once."""
    total = explained = 0
    ends = {}  # by source port, of what was sent so far; packets stand in the order in which they were sent
    for ports, sequences, payload, private, lengths in rows(
            path, "tcp.srcport", "tcp.seq", "tcp.len", "iwarp_mpa.pdlength", "iwarp_mpa.ulpdulength"):
        for port, begin, length in zip(ports, map(int, sequences), map(int, payload)):
            known = ends.get(port, begin)
            total += max(0, begin + length - max(begin, known))
            ends[port] = max(known, begin + length)
        explained += sum(20 + int(n) for n in private)
        explained += sum(math.ceil((2 + int(n)) / 4) * 4 + 4 for n in lengths)
    return total - explained


def terminates(path):
    """[(layer, error type, error code)] of the Terminate messages."""
    found = []
    for layer, *rest in rows(path, *TERMINATE_FIELDS):
        if layer:
            types, codes = sum(rest[:3], []), sum(rest[3:], [])
            found.append(tuple(int(x, 0) for x in (layer[0], types[0], codes[0])))
    return found
