"""Figure 4.4: bandwidth over time while links are cut and come back. Transfers of transfer_benchmark, every byte of which is compared."""

import re

import transfer_ends

MESSAGE = 65536  # bytes
# The figure's line of one path is not the thesis's: it is what the others are compared with.
MODES = {"one path": [], "failover": [], "cmt": ["cmt"], "pf": ["pf"]}


class Failed(Exception):
    """What the programs said."""


def measure(links, mode, schedule, every):
    """One transfer, cut at the server's end as in the thesis; a sample each `every` seconds. One path: the first link, never cut."""
    alone = mode == "one path"
    before = links.received("two")
    server, client = transfer_ends.start(links, MESSAGE, f"seconds={schedule.seconds}", f"every={round(every * 1000)}", *MODES[mode],
                                         paths=1 if alone else 2)
    try:
        if not alone:
            schedule.run(lambda link, up: links.set_link("two", link, up), lambda: client.poll() is None)
        output = client.communicate(timeout=schedule.seconds + 30)[0]
    finally:
        links.end(server)
        for link in (0, 1):
            links.set_link("two", link, up=True)
    carried = [after - then for after, then in zip(links.received("two"), before)]
    return {**parse(output, client.returncode), "every_s": every, "link_bytes": carried}


def parse(output, status=0):
    """What the client printed, in Mbit/s and seconds. Raises Failed."""
    whole = re.search(r"([\d.]+) MB/s, all (\d+) arrived and are right, longest stall ([\d.]+) s at ([\d.]+) s", output)
    if status != 0 or whole is None:
        raise Failed(output)
    return {
        "mbit_s": float(whole[1]) * 8,
        "bytes": int(whole[2]),
        "longest_stall_s": float(whole[3]),
        "stalled_at_s": float(whole[4]),
        "samples_mbit_s": [float(rate) * 8 for rate in re.findall(r"^[\d.]+ s: ([\d.]+) MB/s$", output, re.MULTILINE)],
    }
