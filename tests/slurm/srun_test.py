"""Weft's ranks started by srun --mpi=pmi2, alone and inside allocations."""

import os
import shlex
import tempfile

import slurm
import stock


def ranks(what="talk"):
    return slurm.on_weft("tests/slurm/ranks", what)


def wanted(*nodes):
    return [f"rank {rank} of {len(nodes)} on {node}: talk" for rank, node in enumerate(nodes)]


class Srun(slurm.SlurmTest):

    def expect_ranks(self, done, *nodes):
        self.assertEqual((done.status, done.lines), (0, wanted(*nodes)), done)

    def test_two_ranks_on_each_of_two_nodes(self):
        self.expect_ranks(self.srun(*ranks()), "node1", "node1", "node2", "node2")

    def test_ranks_in_turn_and_unequal_numbers_of_them(self):
        self.expect_ranks(self.srun("--distribution=cyclic", *ranks()), "node1", "node2", "node1", "node2")
        self.expect_ranks(self.in_cluster("srun", "--mpi=pmi2", "-N", 2, "-n", 4, *ranks()), "node1", "node1", "node1", "node2")

    def test_both_versions_of_pmi(self):
        for version in "1", "2":
            self.expect_ranks(self.srun("env", f"WEFT_PMI={version}", *ranks()), "node1", "node1", "node2", "node2")

    def test_one_rank_and_one_node(self):
        self.expect_ranks(self.in_cluster("srun", "--mpi=pmi2", "-n", 1, *ranks()), "node1")
        self.expect_ranks(self.in_cluster("srun", "--mpi=pmi2", "-N", 1, "-n", 3, *ranks()), "node1", "node1", "node1")

    def test_abort_ends_the_step_and_is_told(self):
        done = self.srun(*ranks("abort"))
        self.assertNotEqual(done.status, 0, done)
        self.assertIn("MPI_Abort was called with error code 7", done.output)

    def test_a_rank_that_dies_is_named_by_the_others(self):
        done = self.srun(*ranks("die"))
        self.assertNotEqual(done.status, 0, done)
        self.assertRegex(done.output, "MPIX_ERR_PROC_FAILED: a process that takes part has failed; rank [0-9] of MPI_COMM_WORLD died")
        self.assertIn("node1: task 1: Exited with exit code 5", done.output)

    def test_a_rank_that_starts_the_program_again_speaks_for_itself_alone(self):
        program = shlex.join(ranks())
        done = self.srun("sh", "-c", f"{program} && env -u PMI_FD WEFT_PMI=alone {program}")
        self.assertEqual((done.status, done.output.count("of 4"), done.output.count("rank 0 of 1")), (0, 4, 4), done)


class Allocations(slurm.SlurmTest):

    def test_srun_inside_salloc(self):
        done = self.succeed("salloc", "--quiet", "--nodes=2", "--ntasks-per-node=2", "srun", "--mpi=pmi2", *ranks())
        self.assertEqual(done.lines, wanted("node1", "node1", "node2", "node2"), done)

    def test_srun_inside_sbatch_twice(self):
        with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as directory:
            script, output = os.path.join(directory, "job"), os.path.join(directory, "output")
            with open(script, "w") as file:
                file.write(f"#!/bin/sh\nsrun --mpi=pmi2 {shlex.join(ranks())}\nsrun --mpi=pmi2 -n 2 {shlex.join(ranks())}\n")
            self.succeed("sbatch", "--quiet", "--wait", "--nodes=2", "--ntasks-per-node=2", f"--output={output}", script)
            with open(output) as file:
                text = file.read()
        self.assertEqual((text.count("of 4"), text.count("of 2")), (4, 2), text)

    def mpiexec(self, *words, allocation=("--nodes=2", "--ntasks-per-node=2"), **options):
        return self.in_cluster("salloc", "--quiet", *allocation, stock.workspace_file("pmi/mpiexec"), *words, **options)

    def expect_hosts(self, done, *nodes):
        self.assertEqual((done.status, done.lines), (0, sorted(f"[{rank}] {node}" for rank, node in enumerate(nodes))), done)

    # The step's task, mpiexec's proxy, knows on which node it is; its ranks get mpiexec's environment.
    NODE = ("sh", "-c", "tr '\\0' '\\n' < /proc/$PPID/environ | sed -n 's/^SLURMD_NODENAME=//p'")

    def test_mpiexec_takes_hosts_and_numbers_from_the_allocation(self):
        self.expect_hosts(self.mpiexec("-l", *self.NODE), "node1", "node1", "node2", "node2")
        self.expect_hosts(self.mpiexec("-l", "-n", 3, *self.NODE), "node1", "node1", "node2")
        self.expect_hosts(self.mpiexec("-l", *self.NODE, allocation=("--nodes=1", "--ntasks=3")), "node1", "node1", "node1")
        self.expect_hosts(self.mpiexec("-l", "-host", "node2,node1", *self.NODE), "node2", "node1")
        self.expect_hosts(self.mpiexec("-l", "-ppn", 1, "-n", 2, *self.NODE), "node1", "node2")

    def test_ranks_of_mpiexec_in_an_allocation_talk_and_fail_as_elsewhere(self):
        done = self.mpiexec("-l", *ranks())
        self.assertEqual((done.status, done.lines), (0, [f"[{rank}] rank {rank} of 4 on no node: talk" for rank in range(4)]), done)
        done = self.mpiexec(*ranks("abort"))
        self.assertIn("rank 1 on node1", done.output)
        self.assertEqual(done.status, 7, done)

    def test_mpiexec_stays_here_when_it_is_told_to(self):
        done = self.mpiexec("-launcher", "fork", "-n", 2, *ranks())
        self.assertEqual((done.status, done.output.count("of 2")), (0, 2), done)

    def test_mpiexec_in_a_batch_script(self):
        with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as directory:
            script, output = os.path.join(directory, "job"), os.path.join(directory, "output")
            with open(script, "w") as file:
                file.write(f"#!/bin/sh\n{stock.workspace_file('pmi/mpiexec')} {shlex.join(ranks())}\n")
            self.succeed("sbatch", "--quiet", "--wait", "--nodes=2", "--ntasks-per-node=2", f"--output={output}", script)
            with open(output) as file:
                text = file.read()
        self.assertEqual(text.count("of 4"), 4, text)

    def test_ranks_of_a_cluster_without_pmi2_come_to_a_server(self):
        with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as directory:
            script, secret, environment = (os.path.join(directory, name) for name in ("job", "secret", "environment"))
            with open(os.open(secret, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
                file.write("open sesame\n")
            with open(script, "w") as file:
                file.write(f"""{stock.workspace_file("pmi/mpiexec")} -kvs-server -n 4 -secret-file {secret} -socktype OpenSSL >{environment} 2>/dev/null &
until grep -qs PMI_JOBID {environment}; do sleep 0.1; done
srun --mpi=none env $(cat {environment}) sh -c 'PMI_ID=$SLURM_PROCID exec {shlex.join(ranks())}' && wait $!
""")
            self.expect_talk(self.in_cluster("salloc", "--quiet", "--nodes=2", "--ntasks-per-node=2", "sh", script))

    def expect_talk(self, done):
        self.assertEqual((done.status, done.lines), (0, wanted("node1", "node1", "node2", "node2")), done)

    def test_a_variable_that_is_damaged_is_named(self):
        done = self.in_cluster("salloc", "--quiet", "--nodes=1", "env", "SLURM_JOB_NODELIST=node[1-", stock.workspace_file("pmi/mpiexec"), "true")
        self.assertEqual(done.status, 2, done)
        self.assertIn("mpiexec: SLURM_JOB_NODELIST: ", done.output)

    def test_ranks_that_slurm_does_not_introduce_to_one_another(self):
        done = self.in_cluster("srun", "--mpi=none", "-n", 2, *ranks())
        self.assertEqual((done.status, done.output.count("rank 0 of 1")), (0, 3), done)  # the ranks say it, and the warning
        self.assertEqual(done.output.count("srun started 2 tasks that do not know each other"), 1, done)
        done = self.in_cluster("srun", "--mpi=pmix", "-n", 2, *ranks())
        self.assertNotEqual(done.status, 0, done)
        self.assertIn("started through PMIx", done.output)


if __name__ == "__main__":
    slurm.main()
