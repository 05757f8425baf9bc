#ifndef WIRES_HOST_CHANNEL_REFERENCES_H_
#define WIRES_HOST_CHANNEL_REFERENCES_H_

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "wires/host/ring/layout.h"

namespace weft::host {

// The references in a ring that the consumer has not finished, oldest first; their memory must stay valid. One thread
// at a time.
class References {
 public:
  static constexpr size_t kMost = 64;
  struct One {
    uint64_t line = 0;            // of the ring, on which its record begins
    uint64_t position_before = 0; // of the stream
    size_t length = 0, pieces = 0;
    std::array<iovec, kMostPieces> payload;
    std::unique_ptr<uint8_t[]> taken_over;  // replaces the payload if that went away
  };

  bool empty() const { return count_ == 0; }
  bool full() const { return count_ == kMost; }
  One& oldest() { return (*ring_)[first_]; }
  const One& oldest() const { return (*ring_)[first_]; }
  One& at(size_t i) { return (*ring_)[(first_ + i) % kMost]; }
  size_t size() const { return count_; }

  void Add(uint64_t line, uint64_t position_before, std::span<const iovec> payload, size_t length) {
    // Once, for channels that send long payloads.
    if (ring_ == nullptr) ring_ = std::make_unique<std::array<One, kMost>>();
    One& one = at(count_++);
    one.line = line;
    one.position_before = position_before;
    one.length = length;
    one.pieces = payload.size();
    for (size_t i = 0; i < payload.size(); ++i) one.payload[i] = payload[i];
  }
  void DropOldest() {
    oldest().taken_over.reset();
    first_ = (first_ + 1) % kMost;
    --count_;
  }

 private:
  std::unique_ptr<std::array<One, kMost>> ring_;
  size_t first_ = 0, count_ = 0;
};

}  // namespace weft::host

#endif  // WIRES_HOST_CHANNEL_REFERENCES_H_
