#include "mpi_hybrid/p2p/sctp/sctp_transport.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/log.h"
#include "mpi_hybrid/core/job.h"
#include "mpi_hybrid/p2p/sctp/late_word.h"
#include "mpi_hybrid/p2p/testing/device_pair.h"
#include "mpi_hybrid/p2p/testing/engine_suite.h"
#include "mpi_hybrid/p2p/testing/fake_pmi.h"
#include "mpi_hybrid/p2p/testing/network.h"
#include "mpi_hybrid/p2p/testing/transport_suite.h"
#include "transport/sctp/process_sctp.h"
#include "transport/tcp_network.h"

namespace weft::mpi::testing {
namespace {

constexpr uint32_t kBuffer = 1 << 20;  // bytes; so that both ends' are full of less than a window

transport::sctp::Sctp& ThisSctp() {
  const auto sctp = transport::sctp::ProcessSctp(transport::ProcessNetwork(), {});
  WEFT_CHECK(sctp.ok());
  return **sctp;
}

// A job over loopback, all of whose processes share the UDP port of this one.
class SctpNetwork final : public Network {
 public:
  SctpNetwork(int size, unsigned /*seed*/, transport::sctp::Sctp& sctp = ThisSctp()) : jobs_(static_cast<size_t>(size)), sctp_(sctp) {
    for (int rank = 0; rank < size; ++rank) FillLoopbackJob(job(rank), rank, size, space);
  }
  std::unique_ptr<Transport> Make(Engine& engine, EventLoop& loop) override {
    return std::make_unique<SctpTransport>(
        job(engine.self()), engine, loop, transport::ProcessNetwork(), sctp_,
        transport::sctp::Settings{.send_buffer = kBuffer, .receive_buffer = kBuffer});
  }
  // What is under way in the kernel is not to be seen; on loopback it is for microseconds. Then the network's thread
  // has called whom it had to, and no packet went or came since the last look.
  bool IsQuiet() override {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::promise<void> ran;
    transport::ProcessNetwork().Post([&] { ran.set_value(); });
    ran.get_future().wait();
    const auto counters = transport::sctp::ProcessPacketCounters();
    const uint64_t packets = counters.packets_in + counters.packets_out;
    return std::exchange(packets_, packets) == packets;
  }
  Job& job(int rank) { return jobs_[static_cast<size_t>(rank)]; }

  PmiSpace space;

 private:
  std::vector<Job> jobs_;
  transport::sctp::Sctp& sctp_;
  uint64_t packets_ = 0;
};

const NetworkFactory kSctp = [](int size, unsigned seed) { return std::make_unique<SctpNetwork>(size, seed); };

struct SctpPair : DevicePair {
  explicit SctpPair(const EngineLimits& limits, unsigned seed = 1) : DevicePair(kSctp, limits, seed) {}
};
INSTANTIATE_TYPED_TEST_SUITE_P(Sctp, MessageSuite, SctpPair);
INSTANTIATE_TYPED_TEST_SUITE_P(Sctp, EngineSuite, SctpPair);
INSTANTIATE_TEST_SUITE_P(Sctp, TransportSuite, ::testing::Values(kSctp));

class SctpTransportTest : public JobTest {
 protected:
  using Association = transport::sctp::Association;
  using Received = transport::sctp::Received;
  SctpTransportTest() : JobTest(kSctp) {}
  ~SctpTransportTest() override { SilenceWarnings(false); }

  Card CardOf(int rank) {
    auto& space = static_cast<SctpNetwork&>(*network_).space;
    return *Card::Parse(space.at("weft-sctp-" + std::to_string(rank)));
  }
  // An association from outside with `rank`.
  std::unique_ptr<Association> Visit(int rank) {
    auto made = ThisSctp().Connect(CardOf(rank).peer(), 0, {});
    EXPECT_TRUE(made.ok());
    std::unique_ptr<Association> association = std::move(made).value();
    EXPECT_TRUE(PollUntil([&] { return Next(*association).kind == Received::Kind::kEvent; }));
    return association;
  }
  Received Next(Association& association) {
    const iovec into = {room_, sizeof(room_)};
    return association.Receive({&into, 1});
  }
  void Say(Association& association, uint32_t kind, std::vector<uint8_t> bytes, uint16_t stream = 0) {
    const iovec piece = {bytes.data(), bytes.size()};
    EXPECT_EQ(association.Send({.stream = stream, .ppid = kind, .pieces = {&piece, 1}}).kind,
              transport::IoResult::Kind::kDone);
  }
  std::vector<uint8_t> HelloTo(int rank, const char* secret, int from, int to) {
    uint8_t challenge[Challenge::kLength];
    Challenge::Write(CardOf(rank).nonce, LoopbackName(rank), challenge);
    std::vector<uint8_t> bytes(Hello::kLength);
    LoopbackHello(from, to).Write(*JobSecret::FromHex(secret), challenge, std::span<uint8_t, Hello::kLength>(bytes));
    return bytes;
  }
  void ExpectDropped(Association& association) {
    EXPECT_TRUE(PollUntil([&] {
      const auto kind = Next(association).kind;
      return kind == Received::Kind::kFailed || kind == Received::Kind::kEnded;
    }));
  }

  uint8_t room_[4096];
};

TEST_F(SctpTransportTest, StrangersAreAbortedAndTheJobGoesOn) {
  SilenceWarnings(true);
  Make(3);
  const std::string web = "GET / HTTP/1.1";
  const std::vector<uint8_t> text(web.begin(), web.end());
  auto of_another_kind = Visit(0), before_the_greeting = Visit(0), welcoming = Visit(0), short_hello = Visit(0);
  Say(*of_another_kind, 46, text);
  Say(*before_the_greeting, kFrameMessage, text);
  Say(*welcoming, kWelcomeMessage, {0});
  Say(*short_hello, kGreetingMessage, text);
  for (const auto& one : {of_another_kind.get(), before_the_greeting.get(), welcoming.get(), short_hello.get()})
    ExpectDropped(*one);
  // The wrong secret; the right one with wrong ranks; and what was said to another.
  for (const auto& [secret, from, to] : {std::tuple{"00112233445566778899aabbccddeefe", 1, 0},
                                         {kJobSecret, 1, 1},
                                         {kJobSecret, 0, 0},
                                         {kJobSecret, 3, 0},
                                         {kJobSecret, -1, 0}}) {
    auto stranger = Visit(0);
    Say(*stranger, kGreetingMessage, HelloTo(0, secret, from, to));
    ExpectDropped(*stranger);
  }
  auto replay = Visit(0);
  Say(*replay, kGreetingMessage, HelloTo(2, kJobSecret, 1, 2));
  ExpectDropped(*replay);
  ExpectTraffic(0, 1);
  // Whose name somebody takes who is there.
  auto twin = Visit(0);
  Say(*twin, kGreetingMessage, HelloTo(0, kJobSecret, 1, 0));
  ExpectDropped(*twin);
  ExpectTraffic(0, 1);
}

TEST_F(SctpTransportTest, ARankThatBreaksTheProtocolIsDeadAndTheOthersLive) {
  SilenceWarnings(true);
  const std::vector<uint8_t> garbage(100, 0xee);
  for (const uint32_t kind : {kFrameMessage, kGreetingMessage, uint32_t{46}}) {
    Make(3);
    auto liar = Visit(0);
    std::vector<uint8_t> got(10);
    Request* receive = at(0).Receive(got, 1, 1);
    Say(*liar, kGreetingMessage, HelloTo(0, kJobSecret, 1, 0));
    ASSERT_TRUE(PollUntil([&] { return at(0).engine.LinkTo(1).state() == Link::State::kOpen; }));
    Say(*liar, kind, garbage);
    ASSERT_TRUE(PollUntil([&] { return receive->complete; }));
    EXPECT_EQ(receive->error.mpi_class(), MPIX_ERR_PROC_FAILED);
    receive->Release();
    ExpectDropped(*liar);
    ExpectTraffic(0, 2);
  }
}

TEST_F(SctpTransportTest, ARankWhosePortIsAnothersByNowIsDead) {
  Make(3);
  auto& space = static_cast<SctpNetwork&>(*network_).space;
  space["weft-sctp-1"] = space["weft-sctp-2"];
  std::vector<uint8_t> sent(100000, 7), got(1000);  // more than goes with a greeting
  Request* receive = at(0).Receive(got, 1, 9);
  Request* send = at(0).Send(sent, 1, 9);
  at(0).device.ConnectToAwaited();
  ASSERT_TRUE(PollUntil([&] { return receive->complete && send->complete; }));
  EXPECT_EQ(receive->error.mpi_class(), MPIX_ERR_PROC_FAILED);
  EXPECT_EQ(send->error.mpi_class(), MPIX_ERR_PROC_FAILED);
  for (Request* request : {receive, send}) request->Release();
  ExpectTraffic(0, 2);
}

// Who means another is told so, once.
TEST_F(SctpTransportTest, NothingCountsThatIsSaidToAnother) {
  Make(3);
  auto mistaken = Visit(0);
  Say(*mistaken, kGreetingMessage, HelloTo(0, kJobSecret, 1, 2));
  Say(*mistaken, kGreetingMessage, HelloTo(0, kJobSecret, 1, 0));
  ASSERT_TRUE(PollUntil([&] {
    const Received received = Next(*mistaken);
    return received.kind == Received::Kind::kMessage && received.info.ppid == kAnotherMessage;
  }));
  ExpectDropped(*mistaken);
  EXPECT_NE(at(0).engine.LinkTo(1).state(), Link::State::kOpen);
  ExpectTraffic(0, 1);
}

TEST_F(SctpTransportTest, ManySilentStrangersKeepNobodyOut) {
  Make(2);
  std::vector<std::unique_ptr<Association>> silent;
  for (size_t i = 0; i < 2 * SctpTransport::kMostStrangers; ++i) silent.push_back(Visit(0));
  ExpectTraffic(1, 0);
}

class LateWordTest : public JobTest {
 protected:
  LateWordTest() : JobTest([this](int size, unsigned seed) { return std::make_unique<SctpNetwork>(size, seed, sctp_); }) {}

 private:
  LateWordSctp sctp_{ThisSctp()};
};

// Messages of different tags go on different streams.
TEST_F(LateWordTest, AGreetingMayComeBeforeTheWordOfHowManyStreamsThereAre) {
  Make(2);
  constexpr size_t kTags = 20;
  struct Message {
    std::vector<uint8_t> sent, got;
  };
  std::vector<Message> there, back;
  for (size_t tag = 0; tag < kTags; ++tag) {
    there.push_back({Data(100, static_cast<int>(tag)), std::vector<uint8_t>(100)});
    back.push_back({Data(100, static_cast<int>(kTags + tag)), std::vector<uint8_t>(100)});
  }
  std::vector<Request*> requests;
  const auto exchange = [&](std::vector<Message>& messages, int from, int to) {
    for (size_t tag = 0; tag < kTags; ++tag) {
      requests.push_back(at(from).Send(messages[tag].sent, to, static_cast<int>(tag)));
      requests.push_back(at(to).Receive(messages[tag].got, from, static_cast<int>(tag)));
    }
  };
  exchange(there, 1, 0);
  // Else rank 0 would connect, too.
  ASSERT_TRUE(PollUntil([&] { return requests[1]->complete; }));
  exchange(back, 0, 1);
  for (Request* request : requests) {
    EXPECT_TRUE(PollUntil([&] { return request->complete; }));
    EXPECT_TRUE(request->error.ok()) << request->error.message();
    request->Release();
  }
  for (size_t tag = 0; tag < kTags; ++tag) {
    EXPECT_EQ(there[tag].got, there[tag].sent);
    EXPECT_EQ(back[tag].got, back[tag].sent);
  }
}

// Two jobs of one process, each of which knows the other as process 1, by bonds of its own order.
class TwoJobsTest : public ::testing::Test {
 protected:
  struct Side {
    explicit Side(const Bond& job) : network(1, 0) {
      network.job(0).processes.Start(job.secret, 0, 1);
      peer = std::make_unique<Peer>(network, 0, 2, EngineLimits{});
      peer->Start();
      EXPECT_TRUE(peer->device.Listen().ok());
    }
    ProcessTable& processes() { return network.job(0).processes; }
    void Meet(Side& other, const Bond& bond) {
      EXPECT_EQ(processes().Add(other.processes().own_name(), bond, {{"weft-sctp", other.network.space.at("weft-sctp-0")}}), 1);
    }
    Link& link() { return peer->engine.LinkTo(1); }

    SctpNetwork network;
    std::unique_ptr<Peer> peer;
  };
};

TEST_F(TwoJobsTest, WhoIsGreetedAnswersByTheSameBond) {
  const Bond known = Bond::Of(JobSecret::Random()), first_at_one = Bond::Of(JobSecret::Random());
  Side one(Bond::Of(JobSecret::Random())), other(Bond::Of(JobSecret::Random()));
  one.Meet(other, first_at_one);
  one.processes().AddBond(1, known);
  other.Meet(one, known);
  const std::vector<uint8_t> data(1000, 7);
  Request* send = other.peer->Send(data, 1, 9);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!send->complete && std::chrono::steady_clock::now() < end) {
    if (!one.peer->device.Poll() && !other.peer->device.Poll()) one.network.IsQuiet();
  }
  ASSERT_TRUE(send->complete);
  EXPECT_TRUE(send->error.ok()) << send->error.message();
  EXPECT_EQ(one.link().state(), Link::State::kOpen);
  EXPECT_EQ(other.link().state(), Link::State::kOpen);
  send->Release();
}

TEST(CardTest, SaysWhatItReads) {
  Card card{.port = 5000, .udp_port = 9899, .nonce = NewNonce(), .addresses = {}};
  for (const char* host : {"192.0.2.1", "::1", "198.51.100.7"})
    card.addresses.push_back(*transport::SocketAddress::Parse(host, 0));
  const auto read = Card::Parse(card.ToString(1000));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->port, card.port);
  EXPECT_EQ(read->udp_port, card.udp_port);
  EXPECT_EQ(read->nonce, card.nonce);
  EXPECT_EQ(read->addresses, card.addresses);
  EXPECT_EQ(Card::Parse(card.ToString(60))->addresses.size(), 2u);
  EXPECT_EQ(Card::Parse(card.ToString(1))->addresses.size(), 1u);
  for (const char* bad :
       {"", "5000", "5000/1", "5000/1/00112233445566778899aabbccddeeff", "0/1/00112233445566778899aabbccddeeff/::1",
        "5000/65536/00112233445566778899aabbccddeeff/::1", "5000/1/00112233445566778899aabbccddeefg/::1",
        "5000/1/00112233445566778899aabbccddee/::1", "5000/1/00112233445566778899aabbccddeeff/",
        "5000/1/00112233445566778899aabbccddeeff/::1,", "5000/1/00112233445566778899aabbccddeeff/host",
        "-1/1/00112233445566778899aabbccddeeff/::1", "127.0.0.1:5000"}) {
    EXPECT_FALSE(Card::Parse(bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace weft::mpi::testing
