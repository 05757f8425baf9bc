// Processes that are alone on their hosts, connected with each other. Real sockets; the tests are impirun.
#include "mpi_hybrid/p2p/impi/own_agent.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/job_secret.h"
#include "impi/agent/inlet.h"
#include "impi/client/report.h"
#include "impi/job/testing/jobs.h"

namespace weft::mpi {
namespace {

using impi::HostRank;
using impi::Packet;
using impi::PacketType;
using impi::WorldRank;

std::pair<Descriptor, Descriptor> Pair() {
  int ends[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

class OwnAgentTest : public ::testing::Test, EventLoop::Handler {
 protected:
  struct End {
    ProcessTable table;
    std::unique_ptr<ImpiWorld> world;
    Descriptor impirun;  // the other end of its socket
    std::unique_ptr<OwnAgent> agent;
    std::vector<uint8_t> came;
  };

  // So many clients with one process each.
  void Make(int clients, uint32_t high_water = 4) {
    announced_ = impi::testing::Announcements(std::vector<std::vector<int>>(static_cast<size_t>(clients), {1}));
    for (impi::Announcement& one : announced_) one.hosts[0].high_water = high_water;
    ASSERT_TRUE(loop_.Open());
    std::vector<std::map<HostRank, Descriptor>> sockets(static_cast<size_t>(clients));
    for (int one = 0; one < clients; ++one) {
      for (int other = one + 1; other < clients; ++other) {
        auto [here, there] = Pair();
        sockets[static_cast<size_t>(one)].emplace(HostRank(other), std::move(here));
        sockets[static_cast<size_t>(other)].emplace(HostRank(one), std::move(there));
      }
    }
    for (int client = 0; client < clients; ++client) {
      auto end = std::make_unique<End>();
      end->table.Start(JobSecret::Random(), /*rank=*/0, /*size=*/1);
      end->world = std::make_unique<ImpiWorld>(impi::testing::JobOf(announced_, client), std::vector<ProcessId>{0}, end->table);
      auto [here, there] = Pair();
      end->impirun = std::move(there);
      end->agent = std::make_unique<OwnAgent>(*end->world, std::move(here), std::move(sockets[static_cast<size_t>(client)]));
      end->agent->Start(loop_, *this);
      ends_.push_back(std::move(end));
    }
  }
  void OnReady(uint32_t) override { ++told_; }

  const impi::Job& job() const { return ends_[0]->world->job(); }
  // A packet with data of `length` bytes with the value of its tag.
  std::vector<uint8_t> DataOf(int from, int to, uint32_t length, uint8_t tag) const {
    impi::CarriedPacket packet({.data_length = length,
                                .source = job().process(WorldRank(from)).name,
                                .destination = job().process(WorldRank(to)).name,
                                .message_length = length,
                                .tag = tag});
    packet.WriteHeader();
    std::fill(packet.data().begin(), packet.data().end(), tag);
    return {packet.bytes.get(), packet.bytes.get() + packet.size()};
  }
  static std::vector<uint8_t> Fini() {
    std::vector<uint8_t> bytes(Packet::kSize);
    Packet{.type = PacketType::kFini}.Serialize(std::span<uint8_t, Packet::kSize>(bytes.data(), Packet::kSize));
    return bytes;
  }
  ssize_t Send(int from, const std::vector<uint8_t>& bytes) {
    // In two pieces, as header and data are.
    const size_t first = std::min(bytes.size(), Packet::kSize);
    const std::array<iovec, 2> pieces = {iovec{const_cast<uint8_t*>(bytes.data()), first}, iovec{const_cast<uint8_t*>(bytes.data()) + first, bytes.size() - first}};
    return ends_[static_cast<size_t>(from)]->agent->Send(pieces);
  }
  // The next packet. nullopt: none has come; or the stream has ended, which `ended_` then says.
  std::optional<std::pair<Packet, std::vector<uint8_t>>> Receive(int at, size_t step = 65536) {
    End& end = *ends_[static_cast<size_t>(at)];
    size_t wanted = Packet::kSize;
    for (;;) {
      if (end.came.size() >= Packet::kSize) {
        const auto packet = Packet::Parse(std::span(end.came).first<Packet::kSize>(), job().limits());
        EXPECT_TRUE(packet.ok());
        wanted = Packet::kSize + packet->data_length;
        if (end.came.size() >= wanted) {
          std::vector<uint8_t> data(end.came.begin() + Packet::kSize, end.came.begin() + static_cast<long>(wanted));
          end.came.erase(end.came.begin(), end.came.begin() + static_cast<long>(wanted));
          return std::make_pair(*packet, std::move(data));
        }
      }
      std::vector<uint8_t> block(step);
      const ssize_t got = end.agent->Receive(block);
      ended_ = got == 0;
      if (got <= 0) {
        if (got < 0) {
          EXPECT_EQ(errno, EAGAIN);
        }
        return std::nullopt;
      }
      end.came.insert(end.came.end(), block.begin(), block.begin() + got);
    }
  }
  // What the process has told impirun.
  std::optional<impi::Command> Report(int of) const {
    impi::CommandReader reader(impi::kLongestReport);
    std::vector<uint8_t> block(65536);
    const ssize_t got = recv(ends_[static_cast<size_t>(of)]->impirun.get(), block.data(), block.size(), MSG_DONTWAIT);
    if (got <= 0) return std::nullopt;
    reader.Append({block.data(), static_cast<size_t>(got)});
    return reader.NextCommand();
  }
  impi::FailReport Failure(int of) const {
    const auto report = Report(of);
    EXPECT_TRUE(report && report->code == impi::kFailCommand);
    return report ? impi::FailReport::From(*report).value_or(impi::FailReport{}) : impi::FailReport{};
  }

  std::vector<impi::Announcement> announced_;
  EventLoop loop_;
  std::vector<std::unique_ptr<End>> ends_;
  bool ended_ = false;
  int told_ = 0;
};

TEST_F(OwnAgentTest, PacketsGoToTheProcessThatTheyAreFor) {
  Make(4);  // more sockets than are tried in vain
  for (int from = 0; from < 4; ++from) {
    for (int to = 0; to < 4; ++to) {
      if (to == from) continue;
      for (const uint32_t length : {0u, 1u, 100u}) {
        const auto sent = DataOf(from, to, length, static_cast<uint8_t>(10 * from + to));
        ASSERT_EQ(Send(from, sent), static_cast<ssize_t>(sent.size()));
      }
    }
  }
  for (int at = 0; at < 4; ++at) {
    std::map<int, int> from;
    while (const auto packet = Receive(at, /*step=*/50)) {
      ++from[packet->first.tag / 10];
      EXPECT_EQ(packet->first.tag % 10, at);
      EXPECT_EQ(packet->second, std::vector<uint8_t>(packet->first.data_length, static_cast<uint8_t>(packet->first.tag)));
    }
    EXPECT_FALSE(ended_);
    EXPECT_EQ(from.size(), 3u);
    for (const auto& [other, count] : from) EXPECT_EQ(count, 3) << "from " << other << " at " << at;
  }
}

TEST_F(OwnAgentTest, WhatTheSocketsDoNotTakeWaits) {
  constexpr int kPackets = 100000;
  Make(2, /*high_water=*/kPackets);
  int sent = 0, came = 0;
  while (sent < kPackets && Send(0, DataOf(0, 1, 100, static_cast<uint8_t>(sent % 100))) > 0) ++sent;
  ASSERT_LT(sent, kPackets) << "there is an end to it";
  EXPECT_EQ(errno, EAGAIN);
  told_ = 0;
  const auto take = [&] {
    while (const auto packet = Receive(1)) EXPECT_EQ(packet->first.tag, came++ % 100);
  };
  take();
  (void)loop_.Dispatch(0);
  EXPECT_GT(told_, 0) << "the sockets have room";
  // Nobody sends more; the rest leaves all the same.
  for (int i = 0; came < sent && i < 1000; ++i) {
    (void)Receive(0);
    take();
  }
  EXPECT_EQ(came, sent);
  ASSERT_GT(Send(0, DataOf(0, 1, 100, static_cast<uint8_t>(sent % 100))), 0);
  take();
  EXPECT_EQ(came, sent + 1);
}

TEST_F(OwnAgentTest, TheEndIsToldWhenAllHostsHaveSaidIt) {
  Make(3);
  ASSERT_GT(Send(0, DataOf(0, 1, 5, 1)), 0);
  for (const int one : {0, 2}) ASSERT_GT(Send(one, Fini()), 0);
  for (const int one : {0, 2}) {
    EXPECT_FALSE(Receive(one));
    EXPECT_FALSE(ended_) << one;
    EXPECT_FALSE(Report(one)) << one;
  }
  EXPECT_TRUE(Receive(1)) << "what was sent before";
  ASSERT_GT(Send(1, Fini()), 0);
  for (int one = 0; one < 3; ++one) {
    EXPECT_FALSE(Receive(one));
    EXPECT_TRUE(ended_) << one;
    const auto report = Report(one);
    ASSERT_TRUE(report) << one;
    EXPECT_EQ(report->code, impi::kOverCommand);
  }
}

TEST_F(OwnAgentTest, AHostThatLeavesIsReported) {
  Make(2);
  ASSERT_GT(Send(1, DataOf(1, 0, 5, 1)), 0);
  ends_[1]->agent->Close();
  EXPECT_TRUE(Receive(0)) << "what it sent before";
  EXPECT_FALSE(Receive(0));
  EXPECT_TRUE(ended_);
  const impi::FailReport failure = Failure(0);
  EXPECT_FALSE(failure.by_process);
  EXPECT_EQ(failure.why, "host 1 of client 1 (192.0.2.2) left before it sent FINI; its own messages may say why");
  EXPECT_EQ(Send(0, DataOf(0, 1, 5, 1)), -1);
  EXPECT_EQ(errno, EPIPE);
}

TEST_F(OwnAgentTest, AHostThatStaysSilentAtTheEndIsReported) {
  Make(2);
  OwnAgent& agent = *ends_[0]->agent;
  EXPECT_FALSE(agent.deadline()) << "a job may take as long as it takes";
  ASSERT_GT(Send(0, Fini()), 0);
  const auto limit = agent.deadline();
  ASSERT_TRUE(limit);
  agent.OnTime(*limit - std::chrono::milliseconds(1));
  EXPECT_FALSE(Receive(0));
  EXPECT_FALSE(ended_);
  agent.OnTime(*limit);
  EXPECT_FALSE(Receive(0));
  EXPECT_TRUE(ended_);
  const impi::FailReport failure = Failure(0);
  EXPECT_FALSE(failure.by_process);
  EXPECT_NE(failure.why.find("host 1 of client 1 (192.0.2.2)"), std::string::npos) << failure.why;
}

TEST_F(OwnAgentTest, AWrongPacketOfAHostIsReported) {
  Make(3);
  const auto third = DataOf(2, 0, 5, 1);
  ASSERT_EQ(Send(1, third), static_cast<ssize_t>(third.size()));  // its own agent looks, too
  EXPECT_FALSE(Receive(1));
  EXPECT_TRUE(ended_);
  const impi::FailReport failure = Failure(1);
  EXPECT_TRUE(failure.by_process);
  EXPECT_EQ(failure.why.find("rank 1 (192.0.2.2/101) of client 1 sent DATA in the name of "), 0u) << failure.why;
}

TEST_F(OwnAgentTest, MorePacketsThanTheHostsAgreedOnAreReported) {
  Make(2);
  for (int i = 0; i < 5; ++i) ASSERT_GT(Send(0, DataOf(0, 1, 5, 1)), 0);
  EXPECT_FALSE(Receive(1));
  EXPECT_TRUE(ended_);
  const impi::FailReport failure = Failure(1);
  EXPECT_FALSE(failure.by_process);
  EXPECT_NE(failure.why.find("sent more than 4 packets from rank 0 to rank 1 without an acknowledgement"), std::string::npos) << failure.why;
}

TEST_F(OwnAgentTest, ImpirunEndsTheStream) {
  Make(2);
  EXPECT_FALSE(Receive(0));
  ends_[0]->impirun.Close();
  // A process that sleeps hears of it at once, and one that only polls soon.
  EXPECT_TRUE(loop_.Dispatch(0));
  EXPECT_GT(told_, 0);
  EXPECT_FALSE(Receive(0));
  EXPECT_TRUE(ended_);
  ends_[1]->impirun.Close();
  for (int i = 0; i < 300 && (i == 0 || !ended_); ++i) EXPECT_FALSE(Receive(1));
  EXPECT_TRUE(ended_);
}

}  // namespace
}  // namespace weft::mpi
