// The kernel's SCTP through the same interface as usrsctp. Needs a kernel that has it; one that has not fails the first test.
#include "transport/sctp/kernel/kernel_sctp.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "transport/sctp/process_sctp.h"
#include "transport/sctp/testing/locked_recorder.h"
#include "transport/tcp_network.h"

namespace weft::transport::sctp {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::vector<uint8_t> Pattern(size_t length, uint8_t first) {
  std::vector<uint8_t> bytes(length);
  std::iota(bytes.begin(), bytes.end(), first);
  return bytes;
}

// Accepts, on the network's thread.
class Accepting : public ReadyHandler {
 public:
  explicit Accepting(std::unique_ptr<Listener> listener) : listener(std::move(listener)) {}
  void OnReady(Interest) override {
    while (true) {
      auto association = listener->Accept();
      if (!association) return;
      auto locked = Locked::Of(std::move(*association));
      const std::lock_guard lock(mutex_);
      accepted_.push_back(std::move(locked));
      changed_.notify_all();
    }
  }
  std::shared_ptr<Locked> Next() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, seconds(20), [&] { return !accepted_.empty(); })) return nullptr;
    auto first = std::move(accepted_.front());
    accepted_.erase(accepted_.begin());
    return first;
  }
  const std::unique_ptr<Listener> listener;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Locked>> accepted_;
};

class KernelSctpTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    ASSERT_EQ(KernelSctp::Probe(), 0) << "this kernel has no SCTP (modprobe sctp)";
    auto sctp = ProcessSctp(ProcessNetwork(), {.kernel = true});
    ASSERT_TRUE(sctp.ok());
    sctp_ = *sctp;
  }
  void Listen(const Settings& settings = {}) {
    accepting_ = std::make_shared<Accepting>(sctp_->Listen(*SocketAddress::Parse(GetParam(), 0), 16, settings).value());
    accepting_->listener->Watch(std::make_shared<WeakHandler>(accepting_));
    at_ = *SocketAddress::Parse(GetParam(), accepting_->listener->LocalAddresses().at(0).port());
  }
  void ConnectBoth(const Settings& settings = {}) {
    client_ = Locked::Of(sctp_->Connect({.addresses = {at_}}, 0, settings).value());
    server_ = accepting_->Next();
    ASSERT_NE(server_, nullptr);
    ASSERT_TRUE(client_->Until([](Recorder& r) { return r.up.has_value(); }));
    ASSERT_TRUE(server_->Until([](Recorder& r) { return r.up.has_value(); }));
  }

  // Until the client has sent what the kernel takes while nobody reads: some, and then no more for 100 ms.
  bool AwaitStandstill() {
    const auto limit = std::chrono::steady_clock::now() + seconds(20);
    size_t sent = 0;
    for (int same = 0; same < 10; std::this_thread::sleep_for(milliseconds(10))) {
      if (std::chrono::steady_clock::now() > limit) return false;
      const size_t before = sent;
      client_->With([&](Recorder& r) { sent = r.next; });
      same = sent != 0 && sent == before ? same + 1 : 0;
    }
    return true;
  }

  Sctp* sctp_ = nullptr;
  SocketAddress at_;
  std::shared_ptr<Accepting> accepting_;
  std::shared_ptr<Locked> client_, server_;
};

TEST_P(KernelSctpTest, AnAssociationComesUpWithWhatBothEndsSaid) {
  Listen({.streams_in = 7, .adaptation = 1});
  ConnectBoth({.streams_out = 20, .streams_in = 30, .adaptation = 5});
  client_->With([](Recorder& r) {
    EXPECT_EQ(r.up->adaptation, 1u);
    EXPECT_EQ(r.up->streams_out, 7);
    EXPECT_EQ(r.up->streams_in, 30);
    EXPECT_GT(r.association->FragmentationPoint(), 500u);
    EXPECT_EQ(r.association->PeerUdpPort(), 0);
    EXPECT_EQ(r.association->Paths().size(), 1u);
  });
  server_->With([](Recorder& r) { EXPECT_EQ(r.up->adaptation, 5u); });
  EXPECT_EQ(sctp_->AllPaths().size(), 2u);
}

TEST_P(KernelSctpTest, MessagesKeepTheirBoundsStreamAndIdentifierBothWays) {
  Listen();
  ConnectBoth();
  static constexpr size_t kCount = 500;
  for (const auto& [from, to] : {std::pair{client_, server_}, {server_, client_}}) {
    from->With([](Recorder& r) {
      for (size_t i = 0; i < kCount; ++i) {
        r.Queue(static_cast<uint16_t>(i % 10), static_cast<uint32_t>(i), Pattern(1 + i * 131 % 65000, static_cast<uint8_t>(i)), i % 3 == 0);
      }
    });
    ASSERT_TRUE(to->Until([](Recorder& r) { return r.messages.size() == kCount; }));
    to->With([](Recorder& r) {
      std::vector<bool> seen(kCount);
      for (const Recorder::Message& message : r.messages) {
        const size_t i = message.info.ppid;
        ASSERT_LT(i, kCount);
        EXPECT_FALSE(seen[i]);
        seen[i] = true;
        EXPECT_EQ(message.info.stream, i % 10);
        EXPECT_EQ(message.info.unordered, i % 3 == 0);
        EXPECT_EQ(message.bytes, Pattern(1 + i * 131 % 65000, static_cast<uint8_t>(i)));
      }
    });
  }
  client_->With([](Recorder& r) { EXPECT_EQ(r.send_error, 0); });
}

TEST_P(KernelSctpTest, AMessageInPartsIsOne) {
  Listen();
  ConnectBoth();
  auto bytes = Pattern(10'000, 3);
  client_->With([&](Recorder& r) {
    for (size_t i = 0; i < 10; ++i) {
      const iovec piece = {bytes.data() + i * 1000, 1000};
      const IoResult sent = r.association->Send({.stream = 2, .ppid = 9, .end_of_record = i == 9, .pieces = {&piece, 1}});
      EXPECT_EQ(sent.kind, IoResult::Kind::kDone);
      EXPECT_EQ(sent.bytes, 1000u);
    }
  });
  ASSERT_TRUE(server_->Until([](Recorder& r) { return r.messages.size() == 1; }));
  server_->With([&](Recorder& r) { EXPECT_EQ(r.messages[0].bytes, bytes); });
}

TEST_P(KernelSctpTest, APeerThatDoesNotReadBlocksTheSenderUntilItDoes) {
  Listen();
  ConnectBoth();
  server_->With([](Recorder& r) { r.association->SetReading(false); });
  static constexpr size_t kCount = 400;  // of 50,000 bytes: more than both buffers
  client_->With([](Recorder& r) {
    for (size_t i = 0; i < kCount; ++i) r.Queue(0, static_cast<uint32_t>(i), Pattern(50'000, static_cast<uint8_t>(i)));
    EXPECT_FALSE(r.all_sent());
    EXPECT_EQ(r.send_error, 0);
    EXPECT_TRUE(r.association->HasUnacknowledged());
  });
  ASSERT_TRUE(AwaitStandstill());
  client_->With([](Recorder& r) { EXPECT_LT(r.next, kCount); });
  server_->With([](Recorder& r) {
    EXPECT_EQ(r.messages.size(), 0u);
    r.association->SetReading(true);
  });
  ASSERT_TRUE(server_->Until([](Recorder& r) { return r.messages.size() == kCount; }, seconds(60)));
  server_->With([](Recorder& r) {
    for (size_t i = 0; i < kCount; ++i) EXPECT_EQ(r.messages[i].info.ppid, i);
  });
  ASSERT_TRUE(client_->Until([](Recorder& r) { return r.all_sent(); }));
  for (int i = 0; i < 200; ++i) {
    bool left = true;
    client_->With([&](Recorder& r) { left = r.association->HasUnacknowledged(); });
    if (!left) break;
    std::this_thread::sleep_for(milliseconds(50));
  }
  client_->With([](Recorder& r) {
    EXPECT_FALSE(r.association->HasUnacknowledged());
    EXPECT_TRUE(r.association->Advances());
    EXPECT_TRUE(r.association->Advances()) << "nothing is unacknowledged";
  });
}

TEST_P(KernelSctpTest, AShutDownAssociationDeliversEverythingFirst) {
  Listen();
  ConnectBoth();
  client_->With([](Recorder& r) {
    for (uint32_t i = 0; i < 100; ++i) r.Queue(0, i, Pattern(1000, 1));
    r.association->Shutdown();
    r.association.reset();
  });
  ASSERT_TRUE(server_->Until([](Recorder& r) { return r.over(); }));
  server_->With([](Recorder& r) {
    EXPECT_EQ(r.messages.size(), 100u);
    EXPECT_TRUE(r.ended);
    EXPECT_EQ(r.error, 0);
  });
}

TEST_P(KernelSctpTest, AnAssociationThatIsDroppedIsAResetAtThePeer) {
  Listen();
  ConnectBoth();
  client_->With([](Recorder& r) { r.association.reset(); });
  ASSERT_TRUE(server_->Until([](Recorder& r) { return r.over(); }));
  server_->With([](Recorder& r) { EXPECT_EQ(r.error, ECONNRESET); });
  Listen();
  ConnectBoth();
  server_->With([](Recorder& r) {
    r.association->Abort("for a reason");
    r.OnReady({.read = true});
    EXPECT_EQ(r.error, ECONNABORTED);
  });
  ASSERT_TRUE(client_->Until([](Recorder& r) { return r.over(); }));
  client_->With([](Recorder& r) { EXPECT_EQ(r.error, ECONNRESET); });
}

TEST_P(KernelSctpTest, NobodyListeningIsARefusal) {
  Listen();
  const SocketAddress nobody = at_;
  accepting_.reset();
  auto client = Locked::Of(sctp_->Connect({.addresses = {nobody}}, 0, {}).value());
  ASSERT_TRUE(client->Until([](Recorder& r) { return r.over(); }));
  client->With([](Recorder& r) { EXPECT_EQ(r.error, ECONNREFUSED); });
}

TEST_P(KernelSctpTest, WhatMayNotBeSaidIsRefused) {
  Listen();
  ConnectBoth({.streams_out = 4});
  uint8_t byte = 1;
  const iovec piece = {&byte, 1};
  client_->With([&](Recorder& r) {
    EXPECT_EQ(r.association->Send({.stream = 4, .pieces = {&piece, 1}}).error, EINVAL);
    EXPECT_EQ(r.association->Send({.stream = 0, .pieces = {}}).error, EINVAL);
  });
  EXPECT_EQ(sctp_->Connect({.addresses = {at_}, .udp_port = 9}, 0, {}).error(), sctp_->udp_port() == 0 ? EPROTONOSUPPORT : 0);
  EXPECT_EQ(sctp_->Listen(at_, 1, {}).error(), EADDRINUSE);
  EXPECT_EQ(sctp_->Connect({}, 0, {}).error(), EINVAL);
}

TEST_P(KernelSctpTest, AThreadThatPollsNeedsNoOther) {
  Listen();
  ConnectBoth();
  client_->With([](Recorder& r) { r.Queue(0, 1, Pattern(100, 1)); });
  const auto until = std::chrono::steady_clock::now() + seconds(20);
  bool here = false;
  while (!here && std::chrono::steady_clock::now() < until) {
    server_->With([&](Recorder& r) {
      if (r.association->Poll().read) r.Receive();
      here = !r.messages.empty();
    });
  }
  EXPECT_TRUE(here);
}

TEST_P(KernelSctpTest, AMessageInPartsThatIsLongerThanTheBufferIsRefused) {
  Listen();
  ConnectBoth({.send_buffer = 100'000});
  auto bytes = Pattern(60'000, 3);
  const iovec piece = {bytes.data(), bytes.size()};
  client_->With([&](Recorder& r) {
    EXPECT_EQ(r.association->Send({.stream = 2, .end_of_record = false, .pieces = {&piece, 1}}).kind, IoResult::Kind::kDone);
    EXPECT_EQ(r.association->Send({.stream = 2, .end_of_record = false, .pieces = {&piece, 1}}).error, EMSGSIZE);
  });
}

TEST_P(KernelSctpTest, WithoutADescriptorAListenerRestsAndGoesOn) {
  Listen();
  const auto listener = sctp_->Listen(*SocketAddress::Parse(GetParam(), 0), 4, {}).value();
  const SocketAddress at = *SocketAddress::Parse(GetParam(), listener->LocalAddresses().at(0).port());
  const auto client = Locked::Of(sctp_->Connect({.addresses = {at}}, 0, {}).value());
  ASSERT_TRUE(client->Until([](Recorder& r) { return r.up.has_value(); }));
  struct Handler final : ReadyHandler {
    explicit Handler(Listener& listener) : listener(listener) {}
    void OnReady(Interest) override {
      const std::lock_guard lock(mutex);
      ++looks;
      if (auto one = listener.Accept(); one.ok()) accepted = true;
      changed.notify_all();
    }
    bool Await(const std::function<bool()>& what) {
      std::unique_lock lock(mutex);
      return changed.wait_for(lock, seconds(20), what);
    }
    Listener& listener;
    std::mutex mutex;  // guards what follows
    std::condition_variable changed;
    int looks = 0;
    bool accepted = false;
  };
  const auto handler = std::make_shared<Handler>(*listener);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 1, .rlim_max = before.rlim_max};  // what is open stays open
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto begin = std::chrono::steady_clock::now();
  listener->Watch(handler);
  bool accepted = true;
  const bool looked = handler->Await([&] { return accepted = handler->accepted, handler->looks >= 3; });
  const auto passed = std::chrono::steady_clock::now() - begin;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(looked);
  EXPECT_FALSE(accepted);
  EXPECT_GE(passed, milliseconds(150)) << "a thread that spins";
  EXPECT_TRUE(handler->Await([&] { return handler->accepted; }));
}

INSTANTIATE_TEST_SUITE_P(IPv4, KernelSctpTest, ::testing::Values("127.0.0.1"));
INSTANTIATE_TEST_SUITE_P(IPv6, KernelSctpTest, ::testing::Values("::1"));

TEST(KernelSctpPaths, SeveralAddressesAreSeveralPaths) {
  auto sctp = ProcessSctp(ProcessNetwork(), {.kernel = true});
  ASSERT_TRUE(sctp.ok());
  const auto at = [](const char* host) { return *SocketAddress::Parse(host, 0); };
  Settings here{.local_addresses = {at("127.0.0.1"), at("127.0.0.2")}}, there{.local_addresses = {at("127.0.0.3"), at("127.0.0.4")}};
  const auto accepting = std::make_shared<Accepting>((*sctp)->Listen(at("127.0.0.1"), 4, here).value());
  accepting->listener->Watch(std::make_shared<WeakHandler>(accepting));
  ASSERT_EQ(accepting->listener->LocalAddresses().size(), 2u);
  const uint16_t port = accepting->listener->LocalAddresses()[0].port();
  const auto client = Locked::Of((*sctp)->Connect({.addresses = {*SocketAddress::Parse("127.0.0.1", port)}}, 0, there).value());
  ASSERT_TRUE(client->Until([](Recorder& r) { return r.up.has_value(); }));
  client->With([&](Recorder& r) {
    auto paths = r.association->Paths();
    ASSERT_EQ(paths.size(), 2u);
    EXPECT_TRUE(paths[0].primary);
    EXPECT_GT(paths[0].congestion_window, 0u);
    EXPECT_EQ(r.association->LocalAddresses().size(), 2u);
    EXPECT_EQ(r.association->SetPrimary(paths[1].address), 0);
    EXPECT_TRUE(r.association->Paths()[1].primary);
    EXPECT_NE(r.association->SetPrimary(*SocketAddress::Parse("127.0.0.9", port)), 0);
  });
}

}  // namespace
}  // namespace weft::transport::sctp
