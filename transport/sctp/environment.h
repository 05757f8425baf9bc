#ifndef TRANSPORT_SCTP_ENVIRONMENT_H_
#define TRANSPORT_SCTP_ENVIRONMENT_H_

#include "base/settings.h"
#include "transport/sctp/process_sctp.h"
#include "transport/sctp/settings.h"
#include "transport/socket_address.h"

// What the user's settings (WEFT_SCTP_..., base/settings.h) mean for SCTP.
namespace weft::transport::sctp {

// `settings` with what the user set; all but the addresses.
Settings WithUserSettings(Settings settings, const SctpSettings& user);

// Which addresses of ours an association or a listener uses that was asked for at `local` (perhaps the wildcard): the user's, that
// one first, if it is among them or the wildcard; else that one alone. Ports are 0. Empty: the wildcard, and the user names none.
std::vector<SocketAddress> UserAddresses(const SctpSettings& user, const SocketAddress& local);

Carriage UserCarriage(const SctpSettings& user);

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_ENVIRONMENT_H_
