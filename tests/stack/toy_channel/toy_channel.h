#ifndef TESTS_STACK_TOY_CHANNEL_TOY_CHANNEL_H_
#define TESTS_STACK_TOY_CHANNEL_TOY_CHANNEL_H_

#include <memory>
#include <utility>

#include "llp/channel.h"
#include "tests/stack/random_run.h"

namespace weft::sim {

// A third wire. It shows that a wire is one class in one folder: queues of whole ULPDUs in memory between two channels.
// Each ULPDU takes its own time, so they arrive out of order; they are handed on in order, as an llp::UlpduSink
// requires. There is no byte stream, FPDU, start-up or descriptor, and either side may send first. The number of ULPDUs
// in flight is limited, and the stream breaks when told to.
class ToyWire final : public Wire {
 public:
  void Connect(transport::Network& initiator_network, const std::shared_ptr<QueuePair>& initiator, transport::Network& responder_network,
               const std::shared_ptr<QueuePair>& responder, bool breaks, Random& random) override;
};

// The two ends of such a stream, between two hosts of one network, for the connection set-up.
std::pair<std::unique_ptr<llp::Channel>, std::unique_ptr<llp::Channel>> MakeToyChannels(transport::Network& network, Random& random);

}  // namespace weft::sim

#endif  // TESTS_STACK_TOY_CHANNEL_TOY_CHANNEL_H_
