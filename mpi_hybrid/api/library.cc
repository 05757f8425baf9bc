#include "mpi_hybrid/api/library.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/api/environment_info.h"
#include "mpi_hybrid/api/language_hooks.h"
#include "mpi_hybrid/coll/collectives.h"
#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/job.h"
#include "mpi_hybrid/core/settings.h"
#include "mpi_hybrid/p2p/message.h"
#include "mpi_hybrid/shm/this_node.h"

namespace weft::mpi {
namespace {

int g_users = 0;
bool g_started = false, g_stopped = false;

// A setting that is silently ignored misleads.
void WarnOfUnknownSetting() {
  const std::string why = UnknownSetting();
  if (!why.empty()) std::fprintf(stderr, "weft: %s\n", why.c_str());
}

Error Start() {
  WEFT_MPI_TRY(JoinJob(&shm::BeginNode));
  shm::JoinNode();
  const Job& job = ThisJob();
  MakeWorld(job.rank, job.size);
  WEFT_MPI_TRY(StartDevice());
  WEFT_MPI_TRY(ThisJob().Fence());
  shm::SettleNode();
  FillEnvironmentInfo();
  SetLanguageObjects();
  if (job.rank == 0) WarnOfUnknownSetting();
  return {};
}

Error Stop() {
  g_stopped = true;
  StopWindows();
  StopDevice();
  return LeaveJob();
}

// Where nobody said that the job ends: what was sent arrives, and the launcher hears a good-bye.
void StopAtExit() {
  LockGuard lock;
  if (g_users == 0 && !g_stopped) (void)Stop();
}

}  // namespace

Error UseLibrary() {
  if (g_stopped) return Error(MPI_ERR_OTHER, "MPI_Finalize has ended the library; a session can begin only before it");
  if (!g_started) {
    WEFT_MPI_TRY(Start());
    g_started = true;
  }
  ++g_users;
  g_library_state = LibraryState::kRunning;
  return {};
}

Error StopUsingLibrary(bool by_all) {
  if (g_users > 1 || !by_all) {
    if (--g_users != 0) return {};
    g_library_state = LibraryState::kBefore;
    static const int registered = std::atexit(&StopAtExit);
    (void)registered;
    return {};
  }
  WEFT_MPI_TRY(Barrier(World()));
  --g_users;
  WEFT_MPI_TRY(Stop());
  DropWorld();
  g_library_state = LibraryState::kAfter;
  return {};
}

}  // namespace weft::mpi
