#include "pmi/server.h"

#include <utility>

#include "pmi/names.h"

namespace weft::pmi {
namespace {

Message Refusal(const char* command, const std::string& why) { return Message{command}.Add("rc", -1).Add("msg", why); }

}  // namespace

Server::Server(Setup setup, Owner* owner) : setup_(std::move(setup)), owner_(owner) {
  for (const auto& [rank, application] : setup_.application_of) ranks_[rank].application = application;
  for (const auto& [key, value] : setup_.values) values_[key] = value;
}

void Server::Receive(int rank, std::string_view bytes) {
  MessageReader& reader = ranks_.at(rank).reader;
  if (!reader.error().empty()) return;
  reader.Append(bytes);
  while (auto message = reader.Next()) Handle(rank, *message);
  if (!reader.error().empty()) owner_->OnMisuse(rank, "sent " + reader.error() + " on its PMI connection");
}

void Server::Handle(int rank, const Message& message) {
  if (message.command == "barrier_in") return EnterBarrier(rank);
  if (message.command == "initack") return Introduce(rank, message);
  if (NameService::IsFor(message)) return owner_->OnNameQuestion(rank, message);
  if (message.command == "abort") {
    const std::string* words = message.Find("error");
    return owner_->OnAbort(rank, message.FindInt("exitcode").value_or(1), words == nullptr ? std::string() : UnescapeBlanks(*words));
  }
  const Message answer = Answer(rank, message);
  if (answer.command.empty()) {
    return owner_->OnMisuse(rank, "sent the PMI command '" + Printable(message.command) + "', which is not known here");
  }
  owner_->Send(rank, answer.Serialize());
}

// An answer without command: the question is unknown.
Message Server::Answer(int rank, const Message& question) {
  const std::string& command = question.command;
  Rank& asking = ranks_.at(rank);
  if (command == "init") return Init(asking, question);
  if (command == "get_maxes") {
    return Message{"maxes"}.Add("kvsname_max", kKvsNameMax).Add("keylen_max", kKeyMax).Add("vallen_max", kValueMax);
  }
  if (command == "get_appnum") {
    return Message{"appnum"}.Add("appnum", asking.application);
  }
  if (command == "get_universe_size") return Message{"universe_size"}.Add("size", setup_.universe_size);
  if (command == "get_my_kvsname") return Message{"my_kvsname"}.Add("kvsname", setup_.kvs_name);
  if (command == "put") return Put(question);
  if (command == "get") return Get(question);
  if (command == "spawn") return Refusal("spawn_result", "dynamic_processes_are_not_supported");
  if (command == "finalize") {
    asking.state = State::kFinalised;
    return Message{"finalize_ack"};
  }
  return {};
}

Message Server::Init(Rank& rank, const Message& question) {
  const bool known = question.FindInt("pmi_version").value_or(1) == 1;
  if (known) rank.state = State::kInitialised;
  return Message{"response_to_init"}.Add("pmi_version", 1).Add("pmi_subversion", 1).Add("rc", known ? 0 : -1);
}

// A client that came by PMI_PORT does not know who it is.
void Server::Introduce(int rank, const Message& message) {
  if (message.FindInt("pmiid") != rank) {
    return owner_->OnMisuse(rank, "introduced itself by '" + Printable(message.Serialize()) + "'");
  }
  owner_->Send(rank, Message{"initack"}.Serialize() + Message{"set"}.Add("size", setup_.job_size).Serialize() +
                         Message{"set"}.Add("rank", rank).Serialize() + Message{"set"}.Add("debug", 0).Serialize());
}

const char* Server::WrongKey(const Message& question) const {
  const std::string* space = question.Find("kvsname");
  if (space == nullptr || *space != setup_.kvs_name) return "kvs_not_found";
  const std::string* key = question.Find("key");
  if (key == nullptr || key->empty()) return "key_missing";
  return key->size() >= kKeyMax ? "key_too_long" : nullptr;
}

Message Server::Put(const Message& question) {
  if (const char* why = WrongKey(question)) return Refusal("put_result", why);
  const std::string* value = question.Find("value");
  if (value == nullptr) return Refusal("put_result", "value_missing");
  if (value->size() >= kValueMax) return Refusal("put_result", "value_too_long");
  values_[*question.Find("key")] = *value;
  put_since_fence_.emplace_back(*question.Find("key"), *value);
  return Message{"put_result"}.Add("rc", 0).Add("msg", "success");
}

Message Server::Get(const Message& question) {
  if (const char* why = WrongKey(question)) return Refusal("get_result", why).Add("value", "unknown");
  const std::string& key = *question.Find("key");
  const auto found = values_.find(key);
  if (found == values_.end()) return Refusal("get_result", "key_" + key + "_not_found").Add("value", "unknown");
  return Message{"get_result"}.Add("rc", 0).Add("msg", "success").Add("value", found->second);
}

void Server::EnterBarrier(int rank) {
  Rank& entering = ranks_.at(rank);
  if (entering.in_barrier) return owner_->OnMisuse(rank, "entered the PMI barrier twice");
  entering.in_barrier = true;
  if (++in_barrier_ == ranks_.size()) owner_->OnFence(std::exchange(put_since_fence_, {}));
}

void Server::EndFence(const KeyValues& put) {
  for (const auto& [key, value] : put) values_[key] = value;
  in_barrier_ = 0;
  for (auto& [number, rank] : ranks_) rank.in_barrier = false;
  for (auto& [number, rank] : ranks_) owner_->Send(number, Message{"barrier_out"}.Serialize());
}

}  // namespace weft::pmi
