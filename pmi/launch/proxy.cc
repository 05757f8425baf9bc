#include "pmi/launch/proxy.h"

#include <signal.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/file_limit.h"
#include "base/job_secret.h"
#include "pmi/launch/binding.h"
#include "pmi/launch/event_poller.h"
#include "pmi/launch/fence_collector.h"
#include "pmi/launch/proxy_tree.h"
#include "pmi/launch/remote_start.h"
#include "pmi/server/server.h"
#include "pmi/launch/spawn.h"

namespace weft::pmi {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr size_t kMostUnsent = 1 << 20;     // bytes for mpiexec, beyond which the ranks' output waits in their pipes
constexpr size_t kMostAfterExit = 2 << 20;  // bytes read from a pipe whose rank ended; a pipe holds at most 1 MiB
constexpr milliseconds kGrace{2000};        // from SIGTERM to SIGKILL when nobody says otherwise
constexpr milliseconds kOrphanLook{10};     // between two looks for what ranks left behind
constexpr milliseconds kFarewell{5000};     // for mpiexec to take the last bytes, and for proxies below to end

class Proxy;

// A rank on this host.
struct LocalRank {
  int number = 0;
  Spawned files;
  bool running = true;
  bool output_waits = false;  // in the rank's pipes: they are not watched
  Outbox to_pmi;
  Outbox to_input;
  bool input_ends = false;  // behind to_input
};

// The ranks of one job on this host. From kStart until nothing of it is left.
class LocalJob final : public Server::Owner {
 public:
  LocalJob(int number, Proxy* proxy) : number_(number), proxy_(proxy) {}

  void Start(StartOrder order);
  int number() const { return number_; }
  bool running() const { return running_ != 0; }
  size_t ranks_running() const { return running_; }
  std::vector<pid_t> Leaders() const;
  const Server* server() const { return server_.get(); }

  void WatchOutputs();
  void Ended(pid_t pid, int status);
  void CheckWhetherStuck();
  void TakeAnswer(const Frame& frame);
  void EndFence(const KeyValues& put);
  void GiveInput(const std::string& bytes);
  void SignalAll(int number);
  void End(milliseconds grace);
  std::optional<Clock::time_point> kill_at() const { return kill_at_; }
  // SIGKILL for all, once it is time.
  void KillIfDue();
  // Its ranks have ended: what they started and left ends with the job. Whether nothing is left.
  bool ClearOrphans();

  // Server::Owner
  void Send(int rank, const std::string& bytes) override;
  void OnAbort(int rank, int exit_code, const std::string& message) override;
  void OnMisuse(int rank, const std::string& what) override;
  void OnFence(KeyValues put) override;
  void OnQuestion(int rank, const std::string& ticket, const Request& request) override;
  const Server::Space* SpaceOf(const std::string& job_id) override;
  void Signal(int rank, const std::string& name) override;

 private:
  std::string MakeBinder(const StartOrder& order, std::unique_ptr<Binder>* binder);
  bool StartRank(const StartOrder& order, size_t local_rank);
  bool WatchRank(LocalRank& rank);
  void WatchOutput(LocalRank& rank);
  void CloseFile(int* fd);
  void Forward(LocalRank& rank, int* fd, FrameType type, size_t most = 65536);
  void ReadPmi(LocalRank& rank);
  void WritePmi(LocalRank& rank);
  void WriteInput(LocalRank& rank);
  void CloseInput(LocalRank& rank);
  void Tell(FrameType type, int number = 0, std::string payload = {});
  LocalRank* Find(int number);
  std::vector<pid_t> Remaining() const;

  const int number_;
  Proxy* const proxy_;
  std::unique_ptr<Server> server_;
  std::vector<std::unique_ptr<LocalRank>> ranks_;
  bool fence_complete_ = false;  // on the only host: EndFence() is due
  bool stuck_ = false;
  bool whole_job_ = false;  // all ranks are on this host
  size_t running_ = 0;
  std::optional<Clock::time_point> kill_at_;  // after End()
  bool orphans_told_ = false;                 // what the ranks left behind has been sent SIGTERM
};

class Proxy {
 public:
  Proxy(std::unique_ptr<Connection> connection, const JobSecret& secret) : connection_(std::move(connection)), secret_(secret) {}
  void Run();

  // For its jobs.
  EventPoller& poller() { return poller_; }
  bool has_room() const { return room_; }  // for more output on the way to mpiexec
  void Tell(const Frame& frame) {
    if (connected_) connection_->Send(frame);
  }
  // Ranks of so many hosts, this one or some below it, are in the job's barrier.
  void EnterFence(int job, int hosts, KeyValues put);
  // A rank of the job has ended, here or below.
  void OnRankEnded(int job);
  // All processes that this one started but those of proxies below it.
  std::vector<pid_t> Descendants() const;
  std::string OwnAddressTowardsMpiexec() const { return OwnAddress(connection_->fd()); }
  JobSecret SecretOf(int job) const { return SecretOfJob(secret_, job); }
  const Server::Space* SpaceOf(const std::string& job_id) const;
  // Whether ranks of another job run here.
  bool RunsOthersThan(const LocalJob* job) const;
  size_t RanksRunning() const;  // of all jobs

 private:
  void TakeSignals();
  void WatchOwn();
  void MakeRoom();
  int MillisecondsToSleep() const;
  void OnConnection(uint32_t events);
  void OnSignal();
  void Handle(const Frame& frame);
  void Start(const Frame& frame);
  void ReapChildren();
  void EndAll(milliseconds grace);
  void RemoveFinishedJobs();
  LocalJob* Find(int number);

  // Of the proxies below.
  void Grow(const Frame& frame);
  void PassDown(const Frame& frame);
  void WatchBranches();
  void OnBranch(ProxyTree::Branch& branch, uint32_t events);
  void PassUp(ProxyTree::Branch& branch, Frame frame);
  void LoseBranch(ProxyTree::Branch& branch);
  void CloseBranch(ProxyTree::Branch& branch);
  void LeaveFence(int job);
  void TellFence(int job, std::optional<FenceCollector::Entered> entered);
  void FinishBranches();

  std::unique_ptr<Connection> connection_;
  const JobSecret secret_;  // which orders do not say
  ProxyTree tree_;
  std::map<int, FenceCollector> fences_;  // by job
  EventPoller poller_;
  bool room_ = true;
  bool connected_ = true;
  std::map<int, std::unique_ptr<LocalJob>> jobs_;
  int signals_ = -1;
};

void Proxy::Run() {
  TakeSignals();
  WatchOwn();
  while (connected_ || !jobs_.empty()) {
    poller_.Change(connected_ ? connection_->fd() : -1, EPOLLIN | (connection_->wants_to_write() ? EPOLLOUT : 0u));
    MakeRoom();
    WatchBranches();
    poller_.Wait(MillisecondsToSleep());
    ReapChildren();
    for (const auto& [number, job] : jobs_) {
      job->CheckWhetherStuck();
      job->KillIfDue();
    }
    RemoveFinishedJobs();
  }
  FinishBranches();
  // What left its session, and so belongs to no job.
  for (const pid_t pid : DescendantsOf(getpid())) kill(pid, SIGKILL);
  close(signals_);
}

void Proxy::RemoveFinishedJobs() {
  for (auto entry = jobs_.begin(); entry != jobs_.end();) {
    LocalJob& job = *entry->second;
    if (job.running() || !job.ClearOrphans()) {
      ++entry;
      continue;
    }
    const int number = job.number();
    entry = jobs_.erase(entry);
    LeaveFence(number);
    Tell({FrameType::kDone, 0, {}, number});
  }
}

void Proxy::TakeSignals() {
  sigset_t taken;
  sigemptyset(&taken);
  for (const int number : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT}) {
    signal(number, SIG_DFL);
    sigaddset(&taken, number);
  }
  sigprocmask(SIG_SETMASK, &taken, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signals_ = signalfd(-1, &taken, SFD_NONBLOCK | SFD_CLOEXEC);
  // What a rank starts and leaves behind becomes our child, and so can be found.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  RaiseFileLimit();
}

// Without them there is no proxy; the ranks are not started yet.
void Proxy::WatchOwn() {
  if (signals_ < 0 || !poller_.Watch(signals_, EPOLLIN, [this](uint32_t) { OnSignal(); }) ||
      !poller_.Watch(connection_->fd(), EPOLLIN, [this](uint32_t events) { OnConnection(events); })) {
    Tell({FrameType::kNotStarted, 0, NumberAndText(1, "cannot watch over the ranks: " + DescribeShortage(errno))});
    connection_->Drain(static_cast<int>(kFarewell.count()));
    connected_ = false;
  }
}

bool LocalJob::WatchRank(LocalRank& rank) {
  const auto on_pmi = [this, &rank](uint32_t events) {
    if (events & EPOLLOUT) WritePmi(rank);
    if (events & ~static_cast<uint32_t>(EPOLLOUT)) ReadPmi(rank);
  };
  rank.output_waits = true;
  WatchOutput(rank);
  // Without anything to write, only the reader's end is looked for.
  return proxy_->poller().Watch(rank.files.pmi, EPOLLIN, on_pmi) &&
         proxy_->poller().Watch(rank.files.input, 0, [this, &rank](uint32_t) { WriteInput(rank); });
}

// Looks at the rank's output, or, while there is no room for it, not: its pipe would be ready all the time.
void LocalJob::WatchOutput(LocalRank& rank) {
  const bool room = proxy_->has_room();
  if (rank.output_waits != room) return;
  rank.output_waits = !room;
  const auto watch = [&](int* fd, FrameType type) {
    if (room) {
      proxy_->poller().Watch(*fd, EPOLLIN, [this, &rank, fd, type](uint32_t) { Forward(rank, fd, type); });
    } else {
      proxy_->poller().Forget(*fd);
    }
  };
  watch(&rank.files.output, FrameType::kOutput);
  watch(&rank.files.error_output, FrameType::kErrorOutput);
}

void LocalJob::WatchOutputs() {
  for (const auto& rank : ranks_) WatchOutput(*rank);
}

void Proxy::MakeRoom() {
  const bool room = connection_->unsent() < kMostUnsent;
  if (std::exchange(room_, room) == room) return;
  for (const auto& [number, job] : jobs_) job->WatchOutputs();
}

void LocalJob::CloseFile(int* fd) {
  if (*fd < 0) return;
  proxy_->poller().Forget(*fd);
  close(std::exchange(*fd, -1));
}

int Proxy::MillisecondsToSleep() const {
  long shortest = -1;
  for (const auto& [number, job] : jobs_) {
    if (!job->running()) return static_cast<int>(kOrphanLook.count());
    if (!job->kill_at()) continue;
    const long left = std::max<long>(std::chrono::ceil<milliseconds>(*job->kill_at() - Clock::now()).count(), 0);
    shortest = shortest < 0 ? left : std::min(shortest, left);
  }
  return static_cast<int>(shortest);
}

void Proxy::OnConnection(uint32_t events) {
  if ((events & EPOLLOUT) && !connection_->Write()) connected_ = false;
  if (connected_ && (events & ~static_cast<uint32_t>(EPOLLOUT)) && !connection_->Read()) connected_ = false;
  while (connected_) {
    const std::optional<Frame> frame = connection_->Next();
    if (!frame) break;
    Handle(*frame);
  }
  if (connection_->broken()) connected_ = false;
  if (connected_) return;
  poller_.Forget(connection_->fd());
  for (const auto& branch : tree_.branches()) CloseBranch(*branch);
  EndAll(kGrace);  // mpiexec is gone
}

void Proxy::OnSignal() {
  signalfd_siginfo info;
  while (read(signals_, &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo != SIGCHLD) EndAll(kGrace);
  }
}

LocalJob* Proxy::Find(int number) {
  const auto found = jobs_.find(number);
  return found == jobs_.end() ? nullptr : found->second.get();
}

// A job that is not here any more is one whose end mpiexec has not heard of yet.
void Proxy::Handle(const Frame& frame) {
  if (frame.host != Frame::kHere) PassDown(frame);
  if (frame.host >= 0) return;
  LocalJob* job = Find(frame.job);
  switch (frame.type) {
    case FrameType::kStart:
      return Start(frame);
    case FrameType::kGrow:
      return Grow(frame);
    case FrameType::kQuestion:
      if (job != nullptr) job->TakeAnswer(frame);
      return;
    case FrameType::kFenceEnd:
      if (const auto put = ParseValues(frame.payload)) {
        if (job != nullptr) job->EndFence(*put);
        return;
      }
      connected_ = false;
      return;
    case FrameType::kInput:
      if (job != nullptr) job->GiveInput(frame.payload);
      return;
    case FrameType::kSignal:
      for (const auto& [number, any] : jobs_) any->SignalAll(frame.number);
      return;
    case FrameType::kEnd:
      if (job != nullptr) job->End(milliseconds(frame.number));
      return;
    default:
      connected_ = false;  // not for a proxy
  }
}

void Proxy::Start(const Frame& frame) {
  std::optional<StartOrder> order = StartOrder::Parse(frame.payload);
  if (jobs_.contains(frame.job) || !order) {
    connected_ = false;
    return;
  }
  fences_[frame.job].AddHost();
  auto& job = jobs_[frame.job] = std::make_unique<LocalJob>(frame.job, this);
  job->Start(*std::move(order));
}

const Server::Space* Proxy::SpaceOf(const std::string& job_id) const {
  for (const auto& [number, job] : jobs_) {
    if (job->server() != nullptr && job->server()->name() == job_id) return &job->server()->space();
  }
  return nullptr;
}

bool Proxy::RunsOthersThan(const LocalJob* job) const {
  return std::any_of(jobs_.begin(), jobs_.end(), [&](const auto& entry) { return entry.second.get() != job && entry.second->running(); });
}

size_t Proxy::RanksRunning() const {
  size_t count = 0;
  for (const auto& [number, job] : jobs_) count += job->ranks_running();
  return count;
}

void Proxy::EndAll(milliseconds grace) {
  for (const auto& [number, job] : jobs_) job->End(grace);
}

void Proxy::Grow(const Frame& frame) {
  const auto order = GrowOrder::Parse(frame.payload);
  if (!order) {
    connected_ = false;
    return;
  }
  const size_t before = tree_.branches().size();
  const ProxyTree::Means means{order->remote_shell, order->interface, signals_, connection_->fd(), secret_};
  if (const auto error = tree_.Grow(*order, means)) return Tell({FrameType::kGrown, 0, NumberAndText(error->exit_code, error->message)});
  for (size_t i = before; i < tree_.branches().size(); ++i) {
    ProxyTree::Branch& branch = *tree_.branches()[i];
    if (!poller_.Watch(branch.link.connection->fd(), EPOLLIN, [this, &branch](uint32_t events) { OnBranch(branch, events); })) LoseBranch(branch);
  }
  Tell({FrameType::kGrown, 0, NumberAndText(0, "")});
}

// What mpiexec says to hosts below.
void Proxy::PassDown(const Frame& frame) {
  if (frame.host == Frame::kEverywhere) {
    for (const auto& branch : tree_.branches()) branch->Send(frame, Frame::kEverywhere);
    return;
  }
  ProxyTree::Branch* branch = tree_.To(frame.host);
  if (branch == nullptr || !branch->open) return;  // mpiexec has not heard of its end yet
  if (frame.type == FrameType::kStart) fences_[frame.job].AddHost();
  branch->Send(frame, frame.host);
}

// While mpiexec takes nothing, they wait with this proxy.
void Proxy::WatchBranches() {
  for (const auto& branch : tree_.branches()) {
    if (!branch->open) continue;
    const Connection& connection = *branch->link.connection;
    poller_.Change(connection.fd(), (room_ ? EPOLLIN : 0u) | (connection.wants_to_write() ? EPOLLOUT : 0u));
  }
}

void Proxy::OnBranch(ProxyTree::Branch& branch, uint32_t events) {
  Connection& connection = *branch.link.connection;
  bool alive = true;
  if (events & EPOLLOUT) alive = connection.Write();
  if (events & ~static_cast<uint32_t>(EPOLLOUT)) alive = connection.Read() && alive;
  while (branch.open) {
    std::optional<Frame> frame = connection.Next();
    if (!frame) break;
    PassUp(branch, *std::move(frame));
  }
  if (branch.open && (!alive || connection.broken())) LoseBranch(branch);
}

// What a host below says to mpiexec.
void Proxy::PassUp(ProxyTree::Branch& branch, Frame frame) {
  if (frame.host == Frame::kHere) frame.host = branch.own_host();
  if (!branch.leads_to(frame.host)) return LoseBranch(branch);
  switch (frame.type) {
    case FrameType::kFence:
      if (auto put = ParseValues(frame.payload); put && frame.number > 0) return EnterFence(frame.job, frame.number, *std::move(put));
      return LoseBranch(branch);
    case FrameType::kExited:
      OnRankEnded(frame.job);
      break;
    case FrameType::kDone:
      LeaveFence(frame.job);
      break;
    case FrameType::kLost:
      for (auto& [job, fence] : fences_) TellFence(job, fence.PassOn());
      break;
    default:
      break;
  }
  Tell(frame);
}

void Proxy::LoseBranch(ProxyTree::Branch& branch) {
  CloseBranch(branch);
  for (auto& [job, fence] : fences_) TellFence(job, fence.PassOn());
  for (const int32_t host : branch.hosts) Tell({FrameType::kLost, 0, {}, 0, host});
}

// Its proxies end their ranks, and themselves.
void Proxy::CloseBranch(ProxyTree::Branch& branch) {
  if (!std::exchange(branch.open, false)) return;
  poller_.Forget(branch.link.connection->fd());
  shutdown(branch.link.connection->fd(), SHUT_RDWR);  // it may be in use: the descriptor stays
}

void Proxy::EnterFence(int job, int hosts, KeyValues put) { TellFence(job, fences_[job].Enter(hosts, std::move(put))); }

void Proxy::OnRankEnded(int job) { TellFence(job, fences_[job].PassOn()); }

void Proxy::LeaveFence(int job) {
  const auto found = fences_.find(job);
  if (found == fences_.end()) return;
  TellFence(job, found->second.RemoveHost());
  if (found->second.hosts() <= 0) fences_.erase(found);
}

void Proxy::TellFence(int job, std::optional<FenceCollector::Entered> entered) {
  if (entered) Tell({FrameType::kFence, entered->hosts, SerializeValues(entered->put), job});
}

std::vector<pid_t> Proxy::Descendants() const {
  std::vector<pid_t> all = DescendantsOf(getpid());
  for (const auto& branch : tree_.branches()) {
    if (branch->link.pid <= 0) continue;
    const std::vector<pid_t> below = DescendantsOf(branch->link.pid);
    std::erase_if(all, [&](pid_t pid) { return pid == branch->link.pid || std::find(below.begin(), below.end(), pid) != below.end(); });
  }
  return all;
}

// The proxies below, and what started them, end by themselves when their connections are closed.
void Proxy::FinishBranches() {
  for (const auto& branch : tree_.branches()) CloseBranch(*branch);
  const auto deadline = Clock::now() + kFarewell;
  const auto is_there = [](const auto& branch) { return branch->link.pid > 0 && kill(branch->link.pid, 0) == 0; };
  while (Clock::now() < deadline) {
    ReapChildren();
    if (std::none_of(tree_.branches().begin(), tree_.branches().end(), is_there)) return;
    poll(nullptr, 0, static_cast<int>(kOrphanLook.count()));
  }
}

LocalRank* LocalJob::Find(int number) {
  for (const auto& rank : ranks_) {
    if (rank->number == number) return rank.get();
  }
  return nullptr;
}

void LocalJob::Tell(FrameType type, int number, std::string payload) { proxy_->Tell({type, number, std::move(payload), number_}); }

std::vector<pid_t> LocalJob::Leaders() const {
  std::vector<pid_t> pids;
  for (const auto& rank : ranks_) pids.push_back(rank->files.pid);
  return pids;
}

void LocalJob::GiveInput(const std::string& bytes) {
  LocalRank* rank = Find(0);
  if (rank == nullptr || rank->files.input < 0) return;
  rank->to_input.Add(bytes);
  rank->input_ends = bytes.empty();
  WriteInput(*rank);
}

void LocalJob::Start(StartOrder order) {
  order.values.emplace_back("weft_secret", proxy_->SecretOf(number_).ToHex());
  if (order.host_address.empty()) order.host_address = proxy_->OwnAddressTowardsMpiexec();
  Server::Setup setup{order.kvs_name, order.job_size, order.universe_size, {}, order.values, order.spawner};
  for (const StartOrder::Rank& rank : order.ranks) setup.application_of[rank.rank] = rank.program;
  whole_job_ = order.ranks.size() == static_cast<size_t>(order.job_size);
  server_ = std::make_unique<Server>(std::move(setup), this);
  std::unique_ptr<Binder> binder;  // what is forked here is bound as this thread is, which gets its own CPUs back at the end
  if (const std::string problem = MakeBinder(order, &binder); !problem.empty()) {
    Tell(FrameType::kNotStarted, order.ranks.empty() ? 0 : order.ranks[0].rank, NumberAndText(1, problem));
    return End(milliseconds(0));
  }
  const size_t others = proxy_->RanksRunning();  // have the first places
  for (size_t i = 0; i < order.ranks.size(); ++i) {
    if (const std::string problem = binder == nullptr ? "" : binder->Bind(others + i); !problem.empty()) {
      Tell(FrameType::kNote, 0, "the ranks are not bound: " + problem);
      binder.reset();
    }
    if (!StartRank(order, i)) return End(milliseconds(0));
  }
  Tell(FrameType::kStarted);
}

// None where nobody asked for one, or where this host cannot bind processes, which is worth a note. What is wrong with what was asked for, or
// empty.
std::string LocalJob::MakeBinder(const StartOrder& order, std::unique_ptr<Binder>* binder) {
  const auto request = ParseBinding(order.bind_to, order.map_by);
  if (!request) return request.error().message;
  if (!request.value()) return {};
  auto made = Binder::OfThisHost();
  if (!made) {
    Tell(FrameType::kNote, 0, "the ranks are not bound: " + made.error().message);
    return {};
  }
  *binder = std::move(made).value();
  return (*binder)->Choose(*request.value());
}

// "SIGUSR1" or "USR1". 0: there is none of that name.
int SignalOf(const std::string& name) {
  const std::string_view abbreviation = std::string_view(name).substr(name.starts_with("SIG") ? 3 : 0);
  for (int number = 1; number < SIGRTMIN; ++number) {
    const char* known = sigabbrev_np(number);
    if (known != nullptr && abbreviation == known) return number;
  }
  return 0;
}

bool StartsWithName(const std::string& entry, const std::string& name) { return entry.starts_with(name + "="); }

bool LocalJob::StartRank(const StartOrder& order, size_t local_rank) {
  const StartOrder::Rank& ordered = order.ranks[local_rank];
  const StartOrder::Program& program = order.programs[static_cast<size_t>(ordered.program)];
  const std::string number = std::to_string(ordered.rank);
  SpawnRequest request{program.arguments, program.environment, program.directory, program.search_path, number_ == 0 && ordered.rank == 0};
  for (const std::string& entry :
       {"PMI_RANK=" + number, "PMI_ID=" + number, "PMI_SIZE=" + std::to_string(order.job_size),
        "MPI_LOCALRANKID=" + std::to_string(local_rank), "MPI_LOCALNRANKS=" + std::to_string(order.ranks.size())}) {
    request.environment.push_back(entry);
  }
  if (!order.spawner.empty()) request.environment.push_back("PMI_SPAWNED=1");
  const auto has = [&](const char* name) {
    return std::any_of(request.environment.begin(), request.environment.end(),
                       [&](const std::string& entry) { return StartsWithName(entry, name); });
  };
  if (!order.host_address.empty() && !has("WEFT_MPI_HOST")) request.environment.push_back("WEFT_MPI_HOST=" + order.host_address);

  auto spawned = Spawn(request);
  if (!spawned) {
    const LaunchError& error = spawned.error();
    Tell(FrameType::kNotStarted, ordered.rank, NumberAndText(error.exit_code, error.message));
    return false;
  }
  auto rank = std::make_unique<LocalRank>();
  rank->number = ordered.rank;
  rank->files = *spawned;
  ranks_.push_back(std::move(rank));
  ++running_;
  if (WatchRank(*ranks_.back())) return true;
  Tell(FrameType::kNotStarted, ordered.rank, NumberAndText(1, "cannot watch over a rank: " + DescribeShortage(errno)));
  return false;
}

void Proxy::ReapChildren() {
  int status = 0;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    for (const auto& [number, job] : jobs_) job->Ended(pid, status);
  }
}

void LocalJob::Ended(pid_t pid, int status) {
  const auto found = std::find_if(ranks_.begin(), ranks_.end(), [&](const auto& rank) { return rank->running && rank->files.pid == pid; });
  if (found == ranks_.end()) return;
  LocalRank& rank = **found;
  rank.running = false;
  --running_;
  // What it said last comes before the news of its end. Processes that it left behind may still hold the other ends.
  ReadPmi(rank);
  Forward(rank, &rank.files.output, FrameType::kOutput, kMostAfterExit);
  Forward(rank, &rank.files.error_output, FrameType::kErrorOutput, kMostAfterExit);
  CloseInput(rank);
  proxy_->OnRankEnded(number_);
  Tell(FrameType::kExited, rank.number, ExitReport{status, server_->state(rank.number)}.Serialize());
}

void LocalJob::ReadPmi(LocalRank& rank) {
  char block[65536];
  while (rank.files.pmi >= 0) {
    const long count = ReadSome(rank.files.pmi, block, sizeof(block));
    if (count == -EAGAIN) break;
    if (count <= 0) return CloseFile(&rank.files.pmi);
    server_->Receive(rank.number, {block, static_cast<size_t>(count)});
  }
  if (fence_complete_) EndFence({});
}

void LocalJob::EndFence(const KeyValues& put) {
  fence_complete_ = false;
  server_->EndFence(put);
}

// A rank that is gone never enters the barrier that others are in.
void LocalJob::CheckWhetherStuck() {
  if (server_ == nullptr || server_->waiting() == 0 || running_ == ranks_.size() || stuck_) return;
  for (const auto& rank : ranks_) {
    if (rank->running) continue;
    stuck_ = true;
    return Tell(FrameType::kStuck, rank->number);
  }
}

void LocalJob::Send(int number, const std::string& bytes) {
  LocalRank* rank = Find(number);
  if (rank == nullptr || rank->files.pmi < 0) return;
  rank->to_pmi.Add(bytes);
  WritePmi(*rank);
}

void LocalJob::OnAbort(int rank, int exit_code, const std::string& message) {
  Tell(FrameType::kAbort, rank, NumberAndText(exit_code, message));
}

void LocalJob::OnMisuse(int rank, const std::string& what) { Tell(FrameType::kMisuse, rank, what); }

const Server::Space* LocalJob::SpaceOf(const std::string& job_id) { return proxy_->SpaceOf(job_id); }

void LocalJob::OnFence(KeyValues put) {
  if (whole_job_) {
    fence_complete_ = true;  // the server may not be re-entered from here
  } else {
    proxy_->EnterFence(number_, 1, std::move(put));
  }
}

void LocalJob::OnQuestion(int rank, const std::string& ticket, const Request& request) {
  Tell(FrameType::kQuestion, rank, Dialect::Counted(Dialect::Side::kRank)->Write({request, ticket}));
}

void LocalJob::TakeAnswer(const Frame& frame) {
  const auto dialect = Dialect::Counted(Dialect::Side::kRank);
  dialect->Append(frame.payload);
  const auto answered = dialect->NextAnswer();
  if (answered && server_ != nullptr) server_->TakeAnswer(frame.number, answered->thread, answered->answer);
}

void LocalJob::Signal(int number, const std::string& name) {
  const LocalRank* rank = Find(number);
  const int signal = SignalOf(name);
  if (rank != nullptr && rank->running && signal > 0) kill(rank->files.pid, signal);
}

// Sends on what the descriptor has, `most` bytes or a little more.
void LocalJob::Forward(LocalRank& rank, int* fd, FrameType type, size_t most) {
  char block[65536];
  for (size_t done = 0; *fd >= 0 && done < most;) {
    const long count = ReadSome(*fd, block, sizeof(block));
    if (count == -EAGAIN) return;
    if (count <= 0) return CloseFile(fd);
    Tell(type, rank.number, std::string(block, static_cast<size_t>(count)));
    done += static_cast<size_t>(count);
  }
}

void LocalJob::WritePmi(LocalRank& rank) {
  if (rank.files.pmi < 0) return;
  if (rank.to_pmi.WriteTo(rank.files.pmi) != 0) return CloseFile(&rank.files.pmi);
  proxy_->poller().Change(rank.files.pmi, EPOLLIN | (rank.to_pmi.empty() ? 0u : EPOLLOUT));
}

void LocalJob::WriteInput(LocalRank& rank) {
  if (rank.files.input < 0) return;
  const size_t before = rank.to_input.size();
  const bool open = rank.to_input.WriteTo(rank.files.input) == 0;
  const size_t taken = before - rank.to_input.size();
  if (taken != 0) Tell(FrameType::kInputTaken, static_cast<int32_t>(taken));
  if (rank.to_input.empty() && rank.input_ends) return CloseFile(&rank.files.input);
  pollfd entry{rank.files.input, 0, 0};
  if (!open || (poll(&entry, 1, 0) > 0 && (entry.revents & POLLERR))) return CloseInput(rank);
  proxy_->poller().Change(rank.files.input, rank.to_input.empty() ? 0u : EPOLLOUT);
}

// Nobody reads it any more.
void LocalJob::CloseInput(LocalRank& rank) {
  if (rank.files.input < 0) return;
  CloseFile(&rank.files.input);
  rank.to_input.Clear();
  Tell(FrameType::kInputClosed, rank.number);
}

void LocalJob::SignalAll(int number) {
  // The kernel drops SIGTSTP where no shell could continue the process.
  if (number == SIGTSTP) number = SIGSTOP;
  for (const auto& rank : ranks_) {
    if (rank->running) kill(-rank->files.pid, number);
  }
}

void LocalJob::End(milliseconds grace) {
  const auto deadline = Clock::now() + grace;
  if (kill_at_ && *kill_at_ <= deadline) return;
  if (!kill_at_) {
    if (server_ != nullptr) server_->Announce("abort");
    SignalAll(SIGTERM);
  }
  SignalAll(SIGCONT);  // a stopped process cannot end itself
  kill_at_ = deadline;
}

// What is left of the job: of a job that has the host for itself everything, else what stayed in its ranks' sessions.
std::vector<pid_t> LocalJob::Remaining() const {
  std::vector<pid_t> all = proxy_->Descendants();
  return proxy_->RunsOthersThan(this) ? OfSessions(std::move(all), Leaders()) : all;
}

void LocalJob::KillIfDue() {
  if (!kill_at_ || Clock::now() < *kill_at_) return;
  SignalAll(SIGKILL);
  for (const pid_t pid : Remaining()) kill(pid, SIGKILL);
  kill_at_ = Clock::now() + milliseconds(100);  // again, for what was started meanwhile
}

bool LocalJob::ClearOrphans() {
  const std::vector<pid_t> orphans = Remaining();
  if (orphans.empty()) {
    for (const auto& rank : ranks_) {
      Forward(*rank, &rank->files.output, FrameType::kOutput, kMostAfterExit);
      Forward(*rank, &rank->files.error_output, FrameType::kErrorOutput, kMostAfterExit);
      for (int* fd : {&rank->files.pmi, &rank->files.output, &rank->files.error_output, &rank->files.input}) CloseFile(fd);
    }
    return true;
  }
  if (!orphans_told_) {
    orphans_told_ = true;
    for (const pid_t pid : orphans) kill(pid, SIGTERM);
    for (const pid_t pid : orphans) kill(pid, SIGCONT);
    if (!kill_at_) kill_at_ = Clock::now() + kGrace;
  }
  return false;
}

}  // namespace

void RunProxy(std::unique_ptr<Connection> connection, const JobSecret& secret) {
  Proxy(std::move(connection), secret).Run();
}

int RemoteProxyMain() {
  auto invited = AcceptInvitation(STDIN_FILENO);
  if (!invited) {
    std::fprintf(stderr, "mpiexec: %s\n", invited.error().message.c_str());
    return 1;
  }
  setsid();  // fails where ssh made a session already
  RunProxy(std::move(invited.value().connection), invited.value().secret);
  return 0;
}

}  // namespace weft::pmi
