#ifndef MPI_HYBRID_P2P_ENGINE_ARRIVALS_H_
#define MPI_HYBRID_P2P_ENGINE_ARRIVALS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace weft::mpi {

class Message;

// Restores the order in which the messages of one process were sent if they arrive over several streams that may
// overtake one another. Each message (kEager, kRequest) has a number, counted per group of contexts, so that messages
// of different communicators hardly ever wait for each other. The number of groups is fixed: contexts that a peer
// invents take no memory.
class Arrivals {
 public:
  static constexpr size_t kGroups = 64;
  // ahead of the first missing message; a larger distance is a protocol error
  static constexpr uint32_t kMostAhead = 1u << 20;
  static constexpr size_t kMostEarly = 1u << 17;  // early messages of one process at a time

  // Both ends use the same groups.
  static size_t GroupOf(uint32_t context) { return (context * 0x9e3779b1u) >> 26; }

  // A message that arrived before one that was sent earlier in its group.
  struct Early {
    size_t group = 0;
    uint64_t number = 0;
  };
  // `number`: as on the wire. kWrong: it has arrived before, or it is too far ahead, or too many messages are waiting.
  enum class Kind : uint8_t { kNext, kEarly, kWrong };
  Kind Note(uint32_t context, uint32_t number, Early* early);
  // Stores the message with that number until its turn. Null: it already has a receive.
  void Put(const Early& at, Message* message) { groups_[at.group].early[at.number] = message; }
  // The next message in turn. nullopt: it has not arrived.
  std::optional<Message*> TakeNext(size_t group);
  // The first early message, even if messages before it are missing and will not come. nullopt: there is none.
  std::optional<Message*> TakeAny();
  size_t early() const { return early_; }

 private:
  struct Group {
    uint64_t next = 0;
    std::map<uint64_t, Message*> early;
  };

  std::array<Group, kGroups> groups_;
  size_t early_ = 0;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_ENGINE_ARRIVALS_H_
