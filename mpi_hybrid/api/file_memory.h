#ifndef MPI_HYBRID_API_FILE_MEMORY_H_
#define MPI_HYBRID_API_FILE_MEMORY_H_

#include "mpi_hybrid/api/message_arguments.h"
#include "mpi_hybrid/io/operations.h"

namespace weft::mpi {

using io::Place;
constexpr auto kFileRead = io::Access::Direction::kRead;
constexpr auto kFileWrite = io::Access::Direction::kWrite;

// The memory of a data access as the program passed it.
struct FileMemory {
  const void* buffer;
  MPI_Count count;
  MPI_Datatype datatype;
};

inline Error FindMemory(const FileMemory& memory, io::Data* data) {
  *data = {memory.buffer, memory.count, nullptr};
  return FindData(memory.buffer, memory.count, memory.datatype, &data->type);
}

// `moved`: bytes of data.
inline void SayMoved(MPI_Count moved, MPI_Status* status) {
  MPI_Status said = EmptyStatus();
  SetCount(said, moved);
  SetStatus(status, said);
}

}  // namespace weft::mpi

#endif  // MPI_HYBRID_API_FILE_MEMORY_H_
