"""The packages are installed, upgraded, half-installed and removed in a root directory of Debian. Run by ./test --packages: see README.md.

MPICH and Open MPI of the distribution come from its mirror in one of the tests."""

import os
import subprocess
import tempfile
import time
import unittest

import root
import stock

OLD, NEW = "1.2.3", "1.2.4+1.g0123456789"
FIRST_RPING_SECONDS = 10  # from the packages to the end of the first rping

VERSION_PROGRAM = """
#include <mpi.h>
#include <stdio.h>
int main() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length;
  MPI_Get_library_version(text, &length);
  puts(text);
}
"""

RPING = """
weft run rping -s -a 127.0.0.1 -p 7174 -C 10 -v -V >/tmp/server 2>&1 & server=$!
for i in $(seq 500); do
  ! ss -Hltn 'sport = :7174' | grep -q . || break
  sleep 0.02
done
timeout 30 weft run rping -c -a 127.0.0.1 -p 7174 -C 10 -v -V >/tmp/client 2>&1 || { cat /tmp/client /tmp/server; exit 1; }
wait $server
grep -c 'ping data: rdma-ping' /tmp/client
"""


class Installation(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.base = root.base()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        stage = os.path.dirname(os.path.dirname(stock.weft()))
        cls.packages = {}
        for version in (OLD, NEW):
            made = subprocess.run([stock.workspace_file("tools/package"), "--stage", stage, "--output", folder.name, "deb"], check=True,
                                  env={**os.environ, "PACKAGE_VERSION": version, "SOURCE_DATE_EPOCH": "1700000000"}, stdout=subprocess.PIPE, text=True)
            cls.packages[version] = made.stdout.split()

    def setUp(self):
        self.root = root.Root(self.base)
        self.addCleanup(self.root.close)
        for version, paths in self.packages.items():
            for path in paths:
                self.root.copy_in(path, self.deb("weft-mpi" if "weft-mpi" in path else "weft", version))

    @staticmethod
    def deb(package, version):
        return f"/tmp/{version}/{package}.deb"

    def install(self, version, *packages):
        return self.root.run(["dpkg", "-i", *(self.deb(package, version) for package in packages or ("weft", "weft-mpi"))])

    def version(self):
        return self.root.run("weft --version")

    def test_from_the_package_to_the_first_rping(self):
        start = time.monotonic()
        self.install(NEW, "weft")
        installed = time.monotonic()
        self.assertEqual(self.root.run(RPING), "10\n")
        end = time.monotonic()
        print(f"installed in {installed - start:.1f} s, rping of 10 pings in {end - installed:.1f} s")
        self.assertLess(end - start, FIRST_RPING_SECONDS)

    def test_everything_works_when_installed(self):
        self.install(NEW)
        self.assertEqual(self.version(), f"weft {NEW}\n")
        self.assertNotIn("FAIL", self.root.run("weft doctor"))
        self.assertIn(f"fw_ver:\t\t\t\t{NEW}", self.root.run("weft run ibv_devinfo -d weft_lo"))
        self.assertIn(NEW, self.root.run("mpiexec -version"))
        self.root.run("mpicc -O1 /usr/share/weft/examples/mpi/passive_target.c -o /tmp/passive -lm && mpiexec -n 2 /tmp/passive")
        self.root.run("cat >/tmp/version.c <<'END'\n" + VERSION_PROGRAM + "END\nmpicc /tmp/version.c -o /tmp/version")
        self.assertIn(f"Weft MPI {NEW} ", self.root.run("/tmp/version"))
        for page in ("weft", "weft-faults", "mpiexec", "mpirun"):
            self.assertIn(f"weft {NEW}", self.root.run(f"MANWIDTH=120 man {page} | cat"), page)
        self.assertIn("devices", self.root.run(". /usr/share/bash-completion/completions/weft; COMP_WORDS=(weft dev); COMP_CWORD=1; _weft; echo ${COMPREPLY[@]}"))
        # Programs that are not started by weft run keep the distribution's libraries.
        self.assertNotIn("weft", self.root.run("ldd $(command -v rping); ldconfig -p"))

    def test_it_stands_beside_mpich_and_open_mpi(self):
        self.root.run("apt-get update -q && apt-get install -y -q --no-install-recommends mpich openmpi-bin libopenmpi-dev")
        before = self.root.run("update-alternatives --get-selections | grep -E '^mpi'; readlink -f /usr/bin/mpicc /usr/bin/mpiexec")
        self.install(NEW)
        self.assertEqual(self.root.run("update-alternatives --get-selections | grep -E '^mpi'; readlink -f /usr/bin/mpicc /usr/bin/mpiexec"), before)
        self.root.run("update-alternatives --set mpirun /usr/bin/mpirun.weft && update-alternatives --set mpi /usr/bin/mpicc.weft")
        self.assertIn(NEW, self.root.run("mpiexec -version"))
        self.assertIn("/usr/lib/weft", self.root.run("mpicc -show; mpicxx -show"))
        # A program that no mpiexec started starts Weft's, whose name "mpiexec" may be another's.
        self.root.run("update-alternatives --auto mpirun; mpicc.weft -O1 /usr/share/weft/examples/mpi/spawn_workers.c -o /tmp/spawn_workers;"
                      " timeout 60 /tmp/spawn_workers 2 20")
        # libmpich12t64 and librdmacm1t64 in Debian 13. A name that was never installed is "not-installed".
        names = self.root.run("dpkg-query -W -f '${Package} ${db:Status-Status}\\n' mpich 'libmpich12*' openmpi-bin libopenmpi-dev 'libibverbs1*' 'librdmacm1*'"
                              " | sed -n 's/ installed$//p'").split()
        self.assertGreaterEqual(len(names), 6)
        self.assertEqual(self.root.run(["dpkg", "--verify", *names]), "")
        self.root.run("dpkg -r weft-mpi weft")
        self.assertEqual(self.root.run("readlink -f /usr/bin/mpicc /usr/bin/mpiexec").split(), before.split()[-2:])

    def test_an_upgrade(self):
        self.install(OLD)
        self.assertEqual(self.version(), f"weft {OLD}\n")
        before = self.root.files()
        self.install(NEW)
        self.assertEqual(self.version(), f"weft {NEW}\n")
        self.assertEqual(self.root.files(), before)
        self.assertIn(NEW, self.root.run("mpiexec -version"))
        self.assertNotIn("FAIL", self.root.run("weft doctor"))

    def test_an_upgrade_of_one_package_alone_is_refused(self):
        self.install(OLD)
        self.root.run(["dpkg", "-i", self.deb("weft-mpi", NEW)], status=1)

    def test_a_program_that_runs_keeps_its_libraries_during_an_upgrade(self):
        self.install(OLD)
        self.root.run("weft run rping -s -a 127.0.0.1 -p 7175 -C 10 -P >/tmp/server 2>&1 & echo $! >/tmp/pid;"
                      " for i in $(seq 500); do ! ss -Hltn 'sport = :7175' | grep -q . || break; sleep 0.02; done")
        try:
            self.install(NEW)
            self.root.run("timeout 30 weft run rping -c -a 127.0.0.1 -p 7175 -C 10")
        finally:
            self.root.run("kill $(cat /tmp/pid)")

    def test_nothing_is_left_when_they_are_gone(self):
        for words in (["--purge"], ["--remove"]):
            before = self.root.files()
            self.install(NEW)
            self.assertGreater(len(self.root.files() - before), 50)
            self.root.run(["dpkg", *words, "weft-mpi", "weft"])
            self.assertEqual(self.root.files() ^ before, set())
            self.assertEqual(self.root.package_records(), "")

    def test_a_half_installed_package_is_named_and_mended(self):
        self.root.run(["dpkg", "--unpack", self.deb("weft", NEW)])
        doctor = self.root.run("weft doctor", status=1)
        self.assertIn("the package weft is half-installed: dpkg calls it unpacked", doctor)
        self.assertIn("dpkg --configure -a", doctor)
        self.root.run("dpkg --configure -a")
        self.assertNotIn("FAIL", self.root.run("weft doctor"))

    def test_a_package_that_lost_a_file_is_named_and_mended(self):
        self.install(NEW)
        self.root.run("rm /usr/lib/weft/libweft_paths.so")
        doctor = self.root.run("weft doctor", status=1)
        self.assertIn("libweft_paths.so is not in /usr/lib/weft", doctor)
        self.assertIn("apt-get install --reinstall", doctor)
        self.root.run(["apt-get", "install", "-y", "--reinstall", "--no-install-recommends", self.deb("weft", NEW)])
        self.assertNotIn("FAIL", self.root.run("weft doctor"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
