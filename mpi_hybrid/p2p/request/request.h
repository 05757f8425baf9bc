#ifndef MPI_HYBRID_P2P_REQUEST_REQUEST_H_
#define MPI_HYBRID_P2P_REQUEST_REQUEST_H_

#include <mpi.h>

#include <cstdint>

#include "base/check.h"
#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/core/handle.h"
#include "mpi_hybrid/p2p/request/news.h"

namespace weft::mpi {

// A pending operation: the object of an MPI_Request handle, which the layers below the API wait for. Derived classes
// hold the state of their kind and are in their layers (p2p/: sends, receives, persistent; coll/: schedules; rma/; io/:
// accesses of files; api/: generalized). Reference-counted without Ref, so that objects can come from pools. The user's
// handle holds one reference, the layer that works on the operation another.
class Request {
 public:
  enum class Kind : uint8_t { kSend, kReceive, kPersistent, kCollective, kRma, kGeneralized, kFile, kMessage, kDone };

  explicit Request(Kind kind) : kind(kind) {}
  virtual ~Request() = default;
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  void AddRef() { ++references_; }
  void Release() {
    if (--references_ == 0) Recycle();
  }

  // Complete, without error, and all that is left is to return the status and free the request.
  bool is_simply_over() const { return complete && !persistent && kind != Kind::kGeneralized && error.ok(); }

  // Called by the owning layer when the operation has ended, with `status` and `error` set. Wakes waiting threads. At
  // most once per start.
  void Complete() {
    WEFT_CHECK(!complete);
    complete = true;
    if (outer != nullptr) [[unlikely]] outer->InnerDone(*this);  // may release the last reference to this request
    News::Tell();
  }

  const Kind kind;
  bool complete = false;
  bool persistent = false;        // its handle survives completion; inactive if !active
  bool active = true;
  // source, tag and count of receives; cancelled flag of sends and receives. MPI_ERROR is not used
  MPI_Status status{};
  Error error;
  Ref<Comm> comm;                 // its error handler is called with `error`; may be null
  MPI_Request handle = MPI_REQUEST_NULL;  // MPI_REQUEST_NULL while the program has no handle

  // MPI_Start; persistent requests only.
  virtual Error Start() { return Error(MPI_ERR_REQUEST, "the request is not a persistent one"); }
  // MPI_Cancel: cancels or has no effect; the request completes in either case.
  virtual Error Cancel() { return {}; }
  // Why a wait for the request must end although the request is not complete; it can be waited for again. Success: it
  // need not end.
  virtual Error Hindrance() const { return {}; }
  bool IsHindered() const { return hindrances_ && !complete && !Hindrance().ok(); }
  // From now on requests may be hindered.
  static void NoteHindrances() { hindrances_ = true; }
  // Generalized requests: Query is called before a status is returned, Freed when the request is freed.
  virtual Error Query(MPI_Status*) { return {}; }
  virtual Error Freed() { return {}; }

  // For a request made of others: an inner request (inner.outer == this) calls it at the end of its Complete(), with
  // its status and error set. May complete this request and may release its reference to `inner`; must not communicate.
  virtual void InnerDone(Request& /*inner*/) {}
  Request* outer = nullptr;  // not owned; the code that sets it outlives the operation or clears it

  // The table of handles. Give() makes a handle, which takes over the caller's reference.
  static Request* Find(MPI_Request handle) { return table_.requests.Find(handle); }
  static MPI_Request Give(Request* request);
  // The handle of an operation that completed at once with an empty status. It is always the same, and always valid.
  static MPI_Request GiveDone();
  // Removes the handle, releases the reference, and sets the variable to MPI_REQUEST_NULL.
  static void TakeBack(MPI_Request* handle);
  // The same for the request that Find has returned for the handle.
  static void TakeBack(MPI_Request* handle, Request& request) {
    *handle = MPI_REQUEST_NULL;
    if (&request == done_) return;
    table_.requests.RemoveFound(request.handle);
    request.handle = MPI_REQUEST_NULL;
    request.Release();
  }

 protected:
  virtual void Recycle() { delete this; }
  // Restores the state after construction, for reuse from a pool.
  void Reset();

 private:
  // Outlives the program's exit handlers.
  union Table {
    constexpr Table() : requests(HandleKind::kRequest) {}
    ~Table() {}
    HandleTable<Request> requests;
  };
  static Table table_;
  static inline Request* done_ = nullptr;  // of GiveDone
  static inline bool hindrances_ = false;

  int references_ = 1;
};

inline void SetCount(MPI_Status& status, MPI_Count bytes) {
  status.count_lo = static_cast<int>(static_cast<uint64_t>(bytes) & 0xffffffffu);
  status.count_hi_and_cancelled = (status.count_hi_and_cancelled & 1) | static_cast<int>(static_cast<uint64_t>(bytes) >> 32 << 1);
}
inline MPI_Count GetCount(const MPI_Status& status) {
  return static_cast<MPI_Count>(static_cast<uint64_t>(static_cast<uint32_t>(status.count_hi_and_cancelled) >> 1) << 32 |
                                static_cast<uint32_t>(status.count_lo));
}
inline bool IsCancelled(const MPI_Status& status) { return (status.count_hi_and_cancelled & 1) != 0; }
inline void SetCancelled(MPI_Status& status, bool cancelled) {
  status.count_hi_and_cancelled = (status.count_hi_and_cancelled & ~1) | (cancelled ? 1 : 0);
}
// The status of a wait for MPI_REQUEST_NULL and for inactive requests (MPI 4.0 section 3.7.3), and that for
// MPI_PROC_NULL.
MPI_Status EmptyStatus();
MPI_Status ProcNullStatus();

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_REQUEST_REQUEST_H_
