"""What tools/make-test-unit refuses, and that a program of a unit runs the cases of its own file and no others (third_party/gtest/one_file.cc)."""

import os
import subprocess
import sys
import tempfile
import unittest

TOOL = os.path.abspath("tools/make-test-unit")
PROGRAM = os.path.abspath("base/hex_test")
FILE = "namespace {\n\n%s\n\n}  // namespace\n"


class MakeTestUnit(unittest.TestCase):

    def make(self, **texts):
        """(status, what it says, the unit) of files with these texts."""
        with tempfile.TemporaryDirectory() as directory:
            for name, text in texts.items():
                with open(os.path.join(directory, name + "_test.cc"), "w", encoding="ascii") as file:
                    file.write(text)
            done = subprocess.run([sys.executable, TOOL, "unit", *(name + "_test.cc" for name in texts)], cwd=directory, capture_output=True, text=True)
            unit = os.path.join(directory, "unit")
            text = open(unit, encoding="ascii").read() if os.path.exists(unit) else ""
        return done.returncode, done.stderr, text

    def test_each_file_has_a_namespace_and_its_macros_end_with_it(self):
        status, _, unit = self.make(a="#define SIZE 1\n" + FILE % "TEST(A, Works) {}", b="#define SIZE 2\n" + FILE % "TEST(A, Fails) {}")
        self.assertEqual(status, 0)
        self.assertEqual(unit.count("namespace a_test_cc {"), 1)
        self.assertEqual(unit.count("namespace b_test_cc {"), 1)
        self.assertLess(unit.index("#undef SIZE"), unit.index("#define SIZE 2"))

    def refused(self, why, **texts):
        status, said, unit = self.make(**texts)
        self.assertEqual((status, unit), (1, ""))
        self.assertIn(why, said)

    def test_what_other_files_would_see_is_refused(self):
        self.refused("a_test.cc:1: outside", a="static int g_count;\n" + FILE % "TEST(A, Works) {}")
        self.refused("a_test.cc:3: other files", a=FILE % 'extern "C" int sched_yield() { return 0; }')

    def test_a_suite_that_would_be_two_is_refused(self):
        self.refused("A: in", a=FILE % "TEST(A, Works) {}", b=FILE % "TEST(A, Works) {}")
        self.refused("A: in", a=FILE % "class A : public testing::Test {};\nTEST_F(A, Works) {}", b=FILE % "class A : public testing::Test {};\nTEST_F(A, Fails) {}")


class OneFile(unittest.TestCase):

    def run_program(self, *words):
        env = {name: value for name, value in os.environ.items() if not name.startswith(("GTEST_", "TEST", "XML_"))}
        done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, env=env)
        return done.returncode, done.stdout, done.stderr

    def suites(self, *words):
        status, listed, said = self.run_program(*words, "--gtest_list_tests")
        self.assertEqual(status, 0, said)
        return {line for line in listed.splitlines() if line.endswith(".")}

    def test_its_own_cases_whatever_the_filter_says(self):
        for words in ((), ("--cases_of=base/hex_test.cc",), ("--gtest_filter=*",), ("--gtest_filter=*-Other.*",)):
            self.assertEqual(self.suites(*words), {"HexTest."}, words)

    def test_others_of_its_unit_are_there(self):
        self.assertNotEqual(self.suites("--cases_of=base/copy_test.cc"), {"HexTest."})

    def test_a_file_that_is_not_there_is_an_error(self):
        status, _, said = self.run_program("--cases_of=base/none_test.cc")
        self.assertEqual(status, 2)
        self.assertIn("base/hex_test.cc", said)


if __name__ == "__main__":
    unittest.main()
