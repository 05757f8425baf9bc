#ifndef MPI_HYBRID_IO_RANGE_RUNS_H_
#define MPI_HYBRID_IO_RANGE_RUNS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "mpi_hybrid/io/view.h"

// Lists of file ranges in the form in which ranks send them to each other: as runs, since most ranges have one length
// and one distance.
namespace weft::mpi::io {

// `count` ranges of `bytes` bytes. The first is at `offset`, each further one `stride` bytes behind the one before.
// Plain data, which is sent.
struct RangeRun {
  int64_t offset = 0;
  int64_t bytes = 0;
  int64_t count = 1;
  int64_t stride = 0;
};

// Combines ascending ranges into runs.
class RunWriter {
 public:
  void Add(const FileRange& range);
  const std::vector<RangeRun>& runs() const { return runs_; }
  void Clear() { runs_.clear(); }

 private:
  std::vector<RangeRun> runs_;
};

// Walks over the ranges of runs.
class RunReader {
 public:
  explicit RunReader(std::span<const RangeRun> runs) : runs_(runs) {}
  bool Next(FileRange* range);

 private:
  std::span<const RangeRun> runs_;
  int64_t done_ = 0;  // in the first run
};

// Whether runs that another rank sent are ascending ranges within `window`, which lies between 0 and View::kMostBytes.
bool AreWithin(std::span<const RangeRun> runs, const FileRange& window);

// The union of several lists, in ascending order. Ranges that touch, that overlap, or that have a gap of at most `gap`
// bytes between them are merged.
class MergedRanges {
 public:
  MergedRanges(const std::vector<std::span<const RangeRun>>& lists, int64_t gap);
  bool Next(FileRange* range);

 private:
  struct Source {
    RunReader reader;
    FileRange next;
  };
  // The source of the next range; null at the end.
  Source* First();

  std::vector<Source> sources_;
  const int64_t gap_;
};

}  // namespace weft::mpi::io

#endif  // MPI_HYBRID_IO_RANGE_RUNS_H_
