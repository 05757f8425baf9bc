#include "mpi_hybrid/dynamic/parting.h"

#include <vector>

#include "mpi_hybrid/core/job.h"
#include "mpi_hybrid/p2p/message.h"
#include "mpi_hybrid/p2p/progress.h"
#include "mpi_hybrid/rma/window.h"

namespace weft::mpi {
namespace {

class PartingStage final : public ProgressStage {
 public:
  bool Poll() override {
    ProcessTable& processes = ThisJob().processes;
    bool moved = false;
    if (processes.has_parting()) {
      for (const ProcessId process : processes.TakeParting()) {
        ForgetInWindows(process);
        PartFrom(process);
        parting_.push_back(process);
      }
      moved = true;
    }
    for (size_t i = 0; i < parting_.size();) {
      if (!HasParted(parting_[i])) {
        ++i;
        continue;
      }
      processes.Parted(parting_[i]);
      parting_.erase(parting_.begin() + static_cast<std::ptrdiff_t>(i));
      moved = true;
    }
    return moved;
  }
  bool Arm() override { return !Poll(); }
  int fd() const override { return -1; }
  bool done() const { return parting_.empty() && !ThisJob().processes.has_parting(); }

 private:
  std::vector<ProcessId> parting_;
};

PartingStage* g_stage = nullptr;

}  // namespace

void StartParting() {
  if (g_stage != nullptr) return;
  g_stage = new PartingStage;
  Progress::AddStage(g_stage);
}

void AwaitParting() {
  if (g_stage == nullptr) return;
  Progress::WaitUntil([] { return g_stage->done(); });
}

}  // namespace weft::mpi
