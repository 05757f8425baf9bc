"""A Debian that a test may change as it likes: a root directory made once by debian-root, seen through an overlay in memory that goes with
the object. Programs run in it by chroot(8), with this machine's network."""

import atexit
import os
import shutil
import subprocess
import tempfile
import unittest

import stock

SUITE = os.environ.get("PACKAGES_SUITE", "bookworm")
# Where the roots are kept. Without the variable: one for this run of the tests.
PLACE = os.environ.get("PACKAGES_ROOTS")
PROGRAMS = ["rdmacm-utils", "ibverbs-utils", "curl", "ca-certificates", "libhwloc15", "procps", "iproute2", "gcc", "libc6-dev", "libibverbs-dev", "librdmacm-dev", "make", "man-db", "bash-completion"]

# The order matters: the overlay first, what Linux shows of itself above it.
MOUNT = """
set -e
mount -t tmpfs none "$2"
mkdir "$2/upper" "$2/work" "$2/root"
mount -t overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" none "$2/root"
mount -t proc none "$2/root/proc"
mount --rbind /dev "$2/root/dev"
mount -t tmpfs none "$2/root/dev/shm"
mount --rbind /sys "$2/root/sys"
echo ready
exec cat
"""


def base(*more):
    """The directory with PROGRAMS and more packages."""
    if os.geteuid() != 0:
        raise unittest.SkipTest("a root directory of Debian can be made by root only")
    place = PLACE
    if not place:
        place = tempfile.mkdtemp()
        atexit.register(shutil.rmtree, place, ignore_errors=True)
    root = os.path.join(place, SUITE)
    subprocess.run([stock.workspace_file("tests/packages/debian-root"), SUITE, root, *PROGRAMS, *more], check=True)
    return root


class Root:

    def __init__(self, lower):
        self._folder = tempfile.TemporaryDirectory()
        # Holds the mounts until its input ends: nothing outlives this process.
        self._holder = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sh", "-c", MOUNT, "sh", lower, self._folder.name],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self._holder.stdout.readline() != "ready\n":
            raise RuntimeError("the overlay could not be mounted")

    def close(self):
        self._holder.stdin.close()
        self._holder.wait(timeout=60)
        self._holder.stdout.close()
        self._folder.cleanup()

    def _command(self, command):
        if isinstance(command, str):
            command = ["bash", "-euo", "pipefail", "-c", command]
        return ["nsenter", "--mount", "--target", str(self._holder.pid), "chroot", self._folder.name + "/root", *command]

    @staticmethod
    def _environment(settings):
        return {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive", **settings}

    def run(self, command, status=0, **settings):
        """Runs a command (a list, or text for bash) to its end. Returns its output, errors included. Any other status is an error."""
        done = subprocess.run(self._command(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=600, env=self._environment(settings))
        if done.returncode != status:
            raise AssertionError(f"{command}: status {done.returncode}, not {status}:\n{done.stdout}")
        return done.stdout

    def copy_in(self, source, target):
        """Copies a file into the root, as `target` there."""
        with open(source, "rb") as file:
            subprocess.run(self._command(["sh", "-c", 'mkdir -p "$(dirname "$1")" && cat > "$1"', "sh", target]), stdin=file, check=True)
        if os.access(source, os.X_OK):
            self.run(["chmod", "755", target])

    def files(self):
        """Every file and link, but for what changes by itself: logs, caches, the lists and the own files of dpkg and apt."""
        listing = self.run("find / -xdev \\( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /var/cache -o -path /var/log"
                           " -o -path /var/lib/apt -o -path /var/lib/dpkg \\) -prune -o -print")
        return set(listing.splitlines())

    def package_records(self):
        """What dpkg and update-alternatives know of Weft."""
        return self.run("ls /var/lib/dpkg/info /var/lib/dpkg/alternatives | grep weft || true; grep -l weft /var/lib/dpkg/alternatives/* || true;"
                        " dpkg-query -W -f '${Package} ${db:Status-Status}\\n' 'weft*' 2>/dev/null | grep -v ' not-installed' || true")
