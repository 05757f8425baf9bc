#ifndef TRANSPORT_SCTP_PROCESS_SCTP_H_
#define TRANSPORT_SCTP_PROCESS_SCTP_H_

#include <cstdint>

#include "base/result.h"
#include "transport/network.h"
#include "transport/sctp/sctp.h"

namespace weft::transport::sctp {

// How the SCTP packets of a process travel. The first call of ProcessSctp() decides it.
struct Carriage {
  bool udp = true;        // in UDP (RFC 6951), which needs no privilege
  uint16_t udp_port = 0;  // our UDP port; 0: the kernel chooses one
  // Also directly over IP, which needs CAP_NET_RAW. Every such process receives all SCTP packets of its host.
  bool native = false;
  bool kernel = false;  // the kernel's SCTP instead of all that
};

// At the end of the process, waits (at most a second) until the data of associations has reached their peers, and then
// ends the associations by an ABORT. This happens in a handler of atexit(3), which the first call of this function or
// of ProcessSctp() registers. Handlers registered later run before it.
void EndAssociationsAtExit();

// SCTP of this process, on its network; made on first use and never destroyed. A child of fork() gets a new one. If the
// process is killed, peers over UDP learn it from the kernel (RFC 6951 section 5.5); over IP they find out themselves
// (Settings). Errors: EADDRINUSE (udp_port), EPERM (native), EPROTONOSUPPORT (kernel: it has no SCTP), EMFILE ...,
// EINVAL (neither).
Result<Sctp*, int> ProcessSctp(Network& network, const Carriage& carriage);

// For `weft stat` and measurements; zeros if SCTP is not in use.
struct PacketCounters {
  uint64_t packets_in = 0, packets_out = 0;
  uint64_t damaged = 0;         // packets with a wrong checksum, or that are not SCTP
  uint64_t strangers = 0;       // packets with a peer's address from a UDP port that is not the peer's
  uint64_t not_sent = 0;        // packets that the kernel did not accept
  uint64_t output_batches = 0;  // system calls that sent packets
  uint64_t input_batches = 0;   // system calls that received packets
  uint64_t posts = 0;           // times that a thread left received data for others to the network's thread
};
PacketCounters ProcessPacketCounters();

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_PROCESS_SCTP_H_
