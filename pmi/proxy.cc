#include "pmi/proxy.h"

#include <signal.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "base/file_limit.h"
#include "base/job_secret.h"
#include "pmi/event_poller.h"
#include "pmi/remote_start.h"
#include "pmi/server.h"
#include "pmi/spawn.h"

namespace weft::pmi {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr size_t kMostUnsent = 1 << 20;     // bytes for mpiexec, beyond which the ranks' output waits in their pipes
constexpr size_t kMostAfterExit = 2 << 20;  // bytes read from a pipe whose rank ended; a pipe holds at most 1 MiB
constexpr milliseconds kGrace{2000};        // from SIGTERM to SIGKILL when nobody says otherwise
constexpr milliseconds kOrphanLook{10};     // between two looks for what ranks left behind
constexpr milliseconds kFarewell{5000};     // for mpiexec to take the last bytes

class Proxy final : private Server::Owner {
 public:
  Proxy(std::unique_ptr<Connection> connection, const std::optional<JobSecret>& secret)
      : connection_(std::move(connection)), secret_(secret) {}
  void Run();

 private:
  // Server::Owner
  void Send(int rank, const std::string& bytes) override;
  void OnAbort(int rank, int exit_code, const std::string& message) override;
  void OnMisuse(int rank, const std::string& what) override;
  void OnFence(KeyValues put) override;
  void OnNameQuestion(int rank, const Message& question) override;

  struct Rank {
    int number = 0;
    Spawned files;
    bool running = true;
    bool output_waits = false;  // in the rank's pipes: they are not watched
    Outbox to_pmi;
    Outbox to_input;
    bool input_ends = false;  // behind to_input
  };

  void TakeSignals();
  void WatchOwn();
  bool WatchRank(Rank& rank);
  void WatchOutput(Rank& rank);
  void CloseFile(int* fd);
  void MakeRoom();
  int MillisecondsToSleep() const;
  void OnConnection(uint32_t events);
  void OnSignal();
  void Handle(const Frame& frame);
  void Start(const Frame& frame);
  bool StartRank(const StartOrder& order, size_t local_rank);
  void ReapChildren();
  void Ended(Rank& rank, int status);
  void Forward(Rank& rank, int* fd, FrameType type, size_t most = 65536);
  void ReadPmi(Rank& rank);
  void EndFence(const KeyValues& put);
  void CheckWhetherStuck();
  void Tell(const Frame& frame);
  void WritePmi(Rank& rank);
  void WriteInput(Rank& rank);
  void CloseInput(Rank& rank);
  void SignalAll(int number);
  void End(milliseconds grace);
  void KillAll();
  void ClearOrphans();
  Rank* Find(int number);

  std::unique_ptr<Connection> connection_;
  const std::optional<JobSecret> secret_;  // what the order does not say, where it goes over the network
  EventPoller poller_;
  bool room_ = true;  // for more output on the way to mpiexec
  bool connected_ = true;
  std::unique_ptr<Server> server_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  bool fence_complete_ = false;  // on the only host: EndFence() is due
  bool stuck_ = false;
  bool whole_job_ = false;  // all ranks are on this host
  size_t running_ = 0;
  bool started_ = false;
  std::optional<Clock::time_point> kill_at_;  // after End()
  bool orphans_told_ = false;                 // what the ranks left behind has been sent SIGTERM
  bool done_ = false;
  int signals_ = -1;
};

void Proxy::Run() {
  TakeSignals();
  WatchOwn();
  while (!done_) {
    poller_.Change(connected_ ? connection_->fd() : -1, EPOLLIN | (connection_->wants_to_write() ? EPOLLOUT : 0u));
    MakeRoom();
    poller_.Wait(MillisecondsToSleep());
    ReapChildren();
    CheckWhetherStuck();
    if (kill_at_ && Clock::now() >= *kill_at_) KillAll();
    if (started_ && running_ == 0) ClearOrphans();
    if (!started_ && !connected_) done_ = true;
  }
  Tell({FrameType::kDone});
  if (connected_) {
    connection_->Drain(static_cast<int>(kFarewell.count()));
  }
  close(signals_);
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
    done_ = true;
  }
}

bool Proxy::WatchRank(Rank& rank) {
  const auto on_pmi = [this, &rank](uint32_t events) {
    if (events & EPOLLOUT) WritePmi(rank);
    if (events & ~static_cast<uint32_t>(EPOLLOUT)) ReadPmi(rank);
  };
  rank.output_waits = true;
  WatchOutput(rank);
  // Without anything to write, only the reader's end is looked for.
  return poller_.Watch(rank.files.pmi, EPOLLIN, on_pmi) && poller_.Watch(rank.files.input, 0, [this, &rank](uint32_t) { WriteInput(rank); });
}

// Looks at the rank's output, or, while there is no room for it, not: its pipe would be ready all the time.
void Proxy::WatchOutput(Rank& rank) {
  if (rank.output_waits != room_) return;
  rank.output_waits = !room_;
  const auto watch = [&](int* fd, FrameType type) {
    if (room_) {
      poller_.Watch(*fd, EPOLLIN, [this, &rank, fd, type](uint32_t) { Forward(rank, fd, type); });
    } else {
      poller_.Forget(*fd);
    }
  };
  watch(&rank.files.output, FrameType::kOutput);
  watch(&rank.files.error_output, FrameType::kErrorOutput);
}

void Proxy::MakeRoom() {
  const bool room = connection_->unsent() < kMostUnsent;
  if (std::exchange(room_, room) == room) return;
  for (const auto& rank : ranks_) WatchOutput(*rank);
}

void Proxy::CloseFile(int* fd) {
  if (*fd < 0) return;
  poller_.Forget(*fd);
  close(std::exchange(*fd, -1));
}

int Proxy::MillisecondsToSleep() const {
  if (started_ && running_ == 0) return static_cast<int>(kOrphanLook.count());
  if (!kill_at_) return -1;
  const auto left = std::chrono::ceil<milliseconds>(*kill_at_ - Clock::now()).count();
  return static_cast<int>(std::max<long>(left, 0));
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
  End(kGrace);  // mpiexec is gone
}

void Proxy::OnSignal() {
  signalfd_siginfo info;
  while (read(signals_, &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo != SIGCHLD) End(kGrace);
  }
}

Proxy::Rank* Proxy::Find(int number) {
  for (const auto& rank : ranks_) {
    if (rank->number == number) return rank.get();
  }
  return nullptr;
}

void Proxy::Handle(const Frame& frame) {
  Rank* rank = Find(frame.number);
  switch (frame.type) {
    case FrameType::kStart:
      return Start(frame);
    case FrameType::kName:
      if (rank != nullptr) Send(rank->number, frame.payload);
      return;
    case FrameType::kFenceEnd:
      if (const auto put = ParseValues(frame.payload); put && server_ != nullptr) return EndFence(*put);
      connected_ = false;
      return;
    case FrameType::kInput:
      rank = Find(0);
      if (rank == nullptr || rank->files.input < 0) return;
      rank->to_input.Add(frame.payload);
      rank->input_ends = frame.payload.empty();
      return WriteInput(*rank);
    case FrameType::kSignal:
      return SignalAll(frame.number);
    case FrameType::kEnd:
      return End(milliseconds(frame.number));
    default:
      connected_ = false;  // not for a proxy
  }
}

void Proxy::Start(const Frame& frame) {
  std::optional<StartOrder> order = StartOrder::Parse(frame.payload);
  if (started_ || !order) {
    connected_ = false;
    return;
  }
  started_ = true;
  if (secret_) order->values.emplace_back("weft_secret", secret_->ToHex());
  if (order->host_address.empty()) order->host_address = OwnAddress(connection_->fd());
  Server::Setup setup{order->kvs_name, order->job_size, order->universe_size, {}, order->values};
  for (const StartOrder::Rank& rank : order->ranks) setup.application_of[rank.rank] = rank.program;
  whole_job_ = order->ranks.size() == static_cast<size_t>(order->job_size);
  server_.reset(new Server(std::move(setup), this));  // a private base: make_unique cannot
  for (size_t i = 0; i < order->ranks.size(); ++i) {
    if (!StartRank(*order, i)) return End(milliseconds(0));
  }
}

bool StartsWithName(const std::string& entry, const std::string& name) { return entry.starts_with(name + "="); }

bool Proxy::StartRank(const StartOrder& order, size_t local_rank) {
  const StartOrder::Rank& ordered = order.ranks[local_rank];
  const StartOrder::Program& program = order.programs[static_cast<size_t>(ordered.program)];
  const std::string number = std::to_string(ordered.rank);
  SpawnRequest request{program.arguments, program.environment, program.directory, ordered.rank == 0};
  for (const std::string& entry :
       {"PMI_RANK=" + number, "PMI_ID=" + number, "PMI_SIZE=" + std::to_string(order.job_size),
        "MPI_LOCALRANKID=" + std::to_string(local_rank), "MPI_LOCALNRANKS=" + std::to_string(order.ranks.size())}) {
    request.environment.push_back(entry);
  }
  const auto has = [&](const char* name) {
    return std::any_of(request.environment.begin(), request.environment.end(),
                       [&](const std::string& entry) { return StartsWithName(entry, name); });
  };
  if (!order.host_address.empty() && !has("WEFT_MPI_HOST")) request.environment.push_back("WEFT_MPI_HOST=" + order.host_address);

  auto spawned = Spawn(request);
  if (!spawned) {
    const LaunchError& error = spawned.error();
    Tell({FrameType::kNotStarted, ordered.rank, NumberAndText(error.exit_code, error.message)});
    return false;
  }
  auto rank = std::make_unique<Rank>();
  rank->number = ordered.rank;
  rank->files = *spawned;
  ranks_.push_back(std::move(rank));
  ++running_;
  if (WatchRank(*ranks_.back())) return true;
  Tell({FrameType::kNotStarted, ordered.rank, NumberAndText(1, "cannot watch over a rank: " + DescribeShortage(errno))});
  return false;
}

void Proxy::ReapChildren() {
  int status = 0;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    for (const auto& rank : ranks_) {
      if (rank->running && rank->files.pid == pid) Ended(*rank, status);
    }
  }
}

void Proxy::Ended(Rank& rank, int status) {
  rank.running = false;
  --running_;
  // What it said last comes before the news of its end. Processes that it left behind may still hold the other ends.
  ReadPmi(rank);
  Forward(rank, &rank.files.output, FrameType::kOutput, kMostAfterExit);
  Forward(rank, &rank.files.error_output, FrameType::kErrorOutput, kMostAfterExit);
  CloseInput(rank);
  Tell({FrameType::kExited, rank.number, ExitReport{status, server_->state(rank.number)}.Serialize()});
}

void Proxy::Tell(const Frame& frame) {
  if (connected_) connection_->Send(frame);
}

void Proxy::ReadPmi(Rank& rank) {
  char block[65536];
  while (rank.files.pmi >= 0) {
    const long count = ReadSome(rank.files.pmi, block, sizeof(block));
    if (count == -EAGAIN) break;
    if (count <= 0) return CloseFile(&rank.files.pmi);
    server_->Receive(rank.number, {block, static_cast<size_t>(count)});
  }
  if (fence_complete_) EndFence({});
}

void Proxy::EndFence(const KeyValues& put) {
  fence_complete_ = false;
  server_->EndFence(put);
}

// A rank that is gone never enters the barrier that others are in.
void Proxy::CheckWhetherStuck() {
  if (server_ == nullptr || server_->waiting() == 0 || running_ == ranks_.size() || stuck_) return;
  for (const auto& rank : ranks_) {
    if (rank->running) continue;
    stuck_ = true;
    return Tell({FrameType::kStuck, rank->number});
  }
}

void Proxy::Send(int number, const std::string& bytes) {
  Rank* rank = Find(number);
  if (rank == nullptr || rank->files.pmi < 0) return;
  rank->to_pmi.Add(bytes);
  WritePmi(*rank);
}

void Proxy::OnAbort(int rank, int exit_code, const std::string& message) {
  Tell({FrameType::kAbort, rank, NumberAndText(exit_code, message)});
}

void Proxy::OnMisuse(int rank, const std::string& what) { Tell({FrameType::kMisuse, rank, what}); }

void Proxy::OnFence(KeyValues put) {
  if (whole_job_) {
    fence_complete_ = true;  // the server may not be re-entered from here
  } else {
    Tell({FrameType::kFence, 0, SerializeValues(put)});
  }
}

void Proxy::OnNameQuestion(int rank, const Message& question) { Tell({FrameType::kName, rank, question.Serialize()}); }

// Sends on what the descriptor has, `most` bytes or a little more.
void Proxy::Forward(Rank& rank, int* fd, FrameType type, size_t most) {
  char block[65536];
  for (size_t done = 0; *fd >= 0 && done < most;) {
    const long count = ReadSome(*fd, block, sizeof(block));
    if (count == -EAGAIN) return;
    if (count <= 0) return CloseFile(fd);
    Tell({type, rank.number, std::string(block, static_cast<size_t>(count))});
    done += static_cast<size_t>(count);
  }
}

void Proxy::WritePmi(Rank& rank) {
  if (rank.files.pmi < 0) return;
  if (rank.to_pmi.WriteTo(rank.files.pmi) != 0) return CloseFile(&rank.files.pmi);
  poller_.Change(rank.files.pmi, EPOLLIN | (rank.to_pmi.empty() ? 0u : EPOLLOUT));
}

void Proxy::WriteInput(Rank& rank) {
  if (rank.files.input < 0) return;
  const size_t before = rank.to_input.size();
  const bool open = rank.to_input.WriteTo(rank.files.input) == 0;
  const size_t taken = before - rank.to_input.size();
  if (taken != 0) Tell({FrameType::kInputTaken, static_cast<int32_t>(taken)});
  if (rank.to_input.empty() && rank.input_ends) return CloseFile(&rank.files.input);
  pollfd entry{rank.files.input, 0, 0};
  if (!open || (poll(&entry, 1, 0) > 0 && (entry.revents & POLLERR))) return CloseInput(rank);
  poller_.Change(rank.files.input, rank.to_input.empty() ? 0u : EPOLLOUT);
}

// Nobody reads it any more.
void Proxy::CloseInput(Rank& rank) {
  if (rank.files.input < 0) return;
  CloseFile(&rank.files.input);
  rank.to_input.Clear();
  Tell({FrameType::kInputClosed, rank.number});
}

void Proxy::SignalAll(int number) {
  // The kernel drops SIGTSTP where no shell could continue the process.
  if (number == SIGTSTP) number = SIGSTOP;
  for (const auto& rank : ranks_) {
    if (rank->running) kill(-rank->files.pid, number);
  }
}

void Proxy::End(milliseconds grace) {
  const auto deadline = Clock::now() + grace;
  if (kill_at_ && *kill_at_ <= deadline) return;
  if (!kill_at_) SignalAll(SIGTERM);
  SignalAll(SIGCONT);  // a stopped process cannot end itself
  kill_at_ = deadline;
  if (!started_) done_ = true;
}

void Proxy::KillAll() {
  SignalAll(SIGKILL);
  for (const pid_t pid : DescendantsOf(getpid())) kill(pid, SIGKILL);
  kill_at_ = Clock::now() + milliseconds(100);  // again, for what was started meanwhile
}

// All ranks have ended: what they started and left ends with the job.
void Proxy::ClearOrphans() {
  const std::vector<pid_t> orphans = DescendantsOf(getpid());
  if (orphans.empty()) {
    done_ = true;
    for (const auto& rank : ranks_) {
      Forward(*rank, &rank->files.output, FrameType::kOutput, kMostAfterExit);
      Forward(*rank, &rank->files.error_output, FrameType::kErrorOutput, kMostAfterExit);
    }
  } else if (!orphans_told_) {
    orphans_told_ = true;
    for (const pid_t pid : orphans) kill(pid, SIGTERM);
    for (const pid_t pid : orphans) kill(pid, SIGCONT);
    if (!kill_at_) kill_at_ = Clock::now() + kGrace;
  }
}

}  // namespace

void RunProxy(std::unique_ptr<Connection> connection, const std::optional<JobSecret>& secret) {
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
