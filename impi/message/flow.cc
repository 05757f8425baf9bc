#include "impi/message/flow.h"

#include <algorithm>

#include "base/check.h"

namespace weft::impi {

void FlowOut::Count() {
  WEFT_CHECK(!is_full());
  ++sent_;
}

bool FlowOut::OnAck() {
  if (sent_ < limits_.ack_mark) return false;
  sent_ -= limits_.ack_mark;
  return true;
}

void FlowIn::Count() {
  WEFT_CHECK(!is_full());
  ++received_;
}

uint64_t FlowIn::CostOf(uint32_t bytes) const { return std::min<uint64_t>(bytes + kHeldCost, data_length_); }

void FlowIn::Unhold(uint64_t cost) {
  WEFT_CHECK(cost <= held_);
  held_ -= cost;
}

bool FlowIn::owes_ack() const {
  if (received_ < limits_.ack_mark) return false;
  const uint64_t room = uint64_t{received_ - limits_.ack_mark} * data_length_;  // below 2^64
  return held_ <= limits_.store || held_ - limits_.store <= room;
}

void FlowIn::TakeAck() {
  WEFT_CHECK(owes_ack());
  received_ -= limits_.ack_mark;
}

}  // namespace weft::impi
