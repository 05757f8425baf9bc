"""Two versions of Weft meet: at the ends of a connection, where they work together, and in MPI, which refuses it and says so. The other version is
this build with another version written into it. PACKAGES_OLDER names a real one instead: the PREFIX of an installed Weft, or a folder with its
weft_*.deb and weft-mpi_*.deb. Connections are tried with a real one only."""

import glob
import os
import re
import subprocess
import tempfile

import stock

OLDER = os.environ.get("PACKAGES_OLDER")
# What a process of another version is told. Older ones have words of their own: to them the name of a port is none.
REFUSED = re.compile("need the same (version|one)|is not the name of a port")
REFUSED_WITHIN = 30  # s
UDADDY_PORT = 7174   # it takes no other


class TwoVersions(stock.StockTest):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.own = cls.install("own", "1.2.4")
        if not OLDER:
            cls.other = cls.install("other", "1.2.3")
        elif os.path.exists(OLDER + "/bin/weft"):
            cls.other = OLDER
        else:
            cls.other = cls.folder + "/other/usr"
            for package in glob.glob(OLDER + "/*.deb"):
                subprocess.run(["dpkg-deb", "-x", package, cls.folder + "/other"], check=True)

    @classmethod
    def install(cls, name, version):
        prefix = os.path.join(cls.folder, name)
        os.mkdir(prefix)
        stage = os.path.dirname(os.path.dirname(stock.weft()))
        subprocess.run([stock.workspace_file("tools/install-files"), stage, prefix], check=True, timeout=120, env={**os.environ, "PACKAGE_VERSION": version})
        return prefix

    def ways(self):
        """(prefix, prefix, a name for messages): who waits and who comes."""
        return (self.own, self.other, "the other one comes"), (self.other, self.own, "the other one waits")


class Mpi(TwoVersions):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.program = cls.folder + "/mixed_versions"
        subprocess.run([cls.own + "/bin/mpicc", "-O1", stock.workspace_file("tests/packages/mixed_versions.c"), "-o", cls.program], check=True, timeout=60)

    def words(self, prefix, *arguments):
        """The program on that library."""
        return ["env", f"LD_LIBRARY_PATH={prefix}/lib/weft", self.program, *arguments]

    def need_ports(self):
        """The first Wefts had no dynamic processes, nor what refuses them."""
        asked = self.start(self.words(self.other, "accept"), under_weft=False)
        self.await_condition(lambda: asked.output.startswith("port ") or not asked.running(), "the port's name")
        if "does not have this function yet" in asked.output:
            self.skipTest("that Weft has no MPI_Open_port")
        asked.kill()

    def await_refusal(self, *processes):
        """One of them says why, and all end."""
        self.await_condition(lambda: not any(p.running() for p in processes), "the end", REFUSED_WITHIN)
        self.expect(any(REFUSED.search(p.output) for p in processes), "no process says that the versions differ")
        self.expect(all(p.status != 0 for p in processes), "a process succeeded")

    def test_one_version_meets(self):
        job = self.start([self.own + "/bin/mpiexec", "-n", "2", *self.words(self.own, "job"), ":", "-n", "1", *self.words(self.own, "job")], under_weft=False)
        self.await_success(job)
        self.expect(job.output.count("3 processes met") == 3, "the ranks did not meet")
        job = self.start([self.own + "/bin/mpiexec", "-n", "1", *self.words(self.own, "spawn"), *self.words(self.own, "child")], under_weft=False)
        self.await_success(job)
        self.expect("2 processes met" in job.output, "parent and child did not meet")

    def test_a_job_of_two_versions_is_refused(self):
        for first, second, way in self.ways():
            for settings in ({}, {"WEFT_SAME_HOST": "off"}):
                with self.subTest(way, **settings):
                    self.await_refusal(self.start([self.own + "/bin/mpiexec", "-n", "2", *self.words(first, "job"), ":", "-n", "1", *self.words(second, "job")],
                                                  under_weft=False, **settings))

    def test_a_spawned_job_of_another_version_is_refused(self):
        self.need_ports()
        for parent, child, way in self.ways():
            with self.subTest(way):
                self.await_refusal(self.start([self.own + "/bin/mpiexec", "-n", "1", *self.words(parent, "spawn"), *self.words(child, "child")], under_weft=False))

    def test_a_port_of_another_version_is_refused(self):
        self.need_ports()
        for waits, comes, way in self.ways():
            with self.subTest(way):
                server = self.start(self.words(waits, "accept"), under_weft=False)
                self.await_condition(lambda: re.search(r"^port \S+\n", server.output, re.M) or not server.running(), "the port's name")
                self.expect(server.running(), "no port")
                self.await_refusal(self.start(self.words(comes, "connect", re.search(r"^port (\S+)\n", server.output, re.M)[1]), under_weft=False))
                self.expect(server.running(), "the owner of the port ended")
                server.kill()


class Connections(TwoVersions):
    """Each program, each way round, by each wire."""

    wires = [{}, {"WEFT_SAME_HOST": "off"}, {"WEFT_LLP": "sctp"}]
    personas = ["iwarp", "roce"]

    def setUp(self):
        super().setUp()
        if not OLDER:
            self.skipTest("PACKAGES_OLDER names no older Weft")

    def knows(self, prefix, **settings):
        return subprocess.run([prefix + "/bin/weft", "run", "--", "true"], env=stock.environment(**settings), capture_output=True).returncode == 0

    def pair(self, server, client, listens=stock.is_listening, personas=personas, port=None):
        for persona in personas:
            for wire in self.wires:
                for waits, comes, way in self.ways():
                    with self.subTest(way, persona=persona, **wire):
                        self.run_one_pair(server, client, (waits, comes), listens, {"WEFT_PERSONA": persona}, wire, port or stock.free_port())

    def run_one_pair(self, server, client, prefixes, listens, settings, wire, port):
        # What an older Weft does not know is not for it: for memory on one host it takes two, and SCTP it does not have.
        if wire.get("WEFT_LLP") and not self.knows(self.other, **wire):
            return
        ends = []
        for prefix, command in zip(prefixes, (server, client)):
            known = wire if self.knows(prefix, **wire) else {}
            ends.append(self.start([prefix + "/bin/weft", "run", "--", *command.format(port=port).split()], under_weft=False, **settings, **known))
            if len(ends) == 1:
                self.await_condition(lambda: listens(port) or not ends[0].running(), "a listener", 20)
        self.await_success(*ends)

    def test_rping(self):
        self.pair("rping -s -a 127.0.0.1 -p {port} -C 10 -v -V", "rping -c -a 127.0.0.1 -p {port} -C 10 -v -V")

    def test_perftest(self):
        for program in ("ib_write_bw", "ib_read_bw", "ib_send_bw", "ib_write_lat"):
            self.pair(program + " -R -F -p {port} -n 300", program + " -R -F -p {port} -n 300 127.0.0.1")

    def test_atomics(self):
        self.pair("ib_atomic_bw -R -F -p {port} -n 300", "ib_atomic_bw -R -F -p {port} -n 300 127.0.0.1", personas=["roce"])

    def test_programs_that_connect_their_queue_pairs_themselves(self):
        for command in ("ibv_rc_pingpong -d weft_lo -g 0 -p {port}", "ibv_uc_pingpong -d weft_lo -g 0 -p {port}", "ibv_srq_pingpong -d weft_lo -g 0 -p {port}",
                        "ib_write_bw -F -d weft_lo -x 0 -n 300 -p {port}"):
            self.pair(command, command + " 127.0.0.1", personas=["roce"])

    def test_ucmatose(self):
        self.pair("ucmatose -p {port} -C 100 -S 4096", "ucmatose -s 127.0.0.1 -p {port} -C 100 -S 4096")

    def test_rstream(self):
        self.pair("rstream -p {port} -T b -I 20 -C 3 -S 30000", "rstream -s 127.0.0.1 -p {port} -T b -I 20 -C 3 -S 30000")

    def test_datagrams(self):
        self.pair("udaddy", "udaddy -s 127.0.0.1", stock.has_udp_port, personas=["roce"], port=UDADDY_PORT)


if __name__ == "__main__":
    stock.main()
