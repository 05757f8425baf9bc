#ifndef TESTS_HOSTILE_LISTENERS_HOSTS_H_
#define TESTS_HOSTILE_LISTENERS_HOSTS_H_

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/settings.h"
#include "mpa/start_up.h"
#include "sim/net/virtual_network.h"
#include "sim/rnic.h"
#include "sim/testing/host.h"

namespace weft::hostile {

using namespace std::chrono_literals;
using Bytes = std::vector<uint8_t>;

inline constexpr const char* kVictim = "10.0.0.1";
inline constexpr const char* kStranger = "10.0.0.2";

inline transport::SocketAddress Address(const char* host, uint16_t port = 0) { return transport::SocketAddress::Parse(host, port).value(); }

// A stranger's end of a TCP connection.
class Stranger {
 public:
  explicit Stranger(std::unique_ptr<transport::ByteStream> stream) : stream_(std::move(stream)) {}

  void Send(const Bytes& bytes) {
    const iovec piece{const_cast<uint8_t*>(bytes.data()), bytes.size()};
    EXPECT_EQ(stream_->Write({&piece, 1}).bytes, bytes.size());
  }
  void Send(const mpa::StartFrame& frame) { Send(frame.Serialize()); }
  // The data that has arrived since the last call; ended() tells whether more can.
  Bytes Receive() {
    Bytes all;
    std::array<uint8_t, 2048> storage;
    const iovec into{storage.data(), storage.size()};
    for (;;) {
      const transport::IoResult result = stream_->Read({&into, 1});
      ended_ = ended_ || result.kind == transport::IoResult::Kind::kEndOfStream || result.kind == transport::IoResult::Kind::kFailed;
      if (result.kind != transport::IoResult::Kind::kDone) return all;
      all.insert(all.end(), storage.begin(), storage.begin() + static_cast<ptrdiff_t>(result.bytes));
    }
  }
  bool Ended() {
    Receive();
    return ended_;
  }
  void Leave() { stream_->ShutdownWrite(); }
  void Reset() { stream_->Abort(); }

 private:
  std::unique_ptr<transport::ByteStream> stream_;
  bool ended_ = false;
};

// A listening victim with host id 1, with the persona of WEFT_PERSONA, and a network of strangers.
class Hosts : public ::testing::Test {
 protected:
  Hosts()
      : victim_host_(network_.AddHost({kVictim})),
        other_host_(network_.AddHost({kStranger})),
        victim_(victim_host_, SettingsOfTest(), 1),
        other_(other_host_, SettingsOfTest(), 2) {
    SilenceWarnings(true);
  }
  ~Hosts() override {
    if (listener_ != nullptr) listener_->Close();
    SilenceWarnings(false);
  }

  static Settings SettingsOfTest() {
    const char* persona = std::getenv("WEFT_PERSONA");
    Settings settings;
    settings.persona = persona != nullptr && std::string_view(persona) == "iwarp" ? Persona::kIwarp : Persona::kRoce;
    return settings;
  }

  uint16_t Listen(int backlog) {
    listener_ = victim_.cm().Listen(Address(kVictim), backlog, false, true, told_).value();
    return listener_->local_address().port();
  }
  std::unique_ptr<Stranger> Connect(uint16_t port) {
    auto stranger = std::make_unique<Stranger>(other_host_.StartConnect({}, Address(kVictim, port)).value());
    Pass(1ms);
    return stranger;
  }
  std::vector<std::unique_ptr<Stranger>> ConnectMany(size_t count, uint16_t port) {
    std::vector<std::unique_ptr<Stranger>> strangers;
    for (size_t i = 0; i < count; ++i) {
      strangers.push_back(Connect(port));
    }
    return strangers;
  }
  static mpa::StartFrame Request(Bytes private_data = {}) {
    mpa::StartParams params;
    params.ird = params.ord = 1;
    params.peer_to_peer = true;
    params.private_data = std::move(private_data);
    return mpa::MakeRequest(params);
  }
  // Does with the oldest announced request what rdma_get_cm_event does.
  std::shared_ptr<sim::Endpoint> Fetch() {
    std::shared_ptr<sim::Endpoint> endpoint = told_->Wait().endpoint;
    endpoint->SetObserver(std::make_shared<sim::testing::RecordedCm>());
    return endpoint;
  }
  template <typename Duration>
  void Pass(Duration time) {
    network_.RunFor(time);
  }

  // An honest client of the other host connects to the port and is accepted; both ends get their events.
  void ExpectHonestClientConnects(uint16_t port) {
    sim::testing::Program client(other_), server(victim_);
    client.endpoint = other_.cm().CreateEndpoint();
    client.endpoint->SetObserver(client.cm);
    ASSERT_EQ(client.endpoint->Connect(Address(kStranger), Address(kVictim, port), client.qp.handle(), {.private_data = {7}, .ird = 1, .ord = 1}), 0);
    Pass(1s);
    while (!told_->events.empty()) {
      sim::CmEvent event = told_->Wait();
      if (event.private_data != Bytes{7}) continue;  // a stranger's, dropped
      server.endpoint = event.endpoint;
    }
    ASSERT_NE(server.endpoint, nullptr) << "the client's request did not reach the program";
    server.endpoint->SetObserver(server.cm);
    ASSERT_EQ(server.endpoint->Accept(server.qp.handle(), {.ird = 1, .ord = 1}), 0);
    Pass(1s);
    ASSERT_FALSE(client.cm->events.empty());
    EXPECT_EQ(client.cm->Wait().kind, sim::CmEvent::Kind::kEstablished);
    ASSERT_FALSE(server.cm->events.empty());
    EXPECT_EQ(server.cm->Wait().kind, sim::CmEvent::Kind::kEstablished);
  }

  sim::VirtualNetwork network_{1};
  transport::Network& victim_host_;
  transport::Network& other_host_;
  sim::Rnic victim_, other_;
  std::shared_ptr<sim::testing::RecordedCm> told_ = std::make_shared<sim::testing::RecordedCm>();
  std::shared_ptr<sim::CmListener> listener_;
};

}  // namespace weft::hostile

#endif  // TESTS_HOSTILE_LISTENERS_HOSTS_H_
