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
  if (!problem.empty()) return "cannot use PMI_SOCKTYPE=OpenSSL with the launcher: " + problem;
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

Result<Answered, PmiError> Launched::Introduce(Conversation& talk) const {
  const std::string method = place_.secret.empty() || place_.secured ? "" : kChallengeMethod;
  auto done = talk.Ask(ask::Introduce{place_.rank, place_.job_id, !place_.slurm, method});
  if (done && done->answer.challenge) done = talk.Ask(ask::Prove{ProofFor(place_.secret, *done->answer.challenge)});
  return done;
}

std::string Launched::Listen(int fd, std::unique_ptr<TlsStream> tls, const std::string& signal) {
  auto talk = std::make_unique<Conversation>(fd, std::move(tls));
  std::string problem = talk->Handshake();
  const auto ask = [&](const Request& request) {
    if (!problem.empty()) return;
    const auto done = talk->Ask(request);
    if (!done) problem = done.error().message;
    if (done && done->answer.code != 0) problem = "'" + done->text + "'";
  };
  const int version = talk_.version();
  if (version == 1) ask(ask::Introduce{.rank = place_.rank});
  ask(ask::Init{version, version == 1 ? 1 : 0, true, signal == "NONE" ? "" : signal});
  if (version == 2 && problem.empty()) {
    talk->SpeakCounted(true);
    const auto done = Introduce(*talk);
    if (!done) problem = done.error().message;
    if (done && done->answer.code != 0) problem = done->answer.why;
  }
  if (!problem.empty()) return "the launcher opens no out-of-band channel: " + Printable(problem, kLongestReason);
  talk_.ListenTo(std::move(talk));
  return {};
}

std::string Launched::InitialiseCounted() {
  const auto done = Introduce(talk_);
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
  return kvs_name_.empty() ? "the launcher answered the request for the job's name with '" + done->text + "'" : std::string();
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

std::string Launched::Put(const std::string& key, const std::string& value) { return PutInto(kvs_name_, key, value); }

std::string Launched::PutInto(const std::string& space, const std::string& key, const std::string& value) {
  if (talk_.version() == 2 && space != kvs_name_) return "PMI version 2 has no key-value spaces beside the job's own (" + Printable(space) + ")";
  if (std::string problem = CheckKey(key); !problem.empty()) return problem;
  if (std::string problem = CheckValue(value); !problem.empty()) return problem;
  return AskFor(ask::Put{space, key, value}, "refuses the key " + key);
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
      problem = "a spawn of " + std::to_string(command.processes) + " processes; allowed are 0 to " + std::to_string(Dialect::kMostProcesses);
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
  return PmiError{"no process has published the service " + service + Reason(done->answer)};
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

std::string Launched::ConnectJob(const std::string& job_id, bool* must_copy) {
  if (place_.slurm) return "Slurm does not connect jobs (" + job_id + ")";  // it would never answer
  const auto done = talk_.Ask(ask::Connect{job_id});
  if (!done) return done.error().message;
  if (done->answer.code != 0) return "the launcher cannot connect the job " + job_id + Reason(done->answer);
  if (must_copy != nullptr) *must_copy = done->answer.copy;
  return {};
}

Result<KeyValues, PmiError> Launched::GetAll(const std::string& job_id) {
  const std::string refusal = "the launcher does not give the key-value space " + Printable(job_id);
  if (talk_.version() == 2) {
    if (place_.slurm) return PmiError{"Slurm gives no whole key-value space (" + Printable(job_id) + ")"};  // it would never answer
    const auto done = talk_.Ask(ask::GetAll{job_id});
    if (!done) return done.error();
    if (done->answer.code != 0) return PmiError{refusal + Reason(done->answer)};
    return done->answer.values;
  }
  KeyValues all;
  for (int index = 0; index >= 0;) {
    const auto done = talk_.Ask(ask::GetByIndex{job_id, index});
    if (!done) return done.error();
    const Answer& answer = done->answer;
    // There is no other sign of the end: an error at the first may be a space that is empty, or none at all.
    if (answer.code != 0) {
      if (all.empty() && answer.why.find("kvs") != std::string::npos) return PmiError{refusal + Reason(answer)};
      break;
    }
    if (answer.number <= index && answer.number >= 0) return PmiError{"the launcher said that index " + std::to_string(answer.number) + " follows " + std::to_string(index)};
    if (all.size() == Dialect::kMostPairs) return PmiError{refusal + ": it has more than " + std::to_string(Dialect::kMostPairs) + " keys"};
    all.insert(all.end(), answer.values.begin(), answer.values.end());
    index = answer.number;
  }
  return all;
}

std::string Launched::PutAll(const std::string& job_id, const KeyValues& values) {
  if (place_.slurm) return "Slurm takes no whole key-value space (" + Printable(job_id) + ")";  // it would never answer
  if (values.size() > Dialect::kMostPairs) return "more than " + std::to_string(Dialect::kMostPairs) + " values at once";
  for (const auto& [key, value] : values) {
    std::string problem = CheckKey(key);
    if (problem.empty()) problem = CheckValue(value);
    if (!problem.empty()) return problem;
  }
  return AskFor(ask::PutAll{job_id, values}, "does not take the key-value space " + Printable(job_id));
}

Result<std::string, PmiError> Launched::CreateSpace() {
  const auto done = talk_.Ask(ask::CreateSpace{});
  if (!done) return done.error();
  if (done->answer.code != 0 || !done->answer.value) return PmiError{"the launcher makes no key-value space" + Reason(done->answer)};
  return *done->answer.value;
}

std::string Launched::DestroySpace(const std::string& space) {
  return AskFor(ask::DestroySpace{space}, "cannot destroy the key-value space " + Printable(space));
}

std::string Launched::DisconnectJob(const std::string& job_id) {
  if (place_.slurm) return {};  // it never connected them
  if (talk_.version() == 1 && !Get(kSpawnerKey)) return "PMI version 1 cannot disconnect the job " + job_id + ", except under Weft's mpiexec";
  return AskFor(ask::Disconnect{job_id}, "cannot disconnect the job " + job_id);
}

bool Launched::WatchDeaths(std::function<void(const std::string& world, int rank)> on_death) {
  if (!Get(kDeathsKey)) return false;
  talk_.set_on_announcement([on_death = std::move(on_death)](const Announcement& announcement) {
    for (const int rank : announcement.ranks) on_death(announcement.world, rank);
  });
  return AskFor(ask::WatchDeaths{}, "does not report deaths").empty();
}

std::string Launched::LeaveSpawner() {
  const auto spawner = Get(kSpawnerKey);
  return spawner ? DisconnectJob(*spawner) : std::string();
}

}  // namespace weft::pmi
