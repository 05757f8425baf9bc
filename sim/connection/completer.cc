#include "sim/connection/completer.h"

#include "sim/queues/names.h"

namespace weft::sim {

void Completer::TraceIt(const ibv_wc& completion) const {
  Trace(Format("qp 0x%x: completion of work request %llu: %s, %s, %u bytes", number_, static_cast<unsigned long long>(completion.wr_id),
               NameOf(completion.opcode), NameOf(completion.status), completion.byte_len));
}

void Completer::Keep(CompletionQueue& to, const ibv_wc& completion, bool solicited) {
  if (held_.size() == kMostHeld) HandOn();
  held_.push_back({to.shared_from_this(), completion, solicited});
}

void Completer::HandOn() {
  for (const Held& held : held_) {
    if (!held.to->Push(held.completion, held.solicited)) lost_ = true;
  }
  held_.clear();
}

}  // namespace weft::sim
