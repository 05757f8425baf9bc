#ifndef MPI_HYBRID_P2P_DEVICE_PRESENCE_H_
#define MPI_HYBRID_P2P_DEVICE_PRESENCE_H_

#include <atomic>
#include <cstdint>

namespace weft::mpi {

// Whether this process is certain to poll for a while: it is in a wait of MPI and has a processor of its own. A wire
// may then begin an operation that needs this process again; it is told when the wait ends. Guarded by the library's
// lock.
class Presence {
 public:
  // Whether the process has a processor for each of its host's ranks. Otherwise no wait counts.
  void set_has_processor(bool has) { has_processor_ = has; }
  bool is_sure() const { return waits_ != 0 && has_processor_; }
  // An operation was begun that goes on only while this process polls.
  void set_needed() { needed_ = true; }

  // Where other processes of the host see the state, 1 or 0. It must outlive the next call. Null: nowhere.
  void Show(std::atomic<uint32_t>* shown) {
    shown_ = shown;
    Tell();
  }

  void BeginWait() {
    if (++waits_ == 1) Tell();
  }
  // True: this was the last wait, and the wires must be told.
  [[nodiscard]] bool EndWait() {
    if (--waits_ != 0) return false;
    Tell();
    if (!needed_) [[likely]] return false;
    needed_ = false;
    return true;
  }

 private:
  void Tell() {
    if (shown_ != nullptr) shown_->store(is_sure() ? 1 : 0, std::memory_order_relaxed);
  }

  std::atomic<uint32_t>* shown_ = nullptr;
  int waits_ = 0;
  bool has_processor_ = false;
  bool needed_ = false;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_DEVICE_PRESENCE_H_
