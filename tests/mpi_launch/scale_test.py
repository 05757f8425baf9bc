"""How much a start costs: time for many ranks on this machine, messages for many hosts."""

import launch
import start_messages
from start_messages import FLAT, TREE


class Time(launch.LaunchTest):

    def test_64_ranks_start_within_4_seconds(self):
        done = self.succeed("-n", 64, launch.exchange())
        self.assertEqual(len(done.out.splitlines()), 64)
        self.assertLess(done.seconds, 4, done)


class Messages(launch.LaunchTest):
    """Each rank puts one value, which every host needs: its bytes grow with the ranks of the job. What must not is the number of messages that a host
    has to do with, beyond a few for each rank of its own."""

    PER_RANK = 6  # output, its end, and what a host says for each of a few steps
    PER_NEIGHBOUR = 16

    @classmethod
    def setUpClass(cls):
        cls.starts = {}

    def start(self, hosts, ranks, branches):
        key = hosts, ranks, branches
        if key not in self.starts:
            self.starts[key] = start_messages.Start(launch.mpiexec(), launch.exchange(), *key, environment=self.environment())
            print(start_messages.HEADER, *start_messages.rows(self.starts[key]), sep="\n")
        return self.starts[key]

    def test_a_host_without_others_below_it_does_as_much_in_a_job_of_any_size(self):
        small, large = self.start(16, 16, FLAT).roles["leaf"], self.start(64, 16, TREE).roles["leaf"]
        self.assertLessEqual(large.messages, small.messages + 4)
        self.assertLessEqual(large.messages, 16 * self.PER_RANK + self.PER_NEIGHBOUR)

    def test_a_host_with_others_below_it_does_as_much_as_it_has_below_it(self):
        start = self.start(64, 16, TREE)
        inner = start.roles["inner"]
        below = -(-start.hosts // TREE)  # it among them
        self.assertLessEqual(inner.neighbours, below)
        self.assertLessEqual(inner.messages, 2 * below * (16 * self.PER_RANK + self.PER_NEIGHBOUR))

    def test_mpiexec_writes_no_more_than_to_sixteen_and_hears_of_each_rank_a_few_times(self):
        tree, flat = self.start(64, 16, TREE).roles["mpiexec"], self.start(64, 16, FLAT).roles["mpiexec"]
        self.assertEqual((tree.neighbours, flat.neighbours), (16, 64))
        self.assertLessEqual(tree.messages, 64 * (16 * self.PER_RANK + self.PER_NEIGHBOUR))
        self.assertLess(tree.bytes, flat.bytes / 2, "what all put goes to each branch once")

    def test_four_times_the_ranks_are_four_times_the_messages_at_most(self):
        for branches in (TREE, FLAT):
            few, many = self.start(64, 4, branches), self.start(64, 16, branches)
            for name, role in many.roles.items():
                if role.count == 0:
                    continue
                self.assertLessEqual(role.messages, 4 * few.roles[name].messages, (name, branches))
                self.assertLessEqual(role.bytes, 4.5 * few.roles[name].bytes, (name, branches))


if __name__ == "__main__":
    launch.main()
