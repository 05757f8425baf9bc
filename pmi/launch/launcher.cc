#include "pmi/launch/launcher.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/deadline.h"
#include "base/file_limit.h"
#include "pmi/wire/message.h"
#include "pmi/launch/signal_name.h"
#include "pmi/launch/spawn.h"

extern char** environ;

namespace weft::pmi {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kGrace{2000};        // from SIGTERM to SIGKILL for the ranks of a job that failed
constexpr milliseconds kProxyTime{3000};    // for proxies to report the end, beyond the grace
constexpr milliseconds kTerminalLook{500};  // between two looks whether the terminal is ours
constexpr milliseconds kChildTime{2000};    // for proxies and ssh to end by themselves

constexpr size_t kMostUnwrittenAtEnd = 64 << 20;  // bytes of output

constexpr int kTimedOut = 255;  // hydra's

constexpr int kPassedOn[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};

std::vector<std::string> OwnEnvironment() {
  std::vector<std::string> entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return entries;
}

// As the shell knows it, symbolic links kept, where that is this directory.
std::string CurrentDirectory() {
  std::error_code error;
  const std::filesystem::path actual = std::filesystem::current_path(error);
  const char* shown = getenv("PWD");
  if (shown != nullptr && *shown == '/' && std::filesystem::equivalent(shown, actual, error) && !error) return shown;
  return actual.empty() ? "/" : actual.string();
}

std::string OwnHostName() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 && *name != '\0' ? name : "localhost";
}

std::string SignalName(int number) {
  const char* name = SignalAbbreviation(number);
  std::string text = "signal " + std::to_string(number);
  if (name != nullptr) text += std::string(" (SIG") + name + ": " + strsignal(number) + ")";
  return text;
}

// The exit status that stands for `code` of MPI_Abort; only 8 bits of it are seen by others, and a failure must not look like
// success.
int ExitCodeOf(int code) { return (code & 0xff) != 0 || code == 0 ? code & 0xff : 1; }

}  // namespace

Launcher::Launcher(const Options& options)
    : options_(options),
      environment_(OwnEnvironment()),
      directory_(CurrentDirectory()),
      input_(STDIN_FILENO),
      output_(STDOUT_FILENO, OutputFiles::kOutput, options.output_pattern, LabelWanted()),
      error_output_(STDERR_FILENO, OutputFiles::kErrorOutput, options.error_output_pattern, LabelWanted()),
      files_(LabelWanted()) {}

Launcher::~Launcher() {
  if (signals_ >= 0) close(signals_);
}

int Launcher::Run() {
  signal(SIGPIPE, SIG_IGN);
  // It may take long to answer, or not do so at all: until then signals end mpiexec as they end any program.
  const std::string problem = ReachNameServer();
  TakeSignals();
  if (options_.time_out.value_or(std::chrono::seconds(0)).count() > 0) time_out_at_ = Clock::now() + *options_.time_out;
  StartFirstJob(problem);
  ForgetDoneJobs();
  while (!finished()) {
    WatchAll();
    poller_.Wait(MillisecondsToSleep());
    Tick();
    ForgetDoneJobs();
  }
  if (options_.shows_messages) ShowMessages();
  FinishChildren();
  const bool unwritten = output_.failed || error_output_.failed;
  return exit_code_.value_or(unwritten ? 1 : 0);
}

void Launcher::TakeSignals() {
  sigset_t taken;
  sigemptyset(&taken);
  sigaddset(&taken, SIGCHLD);
  signal(SIGCHLD, SIG_DFL);  // waitpid needs it, whatever was inherited
  for (const int number : kPassedOn) sigaddset(&taken, number);
  sigprocmask(SIG_SETMASK, &taken, nullptr);
  signals_ = signalfd(-1, &taken, SFD_NONBLOCK | SFD_CLOEXEC);
  // Should a proxy be killed, what its ranks left behind becomes ours to end.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  RaiseFileLimit();
}

std::string Launcher::ReachNameServer() {
  if (options_.name_file.empty()) return {};
  auto link = NameLink::Connect(options_.name_file);
  if (!link) return link.error().message;
  name_link_ = std::move(link).value();
  return {};
}

void Launcher::StartFirstJob(const std::string& problem) {
  Job& job = AddJob(0, MakePlan(options_, environment_, directory_));
  universe_size_ = job.plan.orders[0].universe_size;
  if (!problem.empty()) return EndJob(job, 1, problem, milliseconds(0));
  AwaitHosts(job);
}

Launcher::Job& Launcher::AddJob(int number, JobPlan plan) {
  Job& job = jobs_[number];
  job.number = number;
  job.id = plan.orders[0].kvs_name;
  for (const StartOrder::Program& program : plan.orders[0].programs) job.programs.push_back(program.arguments[0]);
  job.plan = std::move(plan);
  job.exit_statuses.assign(static_cast<size_t>(job.plan.size()), -1);
  return job;
}

std::string Launcher::SendOrders(Job& job) {
  job.open.assign(job.hosts.size(), true);
  std::string here = "127.0.0.1";
  for (const auto& branch : tree_.branches()) {
    if (!branch->link.is_local && branch->open) here = OwnAddress(branch->link.connection->fd());
  }
  std::vector<std::string> orders;
  for (size_t i = 0; i < job.hosts.size(); ++i) {
    StartOrder& order = job.plan.orders[i];
    if (hosts_[job.hosts[i]].is_local) order.host_address = here;
    orders.push_back(order.Serialize());
    if (orders.back().size() > FrameReader::kLongestPayload) {
      job.open.assign(job.hosts.size(), false);
      return "the programs' environment and arguments are " + std::to_string(orders.back().size()) + " bytes long; the limit is " +
             std::to_string(FrameReader::kLongestPayload);
    }
  }
  for (size_t i = 0; i < orders.size(); ++i) {
    SendTo(hosts_[job.hosts[i]], {FrameType::kStart, 0, std::move(orders[i]), job.number});
  }
  job.plan.orders.clear();
  for (const auto& [number, other] : jobs_) {
    if (!other.dead.empty()) SendTo(job, {FrameType::kDied, number, NumberList(other.dead)});
  }
  return {};
}

// All jobs have ended, and our own output is written.
bool Launcher::finished() const {
  if (give_up_at_ && all_ending() && Clock::now() >= *give_up_at_) return true;
  return jobs_.empty() && output_.merger.unwritten() == 0 && error_output_.merger.unwritten() == 0;
}

bool Launcher::all_ending() const {
  return std::all_of(jobs_.begin(), jobs_.end(), [](const auto& entry) { return entry.second.ending; });
}

void Launcher::WatchAll() {
  poller_.Watch(signals_, POLLIN, [this](short) { OnSignal(); });
  for (Stream* stream : {&output_, &error_output_}) {
    if (stream->merger.unwritten() != 0) poller_.Watch(stream->fd, POLLOUT, [this, stream](short) { WriteStream(*stream); });
  }
  // While nobody reads our output, the ranks' waits with them; but of the end of a job we want to hear.
  const size_t limit = all_ending() || times_interrupted_ != 0 ? kMostUnwrittenAtEnd : OutputMerger::kMostUnwritten;
  const bool room = output_.merger.unwritten() < limit && error_output_.merger.unwritten() < limit;
  if (name_link_ != nullptr) {
    const short events = static_cast<short>(POLLIN | (name_link_->wants_to_write() ? POLLOUT : 0));
    poller_.Watch(name_link_->fd(), events, [this](short ready) { OnNames(ready); });
  }
  for (const auto& branch : tree_.branches()) {
    if (!branch->open) continue;
    const Connection& connection = *branch->link.connection;
    const short events = static_cast<short>((room ? POLLIN : 0) | (connection.wants_to_write() ? POLLOUT : 0));
    if (events != 0) poller_.Watch(connection.fd(), events, [this, to = branch.get()](short ready) { OnBranch(*to, ready); });
  }
  if (growth_ != nullptr) poller_.Watch(growth_->fd(), POLLIN, [](short) {});  // Tick() looks at it
  const Job* first = Find(0);
  if (!all_ending() && (first == nullptr || !first->awaits_hosts)) poller_.Watch(input_.fd_to_watch(), POLLIN, [this](short) { OnInput(); });
}

int Launcher::MillisecondsToSleep() const {
  int shortest = input_.waits_for_terminal() ? static_cast<int>(kTerminalLook.count()) : -1;
  const auto wake_at = [&](const std::optional<Clock::time_point>& deadline) {
    if (!deadline) return;
    const int left = MillisecondsUntil(*deadline);
    shortest = shortest < 0 ? left : std::min(shortest, left);
  };
  if (all_ending()) {
    wake_at(give_up_at_);
  } else {
    wake_at(time_out_at_);
  }
  for (const auto& [number, job] : jobs_) wake_at(job.give_up_at);
  wake_at(look_at_);
  if (growth_ != nullptr) wake_at(growth_->wake_at());
  wake_at(output_.merger.deadline());
  wake_at(error_output_.merger.deadline());
  return shortest;
}

void Launcher::Tick() {
  StepGrowth();
  if (const auto now = Clock::now(); now >= look_at_) {
    look_at_ = now + kSilenceLook;
    for (const auto& branch : tree_.branches()) {
      if (branch->open) branch->link.connection->LookForPeer(now);
    }
  }
  output_.merger.Tick(Clock::now());
  error_output_.merger.Tick(Clock::now());
  if (!all_ending() && time_out_at_ && Clock::now() >= *time_out_at_) {
    EndAllJobs(kTimedOut, "the job has run for " + std::to_string(options_.time_out->count()) + " s, the limit of -timeout or MPIEXEC_TIMEOUT", kGrace);
  }
  for (auto& [number, job] : jobs_) {
    if (job.give_up_at && Clock::now() >= *job.give_up_at) job.open.assign(job.open.size(), false);
  }
}

// Not while anybody holds one.
void Launcher::ForgetDoneJobs() {
  for (auto entry = jobs_.begin(); entry != jobs_.end();) {
    Job& job = entry->second;
    if (!job.done()) {
      ++entry;
      continue;
    }
    if (job.asker) FailSpawn(job, "the job ended before all its ranks were started");
    if (options_.shows_exit_statuses) ShowExitStatuses(job);
    ForgetNamesOf(job.number);
    for (auto& [number, other] : jobs_) other.connected.erase(job.number);
    entry = jobs_.erase(entry);
  }
}

Launcher::Job* Launcher::Find(int number) {
  const auto found = jobs_.find(number);
  return found == jobs_.end() ? nullptr : &found->second;
}

void Launcher::OnBranch(ProxyTree::Branch& branch, short events) {
  Connection& connection = *branch.link.connection;
  bool alive = true;
  if (events & POLLOUT) alive = connection.Write();
  // What the proxy said before it went comes first.
  if (events & ~POLLOUT) alive = connection.Read() && alive;
  while (branch.open) {
    const std::optional<Frame> frame = connection.Next();
    if (!frame) break;
    const int32_t host = frame->host == Frame::kHere ? branch.own_host() : frame->host;
    alive = alive && branch.leads_to(host);
    if (!branch.leads_to(host)) break;
    if (hosts_[static_cast<size_t>(host)].open) OnFrame(static_cast<size_t>(host), *frame);
  }
  if (!branch.open || (alive && !connection.broken())) return;
  branch.open = false;
  for (const int32_t host : branch.hosts) OnHostLost(static_cast<size_t>(host));
}

void Launcher::OnFrame(size_t host, const Frame& frame) {
  if (frame.type == FrameType::kInputTaken) return input_.Taken(static_cast<size_t>(frame.number));
  if (frame.type == FrameType::kInputClosed) return input_.Close();
  if (frame.type == FrameType::kLost) return OnHostLost(host);
  if (frame.type == FrameType::kProfile) {
    if (const auto profile = Profile::Parse(frame.payload)) profiles_[host] = *profile;
    return;
  }
  Job* job = Find(frame.job);
  if (job == nullptr) return;
  switch (frame.type) {
    case FrameType::kFence:
      return OnFence(*job, frame);
    case FrameType::kStarted:
      return OnStarted(*job);
    case FrameType::kDone:
      return CloseHost(*job, host);
    case FrameType::kNote:
      return Say((hosts_[host].is_local ? "" : hosts_[host].name + ": ") + frame.payload);
    default:
      // A proxy is this program too; what it says of ranks that are not there is not worth a message.
      if (frame.number >= 0 && frame.number < job->plan.size()) OnRankFrame(*job, host, frame);
  }
}

void Launcher::CloseHost(Job& job, size_t host) {
  for (size_t i = 0; i < job.open.size(); ++i) {
    if (job.hosts[i] == host) job.open[i] = false;
  }
}

std::vector<int> Launcher::RunningOn(const Job& job, size_t host) {
  std::vector<int> ranks;
  for (int rank = 0; rank < job.plan.size(); ++rank) {
    const auto place = static_cast<size_t>(job.plan.placement.host_of_rank[static_cast<size_t>(rank)]);
    if (job.hosts[place] == host && job.exit_statuses[static_cast<size_t>(rank)] < 0) ranks.push_back(rank);
  }
  return ranks;
}

void Launcher::OnRankFrame(Job& job, size_t host, const Frame& frame) {
  const int rank = frame.number;
  switch (frame.type) {
    case FrameType::kOutput:
      return OnOutput(job, host, output_, rank, frame.payload);
    case FrameType::kErrorOutput:
      return OnOutput(job, host, error_output_, rank, frame.payload);
    case FrameType::kQuestion:
      return OnQuestion(job, host, frame);
    case FrameType::kExited:
      return OnExited(job, rank, ExitReport::Parse(frame.payload));
    case FrameType::kMisuse:
      return EndJob(job, 1, NameOf(job, rank) + " " + frame.payload, kGrace);
    case FrameType::kStuck:
      return OnStuck(job, rank);
    default:
      break;
  }
  const auto [number, text] = ParseNumberAndText(frame.payload);
  if (frame.type == FrameType::kNotStarted) {
    const std::string where = hosts_[host].is_local ? "" : " on " + hosts_[host].name;
    if (job.asker) return FailSpawn(job, text + where);
    EndJob(job, number, text + where, milliseconds(0));
  } else if (frame.type == FrameType::kAbort) {
    EndJob(job, ExitCodeOf(number),
           NameOf(job, rank) + " aborted the job with code " + std::to_string(number) + (text.empty() ? "" : ": " + text), kGrace);
  }
}

void Launcher::OnExited(Job& job, int rank, const ExitReport& report) {
  if (job.ended++ == 0) job.first_gone = rank;
  TellOwner(job, {rank});
  FinishOutput(job, output_, rank);
  FinishOutput(job, error_output_, rank);
  const int status = report.wait_status;
  job.exit_statuses[static_cast<size_t>(rank)] = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  if (job.ending) return;  // by our own hand
  const std::string name = NameOf(job, rank);
  if (WIFSIGNALED(status)) {
    const std::string core = WCOREDUMP(status) ? ", core dumped" : "";
    return OnDeath(job, {rank}, 128 + WTERMSIG(status), name + " was killed by " + SignalName(WTERMSIG(status)) + core);
  }
  const int code = WEXITSTATUS(status);
  const std::string how = name + " exited with status " + std::to_string(code);
  if (report.state == Server::State::kInitialised) return OnDeath(job, {rank}, code == 0 ? 1 : code, how + " without MPI_Finalize");
  if (report.state == Server::State::kSilent && job.meets_spawner) {
    return EndJob(job, code == 0 ? 1 : code, how + " without MPI_Init, where the job that spawned it waits for it", kGrace);
  }
  if (code != 0 && !exit_code_) {
    exit_code_ = code;
    Say(how);
  }
  if (job.in_fence != 0) OnStuck(job, rank);
}

// The job ends, or goes on without those who died.
void Launcher::OnDeath(Job& job, const std::vector<int>& ranks, int exit_code, const std::string& how) {
  if (!options_.goes_on || job.never_was) return EndJob(job, exit_code, how, kGrace);
  if (!exit_code_) exit_code_ = exit_code;
  const bool over = job.ended == job.plan.size() || job.done();
  Say(how + (over ? "" : "; the others go on"));
  TellDeaths(job, ranks);
  if (job.in_fence != 0) OnStuck(job, job.first_gone);
}

void Launcher::TellOwner(const Job& job, const std::vector<int>& ranks) const {
  if (options_.on_gone && job.number == 0 && !job.ending && !ranks.empty()) options_.on_gone(ranks);
}

// To its own ranks, and to those of the other jobs, which may have met it.
void Launcher::TellDeaths(Job& job, const std::vector<int>& ranks) {
  if (ranks.empty()) return;
  job.dead.insert(job.dead.end(), ranks.begin(), ranks.end());
  for (const auto& [number, other] : jobs_) {
    if (other.ended != other.plan.size()) SendTo(other, {FrameType::kDied, job.number, NumberList(ranks)});
  }
}

// The ranks of one host more, or of several below one proxy, are in the barrier.
void Launcher::OnFence(Job& job, const Frame& frame) {
  const auto put = ParseValues(frame.payload);
  if (!put || frame.number < 1) return;
  job.put_bytes += frame.payload.size();
  if (job.put_bytes > FrameReader::kLongestPayload) {
    job.put.clear();
    return EndJob(job, 1, "the ranks put " + TooMuchPut(job.put_bytes), kGrace);
  }
  job.put.insert(job.put.end(), put->begin(), put->end());
  job.in_fence += static_cast<size_t>(frame.number);
  if (job.in_fence >= job.hosts.size()) {
    SendTo(job, {FrameType::kFenceEnd, 0, SerializeValues(job.put)});
    job.put.clear();
    job.put_bytes = 0;
    job.in_fence = 0;
  } else if (job.ended != 0) {
    OnStuck(job, job.first_gone);
  }
}

void Launcher::OnStuck(Job& job, int rank) {
  EndJob(job, exit_code_.value_or(1),
         NameOf(job, rank) + " has ended, but other ranks wait for it in MPI_Init, MPI_Finalize or another barrier", kGrace);
}

void Launcher::OnHostLost(size_t index) {
  Host& host = hosts_[index];
  if (!std::exchange(host.open, false)) return;
  const std::string why = host.is_local ? "the process that runs this host's ranks (pid " + std::to_string(host.branch->link.pid) + ") was killed"
                                        : "the connection to " + host.name + " ended";
  for (auto& [number, job] : jobs_) {
    if (std::find(job.hosts.begin(), job.hosts.end(), index) == job.hosts.end()) continue;
    const std::vector<int> ranks = RunningOn(job, index);
    CloseHost(job, index);
    TellOwner(job, ranks);
    OnDeath(job, ranks, 1, why);
  }
}

void Launcher::OnSignal() {
  signalfd_siginfo info;
  while (read(signals_, &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo == SIGCHLD) {
      ReapChildren();
    } else if (!options_.ignores_terminal || info.ssi_code != SI_KERNEL) {
      PassOn(static_cast<int>(info.ssi_signo));
    }
  }
}

void Launcher::ReapChildren() {
  int status = 0;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    if (growth_ != nullptr) growth_->ChildEnded(pid, status);
  }
}

void Launcher::PassOn(int number) {
  const bool interrupts = number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
  if (interrupts && ++times_interrupted_ == 2) {
    return EndAllJobs(128 + number, "interrupted twice; the ranks are killed", milliseconds(0));
  }
  Job* first = Find(0);
  if (interrupts && first != nullptr && first->awaits_hosts) {
    return EndJob(*first, 128 + number, "ended by signal " + std::to_string(number) + " before " + growth_->MissingHosts() + " answered", milliseconds(0));
  }
  for (const auto& branch : tree_.branches()) branch->Send({FrameType::kSignal, number}, Frame::kEverywhere);
  if (number != SIGTSTP) return;
  for (const auto& branch : tree_.branches()) {
    if (branch->open) branch->link.connection->Drain(1000);
  }
  raise(SIGSTOP);
}

void Launcher::OnInput() {
  const std::string bytes = input_.Read();
  const Job* job = Find(0);
  if (job == nullptr || job->hosts.empty()) return;
  Host& host = hosts_[job->hosts[static_cast<size_t>(job->plan.placement.host_of_rank[0])]];
  SendTo(host, {FrameType::kInput, 0, bytes});
}

void Launcher::OnOutput(const Job& job, size_t host, Stream& stream, int rank, const std::string& bytes) {
  if (options_.output_from && rank != *options_.output_from) return;
  const Writer writer(rank, job.number);
  if (stream.pattern.empty()) return stream.merger.Add(writer, bytes, Clock::now());
  const std::string problem = files_.Add(FileNameOf(stream.pattern, UserOf(job, host, rank)), stream.which, writer, bytes);
  if (!problem.empty()) EndAllJobs(1, problem, kGrace);
}

void Launcher::FinishOutput(const Job& job, Stream& stream, int rank) {
  const Writer writer(rank, job.number);
  if (stream.pattern.empty()) return stream.merger.Finish(writer);
  const size_t host = job.hosts[static_cast<size_t>(job.plan.placement.host_of_rank[static_cast<size_t>(rank)])];
  const std::string problem = files_.Finish(FileNameOf(stream.pattern, UserOf(job, host, rank)), stream.which, writer);
  if (!problem.empty()) EndAllJobs(1, problem, kGrace);
}

FileUser Launcher::UserOf(const Job& job, size_t host, int rank) const {
  const std::string& name = hosts_[host].name;
  // Where nobody named a host, ours is not called "localhost" in what users read.
  return {rank, job.number, static_cast<int>(host), options_.hosts.empty() && name == "localhost" ? OwnHostName() : name};
}

OutputMerger::Label Launcher::LabelWanted() const {
  if (!options_.label_pattern) return options_.label ? OutputMerger::RankLabel : OutputMerger::Label();
  return [this](Writer writer) {
    const auto found = jobs_.find(writer.job);
    if (found == jobs_.end()) return std::string();
    const Job& job = found->second;
    const size_t host = job.hosts[static_cast<size_t>(job.plan.placement.host_of_rank[static_cast<size_t>(writer.rank)])];
    return LabelOf(*options_.label_pattern, UserOf(job, host, writer.rank));
  };
}

void Launcher::ShowExitStatuses(const Job& job) {
  std::string statuses;
  for (const int status : job.exit_statuses) statuses += " " + (status < 0 ? "?" : std::to_string(status));
  Say("exit statuses of " + (job.number == 0 ? std::string("the ranks") : "the ranks of job " + std::to_string(job.number)) + ":" + statuses);
}

void Launcher::WriteStream(Stream& stream) {
  const int error = stream.merger.WriteTo(stream.fd);
  if (error == 0) return;
  stream.failed = true;
  stream.merger.Discard();
  if (&stream == &error_output_) return;  // nowhere to say it
  if (error == EPIPE) {
    return EndAllJobs(128 + SIGPIPE, "the standard output is no longer read (" + std::string(std::strerror(error)) + ")", kGrace);
  }
  Say("cannot write the standard output: " + std::string(std::strerror(error)) +
      "; the ranks go on, and their output there is lost");
}

void Launcher::EndJob(Job& job, int exit_code, const std::string& message, milliseconds grace) {
  if (job.never_was) return EndOne(job, grace);
  const std::set<int> connected = ConnectedWith(job);
  if (!job.ending && !message.empty()) {
    const bool over = job.hosts.empty() || (connected.size() == 1 && job.ended == job.plan.size());
    Say(message + (over ? "" : connected.size() == 1 ? "; the job ends" : "; the job and those connected with it end"));
  }
  if (!exit_code_) exit_code_ = exit_code;
  for (const int number : connected) EndOne(jobs_.at(number), grace);
}

void Launcher::EndAllJobs(int exit_code, const std::string& message, milliseconds grace) {
  if (jobs_.empty() || !all_ending()) Say(message + (jobs_.empty() ? "" : "; the job ends"));
  if (!exit_code_) exit_code_ = exit_code;
  for (auto& [number, job] : jobs_) EndOne(job, grace);
  if (jobs_.empty() && !give_up_at_) give_up_at_ = Clock::now();
}

void Launcher::EndOne(Job& job, milliseconds grace) {
  const auto give_up_at = Clock::now() + grace + kProxyTime;
  if (!job.give_up_at || give_up_at < *job.give_up_at) job.give_up_at = give_up_at;
  job.ending = true;
  job.awaits_hosts = false;
  SendTo(job, {FrameType::kEnd, static_cast<int32_t>(grace.count())});
  if (all_ending() && (!give_up_at_ || give_up_at < *give_up_at_)) give_up_at_ = give_up_at;
}

// It, and those that it reaches by spawns whose two jobs have not left one another.
std::set<int> Launcher::ConnectedWith(const Job& job) const {
  std::set<int> found{job.number};
  std::vector<int> open{job.number};
  while (!open.empty()) {
    const Job& next = jobs_.at(open.back());
    open.pop_back();
    for (const int other : next.connected) {
      if (jobs_.contains(other) && found.insert(other).second) open.push_back(other);
    }
  }
  return found;
}

void Launcher::SendTo(const Job& job, const Frame& frame) {
  Frame addressed = frame;
  addressed.job = job.number;
  std::set<ProxyTree::Branch*> told;
  for (size_t i = 0; i < job.open.size(); ++i) {
    const Host& host = hosts_[job.hosts[i]];
    // Where the job is not, it is not heard.
    if (host.open && job.open[i] && told.insert(host.branch).second) host.branch->Send(addressed, Frame::kEverywhere);
  }
}

void Launcher::SendTo(const Host& host, const Frame& frame) {
  if (host.open) host.branch->Send(frame, static_cast<int32_t>(&host - hosts_.data()));
}

// Waits for proxies and ssh, which end by themselves now; then nothing that descends from this process is left.
void Launcher::FinishChildren() {
  growth_.reset();
  for (const auto& branch : tree_.branches()) {
    branch->open = false;
    branch->link.connection.reset();
  }
  const auto deadline = Clock::now() + kChildTime;
  for (;;) {
    const pid_t pid = waitpid(-1, nullptr, WNOHANG);
    if (pid < 0) return;  // no child is left
    if (pid > 0) continue;
    if (Clock::now() >= deadline) break;
    pollfd entry{signals_, POLLIN, 0};
    poll(&entry, 1, 10);
    signalfd_siginfo info;
    while (read(signals_, &info, sizeof(info)) == sizeof(info)) {
    }
  }
  KillDescendants(kChildTime);
}

void Launcher::Say(const std::string& message) { error_output_.merger.AddOwnLine("mpiexec: " + message); }

std::string Launcher::NameOf(const Job& job, int rank) const {
  const auto at = static_cast<size_t>(rank);
  const std::vector<std::string>& hosts = job.plan.placement.hosts;
  std::string name = (job.number == 0 ? "" : "job " + std::to_string(job.number) + " ") + "rank " + std::to_string(rank);
  if (hosts.size() > 1) name += " on " + hosts[static_cast<size_t>(job.plan.placement.host_of_rank[at])];
  return name + " (" + job.programs[static_cast<size_t>(job.plan.program_of_rank[at])] + ")";
}

}  // namespace weft::pmi
