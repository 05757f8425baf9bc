#ifndef MPI_HYBRID_IO_REPRESENTATION_H_
#define MPI_HYBRID_IO_REPRESENTATION_H_

#include <mpi.h>

#include <cstdint>
#include <string>

#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/core/ref.h"
#include "mpi_hybrid/datatype/datatype.h"

namespace weft::mpi::io {

// The representation of data in a file (MPI 4.0 section 14.5): "native" and "internal" are as in memory, "external32"
// is portable, others are registered by the program. Objects live forever. Conversions need no lock, because functions
// of the program may call MPI.
class Representation {
 public:
  virtual ~Representation() = default;

  const std::string name;

  // True: the file contains the packed bytes of memory, and the functions below are not called.
  virtual bool as_in_memory() const { return true; }
  // The type that describes the layout in the file; `type` itself if the sizes are the same.
  virtual Error FileType(const Datatype& type, Ref<const Datatype>* made) const = 0;
  // The number of bytes that `count` elements take in the file.
  virtual Error FileBytes(MPI_Count count, const Datatype& type, MPI_Count* bytes) const = 0;
  virtual Error ToFile(const void* buffer, MPI_Count count, const Datatype& type, uint8_t* out) const = 0;
  // Converts the first `bytes` bytes, which are fewer than FileBytes if the file ended early. `*data`: bytes of data
  // stored in `buffer`.
  virtual Error FromFile(uint8_t* in, MPI_Count bytes, void* buffer, MPI_Count count, const Datatype& type, MPI_Count* data) const = 0;

 protected:
  explicit Representation(std::string its_name) : name(std::move(its_name)) {}
};

// Null: no representation has that name.
const Representation* FindRepresentation(const std::string& name);

// The functions of MPI_Register_datarep and of its large-count form. A null conversion function means that data is as
// in memory.
struct DatarepFunctions {
  MPI_Datarep_conversion_function* read = nullptr;
  MPI_Datarep_conversion_function* write = nullptr;
  MPI_Datarep_conversion_function_c* read_c = nullptr;
  MPI_Datarep_conversion_function_c* write_c = nullptr;
  MPI_Datarep_extent_function* extent = nullptr;
  void* extra_state = nullptr;
};
// MPI_ERR_DUP_DATAREP: a representation of that name exists.
Error RegisterRepresentation(const std::string& name, const DatarepFunctions& functions);

}  // namespace weft::mpi::io

#endif  // MPI_HYBRID_IO_REPRESENTATION_H_
