"""Stock programs through the memory that two processes of one host share: when they do, when they stay on TCP, and what happens to those who lose
their peer."""

import os
import re
import shutil
import signal
import subprocess
import sys
import unittest

import stock

os.environ.pop("WEFT_SAME_HOST", None)  # it is about memory in common, also under `./test --same-host-off`

AUTO = {}  # the default
RINGS, OFF = ({"WEFT_SAME_HOST": setting} for setting in ("rings", "off"))
SHARED = "goes through shared memory"
PING = "rping {side} -a {address} -p {port} -C {count} -S {size} {quiet}"


class HostTest(stock.StockTest):

    def ping(self, server_settings, client_settings, address="127.0.0.1", prefix="", client_prefix=None, size=30000):
        """Both outputs, with a line per event (WEFT_TRACE): a connection says which way it goes."""
        commands = [(prefix if side == "-s" or client_prefix is None else client_prefix) +
                    PING.format(side=side, address=address, port="{port}", count=50, size=size, quiet="-v -V") for side in ("-s", "-c")]
        outputs = self.run_pair(*commands, server_settings={"WEFT_TRACE": 1, **server_settings},
                                client_settings={"WEFT_TRACE": 1, **client_settings})
        for output in outputs:
            self.expect(output.count("ping data: rdma-ping-") == 50, "pings are missing")
        return outputs

    def shared(self, outputs, how=""):
        for output in outputs:
            self.expect(SHARED in output and how in output, "no shared memory" + (", or not: " + how if how else ""))

    def not_shared(self, outputs):
        for output in outputs:
            self.expect(SHARED not in output, "shared memory")

    def endless(self, **settings):
        """A pair that pings until it is told to end."""
        port = stock.free_port()
        words = {"address": "127.0.0.1", "port": port, "count": 100000000, "size": 30000, "quiet": ""}
        server = self.start(PING.format(side="-s", **words), **settings)
        self.await_listener(server, port)
        return server, self.start(PING.format(side="-c", **words), **settings)

    def stat(self, process):
        weft = stock.weft_run()[0]
        return subprocess.run([weft, "stat", str(process.pid), "--json"], capture_output=True, text=True, env=stock.environment()).stdout

    def posted(self, process):
        posted = re.findall(r'"sends_posted": (\d+)', self.stat(process))
        return int(posted[0]) if posted else 0

    def moves(self, process):
        return self.posted(process) > 100


class Choice(HostTest):

    def test_by_default(self):
        for address in ("127.0.0.1", "::1"):
            self.shared(self.ping(AUTO, AUTO, address))

    def test_by_name(self):
        name = {"WEFT_SAME_HOST": "auto"}
        self.shared(self.ping(name, name))

    def test_in_both_personas(self):
        for persona in ("roce", "iwarp"):
            settings = {"WEFT_PERSONA": persona, **AUTO}
            self.shared(self.ping(settings, settings), "the peer's memory can be read")

    def test_one_does_not_want_it(self):
        self.not_shared(self.ping(AUTO, OFF))
        self.not_shared(self.ping(OFF, AUTO))

    def test_without_reading_the_memory_of_the_other(self):
        outputs = self.ping(RINGS, AUTO)
        self.shared(outputs, "all of it")

    def test_what_needs_a_byte_stream_stays_on_tcp(self):
        capture = os.path.join(os.environ.get("TEST_TMPDIR", "/tmp"), "host-%p.pcap")
        for settings in ({"WEFT_PCAP": capture}, {"WEFT_MPA_CRC": "on"}, {"WEFT_MPA_MARKERS": "on"}, {"WEFT_EXTENSIONS": "off"},
                         {"WEFT_FAULTS": "delay time=1ms"}):
            self.not_shared(self.ping({**AUTO, **settings}, AUTO))
            self.not_shared(self.ping(AUTO, {**AUTO, **settings}))

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare"), "a name space of its own needs root")
    def test_in_a_process_name_space_of_its_own(self):
        outputs = self.ping(AUTO, AUTO, client_prefix="unshare --pid --fork --kill-child -- ")
        self.shared(outputs)
        self.expect("all of it" in outputs[1], "it reads a process that has no number in its name space")

    @unittest.skipUnless(os.geteuid() == 0, "to be another user needs root")
    def test_another_user_is_not_shared_with(self):
        port = stock.free_port()
        commands = [PING.format(side=side, address="127.0.0.1", port=port, count=50, size=30000, quiet="-v -V") for side in ("-s", "-c")]
        server = self.start(commands[0], WEFT_TRACE=1, **AUTO)
        self.await_listener(server, port)
        other = [*stock.as_ordinary_user(), stock.weft_for_everyone(), "run", "--", *commands[1].split()]
        client = self.start(other, under_weft=False, WEFT_TRACE=1, **AUTO)
        self.await_success(server, client)
        self.not_shared((server.output, client.output))

    def test_faults_that_are_set_later_move_it_to_tcp(self):
        pair = self.endless(**AUTO)
        for process in pair:
            self.await_condition(lambda: self.moves(process), "pings")
        done = subprocess.run([stock.weft_run()[0], "faults", "--pid", str(pair[0].pid), "set", "delay time=1ms"], capture_output=True, text=True,
                              env=stock.environment())
        self.expect(done.returncode == 0, done.stderr)
        for process in pair:
            self.await_condition(lambda: '"wire": "tcp"' in self.stat(process), "a connection over TCP")
        before = self.posted(pair[1])
        self.await_condition(lambda: self.posted(pair[1]) > before + 10, "more pings")


class OneProcessor(HostTest):
    """Programs that spin hand it on to each other, and do not wait for the end of each other's time slices (some 300 us a message)."""

    def test_both_spin(self):
        for settings in (AUTO, OFF):
            pinned = f"taskset -c {min(os.sched_getaffinity(0))} "
            typical = []
            for _ in range(5):  # other programs may want the processor, too
                outputs = self.run_pair(f"{pinned}ib_send_lat -F -R -s 64 -n 1000 -p {{port}}", f"{pinned}ib_send_lat -F -R -s 64 -n 1000 -p {{port}} 127.0.0.1",
                                        server_settings=settings, client_settings=settings)
                row = re.search(r"^ *64 +1000 +\S+ +\S+ +(\S+)", outputs[1], re.MULTILINE)
                self.expect(row, "a row of figures")
                typical.append(float(row[1]))
                if typical[-1] < 100:
                    break
            print(f"{settings or 'auto'}: typical latencies {typical} us")
            self.expect(min(typical) < 100, f"a message takes {typical} us")


class Conditions(HostTest):
    """What containers, policies and limits forbid is found out when a connection is made, and costs it nothing but speed."""

    def restricted(self, *calls, error="EPERM"):
        """In front of a command: these system calls fail there."""
        return f"{sys.executable} {stock.workspace_file('tests/stock/restricted.py')} {error} {','.join(calls)} "

    def test_where_nobody_may_reach_the_memory_of_another(self):
        """Yama's ptrace_scope 2, and filters of containers."""
        neither = self.restricted("process_vm_readv", "process_vm_writev")
        self.shared(self.ping(AUTO, AUTO, prefix=neither), "all of it")

    def test_where_one_of_both_may_reach_the_memory_of_the_other(self):
        """Yama's ptrace_scope 1, for all but the first peer of a process."""
        neither = self.restricted("process_vm_readv", "process_vm_writev")
        outputs = self.ping(AUTO, AUTO, client_prefix=neither)
        self.expect("the peer's memory can be read" in outputs[0] and "all of it" in outputs[1], "each goes its own way")
        outputs = self.ping(AUTO, AUTO, prefix=neither, client_prefix="")
        self.expect("all of it" in outputs[0] and "the peer's memory can be read" in outputs[1], "each goes its own way")

    def test_where_memory_may_be_read_and_not_written(self):
        self.shared(self.ping(AUTO, AUTO, prefix=self.restricted("process_vm_writev")), "the peer's memory can be read")

    def test_without_memory_files_of_the_one_who_makes_them(self):
        without = self.restricted("memfd_create", error="ENOSYS")
        self.not_shared(self.ping(AUTO, AUTO, prefix=without, client_prefix=""))
        self.shared(self.ping(AUTO, AUTO, client_prefix=without))

    def test_with_a_limit_of_the_length_of_files(self):
        if self.sanitizer == "tsan":
            self.skipTest("ThreadSanitizer itself does not start where files may not be long")
        limit = "prlimit --fsize=131072 "  # their own output stays below
        self.not_shared(self.ping(AUTO, AUTO, prefix=limit, client_prefix="", size=64))
        self.shared(self.ping(AUTO, AUTO, client_prefix=limit, size=64))

    def test_with_few_descriptors(self):
        few = "prlimit --nofile=24 "
        self.not_shared(self.ping(AUTO, AUTO, prefix=few, client_prefix=""))
        self.not_shared(self.ping(AUTO, AUTO, client_prefix=few))

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare") and os.path.ismount("/dev/shm"), "a name space of its own needs root")
    def test_without_dev_shm(self):
        self.shared(self.ping(AUTO, AUTO, prefix="unshare --mount -- sh -c 'umount -l /dev/shm && exec \"$@\"' sh "))

    def test_a_thousand_connections_to_one_process(self):
        words = "ib_write_bw -R -p {port} -q 1000 -s 16384 -n 5"
        outputs = self.run_pair(words, words + " 127.0.0.1", server_settings={"WEFT_TRACE": 1, **AUTO}, client_settings={"WEFT_TRACE": 1, **AUTO})
        for output in outputs:
            self.expect(output.count(SHARED) >= 1000, "a connection that is not shared")


class Life(HostTest):

    def test_stat_says_which_way(self):
        for settings, wire in ((AUTO, "host"), (OFF, "tcp")):
            server, client = self.endless(**settings)
            for process in (server, client):
                self.await_condition(lambda: f'"wire": "{wire}"' in self.stat(process), f"a connection over {wire}")

    def test_who_loses_its_peer_ends(self):
        for loser in (0, 1):
            pair = self.endless(**AUTO)
            for process in pair:
                self.await_condition(lambda: self.moves(process), "pings")
            os.kill(pair[1 - loser].pid, signal.SIGKILL)
            self.await_condition(lambda: not pair[loser].running(), "the end of the one that was left")

    def test_nothing_is_left_behind(self):
        before = set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()
        server, client = self.endless(**AUTO)
        self.await_condition(lambda: self.moves(client), "pings")
        for process in (server, client):
            os.kill(process.pid, signal.SIGKILL)
        self.await_condition(lambda: not server.running() and not client.running(), "their end")
        after = set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()
        self.expect(after <= before, f"{after - before} is left")


if __name__ == "__main__":
    stock.main()
