// Queue pairs that share associations, each used by a thread of its own, over the kernel's UDP: what virtual time cannot show.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "sim/testing/host.h"
#include "transport/tcp_network.h"

namespace weft::sim {
namespace {

using testing::Program;
using transport::SocketAddress;

constexpr int kThreads = 4, kRounds = 20;
constexpr size_t kLength = 200'000;
constexpr std::chrono::seconds kLimit{60};

// Polls until there is a completion; that is what drives the wire.
bool WaitForCompletion(Program& program, ibv_wc* completion) {
  const auto until = std::chrono::steady_clock::now() + kLimit;
  while (program.cq->Poll(1, completion) == 0) {
    if (std::chrono::steady_clock::now() > until) return false;
  }
  return completion->status == IBV_WC_SUCCESS;
}

bool Write(Program& from, Program& to, uint8_t fill) {
  std::vector<uint8_t> source(kLength, fill), target(kLength);
  const RegionInfo ours = from.Register(source.data(), kLength), theirs = to.Register(target.data(), kLength);
  ibv_sge piece{reinterpret_cast<uint64_t>(source.data()), kLength, ours.stag.value};
  ibv_send_wr write{}, *bad = nullptr;
  write.opcode = IBV_WR_RDMA_WRITE;
  write.send_flags = IBV_SEND_SIGNALED;
  write.sg_list = &piece;
  write.num_sge = 1;
  write.wr.rdma.remote_addr = reinterpret_cast<uint64_t>(target.data());
  write.wr.rdma.rkey = theirs.stag.value;
  ibv_wc completion{};
  const bool done = from.qp.qp->PostSend(&write, &bad) == 0 && WaitForCompletion(from, &completion);
  from.rnic.DeregisterMemory(ours.stag);
  to.rnic.DeregisterMemory(theirs.stag);
  return done && target == source;
}

class SctpThreads : public ::testing::Test {
 protected:
  // A connection of two programs, which one thread has both of. The listener is that of the thread's server.
  bool Connect(Program& client, Program& server) {
    client.endpoint = client.rnic.cm().CreateEndpoint();
    client.endpoint->SetObserver(client.cm);
    if (client.endpoint->Connect(*SocketAddress::Parse("127.0.0.1", 0), at_, client.qp.handle(), {.private_data = Name(client), .ird = 1, .ord = 1}) != 0)
      return false;
    CmEvent request = WaitForRequest(Name(client));
    if (request.endpoint == nullptr) return false;
    request.endpoint->SetObserver(server.cm);
    if (request.endpoint->Accept(server.qp.handle(), {.ird = 1, .ord = 1}) != 0) return false;
    server.endpoint = request.endpoint;
    return client.cm->Wait().kind == CmEvent::Kind::kEstablished && server.cm->Wait().kind == CmEvent::Kind::kEstablished;
  }
  static std::vector<uint8_t> Name(const Program& program) {
    const auto number = program.qp.qp->number();
    return {static_cast<uint8_t>(number >> 16), static_cast<uint8_t>(number >> 8), static_cast<uint8_t>(number)};
  }
  // Requests of all threads come to one listener.
  CmEvent WaitForRequest(const std::vector<uint8_t>& name) {
    const auto until = std::chrono::steady_clock::now() + kLimit;
    while (std::chrono::steady_clock::now() < until) {
      {
        std::lock_guard lock(requests_->mutex);
        for (auto event = requests_->events.begin(); event != requests_->events.end(); ++event) {
          if (event->private_data != name) continue;
          CmEvent found = std::move(*event);
          requests_->events.erase(event);
          return found;
        }
      }
      std::this_thread::yield();
    }
    return {.error = -1};
  }

  const Settings settings_{.llp = Llp::kSctp};
  Rnic client_rnic_{transport::ProcessNetwork(), settings_, 1}, server_rnic_{transport::ProcessNetwork(), settings_, 2};
  std::shared_ptr<testing::RecordedCm> requests_ = std::make_shared<testing::RecordedCm>();
  std::shared_ptr<CmListener> listener_ =
      server_rnic_.cm().Listen(*SocketAddress::Parse("127.0.0.1", 0), 64, false, true, requests_).value();
  const SocketAddress at_ = listener_->local_address();
};

TEST_F(SctpThreads, ThreadsConnectWriteBothWaysAndLetGoOnOneAssociation) {
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t, &failures] {
      for (int round = 0; round < kRounds; ++round) {
        Program client(client_rnic_), server(server_rnic_);
        const auto fill = static_cast<uint8_t>(1 + t * kRounds + round);
        if (!Connect(client, server)) {
          ++failures;
          continue;
        }
        std::thread other([&] { failures += !Write(server, client, static_cast<uint8_t>(fill ^ 0xff)); });
        failures += !Write(client, server, fill);
        other.join();
        if (round % 2 == 0) client.endpoint->Disconnect();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  listener_->Close();
}

}  // namespace
}  // namespace weft::sim
