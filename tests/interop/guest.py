"""The guest with the kernel's siw, as a test uses it: boot it once, run many programs in it. See siw-guest."""

import os
import subprocess
import tempfile

import stock

FIRST_GUEST_PORT = 7100
PORTS = 8  # forwarded ones: enough that a port rests while the next are used


class Guest:

    def __init__(self, share):
        """Boots it. `share` is a folder of the host that appears at /mnt."""
        self._script = stock.workspace_file("tests/interop/siw-guest")
        self._run = tempfile.mkdtemp(prefix="siw-guest-")
        self._ports = {stock.free_port(): FIRST_GUEST_PORT + i for i in range(PORTS)}
        self._turn = 0
        forwards = [word for host, guest in self._ports.items() for word in ("-f", f"{host}:{guest}")]
        subprocess.run([self._script, "start", self._run, *forwards, "-s", share], check=True, timeout=300)

    def stop(self):
        subprocess.run([self._script, "stop", self._run], check=True, timeout=30)

    def command(self, text):
        """What to start on the host so that `text` runs in the guest; its status and output are those of `text`."""
        return [self._script, "exec", self._run, text]

    def output(self, text):
        return subprocess.run(self.command(text), capture_output=True, text=True, timeout=60).stdout

    def next_port(self):
        """(port of 127.0.0.1 here, port in the guest that it reaches)."""
        self._turn += 1
        return list(self._ports.items())[self._turn % PORTS]

    def await_listener(self, port):
        done = self.output(f"for i in $(seq 300); do grep -q ':{port:04X} 0*:0000 0A' /proc/net/tcp /proc/net/tcp6 && "
                           f"echo listening && break; sleep 0.1; done")
        return "listening" in done

    def require_crc(self, required):
        self.output(f"echo {'Y' if required else 'N'} > /sys/module/siw/parameters/mpa_crc_required")

    def take_log(self):
        """The kernel's messages since the last call."""
        return self.output("dmesg -c")
