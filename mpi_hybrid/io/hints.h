#ifndef MPI_HYBRID_IO_HINTS_H_
#define MPI_HYBRID_IO_HINTS_H_

#include <cstdint>

#include "mpi_hybrid/core/info.h"

namespace weft::mpi::io {

// What programs may ask of a file by MPI_Info (MPI 4.0 section 14.2.8, and the names that ROMIO made usual). The same at all ranks: rank 0's
// are everybody's. Plain data, so that they can be sent.
struct Hints {
  enum class Choice : uint8_t { kAutomatic, kEnable, kDisable };
  enum class Access : uint8_t { kUnknown, kSequential, kRandom };

  int64_t cb_nodes = 0;                       // aggregators; 0: one a host
  int64_t cb_buffer_size = int64_t{4} << 20;  // bytes that an aggregator writes or reads at once
  int64_t ind_rd_buffer_size = int64_t{4} << 20;
  int64_t ind_wr_buffer_size = int64_t{512} << 10;
  Choice cb_read = Choice::kAutomatic, cb_write = Choice::kAutomatic;
  Choice ds_read = Choice::kAutomatic, ds_write = Choice::kAutomatic;
  Access access = Access::kUnknown;
  // The list that `access` was read from, as the program gave it; ends with 0. It is long enough for each of the standard's words once.
  char access_style[96] = {};

  // Takes what it knows; values that make no sense are ignored, as the standard wants it.
  void Take(const Info& info);
  // What another rank told, within the bounds that Take has.
  void Clamp();
  // The hints in force as keys. `aggregators`: how many there are, 0 when that is not known yet.
  void Tell(int aggregators, Info* info) const;
};

}  // namespace weft::mpi::io

#endif  // MPI_HYBRID_IO_HINTS_H_
