#include "pmi/client/launched.h"

#include <algorithm>
#include <utility>

#include "pmi/wire/challenge.h"

namespace weft::pmi {
namespace {

constexpr size_t kLongestReason = 1000;  // bytes

// " (why)", or nothing.
std::string Reason(const Answer& answer) { return answer.why.empty() ? std::string() : " (" + Printable(answer.why, kLongestReason) + ")"; }

}  // namespace

std::string Launched::AskFor(const Request& request, const std::string& refusal) {
  const auto done = talk_.Ask(request);
  if (!done) return done.error().message;
  return done->answer.code == 0 ? std::string() : "the launcher " + refusal + Reason(done->answer);
}

std::string Launched::Initialise() {
  spawned_ = place_.spawned;
  std::string problem = talk_.Handshake();
  if (!problem.empty()) return "cannot speak with the launcher by PMI_SOCKTYPE=OpenSSL: " + problem;
  if (place_.by_port && place_.version == 1) {
    const auto introduced = talk_.Ask(ask::Introduce{.rank = place_.rank});
    if (!introduced) return introduced.error().message;
    rank_ = introduced->answer.identity.rank;
    size_ = introduced->answer.identity.size;
  } else {
    rank_ = place_.rank.value_or(-1);
    size_ = place_.size.value_or(0);
  }
  problem = Greet();
  if (problem.empty()) problem = talk_.version() == 1 ? InitialiseText() : InitialiseCounted();
  return problem;
}

// Agrees on the version.
std::string Launched::Greet() {
  for (const int version : {place_.version, 3 - place_.version}) {
    const auto ready = talk_.Ask(version == 1 ? ask::Init{1, 1} : ask::Init{2, 0});
    if (!ready) return ready.error().message;
    const bool same = ready->answer.number == version || (version == 1 && ready->answer.number < 0);
    if (ready->answer.code == 0 && same) {
      if (version == 2) talk_.SpeakCounted(!place_.slurm);
      return {};
    }
    // One that knows nothing but version 2 says so in its refusal. Slurm, too, but another word then ends its daemon.
    const bool retry = version == 1 && place_.version == 1 && ready->answer.number == 2 && !place_.slurm;
    if (!retry) return "the launcher refuses PMI version " + std::to_string(version) + ": '" + ready->text + "'";
  }
  return "the launcher refuses both versions of PMI";
}

std::string CheckPlace(int rank, int size) {
  if (size >= 1 && rank >= 0 && rank < size) return {};
  return "the launcher made this process rank " + std::to_string(rank) + " of " + std::to_string(size);
}

std::string Launched::InitialiseText() {
  std::string problem = CheckPlace(rank_, size_);
  if (problem.empty()) problem = ReadMaxes();
  if (problem.empty()) problem = ReadNumber(ask::Application{}, &appnum_);
  if (problem.empty()) problem = ReadNumber(ask::UniverseSize{}, &universe_size_);
  if (problem.empty()) problem = ReadJobId();
  return problem;
}

std::string Launched::InitialiseCounted() {
  ask::Introduce introduce{place_.rank, place_.job_id, !place_.slurm, place_.secret.empty() || place_.secured ? "" : kChallengeMethod};
  auto done = talk_.Ask(introduce);
  if (done && done->answer.challenge) done = talk_.Ask(ask::Prove{ProofFor(place_.secret, *done->answer.challenge)});
  if (!done) return done.error().message;
  if (done->answer.code != 0) return "the launcher refuses this process" + Reason(done->answer);
  const Identity& identity = done->answer.identity;
  rank_ = identity.rank;
  size_ = identity.size;
  appnum_ = identity.application;
  spawned_ = spawned_ || !identity.spawner.empty();
  std::string problem = CheckPlace(rank_, size_);
  if (problem.empty()) problem = ReadJobId();
  if (!problem.empty()) return problem;
  const auto universe = JobAttribute("universeSize");
  if (!universe) return universe.error().message;
  universe_size_ = std::max(-1, ParseInt(universe->value_or("-1")).value_or(-1));
  return {};
}

std::string Launched::ReadMaxes() {
  const auto done = talk_.Ask(ask::Maxes{});
  if (!done) return done.error().message;
  limits_ = done->answer.limits;
  if (limits_.key < 2 || limits_.value < 2) return "the launcher allows nothing: '" + done->text + "'";
  return {};
}

// A number that the launcher need not know ("infinite", -1): -1.
std::string Launched::ReadNumber(const Request& request, int* number) {
  const auto done = talk_.Ask(request);
  if (!done) return done.error().message;
  *number = done->answer.code == 0 ? std::max(-1, done->answer.number) : -1;
  return {};
}

std::string Launched::ReadJobId() {
  const auto done = talk_.Ask(ask::JobId{});
  if (!done) return done.error().message;
  kvs_name_ = done->answer.value.value_or("");
  return kvs_name_.empty() ? "the launcher answered the question for the job's name with '" + done->text + "'" : std::string();
}

std::string Launched::CheckText(const char* what, const std::string& text) const {
  // Lines in PMI-1; in PMI-2 Slurm and hydra 4.0 cut a value off at a semicolon, whether doubled or not.
  const auto bad = [&](char c) { return talk_.version() == 1 ? static_cast<unsigned char>(c) < ' ' && c != '\t' : c == ';' && place_.slurm; };
  if (std::none_of(text.begin(), text.end(), bad)) return {};
  return std::string("the PMI ") + what + " '" + Printable(text) + "' contains " +
         (talk_.version() == 1 ? "a line end or another control character" : "a semicolon");
}

std::string Launched::CheckKey(const std::string& key) const {
  const size_t longest = static_cast<size_t>(limits_.key - 1);
  if (key.empty()) return "an empty PMI key";
  if (key.size() > longest) {
    return "a PMI key of " + std::to_string(key.size()) + " bytes, where the launcher allows " + std::to_string(longest) + ": " + Printable(key);
  }
  if (std::any_of(key.begin(), key.end(), [](char c) { return static_cast<unsigned char>(c) <= ' ' || static_cast<unsigned char>(c) >= 0x7f; })) {
    return "the PMI key '" + Printable(key) + "' contains a blank or a byte that is not printable";
  }
  if (key.find_first_of("=;") != std::string::npos) return "the PMI key " + Printable(key) + " contains '=' or ';'";
  return {};
}

std::string Launched::CheckValue(const std::string& value) const {
  if (value.size() > max_value_length()) {
    return "a PMI value of " + std::to_string(value.size()) + " bytes, where the launcher allows " + std::to_string(max_value_length()) + ": " +
           Printable(value);
  }
  if (talk_.version() == 2) {
    return value.find(';') == std::string::npos ? std::string()
                                                 : "the PMI value '" + Printable(value) + "' contains a semicolon, at which some launchers cut it off";
  }
  if (std::any_of(value.begin(), value.end(), [](char c) { return static_cast<unsigned char>(c) <= ' ' || static_cast<unsigned char>(c) >= 0x7f; })) {
    return "the PMI value '" + Printable(value) + "' contains a blank or a byte that is not printable";
  }
  return {};
}

std::string Launched::Put(const std::string& key, const std::string& value) {
  if (std::string problem = CheckKey(key); !problem.empty()) return problem;
  if (std::string problem = CheckValue(value); !problem.empty()) return problem;
  return AskFor(ask::Put{kvs_name_, key, value}, "refuses the key " + key);
}

Result<std::string, PmiError> Launched::GetFrom(const std::string& job_id, const std::string& key) {
  if (std::string problem = CheckKey(key); !problem.empty()) return PmiError{std::move(problem)};
  // What the launcher itself has to say is an attribute of the job in PMI-2.
  const bool attribute = talk_.version() == 2 && job_id == kvs_name_ && key.starts_with("PMI_");
  const auto done = talk_.Ask(attribute ? Request(ask::GetJobAttribute{key}) : Request(ask::Get{job_id, key}));
  if (!done) return done.error();
  if (done->answer.code != 0) return PmiError{"no process put the key " + key + Reason(done->answer)};
  if (done->answer.value) return *done->answer.value;
  return PmiError{talk_.version() == 2 ? "no process put the key " + key : "the launcher answered without a value for the key " + key};
}

void Launched::Abort(int exit_code, const std::string& message) {
  (void)talk_.Tell(ask::Abort{exit_code, message});  // the caller exits in any case
}

std::string Launched::CheckSpawn(const std::vector<SpawnCommand>& commands, const KeyValues& preput) const {
  if (commands.empty()) return "a spawn of no program";
  std::string problem;
  const auto check = [&](const char* what, const std::string& text) {
    if (problem.empty()) problem = CheckText(what, text);
  };
  for (const SpawnCommand& command : commands) {
    check("spawn's program", command.program);
    for (const std::string& argument : command.arguments) check("spawn's argument", argument);
    for (const auto& [key, value] : command.info) {
      check("spawn's info key", key);
      check("spawn's info value", value);
    }
    if (problem.empty() && (command.processes < 0 || command.processes > Dialect::kMostProcesses)) {
      problem = "a spawn of " + std::to_string(command.processes) + " processes, where 0 to " + std::to_string(Dialect::kMostProcesses) + " can be";
    }
  }
  for (const auto& [key, value] : preput) {
    if (problem.empty()) problem = CheckKey(key);
    if (problem.empty()) problem = CheckValue(value);
  }
  return problem;
}

Client::Spawned Launched::Spawn(const std::vector<SpawnCommand>& commands, const KeyValues& preput) {
  Spawned spawned;
  size_t processes = 0;
  for (const SpawnCommand& command : commands) processes += static_cast<size_t>(std::max(0, command.processes));
  spawned.problem = CheckSpawn(commands, preput);
  if (spawned.problem.empty()) {
    const auto done = talk_.Ask(ask::Spawn{commands, preput});
    if (!done) {
      spawned.problem = done.error().message;
    } else {
      const Answer& answer = done->answer;
      if (answer.code != 0) spawned.problem = "the launcher cannot spawn" + Reason(answer);
      spawned.job_id = answer.value.value_or("");
      spawned.errors = answer.errors;
    }
  }
  // Launchers tell nothing where all went well, or one code for all.
  const bool failed = !spawned.problem.empty();
  const int fill = failed ? (spawned.errors.empty() || spawned.errors[0] == 0 ? 1 : spawned.errors[0]) : 0;
  spawned.errors.resize(processes, fill);
  return spawned;
}

std::string Launched::Publish(const std::string& service, const std::string& port) {
  if (service.empty() || port.empty()) return "an empty service or port name";
  std::string problem = CheckText("service name", service);
  if (problem.empty()) problem = CheckText("port", port);
  return problem.empty() ? AskFor(ask::Publish{service, port}, "refuses to publish " + service) : problem;
}

Result<std::string, PmiError> Launched::Lookup(const std::string& service) {
  std::string problem = service.empty() ? "an empty service name" : CheckText("service name", service);
  if (!problem.empty()) return PmiError{std::move(problem)};
  const auto done = talk_.Ask(ask::Lookup{service});
  if (!done) return done.error();
  if (done->answer.code == 0 && done->answer.value) return *done->answer.value;
  return PmiError{"nobody has published the service " + service + Reason(done->answer)};
}

std::string Launched::Unpublish(const std::string& service) {
  std::string problem = service.empty() ? "an empty service name" : CheckText("service name", service);
  return problem.empty() ? AskFor(ask::Unpublish{service}, "cannot unpublish " + service) : problem;
}

std::string Launched::PutNodeAttribute(const std::string& key, const std::string& value) {
  std::string problem = CheckKey(key);
  if (problem.empty()) problem = CheckValue(value);
  return problem.empty() ? AskFor(ask::PutNodeAttribute{key, value}, "refuses the attribute " + key) : problem;
}

Result<std::optional<std::string>, PmiError> Launched::NodeAttribute(const std::string& key, bool wait) {
  if (std::string problem = CheckKey(key); !problem.empty()) return PmiError{std::move(problem)};
  const auto done = talk_.Ask(ask::GetNodeAttribute{key, wait});
  if (!done) return done.error();
  return done->answer.value;
}

Result<std::optional<std::string>, PmiError> Launched::JobAttribute(const std::string& key) {
  if (std::string problem = CheckKey(key); !problem.empty()) return PmiError{std::move(problem)};
  if (talk_.version() == 1 && key == "universeSize") {
    return universe_size_ < 0 ? std::nullopt : std::optional(std::to_string(universe_size_));
  }
  const auto done = talk_.Ask(talk_.version() == 1 ? Request(ask::Get{kvs_name_, key}) : Request(ask::GetJobAttribute{key}));
  if (!done) return done.error();
  return done->answer.code == 0 ? done->answer.value : std::nullopt;
}

std::string Launched::ConnectJob(const std::string& job_id) {
  if (place_.slurm) return "Slurm does not connect jobs (" + job_id + ")";  // it would never answer
  return AskFor(ask::Connect{job_id}, "cannot connect the job " + job_id);
}

std::string Launched::DisconnectJob(const std::string& job_id) {
  if (place_.slurm) return {};  // it never connected them
  if (talk_.version() == 1 && !Get(kSpawnerKey)) return "PMI version 1 has no word to disconnect the job " + job_id + ", but under Weft's mpiexec";
  return AskFor(ask::Disconnect{job_id}, "cannot disconnect the job " + job_id);
}

std::string Launched::LeaveSpawner() {
  const auto spawner = Get(kSpawnerKey);
  return spawner ? DisconnectJob(*spawner) : std::string();
}

}  // namespace weft::pmi
