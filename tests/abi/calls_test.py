"""docs/calls.md names every public call of both libraries and of the headers, once, with one of three words.

Usage: calls_test.py CALLS.MD LIBIBVERBS LIBRDMACM
"""

import re
import subprocess
import sys

HEADERS = ("/usr/include/infiniband/verbs.h", "/usr/include/rdma/rdma_verbs.h")
PUBLIC_NODE = re.compile(r" [TW] (\w+)@@?(?:IBVERBS|RDMACM)_1\.\d+$")
INLINE = re.compile(r"static inline[^;{}#]*?\b(_?(?:ibv|rdma)_\w+)\s*\(")
# Helpers of the headers that no program calls.
NOT_CALLS = {"rdma_seterrno"}
# Inline in headers of rdma-core after 44 (44's own may be what is installed).
NEWER = {"ibv_query_comp_cntr_caps", "ibv_wr_flush"}


def exported(library):
    lines = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout.splitlines()
    return {m.group(1) for m in map(PUBLIC_NODE.search, lines) if m}


def inline():
    names = set()
    for header in HEADERS:
        with open(header) as text:
            names |= set(INLINE.findall(text.read()))
    return names - NOT_CALLS


def main():
    calls_md, *libraries = sys.argv[1:]
    problems, listed = [], {}
    for line in open(calls_md):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("| `"):
            continue
        for name in re.findall(r"`(\w+)`", cells[0]):
            if name in listed:
                problems.append(f"{name} is listed twice")
            listed[name] = cells[1]
        if cells[1] not in ("yes", "partly", "no"):
            problems.append(f"'{cells[1]}' says neither yes, partly nor no: {line.strip()}")
        if cells[1] == "partly" and not cells[2]:
            problems.append(f"'partly' without saying what is missing: {line.strip()}")
    there = inline().union(*map(exported, libraries))
    if len(there) < 200:
        problems.append(f"only {len(there)} calls were found: nm or the headers look different")
    problems += [f"{name} is not listed" for name in sorted(there - listed.keys())]
    problems += [f"{name} is listed and does not exist" for name in sorted(listed.keys() - there - NEWER)]
    print("\n".join(problems) or f"{len(listed)} calls")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
