#ifndef TESTS_STACK_TOY_CHANNEL_TOY_CHANNEL_H_
#define TESTS_STACK_TOY_CHANNEL_TOY_CHANNEL_H_

#include <memory>
#include <utility>

#include "llp/channel.h"
#include "tests/stack/random_run.h"

namespace weft::sim {

// A third wire, to show that a wire is one class and one folder: queues of whole ULPDUs in memory between two channels. Each ULPDU takes a
// time of its own, so that they arrive out of order; they are handed on in order, as an llp::UlpduSink wants them. No byte stream, no FPDU, no
// start-up, no descriptor; either side may send first. So many ULPDUs are under way at most, and the stream breaks when it is told to.
class ToyWire final : public Wire {
 public:
  void Connect(transport::Network& initiator_network, const std::shared_ptr<QueuePair>& initiator, transport::Network& responder_network,
               const std::shared_ptr<QueuePair>& responder, bool breaks, Random& random) override;
};

// The two ends of such a stream between two of a network, for who sets connections up.
std::pair<std::unique_ptr<llp::Channel>, std::unique_ptr<llp::Channel>> MakeToyChannels(transport::Network& network, Random& random);

}  // namespace weft::sim

#endif  // TESTS_STACK_TOY_CHANNEL_TOY_CHANNEL_H_
