"""The programs of examples/ do what their comments say, on Weft."""

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


if __name__ == "__main__":
    stock.main()
