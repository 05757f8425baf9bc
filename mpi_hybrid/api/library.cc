#include "mpi_hybrid/api/library.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/api/environment_info.h"
#include "mpi_hybrid/api/language_hooks.h"
#include "mpi_hybrid/api/report.h"
#include "mpi_hybrid/coll/collectives.h"
#include "mpi_hybrid/coll/spanning.h"
#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/impi_world.h"
#include "mpi_hybrid/core/job.h"
#include "mpi_hybrid/core/settings.h"
#include "mpi_hybrid/host/this_host.h"
#include "mpi_hybrid/p2p/foreign.h"
#include "mpi_hybrid/p2p/message.h"
#include "mpi_hybrid/p2p/process_device.h"
#include "mpi_hybrid/survive/recover.h"

namespace weft::mpi {
namespace {

int g_users = 0;
bool g_started = false, g_stopped = false;

// A setting that is silently ignored misleads.
void WarnOfUnknownSetting() {
  const std::string why = UnknownSetting();
  if (!why.empty()) std::fprintf(stderr, "weft: %s\n", why.c_str());
}

uint64_t IdentityOf(const JobId& job) {
  uint64_t identity = 1;
  for (const uint8_t byte : job.bytes) identity = MixIdentity(identity, byte);
  return identity;
}

Error StartLibrary() {
  WEFT_MPI_TRY(JoinJob(&host::BeginHost));
  host::JoinHost();
  WEFT_MPI_TRY(EnterImpiJob(ThisJob()));
  const Job& job = ThisJob();
  if (job.impi == nullptr) {
    MakeWorld(job.rank, job.size);
  } else {
    MakeWorld(job.impi->self().value, job.impi->processes());
  }
  World().set_identity(IdentityOf(job.processes.own_name().job));
  WEFT_MPI_TRY(StartDevice());
  survive::BeginToServe();
  survive::OnAborted(&EndWith);
  WEFT_MPI_TRY(ThisJob().Fence());
  host::SettleHost();
  SettleDevice();
  if (job.impi != nullptr) WEFT_MPI_TRY(SpanWorld(World()));
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
    WEFT_MPI_TRY(StartLibrary());
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
  // Where somebody died, or the program revoked MPI_COMM_WORLD, the living end together all the same.
  // In an IMPI job nobody lives on.
  if (!Barrier(World()).ok() && ThisJob().impi == nullptr) survive::AwaitTheLiving(World());
  --g_users;
  WEFT_MPI_TRY(Stop());
  DropWorld();
  g_library_state = LibraryState::kAfter;
  return {};
}

}  // namespace weft::mpi
