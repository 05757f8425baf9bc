#ifndef MPI_HYBRID_RMA_WINDOW_H_
#define MPI_HYBRID_RMA_WINDOW_H_

#include <mpi.h>

#include <string>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/attributes.h"
#include "mpi_hybrid/core/handle.h"
#include "mpi_hybrid/datatype/datatype.h"
#include "mpi_hybrid/datatype/op.h"
#include "mpi_hybrid/p2p/request/request.h"

// One-sided communication (MPI 4.0 chapter 12) over verbs. Call with the library's lock held. Handles, counts and types
// are valid. Target ranks, ranges, epochs, lock types and assertions are checked by the window, because only the window
// knows them.
namespace weft::mpi {

// One side of a transfer.
struct Origin {
  const void* buffer = nullptr;
  MPI_Aint count = 0;
  const Datatype* type = nullptr;
};
struct Target {
  int rank = 0;
  MPI_Aint displacement = 0;  // in units of the target's displacement unit; an address for dynamic windows
  MPI_Aint count = 0;
  const Datatype* type = nullptr;
};

constexpr int kAllRanks = -100;

class Window : public RefCounted<Window> {
 public:
  MPI_Win handle = MPI_WIN_NULL;
  Ref<Comm> comm;  // a private duplicate
  int flavor = MPI_WIN_FLAVOR_CREATE;
  int model = MPI_WIN_UNIFIED;
  void* base = nullptr;
  MPI_Aint size = 0;
  int displacement_unit = 1;
  Ref<ErrorHandler> error_handler;  // null: the program set none
  Attributes attributes;
  Ref<Info> info;
  std::string name;

  static Window* Find(MPI_Win handle) { return table_.Find(handle); }
  // Returns a handle for the program, which owns a reference until TakeBack (MPI_Win_free).
  static MPI_Win Give(const Ref<Window>& window);
  static void TakeBack(Window& window);

  Window() = default;
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  virtual ~Window() = default;

  // Communication. If `request` is not null, it is the request form, and the caller owns the reference in it.
  virtual Error Put(const Origin& origin, const Target& target, Request** request) = 0;
  virtual Error Get(const Origin& origin, const Target& target, Request** request) = 0;
  virtual Error Accumulate(const Origin& origin, const Target& target, const Op& op, Request** request) = 0;
  virtual Error GetAccumulate(const Origin& origin, const Origin& result, const Target& target, const Op& op,
                              Request** request) = 0;
  virtual Error FetchAndOp(const void* origin, void* result, const Datatype& type, const Target& target, const Op& op) = 0;
  virtual Error CompareAndSwap(const void* origin, const void* compare, void* result, const Datatype& type,
                               const Target& target) = 0;

  // Synchronization.
  virtual Error Fence(int assertion) = 0;
  virtual Error Start(const Ref<Group>& group, int assertion) = 0;
  virtual Error Complete() = 0;
  virtual Error Post(const Ref<Group>& group, int assertion) = 0;
  virtual Error Wait() = 0;
  virtual Error Test(bool* done) = 0;
  virtual Error Lock(int lock_type, int rank, int assertion) = 0;
  virtual Error Unlock(int rank) = 0;
  virtual Error LockAll(int assertion) = 0;
  virtual Error UnlockAll() = 0;
  virtual Error Flush(int rank) = 0;  // or kAllRanks
  virtual Error FlushLocal(int rank) = 0;
  virtual Error Sync() = 0;

  // Dynamic windows.
  virtual Error Attach(void* base, MPI_Aint size) = 0;
  virtual Error Detach(const void* base) = 0;
  // Shared windows.
  virtual Error SharedQuery(int rank, MPI_Aint* size, int* displacement_unit, void** base) = 0;

  // MPI_ERR_RMA_SYNC: an epoch is open.
  virtual Error MayFree() const = 0;
  // Collective.
  virtual Error Free() = 0;

 private:
  static inline HandleTable<Window> table_{HandleKind::kWin};
};

// Collective constructors.
Error CreateWindow(void* base, MPI_Aint size, int displacement_unit, Comm& comm, const Info* info, Ref<Window>* made);
Error AllocateWindow(MPI_Aint size, int displacement_unit, Comm& comm, const Info* info, Ref<Window>* made);
Error AllocateSharedWindow(MPI_Aint size, int displacement_unit, Comm& comm, const Info* info, Ref<Window>* made);
Error CreateDynamicWindow(Comm& comm, const Info* info, Ref<Window>* made);

// MPI_Finalize: closes the queue pairs.
void StopWindows();
// No window contains `process` any more: closes the connections between the two.
void ForgetInWindows(ProcessId process);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_RMA_WINDOW_H_
