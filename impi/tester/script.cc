#include "impi/tester/script.h"

#include <algorithm>
#include <numeric>

#include "impi/tester/numbers.h"

namespace weft::impi::tester {

int Script::RanksOf(int client) const {
  const std::vector<int>& hosts = played[static_cast<size_t>(client)].hosts;
  return std::accumulate(hosts.begin(), hosts.end(), 0);
}

int Script::FirstRankOf(int client) const {
  int first = 0;
  for (int before = 0; before < client; ++before) first += RanksOf(before);
  return first;
}

int Script::ClientOf(int rank) const {
  int client = 0;
  while (client + 1 < clients && FirstRankOf(client + 1) <= rank) ++client;
  return client;
}

int Script::FirstHostOf(int client) const {
  int first = 0;
  for (int before = 0; before < client; ++before) {
    first += static_cast<int>(played[static_cast<size_t>(before)].hosts.size());
  }
  return first;
}

int Script::ClientOfHost(int host) const {
  int client = 0;
  while (client + 1 < clients && FirstHostOf(client + 1) <= host) ++client;
  return client;
}

int Script::HostOf(int rank) const {
  const int client = ClientOf(rank);
  int host = FirstHostOf(client), left = rank - FirstRankOf(client);
  for (const int count : played[static_cast<size_t>(client)].hosts) {
    if (left < count) break;
    left -= count;
    ++host;
  }
  return host;
}

std::string HostConnection(int host) { return "host" + std::to_string(host); }

std::optional<int> HostOfConnection(const std::string& name) {
  if (!name.starts_with("host")) return std::nullopt;
  const auto host = ParseUpTo(std::string_view(name).substr(4), Script::kMostRanks);
  if (!host || name != HostConnection(static_cast<int>(*host))) return std::nullopt;
  return static_cast<int>(*host);
}

std::string TextOf(const ScriptError& error) {
  return error.file + ":" + std::to_string(error.line) + ": " + error.text;
}

namespace {

using Words = std::vector<std::string>;
constexpr size_t kMostServerClients = 32;
constexpr uint64_t kBarrierTag = 110, kWorldCollectiveContext = 1;

Words Split(std::string_view line) {
  Words words;
  size_t at = 0;
  while (at < line.size()) {
    if (line[at] == ' ' || line[at] == '\t' || line[at] == '\r') {
      ++at;
      continue;
    }
    if (line[at] == '#') break;
    size_t end = line.find_first_of(" \t\r", at);
    if (end == std::string_view::npos) end = line.size();
    words.emplace_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

std::string Join(std::span<const std::string> words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::optional<CommandCode> FindCommand(const std::string& word) {
  using enum CommandCode;
  for (const CommandCode code : {kAuth, kImpi, kColl, kDone, kFini}) {
    if (word == NameOf(code)) return code;
  }
  const auto number = ParseUpTo(word, UINT32_MAX);
  if (!number) return std::nullopt;
  return static_cast<CommandCode>(*number);
}

class Parser {
 public:
  explicit Parser(const std::string& file) { script_.file = file; }

  Result<Script, ScriptError> Parse(std::string_view text) {
    if (text.size() > Script::kLongest) {
      return Error("the file has " + std::to_string(text.size()) + " bytes; a script has at most " +
                   std::to_string(Script::kLongest));
    }
    while (!text.empty()) {
      ++line_;
      const size_t end = std::min(text.find('\n'), text.size());
      const Words words = Split(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
      if (words.empty()) continue;
      line_text_ = Join(words);
      if (std::string why = Line(words); !why.empty()) return Error(why);
    }
    if (std::string why = CheckWhole(); !why.empty()) return Error(why);
    return std::move(script_);
  }

 private:
  using Take = std::string (Parser::*)(std::span<const std::string> words);
  struct Verb {
    const char* name;
    size_t least;  // words behind it
    size_t most;
    const char* form;
    Take take;
    bool is_step;
  };
  static constexpr size_t kAnyNumber = SIZE_MAX;
  static std::span<const Verb> Verbs();

  ScriptError Error(const std::string& why) const { return {script_.file, line_, why}; }

  std::string Line(const Words& words) {
    for (const Verb& verb : Verbs()) {
      if (words[0] != verb.name) continue;
      const auto rest = std::span<const std::string>(words).subspan(1);
      if (rest.size() < verb.least || rest.size() > verb.most) return "'" + line_text_ + "': the form is: " + verb.form;
      if (!verb.is_step && !script_.steps.empty()) return "'" + words[0] + "' stands before the first step";
      if (verb.is_step) {
        if (std::string why = CheckSetup(); !why.empty()) return why;
      }
      return (this->*verb.take)(rest);
    }
    std::string known;
    for (const Verb& verb : Verbs()) known += (known.empty() ? "" : ", ") + std::string(verb.name);
    return "'" + words[0] + "' is not known; lines begin with one of: " + known;
  }

  // --- setup ---

  std::string Clause(std::span<const std::string> words) {
    script_.clause = words[0];
    const bool good =
        std::all_of(words[0].begin(), words[0].end(), [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
    return good ? "" : "'" + words[0] + "' is not the number of a clause, such as 2.3.4";
  }
  std::string About(std::span<const std::string> words) {
    script_.about = Join(words);
    return {};
  }
  std::string TakeTarget(std::span<const std::string> words) {
    if (words[0] != "server" && words[0] != "client")
      return "'" + words[0] + "' is not a target; it is server or client";
    script_.target = words[0] == "server" ? Target::kServer : Target::kClient;
    has_target_ = true;
    return {};
  }
  std::string Clients(std::span<const std::string> words) {
    const auto number = ParseUpTo(words[0], kMostServerClients);
    if (!number || *number == 0) return "'" + words[0] + "' is not a number of clients; a job has 1 to 32";
    script_.clients = static_cast<int>(*number);
    script_.played.resize(*number);
    return {};
  }
  std::string Authentication(std::span<const std::string> words) {
    script_.has_key = script_.has_none = false;
    for (const std::string& word : words) {
      if (word != "key" && word != "none") return "'" + word + "' is not a method; they are key and none";
      (word == "key" ? script_.has_key : script_.has_none) = true;
    }
    return {};
  }
  std::string Options(std::span<const std::string> words) {
    script_.options.assign(words.begin(), words.end());
    return {};
  }
  std::string Patience(std::span<const std::string> words) {
    const auto number = ParseUpTo(words[0], 3600);
    if (!number || *number == 0) return "'" + words[0] + "' is not a number of seconds; 1 to 3600 are possible";
    script_.patience = std::chrono::seconds(*number);
    return {};
  }
  std::string Acks(std::span<const std::string> words) {
    if (words[0] != "manual") return "'" + words[0] + "': the form is: acks manual";
    script_.automatic_acks = false;
    return {};
  }
  std::string UnderTest(std::span<const std::string> words) {
    std::string why = ClientNumber(words[0], &script_.under_test);
    if (!why.empty()) return why;
    const auto ranks = words[1] == "ranks" ? ParseUpTo(words[2], Script::kMostRanks) : std::nullopt;
    if (!ranks || *ranks == 0)
      return "'" + line_text_ + "': the form is: under-test CLIENT ranks COUNT, with 1 to 64 ranks";
    script_.played[static_cast<size_t>(script_.under_test)].hosts = {static_cast<int>(*ranks)};
    has_under_test_ = true;
    return {};
  }
  std::string ClientNumber(const std::string& word, int* client) {
    const auto number = ParseUpTo(word, kMostServerClients - 1);
    if (!number || *number >= script_.played.size()) {
      return "'" + word + "' is not a client of this job, which has " + std::to_string(script_.clients) +
             "; say 'clients N' before";
    }
    *client = static_cast<int>(*number);
    return {};
  }
  std::string Played(std::span<const std::string> words) {
    int number = 0;
    if (std::string why = ClientNumber(words[0], &number); !why.empty()) return why;
    if (has_under_test_ && number == script_.under_test)
      return "client " + words[0] + " is the one under test; its own command line says what it says";
    PlayedClient& client = script_.played[static_cast<size_t>(number)];
    if (words[1] == "says") return Says(client, words.subspan(2));
    if (words.size() != 3) return "'" + words[3] + "' is too much; the form is: client NUMBER PROPERTY VALUE";
    if (words[1] == "hosts") return Hosts(client, words[2]);
    const std::pair<const char*, uint32_t*> unsigneds[] = {
        {"datalen", &client.data_length}, {"ackmark", &client.ack_mark}, {"hiwater", &client.high_water}};
    for (const auto& [name, into] : unsigneds) {
      if (words[1] != name) continue;
      const auto value = ParseUpTo(words[2], 16 << 20);
      if (!value || *value == 0)
        return "'" + words[2] + "' is not a value of " + words[1] + "; 1 to 16777216 are possible";
      *into = static_cast<uint32_t>(*value);
      return {};
    }
    const std::pair<const char*, int32_t*> signeds[] = {
        {"tagub", &client.tag_upper_bound}, {"xsize", &client.crossover_size}, {"maxlinear", &client.max_linear}};
    for (const auto& [name, into] : signeds) {
      if (words[1] != name) continue;
      const auto value = ParseUpTo(words[2], INT32_MAX);
      if (!value) return "'" + words[2] + "' is not a value of " + words[1] + "; 0 to 2147483647 are possible";
      *into = static_cast<int32_t>(*value);
      return {};
    }
    return "'" + words[1] +
           "' is not a property of a client; these are hosts, datalen, ackmark, hiwater, tagub, xsize, maxlinear and "
           "says";
  }
  std::string Hosts(PlayedClient& client, const std::string& list) {
    client.hosts.clear();
    std::string_view rest = list;
    for (bool more = true; more;) {
      const size_t plus = rest.find('+');
      const auto ranks = ParseUpTo(rest.substr(0, plus), Script::kMostRanks);
      if (!ranks || *ranks == 0) return "'" + list + "' is not a list of ranks by host, such as 1+2";
      client.hosts.push_back(static_cast<int>(*ranks));
      more = plus != std::string_view::npos;
      if (more) rest.remove_prefix(plus + 1);
    }
    return {};
  }
  std::string Says(PlayedClient& client, std::span<const std::string> words) {
    auto label = words.empty() ? Result<Values, std::string>(Values()) : ParseValues(words.first(1), false);
    if (!label.ok()) return label.error();
    if (label->size() != size_t{4}) return "'" + line_text_ + "': the form is: client NUMBER says LABEL VALUES";
    auto values = ParseValues(words.subspan(1), false);
    if (!values.ok()) return values.error();
    client.also.push_back({static_cast<Label>(ByteReader(label->bytes()).U32()), 0, values->bytes()});
    return {};
  }

  // Whether steps can follow what was said so far.
  std::string CheckSetup() {
    if (!has_target_) return "say before the first step what is tested: 'target server' or 'target client'";
    if (script_.clients == 0) return "say before the first step how many clients the job has: 'clients N'";
    if (script_.target != Target::kClient) return {};
    if (!has_under_test_) return "say before the first step which client is tested: 'under-test CLIENT ranks COUNT'";
    if (script_.clients < 2) return "a job with a client under test has at least two clients: the tester is the others";
    if (script_.ranks() > Script::kMostRanks) {
      return "the job has " + std::to_string(script_.ranks()) + " ranks; at most " +
             std::to_string(Script::kMostRanks) + " are possible";
    }
    return {};
  }
  std::string CheckWhole() const {
    if (script_.clause.empty()) return "the script does not say which clause it tests: 'clause 2.3.4'";
    if (script_.about.empty()) return "the script does not say what it tests: 'about The server ...'";
    if (script_.steps.empty()) return "the script has no steps";
    return {};
  }

  // --- steps ---

  Step NewStep(Step::Kind kind) const {
    Step step;
    step.kind = kind;
    step.line = line_;
    step.text = line_text_;
    return step;
  }
  std::string Add(Step step) {
    bytes_ += step.values.bytes().size();
    if (bytes_ > Script::kMostBytes)
      return "the values of all steps are longer than " + std::to_string(Script::kMostBytes) +
             " bytes; make the script shorter";
    script_.steps.push_back(std::move(step));
    return {};
  }
  Result<Values, std::string> ParseValues(std::span<const std::string> words, bool expected) const {
    return Values::Parse(words, expected);
  }

  bool IsClient() const { return script_.target == Target::kClient; }
  // What is wrong with the name of a connection, or "".
  std::string CheckConnection(const std::string& name) const {
    if (!IsClient()) {
      const bool good = name.size() <= 32 && std::all_of(name.begin(), name.end(), [](char c) {
                          return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
                        });
      return good ? "" : "'" + name + "' is not a name of a connection: up to 32 of a to z, 0 to 9 and _";
    }
    if (name == kServerConnection) return {};
    const auto host = HostOfConnection(name);
    if (host && *host < script_.hosts() && script_.ClientOfHost(*host) != script_.under_test) return {};
    return "'" + name +
           "' is not a connection of the client under test; these are server, and host0 and so on for the hosts that "
           "the tester plays";
  }
  std::string Connection(Step::Kind kind, const std::string& name) {
    if (std::string why = CheckConnection(name); !why.empty()) return why;
    Step step = NewStep(kind);
    step.connection = name;
    return Add(std::move(step));
  }
  std::string OnlyClients(const char* verb) const {
    return IsClient() ? "" : "'" + std::string(verb) + "' is for scripts with 'target client'";
  }

  std::string Open(std::span<const std::string> words) {
    if (IsClient() && words[0] == kServerConnection)
      return "the client under test opens the connection 'server' itself; use 'accept server'";
    return Connection(Step::Kind::kOpen, words[0]);
  }
  std::string Accept(std::span<const std::string> words) {
    const std::string why = OnlyClients("accept");
    return why.empty() ? Connection(Step::Kind::kAccept, words[0]) : why;
  }
  std::string Close(std::span<const std::string> words) { return Connection(Step::Kind::kClose, words[0]); }
  std::string Closed(std::span<const std::string> words) { return Connection(Step::Kind::kClosed, words[0]); }
  std::string Quiet(std::span<const std::string> words) {
    if (words.size() == 1) return Connection(Step::Kind::kQuiet, words[0]);
    Step step = NewStep(Step::Kind::kQuietPair);
    if (std::string why = Pair(words, /*outgoing=*/false, step); !why.empty()) return why;
    return words.size() == 3 ? Add(std::move(step))
                             : "'" + line_text_ + "': the form is: quiet CONNECTION, or quiet RANK to RANK";
  }

  std::string Command(Step::Kind kind, std::span<const std::string> words) {
    if (std::string why = CheckConnection(words[0]); !why.empty()) return why;
    const auto code = FindCommand(words[1]);
    if (!code)
      return "'" + words[1] + "' is not a command; these are AUTH, IMPI, COLL, DONE, FINI, or a number of 32 bits";
    Step step = NewStep(kind);
    step.connection = words[0];
    step.code = *code;
    words = words.subspan(2);
    if (kind == Step::Kind::kSay && !words.empty() && words[0].starts_with("length=")) {
      const auto length = ParseBits(std::string_view(words[0]).substr(7));
      if (!length || static_cast<int64_t>(*length) != static_cast<int32_t>(*length))
        return "'" + words[0] + "' is not a length of 32 bits";
      step.length = static_cast<int32_t>(*length);
      words = words.subspan(1);
    }
    return AddWithValues(std::move(step), words, kind == Step::Kind::kHear);
  }
  std::string AddWithValues(Step step, std::span<const std::string> words, bool expected) {
    auto values = ParseValues(words, expected);
    if (!values.ok()) return values.error();
    step.values = std::move(values).value();
    return Add(std::move(step));
  }
  std::string Say(std::span<const std::string> words) { return Command(Step::Kind::kSay, words); }
  std::string Hear(std::span<const std::string> words) { return Command(Step::Kind::kHear, words); }
  std::string Bare(Step::Kind kind, std::span<const std::string> words) {
    if (std::string why = CheckConnection(words[0]); !why.empty()) return why;
    Step step = NewStep(kind);
    step.connection = words[0];
    return AddWithValues(std::move(step), words.subspan(1), kind == Step::Kind::kHearWords);
  }
  std::string SayWords(std::span<const std::string> words) { return Bare(Step::Kind::kWords, words); }
  std::string HearWords(std::span<const std::string> words) {
    if (words.back() == "rest")
      return "'rest' has no end here: words have no header that says how many there are; use any:COUNT";
    return Bare(Step::Kind::kHearWords, words);
  }
  std::string Exits(std::span<const std::string> words) {
    Step step = NewStep(Step::Kind::kExits);
    const auto status = ParseUpTo(words[0], 255);
    if (words[0] != "failure" && !status)
      return "'" + words[0] + "' is not an exit status; it is 0 to 255, or failure: any but 0";
    step.status = status ? static_cast<int>(*status) : Step::kFailure;
    return Add(std::move(step));
  }

  std::string Exchange(std::span<const std::string> words) {
    if (std::string why = OnlyClients("exchange"); !why.empty()) return why;
    if (!words.empty() && words[0] != "refused")
      return "'" + words[0] + "': the form is: exchange, or exchange refused";
    if (std::string why = Connection(Step::Kind::kAccept, kServerConnection); !why.empty()) return why;
    return Add(NewStep(words.empty() ? Step::Kind::kExchange : Step::Kind::kRefused));
  }
  // Section 2.3.8, as seen from the other hosts: those of lower ranks accept, then those of higher ranks connect.
  std::string Dance(std::span<const std::string>) {
    if (std::string why = OnlyClients("dance"); !why.empty()) return why;
    const int tested = script_.FirstHostOf(script_.under_test);
    for (int host = 0; host < script_.hosts(); ++host) {
      if (host == tested) continue;
      const bool accepts = host < tested;
      std::string why = Connection(accepts ? Step::Kind::kAccept : Step::Kind::kOpen, HostConnection(host));
      const Words rank{HostConnection(host), std::to_string(accepts ? tested : host)};
      if (why.empty()) why = Bare(accepts ? Step::Kind::kHearWords : Step::Kind::kWords, rank);
      if (!why.empty()) return why;
    }
    return {};
  }

  // RANK to RANK, of which one is played by the tester, and the other is under test.
  std::string Pair(std::span<const std::string> words, bool outgoing, Step& step) {
    if (std::string why = OnlyClients("RANK to RANK"); !why.empty()) return why;
    if (words.size() < 3 || words[1] != "to") return "'" + line_text_ + "': the form is: RANK to RANK";
    const auto most = static_cast<uint64_t>(script_.ranks() - 1);
    const auto source = ParseUpTo(words[0], most), destination = ParseUpTo(words[2], most);
    if (!source || !destination)
      return "'" + words[0] + " to " + words[2] + "': the job has the ranks 0 to " + std::to_string(most);
    step.source = static_cast<int>(*source);
    step.destination = static_cast<int>(*destination);
    const int played = outgoing ? step.source : step.destination, tested = outgoing ? step.destination : step.source;
    if (script_.ClientOf(played) != script_.under_test && script_.ClientOf(tested) == script_.under_test) return {};
    return "'" + words[0] + " to " + words[2] + "': rank " + std::to_string(outgoing ? played : tested) +
           " has to be " +
           (outgoing ? "played by the tester, and the other one" : "of the client under test, and the other one not") +
           "";
  }
  std::string PacketStep(Step::Kind kind, std::span<const std::string> words) {
    const bool outgoing = kind == Step::Kind::kSendPacket;
    Step step = NewStep(kind);
    if (std::string why = Pair(words, outgoing, step); !why.empty()) return why;
    if (words.size() < 4) return "'" + line_text_ + "': a type of packet has to follow, such as DATA";
    const auto type = ParseType(words[3]);
    if (!type.ok()) return type.error();
    step.type = *type;
    if (!outgoing && step.type == static_cast<uint32_t>(PacketType::kFini))
      return std::string("FINI is of no process; use 'hear-fini CONNECTION'");
    words = words.subspan(4);
    while (!words.empty() && words[0] != "data") {
      if (std::string why = TakeField(words[0], outgoing, step); !why.empty()) return why;
      words = words.subspan(1);
    }
    step.has_data = !words.empty();
    if (step.has_data) words = words.subspan(1);
    return AddWithValues(std::move(step), words, !outgoing);
  }
  static std::string TakeField(const std::string& word, bool outgoing, Step& step) {
    const size_t equals = word.find('=');
    const Field* field = equals == std::string::npos ? nullptr : FindField(word.substr(0, equals));
    if (field == nullptr) {
      std::string names;
      for (const Field& one : Fields()) names += (names.empty() ? "" : ", ") + std::string(one.name);
      return "'" + word + "' is not FIELD=VALUE or data; the fields are " + names;
    }
    Step::FieldValue value{.field = field, .kind = Step::FieldValue::Kind::kNumber, .number = 0, .variable = {}};
    const std::string text = word.substr(equals + 1);
    if (text.starts_with('$') || text.starts_with('?')) {
      value.kind = text[0] == '$' ? Step::FieldValue::Kind::kVariable : Step::FieldValue::Kind::kIntoVariable;
      value.variable = text.substr(1);
      if (value.variable.empty()) return "'" + word + "' names no variable";
      if (outgoing && text[0] == '?')
        return "'" + word + "': a packet that is sent has no value to keep; use '$" + value.variable + "'";
    } else {
      const auto number = ParseBits(text);
      if (!number) return "'" + word + "': '" + text + "' is not a number, $NAME or ?NAME";
      value.number = field->bytes == 4 ? static_cast<uint32_t>(*number) : *number;
    }
    step.fields.push_back(std::move(value));
    return {};
  }
  std::string Send(std::span<const std::string> words) { return PacketStep(Step::Kind::kSendPacket, words); }
  std::string Expect(std::span<const std::string> words) { return PacketStep(Step::Kind::kExpectPacket, words); }

  std::string Fini(std::span<const std::string> words) {
    const std::string why = OnlyClients("fini");
    return why.empty() ? Connection(Step::Kind::kFini, words[0]) : why;
  }
  std::string HearFini(std::span<const std::string> words) {
    const std::string why = OnlyClients("hear-fini");
    return why.empty() ? Connection(Step::Kind::kHearFini, words[0]) : why;
  }

  // Section 4.10 for the common MPI_COMM_WORLD: all masters tell master 0, which then tells all. From MAXLINEAR on
  // there is a tree.
  std::string Barrier(std::span<const std::string>) {
    if (std::string why = OnlyClients("barrier"); !why.empty()) return why;
    if (script_.clients >= kTreeFrom)
      return "'barrier' is for jobs of 2 or 3 clients; write the messages of the tree (section 4.10) with send and "
             "expect";
    for (int to_zero = 1; to_zero >= 0; --to_zero) {
      for (int client = 1; client < script_.clients; ++client) {
        const int master = script_.FirstRankOf(client);
        if (std::string why = EmptyMessage(to_zero ? master : 0, to_zero ? 0 : master); !why.empty()) return why;
      }
    }
    return {};
  }
  // A step if exactly one end is under test.
  std::string EmptyMessage(int source, int destination) {
    const bool from = script_.ClientOf(source) == script_.under_test,
               to = script_.ClientOf(destination) == script_.under_test;
    if (from == to) return {};
    Step step = NewStep(from ? Step::Kind::kExpectPacket : Step::Kind::kSendPacket);
    step.source = source;
    step.destination = destination;
    step.type = static_cast<uint32_t>(PacketType::kData);
    for (const auto& [name, number] :
         {std::pair("len", uint64_t{0}), {"msglen", 0}, {"tag", kBarrierTag}, {"cid", kWorldCollectiveContext}}) {
      step.fields.push_back(
          {.field = FindField(name), .kind = Step::FieldValue::Kind::kNumber, .number = number, .variable = {}});
    }
    step.has_data = true;
    return Add(std::move(step));
  }
  // Sections 3.8 and 2.4: FINI between all hosts, and what follows.
  std::string Leave(std::span<const std::string>) {
    if (std::string why = OnlyClients("leave"); !why.empty()) return why;
    for (const Step::Kind kind : {Step::Kind::kFini, Step::Kind::kHearFini, Step::Kind::kClose}) {
      for (int host = 0; host < script_.hosts(); ++host) {
        if (script_.ClientOfHost(host) == script_.under_test) continue;
        if (std::string why = Connection(kind, HostConnection(host)); !why.empty()) return why;
      }
    }
    const Words fini{kServerConnection, "FINI"}, zero{"0"};
    std::string why = Hear(fini);
    if (why.empty()) why = Connection(Step::Kind::kClose, kServerConnection);
    return why.empty() ? Exits(zero) : why;
  }
  std::string Finalize(std::span<const std::string> words) {
    std::string why = Barrier(words);
    return why.empty() ? Leave(words) : why;
  }
  // For the program of the ranks (rank.c), which reads the same file.
  std::string Rank(std::span<const std::string> words) {
    if (!IsClient() || !has_under_test_) return "'rank' lines follow 'under-test'";
    const std::string number = words[0].ends_with(':') ? words[0].substr(0, words[0].size() - 1) : "";
    const auto rank = ParseUpTo(number, Script::kMostRanks);
    const bool good = number == "*" || (rank && static_cast<int>(*rank) < script_.ranks() &&
                                        script_.ClientOf(static_cast<int>(*rank)) == script_.under_test);
    return good ? ""
                : "'" + words[0] +
                      "' is not a rank of the client under test; the form is: rank NUMBER: INSTRUCTION, or rank *: "
                      "INSTRUCTION";
  }

  static constexpr int kTreeFrom = 4;

  Script script_;
  int line_ = 0;
  std::string line_text_;
  bool has_target_ = false, has_under_test_ = false;
  size_t bytes_ = 0;
};

std::span<const Parser::Verb> Parser::Verbs() {
  static constexpr Verb kVerbs[] = {
      {"clause", 1, 1, "clause NUMBER", &Parser::Clause, false},
      {"about", 1, kAnyNumber, "about SENTENCE", &Parser::About, false},
      {"target", 1, 1, "target server, or target client", &Parser::TakeTarget, false},
      {"clients", 1, 1, "clients COUNT", &Parser::Clients, false},
      {"authentication", 1, 2, "authentication key none", &Parser::Authentication, false},
      {"options", 1, kAnyNumber, "options WORDS", &Parser::Options, false},
      {"patience", 1, 1, "patience SECONDS", &Parser::Patience, false},
      {"acks", 1, 1, "acks manual", &Parser::Acks, false},
      {"under-test", 3, 3, "under-test CLIENT ranks COUNT", &Parser::UnderTest, false},
      {"client", 3, kAnyNumber, "client NUMBER PROPERTY VALUE", &Parser::Played, false},
      {"rank", 2, kAnyNumber, "rank NUMBER: INSTRUCTION", &Parser::Rank, true},
      {"open", 1, 1, "open CONNECTION", &Parser::Open, true},
      {"accept", 1, 1, "accept CONNECTION", &Parser::Accept, true},
      {"close", 1, 1, "close CONNECTION", &Parser::Close, true},
      {"say", 2, kAnyNumber, "say CONNECTION COMMAND [length=N] VALUES", &Parser::Say, true},
      {"words", 2, kAnyNumber, "words CONNECTION VALUES", &Parser::SayWords, true},
      {"hear", 2, kAnyNumber, "hear CONNECTION COMMAND VALUES", &Parser::Hear, true},
      {"hear-words", 2, kAnyNumber, "hear-words CONNECTION VALUES", &Parser::HearWords, true},
      {"closed", 1, 1, "closed CONNECTION", &Parser::Closed, true},
      {"quiet", 1, 3, "quiet CONNECTION, or quiet RANK to RANK", &Parser::Quiet, true},
      {"exits", 1, 1, "exits STATUS, or exits failure", &Parser::Exits, true},
      {"exchange", 0, 1, "exchange, or exchange refused", &Parser::Exchange, true},
      {"dance", 0, 0, "dance", &Parser::Dance, true},
      {"send", 4, kAnyNumber, "send RANK to RANK TYPE FIELD=VALUE... data VALUES", &Parser::Send, true},
      {"expect", 4, kAnyNumber, "expect RANK to RANK TYPE FIELD=VALUE... data VALUES", &Parser::Expect, true},
      {"fini", 1, 1, "fini CONNECTION", &Parser::Fini, true},
      {"hear-fini", 1, 1, "hear-fini CONNECTION", &Parser::HearFini, true},
      {"barrier", 0, 0, "barrier", &Parser::Barrier, true},
      {"leave", 0, 0, "leave", &Parser::Leave, true},
      {"finalize", 0, 0, "finalize", &Parser::Finalize, true},
  };
  return kVerbs;
}

}  // namespace

Result<Script, ScriptError> ParseScript(const std::string& file, std::string_view text) {
  return Parser(file).Parse(text);
}

}  // namespace weft::impi::tester
