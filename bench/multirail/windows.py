"""Figures 4.2 and 4.3: windows over iWARP/SCTP beside messages over SCTP (hybrid), and windows that are messages over SCTP themselves."""

import collections
import statistics

import mpi_job


def measure(links, quick, rounds):
    """{"fences": {"put hybrid": [[size, us]], ...}, "mixed": {"hybrid": us, "messages": us}}: medians. Over one path."""
    samples = collections.defaultdict(list)
    for _ in range(rounds):
        for key, value in mpi_job.figures(links, "windows", quick, 1, mpi_job.SCTP).items():
            samples[key].append(value)
    medians = {key: statistics.median(values) for key, values in samples.items()}
    fences = {}
    for operation in ("put", "get"):
        for kind, suffix in (("hybrid", ""), ("messages", "_emulated")):
            name = f"{operation}_fence{suffix}"
            fences[f"{operation} {kind}"] = sorted([size, value] for (benchmark, size), value in medians.items() if benchmark == name)
    return {"fences": fences, "mixed": {"hybrid": medians["mixed", 0], "messages": medians["mixed_emulated", 0]}}
