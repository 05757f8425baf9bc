#ifndef TRANSPORT_WATCH_TABLE_H_
#define TRANSPORT_WATCH_TABLE_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/result.h"
#include "transport/epoll.h"
#include "transport/network.h"
#include "transport/tcp_listener.h"

namespace weft::transport {

// Which handler hears about which descriptor. A WatchId is a slot's number and the generation of its use, so an event
// of an earlier use is recognised and dropped. Thread safe: a lock per slot, held over the epoll_ctl that must agree
// with the slot, never over a handler.
class WatchTable {
 public:
  struct Hit {
    std::shared_ptr<ReadyHandler> handler;
    Interest interest;
    TcpListener::Starved starved;  // only a listener has one
  };

  explicit WatchTable(Epoll& epoll) : epoll_(epoll) {}
  ~WatchTable();
  WatchTable(const WatchTable&) = delete;
  WatchTable& operator=(const WatchTable&) = delete;

  // The error is an errno of epoll_ctl, or ENOSPC when a million watches exist.
  Result<WatchId, int> Add(int fd, Interest interest, std::shared_ptr<ReadyHandler> handler,
                           TcpListener::Starved starved);
  void SetInterest(WatchId id, Interest interest);
  void Remove(WatchId id);
  // An empty handler when the watch is gone.
  Hit Find(WatchId id);

 private:
  struct Slot {
    std::mutex mutex;         // guards the rest
    uint32_t generation = 0;  // of the current use; 0: never used
    int fd = -1;
    Interest interest;
    std::shared_ptr<ReadyHandler> handler;  // empty: not in use
    TcpListener::Starved starved;
  };
  static constexpr uint32_t kChunkSlots = 1024;
  static constexpr uint32_t kMostChunks = 1024;

  // The slot that `id` names, or null; its generation is still to be compared, under its lock.
  Slot* SlotOf(WatchId id) const;
  // A slot nobody uses, by number; kNoSlot when full.
  uint32_t TakeFreeSlot();
  static constexpr uint32_t kNoSlot = UINT32_MAX;

  Epoll& epoll_;
  // Chunks are added and never moved, so that looking one up needs no lock.
  std::array<std::atomic<Slot*>, kMostChunks> chunks_{};
  std::mutex free_mutex_;  // guards free_ and used_
  std::vector<uint32_t> free_;
  uint32_t used_ = 0;  // slots handed out so far
};

}  // namespace weft::transport

#endif  // TRANSPORT_WATCH_TABLE_H_
