"""Run by rdma_core_test.py under `weft run`: rdma_core_program.py TESTS DEVICE EXCEPT MODULE... runs rdma-core's own tests, which lie in
the folder TESTS, on the device's first GID, but for those whose names match the regular expression EXCEPT, and prints a line of JSON for
each: [name, "ok" | "skipped" | "failed", why]."""

import importlib
import json
import os
import re
import sys
import unittest


class Lines(unittest.TestResult):

    def say(self, test, outcome, why=""):
        print(json.dumps([".".join(test.id().split(".")[-2:]), outcome, str(why)]), flush=True)

    def addSuccess(self, test):
        self.say(test, "ok")

    def addSkip(self, test, reason):
        self.say(test, "skipped", reason)

    def addFailure(self, test, err):
        self.say(test, "failed", self._exc_info_to_string(err, test))

    addError = addFailure

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.addFailure(test, err)


def interface_of(device, port=None):
    return os.listdir(f"/sys/class/infiniband/{device}/device/net")[0]


def main():
    folder, device, leave_out, *modules = sys.argv[1:]
    sys.path[:0] = [folder, folder + "/tests"]
    from args_parser import parser
    parser.args = {"dev": device, "port": 1, "gid": 0, "pci_dev": None, "gpu": 0, "gtt": False, "list_tests": False, "verbosity": None}
    # Those of rdma-core 56 ask the kernel by netlink, through `rdma link`, which Weft's devices are unknown to; those of 44 look where this does.
    importlib.import_module("tests.base").RDMATestCase.get_net_name = staticmethod(interface_of)
    suite = unittest.TestSuite()
    for module in modules:
        for case in unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module("tests." + module)):
            suite.addTests(test for test in case if not re.search(leave_out, test.id().rsplit(".", 1)[1]))
    suite.run(Lines())


if __name__ == "__main__":
    main()
