"""dapltest, of the Direct Access Programming Library: its providers over rdma_cm (cma) and over sockets and ibv_modify_qp (scm)."""

import os
import tempfile

import stock
from namespaces import NamespaceTest

# A provider's name, library and interface adapter. The loopback interface is none of cma's, as with an adapter: rdma_cm names no device for it.
ADAPTERS = '''
cma u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "w0 0" ""
scm u2.0 nonthreadsafe default libdaploscm.so.2 dapl.2.0 "weft_w0 1" ""
'''
PORT = 45278  # dapltest's default


class Dapl(NamespaceTest):

    def setUp(self):
        super().setUp()
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self._settings = {"DAT_OVERRIDE": os.path.join(place.name, "dat.conf")}
        with open(self._settings["DAT_OVERRIDE"], "w") as file:
            file.write(ADAPTERS)
        if self.sanitizer == "tsan":
            # dapltest and libdaploscm destroy mutexes that another thread of theirs has used, and libdaploscm closes sockets so. Weft destroys none.
            suppressions = os.path.join(place.name, "suppressions")
            with open(suppressions, "w") as file:
                file.write("race:pthread_mutex_destroy\nrace:libdaploscm.so\n")
            self._settings["TSAN_OPTIONS"] = f"{os.environ.get('TSAN_OPTIONS', '')}:suppressions={suppressions}"

    def transfer(self, provider, load, **settings):
        settings = {**self._settings, **settings}
        one, two = self.pair()
        server = self.start_in(one, f"dapltest -T S -D {provider}", **settings)
        self.await_condition(lambda: "Service Point Ready" in server.output or not server.running(), "the server")
        client = self.start_in(two, f"dapltest -T T -s 10.9.0.1 -D {provider} {load}", **settings)
        self.await_success(client)
        self.await_success(self.start_in(two, f"dapltest -T Q -s 10.9.0.1 -D {provider}", **settings), server)
        self.expect("Total WQE" in client.output and "rror" not in client.output + server.output, "it did not go well")

    # Two threads of two endpoints each: Sends, RDMA Writes and Reads both ways, of which each receiver checks the data.
    TRANSACTIONS = "-t 2 -w 2 -i 300 -V client SR 1024 server SR 1024 client RW 65536 server RR 65536 client RR 4096 server RW 4096 server SR 256 client SR 256"

    def test_transactions_over_rdma_cm(self):
        self.transfer("cma", self.TRANSACTIONS)

    def test_transactions_in_the_iwarp_persona(self):
        self.transfer("cma", self.TRANSACTIONS, WEFT_PERSONA="iwarp")

    def test_transactions_over_sctp(self):
        self.transfer("cma", self.TRANSACTIONS, WEFT_LLP="sctp")

    def test_transactions_over_queue_pairs_that_connect_themselves(self):
        self.transfer("scm", self.TRANSACTIONS)


if __name__ == "__main__":
    stock.main()
