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

// The wire of a run, if it is not the one that rdma_cm uses.
class Wire {
 public:
  virtual ~Wire() = default;
  // Connects two queue pairs in INIT, each on a network of its own. With `breaks`, the stream ends in the middle of the
  // run.
  virtual void Connect(transport::Network& initiator_network, const std::shared_ptr<QueuePair>& initiator,
                       transport::Network& responder_network, const std::shared_ptr<QueuePair>& responder, bool breaks, Random& random) = 0;
};

// The surroundings of the RNICs, if they are not a network of byte streams: makes the wire for their rdma_cm.
class World {
 public:
  virtual ~World() = default;  // outlives the RNICs
  virtual VirtualNetwork& network() = 0;
  virtual transport::Network& AddHost(const std::string& address) = 0;
  // The wire for the host with that address.
  virtual std::unique_ptr<llp::Wire> MakeWire(const std::string& address, const Settings& settings) = 0;
  // Sets links with faults. Returns true if one of the faults may end the connection.
  virtual bool SetLinks(Random& random) = 0;
};

// Two RNICs, a network in virtual time between them, random work at both ends, and a model of the results.
struct RunResult {
  std::string failure;   // empty: everything agreed with the model; otherwise a description of the difference
  bool connected = false;
  bool cut = false;      // a fault ended the connection
  int completed = 0;     // work requests that succeeded
};

// All random decisions come from `seed`: the same seed gives the same run.
RunResult RunRandomWork(uint64_t seed, Wire* wire = nullptr, World* world = nullptr);

}  // namespace weft::sim

#endif  // TESTS_STACK_RANDOM_RUN_H_
