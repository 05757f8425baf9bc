#ifndef PMI_CLIENT_OWN_LAUNCHER_H_
#define PMI_CLIENT_OWN_LAUNCHER_H_

#include <string>

#include "base/result.h"
#include "pmi/error.h"

namespace weft::pmi {

// Starts an mpiexec for this process, which was not started by a launcher. Returns a connected descriptor that speaks
// PMI; to that mpiexec, this process is the only rank of job 0. The mpiexec is no child of this process. It ends when
// the descriptor is closed and all spawned jobs have ended. It writes to this process's output and reads no input.
//
//   this process    listens at NAME of the abstract namespace and starts mpiexec --singleton NAME
//   mpiexec         starts a relay (pmi/launch/relay.h) as its only rank, which connects to NAME; only a process of the
//                   same user is accepted
Result<int, PmiError> StartOwnLauncher();

// The mpiexec to use: the value of WEFT_PMI_MPIEXEC, or ../../bin/mpiexec (in the Debian package mpiexec.weft) relative
// to the directory that this library was loaded from. An error names the file that does not exist.
Result<std::string, PmiError> FindMpiexec();

}  // namespace weft::pmi

#endif  // PMI_CLIENT_OWN_LAUNCHER_H_
