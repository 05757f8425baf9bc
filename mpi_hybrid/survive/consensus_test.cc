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
  // `tells_all`: of deaths, not only those that await the dead.
  Network(uint32_t seed, std::vector<int> sends_before_death, int fan_out = Consensus::kFanOut, bool tells_all = true)
      : random_(seed), lives_(std::move(sends_before_death)), size_(static_cast<int>(lives_.size())), fan_out_(fan_out), tells_all_(tells_all) {
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

  // All that ended the agreement did so with the same, which has the words of all that live and of nobody else but voters, and perhaps of the dead.
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
    ASSERT_EQ(agreed->words.size(), 1u);
    for (int rank = 0; rank < size_; ++rank) {
      const bool is_in = (agreed->words[0] >> rank & 1) == 0;
      EXPECT_TRUE(is_in || !agreed->voters.Has(rank)) << rank;
      EXPECT_TRUE(!is_in || agreed->voters.Has(rank) || processes_[Index(rank)]->dead) << rank;
    }
  }

  int sends(int rank) const { return processes_[Index(rank)]->sends; }

 private:
  struct Process final : Consensus::Outbox {
    Process(Network& of, int rank)
        : network(of), self(rank), consensus(rank, of.size_, *this, of.fan_out_), channels(Index(of.size_)), told(Index(of.size_)) {}

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
        if (from == to) continue;
        const bool news = sender.dead && !sender.told[Index(to)] && (tells_all_ || receiver.consensus.Awaits(from));
        if (!sender.channels[Index(to)].empty() || news) possible.emplace_back(from, to);
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
  const int size_, fan_out_;
  const bool tells_all_;
  std::vector<std::unique_ptr<Process>> processes_;
};

TEST(Consensus, OneAloneAgreesWithItself) {
  Network network(1, {kLives});
  network.Run();
  network.Check();
  EXPECT_EQ(network.sends(0), 0);
}

TEST(Consensus, WithoutDeathsAllVotesCount) {
  for (int size = 1; size <= Consensus::kFanOut + 1; ++size) {
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

// Messages of the one that has the most of them, sent and received.
int Busiest(int size, int fan_out) {
  struct Wire {
    int from, to;
    Message message;
  };
  std::deque<Wire> wires;
  std::vector<int> busy(static_cast<size_t>(size));
  struct Process final : Consensus::Outbox {
    Process(int rank, int size, int fan_out, std::deque<Wire>* to) : self(rank), wires(to), consensus(rank, size, *this, fan_out) {}
    void Send(int rank, const Message& message) override { wires->push_back({self, rank, message}); }
    const int self;
    std::deque<Wire>* const wires;
    Consensus consensus;
  };
  std::vector<std::unique_ptr<Process>> processes;
  for (int rank = 0; rank < size; ++rank) processes.push_back(std::make_unique<Process>(rank, size, fan_out, &wires));
  for (const auto& process : processes) process->consensus.Vote({~uint64_t{0}});
  for (; !wires.empty(); wires.pop_front()) {
    const auto& [from, to, message] = wires.front();
    ++busy[static_cast<size_t>(from)];
    ++busy[static_cast<size_t>(to)];
    processes[static_cast<size_t>(to)]->consensus.OnMessage(from, message);
  }
  for (const auto& process : processes) EXPECT_TRUE(process->consensus.decision() && process->consensus.decision()->voters.Count() == size);
  return *std::max_element(busy.begin(), busy.end());
}

TEST(Consensus, NobodyHasMuchToSayWhereThereAreMany) {
  EXPECT_EQ(Busiest(1024, 1024), 4 * 1023) << "as a star";
  EXPECT_EQ(Busiest(1024, Consensus::kFanOut), 4 * (Consensus::kFanOut + 1));
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
        Network network(seed, lives, 1 + static_cast<int>(seed) % 5, seed % 2 == 0);
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
        Network network(static_cast<uint32_t>(sends) + 1, lives, 1 + sends % 3, sends % 2 == 0);
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
    std::vector<int> lives(2 + random() % (random() % 4 == 0 ? 30 : 12), kLives);
    const size_t deaths = random() % lives.size();  // one survives
    for (size_t i = 0; i < deaths; ++i) lives[i] = static_cast<int>(random() % (3 * lives.size()));
    std::shuffle(lives.begin(), lives.end(), random);
    const int fan_out = 1 + static_cast<int>(random() % 5);
    Network network(seed, lives, fan_out, random() % 2 == 0);
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
  RankSet one(2);
  one.Add(1);
  consensus.OnMessage(1, {.kind = Message::Kind::kVote, .ballot = {.words = {1}, .voters = one}});
  consensus.OnMessage(1, {.kind = Message::Kind::kAccept, .ballot = {.words = {}, .voters = one}});
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
  RankSet two(3);
  two.Add(2);
  consensus.OnMessage(2, {.kind = Message::Kind::kVote, .ballot = {.words = {1}, .voters = two}});
  EXPECT_TRUE(consensus.Awaits(2));  // for its acceptance
  consensus.OnDead(2);
  EXPECT_TRUE(consensus.decision());
}

}  // namespace
}  // namespace weft::mpi::survive
