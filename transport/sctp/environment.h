#ifndef TRANSPORT_SCTP_ENVIRONMENT_H_
#define TRANSPORT_SCTP_ENVIRONMENT_H_

#include "base/settings.h"
#include "transport/sctp/process_sctp.h"
#include "transport/sctp/settings.h"
#include "transport/socket_address.h"

// Applies the user's settings (WEFT_SCTP_..., base/settings.h) to SCTP.
namespace weft::transport::sctp {

// `settings` with the values that the user has set, except for the addresses.
Settings WithUserSettings(Settings settings, const SctpSettings& user);

// Our addresses for an association or a listener at `local` (possibly the wildcard). If `local` is the wildcard or one
// of the user's addresses: the user's, `local` first. Otherwise only `local`. Ports are 0. Empty: `local` is the
// wildcard, and the user names none.
std::vector<SocketAddress> UserAddresses(const SctpSettings& user, const SocketAddress& local);

Carriage UserCarriage(const SctpSettings& user);

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_ENVIRONMENT_H_
