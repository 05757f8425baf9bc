#ifndef MPI_HYBRID_IO_HINTS_H_
#define MPI_HYBRID_IO_HINTS_H_

#include <cstdint>

#include "mpi_hybrid/core/info.h"

namespace weft::mpi::io {

// The hints of a file from its MPI_Info (MPI 4.0 section 14.2.8, and the names that ROMIO made common). They are the
// same at all ranks: those of rank 0. Plain data, so that they can be sent.
struct Hints {
  enum class Choice : uint8_t { kAutomatic, kEnable, kDisable };
  enum class Access : uint8_t { kUnknown, kSequential, kRandom };

  int64_t cb_nodes = 0;                       // number of aggregators; 0: one per host
  int64_t cb_buffer_size = int64_t{4} << 20;  // bytes that an aggregator writes or reads at once
  int64_t ind_rd_buffer_size = int64_t{4} << 20;
  int64_t ind_wr_buffer_size = int64_t{512} << 10;
  Choice cb_read = Choice::kAutomatic, cb_write = Choice::kAutomatic;
  Choice ds_read = Choice::kAutomatic, ds_write = Choice::kAutomatic;
  Access access = Access::kUnknown;
  // The text that `access` was parsed from, as the program gave it, with a terminating zero. It has space for each of
  // the standard's words once.
  char access_style[96] = {};

  // Takes the hints that it knows. Invalid values are ignored, as the standard requires.
  void Take(const Info& info);
  // Limits values received from another rank to the range that Take accepts.
  void Clamp();
  // Stores the hints in force as keys. `aggregators`: their number; 0: not known yet.
  void Tell(int aggregators, Info* info) const;
};

}  // namespace weft::mpi::io

#endif  // MPI_HYBRID_IO_HINTS_H_
