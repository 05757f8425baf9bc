"""The completions of the shells know each command and option that weft --help prints, and no others."""

import re
import shutil
import subprocess
import unittest

import stock

BASH = stock.workspace_file("docs/completion/weft.bash")
ZSH = stock.workspace_file("docs/completion/_weft")


def help_of(*words):
    return subprocess.run([stock.weft(), *words, "--help"], check=True, capture_output=True, text=True).stdout


def commands():
    return re.findall(r"^  ([a-z]+) ", help_of().split("Subcommands:")[1], re.M)


def options(*words):
    return set(re.findall(r"^  (?:-\w,)?(--[a-z-]+)", help_of(*words), re.M))


def bash_offers(*words):
    """What bash offers for the last of the words."""
    script = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _weft; printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "-c", script, "bash", BASH, "weft", *words], check=True, capture_output=True, text=True)
    return set(done.stdout.split())


def without_processes(words):
    return {word for word in words if not word.isdigit()}


class Bash(unittest.TestCase):

    def test_offers_every_command_and_option_of_weft(self):
        self.assertEqual(bash_offers(""), set(commands()) | options())

    def test_offers_every_option_of_each_command(self):
        for command in commands():
            if command == "run":  # its options would be the program's
                continue
            with self.subTest(command):
                self.assertEqual({word for word in bash_offers(command, "--")}, options(command) if command != "help" else set())

    def test_offers_the_actions_of_faults(self):
        actions = set(re.findall(r"\b(check|set|clear|show)\b", help_of("faults").splitlines()[1]))
        self.assertEqual(bash_offers("faults", ""), actions | options("faults"))

    def test_offers_the_commands_to_help(self):
        self.assertEqual(bash_offers("help", ""), set(commands()))

    def test_offers_what_begins_like_the_word(self):
        self.assertEqual(bash_offers("st"), {"stat"})
        self.assertEqual(bash_offers("stat", "--j"), {"--json"})

    def test_offers_programs_to_run(self):
        self.assertIn("bash", bash_offers("run", "bas"))
        self.assertIn("bash", bash_offers("run", "--", "bas"))

    def test_offers_processes(self):
        child = subprocess.Popen(["sleep", "60"])
        try:
            for words in (("stat", ""), ("faults", "--pid", "")):
                self.assertIn(str(child.pid), bash_offers(*words))
        finally:
            child.kill()
            child.wait()


class Zsh(unittest.TestCase):

    def setUp(self):
        with open(ZSH) as file:
            self.text = file.read()

    def test_knows_every_command(self):
        table = self.text.split("commands=(")[1].split("\n  )")[0]
        self.assertEqual(re.findall(r"'([a-z]+):", table), commands())

    def test_knows_every_option(self):
        known = set(re.findall(r"(--[a-z]+)\[", self.text))
        wanted = options().union(*(options(command) for command in commands()))
        self.assertEqual(known, wanted)

    def test_knows_the_options_of_the_commands_that_have_some(self):
        for command in commands():
            own = options(command) - {"--help"}
            if own:
                branch = self.text.split(f"\n    {command})")[1].split(";;")[0]
                self.assertEqual(set(re.findall(r"(--[a-z]+)\[", branch)) - {"--help"}, own)

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed: apt-get install zsh")
    def test_is_zsh(self):
        subprocess.run(["zsh", "-n", ZSH], check=True)


if __name__ == "__main__":
    unittest.main(verbosity=2)
