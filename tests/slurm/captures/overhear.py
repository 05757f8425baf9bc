#!/usr/bin/env python3
"""overhear.py NAME DIRECTORY PROGRAM...: runs a rank, and writes down what it and Slurm say to each other over PMI_FD, to
DIRECTORY/NAME-rankN.txt (README.md beside this file has the format: a line for each read, whatever it holds)."""

import os
import select
import socket
import subprocess
import sys


def shown(data):
    return "".join({10: "\\n", 92: "\\\\"}.get(c, chr(c) if 32 <= c < 127 else f"\\x{c:02x}") for c in data)


def main():
    name, directory, program = sys.argv[1], sys.argv[2], sys.argv[3:]
    ours, theirs = socket.socketpair()
    slurm = socket.socket(fileno=int(os.environ["PMI_FD"]))
    os.set_inheritable(slurm.fileno(), False)
    child = subprocess.Popen(program, env=dict(os.environ, PMI_FD=str(theirs.fileno())), pass_fds=[theirs.fileno()])
    theirs.close()
    with open(os.path.join(directory, f"{name}-rank{os.environ['PMI_RANK']}.txt"), "w") as file:
        file.write(f"# rank {os.environ['PMI_RANK']} of {os.environ['PMI_SIZE']}, {os.environ['SLURMD_NODENAME']}, PMI_JOBID={os.environ['PMI_JOBID']}\n")
        open_ends = {ours: (slurm, ">"), slurm: (ours, "<")}
        while ours in open_ends:
            for end in select.select(list(open_ends), [], [])[0]:
                other, direction = open_ends[end]
                data = end.recv(65536)
                if data:
                    file.write(f"{direction} {shown(data)}\n")
                    file.flush()
                    other.sendall(data)
                else:
                    del open_ends[end]
                    if end is slurm:
                        file.write("# the connection is closed\n")
                        ours.shutdown(socket.SHUT_WR)
    return child.wait()


if __name__ == "__main__":
    sys.exit(main())
