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
  PutNumber(out, static_cast<uint32_t>(means.remote_shell.kind));
  PutText(out, means.remote_shell.program);
  PutTexts(out, means.remote_shell.more_arguments);
  PutText(out, means.interface);
  PutNumber(out, static_cast<uint32_t>(means.ports.first));
  PutNumber(out, static_cast<uint32_t>(means.ports.last));
  PutNumber(out, means.most_branches);
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
  StartMeans& means = order.means;
  means.remote_shell.kind = static_cast<RemoteShell::Kind>(kind);
  means.remote_shell.program = cursor.Text();
  means.remote_shell.more_arguments = cursor.Texts();
  means.interface = cursor.Text();
  const uint32_t first = cursor.Number(), last = cursor.Number();
  means.most_branches = cursor.Number();
  if (!cursor.at_end() || first > last || last > 0xffff || means.most_branches == 0) return std::nullopt;
  means.ports = {static_cast<int>(first), static_cast<int>(last)};
  return order;
}

}  // namespace weft::pmi
