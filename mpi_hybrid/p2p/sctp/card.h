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

// The SCTP address of a process, as published in PMI: "PORT/UDP/NONCE/ADDRESS[,ADDRESS]...", numeric addresses, the
// likeliest first. No I/O.
struct Card {
  uint16_t port = 0;                                // SCTP port on which it listens
  uint16_t udp_port = 0;                            // UDP port for SCTP over UDP; 0: it uses SCTP over IP
  Nonce nonce{};                                    // stands for a challenge: the greetings of this process also use it
  std::vector<transport::SocketAddress> addresses;  // ports 0; at least one

  // Contains as many of the addresses as fit into `most` characters, at least the first.
  std::string ToString(size_t most) const;
  // nullopt: it is not a card.
  static std::optional<Card> Parse(std::string_view text);

  transport::sctp::Peer peer() const;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_SCTP_CARD_H_
