"""The weft command itself: what it runs, refuses and prints."""

import os
import re
import resource
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
        self.assertIn(f"{file.name}: cannot execute: it has no execute permission", done.stderr)
        done = weft("run", "/tmp")
        self.assertEqual(done.returncode, 126)
        self.assertIn("/tmp: cannot execute: it is a folder", done.stderr)

    def test_a_program_of_this_folder_is_named_with_it(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "my_server"), "w") as program:
                program.write("#!/bin/sh\n")
            os.chmod(program.name, 0o755)
            done = subprocess.run([os.path.abspath(stock.weft()), "run", "my_server"], env=stock.environment(PATH="/usr/bin:/bin"),
                                  capture_output=True, text=True, timeout=60, cwd=folder)
        self.assertEqual(done.returncode, 127)
        self.assertIn("weft run ./my_server", done.stderr)

    def test_a_setting_behind_run_is_told_its_place(self):
        done = weft("run", "WEFT_TRACE=1", "rping")
        self.assertEqual(done.returncode, 127)
        self.assertIn("in front: WEFT_TRACE=1 weft run", done.stderr)

    def test_a_program_built_with_a_sanitizer_starts_and_is_checked(self):
        if stock.sanitizer()[0]:
            self.skipTest("Weft's libraries bring a sanitizer of their own")
        with tempfile.TemporaryDirectory() as folder:
            source, program = os.path.join(folder, "main.c"), os.path.join(folder, "main")
            with open(source, "w") as file:
                file.write("""#include <infiniband/verbs.h>
                    #include <stdio.h>
                    #include <stdlib.h>
                    #include <sys/stat.h>
                    int main(int argc, char** argv) {
                      struct stat seen;
                      int count = 0;
                      ibv_free_device_list(ibv_get_device_list(&count));
                      printf("%d device, %d\\n", count, stat("/sys/class/infiniband/weft_lo", &seen));
                      char* freed = malloc(8);
                      free(freed);
                      return argc > 1 ? freed[argc] : 0;
                    }""")
            subprocess.run(["gcc", "-fsanitize=address", source, "-libverbs", "-o", program], check=True)
            done = weft("run", program, WEFT_DEVICES="lo")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout, "1 device, 0\n")
            self.assertIn("heap-use-after-free", weft("run", program, "bug", ASAN_OPTIONS="detect_leaks=0").stderr)
            by_shell = subprocess.run(["sh", "-c", f"eval \"$('{stock.weft()}' env)\"; '{program}'"],
                                      env=stock.environment(WEFT_DEVICES="lo"), capture_output=True, text=True, timeout=60)
            self.assertEqual(by_shell.stdout, "1 device, 0\n", by_shell.stderr)

    def test_a_program_that_ignores_the_libraries_is_started_and_told_of(self):
        with tempfile.TemporaryDirectory() as folder:
            source, program = os.path.join(folder, "main.c"), os.path.join(folder, "static_program")
            with open(source, "w") as file:
                file.write("int main(void) { return 3; }")
            subprocess.run(["gcc", "-static", source, "-o", program], check=True)
            done = weft("run", program)
            self.assertEqual(done.returncode, 3)
            self.assertIn("static_program is linked statically: it does not load Weft's libraries", done.stderr)
            if os.geteuid() != 0:
                return
            subprocess.run(["gcc", source, "-o", program], check=True)
            self.assertNotIn("does not load", weft("run", program).stderr)
            os.chown(program, 65534, -1)
            os.chmod(program, 0o4755)
            self.assertIn("has the set-user-ID bit", weft("run", program).stderr)

    def test_no_program_is_125(self):
        for arguments in (["run"], ["run", "--"], ["run", ""]):
            done = weft(*arguments)
            self.assertEqual(done.returncode, 125)
            self.assertIn("no program given", done.stderr)

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
        self.assertRegex(done.stderr, r"^weft devices: no devices: WEFT_DEVICES=no_such_interface names none of the interfaces .*\blo\b")

    def test_a_wrong_setting_is_all_that_is_said(self):
        done = weft("devices", WEFT_TRACE="yes")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^weft devices: WEFT_TRACE=yes .*\nweft devices: no devices until this is corrected.*\n$")


class Doctor(stock.StockTest):

    def test_finds_a_good_installation_good(self):
        done = weft("doctor")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertNotIn("FAIL", done.stdout)

    def test_finds_missing_libraries(self):
        done = weft("doctor", WEFT_LIBDIR="/nonexistent")
        self.assertEqual(done.returncode, 1)
        self.assertIn("FAIL", done.stdout)

    def test_finds_a_wrong_setting_and_blames_nothing_else(self):
        for setting, value in (("WEFT_TRACE", "yes"), ("WEFT_FAULTS", "cut afer=1s")):
            done = weft("doctor", **{setting: value})
            self.assertEqual(done.returncode, 1)
            self.assertIn(value.split()[-1].split("=")[0], done.stdout)
            self.assertEqual(done.stdout.count("FAIL  "), 1, done.stdout)
            self.assertEqual(done.stdout.count("settings"), 1, done.stdout)
            self.assertEqual(done.stderr, "")

    def test_finds_that_no_interface_is_named(self):
        done = weft("doctor", WEFT_DEVICES="no_such_interface")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout.count("FAIL  "), 1, done.stdout)
        self.assertRegex(done.stdout, r"WEFT_DEVICES=no_such_interface names none of the interfaces .*\blo\b")

    def test_measures_files_by_the_hard_limit_to_which_the_rnic_raises_the_soft_one(self):
        def limit(soft, hard):
            return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for soft, hard, status in ((100, 1000, 0), (100, 100, 1)):
            done = subprocess.run([stock.weft(), "doctor"], env=stock.environment(), capture_output=True, text=True, timeout=120,
                                  preexec_fn=limit(soft, hard))
            self.assertEqual(done.returncode, status, done.stdout + done.stderr)
            self.assertIn(f"{hard} open files" if status else f"open files allowed: {hard}", done.stdout)


class Settings(stock.StockTest):

    def names(self):
        return set(re.findall(r"^  (WEFT_\w+)=", weft("settings").stdout, re.M))

    def test_the_manual_and_the_docs_list_the_same(self):
        self.assertTrue(self.names())
        for path, pattern in (("docs/man/weft.1", r"^\.B[RI] (WEFT_\w+) ?="), ("docs/settings.md", r"^\| `(WEFT_(?!MPI_|PMI)\w+)`")):
            with open(stock.workspace_file(path)) as file:
                self.assertEqual(set(re.findall(pattern, file.read(), re.M)), self.names(), path)

    def test_version(self):
        self.assertRegex(weft("--version").stdout, r"^weft \d+\.\d+\.\d+\+dev$")


class Words(stock.StockTest):
    """Words that mean nothing: each is named, with the right one where one is near."""

    def refused(self, arguments, *wanted):
        done = weft(*arguments)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertEqual(done.stdout, "")
        for text in wanted:
            self.assertIn(text, done.stderr)

    def test_a_wrong_command(self):
        self.refused(["rn"], '"rn"', "weft run?")
        self.refused(["rn", "ls"], '"rn"', "weft run?")
        self.refused(["device"], '"device"', "weft devices?")
        self.refused(["dev"], '"dev"', "weft devices?")
        self.refused(["version"], "weft --version?")
        self.refused(["frobnicate"], '"frobnicate"', "run, devices, env, doctor, settings, faults, stat and help")
        self.refused(["WEFT_TRACE=1", "rping"], "WEFT_TRACE=1 weft run PROGRAM")

    def test_a_program_where_a_command_was_expected(self):
        self.refused(["printf", "x"], "weft run printf?")

    def test_a_wrong_option(self):
        self.refused(["--hlep"], '"--hlep"', "weft --help?")
        self.refused(["stat", "--jsn"], '"--jsn"', "--json?")
        self.refused(["faults", "--lsit"], '"--lsit"', "--list?")
        self.refused(["devices", "--json"], '"--json"', "weft devices --help")

    def test_a_word_too_many(self):
        for command in ("devices", "doctor", "env", "settings"):
            self.refused([command, "superfluous"], '"superfluous"', f"weft {command}")
        self.refused(["stat", "1", "superfluous"], '"superfluous"')
        self.refused(["faults", "--pid", "1", "clear", "superfluous"], '"superfluous"')

    def test_no_command_shows_them_all(self):
        self.refused([], "Usage: weft", "devices", "doctor")

    def test_help_in_all_its_forms(self):
        for arguments in (["--help"], ["-h"], ["help"]):
            done = weft(*arguments)
            self.assertEqual(done.returncode, 0, arguments)
            self.assertIn("Usage: weft COMMAND", done.stdout)
        for arguments in (["stat", "--help"], ["help", "stat"]):
            done = weft(*arguments)
            self.assertEqual(done.returncode, 0, arguments)
            self.assertIn("Usage: weft stat [PID]", done.stdout)
        self.refused(["help", "stta"], "weft stat?")

    def test_what_is_no_process_id(self):
        for word in ("abc", "0", "-5", "12x", "99999999999", ""):
            if word:
                self.refused(["stat", word], f'"{word}"')
            self.refused(["faults", f"--pid={word}", "show"])

    def test_what_is_no_interval(self):
        for word in ("abc", "0", "-1", "nan", "1e9"):
            self.refused(["stat", f"--interval={word}"], f'"{word}"', "0.01 to 3600")

    def test_faults_that_lack_something(self):
        self.refused(["faults"], "--list", "check", "--pid")
        self.refused(["faults", "check"], "check needs a SPECIFICATION")
        self.refused(["faults", "check", " ; "], "check needs a SPECIFICATION")
        self.refused(["faults", "set", "cut"], "--pid")
        self.refused(["faults", "--pid", "1"], "set SPECIFICATION, clear or show")
        self.refused(["faults", "--pid", "1", "set"], "set needs a SPECIFICATION")
        self.refused(["faults", "chek", "cut"], "check?")
        self.refused(["faults", "list"], "--list?")

    def test_a_specification_without_quotes_is_one_all_the_same(self):
        done = weft("faults", "check", "cut", "after=2s")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "cut after=2s\n")

    def test_a_process_that_is_gone_is_named(self):
        gone = subprocess.Popen(["true"])
        gone.wait()
        for arguments in (["stat", str(gone.pid)], ["faults", "--pid", str(gone.pid), "show"]):
            done = weft(*arguments)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"process {gone.pid} does not exist", done.stderr)


if __name__ == "__main__":
    stock.main()
