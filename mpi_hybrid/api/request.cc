#include <algorithm>
#include <string>
#include <utility>

#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/api/message_arguments.h"
#include "mpi_hybrid/core/error_handler.h"
#include "mpi_hybrid/p2p/progress.h"
#include "mpi_hybrid/p2p/request/request.h"

// Completion of requests (MPI 4.0 sections 3.7.3 to 3.7.6, 3.8.4).
namespace weft::mpi {
namespace {

std::string Name(MPI_Request handle, int index) {
  char text[64];
  if (index < 0) {
    std::snprintf(text, sizeof(text), "request 0x%08x", static_cast<unsigned>(handle));
  } else {
    std::snprintf(text, sizeof(text), "array_of_requests[%d], 0x%08x,", index, static_cast<unsigned>(handle));
  }
  return text;
}

Error NoSuchRequest(MPI_Request handle, int index) {
  return Error(MPI_ERR_REQUEST, Name(handle, index) + " is not a request (never made, or completed or freed already)");
}

// Null for MPI_REQUEST_NULL. `index`: of the array, or -1.
inline Error FindRequest(MPI_Request handle, int index, Request** request) {
  *request = Request::Find(handle);
  if (*request != nullptr ? (*request)->kind != Request::Kind::kMessage : handle == MPI_REQUEST_NULL) [[likely]] return {};
  *request = nullptr;
  return NoSuchRequest(handle, index);
}

// ... and MPI_REQUEST_NULL is an error.
Error FindExisting(const MPI_Request* handle, Request** request) {
  WEFT_MPI_TRY(CheckNotNull(handle, "request"));
  WEFT_MPI_TRY(FindRequest(*handle, -1, request));
  return *request != nullptr ? Error() : Error(MPI_ERR_REQUEST, "request is MPI_REQUEST_NULL");
}

bool IsActive(const Request* request) { return request != nullptr && (!request->persistent || request->active); }

// The operation of a program's array of requests. Handles have been checked.
Request* At(const MPI_Request* handles, int i) { return handles[i] == MPI_REQUEST_NULL ? nullptr : Request::Find(handles[i]); }

// Whether a wait for it would end now.
bool IsOver(const Request* request) { return !IsActive(request) || request->complete || request->IsHindered(); }

// What a wait returns, with the comm whose handler hears of it.
struct Outcome {
  Error error;
  Ref<Comm> comm;
};

// Takes the result of a request that is over; frees it or makes it inactive. One that is hindered stays as it is.
Outcome Collect(MPI_Request* handle, MPI_Status* status) {
  Request* request = *handle == MPI_REQUEST_NULL ? nullptr : Request::Find(*handle);
  if (!IsActive(request)) {
    if (status != MPI_STATUS_IGNORE) *status = EmptyStatus();
    return {};
  }
  Outcome outcome;
  if (!request->complete) [[unlikely]] {
    if (status != MPI_STATUS_IGNORE) *status = EmptyStatus();
    return {request->Hindrance(), request->comm};
  }
  if (request->kind == Request::Kind::kGeneralized) {
    outcome.error = request->Query(&request->status);
    if (Error freed = request->Freed(); outcome.error.ok()) outcome.error = std::move(freed);
  }
  SetStatus(status, request->status);
  if (!request->error.ok()) [[unlikely]] {
    outcome.error = std::move(request->error);
    request->error = {};
  }
  if (!outcome.error.ok()) outcome.comm = request->comm;
  if (request->persistent) {
    request->active = false;
  } else {
    Request::TakeBack(handle);
  }
  return outcome;
}

// Results of several requests at once: MPI_ERR_IN_STATUS when one failed, and each status says whether it is that of
// one which did. MPI 4.0 section 3.2.5 has the statuses say so only if one failed, but programs look without asking.
class Results {
 public:
  explicit Results(MPI_Status* statuses) : statuses_(statuses) {}

  // Result number `slot` is that of the request at `handle`.
  void Take(MPI_Request* handle, int slot) {
    MPI_Status* status = statuses_ == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : statuses_ + slot;
    if (Request* const request = Request::Find(*handle); request != nullptr && request->is_simply_over()) [[likely]] {
      if (status != MPI_STATUS_IGNORE) {
        *status = request->status;
        status->MPI_ERROR = MPI_SUCCESS;
      }
      return Request::TakeBack(handle, *request);
    }
    Outcome outcome = Collect(handle, status);
    if (!outcome.error.ok()) {
      if (failed_++ == 0) {
        first_ = std::move(outcome.comm);
        message_ = "request " + std::to_string(slot) + ": " + outcome.error.message();
      }
    }
    if (status != MPI_STATUS_IGNORE) status->MPI_ERROR = MakeErrorCode(outcome.error);
  }

  Error error() const { return failed_ == 0 ? Error() : Error(MPI_ERR_IN_STATUS, message_); }
  Ref<Comm> comm() const { return first_; }

 private:
  MPI_Status* const statuses_;
  int failed_ = 0;
  Ref<Comm> first_;
  std::string message_;
};

// As Anywhere(), but the error of a request goes to the handler of its communicator: the body sets `*comm`.
template <typename Body>
int OnRequests(const char* name, Body body) {
  LockGuard lock;
  if (g_library_state != LibraryState::kRunning) [[unlikely]] NotRunning(name);
  Ref<Comm> comm;
  Error error = body(&comm);
  if (error.ok()) [[likely]] return MPI_SUCCESS;
  return ReportOnComm(name, comm.get(), error);
}

Error Take(MPI_Request* handle, MPI_Status* status, Ref<Comm>* comm) {
  Outcome outcome = Collect(handle, status);
  *comm = std::move(outcome.comm);
  return std::move(outcome.error);
}

// `over`: how many, from the first one on, are over; may be null.
Error CheckRequests(int count, const MPI_Request* requests, const MPI_Status* statuses, int* over = nullptr) {
  WEFT_MPI_TRY(CheckCount(count));
  if (count == 0) return {};
  WEFT_MPI_TRY(CheckNotNull(requests, "array_of_requests"));
  WEFT_MPI_TRY(CheckNotNull(statuses, "array_of_statuses"));
  for (int i = 0; i < count; ++i) {
    Request* request;
    WEFT_MPI_TRY(FindRequest(requests[i], i, &request));
    if (over != nullptr && *over == i && IsOver(request)) ++*over;
  }
  return {};
}

// --- which of several ---

// The first that is active and over; `*any_active`: whether there is an active one.
int FindComplete(int count, const MPI_Request* requests, bool* any_active) {
  *any_active = false;
  for (int i = 0; i < count; ++i) {
    const Request* request = At(requests, i);
    if (!IsActive(request)) continue;
    *any_active = true;
    if (IsOver(request)) return i;
  }
  return MPI_UNDEFINED;
}

bool AllOver(int count, const MPI_Request* requests, int* from) {
  while (*from < count && IsOver(At(requests, *from))) ++*from;
  return *from == count;
}

Error CheckAny(int count, const MPI_Request* requests, const int* index, const MPI_Status* status) {
  WEFT_MPI_TRY(CheckNotNull(status, "status"));
  WEFT_MPI_TRY(CheckRequests(count, requests, status));
  return CheckNotNull(index, "index");
}

Error CheckSome(int count, const MPI_Request* requests, const int* out_count, const int* indices, const MPI_Status* statuses) {
  WEFT_MPI_TRY(CheckRequests(count, requests, statuses));
  WEFT_MPI_TRY(CheckNotNull(out_count, "outcount"));
  return count == 0 ? Error() : CheckNotNull(indices, "array_of_indices");
}

// All that are over; `any_active` as of FindComplete.
Error TakeSome(int count, MPI_Request* requests, bool any_active, int* out_count, int* indices, MPI_Status* statuses, Ref<Comm>* comm) {
  if (!any_active) {
    *out_count = MPI_UNDEFINED;
    return {};
  }
  Results results(statuses);
  int taken = 0;
  for (int i = 0; i < count; ++i) {
    const Request* request = At(requests, i);
    if (!IsActive(request) || !IsOver(request)) continue;
    results.Take(&requests[i], taken);
    indices[taken++] = i;
  }
  *out_count = taken;
  *comm = results.comm();
  return results.error();
}

}  // namespace
}  // namespace weft::mpi

using namespace weft::mpi;

int PMPI_Wait(MPI_Request* request, MPI_Status* status) {
  return OnRequests("MPI_Wait", [&](Ref<Comm>* comm) -> Error {
    WEFT_MPI_TRY(CheckNotNull(request, "request"));
    WEFT_MPI_TRY(CheckStatus(status));
    Request* found;
    WEFT_MPI_TRY(FindRequest(*request, -1, &found));
    if (IsActive(found)) Progress::WaitUntil([&] { return IsOver(found); });
    return Take(request, status, comm);
  });
}
WEFT_MPI_ALIAS(Wait)

int PMPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  return OnRequests("MPI_Test", [&](Ref<Comm>* comm) -> Error {
    WEFT_MPI_TRY(CheckNotNull(request, "request"));
    WEFT_MPI_TRY(CheckNotNull(flag, "flag"));
    WEFT_MPI_TRY(CheckStatus(status));
    Request* found;
    WEFT_MPI_TRY(FindRequest(*request, -1, &found));
    if (!IsOver(found)) Progress::PollForTest();
    *flag = IsOver(found);
    return *flag ? Take(request, status, comm) : Error();
  });
}
WEFT_MPI_ALIAS(Test)

int PMPI_Waitall(int count, MPI_Request array_of_requests[], MPI_Status array_of_statuses[]) {
  return OnRequests("MPI_Waitall", [&](Ref<Comm>* comm) -> Error {
    int over = 0;
    WEFT_MPI_TRY(CheckRequests(count, array_of_requests, array_of_statuses, &over));
    Progress::WaitUntil([&] { return AllOver(count, array_of_requests, &over); });
    Results results(array_of_statuses);
    for (int i = 0; i < count; ++i) results.Take(&array_of_requests[i], i);
    *comm = results.comm();
    return results.error();
  });
}
WEFT_MPI_ALIAS(Waitall)

int PMPI_Testall(int count, MPI_Request array_of_requests[], int* flag, MPI_Status array_of_statuses[]) {
  return OnRequests("MPI_Testall", [&](Ref<Comm>* comm) -> Error {
    int over = 0;
    WEFT_MPI_TRY(CheckRequests(count, array_of_requests, array_of_statuses, &over));
    WEFT_MPI_TRY(CheckNotNull(flag, "flag"));
    *flag = AllOver(count, array_of_requests, &over);
    if (!*flag) {
      Progress::PollForTest();
      *flag = AllOver(count, array_of_requests, &over);
    }
    if (!*flag) return {};
    Results results(array_of_statuses);
    for (int i = 0; i < count; ++i) results.Take(&array_of_requests[i], i);
    *comm = results.comm();
    return results.error();
  });
}
WEFT_MPI_ALIAS(Testall)

int PMPI_Waitany(int count, MPI_Request array_of_requests[], int* indx, MPI_Status* status) {
  return OnRequests("MPI_Waitany", [&](Ref<Comm>* comm) -> Error {
    WEFT_MPI_TRY(CheckAny(count, array_of_requests, indx, status));
    int found = MPI_UNDEFINED;
    bool any_active = false;
    Progress::WaitUntil([&] {
      found = FindComplete(count, array_of_requests, &any_active);
      return found != MPI_UNDEFINED || !any_active;
    });
    *indx = found;
    if (found != MPI_UNDEFINED) return Take(&array_of_requests[found], status, comm);
    if (status != MPI_STATUS_IGNORE) *status = EmptyStatus();
    return {};
  });
}
WEFT_MPI_ALIAS(Waitany)

int PMPI_Testany(int count, MPI_Request array_of_requests[], int* indx, int* flag, MPI_Status* status) {
  return OnRequests("MPI_Testany", [&](Ref<Comm>* comm) -> Error {
    WEFT_MPI_TRY(CheckAny(count, array_of_requests, indx, status));
    WEFT_MPI_TRY(CheckNotNull(flag, "flag"));
    bool any_active;
    *indx = FindComplete(count, array_of_requests, &any_active);
    if (*indx == MPI_UNDEFINED && any_active) {
      Progress::PollForTest();
      *indx = FindComplete(count, array_of_requests, &any_active);
    }
    *flag = *indx != MPI_UNDEFINED || !any_active;
    if (*indx != MPI_UNDEFINED) return Take(&array_of_requests[*indx], status, comm);
    if (*flag && status != MPI_STATUS_IGNORE) *status = EmptyStatus();
    return {};
  });
}
WEFT_MPI_ALIAS(Testany)

int PMPI_Waitsome(int incount, MPI_Request array_of_requests[], int* outcount, int array_of_indices[], MPI_Status array_of_statuses[]) {
  return OnRequests("MPI_Waitsome", [&](Ref<Comm>* comm) -> Error {
    WEFT_MPI_TRY(CheckSome(incount, array_of_requests, outcount, array_of_indices, array_of_statuses));
    bool any_active = false;
    Progress::WaitUntil([&] { return FindComplete(incount, array_of_requests, &any_active) != MPI_UNDEFINED || !any_active; });
    return TakeSome(incount, array_of_requests, any_active, outcount, array_of_indices, array_of_statuses, comm);
  });
}
WEFT_MPI_ALIAS(Waitsome)

int PMPI_Testsome(int incount, MPI_Request array_of_requests[], int* outcount, int array_of_indices[], MPI_Status array_of_statuses[]) {
  return OnRequests("MPI_Testsome", [&](Ref<Comm>* comm) -> Error {
    WEFT_MPI_TRY(CheckSome(incount, array_of_requests, outcount, array_of_indices, array_of_statuses));
    Progress::PollForTest();
    bool any_active;
    FindComplete(incount, array_of_requests, &any_active);
    return TakeSome(incount, array_of_requests, any_active, outcount, array_of_indices, array_of_statuses, comm);
  });
}
WEFT_MPI_ALIAS(Testsome)

int PMPI_Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  return OnRequests("MPI_Request_get_status", [&](Ref<Comm>* comm) -> Error {
    WEFT_MPI_TRY(CheckNotNull(flag, "flag"));
    WEFT_MPI_TRY(CheckStatus(status));
    Request* found;
    WEFT_MPI_TRY(FindRequest(request, -1, &found));
    if (IsActive(found) && !found->complete) Progress::PollForTest();
    *flag = !IsActive(found) || found->complete;
    if (!*flag) return {};
    if (!IsActive(found)) {
      if (status != MPI_STATUS_IGNORE) *status = EmptyStatus();
      return {};
    }
    *comm = found->comm;
    if (found->kind == Request::Kind::kGeneralized) WEFT_MPI_TRY(found->Query(&found->status));
    SetStatus(status, found->status);
    return {};
  });
}
WEFT_MPI_ALIAS(Request_get_status)

int PMPI_Request_free(MPI_Request* request) {
  return OnRequests("MPI_Request_free", [&](Ref<Comm>* comm) -> Error {
    Request* found;
    WEFT_MPI_TRY(FindExisting(request, &found));
    *comm = found->comm;
    if (found->kind != Request::Kind::kGeneralized) {
      Request::TakeBack(request);
      return {};
    }
    // Its handle is good for MPI_Grequest_complete until that was called.
    const bool complete = found->complete;
    Error error = complete ? found->Freed() : Error();
    if (complete) {
      Request::TakeBack(request);
    } else {
      found->active = false;
      *request = MPI_REQUEST_NULL;
    }
    return error;
  });
}
WEFT_MPI_ALIAS(Request_free)

int PMPI_Cancel(MPI_Request* request) {
  return OnRequests("MPI_Cancel", [&](Ref<Comm>* comm) -> Error {
    Request* found;
    WEFT_MPI_TRY(FindExisting(request, &found));
    *comm = found->comm;
    if (!IsActive(found)) return Error(MPI_ERR_REQUEST, "the persistent request is not active");
    Error error = found->Cancel();
    Progress::Poll();  // writes what asks the other side
    return error;
  });
}
WEFT_MPI_ALIAS(Cancel)

int PMPI_Test_cancelled(const MPI_Status* status, int* flag) {
  return Anywhere("MPI_Test_cancelled", [&]() -> Error {
    WEFT_MPI_TRY(CheckNotNull(status, "status"));
    WEFT_MPI_TRY(CheckNotNull(flag, "flag"));
    *flag = status->count_hi_and_cancelled & 1;
    return {};
  });
}
WEFT_MPI_ALIAS(Test_cancelled)
