#ifndef IMPI_RUN_MEMBERSHIP_H_
#define IMPI_RUN_MEMBERSHIP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "impi/job/announcement.h"
#include "impi/job/job.h"
#include "impi/run/client_options.h"
#include "impi/run/join.h"
#include "transport/socket_address.h"

namespace weft::impi {

// A client in its job: its connection to the server, and what all clients agreed on.
struct Membership {
  std::unique_ptr<ServerLink> link;
  Job job;
  uint32_t lam_clients = 0;  // mask
};

// The numeric address of the server. The specification has IPv4 addresses, so these come first. Why not: a sentence.
Result<transport::SocketAddress, std::string> ServerAddress(const ClientOptions& options);

// Joins the job as a client with these hosts, and waits for the other clients, with `wait` if there is one. Why not: a sentence.
Result<Membership, std::string> BecomeMember(const ClientOptions& options, const transport::SocketAddress& server, std::vector<HostAnnouncement> hosts,
                                             const Waiter& wait = {});

// The number of the first host of this client.
HostRank FirstHost(const Job& job);

// Of impirun, to standard error.
void Say(const std::string& text);
void Warn(const std::string& text);

}  // namespace weft::impi

#endif  // IMPI_RUN_MEMBERSHIP_H_
