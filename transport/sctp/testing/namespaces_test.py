"""SCTP between two hosts with two links. Needs root, and says so without."""

import re
import unittest

import cut_transfers
import transfer_ends
import two_links


class TwoLinksTest(unittest.TestCase):

    def setUp(self):
        obstacle = two_links.why_not()
        if obstacle is not None:
            self.skipTest(obstacle)

    def _links(self, rate=None):
        links = two_links.TwoLinks(rate)
        self.addCleanup(links.close)
        return links

    def _transfer(self, seconds, *options):
        links = self._links()
        _, client = transfer_ends.start(links, 65536, f"seconds={seconds}", *options)
        output = client.communicate(timeout=60)[0]
        self.assertEqual(client.returncode, 0, output)
        self.assertRegex(output, r"all \d+ arrived and are right", output)
        print(output)
        return output

    def _assert_both_carried(self, output):
        carried = [self._megabytes(output, address) for address in two_links.TWO]
        self.assertGreater(min(carried), sum(carried) / 20, output)

    @staticmethod
    def _megabytes(output, address):
        return float(re.search(rf"path {re.escape(address)} .*: ([\d.]+) MB out", output)[1])

    def test_one_path_at_a_time_is_the_primary(self):
        output = self._transfer(2)
        # What times out, on a machine that is busy, is sent again on the other.
        self.assertLess(10 * self._megabytes(output, two_links.TWO[1]), self._megabytes(output, two_links.TWO[0]), output)
        for address in two_links.TWO:
            self.assertRegex(output, rf"path {re.escape(address)} active( primary)?: ", output)

    def test_concurrent_transfer_uses_both(self):
        for option in ("cmt", "pf"):
            with self.subTest(option):
                self._assert_both_carried(self._transfer(2, option))

    def test_natively_too(self):
        self._assert_both_carried(self._transfer(2, "cmt", "native"))

    def test_a_link_that_is_cut_and_comes_back_is_nothing_but_time(self):
        done = cut_transfers.run_all(self._links("1gbit"), cut_transfers.MODES, times=2, message=65536, count=2**28, first_seed=cut_transfers.any_seed())
        print(cut_transfers.table(done))
        for mode, transfers in done.items():
            for transfer in transfers:
                self.assertTrue(transfer.ok, str(transfer))
                # A path that fails is found by the first timeout, or in plain concurrent transfer by the fourth.
                self.assertLess(transfer.stall, 10 if mode == "cmt" else 2, str(transfer))


if __name__ == "__main__":
    unittest.main(verbosity=2)
