#ifndef MPI_HYBRID_IO_TWO_PHASE_MESSAGES_H_
#define MPI_HYBRID_IO_TWO_PHASE_MESSAGES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "mpi_hybrid/io/range_runs.h"
#include "mpi_hybrid/io/view.h"

// The messages of a collective access in two phases (two_phase.h), and their checks: offsets and counts of another rank
// are accepted only within the window that it was asked about. Plain data; all ranks of a job have the same byte order.
namespace weft::mpi::io {

constexpr int64_t kNowhere = INT64_MAX;

// The part of the file that a rank accesses. Every rank sends it to all ranks.
struct Extent {
  int64_t first = 0, end = 0;  // of the file
  int64_t bytes = 0;           // bytes of data
  int64_t piece = 0;           // average number of contiguous bytes
  int64_t failed = 0;          // the rank cannot take part

  bool MakesSense() const;
};

// Message of an aggregator: where the next window is and, when reading, the end of the current one.
struct Go {
  int64_t next;         // offset where the next window begins, or kNowhere
  int64_t end_of_file;  // offset at which reading stopped; kNowhere: behind the window

  // The aggregator cannot use this rank's list (the aggregator's own error says why). The rank need not go on.
  static constexpr Go GivenUp();
  bool is_given_up() const { return end_of_file < 0; }

  // `window`: the current window, of a part of the file that ends at `domain_end`. `own_next`: where the data of the
  // receiving rank continues behind the window.
  bool MakesSense(const FileRange& window, int64_t domain_end, int64_t own_next) const;
};

constexpr Go Go::GivenUp() { return {kNowhere, -1}; }

// What a rank has in a window.
struct WindowList {
  int64_t next = kNowhere;  // where the rank's data continues behind the window
  int64_t bytes = 0;        // bytes of data in all runs
  std::vector<RangeRun> runs;

  std::vector<uint8_t> Serialize() const;
  // The `bytes` field of a message of which only the head was received.
  static constexpr size_t kHeadBytes = 16;
  static int64_t DataBytesOf(std::span<const uint8_t, kHeadBytes> head);
  // The length of the longest valid message: a run has at least one byte.
  static int64_t MostMessageBytes(int64_t most_bytes);
  // False: the message is not a list, or contains a range outside of `window`, or more than `most_bytes`. `*list` is
  // empty then.
  static bool Parse(std::span<const uint8_t> message, const FileRange& window, int64_t most_bytes, WindowList* list);
};

}  // namespace weft::mpi::io

#endif  // MPI_HYBRID_IO_TWO_PHASE_MESSAGES_H_
