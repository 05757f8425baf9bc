#ifndef MPI_HYBRID_P2P_SCTP_CARD_H_
#define MPI_HYBRID_P2P_SCTP_CARD_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/job_secret.h"
#include "transport/sctp/sctp.h"
#include "transport/socket_address.h"

namespace weft::mpi {

// Where the SCTP of a process is, as it says in PMI: "PORT/UDP/NONCE/ADDRESS[,ADDRESS]...", numeric addresses, the
// likeliest first. No I/O.
struct Card {
  uint16_t port = 0;      // of SCTP, on which it listens
  uint16_t udp_port = 0;  // on which it takes SCTP over UDP; 0: it is spoken to in IP
  Nonce nonce{};          // stands for a challenge: a greeting of this process is of these bytes, too
  std::vector<transport::SocketAddress> addresses;  // ports 0; at least one

  // As many of the addresses as fit in `most` characters, at least the first.
  std::string ToString(size_t most) const;
  // nullopt: it is none.
  static std::optional<Card> Parse(std::string_view text);

  transport::sctp::Peer peer() const;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_SCTP_CARD_H_
