#ifndef DDP_SCTP_TESTING_RECORDING_SINK_H_
#define DDP_SCTP_TESTING_RECORDING_SINK_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "base/check.h"
#include "llp/ulpdu.h"

namespace weft::ddp::sctp::testing {

using Bytes = std::vector<uint8_t>;

// Keeps each ULPDU. Takes up to 18 bytes of it as header, and the payload into separate pieces of varying sizes.
class RecordingSink final : public llp::UlpduSink {
 public:
  bool Begin(size_t length, ByteSpan head, llp::UlpduPlan* plan) override {
    WEFT_CHECK(!between_ && head.size() == std::min(length, llp::kUlpduHeadLength));
    if (on_begin) on_begin();
    if (refuse_at == ulpdus.size()) return false;
    between_ = true;
    const size_t header = std::min<size_t>(head.size(), ulpdus.size() % 19);
    ulpdu_.assign(head.begin(), head.begin() + static_cast<ptrdiff_t>(header));
    memory_.clear();
    pieces_.clear();
    for (size_t left = length - header, size = 1 + ulpdus.size() % 7; left != 0; size *= 3) {
      const size_t count = std::min(left, size);
      memory_.emplace_back(count, uint8_t{0xcc});
      pieces_.push_back({memory_.back().data(), count});
      left -= count;
    }
    *plan = {.header_length = header, .payload = pieces_};
    return true;
  }

  bool End() override {
    WEFT_CHECK(between_);
    between_ = false;
    for (const Bytes& piece : memory_) ulpdu_.insert(ulpdu_.end(), piece.begin(), piece.end());
    ulpdus.push_back(ulpdu_);
    return true;
  }

  std::vector<Bytes> ulpdus;
  size_t refuse_at = ~size_t{0};  // the Begin() with this number returns false
  std::function<void()> on_begin;

 private:
  bool between_ = false;
  Bytes ulpdu_;
  std::deque<Bytes> memory_;
  std::vector<iovec> pieces_;
};

}  // namespace weft::ddp::sctp::testing

#endif  // DDP_SCTP_TESTING_RECORDING_SINK_H_
