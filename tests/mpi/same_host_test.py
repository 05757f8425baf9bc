"""Messages and windows whose ranks are reached in different ways: through memory, by copies that the kernel makes, over sockets and the RDMA
device. Random operations (rma/random_operations.c) against a serial model, with some ranks made to look remote; ranks that die in the middle; what
is left.

A seed is printed with each failure. WINDOW_SEEDS (6) seeds from WINDOW_FIRST (100) on:
bazel test --test_env=WINDOW_SEEDS=200 //tests/mpi:same_host_test
"""

import os
import random
import re
import signal
import time
import unittest

import mpi
import stock

os.environ.pop("WEFT_SAME_HOST", None)  # it is about memory in common, also under `./test --same-host-off`

FIRST, SEEDS = int(os.environ.get("WINDOW_FIRST", 100)), int(os.environ.get("WINDOW_SEEDS", 6))
BOUND = 30  # seconds, for everything to end after a death
RANDOM = "tests/mpi/rma/random_operations"
MESSAGES = "tests/mpi/scale/messages"
BLOCKS = "tests/mpi/scale/blocks"
ON_ONE_PROCESSOR = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]


def ways(output):
    return {int(rank): tuple(map(int, counts)) for rank, *counts in re.findall(r"rank (\d+): memory=(\d+),copy=(\d+),rdma=(\d+)", output)}


def ways_over_alloc_mem(output):
    found = re.findall(r"rank (\d+): over MPI_Alloc_mem: memory=(\d+),copy=(\d+),rdma=(\d+)", output)
    return {int(rank): tuple(map(int, counts)) for rank, *counts in found}


def carried(output):
    """By rank: bytes that it sent through memory, pieces that it copied from others."""
    return {int(rank): (int(host), int(copies)) for rank, host, copies in re.findall(r"rank (\d+): host=(\d+),copies=(\d+)", output)}


class SameHost(mpi.MpiTest):
    library = mpi.WeftUnderMpiexec

    def launch(self, words):
        job = mpi.Job(words, self.library.settings())
        self.addCleanup(job.kill)
        return job

    def run_parts(self, parts, *arguments, program=RANDOM):
        """`parts`: (ranks, settings) of a job; its output."""
        words = list(self.library.launcher())
        for number, (ranks, settings) in enumerate(parts):
            words += [":"] * (number > 0) + ["-n", str(ranks), "env", *settings, stock.workspace_file(program), *map(str, arguments)]
        job = self.launch(words)
        if not job.wait(60 * self.slow):
            self.fail(f"{' '.join(words)}\nstill runs; output:\n{job.output}\n{job.stacks()}")
        self.assertEqual(job.status, 0, f"{' '.join(words)}\n{job.output}")
        return job.output

    def test_ranks_of_one_host_reach_one_another_through_memory_and_have_no_rdma_device(self):
        output = self.run_job(3, stock.workspace_file(RANDOM), "1", "2")
        self.assertEqual(ways(output), {rank: (2, 0, 0) for rank in range(3)}, output)
        self.assertEqual(ways_over_alloc_mem(output), {rank: (2, 0, 0) for rank in range(3)}, output)

    def test_memory_of_mpi_alloc_mem_is_reached_by_each_that_can_map_it(self):
        """A rank that can make none has memory of its own, which is copied; ranks whose memory nobody may copy are mapped."""
        words = ["-n", "1", stock.workspace_file(RANDOM), "3", "6", ":", "-n", "2", "sh", "-c", f"ulimit -f 1; exec {stock.workspace_file(RANDOM)} 3 6"]
        if self.sanitizer != "tsan":  # which does not start where files may not be long
            job = self.launch([*self.library.launcher(), *words])
            self.assertTrue(job.wait(60 * self.slow), job.output)
            self.assertEqual(job.status, 0, job.output)
            self.assertEqual(ways_over_alloc_mem(job.output), {0: (0, 2, 0), 1: (1, 1, 0), 2: (1, 1, 0)}, job.output)
        output = self.run_parts([(3, self.restricted("process_vm_readv", "process_vm_writev"))], FIRST)
        self.assertEqual(ways_over_alloc_mem(output), {rank: (2, 0, 0) for rank in range(3)}, output)
        output = self.run_parts([(1, []), (1, ["WEFT_SAME_HOST=off"]), (1, ["WEFT_SAME_HOST=rings"]), (1, [])], FIRST)
        self.assertEqual(ways_over_alloc_mem(output), {0: (1, 0, 2), 1: (0, 0, 3), 2: (0, 0, 3), 3: (1, 0, 2)}, output)

    def test_messages_go_through_memory_and_long_ones_are_copied_where_they_lie_if_ranks_share_a_processor(self):
        for ranks in 2, 5:
            said = carried(self.run_parts([(ranks, ON_ONE_PROCESSOR)], FIRST, program=MESSAGES))
            self.assertEqual(sorted(said), list(range(ranks)))
            self.assertTrue(all(host > 0 and copies > 0 for host, copies in said.values()), said)

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "it takes two processors")
    def test_long_messages_go_through_the_cache_while_their_sender_waits_with_a_processor_of_its_own(self):
        self.assertEqual(self.long_messages([])[0], 0)

    def test_a_long_message_is_received_while_its_sender_computes(self):
        for setting in [], ON_ONE_PROCESSOR:
            copies, seconds = self.long_messages(setting)
            self.assertEqual(copies > 0, setting == ON_ONE_PROCESSOR)
            self.assertLess(seconds, 1.5)

    def long_messages(self, setting):
        output = self.run_parts([(2, setting)], program="tests/mpi/scale/long_messages")
        copies, seconds = re.search(r"copies=(\d+), while it computes: ([\d.]+) s", output).groups()
        return int(copies), float(seconds)

    def test_messages_go_on_when_a_rank_may_not_read_the_memory_of_others_any_more(self):
        for seed in range(FIRST, FIRST + 3):
            said = carried(self.run_parts([(3, ON_ONE_PROCESSOR)], seed, 60, 30, program=MESSAGES))
            self.assertTrue(all(host > 0 and copies > 0 for host, copies in said.values()), said)

    def test_long_blocks_of_an_alltoall_are_copied_where_they_lie(self):
        for ranks in 2, 3, 7:
            said = carried(self.run_parts([(ranks, [])], program=BLOCKS))
            self.assertEqual(sorted(said), list(range(ranks)))
            self.assertTrue(all(copies > 0 for _, copies in said.values()), said)

    def test_blocks_come_when_a_rank_may_not_read_the_memory_of_others_or_not_any_more(self):
        for ranks in 2, 4:
            said = carried(self.run_parts([(ranks, [])], 80, 45, program=BLOCKS))
            self.assertTrue(all(copies > 0 for _, copies in said.values()), said)
        for parts in [(3, ["WEFT_SAME_HOST=rings"])], [(2, []), (2, self.restricted("process_vm_readv"))], [(3, self.restricted("process_vm_readv"))]:
            said = carried(self.run_parts(parts, program=BLOCKS))
            self.assertTrue(all(copies == 0 for _, copies in said.values()), said)

    def test_a_window_takes_one_mapping_and_its_memory_is_used_again(self):
        most = 2 * 20 * (2 if self.sanitizer else 1) + 10  # sanitizers map something for each
        for ranks in 2, 9:
            for mappings, _, again in self.many_windows([(ranks, [])], 20).values():
                self.assertLessEqual(mappings, most)
                self.assertLessEqual(again, 64)

    def test_the_memory_of_a_window_that_was_freed_is_the_next_ones(self):
        for ranks in 2, 3, 9:
            output = self.run_parts([(ranks, [])], program="tests/mpi/scale/windows_again")
            self.assertEqual(re.findall(r"rank \d+: places=(\d+)", output), ranks * ["1"], output)

    def test_of_many_windows_that_were_freed_little_memory_is_kept(self):
        for ranks in 2, 4:
            for _, pages, again in self.many_windows([(ranks, [])], 400).values():  # 800 windows: 2,400 pages for each rank
                self.assertLessEqual(pages, 512 * (ranks + 1))  # 2 MiB for each rank, and a page for each range
                self.assertLessEqual(again, 64)

    def test_memory_that_is_given_back_under_a_window_ends_nobody_and_goes_back_with_the_window(self):
        for setting in "auto", "off":
            output = self.run_parts([(3, ["WEFT_SAME_HOST=" + setting])], program="tests/mpi/scale/freed_early")
            pages = [tuple(map(int, found)) for found in re.findall(r"pages=(\d+), at the end (\d+)", output)]
            self.assertEqual(len(pages), 3, output)
            for before, after in pages:
                self.assertEqual(before > 1000, setting == "auto", output)
                self.assertLess(after, 10, output)

    def test_small_pieces_here_and_there(self):
        for ranks in 2, 3:
            output = self.run_parts([(ranks, [])], program="tests/mpi/scale/strided")
            said = re.findall(r"rank \d: deferred=(\d+), of alloc_mem (\d+)", output)
            self.assertEqual([(int(malloc) > 0, int(shared)) for malloc, shared in said], ranks * [(True, 0)], output)

    def test_small_pieces_for_memory_that_the_target_has_unmapped_are_an_error_there(self):
        for ranks in 2, 3:
            self.run_parts([(ranks, [])], program="tests/mpi/scale/unmapped_target")

    def test_windows_of_ranks_of_which_some_share_no_memory(self):
        self.many_windows([(3, []), (1, ["WEFT_SAME_HOST=rings"]), (1, ["WEFT_SAME_HOST=off"])], 5)

    def test_waits_of_windows_look_at_memory_alone_only_where_no_message_can_end_them(self):
        for parts in [(2, [])], [(3, [])]:
            self.assertTrue(all(waits > 0 for waits in self.memory_waits(parts)))
        apart = (1, ["WEFT_SAME_HOST=off"])
        for parts in [apart, apart], [(2, []), apart], [apart, (2, []), apart]:
            self.assertEqual(set(self.memory_waits(parts)), {0})

    def memory_waits(self, parts):
        """Of each rank."""
        said = re.findall(r"rank \d+: memory_waits=(\d+)", self.run_parts(parts, program="tests/mpi/scale/window_waits"))
        self.assertEqual(len(said), sum(ranks for ranks, _ in parts))
        return list(map(int, said))

    def many_windows(self, parts, count):
        """{rank: (mappings of 2 * count windows, pages that the host's memory keeps after them, and more of them after two more rounds)}."""
        output = self.run_parts(parts, count, program="tests/mpi/scale/many_windows")
        said = re.findall(r"rank (\d+): mappings=(-?\d+),pages=(-?\d+),again=(-?\d+)", output)
        return {int(rank): tuple(map(int, found)) for rank, *found in said}

    def test_with_rings_messages_go_through_memory_and_nobody_reads_that_of_another(self):
        said = carried(self.run_parts([(3, ["WEFT_SAME_HOST=rings"])], FIRST, program=MESSAGES))
        self.assertTrue(all(host > 0 and copies == 0 for host, copies in said.values()), said)

    def test_messages_to_ranks_elsewhere_go_over_sockets_in_the_same_job(self):
        for seed in range(FIRST, FIRST + 2):
            output = self.run_parts([(1, []), (1, ["WEFT_SAME_HOST=off"]), (2, ["WEFT_SAME_HOST=auto"])], seed, program=MESSAGES)
            self.assertEqual({rank for rank, (host, _) in carried(output).items() if host > 0}, {0, 2, 3}, output)

    def test_children_of_fork_disturb_nobody(self):
        for setting in ("auto", "rings", "off"):
            for ranks in 1, 2, 4:
                with self.subTest(setting=setting, ranks=ranks):
                    self.run_parts([(ranks, ["WEFT_SAME_HOST=" + setting])], program="tests/mpi/scale/forks")

    def test_windows_go_over_the_wire_that_was_asked_for(self):
        for setting in "WEFT_LLP=sctp", "WEFT_MPA_CRC=on":
            with self.subTest(setting=setting):
                self.assertEqual(set(ways(self.run_parts([(3, [setting])], FIRST)).values()), {(0, 0, 2)})

    def test_off_is_off(self):
        said = carried(self.run_parts([(2, ["WEFT_SAME_HOST=off"])], FIRST, program=MESSAGES))
        self.assertEqual(said, {0: (0, 0), 1: (0, 0)})

    def test_when_a_rank_that_exchanges_messages_is_killed_the_job_ends_and_nothing_is_left(self):
        for seed in range(FIRST, FIRST + SEEDS):
            choice = random.Random(seed)
            with self.subTest(seed=seed):
                self.kill_in(choice, self.start(4, stock.workspace_file(MESSAGES), str(seed), "1000000"), "messages", 4)

    def test_random_operations_with_all_on_one_host(self):
        for seed in range(FIRST, FIRST + SEEDS):
            with self.subTest(seed=seed):
                self.run_parts([(2 + seed % 4, [])], seed)

    def test_random_operations_with_some_ranks_elsewhere(self):
        for seed in range(FIRST, FIRST + SEEDS):
            choice = random.Random(seed)
            parts = [(choice.randint(1, 2), ["WEFT_SAME_HOST=" + choice.choice(["auto", "off"])]) for _ in range(3)]
            parts.insert(choice.randrange(4), (1, ["WEFT_SAME_HOST=off"]))
            with self.subTest(seed=seed, parts=parts):
                output = self.run_parts(parts, seed)
                here = sum(ranks for ranks, settings in parts if settings == ["WEFT_SAME_HOST=auto"])
                everyone = sum(ranks for ranks, _ in parts)
                for rank, counts in ways(output).items():
                    self.assertIn(counts, [(here - 1, 0, everyone - here), (0, 0, everyone - 1)], output)

    def test_a_rank_that_may_not_make_a_file_of_that_length_is_reached_otherwise(self):
        if self.sanitizer == "tsan":
            self.skipTest("ThreadSanitizer itself does not start where files may not be long")
        random = stock.workspace_file(RANDOM)
        limited = ["-n", "1", random, "3", "6", ":", "-n", "2", "sh", "-c", f"ulimit -f 1; exec {random} 3 6"]
        elsewhere = [":", "-n", "1", "env", "WEFT_SAME_HOST=rings", random, "3", "6"]
        # What all have in common is there already; with a rank that is not in it each makes a file. Shared windows are one of the first rank's.
        for words, expected in (limited, {rank: (2, 0, 0) for rank in range(3)}), (
                limited + elsewhere, {0: (0, 0, 3), 1: (1, 0, 2), 2: (1, 0, 2), 3: (0, 0, 3)}):
            job = self.launch([*self.library.launcher(), *words])
            self.assertTrue(job.wait(60 * self.slow), job.output)
            self.assertEqual(job.status, 0, job.output)
            self.assertEqual(ways(job.output), expected, job.output)

    def test_the_first_rank_may_not_make_a_file_of_the_length_of_a_shared_window(self):
        if self.sanitizer == "tsan":
            self.skipTest("ThreadSanitizer itself does not start where files may not be long")
        words = [*self.library.launcher(), "-n", "1", "sh", "-c", f"ulimit -f 1; exec {stock.workspace_file(RANDOM)} 3 6", ":", "-n", "1",
                 stock.workspace_file(RANDOM), "3", "6"]
        job = self.launch(words)
        self.assertTrue(job.wait(60 * self.slow), job.output)
        self.assertRegex(job.output, "bytes of shared memory: File too large|MPI_ERR_RMA_SHARED")  # whichever rank says it first
        self.assertNotIn("SIGXFSZ", job.output)

    def test_a_thread_that_waits_does_not_keep_one_whose_wait_is_over_from_going_on(self):
        """Also where ranks are so many for the processor that none hands it on."""
        program = stock.workspace_file("tests/mpi/scale/beside_collectives")
        for ranks, prefix in (2, []), (9, ON_ONE_PROCESSOR):
            words = [*prefix, *self.library.launcher(), "-n", str(ranks), program, "100" if ranks == 2 else "20"]
            job = self.launch(words)
            self.assertTrue(job.wait(60 * self.slow), f"still runs; output:\n{job.output}\n{job.stacks()}")
            self.assertEqual(job.status, 0, job.output)

    def polling(self, *masks):
        """How long a wait of each rank polls before it sleeps, us; a rank for each set of processors that it may run on."""
        words = list(self.library.launcher())
        for number, mask in enumerate(masks):
            words += [":"] * (number > 0) + ["-n", "1", "taskset", "-c", mask, "env", "WEFT_TRACE=1", stock.workspace_file(MESSAGES), "1", "1"]
        job = self.launch(words)
        self.assertTrue(job.wait(60 * self.slow), job.output)
        self.assertEqual(job.status, 0, job.output)
        return sorted(map(int, re.findall(r"a wait polls for (\d+) us", job.output)))

    def test_ranks_poll_where_each_has_a_processor_of_its_own(self):
        first, second, *_ = [*map(str, sorted(os.sched_getaffinity(0))), ""]
        self.assertEqual(self.polling(first, first), [0, 0])
        if not second:
            self.skipTest("there is one processor")
        self.assertEqual(self.polling(first, second), [1000, 1000])
        self.assertEqual(self.polling(first, first, second), [0, 0, 1000])
        self.assertEqual(self.polling(first, f"{first},{second}"), [0, 1000])

    def test_many_ranks_hand_a_processor_on_where_that_reaches_the_others(self):
        try:
            with open("/proc/sys/kernel/sched_autogroup_enabled") as file:
                between_sessions = file.read().strip() == "0"
        except FileNotFoundError:
            between_sessions = True
        words = ["env", "WEFT_TRACE=1", stock.workspace_file(MESSAGES), "1", "1"]
        # The ranks of both have a session each; 9 are more for the one processor than hand it on there.
        for launcher in mpi.weft_mpiexec(), mpi.hydra():
            for size, hand_on in (8, True), (9, between_sessions):
                job = self.launch([*ON_ONE_PROCESSOR, *launcher, "-n", str(size), *words])
                self.assertTrue(job.wait(60 * self.slow), job.output)
                self.assertEqual(job.status, 0, job.output)
                self.assertEqual(job.output.count("before it sleeps, and yields the processor meanwhile"), size if hand_on else 0, job.output)

    def restricted(self, *calls, error="EPERM"):
        """In front of a rank's program: there these system calls fail, as in containers and under policies that forbid them."""
        return ["python3", stock.workspace_file("tests/stock/restricted.py"), error, ",".join(calls)]

    def test_where_ranks_may_not_read_the_memory_of_others_it_goes_through_the_segment(self):
        """Yama's ptrace_scope 1 and 2, and filters of containers; for some ranks, and for all."""
        neither = self.restricted("process_vm_readv", "process_vm_writev")
        for parts in [(3, neither)], [(1, neither), (2, [])]:
            said = carried(self.run_parts(parts, FIRST, program=MESSAGES))
            self.assertTrue(all(host > 0 for host, _ in said.values()), said)
            for rank in range(parts[0][0]):
                self.assertEqual(said[rank][1], 0, said)
            self.run_parts(parts, FIRST)

    def test_windows_of_ranks_that_may_be_read_and_not_written_to(self):
        self.run_parts([(3, self.restricted("process_vm_writev"))], FIRST)

    def test_a_rank_without_memory_files_and_one_that_cannot_watch_processes(self):
        for calls in ["memfd_create"], ["pidfd_open"]:
            for parts in [(1, self.restricted(*calls, error="ENOSYS")), (2, [])], [(2, []), (1, self.restricted(*calls, error="ENOSYS"))]:
                with self.subTest(calls=calls, first=parts[0][0]):
                    self.run_parts(parts, FIRST, program=MESSAGES)
                    self.run_parts(parts, FIRST)

    def test_when_a_rank_is_killed_the_job_ends_and_nothing_is_left(self):
        for seed in range(FIRST, FIRST + SEEDS):
            choice = random.Random(seed)
            with self.subTest(seed=seed):
                self.kill_in(choice, self.start(3, stock.workspace_file(RANDOM), str(seed), "1000000"), "random_operations", 3)

    def ranks_of(self, job, name):
        found = []
        for pid in job.members():
            try:
                with open(f"/proc/{pid}/cmdline") as file:
                    if name in file.read().split("\0")[0]:
                        found.append(pid)
            except FileNotFoundError:
                continue  # it ended
        return sorted(found)

    def kill_in(self, choice, job, name, count):
        deadline = time.monotonic() + BOUND * self.slow
        while len(ranks := self.ranks_of(job, name)) < count:
            self.assertLess(time.monotonic(), deadline, f"{len(ranks)} ranks: {job.output}")
            self.assertIsNone(job.status, job.output)
            time.sleep(mpi.POLL_SECONDS)
        time.sleep(choice.uniform(0, 0.5))  # somewhere in the middle
        self.assertIsNone(job.status, job.output)
        os.kill(choice.choice(ranks), signal.SIGKILL)
        self.assertTrue(job.wait(BOUND * self.slow), f"still runs:\n{job.output}\n{job.stacks()}")
        self.assertNotEqual(job.status, 0, job.output)
        self.assertEqual(job.left_behind(), [], job.output)

    def outlive(self, how, program="mortal_windows"):
        """What ranks 0, 2 and 3 say of it when rank 1 dies. Each rank has a shell, so that no launcher notices."""
        words = [*mpi.hydra(), "-n", "4", "sh", "-c", '"$@"; sleep 60', "sh", stock.workspace_file("tests/mpi/scale/" + program), how]
        job = self.launch(words)
        deadline = time.monotonic() + BOUND * self.slow
        while True:
            said = {int(rank): text for rank, text in re.findall(r"^rank (\d): (.*)$", job.output, re.M)}
            if sorted(said) == [0, 2, 3]:
                return said
            if time.monotonic() > deadline:
                self.fail(f"not all were heard of:\n{job.output}\n{job.stacks()}")
            time.sleep(mpi.POLL_SECONDS)

    def test_the_lock_of_a_dead_rank_goes_to_those_that_wait(self):
        for text in self.outlive("lock").values():
            self.assertIn("fine", text)

    def test_who_dies_in_an_accumulate_stops_nobody(self):
        for text in self.outlive("accumulate").values():
            self.assertIn("fine", text)

    def test_a_fence_with_a_dead_rank_is_an_error(self):
        for text in self.outlive("fence").values():
            self.assertIn("an error", text)

    def test_a_fence_of_many_ends_when_the_launcher_reports_a_death(self):
        # Rank 2 itself looks at rank 1 last, at one rank after the other: after 13 pauses of 20 to 160 ms.
        output = self.run_job(16, stock.workspace_file("tests/mpi/scale/mortal_windows"), "together", launcher_options=["-disable-auto-cleanup"], status=None)
        self.assertEqual(len(re.findall("MPI_Win_fence: an error: MPIX_ERR_PROC_FAILED", output)), 15, output)
        seconds = re.search(r"rank 2 had the error after ([\d.]+) s", output)
        self.assertLess(float(seconds[1]), 1, output)

    def test_a_fence_is_an_error_if_a_rank_dies_that_others_left_small_pieces_to(self):
        for text in self.outlive("pieces").values():
            self.assertIn("an error", text)

    def test_an_epoch_with_a_dead_rank_is_an_error(self):
        for text in self.outlive("wait").values():
            self.assertIn("an error", text)

    def test_a_job_ends_when_another_process_writes_into_the_memory_of_the_host(self):
        ended = 0
        for seed in range(FIRST, FIRST + 12):
            job = self.start(3, stock.workspace_file("tests/mpi/scale/overwritten_memory"), str(seed))
            if not job.wait(BOUND * self.slow):
                self.fail(f"seed {seed}: the job still runs; output:\n{job.output}\n{job.stacks()}")
            ended += job.status != 0
        self.assertGreater(ended, 0, "nothing that mattered was overwritten")

    def test_a_counter_or_a_lock_that_another_process_moves_by_one_is_an_error(self):
        for ranks, how in (2, "fence"), (12, "fence"), (12, "arrived"), (2, "lock"):
            with self.subTest(ranks=ranks, how=how):
                output = self.run_job(ranks, stock.workspace_file("tests/mpi/scale/moved_counters"), how, status=None)
                self.assertIn("overwritten", output)

    def when_another_process_has_the_number_of_a_dead_rank(self, how, *arguments, **settings):
        """(error class, seconds, bytes of that process that were changed)."""
        output = self.run_job(2, stock.workspace_file("tests/mpi/scale/recycled_number"), how, *arguments,
                              launcher_options=["-disable-auto-cleanup"], status=None, **settings)
        if "cannot choose a number" in output:
            self.skipTest("only root may choose the number of a process")
        said = re.search(r"class (\d+) \(gone is (\d+)\) after ([\d.]+) s", output)
        changed = re.search(r"the other process: (\d+) bytes changed", output)
        self.assertTrue(said and changed, output)
        return said.group(1) == said.group(2), float(said.group(3)), int(changed.group(1))

    def test_a_put_to_a_dead_rank_does_not_reach_the_process_that_has_its_number(self):
        for setting in "auto", "off":
            for how in "put", "get":
                for length in 8, 65536:
                    with self.subTest(setting=setting, how=how, length=length):
                        gone, _, changed = self.when_another_process_has_the_number_of_a_dead_rank(how, str(length), WEFT_SAME_HOST=setting)
                        self.assertTrue(gone)
                        self.assertEqual(changed, 0)

    def test_the_lock_of_a_dead_rank_is_free_though_another_process_has_its_number(self):
        # The other process lives for as long as the lock is waited for: only an end of the wait lets it go.
        _, _, changed = self.when_another_process_has_the_number_of_a_dead_rank("lock")
        self.assertEqual(changed, 0)

    def test_the_memory_of_communicators_of_a_dead_rank_is_given_back(self):
        output = self.run_job(4, stock.workspace_file("tests/mpi/scale/mortal_communicators"), launcher_options=["-disable-auto-cleanup"], status=None)
        had, stay = map(int, re.search(r"rank 0: (\d+) pages, (-?\d+) stay", output).groups())
        self.assertGreaterEqual(had, 2 * 40)  # of each communicator, a page for its head and one for its words
        self.assertLess(stay, had // 4, output)

    def test_a_collective_in_which_a_rank_dies_is_an_error_at_all(self):
        for seed in range(FIRST, FIRST + SEEDS):
            with self.subTest(seed=seed):
                for text in self.outlive(str(seed), "mortal_collectives").values():
                    self.assertEqual(text.strip(), "an error")


if __name__ == "__main__":
    stock.main()
