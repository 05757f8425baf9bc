#include "pmi/launch/proxy.h"

#include <poll.h>
#include <signal.h>
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

#include "base/deadline.h"
#include "base/file_limit.h"
#include "base/job_secret.h"
#include "pmi/launch/event_poller.h"
#include "pmi/launch/fence_collector.h"
#include "pmi/launch/local_job.h"
#include "pmi/launch/proxy_tree.h"
#include "pmi/launch/remote_start.h"
#include "pmi/launch/spawn.h"
#include "pmi/launch/tree_growth.h"
#include "pmi/server/server.h"

namespace weft::pmi {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr size_t kMostUnsent = 1 << 20;  // bytes for mpiexec, beyond which the ranks' output waits in their pipes
constexpr milliseconds kGrace = LocalJob::kGrace;
constexpr milliseconds kOrphanLook{10};  // between two looks for what ranks left behind
constexpr milliseconds kFarewell{5000};  // for mpiexec to take the last bytes, and for proxies below to end

// The jobs of this host, and what is between mpiexec and the proxies below.
class Proxy final : public LocalJob::Proxy {
 public:
  Proxy(std::unique_ptr<Connection> connection, const JobSecret& secret) : connection_(std::move(connection)), secret_(secret) {}
  void Run();

 private:
  // LocalJob::Proxy
  EventPoller& poller() override { return poller_; }
  bool has_room() const override { return room_; }
  void Tell(const Frame& frame) override {
    if (connected_) connection_->Send(frame);
  }
  void EnterFence(int job, KeyValues put) override { EnterFence(job, 1, std::move(put)); }
  void OnRankEnded(int job) override;  // here or below
  std::vector<pid_t> Descendants() const override;
  std::string OwnAddressTowardsMpiexec() const override { return OwnAddress(connection_->fd()); }
  JobSecret SecretOf(int job) const override { return SecretOfJob(secret_, job); }
  const Server::Space* SpaceOf(const std::string& job_id) const override;
  bool RunsOthersThan(const LocalJob* job) const override;
  size_t RanksRunning() const override;

  void TakeSignals();
  void WatchOwn();
  void MakeRoom();
  int MillisecondsToSleep() const;
  void LookForHosts();
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
  void StepGrowth();
  Profile ProfileOfThis() const;
  void EndGrowth(int exit_code, const std::string& why);
  void PassDown(const Frame& frame);
  void WatchBranches();
  void OnBranch(ProxyTree::Branch& branch, uint32_t events);
  void PassUp(ProxyTree::Branch& branch, Frame frame);
  void LoseBranch(ProxyTree::Branch& branch);
  void CloseBranch(ProxyTree::Branch& branch);
  // Ranks of so many hosts, this one or some below it, are in the job's barrier.
  void EnterFence(int job, int hosts, KeyValues put);
  void LeaveFence(int job);
  void TellFence(int job, std::optional<FenceCollector::Entered> entered);
  void FinishBranches();

  std::unique_ptr<Connection> connection_;
  const JobSecret secret_;  // which orders do not say
  ProxyTree tree_;
  std::unique_ptr<TreeGrowth> growth_;  // under way
  std::map<int, FenceCollector> fences_;  // by job
  EventPoller poller_;
  bool room_ = true;
  bool connected_ = true;
  std::map<int, std::unique_ptr<LocalJob>> jobs_;
  int signals_ = -1;
  Clock::time_point look_at_{};  // whether hosts are still there
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
    LookForHosts();
    StepGrowth();
    for (const auto& [number, job] : jobs_) {
      if (job->starting()) job->GoOnStarting();
      job->CheckWhetherStuck();
      job->KillIfDue();
    }
    RemoveFinishedJobs();
  }
  FinishBranches();
  // What left its session, and so belongs to no job.
  KillDescendants(kFarewell);
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
    Tell({FrameType::kNotStarted, 0, NumberAndText(1, "cannot watch the ranks: " + DescribeShortage(errno))});
    connection_->Drain(static_cast<int>(kFarewell.count()));
    connected_ = false;
  }
}

void Proxy::MakeRoom() {
  const bool room = connection_->unsent() < kMostUnsent;
  if (std::exchange(room_, room) == room) return;
  for (const auto& [number, job] : jobs_) job->WatchOutputs();
}

int Proxy::MillisecondsToSleep() const {
  long shortest = MillisecondsUntil(look_at_);
  if (growth_ != nullptr) shortest = std::min<long>(shortest, MillisecondsUntil(growth_->wake_at()));
  for (const auto& [number, job] : jobs_) {
    if (job->starting()) return 0;
    if (!job->running()) return static_cast<int>(kOrphanLook.count());
    if (!job->kill_at()) continue;
    const long left = std::max<long>(std::chrono::ceil<milliseconds>(*job->kill_at() - Clock::now()).count(), 0);
    shortest = shortest < 0 ? left : std::min(shortest, left);
  }
  return static_cast<int>(shortest);
}

void Proxy::LookForHosts() {
  const auto now = Clock::now();
  if (now < look_at_) return;
  look_at_ = now + kSilenceLook;
  connection_->LookForPeer(now);
  for (const auto& branch : tree_.branches()) {
    if (branch->open) branch->link.connection->LookForPeer(now);
  }
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
  EndGrowth(1, "mpiexec is gone");
  EndAll(kGrace);  // mpiexec is gone
}

void Proxy::OnSignal() {
  signalfd_siginfo info;
  while (read(signals_, &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo == SIGCHLD) continue;
    const int number = static_cast<int>(info.ssi_signo);
    if (growth_ != nullptr) EndGrowth(128 + number, "ended by signal " + std::to_string(number) + " before " + growth_->MissingHosts() + " answered");
    EndAll(kGrace);
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
    case FrameType::kProfile:
      return Tell({FrameType::kProfile, 0, ProfileOfThis().Serialize()});
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
    case FrameType::kDied:
      if (const auto ranks = ParseNumberList(frame.payload, Dialect::kMostProcesses)) {
        if (job != nullptr) job->TellDeaths(frame.number, *ranks);
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
  auto order = GrowOrder::Parse(frame.payload);
  if (!order || growth_ != nullptr) {
    connected_ = false;
    return;
  }
  growth_ = std::make_unique<TreeGrowth>(*std::move(order), secret_);
  if (!poller_.Watch(growth_->fd(), EPOLLIN, [](uint32_t) {})) return EndGrowth(1, "cannot watch the start of proxies: " + DescribeShortage(errno));
  StepGrowth();
}

// Once in each round, after what is ready.
void Proxy::StepGrowth() {
  if (growth_ == nullptr) return;
  growth_->Step();
  if (!growth_->done()) return;
  if (const auto error = growth_->error()) return EndGrowth(error->exit_code, error->message);
  const size_t before = tree_.branches().size();
  tree_.Add(growth_->TakeBranches());
  for (size_t i = before; i < tree_.branches().size(); ++i) {
    ProxyTree::Branch& branch = *tree_.branches()[i];
    if (!poller_.Watch(branch.link.connection->fd(), EPOLLIN, [this, &branch](uint32_t events) { OnBranch(branch, events); })) LoseBranch(branch);
  }
  EndGrowth(0, "");
}

void Proxy::EndGrowth(int exit_code, const std::string& why) {
  if (growth_ == nullptr) return;
  poller_.Forget(growth_->fd());
  growth_.reset();
  Tell({FrameType::kGrown, 0, NumberAndText(exit_code, why)});
}

Profile Proxy::ProfileOfThis() const {
  Traffic all = connection_->traffic();
  for (const auto& branch : tree_.branches()) all += branch->link.connection->traffic();
  return {static_cast<uint32_t>(1 + tree_.branches().size()), all.sent, all.sent_bytes, all.received, all.received_bytes};
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

void Proxy::EnterFence(int job, int hosts, KeyValues put) {
  FenceCollector& fence = fences_[job];
  if (!fence.HasRoomFor(put)) TellFence(job, fence.PassOn());
  TellFence(job, fence.Enter(hosts, std::move(put)));
}

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
  const auto is_there = [](const auto& branch) { return branch->link.pid > 0; };
  while (Clock::now() < deadline) {
    ReapChildren();
    if (std::none_of(tree_.branches().begin(), tree_.branches().end(), is_there)) return;
    poll(nullptr, 0, static_cast<int>(kOrphanLook.count()));
  }
}

void Proxy::ReapChildren() {
  int status = 0;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    for (const auto& [number, job] : jobs_) job->Ended(pid, status);
    for (const auto& branch : tree_.branches()) {
      if (branch->link.pid == pid) branch->link.pid = -1;  // the number may be a rank's next
    }
    if (growth_ != nullptr) growth_->ChildEnded(pid, status);
  }
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
