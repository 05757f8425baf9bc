"""ibv_devices and ibv_devinfo, as the distribution ships them, see Weft's devices."""

import stock


class Devices(stock.StockTest):

    def test_ibv_devices_lists_the_loopback_device(self):
        out = self.run_one("ibv_devices")
        self.expect("weft_lo" in out, "weft_lo is not listed")

    def test_ibv_devinfo_shows_an_active_iwarp_port(self):
        out = self.run_one("ibv_devinfo -v -d weft_lo", WEFT_PERSONA="iwarp")
        for wanted in ("hca_id:\tweft_lo", "iWARP", "PORT_ACTIVE", "max_qp:", "max_mr_size:", "GID["):
            self.expect(wanted in out, f"no '{wanted}'")
        self.expect("0000:0000:0000:0000:0000:ffff:7f00:0001" in out, "the GID of 127.0.0.1 is missing")

    def test_ibv_devinfo_shows_a_roce_port_in_that_persona(self):
        out = self.run_one("ibv_devinfo -v -d weft_lo", WEFT_PERSONA="roce")
        for wanted in ("InfiniBand (0)", "Ethernet", "PORT_ACTIVE", "LINK_UP",
                       "GID[  0]:\t\t::ffff:127.0.0.1, RoCE v2"):
            self.expect(wanted in out, f"no '{wanted}'")

    def test_ibv_devinfo_shows_every_device_without_an_option(self):
        listed = [line.split()[0] for line in self.run_one("ibv_devices").splitlines() if "weft_" in line]
        out = self.run_one("ibv_devinfo -v")
        for name in listed:
            self.expect(f"hca_id:\t{name}" in out, f"{name} is missing")

    def test_ibstat_and_ibstatus_read_the_same_from_sys(self):
        out = self.run_one("ibstat weft_lo 1", WEFT_PERSONA="roce")
        for wanted in ("State: Active", "Physical state: LinkUp", "Link layer: Ethernet", "Capability mask: 0x04010000"):
            self.expect(wanted in out, f"no '{wanted}'")
        out = self.run_one("ibstatus weft_lo", LD_PRELOAD="")  # a shell script
        self.expect("4: ACTIVE" in out and "0000:0000:0000:0000:0000:ffff:7f00:0001" in out, "another port")

    def test_only_the_interfaces_of_weft_devices_become_devices(self):
        out = self.run_one("ibv_devices", WEFT_DEVICES="lo")
        names = [line.split()[0] for line in out.splitlines() if "weft_" in line]
        self.expect(names == ["weft_lo"], f"{names} are listed")


if __name__ == "__main__":
    stock.main()
