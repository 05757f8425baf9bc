"""Writes or checks the list of what a release of rdma-core exports: rdma-core-N.txt beside this file.

usage: list_symbols.py RELEASE WHERE LIBRARY... > rdma-core-RELEASE.txt     (WHERE: "Debian 13", say)
       list_symbols.py --check LIST LIBRARY...                              names what differs

For the next release: unpack libibverbs1 and librdmacm1t64 (`apt-get download`, `dpkg -x`), run this on the two libraries, and
add the list. symbol_lists_test says what Weft lacks.
"""

import os
import sys

import compare_symbols

TYPES = {"FUNC": "function", "OBJECT": "data"}


def read(path):
    """{library: {(name, node, is the default): "function" or "data"}} of a list."""
    libraries = {}
    with open(path) as lines:
        for line in lines:
            if line.startswith("#") or not line.strip():
                continue
            library, symbol, kind, _ = line.split()
            name, default, node = symbol.partition("@@")
            if not default:
                name, _, node = symbol.partition("@")
            libraries.setdefault(library, {})[(name, node, bool(default))] = kind
    return libraries


def of_library(path):
    """The same of one library: (its soname, symbols)."""
    found = compare_symbols.symbols(path)
    return compare_symbols.soname(path), {symbol: TYPES[kind] for symbol, kind in found.items()}


def is_private(node):
    return "_PRIVATE_" in node


def write(release, where, paths):
    print(f"# What the libraries of rdma-core {release} export on x86-64 ({where}): library, symbol, type, public or private to rdma-core.")
    print("# A symbol with @@ is what a program is linked with; one with a single @ is for programs that were linked long ago.")
    print("# Written by list_symbols.py from the libraries.")
    for library, symbols in sorted(map(of_library, paths)):
        for name, node, default in sorted(symbols):
            kind = symbols[(name, node, default)]
            print(library, name + ("@@" if default else "@") + node, kind, "private" if is_private(node) else "public")


def check(path, libraries):
    expected, problems = read(path), []
    for library, symbols in map(of_library, libraries):
        wanted = expected.get(library, {})
        problems += [f"{library}: {key} is not in the list" for key in sorted(symbols.keys() - wanted.keys())]
        problems += [f"{library}: {key} is in the list only" for key in sorted(wanted.keys() - symbols.keys())]
    print("\n".join(problems) or f"{os.path.basename(path)} is what the libraries export")
    return 1 if problems else 0


def main():
    if len(sys.argv) > 3 and sys.argv[1] == "--check":
        sys.exit(check(sys.argv[2], sys.argv[3:]))
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    write(sys.argv[1], sys.argv[2], sys.argv[3:])


if __name__ == "__main__":
    main()
