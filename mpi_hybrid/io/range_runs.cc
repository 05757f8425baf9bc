#include "mpi_hybrid/io/range_runs.h"

#include <algorithm>

namespace weft::mpi::io {

void RunWriter::Add(const FileRange& range) {
  if (!runs_.empty()) {
    RangeRun& last = runs_.back();
    const int64_t distance = range.offset - (last.offset + (last.count - 1) * last.stride);
    // The same range again is a run of its own: `count` says what a list costs to walk over no more than the window does.
    if (last.bytes == range.bytes && distance > 0 && (last.count == 1 || last.stride == distance)) {
      last.stride = distance;
      ++last.count;
      return;
    }
  }
  runs_.push_back({range.offset, range.bytes, 1, 0});
}

bool RunReader::Next(FileRange* range) {
  if (runs_.empty()) return false;
  const RangeRun& run = runs_[0];
  *range = {run.offset + done_ * run.stride, run.bytes};
  if (++done_ == run.count) {
    runs_ = runs_.subspan(1);
    done_ = 0;
  }
  return true;
}

bool AreWithin(std::span<const RangeRun> runs, const FileRange& window) {
  int64_t last = window.offset;
  for (const RangeRun& run : runs) {
    int64_t reach;
    if (run.bytes <= 0 || run.bytes > window.bytes || run.count <= 0 || run.stride < (run.count > 1 ? 1 : 0) || run.offset < last || run.offset > window.end() ||
        __builtin_mul_overflow(run.count - 1, run.stride, &reach) || reach > window.bytes ||
        run.offset + reach + run.bytes > window.end()) {
      return false;
    }
    last = run.offset + reach;
  }
  return true;
}

MergedRanges::MergedRanges(const std::vector<std::span<const RangeRun>>& lists, int64_t gap) : gap_(gap) {
  for (const std::span<const RangeRun>& list : lists) {
    Source source{RunReader(list), {}};
    if (source.reader.Next(&source.next)) sources_.push_back(source);
  }
}

// A few ranks have something in a window, and mostly many ranges each: looking at all of them costs less than keeping a heap.
MergedRanges::Source* MergedRanges::First() {
  const auto first = std::min_element(sources_.begin(), sources_.end(),
                                      [](const Source& a, const Source& b) { return a.next.offset < b.next.offset; });
  return first != sources_.end() ? &*first : nullptr;
}

bool MergedRanges::Next(FileRange* range) {
  *range = {};
  for (Source* source = First(); source != nullptr; source = First()) {
    if (range->bytes == 0) {
      *range = source->next;
    } else if (source->next.offset <= range->end() + gap_) {
      range->bytes = std::max(range->end(), source->next.end()) - range->offset;
    } else {
      return true;
    }
    if (!source->reader.Next(&source->next)) {
      *source = sources_.back();
      sources_.pop_back();
    }
  }
  return range->bytes > 0;
}

}  // namespace weft::mpi::io
