#include "mpi_hybrid/api/bindings.h"
#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/api/type_arguments.h"
#include "mpi_hybrid/datatype/external32.h"
#include "mpi_hybrid/datatype/signature.h"
#include "mpi_hybrid/p2p/request/external_count.h"
#include "mpi_hybrid/p2p/request/request.h"

// How much a status says was received (MPI 4.0 sections 3.2.5 and 5.1.11); what programs write into one is in status.cc.
namespace weft::mpi {
namespace {

Error CheckReadable(const MPI_Status* status) {
  if (status != nullptr && status != MPI_STATUS_IGNORE) return {};
  return Error(MPI_ERR_ARG, status == nullptr ? "status is a null pointer" : "status is MPI_STATUS_IGNORE");
}

// Of data of that type; MPI_UNDEFINED: of a part of a basic element, in a message that a probe saw in external32.
MPI_Count BytesOf(const MPI_Status& status, const Datatype& type) {
  const MPI_Count bytes = GetCount(status);
  return bytes < kExternalCount ? bytes : MemorySizeOfExternal(bytes - kExternalCount, type);
}

// Whole elements; MPI_UNDEFINED when there is a part of one.
template <typename N>
Error CountOf(const MPI_Status* status, MPI_Datatype handle, N* count) {
  const Datatype* type;
  WEFT_MPI_TRY(CheckReadable(status));
  WEFT_MPI_TRY(FindType(handle, &type));
  WEFT_MPI_TRY(CheckNotNull(count, "count"));
  const MPI_Count bytes = BytesOf(*status, *type);
  if (type->size == 0 || bytes == MPI_UNDEFINED) {
    *count = bytes == 0 ? 0 : MPI_UNDEFINED;
  } else if (bytes % type->size != 0) {
    *count = MPI_UNDEFINED;
  } else {
    Express(bytes / type->size, count);
  }
  return {};
}

template <typename N>
Error Elements(const MPI_Status* status, MPI_Datatype handle, N* count) {
  const Datatype* type;
  WEFT_MPI_TRY(CheckReadable(status));
  WEFT_MPI_TRY(FindType(handle, &type));
  WEFT_MPI_TRY(CheckNotNull(count, "count"));
  const MPI_Count bytes = BytesOf(*status, *type);
  Express(bytes == MPI_UNDEFINED ? bytes : BasicsIn(bytes, *type), count);
  return {};
}

}  // namespace
}  // namespace weft::mpi

using namespace weft::mpi;

WEFT_MPI_BOTH(Get_count, (const MPI_Status* status, MPI_Datatype datatype, Count* count),
              Anywhere(name, [&] { return CountOf(status, datatype, count); }))

WEFT_MPI_BOTH(Get_elements, (const MPI_Status* status, MPI_Datatype datatype, Count* count),
              Anywhere(name, [&] { return Elements(status, datatype, count); }))

int PMPI_Get_elements_x(const MPI_Status* status, MPI_Datatype datatype, MPI_Count* count) {
  return Anywhere("MPI_Get_elements_x", [&] { return Elements(status, datatype, count); });
}
WEFT_MPI_ALIAS(Get_elements_x)
