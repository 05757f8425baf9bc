#include "mpi_hybrid/io/two_phase_messages.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace weft::mpi::io {
namespace {

// Before the runs.
struct ListHeader {
  int64_t next;
  int64_t bytes;
};

// False: their sum is more than `most`.
bool SumOf(std::span<const RangeRun> runs, int64_t most, int64_t* sum) {
  *sum = 0;
  for (const RangeRun& run : runs) {
    int64_t bytes;
    if (__builtin_mul_overflow(run.bytes, run.count, &bytes) || bytes > most - *sum) return false;
    *sum += bytes;
  }
  return true;
}

}  // namespace

bool Extent::MakesSense() const {
  if (bytes == 0) return true;
  return bytes > 0 && first >= 0 && end > first && end <= View::kMostBytes && piece > 0 && piece <= bytes;
}

bool Go::MakesSense(const FileRange& window, int64_t domain_end, int64_t own_next) const {
  if (end_of_file < 0) return false;
  return next <= own_next && (next == kNowhere || (next >= window.end() && next < domain_end));
}

std::vector<uint8_t> WindowList::Serialize() const {
  const ListHeader header = {next, bytes};
  std::vector<uint8_t> message(sizeof header + runs.size() * sizeof(RangeRun));
  std::memcpy(message.data(), &header, sizeof header);
  if (!runs.empty()) std::memcpy(message.data() + sizeof header, runs.data(), runs.size() * sizeof(RangeRun));
  return message;
}

int64_t WindowList::DataBytesOf(std::span<const uint8_t, kHeadBytes> head) {
  static_assert(sizeof(ListHeader) == kHeadBytes);
  ListHeader header;
  std::memcpy(&header, head.data(), sizeof header);
  return header.bytes;
}

int64_t WindowList::MostMessageBytes(int64_t most_bytes) {
  constexpr int64_t kMostRuns = (INT64_MAX - static_cast<int64_t>(sizeof(ListHeader))) / static_cast<int64_t>(sizeof(RangeRun));
  return static_cast<int64_t>(sizeof(ListHeader)) + std::min(most_bytes, kMostRuns) * static_cast<int64_t>(sizeof(RangeRun));
}

bool WindowList::Parse(std::span<const uint8_t> message, const FileRange& window, int64_t most_bytes, WindowList* list) {
  *list = {};
  ListHeader header;
  if (message.size() < sizeof header || (message.size() - sizeof header) % sizeof(RangeRun) != 0) return false;
  std::memcpy(&header, message.data(), sizeof header);
  std::vector<RangeRun> runs((message.size() - sizeof header) / sizeof(RangeRun));
  if (!runs.empty()) std::memcpy(runs.data(), message.data() + sizeof header, message.size() - sizeof header);
  int64_t bytes = 0;
  if (!AreWithin(runs, window) || !SumOf(runs, most_bytes, &bytes) || bytes != header.bytes || header.next < window.end()) return false;
  *list = {header.next, bytes, std::move(runs)};
  return true;
}

}  // namespace weft::mpi::io
