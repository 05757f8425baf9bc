"""fio's rdma engine on Weft: writes, reads and sends between a server and a client job."""

import stock

BLOCK = 16 << 10
SIZE = 4 << 20
BLOCKS = SIZE // BLOCK


class Fio(stock.StockTest):

    def exchange(self, verb, options=""):
        # Whoever connects "writes", whatever the verb; who listens "reads". Sends need as many receives as there are messages: fio
        # has no credits, and asks for no retries when a receive is missing.
        common = f"fio --name=job --ioengine=rdma --port={{port}} --bs={BLOCK} --size={SIZE} --iodepth={BLOCKS} {options}"
        server, client = self.run_pair(f"{common} --rw=read", f"{common} --hostname=127.0.0.1 --verb={verb} --rw=write")
        for output in (server, client):
            self.expect("err= 0" in output and "verify:" not in output and "completion status" not in output, "an error")
        self.expect(f"total=0,{BLOCKS},0,0" in client, "the client's blocks")
        return server

    def test_write(self):
        self.exchange("write")

    def test_read(self):
        self.exchange("read")

    def test_send(self):
        self.expect(f"total={BLOCKS},0,0,0" in self.exchange("send"), "the server's blocks")

    def test_send_verified(self):
        """The receiving job checks the sum in each block."""
        self.expect(f"total={BLOCKS},0,0,0" in self.exchange("send", "--verify=crc32c"), "the server's blocks")


if __name__ == "__main__":
    stock.main()
