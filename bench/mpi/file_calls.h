#ifndef BENCH_MPI_FILE_CALLS_H_
#define BENCH_MPI_FILE_CALLS_H_

namespace mpi_bench {

// How long this process has been in system calls that read and write files, in all its threads: pread, pwrite, preadv and pwritev, which this program
// has in front of the C library's (it is linked with -rdynamic), so that an MPI library calls these. Seconds.
double SecondsInFileCalls();

}  // namespace mpi_bench

#endif  // BENCH_MPI_FILE_CALLS_H_
