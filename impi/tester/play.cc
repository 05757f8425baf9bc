#include "impi/tester/play.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "base/byte_writer.h"
#include "base/check.h"
#include "impi/tester/fields.h"

namespace weft::impi::tester {
namespace {

// "COLL IMPI_C_NHOSTS, mask 0x3, 8 bytes: 00000001 00000001". `from_server`: what is in front of the values of COLL
// differs.
std::string CommandText(const Command& command, bool from_server) {
  const std::string name = NameOf(command.code);
  if (command.code == CommandCode::kColl && from_server) {
    if (const auto told = Collected::FromServer(command)) {
      std::array<char, 24> mask;
      std::snprintf(mask.data(), mask.size(), ", mask 0x%x, ", told->clients);
      return name + " " + NameOf(told->label) + mask.data() + Dump(told->values);
    }
  } else if (command.code == CommandCode::kColl) {
    if (const auto said = Collected::FromClient(command))
      return name + " " + NameOf(said->label) + ", " + Dump(said->values);
  }
  return name + " with " + Dump(command.payload);
}

// What waits in it, taken: after this, the play fails.
std::string DumpOf(CommandReader& reader) {
  const auto rest = reader.NextWords(reader.waiting());
  return rest ? Dump(*rest) : std::to_string(reader.waiting()) + " bytes";
}

bool IsPacketStep(Step::Kind kind) {
  using enum Step::Kind;
  return kind == kSendPacket || kind == kExpectPacket || kind == kQuietPair || kind == kFini || kind == kHearFini;
}

Packet HeaderOf(PacketType type) {
  Packet packet;
  packet.type = type;
  return packet;
}

bool IsQuiet(Step::Kind kind) { return kind == Step::Kind::kQuiet || kind == Step::Kind::kQuietPair; }

}  // namespace

Play::Play(const Script& script, Setup setup, Owner& owner, Time now)
    : script_(script), setup_(std::move(setup)), owner_(owner), began_(now) {
  WEFT_CHECK(script.target == Target::kServer || setup_.hosts.size() == static_cast<size_t>(script.hosts()));
  Run(now);
}

// --- events ---

void Play::OnOpened(const std::string& connection, Time now) {
  connections_[connection].state = Connection::State::kOpen;
  Run(now);
}

void Play::OnOpenFailed(const std::string& connection, const std::string& why, Time now) {
  if (state_ != State::kPlaying) return;
  connections_[connection].state = Connection::State::kEnded;
  Fail("'" + connection + "' cannot be connected: " + why);
  Run(now);
}

void Play::OnAccepted(const std::string& connection, Time now) {
  Connection& came = connections_[connection];
  came.state = Connection::State::kOpen;
  came.accepted = true;
  Trace("accepted " + connection);
  Run(now);
}

void Play::OnBytes(const std::string& name, ByteSpan bytes, Time now) {
  Connection& connection = connections_[name];
  if (state_ != State::kPlaying || connection.state == Connection::State::kEnded) return;
  connection.reader.Append(bytes);
  if (connection.reader.waiting() > kMostWaiting) {
    return Fail("more than " + std::to_string(kMostWaiting) + " bytes came on '" + name + "' that no step expects");
  }
  if (packets_ && HostOfConnection(name)) TakePackets(name, connection);
  Run(now);
}

void Play::OnClosed(const std::string& name, Time now) {
  Connection& connection = connections_[name];
  if (connection.state == Connection::State::kEnded) return;
  connection.peer_closed = true;
  Trace("the peer closed " + name);
  Run(now);
}

void Play::OnExit(int status, Time now) {
  exit_status_ = status;
  Trace("the implementation under test ended with status " + std::to_string(status));
  Run(now);
}

std::optional<Play::Time> Play::deadline() const {
  if (state_ != State::kPlaying) return std::nullopt;
  if (IsQuiet(script_.steps[next_].kind)) return began_ + kQuiet;
  return began_ + script_.patience.value_or(setup_.patience);
}

void Play::OnTime(Time now) {
  Run(now);
  const auto limit = deadline();
  if (!limit || *limit > now) return;
  const Step& step = script_.steps[next_];
  const auto seconds = std::to_string(std::chrono::duration_cast<std::chrono::seconds>(*limit - began_).count());
  std::string came;
  if (!step.connection.empty()) {
    const CommandReader& reader = connections_[step.connection].reader;
    if (reader.waiting() != 0) came = "; " + std::to_string(reader.waiting()) + " bytes of it came";
  }
  switch (step.kind) {
    case Step::Kind::kSendPacket:
      return Fail("after " + seconds + " seconds, no PROTOACK has come: " + std::to_string(job_->high_water()) +
                  " packets (hiwater) are without one");
    case Step::Kind::kExits:
      return Fail("after " + seconds + " seconds, the implementation under test still runs");
    case Step::Kind::kExchange:
      return Fail("after " + seconds + " seconds, the client under test has not said all that it has to say (DONE)");
    case Step::Kind::kRefused:
    case Step::Kind::kClosed:
      return Fail("after " + seconds + " seconds, the implementation under test has not closed the connection");
    default:
      return Fail("what is expected did not come within " + seconds + " seconds" + came);
  }
}

// --- steps ---

void Play::Run(Time now) {
  while (state_ == State::kPlaying) {
    const Step& step = script_.steps[next_];
    if (!std::exchange(tried_, true)) began_ = now;
    if (IsPacketStep(step.kind) && !packets_) StartPackets();
    if (state_ != State::kPlaying || Try(step, now) == Outcome::kWaits || state_ != State::kPlaying) return;
    tried_ = false;
    if (++next_ < script_.steps.size()) continue;
    CheckNothingIsLeft();
    if (state_ == State::kPlaying) state_ = State::kPassed;
  }
}

Play::Outcome Play::Try(const Step& step, Time now) {
  Connection& connection = connections_[step.connection];
  switch (step.kind) {
    case Step::Kind::kOpen:
      return TryOpen(step);
    case Step::Kind::kAccept:
      if (std::exchange(connection.accepted, false)) return Outcome::kDone;
      if (exit_status_)
        Fail("the implementation under test ended with status " + std::to_string(*exit_status_) +
             " before it connected");
      return Outcome::kWaits;
    case Step::Kind::kClose:
      if (connection.state == Connection::State::kOpen) owner_.Close(step.connection);
      connection.state = Connection::State::kEnded;
      return Outcome::kDone;
    case Step::Kind::kSay:
    case Step::Kind::kWords: {
      if (OpenConnection(step) == nullptr) return Outcome::kWaits;
      Bytes bytes = step.values.bytes();
      if (step.kind == Step::Kind::kSay) {
        const Command command{step.code, step.values.bytes()};
        bytes = command.Serialize();
        if (step.length) ByteWriter(MutableByteSpan(bytes).subspan(4)).U32(static_cast<uint32_t>(*step.length));
        Trace("to " + step.connection + ": " + CommandText(command, script_.target == Target::kClient));
      } else {
        Trace("to " + step.connection + ": words, " + Dump(bytes));
      }
      owner_.Send(step.connection, bytes);
      return Outcome::kDone;
    }
    case Step::Kind::kHear:
      return TryHear(step);
    case Step::Kind::kHearWords:
      return TryHearWords(step);
    case Step::Kind::kClosed:
      return TryClosed(step);
    case Step::Kind::kQuiet:
      if (OpenConnection(step) == nullptr) return Outcome::kWaits;
      if (HasUnread(connection)) Fail("nothing is expected, and this came: " + DumpOf(connection.reader));
      if (connection.peer_closed) Fail("nothing is expected, and the connection was closed");
      return now >= began_ + kQuiet ? Outcome::kDone : Outcome::kWaits;
    case Step::Kind::kExits:
      return TryExits(step);
    case Step::Kind::kExchange:
    case Step::Kind::kRefused:
      return TryExchange(step, now);
    case Step::Kind::kSendPacket:
      return TrySend(step);
    case Step::Kind::kExpectPacket:
      return TryExpect(step);
    case Step::Kind::kQuietPair: {
      const auto& waiting = received_[{step.source, step.destination}];
      if (!waiting.empty()) Fail("nothing is expected, and this came: " + TextOf(waiting.front().packet));
      return now >= began_ + kQuiet ? Outcome::kDone : Outcome::kWaits;
    }
    case Step::Kind::kFini: {
      if (OpenConnection(step) == nullptr) return Outcome::kWaits;
      Bytes header(Packet::kSize);
      HeaderOf(PacketType::kFini).Serialize(std::span<uint8_t, Packet::kSize>(header));
      Trace("to " + step.connection + ": FINI");
      owner_.Send(step.connection, header);
      return Outcome::kDone;
    }
    case Step::Kind::kHearFini:
      return TryHearFini(step);
  }
  return Outcome::kWaits;
}

Play::Connection* Play::OpenConnection(const Step& step) {
  Connection& connection = connections_[step.connection];
  if (connection.state == Connection::State::kOpen) return &connection;
  Fail("'" + step.connection + "' is not connected here; the script has to open or accept it before");
  return nullptr;
}

Play::Outcome Play::WaitFor(Connection& connection) {
  if (!connection.peer_closed) return Outcome::kWaits;
  const bool within = connection.reader.waiting() != 0;
  Fail(std::string("the peer closed the connection") +
       (within ? " within what is expected; this came before: " + DumpOf(connection.reader) : ""));
  return Outcome::kWaits;
}

Play::Outcome Play::TryOpen(const Step& step) {
  Connection& connection = connections_[step.connection];
  if (connection.state == Connection::State::kOpen) {
    Trace("opened " + step.connection);
    return Outcome::kDone;
  }
  if (connection.state == Connection::State::kOpening) return Outcome::kWaits;
  HostId address{};
  uint16_t port = 0;
  if (script_.target == Target::kClient) {
    if (!MakeJob("connect with the host under test")) return Outcome::kWaits;
    const Job::Host& host = job_->host(HostRank(script_.FirstHostOf(script_.under_test)));
    address = host.address;
    port = host.port;
  }
  connection = Connection();
  connection.state = Connection::State::kOpening;
  owner_.Open(step.connection, address, port);
  return Outcome::kWaits;
}

Play::Outcome Play::TryHear(const Step& step) {
  Connection* connection = OpenConnection(step);
  if (connection == nullptr) return Outcome::kWaits;
  const auto command = connection->reader.NextCommand();
  if (!command) {
    if (const auto length = connection->reader.refused_length()) {
      Fail("a command came with a length of " + std::to_string(*length) + " bytes");
    }
    return WaitFor(*connection);
  }
  Trace("from " + step.connection + ": " + CommandText(*command, script_.target == Target::kServer));
  if (command->code != step.code) {
    Fail("expected is " + impi::NameOf(step.code) +
         ", and this came: " + CommandText(*command, script_.target == Target::kServer));
  } else if (const auto at = step.values.FirstDifference(command->payload)) {
    Fail("byte " + std::to_string(*at) + " differs: expected is " + Dump(step.values.bytes()) +
         ", and this came: " + Dump(command->payload));
  }
  return Outcome::kDone;
}

Play::Outcome Play::TryHearWords(const Step& step) {
  Connection* connection = OpenConnection(step);
  if (connection == nullptr) return Outcome::kWaits;
  const auto words = connection->reader.NextWords(*step.values.size());
  if (!words) return WaitFor(*connection);
  Trace("from " + step.connection + ": words, " + Dump(*words));
  if (const auto at = step.values.FirstDifference(*words)) {
    Fail("byte " + std::to_string(*at) + " differs: expected is " + Dump(step.values.bytes()) +
         ", and this came: " + Dump(*words));
  }
  return Outcome::kDone;
}

Play::Outcome Play::TryClosed(const Step& step) {
  Connection* connection = OpenConnection(step);
  if (connection == nullptr) return Outcome::kWaits;
  if (HasUnread(*connection)) {
    Fail("the peer should end the connection, and this came before: " + DumpOf(connection->reader));
    return Outcome::kWaits;
  }
  if (!connection->peer_closed) return Outcome::kWaits;
  owner_.Close(step.connection);
  connection->state = Connection::State::kEnded;
  return Outcome::kDone;
}

Play::Outcome Play::TryExits(const Step& step) {
  if (!setup_.sees_exit) return Outcome::kDone;
  if (!exit_status_) return Outcome::kWaits;
  const bool good = step.status == Step::kFailure ? *exit_status_ != 0 : *exit_status_ == step.status;
  if (!good) Fail("the implementation under test ended with status " + std::to_string(*exit_status_));
  return Outcome::kDone;
}

Play::Outcome Play::TryExchange(const Step& step, Time now) {
  Connection& connection = connections_[kServerConnection];
  if (!exchange_) exchange_.emplace(script_, setup_.hosts, now);
  if (const auto came = connection.reader.NextWords(connection.reader.waiting()); !came->empty()) {
    TraceExchange(*came, /*from_client=*/true);
    exchange_->OnBytes(*came, now);
  }
  const Bytes answer = exchange_->TakeOutput();
  if (!answer.empty()) {
    TraceExchange(answer, /*from_client=*/false);
    owner_.Send(kServerConnection, answer);
  }
  const bool refused = step.kind == Step::Kind::kRefused;
  if (const std::string why = exchange_->failure(); !why.empty() && !refused) {
    Fail(why);
  } else if (connection.peer_closed && !refused) {
    Fail("the client under test closed the connection with its server before it had said all (DONE)");
  }
  if (!refused) return exchange_->is_over() ? Outcome::kDone : Outcome::kWaits;
  if (!connection.peer_closed) return Outcome::kWaits;
  owner_.Close(kServerConnection);
  connection.state = Connection::State::kEnded;
  return Outcome::kDone;
}

// --- packets ---

bool Play::MakeJob(const std::string& why) {
  if (job_) return true;
  if (!exchange_ || !exchange_->is_over()) {
    Fail("the script cannot " + why + " before 'exchange'");
    return false;
  }
  auto job = exchange_->TheJob();
  if (!job.ok()) {
    Fail("what the clients said at the start makes no job: " + job.error());
    return false;
  }
  job_.emplace(std::move(job).value());
  return true;
}

void Play::StartPackets() {
  if (!MakeJob("exchange packets")) return;
  packets_ = true;
  for (auto& [name, connection] : connections_) {
    if (HostOfConnection(name)) TakePackets(name, connection);
  }
}

void Play::TakePackets(const std::string& name, Connection& connection) {
  const int host = *HostOfConnection(name);
  while (state_ == State::kPlaying) {
    if (!connection.begun) {
      const auto header = connection.reader.NextWords(Packet::kSize);
      if (!header) return;
      auto packet = Packet::Parse(std::span<const uint8_t, Packet::kSize>(*header), job_->limits());
      if (!packet.ok())
        return Fail("a packet with a wrong header came on '" + name + "': " + packet.error() + "; " + Dump(*header));
      connection.begun = *packet;
    }
    auto data = connection.reader.NextWords(connection.begun->data_length);
    if (!data) return;
    const Packet packet = *std::exchange(connection.begun, std::nullopt);
    TakePacket(host, connection, packet, std::move(*data));
  }
}

std::string Play::NameOf(const ProcessName& process) const {
  const auto rank = job_->Find(process);
  return rank ? "rank " + std::to_string(rank->value) : impi::TextOf(process);
}

void Play::TakePacket(int host, Connection& connection, Packet packet, Bytes data) {
  const std::string text = TextOf(packet) + (packet.has_data() ? "; data: " + Dump(data) : "");
  if (packet.type == PacketType::kFini) {
    Trace("from " + HostConnection(host) + ": FINI");
    if (connection.fini_came) return Fail("FINI came a second time on '" + HostConnection(host) + "'");
    connection.fini_came = true;
    return;
  }
  Trace(NameOf(packet.source) + " to " + NameOf(packet.destination) + ": " + text);
  const auto source = job_->Find(packet.source), destination = job_->Find(packet.destination);
  if (!source || script_.ClientOf(source->value) != script_.under_test) {
    return Fail("a packet came from " + NameOf(packet.source) +
                ", which is no process of the client under test: " + text);
  }
  if (!destination || script_.HostOf(destination->value) != host) {
    return Fail("a packet to " + NameOf(packet.destination) + " came on '" + HostConnection(host) +
                "', whose process that is not: " + text);
  }
  const bool acknowledges = packet.type == PacketType::kProtocolAck || packet.type == PacketType::kSyncAck;
  if (connection.fini_came && !acknowledges)
    return Fail("after FINI, only acknowledgements may come (section 3.8); this came: " + text);
  const Pair pair{source->value, destination->value}, back{destination->value, source->value};
  if (packet.type == PacketType::kProtocolAck) {
    uint32_t& unacked = unacked_out_[back];
    if (unacked < job_->ack_mark()) {
      return Fail("PROTOACK came from rank " + std::to_string(pair.first) + " to rank " + std::to_string(pair.second) +
                  " after " + std::to_string(unacked) + " packets; ackmark is " + std::to_string(job_->ack_mark()) +
                  " (section 3.6)");
    }
    unacked -= job_->ack_mark();
    ++acks_[pair];
    return;
  }
  uint32_t& unacked = unacked_in_[pair];
  if (++unacked > job_->high_water()) {
    return Fail("rank " + std::to_string(pair.first) + " sent rank " + std::to_string(pair.second) + " packet " +
                std::to_string(unacked) + " without an acknowledgement; hiwater is " +
                std::to_string(job_->high_water()) + " (section 3.6); it is: " + text);
  }
  received_[pair].push_back({packet, std::move(data)});
  if (!script_.automatic_acks || unacked < job_->ack_mark()) return;
  SendPacket(back.first, back.second, HeaderOf(PacketType::kProtocolAck), {}, {},
             static_cast<uint32_t>(PacketType::kProtocolAck));
}

void Play::SendPacket(int source, int destination, const Packet& packet, ByteSpan data,
                      const std::vector<Step::FieldValue>& fields, uint32_t type) {
  Packet whole = packet;
  whole.source = job_->process(WorldRank(source)).name;
  whole.destination = job_->process(WorldRank(destination)).name;
  Bytes bytes(Packet::kSize + data.size());
  whole.Serialize(std::span<uint8_t, Packet::kSize>(bytes.data(), Packet::kSize));
  const auto put = [&](const Field& field, uint64_t value) {
    ByteWriter writer(MutableByteSpan(bytes).subspan(field.offset, field.bytes));
    field.bytes == 4 ? writer.U32(static_cast<uint32_t>(value)) : writer.U64(value);
  };
  put(*FindField("type"), type);
  std::string text;
  for (const Step::FieldValue& value : fields) {
    const uint64_t number = value.kind == Step::FieldValue::Kind::kNumber ? value.number : variables_[value.variable];
    put(*value.field, number);
    text += std::string(" ") + value.field->name + " " + std::to_string(number);
  }
  std::copy(data.begin(), data.end(), bytes.begin() + Packet::kSize);
  const std::string name = type <= static_cast<uint32_t>(kLastPacketType) ? impi::NameOf(static_cast<PacketType>(type))
                                                                          : "type " + std::to_string(type);
  Trace("rank " + std::to_string(source) + " to rank " + std::to_string(destination) + ": " + name + text +
        (data.empty() ? "" : "; data: " + Dump(data)));
  owner_.Send(HostConnection(script_.HostOf(source)), bytes);
  if (type != static_cast<uint32_t>(PacketType::kProtocolAck)) {
    ++unacked_out_[{source, destination}];
    return;
  }
  uint32_t& unacked = unacked_in_[{destination, source}];
  unacked -= std::min(unacked, job_->ack_mark());
}

Play::Outcome Play::TrySend(const Step& step) {
  const std::string connection = HostConnection(script_.HostOf(step.source));
  if (connections_[connection].state != Connection::State::kOpen) {
    Fail("'" + connection + "' is not connected here; the script has to open or accept it before");
    return Outcome::kWaits;
  }
  for (const Step::FieldValue& value : step.fields) {
    if (value.kind == Step::FieldValue::Kind::kVariable && !variables_.contains(value.variable)) {
      Fail("'$" + value.variable + "' has no value yet; an 'expect' with ?" + value.variable + " gives it one");
      return Outcome::kWaits;
    }
  }
  const bool is_ack = step.type == static_cast<uint32_t>(PacketType::kProtocolAck);
  if (!is_ack && unacked_out_[{step.source, step.destination}] >= job_->high_water()) {
    if (connections_[connection].peer_closed)
      Fail("the peer closed the connection before it acknowledged enough packets");
    return Outcome::kWaits;
  }
  Packet packet;
  const Bytes& data = step.values.bytes();
  const bool known = step.type <= static_cast<uint32_t>(kLastPacketType);
  packet.type = known ? static_cast<PacketType>(step.type) : PacketType::kData;
  packet.data_length = static_cast<uint32_t>(data.size());
  packet.message_length = data.size();
  packet.source_rank = step.source;
  SendPacket(step.source, step.destination, packet, data, step.fields, step.type);
  return Outcome::kDone;
}

Play::Outcome Play::TryExpect(const Step& step) {
  const Pair pair{step.source, step.destination};
  Connection& connection = connections_[HostConnection(script_.HostOf(step.destination))];
  if (step.type == static_cast<uint32_t>(PacketType::kProtocolAck)) {
    int& acks = acks_[pair];
    if (acks == 0) return WaitFor(connection);
    --acks;
    return Outcome::kDone;
  }
  auto& waiting = received_[pair];
  if (waiting.empty()) return WaitFor(connection);
  const Received received = std::move(waiting.front());
  waiting.pop_front();
  const Packet& packet = received.packet;
  const std::string text = TextOf(packet) + (packet.has_data() ? "; data: " + Dump(received.data) : "");
  if (static_cast<uint32_t>(packet.type) != step.type) {
    const std::string expected = step.type <= static_cast<uint32_t>(kLastPacketType)
                                     ? impi::NameOf(static_cast<PacketType>(step.type))
                                     : std::to_string(step.type);
    Fail("expected is " + expected + ", and this came: " + text);
    return Outcome::kDone;
  }
  for (const Step::FieldValue& value : step.fields) {
    uint64_t number = value.field->of(packet);
    if (value.field->bytes == 4) number = static_cast<uint32_t>(number);
    if (value.kind == Step::FieldValue::Kind::kIntoVariable) {
      variables_[value.variable] = number;
      continue;
    }
    const bool known = value.kind == Step::FieldValue::Kind::kNumber || variables_.contains(value.variable);
    const uint64_t expected =
        value.kind == Step::FieldValue::Kind::kNumber ? value.number : (known ? variables_[value.variable] : 0);
    if (known && number == expected) continue;
    Fail(std::string("pk_") + value.field->name + " is " + std::to_string(number) + ", and expected is " +
         (known ? std::to_string(expected) : "$" + value.variable + ", which has no value") + "; this came: " + text);
    return Outcome::kDone;
  }
  if (!step.has_data) return Outcome::kDone;
  if (const auto at = step.values.FirstDifference(received.data)) {
    Fail("byte " + std::to_string(*at) + " of the data differs: expected is " + Dump(step.values.bytes()) +
         ", and this came: " + text);
  }
  return Outcome::kDone;
}

Play::Outcome Play::TryHearFini(const Step& step) {
  Connection* connection = OpenConnection(step);
  if (connection == nullptr) return Outcome::kWaits;
  if (!connection->fini_came) return WaitFor(*connection);
  connection->fini_taken = true;
  return Outcome::kDone;
}

void Play::CheckNothingIsLeft() {
  --next_;  // the last step is named
  for (const auto& [pair, waiting] : received_) {
    if (waiting.empty()) continue;
    return Fail("rank " + std::to_string(pair.first) + " sent rank " + std::to_string(pair.second) +
                " a packet that no step expects: " + TextOf(waiting.front().packet));
  }
  for (auto& [name, connection] : connections_) {
    if (connection.state != Connection::State::kOpen || connection.reader.waiting() == 0) continue;
    return Fail("on '" + name + "' came what no step expects: " + DumpOf(connection.reader));
  }
  ++next_;
}

void Play::Fail(const std::string& reason) {
  if (state_ != State::kPlaying) return;
  state_ = State::kFailed;
  const Step& step = script_.steps[next_];
  failure_ = {step.line, step.text, reason};
}

void Play::TraceExchange(ByteSpan bytes, bool from_client) {
  CommandReader& reader = from_client ? said_ : heard_;
  size_t& words = from_client ? said_words_ : heard_words_;
  const std::string who = from_client ? "from server: " : "to server: ";
  reader.Append(bytes);
  for (;;) {
    if (words != 0) {
      const auto taken = reader.NextWords(words);
      if (!taken) return;
      Trace(who + "words, " + Dump(*taken));
      words = 0;
      if (!from_client && AuthChoice::Parse(*taken).which == static_cast<int>(AuthMethod::kKey)) said_words_ = kKeySize;
      continue;
    }
    const auto command = reader.NextCommand();
    if (!command) return;
    Trace(who + CommandText(*command, !from_client));
    // The server's answer to it says what follows.
    if (from_client && command->code == CommandCode::kAuth) return;
  }
}

void Play::Trace(const std::string& line) {
  trace_.push_back(line);
  if (trace_.size() > kMostTrace) trace_.pop_front();
}

}  // namespace weft::impi::tester
