#ifndef PMI_LAUNCH_KVS_SERVER_H_
#define PMI_LAUNCH_KVS_SERVER_H_

#include <chrono>
#include <optional>
#include <string>

#include "pmi/launch/port_range.h"

namespace weft::pmi {

// `mpiexec -kvs-server`: PMI, in both versions, for ranks that somebody else starts. They come to a port, which stands in PMI_PORT, and
// say which rank they are (PMI_ID). Each rank comes once.
struct KvsServerSettings {
  int ranks = 1;
  PortRange ports;                               // to choose from
  std::string interface;                         // whose address the ranks are told; empty: the first that is up
  std::string secret_file;                       // whose first line they have to prove that they know; empty: they are on this host
  bool secured = false;                          // by TLS, with that secret: PMI_SOCKTYPE=OpenSSL
  std::optional<std::chrono::seconds> time_out;  // for all of it
};

// Prints the environment that they need, NAME=VALUE on each line, and serves them until all are through, one fails or a signal comes. A rank
// that ends its connection before it finalizes ends all others' as well. The exit status:
//
//   0            all have finalized
//   1            one is gone, or broke the protocol, or there cannot be a server; standard error says it
//   128 + N      signal N ended it
//   255          the time was over
//   any          a rank's MPI_Abort said so
//
// Without a secret it listens on 127.0.0.1, and takes processes of its own user and of root.
int KvsServerMain(const KvsServerSettings& settings);

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_KVS_SERVER_H_
