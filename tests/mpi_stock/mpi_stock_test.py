"""The distribution's own MPI programs, and programs built with its MPICH wrappers, on MPICH and on Weft: mpi_stock_test.py LIBRARY.

The binaries are the same on both; on Weft LD_LIBRARY_PATH puts its libmpich.so.12 in MPICH's place. How each is started:
  NPmpich2 -u 16384 -n 10 [-a -2 | -s | -S | -i | ...]   two ranks; writes np.out. Debian's has no one-sided modes (it imports no MPI_Put).
  scalapack/mpich-tests/x*                                2 and 4 ranks, in a directory with the *.dat files
  mpif.h, use mpi, use mpi_f08, C++, HDF5, coarrays       built here by mpifort.mpich, mpicxx.mpich, mpicc.mpich
  ph5example, adios_global, adios_read_global             examples of HDF5 and ADIOS, built here; bp2bp.mpich, a tool of ADIOS
  OpenCoarrays-*-tests/*                                  4 images, prebuilt
"""

import glob
import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile

import mpi
import stock

SCALAPACK = "/usr/lib/x86_64-linux-gnu/scalapack/mpich-tests"
COARRAYS = "/usr/lib/x86_64-linux-gnu/open-coarrays/mpich"
HDF5 = "/usr/lib/x86_64-linux-gnu/hdf5/mpich"
# Debian has the library as an archive, and of what it needs no packages for builds with MPICH.
ADIOS = ["/usr/lib/x86_64-linux-gnu/adios/mpich/libadios.a", "-l:libnetcdf_mpi.so.19", "-lhdf5_mpich_hl", "-lhdf5_mpich", "-l:liblz4.so.1",
         "-l:libblosc.so.1", "-l:libbz2.so.1.0", "-l:libsz.so.2", "-lz", "-lm"]
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


class StockTest(mpi.MpiTest):

    def setUp(self):
        self.directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.directory)

    def build(self, compiler, source, *options):
        path = source if os.path.isabs(source) else stock.workspace_file(f"tests/mpi_stock/{source}")
        program = os.path.join(self.directory, os.path.splitext(os.path.basename(source))[0])
        command = [compiler, "-O1", path, "-o", program, *options]
        done = subprocess.run(command, cwd=self.directory, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, " ".join(command) + "\n" + done.stderr)
        return program

    def run_here(self, ranks, program, *arguments, **options):
        return self.run_job(ranks, program, *arguments, directory=self.directory, **options)

    def run_apart(self, ranks, program):
        """What each rank says, which it says in pieces that would get between those of others."""
        self.run_here(ranks, "sh", "-c", 'exec "$0" > said.$PMI_RANK', program)
        outputs = []
        for rank in range(ranks):
            with open(os.path.join(self.directory, f"said.{rank}")) as file:
                outputs.append(file.read())
        return outputs

    def with_preloaded(self, library):
        """In front of a command for each rank. Behind what is preloaded anyway: a sanitizer comes first."""
        libraries = [self.library.settings().get("LD_PRELOAD"), stock.workspace_file(library)]
        return ["env", "LD_PRELOAD=" + ":".join(filter(None, libraries))]

    def expect_good(self, program, wanted):
        for ranks in (1, 2, 4):
            self.assertIn(wanted, self.run_here(ranks, program))


class NetPipe(StockTest):
    """Left out: -z asks for messages from rank -1, which is MPI_PROC_NULL in MPICH's ABI; -B fails on MPICH too."""

    def netpipe(self, *options):
        output = self.run_here(2, "NPmpich2", "-u", "16384", "-n", "10", "-o", "np.out", *options)
        with open(os.path.join(self.directory, "np.out")) as rows:
            self.assertGreater(len(rows.readlines()), 20, output)
        return output

    def test_default(self):
        self.netpipe()

    def test_preposted_receives(self):
        self.netpipe("-a")

    def test_both_directions(self):
        self.netpipe("-a", "-2")

    def test_streaming(self):
        self.netpipe("-s")

    def test_synchronous_sends(self):
        self.netpipe("-S")

    def test_offsets(self):
        self.netpipe("-O", "1,3")

    def test_integrity(self):
        for options in ((), ("-a",), ("-S",)):
            output = self.netpipe("-i", *options)
            self.assertGreater(output.count("Integrity check passed"), 20, output)


class ScaLapack(StockTest):

    def scalapack(self, program, ranks):
        for file in glob.glob(f"{SCALAPACK}/*.dat"):
            shutil.copy(file, self.directory)
        output = self.run_here(ranks, f"{SCALAPACK}/{program}", timeout=240, **ONE_THREAD)
        passed = re.search(r"(\d+) tests completed and passed", output)
        failed = re.search(r"(\d+) tests completed and failed", output)
        self.assertTrue(passed and int(passed.group(1)) > 0, output)
        self.assertTrue(failed and int(failed.group(1)) == 0, output)


def add_scalapack():
    for program in ("xdlu", "xzllt", "xdqr", "xcls", "xdinv", "xsnep", "xdhrd", "xdbrd", "xzdblu"):
        for ranks in (2, 4):
            if ranks == 4 and program in ("xzllt", "xcls"):
                continue  # the same calls as others, and ten times as many
            def case(self, program=program, ranks=ranks):
                self.scalapack(program, ranks)
            setattr(ScaLapack, f"test_{program}_at_{ranks}_ranks", case)


class Languages(StockTest):

    def test_mpif_h(self):
        self.expect_good(self.build("mpifort.mpich", "with_mpif.f", "-fallow-argument-mismatch", "-w"), "mpif.h is good")

    def test_use_mpi(self):
        self.expect_good(self.build("mpifort.mpich", "with_mpi.f90", "-fallow-argument-mismatch", "-w"), "use mpi is good")

    def test_use_mpi_f08(self):
        self.expect_good(self.build("mpifort.mpich", "with_mpi_f08.f90"), "use mpi_f08 is good")

    def test_cxx(self):
        self.expect_good(self.build("mpicxx.mpich", "with_cxx.cc"), "C++ is good")

    def test_hdf5_without_mpi_io(self):
        if self.sanitizer:
            self.skipTest("the distribution's libp11-kit, which libhdf5_mpich brings, hangs at exit under AddressSanitizer, on MPICH as well")
        self.expect_good(self.build("mpicc.mpich", "with_hdf5.c", f"-I{HDF5}/include", "-lhdf5_mpich"), "HDF5: 0 wrong")


class Files(StockTest):

    def setUp(self):
        super().setUp()
        self.without_sanitizer = lambda library: self.sanitizer and self.skipTest(
            f"the distribution's libp11-kit, which {library} brings, hangs at exit under AddressSanitizer, on MPICH as well")

    def unpack(self, package, pattern):
        """An example of the distribution, as it is."""
        names = glob.glob(f"/usr/share/doc/{package}/{pattern}")
        self.assertTrue(names, f"{package} is missing: as root, tools/setup test")
        for name in names:
            with (gzip.open if name.endswith(".gz") else open)(name, "rt") as example:
                text = example.read()
            with open(os.path.join(self.directory, os.path.basename(name).removesuffix(".gz")), "w") as copy:
                copy.write(text)

    def build_here(self, source, *options):
        return self.build("mpicc.mpich", os.path.join(self.directory, source), "-w", *options)

    def test_mpif_h(self):
        self.expect_good(self.build("mpifort.mpich", "with_files.F90", "-fallow-argument-mismatch", "-w"), "files are good")

    def test_use_mpi(self):
        self.expect_good(self.build("mpifort.mpich", "with_files.F90", "-DUSE_MPI", "-fallow-argument-mismatch", "-w"), "files are good")

    def test_use_mpi_f08(self):
        self.expect_good(self.build("mpifort.mpich", "with_files_f08.f90"), "files are good")

    def test_parallel_hdf5(self):
        self.without_sanitizer("libhdf5_mpich")
        self.expect_good(self.build("mpicc.mpich", "with_parallel_hdf5.c", f"-I{HDF5}/include", "-lhdf5_mpich"), "Parallel HDF5: 0 wrong")

    def test_the_parallel_example_of_hdf5(self):
        self.without_sanitizer("libhdf5_mpich")
        self.unpack("libhdf5-doc", "examples/ph5example.c.gz")
        self.expect_good(self.build_here("ph5example.c", f"-I{HDF5}/include", "-lhdf5_mpich"), "PHDF5 tests finished with no errors")

    def test_examples_and_tools_of_adios(self):
        self.without_sanitizer("libhdf5_mpich")
        self.unpack("libadios-examples", "examples/C/global-array/*")
        writer, reader = (self.build_here(name, *ADIOS) for name in ("adios_global.c", "adios_read_global.c"))
        for method in "MPI", "MPI_AGGREGATE":
            self.choose_method(method)
            for ranks in 2, 4:
                self.run_here(ranks, writer)
                outputs = self.run_apart(ranks, reader)
                for row in range(ranks):  # whoever has it, and where it stands among the labels
                    numbers = r"\s+".join(str(10 * row + column) for column in range(10))
                    self.assertTrue(any(re.search(rf"(?<!\d){numbers}\n", output) for output in outputs), outputs)
            if method == "MPI":
                # Its tool copies what is no array, on MPICH too.
                self.run_here(2, "bp2bp.mpich", "adios_global.bp", "copy.bp", "20", "20", "MPI")
                self.assertEqual(self.scalars("copy.bp"), {"NX": 10, "size": ranks, "rank": 0})

    def choose_method(self, method):
        """In the example's configuration, which has the others' parameters."""
        path = os.path.join(self.directory, "adios_global.xml")
        with open(path) as file:
            text = re.sub(r'<method group="temperature".*?(/>|</method>)\n', "", file.read(), count=1)
        options = "num_aggregators=2;num_ost=2" if method == "MPI_AGGREGATE" else ""
        with open(path, "w") as file:
            file.write(text.replace("<buffer", f'<method group="temperature" method="{method}">{options}</method>\n  <buffer', 1))

    def scalars(self, name):
        listing = subprocess.run(["bpls.mpich", "-l", name], cwd=self.directory, capture_output=True, text=True, check=True).stdout
        return {key: int(value) for key, value in re.findall(r"^\s*integer\s+(\w+)\s+scalar = (-?\d+)", listing, re.M)}


class Coarrays(StockTest):

    def test_a_program_of_ones_own(self):
        program = self.build("mpifort.mpich", "coarray.f90", "-fcoarray=lib", "-lcaf_mpich")
        for images in (1, 2, 4):
            self.assertIn("coarrays are good", self.run_here(images, program))


# Programs that find wrong data on MPICH 4.0.2 itself, every time: its Gets may come after MPI_Win_flush_local and MPI_Win_unlock.
WRONG_ON_MPICH = {"strided_sendget", "whole_get_array", "coarray_distributed_transpose", "teams_coarray_get"}

# Take half of the time of all, and more than a minute on a busy machine; who started them makes no difference to what they do, so that
# one launcher is enough.
LONG = {"send_array", "coarray_distributed_transpose"}


# Programs in which each image changes a neighbour's coarray without waiting until that image has given it its initial value, which it does once
# the windows are made: where one image is late there (50 ms suffice), all runs fail on MPICH and on Weft alike, by the initial value that comes after the
# change. Preloaded, together.c has the images wait for one another once, before the first Get; then none may fail.
RACES = {"increment_my_neighbor"}


def add_coarrays(library):
    """Left out: those that need 8 images or more, and get_array, which does not end within a minute on MPICH either."""
    for name in ("co_broadcast_test", "co_max_test", "co_min_test", "co_reduce_test", "co_sum_test", "send_array",
                 "strided_get", "strided_sendget", "atomics", "syncall", "syncimages", "whole_get_array", "get_with_vector_index",
                 "send_with_vector_index", "allocatable_p2p_event_post", "coarray_distributed_transpose", "increment_my_neighbor",
                 "register_alloc_comp_1", "teams_coarray_get"):
        if name in {"mpich": WRONG_ON_MPICH, "weft_under_hydra": LONG}.get(library, ()):
            continue
        def case(self, name=name):
            programs = glob.glob(f"{COARRAYS}/bin/OpenCoarrays-*-tests/{name}")
            self.assertEqual(len(programs), 1, name)
            command = [*(self.with_preloaded("tests/mpi_stock/libtogether.so") if name in RACES else []), programs[0]]
            output = self.run_here(4, *command, timeout=240 if name in LONG else mpi.TIMEOUT)
            self.assertNotRegex(output.lower(), "fail|error")
        setattr(Coarrays, f"test_{name.replace('-', '_')}", case)


if __name__ == "__main__":
    chosen = sys.argv.pop(1)
    StockTest.library = mpi.LIBRARIES[chosen]
    add_scalapack()
    add_coarrays(chosen)
    stock.main()
