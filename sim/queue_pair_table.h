#ifndef SIM_QUEUE_PAIR_TABLE_H_
#define SIM_QUEUE_PAIR_TABLE_H_

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "sim/queues/any_queue_pair.h"
#include "sim/memory/memory.h"

namespace weft::sim {

// The queue pairs of an RNIC, by number and by their bit in MemoryUsers. Not thread safe.
class QueuePairTable {
 public:
  size_t size() const { return size_; }
  bool contains(uint32_t number) const { return RoomOf(number).contains(number); }
  // nullptr: unknown, or destroyed.
  std::shared_ptr<AnyQueuePair> Find(uint32_t number) const {
    const auto found = RoomOf(number).find(number);
    return found == RoomOf(number).end() ? nullptr : found->second.lock();
  }
  void Add(uint32_t number, const std::shared_ptr<AnyQueuePair>& qp) { size_ += RoomOf(number).emplace(number, qp).second; }
  void Erase(uint32_t number) { size_ -= RoomOf(number).erase(number); }
  // The queue pairs of `users`; the others are not examined.
  std::vector<std::shared_ptr<AnyQueuePair>> Of(MemoryUsers users) const {
    std::vector<std::shared_ptr<AnyQueuePair>> all;
    for (; users != 0; users &= users - 1) {
      for (const auto& [number, weak] : rooms_[static_cast<size_t>(std::countr_zero(users))]) {
        if (auto qp = weak.lock()) all.push_back(std::move(qp));
      }
    }
    return all;
  }

 private:
  using Room = std::unordered_map<uint32_t, std::weak_ptr<AnyQueuePair>>;
  Room& RoomOf(uint32_t number) { return rooms_[MemoryUserIndex(number)]; }
  const Room& RoomOf(uint32_t number) const { return rooms_[MemoryUserIndex(number)]; }

  std::array<Room, kMemoryUsers> rooms_;
  size_t size_ = 0;
};

}  // namespace weft::sim

#endif  // SIM_QUEUE_PAIR_TABLE_H_
