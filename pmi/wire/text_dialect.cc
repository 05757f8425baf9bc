// PMI version 1. Facts about others that this copes with:
//  - Slurm answers the name commands with info=ok or info=fail and without rc, get of an unknown key with rc=1 and no value, and
//    a failed spawn with a message of PMI-2 (cmd=spawn-response;rc=1;errmsg=...;) and no line end.
//  - MPICH up to 4.0 repeats the preput pairs in every mcmd=spawn of a spawn of several programs, later ones send them in the
//    first alone. None answers before the last (spawnssofar = totspawns).
//  - job_disconnect is Weft's own: only Weft's launchers know it, and only ranks say it that know that theirs is one (kSpawnerKey).
//  - watch_deaths is Weft's own, too, for those that find kDeathsKey; what it brings are lines cmd=died ranks=... [world=...], at any time.
//  - abort: hydra and Slurm read exitcode= alone; MPICH from 4.1 on sends message= with it, blanks included.
#include <algorithm>
#include <utility>

#include "pmi/wire/dialect.h"

namespace weft::pmi {
namespace {

constexpr int kUnknown = -1;
constexpr size_t kLongestReason = 300;  // bytes: MPICH's ranks read lines of 1024

std::string TextOf(const Message& message, std::string_view name) {
  const std::string* value = message.Find(name);
  return value == nullptr ? std::string() : *value;
}

std::optional<std::string> ValueOf(const Message& message, std::string_view name) {
  const std::string* value = message.Find(name);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

// Services and ports, which may hold blanks, though MPICH's ranks have no way to send them.
std::string NameOf(const Message& message, std::string_view name) { return UnescapeBlanks(TextOf(message, name)); }

// A sentence where a value ends at the first blank.
std::string Joined(std::string text) {
  std::replace(text.begin(), text.end(), ' ', '_');
  return text;
}

std::vector<int> ParseNumbers(const std::string& text) {
  std::vector<int> numbers;
  for (size_t at = 0; at < text.size() && numbers.size() < static_cast<size_t>(Dialect::kMostProcesses);) {
    const size_t comma = std::min(text.find(',', at), text.size());
    numbers.push_back(ParseInt(std::string_view(text).substr(at, comma - at)).value_or(1));
    at = comma + 1;
  }
  return numbers;
}

class TextDialect final : public Dialect {
 public:
  explicit TextDialect(Side side) : side_(side) {}

  int version() const override { return 1; }
  void Append(std::string_view bytes) override { reader_.Append(bytes); }
  std::string TakeRest() override { return reader_.TakeRest(); }
  std::optional<Question> NextQuestion() override;
  std::string Write(const Question& question, const Answer& answer) const override;
  std::string Write(const Announcement& announcement) const override;
  std::string Write(const Question& question) const override;
  std::optional<Answered> NextAnswer() override;
  std::string AnswerTo(const Request& request) const override;

 private:
  // A spawn whose last program has not come.
  struct PartOfSpawn {
    ask::Spawn spawn;
    size_t programs = 0;
    size_t bytes = 0;
  };

  std::optional<Message> NextMessage();
  std::optional<Request> Understand(const Message& message);
  std::optional<Request> TakeProgram(const Message& message);
  std::optional<KeyValues> Pairs(const Message& message, const char* count, const char* key, const char* value);
  std::nullopt_t Fail(std::string why) {
    error_ = std::move(why);
    return std::nullopt;
  }
  std::optional<Answered> Introduced(const Message& message);
  std::optional<Message> SlurmsRefusal();

  const Side side_;
  MessageReader reader_;
  std::optional<PartOfSpawn> spawn_;
  std::optional<Answered> introduced_;  // an initack, until its three cmd=set have come
};

std::optional<Message> TextDialect::NextMessage() {
  if (!error_.empty()) return std::nullopt;
  auto message = reader_.Next();
  if (!message && !reader_.error().empty()) error_ = reader_.error();
  return message;
}

std::optional<Question> TextDialect::NextQuestion() {
  while (const auto message = NextMessage()) {
    if (auto request = Understand(*message)) return Question{*std::move(request), {}};
  }
  return std::nullopt;
}

// Nothing: an error, or one program of a spawn that goes on.
std::optional<Request> TextDialect::Understand(const Message& message) {
  const std::string& command = message.command;
  if (message.multi_line && command == "spawn") return TakeProgram(message);
  if (spawn_) return Fail("cmd=" + Printable(command) + " between the programs of a spawn");
  if (command == "init" || command == "init_oob") {
    ask::Init init{message.FindInt("pmi_version").value_or(1), message.FindInt("pmi_subversion").value_or(1), command == "init_oob",
                   TextOf(message, "signal")};
    if (init.signal == "NONE") init.signal.clear();
    return init;
  }
  if (command == "initack") return ask::Introduce{.rank = message.FindInt("pmiid")};
  if (command == "finalize") return ask::Finalize{};
  if (command == "abort") {
    const std::string* words = message.Find("error");
    return ask::Abort{message.FindInt("exitcode").value_or(1),
                      words != nullptr ? UnescapeBlanks(*words) : TextOf(message, "message")};
  }
  if (command == "get_maxes") return ask::Maxes{};
  if (command == "get_appnum") return ask::Application{};
  if (command == "get_universe_size") return ask::UniverseSize{};
  if (command == "get_my_kvsname") return ask::JobId{};
  if (command == "put") return ask::Put{TextOf(message, "kvsname"), TextOf(message, "key"), ValueOf(message, "value")};
  if (command == "get") return ask::Get{TextOf(message, "kvsname"), TextOf(message, "key")};
  if (command == "barrier_in") return ask::Fence{};
  if (command == "publish_name") return ask::Publish{NameOf(message, "service"), NameOf(message, "port")};
  if (command == "lookup_name") return ask::Lookup{NameOf(message, "service")};
  if (command == "unpublish_name") return ask::Unpublish{NameOf(message, "service")};
  if (command == "job_disconnect") return ask::Disconnect{TextOf(message, "jobid")};
  if (command == "watch_deaths") return ask::WatchDeaths{};
  if (command == "create_kvs") return ask::CreateSpace{};
  if (command == "destroy_kvs") return ask::DestroySpace{TextOf(message, "kvsname")};
  if (command == "getbyidx") return ask::GetByIndex{TextOf(message, "kvsname"), message.FindInt("idx").value_or(-1)};
  return Fail("the PMI command '" + Printable(command) + "', which is unknown");
}

// "key_0" ... "value_0" ... as many as `count` says.
std::optional<KeyValues> TextDialect::Pairs(const Message& message, const char* count, const char* key, const char* value) {
  const std::string* text = message.Find(count);
  const int number = text == nullptr ? 0 : ParseInt(*text).value_or(-1);
  KeyValues pairs;
  for (int i = 0; i < number; ++i) {
    const std::string* name = message.Find(key + std::to_string(i));
    const std::string* what = message.Find(value + std::to_string(i));
    if (name == nullptr) return Fail(std::string("mcmd=spawn with ") + count + "=" + *text + ", but without " + key + std::to_string(i));
    pairs.emplace_back(*name, what == nullptr ? std::string() : *what);
  }
  if (number < 0) return Fail(std::string("mcmd=spawn with ") + count + "=" + Printable(*text) + ", which is not a number of pairs");
  return pairs;
}

std::optional<Request> TextDialect::TakeProgram(const Message& message) {
  const int total = message.FindInt("totspawns").value_or(1);
  const int position = message.FindInt("spawnssofar").value_or(1);
  if (!spawn_) spawn_.emplace(PartOfSpawn{{}, static_cast<size_t>(std::clamp(total, 0, static_cast<int>(kMostCommands)))});
  if (total < 1 || static_cast<size_t>(total) != spawn_->programs || static_cast<size_t>(position) != spawn_->spawn.commands.size() + 1) {
    return Fail("program " + std::to_string(position) + " of " + std::to_string(total) + " of a spawn, where number " +
                std::to_string(spawn_->spawn.commands.size() + 1) + " of 1 to " + std::to_string(kMostCommands) + " belongs");
  }
  spawn_->bytes += message.Serialize().size();
  if (spawn_->bytes > kMostSpawnBytes) return Fail("a spawn of more than " + std::to_string(kMostSpawnBytes) + " bytes");
  SpawnCommand command{.program = TextOf(message, "execname"), .processes = message.FindInt("nprocs").value_or(-1)};
  if (command.processes < 0 || command.processes > kMostProcesses) {
    return Fail("mcmd=spawn with nprocs=" + Printable(TextOf(message, "nprocs")) + ", which is not a number from 0 to " +
                std::to_string(kMostProcesses));
  }
  const int arguments = message.FindInt("argcnt").value_or(0);
  for (int i = 1; i <= arguments; ++i) {
    const std::string* argument = message.Find("arg" + std::to_string(i));
    if (argument == nullptr) {
      return Fail("mcmd=spawn with argcnt=" + std::to_string(arguments) + ", but without arg" + std::to_string(i));
    }
    command.arguments.push_back(*argument);
  }
  auto info = Pairs(message, "info_num", "info_key_", "info_val_");
  if (!info) return std::nullopt;
  command.info = *std::move(info);
  if (spawn_->spawn.commands.empty()) {
    auto preput = Pairs(message, "preput_num", "preput_key_", "preput_val_");
    if (!preput) return std::nullopt;
    spawn_->spawn.preput = *std::move(preput);
  }
  spawn_->spawn.commands.push_back(std::move(command));
  if (spawn_->spawn.commands.size() < spawn_->programs) return std::nullopt;
  return std::exchange(spawn_, std::nullopt)->spawn;
}

std::string TextDialect::AnswerTo(const Request& request) const {
  return Visit(Overloaded{
                        [](const ask::Init&) { return "response_to_init"; },
                        [](const ask::Introduce&) { return "initack"; },
                        [](const ask::Finalize&) { return "finalize_ack"; },
                        [](const ask::Maxes&) { return "maxes"; },
                        [](const ask::Application&) { return "appnum"; },
                        [](const ask::UniverseSize&) { return "universe_size"; },
                        [](const ask::JobId&) { return "my_kvsname"; },
                        [](const ask::Put&) { return "put_result"; },
                        [](const ask::Get&) { return "get_result"; },
                        [](const ask::GetJobAttribute&) { return "get_result"; },
                        [](const ask::Fence&) { return "barrier_out"; },
                        [](const ask::Publish&) { return "publish_result"; },
                        [](const ask::Lookup&) { return "lookup_result"; },
                        [](const ask::Unpublish&) { return "unpublish_result"; },
                        [](const ask::Disconnect&) { return "job_disconnect_result"; },
                        [](const ask::WatchDeaths&) { return "deaths_watched"; },
                        [](const ask::CreateSpace&) { return "newkvs"; },
                        [](const ask::DestroySpace&) { return "kvs_destroyed"; },
                        [](const ask::GetByIndex&) { return "getbyidx_results"; },
                        [](const ask::Spawn&) { return "spawn_result"; },
                        [](const auto&) { return ""; },
                    },
                    request);
}

std::string TextDialect::Write(const Question& question, const Answer& answer) const {
  Message message{AnswerTo(question.request)};
  if (message.command.empty()) return {};
  const auto add_result = [&] {
    message.Add("rc", answer.code).Add("msg", answer.code == 0 && answer.why.empty() ? "success" : Joined(answer.why));
  };
  // Names have both, since Slurm's ranks look at info= and MPICH's at rc=.
  const auto add_name_result = [&] {
    message.Add("info", answer.code == 0 ? "ok" : "fail");
    add_result();
  };
  std::string more;
  Visit(Overloaded{
                 [&](const ask::Init&) {
                   message.Add("pmi_version", answer.number).Add("pmi_subversion", answer.subversion).Add("rc", answer.code);
                 },
                 [&](const ask::Introduce&) {
                   for (const auto& [name, value] : {std::pair{"size", answer.identity.size}, {"rank", answer.identity.rank}, {"debug", 0}}) {
                     more += Message{"set"}.Add(name, value).Serialize();
                   }
                 },
                 [&](const ask::Maxes&) {
                   message.Add("kvsname_max", answer.limits.name).Add("keylen_max", answer.limits.key).Add("vallen_max", answer.limits.value);
                 },
                 [&](const ask::Application&) { message.Add("appnum", answer.number); },
                 [&](const ask::UniverseSize&) { message.Add("size", answer.number); },
                 [&](const ask::JobId&) { message.Add("kvsname", answer.value.value_or("")); },
                 [&](const ask::CreateSpace&) {
                   if (answer.value) message.Add("kvsname", *answer.value);
                   if (answer.code != 0) add_result();
                 },
                 [&](const ask::Get&) {
                   const bool found = answer.code == 0 && answer.value;
                   message.Add("rc", found ? 0 : -1).Add("msg", found ? "success" : Joined(answer.why));
                   message.Add("value", answer.value.value_or("unknown"));
                 },
                 [&](const ask::GetByIndex&) {
                   message.Add("rc", answer.code);
                   if (answer.code != 0) {
                     message.Add("reason", Joined(answer.why));
                   } else {
                     message.Add("nextidx", answer.number).Add("key", answer.values.at(0).first).Add("val", answer.values.at(0).second);
                   }
                 },
                 [&](const ask::Spawn&) {
                   message.Add("rc", answer.code);
                   if (answer.value) message.Add("jobid", *answer.value);
                   if (!answer.errors.empty()) message.Add("errcodes", NumberList(answer.errors));
                   if (!answer.why.empty()) message.Add("msg", EscapeBlanks(Printable(answer.why, kLongestReason)));
                 },
                 [&](const ask::Lookup&) {
                   if (answer.value) message.Add("port", EscapeBlanks(*answer.value));
                   add_name_result();
                 },
                 [&](const ask::Publish&) { add_name_result(); },
                 [&](const ask::Unpublish&) { add_name_result(); },
                 [&](const ask::Put&) { add_result(); },
                 [&](const ask::DestroySpace&) { add_result(); },
                 [&](const ask::Disconnect&) { add_result(); },
                 [&](const ask::WatchDeaths&) { add_result(); },
                 [](const auto&) {},
             },
             question.request);
  return message.Serialize() + more;
}

std::string TextDialect::Write(const Announcement& announcement) const {
  Message message{announcement.command};
  if (!announcement.why.empty()) message.Add("msg", EscapeBlanks(Printable(announcement.why, kLongestReason)));
  if (!announcement.ranks.empty()) message.Add("ranks", NumberList(announcement.ranks));
  if (!announcement.world.empty()) message.Add("world", announcement.world);
  return message.Serialize();
}

std::string TextDialect::Write(const Question& question) const {
  const auto simple = [](const char* command) { return Message{command}.Serialize(); };
  return Visit(
      Overloaded{
          [](const ask::Init& init) {
            Message message{init.out_of_band ? "init_oob" : "init"};
            if (init.out_of_band) message.Add("signal", init.signal.empty() ? "NONE" : init.signal);
            return message.Add("pmi_version", init.version).Add("pmi_subversion", init.subversion).Serialize();
          },
          [](const ask::Introduce& introduce) {
            return Message{"initack"}.Add("pmiid", introduce.rank.value_or(0)).Serialize();
          },
          [](const ask::Abort& abort) {
            Message message{"abort"};
            message.Add("exitcode", abort.exit_code);
            if (!abort.message.empty()) message.Add("error", EscapeBlanks(Printable(abort.message)));
            return message.Serialize();
          },
          [](const ask::Put& put) {
            return Message{"put"}.Add("kvsname", put.space).Add("key", put.key).Add("value", put.value.value_or("")).Serialize();
          },
          [](const ask::Get& get) { return Message{"get"}.Add("kvsname", get.space).Add("key", get.key).Serialize(); },
          [](const ask::Publish& publish) {
            return Message{"publish_name"}
                .Add("service", EscapeBlanks(publish.service))
                .Add("port", EscapeBlanks(publish.port))
                .Serialize();
          },
          [](const ask::Lookup& lookup) { return Message{"lookup_name"}.Add("service", EscapeBlanks(lookup.service)).Serialize(); },
          [](const ask::Unpublish& unpublish) { return Message{"unpublish_name"}.Add("service", EscapeBlanks(unpublish.service)).Serialize(); },
          [](const ask::Disconnect& disconnect) { return Message{"job_disconnect"}.Add("jobid", disconnect.job_id).Serialize(); },
          [](const ask::DestroySpace& destroy) { return Message{"destroy_kvs"}.Add("kvsname", destroy.space).Serialize(); },
          [](const ask::GetByIndex& get) { return Message{"getbyidx"}.Add("kvsname", get.space).Add("idx", get.index).Serialize(); },
          [](const ask::Spawn& spawn) {
            std::string out;
            int number = 0;
            for (const SpawnCommand& command : spawn.commands) {
              Message message{"spawn", true};
              message.Add("nprocs", command.processes).Add("execname", command.program);
              message.Add("totspawns", static_cast<int>(spawn.commands.size())).Add("spawnssofar", ++number);
              message.Add("argcnt", static_cast<int>(command.arguments.size()));
              int i = 0;
              for (const std::string& argument : command.arguments) message.Add("arg" + std::to_string(++i), argument);
              message.Add("preput_num", static_cast<int>(spawn.preput.size()));
              i = 0;
              for (const auto& [key, value] : spawn.preput) {
                message.Add("preput_key_" + std::to_string(i), key).Add("preput_val_" + std::to_string(i), value);
                ++i;
              }
              message.Add("info_num", static_cast<int>(command.info.size()));
              i = 0;
              for (const auto& [key, value] : command.info) {
                message.Add("info_key_" + std::to_string(i), key).Add("info_val_" + std::to_string(i), value);
                ++i;
              }
              out += message.Serialize();
            }
            return out;
          },
          [&](const ask::Finalize&) { return simple("finalize"); },
          [&](const ask::Fence&) { return simple("barrier_in"); },
          [&](const ask::JobId&) { return simple("get_my_kvsname"); },
          [&](const ask::Maxes&) { return simple("get_maxes"); },
          [&](const ask::Application&) { return simple("get_appnum"); },
          [&](const ask::UniverseSize&) { return simple("get_universe_size"); },
          [&](const ask::CreateSpace&) { return simple("create_kvs"); },
          [&](const ask::WatchDeaths&) { return simple("watch_deaths"); },
          [](const auto&) { return std::string(); },
      },
      question.request);
}

std::optional<Message> TextDialect::SlurmsRefusal() {
  static constexpr std::string_view kStart = "cmd=spawn-response;";
  if (!reader_.rest().starts_with(kStart) || !reader_.rest().ends_with(';')) return std::nullopt;
  std::string text = reader_.TakeRest();
  std::replace(text.begin(), text.end(), ';', ' ');
  MessageReader reader;
  reader.Append(text + "\n");
  auto message = reader.Next();
  if (message) message->command = "spawn_result";
  return message;
}

std::optional<Answered> TextDialect::NextAnswer() {
  while (auto message = NextMessage()) {
    if (introduced_ || message->command == "initack") {
      if (auto introduced = Introduced(*message)) return introduced;
      continue;
    }
    Answered answered{message->command, {}, {}, Printable(message->Serialize())};
    Answer& answer = answered.answer;
    const std::string info = TextOf(*message, "info");
    answer.code = message->FindInt("rc").value_or(info.empty() || info == "ok" ? 0 : 1);
    if (answer.code != 0 || IsAnnouncement(answered.command)) answer.why = UnescapeBlanks(TextOf(*message, message->Find("msg") != nullptr ? "msg" : message->Find("errmsg") != nullptr ? "errmsg" : "reason"));
    if (answer.code == 0) {
      for (const char* name : {"value", "port", "jobid", "kvsname"}) {
        if (!answer.value) answer.value = ValueOf(*message, name);
      }
      if (answered.command == "lookup_result" && answer.value) answer.value = UnescapeBlanks(*answer.value);
    }
    for (const char* name : {"appnum", "size", "nextidx", "pmi_version"}) {
      if (answer.number == kUnknown) answer.number = message->FindInt(name).value_or(kUnknown);
    }
    answer.subversion = message->FindInt("pmi_subversion").value_or(0);
    answer.limits = {message->FindInt("kvsname_max").value_or(0), message->FindInt("keylen_max").value_or(0),
                     message->FindInt("vallen_max").value_or(0)};
    if (answered.command == "getbyidx_results" && answer.code == 0) {
      answer.values.emplace_back(TextOf(*message, "key"), TextOf(*message, "val"));
    }
    answer.errors = ParseNumbers(TextOf(*message, "errcodes"));
    if (answered.command == Announcement::kDied) {
      answer.ranks = DeadIn(*message);
      answer.world = TextOf(*message, "world");
    }
    return answered;
  }
  if (const auto refusal = side_ == Side::kRank && error_.empty() ? SlurmsRefusal() : std::nullopt) {
    Answer answer{.code = refusal->FindInt("rc").value_or(1), .why = TextOf(*refusal, "errmsg")};
    return Answered{refusal->command, {}, std::move(answer), Printable(refusal->Serialize())};
  }
  return std::nullopt;
}

// initack, then a cmd=set for each of size, rank and debug.
std::optional<Answered> TextDialect::Introduced(const Message& message) {
  if (!introduced_) {
    introduced_.emplace(Answered{"initack", {}, {.identity = {.rank = -1, .size = -1}}, Printable(message.Serialize())});
    return std::nullopt;
  }
  Identity& identity = introduced_->answer.identity;
  const char* wanted = identity.size < 0 ? "size" : identity.rank < 0 ? "rank" : "debug";
  const std::optional<int> number = message.command == "set" ? message.FindInt(wanted) : std::nullopt;
  if (!number || *number < 0) {
    return Fail("'" + Printable(message.Serialize()) + "' where " + wanted + "= belongs");
  }
  if (identity.size >= 0 && identity.rank >= 0) return std::exchange(introduced_, std::nullopt);
  (identity.size < 0 ? identity.size : identity.rank) = *number;
  return std::nullopt;
}

}  // namespace

std::unique_ptr<Dialect> Dialect::Text(Side side) { return std::make_unique<TextDialect>(side); }

}  // namespace weft::pmi
