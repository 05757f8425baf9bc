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

// Objects that wait, in the order of their arrival, so that the oldest can be dropped if there is no room. Objects that
// are taken out are returned, so that the caller can release them without holding a lock. Not thread safe.
//
// `Holder` is std::shared_ptr or std::weak_ptr. With std::weak_ptr the room does not keep its guests alive; each must
// be taken out before it is destroyed.
template <typename Guest, template <typename> class Holder = std::shared_ptr>
class WaitingRoom {
 public:
  void Add(const std::shared_ptr<Guest>& guest) {
    places_[guest.get()] = next_;
    guests_.emplace(next_++, Entry{guest.get(), guest});
  }
  // Empty: it is not here.
  Holder<Guest> Take(const Guest* guest) {
    const auto at = places_.find(guest);
    return at == places_.end() ? Holder<Guest>() : TakeAt(guests_.find(at->second));
  }
  // Empty: there is no guest.
  Holder<Guest> TakeOldest() { return guests_.empty() ? Holder<Guest>() : TakeAt(guests_.begin()); }
  // Takes out those for which `matches` is true, the oldest first.
  template <typename Matches>
  std::vector<std::shared_ptr<Guest>> TakeAllIf(Matches matches) {
    std::vector<std::shared_ptr<Guest>> taken;
    for (auto at = guests_.begin(); at != guests_.end();) {
      const auto next = std::next(at);
      if (matches(*at->second.guest)) taken.push_back(TakeAt(at));
      at = next;
    }
    return taken;
  }
  std::vector<std::shared_ptr<Guest>> TakeAll() {
    std::vector<std::shared_ptr<Guest>> all;
    for (auto& [place, entry] : std::exchange(guests_, {})) all.push_back(std::move(entry.guest));
    places_.clear();
    return all;
  }
  size_t size() const { return guests_.size(); }
  bool empty() const { return guests_.empty(); }

 private:
  struct Entry {
    const Guest* key;
    Holder<Guest> guest;
  };

  Holder<Guest> TakeAt(typename std::map<uint64_t, Entry>::iterator at) {
    Holder<Guest> guest = std::move(at->second.guest);
    places_.erase(at->second.key);
    guests_.erase(at);
    return guest;
  }

  uint64_t next_ = 0;
  std::map<uint64_t, Entry> guests_;
  std::unordered_map<const Guest*, uint64_t> places_;
};

}  // namespace weft::sim

#endif  // SIM_CM_WAITING_ROOM_H_
