#!/usr/bin/env python3
"""converse.py SCENARIO DIRECTORY: a rank that speaks PMI over PMI_FD by hand and writes down every byte of it.

The conversation goes to DIRECTORY/SCENARIO-rankN.txt (README.md beside this file has the format). Scenarios: the functions below whose
names begin with pmi1_ or pmi2_."""

import os
import select
import sys
import time

PATIENCE = 3  # seconds until an answer is taken for one that does not come


class Wire:
    def __init__(self, file):
        self._fd = int(os.environ["PMI_FD"])
        self._file = file
        self._pending = b""

    def note(self, text):
        self._file.write(f"# {text}\n")
        self._file.flush()

    def send(self, data):
        self._record(">", data)
        try:
            os.write(self._fd, data)
        except OSError as error:
            self.note(f"cannot write: {error.strerror}")

    def _record(self, direction, data):
        text = "".join(chr(c) if 32 <= c < 127 and c != 92 else f"\\{'n' if c == 10 else f'x{c:02x}' if c != 92 else chr(92)}" for c in data)
        self._file.write(f"{direction} {text}\n")
        self._file.flush()

    def _fill(self, patience):
        if not select.select([self._fd], [], [], patience)[0]:
            self.note(f"no answer within {patience} s")
            return False
        try:
            data = os.read(self._fd, 65536)
        except OSError as error:
            self.note(f"cannot read: {error.strerror}")
            return False
        self._pending += data
        if not data:
            self.note("the connection is closed")
        return bool(data)

    def _take(self, count):
        data, self._pending = self._pending[:count], self._pending[count:]
        self._record("<", data)
        return data

    def line(self, patience=PATIENCE):
        """A message of PMI-1."""
        while b"\n" not in self._pending:
            if not self._fill(patience):
                return self._take(len(self._pending)) if self._pending else b""
        return self._take(self._pending.index(b"\n") + 1)

    def framed(self, patience=PATIENCE):
        """A message of PMI-2: six characters of length, then the rest."""
        while len(self._pending) < 6 or len(self._pending) < 6 + int(self._pending[:6]):
            if not self._fill(patience):
                return self._take(len(self._pending)) if self._pending else b""
        return self._take(6 + int(self._pending[:6]))

    def ask1(self, text, patience=PATIENCE):
        self.send(text.encode() + b"\n")
        return self.line(patience)

    def tell2(self, text):
        self.send(f"{len(text):6d}{text}".encode())

    def ask2(self, text, patience=PATIENCE):
        self.tell2(text)
        return self.framed(patience)


RANK = int(os.environ.get("PMI_RANK", "0"))
SIZE = int(os.environ.get("PMI_SIZE", "1"))
JOB = os.environ.get("PMI_JOBID", "")


# PMI-1


def init1(wire):
    wire.ask1("cmd=init pmi_version=1 pmi_subversion=1")
    wire.ask1("cmd=get_maxes")


def pmi1_world(wire):
    """What an MPI library says from MPI_Init to MPI_Finalize."""
    init1(wire)
    wire.ask1("cmd=get_appnum")
    wire.ask1("cmd=get_universe_size")
    name = wire.ask1("cmd=get_my_kvsname").decode().split("kvsname=")[1].split()[0]
    wire.ask1(f"cmd=get kvsname={name} key=PMI_process_mapping")
    wire.ask1(f"cmd=get kvsname={name} key=nobody-put-this")
    wire.ask1(f"cmd=put kvsname={name} key=address-{RANK} value=node=rank{RANK};port={4000 + RANK}")
    wire.ask1(f"cmd=get kvsname={name} key=address-{RANK}")
    wire.ask1("cmd=barrier_in", 20)
    for rank in range(SIZE):
        wire.ask1(f"cmd=get kvsname={name} key=address-{rank}")
    wire.note("the same key again, after a barrier")
    wire.ask1(f"cmd=put kvsname={name} key=address-{RANK} value=second")
    wire.ask1("cmd=barrier_in", 20)
    wire.ask1(f"cmd=get kvsname={name} key=address-{(RANK + 1) % SIZE}")
    wire.ask1("cmd=finalize")
    wire.line()


def pmi1_names(wire):
    """MPI_Publish_name and the others."""
    init1(wire)
    if RANK == 0:
        wire.ask1("cmd=lookup_name service=absent")
        wire.ask1("cmd=publish_name service=greeter port=tag#0$port#4000$")
        wire.ask1("cmd=publish_name service=greeter port=tag#0$port#5000$")
    wire.ask1("cmd=barrier_in", 20)
    wire.ask1("cmd=lookup_name service=greeter")
    wire.ask1("cmd=barrier_in", 20)
    if RANK == 0:
        wire.ask1("cmd=unpublish_name service=greeter")
        wire.ask1("cmd=unpublish_name service=greeter")
        wire.ask1("cmd=lookup_name service=greeter")
    wire.ask1("cmd=finalize")


def pmi1_lengths(wire):
    """Lines up to the longest, and beyond; two messages at once."""
    init1(wire)
    for length in (1023, 1024, 1025):
        wire.note(f"a message of {length} bytes, its end included")
        start = f"cmd=put kvsname={JOB} key=long-{RANK}-{length} value="
        wire.ask1(start + "x" * (length - len(start) - 1))
    wire.ask1("cmd=barrier_in", 20)
    for length in (1023, 1024, 1025):
        wire.ask1(f"cmd=get kvsname={JOB} key=long-{RANK}-{length}")
    wire.note("two messages in one write")
    wire.send(b"cmd=get_appnum\ncmd=get_universe_size\n")
    wire.line()
    wire.line()
    wire.ask1("cmd=finalize")


def pmi1_spawn(wire):
    init1(wire)
    if RANK == 0:
        program = os.path.abspath(__file__)
        wire.note("two processes; their conversations are in pmi1_spawned-rankN.txt")
        wire.send(f"mcmd=spawn\nnprocs=2\nexecname={program}\ntotspawns=1\nspawnssofar=1\nargcnt=2\narg1=pmi1_spawned\narg2={sys.argv[2]}\n"
                  "preput_num=1\npreput_key_0=PARENT_ROOT_PORT_NAME\npreput_val_0=tag#0$port#4000$\ninfo_num=0\nendcmd\n".encode())
        wire.line(30)
    wire.ask1("cmd=barrier_in", 40)
    wire.ask1("cmd=finalize")


def pmi1_spawned(wire):
    """The other side of pmi1_spawn."""
    wire.note(f"PMI_SPAWNED={os.environ.get('PMI_SPAWNED')} PMI_JOBID={JOB}")
    init1(wire)
    name = wire.ask1("cmd=get_my_kvsname").decode().split("kvsname=")[1].split()[0]
    wire.ask1(f"cmd=get kvsname={name} key=PARENT_ROOT_PORT_NAME")
    wire.ask1("cmd=get_universe_size")
    wire.ask1("cmd=get_appnum")
    wire.ask1("cmd=barrier_in", 20)
    wire.ask1("cmd=finalize")


def pmi1_abort(wire):
    init1(wire)
    if RANK == 1:
        wire.ask1("cmd=abort exitcode=7")
    time.sleep(20)


def pmi1_unknown(wire):
    """What Slurm does not know has no answer."""
    init1(wire)
    for text in ("cmd=get_ranks2hosts", "cmd=create_kvs", f"cmd=getbyidx kvsname={JOB} idx=0"):
        wire.ask1(text, 1)
    wire.ask1("cmd=finalize")


def pmi1_version(wire):
    """A version that Slurm does not speak. Its slurmstepd may end at what follows."""
    wire.ask1("cmd=init pmi_version=1 pmi_subversion=2")


# PMI-2


def init2(wire):
    wire.ask1("cmd=init pmi_version=2 pmi_subversion=0")
    wire.ask2(f"cmd=fullinit;pmijobid={JOB};pmirank={RANK};threaded=FALSE;")


def pmi2_world(wire):
    init2(wire)
    wire.ask2("cmd=job-getid;")
    for key in ("universeSize", "PMI_process_mapping", "hasNameServ", "physTopology", "mpi_reserved_ports"):
        wire.ask2(f"cmd=info-getjobattr;key={key};")
    wire.ask2("cmd=info-getnodeattr;key=memory;wait=FALSE;")
    if RANK % 2 == 0:
        wire.ask2(f"cmd=info-putnodeattr;key=memory;value=/dev/shm/of-rank-{RANK};")
    wire.note("answered when this node's other rank has put it")
    wire.ask2("cmd=info-getnodeattr;key=memory;wait=TRUE;")
    wire.ask2(f"cmd=kvs-get;jobid={JOB};srcid=-1;key=PMI_process_mapping;")
    wire.ask2("cmd=kvs-get;key=nobody-put-this;")
    wire.ask2(f"cmd=kvs-put;key=address-{RANK};value=node=rank{RANK} port={4000 + RANK};")
    wire.ask2(f"cmd=kvs-get;jobid={JOB};srcid={RANK};key=address-{RANK};")
    wire.ask2("cmd=kvs-fence;", 20)
    for rank in range(SIZE):
        wire.ask2(f"cmd=kvs-get;jobid={JOB};srcid={rank};key=address-{rank};")
    wire.note("the same key again, after a fence; with thread ids")
    wire.ask2(f"cmd=kvs-put;thrid=0x7f00;key=address-{RANK};value=second;")
    wire.ask2("cmd=kvs-fence;thrid=0x7f00;", 20)
    wire.ask2(f"cmd=kvs-get;thrid=0x7f00;jobid={JOB};srcid=-1;key=address-{(RANK + 1) % SIZE};")
    wire.ask2("cmd=finalize;")
    wire.framed()


def pmi2_names(wire):
    init2(wire)
    if RANK == 0:
        wire.ask2("cmd=name-lookup;name=absent;infokeycount=0;")
        wire.ask2("cmd=name-publish;name=greeter;port=tag#0$port#4000$;infokeycount=0;")
        wire.ask2("cmd=name-publish;name=greeter;port=tag#0$port#5000$;infokeycount=0;")
    wire.ask2("cmd=kvs-fence;", 20)
    wire.ask2("cmd=name-lookup;name=greeter;infokeycount=0;")
    wire.ask2("cmd=kvs-fence;", 20)
    if RANK == 0:
        wire.ask2("cmd=name-unpublish;name=greeter;infokeycount=0;")
        wire.ask2("cmd=name-unpublish;name=greeter;infokeycount=0;")
        wire.ask2("cmd=name-lookup;name=greeter;infokeycount=0;")
    wire.ask2("cmd=finalize;")


def pmi2_lengths(wire):
    """Values of up to 1,023 bytes, two messages at once, semicolons."""
    init2(wire)
    for length in (1000, 1023):
        wire.note(f"a value of {length} bytes")
        wire.ask2(f"cmd=kvs-put;key=long-{RANK}-{length};value={'x' * length};")
    wire.ask2("cmd=kvs-fence;", 20)
    for length in (1000, 1023):
        wire.ask2(f"cmd=kvs-get;jobid={JOB};srcid=-1;key=long-{RANK}-{length};")
    wire.note("two messages in one write")
    wire.send(b"    14cmd=job-getid;    14cmd=job-getid;")
    wire.framed()
    wire.framed()
    wire.note("a value with a semicolon in it, doubled as the protocol wants")
    wire.ask2(f"cmd=kvs-put;key=semicolon-{RANK};value=a;;b;", 1)
    wire.ask2("cmd=kvs-fence;", 20)
    wire.ask2(f"cmd=kvs-get;key=semicolon-{RANK};")
    wire.ask2("cmd=finalize;")


def pmi2_too_long(wire):
    """A value that the protocol does not allow: LENGTH in the environment."""
    init2(wire)
    wire.ask2(f"cmd=kvs-put;key=long-{RANK};value={'x' * int(os.environ.get('LENGTH', '1024'))};")
    wire.ask2("cmd=kvs-fence;", 5)
    wire.ask2(f"cmd=kvs-get;jobid={JOB};srcid=-1;key=long-{RANK};")
    wire.ask2("cmd=finalize;")


def pmi2_spawn(wire):
    init2(wire)
    if RANK == 0:
        program = os.path.abspath(__file__)
        wire.note("two processes; their conversations are in pmi2_spawned-rankN.txt")
        wire.ask2(f"cmd=spawn;ncmds=1;preputcount=1;ppkey0=PARENT_ROOT_PORT_NAME;ppval0=tag#0$port#4000$;subcmd={program};maxprocs=2;"
                  f"argc=2;argv0=pmi2_spawned;argv1={sys.argv[2]};", 30)
    wire.ask2("cmd=kvs-fence;", 60)
    wire.ask2("cmd=finalize;")


def pmi2_spawned(wire):
    wire.note(f"PMI_SPAWNED={os.environ.get('PMI_SPAWNED')} PMI_JOBID={JOB}")
    init2(wire)
    wire.ask2("cmd=job-getid;")
    wire.ask2(f"cmd=kvs-get;jobid={JOB};srcid=-1;key=PARENT_ROOT_PORT_NAME;")
    wire.ask2("cmd=info-getjobattr;key=universeSize;")
    wire.ask2("cmd=kvs-fence;", 20)
    wire.ask2("cmd=finalize;")


def pmi2_abort(wire):
    init2(wire)
    if RANK == 1:
        wire.ask2("cmd=abort;isworld=TRUE;msg=asked to;")
    time.sleep(20)


def pmi2_abort_self(wire):
    init2(wire)
    if RANK == 1:
        wire.ask2("cmd=abort;isworld=FALSE;msg=asked to;", 1)
        return
    wire.note("rank 1 is gone: what becomes of a fence?")
    wire.ask2("cmd=kvs-fence;", 5)


def pmi2_version(wire):
    """A version that Slurm does not speak. Its slurmstepd ends at what follows."""
    wire.ask1("cmd=init pmi_version=3 pmi_subversion=0")


def pmi2_mistakes(wire):
    wire.ask1("cmd=init pmi_version=2 pmi_subversion=0")
    wire.ask2(f"cmd=fullinit;pmijobid={JOB};threaded=FALSE;")
    wire.ask2(f"cmd=fullinit;pmijobid={JOB};pmirank={RANK};threaded=FALSE;")
    for text in ("cmd=job-connect;jobid=1.0;", "cmd=kvs-getall;", "cmd=spawn;ncmds=0;preputcount=0;"):
        wire.ask2(text, 1)
    wire.ask2("cmd=finalize;")


def main():
    scenario, directory = sys.argv[1:3]
    with open(os.path.join(directory, f"{scenario}-rank{RANK}.txt"), "w") as file:
        wire = Wire(file)
        wire.note(f"rank {RANK} of {SIZE}, {os.environ.get('SLURMD_NODENAME', 'no node')}, PMI_JOBID={JOB}")
        globals()[scenario](wire)


if __name__ == "__main__":
    main()
