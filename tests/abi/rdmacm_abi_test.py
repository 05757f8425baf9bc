"""Compares our librdmacm.so.1 with the distribution's: version nodes, and what programs ask for. (Its symbols: symbol_lists_test.py.)

usage: rdmacm_abi_test.py OUR-LIBRDMACM OUR-LIBIBVERBS [DISTRIBUTION'S LIBRDMACM]
"""

import os
import sys
import unittest

import compare_symbols

OURS, OUR_VERBS = (os.path.abspath(path) for path in sys.argv[1:3])
THEIRS = sys.argv[3] if len(sys.argv) > 3 else compare_symbols.find_library("librdmacm.so.1")
if THEIRS is None:
    sys.exit("librdmacm.so.1 of the distribution is not installed: apt-get install librdmacm1")

PROGRAMS = ["rping", "ucmatose", "rdma_server", "rdma_client", "rdma_xserver", "cmtime", "udaddy", "mckey", "rstream",
            "riostream", "rcopy", "udpong", "ib_write_bw", "ib_read_lat"]


class RdmacmAbi(unittest.TestCase):
    def test_version_nodes_inherit_as_the_distribution_s(self):
        ours, theirs = compare_symbols.version_nodes(OURS), compare_symbols.version_nodes(THEIRS)
        self.assertEqual({node: ours.get(node) for node in theirs}, theirs)

    def test_soname_and_what_it_needs(self):
        self.assertEqual(compare_symbols.soname(OURS), "librdmacm.so.1")
        self.assertIn("libibverbs.so.1", compare_symbols.needed(OURS))

    def test_the_engine_is_reached_through_libibverbs(self):
        wanted = compare_symbols.symbols(OURS, defined=False)
        self.assertIn(("weft_private_cm_api", "WEFT_PRIVATE_1", False), wanted)
        offered = {(name, node) for name, node, _ in compare_symbols.symbols(OUR_VERBS)}
        missing = [key for key in wanted if key[0].startswith("ibv_") and key[:2] not in offered]
        self.assertEqual(missing, [])

    def test_programs_of_the_distribution_find_all_their_symbols(self):
        offered = {(name, node) for name, node, _ in compare_symbols.symbols(OURS)}
        checked = 0
        for program in PROGRAMS:
            path = os.path.join("/usr/bin", program)
            if not os.path.exists(path):
                continue
            checked += 1
            wanted = compare_symbols.symbols(path, defined=False)
            missing = [key for key in wanted if key[1].startswith("RDMACM_") and key[:2] not in offered]
            self.assertEqual(missing, [], program)
        self.assertGreater(checked, 5, "apt-get install rdmacm-utils perftest")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
