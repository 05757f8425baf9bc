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
#include "pmi/launch/port_range.h"

namespace weft::pmi {

// How mpiexec reaches its proxies. The proxy of this host is a forked process at the other end of a socket pair. On another host,
// ssh, or what is in its place (remote_shell.h), starts `mpiexec --proxy`, which reads an invitation from its standard input, connects by TCP and proves that it is the one
// invited; mpiexec then proves that it is the one who invited:
//
//   ssh's input   weft-proxy NODE PORT SECRET ADDRESS...\n
//   mpiexec       weft-mpiexec NONCE\n
//   proxy         weft-proxy NODE NONCE PROOF\n
//   mpiexec       weft-mpiexec PROOF\n             from here on frames (frame.h)
//
// The secret is made for each job and travels to the proxy inside ssh, never in an argument list or an environment, and never over TCP: the
// proofs are of node and nonces (base/job_secret.h). The ranks prove themselves to one another by the same.

struct ProxyLink {
  std::string host;
  bool is_local = false;
  pid_t pid = -1;  // the proxy of this host, or the ssh that started one elsewhere; a child of this process
  std::unique_ptr<Connection> connection;
};

// The proxy's end: takes the invitation from `input` and connects. An mpiexec that is there but has no room is tried again.
struct Invited {
  std::unique_ptr<Connection> connection;
  JobSecret secret;
};
Result<Invited, PmiError> AcceptInvitation(int input);

// The secret of a job, which its ranks know, by the one that mpiexec and its proxies share: that of job 0 is the same.
JobSecret SecretOfJob(const JobSecret& secret, int job);

// A connected descriptor, closed on exec, or -1: the numeric address does not answer within a few seconds.
int Dial(const std::string& address, const std::string& port);
// Who can reach a port: everybody, or processes of this host, at 127.0.0.1.
enum class Reach { kAnywhere, kThisHost };
// Listens on a free port of the range. -1 and errno on failure.
int Listen(int* port, PortRange range = {}, Reach reach = Reach::kAnywhere);
// Where others may find this host: `first`, where it is known, then the addresses of the interfaces, loopback last; with `interface` its
// addresses alone.
std::vector<std::string> AddressesFor(const std::string& first, const std::string& interface);

// The numeric address of this end of a connection; empty when it has none.
std::string OwnAddress(int fd);

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_REMOTE_START_H_
