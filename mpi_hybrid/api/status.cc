#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/datatype/signature.h"
#include "mpi_hybrid/p2p/request/request.h"

// What programs write into statuses (MPI 4.0 sections 3.2.5, 13.3 and 19.3.5). At any time.
namespace weft::mpi {
namespace {

Error CheckStatusIsWritable(const MPI_Status* status) {
  WEFT_MPI_TRY(CheckNotNull(status, "status"));
  if (status != MPI_STATUS_IGNORE) return {};
  return Error(MPI_ERR_ARG, "status is MPI_STATUS_IGNORE");
}

int SetElements(const char* name, MPI_Status* status, MPI_Datatype datatype, MPI_Count count) {
  return Anywhere(name, [&]() -> Error {
    const Datatype* type;
    WEFT_MPI_TRY(CheckStatusIsWritable(status));
    WEFT_MPI_TRY(FindType(datatype, &type));
    WEFT_MPI_TRY(CheckCount(count));
    SetCount(*status, BytesOfBasics(count, *type));
    return {};
  });
}

}  // namespace
}  // namespace weft::mpi

using namespace weft::mpi;

int PMPI_Status_set_elements(MPI_Status* status, MPI_Datatype datatype, int count) {
  return SetElements("MPI_Status_set_elements", status, datatype, count);
}
WEFT_MPI_ALIAS(Status_set_elements)

int PMPI_Status_set_elements_x(MPI_Status* status, MPI_Datatype datatype, MPI_Count count) {
  return SetElements("MPI_Status_set_elements_x", status, datatype, count);
}
WEFT_MPI_ALIAS(Status_set_elements_x)

int PMPI_Status_set_cancelled(MPI_Status* status, int flag) {
  return Anywhere("MPI_Status_set_cancelled", [&]() -> Error {
    WEFT_MPI_TRY(CheckStatusIsWritable(status));
    SetCancelled(*status, flag != 0);
    return {};
  });
}
WEFT_MPI_ALIAS(Status_set_cancelled)

// A Fortran status is the same five integers.
int PMPI_Status_c2f(const MPI_Status* c_status, MPI_Fint* f_status) {
  LockGuard lock;
  if (c_status == MPI_STATUS_IGNORE || c_status == nullptr || f_status == nullptr) {
    return ReportAnywhere("MPI_Status_c2f", Error(MPI_ERR_ARG, "a status is missing: null, or MPI_STATUS_IGNORE"));
  }
  const MPI_Fint fields[] = {c_status->count_lo, c_status->count_hi_and_cancelled, c_status->MPI_SOURCE, c_status->MPI_TAG,
                             c_status->MPI_ERROR};
  for (int i = 0; i < MPI_F_STATUS_SIZE; ++i) f_status[i] = fields[i];
  return MPI_SUCCESS;
}
WEFT_MPI_ALIAS(Status_c2f)

int PMPI_Status_f2c(const MPI_Fint* f_status, MPI_Status* c_status) {
  LockGuard lock;
  if (f_status == nullptr || f_status == MPI_F_STATUS_IGNORE || c_status == nullptr || c_status == MPI_STATUS_IGNORE) {
    return ReportAnywhere("MPI_Status_f2c", Error(MPI_ERR_ARG, "a status is missing: null, or MPI_F_STATUS_IGNORE"));
  }
  *c_status = {f_status[0], f_status[1], f_status[2], f_status[3], f_status[4]};
  return MPI_SUCCESS;
}
WEFT_MPI_ALIAS(Status_f2c)
