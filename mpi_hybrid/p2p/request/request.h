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

// One operation under way: what an MPI_Request handle means, and what the layers below the API wait for. Derived classes hold the
// state of their kind and live in their layers (p2p/: sends, receives, persistent; coll/: schedules; rma/; io/: accesses of files; api/: generalized).
// Reference counted by hand, so that they can come from pools: the user's handle is one reference, the layer that works at it another.
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

  // Complete, without error, and nothing is left to be done but to give its status out and to free it.
  bool is_simply_over() const { return complete && !persistent && kind != Kind::kGeneralized && error.ok(); }

  // Called by the owning layer when the operation ended: `status` and `error` are set. Wakes whoever waits. At most once per start.
  void Complete() {
    WEFT_CHECK(!complete);
    complete = true;
    if (outer != nullptr) [[unlikely]] outer->InnerDone(*this);  // may have been the last to need this request
    News::Tell();
  }

  const Kind kind;
  bool complete = false;
  bool persistent = false;        // its handle survives completion; inactive when !active
  bool active = true;
  MPI_Status status{};            // source, tag and count of receives; cancelled flag of sends and receives. MPI_ERROR is not used
  Error error;
  Ref<Comm> comm;                 // whose error handler hears of `error`; may be null
  MPI_Request handle = MPI_REQUEST_NULL;  // MPI_REQUEST_NULL while the program has none

  // MPI_Start; persistent requests only.
  virtual Error Start() { return Error(MPI_ERR_REQUEST, "the request is not a persistent one"); }
  // MPI_Cancel: succeeds or does nothing; the request completes either way.
  virtual Error Cancel() { return {}; }
  // Why a wait for it is to end though it is not complete, and can be waited for again; a success: it is not.
  virtual Error Hindrance() const { return {}; }
  bool IsHindered() const { return hindrances_ && !complete && !Hindrance().ok(); }
  // There may be some from now on.
  static void NoteHindrances() { hindrances_ = true; }
  // Generalized requests: called before a status is given out, and when the request is freed.
  virtual Error Query(MPI_Status*) { return {}; }
  virtual Error Freed() { return {}; }

  // Of a request that is made of others: called by an inner one (inner.outer == this) at the end of its Complete(), with its status and
  // error set. May complete this request, may drop its reference to `inner`; may not communicate.
  virtual void InnerDone(Request& /*inner*/) {}
  Request* outer = nullptr;  // not owned; whoever sets it outlives the operation or clears it

  // The table of handles. Give() makes the handle, to which the caller's reference passes.
  static Request* Find(MPI_Request handle) { return table_.requests.Find(handle); }
  static MPI_Request Give(Request* request);
  // The handle of an operation that was over at once, without anything to say: the same each time, and never void.
  static MPI_Request GiveDone();
  // Removes the handle, drops the reference, sets it to MPI_REQUEST_NULL.
  static void TakeBack(MPI_Request* handle);
  // The same of what Find has found for it.
  static void TakeBack(MPI_Request* handle, Request& request) {
    *handle = MPI_REQUEST_NULL;
    if (&request == done_) return;
    table_.requests.RemoveFound(request.handle);
    request.handle = MPI_REQUEST_NULL;
    request.Release();
  }

 protected:
  virtual void Recycle() { delete this; }
  // Back to the state after construction, for a next life from a pool.
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
// What a wait returns for MPI_REQUEST_NULL and inactive requests (MPI 4.0 section 3.7.3), and for MPI_PROC_NULL.
MPI_Status EmptyStatus();
MPI_Status ProcNullStatus();

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_REQUEST_REQUEST_H_
