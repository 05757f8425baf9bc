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
    Interest ready;
    TcpListener::Starved starved;  // only a listener has one
  };

  // Descriptors of watches that are in the set of a group in place of the network's own.
  struct Group {
    EpollSet set;
    std::atomic<int> members{0};  // slots that name it
  };

  explicit WatchTable(EpollSet& epoll) : epoll_(epoll) {}
  ~WatchTable();
  WatchTable(const WatchTable&) = delete;
  WatchTable& operator=(const WatchTable&) = delete;

  // The error is an errno of epoll_ctl, or ENOSPC when a million watches exist.
  Result<WatchId, int> Add(int fd, Interest interest, std::shared_ptr<ReadyHandler> handler,
                           TcpListener::Starved starved);
  void SetInterest(WatchId id, Interest interest);
  void Remove(WatchId id);
  // Who is to hear of an event. An empty handler when the watch is gone or does not want to know.
  Hit Find(const epoll_event& event);

  // The descriptor of `group` itself: when lent it stays in epoll and reports nothing, for to put back a set with many members takes long.
  Result<WatchId, int> AddGroup(const Group& group, std::shared_ptr<ReadyHandler> handler);
  // The watch moves to the group. 0 (also when it is there already), ENOENT (it is gone) or an errno of epoll_ctl.
  int Join(WatchId id, const std::shared_ptr<Group>& group);
  // All that is left in the group goes back.
  void Dissolve(const std::shared_ptr<Group>& group);

  // Lending (Network::Lend): a lent watch is not in epoll. Lend() does nothing while lending is closed, as it is at first.
  void Lend(WatchId id);
  void OpenLending();
  // Takes back what was not lent again since the last call.
  void ReclaimIdle() { ReclaimLent(/*idle_only=*/true); }
  // Takes everything back. Returns false when epoll had no memory for one of them: call ReclaimIdle() again later.
  bool CloseLending();

 private:
  struct Slot {
    std::mutex mutex;         // guards the rest
    uint32_t generation = 0;  // of the current use; 0: never used
    int fd = -1;
    Interest interest;
    std::shared_ptr<ReadyHandler> handler;  // empty: not in use
    TcpListener::Starved starved;
    std::vector<std::shared_ptr<Group>> groups;  // whose sets have it; empty: epoll_ has, unless it is lent
    bool stays = false;                          // in epoll while lent
    std::atomic<bool> lent{false};        // written under the mutex
    std::atomic<uint32_t> lent_again{0};  // calls of Lend(), of one thread at a time
    uint32_t lent_before = 0;             // lent_again at the last ReclaimIdle(); guarded by lent_mutex_
    bool listed = false;                  // in lent_; guarded by lent_mutex_
  };
  static constexpr uint32_t kChunkSlots = 1024;
  static constexpr uint32_t kMostChunks = 1024;

  // The slot that `id` names, or null; its generation is still to be compared, under its lock.
  Slot* SlotOf(WatchId id) const;
  // A slot nobody uses, by number; kNoSlot when full.
  uint32_t TakeFreeSlot();
  static constexpr uint32_t kNoSlot = UINT32_MAX;
  bool ReclaimLent(bool idle_only);
  Result<WatchId, int> Add(int fd, Interest interest, std::shared_ptr<ReadyHandler> handler, TcpListener::Starved starved, bool stays);
  // Under the slot's lock. False: epoll has no memory for it.
  bool PutBack(Slot& slot, WatchId id);

  EpollSet& epoll_;
  // Chunks are added and never moved, so that looking one up needs no lock.
  std::array<std::atomic<Slot*>, kMostChunks> chunks_{};
  std::mutex free_mutex_;  // guards free_ and used_
  std::vector<uint32_t> free_;
  uint32_t used_ = 0;  // slots handed out so far

  std::mutex lent_mutex_;  // guards what follows; taken before a slot's
  bool lending_ = false;
  std::vector<uint32_t> lent_;  // slots; those that are back already are dropped at the next look
};

}  // namespace weft::transport

#endif  // TRANSPORT_WATCH_TABLE_H_
