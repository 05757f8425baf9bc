#ifndef MPI_HYBRID_SURVIVE_CONSENSUS_H_
#define MPI_HYBRID_SURVIVE_CONSENSUS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "mpi_hybrid/survive/ballot.h"

namespace weft::mpi::survive {

// What the processes of one agreement tell each other.
struct Message {
  enum class Kind : uint8_t {
    kVote = 1,     // what ballot.voters put in: the "and" of it
    kAdopted = 2,  // to the coordinator, in place of that: the ballot that the sender has adopted, proposed by `proposer`
    kAsk = 3,      // the coordinator, whose turn came by deaths, or who hears of one, wants one of those two, from each itself
    kPropose = 4,  // of the coordinator, which is `proposer`: a ballot to adopt
    kAccept = 5,   // ... ballot.voters have adopted it
    kDecide = 6,   // this is what was agreed on
  };

  Kind kind = Kind::kVote;
  int proposer = 0;
  Ballot ballot;
};

// One process's part in one agreement between the living of a group, any of which may die at any time, even all but one. All that end it end it with the
// same ballot, those that die afterwards too; it has the words of all that do not die. No I/O.
//
// The coordinator is the lowest rank that is not known to be dead. It waits for the votes of all the living, proposes their "and", waits until all the living have
// adopted that, and decides. Whoever's turn comes by deaths asks what the others have adopted: the ballot of the last coordinator that got as far as proposing is
// proposed again, since it may have been decided. That needs two things of those who carry the messages:
//  - they keep the order between two processes, and what one has sent arrives before the news of its death, or not at all with all that was sent behind it;
//  - whoever is said to be dead is, and those who await it (Awaits) learn it in the end.
//
// While nobody is known to be dead, all goes along a tree with rank 0 at its root: votes and acceptances are put together on the way up, the proposal and the
// decision are passed on on the way down. Each awaits those next to it. Who learns of a death speaks to the coordinator itself from then on, also for those
// below it that go on as before; and rank 0, when somebody does, asks all to do so, and speaks to each itself.
class Consensus {
 public:
  // How messages leave. Send may not call back; it may drop what is for the dead.
  class Outbox {
   public:
    virtual ~Outbox() = default;
    virtual void Send(int rank, const Message& message) = 0;
  };

  static constexpr int kFanOut = 8;  // ranks right below one in the tree

  // Of rank `self` in a group of `size`. `outbox` outlives it.
  Consensus(int self, int size, Outbox& outbox, int fan_out = kFanOut);

  // This process takes part. Once.
  void Vote(const std::vector<uint64_t>& words);
  // From another rank; before Vote() too.
  void OnMessage(int from, const Message& message);
  void OnDead(int rank);

  // What all agree on, once it is known.
  const std::optional<Ballot>& decision() const { return decision_; }
  bool is_dead(int rank) const { return dead_.Has(rank); }
  // Whether it may go on only when something comes from `rank`, or its death is known.
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
    int ranks = 0;  // for so many
    bool operator==(const Said&) const = default;
  };

  int Coordinator() const { return dead_.FirstMissing(); }
  bool KnowsOfDeaths() const { return dead_.Count() != 0; }
  bool IsBesideTree() const { return is_asked_ || KnowsOfDeaths(); }
  int ParentOf(int rank) const { return (rank - 1) / fan_out_; }
  bool IsChild(int rank) const { return rank != 0 && ParentOf(rank) == self_; }
  bool IsLeaf(int rank) const { return int64_t{rank} * fan_out_ + 1 >= size_; }
  RankSet Subtree(int root) const;
  // Whom this process has heard of, at the step that it is at: they have voted, or adopted.
  const RankSet& Counted() const { return adopted_ ? accepted_ : gathered_.voters; }

  void Step();
  void Say(int to, const Message& message, int ranks);
  void OnCall(int from, const Message& message);
  void Adopt(int proposer, const Ballot& ballot);
  // As rank 0: it did not come along the tree, or something is missing in it.
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
  const RankSet subtree_;  // this process, and those below it
  RankSet dead_;
  std::optional<std::vector<uint64_t>> own_;
  Ballot gathered_;                // votes that this process knows
  std::optional<Proposal> adopted_;
  RankSet accepted_;               // who has adopted the ballot of accepted_of_, as far as this process knows
  int accepted_of_ = 0;
  std::optional<Ballot> decision_;
  bool is_asked_ = false;
  Said said_;     // the last to its parent or the coordinator
  RankSet spoke_;  // to this one

  // As coordinator.
  bool asked_ = false, proposed_ = false;
  bool speaks_to_each_ = false;    // itself, and waits for each
  RankSet heard_, proposed_to_;
  std::optional<Proposal> latest_;  // adopted by somebody heard
};

}  // namespace weft::mpi::survive

#endif  // MPI_HYBRID_SURVIVE_CONSENSUS_H_
