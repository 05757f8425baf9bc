// The right to read the other's memory goes away.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "wires/host/channel/testing.h"

namespace weft::host {
namespace {

class HostChannelWithoutRightsTest : public HostChannelTest {
 protected:
  ~HostChannelWithoutRightsTest() override { PeerMemory::ForbidForTesting(false); }

  // Looks for messages and bells, as the threads of a process do, until `enough`.
  template <typename Enough>
  static void Serve(End& end, const Enough& enough) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!enough() && std::chrono::steady_clock::now() < until) {
      if (end.Receive().kind == Received::Kind::kFailed) return;
      std::this_thread::yield();
    }
  }
  static auto Has(const End& end, size_t messages) {
    return [&end, messages] { return end.sink.messages.size() >= messages; };
  }
};

TEST_F(HostChannelWithoutRightsTest, WhatWasReferencedIsCopiedAndSoIsAllAfterIt) {
  Shake();
  std::vector<std::string> sent, expected;
  for (const size_t length : {60000, 10, 8192, 20000, 100}) {
    sent.push_back(std::string(length, static_cast<char>('a' + sent.size())));
    initiator_.Send(sent.back());
    expected.push_back(Message(sent.back()));
  }
  PeerMemory::ForbidForTesting(true);
  std::atomic<bool> all{false};
  std::thread producer([&] { Serve(initiator_, [&] { return all.load(); }); });
  Serve(responder_, Has(responder_, expected.size()));
  all = true;
  producer.join();
  EXPECT_TRUE(responder_.sink.messages == expected);
  EXPECT_EQ(initiator_.channel->Flush().kind, Flushed::Kind::kAll);
  EXPECT_EQ(initiator_.channel->consumed(), initiator_.channel->writer().appended()) << "nothing is in the peer's hands";
  EXPECT_EQ(initiator_.channel->writer().max_ulpdu(), kMostCopied);

  const std::string later(16000, 'x');
  initiator_.Send(later);
  EXPECT_EQ(responder_.Receive().kind, Received::Kind::kSome);
  EXPECT_EQ(responder_.sink.messages.back(), Message(later));
}

TEST_F(HostChannelWithoutRightsTest, EachMayWaitForTheOther) {
  Shake();
  responder_.Send("hello");
  responder_.channel->Flush();
  EXPECT_EQ(initiator_.Receive().kind, Received::Kind::kSome);
  initiator_.sink.messages.clear();
  const std::string one(50000, '1'), two(40000, '2');
  for (End* end : {&initiator_, &responder_}) {
    end->Send(one);
    end->Send(two);
  }
  PeerMemory::ForbidForTesting(true);
  std::atomic<int> through{0};
  const auto play = [&through](End& end) {
    Serve(end, Has(end, 2));
    ++through;
    Serve(end, [&] { return through.load() == 2; });  // who has all still serves the other
  };
  std::thread other([&] { play(initiator_); });
  play(responder_);
  other.join();
  for (End* end : {&initiator_, &responder_}) EXPECT_TRUE(end->sink.messages == (std::vector<std::string>{Message(one), Message(two)}));
}

TEST_F(HostChannelWithoutRightsTest, MemoryThatGoesAwayMeanwhileIsCopiedFirst) {
  Shake();
  std::string payload(30000, 'p');
  initiator_.Send(payload);
  PeerMemory::ForbidForTesting(true);
  std::thread consumer([&] { Serve(responder_, Has(responder_, 1)); });
  // Before or after the consumer asked for it.
  initiator_.channel->TakeOver(payload.data(), payload.size(), CopyAll);
  const std::string before = payload;
  std::memset(payload.data(), 'q', payload.size());
  std::atomic<bool> all{false};
  std::thread producer([&] { Serve(initiator_, [&] { return all.load(); }); });
  consumer.join();
  all = true;
  producer.join();
  EXPECT_TRUE(responder_.sink.messages == std::vector<std::string>{Message(before)});
}

TEST_F(HostChannelWithoutRightsTest, APeerThatCopiesNothingHoldsNobodyUp) {
  Shake();
  initiator_.Send(std::string(30000, 'p'));
  PeerMemory::ForbidForTesting(true);
  const auto begun = std::chrono::steady_clock::now();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(responder_.Receive().kind, Received::Kind::kNothing);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::milliseconds(100));
  EXPECT_TRUE(responder_.channel->in_ulpdu());
  responder_.tcp->Ends({.kind = Received::Kind::kFailed, .error = ECONNRESET});  // its process is gone
  const Received received = responder_.Receive();
  EXPECT_EQ(received.kind, Received::Kind::kFailed);
  EXPECT_EQ(received.error, ECONNRESET);
  EXPECT_TRUE(responder_.sink.messages.empty());
}

}  // namespace
}  // namespace weft::host
