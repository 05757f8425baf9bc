#include "impi/server/rendezvous.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/hex.h"
#include "impi/wire/testing/captured_start_up.h"

namespace weft::impi {
namespace {

using State = Rendezvous::State;
using std::chrono::seconds;

class RendezvousTest : public testing::Test, public Rendezvous::Owner {
 protected:
  void Send(Rendezvous::Connection connection, const Bytes& bytes) override { sent[connection] += HexOf(bytes); }
  void Close(Rendezvous::Connection connection) override { closed.insert(connection); }
  void Warn(const std::string& text) override { warnings.push_back(text); }

  void Begin(int clients, std::vector<AuthMethod> methods = {AuthMethod::kKey}) {
    server.emplace(Rendezvous::Setup{.clients = clients, .methods = std::move(methods), .key = 5678}, *this);
  }
  void Connect(Rendezvous::Connection connection) { server->OnConnected(connection, "192.0.2." + std::to_string(connection), now); }
  void Say(Rendezvous::Connection connection, const Bytes& bytes) { server->OnBytes(connection, bytes, now); }
  void Say(Rendezvous::Connection connection, const Command& command) { Say(connection, command.Serialize()); }
  void Say(Rendezvous::Connection connection, Label label, std::string_view digits) {
    Collected collected{.label = label, .clients = 0, .values = Bytes(digits.size() / 2)};
    ASSERT_TRUE(ParseHex(digits, collected.values));
    Say(connection, collected.ToServer());
  }
  void Authenticate(Rendezvous::Connection connection, uint64_t key = 5678) {
    Connect(connection);
    Say(connection, Command::OfNumber(CommandCode::kAuth, 1 << static_cast<int>(AuthMethod::kKey)));
    Say(connection, SerializeKey(key));
  }
  void Join(Rendezvous::Connection connection, int rank) {
    Authenticate(connection);
    Say(connection, Command::OfNumber(CommandCode::kImpi, static_cast<uint32_t>(rank)));
  }
  // The clients are connections 10, 11, and so on.
  void JoinAll(int clients) {
    Begin(clients);
    for (int rank = 0; rank < clients; ++rank) Join(10 + static_cast<uint64_t>(rank), rank);
    sent.clear();
  }
  // What a connection has been sent since the last look.
  std::string Heard(Rendezvous::Connection connection) { return std::exchange(sent[connection], ""); }
  const std::string& last_warning() {
    static const std::string none;
    return warnings.empty() ? none : warnings.back();
  }

  static constexpr std::string_view kDoneText = "444f4e4500000000";
  const Command kDone{CommandCode::kDone, {}}, kFini{CommandCode::kFini, {}};

  std::map<Rendezvous::Connection, std::string> sent;  // in hexadecimal digits
  std::set<Rendezvous::Connection> closed;
  std::vector<std::string> warnings;
  Rendezvous::Time now{};
  std::optional<Rendezvous> server;
};

TEST_F(RendezvousTest, TwoClientsOfACaptureHearTheSame) {
  Begin(2);
  Connect(0);
  Connect(1);
  for (const CapturedMessage& message : kCapturedStartUp) {
    std::string& heard = sent[static_cast<uint64_t>(message.client)];
    if (message.from_server) {
      ASSERT_EQ(heard.substr(0, message.bytes.size()), message.bytes);
      heard.erase(0, message.bytes.size());
    } else {
      Bytes bytes(message.bytes.size() / 2);
      ASSERT_TRUE(ParseHex(message.bytes, bytes));
      Say(static_cast<uint64_t>(message.client), bytes);
    }
  }
  EXPECT_EQ(Heard(0), "");
  EXPECT_EQ(Heard(1), "");
  EXPECT_EQ(server->state(), State::kEnded);
  EXPECT_TRUE(warnings.empty()) << last_warning();
}

TEST_F(RendezvousTest, TwoClientsFindEachOtherAndEnd) {
  Begin(2);
  Connect(1);
  Say(1, Command::OfNumber(CommandCode::kAuth, 2));
  EXPECT_EQ(Heard(1), "0000000100000000");
  Connect(2);
  Say(2, Command::OfNumber(CommandCode::kAuth, 2));
  Say(1, SerializeKey(5678));
  Say(2, SerializeKey(5678));
  Heard(2);
  Say(2, Command::OfNumber(CommandCode::kImpi, 1));
  EXPECT_EQ(Heard(2), "");
  Say(1, Command::OfNumber(CommandCode::kImpi, 0));
  EXPECT_EQ(Heard(1), "494d50490000000400000002");
  EXPECT_EQ(Heard(2), "494d50490000000400000002");
  EXPECT_EQ(server->state(), State::kExchanging);
  Say(2, Label::kDataLength, "00010000");
  EXPECT_EQ(Heard(1), "");
  Say(1, Label::kDataLength, "00008000");
  const std::string both = "434f4c4c000000100000130000000003" "00008000" "00010000";
  EXPECT_EQ(Heard(1), both);
  EXPECT_EQ(Heard(2), both);
  Say(1, kDone);
  EXPECT_EQ(Heard(1), "");
  Say(2, kDone);
  EXPECT_EQ(Heard(1), kDoneText);
  EXPECT_EQ(Heard(2), kDoneText);
  EXPECT_EQ(server->state(), State::kRunning);
  EXPECT_EQ(server->deadline(), std::nullopt);
  Say(2, kFini);
  EXPECT_EQ(closed, std::set<Rendezvous::Connection>{2});
  EXPECT_EQ(server->state(), State::kRunning);
  Say(1, kFini);
  EXPECT_EQ(server->state(), State::kEnded);
  EXPECT_TRUE(warnings.empty()) << last_warning();
}

// Section 2.3.5: the mask says who has sent a label; all are told of it.
TEST_F(RendezvousTest, ALabelThatSomeLeaveOutIsToldAsSoonAsTheyPassIt) {
  JoinAll(3);
  Say(10, Label::kDataLength, "00000001");
  Say(12, Label::kDataLength, "00000003");
  EXPECT_EQ(Heard(11), "");
  Say(11, Label::kTagUpperBound, "00000002");
  EXPECT_EQ(Heard(11), "434f4c4c000000100000130000000005" "00000001" "00000003");
  Say(10, kDone);
  Say(12, kDone);
  EXPECT_EQ(Heard(10), "434f4c4c000000100000130000000005" "00000001" "00000003" "434f4c4c0000000c0000140000000002" "00000002");
  Say(11, kDone);
  EXPECT_EQ(Heard(10), kDoneText);
}

TEST_F(RendezvousTest, WhatComesBeforeTheLastClientWaitsForIt) {
  Begin(2);
  Join(10, 0);
  sent.clear();
  Say(10, Label::kHosts, "00000001");
  Say(10, kDone);
  EXPECT_EQ(Heard(10), "");
  Join(11, 1);
  EXPECT_EQ(Heard(10), "494d50490000000400000002");
  Say(11, kDone);
  EXPECT_EQ(Heard(10), "434f4c4c0000000c0000110000000001" "00000001" + std::string(kDoneText));
}

TEST_F(RendezvousTest, ABytesByByteStreamIsTheSame) {
  Begin(1);
  Connect(10);
  std::string stream = HexOf(Command::OfNumber(CommandCode::kAuth, 2).Serialize()) + HexOf(SerializeKey(5678)) +
                       HexOf(Command::OfNumber(CommandCode::kImpi, 0).Serialize()) + HexOf(Collected{Label::kHosts, 0, {0, 0, 0, 1}}.ToServer().Serialize()) +
                       HexOf(kDone.Serialize()) + HexOf(kFini.Serialize());
  Bytes bytes(stream.size() / 2);
  ASSERT_TRUE(ParseHex(stream, bytes));
  for (const uint8_t byte : bytes) Say(10, Bytes{byte});
  EXPECT_EQ(server->state(), State::kEnded);
}

TEST_F(RendezvousTest, TheMethodIsTheServersPreferredOneThatBothHave) {
  Begin(2, {AuthMethod::kKey, AuthMethod::kNone});
  Connect(1);
  Say(1, Command::OfNumber(CommandCode::kAuth, 3));
  EXPECT_EQ(Heard(1), "0000000100000000");
  Connect(2);
  Say(2, Command::OfNumber(CommandCode::kAuth, 1));
  EXPECT_EQ(Heard(2), "0000000000000000");
  EXPECT_EQ(last_warning(), "192.0.2.2 has authenticated with IMPI_AUTH_NONE");
  Connect(3);
  Say(3, Command::OfNumber(CommandCode::kAuth, 0xfffffffc));
  EXPECT_TRUE(closed.contains(3));
  EXPECT_EQ(last_warning(),
            "192.0.2.3 offers the authentication methods 0xfffffffc, none of which this server accepts; set IMPI_AUTH_KEY to the same number, or "
            "IMPI_AUTH_NONE, at both");
  EXPECT_EQ(server->state(), State::kGathering);
}

TEST_F(RendezvousTest, WhoIsNoClientIsTurnedAwayAndTheJobGoesOn) {
  Begin(2);
  const auto expect_turned_away = [&](Rendezvous::Connection connection, const std::string& why) {
    EXPECT_TRUE(closed.contains(connection)) << why;
    EXPECT_EQ(last_warning(), "192.0.2." + std::to_string(connection) + " " + why);
    EXPECT_EQ(server->state(), State::kGathering);
  };
  Authenticate(1, 1234);
  expect_turned_away(1, "sent a wrong key; IMPI_AUTH_KEY has to be the same number as at the server");
  Connect(2);
  Say(2, kDone);
  expect_turned_away(2, "began with DONE and not with AUTH");
  Connect(3);
  Say(3, Command{CommandCode::kAuth, Bytes(3)});
  expect_turned_away(3, "sent AUTH without methods");
  Authenticate(4);
  Say(4, kDone);
  expect_turned_away(4, "sent DONE before IMPI");
  Join(5, 2);
  expect_turned_away(5, "wants to be client 2; this job has the clients 0 to 1");
  Join(6, -1);
  expect_turned_away(6, "wants to be client -1; this job has the clients 0 to 1");
  Connect(7);
  Say(7, Command{CommandCode::kAuth, Bytes(1000)});
  expect_turned_away(7, "sent a command with a payload of 1000 bytes");
  Authenticate(8);
  Say(8, Command{CommandCode::kImpi, Bytes(8)});
  expect_turned_away(8, "sent IMPI with 8 bytes and not 4");
  Join(10, 0);
  Join(9, 0);
  expect_turned_away(9, "wants to be client 0, which 192.0.2.10 is already");
  Connect(12);
  server->OnClosed(12);
  EXPECT_EQ(last_warning(), "192.0.2.12 left before it joined the job");
  Join(11, 1);
  EXPECT_EQ(server->state(), State::kExchanging);
}

TEST_F(RendezvousTest, SilentStrangersAreTurnedAwayInTimeAndAreNotMany) {
  Begin(1);
  for (Rendezvous::Connection connection = 100; connection < 100 + Rendezvous::kMostStrangers; ++connection) Connect(connection);
  Connect(99);
  EXPECT_EQ(closed, std::set<Rendezvous::Connection>{99});
  ASSERT_TRUE(server->deadline());
  EXPECT_EQ(*server->deadline(), now + Rendezvous::kJoinPatience);
  now += Rendezvous::kJoinPatience;
  server->OnTime(now);
  EXPECT_EQ(closed.size(), Rendezvous::kMostStrangers + 1);
  EXPECT_EQ(last_warning(), "192.0.2.163 did not join the job within 10 seconds");
  EXPECT_EQ(server->deadline(), std::nullopt);
  Join(10, 0);
  EXPECT_EQ(server->state(), State::kExchanging);
}

TEST_F(RendezvousTest, StrangersDoNotFillTheScreen) {
  Begin(1);
  for (Rendezvous::Connection connection = 0; connection < 10000; ++connection) {
    Connect(connection);
    Say(connection, kDone);
  }
  EXPECT_LE(warnings.size(), static_cast<size_t>(Rendezvous::kMostWarnings));
  EXPECT_EQ(last_warning(), "further warnings are not shown");
}

TEST_F(RendezvousTest, AClientThatLeavesEndsTheJob) {
  for (const bool running : {false, true}) {
    closed.clear();
    JoinAll(2);
    if (running) {
      Say(10, kDone);
      Say(11, kDone);
    }
    server->OnClosed(11);
    EXPECT_EQ(server->state(), State::kFailed);
    EXPECT_EQ(server->reason(), "client 1 (192.0.2.11) left before it said that its processes have ended (FINI)");
    EXPECT_EQ(closed, std::set<Rendezvous::Connection>{10}) << "the others hear of it";
    EXPECT_EQ(server->deadline(), std::nullopt);
  }
}

TEST_F(RendezvousTest, AClientThatSaysNothingEndsTheJobInTime) {
  JoinAll(3);
  Say(10, kDone);
  now += Rendezvous::kExchangePatience - seconds(1);
  server->OnTime(now);
  EXPECT_EQ(server->state(), State::kExchanging);
  now += seconds(1);
  server->OnTime(now);
  EXPECT_EQ(server->state(), State::kFailed);
  EXPECT_EQ(server->reason(),
            "after 60 seconds these have not said all that they have to say at the start: client 1 (192.0.2.11), client 2 (192.0.2.12)");
}

TEST_F(RendezvousTest, WhatAClientMayNotSayIsNamed) {
  const auto reason = [&](auto say) {
    JoinAll(1);
    say();
    EXPECT_EQ(server->state(), State::kFailed);
    return server->reason();
  };
  const std::string client = "client 0 (192.0.2.10) ";
  EXPECT_EQ(reason([&] { Say(10, Command{CommandCode::kColl, Bytes(3)}); }), client + "sent COLL without a label");
  EXPECT_EQ(reason([&] {
              Say(10, Label::kHostPort, "");
              Say(10, Label::kHosts, "");
            }),
            client + "sent IMPI_C_NHOSTS after IMPI_H_PORT; labels ascend");
  EXPECT_EQ(reason([&] { Say(10, Label::kNone, ""); }), client + "sent IMPI_NO_LABEL after IMPI_NO_LABEL; labels ascend");
  EXPECT_EQ(reason([&] {
              Say(10, kDone);
              Say(10, Label::kHosts, "");
            }),
            client + "sent IMPI_C_NHOSTS after DONE");
  EXPECT_EQ(reason([&] { Say(10, kFini); }), client + "ended (FINI) before the job had started");
  EXPECT_EQ(reason([&] { Say(10, Command::OfNumber(CommandCode::kImpi, 0)); }), client + "sent IMPI a second time");
  EXPECT_EQ(reason([&] { Say(10, Bytes{'C', 'O', 'L', 'L', 0x80, 0, 0, 0}); }),
            client + "sent a command with a payload of -2147483648 bytes; at most 4194304 are accepted");
}

TEST_F(RendezvousTest, MemoryForWhatClientsSayIsBounded) {
  JoinAll(8);
  const Collected most{Label::kProcessNumber, 0, Bytes(Rendezvous::kLongestPayload - 4)};
  for (Rendezvous::Connection connection = 10; connection < 15; ++connection) Say(connection, most.ToServer());
  EXPECT_EQ(server->state(), State::kFailed);
  EXPECT_EQ(server->reason(), "the clients said more than 16777216 bytes about themselves; client 4 (192.0.2.14) was the last one");
}

TEST_F(RendezvousTest, CommandsOfALaterVersionAreSkipped) {
  JoinAll(1);
  Say(10, Command{static_cast<CommandCode>(0x41424344), Bytes(100)});
  Say(10, static_cast<Label>(0x7001), "01");
  Say(10, kDone);
  EXPECT_EQ(Heard(10), "434f4c4c000000090000700100000001" "01" + std::string(kDoneText));
}

TEST_F(RendezvousTest, ThirtyTwoClientsAreTheMost) {
  JoinAll(Rendezvous::kMostClients);
  Authenticate(99);
  Say(99, Command::OfNumber(CommandCode::kImpi, 32));
  EXPECT_EQ(last_warning(), "192.0.2.99 wants to be client 32; this job has the clients 0 to 31");
  for (Rendezvous::Connection connection = 10; connection < 42; ++connection) Say(connection, Label::kHosts, "00000001");
  EXPECT_TRUE(Heard(41).starts_with("434f4c4c0000008800001100ffffffff"));
}

}  // namespace
}  // namespace weft::impi
