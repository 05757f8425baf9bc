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

// Wires in memory: a queue each way between two processes, of so many bytes, from which a piece comes out when it has
// been looked for a few times. How often, and how the bytes are cut, the seed says. One descriptor for each process,
// whatever the number of its links: its doorbell.
class ToyNetwork final : public Network {
 public:
  enum class Carries { kBytes, kWholeFrames };

  // `reaches`: for the wire between which processes this network is (the same both ways round).
  ToyNetwork(
      int size, unsigned seed, Carries carries,
      std::function<bool(ProcessId, ProcessId)> reaches = [](ProcessId, ProcessId) { return true; })
      : carries_(carries), reaches_(std::move(reaches)), random_(seed), members_(static_cast<size_t>(size)) {}

  std::unique_ptr<Transport> Make(Engine& engine, EventLoop& loop) override;
  bool IsQuiet() override;
  size_t pieces_carried() const { return pieces_carried_; }

 private:
  friend class ToyTransport;
  static constexpr size_t kRoom = 200'000;  // bytes of a queue; a frame goes into it whole when there is any room

  struct Piece {
    std::vector<uint8_t> bytes;
    size_t read = 0;     // of them
    unsigned looks = 0;  // in vain before it is there
  };
  // What one end of a wire has.
  struct End {
    std::deque<Piece> pieces;  // that come to it
    size_t bytes = 0;          // in them
    unsigned looks = 0;        // in vain before it knows of the wire
    bool open = false;
    bool output_ended = false;
    bool closed = false;
  };
  struct Wire {
    End ends[2];  // of the lower process, of the higher one
  };

  std::map<std::pair<ProcessId, ProcessId>, Wire> wires_;  // lower process first; appears when either connects
  const Carries carries_;
  const std::function<bool(ProcessId, ProcessId)> reaches_;
  std::mt19937 random_;
  std::vector<ToyTransport*> members_;  // null: none there any more
  size_t pieces_carried_ = 0;
};

}  // namespace weft::mpi::testing

#endif  // MPI_HYBRID_P2P_TESTING_TOY_TOY_NETWORK_H_
