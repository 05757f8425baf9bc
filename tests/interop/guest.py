"""The guest with the kernel's siw, as a test uses it: boot it once, run many programs in it. See siw-guest."""

import contextlib
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import stock


class Guest:

    def __init__(self, files):
        """Boots it; copies of `files` of the workspace are in its /mnt."""
        self._script = stock.workspace_file("tests/interop/siw-guest")
        self._share = tempfile.mkdtemp(prefix="siw-share-")
        os.chmod(self._share, 0o755)  # for every user of the guest
        for path in files:
            shutil.copy(stock.workspace_file(path), self._share)
        self._boot()

    def _boot(self):
        self._run = tempfile.mkdtemp(prefix="siw-guest-")
        self._ports = itertools.count(7100)
        subprocess.run([self._script, "start", self._run, "-s", self._share], check=True, timeout=300)
        self.host, self.address = self._address("host"), self._address("guest")

    def boot_again(self):
        self._shut_down()
        self._boot()

    def _address(self, of):
        with open(os.path.join(self._run, of)) as file:
            return file.read().strip()

    def _shut_down(self):
        subprocess.run([self._script, "stop", self._run], check=True, timeout=30)
        shutil.rmtree(self._run)

    def stop(self):
        self._shut_down()
        shutil.rmtree(self._share)

    def crash(self):
        """What the guest's kernel said when it crashed, or None."""
        with open(os.path.join(self._run, "console"), errors="replace") as file:
            found = re.search(r"(kernel BUG at|BUG: |Oops: ).*", file.read())
        return found and found.group(0)

    def last_words(self):
        """The end of its kernel's log, if it still answers."""
        try:
            return self.output("dmesg | tail -n 60")
        except subprocess.TimeoutExpired:
            return "(it does not answer)"

    def state(self):
        """Its connections, what its rdma_cm and its queue pairs are at, and the end of its kernel's log, if it still answers."""
        try:
            return self.output("grep -v ' 0100007F:' /proc/net/tcp; rdma resource show cm_id; rdma resource show qp; dmesg | tail -n 4")
        except subprocess.TimeoutExpired:
            return "(it does not answer)"

    def command(self, text):
        """What to start on the host so that `text` runs in the guest; its status and output are those of `text`."""
        return [self._script, "exec", self._run, text]

    def output(self, text):
        return subprocess.run(self.command(text), capture_output=True, text=True, timeout=180).stdout

    def next_port(self):
        """A port of the guest that nothing has used yet."""
        return next(self._ports)

    def await_listener(self, port):
        done = self.output(f"for i in $(seq 300); do grep -q ':{port:04X} 0*:0000 0A' /proc/net/tcp /proc/net/tcp6 && "
                           f"echo listening && break; sleep 0.1; done")
        return "listening" in done

    def require_crc(self, required):
        self.output(f"echo {'Y' if required else 'N'} > /sys/module/siw/parameters/mpa_crc_required")

    @contextlib.contextmanager
    def forgetting(self, milliseconds):
        """Its siw takes no notice of what comes so soon after its MPA Reply, which it else does for some instructions only."""
        parameter = "/sys/module/siw/parameters/accept_pause_ms"
        self.output(f"echo {milliseconds} > {parameter}")
        try:
            yield
        finally:
            self.output(f"echo 0 > {parameter}")

    def take_log(self):
        """The kernel's messages since the last call."""
        return self.output("dmesg -c")


class GuestTest(stock.StockTest):
    """Tests against a kernel that works. A kernel that crashes under the emulator (once a "soft lockup" in siw's, which 360 runs of the same
    programs did not show again) says nothing about Weft unless it does so again: its log is printed, another guest booted, and the test runs once more."""

    def guest(self):
        """The Guest of this module."""
        raise NotImplementedError

    def explain(self, why):
        super().explain(f"{why}\n--- the guest:\n{self.guest().state()}")  # while its programs are still there

    def _callTestMethod(self, method):
        crashes = []
        while len(crashes) < 2:
            failure = None
            try:
                super()._callTestMethod(method)
            except unittest.SkipTest:
                raise
            except Exception as error:
                failure = error
            crash = self.guest().crash()
            if not crash:
                if failure:
                    print(f"{self.id()}: the guest's kernel says:\n{self.guest().last_words()}", file=sys.stderr)
                    raise failure
                return
            crashes.append(crash)
            print(f"{self.id()}: the guest's kernel crashed: {crash}\n{self.guest().last_words()}", file=sys.stderr)
            self.guest().boot_again()
            self.tearDown()
            self.setUp()
        self.fail(f"the guest's kernel crashed twice: {crashes}")
