"""Figure 4.5: bandwidth by size of messages over one path and over two, next to TCP over one. By the transport alone and by MPI."""

import collections
import json
import statistics

import mpi_job
import over_time
import transfer_ends
import two_links

SIZES = {False: [64, 256, 1024, 2048, 4096, 16384, 65536, 262144, 1048576], True: [1024, 65536, 1048576]}  # by --quick
CONFIGURATIONS = ("tcp", "sctp", "cmt")


def tcp_rate(links, size, seconds):
    """iperf3, `seconds` whole ones, Mbit/s."""
    server = links.start("two", "iperf3", "--server", "--one-off", "--forceflush", "--bind", two_links.TWO[0])
    try:
        while "listening" not in (line := server.stdout.readline()):
            if not line:
                raise over_time.Failed("iperf3 does not serve")
        client = links.start("one", "iperf3", "--client", two_links.TWO[0], "--length", str(size), "--time", str(seconds), "--json")
        output = client.communicate(timeout=seconds + 30)[0]
    finally:
        links.end(server)
    if client.returncode != 0:
        raise over_time.Failed(output)
    return json.loads(output)["end"]["sum_received"]["bits_per_second"] / 1e6


def sctp_rate(links, size, seconds, configuration):
    """"sctp" or "cmt", every byte compared, Mbit/s."""
    both = configuration == "cmt"
    server, client = transfer_ends.start(links, size, f"seconds={seconds}", *(["cmt"] if both else []), paths=2 if both else 1)
    try:
        return over_time.parse(client.communicate(timeout=seconds + 30)[0], client.returncode)["mbit_s"]
    finally:
        links.end(server)


def transport(links, quick, rounds):
    """By configuration, [size, Mbit/s]: medians."""
    seconds = 1 if quick else 2
    samples = collections.defaultdict(list)
    for _ in range(rounds):
        for size in SIZES[quick]:
            for configuration in CONFIGURATIONS:
                rate = tcp_rate(links, size, seconds) if configuration == "tcp" else sctp_rate(links, size, seconds, configuration)
                samples[configuration, size].append(rate)
    return {name: [[size, statistics.median(samples[name, size])] for size in SIZES[quick]] for name in CONFIGURATIONS}


def mpi(links, quick, rounds):
    """The same between two ranks, as OSU's osu_bw does."""
    settings = {"tcp": (1, {}), "sctp": (1, mpi_job.SCTP), "cmt": (2, {**mpi_job.SCTP, "WEFT_SCTP_CMT": "on"})}
    samples = collections.defaultdict(list)
    for _ in range(rounds):
        for name, (paths, environment) in settings.items():
            for (_, size), rate in mpi_job.figures(links, "bandwidth", quick, paths, environment).items():
                samples[name, size].append(rate * 8 / 1e6)
    sizes = sorted({size for _, size in samples})
    return {name: [[size, statistics.median(samples[name, size])] for size in sizes] for name in settings}
