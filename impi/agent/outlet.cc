#include "impi/agent/outlet.h"

#include <utility>

#include "base/check.h"

namespace weft::impi {

void Outlet::Add(Entry entry) {
  const bool urgent = entry.packet.packet.type == PacketType::kProtocolAck;
  (urgent ? urgent_ : others_).push_back(std::move(entry));
}

size_t Outlet::Gather(std::span<ByteSpan> into) {
  size_t bytes = 0;
  for (const Entry& entry : shown_) bytes += entry.packet.size();
  while (shown_.size() < into.size() && bytes < kMostShown) {
    std::deque<Entry>& from = urgent_.empty() ? others_ : urgent_;
    if (from.empty()) break;
    bytes += from.front().packet.size();
    shown_.push_back(std::move(from.front()));
    from.pop_front();
  }
  size_t count = 0;
  for (const Entry& entry : shown_) {
    if (count == into.size()) break;
    const ByteSpan whole(entry.packet.bytes.get(), entry.packet.size());
    into[count] = count == 0 ? whole.subspan(written_) : whole;
    ++count;
  }
  return count;
}

std::vector<Outlet::Entry> Outlet::Wrote(size_t bytes) {
  std::vector<Entry> complete;
  written_ += bytes;
  while (!shown_.empty() && written_ >= shown_.front().packet.size()) {
    written_ -= shown_.front().packet.size();
    complete.push_back(std::move(shown_.front()));
    shown_.pop_front();
  }
  WEFT_CHECK(written_ == 0 || !shown_.empty());
  return complete;
}

std::vector<Outlet::Entry> Outlet::DropAll() {
  std::vector<Entry> all;
  for (std::deque<Entry>* queue : {&shown_, &urgent_, &others_}) {
    for (Entry& entry : *queue) all.push_back(std::move(entry));
    queue->clear();
  }
  written_ = 0;
  return all;
}

}  // namespace weft::impi
