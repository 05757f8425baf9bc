"""mpicc, mpicxx and mpifort of an installed Weft."""

import os
import subprocess

import launch
import stock

C = """
#include <mpi.h>
#include <stdio.h>
int main(int argc, char** argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  printf("rank %d of %d\\n", rank, size);
  MPI_Finalize();
  return 0;
}
"""
FORTRAN = """
program hello
  {use}
  implicit none
  {include}
  integer :: rank, size, ierror, total
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierror)
  call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
  if (total /= size * (size - 1) / 2) call MPI_Abort(MPI_COMM_WORLD, 3, ierror)
  write (*, '(a,i0,a,i0)') 'rank ', rank, ' of ', size
  call MPI_Finalize(ierror)
end program
"""


def wrapper(name):
    return stock.workspace_file(f"tools/stage/bin/{name}")


def show(name, *words, **settings):
    done = subprocess.run([wrapper(name), *words], capture_output=True, text=True, env={**os.environ, **settings}, timeout=60)
    return done.returncode, done.stdout.split(), done.stderr


class Commands(launch.LaunchTest):

    def test_show_names_compiler_header_and_library(self):
        for name, compiler in (("mpicc", "gcc"), ("mpicxx", "g++"), ("mpic++", "g++"), ("mpifort", "gfortran")):
            status, words, err = show(name, "-show", "x", "-o", "y")
            self.assertEqual((status, words[0]), (0, compiler), err)
            self.assertIn("-lmpich", words)
            self.assertTrue(any(word.startswith("-I") for word in words))
        _, words, _ = show("mpicc", "-show", "x.c")
        include = next(word[2:] for word in words if word.startswith("-I"))
        library = next(word[2:] for word in words if word.startswith("-L"))
        self.assertTrue(os.path.exists(include + "/mpi.h"), include)
        self.assertTrue(os.path.exists(library + "/libmpich.so.12"), library)

    def test_nothing_is_linked_when_only_compiling(self):
        for option in ("-c", "-E", "-S"):
            self.assertNotIn("-lmpich", show("mpicc", "-show", option, "x.c")[1])

    def test_compile_and_link_info(self):
        compile_info = show("mpicc", "-compile_info")[1]
        link_info = show("mpicc", "-link_info")[1]
        self.assertTrue(compile_info[1].startswith("-I") and "-lmpich" not in compile_info)
        self.assertTrue(link_info[1].startswith("-L") and "-lmpich" in link_info)

    def test_another_compiler_by_variable_or_option(self):
        self.assertEqual(show("mpicc", "-show", "x.c", MPICH_CC="clang -O3")[1][:2], ["clang", "-O3"])
        self.assertEqual(show("mpicc", "-show", "x.c", MPI_CC="tcc")[1][0], "tcc")
        self.assertEqual(show("mpicxx", "-show", "x.cc", MPICH_CXX="clang++")[1][0], "clang++")
        self.assertEqual(show("mpifort", "-show", "x.f90", MPICH_FC="gfortran-12")[1][0], "gfortran-12")
        self.assertEqual(show("mpicc", "-cc=clang", "-show", "x.c", MPICH_CC="gcc")[1][0], "clang")

    def test_itself_as_compiler_is_refused(self):
        status, _, err = show("mpicc", "-c", "x.c", MPICH_CC=wrapper("mpicc"))
        self.assertEqual(status, 1)
        self.assertIn("called by mpicc as its compiler", err)

    def test_a_missing_fortran_compiler_is_named_with_its_package(self):
        status, _, err = show("mpifort", "-c", "x.f90", MPICH_FC="no-such-gfortran")
        self.assertEqual(status, 1)
        self.assertIn("no-such-gfortran is not installed", err)
        self.assertIn("apt-get install gfortran", err)


class Programs(launch.LaunchTest):

    def environment(self, **settings):
        return super().environment(**{**stock.sanitizer_settings(), **settings})

    def expect_hello(self, program, size):
        """It runs on the library that it was linked with, without any variable."""
        loaded = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        self.assertIn(os.path.join(os.path.dirname(wrapper("mpicc")), "../lib/weft/libmpich.so.12").split("/")[-1], loaded)
        done = self.succeed("-n", size, program)
        self.assertEqual(sorted(done.out.splitlines()), [f"rank {r} of {size}" for r in range(size)], done)

    def test_c(self):
        program = self.compile(C, compiler=wrapper("mpicc"))
        self.assertIn("stage/lib/weft/libmpich.so.12", subprocess.run(["ldd", program], capture_output=True, text=True).stdout)
        self.expect_hello(program, 3)
        self.assertEqual(self.succeed(launcher=program).out, "rank 0 of 1\n")

    def test_an_abort_with_0_is_no_failure(self):
        program = self.compile(C.replace("printf", "if (rank == 0) MPI_Abort(MPI_COMM_WORLD, 0);\n  printf"), compiler=wrapper("mpicc"))
        done = self.run_job("-n", 2, program)
        self.assertEqual(done.status, 0, done)
        self.assertIn("aborted the job with code 0", done.err)

    def test_cxx(self):
        self.expect_hello(self.compile(C, compiler=wrapper("mpicxx"), suffix=".cc"), 2)

    def test_fortran_in_its_three_ways(self):
        for use, include in (("use mpi", ""), ("use mpi_f08", ""), ("", "include 'mpif.h'")):
            text = FORTRAN.format(use=use, include=include)
            self.expect_hello(self.compile(text, compiler=wrapper("mpifort"), suffix=".f90"), 2)

    def test_the_installed_mpiexec_starts_them(self):
        program = self.compile(C, compiler=wrapper("mpicc"))
        done = self.succeed("-n", 4, program, launcher=wrapper("mpiexec"))
        self.assertEqual(len(done.out.splitlines()), 4)

    def test_weft_run_puts_the_library_under_a_program_of_the_distribution(self):
        program = self.compile(C)  # with MPICH
        maps = "import subprocess,sys; sys.exit(subprocess.call(['ldd', sys.argv[1]]))"
        done = self.succeed("run", "python3", "-c", maps, program, launcher=stock.weft())
        self.assertIn("stage/lib/weft/libmpich.so.12", done.out)
        done = self.succeed("run", wrapper("mpiexec"), "-n", "3", program, launcher=stock.weft())
        self.assertEqual(sorted(done.out.splitlines()), [f"rank {r} of 3" for r in range(3)], done)


if __name__ == "__main__":
    launch.main()
