#ifndef SIM_QUEUES_SEND_QUEUE_H_
#define SIM_QUEUES_SEND_QUEUE_H_

#include <infiniband/verbs.h>
#include <sys/uio.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "base/spin_lock.h"
#include "rdmap/request.h"
#include "sim/memory/memory.h"

namespace weft::sim {

// One posted send work request.
struct SendEntry {
  rdmap::Request request;
  uint64_t id = 0;                    // wr_id
  ibv_wr_opcode opcode = IBV_WR_SEND;
  ibv_wc_status status = IBV_WC_SUCCESS;
  bool signaled = false;
  bool is_inline = false;             // its bytes are in the queue's inline storage
  bool asked = false;                 // it was checked whether a fault applies
  bool resolved = false;              // request.local is valid
  bool done = false;                  // can be retired once it is the oldest
  uint8_t pieces = 0;                 // scatter/gather elements in use
};

// The ring of send work requests. Producers (Post) exclude each other with post_mutex(). The consumer is the thread
// that holds the queue pair's engine. Counters grow without bound; the slot of an entry is its count modulo the depth.
// Oldest to newest:
//   retired <= started <= posted
class SendQueue {
 public:
  SendQueue(uint32_t depth, uint32_t max_sge, uint32_t max_inline);

  // Producer, with post_mutex() held. Stage() writes the request behind the `staged` ones that are not published yet.
  // It returns 0, or the errno of ibv_post_send: EINVAL, ENOMEM, EOPNOTSUPP. Publish() posts the first `count` of them;
  // the others are dropped. `extended`: immediate data, atomics and Reads into several pieces are supported.
  int Stage(const ibv_send_wr& wr, bool signal_all, bool extended, uint32_t staged);
  void Publish(uint32_t count) { posted_.store(posted_.load(std::memory_order_relaxed) + count, std::memory_order_release); }
  SpinLock& post_mutex() { return post_mutex_; }

  uint64_t posted() const { return posted_.load(std::memory_order_acquire); }
  uint64_t retired() const { return retired_.load(std::memory_order_relaxed); }

  // Consumer. Waits until posts in progress are complete. Producers that begin later see what was stored before the
  // call.
  void AwaitProducers() { const std::lock_guard wait(post_mutex_); }
  SendEntry& entry(uint64_t count) { return entries_[count % depth_]; }
  const SendEntry& entry(uint64_t count) const { return entries_[count % depth_]; }
  const ibv_sge* elements(uint64_t count) const { return &elements_[(count % depth_) * max_sge_]; }
  WindowBind& bind(uint64_t count) { return binds_[count % depth_]; }  // for an IBV_WR_BIND_MW
  iovec* memory(uint64_t count) { return &memory_[(count % depth_) * max_sge_]; }
  void* inline_bytes(uint64_t count) { return &inline_[(count % depth_) * max_inline_]; }
  uint64_t started = 0;
  void Retire() { retired_.store(retired() + 1, std::memory_order_release); }
  void Clear();

 private:
  const uint32_t depth_, max_sge_, max_inline_;
  std::unique_ptr<SendEntry[]> entries_;
  std::unique_ptr<ibv_sge[]> elements_;
  std::unique_ptr<iovec[]> memory_;
  std::unique_ptr<uint8_t[]> inline_;
  std::unique_ptr<WindowBind[]> binds_;  // allocated with the first one
  // Stored with release, loaded with acquire: a request is written before it is posted, and read before its slot is
  // free again.
  std::atomic<uint64_t> posted_{0};
  std::atomic<uint64_t> retired_{0};
  SpinLock post_mutex_;
};

}  // namespace weft::sim

#endif  // SIM_QUEUES_SEND_QUEUE_H_
