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
    kVote = 1,     // to the coordinator: what the sender puts in (ballot.words)
    kAdopted = 2,  // ... or the ballot that it has adopted, proposed by `proposer`
    kAsk = 3,      // the coordinator, whose turn came by deaths, wants one of those two
    kPropose = 4,  // of the coordinator: a ballot to adopt
    kAccept = 5,   // ... it is adopted
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
//  - whoever is said to be dead is, and all the living learn it in the end.
class Consensus {
 public:
  // How messages leave. Send may not call back; it may drop what is for the dead.
  class Outbox {
   public:
    virtual ~Outbox() = default;
    virtual void Send(int rank, const Message& message) = 0;
  };

  // Of rank `self` in a group of `size`. `outbox` outlives it.
  Consensus(int self, int size, Outbox& outbox);

  // This process takes part. Once.
  void Vote(const std::vector<uint64_t>& words);
  // From another rank; before Vote() too.
  void OnMessage(int from, const Message& message);
  void OnDead(int rank);

  // What all agree on, once it is known.
  const std::optional<Ballot>& decision() const { return decision_; }
  bool is_dead(int rank) const { return dead_.Has(rank); }
  // Whether it goes on only when something comes from `rank`, or its death is known.
  bool Awaits(int rank) const;

 private:
  struct Proposal {
    int proposer = -1;
    Ballot ballot;
  };

  int Coordinator() const { return dead_.FirstMissing(); }
  void Step();
  void Coordinate();
  std::optional<Ballot> Choose() const;
  void Decide(const Ballot& ballot);
  template <typename Wanted>
  void SendToLiving(const Message& message, Wanted wanted);
  bool AllLivingIn(const RankSet& set) const;

  const int self_, size_;
  Outbox& outbox_;
  RankSet dead_;
  std::optional<std::vector<uint64_t>> own_;
  std::optional<Proposal> adopted_;
  std::optional<Ballot> decision_;
  int told_ = -1;  // the coordinator that knows what this process has

  // As coordinator.
  bool asked_ = false, proposed_ = false;
  RankSet heard_, accepted_;
  std::vector<std::vector<uint64_t>> votes_;  // by rank, of those heard
  std::optional<Proposal> latest_;            // adopted by somebody heard
};

}  // namespace weft::mpi::survive

#endif  // MPI_HYBRID_SURVIVE_CONSENSUS_H_
