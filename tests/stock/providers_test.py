"""What looks libibverbs up at run time, or binds to its private node: provider libraries, dlopen and dlvsym."""

import glob

import stock

PYTHON = "/usr/bin/python3"
# Those that programs link with as well; which of them there are, the release decides.
DIRECT_LIBRARIES = ["libmlx4.so.1", "libmlx5.so.1", "libefa.so.1", "libmana.so.1", "libhns.so.1", "libionic.so.1"]


class Providers(stock.StockTest):

    def load(self, library):
        self.run_one([PYTHON, "-c", f"import ctypes; ctypes.CDLL({library!r})"], LD_BIND_NOW="1")

    def test_libraries_that_programs_link_with(self):
        there = [name for name in DIRECT_LIBRARIES if glob.glob("/usr/lib/*/" + name)]
        self.expect(len(there) >= 4, f"only {there} of ibverbs-providers")
        for library in there:
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


if __name__ == "__main__":
    stock.main()
