"""The captures are what Slurm says today: conversations of rank 0 that are the same each time, held against what is recorded."""

import os
import re
import tempfile

import slurm
import stock


def normal(text):
    """Without what differs from one recording to the next: the job's number, the lengths that follow from it, the host's addresses."""
    text = re.sub(r"^([<>]) {0,6}\d{1,6} {0,5}(?=cmd=)", r"\1 LENGTH ", text, flags=re.MULTILINE)
    text = re.sub(r"\b\d+\.0\b", "JOB", text)
    return re.sub(r"value=\(\w[\w.-]*,\(\w+,IP_V.*?;$", "value=ADDRESSES;", text, flags=re.MULTILINE)


class Captures(slurm.SlurmTest):
    maxDiff = None

    def test_slurm_says_what_is_recorded(self):
        for scenario in ("pmi1_world", "pmi1_names", "pmi2_world", "pmi2_names"):
            with self.subTest(scenario), tempfile.TemporaryDirectory() as directory:
                done = self.srun(stock.workspace_file("tests/slurm/captures/converse.py"), scenario, directory)
                self.assertEqual(done.status, 0, done)
                name = f"{scenario}-rank0.txt"
                with open(os.path.join(directory, name)) as now, open(stock.workspace_file(f"tests/slurm/captures/{name}")) as recorded:
                    self.assertEqual(normal(now.read()), normal(recorded.read()))

    def test_no_plugin_leaves_a_rank_without_a_sign_of_slurm(self):
        for plugin, wanted in (("pmi2", r"^PMI_FD=\d+$"), ("none", r"^SLURM_PROCID=1$"), ("pmix", r"^PMIX_RANK=1$")):
            done = self.succeed("srun", f"--mpi={plugin}", "-N", 1, "-n", 2, "env")
            self.assertRegex(done.output, re.compile(wanted, re.MULTILINE))
            self.assertEqual(done.output.count("SLURM_NTASKS=2"), 2, done)
            self.assertEqual("PMI_FD=" in done.output, plugin == "pmi2", done)


if __name__ == "__main__":
    slurm.main()
