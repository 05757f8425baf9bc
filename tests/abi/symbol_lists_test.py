"""Weft's libraries export what each release of rdma-core exports: the lists rdma-core-N.txt beside this file.

usage: symbol_lists_test.py LIBIBVERBS LIBRDMACM
"""

import glob
import os
import sys
import unittest

import compare_symbols
import list_symbols

OURS = dict(list_symbols.of_library(os.path.abspath(path)) for path in sys.argv[1:3])
LISTS = {os.path.basename(path): list_symbols.read(path)
         for path in sorted(glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)), "rdma-core-*.txt")))}
OWN_NODE = "WEFT_PRIVATE_1"


def by_name_and_node(symbols):
    """{(name, node): type}. Which of a name's nodes is the default matters to the linker alone, and differs between releases for private names."""
    return {(name, node): kind for (name, node, _), kind in symbols.items()}


class SymbolLists(unittest.TestCase):

    def test_lists_are_there(self):
        self.assertGreaterEqual(len(LISTS), 8)
        for name, libraries in LISTS.items():
            self.assertEqual(libraries.keys(), {"libibverbs.so.1", "librdmacm.so.1"}, name)
            self.assertGreater(len(libraries["libibverbs.so.1"]), 150, name)
            self.assertGreater(len(libraries["librdmacm.so.1"]), 60, name)

    def test_nothing_is_missing(self):
        missing = []
        for release, libraries in LISTS.items():
            for library, symbols in libraries.items():
                ours = by_name_and_node(OURS[library])
                missing += [f"{release}: {library} {name}@{node}, {kind}" for (name, node), kind in sorted(by_name_and_node(symbols).items())
                            if ours.get((name, node)) != kind]
        self.assertEqual(missing, [], "\n" + "\n".join(missing))

    def test_programs_are_linked_with_the_same_versions(self):
        """What a program that is linked with Weft asks for, rdma-core of the release has, and the other way round."""
        for release, libraries in LISTS.items():
            for library, symbols in libraries.items():
                for (name, node, default), kind in symbols.items():
                    if not list_symbols.is_private(node):
                        self.assertIn((name, node, default), OURS[library], f"{release}: {library}")

    def test_nothing_else_is_exported(self):
        extra = []
        for library, symbols in OURS.items():
            known = set().union(*(by_name_and_node(libraries[library]) for libraries in LISTS.values()))
            extra += [f"{library} {name}@{node}" for name, node in sorted(by_name_and_node(symbols))
                      if (name, node) not in known and node != OWN_NODE]
        self.assertEqual(extra, [])

    def test_only_weft_s_own_names_stand_at_its_own_node(self):
        own = {name for name, node, _ in OURS["libibverbs.so.1"] if node == OWN_NODE}
        self.assertEqual(own, {"weft_private_cm_api", "weft_private_find_qp"})


class Lists(unittest.TestCase):

    def test_the_installed_libraries_are_in_a_list(self):
        """rdma-core's packages keep their symbols between two releases of a list, but never invent some."""
        for library in ("libibverbs.so.1", "librdmacm.so.1"):
            path = compare_symbols.find_library(library)
            if path is None:
                self.skipTest(f"{library} of the distribution is not installed")
            installed = by_name_and_node(list_symbols.of_library(path)[1])
            self.assertIn(installed, [by_name_and_node(libraries[library]) for libraries in LISTS.values()],
                          f"{path}: no list has these symbols; see list_symbols.py")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
