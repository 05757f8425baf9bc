"""Compares our libibverbs.so.1 with the distribution's: version nodes, who loads it, and what pure functions return. (Its symbols:
symbol_lists_test.py.)

usage: verbs_abi_test.py OURS [DISTRIBUTION'S]
"""

import ctypes
import glob
import os
import re
import subprocess
import sys
import unittest

import compare_symbols

OURS = os.path.abspath(sys.argv[1])


THEIRS = sys.argv[2] if len(sys.argv) > 2 else compare_symbols.find_library("libibverbs.so.1")
if THEIRS is None:
    sys.exit("libibverbs.so.1 of the distribution is not installed: apt-get install libibverbs1 ibverbs-providers")
DIRECTORY = os.path.dirname(THEIRS)


def undefined_symbols(path):
    for line in compare_symbols.readelf(path, "--dyn-syms").splitlines():
        fields = line.split()
        if len(fields) >= 8 and fields[6] == "UND" and fields[4] == "GLOBAL":
            yield fields[7]


def with_our_library(code):
    environment = dict(os.environ, LD_LIBRARY_PATH=os.path.dirname(OURS))
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)


def sanitizer():
    """The sanitizer that our library was compiled with, whose runtime python does not have."""
    for symbol in undefined_symbols(OURS):
        if match := re.match(r"__(asan|ubsan|tsan)_", symbol):
            return match[1]
    return None


RUNS = unittest.skipIf(sanitizer(), f"ours is compiled with {sanitizer()}, python is not; the plain build runs this")


class VerbsAbi(unittest.TestCase):
    def test_version_nodes_inherit_as_the_distribution_s(self):
        ours, theirs = compare_symbols.version_nodes(OURS), compare_symbols.version_nodes(THEIRS)
        self.assertEqual({node: ours.get(node) for node in theirs}, theirs)

    def test_soname(self):
        self.assertEqual(compare_symbols.soname(OURS), "libibverbs.so.1")

    @RUNS
    def test_needs_system_libraries_only(self):
        for symbol in undefined_symbols(OURS):
            self.assertRegex(symbol, r"@(GLIBC|GLIBCXX|CXXABI|GCC)_|^__(asan|ubsan|tsan|sanitizer|lsan)|^__cxa_finalize")

    @RUNS
    def test_distribution_s_libraries_load_with_every_symbol_bound(self):
        libraries = [os.path.join(DIRECTORY, name)
                     for name in ("libmlx5.so.1", "libmlx4.so.1", "libefa.so.1", "libmana.so.1")]
        libraries = [path for path in libraries if os.path.exists(path)]
        libraries += sorted(glob.glob(os.path.join(DIRECTORY, "libibverbs", "*.so")))
        self.assertGreater(len(libraries), 4, "no provider libraries found: apt-get install ibverbs-providers")
        result = with_our_library(f"""
import ctypes, os
for path in {libraries!r}:
    ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_GLOBAL)
maps = open("/proc/self/maps").read()
assert {OURS!r} in maps or os.path.realpath({OURS!r}) in maps, maps
assert {os.path.realpath(THEIRS)!r} not in maps, maps
""")
        self.assertEqual(result.returncode, 0, result.stderr)

    @RUNS
    def test_names_and_rates_are_the_distribution_s(self):
        ours, theirs = ctypes.CDLL(OURS), ctypes.CDLL(THEIRS)
        for name in ("ibv_node_type_str", "ibv_port_state_str", "ibv_event_type_str", "ibv_wc_status_str"):
            for library in (ours, theirs):
                getattr(library, name).restype = ctypes.c_char_p
            for value in range(-3, 40):
                self.assertEqual(getattr(ours, name)(value), getattr(theirs, name)(value), f"{name}({value})")
        for name, values in (("ibv_rate_to_mult", range(-2, 40)), ("ibv_rate_to_mbps", range(-2, 40)),
                             ("mult_to_ibv_rate", range(-2, 1000))):
            for value in values:
                self.assertEqual(getattr(ours, name)(value), getattr(theirs, name)(value), f"{name}({value})")
        for rate in range(0, 40):
            mbps = theirs.ibv_rate_to_mbps(rate)
            for value in (mbps - 1, mbps, mbps + 1):
                self.assertEqual(ours.mbps_to_ibv_rate(value), theirs.mbps_to_ibv_rate(value), f"{value} Mbit/s")

    @RUNS
    def test_sysfs_files_are_read_as_the_distribution_does(self):
        for directory, file, size in (("/sys/class/net/lo", "mtu", 16), ("/sys/class/net/lo", "address", 64),
                                      ("/sys/class/net/lo", "mtu", 3), ("/sys/class/net/lo", "no such file", 16)):
            answers = []
            for path in (OURS, THEIRS):
                buffer = ctypes.create_string_buffer(64)
                length = ctypes.CDLL(path).ibv_read_sysfs_file(directory.encode(), file.encode(), buffer, size)
                answers.append((length, buffer.value if length >= 0 else None))
            self.assertEqual(answers[0], answers[1], f"{directory}/{file} into {size} bytes")

    @RUNS
    def test_marshalling_agrees_with_the_distribution(self):
        source = bytes((7 * i + 1) % 251 for i in range(256))
        for name in ("ibv_copy_ah_attr_from_kern", "ibv_copy_qp_attr_from_kern", "ibv_copy_path_rec_from_kern",
                     "ibv_copy_path_rec_to_kern"):
            results = []
            for path in (OURS, THEIRS):
                to = ctypes.create_string_buffer(b"\xee" * 256, 256)
                getattr(ctypes.CDLL(path), name)(to, ctypes.create_string_buffer(source, 256))
                results.append(to.raw)
            self.assertEqual(results[0], results[1], name)

    @RUNS
    def test_old_programs_are_told_that_their_abi_is_gone(self):
        result = with_our_library(f"""
import ctypes
library = ctypes.CDLL({OURS!r}, use_errno=True)
libc = ctypes.CDLL(None, use_errno=True)
libc.dlvsym.restype = ctypes.c_void_p
address = libc.dlvsym(ctypes.c_void_p(library._handle), b"ibv_get_device_list", b"IBVERBS_1.0")
function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, use_errno=True)(address)
assert function(None) is None
assert ctypes.get_errno() == 38
""")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("rebuild it", result.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
