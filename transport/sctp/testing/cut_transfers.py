"""Verified transfers over two links, one of which is cut and restored meanwhile: nothing but time to the program.

    bazel run //transport/sctp/testing:cut_transfers                      1 GiB, ten times in each mode, 1 Gbit/s a link; needs root
    bazel run //transport/sctp/testing:cut_transfers -- --times 1 --bytes 134217728 --modes pf --seed 7

A seed decides which link is cut, at which end, when and for how long, and the bytes. Prints a line for each transfer, and a table of each mode.
Ends with 1 if a transfer failed, or stalled for longer than its mode may (--most-stall), and with 77 where there can be no namespaces.
"""

import argparse
import random
import re
import subprocess
import sys
import time

import transfer_ends
import two_links

MODES = {"failover": [], "cmt": ["cmt"], "pf": ["pf"]}


class Transfer:
    """One, over links that nobody else uses."""

    def __init__(self, links, mode, message, count, seed, every_ms=0):
        chance = random.Random(seed)
        self.seed, self.mode = seed, mode
        self.cut, self.end = chance.randrange(2), chance.choice(["one", "two"])
        # Both links together take 4 ns for a byte: the transfer is under way when the cut begins.
        self.begins, self.lasts = chance.uniform(0.05, 0.5) * count * 4e-9, chance.uniform(0.3, 1) * count * 4e-9
        self._links, self._message, self._count, self._every_ms = links, message, count, every_ms

    def run(self):
        server, client = transfer_ends.start(self._links, self._message, f"bytes={self._count}", f"seed={self.seed}", f"every={self._every_ms}",
                                             *MODES[self.mode])
        try:
            time.sleep(self.begins)
            outlasted = client.poll() is None
            self._links.set_link(self.end, self.cut, up=False)
            time.sleep(self.lasts)
            self._links.set_link(self.end, self.cut, up=True)
            try:
                self.output = client.communicate(timeout=120)[0]
            except subprocess.TimeoutExpired:
                self.output = "it hangs"
                client.kill()
            found = re.search(r"([\d.]+) MB/s, all (\d+) arrived and are right, longest stall ([\d.]+) s", self.output)
            self.ok = client.returncode == 0 and outlasted and found is not None and int(found[2]) == self._count
            self.rate, self.stall = (float(found[1]), float(found[3])) if found else (0.0, float("inf"))
        finally:
            self._links.end(server)

    def __str__(self):
        return (f"{self.mode:8} seed {self.seed}: link {self.cut} down at host {self.end} after {self.begins:.2f} s for {self.lasts:.2f} s: "
                + (f"{self.rate:.1f} MB/s, longest stall {self.stall:.3f} s" if self.ok else f"FAILED\n{self.output}"))


def any_seed():
    return random.SystemRandom().randrange(10**6)


def run_all(links, modes, times, message, count, first_seed, every_ms=0):
    """By mode, the transfers."""
    done = {mode: [] for mode in modes}
    for seed in range(first_seed, first_seed + times):
        for mode in modes:
            transfer = Transfer(links, mode, message, count, seed, every_ms)
            transfer.run()
            if every_ms and transfer.ok:
                print(transfer.output, end="")
            print(transfer, flush=True)
            done[mode].append(transfer)
    return done


def table(done):
    lines = ["mode      transfers  failed  MB/s mean  longest stall: mean     most"]
    for mode, transfers in done.items():
        good = [t for t in transfers if t.ok]
        mean = lambda values: sum(values) / max(len(values), 1)
        lines.append(f"{mode:8} {len(transfers):10} {len(transfers) - len(good):7} {mean([t.rate for t in good]):10.1f} "
                     f"{mean([t.stall for t in good]):18.3f} s {max([t.stall for t in good], default=float('inf')):6.3f} s")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--bytes", type=int, default=2**30)
    parser.add_argument("--message", type=int, default=65536)
    parser.add_argument("--modes", default="failover,cmt,pf")
    parser.add_argument("--seed", type=int, default=None, help="of the first transfer; the next have the next")
    parser.add_argument("--rate", default="1gbit", help="of a link; none: as fast as the machine")
    parser.add_argument("--every", type=int, default=0, metavar="MS", help="also print what each program said, how much arrived meanwhile, and its paths")
    parser.add_argument("--most-stall", type=float, default=2.0, help="seconds; of pf")
    asked = parser.parse_args()
    obstacle = two_links.why_not()
    if obstacle is not None:
        print(f"cut_transfers: {obstacle}", file=sys.stderr)
        sys.exit(two_links.CANNOT)
    two_links.end_with_clean_up()
    seed = asked.seed if asked.seed is not None else any_seed()
    with two_links.TwoLinks(None if asked.rate == "none" else asked.rate) as links:
        done = run_all(links, asked.modes.split(","), asked.times, asked.message, asked.bytes, seed, asked.every)
    print(table(done))
    bad = [t for transfers in done.values() for t in transfers if not t.ok or (t.mode == "pf" and t.stall >= asked.most_stall)]
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
