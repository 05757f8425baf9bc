// A peer that writes nonsense into the rings, and memory that is gone.
#include <gtest/gtest.h>

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/program_memory.h"
#include "wires/host/channel/testing.h"

namespace weft::host {
namespace {

// A message whose payload the receiver is to read where it lies, and which is unmapped by then.
void SendWhatIsGone(End& sender) {
  const size_t length = 65536;
  void* const memory = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const iovec piece{memory, 50000};
  ASSERT_EQ(sender.channel->writer().max_ulpdu(), kMostUlpdu) << "it is referenced";
  ASSERT_TRUE(sender.channel->writer().HasRoom(piece.iov_len, 1));
  const std::string header(Sink::kHeader, 'h');
  sender.channel->writer().Append({reinterpret_cast<const uint8_t*>(header.data()), header.size()}, {&piece, 1}, false);
  sender.channel->Flush();
  ASSERT_EQ(munmap(memory, length), 0);
}

TEST_F(HostChannelTest, APeerThatWritesNonsenseEndsTheStream) {
  Shake();
  initiator_.Send("a");
  // Its record's kind, behind our back.
  auto* rings = reinterpret_cast<uint8_t*>(control_) + 4096;
  for (size_t line = 0; line < 4; ++line) reinterpret_cast<RecordHead*>(rings + line * kLine)->kind = 77;
  const Received received = responder_.Receive();
  EXPECT_EQ(received.kind, Received::Kind::kStopped);
  EXPECT_EQ(received.broken, llp::Error::kMisframed);
}

TEST_F(HostChannelTest, AConsumerThatLiesAboutItsTailEndsTheStream) {
  Shake();
  control_->to_responder.tail.store(1u << 20);
  const std::string payload(50000, 'p');
  initiator_.Send(payload);
  EXPECT_EQ(initiator_.channel->Flush().kind, Flushed::Kind::kFailed);
  EXPECT_TRUE(initiator_.channel->failed());
  EXPECT_EQ(initiator_.Receive().kind, Received::Kind::kFailed);
}

// A peer whose ring says something else than it knows itself: nothing comes but what it sends in the end.
TEST_F(HostChannelTest, APayloadThatIsNotWhereTheRingSaysIsAskedFor) {
  Shake();
  const std::string payload(50000, 'p');
  initiator_.Send(payload);
  initiator_.channel->Flush();
  auto* rings = reinterpret_cast<uint8_t*>(control_) + 4096;
  int changed = 0;
  for (size_t line = 0; line < 8; ++line) {
    auto* head = reinterpret_cast<RecordHead*>(rings + line * kLine);
    if (head->kind != static_cast<uint8_t>(Kind::kReference)) continue;
    reinterpret_cast<Reference*>(head + 1)->pieces[0].address = 8;
    ++changed;
  }
  ASSERT_EQ(changed, 1);
  EXPECT_EQ(responder_.Receive().kind, Received::Kind::kNothing);
  EXPECT_TRUE(responder_.sink.messages.empty());
  EXPECT_FALSE(responder_.sink.unplaceable);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (responder_.sink.messages.empty() && std::chrono::steady_clock::now() < until) {
    initiator_.Receive();
    ASSERT_NE(responder_.Receive().kind, Received::Kind::kFailed);
    std::this_thread::yield();
  }
  EXPECT_TRUE(responder_.sink.messages == std::vector{Message(payload)});
}

Reference* OldestReference(ControlPage* control) {
  auto* rings = reinterpret_cast<uint8_t*>(control) + 4096;
  for (size_t line = 0; line < 8; ++line) {
    auto* head = reinterpret_cast<RecordHead*>(rings + line * kLine);
    if (head->kind == static_cast<uint8_t>(Kind::kReference)) return reinterpret_cast<Reference*>(head + 1);
  }
  return nullptr;
}

// A reader that was stopped before its system call reads what the program has written since. It throws that away.
TEST_F(HostChannelTest, WhatIsReadAfterItWasTakenBackIsNotReceived) {
  Shake();
  std::string payload(50000, 'p');
  initiator_.Send(payload);
  initiator_.channel->Flush();
  responder_.sink.in_the_middle = [&] {  // between its claim and its copy
    initiator_.channel->TakeOver(payload.data(), payload.size(), CopyAll);
    EXPECT_TRUE(initiator_.channel->failed());
    payload.assign(payload.size(), 'x');
  };
  EXPECT_EQ(responder_.Receive().kind, Received::Kind::kFailed);
  EXPECT_TRUE(responder_.sink.messages.empty());
}

TEST_F(HostChannelTest, NothingOfAnAbortedStreamIsReadAfterwards) {
  for (const bool destroyed : {false, true}) {
    Make({});
    responder_.sink = {};
    Shake();
    initiator_.Send("short");
    auto payload = std::make_unique<std::string>(50000, 'p'), second = std::make_unique<std::string>(50000, 'q');
    initiator_.Send(*payload);
    initiator_.Send(*second);
    initiator_.channel->Flush();
    if (destroyed) {
      initiator_.channel.reset();
    } else {
      initiator_.channel->Abort();
    }
    payload->assign(payload->size(), 'x');
    second->assign(second->size(), 'x');
    Received received = responder_.Receive();
    if (received.kind == Received::Kind::kSome) received = responder_.Receive();
    EXPECT_EQ(received.kind, Received::Kind::kFailed);
    EXPECT_EQ(received.error, ECONNRESET);
    EXPECT_TRUE(responder_.sink.messages == std::vector{Message("short")}) << "what was before it came";
  }
}

TEST_F(HostChannelTest, MemoryThatIsGoneIsNotSentAsSomethingElse) {
  Shake();
  const std::string payload(50000, 'p');
  initiator_.Send(payload);
  initiator_.channel->Flush();
  initiator_.channel->TakeOver(payload.data(), payload.size(), FindNothing);
  EXPECT_TRUE(initiator_.channel->payload_gone());
  EXPECT_TRUE(initiator_.channel->failed());
  EXPECT_EQ(responder_.Receive().kind, Received::Kind::kFailed);
  EXPECT_TRUE(responder_.sink.messages.empty());
}

TEST_F(HostChannelTest, ClosingSurvivesMemoryThatIsGone) {
  Shake();
  ASSERT_NO_FATAL_FAILURE(SendWhatIsGone(initiator_));
  initiator_.channel->Close([](llp::UlpduWriter&) {});
  initiator_.channel.reset();
  EXPECT_EQ(responder_.Receive().kind, Received::Kind::kFailed);
  EXPECT_TRUE(responder_.sink.messages.empty());
}

// The consumer finds it first. It is the sender's error all the same, as of an adapter that cannot read what it is to send.
TEST_F(HostChannelTest, AReferencedPayloadThatIsGoneIsTheSendersError) {
  Shake();
  ASSERT_NO_FATAL_FAILURE(SendWhatIsGone(initiator_));
  EXPECT_EQ(responder_.Receive().kind, Received::Kind::kNothing) << "it asks for what it cannot read";
  EXPECT_FALSE(initiator_.channel->payload_gone());
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!initiator_.channel->payload_gone() && std::chrono::steady_clock::now() < until) {
    ASSERT_NE(initiator_.Receive().kind, Received::Kind::kFailed);
    std::this_thread::yield();
  }
  EXPECT_TRUE(initiator_.channel->payload_gone());
  EXPECT_FALSE(initiator_.channel->quiet()) << "its user is to look at it";
  const Received received = responder_.Receive();
  EXPECT_EQ(received.kind, Received::Kind::kFailed);
  EXPECT_EQ(received.error, ECONNRESET);
  EXPECT_FALSE(responder_.sink.unplaceable) << "its own memory is there";
  EXPECT_TRUE(responder_.sink.messages.empty());
}

TEST_F(HostChannelTest, ClosedConnectionsKeepSoMuchAndNoMore) {
  const std::string payload(64 * 1024, 'p');
  std::vector<std::unique_ptr<Channel>> peers;
  size_t most = 0;
  for (size_t connection = 0; connection < 2 * LentMemory::kMostKept / (References::kMost * payload.size()); ++connection) {
    Make({});
    Shake();
    ASSERT_EQ(initiator_.channel->writer().max_ulpdu(), kMostUlpdu) << "they are referenced";
    for (size_t i = 0; i < References::kMost && initiator_.channel->writer().HasRoom(payload.size(), 1); ++i) initiator_.Send(payload);
    initiator_.channel->Close([](llp::UlpduWriter&) {});
    initiator_.channel.reset();
    peers.push_back(std::move(responder_.channel));
    most = std::max(most, LentMemory::kept());
  }
  EXPECT_GT(most, LentMemory::kMostKept / 2);
  EXPECT_LE(most, LentMemory::kMostKept);
}

TEST_F(HostChannelTest, MemoryOfTheReceiverThatIsGoneIsSaidToTheSink) {
  Shake();
  for (const size_t length : {size_t{100}, size_t{50000}}) {
    Make({});
    responder_.sink = {};
    Shake();
    responder_.sink.nowhere = true;
    const std::string payload(length, 'p');
    initiator_.Send(payload);
    initiator_.channel->Flush();
    Received received;
    std::thread ours([&] {
      SetThreadOfOurs();
      received = responder_.Receive();
    });
    ours.join();
    EXPECT_EQ(received.kind, Received::Kind::kStopped);
    EXPECT_TRUE(responder_.sink.unplaceable);
  }
}

TEST_F(HostChannelTest, AThreadOfOursThatSendsWhatIsGoneSurvives) {
  Shake();
  std::thread ours([&] {
    SetThreadOfOurs();
    const iovec piece{reinterpret_cast<void*>(8), 100};
    const std::string header(Sink::kHeader, 'h');
    initiator_.channel->writer().Append({reinterpret_cast<const uint8_t*>(header.data()), header.size()}, {&piece, 1}, false);
  });
  ours.join();
  EXPECT_TRUE(initiator_.channel->payload_gone());
  EXPECT_EQ(initiator_.channel->Flush().kind, Flushed::Kind::kFailed);
  EXPECT_FALSE(initiator_.channel->writer().HasRoom(1, 1)) << "nothing goes out behind it";
  EXPECT_EQ(responder_.Receive().kind, Received::Kind::kNothing);
}

TEST_F(HostChannelTest, AReaderThatHangsIsNotWaitedForForEver) {
  Shake();
  std::string payload(50000, 'p');
  initiator_.Send(payload);
  initiator_.channel->Flush();
  Reference* const reference = OldestReference(control_);
  ASSERT_NE(reference, nullptr);
  reference->claim = static_cast<uint32_t>(Claim::kConsumer);
  initiator_.channel->TakeOver(payload.data(), payload.size(), CopyAll);
  EXPECT_TRUE(initiator_.channel->failed());
  EXPECT_EQ(reference->claim.load(), static_cast<uint32_t>(Claim::kRevoked)) << "what it reads is not received";
}

}  // namespace
}  // namespace weft::host
