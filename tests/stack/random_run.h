#ifndef TESTS_STACK_RANDOM_RUN_H_
#define TESTS_STACK_RANDOM_RUN_H_

#include <cstdint>
#include <memory>
#include <string>

#include "base/settings.h"
#include "llp/handshake.h"
#include "sim/net/random.h"
#include "sim/net/virtual_network.h"
#include "sim/queue_pair/queue_pair.h"
#include "transport/network.h"

namespace weft::sim {

// What carries the work, if it is not what rdma_cm makes.
class Wire {
 public:
  virtual ~Wire() = default;
  // Connects two queue pairs in INIT, each on a network of its own. With `breaks` the stream ends in the middle of the work.
  virtual void Connect(transport::Network& initiator_network, const std::shared_ptr<QueuePair>& initiator,
                       transport::Network& responder_network, const std::shared_ptr<QueuePair>& responder, bool breaks, Random& random) = 0;
};

// Where the RNICs are, if it is not a network of byte streams: what their rdma_cm connects over.
class World {
 public:
  virtual ~World() = default;  // after the RNICs
  virtual VirtualNetwork& network() = 0;
  virtual transport::Network& AddHost(const std::string& address) = 0;
  // Of the host at that address.
  virtual std::unique_ptr<llp::Wire> MakeWire(const std::string& address, const Settings& settings) = 0;
  // Rough links. True: one of their faults may end the connection.
  virtual bool SetLinks(Random& random) = 0;
};

// Two RNICs, a network in virtual time between them, random work on both sides, and a model of what must come of it.
struct RunResult {
  std::string failure;   // empty: everything was as the model says; else what was not, for a person
  bool connected = false;
  bool cut = false;      // a fault ended the connection
  int completed = 0;     // work requests that succeeded
};

// Everything random comes from `seed`: the same seed is the same run.
RunResult RunRandomWork(uint64_t seed, Wire* wire = nullptr, World* world = nullptr);

}  // namespace weft::sim

#endif  // TESTS_STACK_RANDOM_RUN_H_
