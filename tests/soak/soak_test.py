"""Random faults over 100 connections in 8 processes for a while: whatever fails, every request completes once, no byte is wrong, nothing hangs,
crashes or is left behind. tests/soak/worker.cc says what is checked.

SOAK_SECONDS (10) and SOAK_SEED (printed) can be set: bazel test --test_env=SOAK_SECONDS=1800 --test_timeout=2400 //tests/soak:soak_roce_test
"""

import os
import random
import re
import subprocess

import stock

PROCESSES = 4  # servers, and as many clients
CONNECTIONS = 25  # of each client

# What may be set on a process, for a moment. Each leaves every connection whole or ended; an overrun, which loses completions, and the
# end of a device are not among them.
FAULTS = [
    lambda r: f"cut after_bytes={r.randrange(1000, 5_000_000)} probability={r.choice(['5%', '30%', '1'])}",
    lambda r: f"reset after={r.randrange(1, 500)}ms probability={r.choice(['5%', '30%', '1'])}",
    lambda r: f"blackhole for={r.randrange(10, 2000)}ms probability=30%",
    lambda r: f"delay time={r.randrange(1, 50)}ms jitter=1ms",
    lambda r: f"bandwidth rate={r.randrange(5, 500)}mbit",
    lambda r: f"corrupt every={r.randrange(10, 500)} times=3",
    lambda r: f"completion status={r.choice(['RETRY_EXC_ERR', 'REM_ACCESS_ERR', 'REM_OP_ERR', 'LOC_PROT_ERR'])} "
              f"opcode={r.choice(['SEND', 'RDMA_WRITE', 'RDMA_READ', 'ATOMIC_FETCH_AND_ADD', 'RECV'])} every={r.randrange(50, 2000)} times=10",
    lambda r: f"rnr every={r.randrange(50, 2000)} times=10",
    lambda r: f"fail call={r.choice(['ibv_reg_mr', 'ibv_create_cq', 'ibv_create_qp', 'ibv_alloc_pd'])} errno=ENOMEM probability=20%",
    lambda r: f"fail call={r.choice(['ibv_post_send', 'ibv_post_recv'])} errno=ENOMEM probability=10%",
    lambda r: f"cm_event event={r.choice(['ADDR_ERROR', 'ROUTE_ERROR', 'CONNECT_ERROR', 'UNREACHABLE', 'REJECTED', 'DEVICE_REMOVAL', 'ADDR_CHANGE', 'TIMEWAIT_EXIT'])} probability=20%",
    lambda r: f"port_down device=weft_lo for={r.randrange(10, 500)}ms",
    lambda r: f"slow_progress time={r.randrange(1, 5)}ms",
]


class Soak(stock.StockTest):

    def test_random_faults(self):
        seconds = int(os.environ.get("SOAK_SECONDS", "10"))
        seed = int(os.environ.get("SOAK_SEED", str(random.randrange(1 << 31))))
        print(f"SOAK_SECONDS={seconds} SOAK_SEED={seed}", flush=True)
        choice = random.Random(seed)
        worker = stock.workspace_file("tests/soak/worker")
        ports = [stock.free_port() for _ in range(PROCESSES)]
        servers = [self.start([worker, "server", str(port)]) for port in ports]
        for server, port in zip(servers, ports):
            self.await_listener(server, port)
        clients = [self.start([worker, "client", str(seconds), str(choice.randrange(1 << 60)), str(CONNECTIONS), *map(str, ports)])
                   for _ in range(PROCESSES)]
        everybody = servers + clients
        applied = 0
        while all(p.running() for p in clients):
            target = choice.choice(everybody)
            faults = "; ".join(f(choice) for f in choice.sample(FAULTS, choice.randrange(0, 3)))
            done = subprocess.run([stock.weft(), "faults", "--pid", str(target.pid), "set",
                                   f"{faults}; seed={choice.randrange(1 << 60)}"],
                                  env=stock.environment(), capture_output=True, text=True, timeout=60)
            applied += done.returncode == 0
            self.expect(done.returncode == 0 or not target.running() or "weft faults: process" in done.stderr,
                        f"setting {faults}: {done.stderr}")
            failed = [p for p in everybody if p.status not in (None, 0)]
            self.expect(not failed, "a process failed")
            choice.random()
            try:
                clients[0]._process.wait(choice.uniform(0.02, 0.4))
            except subprocess.TimeoutExpired:
                pass
        for process in everybody:
            if process.running():
                subprocess.run([stock.weft(), "faults", "--pid", str(process.pid), "clear"], env=stock.environment(),
                               capture_output=True, timeout=60)
        self.await_success(*clients, timeout=120)
        for server in servers:
            os.kill(server.pid, 15)
        self.await_success(*servers, timeout=120)
        rounds = connected = ended = most_descriptors = 0
        for process in clients:
            self.expect("SOAK VIOLATED" not in process.output, "a violation")
            left, most = map(int, re.search(r"descriptors (\d+) of at most (\d+)", process.output).groups())
            self.expect(left <= 64, f"{left} descriptors are left (at most {most} were open)")
            found = re.search(r"client: rounds (\d+), connected (\d+), ended (\d+)", process.output)
            rounds += int(found.group(1))
            connected += int(found.group(2))
            ended += int(found.group(3))
            most_descriptors = max(most_descriptors, left)
        injected = sum(len(re.findall(r"^weft: fault \d+ of", p.output, re.MULTILINE)) for p in everybody)
        print(f"{applied} plans of faults, {injected} faults, {rounds} rounds, {connected} connections, {ended} of them ended by a fault; "
              f"at most {most_descriptors} descriptors left")
        self.expect(rounds > 0 and connected >= PROCESSES, "something got through")
        self.expect(applied > seconds, "faults were set")


if __name__ == "__main__":
    stock.main()
