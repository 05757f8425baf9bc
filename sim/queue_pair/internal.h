#ifndef SIM_QUEUE_PAIR_INTERNAL_H_
#define SIM_QUEUE_PAIR_INTERNAL_H_

#include <memory>
#include <utility>
#include <vector>

#include "sim/queue_pair/queue_pair.h"

namespace weft::sim {

// What a queue pair has only while it is connected. Guarded by the queue pair's engine.
struct QueuePair::Connection {
  Connection(std::unique_ptr<llp::Channel> its_channel, const rdmap::StreamOptions& stream_options, rdmap::Host& host)
      : channel(std::move(its_channel)), stream(stream_options, host) {}

  std::unique_ptr<llp::Channel> channel;
  rdmap::Stream stream;
  transport::WatchId watch = 0;
  transport::TimerId close_timer = 0;
  uint16_t ird = 0, ord = 0;
  bool extended = false;           // immediate data and atomics can be sent
  bool reliable = false;           // requests are acknowledged
  bool established_told = true;    // false: the responder waits for the RTR before it says so
  bool to_itself = false;
  bool communication_told = false; // IBV_EVENT_COMM_EST
  bool termination_told = false;   // TellOfTermination()
  bool closing = false;            // Disconnect() was called
  bool fin_sent = false;
  uint64_t last_to_send = 0;       // closing: requests posted before this count still go out
};

// For llp::Channel::TakeOver. Programs unmap memory before they deregister it, which an adapter that has pinned it does not notice.
void CopyWhatIsThere(uint8_t* to, const uint8_t* from, size_t count);

// Holds the engine; on release delivers what has to be said to others without locks, and answers a doorbell that rang meanwhile.
class QueuePair::EngineLock {
 public:
  explicit EngineLock(QueuePair& qp) : qp_(qp), lock_(qp.engine_mutex_) {}
  EngineLock(QueuePair& qp, std::try_to_lock_t) : qp_(qp), lock_(qp.engine_mutex_, std::try_to_lock) {}
  EngineLock(QueuePair& qp, std::adopt_lock_t) : qp_(qp), lock_(qp.engine_mutex_, std::adopt_lock) {}
  ~EngineLock() {
    if (!lock_.owns_lock()) return;
    if (!qp_.HasToDeliver()) [[likely]] {
      lock_.unlock();
    } else {
      Deliver();
    }
    if (qp_.doorbell_.load(std::memory_order_seq_cst)) qp_.Ring();
  }
  EngineLock(const EngineLock&) = delete;
  EngineLock& operator=(const EngineLock&) = delete;

  bool owns_lock() const { return lock_.owns_lock(); }

 private:
  void Deliver();

  QueuePair& qp_;
  std::unique_lock<std::mutex> lock_;
};

}  // namespace weft::sim

#endif  // SIM_QUEUE_PAIR_INTERNAL_H_
