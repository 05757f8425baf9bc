"""Processes that are killed at random points while they exchange data through the memory of their host: whoever is left hears of it, has no wrong
byte, keeps nothing, and goes on with those that come next. tests/soak/worker.cc says what is checked.

KILL_SECONDS (6) and KILL_SEED (printed) can be set: bazel test --test_env=KILL_SECONDS=1800 --test_timeout=2400 //tests/soak:kill_roce_test
"""

import os
import random
import re
import time

import stock

PAIRS = 2  # servers, and as many clients, each connected to all servers
CONNECTIONS = 4  # of each client
FOR_GOOD = 100_000  # seconds: until it is killed


def mappings(process):
    """How many pieces of memory it has in common with others; they have no name, and are gone with the last that maps them."""
    try:
        with open(f"/proc/{process.pid}/maps") as maps:
            return sum("/memfd:weft" in line for line in maps)
    except FileNotFoundError:
        return 0


class Kills(stock.StockTest):

    def serve(self, port):
        server = self.start([self.worker, "server", str(port)], **self.settings)
        self.await_listener(server, port)
        return server

    def connect(self, seconds):
        arguments = [str(seconds), str(self.choice.randrange(1 << 60)), str(CONNECTIONS), *map(str, self.ports)]
        return self.start([self.worker, "client", *arguments], **self.settings)

    def retire(self, process):
        """What was started and is over needs no explanation any more."""
        process.kill()
        self._started.remove(process)

    def check(self, process):
        self.expect(process.running() and "SOAK VIOLATED" not in process.output, "a process that nobody killed ended, or a violation")

    def kill_at_random(self, setting, seconds):
        seed = int(os.environ.get("KILL_SEED", str(random.randrange(1 << 31))))
        print(f"WEFT_SAME_HOST={setting} KILL_SECONDS={seconds} KILL_SEED={seed}", flush=True)
        self.choice = random.Random(seed)
        self.worker = stock.workspace_file("tests/soak/worker")
        self.settings = {"WEFT_SAME_HOST": setting}
        self.ports = [stock.free_port() for _ in range(PAIRS)]
        servers = [self.serve(port) for port in self.ports]
        clients = [self.connect(FOR_GOOD) for _ in range(PAIRS)]
        self.await_condition(lambda: all(map(mappings, clients)), "connections of all clients through shared memory")
        kills = 0
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(self.choice.uniform(0.05, 0.5))
            for process in servers + clients:
                self.check(process)
            everybody, index = self.choice.choice((servers, clients)), self.choice.randrange(PAIRS)
            self.retire(everybody[index])
            kills += 1
            everybody[index] = self.serve(self.ports[index]) if everybody is servers else self.connect(FOR_GOOD)
        for client in clients:
            self.retire(client)
        for server in servers:
            self.await_condition(lambda: mappings(server) == 0, "the end of all connections whose clients are dead")
        last = self.connect(1)
        self.await_success(last, timeout=120)
        connected, _ = map(int, re.search(r"connected (\d+), ended (\d+)", last.output).groups())
        self.expect(connected > 0, "a connection after all that")
        for server in servers:
            os.kill(server.pid, 15)
        self.await_success(*servers, timeout=120)
        print(f"{kills} kills; {connected} connections at the end")

    def test_with_memory_that_peers_reach(self):
        self.kill_at_random("auto", float(os.environ.get("KILL_SECONDS", "6")) / 2)

    def test_with_rings_alone(self):
        self.kill_at_random("rings", float(os.environ.get("KILL_SECONDS", "6")) / 2)


if __name__ == "__main__":
    stock.main()
