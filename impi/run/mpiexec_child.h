#ifndef IMPI_RUN_MPIEXEC_CHILD_H_
#define IMPI_RUN_MPIEXEC_CHILD_H_

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"

namespace weft::impi {

// fork(2), for a child that becomes mpiexec. Returns its id, and 0 in the child, which gets SIGTERM when this process dies, has no signal blocked, and none of
// the keys to the server: the programs that mpiexec starts do not need them, and their environment crosses the network in clear. Why not: a sentence.
Result<pid_t, std::string> ForkForMpiexec();

// Of what waitpid(2) says: as a shell has it, 128 + N if signal N ended the process.
int ExitStatusOf(int wait_status);

// A pipe by which such a child tells which of its processes have ended, or were lost with their host, before it began to end them itself. Neither end blocks: if
// nobody reads 16,384 numbers, the next ones are lost.
struct GonePipe {
  Descriptor reads, writes;

  // Why not: a sentence.
  static Result<GonePipe, std::string> Open();
  // For pmi::Options::on_gone. `fd`: the child's end.
  static std::function<void(const std::vector<int>&)> Teller(int fd);
  // Adds the numbers that have come. False: the child has closed its end.
  static bool Read(int fd, std::vector<int>* gone);
};

}  // namespace weft::impi

#endif  // IMPI_RUN_MPIEXEC_CHILD_H_
