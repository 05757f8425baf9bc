#ifndef MPI_HYBRID_P2P_TESTING_NETWORK_H_
#define MPI_HYBRID_P2P_TESTING_NETWORK_H_

#include <functional>
#include <memory>
#include <vector>

#include "mpi_hybrid/p2p/device/device.h"
#include "mpi_hybrid/p2p/device/transport.h"
#include "mpi_hybrid/p2p/engine/engine.h"
#include "mpi_hybrid/p2p/loop/event_loop.h"
#include "mpi_hybrid/p2p/testing/process.h"

namespace weft::mpi::testing {

// One kind of wire between the processes of a job, all of which live in this process. The author of a Transport writes
// it to have the Transport tested.
class Network {
 public:
  virtual ~Network() = default;
  // Makes the wire of process engine.self(). The arguments and this object must outlive it.
  virtual std::unique_ptr<Transport> Make(Engine& engine, EventLoop& loop) = 0;
  // Called when no process has moved anything: whether nothing is in flight between them either.
  virtual bool IsQuiet() = 0;
};

// Makes a network for a job of `size`. A randomized one prints its seed when a test fails.
using NetworkFactory = std::function<std::unique_ptr<Network>(int size, unsigned seed)>;

// A process and its device.
struct Peer : Process {
  Peer(Network& network, int rank, int size, const EngineLimits& limits) : Process(rank, limits, size), device(engine) {
    device.Add(network.Make(engine, device.loop()));
  }
  void Start() {
    const Error error = device.Start();
    EXPECT_TRUE(error.ok()) << error.message();
  }
  Request* Send(const std::vector<uint8_t>& data, int to, int tag) {
    Request* request = Process::Send(data, tag, SendMode::kStandard, to);
    device.Flush();
    return request;
  }
  Request* Send(std::vector<uint8_t>&& data, int to, int tag) = delete;
  Request* Receive(std::vector<uint8_t>& data, int from, int tag) {
    Request* request = Process::Receive(data, from, tag);
    device.Flush();
    return request;
  }

  Device device;
};

}  // namespace weft::mpi::testing

#endif  // MPI_HYBRID_P2P_TESTING_NETWORK_H_
