#ifndef IMPI_RUN_MPIEXEC_CHILD_H_
#define IMPI_RUN_MPIEXEC_CHILD_H_

#include <sys/types.h>

#include <string>

#include "base/result.h"

namespace weft::impi {

// fork(2), for a child that becomes mpiexec. Returns its id, and 0 in the child, which gets SIGTERM when this process dies, has no signal blocked, and none of
// the keys to the server: the programs that mpiexec starts do not need them, and their environment crosses the network in clear. Why not: a sentence.
Result<pid_t, std::string> ForkForMpiexec();

// Of what waitpid(2) says: as a shell has it, 128 + N if signal N ended the process.
int ExitStatusOf(int wait_status);

}  // namespace weft::impi

#endif  // IMPI_RUN_MPIEXEC_CHILD_H_
