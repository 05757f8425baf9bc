#ifndef MPI_HYBRID_SURVIVE_CONSENSUS_H_
#define MPI_HYBRID_SURVIVE_CONSENSUS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "mpi_hybrid/survive/ballot.h"

namespace weft::mpi::survive {

// A message between the processes of one agreement.
struct Message {
  enum class Kind : uint8_t {
    kVote = 1,     // the votes of ballot.voters, combined with "and"
    // to the coordinator instead of a vote: the ballot that the sender has adopted, proposed by `proposer`
    kAdopted = 2,
    // of the coordinator: asks each process for one of those two. Sent when it became coordinator by deaths, or learns
    // of one
    kAsk = 3,
    kPropose = 4,  // of the coordinator, which is `proposer`: the ballot to adopt
    kAccept = 5,   // ballot.voters have adopted it
    kDecide = 6,   // the result
  };

  Kind kind = Kind::kVote;
  int proposer = 0;
  Ballot ballot;
};

// One process's part in one agreement among the living processes of a group. Any of them may die at any time, even all
// but one. All processes that complete it, including those that die later, complete it with the same ballot. The ballot
// contains the words of all processes that do not die. No I/O.
//
// The coordinator is the lowest rank that is not known to be dead. It waits for the votes of all living processes,
// proposes their "and", waits until all living processes have adopted that, and decides. A process that becomes
// coordinator by deaths first asks what the others have adopted. It proposes again the ballot of the latest coordinator
// that got as far as proposing, since that ballot may have been decided. This needs two properties of the transport:
// - Messages between two processes stay in order. Messages of a process arrive before the news of its death; if one is
//   lost, all later ones are lost as well.
// - A process that is reported dead is dead, and processes that wait for it (Awaits) learn of its death in the end.
//
// While no death is known, messages follow a tree with rank 0 at its root. Votes and acceptances are combined on the
// way up; the proposal and the decision are forwarded on the way down. Each process waits for its neighbours in the
// tree. A process that learns of a death talks directly to the coordinator from then on, also on behalf of the
// processes below it that go on as before. When a process does so, rank 0 asks all processes to do the same, and talks
// directly to each of them.
class Consensus {
 public:
  // Sends messages. Send must not call back. It may drop messages to dead processes.
  class Outbox {
   public:
    virtual ~Outbox() = default;
    virtual void Send(int rank, const Message& message) = 0;
  };

  static constexpr int kFanOut = 8;  // children of a process in the tree

  // For rank `self` in a group of `size` ranks. `outbox` must outlive it.
  Consensus(int self, int size, Outbox& outbox, int fan_out = kFanOut);

  // This process votes. Call it once.
  void Vote(const std::vector<uint64_t>& words);
  // A message from another rank; may come before Vote().
  void OnMessage(int from, const Message& message);
  void OnDead(int rank);

  // The result, once it is known.
  const std::optional<Ballot>& decision() const { return decision_; }
  bool is_dead(int rank) const { return dead_.Has(rank); }
  // Whether only a message from `rank`, or its death, can let the agreement go on.
  bool Awaits(int rank) const;

 private:
  struct Proposal {
    int proposer = -1;
    Ballot ballot;
  };
  struct Said {
    int to = -1;
    Message::Kind kind = Message::Kind::kVote;
    int proposer = 0;
    int ranks = 0;  // the number of ranks that it was for
    bool operator==(const Said&) const = default;
  };

  int Coordinator() const { return dead_.FirstMissing(); }
  bool KnowsOfDeaths() const { return dead_.Count() != 0; }
  bool IsBesideTree() const { return is_asked_ || KnowsOfDeaths(); }
  int ParentOf(int rank) const { return (rank - 1) / fan_out_; }
  bool IsChild(int rank) const { return rank != 0 && ParentOf(rank) == self_; }
  bool IsLeaf(int rank) const { return int64_t{rank} * fan_out_ + 1 >= size_; }
  RankSet Subtree(int root) const;
  // The processes that this one has heard from in the current step: those that have voted, or adopted.
  const RankSet& Counted() const { return adopted_ ? accepted_ : gathered_.voters; }

  void Step();
  void Say(int to, const Message& message, int ranks);
  void OnCall(int from, const Message& message);
  void Adopt(int proposer, const Ballot& ballot);
  // At rank 0: the message did not come along the tree, or the tree has a gap.
  void NoteDetour(int from, const RankSet& spoken_for);
  void Coordinate();
  void Propose();
  Ballot Choose() const;
  void Decide(const Ballot& ballot);
  template <typename Wanted>
  void SendToLiving(const Message& message, Wanted wanted);
  bool AllLivingIn(const RankSet& set) const;

  const int self_, size_, fan_out_;
  Outbox& outbox_;
  const RankSet subtree_;  // this process and those below it
  RankSet dead_;
  std::optional<std::vector<uint64_t>> own_;
  Ballot gathered_;                // the votes that this process knows
  std::optional<Proposal> adopted_;
  RankSet accepted_;  // processes that have adopted the ballot of accepted_of_, as far as this process knows
  int accepted_of_ = 0;
  std::optional<Ballot> decision_;
  bool is_asked_ = false;
  Said said_;     // the last message to its parent or the coordinator
  RankSet spoke_;  // the ranks that talk directly to this one

  // State of the coordinator.
  bool asked_ = false, proposed_ = false;
  bool speaks_to_each_ = false;    // it talks directly to each process and waits for each
  RankSet heard_, proposed_to_;
  std::optional<Proposal> latest_;  // adopted by a process that it has heard from
};

}  // namespace weft::mpi::survive

#endif  // MPI_HYBRID_SURVIVE_CONSENSUS_H_
