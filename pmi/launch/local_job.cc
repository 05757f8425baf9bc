#include "pmi/launch/local_job.h"

#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/file_limit.h"
#include "base/hex.h"
#include "pmi/launch/signal_name.h"
#include "pmi/wire/dialect.h"

namespace weft::pmi {
namespace {

constexpr size_t kMostUnread = 1 << 20;     // bytes for a rank that does not read what it is answered; then its next questions wait
constexpr std::chrono::milliseconds kStartRound{10};  // in which ranks are started, one at least, before the proxy looks at what else there is
constexpr size_t kMostAtEnd = 2 << 20;  // bytes read from a pipe whose rank ends; a pipe holds at most 1 MiB

// "SIGUSR1" or "USR1". 0: there is none of that name.
int SignalOf(const std::string& name) {
  const std::string_view abbreviation = std::string_view(name).substr(name.starts_with("SIG") ? 3 : 0);
  for (int number = 1; number < SIGRTMIN; ++number) {
    const char* known = SignalAbbreviation(number);
    if (known != nullptr && abbreviation == known) return number;
  }
  return 0;
}

bool StartsWithName(const std::string& entry, const std::string& name) { return entry.starts_with(name + "="); }

}  // namespace

bool LocalJob::WatchRank(Rank& rank) {
  const auto on_pmi = [this, &rank](uint32_t events) {
    if (events & EPOLLOUT) GoOn(rank);
    if (events & ~static_cast<uint32_t>(EPOLLOUT)) ReadPmi(rank);
  };
  rank.output_waits = true;
  WatchOutput(rank);
  // Without anything to write, only the reader's end is looked for.
  return proxy_->poller().Watch(rank.files.pmi, EPOLLIN, on_pmi) &&
         proxy_->poller().Watch(rank.files.input, 0, [this, &rank](uint32_t) { WriteInput(rank); });
}

// Looks at the rank's output, or, while there is no room for it, not: its pipe would be ready all the time.
void LocalJob::WatchOutput(Rank& rank) {
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

void LocalJob::CloseFile(int* fd) {
  if (*fd < 0) return;
  proxy_->poller().Forget(*fd);
  close(std::exchange(*fd, -1));
}

LocalJob::Rank* LocalJob::Find(int number) const {
  const auto found = by_number_.find(number);
  return found == by_number_.end() ? nullptr : found->second;
}

void LocalJob::Tell(FrameType type, int number, std::string payload) { proxy_->Tell({type, number, std::move(payload), number_}); }

std::vector<pid_t> LocalJob::Leaders() const {
  std::vector<pid_t> pids;
  for (const auto& rank : ranks_) pids.push_back(rank->files.pid);
  return pids;
}

void LocalJob::GiveInput(const std::string& bytes) {
  Rank* rank = Find(0);
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
  starting_.emplace(Starting{});
  if (const std::string problem = MakeBinder(order, &starting_->binder); !problem.empty()) {
    Tell(FrameType::kNotStarted, order.ranks.empty() ? 0 : order.ranks[0].rank, NumberAndText(1, problem));
    return End(milliseconds(0));
  }
  starting_->others = proxy_->RanksRunning();
  starting_->order = std::move(order);
  GoOnStarting();
}

void LocalJob::GoOnStarting() {
  const auto until = Clock::now() + kStartRound;
  while (starting_ && starting_->next < starting_->order.ranks.size()) {
    if (!StartNext()) return End(milliseconds(0));
    if (Clock::now() >= until) break;
  }
  if (!starting_) return;
  if (starting_->binder != nullptr) starting_->binder->Unbind();
  if (starting_->next < starting_->order.ranks.size()) return;
  starting_.reset();
  Tell(FrameType::kStarted);
}

// Whether it could be.
bool LocalJob::StartNext() {
  Starting& starting = *starting_;
  const size_t at = starting.next++;
  if (const std::string problem = starting.binder == nullptr ? "" : starting.binder->Bind(starting.others + at); !problem.empty()) {
    Tell(FrameType::kNote, 0, "the ranks are not bound: " + problem);
    starting.binder.reset();
  }
  if (!StartRank(starting.order, at)) return false;
  for (const int number : starting.signals) kill(-ranks_.back()->files.pid, number);
  return true;
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
  auto rank = std::make_unique<Rank>();
  rank->number = ordered.rank;
  rank->files = *spawned;
  by_number_.emplace(rank->number, rank.get());
  ranks_.push_back(std::move(rank));
  ++running_;
  if (WatchRank(*ranks_.back())) return true;
  Tell(FrameType::kNotStarted, ordered.rank, NumberAndText(1, "cannot watch a rank: " + DescribeShortage(errno)));
  return false;
}

void LocalJob::Ended(pid_t pid, int status) {
  const auto found = std::find_if(ranks_.begin(), ranks_.end(), [&](const auto& rank) { return rank->running && rank->files.pid == pid; });
  if (found == ranks_.end()) return;
  Rank& rank = **found;
  rank.running = false;
  --running_;
  server_->Receive(rank.number, {});
  ReadPmi(rank);
  ForwardLastWords(rank);
  CloseInput(rank);
  proxy_->OnRankEnded(number_);
  Tell(FrameType::kExited, rank.number, ExitReport{status, server_->state(rank.number)}.Serialize());
}

void LocalJob::ReadPmi(Rank& rank) {
  char block[65536];
  while (rank.files.pmi >= 0 && HasRoom(rank.number)) {
    const long count = ReadSome(rank.files.pmi, block, sizeof(block));
    if (count == -EAGAIN) break;
    if (count <= 0) return CloseFile(&rank.files.pmi);
    server_->Receive(rank.number, {block, static_cast<size_t>(count)});
  }
  if (fence_complete_) EndFence({});
}

// What the rank asked while there was no room for the answers.
void LocalJob::GoOn(Rank& rank) {
  WritePmi(rank);
  server_->Receive(rank.number, {});
  if (fence_complete_) EndFence({});
}

void LocalJob::EndFence(const KeyValues& put) {
  fence_complete_ = false;
  server_->EndFence(put);
}

void LocalJob::TellDeaths(int job, const std::vector<int>& ranks) {
  if (server_ != nullptr) server_->TellDeaths(ranks, job == number_ ? std::string() : HexOf(proxy_->SecretOf(job).Id()));
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
  Rank* rank = Find(number);
  if (rank == nullptr || rank->files.pmi < 0 || !rank->running) return;
  rank->to_pmi.Add(bytes);
  WritePmi(*rank);
}

bool LocalJob::HasRoom(int number) const {
  const Rank* rank = Find(number);
  return rank == nullptr || !rank->running || rank->to_pmi.size() < kMostUnread;
}

void LocalJob::OnAbort(int number, int exit_code, const std::string& message) {
  SpeakLast(number);
  Tell(FrameType::kAbort, number, NumberAndText(exit_code, message));
}

void LocalJob::OnMisuse(int number, const std::string& what) {
  SpeakLast(number);
  Tell(FrameType::kMisuse, number, what);
}

const Server::Space* LocalJob::SpaceOf(const std::string& job_id) { return proxy_->SpaceOf(job_id); }

void LocalJob::OnFence(KeyValues put) {
  if (whole_job_) {
    fence_complete_ = true;  // the server may not be re-entered from here
  } else if (const size_t size = SizeOfValues(put); size > FrameReader::kLongestPayload) {
    OnMisuse(ranks_.front()->number, "and the others of its host put " + TooMuchPut(size));
  } else {
    proxy_->EnterFence(number_, std::move(put));
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
  const Rank* rank = Find(number);
  const int signal = SignalOf(name);
  if (rank != nullptr && rank->running && signal > 0) kill(rank->files.pid, signal);
}

// Sends on what the descriptor has, `most` bytes or a little more.
void LocalJob::Forward(Rank& rank, int* fd, FrameType type, size_t most) {
  char block[65536];
  for (size_t done = 0; *fd >= 0 && done < most;) {
    const long count = ReadSome(*fd, block, sizeof(block));
    if (count == -EAGAIN) return;
    if (count <= 0) return CloseFile(fd);
    Tell(type, rank.number, std::string(block, static_cast<size_t>(count)));
    done += static_cast<size_t>(count);
  }
}

// What it has written comes before the news of how it ends, also where there is no room for output. Processes that it leaves behind may hold the other
// ends for longer.
void LocalJob::ForwardLastWords(Rank& rank) {
  Forward(rank, &rank.files.output, FrameType::kOutput, kMostAtEnd);
  Forward(rank, &rank.files.error_output, FrameType::kErrorOutput, kMostAtEnd);
}

// Once: what is forwarded without room is kept in memory, and who aborts may do so over and over.
void LocalJob::SpeakLast(int number) {
  Rank* const rank = Find(number);
  if (rank != nullptr && !std::exchange(rank->spoke_last, true)) ForwardLastWords(*rank);
}

void LocalJob::WritePmi(Rank& rank) {
  if (rank.files.pmi < 0) return;
  if (rank.to_pmi.WriteTo(rank.files.pmi) != 0) return CloseFile(&rank.files.pmi);
  const bool room = HasRoom(rank.number);
  proxy_->poller().Change(rank.files.pmi, (room ? EPOLLIN : 0u) | (rank.to_pmi.empty() ? 0u : EPOLLOUT));
}

void LocalJob::WriteInput(Rank& rank) {
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
void LocalJob::CloseInput(Rank& rank) {
  if (rank.files.input < 0) return;
  CloseFile(&rank.files.input);
  rank.to_input.Clear();
  Tell(FrameType::kInputClosed, rank.number);
}

void LocalJob::SignalAll(int number) {
  // The kernel drops SIGTSTP where no shell could continue the process.
  if (number == SIGTSTP) number = SIGSTOP;
  if (starting_) starting_->signals.push_back(number);
  for (const auto& rank : ranks_) {
    if (rank->running) kill(-rank->files.pid, number);
  }
}

void LocalJob::End(milliseconds grace) {
  const auto deadline = Clock::now() + grace;
  starting_.reset();  // the rest is not started
  if (kill_at_ && *kill_at_ <= deadline) return;
  if (!kill_at_) {
    if (server_ != nullptr) server_->Announce({"abort", {}});
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
      ForwardLastWords(*rank);
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

}  // namespace weft::pmi
