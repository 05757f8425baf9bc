#include "impi/message/matching.h"

#include <algorithm>

namespace weft::impi {

bool Matching::Takes(const Wanted& wanted, const Held& held) {
  return wanted.context == held.context && wanted.source.value_or(held.source) == held.source && wanted.tag.value_or(held.tag) == held.tag;
}

std::optional<ReceiveId> Matching::Arrived(MessageId message, PeerId source, uint64_t context, int32_t tag) {
  const Held held{message, source, context, tag};
  const auto found = std::find_if(posted_.begin(), posted_.end(), [&](const Posted& posted) { return Takes(posted.wanted, held); });
  if (found == posted_.end()) {
    held_.push_back(held);
    return std::nullopt;
  }
  const ReceiveId receive = found->receive;
  posted_.erase(found);
  return receive;
}

std::optional<MessageId> Matching::Post(ReceiveId receive, const Wanted& wanted) {
  const std::optional<MessageId> message = Probe(wanted);
  if (message) {
    TakeOut(*message);
  } else {
    posted_.push_back({receive, wanted});
  }
  return message;
}

std::optional<MessageId> Matching::Probe(const Wanted& wanted) const {
  const auto found = std::find_if(held_.begin(), held_.end(), [&](const Held& held) { return Takes(wanted, held); });
  return found == held_.end() ? std::nullopt : std::optional(found->message);
}

bool Matching::TakeOut(MessageId message) { return std::erase_if(held_, [&](const Held& held) { return held.message == message; }) != 0; }

bool Matching::CancelReceive(ReceiveId receive) {
  return std::erase_if(posted_, [&](const Posted& posted) { return posted.receive == receive; }) != 0;
}

std::vector<ReceiveId> Matching::Lose(PeerId peer) {
  std::vector<ReceiveId> lost;
  std::erase_if(posted_, [&](const Posted& posted) {
    if (posted.wanted.source != peer) return false;
    lost.push_back(posted.receive);
    return true;
  });
  std::erase_if(held_, [&](const Held& held) { return held.source == peer; });
  return lost;
}

}  // namespace weft::impi
