#include "impi/message/flow.h"

#include <algorithm>

#include "base/check.h"

namespace weft::impi {

bool FlowOut::may_send_first() const { return !is_full() && firsts_ < std::max(limits_.high_water - limits_.ack_mark, limits_.ack_mark); }

void FlowOut::Count(bool first) {
  WEFT_CHECK(first ? may_send_first() : !is_full());
  ++(first ? firsts_ : others_);
}

bool FlowOut::OnAck() {
  if (sent() < limits_.ack_mark) return false;
  const uint32_t others = std::min(others_, limits_.ack_mark);
  others_ -= others;
  firsts_ -= limits_.ack_mark - others;
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
