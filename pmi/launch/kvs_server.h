#ifndef PMI_LAUNCH_KVS_SERVER_H_
#define PMI_LAUNCH_KVS_SERVER_H_

#include <chrono>
#include <optional>
#include <string>

#include "pmi/launch/port_range.h"

namespace weft::pmi {

// `mpiexec -kvs-server`: serves PMI, in both versions, for ranks that another program starts. They connect to a port,
// which is in PMI_PORT, and tell their rank (PMI_ID). Each rank connects once.
struct KvsServerSettings {
  int ranks = 1;
  PortRange ports;                               // to choose one from
  std::string interface;                         // the ranks get its address; empty: the first interface that is up
  std::string secret_file;  // ranks must prove that they know its first line; empty: they are on this host
  bool secured = false;                          // with TLS and that secret: PMI_SOCKTYPE=OpenSSL
  std::optional<std::chrono::seconds> time_out;  // for the whole run
};

// Prints the environment that the ranks need, one NAME=VALUE per line. Serves them until all have finished, one fails,
// or a signal arrives. If a rank closes its connection before it finalizes, all other connections are closed as well.
// Returns the exit status:
//
//   0            all ranks have finalized
//   1            a rank is gone or broke the protocol, or the server could not start; standard error tells which
//   128 + N      signal N ended the server
//   255          the time limit has passed
//   any          the error code of a rank's MPI_Abort
//
// Without a secret it listens on 127.0.0.1 and accepts processes of its own user and of root.
int KvsServerMain(const KvsServerSettings& settings);

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_KVS_SERVER_H_
