// What ranks ask of mpiexec: to spawn a job, to leave one, and names.
#include <poll.h>

#include <algorithm>
#include <utility>

#include "pmi/launch/launcher.h"
#include "pmi/wire/dialect.h"
#include "pmi/wire/message.h"

namespace weft::pmi {
namespace {

constexpr size_t kMostJobs = 1024;  // at a time
constexpr int kMostOfAll = kMostRanks;  // ranks of all jobs at a time

Answer Refusal(std::string why, size_t processes = 0) { return {.code = 1, .why = std::move(why), .errors = std::vector<int>(processes, 1)}; }

size_t ProcessesOf(const ask::Spawn& spawn) {
  size_t count = 0;
  for (const SpawnCommand& command : spawn.commands) count += static_cast<size_t>(command.processes);
  return count;
}

}  // namespace

void Launcher::OnQuestion(Job& job, size_t host, const Frame& frame) {
  const auto dialect = Dialect::Counted(Dialect::Side::kLauncher);
  dialect->Append(frame.payload);
  const auto question = dialect->NextQuestion();
  if (!question) return;
  const Request& request = question->request;
  const Asker asker{host, job.number, frame.number, question->thread};
  if (const auto* spawn = std::get_if<ask::Spawn>(&request)) return StartSpawn(asker, *spawn);
  if (const auto* leave = std::get_if<ask::Disconnect>(&request)) return AnswerTo(asker, request, LeaveJob(job, frame.number, leave->job_id));
  AskNames(asker, request);
}

void Launcher::AskNames(const Asker& asker, const Request& request) {
  if (options_.name_file.empty()) return AnswerTo(asker, request, AnswerNames(request, asker.job));
  if (name_link_ == nullptr) return AnswerTo(asker, request, Refusal("the name server is gone"));
  const std::string ticket = std::to_string(next_name_ticket_++);
  name_link_->Ask(request, ticket);
  name_questions_.emplace(ticket, std::pair(asker, request));
}

// Where there is no name server: names of this mpiexec's jobs, and behind them those of the user's other jobs on this host.
Answer Launcher::AnswerNames(const Request& request, int job) {
  Answer answer = names_.Do(request, job);
  if (const auto* lookup = std::get_if<ask::Lookup>(&request); lookup != nullptr && answer.code != 0) {
    if (auto port = user_names_.Lookup(lookup->service)) return {.value = *std::move(port)};
  }
  if (answer.code != 0) return answer;
  if (const auto* publish = std::get_if<ask::Publish>(&request)) {
    if (user_names_.Publish(publish->service, publish->port)) published_[job].insert(publish->service);
  }
  if (const auto* unpublish = std::get_if<ask::Unpublish>(&request)) {
    user_names_.Unpublish(unpublish->service);
    for (auto& [publisher, services] : published_) services.erase(unpublish->service);
  }
  return answer;
}

void Launcher::OnNames(short events) {
  bool alive = true;
  if (events & POLLOUT) alive = name_link_->Write();
  if (alive && (events & ~POLLOUT)) alive = name_link_->Read();
  while (const auto answered = name_link_->Next()) {
    const auto found = name_questions_.find(answered->thread);
    if (found == name_questions_.end()) continue;  // of a job that has ended
    const auto [asker, request] = std::move(found->second);
    name_questions_.erase(found);
    if (answered->answer.code == 0) {
      if (const auto* publish = std::get_if<ask::Publish>(&request)) published_[asker.job].insert(publish->service);
      if (const auto* unpublish = std::get_if<ask::Unpublish>(&request)) published_[asker.job].erase(unpublish->service);
    }
    AnswerTo(asker, request, answered->answer);
  }
  if (!alive) LoseNames();
}

void Launcher::LoseNames() {
  name_link_.reset();
  Say("the name server of " + options_.name_file + " is gone; the job goes on");
  for (const auto& [ticket, question] : std::exchange(name_questions_, {})) {
    AnswerTo(question.first, question.second, Refusal("the name server is gone"));
  }
}

void Launcher::ForgetNamesOf(int job) {
  names_.Forget(job);
  for (const std::string& service : published_[job]) {
    if (name_link_ != nullptr) name_link_->Ask(ask::Unpublish{service}, {});
    user_names_.Unpublish(service);
  }
  published_.erase(job);
}

void Launcher::AnswerTo(const Asker& asker, const Request& request, const Answer& answer) {
  const std::string bytes = Dialect::Counted(Dialect::Side::kLauncher)->Write({request, asker.ticket}, answer);
  SendTo(hosts_[asker.host], {FrameType::kQuestion, asker.rank, bytes, asker.job});
}

// Proxies on new hosts are started meanwhile.
void Launcher::StartSpawn(const Asker& asker, const ask::Spawn& spawn) {
  const size_t processes = ProcessesOf(spawn);
  const auto refuse = [&](const std::string& why) {
    Say("job " + std::to_string(asker.job) + " rank " + std::to_string(asker.rank) + " cannot spawn: " + why);
    AnswerTo(asker, spawn, Refusal(why, processes));
  };
  const Job& parent = jobs_.at(asker.job);
  if (parent.ending) return refuse("the job ends");
  size_t ranks = processes;
  for (const auto& [number, job] : jobs_) ranks += static_cast<size_t>(job.plan.size());
  if (jobs_.size() >= kMostJobs) return refuse("there are " + std::to_string(jobs_.size()) + " jobs, which is the limit");
  if (ranks > kMostOfAll) return refuse(std::to_string(ranks) + " ranks in all jobs are more than " + std::to_string(kMostOfAll));

  Options options = options_;
  options.universe_size = universe_size_;
  auto plan = MakeSpawnPlan(spawn, options, environment_, directory_, next_job_, parent.id);
  if (!plan) return refuse(plan.error().message);
  for (const std::string& note : plan->notes) Say(note);
  Job& job = AddJob(next_job_++, *std::move(plan));
  job.asker = asker;
  job.spawner = {asker.job, asker.rank};
  job.meets_spawner = std::any_of(spawn.preput.begin(), spawn.preput.end(), [](const auto& pair) { return pair.first == kParentPort; });
  job.connected.insert(asker.job);
  jobs_.at(asker.job).connected.insert(job.number);
  AwaitHosts(job);
}

// All ranks of one more host run.
void Launcher::OnStarted(Job& job) {
  if (++job.started != job.hosts.size() || !job.asker) return;
  const bool partly = std::find(job.plan.errors.begin(), job.plan.errors.end(), 1) != job.plan.errors.end();
  Answer answer{.value = job.id};
  if (partly) answer.errors = job.plan.errors;
  AnswerTo(*std::exchange(job.asker, std::nullopt), ask::Spawn{}, answer);
}

// What was started is ended; the asker goes on.
void Launcher::FailSpawn(Job& job, const std::string& why) {
  const Asker asker = *std::exchange(job.asker, std::nullopt);
  Say("job " + std::to_string(asker.job) + " rank " + std::to_string(asker.rank) + " cannot spawn: " + why);
  AnswerTo(asker, ask::Spawn{}, Refusal(why, job.plan.errors.size()));
  job.connected.clear();
  job.never_was = true;
  if (Job* parent = Find(asker.job)) parent->connected.erase(job.number);
  EndOne(job, std::chrono::milliseconds(0));
}

// Two jobs that a spawn connected are apart when one side has left: all ranks of the job that was spawned, of which each was in it, or the
// one rank of the other that mpiexec knows to have been. Then neither's failure is the other's any more.
Answer Launcher::LeaveJob(Job& job, int rank, const std::string& job_id) {
  const auto found = std::find_if(jobs_.begin(), jobs_.end(), [&](const auto& entry) { return entry.second.id == job_id; });
  if (found == jobs_.end()) return {};  // it has ended
  Job& other = found->second;
  if (job.spawner.first != other.number && other.spawner.first != job.number) return Refusal("job " + Printable(job_id) + " is not connected");
  bool apart = other.spawner == std::pair(job.number, rank);
  if (job.spawner.first == other.number) {
    job.left.insert(rank);
    apart = job.left.size() == static_cast<size_t>(job.plan.size());
  }
  if (!apart) return {};
  job.connected.erase(other.number);
  other.connected.erase(job.number);
  return {};
}

}  // namespace weft::pmi
