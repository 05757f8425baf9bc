"""A set-user-ID program with Weft in it, started by somebody else who would write and read files with its rights. Needs root, to make one."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

NOBODY = 65534
SECRET = "root-alone-knows-this"


class SetUid(unittest.TestCase):

    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("making a set-user-ID program of root's needs root")
        with open("/proc/self/uid_map") as table:
            if table.read().split() != ["0", "0", "4294967295"]:
                self.skipTest("there is no other user in this user namespace")
        with open("/proc/self/status") as status:
            if "NoNewPrivs:\t1" in status.read():
                self.skipTest("no program gets other rights here (no_new_privs)")
        self.folder = tempfile.mkdtemp(prefix="weft-setuid-")
        self.addCleanup(shutil.rmtree, self.folder)
        os.chmod(self.folder, 0o755)
        if os.statvfs(self.folder).f_flag & os.ST_NOSUID:
            self.skipTest(f"{self.folder} is mounted nosuid")
        self.program = self.make("program", PROGRAM, 0o4755)

    def make(self, name, source, mode):
        path = os.path.join(self.folder, name)
        shutil.copyfile(source, path)
        os.chmod(path, mode)
        return path

    def private_file(self, text):
        path = os.path.join(self.folder, "private")
        with open(path, "w") as out:
            out.write(text)
        os.chmod(path, 0o600)
        return path

    def run_as_nobody(self, program, **environment):
        done = subprocess.run([program], env={"PATH": "/usr/bin:/bin", **environment}, user=NOBODY, group=NOBODY, extra_groups=[],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
        return done.stdout

    def test_it_is_one(self):
        output = self.run_as_nobody(self.program)
        self.assertIn(f"uid {NOBODY}, euid 0", output)
        self.assertIn("trusted: 0", output)
        self.assertNotIn("weft:", output)

    def test_a_capture_overwrites_no_file_of_its_owner(self):
        path = self.private_file(SECRET)
        output = self.run_as_nobody(self.program, WEFT_PCAP=path)
        self.assertIn("captures: 0", output)
        with open(path) as private:
            self.assertEqual(private.read(), SECRET)
        fresh = os.path.join(self.folder, "fresh.pcap")
        self.run_as_nobody(self.program, WEFT_PCAP=fresh)
        self.assertFalse(os.path.exists(fresh))

    def test_faults_show_no_file_of_its_owner(self):
        output = self.run_as_nobody(self.program, WEFT_FAULTS="@" + self.private_file(SECRET))
        self.assertNotIn(SECRET, output)

    def test_it_says_what_counts_for_nothing_and_goes_on(self):
        output = self.run_as_nobody(self.program, WEFT_PERSONA="iwarp", WEFT_NONSENSE="1", WEFT_TRACE="1")
        self.assertIn("WEFT_TRACE, WEFT_PERSONA in the environment are ignored", output)
        self.assertNotIn("WEFT_NONSENSE", output)
        self.assertIn("devices: 1", output)

    def test_of_a_program_with_its_callers_rights_everything_counts(self):
        program = self.make("plain", PROGRAM, 0o755)
        capture = os.path.join(tempfile.gettempdir(), f"weft-setuid-{os.getpid()}.pcap")
        try:
            self.assertIn("captures: 1", self.run_as_nobody(program, WEFT_PCAP=capture))
            self.assertEqual(os.stat(capture).st_uid, NOBODY)
            self.assertEqual(stat.S_ISREG(os.stat(capture).st_mode), True)
        finally:
            if os.path.exists(capture):
                os.unlink(capture)


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
