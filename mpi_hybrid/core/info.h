#ifndef MPI_HYBRID_CORE_INFO_H_
#define MPI_HYBRID_CORE_INFO_H_

#include <mpi.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/core/handle.h"
#include "mpi_hybrid/core/ref.h"

namespace weft::mpi {

// MPI_Info: keys in the order in which they were first set. Key and value lengths are checked by api/.
struct Info : RefCounted<Info> {
  MPI_Info handle = MPI_INFO_NULL;
  std::vector<std::pair<std::string, std::string>> entries;

  static Info* Find(MPI_Info handle);  // MPI_INFO_ENV too

  void Set(const std::string& key, const std::string& value);
  std::optional<std::string> Get(const std::string& key) const;
  bool Delete(const std::string& key);

  ~Info();
};

// A new one with a handle; the reference is the handle's, and MPI_Info_free's Release() ends it. To give one that the library
// holds to the program, copy its entries into a new one (MPI_Comm_get_info).
Info& MakeInfo();
// MPI_INFO_ENV; MPI_Init fills it.
Info& EnvironmentInfo();

}  // namespace weft::mpi

#endif  // MPI_HYBRID_CORE_INFO_H_
