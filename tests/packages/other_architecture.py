"""Packages for another architecture than this machine's: what they hold is for that one, and needs no library but of the packages that they name.

usage: other_architecture.py ARCH MACHINE FOLDER ROOT     (tools/arm64-test: arm64 AArch64 ...)

FOLDER holds the packages, MACHINE is readelf's name of the architecture, ROOT a folder with Debian's packages of it (tools/arm64/root).
"""

import glob
import os
import re
import subprocess
import sys
import tempfile
import unittest

ARCH, MACHINE, FOLDER, ROOT = sys.argv[1:5]


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}).stdout


class OtherArchitecture(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.files = {name: glob.glob(f"{FOLDER}/{name}_*_{ARCH}.deb") for name in ("weft", "weft-mpi")}
        cls.roots = {name: os.path.join(folder.name, name) for name in cls.files}
        for name, found in cls.files.items():
            if len(found) != 1:
                raise AssertionError(f"{FOLDER} has not one package {name} for {ARCH}, but {found}")
            output_of("dpkg-deb", "-x", found[0], cls.roots[name])

    def field(self, package, name):
        return output_of("dpkg-deb", "-f", self.files[package][0], name).strip()

    def programs(self, package):
        for folder, _, names in os.walk(self.roots[package]):
            for name in names:
                path = os.path.join(folder, name)
                if not os.path.islink(path):
                    with open(path, "rb") as file:
                        if file.read(4) == b"\x7fELF":
                            yield path

    def test_the_packages_say_the_architecture(self):
        for package in self.files:
            self.assertEqual(self.field(package, "Architecture"), ARCH)

    def test_each_program_and_library_is_for_it(self):
        for package, least in (("weft", 6), ("weft-mpi", 2)):
            found = list(self.programs(package))
            self.assertGreaterEqual(len(found), least)
            for path in found:
                self.assertRegex(output_of("readelf", "-h", path), rf"Machine: +{MACHINE}\n", path)

    def test_each_needed_library_is_of_a_package_that_is_named(self):
        own = {os.path.basename(path) for package in self.files for path in self.programs(package)}
        for package in self.files:
            named = set(re.findall(r"[\w.+-]+", re.sub(r"\(.*?\)", "", self.field(package, "Depends"))))
            for path in self.programs(package):
                for library in re.findall(r"\(NEEDED\).*\[(.*)\]", output_of("readelf", "-d", path)):
                    if library in own:
                        continue
                    owner = output_of("dpkg-query", f"--admindir={ROOT}/var/lib/dpkg", "-S", f"*/{library}")
                    owners = {line.split(":")[0] for line in owner.splitlines()}
                    self.assertTrue(owners & named, f"{path} needs {library} of {owners}; Depends: {named}")

    def test_the_commands_run(self):
        version = self.field("weft", "Version")
        self.assertEqual(output_of(self.roots["weft"] + "/usr/bin/weft", "--version"), f"weft {version}\n")
        self.assertEqual(output_of(self.roots["weft-mpi"] + "/usr/bin/mpiexec.weft", "-version"), f"mpiexec (Weft) {version}\n")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
