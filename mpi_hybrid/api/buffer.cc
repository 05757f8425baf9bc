#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/p2p/message.h"

// The buffer of buffered mode (MPI 4.0 section 3.6).
namespace weft::mpi {
namespace {

int Attach(const char* name, void* buffer, MPI_Count size) {
  return Anywhere(name, [&]() -> Error {
    if (size < 0) return Error(MPI_ERR_ARG, "size " + std::to_string(size) + " is negative");
    if (size != 0) WEFT_MPI_TRY(CheckNotNull(buffer, "buffer"));
    return AttachBuffer(buffer, size);
  });
}

template <typename Size>
int Detach(const char* name, void* buffer_address, Size* size) {
  return Anywhere(name, [&]() -> Error {
    WEFT_MPI_TRY(CheckNotNull(buffer_address, "buffer_addr"));
    WEFT_MPI_TRY(CheckNotNull(size, "size"));
    MPI_Aint bytes;
    WEFT_MPI_TRY(DetachBuffer(static_cast<void**>(buffer_address), &bytes));
    *size = static_cast<Size>(bytes);
    return {};
  });
}

}  // namespace
}  // namespace weft::mpi

using namespace weft::mpi;

int PMPI_Buffer_attach(void* buffer, int size) { return Attach("MPI_Buffer_attach", buffer, size); }
WEFT_MPI_ALIAS(Buffer_attach)

int PMPI_Buffer_attach_c(void* buffer, MPI_Count size) { return Attach("MPI_Buffer_attach_c", buffer, size); }
WEFT_MPI_ALIAS(Buffer_attach_c)

int PMPI_Buffer_detach(void* buffer_addr, int* size) { return Detach("MPI_Buffer_detach", buffer_addr, size); }
WEFT_MPI_ALIAS(Buffer_detach)

int PMPI_Buffer_detach_c(void* buffer_addr, MPI_Count* size) { return Detach("MPI_Buffer_detach_c", buffer_addr, size); }
WEFT_MPI_ALIAS(Buffer_detach_c)
