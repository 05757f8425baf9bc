"""weft-impi-test: all of its scripts against Weft's own server, and scripts that have to fail against wrong ones."""

import os
import subprocess
import sys
import tempfile
import unittest

import stock

BOUND = 600  # seconds, for a run of the tester
TESTER, IMPIRUN, FAKE = (stock.workspace_file(name) for name in ("impi/tester/weft-impi-test", "impi/impirun", "tests/impi/fake_server.py"))
SCRIPTS = stock.workspace_file("impi/tester/scripts")


def test(*words):
    """The exit status of the tester, and what it printed and complained about."""
    done = subprocess.run([TESTER, *words], capture_output=True, text=True, timeout=BOUND, check=False)
    return done.returncode, done.stdout, done.stderr


def scripts_of(target):
    count = 0
    for name in os.listdir(SCRIPTS):
        with open(os.path.join(SCRIPTS, name), encoding="utf-8") as file:
            count += f"target {target}\n" in file
    return count


class OwnServer(unittest.TestCase):
    def test_all_scripts_pass(self):
        status, output, errors = test("server", "-patience", "30", SCRIPTS, "--", IMPIRUN)
        self.assertEqual((status, errors), (0, ""), output)
        count = scripts_of("server")
        self.assertGreater(count, 30)
        self.assertIn(f"all: {count} of {count} passed", output)


class WrongServers(unittest.TestCase):
    def fails(self, fault, script, *texts, patience=60):
        status, output, errors = test("server", "-patience", str(patience), os.path.join(SCRIPTS, script), "--", sys.executable, FAKE, fault)
        self.assertEqual((status, errors), (1, ""), output)
        self.assertIn("all: 0 of 1 passed", output)
        for text in texts:
            self.assertIn(text, output)

    def test_one_that_is_silent(self):
        self.fails("silent", "2.3.3-none.script", "2.3.3   FAILED", "2.3.3-none.script:9: hear-words a 0 0", "did not come within 10 seconds", "to a: AUTH", patience=10)

    def test_one_that_is_hasty(self):
        self.fails("hasty", "2.3.4-size.script", ": quiet a", "nothing is expected, and this came: 12 bytes: 494d5049")

    def test_one_that_miscounts(self):
        self.fails("miscounts", "2.3.3-none.script", ": hear a IMPI 1", "expected is 4 bytes: 00000001, and this came: 4 bytes: 00000002")

    def test_one_that_prints_no_address(self):
        self.fails("mute", "2.2.1-address.script", "did not print HOST:PORT in time (section 2.2.1)", patience=1)

    def test_one_that_does_not_exist(self):
        status, output, _ = test("server", os.path.join(SCRIPTS, "2.2.1-address.script"), "--", "./no-such-program")
        self.assertEqual(status, 1)
        self.assertIn("'./no-such-program' cannot be started: No such file or directory", output)


class Readme(unittest.TestCase):
    def test_it_lists_the_scripts_of_each_clause(self):
        with open(stock.workspace_file("impi/tester/README.md"), encoding="utf-8") as file:
            rows = [[cell.strip() for cell in line.split("|")[1:4]] for line in file if line.startswith("| ")]
        listed = {(row[0], name) for row in rows for cell in row[1:] for name in cell.split(", ")}
        for script in os.listdir(SCRIPTS):
            self.assertIn(tuple(script.removesuffix(".script").split("-", 1)), listed)


class CommandLine(unittest.TestCase):
    def test_a_wrong_script_is_named_with_its_line(self):
        with tempfile.TemporaryDirectory() as folder:
            name = os.path.join(folder, "a.script")
            with open(name, "w", encoding="utf-8") as file:
                file.write("clause 2.3\nabout x\ntarget server\nclients 1\nopem a\n")
            status, output, errors = test("server", folder, "--", IMPIRUN)
            self.assertEqual((status, output), (2, ""))
            self.assertTrue(errors.startswith(f"weft-impi-test: {name}:5: 'opem' is not known; lines begin with one of: clause,"), errors)

    def test_wrong_command_lines(self):
        for words, text in [((), "say first what is tested"), (("server", "/nowhere", "--", IMPIRUN), "the script '/nowhere' cannot be read"),
                            (("client", os.path.join(SCRIPTS, "2.3.3-none.script")), "is for another target; say weft-impi-test server")]:
            status, output, errors = test(*words)
            self.assertEqual((status, output), (2, ""))
            self.assertIn(text, errors)
        self.assertIn("usage: weft-impi-test server", test("--help")[1])


if __name__ == "__main__":
    stock.main()
