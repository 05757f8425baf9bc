#ifndef MPI_HYBRID_P2P_HOST_WAITS_H_
#define MPI_HYBRID_P2P_HOST_WAITS_H_

#include <vector>

#include "mpi_hybrid/p2p/host_wait.h"
#include "mpi_hybrid/p2p/progress.h"

namespace weft::mpi {

// Among what Progress sleeps on: the bell, for all HostWaits of this process. HostWait::Scope is for all but tests.
class HostWaits final : public ProgressStage {
 public:
  static HostWaits& Get();

  void Add(HostWait& wait);
  void Remove(HostWait& wait);

  // True when a wait has ended: of this thread, or of one that sleeps behind it and has to be told. Once for each, since
  // a thread that polls in vain lets the other have the lock. A wait that goes on again is told again.
  bool Poll() override;
  // A wait that is over and was told is another thread's, which goes on when it gets the lock: not before this one sleeps.
  bool Arm() override;
  void OnAwake() override;
  bool Serves() const override { return false; }
  // The device watches the segment's.
  int fd() const override;

 private:
  // Whether none is over that was not told.
  bool ArmAll();

  std::vector<HostWait*> waits_;
  bool armed_ = false;  // a thread sleeps, or is about to
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_HOST_WAITS_H_
