#ifndef DDP_SCTP_SSN_WINDOW_H_
#define DDP_SCTP_SSN_WINDOW_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "ddp/sctp/chunk.h"
#include "ddp/sctp/held_messages.h"

namespace weft::ddp::sctp {

// A sender has at most this many messages of a stream in flight, so that a 16-bit number identifies each (RFC 5043
// section 10).
inline constexpr uint32_t kMostInFlight = 32767;

// Tracks one direction of a session in the order of its DDP-SSNs: which chunk is next, and which arrived early.
// HeldMessages has the bytes.
class SsnWindow {
 public:
  struct Early {
    Chunk::Kind kind = Chunk::Kind::kSegment;
    bool enhanced = false;
    HeldMessages::Message body;
  };

  enum class Place : uint8_t {
    kNext,
    kEarly,    // an earlier one is missing
    kReplay,   // received before
    kOutside,  // older than any in flight, or farther ahead than any can be
  };

  Place Find(uint16_t ssn) const {
    const uint16_t ahead = Ahead(ssn);
    if (ahead >= kMostInFlight) return Place::kOutside;
    if (early_.contains(next_ + ahead)) return Place::kReplay;
    return ahead == 0 ? Place::kNext : Place::kEarly;
  }
  // The next chunk was processed.
  void Advance() { ++next_; }
  // After Find() said kNext or kEarly.
  void Hold(uint16_t ssn, const Early& early) {
    early_.emplace(next_ + Ahead(ssn), early);
    cells_ += early.body.cells();
  }
  // The next chunk, if it is held; nullptr: it has not arrived.
  const Early* next_held() const {
    return !early_.empty() && early_.begin()->first == next_ ? &early_.begin()->second : nullptr;
  }
  // Removes it and advances; the caller drops its body.
  void AdvanceOverHeld() {
    cells_ -= early_.begin()->second.body.cells();
    early_.erase(early_.begin());
    ++next_;
  }
  // Releases the bytes of segments, but keeps their entries.
  void Shrink(HeldMessages& held) {
    for (auto& [position, early] : early_) {
      if (early.kind != Chunk::Kind::kSegment || early.body.length == 0) continue;
      cells_ -= early.body.cells();
      held.Drop(early.body);
      early.body = held.Keep({});
      cells_ += early.body.cells();
    }
  }
  void Clear(HeldMessages& held) {
    for (const auto& [position, early] : early_) held.Drop(early.body);
    early_.clear();
    cells_ = 0;
  }

  uint64_t next() const { return next_; }  // chunks processed; modulo 65536 the next DDP-SSN
  size_t held() const { return early_.size(); }  // messages
  size_t cells() const { return cells_; }        // of HeldMessages

 private:
  uint16_t Ahead(uint16_t ssn) const { return static_cast<uint16_t>(ssn - static_cast<uint16_t>(next_)); }

  uint64_t next_ = 0;
  size_t cells_ = 0;
  std::map<uint64_t, Early> early_;  // by position
};

}  // namespace weft::ddp::sctp

#endif  // DDP_SCTP_SSN_WINDOW_H_
