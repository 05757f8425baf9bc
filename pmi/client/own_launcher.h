#ifndef PMI_CLIENT_OWN_LAUNCHER_H_
#define PMI_CLIENT_OWN_LAUNCHER_H_

#include <string>

#include "base/result.h"
#include "pmi/error.h"

namespace weft::pmi {

// Starts an mpiexec for this process, which no launcher started: a connected descriptor that speaks PMI, at whose other end it is the one
// rank of job 0. That mpiexec is no child of this process; it ends when the descriptor is closed and all jobs that were spawned have ended.
// Its output is this process's; it reads no input.
//
//   this process    listens at a name of the abstract namespace, mpiexec --singleton NAME
//   mpiexec         has a relay (pmi/launch/relay.h) for its only rank, which comes to NAME: one of the same user
Result<int, PmiError> StartOwnLauncher();

// Which mpiexec that is: what WEFT_PMI_MPIEXEC says, or ../../bin/mpiexec (in the Debian package mpiexec.weft), seen from where this library was loaded from. An error names
// what is not there.
Result<std::string, PmiError> FindMpiexec();

}  // namespace weft::pmi

#endif  // PMI_CLIENT_OWN_LAUNCHER_H_
