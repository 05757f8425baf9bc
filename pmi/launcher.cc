#include "pmi/launcher.h"

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
#include "pmi/message.h"
#include "pmi/spawn.h"

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

std::string SignalName(int number) {
  const char* name = sigabbrev_np(number);
  const char* words = sigdescr_np(number);
  std::string text = "signal " + std::to_string(number);
  if (name != nullptr && words != nullptr) text += std::string(" (SIG") + name + ": " + words + ")";
  return text;
}

// The exit status that stands for `code` of MPI_Abort; only 8 bits of it are seen by others, and a failure must not look like
// success.
int ExitCodeOf(int code) { return (code & 0xff) != 0 || code == 0 ? code & 0xff : 1; }

}  // namespace

Launcher::Launcher(const Options& options)
    : options_(options),
      plan_(MakePlan(options, OwnEnvironment(), CurrentDirectory())),
      input_(STDIN_FILENO),
      output_(STDOUT_FILENO, "standard output", options.label),
      error_output_(STDERR_FILENO, "standard error", options.label) {}

Launcher::~Launcher() {
  if (signals_ >= 0) close(signals_);
}

int Launcher::Run() {
  TakeSignals();
  if (options_.time_out) time_out_at_ = Clock::now() + *options_.time_out;
  StartJob();
  while (!finished()) {
    WatchAll();
    poller_.Wait(MillisecondsToSleep());
    Tick();
  }
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
  signal(SIGPIPE, SIG_IGN);
  signals_ = signalfd(-1, &taken, SFD_NONBLOCK | SFD_CLOEXEC);
  // Should a proxy be killed, what its ranks left behind becomes ours to end.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  RaiseFileLimit();
}

void Launcher::StartJob() {
  auto links = StartProxies({plan_.placement.hosts, options_.remote_shell, options_.interface, signals_, secret_});
  if (!links) {
    return EndJob(links.error().exit_code, links.error().message, milliseconds(0));
  }
  std::string here = "127.0.0.1";
  for (ProxyLink& link : links.value()) {
    if (!link.is_local) here = OwnAddress(link.connection->fd());
    hosts_.emplace_back();
    hosts_.back().link = std::move(link);
  }
  for (size_t i = 0; i < hosts_.size(); ++i) {
    if (hosts_[i].link.is_local) {
      plan_.orders[i].host_address = here;
      plan_.orders[i].values.emplace_back("weft_secret", secret_.ToHex());  // by a socket pair; others have it from their invitation
    }
    const std::string order = plan_.orders[i].Serialize();
    if (order.size() > FrameReader::kLongestPayload) {
      return EndJob(1,
                    "the programs' environment and arguments are " + std::to_string(order.size()) + " bytes long; " +
                        std::to_string(FrameReader::kLongestPayload) + " can be",
                    milliseconds(0));
    }
    hosts_[i].link.connection->Send({FrameType::kStart, 0, order});
  }
}

// All proxies have reported, and our own output is written.
bool Launcher::finished() const {
  if (give_up_at_ && Clock::now() >= *give_up_at_) return true;
  return std::none_of(hosts_.begin(), hosts_.end(), [](const Host& host) { return host.open; }) &&
         output_.merger.unwritten() == 0 && error_output_.merger.unwritten() == 0;
}

void Launcher::WatchAll() {
  poller_.Watch(signals_, POLLIN, [this](short) { OnSignal(); });
  for (Stream* stream : {&output_, &error_output_}) {
    if (stream->merger.unwritten() != 0) poller_.Watch(stream->fd, POLLOUT, [this, stream](short) { WriteStream(*stream); });
  }
  // While nobody reads our output, the ranks' waits with them; but of the end of a job we want to hear.
  const size_t limit = ending_ || times_interrupted_ != 0 ? kMostUnwrittenAtEnd : OutputMerger::kMostUnwritten;
  const bool room = output_.merger.unwritten() < limit && error_output_.merger.unwritten() < limit;
  for (Host& host : hosts_) {
    if (!host.open) continue;
    const short events = static_cast<short>((room ? POLLIN : 0) | (host.link.connection->wants_to_write() ? POLLOUT : 0));
    if (events != 0) poller_.Watch(host.link.connection->fd(), events, [this, &host](short ready) { OnHost(host, ready); });
  }
  if (!ending_) poller_.Watch(input_.fd_to_watch(), POLLIN, [this](short) { OnInput(); });
}

int Launcher::MillisecondsToSleep() const {
  int shortest = input_.waits_for_terminal() ? static_cast<int>(kTerminalLook.count()) : -1;
  for (const auto& deadline : {give_up_at_, ending_ ? std::nullopt : time_out_at_, output_.merger.deadline(), error_output_.merger.deadline()}) {
    if (!deadline) continue;
    const int left = MillisecondsUntil(*deadline);
    shortest = shortest < 0 ? left : std::min(shortest, left);
  }
  return shortest;
}

void Launcher::Tick() {
  output_.merger.Tick(Clock::now());
  error_output_.merger.Tick(Clock::now());
  if (!ending_ && time_out_at_ && Clock::now() >= *time_out_at_) {
    EndJob(kTimedOut, "the job has run for " + std::to_string(options_.time_out->count()) + " s, as long as MPIEXEC_TIMEOUT allows", kGrace);
  }
}

void Launcher::OnHost(Host& host, short events) {
  Connection& connection = *host.link.connection;
  bool alive = true;
  if (events & POLLOUT) alive = connection.Write();
  // What the proxy said before it went comes first.
  if (events & ~POLLOUT) alive = connection.Read() && alive;
  while (host.open) {
    const std::optional<Frame> frame = connection.Next();
    if (!frame) break;
    OnFrame(host, *frame);
  }
  if (host.open && (!alive || connection.broken())) OnHostLost(host);
}

void Launcher::OnFrame(Host& host, const Frame& frame) {
  const int rank = frame.number;
  switch (frame.type) {
    case FrameType::kOutput:
      return output_.merger.Add(rank, frame.payload, Clock::now());
    case FrameType::kErrorOutput:
      return error_output_.merger.Add(rank, frame.payload, Clock::now());
    case FrameType::kInputTaken:
      return input_.Taken(static_cast<size_t>(frame.number));
    case FrameType::kInputClosed:
      return input_.Close();
    case FrameType::kFence:
      return OnFence(frame);
    case FrameType::kName:
      return OnName(host, frame);
    case FrameType::kDone:
      host.open = false;
      return;
    default:
      // A proxy is this program too; what it says of ranks that are not there is not worth a message.
      if (rank >= 0 && rank < plan_.size()) OnRankFrame(host, frame);
  }
}

void Launcher::OnRankFrame(const Host& host, const Frame& frame) {
  const std::string name = NameOf(frame.number);
  const auto [number, text] = ParseNumberAndText(frame.payload);
  switch (frame.type) {
    case FrameType::kExited:
      return OnExited(frame.number, ExitReport::Parse(frame.payload));
    case FrameType::kNotStarted:
      return EndJob(number, text + (host.link.is_local ? "" : " on " + host.link.host), milliseconds(0));
    case FrameType::kAbort:
      return EndJob(ExitCodeOf(number),
                    name + " aborted the job with code " + std::to_string(number) + (text.empty() ? "" : ": " + text), kGrace);
    case FrameType::kMisuse:
      return EndJob(1, name + " " + frame.payload, kGrace);
    case FrameType::kStuck:
      return OnStuck(frame.number);
    default:
      return;
  }
}

void Launcher::OnName(Host& host, const Frame& frame) {
  MessageReader reader;
  reader.Append(frame.payload);
  const std::optional<Message> question = reader.Next();
  if (question) host.link.connection->Send({FrameType::kName, frame.number, names_.Answer(*question).Serialize()});
}

void Launcher::OnExited(int rank, const ExitReport& report) {
  if (ended_++ == 0) first_gone_ = rank;
  output_.merger.Finish(rank);
  error_output_.merger.Finish(rank);
  if (ending_) return;  // by our own hand
  const int status = report.wait_status;
  if (WIFSIGNALED(status)) {
    const std::string core = WCOREDUMP(status) ? ", core dumped" : "";
    return EndJob(128 + WTERMSIG(status), NameOf(rank) + " was killed by " + SignalName(WTERMSIG(status)) + core, kGrace);
  }
  const int code = WEXITSTATUS(status);
  const std::string how = NameOf(rank) + " exited with status " + std::to_string(code);
  if (report.state == Server::State::kInitialised) return EndJob(code == 0 ? 1 : code, how + " without MPI_Finalize", kGrace);
  if (code != 0 && !exit_code_) {
    exit_code_ = code;
    Say(how);
  }
  if (in_fence_ != 0) OnStuck(rank);
}

// The ranks of one more host are in the barrier.
void Launcher::OnFence(const Frame& frame) {
  const auto put = ParseValues(frame.payload);
  if (!put) return;
  put_.insert(put_.end(), put->begin(), put->end());
  if (++in_fence_ == hosts_.size()) {
    SendToAll({FrameType::kFenceEnd, 0, SerializeValues(put_)});
    put_.clear();
    in_fence_ = 0;
  } else if (ended_ != 0) {
    OnStuck(first_gone_);
  }
}

void Launcher::OnStuck(int rank) {
  EndJob(exit_code_.value_or(1),
         NameOf(rank) + " has ended, but other ranks wait for it in MPI_Init, MPI_Finalize or another barrier", kGrace);
}

void Launcher::OnHostLost(Host& host) {
  host.open = false;
  if (host.link.is_local) {
    EndJob(1, "the process that runs this host's ranks (pid " + std::to_string(host.link.pid) + ") was killed", kGrace);
  } else {
    EndJob(1, "the connection to " + host.link.host + " ended", kGrace);
  }
}

void Launcher::OnSignal() {
  signalfd_siginfo info;
  while (read(signals_, &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo != SIGCHLD) PassOn(static_cast<int>(info.ssi_signo));
  }
}

void Launcher::PassOn(int number) {
  const bool interrupts = number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
  if (interrupts && ++times_interrupted_ == 2) {
    return EndJob(128 + number, "interrupted twice; the ranks are killed", milliseconds(0));
  }
  SendToAll({FrameType::kSignal, number});
  if (number != SIGTSTP) return;
  for (Host& host : hosts_) {
    if (host.open) host.link.connection->Drain(1000);
  }
  raise(SIGSTOP);
}

void Launcher::OnInput() {
  const std::string bytes = input_.Read();
  Host& host = hosts_[static_cast<size_t>(plan_.placement.host_of_rank[0])];
  if (host.open) host.link.connection->Send({FrameType::kInput, 0, bytes});
}

void Launcher::WriteStream(Stream& stream) {
  const int error = stream.merger.WriteTo(stream.fd);
  if (error == 0) return;
  stream.failed = true;
  stream.merger.Discard();
  if (&stream == &error_output_) return;  // nowhere to say it
  if (error == EPIPE) {
    return EndJob(128 + SIGPIPE, "nobody reads the standard output any more (" + std::string(std::strerror(error)) + ")", kGrace);
  }
  Say("cannot write the standard output: " + std::string(std::strerror(error)) +
      "; the ranks go on, what they write there is lost");
}

void Launcher::EndJob(int exit_code, const std::string& message, milliseconds grace) {
  if (!ending_ && !message.empty()) Say(message + (hosts_.empty() || ended_ == plan_.size() ? "" : "; the job ends"));
  if (!exit_code_) exit_code_ = exit_code;
  const auto give_up_at = Clock::now() + grace + kProxyTime;
  if (!give_up_at_ || give_up_at < *give_up_at_) give_up_at_ = give_up_at;
  ending_ = true;
  SendToAll({FrameType::kEnd, static_cast<int32_t>(grace.count())});
}

void Launcher::SendToAll(const Frame& frame) {
  for (Host& host : hosts_) {
    if (host.open) host.link.connection->Send(frame);
  }
}

// Waits for proxies and ssh, which end by themselves now; then nothing that descends from this process is left.
void Launcher::FinishChildren() {
  for (Host& host : hosts_) host.link.connection.reset();
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
  for (const pid_t pid : DescendantsOf(getpid())) kill(pid, SIGKILL);
}

void Launcher::Say(const std::string& message) { error_output_.merger.AddOwnLine("mpiexec: " + message); }

std::string Launcher::NameOf(int rank) const {
  std::string name = "rank " + std::to_string(rank);
  const size_t host = static_cast<size_t>(plan_.placement.host_of_rank[static_cast<size_t>(rank)]);
  if (plan_.placement.hosts.size() > 1) name += " on " + plan_.placement.hosts[host];
  const int program = plan_.program_of_rank[static_cast<size_t>(rank)];
  return name + " (" + options_.programs[static_cast<size_t>(program)].arguments[0] + ")";
}

}  // namespace weft::pmi
