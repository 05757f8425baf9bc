#include "mpi_hybrid/p2p/request/request.h"

#include <utility>

#include "base/check.h"
#include "mpi_hybrid/p2p/request/news.h"

namespace weft::mpi {

constinit Request::Table Request::table_;

void Request::Complete() {
  WEFT_CHECK(!complete);
  complete = true;
  if (outer != nullptr) {
    outer->InnerDone(*this);  // may have been the last to need this request
  }
  News::Tell();
}

void Request::Reset() {
  complete = false;
  persistent = false;
  active = true;
  status = {};
  if (!error.ok()) error = {};
  comm = nullptr;
  handle = MPI_REQUEST_NULL;
  outer = nullptr;
  references_ = 1;
}

MPI_Request Request::Give(Request* request) {
  WEFT_CHECK(request->handle == MPI_REQUEST_NULL);
  return request->handle = table_.requests.Add(request);
}

void Request::TakeBack(MPI_Request* handle) {
  Request* request = Find(*handle);
  WEFT_CHECK(request != nullptr);
  table_.requests.Remove(*handle);
  request->handle = MPI_REQUEST_NULL;
  *handle = MPI_REQUEST_NULL;
  request->Release();
}

MPI_Status EmptyStatus() {
  MPI_Status status{};
  status.MPI_SOURCE = MPI_ANY_SOURCE;
  status.MPI_TAG = MPI_ANY_TAG;
  return status;
}

MPI_Status ProcNullStatus() {
  MPI_Status status{};
  status.MPI_SOURCE = MPI_PROC_NULL;
  status.MPI_TAG = MPI_ANY_TAG;
  return status;
}

}  // namespace weft::mpi
