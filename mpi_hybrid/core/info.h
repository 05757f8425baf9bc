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

// MPI_Info: keys in the order in which they were first set. api/ checks the lengths of keys and values.
struct Info : RefCounted<Info> {
  MPI_Info handle = MPI_INFO_NULL;
  std::vector<std::pair<std::string, std::string>> entries;

  static Info* Find(MPI_Info handle);  // also MPI_INFO_ENV

  void Set(const std::string& key, const std::string& value);
  std::optional<std::string> Get(const std::string& key) const;
  bool Delete(const std::string& key);

  ~Info();
};

// Makes an info object and its handle. The handle holds the reference; MPI_Info_free releases it. To give the program
// an info object that the library keeps, copy its entries into a new one (MPI_Comm_get_info).
Info& MakeInfo();
// MPI_INFO_ENV. MPI_Init fills it.
Info& EnvironmentInfo();

}  // namespace weft::mpi

#endif  // MPI_HYBRID_CORE_INFO_H_
