#include "impi/client/dialogue.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/byte_writer.h"
#include "base/hex.h"
#include "impi/server/rendezvous.h"
#include "impi/wire/testing/captured_start_up.h"

namespace weft::impi {
namespace {

using State = Dialogue::State;
using std::chrono::seconds;

Bytes FromHex(std::string_view digits) {
  Bytes bytes(digits.size() / 2);
  EXPECT_TRUE(ParseHex(digits, bytes)) << digits;
  return bytes;
}

// What client 1 of the capture said to the server, and what the server answered.
struct Exchange {
  std::string says, hears;
};
std::vector<Exchange> Exchanges() {
  std::vector<Exchange> exchanges;
  std::string says;
  for (const CapturedMessage& message : kCapturedStartUp) {
    if (message.client != 1) continue;
    if (message.from_server) {
      exchanges.push_back({std::exchange(says, ""), std::string(message.bytes)});
    } else {
      says += message.bytes;
    }
  }
  return exchanges;
}
const std::vector<Exchange> kCapture = Exchanges();
constexpr std::string_view kFini = "46494e4900000000";

// The labels and values that the client of the capture sent.
std::vector<Collected> CapturedValues() {
  std::vector<Collected> says;
  for (const Exchange& exchange : kCapture) {
    if (!exchange.says.starts_with("434f4c4c")) continue;
    CommandReader reader(100);
    reader.Append(FromHex(exchange.says));
    says.push_back(*Collected::FromClient(*reader.NextCommand()));
  }
  return says;
}

class DialogueTest : public testing::Test {
 protected:
  static Dialogue::Setup Captured() {
    Dialogue::Setup setup;
    setup.server = "192.0.2.1:5678";
    setup.rank = 1;
    setup.key = 5678;
    setup.says = CapturedValues();
    return setup;
  }
  void Begin(Dialogue::Setup setup = Captured()) {
    client.emplace(std::move(setup), now);
    client->TakeOutput();
  }
  void Hear(std::string_view digits) { client->OnBytes(FromHex(digits), now); }
  void Hear(const Command& command) { client->OnBytes(command.Serialize(), now); }
  // The first `steps` answers of the capture.
  void Replay(size_t steps) {
    Begin();
    for (size_t step = 0; step < steps; ++step) Hear(kCapture[step].hears);
    client->TakeOutput();
  }
  // Why it failed, without the name of the server.
  std::string Why() {
    EXPECT_EQ(client->state(), State::kFailed);
    EXPECT_EQ(client->deadline(), std::nullopt);
    EXPECT_TRUE(client->TakeOutput().empty());
    const std::string prefix = "client 1: the server (192.0.2.1:5678) ";
    EXPECT_TRUE(client->reason().starts_with(prefix)) << client->reason();
    return client->reason().substr(prefix.size());
  }

  static constexpr size_t kJoined = 2;
  const size_t kAll = kCapture.size();
  Dialogue::Time now{};
  std::optional<Dialogue> client;
};

TEST_F(DialogueTest, SaysWhatLamSaid) {
  client.emplace(Captured(), now);
  for (const Exchange& exchange : kCapture) {
    EXPECT_EQ(HexOf(client->TakeOutput()), exchange.says);
    EXPECT_NE(client->state(), State::kRunning);
    Hear(exchange.hears);
    ASSERT_NE(client->state(), State::kFailed) << client->reason();
  }
  EXPECT_EQ(client->state(), State::kRunning);
  EXPECT_EQ(client->deadline(), std::nullopt);
  EXPECT_EQ(client->clients(), 2);
  EXPECT_EQ(client->told().size(), 14u);
  EXPECT_EQ(client->told().at(Label::kHostPort), (Collected{Label::kHostPort, 3, {0, 0, 0xec, 0xe9, 0, 0, 0x88, 0x25}}));
  client->Finish();
  EXPECT_EQ(HexOf(client->TakeOutput()), kFini);
  EXPECT_EQ(client->state(), State::kEnded);
  client->OnClosed();
  EXPECT_EQ(client->state(), State::kEnded);
}

TEST_F(DialogueTest, IsTheSameWhereverTheStreamIsCut) {
  std::string answers, expected;
  for (const Exchange& exchange : kCapture) {
    answers += exchange.hears;
    expected += exchange.says;
  }
  const Bytes stream = FromHex(answers);
  for (size_t cut = 1; cut < stream.size(); ++cut) {
    Dialogue dialogue(Captured(), now);
    std::string said;
    // The server answers after the question, so the second part comes in bytes that do not overtake it.
    for (size_t at = 0; at < stream.size();) {
      const size_t count = at < cut ? std::min<size_t>(cut - at, 7) : 1;
      said += HexOf(dialogue.TakeOutput());
      dialogue.OnBytes(ByteSpan(stream).subspan(at, count), now);
      at += count;
    }
    ASSERT_EQ(dialogue.state(), State::kRunning) << cut << ": " << dialogue.reason();
    EXPECT_EQ(said + HexOf(dialogue.TakeOutput()), expected);
  }
}

TEST_F(DialogueTest, NeedsAnAuthenticationMethod) {
  Dialogue::Setup setup = Captured();
  setup.key.reset();
  client.emplace(setup, now);
  EXPECT_EQ(client->state(), State::kFailed);
  EXPECT_TRUE(client->TakeOutput().empty());
  EXPECT_EQ(client->reason(),
            "no authentication method is available: set IMPI_AUTH_KEY to the number that the server has, or IMPI_AUTH_NONE if the server accepts everybody");
}

TEST_F(DialogueTest, TheServerChoosesAmongWhatTheUserAllows) {
  struct Case {
    bool none, key;
    int chosen;
    std::string_view offers, then;  // empty: it failed
  };
  for (const Case& one : {Case{true, false, 0, "415554480000000400000001", "494d50490000000400000001"},
                          Case{true, true, 0, "415554480000000400000003", "494d50490000000400000001"},
                          Case{true, true, 1, "415554480000000400000003", "000000000000162e494d50490000000400000001"},
                          Case{true, false, 1, "415554480000000400000001", ""},
                          Case{false, true, 0, "415554480000000400000002", ""},
                          Case{true, true, 2, "415554480000000400000003", ""},
                          Case{true, true, -1, "415554480000000400000003", ""}}) {
    Dialogue::Setup setup = Captured();
    setup.none = one.none;
    if (!one.key) setup.key.reset();
    client.emplace(setup, now);
    EXPECT_EQ(HexOf(client->TakeOutput()), one.offers);
    client->OnBytes(AuthChoice{.which = one.chosen, .length = 0}.Serialize(), now);
    EXPECT_EQ(HexOf(client->TakeOutput()), one.then);
    if (!one.then.empty()) continue;
    EXPECT_EQ(Why(), "chose the authentication method " + std::to_string(one.chosen) + ", which this client did not offer; is it an IMPI server?");
  }
}

TEST_F(DialogueTest, AnAnswerThatIsWrongIsNamed) {
  Begin();
  client->OnBytes(AuthChoice{.which = 1, .length = 8}.Serialize(), now);
  EXPECT_EQ(Why(), "wants to send 8 bytes of authentication method 1, which has none");
  const auto why = [&](size_t steps, const Command& command) {
    Replay(steps);
    Hear(command);
    return Why();
  };
  const Command done{CommandCode::kDone, {}};
  const auto coll = [](Label label, uint32_t clients) { return Collected{label, clients, Bytes(8)}.ToClient(); };
  EXPECT_EQ(why(1, Command::OfNumber(CommandCode::kImpi, 0)), "says that the job has 0 clients; 1 to 32 are possible");
  EXPECT_EQ(why(1, Command::OfNumber(CommandCode::kImpi, 33)), "says that the job has 33 clients; 1 to 32 are possible");
  EXPECT_EQ(why(1, Command::OfNumber(CommandCode::kImpi, ~0u)), "says that the job has -1 clients; 1 to 32 are possible");
  EXPECT_EQ(why(1, Command::OfNumber(CommandCode::kImpi, 1)), "says that the job has 1 clients, but let this one in as client 1");
  EXPECT_EQ(why(1, Command{CommandCode::kImpi, Bytes(8)}), "sent IMPI with 8 bytes and not 4");
  EXPECT_EQ(why(1, done), "sent DONE before this client had sent it");
  EXPECT_EQ(why(1, coll(Label::kVersion, 3)), "sent COLL before IMPI");
  EXPECT_EQ(why(1, Command{CommandCode::kColl, Bytes(257)}), "sent a command with a payload of 257 bytes; at most 256 are accepted");
  EXPECT_EQ(why(kJoined, Command::OfNumber(CommandCode::kImpi, 2)), "sent IMPI a second time");
  EXPECT_EQ(why(kJoined, Command::OfNumber(CommandCode::kAuth, 2)), "sent AUTH, which only clients send");
  EXPECT_EQ(why(kAll, Command{CommandCode::kFini, {}}), "sent FINI, which only clients send");
  EXPECT_EQ(why(kJoined, done), "sent DONE before this client had sent it");
  EXPECT_EQ(why(kAll - 1, Command{CommandCode::kDone, Bytes(1)}), "sent DONE with 1 bytes and not 0");
  EXPECT_EQ(why(kAll, done), "sent DONE a second time");
  EXPECT_EQ(why(kAll, coll(Label::kVersion, 3)), "sent COLL after DONE");
  EXPECT_EQ(why(kJoined, Command{CommandCode::kColl, Bytes(7)}), "sent COLL with 7 bytes; a label and a mask have 8");
  EXPECT_EQ(why(kJoined, coll(Label::kVersion, 0)), "sent IMPI_C_VERSION with the mask 0x0 in a job of 2 clients");
  EXPECT_EQ(why(kJoined, coll(Label::kVersion, 7)), "sent IMPI_C_VERSION with the mask 0x7 in a job of 2 clients");
  EXPECT_EQ(why(kJoined, coll(Label::kVersion, 1)), "says that this client did not send IMPI_C_VERSION, which it has sent");
  EXPECT_EQ(why(kJoined, coll(Label::kHosts, 3)), "says that this client sent IMPI_C_NHOSTS, which it has not sent");
  EXPECT_EQ(why(kJoined, coll(Label::kHosts, 1)), "sent IMPI_C_NHOSTS before IMPI_C_VERSION, which this client waits for");
  EXPECT_EQ(why(kJoined, coll(Label::kNone, 1)), "sent IMPI_NO_LABEL after IMPI_NO_LABEL; labels ascend");
  EXPECT_EQ(why(kJoined + 1, coll(Label::kVersion, 3)), "sent IMPI_C_VERSION after IMPI_C_VERSION; labels ascend");
  Replay(kJoined);
  Hear("434f4c4c80000000");
  EXPECT_EQ(Why(), "sent a command with a payload of -2147483648 bytes; at most 16777224 are accepted");
}

// Section 2.3.5: clients may ignore labels and commands that they do not understand.
TEST_F(DialogueTest, IgnoresWhatALaterVersionHas) {
  Replay(kJoined);
  Hear(Command{static_cast<CommandCode>(0x41424344), Bytes(100)});
  Hear(Collected{static_cast<Label>(0xfff), 1, Bytes(3)}.ToClient());
  for (size_t step = kJoined; step + 1 < kAll; ++step) Hear(kCapture[step].hears);
  Hear(Collected{static_cast<Label>(0x7001), 1, {}}.ToClient());
  Hear(kCapture[kAll - 1].hears);
  EXPECT_EQ(client->state(), State::kRunning) << client->reason();
  EXPECT_EQ(client->told().size(), 14u);
  Hear(Command{static_cast<CommandCode>(0x41424344), Bytes(100)});
  EXPECT_EQ(client->state(), State::kRunning);
}

TEST_F(DialogueTest, ASilentServerEndsItInTime) {
  const auto silence = [&](size_t steps, seconds patience) {
    Replay(steps);
    EXPECT_EQ(client->deadline(), now + patience);
    client->OnTime(now + patience - seconds(1));
    EXPECT_NE(client->state(), State::kFailed);
    client->OnTime(now + patience);
    return Why();
  };
  EXPECT_EQ(silence(0, seconds(10)), "did not choose an authentication method within 10 seconds; is it an IMPI server?");
  EXPECT_EQ(silence(1, seconds(3600)), "has not seen all clients within 3600 seconds; start the others, or wait longer for them");
  EXPECT_EQ(silence(kJoined, seconds(70)),
            "did not answer IMPI_C_VERSION within 70 seconds after all clients had joined; a client that hangs delays the others");
  EXPECT_EQ(silence(kAll - 1, seconds(70)), "did not answer DONE within 70 seconds after all clients had joined; a client that hangs delays the others");
  Replay(kAll);
  EXPECT_EQ(client->deadline(), std::nullopt);
}

TEST_F(DialogueTest, AServerThatLeavesEndsIt) {
  const auto leaves = [&](size_t steps) {
    Replay(steps);
    client->OnClosed();
    return Why();
  };
  EXPECT_EQ(leaves(0), "closed the connection instead of choosing an authentication method; set IMPI_AUTH_KEY to the same number, or IMPI_AUTH_NONE, at both");
  EXPECT_EQ(leaves(1),
            "closed the connection before all clients had joined; is IMPI_AUTH_KEY the same number as at the server, and is 1 a client of this job that "
            "nobody else is?");
  for (size_t steps = kJoined; steps < kAll; ++steps) {
    EXPECT_EQ(leaves(steps), "closed the connection while the clients told each other about themselves; it says which client was wrong or left");
  }
  EXPECT_EQ(leaves(kAll), "closed the connection while the job ran; it says which client left");
}

TEST_F(DialogueTest, MemoryForWhatItIsToldIsBounded) {
  Replay(kJoined);
  for (size_t step = kJoined; client->state() == State::kExchanging && step + 1 < kAll; ++step) {
    const Label label = CapturedValues()[step - kJoined].label;
    Hear(Collected{label, 3, Bytes(Dialogue::kLongestPayload - 8)}.ToClient());
  }
  EXPECT_EQ(Why(), "told more than 67108864 bytes about the clients; IMPI_C_TAGUB was the last label");
}

// --- with Weft's own server ---

class WithServerTest : public testing::Test, public Rendezvous::Owner {
 protected:
  void Send(Rendezvous::Connection connection, const Bytes& bytes) override { to_clients.push_back({connection, bytes}); }
  void Close(Rendezvous::Connection connection) override { closed.push_back(connection); }
  void Warn(const std::string& text) override { warnings.push_back(text); }

  // Client `rank` says its rank under each label.
  static Dialogue::Setup Client(int rank) {
    Dialogue::Setup setup;
    setup.server = "192.0.2.1:5678";
    setup.rank = rank;
    setup.key = 7;
    for (const Label label : {Label::kVersion, Label::kHosts, Label::kProcesses, Label::kDataLength, Label::kTagUpperBound, Label::kCrossoverSize,
                              Label::kMaxLinear, Label::kHostAddress, Label::kHostPort, Label::kHostProcesses, Label::kHostAckMark, Label::kHostHighWater,
                              Label::kProcessAddress, Label::kProcessNumber}) {
      setup.says.push_back({label, 0, {static_cast<uint8_t>(rank)}});
    }
    return setup;
  }
  void Run() {
    for (bool again = true; again;) {
      again = false;
      for (size_t rank = 0; rank < clients.size(); ++rank) {
        const Bytes output = clients[rank]->TakeOutput();
        if (output.empty()) continue;
        again = true;
        server->OnBytes(rank, output, now);
      }
      while (!to_clients.empty()) {
        again = true;
        const auto [connection, bytes] = to_clients.front();
        to_clients.pop_front();
        clients[connection]->OnBytes(bytes, now);
      }
      while (!closed.empty()) {
        clients[closed.back()]->OnClosed();
        closed.pop_back();
      }
    }
  }
  void Begin(int count) {
    clients.clear();
    server.emplace(Rendezvous::Setup{.clients = count, .methods = {AuthMethod::kKey}, .key = 7}, *this);
    for (int rank = 0; rank < count; ++rank) {
      server->OnConnected(static_cast<uint64_t>(rank), "192.0.2." + std::to_string(rank + 10), now);
      clients.push_back(std::make_unique<Dialogue>(Client(rank), now));
    }
  }

  Rendezvous::Time now{};
  std::optional<Rendezvous> server;
  std::vector<std::unique_ptr<Dialogue>> clients;
  std::deque<std::pair<Rendezvous::Connection, Bytes>> to_clients;
  std::vector<Rendezvous::Connection> closed;
  std::vector<std::string> warnings;
};

TEST_F(WithServerTest, AllClientsLearnTheSame) {
  for (const int count : {1, 2, 3, 32}) {
    Begin(count);
    Run();
    EXPECT_EQ(server->state(), Rendezvous::State::kRunning);
    Bytes ranks;
    for (int rank = 0; rank < count; ++rank) ranks.push_back(static_cast<uint8_t>(rank));
    for (const auto& client : clients) {
      ASSERT_EQ(client->state(), State::kRunning) << client->reason();
      EXPECT_EQ(client->clients(), count);
      EXPECT_EQ(client->told().size(), 14u);
      for (const auto& [label, told] : client->told()) EXPECT_EQ(told.values, ranks) << impi::NameOf(label);
    }
    for (const auto& client : clients) client->Finish();
    Run();
    EXPECT_EQ(server->state(), Rendezvous::State::kEnded);
    for (const auto& client : clients) EXPECT_EQ(client->state(), State::kEnded);
  }
  EXPECT_TRUE(warnings.empty());
}

TEST_F(WithServerTest, AClientThatLeavesEndsTheOthers) {
  Begin(3);
  Run();
  server->OnClosed(1);
  Run();
  EXPECT_EQ(server->reason(), "client 1 (192.0.2.11) left before it said that its processes have ended (FINI)");
  EXPECT_EQ(clients[0]->reason(), "client 0: the server (192.0.2.1:5678) closed the connection while the job ran; it says which client left");
  EXPECT_EQ(clients[2]->state(), State::kFailed);
}

}  // namespace
}  // namespace weft::impi
