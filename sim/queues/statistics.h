#ifndef SIM_QUEUES_STATISTICS_H_
#define SIM_QUEUES_STATISTICS_H_

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <string>

namespace weft::sim {

// A counter that one thread at a time writes, under a lock of its owner, and any thread reads. It costs no more than an
// addition.
class Counter {
 public:
  void Add(uint64_t count) { value_.store(value_.load(std::memory_order_relaxed) + count, std::memory_order_relaxed); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

// Counters of a queue pair since its creation, in addition to its queues' positions.
struct QueuePairCounters {
  Counter bytes_sent, bytes_received;  // on the wire, without start-up frames
  Counter bytes_fetched;               // of Reads, which this end copied out of the peer's memory itself
  Counter errors;                      // completions with a status other than success
  Counter retries;                     // messages sent again because the receiver was not ready
  Counter rnr;                         // receiver-not-ready answers, sent and received
};

// A queue pair as `weft stat` shows it.
struct QueuePairSnapshot {
  uint32_t number = 0;
  ibv_qp_type type = IBV_QPT_RC;
  ibv_qp_state state = IBV_QPS_RESET;
  std::string device;             // empty: unknown
  std::string peer;               // empty: never connected
  std::string wire;               // what carries its connection: "tcp", "sctp", "host"; empty: it has none
  uint64_t sends_posted = 0, sends_completed = 0;
  uint64_t receives_posted = 0, receives_completed = 0;
  uint64_t bytes_sent = 0, bytes_received = 0;  // with what was fetched
  uint64_t errors = 0, retries = 0, rnr = 0;
};

}  // namespace weft::sim

#endif  // SIM_QUEUES_STATISTICS_H_
