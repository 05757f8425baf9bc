"""/sys/class/infiniband and /dev/infiniband as ordinary programs see them under `weft run`."""

import os
import subprocess
import tempfile

import stock

PYTHON = "/usr/bin/python3"


def weft_run(command, under_weft=True, **settings):
    # These programs use no verbs library: the sanitizer's runtime, which some do not bear, is not needed.
    env = stock.environment(**{"LD_PRELOAD": "", "WEFT_PERSONA": "iwarp", **settings})
    words = [stock.weft(), "run", "--"] if under_weft else []
    return subprocess.run(words + command, env=env, capture_output=True, text=True, timeout=120)


class PathsTest(stock.StockTest):

    def output(self, *command, **settings):
        done = weft_run(list(command), **settings)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return done.stdout

    def python(self, program, **settings):
        return self.output(PYTHON, "-W", "ignore", "-c", program, **settings)


class Sysfs(PathsTest):

    def test_ls_lists_the_devices(self):
        self.assertIn("weft_lo\n", self.output("ls", "/sys/class/infiniband"))
        self.assertIn("weft_lo -> ../../devices/virtual/infiniband/weft_lo\n", self.output("ls", "-l", "/sys/class/infiniband"))
        self.assertIn("uverbs0\n", self.output("ls", "/sys/class/infiniband_verbs"))

    def test_cat_shows_a_port_of_either_persona(self):
        files = ["/sys/class/infiniband/weft_lo/" + name for name in
                 ("node_type", "ports/1/state", "ports/1/link_layer", "ports/1/gids/0", "ports/1/gid_attrs/types/0",
                  "ports/1/gid_attrs/ndevs/0", "ports/1/pkeys/0", "ports/1/lid")]
        for persona, node, gid_type in (("roce", "1: CA", "RoCE v2"), ("iwarp", "4: RNIC", "IB/RoCE v1")):
            shown = self.output("cat", *files, WEFT_PERSONA=persona)
            self.assertEqual(shown.splitlines(), [node, "4: ACTIVE", "Ethernet", "0000:0000:0000:0000:0000:ffff:7f00:0001", gid_type,
                                                  "lo", "0xffff", "0x0"])

    def test_find_walks_through(self):
        found = self.output("find", "/sys/class/infiniband/weft_lo/", "-name", "state").split()
        self.assertEqual(found, ["/sys/class/infiniband/weft_lo/ports/1/state"])

    def test_a_shell_expands_enters_and_reads(self):
        script = """
            for port in /sys/class/infiniband/weft_l*/ports/*; do read -r state <$port/state; echo "$port $state"; done
            cd /sys/class/infiniband/weft_lo/ports && pwd && pwd -P && ls && cat 1/phys_state
            cd /sys/class && cat infiniband/weft_lo/node_type; cd /sys/class/infiniband && /bin/pwd
            [ -e /sys/class/infiniband/none ] || echo none; [ -d weft_lo ] && [ -r weft_lo/fw_ver ] && echo there"""
        shown = self.output("bash", "-c", script)
        self.assertEqual(shown.splitlines(), [
            "/sys/class/infiniband/weft_lo/ports/1 4: ACTIVE", "/sys/class/infiniband/weft_lo/ports",
            "/sys/devices/virtual/infiniband/weft_lo/ports", "1", "5: LinkUp", "4: RNIC", "/sys/class/infiniband", "none", "there"])

    def test_python_sees_them_in_every_way(self):
        shown = self.python("""
import glob, os, pathlib
d = '/sys/class/infiniband'
assert 'weft_lo' in os.listdir(d) and 'weft_lo' in [e.name for e in os.scandir(d) if e.is_symlink() and e.is_dir()]
assert d + '/weft_lo/ports/1/state' in glob.glob(d + '/*/ports/*/state')
assert pathlib.Path(d, 'weft_lo').resolve() == pathlib.Path('/sys/devices/virtual/infiniband/weft_lo')
assert os.readlink(d + '/weft_lo') == '../../devices/virtual/infiniband/weft_lo'
assert open('//sys/./class/infiniband/weft_lo/ports/1/rate').read().endswith(')\\n')
fd = os.open('/sys/class/infiniband', os.O_RDONLY | os.O_DIRECTORY)
assert open(os.open('weft_lo/node_type', os.O_RDONLY, dir_fd=fd)).read() == '4: RNIC\\n'
assert os.readlink(f'/proc/self/fd/{fd}') == d
fd = os.open('/sys/class', os.O_RDONLY)
assert 'weft_lo' in os.listdir(os.open('infiniband', os.O_RDONLY, dir_fd=fd))
os.chdir(d)
assert os.getcwd() == d and os.path.isdir('weft_lo') and os.path.abspath('weft_lo') == d + '/weft_lo'
assert sum(len(f) for _, _, f in os.walk(d + '/weft_lo/ports')) > 20
for path, error in (('/weft_lo/fw_ver', PermissionError), ('/new', PermissionError), ('/none/file', PermissionError), ('', IsADirectoryError)):
    try: open(d + path, 'w'); print('opened', path)
    except error: pass
try: open(d + '/none'); print('opened')
except FileNotFoundError: pass
print('ok')""")
        self.assertEqual(shown, "ok\n")

    def test_the_interfaces_own_device_leads_to_its_rdma_device(self):
        self.assertEqual(self.output("cat", "/sys/class/net/lo/device/infiniband/weft_lo/node_type"), "4: RNIC\n")
        self.assertEqual(self.output("cat", "/sys/class/infiniband/weft_lo/device/numa_node"), "-1\n")

    def test_settings_narrow_what_is_shown(self):
        self.assertEqual(self.output("ls", "/sys/class/infiniband", WEFT_DEVICES="lo"), "weft_lo\n")

    def test_counters_count(self):
        read = "/sys/class/infiniband/weft_lo/ports/1/counters/port_xmit_packets"
        self.assertGreater(int(self.output("cat", read)), 0)


class DeviceNodes(PathsTest):

    def test_are_character_devices_for_everybody(self):
        shown = self.output("stat", "-c", "%F %t:%T %a %s %n", "/dev/infiniband/uverbs0", "/dev/infiniband/rdma_cm")
        self.assertEqual(shown, "character special file e7:c0 666 0 /dev/infiniband/uverbs0\n"
                                "character special file a:7a 666 0 /dev/infiniband/rdma_cm\n")
        self.assertIn("crw-rw-rw-", self.output("ls", "-l", "/dev/infiniband"))
        self.assertIn("/dev/infiniband/uverbs0\n", self.output("find", "/dev/infiniband", "-type", "c"))

    def test_open_but_have_no_driver(self):
        shown = self.python("""
import fcntl, os, stat
for flags in (os.O_RDONLY, os.O_RDWR, os.O_WRONLY | os.O_CREAT):
    fd = os.open('/dev/infiniband/uverbs0', flags)
    assert stat.S_ISCHR(os.fstat(fd).st_mode) and os.read(fd, 10) == b''
    for attempt in (lambda: os.write(fd, b'x' * 64), lambda: fcntl.ioctl(fd, 0xc0181b01, b' ' * 64)):
        try: attempt(); print('it worked')
        except OSError: pass
assert os.access('/dev/infiniband/uverbs0', os.R_OK | os.W_OK) and not os.path.exists('/dev/infiniband/uverbs99')
print('ok')""")
        self.assertEqual(shown, "ok\n")


class Transparency(PathsTest):

    def test_off_shows_what_the_machine_has(self):
        for path in ("/sys/class/infiniband", "/dev/infiniband"):
            there = os.path.exists(path)
            self.assertEqual(weft_run(["ls", path], WEFT_PATHS="off").returncode == 0, there)
        self.assertEqual(self.output("sh", "-c", "echo $LD_PRELOAD", WEFT_PATHS="off"), "\n")

    def test_other_paths_are_the_kernels(self):
        for command in (["stat", "-c", "%A %h %U %G %s %n", "/", "/dev/null", "/sys/class/net", "/tmp"], ["cat", "/proc/sys/kernel/osrelease"],
                        ["readlink", "-f", "/proc/self/root"], ["stat", "-c", "%i %F %t:%T", "/dev/null", "/dev/zero", "/etc/passwd"]):
            plain = weft_run(command, under_weft=False)
            ours = weft_run(command)
            self.assertEqual((ours.returncode, ours.stdout, ours.stderr), (plain.returncode, plain.stdout, plain.stderr))

    def test_what_the_user_preloads_comes_first(self):
        shown = self.output("sh", "-c", "echo $LD_PRELOAD", LD_PRELOAD="libm.so.6")
        self.assertRegex(shown, r"^libm\.so\.6:/.*/libweft_paths\.so\n$")

    def test_weft_run_under_weft_run_preloads_once(self):
        shown = self.output(stock.weft(), "run", "sh", "-c", "echo $LD_PRELOAD")
        self.assertEqual(shown.count("libweft_paths"), 1)

    def test_env_does_the_same_for_a_shell(self):
        script = f'eval "$({stock.weft()} env)"; eval "$({stock.weft()} env)"; ls /sys/class/infiniband; echo $LD_PRELOAD'
        done = weft_run(["bash", "-c", script], under_weft=False)
        self.assertIn("weft_lo\n", done.stdout, done.stderr)
        self.assertEqual(done.stdout.count("libweft_paths"), 1)

    def test_a_program_sees_no_child_of_ours(self):
        shown = self.python("""
import os, signal
heard = []
signal.signal(signal.SIGCHLD, lambda *_: heard.append(1))
assert os.path.exists('/sys/class/infiniband/weft_lo')
assert not heard
try: os.waitpid(-1, os.WNOHANG); print('a child')
except ChildProcessError: print('none')
fds = os.listdir('/proc/self/fd'); os.listdir('/sys/class/infiniband')
assert len(os.listdir('/proc/self/fd')) == len(fds)""")
        self.assertEqual(shown, "none\n")

    def test_a_cleared_environment_is_enough(self):
        shown = self.python("import os; os.environ.clear(); os.unsetenv('PATH'); print('weft_lo' in os.listdir('/sys/class/infiniband'))")
        self.assertEqual(shown, "True\n")

    def test_threads_and_children_look_at_once(self):
        shown = self.python("""
import os, threading, sys
def look():
    for _ in range(200):
        assert open('/sys/class/infiniband/weft_lo/ports/1/state').read() == '4: ACTIVE\\n'
        assert 'uverbs0' in os.listdir('/dev/infiniband')
threads = [threading.Thread(target=look) for _ in range(8)]
for t in threads: t.start()
children = []
for _ in range(8):
    pid = os.fork()
    if pid == 0:
        look()
        os._exit(0)
    children.append(pid)
for t in threads: t.join()
print([os.waitpid(pid, 0)[1] for pid in children])""")
        self.assertEqual(shown, "[0, 0, 0, 0, 0, 0, 0, 0]\n")

    def test_wrong_settings_leave_the_machines_paths(self):
        done = weft_run(["sh", "-c", "WEFT_PERSONA=none ls /sys/class/infiniband"])
        self.assertEqual(done.returncode == 0, os.path.exists("/sys/class/infiniband"))

    def test_the_library_needs_only_the_c_library(self):
        library = os.path.join(os.path.dirname(os.path.realpath(stock.weft())), "../lib/weft/libweft_paths.so")
        needed = [l.split()[-1] for l in subprocess.run(["readelf", "-d", library], capture_output=True, text=True,
                                                        check=True).stdout.splitlines() if "(NEEDED)" in l]
        self.assertEqual(needed, ["[libc.so.6]"])

    def test_a_folder_whose_name_separates_entries(self):
        real = os.path.join(os.path.dirname(os.path.realpath(stock.weft())), "../lib/weft")
        with tempfile.TemporaryDirectory(prefix="a b") as folder:
            for name in os.listdir(real):
                os.symlink(os.path.realpath(os.path.join(real, name)), os.path.join(folder, name))
            self.assertIn("weft_lo\n", self.output("ls", "/sys/class/infiniband", WEFT_LIBDIR=folder))


if __name__ == "__main__":
    stock.main()
