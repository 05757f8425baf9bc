#include "pmi/server/server.h"

#include <algorithm>
#include <iterator>
#include <utility>


namespace weft::pmi {
namespace {

constexpr int kRefused = -1;
constexpr int kInvalidArgument = 3;  // of MPICH's PMI-2, as are the next two
constexpr int kNotThere = 14;
constexpr int kUnknownCommand = 14;

Answer Refusal(std::string why, int code = kRefused) { return {.code = code, .why = std::move(why)}; }

// What mpiexec has to answer.
bool IsForLauncher(const Request& request) {
  return std::holds_alternative<ask::Spawn>(request) || std::holds_alternative<ask::Publish>(request) ||
         std::holds_alternative<ask::Lookup>(request) || std::holds_alternative<ask::Unpublish>(request) ||
         std::holds_alternative<ask::Disconnect>(request);
}

}  // namespace

Server::Server(Setup setup, Owner* owner) : setup_(std::move(setup)), owner_(owner) {
  for (const auto& [rank, application] : setup_.application_of) ranks_[rank].application = application;
  for (const auto& [key, value] : setup_.values) values_[key] = value;
}

void Server::Receive(int number, std::string_view bytes) {
  Rank& rank = ranks_.at(number);
  if (rank.broken) return;
  rank.dialect->Append(bytes);
  while (!rank.broken && owner_->HasRoom(number)) {
    const auto question = rank.dialect->NextQuestion();
    if (!question) break;
    Handle(number, *question);
  }
  if (!rank.broken && !rank.dialect->error().empty()) Misuse(number, "sent " + rank.dialect->error() + " on its PMI connection");
}

void Server::Admit(int number, std::unique_ptr<Dialect> dialect, const Question& question) {
  Rank& rank = ranks_.at(number);
  rank.dialect = std::move(dialect);
  if (rank.dialect->version() == 1) {
    Handle(number, question);
  } else {
    rank.check.emplace(setup_.secret);
    Welcome(number, question);
  }
  Receive(number, {});
}

// In PMI-2.
void Server::Welcome(int number, const Question& question) {
  Rank& rank = ranks_.at(number);
  rank.introduced = true;
  rank.state = State::kInitialised;
  Reply(number, question, {.identity = IdentityOf(number)});
}

void Server::Misuse(int rank, const std::string& what) {
  ranks_.at(rank).broken = true;
  owner_->OnMisuse(rank, what);
}

void Server::Reply(int rank, const Question& question, const Answer& answer) {
  const Rank& asker = ranks_.at(rank);
  if (asker.broken) return;
  const std::string bytes = asker.dialect->Write(question, answer);
  if (!bytes.empty()) owner_->Send(rank, bytes);
}

// Whether the rank is as far as its question needs; else it has been told off.
bool Server::Precedes(int number, const Question& question) {
  const Rank& rank = ranks_.at(number);
  const std::string command = rank.dialect->AnswerTo(question.request);
  if (rank.out_of_band_signal && (rank.dialect->version() == 1 || rank.introduced)) {
    Misuse(number, "sent a request on a connection that it opened for out-of-band messages");
    return false;
  }
  if (rank.dialect->version() == 1) {
    if (setup_.secret.empty() || std::holds_alternative<ask::Init>(question.request)) return true;
    Misuse(number, "sent a request without proof of the secret, which PMI version 1 does not support");
    return false;
  }
  const bool greets = std::holds_alternative<ask::Introduce>(question.request) || std::holds_alternative<ask::Prove>(question.request);
  if (std::holds_alternative<ask::Prove>(question.request) && !rank.check->awaits_proof()) {
    Misuse(number, "answered a PMI challenge that was not sent");
    return false;
  }
  if (greets == rank.introduced && !std::holds_alternative<ask::Abort>(question.request)) {
    Misuse(number, greets ? "said the PMI command fullinit twice" : "sent a PMI command before fullinit, whose answer is " + command);
    return false;
  }
  return true;
}

void Server::Handle(int rank, const Question& question) {
  if (!Precedes(rank, question)) return;
  const Request& request = question.request;
  if (const auto* init = std::get_if<ask::Init>(&request)) return Init(rank, question, *init);
  if (const auto* introduce = std::get_if<ask::Introduce>(&request)) return Introduce(rank, question, *introduce);
  if (const auto* prove = std::get_if<ask::Prove>(&request)) return Prove(rank, question, *prove);
  if (std::holds_alternative<ask::Finalize>(request)) return Finalize(rank, question);
  if (std::holds_alternative<ask::Fence>(request)) return EnterBarrier(rank, question);
  if (std::holds_alternative<ask::WatchDeaths>(request)) return WatchDeaths(rank, question);
  if (const auto* abort = std::get_if<ask::Abort>(&request)) return owner_->OnAbort(rank, abort->exit_code, abort->message);
  if (const auto* get = std::get_if<ask::GetNodeAttribute>(&request)) return Await(rank, question, *get);
  if (IsForLauncher(request)) return Forward(rank, question);
  Reply(rank, question, Do(rank, request));
}

void Server::Forward(int number, const Question& question) {
  Rank& rank = ranks_.at(number);
  if (rank.pending.size() >= kMostPending) {
    return Reply(number, question, Refusal("more than " + std::to_string(kMostPending) + " requests wait for their answers"));
  }
  const std::string ticket = std::to_string(rank.next_ticket++);
  rank.pending.emplace(ticket, question);
  owner_->OnQuestion(number, ticket, question.request);
}

void Server::TakeAnswer(int number, const std::string& ticket, const Answer& answer) {
  const auto rank = ranks_.find(number);
  if (rank == ranks_.end()) return;
  const auto found = rank->second.pending.find(ticket);
  if (found == rank->second.pending.end()) return;
  const Question question = std::move(found->second);
  rank->second.pending.erase(found);
  if (std::holds_alternative<ask::Spawn>(question.request) && answer.code == 0 && answer.value) connected_.insert(*answer.value);
  if (const auto* disconnect = std::get_if<ask::Disconnect>(&question.request)) connected_.erase(disconnect->job_id);
  Reply(number, question, answer);
}

// A version that is not known is answered with the one that is; the rank may try again.
void Server::Init(int number, const Question& question, const ask::Init& init) {
  Rank& rank = ranks_.at(number);
  const int least = setup_.secret.empty() ? 1 : 2;  // version 1 cannot prove that it knows a secret
  const bool known = init.version >= least && init.version <= 2;
  const int version = known ? init.version : least;
  Reply(number, question, {.code = known ? 0 : kRefused, .number = version, .subversion = version == 2 ? 0 : 1});
  if (!known) return;
  rank.watches_deaths = false;
  if (init.out_of_band) rank.out_of_band_signal = init.signal;
  if (init.version == 1) {
    if (!init.out_of_band) rank.state = State::kInitialised;
    return;
  }
  auto counted = Dialect::Counted(Dialect::Side::kLauncher);
  counted->Append(rank.dialect->TakeRest());
  rank.dialect = std::move(counted);
  rank.introduced = false;
  rank.check.emplace(setup_.secret);
}

Identity Server::IdentityOf(int rank) const {
  return {rank, setup_.job_size, ranks_.at(rank).application, setup_.spawner};
}

void Server::Introduce(int number, const Question& question, const ask::Introduce& introduce) {
  Rank& rank = ranks_.at(number);
  // By PMI_PORT it would not know who it is; here the descriptor says so already, and it must agree.
  if (introduce.rank.value_or(number) != number || (rank.dialect->version() == 1 && !introduce.rank)) {
    return Misuse(number, "introduced itself as the rank " + (introduce.rank ? std::to_string(*introduce.rank) : "of nobody"));
  }
  if (rank.dialect->version() == 1) return Reply(number, question, {.identity = IdentityOf(number)});
  if (const auto answer = rank.check->Ask(introduce)) return Reply(number, question, *answer);
  Welcome(number, question);
}

void Server::Prove(int number, const Question& question, const ask::Prove& prove) {
  Rank& rank = ranks_.at(number);
  if (!rank.check->Accept(prove)) return Misuse(number, "does not know the secret that PMI asks for");
  Welcome(number, question);
}

void Server::Finalize(int number, const Question& question) {
  Rank& rank = ranks_.at(number);
  rank.state = State::kFinalised;
  rank.watches_deaths = false;
  Reply(number, question, {});
  if (rank.dialect->version() == 1) return;
  // The next program on this connection begins with a line of PMI-1.
  auto text = Dialect::Text(Dialect::Side::kLauncher);
  text->Append(rank.dialect->TakeRest());
  rank.dialect = std::move(text);
  rank.pending.clear();
  rank.attribute_questions.clear();
}

Answer Server::Do(int number, const Request& request) {
  return Visit(
      Overloaded{
          [&](const ask::Maxes&) -> Answer { return {.limits = {kKvsNameMax, kKeyMax, kValueMax}}; },
          [&](const ask::Application&) -> Answer { return {.number = ranks_.at(number).application}; },
          [&](const ask::UniverseSize&) -> Answer { return {.number = setup_.universe_size}; },
          [&](const ask::JobId&) -> Answer { return {.value = setup_.kvs_name}; },
          [&](const ask::Put& put) { return Put(put); },
          [&](const ask::Get& get) { return Get(get); },
          [&](const ask::GetByIndex& get) { return GetByIndex(get); },
          [&](const ask::Connect& connect) { return Connect(connect); },
          [&](const ask::GetAll& get) -> Answer {
            const Space* space = Find(get.job_id);
            if (space == nullptr) return Refusal("job " + Printable(get.job_id) + " is not connected", kInvalidArgument);
            if (space->size() > Dialect::kMostPairs) return Refusal("too many pairs", kNotThere);
            return {.values = KeyValues(space->begin(), space->end())};
          },
          [&](const ask::PutAll& put) { return PutAll(put); },
          [&](const ask::PutNodeAttribute& put) { return PutNodeAttribute(put); },
          [&](const ask::GetJobAttribute& get) { return GetJobAttribute(get.key); },
          [&](const ask::CreateSpace&) { return CreateSpace(); },
          [&](const ask::DestroySpace& destroy) -> Answer {
            return own_spaces_.erase(destroy.space) != 0 ? Answer{} : Refusal("kvs not found");
          },
          [&](const ask::Unknown& unknown) -> Answer {
            return Refusal("the PMI command " + unknown.command + " is not known here", kUnknownCommand);
          },
          // The others do not come here.
          [&](const auto&) -> Answer { return Refusal("not now"); },
      },
      request);
}

const Server::Space* Server::Find(const std::string& name) {
  if (name.empty() || name == setup_.kvs_name) return &values_;
  if (const auto own = own_spaces_.find(name); own != own_spaces_.end()) return &own->second;
  if (const auto other = other_spaces_.find(name); other != other_spaces_.end()) return &other->second;
  // A job's ranks may read what is their spawner's without more ado.
  return connected_.contains(name) || name == setup_.spawner ? owner_->SpaceOf(name) : nullptr;
}

Answer Server::PutInto(Space& space, const std::string& key, const std::string& value) {
  if (key.empty()) return Refusal("key missing");
  if (key.size() >= kKeyMax) return Refusal("key too long");
  if (value.size() >= kValueMax) return Refusal("value too long");
  if (space.size() >= kMostValues && !space.contains(key)) return Refusal("too many keys");
  space[key] = value;
  return {};
}

Answer Server::Put(const ask::Put& put) {
  const bool own = put.space.empty() || put.space == setup_.kvs_name;
  const auto made = own_spaces_.find(put.space);
  if (!own && made == own_spaces_.end()) return Refusal("kvs not found");
  if (!put.value) return Refusal(put.key.empty() ? "key missing" : "value missing");
  auto answer = PutInto(own ? values_ : made->second, put.key, *put.value);
  if (own && answer.code == 0) put_since_fence_[put.key] = *put.value;
  return answer;
}

Answer Server::Get(const ask::Get& get) {
  const Space* space = Find(get.space);
  if (space == nullptr) return Refusal("kvs not found");
  if (get.key.empty()) return Refusal("key missing");
  if (get.key.size() >= kKeyMax) return Refusal("key too long");
  const auto found = space->find(get.key);
  if (found == space->end()) return {.why = "key " + get.key + " not found"};
  return {.value = found->second};
}

Answer Server::GetByIndex(const ask::GetByIndex& get) {
  const Space* space = Find(get.space);
  if (space == nullptr) return Refusal("kvs not found");
  if (get.index < 0 || static_cast<size_t>(get.index) >= space->size()) return Refusal("no more keyvals");
  const bool is_next = get.index > 0 && last_read_.index == get.index - 1 && last_read_.space == get.space;
  const auto found = is_next ? space->upper_bound(last_read_.key) : std::next(space->begin(), get.index);
  if (found == space->end()) return Refusal("no more keyvals");
  last_read_ = {get.space, get.index, found->first};
  return {.number = get.index + 1, .values = {*found}};
}

Answer Server::CreateSpace() {
  if (own_spaces_.size() >= kMostSpaces) return Refusal("more than " + std::to_string(kMostSpaces) + " spaces");
  std::string name = setup_.kvs_name + "_" + std::to_string(++spaces_made_);
  own_spaces_[name];
  return {.value = std::move(name)};
}

// A job that has no rank on this host cannot be asked from here: the rank is to copy its values, if it has them.
Answer Server::Connect(const ask::Connect& connect) {
  if (connect.job_id.empty()) return Refusal("jobid missing", kInvalidArgument);
  if (connected_.size() >= kMostSpaces) return Refusal("more than " + std::to_string(kMostSpaces) + " jobs are connected", kInvalidArgument);
  connected_.insert(connect.job_id);
  if (Find(connect.job_id) != nullptr) return {};
  other_spaces_[connect.job_id];
  return {.copy = true};
}

Answer Server::PutAll(const ask::PutAll& put) {
  const auto space = other_spaces_.find(put.job_id);
  if (space == other_spaces_.end()) return Refusal("the values of job " + Printable(put.job_id) + " need not be copied here", kInvalidArgument);
  for (const auto& [key, value] : put.values) {
    if (auto answer = PutInto(space->second, key, value); answer.code != 0) return answer;
  }
  return {};
}

Answer Server::GetJobAttribute(const std::string& key) {
  if (key == "universeSize") {
    return setup_.universe_size < 0 ? Answer{} : Answer{.value = std::to_string(setup_.universe_size)};
  }
  // Only what the launcher put there: what ranks put are no attributes of the job.
  const auto given = std::find_if(setup_.values.begin(), setup_.values.end(), [&](const auto& pair) { return pair.first == key; });
  if (given == setup_.values.end()) return {};
  return {.value = given->second};
}

Answer Server::PutNodeAttribute(const ask::PutNodeAttribute& put) {
  auto answer = PutInto(node_attributes_, put.key, put.value);
  if (answer.code != 0) return answer;
  for (auto& [number, rank] : ranks_) {
    const auto waits = [&](const Question& question) { return std::get<ask::GetNodeAttribute>(question.request).key == put.key; };
    auto& questions = rank.attribute_questions;
    for (const Question& question : questions) {
      if (waits(question)) Reply(number, question, {.value = put.value});
    }
    std::erase_if(questions, waits);
  }
  return answer;
}

void Server::Await(int number, const Question& question, const ask::GetNodeAttribute& get) {
  Rank& rank = ranks_.at(number);
  if (get.key.empty()) return Reply(number, question, Refusal("key missing", kInvalidArgument));
  const auto found = node_attributes_.find(get.key);
  if (found != node_attributes_.end()) return Reply(number, question, {.value = found->second});
  if (!get.wait) return Reply(number, question, {});
  if (rank.attribute_questions.size() >= kMostPending) {
    return Reply(number, question, Refusal("more than " + std::to_string(kMostPending) + " requests wait for an attribute"));
  }
  rank.attribute_questions.push_back(question);
}

// The next program on the connection need not know the word.
void Server::WatchDeaths(int number, const Question& question) {
  Rank& rank = ranks_.at(number);
  if (rank.state != State::kInitialised) return Reply(number, question, Refusal("not initialised"));
  Reply(number, question, {});
  rank.watches_deaths = true;
  SendDeaths(number, {}, {dead_.begin(), dead_.end()});
  for (const auto& [world, dead] : dead_elsewhere_) SendDeaths(number, world, {dead.begin(), dead.end()});
}

void Server::SendDeaths(int number, const std::string& world, const std::vector<int>& dead) {
  const Rank& rank = ranks_.at(number);
  if (rank.broken || dead_.contains(number)) return;
  for (size_t at = 0; at < dead.size(); at += Announcement::kMostRanks) {
    const auto first = dead.begin() + static_cast<std::ptrdiff_t>(at);
    const auto count = std::min(Announcement::kMostRanks, dead.size() - at);
    owner_->Send(number, rank.dialect->Write({.command = Announcement::kDied, .ranks = {first, first + static_cast<std::ptrdiff_t>(count)}, .world = world}));
  }
}

void Server::TellDeaths(const std::vector<int>& ranks, const std::string& world) {
  std::set<int>& dead = world.empty() ? dead_ : DeadOf(world);
  std::vector<int> fresh;
  for (const int rank : ranks) {
    if (rank >= 0 && (!world.empty() || rank < setup_.job_size) && dead.insert(rank).second) fresh.push_back(rank);
  }
  for (const auto& [number, rank] : ranks_) {
    if (rank.watches_deaths) SendDeaths(number, world, fresh);
  }
}

std::set<int>& Server::DeadOf(const std::string& world) {
  const auto found = std::find_if(dead_elsewhere_.begin(), dead_elsewhere_.end(), [&](const auto& entry) { return entry.first == world; });
  if (found != dead_elsewhere_.end()) return found->second;
  if (dead_elsewhere_.size() == kMostWorlds) dead_elsewhere_.pop_front();
  return dead_elsewhere_.emplace_back(world, std::set<int>()).second;
}

void Server::EnterBarrier(int number, const Question& question) {
  Rank& rank = ranks_.at(number);
  if (rank.fence) return Misuse(number, "entered the PMI barrier twice");
  rank.fence = question;
  if (++in_barrier_ != ranks_.size()) return;
  owner_->OnFence(KeyValues(put_since_fence_.begin(), put_since_fence_.end()));
  put_since_fence_.clear();
}

void Server::EndFence(const KeyValues& put) {
  for (const auto& [key, value] : put) values_[key] = value;
  in_barrier_ = 0;
  std::map<int, Question> waiting;
  for (auto& [number, rank] : ranks_) {
    if (rank.fence) waiting.emplace(number, *std::exchange(rank.fence, std::nullopt));
  }
  for (const auto& [number, question] : waiting) Reply(number, question, {});
}

bool Server::Listen(int number, std::unique_ptr<Dialect> dialect, const Question& question, const std::string& signal) {
  if (listeners_.contains(number)) return false;
  const auto* init = std::get_if<ask::Init>(&question.request);
  const Answer answer = init != nullptr ? Answer{.number = init->version, .subversion = init->subversion} : Answer{.identity = IdentityOf(number)};
  owner_->SendOutOfBand(number, dialect->Write(question, answer));
  listeners_.emplace(number, Listener{std::move(dialect), signal});
  return true;
}

void Server::Announce(const Announcement& announcement) {
  for (const auto& [number, rank] : ranks_) {
    if (!rank.out_of_band_signal || (rank.dialect->version() == 2 && !rank.introduced)) continue;
    owner_->Send(number, rank.dialect->Write(announcement));
    if (!rank.out_of_band_signal->empty()) owner_->Signal(number, *rank.out_of_band_signal);
  }
  for (const auto& [number, listener] : listeners_) {
    owner_->SendOutOfBand(number, listener.dialect->Write(announcement));
    if (!listener.signal.empty()) owner_->Signal(number, listener.signal);
  }
}

}  // namespace weft::pmi
