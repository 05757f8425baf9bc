#ifndef MPI_HYBRID_P2P_TESTING_TOY_TOY_NETWORK_H_
#define MPI_HYBRID_P2P_TESTING_TOY_TOY_NETWORK_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "mpi_hybrid/p2p/testing/network.h"

namespace weft::mpi::testing {

class ToyTransport;

// Wires in memory: a queue of limited size in each direction between two processes. A piece can be taken out after a
// few attempts. The seed determines how many attempts, and how the bytes are cut into pieces. Each process has one
// descriptor for all of its links: its doorbell.
class ToyNetwork final : public Network {
 public:
  enum class Carries { kBytes, kWholeFrames };

  // `reaches`: the pairs of processes that this network connects (symmetric).
  ToyNetwork(
      int size, unsigned seed, Carries carries,
      std::function<bool(ProcessId, ProcessId)> reaches = [](ProcessId, ProcessId) { return true; })
      : carries_(carries), reaches_(std::move(reaches)), random_(seed), members_(static_cast<size_t>(size)) {}

  std::unique_ptr<Transport> Make(Engine& engine, EventLoop& loop) override;
  bool IsQuiet() override;
  size_t pieces_carried() const { return pieces_carried_; }

 private:
  friend class ToyTransport;
  static constexpr size_t kRoom = 200'000;  // bytes of a queue; a frame is queued completely if there is any space

  struct Piece {
    std::vector<uint8_t> bytes;
    size_t read = 0;     // bytes of it read
    unsigned looks = 0;  // failed attempts before it is available
  };
  // The state of one end of a wire.
  struct End {
    std::deque<Piece> pieces;  // on their way to it
    size_t bytes = 0;          // in them
    unsigned looks = 0;        // failed attempts before it knows of the wire
    bool open = false;
    bool output_ended = false;
    bool closed = false;
  };
  struct Wire {
    End ends[2];  // of the lower process, of the higher one
  };

  std::map<std::pair<ProcessId, ProcessId>, Wire> wires_;  // lower process first; made when either process connects
  const Carries carries_;
  const std::function<bool(ProcessId, ProcessId)> reaches_;
  std::mt19937 random_;
  std::vector<ToyTransport*> members_;  // null: destroyed
  size_t pieces_carried_ = 0;
};

}  // namespace weft::mpi::testing

#endif  // MPI_HYBRID_P2P_TESTING_TOY_TOY_NETWORK_H_
