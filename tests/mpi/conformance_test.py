"""Runs conformance programs: conformance_test.py LIBRARY PROGRAM:RANKS[,RANKS...]...   (a case for each program and number of ranks).

LIBRARY is one of mpi.LIBRARIES. Bazel's shards share the cases; --test_filter chooses some by name.
"""

import os
import sys

import mpi
import stock


class Conformance(mpi.MpiTest):
    pass


def add_case(program, ranks):
    def case(self):
        self.run_job(ranks, stock.workspace_file(f"tests/mpi/{program}"))
    name = os.path.basename(program)
    setattr(Conformance, f"test_{name}_at_{ranks}_rank{'s' if ranks != 1 else ''}", case)


def main():
    Conformance.library = mpi.LIBRARIES[sys.argv[1]]
    Conformance.__qualname__ = Conformance.library.__name__
    cases = [(program, int(ranks)) for program, counts in (word.split(":") for word in sys.argv[2:])
             for ranks in counts.split(",")]
    shards, shard = int(os.environ.get("TEST_TOTAL_SHARDS", 1)), int(os.environ.get("TEST_SHARD_INDEX", 0))
    if "TEST_SHARD_STATUS_FILE" in os.environ:
        open(os.environ["TEST_SHARD_STATUS_FILE"], "w").close()
    for case in cases[shard::shards]:
        add_case(*case)
    chosen = os.environ.get("TESTBRIDGE_TEST_ONLY")
    sys.argv[1:] = ["-k", chosen] if chosen else []
    stock.main()


if __name__ == "__main__":
    main()
