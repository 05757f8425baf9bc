"""tools/version and tools/stamp: what a build calls itself, and that a program can say it."""

import os
import shutil
import subprocess
import tempfile
import unittest

import stock


class Tree(unittest.TestCase):
    """A repository with the file VERSION and the script."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = os.path.join(os.path.realpath(folder.name), "tree")
        os.makedirs(os.path.join(self.tree, "tools"))
        shutil.copy(stock.workspace_file("tools/version"), os.path.join(self.tree, "tools/version"))

    def git(self, *words):
        identity = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        return subprocess.run(["git", "-C", self.tree, *identity, *words], check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, name, text):
        with open(os.path.join(self.tree, name), "w") as file:
            file.write(text)
        self.git("add", "-A")
        self.git("commit", "-qm", "change " + name)
        return self.git("rev-parse", "--short=9", "HEAD")

    def version(self, tree=None):
        return subprocess.run([os.path.join(tree or self.tree, "tools/version")], check=True, capture_output=True, text=True).stdout

    def test_the_commit_that_changes_the_file_is_the_release(self):
        self.git("init", "-q")
        self.commit("VERSION", "1.2.3\n")
        self.assertEqual(self.version(), "1.2.3\n")

    def test_later_commits_are_counted_from_the_release(self):
        self.git("init", "-q")
        self.commit("VERSION", "1.2.2\n")
        self.commit("VERSION", "1.2.3\n")
        self.commit("file", "1")
        name = self.commit("file", "2")
        self.assertEqual(self.version(), f"1.2.3+2.g{name}\n")

    def test_a_changed_tree_says_so(self):
        self.git("init", "-q")
        name = self.commit("VERSION", "1.2.3\n")
        with open(os.path.join(self.tree, "tools/version"), "a") as file:
            file.write("\n")
        self.assertEqual(self.version(), f"1.2.3+0.g{name}.changed\n")

    def test_a_tree_without_its_history_claims_no_release(self):
        with open(os.path.join(self.tree, "VERSION"), "w") as file:
            file.write("1.2.3\n")
        self.assertEqual(self.version(), "1.2.3+unknown\n")

    def test_a_clone_without_its_history_claims_no_release(self):
        self.git("init", "-q")
        self.commit("VERSION", "1.2.3\n")
        name = self.commit("file", "1")
        shallow = self.tree + "-shallow"
        subprocess.run(["git", "clone", "-q", "--depth=1", "file://" + self.tree, shallow], check=True, capture_output=True)
        self.assertEqual(self.version(shallow), f"1.2.3+unknown.g{name}\n")


class Stamp(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.program = os.path.join(folder.name, "weft")
        shutil.copy(stock.weft(), self.program)
        os.chmod(self.program, 0o755)

    def stamp(self, version):
        return subprocess.run([stock.workspace_file("tools/stamp"), version, self.program], capture_output=True, text=True)

    def shown(self):
        return subprocess.run([self.program, "--version"], check=True, capture_output=True, text=True).stdout

    def test_the_program_says_the_version_that_was_written(self):
        for version in ("1.2.3+12.g0123456789", "1.2.4", "9" * 63):
            self.assertEqual(self.stamp(version).returncode, 0)
            self.assertEqual(self.shown(), f"weft {version}\n")

    def test_the_size_of_the_file_stays(self):
        before = os.path.getsize(self.program)
        self.stamp("1.2.3+12.g0123456789")
        self.assertEqual(os.path.getsize(self.program), before)

    def test_what_cannot_be_a_version_is_refused_and_changes_nothing(self):
        before = self.shown()
        for version in ("", "v1", "1.0 beta", "1" * 64):
            self.assertNotEqual(self.stamp(version).returncode, 0, version)
            self.assertEqual(self.shown(), before)


if __name__ == "__main__":
    unittest.main(verbosity=2)
