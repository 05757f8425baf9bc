#include "wires/choice/wire.h"

#include <cstring>
#include <utility>

#include "base/log.h"
#include "transport/sctp/environment.h"
#include "transport/sctp/process_sctp.h"
#include "wires/choice/choice.h"
#include "wires/mpa/handshake/wire.h"
#include "wires/sctp/handshake/wire.h"

namespace weft {
namespace {

Result<transport::sctp::Sctp*, int> GetSctp(transport::Network& network, const SctpSettings& settings) {
  auto sctp = ProcessSctp(network, transport::sctp::UserCarriage(settings));
  if (!sctp.ok()) {
    const char* hint = "";
    if (settings.in_ip && sctp.error() == EPERM) hint = "; WEFT_SCTP_CARRIAGE=ip needs CAP_NET_RAW, udp needs nothing";
    if (settings.udp_port != 0 && sctp.error() == EADDRINUSE) hint = "; another process has WEFT_SCTP_UDP_PORT";
    LogWarning(Format("no SCTP: %s%s", std::strerror(sctp.error()), hint));
  }
  return sctp;
}

}  // namespace

std::unique_ptr<llp::Wire> MakeWire(transport::Network& network, BufferPool& pool, const Settings& settings) {
  auto tcp = std::make_unique<mpa::Wire>(network, pool, settings);
  if (settings.llp == Llp::kTcp) return tcp;
  transport::sctp::EndAssociationsAtExit();  // after what queue pairs do at exit, which is registered later
  auto sctp = std::make_unique<sctp::Wire>(network, pool, settings, [&network, &settings] { return GetSctp(network, settings.sctp); });
  return MakeChoice(network, std::move(sctp), std::move(tcp),
                    settings.llp == Llp::kAuto ? Connecting::kFirstThenSecond : Connecting::kFirst);
}

}  // namespace weft
