"""What looks libibverbs up at run time, or binds to its private node: provider libraries, dlopen and dlvsym."""

import glob
import subprocess

import stock

PYTHON = "/usr/bin/python3"
DIRECT_LIBRARIES = ["libmlx4.so.1", "libmlx5.so.1", "libefa.so.1", "libmana.so.1"]


class Providers(stock.StockTest):

    def load(self, library):
        self.run_one([PYTHON, "-c", f"import ctypes; ctypes.CDLL({library!r})"], LD_BIND_NOW="1")

    def test_libraries_that_programs_link_with(self):
        for library in DIRECT_LIBRARIES:
            self.load(library)

    def test_plug_ins_of_the_distributions_libibverbs(self):
        plug_ins = glob.glob("/usr/lib/*/libibverbs/*.so")
        self.expect(plug_ins, "ibverbs-providers is not installed")
        for plug_in in plug_ins:
            self.load(plug_in)


class LookUp(stock.StockTest):

    def run_python(self, program):
        return self.run_one([PYTHON, "-c", "import ctypes, os\n" + program])

    def test_dlopen_by_soname_finds_weft(self):
        out = self.run_python("""
verbs = ctypes.CDLL('libibverbs.so.1')
count = ctypes.c_int()
verbs.ibv_get_device_list.restype = ctypes.c_void_p
assert verbs.ibv_get_device_list(ctypes.byref(count)) and count.value > 0
print([line.split()[-1] for line in open('/proc/self/maps') if 'libibverbs.so' in line][0])""")
        self.expect("/lib/weft/libibverbs.so.1" in out, "another libibverbs was loaded")

    def test_dlvsym_finds_the_versions(self):
        out = self.run_python("""
libc = ctypes.CDLL(None)
libc.dlvsym.restype = ctypes.c_void_p
libc.dlvsym.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
verbs, cm = ctypes.CDLL('libibverbs.so.1'), ctypes.CDLL('librdmacm.so.1')
for library, symbol, version in ((verbs, b'ibv_get_device_list', b'IBVERBS_1.1'), (verbs, b'ibv_get_device_list', b'IBVERBS_1.0'),
                                 (verbs, b'ibv_reg_mr_iova2', b'IBVERBS_1.8'), (verbs, b'ibv_query_gid_type', b'IBVERBS_PRIVATE_34'),
                                 (cm, b'rdma_create_id', b'RDMACM_1.0'), (cm, b'rdma_establish', b'RDMACM_1.2')):
    if not libc.dlvsym(library._handle, symbol, version): print('missing', symbol, version)
assert not libc.dlvsym(verbs._handle, b'ibv_get_device_list', b'IBVERBS_9.9')
print('done')""")
        self.expect(out == "done\n", "versions are missing")

    def test_closed_and_opened_again_it_works(self):
        self.run_python("""
import _ctypes
for _ in range(3):
    verbs = ctypes.CDLL('libibverbs.so.1')
    verbs.ibv_get_device_list.restype = verbs.ibv_open_device.restype = ctypes.c_void_p
    devices = ctypes.cast(verbs.ibv_get_device_list(None), ctypes.POINTER(ctypes.c_void_p))
    context = verbs.ibv_open_device(ctypes.c_void_p(devices[0]))
    assert context and verbs.ibv_close_device(ctypes.c_void_p(context)) == 0
    _ctypes.dlclose(verbs._handle)""")


class Children(stock.StockTest):

    def test_what_a_program_executes_is_on_weft_too(self):
        # perl, since shells do not bear ThreadSanitizer's runtime
        out = self.run_one(["perl", "-e", "system('ibv_devices') == 0 or die; exec 'env', 'ibv_devices'"])
        self.expect(out.count("weft_lo") == 2, "the child sees other devices")


class Fabrics(stock.StockTest):
    """What other libraries make of the devices."""

    def test_ucx_offers_its_verbs_transports(self):
        out = self.run_one("ucx_info -d", WEFT_PERSONA="roce", UCX_LOG_LEVEL="fatal")
        for transport in ("rc_verbs", "ud_verbs"):
            self.expect(f"#      Transport: {transport}\n#         Device: weft_lo:1\n" in out, f"no {transport}")

    def test_ucx_carries_messages_over_ud_verbs(self):
        settings = {"WEFT_PERSONA": "roce", "UCX_TLS": "ud_verbs,self", "UCX_NET_DEVICES": "weft_lo:1"}
        for operation in ("tag_lat", "tag_bw"):
            _, client = self.run_pair("ucx_perftest -p {port}", f"ucx_perftest -p {{port}} 127.0.0.1 -t {operation} -n 200 -w 10",
                                      server_settings=settings, client_settings=settings)
            self.expect("Final:" in client, f"no result of {operation}")

    def test_ucx_wants_the_device_nodes(self):
        out = self.run_one("ucx_info -d", WEFT_PERSONA="roce", WEFT_PATHS="off", UCX_LOG_LEVEL="fatal")
        self.expect("rc_verbs" not in out, "UCX no longer looks at /dev/infiniband: a test of the preload is gone")

    def test_libfabric_lists_the_verbs_provider_of_an_address(self):
        address = first_address()
        if address is None:
            self.skipTest("libfabric takes no loopback device, and there is no other interface with an IPv4 address")
        out = self.run_one(f"fi_info -p verbs -s {address}", WEFT_PERSONA="roce")
        for wanted in ("provider: verbs\n", "type: FI_EP_MSG", "protocol: FI_PROTO_RDMA_CM_IB_RC", "provider: verbs;ofi_rxm"):
            self.expect(wanted in out, f"no '{wanted}'")


def first_address():
    shown = subprocess.run(["ip", "-4", "-o", "addr", "show", "up", "scope", "global"], capture_output=True, text=True).stdout
    for line in shown.splitlines():
        return line.split()[3].split("/")[0]
    return None


if __name__ == "__main__":
    stock.main()
