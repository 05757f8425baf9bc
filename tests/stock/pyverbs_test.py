"""pyverbs, rdma-core's Python binding as the distribution packages it, on Weft. (Its tests: rdma_core_test.py.)"""

import stock

PERSONAS = ("iwarp", "roce")


class Pyverbs(stock.StockTest):

    def program(self, arguments):
        return f"/usr/bin/python3 {stock.workspace_file('tests/stock/pyverbs_program.py')} {arguments}"

    def test_lists_devices_and_makes_objects(self):
        for persona, line in (("iwarp", "weft_lo 4 1"), ("roce", "weft_lo 1 0")):
            out = self.run_one(self.program("objects"), WEFT_PERSONA=persona)
            self.expect(line in out.splitlines(), f"no '{line}'")

    def test_verbs_before_and_after_a_fork(self):
        if self.sanitizer == "tsan":
            self.skipTest("ThreadSanitizer starts no thread after a fork of a process with threads")
        for persona in PERSONAS:
            self.expect("ok" in self.run_one(self.program("fork"), WEFT_PERSONA=persona), "it did not end well")

    def test_connection_of_two_processes(self):
        for persona in PERSONAS:
            settings = {"WEFT_PERSONA": persona}
            _, client = self.run_pair(self.program("serve {port}"), self.program("connect {port}"), server_settings=settings,
                                      client_settings=settings)
            self.expect("world" in client, "no answer came")


class Modules(stock.StockTest):

    def test_every_module_loads_with_all_symbols_bound(self):
        program = ("import importlib, pkgutil, pyverbs; "
                   "names = [m.name for m in pkgutil.walk_packages(pyverbs.__path__, 'pyverbs.') if not m.ispkg]; "
                   "[importlib.import_module(n) for n in names]; print(len(names))")
        out = self.run_one(["/usr/bin/python3", "-c", program], LD_BIND_NOW="1")
        self.expect(int(out.split()[0]) >= 20, "there are only few modules")


if __name__ == "__main__":
    stock.main()
