"""The weft command itself: what it runs, refuses and prints."""

import os
import re
import subprocess
import tempfile

import stock


def weft(*arguments, **settings):
    return subprocess.run([stock.weft(), *arguments], env=stock.environment(**settings), capture_output=True, text=True,
                          timeout=120)


class Run(stock.StockTest):

    def test_exit_status_is_the_programs(self):
        for status in (0, 1, 3, 255):
            # perl, since shells do not bear ThreadSanitizer's runtime
            self.assertEqual(weft("run", "perl", "-e", f"exit {status}").returncode, status)

    def test_arguments_reach_the_program_unchanged(self):
        arguments = ["-s", "--help", "--", "a b", "", "--version", "$HOME"]
        for command in (["run"], ["run", "--"]):
            done = weft(*command, "printf", "[%s]", *arguments)
            self.assertEqual(done.stdout, "".join(f"[{a}]" for a in arguments), done.stderr)

    def test_unknown_program_is_127_and_named(self):
        for program in ("no-such-program", "./no-such-program"):
            done = weft("run", program)
            self.assertEqual(done.returncode, 127)
            self.assertIn(program, done.stderr)

    def test_program_that_cannot_be_executed_is_126(self):
        with tempfile.NamedTemporaryFile() as file:
            done = weft("run", file.name)
        self.assertEqual(done.returncode, 126)
        self.assertIn(file.name, done.stderr)

    def test_no_program_is_125(self):
        self.assertEqual(weft("run").returncode, 125)

    def test_misspelt_setting_is_refused_with_the_nearest_name(self):
        done = weft("run", "true", WEFT_MPA_CCR="on")
        self.assertEqual(done.returncode, 125)
        self.assertIn("WEFT_MPA_CCR", done.stderr)
        self.assertIn("WEFT_MPA_CRC", done.stderr)

    def test_value_that_cannot_be_is_refused_with_those_that_can(self):
        done = weft("run", "true", WEFT_MPA_CRC="perhaps")
        self.assertEqual(done.returncode, 125)
        for wanted in ("WEFT_MPA_CRC", "perhaps", "auto|on|off"):
            self.assertIn(wanted, done.stderr)

    def test_missing_libraries_are_named(self):
        done = weft("run", "true", WEFT_LIBDIR="/nonexistent")
        self.assertEqual(done.returncode, 125)
        self.assertIn("/nonexistent", done.stderr)


class Env(stock.StockTest):

    def test_a_shell_that_evaluates_it_sees_weft_devices(self):
        environment = stock.environment(LD_LIBRARY_PATH="/kept")
        runtime = environment.pop("LD_PRELOAD", "")  # a sanitizer's, which shells do not bear
        done = subprocess.run(["sh", "-c", f"eval \"$('{stock.weft()}' env)\"; echo $LD_LIBRARY_PATH; "
                               f"LD_PRELOAD={runtime} ibv_devices"],
                              env=environment, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.splitlines()[0].endswith(":/kept"))
        self.assertIn("weft_lo", done.stdout)


class Devices(stock.StockTest):

    def test_shows_loopback_with_its_addresses(self):
        done = weft("devices")
        self.assertEqual(done.returncode, 0, done.stderr)
        row = next(line for line in done.stdout.splitlines() if line.startswith("weft_lo"))
        for wanted in ("RoCE", "ACTIVE", "127.0.0.1"):
            self.assertIn(wanted, row)

    def test_says_so_when_there_is_none(self):
        done = weft("devices", WEFT_DEVICES="no_such_interface")
        self.assertEqual(done.returncode, 1)
        self.assertIn("WEFT_DEVICES", done.stderr)


class Doctor(stock.StockTest):

    def test_finds_a_good_installation_good(self):
        done = weft("doctor")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertNotIn("FAIL", done.stdout)

    def test_finds_missing_libraries(self):
        done = weft("doctor", WEFT_LIBDIR="/nonexistent")
        self.assertEqual(done.returncode, 1)
        self.assertIn("FAIL", done.stdout)

    def test_finds_a_wrong_setting(self):
        done = weft("doctor", WEFT_TRACE="yes")
        self.assertEqual(done.returncode, 1)
        self.assertIn("WEFT_TRACE=yes", done.stdout)


class Settings(stock.StockTest):

    def names(self):
        return set(re.findall(r"^  (WEFT_\w+)=", weft("settings").stdout, re.M))

    def test_the_manual_and_the_docs_list_the_same(self):
        self.assertTrue(self.names())
        for path, pattern in (("docs/man/weft.1", r"^\.B[RI] (WEFT_\w+) ?="), ("docs/settings.md", r"^\| `(WEFT_(?!MPI_)\w+)`")):
            with open(stock.workspace_file(path)) as file:
                self.assertEqual(set(re.findall(pattern, file.read(), re.M)), self.names(), path)

    def test_version(self):
        self.assertRegex(weft("--version").stdout, r"^weft \d+\.\d+\.\d+$")

    def test_wrong_subcommand_is_2(self):
        self.assertEqual(weft("frobnicate").returncode, 2)


if __name__ == "__main__":
    stock.main()
