// PMI version 2. Facts about others that this copes with:
//  - hydra writes rc= last and Slurm first; Slurm writes no thrid= in its answers, so they come in the order of the questions.
//  - The draft has flag= where hydra, MPICH and Slurm have found=. name-lookup-response has value= in the draft and in Slurm, which
//    leaves found= out, but port= in hydra.
//  - hydra 4.0 answers the job attribute universeSize with found=FALSE; later ones and Slurm with the number. Later ones answer a node
//    attribute that nobody put with rc=1, where 4.0, Slurm and the draft have found=FALSE.
//  - Slurm's ranks send srcid= in fullinit for pmirank= when PMI_ID is set, and its launcher fails a fullinit without pmijobid=,
//    pmirank= and threaded=.
//  - A spawn is one message with subcmd= before each program's fields, whose argv0 is the first argument; the draft's cmd=spawn-cmd
//    for each program, whose argv0 is the program, nobody sends. spawn-response has errcodes= in Slurm, nerrs= in the draft and in
//    hydra, whose 4.0 says nerrs=0 and nothing more.
//  - Slurm's abort has isworld= and msg=, later MPICH's exitcode= and message=; Slurm's launcher ignores one of isworld=FALSE.
//  - Slurm never answers job-connect and job-disconnect, and no launcher answers kvs-getall and kvs-putall.
//  - MPICH from 4.1 on refuses an empty value.
//  - watch-deaths is Weft's own, for those that find kDeathsKey; what it brings are messages cmd=died;ranks=...;[world=...;] at any time.
#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include "pmi/wire/counted.h"
#include "pmi/wire/dialect.h"

namespace weft::pmi {
namespace {

constexpr char kThread[] = "thrid";

std::string TextOf(const Message& message, std::string_view name) {
  const std::string* value = message.Find(name);
  return value == nullptr ? std::string() : *value;
}

std::optional<std::string> ValueOf(const Message& message, std::string_view name) {
  const std::string* value = message.Find(name);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

// In any case of letters; anything else is false.
bool IsTrue(const std::string* text) {
  static constexpr std::string_view kTrue = "true";
  return text != nullptr && std::equal(text->begin(), text->end(), kTrue.begin(), kTrue.end(),
                                       [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; });
}

std::string Boolean(bool value) { return value ? "TRUE" : "FALSE"; }

class CountedDialect final : public Dialect {
 public:
  explicit CountedDialect(Side) {}

  int version() const override { return 2; }
  void Append(std::string_view bytes) override { reader_.Append(bytes); }
  std::string TakeRest() override { return reader_.TakeRest(); }
  std::optional<Question> NextQuestion() override;
  std::string Write(const Question& question, const Answer& answer) const override;
  std::string Write(const Announcement& announcement) const override;
  std::string Write(const Question& question) const override;
  std::optional<Answered> NextAnswer() override;
  std::string AnswerTo(const Request& request) const override;

 private:
  // What takes several messages: a spawn of the draft, kvs-putall, kvs-getall.
  struct Several {
    std::string thread;
    Request request;  // Spawn or PutAll
    size_t wanted = 0;
    size_t bytes = 0;
  };

  std::optional<Message> NextMessage();
  std::optional<Request> Understand(const Message& message);
  std::optional<Request> TakeSpawn(const Message& message);
  std::optional<Request> TakeSpawnCommand(const Message& message);
  std::optional<Request> TakePair(const Message& message);
  bool ReadProgram(const Message& message, size_t* at, SpawnCommand* command);
  bool ReadPairs(const Message& message, size_t* at, const std::string& key, const std::string& value, int count, KeyValues* pairs);
  std::optional<int> ReadCount(const Message& message, size_t* at, const char* name, int most);
  bool Fail(std::string why) {
    error_ = std::move(why);
    return false;
  }

  CountedReader reader_;
  std::optional<Several> several_;
  std::map<std::string, KeyValues> get_all_;  // pairs so far, by thread
};

std::optional<Message> CountedDialect::NextMessage() {
  if (!error_.empty()) return std::nullopt;
  auto message = reader_.Next();
  if (!message && !reader_.error().empty()) error_ = reader_.error();
  return message;
}

std::optional<Question> CountedDialect::NextQuestion() {
  while (const auto message = NextMessage()) {
    if (auto request = Understand(*message)) return Question{*std::move(request), TextOf(*message, kThread)};
  }
  return std::nullopt;
}

// Nothing: an error, or a part of what takes several messages.
std::optional<Request> CountedDialect::Understand(const Message& message) {
  const std::string& command = message.command;
  const auto text = [&](const char* name) { return TextOf(message, name); };
  if (command == "spawn-cmd") return TakeSpawnCommand(message);
  if (command == "kvs-putall-pair") return TakePair(message);
  if (several_) {
    Fail("cmd=" + command + " where a part of the request before it belongs");
    return std::nullopt;
  }
  if (command == "fullinit") {
    ask::Introduce introduce{message.FindInt("pmirank"), text("pmijobid"), IsTrue(message.Find("threaded")), text("authtype")};
    if (!introduce.rank) introduce.rank = message.FindInt("srcid");
    return introduce;
  }
  if (command == "auth-response-complete") return ask::Prove{text("authinfo")};
  if (command == "finalize") return ask::Finalize{};
  if (command == "abort") {
    return ask::Abort{message.FindInt("exitcode").value_or(1), text(message.Find("msg") != nullptr ? "msg" : "message")};
  }
  if (command == "job-getid") return ask::JobId{};
  if (command == "job-connect") return ask::Connect{text("jobid")};
  if (command == "job-disconnect") return ask::Disconnect{text("jobid")};
  if (command == "kvs-put") return ask::Put{{}, text("key"), ValueOf(message, "value")};
  if (command == "kvs-get") return ask::Get{text("jobid"), text("key"), message.FindInt("srcid").value_or(-1)};
  if (command == "kvs-fence") return ask::Fence{};
  if (command == "kvs-getall") return ask::GetAll{text("jobid")};
  if (command == "kvs-putall") {
    size_t at = 0;
    const auto count = ReadCount(message, &at, "npair", kMostPairs);
    if (!count) return std::nullopt;
    if (*count == 0) return ask::PutAll{text("jobid"), {}};
    several_.emplace(Several{text(kThread), ask::PutAll{text("jobid"), {}}, static_cast<size_t>(*count)});
    return std::nullopt;
  }
  if (command == "info-getnodeattr") return ask::GetNodeAttribute{text("key"), IsTrue(message.Find("wait"))};
  if (command == "info-putnodeattr") return ask::PutNodeAttribute{text("key"), text("value")};
  if (command == "info-getjobattr") return ask::GetJobAttribute{text("key")};
  if (command == "name-publish") return ask::Publish{text("name"), text("port")};
  if (command == "name-lookup") return ask::Lookup{text("name")};
  if (command == "name-unpublish") return ask::Unpublish{text("name")};
  if (command == "watch-deaths") return ask::WatchDeaths{};
  if (command == "spawn") return TakeSpawn(message);
  return ask::Unknown{command};
}

// The number in the first field of that name from `*at` on.
std::optional<int> CountedDialect::ReadCount(const Message& message, size_t* at, const char* name, int most) {
  while (*at < message.fields.size() && message.fields[*at].first != name) ++*at;
  const std::string text = *at < message.fields.size() ? message.fields[*at].second : std::string();
  const std::optional<int> count = ParseInt(text);
  if (count && *count >= 0 && *count <= most) return count;
  Fail("cmd=" + message.command + " with " + name + "=" + Printable(text) + ", which is not a number from 0 to " + std::to_string(most));
  return std::nullopt;
}

// `count` pairs of fields, key0=...;value0=...; and so on.
bool CountedDialect::ReadPairs(const Message& message, size_t* at, const std::string& key, const std::string& value, int count,
                               KeyValues* pairs) {
  const auto& fields = message.fields;
  for (int i = 0; i < count; ++i) {
    if (*at + 1 >= fields.size() || fields[*at].first != key + std::to_string(i) || fields[*at + 1].first != value + std::to_string(i)) {
      return Fail("cmd=" + message.command + " without " + key + std::to_string(i) + "= and " + value + std::to_string(i) +
                  "= where they belong");
    }
    pairs->emplace_back(fields[*at].second, fields[*at + 1].second);
    *at += 2;
  }
  return true;
}

// From maxprocs= to the last of the info pairs, which need not be there.
bool CountedDialect::ReadProgram(const Message& message, size_t* at, SpawnCommand* command) {
  const auto& fields = message.fields;
  const auto processes = ReadCount(message, at, "maxprocs", kMostProcesses);
  if (!processes) return false;
  command->processes = *processes;
  const auto arguments = ReadCount(message, at, "argc", kMostPairs);
  if (!arguments) return false;
  ++*at;
  // MPICH from 4.1 on has infokeycount= before the arguments.
  int pairs = 0;
  const auto take_info_count = [&] {
    if (*at >= fields.size() || fields[*at].first != "infokeycount") return true;
    const auto count = ReadCount(message, at, "infokeycount", kMostPairs);
    ++*at;
    pairs = count.value_or(0);
    return count.has_value();
  };
  if (!take_info_count()) return false;
  // It counts arguments from 0, and its own description from 1.
  const int base = *at < fields.size() && fields[*at].first == "argv1" ? 1 : 0;
  for (int i = 0; i < *arguments; ++i, ++*at) {
    if (*at >= fields.size() || fields[*at].first != "argv" + std::to_string(i + base)) {
      return Fail("cmd=" + message.command + " with argc=" + std::to_string(*arguments) + ", but without argv" + std::to_string(i + base) +
                  "= where it belongs");
    }
    command->arguments.push_back(fields[*at].second);
  }
  if (!take_info_count()) return false;
  return ReadPairs(message, at, "infokey", "infoval", pairs, &command->info);
}

std::optional<Request> CountedDialect::TakeSpawn(const Message& message) {
  size_t at = 0;
  ask::Spawn spawn;
  const auto programs = ReadCount(message, &at, "ncmds", kMostCommands);
  if (!programs) return std::nullopt;
  ++at;
  if (at < message.fields.size() && message.fields[at].first == "preputcount") {
    const auto pairs = ReadCount(message, &at, "preputcount", kMostPairs);
    if (!pairs || !ReadPairs(message, &++at, "ppkey", "ppval", *pairs, &spawn.preput)) return std::nullopt;
  }
  if (*programs > 0 && message.Find("subcmd") == nullptr) {
    several_.emplace(Several{TextOf(message, kThread), std::move(spawn), static_cast<size_t>(*programs)});
    return std::nullopt;
  }
  for (int i = 0; i < *programs; ++i) {
    while (at < message.fields.size() && message.fields[at].first != "subcmd") ++at;
    SpawnCommand command;
    if (at < message.fields.size()) command.program = message.fields[at].second;
    if (!ReadProgram(message, &at, &command)) return std::nullopt;
    spawn.commands.push_back(std::move(command));
  }
  return spawn;
}

std::optional<Request> CountedDialect::TakeSpawnCommand(const Message& message) {
  auto* spawn = several_ ? std::get_if<ask::Spawn>(&several_->request) : nullptr;
  if (spawn == nullptr || several_->thread != TextOf(message, kThread)) {
    Fail("cmd=spawn-cmd that follows no cmd=spawn of the same thread");
    return std::nullopt;
  }
  SpawnCommand command;
  size_t at = 0;
  if (!ReadProgram(message, &at, &command)) return std::nullopt;
  if (!command.arguments.empty()) {
    command.program = command.arguments.front();
    command.arguments.erase(command.arguments.begin());
  }
  spawn->commands.push_back(std::move(command));
  if ((several_->bytes += SerializeCounted(message).size()) > kMostSpawnBytes) {
    Fail("a spawn of more than " + std::to_string(kMostSpawnBytes) + " bytes");
    return std::nullopt;
  }
  if (spawn->commands.size() < several_->wanted) return std::nullopt;
  return std::exchange(several_, std::nullopt)->request;
}

std::optional<Request> CountedDialect::TakePair(const Message& message) {
  auto* put = several_ ? std::get_if<ask::PutAll>(&several_->request) : nullptr;
  if (put == nullptr || several_->thread != TextOf(message, kThread)) {
    Fail("cmd=kvs-putall-pair that follows no cmd=kvs-putall of the same thread");
    return std::nullopt;
  }
  put->values.emplace_back(TextOf(message, "key"), TextOf(message, "val"));
  if (put->values.size() < several_->wanted) return std::nullopt;
  return std::exchange(several_, std::nullopt)->request;
}

std::string CountedDialect::AnswerTo(const Request& request) const {
  return Visit(Overloaded{
                        [](const ask::Introduce&) -> std::string { return "fullinit-response"; },
                        [](const ask::Prove&) -> std::string { return "fullinit-response"; },
                        [](const ask::Finalize&) -> std::string { return "finalize-response"; },
                        [](const ask::WatchDeaths&) -> std::string { return "watch-deaths-response"; },
                        [](const ask::JobId&) -> std::string { return "job-getid-response"; },
                        [](const ask::Connect&) -> std::string { return "job-connect-response"; },
                        [](const ask::Disconnect&) -> std::string { return "job-disconnect-response"; },
                        [](const ask::Put&) -> std::string { return "kvs-put-response"; },
                        [](const ask::Get&) -> std::string { return "kvs-get-response"; },
                        [](const ask::Fence&) -> std::string { return "kvs-fence-response"; },
                        [](const ask::GetAll&) -> std::string { return "kvs-getall-response"; },
                        [](const ask::PutAll&) -> std::string { return "kvs-putall-response"; },
                        [](const ask::GetNodeAttribute&) -> std::string { return "info-getnodeattr-response"; },
                        [](const ask::PutNodeAttribute&) -> std::string { return "info-putnodeattr-response"; },
                        [](const ask::GetJobAttribute&) -> std::string { return "info-getjobattr-response"; },
                        [](const ask::Publish&) -> std::string { return "name-publish-response"; },
                        [](const ask::Lookup&) -> std::string { return "name-lookup-response"; },
                        [](const ask::Unpublish&) -> std::string { return "name-unpublish-response"; },
                        [](const ask::Spawn&) -> std::string { return "spawn-response"; },
                        [](const ask::Unknown& unknown) -> std::string { return unknown.command + "-response"; },
                        [](const auto&) -> std::string { return {}; },
                    },
                    request);
}

std::string CountedDialect::Write(const Question& question, const Answer& answer) const {
  Message message{answer.challenge ? "auth-response" : AnswerTo(question.request)};
  if (message.command.empty()) return {};
  const auto begin = [&](Message& started) -> Message& {
    if (!question.thread.empty()) started.Add(kThread, question.thread);
    return started;
  };
  begin(message);
  if (answer.challenge) return SerializeCounted(message.Add("authinfo", *answer.challenge));
  std::string before;
  const auto add_found = [&] {
    message.Add("found", Boolean(answer.value.has_value()));
    if (answer.value) message.Add("value", *answer.value);
  };
  const auto add_identity = [&] {
    if (answer.code != 0) return;
    const Identity& identity = answer.identity;
    message.Add("pmi-version", 2).Add("pmi-subversion", 0);
    message.Add("rank", identity.rank).Add("size", identity.size).Add("appnum", identity.application);
    if (!identity.spawner.empty()) message.Add("spawner-jobid", identity.spawner);
    message.Add("debugged", Boolean(false)).Add("pmiverbose", Boolean(false));
  };
  Visit(Overloaded{
                 [&](const ask::Introduce&) { add_identity(); },
                 [&](const ask::Prove&) { add_identity(); },
                 [&](const ask::JobId&) { message.Add("jobid", answer.value.value_or("")); },
                 [&](const ask::Connect&) { message.Add("kvscopy", Boolean(answer.copy)); },
                 [&](const ask::Get&) { add_found(); },
                 [&](const ask::GetNodeAttribute&) { add_found(); },
                 [&](const ask::GetJobAttribute&) { add_found(); },
                 [&](const ask::Lookup&) {
                   add_found();
                   if (answer.value) message.Add("port", *answer.value);
                 },
                 [&](const ask::GetAll&) {
                   if (answer.code != 0) return;
                   Message count{"kvs-getall-paircount-response"};
                   before += SerializeCounted(begin(count).Add("npair", static_cast<int>(answer.values.size())));
                   for (const auto& [key, value] : answer.values) {
                     Message pair{"kvs-getall-pair-response"};
                     before += SerializeCounted(begin(pair).Add("key", key).Add("val", value));
                   }
                 },
                 [&](const ask::Spawn&) {
                   if (answer.value) message.Add("jobid", *answer.value);
                   message.Add("nerrs", static_cast<int>(answer.errors.size()));
                   int i = 0;
                   for (const int error : answer.errors) message.Add("err" + std::to_string(i++), error);
                 },
                 [](const auto&) {},
             },
             question.request);
  message.Add("rc", answer.code);
  if (answer.code != 0 && !answer.why.empty()) message.Add("errmsg", answer.why);
  return before + SerializeCounted(message);
}

std::string CountedDialect::Write(const Announcement& announcement) const {
  Message message{announcement.command};
  if (!announcement.why.empty()) message.Add("msg", announcement.why);
  if (!announcement.ranks.empty()) message.Add("ranks", NumberList(announcement.ranks));
  if (!announcement.world.empty()) message.Add("world", announcement.world);
  return SerializeCounted(message);
}

std::string CountedDialect::Write(const Question& question) const {
  const auto begin = [&](const char* command) {
    Message message{command};
    if (!question.thread.empty()) message.Add(kThread, question.thread);
    return message;
  };
  const auto one = [&](const char* command, const char* key, const std::string& value) {
    return SerializeCounted(begin(command).Add(key, value));
  };
  const auto simple = [&](const char* command) { return SerializeCounted(begin(command)); };
  return Visit(
      Overloaded{
          [&](const ask::Introduce& introduce) {
            Message message{"fullinit"};
            if (!introduce.job_id.empty()) message.Add("pmijobid", introduce.job_id);
            if (introduce.rank) message.Add("pmirank", *introduce.rank);
            message.Add("threaded", Boolean(introduce.threaded));
            if (!introduce.authentication.empty()) message.Add("authtype", introduce.authentication);
            return SerializeCounted(message);
          },
          [&](const ask::Prove& prove) { return one("auth-response-complete", "authinfo", prove.proof); },
          [&](const ask::Finalize&) { return simple("finalize"); },
          [&](const ask::Abort& abort) {
            Message message{"abort"};
            message.Add("isworld", Boolean(true)).Add("exitcode", abort.exit_code);
            if (!abort.message.empty()) message.Add("msg", abort.message);
            return SerializeCounted(message);
          },
          [&](const ask::JobId&) { return simple("job-getid"); },
          [&](const ask::Connect& connect) { return one("job-connect", "jobid", connect.job_id); },
          [&](const ask::Disconnect& disconnect) { return one("job-disconnect", "jobid", disconnect.job_id); },
          [&](const ask::Put& put) {
            return SerializeCounted(begin("kvs-put").Add("key", put.key).Add("value", put.value.value_or("")));
          },
          [&](const ask::Get& get) {
            Message message = begin("kvs-get");
            if (!get.space.empty()) message.Add("jobid", get.space);
            return SerializeCounted(message.Add("srcid", get.source).Add("key", get.key));
          },
          [&](const ask::Fence&) { return simple("kvs-fence"); },
          [&](const ask::WatchDeaths&) { return simple("watch-deaths"); },
          [&](const ask::GetAll& get) { return one("kvs-getall", "jobid", get.job_id); },
          [&](const ask::PutAll& put) {
            std::string out = SerializeCounted(begin("kvs-putall").Add("jobid", put.job_id).Add("npair", static_cast<int>(put.values.size())));
            for (const auto& [key, value] : put.values) {
              out += SerializeCounted(begin("kvs-putall-pair").Add("key", key).Add("val", value));
            }
            return out;
          },
          [&](const ask::GetNodeAttribute& get) {
            return SerializeCounted(begin("info-getnodeattr").Add("key", get.key).Add("wait", Boolean(get.wait)));
          },
          [&](const ask::PutNodeAttribute& put) {
            return SerializeCounted(begin("info-putnodeattr").Add("key", put.key).Add("value", put.value));
          },
          [&](const ask::GetJobAttribute& get) { return one("info-getjobattr", "key", get.key); },
          // infokeycount= is in hydra's and Slurm's requests too.
          [&](const ask::Publish& publish) {
            return SerializeCounted(begin("name-publish").Add("name", publish.service).Add("port", publish.port).Add("infokeycount", 0));
          },
          [&](const ask::Lookup& lookup) {
            return SerializeCounted(begin("name-lookup").Add("name", lookup.service).Add("infokeycount", 0));
          },
          [&](const ask::Unpublish& unpublish) {
            return SerializeCounted(begin("name-unpublish").Add("name", unpublish.service).Add("infokeycount", 0));
          },
          [&](const ask::Spawn& spawn) {
            Message message = begin("spawn");
            message.Add("ncmds", static_cast<int>(spawn.commands.size())).Add("preputcount", static_cast<int>(spawn.preput.size()));
            const auto add_pairs = [&](const KeyValues& pairs, const char* key_name, const char* value_name) {
              int i = 0;
              for (const auto& [key, value] : pairs) {
                message.Add(key_name + std::to_string(i), key).Add(value_name + std::to_string(i), value);
                ++i;
              }
            };
            add_pairs(spawn.preput, "ppkey", "ppval");
            for (const SpawnCommand& command : spawn.commands) {
              message.Add("subcmd", command.program).Add("maxprocs", command.processes);
              message.Add("argc", static_cast<int>(command.arguments.size()));
              int i = 0;
              for (const std::string& argument : command.arguments) message.Add("argv" + std::to_string(i++), argument);
              message.Add("infokeycount", static_cast<int>(command.info.size()));
              add_pairs(command.info, "infokey", "infoval");
            }
            return SerializeCounted(message);
          },
          [&](const ask::Unknown& unknown) { return simple(unknown.command.c_str()); },
          [](const auto&) { return std::string(); },
      },
      question.request);
}

std::vector<int> ErrorsOf(const Message& message) {
  std::vector<int> errors;
  if (const std::string* codes = message.Find("errcodes")) {
    for (size_t at = 0; at < codes->size() && errors.size() < Dialect::kMostProcesses;) {
      const size_t comma = std::min(codes->find(',', at), codes->size());
      errors.push_back(ParseInt(std::string_view(*codes).substr(at, comma - at)).value_or(1));
      at = comma + 1;
    }
    return errors;
  }
  const int count = std::min(message.FindInt("nerrs").value_or(0), Dialect::kMostProcesses);
  auto field = message.fields.begin();
  for (int i = 0; i < count; ++i) {
    const std::string name = "err" + std::to_string(i);
    field = std::find_if(field, message.fields.end(), [&](const auto& one) { return one.first == name; });
    if (field == message.fields.end()) break;
    errors.push_back(ParseInt(field->second).value_or(1));
  }
  return errors;
}

std::optional<Answered> CountedDialect::NextAnswer() {
  while (const auto message = NextMessage()) {
    Answered answered{message->command, TextOf(*message, kThread), {}, Printable(SerializeCounted(*message))};
    Answer& answer = answered.answer;
    if (answered.command == "kvs-getall-paircount-response") continue;
    if (answered.command == "kvs-getall-pair-response") {
      KeyValues& pairs = get_all_[answered.thread];
      if (pairs.size() == kMostPairs) {
        Fail("more than " + std::to_string(kMostPairs) + " pairs in answer to kvs-getall");
        return std::nullopt;
      }
      pairs.emplace_back(TextOf(*message, "key"), TextOf(*message, "val"));
      continue;
    }
    answer.code = message->FindInt("rc").value_or(0);
    answer.why = TextOf(*message, IsAnnouncement(answered.command) ? "msg" : "errmsg");
    answer.errors = ErrorsOf(*message);
    if (answered.command == Announcement::kDied) {
      answer.ranks = DeadIn(*message);
      answer.world = TextOf(*message, "world");
    }
    answer.copy = IsTrue(message->Find("kvscopy")) || TextOf(*message, "kvscopy") == "yes" || message->FindInt("kvscopy").value_or(0) != 0;
    const std::string* found = message->Find(message->Find("found") != nullptr ? "found" : "flag");
    if (found == nullptr || IsTrue(found)) {
      for (const char* name : {"value", "port", "jobid"}) {
        if (!answer.value) answer.value = ValueOf(*message, name);
      }
    }
    if (answered.command == "auth-response") answer.challenge = TextOf(*message, "authinfo");
    if (answered.command == "fullinit-response") {
      answer.identity = {message->FindInt("rank").value_or(-1), message->FindInt("size").value_or(-1), message->FindInt("appnum").value_or(-1),
                         TextOf(*message, "spawner-jobid")};
    }
    if (answered.command == "kvs-getall-response") {
      answer.values = std::move(get_all_[answered.thread]);
      get_all_.erase(answered.thread);
    }
    return answered;
  }
  return std::nullopt;
}

}  // namespace

std::unique_ptr<Dialect> Dialect::Counted(Side side) { return std::make_unique<CountedDialect>(side); }

}  // namespace weft::pmi
