"""What is in the packages that tools/package makes of the ordinary build; installing them is install_test.py's."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

import stock

VERSION = "1.2.3+4.g0123456789"
DATE = "1700000000"


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}).stdout


def make(output):
    stage = os.path.dirname(os.path.dirname(stock.weft()))
    subprocess.run([stock.workspace_file("tools/package"), "--stage", stage, "--output", output, "deb"], check=True, timeout=300,
                   env={**os.environ, "PACKAGE_VERSION": VERSION, "SOURCE_DATE_EPOCH": DATE}, stdout=subprocess.DEVNULL)


class Packages(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.made = os.path.join(cls.folder, "first")
        make(cls.made)
        cls.arch = output_of("dpkg", "--print-architecture").strip()
        cls.packages = {name: os.path.join(cls.made, f"{name}_{VERSION}_{cls.arch}.deb") for name in ("weft", "weft-mpi")}

    def field(self, package, name):
        return output_of("dpkg-deb", "-f", self.packages[package], name).strip()

    def listing(self, package):
        """Lines of tar: mode, owner, size, date, time, path and target of a link."""
        return [line.split(None, 5) for line in output_of("dpkg-deb", "-c", self.packages[package]).splitlines()]

    def files(self, package):
        return {entry[5].split(" -> ")[0].removeprefix(".") for entry in self.listing(package) if not entry[0].startswith("d")}

    def unpack(self, package):
        root = os.path.join(self.folder, "root-" + package)
        if not os.path.exists(root):
            subprocess.run(["dpkg-deb", "-R", self.packages[package], root], check=True)
        return root

    def test_the_same_build_gives_the_same_bytes(self):
        second = os.path.join(self.folder, "second")
        make(second)
        for path in self.packages.values():
            with open(path, "rb") as a, open(os.path.join(second, os.path.basename(path)), "rb") as b:
                self.assertTrue(a.read() == b.read(), path)

    def test_owner_date_and_modes_are_those_of_a_package(self):
        for package in self.packages:
            for mode, owner, _, date, hour, path in self.listing(package):
                self.assertEqual((owner, date, hour), ("root/root", "2023-11-14", "22:13"), path)
                self.assertIn(mode, ("drwxr-xr-x", "-rw-r--r--", "-rwxr-xr-x", "lrwxrwxrwx"), path)

    def test_version_and_architecture(self):
        for package in self.packages:
            self.assertEqual(self.field(package, "Version"), VERSION)
            self.assertEqual(self.field(package, "Architecture"), self.arch)

    def test_the_programs_and_manuals_say_the_version(self):
        weft, mpi = self.unpack("weft"), self.unpack("weft-mpi")
        self.assertEqual(output_of(os.path.join(weft, "usr/bin/weft"), "--version"), f"weft {VERSION}\n")
        self.assertEqual(output_of(os.path.join(mpi, "usr/bin/mpiexec.weft"), "-version"), f"mpiexec (Weft) {VERSION}\n")
        self.assertEqual(output_of(os.path.join(mpi, "usr/bin/impirun"), "-version"), f"impirun (Weft) {VERSION}\n")
        for page in (os.path.join(weft, "usr/share/man/man1/weft.1.gz"), os.path.join(weft, "usr/share/man/man7/weft-faults.7.gz"),
                     os.path.join(mpi, "usr/share/man/man1/mpiexec.weft.1.gz")):
            self.assertIn(f'"weft {VERSION}"', output_of("zcat", page))
        for root, name in ((weft, "libibverbs.so.1"), (weft, "librdmacm.so.1"), (mpi, "libmpich.so.12")):
            with open(os.path.join(root, "usr/lib/weft", name), "rb") as file:
                self.assertEqual(file.read().count(VERSION.encode()), 1, name)

    def test_no_library_is_where_the_loader_looks_by_itself(self):
        for package in self.packages:
            for path in self.files(package):
                if re.search(r"\.so(\.|$)", path):
                    self.assertTrue(path.startswith("/usr/lib/weft/"), path)

    def test_no_file_is_one_of_the_distribution(self):
        mine = set().union(*(self.files(package) for package in self.packages))
        with open("/var/lib/dpkg/status") as file:
            installed = re.findall(r"^Package: (.+)$", file.read(), re.M)
        others = {"libibverbs1", "libibverbs-dev", "librdmacm1", "librdmacm-dev", "mpich", "libmpich-dev", "openmpi-bin", "libopenmpi-dev"}
        self.assertLessEqual(others, set(installed), "tools/setup test installs these")
        theirs = set()
        for folder in os.scandir("/var/lib/dpkg/info"):
            name, kind = os.path.splitext(folder.name)
            if kind == ".list" and not name.startswith("weft"):
                with open(folder.path) as file:
                    theirs.update(path for path in file.read().splitlines() if path.startswith("/usr/") and not os.path.isdir(path))
        links = set(re.findall(r"^(/usr/\S+)$", "\n".join(output_of("cat", f"/var/lib/dpkg/alternatives/{group}") for group in ("mpi", "mpirun")), re.M))
        self.assertEqual(mine & theirs, set())
        self.assertEqual({path for path in mine & links if not path.endswith(".weft")}, set())

    def test_the_packages_have_no_file_in_common(self):
        self.assertEqual(self.files("weft") & self.files("weft-mpi"), set())

    def test_relations(self):
        for package in self.packages:
            for relation in ("Conflicts", "Breaks", "Replaces", "Provides"):
                self.assertEqual(self.field(package, relation), "", f"{package}: {relation}")
            depends = re.findall(r"[\w.+-]+", re.sub(r"\(.*?\)", "", self.field(package, "Depends")))
            self.assertIn("libc6", depends)
            self.assertIn("libstdc++6", depends)
            for library in ("libibverbs1", "librdmacm1"):  # Weft's own are meant
                self.assertNotIn(library, depends)
        self.assertIn(f"weft (= {VERSION})", self.field("weft-mpi", "Depends"))

    def test_programs_and_libraries_of_one_package_are_found_by_themselves(self):
        for package in self.packages:
            root = self.unpack(package)
            for path in self.files(package):
                file = root + path
                if os.path.islink(file) or not os.path.exists(file):
                    continue
                with open(file, "rb") as content:
                    if content.read(4) == b"\x7fELF":
                        for found in re.findall(r"RU?N?PATH\).*\[(.*)\]", output_of("readelf", "-d", file)):
                            self.assertEqual(found, "$ORIGIN", path)

    def test_sums_are_those_of_the_files(self):
        for package in self.packages:
            root = self.unpack(package)
            subprocess.run(["md5sum", "--quiet", "-c", "DEBIAN/md5sums"], cwd=root, check=True)
            with open(os.path.join(root, "DEBIAN/md5sums")) as file:
                summed = {"/" + line.split("  ")[1].rstrip("\n") for line in file}
            self.assertEqual(summed, {path for path in self.files(package) if not os.path.islink(root + path)})

    def test_what_a_user_looks_for_is_there(self):
        docs = "/usr/share/doc/weft"
        for path in ("/usr/bin/weft", "/usr/share/man/man1/weft.1.gz", "/usr/share/bash-completion/completions/weft",
                     "/usr/share/zsh/vendor-completions/_weft", f"{docs}/README.md", f"{docs}/docs/guides/testing-in-ci.md", f"{docs}/copyright",
                     f"{docs}/changelog.gz", "/usr/share/weft/examples/note_client.c"):
            self.assertIn(path, self.files("weft"))
        for path in ("/usr/bin/mpiexec.weft", "/usr/bin/mpirun.weft", "/usr/bin/impirun", "/usr/share/man/man1/impirun.1.gz",
                     "/usr/bin/mpicc.weft", "/usr/bin/mpicxx.weft", "/usr/bin/mpifort.weft",
                     "/usr/lib/weft/libmpi.so.12", "/usr/lib/weft/include/mpi.h", "/usr/share/weft/examples/mpi/heat.c"):
            self.assertIn(path, self.files("weft-mpi"))

    @unittest.skipUnless(shutil.which("lintian"), "lintian is not installed: apt-get install lintian")
    def test_lintian_reports_no_error(self):
        done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error", *self.packages.values()], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
