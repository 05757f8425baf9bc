"""Runs the distribution's own verbs programs on Weft and says what was wrong when one fails.

A test starts a server and one or more clients through `weft run`, waits for the server to listen by looking at the
kernel's socket table, and gets each side's exit status and output. Nothing here sleeps for a guessed time, and every
process that is still running when its time is over, or when its partner failed, is killed by its pid.
"""

import atexit
import functools
import os
import random
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import xml.sax.saxutils as xml

__unittest = True  # failures show the test's line, not this file's

POLL_SECONDS = 0.01
DEFAULT_TIMEOUT = 60
NOBODY = 65534


def workspace_file(path):
    """A file that the build made or that stands in the tree: in the test's runfiles, else below bazel-bin."""
    roots = [os.path.join(os.environ.get("TEST_SRCDIR", ""), os.environ.get("TEST_WORKSPACE", ""))]
    here = os.path.dirname(os.path.abspath(__file__))
    tree = os.path.dirname(os.path.dirname(here))
    roots += [os.path.join(tree, "bazel-bin"), tree]
    for root in roots:
        if os.path.exists(os.path.join(root, path)):
            return os.path.abspath(os.path.join(root, path))
    raise FileNotFoundError(f"{path} is in none of {roots}: build //tools:stage first")


def weft():
    """The command under test. STOCK_WEFT: one that is installed (tests/distributions)."""
    return os.environ.get("STOCK_WEFT") or workspace_file("tools/stage/bin/weft")


@functools.lru_cache(maxsize=None)
def weft_for_everyone():
    """weft() in a copy that every user may read, which what the build made may not be. Gone when the tests end."""
    if os.environ.get("STOCK_WEFT"):
        return weft()
    place = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    os.chmod(place, 0o755)
    copy = os.path.join(place, "weft")
    shutil.copytree(os.path.dirname(os.path.dirname(weft())), copy, symlinks=False)
    os.chmod(copy, 0o755)
    return os.path.join(copy, "bin", "weft")


@functools.lru_cache(maxsize=None)
def file_for_everyone(path):
    """workspace_file() in a copy that every user may read. Gone when the tests end."""
    place = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    os.chmod(place, 0o755)
    return shutil.copy(workspace_file(path), place)


def as_ordinary_user():
    """What in front of a command of root's has it run by nobody, without capabilities."""
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=-all"]


@functools.lru_cache(maxsize=None)
def ucx_settings():
    """What a UCX needs whose fences, by default, are flushes that rc_verbs has with mlx5 adapters only (1.17 and later; docs/supported.md)."""
    known = subprocess.run(["ucx_info", "-c"], capture_output=True, text=True).stdout
    return {"UCX_FENCE_MODE": "weak"} if "UCX_FENCE_MODE=" in known else {}


def weft_run():
    """In front of a program. STOCK_USER=ordinary: as a user without privileges, whoever runs the tests."""
    if os.environ.get("STOCK_USER") == "ordinary" and os.geteuid() == 0:
        return [*as_ordinary_user(), weft_for_everyone(), "run", "--"]
    return [weft(), "run", "--"]


@functools.lru_cache(maxsize=None)
def sanitizer():
    """The sanitizer runtime that Weft's libraries were linked with ("asan", "tsan"), its file; or (None, None)."""
    library = os.path.join(os.path.dirname(os.path.realpath(weft())), "../lib/weft/libibverbs.so.1")
    # Of another machine's library, under an emulator (tools/arm64-test), ldd knows nothing: that one has no sanitizer.
    needed = subprocess.run(["ldd", library], capture_output=True, text=True).stdout
    for name in ("asan", "tsan"):
        found = re.search(rf"lib{name}\.so\.\d+ => (\S+)", needed)
        if found:
            return name, found.group(1)
    return None, None


def sanitizer_settings():
    """What a program that was not linked with the libraries' sanitizer needs to run on them: its runtime in front, and for C programs C++'s,
    whose exceptions the sanitizer's runtime looks for when it starts. It may leak, and preload other libraries too."""
    runtime = sanitizer()[1]
    options = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0:verify_asan_link_order=0"
    return {"LD_PRELOAD": f"{runtime}:libstdc++.so.6", "ASAN_OPTIONS": options} if runtime else {}


def environment(**settings):
    """This process's environment with `settings`, and what the sanitizer needs. STOCK_PERSONA: the persona unless a test sets one;
    STOCK_SETTINGS: more of the kind, "NAME=VALUE NAME=VALUE". WEFT_SAME_HOST is what `./test --same-host-off` sets for all tests."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("WEFT_") or k == "WEFT_SAME_HOST"}
    env["LC_ALL"] = "C"
    if "STOCK_PERSONA" in env:
        env["WEFT_PERSONA"] = env["STOCK_PERSONA"]
    env.update(setting.split("=", 1) for setting in env.get("STOCK_SETTINGS", "").split())
    env.update(sanitizer_settings())
    env.update({k: str(v) for k, v in settings.items()})
    return env


def free_port():
    """A TCP port that nothing uses, below the range that the kernel picks from for outgoing connections."""
    while True:
        port = random.randrange(10000, 30000)
        try:
            for family, any_address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
                with socket.socket(family) as probe:
                    if family == socket.AF_INET6:
                        probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                    probe.bind((any_address, port))
            return port
        except OSError:
            continue


def is_listening(port):
    wanted = f":{port:04X}"
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table) as rows:
            for row in rows:
                fields = row.split()
                if fields[1].endswith(wanted) and fields[3] == "0A":
                    return True
    return False


def has_udp_port(port):
    wanted = f":{port:04X}"
    for table in ("/proc/net/udp", "/proc/net/udp6"):
        with open(table) as rows:
            if any(row.split()[1].endswith(wanted) for row in rows):
                return True
    return False


class Process:
    """A program under `weft run`, in a session of its own, its output in files: a stdout and a stderr that share one
    would be torn into each other's lines."""

    def __init__(self, command, env=None, under_weft=True):
        words = shlex.split(command) if isinstance(command, str) else command
        if under_weft:
            words = weft_run() + words
        self.command = shlex.join(words)
        self._files = [tempfile.TemporaryFile(mode="w+b") for _ in range(2)]
        self._process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=self._files[0], stderr=self._files[1],
            env=env or environment(), start_new_session=True)
        self.pid = self._process.pid

    def running(self):
        return self._process.poll() is None

    @property
    def status(self):
        """Its exit status; negative when a signal ended it; None while it runs."""
        return self._process.poll()

    @property
    def output(self):
        """What it wrote to stdout, then what it wrote to stderr."""
        # pread: the position is shared with the program that writes.
        return "".join(os.pread(f.fileno(), os.fstat(f.fileno()).st_size, 0).decode(errors="replace")
                       for f in self._files)

    def kill(self, how=signal.SIGKILL):
        if self.running():
            os.kill(self.pid, how)
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            os.kill(self.pid, signal.SIGKILL)
            self._process.wait()

    def stacks(self):
        """Where its threads are, for a report of a hang; empty without gdb."""
        try:
            done = subprocess.run(["gdb", "-p", str(self.pid), "-batch", "-ex", "thread apply all bt 12"],
                                  capture_output=True, text=True, timeout=30)
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return "\n".join(l for l in done.stdout.splitlines() if l.startswith(("Thread", "#")))

    def describe(self):
        state = "still running" if self.running() else f"exit status {self.status}"
        text = f"--- {self.command}\n    {state}; output:\n{self.output}"
        if self.running():
            text += f"\n    threads:\n{self.stacks()}"
        return text


class StockTest(unittest.TestCase):
    """Helpers for tests of stock programs. `slow` is how many times longer than usual a program may take."""

    @classmethod
    def setUpClass(cls):
        cls.sanitizer = sanitizer()[0]
        cls.slow = int(os.environ.get("STOCK_SLOW", 8 if cls.sanitizer else 1))  # STOCK_SLOW: under an emulator

    def setUp(self):
        self._started = []
        if "WEFT_SCTP_CARRIAGE=ip" in os.environ.get("STOCK_SETTINGS", "") and os.geteuid() != 0:
            self.skipTest("SCTP in IP itself needs CAP_NET_RAW: run the tests as root")

    def tearDown(self):
        for process in self._started:
            process.kill()

    def start(self, command, under_weft=True, **settings):
        process = Process(command, environment(**settings), under_weft)
        self._started.append(process)
        return process

    def explain(self, why):
        self.fail(why + "\n" + "\n".join(p.describe() for p in self._started))

    def await_condition(self, condition, what, timeout=DEFAULT_TIMEOUT):
        deadline = time.monotonic() + timeout * self.slow
        while not condition():
            if time.monotonic() > deadline:
                self.explain(f"{what}: not within {timeout * self.slow} s")
            time.sleep(POLL_SECONDS)

    def await_listener(self, server, port):
        self.await_condition(lambda: is_listening(port) or not server.running(), f"a listener on port {port}", 20)
        if not server.running():
            self.explain("the server ended before it listened")

    def await_success(self, *processes, timeout=DEFAULT_TIMEOUT):
        """Waits for all to end; one that fails fails the test at once, without waiting for its partner."""
        failed = lambda: [p for p in processes if p.status not in (None, 0)]
        self.await_condition(lambda: failed() or not any(p.running() for p in processes), "the end", timeout)
        if failed():
            # Its partner may have the better explanation a moment later.
            deadline = time.monotonic() + 2
            while any(p.running() for p in processes) and time.monotonic() < deadline:
                time.sleep(POLL_SECONDS)
            self.explain("exit status is not 0")

    def run_one(self, command, **settings):
        process = self.start(command, **settings)
        self.await_success(process)
        return process.output

    def run_pair(self, server, client, timeout=DEFAULT_TIMEOUT, server_settings=None, client_settings=None):
        """Runs `server`, and when it listens `client`; "{port}" in both becomes a free port. Returns their outputs."""
        port = free_port()
        first = self.start(server.format(port=port), **(server_settings or {}))
        self.await_listener(first, port)
        second = self.start(client.format(port=port), **(client_settings or {}))
        self.await_success(first, second, timeout=timeout)
        return first.output, second.output

    def expect(self, condition, why):
        if not condition:
            self.explain(why)


class _JUnitResult(unittest.TextTestResult):
    def __init__(self, *args):
        super().__init__(*args)
        self.cases = []
        self._start = 0

    def startTest(self, test):
        self._start = time.monotonic()
        super().startTest(test)

    def _note(self, test, failure=None, skipped=None):
        self.cases.append((test, time.monotonic() - self._start, failure, skipped))

    def addSuccess(self, test):
        super().addSuccess(test)
        self._note(test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._note(test, skipped=reason)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._note(test, str(err[1]))

    def addError(self, test, err):
        super().addError(test, err)
        self._note(test, repr(err[1]))


def _write_junit(path, cases):
    with open(path, "w") as out:
        failures = sum(1 for case in cases if case[2] is not None)
        out.write(f'<?xml version="1.0"?>\n<testsuites><testsuite name="stock" tests="{len(cases)}" '
                  f'failures="{failures}">\n')
        for test, seconds, failure, skipped in cases:
            suite, name = test.id().rsplit(".", 2)[-2:]
            out.write(f'<testcase classname={xml.quoteattr(suite)} name={xml.quoteattr(name)} time="{seconds:.3f}">')
            if skipped is not None:
                out.write(f"<skipped message={xml.quoteattr(skipped)}/>")
            if failure is not None:
                printable = re.sub(r"[^\t\n\x20-\x7e]", "?", failure)
                out.write(f"<failure>{xml.escape(printable)}</failure>")
            out.write("</testcase>\n")
        out.write("</testsuite></testsuites>\n")


def _tests_in(suite):
    for entry in suite:
        if isinstance(entry, unittest.TestSuite):
            yield from _tests_in(entry)
        else:
            yield entry


class _Shard(unittest.TestProgram):
    """Of the tests, those of this shard (shard_count in BUILD)."""

    def createTests(self, *arguments, **named):
        super().createTests(*arguments, **named)
        index, count = int(os.environ.get("TEST_SHARD_INDEX", 0)), int(os.environ.get("TEST_TOTAL_SHARDS", 1))
        if os.environ.get("TEST_SHARD_STATUS_FILE"):
            open(os.environ["TEST_SHARD_STATUS_FILE"], "w").close()  # tells Bazel that shards are known here
        self.test = unittest.TestSuite(list(_tests_in(self.test))[index::count])


def main():
    """unittest.main() that also writes the test.xml that Bazel collects. Arguments choose tests, as for unittest."""
    runner = unittest.TextTestRunner(stream=sys.stdout, verbosity=2, resultclass=_JUnitResult)
    result = _Shard(module="__main__", testRunner=runner, exit=False).result
    if os.environ.get("XML_OUTPUT_FILE"):
        _write_junit(os.environ["XML_OUTPUT_FILE"], result.cases)
    sys.exit(0 if result.wasSuccessful() and result.testsRun + len(result.skipped) > 0 else 1)
