#include "sim/connection/completer.h"

#include "sim/queues/names.h"

namespace weft::sim {

void Completer::TraceIt(const ibv_wc& completion) const {
  Trace(Format("qp 0x%x: completion of work request %llu: %s, %s, %u bytes", number_, static_cast<unsigned long long>(completion.wr_id),
               NameOf(completion.opcode), NameOf(completion.status), completion.byte_len));
}

}  // namespace weft::sim
