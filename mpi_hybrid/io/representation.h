#ifndef MPI_HYBRID_IO_REPRESENTATION_H_
#define MPI_HYBRID_IO_REPRESENTATION_H_

#include <mpi.h>

#include <cstdint>
#include <string>

#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/core/ref.h"
#include "mpi_hybrid/datatype/datatype.h"

namespace weft::mpi::io {

// How data looks in a file (MPI 4.0 section 14.5): "native" and "internal" are as in memory, "external32" is portable, others are what the
// program registered. They live forever. Converting needs no lock: a program's functions may call MPI.
class Representation {
 public:
  virtual ~Representation() = default;

  const std::string name;

  // Bytes in the file are those in memory, packed; nothing below is called.
  virtual bool as_in_memory() const { return true; }
  // The type as it lies in the file; the same one where sizes do not differ.
  virtual Error FileType(const Datatype& type, Ref<const Datatype>* made) const = 0;
  // Bytes in the file of `count` elements.
  virtual Error FileBytes(MPI_Count count, const Datatype& type, MPI_Count* bytes) const = 0;
  virtual Error ToFile(const void* buffer, MPI_Count count, const Datatype& type, uint8_t* out) const = 0;
  // Converts the first `bytes` bytes of what FileBytes says there are, as many as a file that ends early had. `*data`: bytes of data
  // that `buffer` got.
  virtual Error FromFile(uint8_t* in, MPI_Count bytes, void* buffer, MPI_Count count, const Datatype& type, MPI_Count* data) const = 0;

 protected:
  explicit Representation(std::string its_name) : name(std::move(its_name)) {}
};

// Null: there is none of that name.
const Representation* FindRepresentation(const std::string& name);

// MPI_Register_datarep and its form with large counts; a conversion function that is null means that data is as in memory.
struct DatarepFunctions {
  MPI_Datarep_conversion_function* read = nullptr;
  MPI_Datarep_conversion_function* write = nullptr;
  MPI_Datarep_conversion_function_c* read_c = nullptr;
  MPI_Datarep_conversion_function_c* write_c = nullptr;
  MPI_Datarep_extent_function* extent = nullptr;
  void* extra_state = nullptr;
};
// MPI_ERR_DUP_DATAREP: there is one of that name.
Error RegisterRepresentation(const std::string& name, const DatarepFunctions& functions);

}  // namespace weft::mpi::io

#endif  // MPI_HYBRID_IO_REPRESENTATION_H_
