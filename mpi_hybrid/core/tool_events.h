#ifndef MPI_HYBRID_CORE_TOOL_EVENTS_H_
#define MPI_HYBRID_CORE_TOOL_EVENTS_H_

#include <cstdint>

namespace weft::mpi {

// Something that a tool may have asked to hear of (MPI_T_event_...). What is not of its kind is 0.
struct ToolEvent {
  enum class Kind : uint8_t { kUnexpectedMessage, kProcessDied };

  Kind kind = Kind::kUnexpectedMessage;
  int32_t process = 0;  // in the table of processes
  int32_t source = 0, tag = 0;  // as on the wire: the rank in the communicator of the context
  uint32_t context = 0;
  uint64_t bytes = 0;
};

// Whoever sees one tells of it; api/ alone listens, while a tool does. Guarded by the library's lock.
class ToolEvents {
 public:
  // Cheap; nothing happens while nobody listens.
  static void Tell(const ToolEvent& event) {
    if (listener_ != nullptr) [[unlikely]]
      listener_(event);
  }
  // `listener` may not communicate; null: nobody.
  static void Listen(void (*listener)(const ToolEvent& event)) { listener_ = listener; }

 private:
  static inline void (*listener_)(const ToolEvent& event) = nullptr;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_CORE_TOOL_EVENTS_H_
