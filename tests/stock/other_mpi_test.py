"""The distribution's MPICH and Open MPI with their messages and one-sided operations over Weft, through UCX and through libfabric.

The ranks are on one host, which either library would serve by shared memory: the settings forbid it, and Weft's statistics must show that
the data went over its queue pairs.
"""

import os
import re
import shutil
import subprocess
import tempfile

import stock
from namespaces import NamespaceTest

OVER_CONNECTIONS = {"UCX_TLS": "rc_v,self", "UCX_NET_DEVICES": "weft_lo:1"}
OVER_DATAGRAMS = {"UCX_TLS": "ud_v,self", "UCX_NET_DEVICES": "weft_lo:1"}
OVER_ALL = {"UCX_TLS": "ib,self"}
TWO_SIDED_BYTES, ONE_SIDED_BYTES = 10 << 20, 2_000_000  # that each of the ranks receives


class MpiTest(NamespaceTest):
    """`mpi_program` built with `compiler`, two ranks."""

    compiler = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if cls.sanitizer == "tsan":
            raise stock.unittest.SkipTest("the libraries' own threads synchronise by what ThreadSanitizer does not see in them")
        cls.directory = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.directory)
        source = stock.workspace_file("tests/stock/mpi_program.c")
        subprocess.run([cls.compiler, "-O1", source, "-o", cls.program()], check=True)

    @classmethod
    def program(cls):
        return os.path.join(cls.directory, "mpi_program")

    def settings(self):
        # Open MPI's sockets have their names' length limited; a test's own directory may have too long a name.
        return {"WEFT_STATS": "1", "TMPDIR": self.directory, "HOME": self.directory, **stock.ucx_settings()}

    def check(self, process, kind, least):
        self.await_success(process)
        self.expect("right\n" in process.output, "the program did not get to its end")
        self.expect(process.output.count("weft: statistics of mpi_program ") == 2, "not both ranks used Weft")
        # The ranks' lines may be mixed. What a rank reads out of the other's memory was received, and nobody sent it.
        received = sum(int(n) for n in re.findall(rf"weft: +qp \S+ {kind} .* bytes sent, (\d+) received", process.output))
        self.expect(received >= 2 * least, f"{kind} queue pairs received {received} bytes, expected {2 * least}")


class Mpich(MpiTest):
    """Debian's is built for UCX."""

    compiler = "mpicc.mpich"

    def over_ucx(self, what, kind, least, settings):
        # `weft run` prefers what is installed with Weft, its own MPI library too (docs/supported.md, "Programs").
        mpich = subprocess.run(["gcc", "-print-file-name=libmpich.so.12"], capture_output=True, text=True, check=True).stdout.strip()
        preload = ":".join(filter(None, [stock.sanitizer_settings().get("LD_PRELOAD"), mpich]))
        command = f"mpiexec.hydra -n 2 {self.program()} {what}"
        self.check(self.start(command, MPIR_CVAR_NOLOCAL=1, LD_PRELOAD=preload, **self.settings(), **settings), kind, least)

    def test_messages(self):
        self.over_ucx("two-sided", "RC", TWO_SIDED_BYTES, OVER_CONNECTIONS)

    def test_one_sided_operations(self):
        self.over_ucx("one-sided", "RC", ONE_SIDED_BYTES, OVER_CONNECTIONS)

    def test_messages_over_datagrams(self):
        self.over_ucx("two-sided", "UD", TWO_SIDED_BYTES, OVER_DATAGRAMS)

    def test_one_sided_operations_over_all_transports(self):
        self.over_ucx("one-sided", "RC", ONE_SIDED_BYTES, OVER_ALL)


class OpenMpi(MpiTest):

    compiler = "mpicc.openmpi"

    def command(self, parameters, what):
        options = " ".join(f"--mca {name} {value}" for name, value in parameters.items())
        return f"mpirun.openmpi --allow-run-as-root --oversubscribe -n 2 {options} {self.program()} {what}"

    def over_ucx(self, what, least):
        parameters = {"pml": "ucx", "osc": "ucx", "btl": "self", "opal_common_ucx_tls": "any", "opal_common_ucx_devices": "any"}
        self.check(self.start(self.command(parameters, what), **self.settings(), **OVER_CONNECTIONS), "RC", least)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        info = subprocess.run(["ompi_info"], capture_output=True, text=True, check=True).stdout
        # Open MPI 5 has no one-sided operations by messages any more, and its launcher takes no loopback interface.
        cls.is_before_5 = re.search(r"MCA osc: pt2pt ", info) is not None

    def over_libfabric(self, what, least):
        one, _ = self.pair()  # for an interface that is not the loopback
        parameters = {"pml": "cm", "mtl": "ofi", "mtl_ofi_provider_include": "verbs;ofi_rxm", "btl": "self"}
        if self.is_before_5:
            parameters |= {"osc": "pt2pt", "oob_tcp_if_include": "lo"}
        self.check(self.start_in(one, self.command(parameters, what), **self.settings()), "RC", least)

    def test_messages_over_ucx(self):
        self.over_ucx("two-sided", TWO_SIDED_BYTES)

    def test_one_sided_operations_over_ucx(self):
        self.over_ucx("one-sided", ONE_SIDED_BYTES)

    def test_messages_over_libfabric(self):
        self.over_libfabric("two-sided", TWO_SIDED_BYTES)

    def test_one_sided_operations_over_libfabric(self):
        if not self.is_before_5:
            self.skipTest("Open MPI 5 wants a provider for them that promises more than verbs;ofi_rxm does (docs/supported.md)")
        self.over_libfabric("one-sided", ONE_SIDED_BYTES)


if __name__ == "__main__":
    stock.main()
