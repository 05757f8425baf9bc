#ifndef MPI_HYBRID_P2P_TESTING_PROCESS_H_
#define MPI_HYBRID_P2P_TESTING_PROCESS_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/datatype/datatype.h"
#include "mpi_hybrid/p2p/engine/engine.h"

namespace weft::mpi::testing {

inline const Datatype& Byte() { return *Datatype::Find(MPI_BYTE); }

// `length` bytes; another `start` gives other bytes.
inline std::vector<uint8_t> Data(size_t length, int start) {
  std::vector<uint8_t> data(length);
  for (size_t i = 0; i < length; ++i) data[i] = static_cast<uint8_t>(static_cast<size_t>(start) + i * 7);
  return data;
}

// Limits so low that short messages reach them.
inline constexpr EngineLimits kSmall = {.eager = 300, .window = 16000, .chunk = 200};

// A process of a job: an engine, and a communicator of all processes.
struct Process {
  Process(int rank, const EngineLimits& limits, int size = 2) : engine(rank, limits), comm(new Comm) {
    comm->rank = rank;
    comm->send_context = comm->receive_context = 8;
    auto group = MakeRef<Group>();
    for (int i = 0; i < size; ++i) group->members.push_back(i);
    comm->local = comm->remote = group;
  }
  // In a job of two: the link to the other process.
  Link& link() { return engine.LinkTo(1 - comm->rank); }

  // `to` -1: the other process of two. `data` is read until the request is complete.
  Request* Send(const std::vector<uint8_t>& data, int tag, SendMode mode = SendMode::kStandard, int to = -1) {
    Request* request = nullptr;
    const Error error =
        engine.StartSend(data.data(), static_cast<MPI_Aint>(data.size()), Byte(), to < 0 ? 1 - comm->rank : to, tag,
                         *comm, mode, Channel::kPointToPoint, &request);
    EXPECT_TRUE(error.ok()) << error.message();
    return request;
  }
  Request* Send(std::vector<uint8_t>&& data, int tag, SendMode mode = SendMode::kStandard, int to = -1) = delete;
  Request* Receive(std::vector<uint8_t>& data, int source, int tag) {
    Request* request = nullptr;
    const Error error = engine.StartReceive(data.data(), static_cast<MPI_Aint>(data.size()), Byte(), source, tag, *comm,
                                            Channel::kPointToPoint, &request);
    EXPECT_TRUE(error.ok()) << error.message();
    return request;
  }

  Engine engine;
  Ref<Comm> comm;
};

}  // namespace weft::mpi::testing

#endif  // MPI_HYBRID_P2P_TESTING_PROCESS_H_
