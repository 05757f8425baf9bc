#ifndef MPI_HYBRID_COLL_HOST_GROUP_H_
#define MPI_HYBRID_COLL_HOST_GROUP_H_

#include <memory>
#include <string>
#include <vector>

#include "base/job_secret.h"
#include "mpi_hybrid/coll/host/member.h"
#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/shm/node_segment.h"
#include "mpi_hybrid/shm/own_words.h"
#include "mpi_hybrid/shm/process_reader.h"

namespace weft::mpi {

// What the ranks of an intracommunicator have in common when all of them are on this host: a range of the host's
// segment, for as long as the communicator is there.
class HostGroup final : public Comm::Extension, public host::Waiter, public host::Reach, private shm::OwnWords {
 public:
  // For the next blocking collective of `comm`, which each of its ranks asks in the same order. The first time it is
  // made, with messages on the communicator. Null: messages carry the collective; an error: a rank died meanwhile, of
  // which every collective tells from now on.
  static Error For(Comm& comm, HostGroup** group);

  // Whether For gave one and will go on to.
  static bool IsThere(const Comm& comm) {
    const auto* const there = static_cast<const HostGroup*>(comm.collectives.get());
    return there != nullptr && there->failed_.ok() && there->member_ != nullptr;
  }

  host::Member& member() { return *member_; }

  ~HostGroup() override;

 private:
  friend class HostGroupStage;

  HostGroup(const Comm& comm, shm::NodeSegment& node, std::vector<int> places) : comm_(comm), node_(node), places_(std::move(places)) {}

  static Error Make(Comm& comm, std::unique_ptr<HostGroup>* made);
  void NoteWhoIsGone();
  static bool Spin(host::Missing missing);
  Error Until(host::Missing missing) override;
  void Ring(int member) override { node_.RingAfterFence(places_[static_cast<size_t>(member)]); }

  bool ReachesAll() override;
  Outcome Read(int member, uint64_t address, void* to, size_t bytes) override;

  std::string Overwritten() const override;
  bool IsOver() const;  // the wait under way
  // Before a sleep: says for whom it is. Whether somebody is missing still.
  bool Arm();
  void Disarm();

  const Comm& comm_;  // whose this is
  shm::NodeSegment& node_;
  const std::vector<int> places_;  // by rank
  const Nonce cookie_ = NewNonce();
  std::vector<shm::ProcessReader> processes_;  // by rank, once ReachesAll
  Error failed_;                   // making it
  uint64_t offset_ = 0;
  shm::Mapping mapping_;
  std::unique_ptr<host::Member> member_;  // null: there is none, and messages do it
  const host::Missing* missing_ = nullptr;  // of the wait under way
  bool told_ = false;                       // that it is over
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_COLL_HOST_GROUP_H_
