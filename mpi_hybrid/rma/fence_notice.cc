#include "mpi_hybrid/rma/fence_notice.h"

#include <algorithm>
#include <utility>

namespace weft::mpi::rma {
namespace {

// Of numbers that wrap.
constexpr uint32_t kMostBehind = 1u << 30;
bool Later(uint32_t one, uint32_t other) { return static_cast<int32_t>(one - other) > 0; }

}  // namespace

FenceNotice::Entry FenceNotice::Enter(bool operations, bool gets) {
  if (reserve_ != 0) --reserve_;
  epochs_with_gets_ = gets ? std::min(epochs_with_gets_ + 1, kGetsBeforePromise) : 0;
  Entry entry;
  entry.number = ++number_;
  entry.asks = will_ask_;
  entry.promises = will_ask_ = epochs_with_gets_ == kGetsBeforePromise && reserve_ == 0;
  const bool asked = asker_ && asker_number_ == number_;
  const bool will_be_asked = promised_ && promised_number_ == number_;
  // The notice says that this rank's operations are done: if there are any it goes behind them, over the same connection.
  entry.message = operations || entry.asks || entry.promises || !(asked || will_be_asked);
  if (asked) entry.answer = Answer{*std::exchange(asker_, std::nullopt), entry.message ? ReplyStatus::kBusy : ReplyStatus::kDone};
  if (will_be_asked) owes_ = !entry.message;
  return entry;
}

bool FenceNotice::OnMessage(uint32_t number, bool promises, const std::optional<Asker>& asker, std::optional<Answer>* answer) {
  const bool asks = promised_;
  if (!Later(number, message_) || (asks && (!asker || number != promised_number_))) return false;
  message_ = number;
  promised_ = promises;
  promised_number_ = number + 1;
  if (!asks) {
    if (asker) *answer = Answer{*asker, ReplyStatus::kDone};  // it wants to know that the message was consumed
  } else if (std::exchange(owes_, false)) {
    *answer = Answer{*asker, ReplyStatus::kDone};
  } else if (!Later(number, number_)) {  // the notice went, or goes, by a message
    *answer = Answer{*asker, ReplyStatus::kBusy};
  } else {
    // One that is still here is of an earlier fence: the notice of that one will go by a message.
    if (asker_) *answer = Answer{*asker_, ReplyStatus::kBusy};
    asker_ = asker;
    asker_number_ = number;
  }
  return true;
}

bool FenceNotice::OnReply(uint32_t number, ReplyStatus status) {
  if (status != ReplyStatus::kDone) {
    reserve_ = kReserve;
    return false;
  }
  // Messages of earlier fences may still be on their way over the other connection, but not of many.
  if (Later(number - kMostBehind, message_)) message_ = number - kMostBehind;
  return true;
}

}  // namespace weft::mpi::rma
