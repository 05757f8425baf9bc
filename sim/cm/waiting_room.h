#ifndef SIM_CM_WAITING_ROOM_H_
#define SIM_CM_WAITING_ROOM_H_

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace weft::sim {

// Those who wait for something, in the order in which they came, so that the oldest gives way when there is no room. What is taken out is
// returned, for the caller to let go of where it holds no lock. Not thread safe.
template <typename Guest>
class WaitingRoom {
 public:
  void Add(std::shared_ptr<Guest> guest) {
    places_[guest.get()] = next_;
    guests_.emplace(next_++, std::move(guest));
  }
  // nullptr: it is not here.
  std::shared_ptr<Guest> Take(const Guest* guest) {
    const auto at = places_.find(guest);
    return at == places_.end() ? nullptr : TakeAt(guests_.find(at->second));
  }
  // nullptr: nobody is here.
  std::shared_ptr<Guest> TakeOldest() { return guests_.empty() ? nullptr : TakeAt(guests_.begin()); }
  // Those of whom `matches` holds, the oldest first.
  template <typename Matches>
  std::vector<std::shared_ptr<Guest>> TakeAllIf(Matches matches) {
    std::vector<std::shared_ptr<Guest>> taken;
    for (auto at = guests_.begin(); at != guests_.end();) {
      const auto next = std::next(at);
      if (matches(*at->second)) taken.push_back(TakeAt(at));
      at = next;
    }
    return taken;
  }
  std::vector<std::shared_ptr<Guest>> TakeAll() {
    std::vector<std::shared_ptr<Guest>> all;
    for (auto& [place, guest] : std::exchange(guests_, {})) all.push_back(std::move(guest));
    places_.clear();
    return all;
  }
  size_t size() const { return guests_.size(); }
  bool empty() const { return guests_.empty(); }

 private:
  std::shared_ptr<Guest> TakeAt(typename std::map<uint64_t, std::shared_ptr<Guest>>::iterator at) {
    std::shared_ptr<Guest> guest = std::move(at->second);
    places_.erase(guest.get());
    guests_.erase(at);
    return guest;
  }

  uint64_t next_ = 0;
  std::map<uint64_t, std::shared_ptr<Guest>> guests_;
  std::unordered_map<const Guest*, uint64_t> places_;
};

}  // namespace weft::sim

#endif  // SIM_CM_WAITING_ROOM_H_
