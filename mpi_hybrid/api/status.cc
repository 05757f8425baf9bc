#include <algorithm>
#include <span>
#include <string>

#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/datatype/predefined.h"
#include "mpi_hybrid/p2p/request.h"

// What programs write into statuses (MPI 4.0 sections 3.2.5, 13.3 and 19.3.5). At any time.
namespace weft::mpi {
namespace {

Error CheckStatus(const MPI_Status* status) {
  WEFT_MPI_TRY(CheckNotNull(status, "status"));
  if (status != MPI_STATUS_IGNORE) return {};
  return Error(MPI_ERR_ARG, "status is MPI_STATUS_IGNORE");
}

// One basic element of a pair type is two of MPI_Get_elements.
MPI_Count ElementsOf(const Basic& basic) { return basic.kind == BasicKind::kPair ? 2 : 1; }

MPI_Count ElementsOf(std::span<const SignaturePart> parts) {
  MPI_Count elements = 0;
  for (size_t i = 0; i < parts.size(); i += parts[i].body + 1) {
    const SignaturePart& part = parts[i];
    const Basic* basic = FindBasic(part.basic);
    const MPI_Count in_one = part.body > 0 ? ElementsOf(parts.subspan(i + 1, part.body)) : basic != nullptr ? ElementsOf(*basic) : 0;
    elements += part.count * in_one;
  }
  return elements;
}

// Bytes of the first `*elements` basic elements of the parts; takes off what they have.
MPI_Count BytesOf(MPI_Count* elements, std::span<const SignaturePart> parts) {
  MPI_Count bytes = 0;
  for (size_t i = 0; i < parts.size() && *elements > 0; i += parts[i].body + 1) {
    const SignaturePart& part = parts[i];
    const auto body = parts.subspan(i + 1, part.body);
    const Basic* basic = FindBasic(part.basic);
    if (body.empty() && basic == nullptr) continue;
    const MPI_Count in_one = body.empty() ? ElementsOf(*basic) : ElementsOf(body);
    if (in_one == 0) continue;
    const MPI_Count whole = std::min<MPI_Count>(*elements / in_one, part.count);
    MPI_Count of_one = in_one;
    bytes += whole * (body.empty() ? basic->size : BytesOf(&of_one, body));
    *elements -= whole * in_one;
    if (whole == part.count || *elements == 0) continue;
    if (body.empty()) {
      const Basic* first = FindBasic(basic->first);
      bytes += first != nullptr ? first->size : 0;
      *elements = 0;
    } else {
      bytes += BytesOf(elements, body);
    }
  }
  return bytes;
}

MPI_Count BytesOf(MPI_Count elements, const Datatype& type) {
  const MPI_Count in_one = ElementsOf(type.signature);
  if (in_one == 0) return 0;
  MPI_Count rest = elements % in_one;
  return elements / in_one * type.size + BytesOf(&rest, type.signature);
}

int SetElements(const char* name, MPI_Status* status, MPI_Datatype datatype, MPI_Count count) {
  return Anywhere(name, [&]() -> Error {
    const Datatype* type;
    WEFT_MPI_TRY(CheckStatus(status));
    WEFT_MPI_TRY(FindType(datatype, &type));
    WEFT_MPI_TRY(CheckCount(count));
    SetCount(*status, BytesOf(count, *type));
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
    WEFT_MPI_TRY(CheckStatus(status));
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
