#ifndef PMI_LAUNCH_REMOTE_START_H_
#define PMI_LAUNCH_REMOTE_START_H_

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/job_secret.h"
#include "base/result.h"
#include "pmi/error.h"
#include "pmi/launch/connection.h"
#include "pmi/launch/sockets.h"

namespace weft::pmi {

// How mpiexec reaches its proxies. The proxy of this host is a forked process at the other end of a socket pair. On
// another host, ssh or its replacement (remote_shell.h) starts `mpiexec --proxy`. That process reads an invitation from
// its standard input, connects by TCP, and proves that it is the invited one. mpiexec then proves that it sent the
// invitation:
//
//   ssh's input   weft-proxy NODE PORT SECRET ADDRESS...\n
//   mpiexec       weft-mpiexec NONCE\n
//   proxy         weft-proxy NODE NONCE PROOF\n
//   mpiexec       weft-mpiexec PROOF\n             from here on frames (frame.h)
//
// The secret is made for each job. It reaches the proxy through ssh's input; it is never in an argument list, in an
// environment or on the TCP connection. The proofs are computed from node and nonces (base/job_secret.h). The ranks
// authenticate each other in the same way.

struct ProxyLink {
  std::string host;
  bool is_local = false;
  pid_t pid = -1;  // the proxy of this host, or the ssh that started one on another host; a child of this process
  std::unique_ptr<Connection> connection;
};

// The proxy's end: reads the invitation from `input` and connects. If mpiexec is there but has no resources, it tries
// again.
struct Invited {
  std::unique_ptr<Connection> connection;
  JobSecret secret;
};
Result<Invited, PmiError> AcceptInvitation(int input);

// The secret that the ranks of a job know, derived from the secret of mpiexec and its proxies. That of job 0 is the
// same secret.
JobSecret SecretOfJob(const JobSecret& secret, int job);

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_REMOTE_START_H_
