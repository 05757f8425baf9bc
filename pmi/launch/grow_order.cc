#include "pmi/launch/grow_order.h"

#include "pmi/launch/payload.h"

namespace weft::pmi {

std::string GrowOrder::Serialize() const {
  std::string out;
  PutNumber(out, static_cast<uint32_t>(hosts.size()));
  for (const Host& host : hosts) {
    PutNumber(out, static_cast<uint32_t>(host.number));
    PutText(out, host.name);
  }
  PutNumber(out, static_cast<uint32_t>(remote_shell.kind));
  PutText(out, remote_shell.program);
  PutText(out, interface);
  return out;
}

std::optional<GrowOrder> GrowOrder::Parse(std::string_view bytes) {
  PayloadCursor cursor(bytes);
  GrowOrder order;
  order.hosts.resize(cursor.Count(8));
  for (Host& host : order.hosts) {
    host.number = static_cast<int32_t>(cursor.Number());
    host.name = cursor.Text();
    if (host.number < 0) return std::nullopt;
  }
  const uint32_t kind = cursor.Number();
  if (kind > static_cast<uint32_t>(RemoteShell::Kind::kProgram)) return std::nullopt;
  order.remote_shell.kind = static_cast<RemoteShell::Kind>(kind);
  order.remote_shell.program = cursor.Text();
  order.interface = cursor.Text();
  if (!cursor.at_end()) return std::nullopt;
  return order;
}

}  // namespace weft::pmi
