#ifndef MPI_HYBRID_COLL_HOST_GROUP_H_
#define MPI_HYBRID_COLL_HOST_GROUP_H_

#include <memory>
#include <string>
#include <vector>

#include "base/job_secret.h"
#include "mpi_hybrid/coll/host/member.h"
#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/host/own_words.h"
#include "mpi_hybrid/host/process_memory.h"
#include "mpi_hybrid/host/segment.h"
#include "mpi_hybrid/p2p/host_wait.h"

namespace weft::mpi {

// State of an intracommunicator whose ranks are all on this host: a range of the host's segment, for as long as the
// communicator exists. The communicator owns it.
class HostGroup final : public Comm::Extension, public coll::Waiter, public coll::Reach, private host::OwnWords, private HostWait {
 public:
  // Returns the group for the next blocking collective of `comm`. Every rank calls it in the same order. The first call
  // makes the group, with messages on the communicator. Null: the collective must use messages. An error: a rank died
  // meanwhile, and every later collective reports that as well.
  static Error For(Comm& comm, HostGroup** group);

  // Whether For has returned a group and will continue to.
  static bool IsThere(const Comm& comm) {
    const auto* const there = static_cast<const HostGroup*>(comm.collectives.get());
    return there != nullptr && there->failed_.ok() && there->member_ != nullptr;
  }

  coll::Member& member() { return *member_; }

  ~HostGroup() override;

 private:
  HostGroup(const Comm& comm, host::Segment& segment, std::vector<int> places) : comm_(comm), segment_(segment), places_(std::move(places)) {}

  static Error Make(Comm& comm, std::unique_ptr<HostGroup>* made);
  void NoteWhoIsGone();
  Error Until(coll::Missing missing) override;
  Error Sleep(coll::Missing missing);
  void Ring(int member) override { segment_.RingAfterFence(places_[static_cast<size_t>(member)]); }

  bool ReachesAll() override;
  Outcome Read(int member, uint64_t address, void* to, size_t bytes) override;

  std::string Overwritten() const override;
  coll::Memory memory() const { return {mapping_.data(), static_cast<int>(places_.size())}; }

  // HostWait, for the current wait. Arm publishes the member that this one waits for.
  bool IsOver() const override;
  bool Arm() override;
  void Disarm() override;

  const Comm& comm_;  // the owner of this object
  host::Segment& segment_;
  const std::vector<int> places_;  // by rank
  const Nonce cookie_ = NewNonce();
  std::vector<std::shared_ptr<host::ProcessMemory>> processes_;  // by rank, filled by ReachesAll
  Error failed_;                   // the error of making the group
  uint64_t offset_ = 0;
  host::Mapping mapping_;
  std::unique_ptr<coll::Member> member_;  // null: not available; messages carry the collectives
  const coll::Missing* missing_ = nullptr;  // of the current wait
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_COLL_HOST_GROUP_H_
