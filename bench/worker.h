#ifndef BENCH_WORKER_H_
#define BENCH_WORKER_H_

#include <string>

namespace weft::bench {

// A process that is one end of a measurement. It executes the orders of the driver at the other end of `control_fd`,
// and answers each with "ok" and values, or with "error" and a text:
//   listen SHAPE -> port      accept | connect SHAPE, port -> elapsed      close
//   run JOB, role -> SAMPLE   idle seconds -> SAMPLE                       memory -> resident (bytes)
// `kind` is "raw" or "verbs". Returns the exit status when the driver is gone, or after an error.
int RunWorker(const std::string& kind, int control_fd);

}  // namespace weft::bench

#endif  // BENCH_WORKER_H_
