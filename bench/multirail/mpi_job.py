"""MPI between two hosts with two links: mpi_bench under mpiexec, a rank at each host."""

import os
import subprocess
import tempfile

import transfer_ends
import two_links

SCTP = {"WEFT_MPI_LLP": "sctp", "WEFT_LLP": "sctp"}
SECONDS = 240  # that one job may take
# In place of ssh, mpiexec calls it with a host, which is always the other, and a command.
REMOTE_SHELL = """#!/bin/sh
shift
exec ip netns exec {name} sh -c "$*"
"""


class Failed(Exception):
    """What the job said."""


def _environment(settings):
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("WEFT_", "PMI_", "MPI"))}
    mpi = os.path.dirname(transfer_ends.built("mpi_hybrid/api/libmpich.so.12"))
    verbs = transfer_ends.built("tools/stage/lib/weft")
    # The two hosts are one machine, whose memory is not what is measured.
    return {**ours, "LD_LIBRARY_PATH": f"{mpi}:{verbs}", "WEFT_SAME_HOST": "off", **settings}


def figures(links, suite, quick, paths, settings):
    """{(benchmark, size): value} of one job whose ranks use the first `paths` links for SCTP, and the first for TCP."""
    program = [transfer_ends.built("bench/mpi/mpi_bench"), suite] + (["--quick"] if quick else [])
    with tempfile.TemporaryDirectory() as directory:
        shell = os.path.join(directory, "shell")
        with open(shell, "w") as file:
            file.write(REMOTE_SHELL.format(name=links.names["two"]))
        os.chmod(shell, 0o700)
        ranks = [["-n", "1", "-env", "WEFT_SCTP_ADDRESSES", ",".join(addresses[:paths]), *program] for addresses in (two_links.ONE, two_links.TWO)]
        job = links.start("one", transfer_ends.built("pmi/mpiexec"), "-launcher-exec", shell, "-hosts", "localhost,two.invalid", *ranks[0], ":", *ranks[1],
                          env=_environment(settings), stdin=subprocess.DEVNULL)
        try:
            output = job.communicate(timeout=SECONDS)[0]
        except subprocess.TimeoutExpired:
            raise Failed(f"{suite} did not end in {SECONDS} s") from None
        finally:
            links.end(job)
    if job.returncode != 0:
        raise Failed(output)
    rows = [line.split() for line in output.splitlines()]
    return {(row[0], int(row[1])): float(row[2]) for row in rows if len(row) == 3}
