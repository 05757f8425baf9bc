// The first words of a process and its agent.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/hex.h"
#include "impi/entry/hello.h"
#include "impi/entry/welcome.h"
#include "impi/job/testing/jobs.h"

namespace weft::impi {
namespace {

std::string WhyOf(const std::string& digits) {
  Bytes bytes(digits.size() / 2);
  EXPECT_TRUE(ParseHex(digits, bytes));
  const auto hello = Hello::Parse(bytes);
  return hello.ok() ? "" : hello.error();
}

TEST(ImpiHello, HasTheVersionAndTheRank) {
  const Bytes bytes = Hello{258}.Serialize();
  EXPECT_EQ(HexOf(bytes), "52414e4b000000080000000100000102");
  ASSERT_EQ(bytes.size(), Hello::kSize);
  EXPECT_EQ(*Hello::Parse(bytes), (Hello{258}));
  EXPECT_EQ(Hello::Parse(Hello{-1}.Serialize())->rank, -1) << "the agent knows how many there are";
}

TEST(ImpiHello, SaysWhetherTheProcessTakesConnections) {
  const Bytes bytes = Hello{.rank = 258, .takes_connections = true}.Serialize();
  EXPECT_EQ(HexOf(bytes), "52414e4b000000080000000200000102");
  EXPECT_TRUE(Hello::Parse(bytes)->takes_connections);
}

TEST(ImpiLinkNotice, NamesTheHost) {
  const Bytes bytes = LinkNotice{259}.Serialize();
  EXPECT_EQ(HexOf(bytes), "4c494e4b0000000400000103");
  ASSERT_EQ(bytes.size(), LinkNotice::kSize);
  EXPECT_EQ(LinkNotice::Parse(bytes)->host, 259);
  EXPECT_FALSE(LinkNotice::Parse(Bytes(LinkNotice::kSize)));
}

TEST(ImpiHello, OfSomethingElseSaysWhatIsWrong) {
  EXPECT_EQ(WhyOf("474554202f20485454502f312e310d0a"), "began with 0x47455420 and not with RANK (0x52414e4b); it is no process of Weft's MPI library");
  EXPECT_EQ(WhyOf("52414e4b000000090000000100000102"), "sent RANK with 9 bytes and not 8");
  EXPECT_EQ(WhyOf("52414e4b000000080000000300000102"),
            "has version 3 of the MPI library's connection to impirun, and this impirun has 1 and 2; use both from one release");
}

class ImpiWelcome : public ::testing::Test {
 protected:
  const std::vector<Announcement> clients = testing::Announcements({{1}, {2, 1}});
  // Client 1 has its ranks 0 and 2 on its first host, and 1 on its second.
  const Bytes whole = Welcome::Serialize(ClientRank(1), 2, testing::Tell(clients), {0, 2, 1}, 1);

  static Result<Welcome, std::string> Read(const Bytes& answer, int32_t rank, size_t step = SIZE_MAX) {
    AnswerReader reader;
    size_t at = 0;
    while (reader.Wants() != 0) {
      const size_t count = std::min({reader.Wants(), step, answer.size() - at});
      EXPECT_NE(count, 0u) << "it wants more than there is";
      if (count == 0) return std::string("too short");
      reader.Append(ByteSpan(answer).subspan(at, count));
      at += count;
    }
    return reader.Take(rank);
  }
  std::string Why(const Bytes& answer, int32_t rank = 0) {
    const auto welcome = Read(answer, rank);
    return welcome.ok() ? "" : welcome.error();
  }
};

TEST_F(ImpiWelcome, BringsTheWholeJobToEachRank) {
  for (const auto& [rank, world] : {std::pair{0, 1}, {2, 2}, {1, 3}}) {
    for (const size_t step : {size_t{1}, size_t{7}, SIZE_MAX}) {
      const auto welcome = Read(whole, rank, step);
      ASSERT_TRUE(welcome.ok()) << welcome.error();
      EXPECT_EQ(welcome->self, WorldRank(world));
      EXPECT_EQ(welcome->own, (std::vector<int32_t>{0, 2, 1}));
      EXPECT_TRUE(welcome->IsLam(ClientRank(0)));
      EXPECT_FALSE(welcome->IsLam(ClientRank(1)));
      const Job& job = welcome->job;
      EXPECT_EQ(job.clients(), 2);
      EXPECT_EQ(job.self(), ClientRank(1));
      EXPECT_EQ(job.hosts().size(), 3u);
      EXPECT_EQ(job.processes().size(), 4u);
      EXPECT_EQ(job.limits().data_length, 100u);
      EXPECT_EQ(job.high_water(), 4u);
      EXPECT_EQ(job.process(WorldRank(3)).name, clients[1].hosts[1].processes[0]);
    }
  }
}

TEST_F(ImpiWelcome, ReadsNoByteOfWhatFollows) {
  AnswerReader reader;
  Bytes stream = whole;
  stream.resize(stream.size() + 128);
  size_t at = 0;
  for (size_t count; (count = reader.Wants()) != 0; at += count) reader.Append(ByteSpan(stream).subspan(at, count));
  EXPECT_EQ(at, whole.size());
}

TEST_F(ImpiWelcome, ADenialSaysWhy) {
  EXPECT_EQ(Why(SerializeDenial("rank 7 is connected already")), "the agent refused this process: rank 7 is connected already");
}

TEST_F(ImpiWelcome, CutAnywhereIsAnErrorAndNoMore) {
  const Bytes payload(whole.begin() + Command::kHeader, whole.end());
  for (size_t size = 0; size < payload.size(); ++size) EXPECT_FALSE(Welcome::Parse(ByteSpan(payload).first(size), 0).ok()) << size;
}

TEST_F(ImpiWelcome, WrongOnesSayWhatIsWrong) {
  const auto wrong = [](const std::string& what) { return "the agent's answer is wrong: " + what + "; use impirun and the MPI library from one release"; };
  const auto with = [this](size_t at, uint8_t value) {
    Bytes bytes = whole;
    bytes[at] = value;
    return bytes;
  };
  EXPECT_EQ(Why(whole, 3), wrong("rank 3 is not in it"));
  EXPECT_EQ(Why(with(0, 'X')), wrong("it begins with 0x584c434d"));
  for (const uint8_t length : {0x80, 0x7f}) EXPECT_NE(Why(with(4, length)).find("at most 83886080 are accepted"), std::string::npos);
  EXPECT_EQ(Why(with(11, 2)), wrong("client 2 of 2"));
  EXPECT_EQ(Why(with(15, 33)), wrong("client 1 of 33"));
  EXPECT_EQ(Why(with(23, 100)), wrong("the ranks of this client are not 0 to 99, each once"));
  EXPECT_EQ(Why(with(20, 200)), wrong("this client has 3355443203 processes, and fewer ranks came"));
  EXPECT_EQ(Why(with(27, 2)), wrong("the ranks of this client are not 0 to 2, each once"));
  EXPECT_EQ(Why(Welcome::Serialize(ClientRank(1), 2, testing::Tell(clients), {1, 0}, 0)), wrong("this client has 3 processes in the job, and 2 ranks came"));
  auto told = testing::Tell(clients);
  told.erase(Label::kHostPort);
  EXPECT_EQ(Why(Welcome::Serialize(ClientRank(1), 2, told, {0, 2, 1}, 0)), "client 0 did not say IMPI_H_PORT, which version 0.0 of IMPI wants from all clients");
}

}  // namespace
}  // namespace weft::impi
