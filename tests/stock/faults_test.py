"""Failures on demand and statistics with unmodified programs: WEFT_FAULTS, weft faults, weft stat, WEFT_STATS."""

import json
import os
import re
import subprocess

import stock


def weft(*arguments, **settings):
    return subprocess.run([stock.weft(), *arguments], env=stock.environment(**settings), capture_output=True, text=True,
                          timeout=60)


class Specification(stock.StockTest):

    def test_what_is_wrong_is_shown_and_nothing_starts(self):
        done = weft("run", "echo", "started", WEFT_FAULTS="reset; delay time=5")
        self.assertEqual(done.returncode, 125)
        self.assertEqual(done.stdout, "")
        self.assertIn("  reset; delay time=5\n                    ^\n", done.stderr)
        self.assertIn("5ms", done.stderr)

    def test_libraries_show_no_device_then(self):
        # As a program sees it that was not started by weft run.
        environment = stock.environment(WEFT_FAULTS="cutt",
                                        LD_LIBRARY_PATH=os.path.join(os.path.dirname(stock.weft()), "../lib/weft"))
        done = subprocess.run(["ibv_devinfo"], env=environment, capture_output=True, text=True, timeout=60)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("did you mean cut?", done.stderr)
        self.assertIn("^", done.stderr)

    def test_a_file_that_is_not_there_is_named(self):
        done = weft("run", "true", WEFT_FAULTS="@/nonexistent")
        self.assertEqual(done.returncode, 125)
        self.assertIn("/nonexistent", done.stderr)

    def test_list_explains_every_kind_with_an_example_that_is_right(self):
        listed = weft("faults", "--list").stdout
        examples = re.findall(r"Example: WEFT_FAULTS='(.*)'", listed)
        self.assertGreaterEqual(len(examples), 14)
        for example in examples:
            done = weft("faults", "check", example)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout, example + "\n")

    def test_the_manual_is_made_from_the_same_table(self):
        with open(stock.workspace_file("docs/man/weft-faults.7")) as manual:
            self.assertIn(weft("faults", "--manual").stdout, manual.read())

    def test_wrong_use_is_2(self):
        for arguments in (["faults"], ["faults", "set", "cut"], ["faults", "--pid", "1", "break"]):
            self.assertEqual(weft(*arguments).returncode, 2, arguments)


class Programs(stock.StockTest):

    def pair(self, client, **client_settings):
        port = stock.free_port()
        server = self.start(f"rping -s -a 127.0.0.1 -p {port} -v")
        self.await_listener(server, port)
        return server, self.start(client.format(port=port), **client_settings)

    def await_end(self, *processes):
        self.await_condition(lambda: not any(p.running() for p in processes), "the end")

    def test_rping_sees_its_fifth_write_fail(self):
        # The server writes: its fifth round is the one that does not come.
        port = stock.free_port()
        server = self.start(f"rping -s -a 127.0.0.1 -p {port} -v",
                            WEFT_FAULTS="completion status=RETRY_EXC_ERR opcode=RDMA_WRITE nth=5")
        self.await_listener(server, port)
        client = self.start(f"rping -c -a 127.0.0.1 -p {port} -C 10 -v")
        self.await_end(server, client)
        self.expect("cq completion failed" in server.output and "status 12" in server.output, "status 12 is IBV_WC_RETRY_EXC_ERR")
        self.expect("ping data: rdma-ping-3" in client.output and "ping data: rdma-ping-4" not in client.output, "four rounds")
        self.expect("fault 1 of" in server.output, "the log line")

    def test_rping_cannot_register_memory(self):
        server, client = self.pair("rping -c -a 127.0.0.1 -p {port} -C 3", WEFT_FAULTS="fail call=ibv_reg_mr errno=ENOMEM nth=2")
        self.await_end(client)
        self.expect(client.status != 0, "it must fail")
        self.expect("ibv_reg_mr fails" in client.output, "the log line")

    def test_rping_is_rejected(self):
        server, client = self.pair("rping -c -a 127.0.0.1 -p {port} -C 3", WEFT_FAULTS="cm_event event=REJECTED")
        self.await_end(client)
        self.expect("RDMA_CM_EVENT_REJECTED" in client.output, "what rping prints")
        self.expect(server.running(), "the server hears nothing")

    def test_a_fault_that_is_not_for_this_peer_changes_nothing(self):
        server, client = self.pair("rping -c -a 127.0.0.1 -p {port} -C 3 -v", WEFT_FAULTS="cut peer=192.0.2.1; reset qp=0xffff")
        self.await_success(server, client)
        self.expect("fault" not in client.output, "nothing is injected")

    def test_write_bandwidth_over_a_slow_line_that_loses_a_connection(self):
        port = stock.free_port()
        server = self.start(f"ib_write_bw -R -p {port} -n 5000 -q 2")
        self.await_listener(server, port)
        client = self.start(f"ib_write_bw -R -p {port} -n 5000 -q 2 127.0.0.1",
                            WEFT_FAULTS="bandwidth rate=1gbit; reset after_bytes=5M nth=2; seed=1")
        self.await_end(client)
        self.expect(client.status != 0, "it must fail")
        self.expect(len(re.findall(r"fault \d+ of \"reset", client.output)) == 1, "one of the connections is reset")

    def test_faults_change_while_a_program_runs(self):
        server, client = self.pair("rping -c -a 127.0.0.1 -p {port} -C 1000000")
        self.await_condition(lambda: weft("faults", "--pid", str(client.pid), "show").returncode == 0, "the control socket")
        rounds = lambda: self.queue_pair(client)["sends_completed"]
        self.await_condition(lambda: rounds() > 10, "a few rounds")
        done = weft("faults", "--pid", str(client.pid), "set", "blackhole")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.await_condition(lambda: rounds() == rounds(), "a stand-still")
        self.assertIn("injected 1", weft("faults", "--pid", str(client.pid), "show").stdout)
        stood = rounds()
        self.assertEqual(weft("faults", "--pid", str(client.pid), "clear").returncode, 0)
        self.await_condition(lambda: rounds() > stood, "further rounds")
        self.assertEqual(weft("faults", "--pid", str(client.pid), "show").stdout, "")
        refused = weft("faults", "--pid", str(client.pid), "set", "blackhoel")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("did you mean blackhole?", refused.stderr)
        self.assertEqual(weft("faults", "--pid", str(client.pid), "set", "reset").returncode, 0)
        self.await_end(client)

    def queue_pair(self, process):
        done = weft("stat", str(process.pid), "--json", "--interval", "0.02")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["queue_pairs"][0]

    def test_stat(self):
        server, client = self.pair("rping -c -a 127.0.0.1 -p {port} -C 1000000")
        self.await_condition(lambda: weft("stat", str(client.pid)).returncode == 0, "the control socket")
        self.await_condition(lambda: json.loads(weft("stat", str(client.pid), "--json").stdout)["queue_pairs"], "a queue pair")
        self.await_condition(lambda: self.queue_pair(client)["state"] == "RTS", "a connection")
        first = self.queue_pair(client)
        self.assertEqual(first["type"], "RC")
        self.assertRegex(first["peer"], r"^127\.0\.0\.1:\d+$")
        self.assertEqual(first["device"], "weft_lo")
        self.assertEqual(first["errors"], 0)
        self.await_condition(lambda: self.queue_pair(client)["bytes_sent"] > first["bytes_sent"], "traffic")
        self.await_condition(lambda: self.queue_pair(client)["bytes_sent_per_second"] > 0, "a rate")
        table = weft("stat", str(client.pid)).stdout
        self.assertIn("rping", table.splitlines()[0])
        self.assertIn("RTS", table)
        self.assertIn(str(client.pid), weft("stat").stdout)
        self.assertIn(client.pid, [p["pid"] for p in json.loads(weft("stat", "--json").stdout)])
        client.kill()

    def test_who_asked_not_to_be_asked_is_not(self):
        server, client = self.pair("rping -c -a 127.0.0.1 -p {port} -C 3 -v", WEFT_CONTROL="off")
        self.await_success(server, client)
        done = weft("stat", str(os.getpid()))
        self.assertEqual(done.returncode, 1)
        self.assertIn("WEFT_CONTROL=off", done.stderr)

    def test_summary_at_exit(self):
        server, client = self.pair("rping -c -a 127.0.0.1 -p {port} -C 3", WEFT_STATS=1)
        self.await_success(server, client)
        self.expect(re.search(r"weft:   qp 0x\w+ RC destroyed, peer 127\.0\.0\.1:\d+: \d+ of \d+ sends", client.output),
                    "a line for the queue pair")


if __name__ == "__main__":
    stock.main()
