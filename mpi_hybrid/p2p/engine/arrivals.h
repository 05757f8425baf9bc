#ifndef MPI_HYBRID_P2P_ENGINE_ARRIVALS_H_
#define MPI_HYBRID_P2P_ENGINE_ARRIVALS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace weft::mpi {

class Message;

// In which order the messages of one process were sent, where they come over several streams that may overtake one
// another. Each message (kEager, kRequest) has a number, counted by group of contexts, so that those of one
// communicator hardly ever wait for those of another. Of a fixed number: what a peer calls a context takes no memory.
class Arrivals {
 public:
  static constexpr size_t kGroups = 64;
  static constexpr uint32_t kMostAhead = 1u << 20;  // of the first that is missing; more is a lie
  static constexpr size_t kMostEarly = 1u << 17;    // at a time, of one process

  // Both ends count alike.
  static size_t GroupOf(uint32_t context) { return (context * 0x9e3779b1u) >> 26; }

  // A message that came before one that was sent earlier in its group.
  struct Early {
    size_t group = 0;
    uint64_t number = 0;
  };
  // `number` as on the wire. kWrong: it came already, or is too far ahead, or too many wait.
  enum class Kind : uint8_t { kNext, kEarly, kWrong };
  Kind Note(uint32_t context, uint32_t number, Early* early);
  // What waits under that number until its turn; null: it has a receive already.
  void Put(const Early& at, Message* message) { groups_[at.group].early[at.number] = message; }
  // The one whose turn it is after those that came: nullopt: it is missing.
  std::optional<Message*> TakeNext(size_t group);
  // The first of those that are early, though some before it are missing and will not come; nullopt: none is.
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
