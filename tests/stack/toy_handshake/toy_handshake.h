#ifndef TESTS_STACK_TOY_HANDSHAKE_TOY_HANDSHAKE_H_
#define TESTS_STACK_TOY_HANDSHAKE_TOY_HANDSHAKE_H_

#include <cstdint>
#include <map>
#include <memory>

#include "llp/handshake.h"
#include "sim/net/random.h"
#include "transport/network.h"

namespace weft::sim {

class ToyListener;

// A wire whose start-up consists of a few variables that both ends see: no frame, no stream, no descriptor. It shows
// that connection management knows no details of a wire. Both ends are on one network, in virtual time.
class ToySessions final : public llp::Wire {
 public:
  explicit ToySessions(transport::Network& network, uint64_t seed) : network_(network), random_(seed) {}

  Result<std::unique_ptr<llp::Initiator>, int> Connect(const transport::SocketAddress& local, const transport::SocketAddress& remote,
                                                       llp::Proposal ours) override;
  Result<std::unique_ptr<llp::Listener>, int> Listen(const transport::SocketAddress& local, int backlog, bool only_v6,
                                                     bool reuse_address) override;

  // The behaviour from now on.
  bool nobody_answers = false;  // connection attempts get no answer
  int without_room = 0;         // number of attempts that are reset before an answer
  // Counts of what happened.
  int attempts = 0, fallbacks = 0;

 private:
  friend class ToyInitiator;
  friend class ToyListener;
  transport::Network& network_;
  Random random_;
  std::map<uint16_t, ToyListener*> listeners_;  // by port
  uint16_t next_port_ = 1024;
};

}  // namespace weft::sim

#endif  // TESTS_STACK_TOY_HANDSHAKE_TOY_HANDSHAKE_H_
