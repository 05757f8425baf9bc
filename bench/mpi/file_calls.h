#ifndef BENCH_MPI_FILE_CALLS_H_
#define BENCH_MPI_FILE_CALLS_H_

namespace mpi_bench {

// Seconds that all threads of this process have spent in system calls that read and write files: pread, pwrite, preadv
// and pwritev. This program puts its own functions in front of the C library's (it is linked with -rdynamic), so that
// an MPI library calls them.
double SecondsInFileCalls();

}  // namespace mpi_bench

#endif  // BENCH_MPI_FILE_CALLS_H_
