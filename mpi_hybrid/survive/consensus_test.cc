// Agreements of processes of which some die, on a network without a clock: what is delivered next, and who learns of a death next, is up to a seed.
#include "mpi_hybrid/survive/consensus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace weft::mpi::survive {
namespace {

using Words = std::vector<uint64_t>;

// All bits but one, so that the "and" of several tells whose are in.
Words WordsOf(int rank) { return {~(uint64_t{1} << rank)}; }

// After so many sends a process is dead; it sends no more.
constexpr int kLives = -1;

class Network {
 public:
  Network(uint32_t seed, std::vector<int> sends_before_death)
      : random_(seed), lives_(std::move(sends_before_death)), size_(static_cast<int>(lives_.size())) {
    for (int rank = 0; rank < size_; ++rank) processes_.push_back(std::make_unique<Process>(*this, rank));
  }

  // Until nothing more can happen.
  void Run() {
    for (int rank = 0; rank < size_; ++rank) {
      if (lives_[Index(rank)] == 0) Kill(rank);
    }
    while (Step()) {
    }
  }

  // All that ended the agreement did so with the same, which has the words of all that live and of nobody else but voters.
  void Check() {
    const Ballot* agreed = nullptr;
    for (int rank = 0; rank < size_; ++rank) {
      Process& process = *processes_[Index(rank)];
      const auto& decision = process.consensus.decision();
      if (!process.dead) {
        ASSERT_TRUE(decision) << "rank " << rank << " waits for ever";
        EXPECT_TRUE(decision->voters.Has(rank)) << rank;
      }
      if (!decision) continue;
      if (agreed == nullptr) agreed = &*decision;
      EXPECT_EQ(*decision, *agreed) << rank;
    }
    if (agreed == nullptr) return;
    Ballot expected{.words = {}, .voters = RankSet(size_)};
    for (int rank = 0; rank < size_; ++rank) {
      if (agreed->voters.Has(rank)) expected.Count(rank, WordsOf(rank));
    }
    EXPECT_EQ(agreed->words, expected.words);
  }

  int sends(int rank) const { return processes_[Index(rank)]->sends; }

 private:
  struct Process final : Consensus::Outbox {
    Process(Network& of, int rank)
        : network(of), self(rank), consensus(rank, of.size_, *this), channels(Index(of.size_)), told(Index(of.size_)) {}

    void Send(int rank, const Message& message) override {
      if (dead) return;
      channels[Index(rank)].push_back(message);
      if (++sends == network.lives_[Index(self)]) network.Kill(self);
    }

    Network& network;
    const int self;
    Consensus consensus;
    std::vector<std::deque<Message>> channels;  // to each
    std::vector<bool> told;                     // of this one's death
    int sends = 0;
    bool dead = false, voted = false;
  };

  static size_t Index(int rank) { return static_cast<size_t>(rank); }

  // What was on its way is lost, from some place on.
  void Kill(int rank) {
    Process& process = *processes_[Index(rank)];
    process.dead = true;
    for (auto& channel : process.channels) {
      if (random_() % 2 == 0) channel.resize(random_() % (channel.size() + 1));
    }
  }

  bool Step() {
    std::vector<std::pair<int, int>> possible;  // from, to: a message, or news of a death
    for (int to = 0; to < size_; ++to) {
      Process& receiver = *processes_[Index(to)];
      if (receiver.dead) continue;
      if (!receiver.voted) possible.emplace_back(to, to);
      for (int from = 0; from < size_; ++from) {
        Process& sender = *processes_[Index(from)];
        if (from == to || (sender.channels[Index(to)].empty() && (!sender.dead || sender.told[Index(to)]))) continue;
        possible.emplace_back(from, to);
      }
    }
    if (possible.empty()) return false;
    const auto [from, to] = possible[random_() % possible.size()];
    Process &sender = *processes_[Index(from)], &receiver = *processes_[Index(to)];
    if (from == to) {
      receiver.voted = true;
      receiver.consensus.Vote(WordsOf(to));
    } else if (auto& channel = sender.channels[Index(to)]; !channel.empty()) {
      const Message message = channel.front();
      channel.pop_front();
      receiver.consensus.OnMessage(from, message);
    } else {
      sender.told[Index(to)] = true;
      receiver.consensus.OnDead(from);
    }
    return true;
  }

  std::mt19937 random_;
  const std::vector<int> lives_;
  const int size_;
  std::vector<std::unique_ptr<Process>> processes_;
};

TEST(Consensus, OneAloneAgreesWithItself) {
  Network network(1, {kLives});
  network.Run();
  network.Check();
  EXPECT_EQ(network.sends(0), 0);
}

TEST(Consensus, WithoutDeathsAllVotesCount) {
  for (int size = 1; size <= 9; ++size) {
    for (uint32_t seed = 1; seed <= 20; ++seed) {
      SCOPED_TRACE("size " + std::to_string(size) + ", seed " + std::to_string(seed));
      Network network(seed, std::vector<int>(static_cast<size_t>(size), kLives));
      network.Run();
      network.Check();
      // A vote and an acceptance of each, which rank 0 answers with a proposal and a decision.
      EXPECT_EQ(network.sends(0), 2 * (size - 1));
    }
  }
}

// Rank 0 has the most to say, so that there is no step of anybody behind that.
TEST(Consensus, SurvivesADeathAtEachStep) {
  constexpr int kSize = 5, kMostSends = 4 * kSize;
  for (int victim = 0; victim < kSize; ++victim) {
    for (int sends = 0; sends <= kMostSends; ++sends) {
      for (uint32_t seed = 1; seed <= 10; ++seed) {
        SCOPED_TRACE("victim " + std::to_string(victim) + " after " + std::to_string(sends) + " sends, seed " + std::to_string(seed));
        std::vector<int> lives(kSize, kLives);
        lives[static_cast<size_t>(victim)] = sends;
        Network network(seed, lives);
        network.Run();
        network.Check();
      }
    }
  }
}

TEST(Consensus, SurvivesTwoDeathsAtEachPairOfSteps) {
  constexpr int kSize = 4, kMostSends = 2 * kSize;
  for (int first = 0; first < kSize; ++first) {
    for (int second = 0; second < kSize; ++second) {
      for (int sends = 0; first != second && sends < kMostSends * kMostSends; ++sends) {
        SCOPED_TRACE("victims " + std::to_string(first) + ", " + std::to_string(second) + ", sends " + std::to_string(sends));
        std::vector<int> lives(kSize, kLives);
        lives[static_cast<size_t>(first)] = sends % kMostSends;
        lives[static_cast<size_t>(second)] = sends / kMostSends;
        Network network(static_cast<uint32_t>(sends) + 1, lives);
        network.Run();
        network.Check();
      }
    }
  }
}

// CONSENSUS_RUNS: how many; CONSENSUS_SEED: this one alone.
TEST(Consensus, SurvivesAnyDeathsAtRandom) {
  const char *runs = std::getenv("CONSENSUS_RUNS"), *one = std::getenv("CONSENSUS_SEED");
  const uint32_t first = one != nullptr ? static_cast<uint32_t>(std::strtoul(one, nullptr, 0)) : 1;
  const uint32_t last = one != nullptr ? first : runs != nullptr ? static_cast<uint32_t>(std::strtoul(runs, nullptr, 0)) : 3000;
  for (uint32_t seed = first; seed <= last && !HasFailure(); ++seed) {
    SCOPED_TRACE("CONSENSUS_SEED=" + std::to_string(seed));
    std::mt19937 random(seed);
    std::vector<int> lives(2 + random() % 12, kLives);
    const size_t deaths = random() % lives.size();  // one survives
    for (size_t i = 0; i < deaths; ++i) lives[i] = static_cast<int>(random() % (3 * lives.size()));
    std::shuffle(lives.begin(), lives.end(), random);
    Network network(seed, lives);
    network.Run();
    network.Check();
  }
}

TEST(Consensus, TellsWhoDidNotPutInAsManyWords) {
  struct Nowhere final : Consensus::Outbox {
    void Send(int, const Message&) override {}
  } nowhere;
  Consensus consensus(0, 2, nowhere);
  consensus.Vote({1, 2});
  consensus.OnMessage(1, {.kind = Message::Kind::kVote, .ballot = {.words = {1}, .voters = RankSet(2)}});
  consensus.OnMessage(1, {.kind = Message::Kind::kAccept});
  ASSERT_TRUE(consensus.decision());
  EXPECT_TRUE(consensus.decision()->words.empty());
}

// Whoever decides may lie, or have another call in mind: nothing is read of its words before this.
TEST(Ballot, IsOfOneWhoPutInTheLikeOfIt) {
  const auto is_of = [](const Words& decided, const Words& put_in) { return Ballot{.words = decided, .voters = RankSet(1)}.IsOf(put_in); };
  EXPECT_TRUE(is_of({4, 1, 2}, {4, 7, 2}));
  EXPECT_FALSE(is_of({4}, {4, 7, 2}));
  EXPECT_FALSE(is_of({4, 1, 2, 3}, {4, 7, 2}));
  EXPECT_FALSE(is_of({2, 1, 2}, {4, 7, 2}));
  EXPECT_FALSE(is_of({}, {4}));
  EXPECT_FALSE(is_of({}, {}));
}

TEST(Consensus, AwaitsWhoeverItCannotGoOnWithout) {
  struct Nowhere final : Consensus::Outbox {
    void Send(int, const Message&) override {}
  } nowhere;
  Consensus consensus(1, 3, nowhere);
  EXPECT_FALSE(consensus.Awaits(0));
  consensus.Vote({1});
  EXPECT_TRUE(consensus.Awaits(0));
  EXPECT_FALSE(consensus.Awaits(2));
  consensus.OnDead(0);
  EXPECT_FALSE(consensus.Awaits(0));
  EXPECT_TRUE(consensus.Awaits(2));
  consensus.OnMessage(2, {.kind = Message::Kind::kVote, .ballot = {.words = {1}, .voters = RankSet(3)}});
  EXPECT_TRUE(consensus.Awaits(2));  // for its acceptance
  consensus.OnDead(2);
  EXPECT_TRUE(consensus.decision());
}

}  // namespace
}  // namespace weft::mpi::survive
