"""weft doctor on installations that are not as they should be: it names what is wrong, and says what to do."""

import os
import shutil
import subprocess
import tempfile

import glibc
import stock

LIBRARIES = "lib/weft"


def can_unshare():
    return subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode == 0


class Doctor(stock.StockTest):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.installed = os.path.join(folder.name, "installed")
        os.mkdir(cls.installed)
        stage = os.path.dirname(os.path.dirname(stock.weft()))
        subprocess.run([stock.workspace_file("tools/install-files"), stage, cls.installed], check=True, timeout=120, env={**os.environ, "PACKAGE_VERSION": "1.2.3"})

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.prefix = shutil.copytree(self.installed, os.path.join(folder.name, "prefix"), symlinks=True)

    def doctor(self, *wrapper, prefix=None, **settings):
        weft = os.path.join(prefix or self.prefix, "bin/weft")
        return subprocess.run([*wrapper, weft, "doctor"], env=stock.environment(**settings), capture_output=True, text=True, timeout=120)

    def finds(self, failure, remedy, *wrapper, **settings):
        """The doctor reports the failure, and says what to do under it."""
        done = self.doctor(*wrapper, **settings)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        lines = done.stdout.splitlines()
        found = [i for i, line in enumerate(lines) if line.startswith("FAIL") and failure in line]
        self.assertTrue(found, done.stdout)
        self.assertIn(remedy, lines[found[0] + 1])

    def notes(self, what, *wrapper, **settings):
        done = self.doctor(*wrapper, **settings)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertTrue([line for line in done.stdout.splitlines() if line.startswith("note") and what in line], done.stdout)

    def test_a_whole_installation_is_good_and_says_its_version(self):
        done = self.doctor()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("version: 1.2.3,", done.stdout)

    def test_files_that_are_missing(self):
        for name in ("libibverbs.so.1", "librdmacm.so.1", "libweft_paths.so", "weft-paths", "rsocket/librspreload.so", "libmpich.so.12"):
            with self.subTest(name):
                path = os.path.join(self.prefix, LIBRARIES, name)
                os.rename(path, path + ".away")
                self.finds(f"{name} is not in {self.prefix}/{LIBRARIES}", "run ./install PREFIX again")
                os.rename(path + ".away", path)

    def test_an_mpi_library_without_mpiexec(self):
        os.remove(os.path.join(self.prefix, "bin/mpiexec"))
        self.finds("there is no " + os.path.join(self.prefix, "bin/mpiexec"), "run ./install PREFIX again")

    def test_files_that_were_cut_short(self):
        for name in ("libibverbs.so.1", "librdmacm.so.1", "libweft_paths.so", "libmpich.so.12"):
            with self.subTest(name):
                path = os.path.join(self.prefix, LIBRARIES, name)
                shutil.copy(path, path + ".away")
                os.truncate(path, 1000)
                self.finds(f"{path} is cut short", "run ./install PREFIX again")
                os.rename(path + ".away", path)

    def test_a_library_of_another_version(self):
        for name in ("lib/weft/libibverbs.so.1", "lib/weft/librdmacm.so.1", "lib/weft/libmpich.so.12", "bin/mpiexec"):
            with self.subTest(name):
                path = os.path.join(self.prefix, name)
                subprocess.run([stock.workspace_file("tools/stamp"), "1.2.2", path], check=True)
                self.finds(f"two versions: {path} is Weft 1.2.2, this command Weft 1.2.3", "run ./install PREFIX again")
                subprocess.run([stock.workspace_file("tools/stamp"), "1.2.3", path], check=True)

    def test_another_version_in_PATH(self):
        other = os.path.join(os.path.dirname(self.prefix), "other")
        os.makedirs(os.path.join(other, "bin"))
        for name in ("weft", "mpiexec"):
            path = shutil.copy(os.path.join(self.prefix, "bin", name), os.path.join(other, "bin", name))
            subprocess.run([stock.workspace_file("tools/stamp"), "1.2.2", path], check=True)
            self.notes(f"two versions side by side: {name} in PATH is Weft 1.2.2 ({path})", PATH=f"{other}/bin:{os.environ['PATH']}")
        done = self.doctor(PATH=f"{self.prefix}/bin:{other}/bin:{os.environ['PATH']}")
        self.assertNotIn("two versions", done.stdout)

    def test_another_libibverbs_in_LD_LIBRARY_PATH(self):
        other = os.path.join(os.path.dirname(self.prefix), "others")
        os.makedirs(other)
        path = shutil.copy("/usr/lib/" + os.uname().machine + "-linux-gnu/libibverbs.so.1", other)
        self.notes(f"LD_LIBRARY_PATH leads to another libibverbs.so.1: {path} (not Weft)", LD_LIBRARY_PATH=other)
        own = os.path.join(self.prefix, LIBRARIES)
        self.finds(f"{path} (not Weft), in front of {own}", 'eval "$(weft env)"', LD_LIBRARY_PATH=f"{other}:{own}")
        self.assertNotIn("leads to another", self.doctor(LD_LIBRARY_PATH=f"{own}:{other}").stdout)

    def test_no_dev_shm(self):
        if not can_unshare():
            self.skipTest("no mount namespace can be made here: unshare -rm fails")
        read_only = "mount -t tmpfs -o ro none /dev/shm && exec \"$@\""
        self.notes("/dev/shm cannot be written (Read-only file system): Weft uses /tmp", "unshare", "-rm", "sh", "-c", read_only, "sh")

    def test_a_read_only_home(self):
        if not can_unshare():
            self.skipTest("no mount namespace can be made here: unshare -rm fails")
        home = os.path.join(os.path.dirname(self.prefix), "home")
        os.mkdir(home)
        read_only = f"mount -t tmpfs -o ro none {home} && exec \"$@\""
        for setting, words in (("HOME", f"the home folder {home} cannot be written"), ("XDG_RUNTIME_DIR", f"XDG_RUNTIME_DIR={home} cannot be written")):
            self.notes(words, "unshare", "-rm", "sh", "-c", read_only, "sh", **{setting: home})

    def test_a_glibc_that_is_too_old(self):
        glibc.want_newer(os.path.join(self.prefix, LIBRARIES, "libmpich.so.12"))
        self.finds("the MPI library does not load", "is too old for it, 9.99 is needed")


if __name__ == "__main__":
    stock.main()
