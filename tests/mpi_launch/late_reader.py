"""A rank that asks and asks, and reads the answers only when it cannot ask any more: each must come all the same. Prints how many bytes it could ask, and
waits for a line before it reads."""

import os
import select
import socket
import sys

MOST = 64 << 20  # bytes

launcher = socket.socket(fileno=int(os.environ["PMI_FD"]))


def tell(text):
    launcher.sendall(text.encode() + b"\n")


def read_line():
    line = b""
    while not line.endswith(b"\n"):
        line += launcher.recv(1)
    return line.decode().strip()


tell("cmd=init pmi_version=1 pmi_subversion=1")
read_line()
tell("cmd=get_my_kvsname")
space = read_line().split("kvsname=")[1]
tell(f"cmd=put kvsname={space} key=a value={'x' * 1000}")
assert "rc=0" in read_line()

question = f"cmd=get kvsname={space} key=a\n".encode()
launcher.setblocking(False)
unsent, sent = b"", 0
while sent < MOST and select.select([], [launcher], [], 1)[1]:
    unsent = unsent or question * 200
    count = launcher.send(unsent)
    unsent, sent = unsent[count:], sent + count
print(sent, flush=True)
sys.stdin.readline()

asked, answered, complete = sent // len(question), 0, True
if sent % len(question):  # the rest of the last question
    unsent = unsent[:len(question) - sent % len(question)]
    asked += 1
else:
    unsent = b""
while answered < asked:
    ready, writable, _ = select.select([launcher], [launcher] if unsent else [], [], 20)
    if writable:
        unsent = unsent[launcher.send(unsent):]
    if not ready and not writable:
        sys.exit(f"{answered} answers to {asked} questions")
    if ready:
        answered += launcher.recv(1 << 16).count(b"\n")
launcher.setblocking(True)
tell("cmd=finalize")
assert read_line() == "cmd=finalize_ack"
