"""What carries messages (WEFT_MPI_LLP): what is refused, and how."""

import socket
import tempfile

import mpi
import stock

PROGRAM = "tests/mpi/pt2pt/order"


class Wires(mpi.MpiTest):
    library = mpi.WeftUnderMpiexec

    def refused(self, ranks, **settings):
        job = self.start(ranks, stock.workspace_file(PROGRAM), **settings)
        self.assertTrue(job.wait(mpi.TIMEOUT * self.slow), job.output)
        self.assertNotEqual(job.status, 0)
        return job.output

    def test_a_wire_that_there_is_not_is_named(self):
        for ranks in 1, 2:
            self.assertIn("WEFT_MPI_LLP='stcp' is neither tcp nor sctp", self.refused(ranks, WEFT_MPI_LLP="stcp"))

    def test_the_default_is_tcp_by_name_too(self):
        for wire in "tcp", "":
            self.run_job(2, stock.workspace_file(PROGRAM), WEFT_MPI_LLP=wire)

    def test_a_wrong_setting_of_sctp_is_named(self):
        self.assertIn("WEFT_SCTP_STREAMS", self.refused(2, WEFT_MPI_LLP="sctp", WEFT_SCTP_STREAMS="many"))

    def test_an_address_that_is_not_this_hosts_is_named(self):
        self.assertIn("192.0.2.77", self.refused(2, WEFT_MPI_LLP="sctp", WEFT_SCTP_ADDRESSES="192.0.2.77"))

    def test_settings_of_sctp_hold(self):
        self.run_job(4, stock.workspace_file(PROGRAM), WEFT_MPI_LLP="sctp", WEFT_SCTP_STREAMS="2", WEFT_SCTP_ADDRESSES="127.0.0.1",
                     WEFT_SCTP_CMT="pf", WEFT_SCTP_PMTU="1500")

    def interface_file(self, text):
        file = tempfile.NamedTemporaryFile("w", suffix=".interfaces")
        self.addCleanup(file.close)
        file.write(text)
        file.flush()
        return file.name

    def test_a_file_says_the_addresses_of_each_host(self):
        name = self.interface_file(f"# one path\n{socket.gethostname()} 127.0.0.1\nanother-host 192.0.2.77 # not ours\n")
        self.run_job(2, stock.workspace_file(PROGRAM), WEFT_MPI_LLP="sctp", WEFT_SCTP_INTERFACES=name)

    def test_what_is_wrong_in_the_file_is_named(self):
        for text, error in ((f"{socket.gethostname()} 127.0.0.1\nanother eth0\n", ":2: 'eth0' is not a numeric address"),
                            ("another-host 192.0.2.77\n", "no line for this host")):
            name = self.interface_file(text)
            output = self.refused(2, WEFT_MPI_LLP="sctp", WEFT_SCTP_INTERFACES=name)
            self.assertIn(name, output)
            self.assertIn(error, output)


if __name__ == "__main__":
    stock.main()
