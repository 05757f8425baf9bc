#ifndef MPI_HYBRID_IO_TWO_PHASE_MESSAGES_H_
#define MPI_HYBRID_IO_TWO_PHASE_MESSAGES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "mpi_hybrid/io/range_runs.h"
#include "mpi_hybrid/io/view.h"

// What ranks tell each other in a collective access in two phases (two_phase.h), and whether what came makes sense: another rank's offsets and
// counts are believed only within the window that it was asked about. Plain data; ranks of a job have one byte order.
namespace weft::mpi::io {

constexpr int64_t kNowhere = INT64_MAX;

// What a rank accesses, as all tell all.
struct Extent {
  int64_t first = 0, end = 0;  // of the file
  int64_t bytes = 0;           // of data
  int64_t piece = 0;           // bytes that lie together, on average
  int64_t failed = 0;          // it cannot take part

  bool MakesSense() const;
};

// What an aggregator says of the next window, and, reading, of this one.
struct Go {
  int64_t next;         // where it begins, or kNowhere
  int64_t end_of_file;  // or where the file cannot be read further; kNowhere: behind the window

  // The aggregator cannot take what this rank told (its own error says why): it need not go on.
  static constexpr Go GivenUp();
  bool is_given_up() const { return end_of_file < 0; }

  // `window` is this one, of a part of the file that goes to `domain_end`; `own_next` is where the rank that hears it goes on behind the window.
  bool MakesSense(const FileRange& window, int64_t domain_end, int64_t own_next) const;
};

constexpr Go Go::GivenUp() { return {kNowhere, -1}; }

// What a rank has in a window.
struct WindowList {
  int64_t next = kNowhere;  // where it goes on behind the window
  int64_t bytes = 0;        // of data, of all runs
  std::vector<RangeRun> runs;

  std::vector<uint8_t> Serialize() const;
  // What a message says of `bytes`, of which the rest is not here.
  static constexpr size_t kHeadBytes = 16;
  static int64_t DataBytesOf(std::span<const uint8_t, kHeadBytes> head);
  // Of the longest message that can be true: a run has a byte at least.
  static int64_t MostMessageBytes(int64_t most_bytes);
  // False: it is no list, or tells of what is not in `window`, or of more than `most_bytes`. `*list` is an empty one then.
  static bool Parse(std::span<const uint8_t> message, const FileRange& window, int64_t most_bytes, WindowList* list);
};

}  // namespace weft::mpi::io

#endif  // MPI_HYBRID_IO_TWO_PHASE_MESSAGES_H_
