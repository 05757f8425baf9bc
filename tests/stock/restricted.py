"""restricted.py ERRNO CALL[,CALL]... COMMAND...: runs COMMAND where these system calls fail with ERRNO, as they do in containers and under policies
of the kernel that forbid them (seccomp(2), Yama)."""

import ctypes
import errno
import os
import platform
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06  # BPF_LD|BPF_W|BPF_ABS, BPF_JMP|BPF_JEQ|BPF_K, BPF_RET|BPF_K
ALLOW, FAIL = 0x7FFF0000, 0x00050000
NUMBERS = {  # of the system calls
    "x86_64": {"process_vm_readv": 310, "process_vm_writev": 311, "memfd_create": 319, "pidfd_open": 434},
    "aarch64": {"process_vm_readv": 270, "process_vm_writev": 271, "memfd_create": 279, "pidfd_open": 434},
}


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def forbid(calls, error):
    numbers = [NUMBERS[platform.machine()][call] for call in calls]
    steps = [(LOAD, 0, 0, 0)]  # the number of the call
    steps += [(EQUAL, len(numbers) - i, 0, number) for i, number in enumerate(numbers)]
    steps += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, FAIL | error)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = Program(len(steps), ctypes.cast(code, ctypes.c_void_p))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program)) != 0:
        sys.exit(f"restricted.py: seccomp: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    forbid(sys.argv[2].split(","), getattr(errno, sys.argv[1]))
    os.execvp(sys.argv[3], sys.argv[3:])
