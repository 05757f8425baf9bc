#ifndef TESTS_STACK_SCTP_TWO_HOSTS_H_
#define TESTS_STACK_SCTP_TWO_HOSTS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "ddp/sctp/chunk.h"
#include "sim/testing/host.h"
#include "transport/sctp/testing/recorder.h"
#include "transport/sctp/testing/virtual_sctp.h"
#include "wires/sctp/handshake/wire.h"

namespace weft::sim::testing {

// Two hosts in virtual time, each with an RNIC, and queue pairs over DDP sessions of real SCTP; also associations to
// the server's listener without an RNIC.
class TwoSctpHosts : public ::testing::Test {
 protected:
  struct Host {
    explicit Host(transport::sctp::VirtualSctp& world, const char* address, const Settings& settings)
        : at(*transport::SocketAddress::Parse(address, 0)), sctp(world.AddHost({address})), network(world.host_network()) {
      auto its_wire = std::make_unique<sctp::Wire>(network, pool, settings, [this] { return &sctp; });
      wire = its_wire.get();
      rnic = std::make_unique<Rnic>(network, settings, 1, std::move(its_wire));
    }
    transport::SocketAddress At(uint16_t port) const {
      transport::SocketAddress with_port = at;
      with_port.set_port(port);
      return with_port;
    }
    const transport::SocketAddress at;
    transport::sctp::Sctp& sctp;
    transport::Network& network;
    BufferPool pool;
    sctp::Wire* wire = nullptr;
    std::unique_ptr<Rnic> rnic;
  };

  void SetUp() override { RecordProperty("seed", std::to_string(seed_)); }
  void Listen() { server_->listener = server_host_.rnic->cm().Listen(server_host_.At(kPort), 64, false, true, server_->cm).value(); }
  int Connect(Program& client, const transport::SocketAddress& to) {
    client.endpoint = client_host_.rnic->cm().CreateEndpoint();
    client.endpoint->SetObserver(client.cm);
    return client.endpoint->Connect(client_host_.at, to, client.qp.handle(), {.ird = 3, .ord = 5});
  }
  CmEvent Next(Program& program, transport::Duration most = std::chrono::minutes(2)) {
    if (!world_.network().RunUntil([&] { return !program.cm->events.empty(); }, most)) return {.error = -1};
    return program.cm->Wait();
  }
  bool ConnectBoth(Program& client, Program& server) {
    if (Connect(client, server_host_.At(kPort)) != 0) return false;
    CmEvent request = Next(*server_);
    if (request.endpoint == nullptr || request.endpoint->Accept(server.qp.handle(), {.ird = 2, .ord = 9}) != 0) return false;
    request.endpoint->SetObserver(server.cm);
    return Next(server).kind == CmEvent::Kind::kEstablished && Next(client).kind == CmEvent::Kind::kEstablished;
  }
  // Makes an association to the server's listener without an RNIC.
  std::shared_ptr<transport::sctp::Recorder> Bare(Host& host, std::optional<uint32_t> adaptation = ddp::sctp::kAdaptationIndication, uint16_t port = 0) {
    auto association = host.sctp.Connect({.addresses = {server_host_.At(kPort)}, .udp_port = server_host_.sctp.udp_port()}, port,
                                         {.adaptation = adaptation});
    WEFT_CHECK(association.ok());
    return transport::sctp::Recorder::Of(std::move(*association));
  }
  static size_t CountOver(const std::vector<std::shared_ptr<transport::sctp::Recorder>>& all) {
    return static_cast<size_t>(std::count_if(all.begin(), all.end(), [](const auto& one) { return one->over(); }));
  }

  static constexpr uint16_t kPort = 5043;
  const uint64_t seed_ = static_cast<uint64_t>(::testing::UnitTest::GetInstance()->random_seed()) + 1;
  Settings settings_{.sctp = {.streams = 4}};
  transport::sctp::VirtualSctp world_{seed_};
  Host client_host_{world_, "10.1.0.1", settings_}, server_host_{world_, "10.1.0.2", settings_};
  std::unique_ptr<Program> server_ = std::make_unique<Program>(*server_host_.rnic);
};

}  // namespace weft::sim::testing

#endif  // TESTS_STACK_SCTP_TWO_HOSTS_H_
