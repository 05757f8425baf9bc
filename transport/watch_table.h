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

// Maps descriptors to handlers. A WatchId consists of the number of a slot and a generation, so an event of an earlier
// use of the slot is recognised and dropped. Thread safe: one lock per slot, held over the epoll_ctl that must agree
// with the slot, never over a handler.
class WatchTable {
 public:
  struct Hit {
    std::shared_ptr<ReadyHandler> handler;
    Interest ready;
    TcpListener::Starved starved;  // set only for a listener
  };

  // The epoll set of a group, which has watches in place of the network's own set.
  struct Group {
    EpollSet set;
    std::atomic<int> members{0};  // slots that name the group
  };

  explicit WatchTable(EpollSet& epoll) : epoll_(epoll) {}
  ~WatchTable();
  WatchTable(const WatchTable&) = delete;
  WatchTable& operator=(const WatchTable&) = delete;

  // The error is an errno of epoll_ctl, or ENOSPC if a million watches exist.
  Result<WatchId, int> Add(int fd, Interest interest, std::shared_ptr<ReadyHandler> handler,
                           TcpListener::Starved starved);
  void SetInterest(WatchId id, Interest interest);
  void Remove(WatchId id);
  // The handler for an event. Empty if the watch is gone or not interested.
  Hit Find(const epoll_event& event);

  // Adds the descriptor of `group` itself. When lent, it stays in epoll and reports nothing, because putting back a set
  // with many members takes long.
  Result<WatchId, int> AddGroup(const Group& group, std::shared_ptr<ReadyHandler> handler);
  // Moves the watch to the group. Returns 0 (also if it is there already), ENOENT (it is gone) or an errno of
  // epoll_ctl.
  int Join(WatchId id, const std::shared_ptr<Group>& group);
  // Moves all remaining watches of the group back.
  void Dissolve(const std::shared_ptr<Group>& group);

  // Lending (Network::Lend): a lent watch is not in epoll. Lend() does nothing while lending is closed, which is the
  // initial state.
  void Lend(WatchId id);
  void OpenLending();
  // Takes back the watches that were not lent again since the last call.
  void ReclaimIdle() { ReclaimLent(/*idle_only=*/true); }
  // Takes all watches back. Returns false if epoll had no memory for one of them: call ReclaimIdle() again later.
  bool CloseLending();

 private:
  struct Slot {
    std::mutex mutex;         // guards the members below
    uint32_t generation = 0;  // of the current use; 0: never used
    int fd = -1;
    Interest interest;
    std::shared_ptr<ReadyHandler> handler;  // empty: not in use
    TcpListener::Starved starved;
    std::vector<std::shared_ptr<Group>> groups;  // whose sets have it; empty: epoll_ has it, unless it is lent
    bool stays = false;                          // stays in epoll while lent
    std::atomic<bool> lent{false};        // written under the mutex
    std::atomic<uint32_t> lent_again{0};  // number of calls of Lend(), by one thread at a time
    uint32_t lent_before = 0;             // lent_again at the last ReclaimIdle(); guarded by lent_mutex_
    bool listed = false;                  // in lent_; guarded by lent_mutex_
  };
  static constexpr uint32_t kChunkSlots = 1024;
  static constexpr uint32_t kMostChunks = 1024;

  // The slot of `id`, or null. The caller must compare the generation under the slot's lock.
  Slot* SlotOf(WatchId id) const;
  // The number of an unused slot; kNoSlot if all are in use.
  uint32_t TakeFreeSlot();
  static constexpr uint32_t kNoSlot = UINT32_MAX;
  bool ReclaimLent(bool idle_only);
  Result<WatchId, int> Add(int fd, Interest interest, std::shared_ptr<ReadyHandler> handler, TcpListener::Starved starved, bool stays);
  // Requires the slot's lock. Returns false if epoll has no memory for it.
  bool PutBack(Slot& slot, WatchId id);

  EpollSet& epoll_;
  // Chunks are added and never moved, so a look-up needs no lock.
  std::array<std::atomic<Slot*>, kMostChunks> chunks_{};
  std::mutex free_mutex_;  // guards free_ and used_
  std::vector<uint32_t> free_;
  uint32_t used_ = 0;  // slots used so far

  std::mutex lent_mutex_;  // guards the members below; locked before a slot's
  bool lending_ = false;
  std::vector<uint32_t> lent_;  // slots; those that are already back are removed at the next look
};

}  // namespace weft::transport

#endif  // TRANSPORT_WATCH_TABLE_H_
