#include <algorithm>
#include <string>
#include <vector>

#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/api/language_hooks.h"
#include "mpi_hybrid/core/error_handler.h"
#include "mpi_hybrid/p2p/progress.h"
#include "mpi_hybrid/p2p/request/request.h"

// Generalized requests (MPI 4.0 section 13.2), and MPICH's extension of them by functions that make progress.
namespace weft::mpi {
namespace {

// Calls into the program, without the lock. `code`: what its function returned.
template <typename Call>
Error CallUser(const char* which, Call call) {
  LibraryLock::Release();
  const int code = call();
  LibraryLock::Acquire();
  if (code == MPI_SUCCESS) return {};
  return Error(ErrorClassOf(code), std::string("the ") + which + " function of the generalized request failed: " + ErrorString(code));
}

struct Functions {
  MPI_Grequest_query_function* query;
  MPI_Grequest_free_function* free;
  MPI_Grequest_cancel_function* cancel;
  MPIX_Grequest_poll_function* poll = nullptr;
  MPIX_Grequest_wait_function* wait = nullptr;
};

class GeneralizedRequest;

// Polls the requests that have a function for it. There is no event to sleep for, so waits do not sleep while there is one.
class PollStage : public ProgressStage {
 public:
  void Add(GeneralizedRequest* request) {
    if (requests_.empty()) Progress::AddStage(this);
    requests_.push_back(request);
  }
  void Remove(GeneralizedRequest* request) {
    if (std::erase(requests_, request) != 0 && requests_.empty()) Progress::RemoveStage(this);
  }
  bool Poll() override;
  bool Arm() override { return false; }
  int fd() const override { return -1; }

 private:
  std::vector<GeneralizedRequest*> requests_;  // not complete
};

PollStage& Stage() {
  static auto* stage = new PollStage;
  return *stage;
}

class GeneralizedRequest : public Request {
 public:
  GeneralizedRequest(const Functions& functions, void* extra_state)
      : Request(Kind::kGeneralized), functions_(functions), extra_state_(extra_state) {
    status = EmptyStatus();
    if (functions_.poll != nullptr) Stage().Add(this);
  }
  ~GeneralizedRequest() override {
    if (functions_.poll != nullptr && !complete) Stage().Remove(this);
  }

  void set_fortran() { fortran_ = true; }

  Error Query(MPI_Status* to) override {
    return CallUser("query", [&] {
      if (!fortran_) return functions_.query(extra_state_, to);
      MPI_Fint code = MPI_SUCCESS;
      reinterpret_cast<void (*)(void*, MPI_Status*, MPI_Fint*)>(reinterpret_cast<void*>(functions_.query))(extra_state_, to, &code);
      return code;
    });
  }
  Error Freed() override {
    return CallUser("free", [&] {
      if (!fortran_) return functions_.free(extra_state_);
      MPI_Fint code = MPI_SUCCESS;
      reinterpret_cast<void (*)(void*, MPI_Fint*)>(reinterpret_cast<void*>(functions_.free))(extra_state_, &code);
      return code;
    });
  }
  Error Cancel() override {
    return CallUser("cancel", [&] {
      if (!fortran_) return functions_.cancel(extra_state_, complete);
      MPI_Fint code = MPI_SUCCESS, is_complete = complete;
      reinterpret_cast<void (*)(void*, MPI_Fint*, MPI_Fint*)>(reinterpret_cast<void*>(functions_.cancel))(extra_state_, &is_complete, &code);
      return code;
    });
  }

  // MPI_Grequest_complete.
  Error Done() {
    if (complete) return Error(MPI_ERR_REQUEST, "the generalized request is complete already");
    if (functions_.poll != nullptr) Stage().Remove(this);
    Complete();
    if (active) return {};
    // The program freed it before.
    Error error = Freed();
    MPI_Request freed = handle;
    TakeBack(&freed);
    return error;
  }

  void PollUser() {
    (void)CallUser("poll", [&] { return functions_.poll(extra_state_, &status); });
  }

 private:
  const Functions functions_;
  void* const extra_state_;
  bool fortran_ = false;
};

bool PollStage::Poll() {
  const std::vector<GeneralizedRequest*> polled = requests_;
  for (GeneralizedRequest* request : polled) {
    // An earlier one may have completed it.
    if (std::find(requests_.begin(), requests_.end(), request) == requests_.end()) continue;
    request->AddRef();
    request->PollUser();
    request->Release();
  }
  return requests_.size() != polled.size();
}

std::vector<Functions>& Classes() {
  static auto* classes = new std::vector<Functions>;
  return *classes;
}

Error CheckFunctions(const Functions& functions) {
  WEFT_MPI_TRY(CheckNotNull(reinterpret_cast<const void*>(functions.query), "query_fn"));
  WEFT_MPI_TRY(CheckNotNull(reinterpret_cast<const void*>(functions.free), "free_fn"));
  return CheckNotNull(reinterpret_cast<const void*>(functions.cancel), "cancel_fn");
}

int StartGeneralized(const char* name, const Functions& functions, void* extra_state, MPI_Request* request) {
  return Anywhere(name, [&]() -> Error {
    WEFT_MPI_TRY(CheckFunctions(functions));
    WEFT_MPI_TRY(CheckNotNull(request, "request"));
    *request = Request::Give(new GeneralizedRequest(functions, extra_state));
    return {};
  });
}

}  // namespace
}  // namespace weft::mpi

using namespace weft::mpi;

#define WEFT_MPIX_GREQUEST_ALIAS(name) \
  extern "C" decltype(PMPIX_##name) MPIX_##name __attribute__((weak, alias("PMPIX_" #name)));

int PMPI_Grequest_start(MPI_Grequest_query_function* query_fn, MPI_Grequest_free_function* free_fn, MPI_Grequest_cancel_function* cancel_fn,
                        void* extra_state, MPI_Request* request) {
  return StartGeneralized("MPI_Grequest_start", {query_fn, free_fn, cancel_fn}, extra_state, request);
}
WEFT_MPI_ALIAS(Grequest_start)

int PMPI_Grequest_complete(MPI_Request request) {
  return Anywhere("MPI_Grequest_complete", [&]() -> Error {
    Request* found = Request::Find(request);
    if (found == nullptr || found->kind != Request::Kind::kGeneralized) {
      return Error(MPI_ERR_REQUEST, "the request is not a generalized one");
    }
    return static_cast<GeneralizedRequest*>(found)->Done();
  });
}
WEFT_MPI_ALIAS(Grequest_complete)

int PMPIX_Grequest_start(MPI_Grequest_query_function* query_fn, MPI_Grequest_free_function* free_fn, MPI_Grequest_cancel_function* cancel_fn,
                         MPIX_Grequest_poll_function* poll_fn, MPIX_Grequest_wait_function* wait_fn, void* extra_state,
                         MPI_Request* request) {
  return StartGeneralized("MPIX_Grequest_start", {query_fn, free_fn, cancel_fn, poll_fn, wait_fn}, extra_state, request);
}
WEFT_MPIX_GREQUEST_ALIAS(Grequest_start)

int PMPIX_Grequest_class_create(MPI_Grequest_query_function* query_fn, MPI_Grequest_free_function* free_fn,
                                MPI_Grequest_cancel_function* cancel_fn, MPIX_Grequest_poll_function* poll_fn,
                                MPIX_Grequest_wait_function* wait_fn, MPIX_Grequest_class* greq_class) {
  return Anywhere("MPIX_Grequest_class_create", [&]() -> Error {
    const Functions functions = {query_fn, free_fn, cancel_fn, poll_fn, wait_fn};
    WEFT_MPI_TRY(CheckFunctions(functions));
    WEFT_MPI_TRY(CheckNotNull(greq_class, "greq_class"));
    *greq_class = static_cast<int>(Classes().size());
    Classes().push_back(functions);
    return {};
  });
}
WEFT_MPIX_GREQUEST_ALIAS(Grequest_class_create)

int PMPIX_Grequest_class_allocate(MPIX_Grequest_class greq_class, void* extra_state, MPI_Request* request) {
  return Anywhere("MPIX_Grequest_class_allocate", [&]() -> Error {
    WEFT_MPI_TRY(CheckNotNull(request, "request"));
    if (greq_class < 0 || static_cast<size_t>(greq_class) >= Classes().size()) {
      return Error(MPI_ERR_ARG, "greq_class " + std::to_string(greq_class) + " is not a class of generalized requests");
    }
    *request = Request::Give(new GeneralizedRequest(Classes()[static_cast<size_t>(greq_class)], extra_state));
    return {};
  });
}
WEFT_MPIX_GREQUEST_ALIAS(Grequest_class_allocate)

void MPII_Grequest_set_lang_f77(MPI_Request request) {
  LockGuard lock;
  Request* found = Request::Find(request);
  if (found != nullptr && found->kind == Request::Kind::kGeneralized) static_cast<GeneralizedRequest*>(found)->set_fortran();
}
