#include "wires/choice/wire.h"

#include <atomic>
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
    using Carriage = SctpSettings::Carriage;
    if (settings.carriage == Carriage::kIp && sctp.error() == EPERM)
      hint = "; WEFT_SCTP_CARRIAGE=ip needs CAP_NET_RAW, udp needs nothing";
    if (settings.carriage == Carriage::kKernel) hint = "; WEFT_SCTP_CARRIAGE=kernel needs the kernel's module sctp (modprobe sctp), udp needs nothing";
    if (settings.udp_port != 0 && sctp.error() == EADDRINUSE) hint = "; another process has WEFT_SCTP_UDP_PORT";
    LogWarning(Format("no SCTP: %s%s", std::strerror(sctp.error()), hint));
  } else if (settings.carriage == SctpSettings::Carriage::kKernel && settings.cmt != SctpSettings::Cmt::kOff) {
    static std::atomic_flag said;
    if (!said.test_and_set()) LogWarning("WEFT_SCTP_CMT: the kernel's SCTP uses one path at a time (WEFT_SCTP_CARRIAGE=kernel)");
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
