#ifndef MPI_HYBRID_IO_TRANSFER_H_
#define MPI_HYBRID_IO_TRANSFER_H_

#include <cstdint>
#include <span>

#include "mpi_hybrid/datatype/datatype.h"
#include "mpi_hybrid/io/raw_file.h"
#include "mpi_hybrid/io/view.h"

// Moves data between ranges of a file and memory, with as few system calls as is worthwhile. Needs no lock.
namespace weft::mpi::io {

// The result: bytes moved, counted from the beginning, and the errno that stopped the transfer. 0: success, or end of
// file.
struct Moved {
  int64_t bytes = 0;
  int error = 0;
};

// Moves one range of the file completely: repeats interrupted and short calls. `pieces` is consumed. A read stops at
// the end of the file.
Moved ReadRange(RawFile& file, std::span<iovec> pieces, int64_t offset);
Moved WriteRange(RawFile& file, std::span<iovec> pieces, int64_t offset);

// How to move scattered ranges.
struct Sieving {
  enum class When : uint8_t { kNever, kWhereItPays, kAlways };
  When when = When::kNever;
  int64_t buffer_bytes = 0;
};

// Moves all of `ranges` from or to the same number of bytes of memory at the cursor `memory`. Data sieving reads a
// stretch of the file together with the gaps between the ranges, and copies the ranges out of it.
Moved ReadRanges(RawFile& file, RangeCursor& ranges, TypeCursor& memory, const Sieving& sieving);

Moved WriteRanges(RawFile& file, RangeCursor& ranges, TypeCursor& memory);
// The same by data sieving, which writes the gaps back unchanged. Therefore it locks the stretch that it rewrites, and
// *all* writers of the file must use it at that time.
Moved WriteRangesLocked(RawFile& file, RangeCursor& ranges, TypeCursor& memory, int64_t buffer_bytes);

}  // namespace weft::mpi::io

#endif  // MPI_HYBRID_IO_TRANSFER_H_
