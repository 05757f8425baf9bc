#ifndef IMPI_RUN_CONNECT_H_
#define IMPI_RUN_CONNECT_H_

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/descriptor.h"
#include "base/result.h"
#include "impi/agent/dance.h"
#include "impi/job/job.h"

namespace weft::impi {

// What else concerns the owner meanwhile. When `fd` can be read, `look` says why the hosts are not needed any more, or nothing.
struct Interruption {
  int fd = -1;
  std::function<std::optional<std::string>()> look;
};

// The sockets of a Dance: connects to the hosts of lower ranks, from the address that this host announced, and accepts the others at `listener`, which does
// not block. `warn` hears of strangers. Returns a socket for each host of another client, or why not.
Result<std::map<HostRank, Descriptor>, std::string> ConnectHosts(const Job& job, const Dance::Setup& setup, const Descriptor& listener,
                                                                 const std::function<void(const std::string&)>& warn, const Interruption& interruption = {});

}  // namespace weft::impi

#endif  // IMPI_RUN_CONNECT_H_
