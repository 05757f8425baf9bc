#include "mpi_hybrid/host/this_host.h"

#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "base/log.h"
#include "base/settings.h"
#include "mpi_hybrid/host/gathering.h"

namespace weft::mpi::host {
namespace {

std::unique_ptr<Gathering> g_gathering;
Segment* g_segment = nullptr;  // lives as long as the process: requests that nobody completed may point into it

// A user who names a wire gets it on each way.
bool NamesAnotherWire() {
  const char* text = secure_getenv("WEFT_MPI_LLP");
  return text != nullptr && *text != '\0' && std::string_view(text) != "tcp";
}

}  // namespace

void BeginHost(Job& job) {
  if (ProcessSettings().SharesMemory() == SameHost::kOff || NamesAnotherWire()) return;
  g_gathering = std::make_unique<Gathering>(job, job.ranks_here);
  g_gathering->Begin();
}

void JoinHost() {
  if (g_gathering == nullptr) return;
  std::string why;
  g_segment = g_gathering->Join(&why).release();
  if (g_segment == nullptr && TraceEnabled()) Trace("mpi: no memory shared with the ranks on this host: " + why);
}

void SettleHost() {
  if (g_segment != nullptr) g_segment->Settle();
  g_gathering.reset();
}

Segment* ThisHost() { return g_segment; }

const Bell& OwnBell() {
  if (g_segment != nullptr) return g_segment->bell();
  static const Bell* const own = [] {
    auto* const bell = new Bell;
    (void)bell->Open();
    return bell;
  }();
  return *own;
}

}  // namespace weft::mpi::host
