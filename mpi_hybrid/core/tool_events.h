#ifndef MPI_HYBRID_CORE_TOOL_EVENTS_H_
#define MPI_HYBRID_CORE_TOOL_EVENTS_H_

#include <cstdint>

namespace weft::mpi {

// An event that a tool may have registered for (MPI_T_event_...). Fields that do not apply to its kind are 0.
struct ToolEvent {
  enum class Kind : uint8_t { kUnexpectedMessage, kProcessDied };

  Kind kind = Kind::kUnexpectedMessage;
  int32_t process = 0;  // in the table of processes
  int32_t source = 0, tag = 0;  // as on the wire: the rank in the communicator that the context belongs to
  uint32_t context = 0;
  uint64_t bytes = 0;
};

// Delivers events to the tool. Any layer may call Tell; only api/ listens, while a tool is registered. Guarded by the
// library's lock.
class ToolEvents {
 public:
  // Cheap: nothing happens while there is no listener.
  static void Tell(const ToolEvent& event) {
    if (listener_ != nullptr) [[unlikely]]
      listener_(event);
  }
  // `listener` must not communicate. Null: no listener.
  static void Listen(void (*listener)(const ToolEvent& event)) { listener_ = listener; }

 private:
  static inline void (*listener_)(const ToolEvent& event) = nullptr;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_CORE_TOOL_EVENTS_H_
