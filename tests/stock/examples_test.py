"""The programs of examples/ do what their comments say, on Weft."""

import os
import shutil
import subprocess
import tempfile

import stock


class Note(stock.StockTest):

    def leave(self, text, host="127.0.0.1"):
        server = stock.workspace_file("examples/note_server")
        client = stock.workspace_file("examples/note_client")
        return self.run_pair(f"{server} {{port}}", f"{client} {host} {{port}} '{text}'")

    def test_the_server_finds_what_the_client_wrote(self):
        server, client = self.leave("hello from the other side")
        self.expect("the client left a note: hello from the other side\n" in server, "the note is missing")
        self.expect("wrote 26 bytes and read the same back" in client, "nothing was read back")

    def test_a_long_note(self):
        text = "x" * 4000
        self.expect(text in self.leave(text)[0], "the note is missing")

    def test_a_client_without_server_says_why(self):
        client = self.start(f"{stock.workspace_file('examples/note_client')} 127.0.0.1 {stock.free_port()} hello")
        self.await_condition(lambda: not client.running(), "the client's end", 20)
        self.expect(client.status == 1 and "rdma_connect: Connection refused" in client.output, "it must say why")


class Makefile(stock.StockTest):
    """As a reader of the installed examples uses them: in a folder of their own, without Bazel."""

    def make(self, folder, *words):
        # The shells and compilers of make do not bear a sanitizer's runtime; the programs that weft starts need it.
        runtime = [f"{name}={value}" for name, value in stock.sanitizer_settings().items()]
        run = " ".join([*(["env", *runtime] if runtime else []), stock.weft(), "run"])
        env = {name: value for name, value in stock.environment().items() if name not in ("LD_PRELOAD", "MAKEFLAGS")}
        return subprocess.run(["make", *words, f"RUN={run}"], cwd=folder, env=env, capture_output=True, text=True, timeout=120)

    def test_it_builds_them_and_tries_them_without_a_race(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("Makefile", "note.h", "note_client.c", "note_server.c"):
                shutil.copy(stock.workspace_file(f"examples/{name}"), folder)
            built = self.make(folder)
            self.assertEqual(built.returncode, 0, built.stderr)
            self.assertEqual(built.stderr, "")
            for _ in range(5):
                port = stock.free_port()
                tried = self.make(folder, "try", f"PORT={port}")
                self.assertEqual(tried.returncode, 0, tried.stdout + tried.stderr)
                self.assertIn(f"listening on port {port}", tried.stdout)
                self.assertIn("the client left a note: hello\n", tried.stdout)


if __name__ == "__main__":
    stock.main()
