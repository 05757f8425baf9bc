#include "wires/sctp/locator/locator.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <vector>

#include "sim/net/virtual_network.h"
#include "wires/sctp/locator/message.h"

namespace weft::sctp {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using transport::SocketAddress;

class LocatorTest : public ::testing::Test {
 protected:
  std::shared_ptr<LocatorSearch> Search() {
    auto search = LocatorSearch::Begin(client_, SocketAddress(*SocketAddress::Parse("10.0.0.1", 0)), kListener);
    EXPECT_TRUE(search.ok());
    return *search;
  }
  std::unique_ptr<LocatorService> Serve() { return OpenLocatorService(server_, kListener, false).value(); }
  bool Ends(LocatorSearch& search, transport::Duration most) {
    const auto done = std::make_shared<bool>(false);  // it may still be told when this has returned
    search.Wait([done] { *done = true; });
    return network_.RunUntil([&] { return *done; }, most);
  }

  static inline const SocketAddress kListener = *SocketAddress::Parse("10.0.0.2", 5043);
  const uint64_t seed_ = static_cast<uint64_t>(::testing::UnitTest::GetInstance()->random_seed()) + 1;
  sim::VirtualNetwork network_{seed_};
  transport::Network& client_ = network_.AddHost({"10.0.0.1"});
  transport::Network& server_ = network_.AddHost({"10.0.0.2"});
};

TEST_F(LocatorTest, AListenersUdpPortIsFound) {
  const auto service = Serve();
  service->Start(9899);
  const auto search = Search();
  EXPECT_EQ(search->outcome().error(), EINPROGRESS);
  ASSERT_TRUE(Ends(*search, 1s));
  EXPECT_EQ(search->outcome().value(), 9899);
  EXPECT_TRUE(Ends(*search, 1s)) << "who asks later hears as well";
}

TEST_F(LocatorTest, WhereNobodyListensItIsRefused) {
  const auto search = Search();
  ASSERT_TRUE(Ends(*search, 1s));
  EXPECT_EQ(search->outcome().error(), ECONNREFUSED);
}

TEST_F(LocatorTest, QuestionsAreRepeatedUntilAnAnswerComes) {
  network_.SetDefaultLink({.lose_datagram = 0.7});
  const auto service = Serve();
  service->Start(1);
  const auto search = Search();
  EXPECT_TRUE(Ends(*search, std::chrono::minutes(5)));
  EXPECT_EQ(search->outcome().value(), 1);
}

TEST_F(LocatorTest, AListenerThatSaysNothingYetIsWaitedForAndTwoDoNotFitOnOnePort) {
  auto service = Serve();
  EXPECT_EQ(OpenLocatorService(server_, kListener, false).error(), EADDRINUSE);
  const auto search = Search();
  EXPECT_FALSE(Ends(*search, 10s));
  service->Start(7);
  EXPECT_TRUE(Ends(*search, 10s));
}

TEST_F(LocatorTest, WhoNobodyHoldsAsksNoMore) {
  auto service = Serve();
  const std::weak_ptr<LocatorSearch> search = Search();
  network_.RunFor(10ms);
  EXPECT_TRUE(search.expired());
  network_.RunFor(10s);
}

TEST_F(LocatorTest, ForgedAndMalformedAnswersAreNoAnswers) {
  // In the listener's place; the question is answered with all that is not its answer.
  auto socket = server_.OpenDatagram(kListener, {}).value();
  const auto search = Search();
  network_.RunFor(10ms);
  uint8_t bytes[64];
  transport::IncomingDatagram question;
  question.room = {bytes, sizeof bytes};
  ASSERT_EQ(socket->Receive({&question, 1}), 1u);
  const auto asked = LocatorMessage::Parse({bytes, question.length});
  ASSERT_TRUE(asked);
  const auto say = [&](ByteSpan what) {
    const iovec piece{const_cast<uint8_t*>(what.data()), what.size()};
    const transport::OutgoingDatagram datagram{question.from, {}, 0, {&piece, 1}};
    int error = 0;
    socket->Send({&datagram, 1}, &error);
  };
  LocatorMessage answer{LocatorMessage::Type::kAnswer, asked->transaction, 5043, 9899};
  LocatorMessage stranger = answer, other = answer;
  ++stranger.transaction;
  ++other.sctp_port;
  say(stranger.Serialize());
  say(other.Serialize());
  say(asked->Serialize());
  say({});
  const auto right = answer.Serialize();
  for (size_t i = 0; i < 4; ++i) {
    auto wrong = right;
    wrong[i] ^= 0x40;
    say(wrong);
  }
  say(ByteSpan(right).first(15));
  EXPECT_FALSE(Ends(*search, 1s));
  say(right);
  EXPECT_TRUE(Ends(*search, 1s));
}

TEST(LocatorMessageTest, EveryMessageIsItselfAgain) {
  for (const auto& message : {LocatorMessage{LocatorMessage::Type::kQuestion, 0x0123456789abcdef, 1, 0},
                              LocatorMessage{LocatorMessage::Type::kAnswer, 1, 0xffff, 0xfffe}}) {
    const auto bytes = message.Serialize();
    EXPECT_EQ(LocatorMessage::Parse(bytes), message);
  }
  EXPECT_EQ((LocatorMessage{LocatorMessage::Type::kAnswer, 0x0102030405060708, 0x1122, 0x3344}).Serialize(),
            (std::array<uint8_t, 16>{'W', 'P', 1, 2, 1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x22, 0x33, 0x44}));
}

}  // namespace
}  // namespace weft::sctp
