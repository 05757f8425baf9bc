"""A server of IMPI jobs that is wrong on purpose: fake_server.py FAULT -server N. It accepts everybody, and answers each command by itself.

FAULT: silent (answers nothing), hasty (sends IMPI to a client before the others have joined), miscounts (one client too many), mute (prints no address).
"""

import select
import socket
import struct
import sys


def answer(fault, clients, connection, command, payload):
    if command == b"AUTH":
        connection.sendall(struct.pack(">ii", 0, 0))
    elif command == b"IMPI":
        connection.sendall(b"IMPI" + struct.pack(">ii", 4, clients + (fault == "miscounts")))


def main():
    fault, clients = sys.argv[1], int(sys.argv[sys.argv.index("-server") + 1])
    listener = socket.create_server(("127.0.0.1", 0))
    if fault != "mute":
        print(f"127.0.0.1:{listener.getsockname()[1]}", flush=True)
    came = {}
    while True:
        for ready in select.select([listener, *came], [], [])[0]:
            if ready is listener:
                came[listener.accept()[0]] = b""
                continue
            more = ready.recv(65536)
            if not more:
                del came[ready]
                continue
            came[ready] += more
            while fault != "silent" and len(came[ready]) >= 8:
                command, length = struct.unpack(">4si", came[ready][:8])
                if len(came[ready]) < 8 + length:
                    break
                payload, came[ready] = came[ready][8:8 + length], came[ready][8 + length:]
                answer(fault, clients, ready, command, payload)


if __name__ == "__main__":
    main()
