"""An MPA stream read from a capture without any dissector: every byte, marker and CRC accounted for.

Wireshark loses track of markers when a frame begins in the middle of a TCP segment, as it does on a real connection, so captures of
the loopback interface with markers are read here."""

import capture

MARKER_INTERVAL = 512  # RFC 5044 section 4.3
START_UP_BYTES = 20  # key, flags, revision, private data length


def _crc32c_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _crc32c_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def payloads(path):
    """{source port: bytes} of the one TCP connection in a capture."""
    flows = {}
    for port, sequence, data in capture.rows(path, "tcp.srcport", "tcp.seq", "tcp.payload"):
        if data:
            flows.setdefault(int(port[0]), {})[int(sequence[0])] = bytes.fromhex(data[0].replace(":", ""))
    streams = {}
    for port, pieces in flows.items():
        stream = bytearray()
        for sequence in sorted(pieces):
            at = sequence - 1  # relative: the SYN has 0
            if at > len(stream):
                raise ValueError(f"{path}: bytes {len(stream)} to {at} from port {port} are missing")
            stream[at:at + len(pieces[sequence])] = pieces[sequence]
        streams[port] = bytes(stream)
    return streams


def parse(stream, crc, markers):
    """The ULPDUs of one direction. ValueError says at which byte something is not as RFC 5044 has it."""
    at = START_UP_BYTES + int.from_bytes(stream[18:20], "big")
    if not stream.startswith(b"MPA ID Re"):
        raise ValueError(f"begins with {stream[:16]}")
    first, ulpdus = at, []  # markers are counted from the first byte after the start-up frame
    while at < len(stream):
        frame, covered, begin, needed = bytearray(), bytearray(), None, 2  # `covered`: the frame and its markers
        while len(frame) < needed:
            if markers and (at - first) % MARKER_INTERVAL == 0:
                # It points back to the frame's length field, and is 0 in front of it.
                expected = at - begin if frame else 0
                if stream[at:at + 4] != expected.to_bytes(4, "big"):
                    raise ValueError(f"byte {at}: marker {stream[at:at + 4].hex()}, not {expected:#x}")
                covered += stream[at:at + 4]
                at += 4
            if not frame:
                begin = at
            room = MARKER_INTERVAL - (at - first) % MARKER_INTERVAL if markers else needed
            piece = stream[at:at + min(room, needed - len(frame))]
            if not piece:
                raise ValueError(f"byte {at}: the stream ends in the frame that began at {begin}")
            frame += piece
            covered += piece
            at += len(piece)
            if len(frame) == 2:
                needed = (2 + int.from_bytes(frame, "big") + 3) // 4 * 4 + 4
        length = int.from_bytes(frame[:2], "big")
        sent = int.from_bytes(frame[-4:], "little")
        if crc and sent != crc32c(covered[:-4]):
            raise ValueError(f"frame at byte {begin}: CRC {sent:#x}, not {crc32c(covered[:-4]):#x}")
        ulpdus.append(bytes(frame[2:2 + length]))
    return ulpdus


def messages(ulpdus):
    """The RDMAP messages of one direction, as capture.messages() gives them."""
    done, open_bytes = [], {}
    for ulpdu in ulpdus:
        tagged, last, opcode = ulpdu[0] & 0x80, ulpdu[0] & 0x40, ulpdu[1] & 0x0F
        header = capture.TAGGED_HEADER if tagged else capture.UNTAGGED_HEADER
        open_bytes[opcode] = open_bytes.get(opcode, 0) + len(ulpdu) - header
        if last:
            done.append(capture.Message(opcode, open_bytes.pop(opcode)))
    if open_bytes:
        raise ValueError(f"messages without a last segment: {open_bytes}")
    return done
