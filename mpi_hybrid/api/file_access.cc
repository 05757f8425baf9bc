#include "mpi_hybrid/api/bindings.h"
#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/api/file_entry.h"
#include "mpi_hybrid/api/file_memory.h"
#include "mpi_hybrid/io/operations.h"

// Data access that blocks (MPI 4.0 sections 14.4.2 to 14.4.4).
namespace weft::mpi {
namespace {

int Alone(const char* name, MPI_File fh, io::Access::Direction direction, Place place, const FileMemory& memory, MPI_Status* status) {
  return OnFile(name, fh, [&](io::File& f) -> Error {
    io::Data data;
    WEFT_MPI_TRY(FindMemory(memory, &data));
    MPI_Count moved = 0;
    Error error = io::Transfer(f, direction, place, data, &moved);
    SayMoved(moved, status);
    return error;
  });
}

int Together(const char* name, MPI_File fh, io::Access::Direction direction, Place place, const FileMemory& memory, MPI_Status* status) {
  return OnFile(name, fh, [&](io::File& f) -> Error {
    io::Data data;
    const Error refusal = FindMemory(memory, &data);
    MPI_Count moved = 0;
    Error error = io::TransferTogether(f, direction, place, data, refusal, &moved);
    SayMoved(moved, status);
    return error;
  });
}

}  // namespace
}  // namespace weft::mpi

using namespace weft::mpi;

#define WEFT_MPI_READ(function, how, place)                                                          \
  WEFT_MPI_BOTH(function, (MPI_File fh, void* buf, Count count, MPI_Datatype datatype, MPI_Status* status), \
                how(name, fh, kFileRead, place, {buf, count, datatype}, status))
#define WEFT_MPI_WRITE(function, how, place)                                                               \
  WEFT_MPI_BOTH(function, (MPI_File fh, const void* buf, Count count, MPI_Datatype datatype, MPI_Status* status), \
                how(name, fh, kFileWrite, place, {buf, count, datatype}, status))

WEFT_MPI_BOTH(File_read_at, (MPI_File fh, MPI_Offset offset, void* buf, Count count, MPI_Datatype datatype, MPI_Status* status),
              Alone(name, fh, kFileRead, Place::At(offset), {buf, count, datatype}, status))
WEFT_MPI_BOTH(File_read_at_all, (MPI_File fh, MPI_Offset offset, void* buf, Count count, MPI_Datatype datatype, MPI_Status* status),
              Together(name, fh, kFileRead, Place::At(offset), {buf, count, datatype}, status))
WEFT_MPI_BOTH(File_write_at, (MPI_File fh, MPI_Offset offset, const void* buf, Count count, MPI_Datatype datatype, MPI_Status* status),
              Alone(name, fh, kFileWrite, Place::At(offset), {buf, count, datatype}, status))
WEFT_MPI_BOTH(File_write_at_all, (MPI_File fh, MPI_Offset offset, const void* buf, Count count, MPI_Datatype datatype, MPI_Status* status),
              Together(name, fh, kFileWrite, Place::At(offset), {buf, count, datatype}, status))

WEFT_MPI_READ(File_read, Alone, Place::Pointer())
WEFT_MPI_READ(File_read_all, Together, Place::Pointer())
WEFT_MPI_READ(File_read_shared, Alone, Place::Shared())
WEFT_MPI_READ(File_read_ordered, Together, Place::Shared())
WEFT_MPI_WRITE(File_write, Alone, Place::Pointer())
WEFT_MPI_WRITE(File_write_all, Together, Place::Pointer())
WEFT_MPI_WRITE(File_write_shared, Alone, Place::Shared())
WEFT_MPI_WRITE(File_write_ordered, Together, Place::Shared())
