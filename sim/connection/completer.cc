#include "sim/connection/completer.h"

#include "base/log.h"
#include "sim/queues/names.h"

namespace weft::sim {

void Completer::Push(CompletionQueue& to, const ibv_wc& completion, bool solicited) {
  if (TraceEnabled()) {
    Trace(Format("qp 0x%x: completion of work request %llu: %s, %s, %u bytes", number_,
                 static_cast<unsigned long long>(completion.wr_id), NameOf(completion.opcode), NameOf(completion.status),
                 completion.byte_len));
  }
  if (completion.status != IBV_WC_SUCCESS) counters_.errors.Add(1);
  if (!to.Push(completion, solicited)) lost_ = true;
}

}  // namespace weft::sim
