"""What makes the archive for any Linux: its check of what programs need, and the command in front of weft. The archive itself is tested by
archive_root_test.py."""

import os
import subprocess
import tempfile
import unittest

import glibc
import stock

FRONT = stock.workspace_file("tools/packaging/front")


class Prefix(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.realpath(folder.name)
        self.prefix = os.path.join(self.folder, "weft")
        os.mkdir(self.prefix)
        stage = os.path.dirname(os.path.dirname(stock.weft()))
        subprocess.run([stock.workspace_file("tools/install-files"), stage, self.prefix], check=True, timeout=120, env={**os.environ, "PACKAGE_VERSION": "1.2.3"})

    def put_in_front(self, needed="2.31"):
        subprocess.run([FRONT, self.prefix, os.uname().machine, needed], check=True)

    def weft(self, *words, path=None):
        return subprocess.run([path or os.path.join(self.prefix, "bin/weft"), *words], capture_output=True, text=True, env=stock.environment(), timeout=120)

    def test_a_program_that_needs_a_newer_glibc_is_not_packed(self):
        # The ordinary build is for the glibc of this machine.
        done = subprocess.run([stock.workspace_file("tools/packaging/finish_archive"), self.prefix, "gcc"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"package: \S+ needs GLIBC_2\.\d+, above 2\.31")

    def test_the_command_starts_weft_from_wherever_it_is(self):
        self.put_in_front()
        os.rename(self.prefix, self.prefix + " moved")
        command = os.path.join(self.prefix + " moved", "bin/weft")
        link = os.path.join(self.folder, "link")
        os.symlink(command, link)
        for path in (command, link):
            self.assertEqual(self.weft("--version", path=path).stdout, "weft 1.2.3\n")
            self.assertIn("weft_lo", self.weft("run", "ibv_devices", path=path).stdout)
            doctor = self.weft("doctor", path=path)
            self.assertEqual(doctor.returncode, 0, doctor.stdout + doctor.stderr)
        self.assertEqual(self.weft("run", "printf", "[%s]", "a b", "", "$x", path=command).stdout, "[a b][][$x]")

    def test_the_status_of_the_program_is_the_commands(self):
        self.put_in_front()
        self.assertEqual(self.weft("run", "sh", "-c", "exit 7").returncode, 7)

    def test_a_glibc_that_is_too_old_is_named(self):
        self.put_in_front("9.99")
        glibc.want_newer(os.path.join(self.prefix, "libexec/weft"))
        done = self.weft("doctor")
        self.assertEqual(done.returncode, 125)
        self.assertIn("with glibc 9.99 or later", done.stderr)
        self.assertIn("with glibc 2.", done.stderr)
        self.assertIn("-> use a newer distribution", done.stderr)

    def test_another_machine_is_named(self):
        self.put_in_front()
        path = os.path.join(self.prefix, "libexec/weft")
        with open(path, "r+b") as file:
            file.seek(18)  # e_machine
            file.write(b"\xff\x7f")
        done = self.weft("run", "true")
        self.assertEqual(done.returncode, 125)
        self.assertIn("weft cannot start on this machine", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
