"""The tables: what was measured beside what the thesis prints, and the targets. `results` is what `run --json` writes."""

import printed
from table import Table, bytes_text

NAMES = {"one path": "one path, not cut", "failover": "failover (multihoming)", "cmt": "CMT", "pf": "CMT-PF"}
LEAST_GAIN = 1.8  # of two paths over one at messages of 1 MiB


class Targets:
    """Counts what is missed."""

    def __init__(self):
        self.missed = 0

    def text(self, words, met):
        self.missed += not met
        return f"{words}: {'yes' if met else 'NO'}"


def over_time(results, targets):
    modes, seconds = results["modes"], results["seconds"]
    one = modes.get("one path", {}).get("mbit_s")
    rows = []
    for mode, measured in modes.items():
        ratio = measured["mbit_s"] / one if one else None
        wanted = printed.OVER_TIME.get(mode)
        theirs = printed.ratio_to_one_path(mode) if wanted else None
        target = "-"
        if wanted and ratio and mode != "cmt":
            target = targets.text(f">= {theirs:.2f} x one path", ratio >= theirs)
        total = max(sum(measured["link_bytes"]), 1)
        rows.append([NAMES[mode], f"{measured['mbit_s']:.0f}", f"{ratio:.2f}" if ratio else "-", f"{wanted}" if wanted else "-",
                     f"{theirs:.2f}" if theirs else "-", f"{measured['longest_stall_s']:.2f}",
                     " / ".join(f"{100 * count / total:.0f}" for count in measured["link_bytes"]), target])
    cuts = "; ".join(f"link {link} down from {begins:g} to {ends:g} s" for link, begins, ends in results["cuts"])
    lost = sum(ends - begins for _, begins, ends in results["cuts"]) / seconds
    return Table(f"Figure 4.4: {seconds:g} s, {cuts}",
                 ["", "Mbit/s", "to one path", "thesis", "to one path", "stall s", "links %", "target"], rows,
                 [f"Two equal links allow at most {2 - lost:.2f} x one path here. The thesis's second link was slower than its first, its failover stalled for "
                  f"{printed.FAILOVER_STALL[0]} to {printed.FAILOVER_STALL[1]} s,", f"and its one path is that of its figure 4.5 ({printed.ONE_PATH} Mbit/s)."])


def by_size(results, what, targets):
    rates = {name: dict(map(tuple, rows)) for name, rows in results.items()}
    rows = []
    for size in rates["tcp"]:
        tcp, one, two = (rates[name][size] for name in ("tcp", "sctp", "cmt"))
        theirs, target = ["-", "-"], "-"
        if size == printed.BANDWIDTH_AT:
            thesis = printed.BANDWIDTH
            theirs = [f"{thesis['tcp']} / {thesis['sctp']} / {thesis['cmt']}", f"{thesis['cmt'] / thesis['sctp']:.2f}"]
            target = targets.text(f">= {LEAST_GAIN}", two >= LEAST_GAIN * one)
        rows.append([bytes_text(size), f"{tcp:.0f}", f"{one:.0f}", f"{two:.0f}", f"{two / one:.2f}", *theirs, target])
    return Table(f"Figure 4.5: Mbit/s by size of messages, {what}",
                 ["", "TCP, one path", "SCTP, one path", "SCTP, two (CMT)", "two / one", "thesis: the three", "two / one", "target"], rows,
                 [f"The thesis: CMT is ahead above {bytes_text(printed.CMT_AHEAD_FROM)}; Open MPI over two paths {printed.OPEN_MPI_TWO_PATHS} Mbit/s at 1 MiB."])


def fences(results):
    times = {name: dict(map(tuple, rows)) for name, rows in results["fences"].items()}
    rows = []
    for size in times["put hybrid"]:
        row = [bytes_text(size)]
        for operation in ("put", "get"):
            hybrid, messages = times[f"{operation} hybrid"][size], times[f"{operation} messages"][size]
            row += [f"{hybrid:.1f}", f"{messages:.1f}", f"{hybrid / messages:.2f}"]
        rows.append(row + ["{:.2f} to {:.2f}".format(*printed.FENCE_RATIO)])
    return Table("Figure 4.2: an operation and a fence, us, over one path",
                 ["", "Put, hybrid", "messages", "ratio", "Get, hybrid", "messages", "ratio", "thesis's ratio"], rows,
                 ["hybrid: windows over iWARP/SCTP beside messages over SCTP. messages: windows by messages over SCTP alone, as a library without RDMA does it."])


def mixed(results):
    hybrid, messages = results["mixed"]["hybrid"], results["mixed"]["messages"]
    theirs = printed.MIXED
    return Table("Figure 4.3: messages, Put and Get in both directions at once",
                 ["", "hybrid", "messages", "ratio"],
                 [["measured, a round", f"{hybrid / 1000:.2f} ms", f"{messages / 1000:.2f} ms", f"{hybrid / messages:.2f}"],
                  ["thesis, its program", f"{theirs['hybrid']:.2f} s", f"{theirs['messages']:.2f} s", f"{theirs['hybrid'] / theirs['messages']:.2f}"]])


def tables(results):
    """Those of what was measured, and how many targets are missed."""
    targets, made = Targets(), []
    if "over_time" in results:
        made.append(over_time(results["over_time"], targets))
    for what, words in (("transport", "the transport alone (TCP: iperf3)"), ("mpi", "between two ranks of MPI")):
        if what in results:
            made.append(by_size(results[what], words, targets))
    if "windows" in results:
        made += [fences(results["windows"]), mixed(results["windows"])]
    return made, targets.missed
