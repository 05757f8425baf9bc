#ifndef TRANSPORT_SCTP_PROCESS_SCTP_H_
#define TRANSPORT_SCTP_PROCESS_SCTP_H_

#include <cstdint>

#include "base/result.h"
#include "transport/network.h"
#include "transport/sctp/sctp.h"

namespace weft::transport::sctp {

// How a process's packets travel. Decided by the first call of ProcessSctp().
struct Carriage {
  bool udp = true;        // in UDP (RFC 6951), which needs no privilege
  uint16_t udp_port = 0;  // of ours; 0: the kernel chooses one
  bool native =
      false;  // in IP too, which needs CAP_NET_RAW. Every such process of a host sees all of its packets of SCTP
  bool kernel = false;  // the kernel's SCTP in place of all that
};

// Has what associations sent reach their peers (for a second at most) and then end them by an ABORT when the process ends, in a handler
// of atexit(3) that is registered by the first call of this or of ProcessSctp(). What others registered later runs before it.
void EndAssociationsAtExit();

// SCTP of this process, on its network; made on first use and never destroyed. A child after fork() gets a fresh one.
// Over UDP the kernel tells them after a kill (RFC 6951 section 5.5), in IP they find out by themselves (Settings). Errors: EADDRINUSE
// (udp_port), EPERM (native), EPROTONOSUPPORT (kernel: it has none), EMFILE ..., EINVAL (neither).
Result<Sctp*, int> ProcessSctp(Network& network, const Carriage& carriage);

// For `weft stat` and measurements; zeros when nothing was made.
struct PacketCounters {
  uint64_t packets_in = 0, packets_out = 0;
  uint64_t damaged = 0;         // packets with a wrong checksum, or none of SCTP
  uint64_t strangers = 0;       // packets of a peer's address from a UDP port that is not the peer's
  uint64_t not_sent = 0;        // packets that the kernel did not take
  uint64_t output_batches = 0;  // system calls that sent packets
  uint64_t input_batches = 0;   // system calls that found some
  uint64_t posts = 0;           // times that a thread left what it had taken in for others to the network's
};
PacketCounters ProcessPacketCounters();

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_PROCESS_SCTP_H_
