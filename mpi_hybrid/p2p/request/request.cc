#include "mpi_hybrid/p2p/request/request.h"

#include <utility>

#include "base/check.h"

namespace weft::mpi {

constinit Request::Table Request::table_;

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

MPI_Request Request::GiveDone() {
  if (done_ == nullptr) [[unlikely]] {
    done_ = new Request(Kind::kDone);  // outlives the program's exit handlers
    done_->complete = true;
    Give(done_);
  }
  return done_->handle;
}

void Request::TakeBack(MPI_Request* handle) {
  Request* request = Find(*handle);
  WEFT_CHECK(request != nullptr);
  TakeBack(handle, *request);
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
