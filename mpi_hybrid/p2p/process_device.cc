#include "mpi_hybrid/p2p/process_device.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file_limit.h"
#include "base/log.h"
#include "base/processors.h"
#include "base/settings.h"
#include "mpi_hybrid/core/impi_world.h"
#include "mpi_hybrid/core/job.h"
#include "mpi_hybrid/host/processors.h"
#include "mpi_hybrid/host/this_host.h"
#include "mpi_hybrid/p2p/foreign.h"
#include "mpi_hybrid/p2p/host/host_transport.h"
#include "mpi_hybrid/p2p/impi/impi_transport.h"
#include "mpi_hybrid/p2p/message.h"
#include "mpi_hybrid/p2p/progress.h"
#include "mpi_hybrid/p2p/sctp/sctp_transport.h"
#include "mpi_hybrid/p2p/tcp/tcp_transport.h"
#include "transport/sctp/environment.h"
#include "transport/sctp/process_sctp.h"
#include "transport/tcp_network.h"

namespace weft::mpi {
namespace {

constexpr int kSpinUs = 1000;
constexpr std::chrono::seconds kNoticed{3};  // in which a connection ends whose other end is gone
// For each processor, of which one that waits hands it on, which costs about a microsecond for each; and where the kernel shares processors between
// sessions: of several it hands nothing on, and one in which many do was seen to keep all others from the processors.
constexpr int kFewRanks = 64, kFewUnderAutogroup = 8;
// Pieces of so many bytes are copied by the kernel, from one process to the other; shorter ones go through the cache, where two copies by two
// processors take a third of that time.
constexpr size_t kInPlaceFrom = 1024 * 1024;

Device* g_device = nullptr;
std::vector<ProcessId> g_found_gone;  // of which ClassOfGone said so, and no connection yet
bool g_has_wire = false;
std::chrono::microseconds g_spin{0};
bool g_few_ranks = true;
host::Processors* g_processors = nullptr;  // null: ranks share them anyway
ImpiTransport* g_impi = nullptr;          // owned by the device; null: the job has no other client

// A setting in bytes or microseconds: digits, with k or m (1024, 1024 * 1024) behind. Anything else is told and ignored.
std::optional<long> NumberFromEnvironment(const char* name) {
  const char* text = secure_getenv(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  char* end = nullptr;
  long value = std::strtol(text, &end, 10);
  if (end != text && (*end == 'k' || *end == 'K')) value *= 1024, ++end;
  if (end != text && (*end == 'm' || *end == 'M')) value *= 1024 * 1024, ++end;
  if (end != text && *end == '\0' && value >= 0) return value;
  LogWarning(std::string(name) + "='" + text + "' is not a number; the default is used");
  return std::nullopt;
}

EngineLimits LimitsFromEnvironment() {
  EngineLimits limits;
  if (auto value = NumberFromEnvironment("WEFT_MPI_EAGER")) limits.eager = static_cast<size_t>(*value);
  if (auto value = NumberFromEnvironment("WEFT_MPI_WINDOW")) limits.window = static_cast<size_t>(*value);
  return limits;
}

// Ranks of the host that may run where this one may, itself among them. Those that did not join are taken for such; so are all until it is known
// who did.
int RanksOnOurProcessors(const Job& job) {
  const host::Segment* const segment = host::ThisHost();
  return segment == nullptr ? job.ranks_on_host : std::max(1, job.ranks_on_host - segment->Elsewhere());
}

// Whether the kernel shares processors between sessions, and hands one on (sched_yield(2)) to nobody of another: sched(7), "The autogroup feature".
bool SharesBetweenSessions() {
  std::ifstream file("/proc/sys/kernel/sched_autogroup_enabled");
  int enabled = 0;
  return file >> enabled && enabled != 0;
}

// `ranks`: of this job, which share the processors with this one.
void ChooseSpin(int ranks) {
  if (const auto& world = ThisJob().impi; world != nullptr) ranks += world->OthersOnMachine();
  static const auto value = NumberFromEnvironment("WEFT_MPI_SPIN_US");
  g_spin = std::chrono::microseconds(value ? *value : ranks <= ProcessorCount() ? kSpinUs : 0);
  g_device->presence().set_has_processor(ranks <= ProcessorCount());
  g_few_ranks = ranks <= ProcessorCount() * (SharesBetweenSessions() ? kFewUnderAutogroup : kFewRanks);
}

Error AddSctp(Job& job) {
  if (!ProcessSettingProblems().empty()) return Error(MPI_ERR_OTHER, ProcessSettingProblems().front());
  const SctpSettings& user = ProcessSettings().sctp;
  const auto sctp = transport::sctp::ProcessSctp(transport::ProcessNetwork(), transport::sctp::UserCarriage(user));
  if (!sctp.ok()) return Error(MPI_ERR_OTHER, "no SCTP (WEFT_MPI_LLP=sctp): " + DescribeShortage(sctp.error()));
  transport::sctp::Settings settings = transport::sctp::WithUserSettings({}, user);
  for (const std::string& text : user.addresses) {
    if (const auto address = transport::SocketAddress::Parse(text, 0)) settings.local_addresses.push_back(*address);
  }
  g_device->Add(std::make_unique<SctpTransport>(job, *g_process_engine, g_device->loop(), transport::ProcessNetwork(), **sctp,
                                                settings));
  return {};
}

// The wire that WEFT_MPI_LLP names. `for_others`: for processes of other jobs, too.
Error AddWire(Job& job, bool for_others) {
  const char* text = secure_getenv("WEFT_MPI_LLP");
  const std::string_view wire = text == nullptr || *text == '\0' ? "tcp" : text;
  if (wire == "sctp") {
    if (job.size == 1 && !for_others) return {};  // nobody to talk to
    g_has_wire = true;
    return AddSctp(job);
  }
  if (wire != "tcp") return Error(MPI_ERR_OTHER, "WEFT_MPI_LLP='" + std::string(wire) + "' is neither tcp nor sctp");
  g_has_wire = true;
  // Ranks that spin empty a short send buffer at once; those that share a processor would only take turns more often.
  g_device->Add(std::make_unique<TcpTransport>(job, *g_process_engine, g_device->loop(), /*short_buffers=*/g_spin.count() != 0,
                                               /*beside_another=*/host::ThisHost() != nullptr));
  return {};
}

// What the launcher says of deaths.
class DeathNews final : public ProgressStage {
 public:
  bool Poll() override {
    Job& job = ThisJob();
    if (!any() || ProcessDevice() == nullptr) return false;
    for (const ToldDeaths::Death& death : job.told_deaths.Take()) {
      if (death.job) {
        job.processes.Died({*death.job, death.rank});
      } else if (job.processes.IsOfWorld(death.rank)) {
        g_device->OnToldDead(death.rank);
      }
    }
    for (const ProcessId process : job.processes.TakeDied()) g_device->OnToldDead(process);
    return true;
  }
  bool Arm() override { return !any(); }
  int fd() const override { return -1; }

 private:
  static bool any() { return ThisJob().told_deaths.any() || ThisJob().processes.has_died(); }
};

DeathNews* g_death_news = nullptr;

void ListenForDeaths() {
  if (!ThisJob().tells_deaths) return;
  Progress::AddStage(g_death_news = new DeathNews);
  ThisJob().told_deaths.Listen(&Progress::WakeFromOutside);
}

void StopListeningForDeaths() {
  ThisJob().told_deaths.Listen(nullptr);
  if (g_death_news == nullptr) return;
  Progress::RemoveStage(g_death_news);
  delete std::exchange(g_death_news, nullptr);
}

}  // namespace

std::chrono::microseconds SpinTime() { return g_spin; }

bool HandsProcessorOn() {
  const host::Segment* const segment = host::ThisHost();
  return g_few_ranks && segment != nullptr && segment->has_company();
}

bool SharesProcessor() { return g_processors != nullptr && g_processors->Shares(); }

Error StartDevice() {
  Job& job = ThisJob();
  g_process_engine = new Engine(job.rank, LimitsFromEnvironment());
  g_process_engine->set_describe([&job](ProcessId process) { return job.processes.Describe(process); });
  g_process_engine->set_on_gone([&job](ProcessId process) { job.processes.Left(process); });
  g_process_device = g_device = new Device(*g_process_engine);
  ChooseSpin(job.ranks_on_host);
  if (host::Segment* segment = host::ThisHost()) {
    const size_t in_place_from = ProcessSettings().SharesMemory() == SameHost::kAuto ? kInPlaceFrom : host::kNeverInPlace;
    if (job.ranks_on_host <= ProcessorCount()) g_processors = new host::Processors(*segment);
    g_device->Add(std::make_unique<host::HostTransport>(*segment, *g_process_engine, g_device->loop(), in_place_from));
  }
  if (job.impi != nullptr) {
    auto made = std::make_unique<ImpiTransport>(*job.impi, *g_process_engine, g_device->loop(),
                                                ImpiTransport::Setup{.agent = std::move(job.impi_agent), .hosts = std::move(job.impi_hosts)});
    g_impi = made.get();
    g_device->Add(std::move(made));
  }
  WEFT_MPI_TRY(AddWire(job, /*for_others=*/false));
  WEFT_MPI_TRY(g_device->Start());
  ListenForDeaths();
  return {};
}

void SettleDevice() {
  const Job& job = ThisJob();
  if (job.ranks_on_host > ProcessorCount()) ChooseSpin(RanksOnOurProcessors(job));
  if (!TraceEnabled()) return;
  Trace("mpi: a wait polls for " + std::to_string(g_spin.count()) + " us before it sleeps" + (HandsProcessorOn() ? ", and yields the processor meanwhile" : ""));
}

Error ListenForOthers() {
  if (!g_has_wire) WEFT_MPI_TRY(AddWire(ThisJob(), /*for_others=*/true));
  return g_device->Listen();
}

void PartFrom(ProcessId process) {
  if (Device* device = ProcessDevice()) device->Part(process);
}

bool HasParted(ProcessId process) { return ProcessDevice() == nullptr || g_device->HasParted(process); }

void StopDevice() {
  if (ProcessDevice() == nullptr) return;
  StopListeningForDeaths();
  g_device->Stop();
  g_impi = nullptr;
  g_process_device = nullptr;  // it stays: requests that the program never completed may point to it
}

std::vector<ProcessId> GoneOf(const Group& group) {
  Progress::Poll();
  const host::Segment* const segment = host::ThisHost();
  for (const ProcessId process : group.members) {
    const std::optional<int> place = segment == nullptr ? std::nullopt : segment->PlaceOf(process);
    const bool has_ended = place && !segment->IsPresent(*place);
    if (std::erase(g_found_gone, process) == 0 && !has_ended) continue;
    // Who asks the kernel, as collectives on one host do, or whose window failed, may know it before the connection does.
    ProcessDevice()->ConnectTo(process);
    const Link& link = g_process_engine->LinkTo(process);
    Progress::WaitUntil([&] { return link.is_gone(); }, std::chrono::steady_clock::now() + kNoticed);
  }
  return g_process_engine->GoneOf(group);
}

int ClassOfGone(ProcessId process) {
  const Link* const link = g_process_engine == nullptr ? nullptr : g_process_engine->FindLink(process);
  if (link != nullptr && link->state() == Link::State::kLeft) return MPI_ERR_PROC_ABORTED;
  const bool is_known = link != nullptr && link->is_gone();
  if (!is_known && std::find(g_found_gone.begin(), g_found_gone.end(), process) == g_found_gone.end()) g_found_gone.push_back(process);
  return MPIX_ERR_PROC_FAILED;
}

Error OpenForeignContext(Comm& comm, uint64_t on_wire) {
  const std::optional<ContextId> context = on_wire == 0 ? 0 : ImpiContextTable::For(on_wire);
  if (!context) {
    return Error(MPI_ERR_OTHER, "the processes of the communicator agreed on the IMPI context " + std::to_string(on_wire) +
                                    ", which is higher than this implementation can use; one of them has seen too high a context");
  }
  comm.send_context = comm.receive_context = *context;
  g_impi->AddContext(*context, on_wire, comm.remote);
  return {};
}

void CloseForeignContext(ContextId context) {
  if (g_impi != nullptr) g_impi->RemoveContext(context);
}

bool IsDead(ProcessId process) { return g_process_engine != nullptr && g_process_engine->IsDead(process); }

}  // namespace weft::mpi
