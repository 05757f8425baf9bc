"""What our libmpich.so.12 exports, next to the distribution's, and what MPICH's Fortran and C++ libraries import.

usage: symbols_test.py OURS
"""

import os
import re
import subprocess
import sys
import unittest

OURS = os.path.abspath(sys.argv.pop(1))
LIBRARY_DIRECTORIES = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"]


def find(name):
    for directory in LIBRARY_DIRECTORIES:
        path = os.path.join(directory, name)
        if os.path.exists(path):
            return path
    sys.exit(f"{name} of MPICH is not installed: tools/setup test")


def nm(path, which):
    """{name: (kind, size)}; kind: T strong function, W weak function, D data, U undefined."""
    # The dynamic table may have local symbols too, for relocations of thread-local storage: those nobody can bind to.
    output = subprocess.run(["nm", "-D", "-S", "--extern-only", which, path], check=True, capture_output=True, text=True).stdout
    found = {}
    for line in output.splitlines():
        fields = line.split()
        kind = "D" if fields[-2] in "BDR" else fields[-2]
        found[fields[-1].split("@")[0]] = (kind, int(fields[1], 16) if len(fields) > 3 else 0)
    return found


THEIRS = nm(find("libmpich.so.12"), "--defined-only")
MINE = nm(OURS, "--defined-only")


class SymbolsTest(unittest.TestCase):
    def test_each_symbol_of_mpich_is_exported_with_the_same_kind(self):
        self.assertGreater(len(THEIRS), 1200)
        wrong = {name: (kind, MINE.get(name, "none")) for name, (kind, _) in THEIRS.items() if MINE.get(name, ("none",))[0] != kind}
        self.assertEqual(wrong, {})

    def test_nothing_else_is_exported(self):
        self.assertEqual(sorted(set(MINE) - set(THEIRS)), [])

    def test_619_weak_names_stand_over_619_strong_ones(self):
        weak = [name for name, (kind, _) in MINE.items() if kind == "W" and name.startswith("MPI_")]
        strong = [name for name, (kind, _) in MINE.items() if kind == "T" and name.startswith("PMPI_")]
        self.assertEqual((len(weak), len(strong)), (619, 619))
        self.assertEqual(sorted("P" + name for name in weak), sorted(strong))

    def test_data_that_programs_copy_has_mpichs_size(self):
        # Copy relocations: the program has room for MPICH's. Version strings may be shorter.
        for name, (kind, size) in THEIRS.items():
            if kind != "D":
                continue
            with self.subTest(name):
                if name.startswith("MPII_Version_"):
                    self.assertLessEqual(MINE[name][1], size)
                else:
                    self.assertEqual(MINE[name][1], size)

    def test_what_the_fortran_and_cxx_libraries_import_is_there(self):
        for library in ["libmpichfort.so.12", "libmpichcxx.so.12"]:
            with self.subTest(library):
                imported = [name for name in nm(find(library), "--undefined-only") if re.match(r"P?MPIX?_|MPI[IR]_|QMPI_", name)]
                self.assertGreater(len(imported), 100)
                self.assertEqual([name for name in imported if name not in MINE], [])

    def test_symbols_have_no_versions_and_the_soname_is_mpichs(self):
        symbols = subprocess.run(["readelf", "-W", "--dyn-syms", OURS], check=True, capture_output=True, text=True).stdout
        self.assertEqual(re.findall(r"\bMPI_\w+@\S+", symbols), [])
        dynamic = subprocess.run(["readelf", "-d", OURS], check=True, capture_output=True, text=True).stdout
        self.assertIn("soname: [libmpich.so.12]", dynamic)

    def test_every_reference_of_ours_is_resolved(self):
        result = subprocess.run(["ldd", "-r", OURS], capture_output=True, text=True)
        self.assertEqual([line for line in (result.stdout + result.stderr).splitlines() if "undefined" in line], [])


unittest.main()
