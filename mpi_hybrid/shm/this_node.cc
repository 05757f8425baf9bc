#include "mpi_hybrid/shm/this_node.h"

#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "base/log.h"
#include "base/settings.h"
#include "mpi_hybrid/shm/gathering.h"

namespace weft::mpi::shm {
namespace {

std::unique_ptr<Gathering> g_gathering;
NodeSegment* g_node = nullptr;  // lives as long as the process: requests that nobody completed may point into it

// A user who names a wire gets it on each way.
bool NamesAnotherWire() {
  const char* text = secure_getenv("WEFT_MPI_LLP");
  return text != nullptr && *text != '\0' && std::string_view(text) != "tcp";
}

}  // namespace

void BeginNode(Job& job) {
  if (ProcessSettings().SharesMemory() == SameHost::kOff || NamesAnotherWire()) return;
  g_gathering = std::make_unique<Gathering>(job, job.ranks_here);
  g_gathering->Begin();
}

void JoinNode() {
  if (g_gathering == nullptr) return;
  std::string why;
  g_node = g_gathering->Join(&why).release();
  if (g_node == nullptr && TraceEnabled()) Trace("mpi: no memory shared with the ranks on this host: " + why);
}

void SettleNode() {
  if (g_node != nullptr) g_node->Settle();
  g_gathering.reset();
}

NodeSegment* ThisNode() { return g_node; }

}  // namespace weft::mpi::shm
