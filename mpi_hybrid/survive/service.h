#ifndef MPI_HYBRID_SURVIVE_SERVICE_H_
#define MPI_HYBRID_SURVIVE_SERVICE_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/p2p/progress.h"
#include "mpi_hybrid/survive/ballot.h"
#include "mpi_hybrid/survive/note.h"
#include "mpi_hybrid/survive/revocation.h"

namespace weft::mpi::survive {

// This process's part in agreements and revocations, whatever else it does in MPI. It answers other processes as long
// as they may need it.
class Service final : public ProgressStage {
 public:
  static Service& Get();

  // Called when the device starts: from now on it receives notes.
  void Begin();

  // Runs an agreement and blocks until it ends. All members of `comm` (of both groups of an intercommunicator) call it
  // in the same order. Voters are numbered as in OrderedMembers.
  Ballot Agree(Comm& comm, const std::vector<uint64_t>& words);
  // The members of both groups, in an order that is the same at all members.
  static std::vector<ProcessId> OrderedMembers(const Comm& comm);

  // Revokes at this process, and in the end at all members.
  void Revoke(Comm& comm);

  // MPI_Abort: tells the other members of the local group to end, and waits at most kAbortPatience until they have.
  // They call the function of OnAborted.
  void Abort(Comm& comm, int status);
  void OnAborted(std::function<void(ProcessId by, int status)> end) { end_ = std::move(end); }

  // ProgressStage
  bool Poll() override;
  bool Arm() override;
  int fd() const override { return -1; }

 private:
  class Agreement;
  using Key = std::pair<uint64_t, uint32_t>;  // the communicator's identity, the agreement's number

  Agreement* Find(const Key& key) const;
  void Take(ProcessId from, ParsedNote note);
  void TakeAgreement(ProcessId from, ParsedNote note);
  void Await(Agreement& agreement, Comm& comm);
  void NoteEnd(const Key& key);
  bool LookForDeaths();
  bool RevokeWhatIsThereNow();
  bool EndIfAborted();
  static constexpr std::chrono::seconds kAbortPatience{1};

  bool registered_ = false;
  unsigned gone_ = 0;  // number of dead processes at the last check
  std::map<Key, std::unique_ptr<Agreement>> agreements_;
  std::deque<Key> ended_;
  std::map<Key, std::map<ProcessId, ParsedNote>> early_;  // of agreements that this process has not started yet
  std::deque<Key> early_order_;
  Revocations revocations_;
  std::deque<uint64_t> revoked_early_;  // identities of communicators that this process has not made yet
  std::function<void(ProcessId by, int status)> end_;
  // received; for communicators that this process may not have made yet
  std::deque<std::pair<ProcessId, Note>> aborts_;
};

}  // namespace weft::mpi::survive

#endif  // MPI_HYBRID_SURVIVE_SERVICE_H_
