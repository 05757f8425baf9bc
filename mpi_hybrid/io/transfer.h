#ifndef MPI_HYBRID_IO_TRANSFER_H_
#define MPI_HYBRID_IO_TRANSFER_H_

#include <cstdint>
#include <span>

#include "mpi_hybrid/datatype/datatype.h"
#include "mpi_hybrid/io/raw_file.h"
#include "mpi_hybrid/io/view.h"

// The executor: moves data between ranges of a file and memory, with as few system calls as pays. Needs no lock.
namespace weft::mpi::io {

// What came of it: bytes from the beginning that were moved, and the errno that stopped it, 0 for success and the end of the file.
struct Moved {
  int64_t bytes = 0;
  int error = 0;
};

// One range of the file, all of it: repeats what was interrupted or was short. `pieces` is used up. Reading ends early at the end of
// the file.
Moved ReadRange(RawFile& file, std::span<iovec> pieces, int64_t offset);
Moved WriteRange(RawFile& file, std::span<iovec> pieces, int64_t offset);

// How scattered ranges are moved.
struct Sieving {
  enum class When : uint8_t { kNever, kWhereItPays, kAlways };
  When when = When::kNever;
  int64_t buffer_bytes = 0;
};

// All of `ranges` into or from as many bytes of memory from `memory`'s place on. Data sieving reads a stretch of the file with the gaps
// between its ranges and picks those out.
Moved ReadRanges(RawFile& file, RangeCursor& ranges, TypeCursor& memory, const Sieving& sieving);

Moved WriteRanges(RawFile& file, RangeCursor& ranges, TypeCursor& memory);
// The same by data sieving, which writes the gaps back as they were: so it locks what it rewrites, and *all* who write to the file must do
// so at the time.
Moved WriteRangesLocked(RawFile& file, RangeCursor& ranges, TypeCursor& memory, int64_t buffer_bytes);

}  // namespace weft::mpi::io

#endif  // MPI_HYBRID_IO_TRANSFER_H_
