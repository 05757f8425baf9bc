#include "impi/tester/play.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <utility>

#include "impi/client/dialogue.h"
#include "impi/job/announcement.h"
#include "impi/server/rendezvous.h"

namespace weft::impi::tester {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kServerHead = "clause 2.3\nabout It works.\ntarget server\nclients 2\nauthentication none\n";

Script ScriptOf(const std::string& text) {
  auto script = ParseScript("a.script", text);
  EXPECT_TRUE(script.ok()) << TextOf(script.error());
  return script.ok() ? *script : Script();
}

// What the play does, in order: "open a", "send a 00ff", "close a".
class Recorder : public Play::Owner {
 public:
  void Open(const std::string& connection, const HostId&, uint16_t) override { done.push_back("open " + connection); }
  void Send(const std::string& connection, const Bytes& bytes) override {
    done.push_back("send " + connection);
    sent[connection].insert(sent[connection].end(), bytes.begin(), bytes.end());
  }
  void Close(const std::string& connection) override { done.push_back("close " + connection); }

  std::vector<std::string> done;
  std::map<std::string, Bytes> sent;
};

class ServerPlay : public ::testing::Test {
 protected:
  void Begin(const std::string& steps) {
    script_ = ScriptOf(kServerHead + steps);
    play_.emplace(script_, Play::Setup(), owner_, now_);
  }
  void Come(const std::string& connection, const Bytes& bytes) { play_->OnBytes(connection, bytes, now_); }
  void Pass(milliseconds time) {
    now_ += time;
    play_->OnTime(now_);
  }
  std::string Failure() const { return play_->state() == Play::State::kFailed ? play_->failure().reason : "none"; }

  Script script_;
  Recorder owner_;
  Play::Time now_{};
  std::optional<Play> play_;
};

TEST_F(ServerPlay, ComparesWhatComes) {
  Begin("open a\nsay a AUTH 1\nhear-words a 0 0\nhear a IMPI 2\n");
  EXPECT_EQ(owner_.done, (std::vector<std::string>{"open a"}));
  play_->OnOpened("a", now_);
  EXPECT_EQ(owner_.sent["a"], (Bytes{'A', 'U', 'T', 'H', 0, 0, 0, 4, 0, 0, 0, 1}));
  Come("a", Bytes(7));
  EXPECT_EQ(play_->done(), 2u);
  Come("a", {0, 'I', 'M'});
  EXPECT_EQ(play_->done(), 3u);
  Come("a", {'P', 'I', 0, 0, 0, 4, 0, 0, 0, 2});
  EXPECT_EQ(play_->state(), Play::State::kPassed);
}

TEST_F(ServerPlay, NamesTheStepThatFailedAndWhatCame) {
  Begin("open a\nhear a IMPI 2\n");
  play_->OnOpened("a", now_);
  Come("a", Command::OfNumber(CommandCode::kImpi, 3).Serialize());
  EXPECT_EQ(Failure(), "byte 3 differs: expected is 4 bytes: 00000002, and this came: 4 bytes: 00000003");
  EXPECT_EQ(play_->failure().line, 7);
  EXPECT_EQ(play_->failure().step, "hear a IMPI 2");
}

TEST_F(ServerPlay, AnotherCommandFails) {
  Begin("open a\nhear a IMPI 2\n");
  play_->OnOpened("a", now_);
  Come("a", Command{CommandCode::kDone, {}}.Serialize());
  EXPECT_EQ(Failure(), "expected is IMPI, and this came: DONE with no bytes");
}

TEST_F(ServerPlay, EveryWaitHasALimit) {
  for (const std::string step : {"hear a DONE", "hear-words a 1", "closed a", "exits 0"}) {
    Begin("open a\n" + step + "\n");
    play_->OnOpened("a", now_);
    ASSERT_EQ(play_->deadline(), now_ + seconds(10)) << step;
    Pass(milliseconds(9999));
    EXPECT_EQ(Failure(), "none") << step;
    Pass(milliseconds(1));
    EXPECT_EQ(play_->state(), Play::State::kFailed) << step;
  }
  Begin("open a\n");
  Pass(seconds(10));
  EXPECT_EQ(play_->state(), Play::State::kFailed);
}

TEST_F(ServerPlay, SilenceIsWaitedFor) {
  Begin("open a\nquiet a\n");
  play_->OnOpened("a", now_);
  Pass(milliseconds(199));
  EXPECT_EQ(play_->state(), Play::State::kPlaying);
  Pass(milliseconds(1));
  EXPECT_EQ(play_->state(), Play::State::kPassed);
  Begin("open a\nquiet a\n");
  play_->OnOpened("a", now_);
  Come("a", {1});
  EXPECT_EQ(Failure(), "nothing is expected, and this came: 1 byte: 01");
}

TEST_F(ServerPlay, TheEndOfAConnectionIsToldFromWords) {
  Begin("open a\nclosed a\n");
  play_->OnOpened("a", now_);
  play_->OnClosed("a", now_);
  EXPECT_EQ(play_->state(), Play::State::kPassed);
  Begin("open a\nclosed a\n");
  play_->OnOpened("a", now_);
  Come("a", {1, 2});
  EXPECT_EQ(Failure(), "the peer should end the connection, and this came before: 2 bytes: 0102");
  Begin("open a\nhear a DONE\n");
  play_->OnOpened("a", now_);
  Come("a", {1});
  play_->OnClosed("a", now_);
  EXPECT_EQ(Failure(), "the peer closed the connection within what is expected; this came before: 1 byte: 01");
}

TEST_F(ServerPlay, WhatNoStepTakesFails) {
  Begin("open a\nhear-words a u8:1\nexits 0\n");
  play_->OnOpened("a", now_);
  Come("a", {1, 2});
  play_->OnExit(0, now_);
  EXPECT_EQ(Failure(), "on 'a' came what no step expects: 1 byte: 02");
}

TEST_F(ServerPlay, ExitStatuses) {
  for (const auto& [step, status, passes] : {std::tuple("exits 0", 0, true),
                                             {"exits 0", 1, false},
                                             {"exits failure", 139, true},
                                             {"exits failure", 0, false}}) {
    Begin(std::string(step) + "\n");
    play_->OnExit(status, now_);
    EXPECT_EQ(play_->state() == Play::State::kPassed, passes) << step << " " << status;
  }
}

TEST_F(ServerPlay, AFloodIsEnded) {
  Begin("open a\nhear-words a zeros:1048576\nopen b\n");
  play_->OnOpened("a", now_);
  for (size_t came = 0; came <= Play::kMostWaiting + (2 << 20) && play_->state() == Play::State::kPlaying;
       came += 1 << 20)
    Come("a", Bytes(1 << 20));
  EXPECT_TRUE(Failure().starts_with("more than 33554432 bytes came on 'a'")) << Failure();
}

TEST_F(ServerPlay, ALengthThatCannotBeIsNamed) {
  Begin("open a\nhear a DONE\n");
  play_->OnOpened("a", now_);
  Come("a", {'D', 'O', 'N', 'E', 0xff, 0xff, 0xff, 0xff});
  EXPECT_EQ(Failure(), "a command came with a length of -1 bytes");
}

TEST_F(ServerPlay, WithoutConnectionNothingIsSaid) {
  Begin("say a DONE\n");
  EXPECT_EQ(Failure(), "'a' is not connected here; the script has to open or accept it before");
  Begin("open a\n");
  play_->OnOpenFailed("a", "Connection refused", now_);
  EXPECT_EQ(Failure(), "'a' cannot be connected: Connection refused");
}

// --- a client under test: Weft's own dialogue, and packets that are written here ---

constexpr const char* kClientHead =
    "clause 3.6\nabout It works.\ntarget client\nclients 2\nunder-test 1 ranks 1\nclient 0 ackmark 2\nclient 0 hiwater "
    "4\n";

class ClientPlay : public ::testing::Test {
 protected:
  void Begin(const std::string& steps) {
    script_ = ScriptOf(kClientHead + steps);
    Play::Setup setup;
    setup.hosts = {{HostIdOfIpv4(0x0100007f), 5001}, {}};
    play_.emplace(script_, std::move(setup), owner_, now_);
  }
  // The client under test says what it has to say.
  void Exchange() {
    Dialogue::Setup setup;
    setup.server = "the tester";
    setup.rank = 1;
    setup.key = kKey;
    setup.says = TheClient().ToLabels();
    Dialogue dialogue(std::move(setup), now_);
    play_->OnAccepted("server", now_);
    for (Bytes said = dialogue.TakeOutput(); !said.empty(); said = dialogue.TakeOutput()) {
      play_->OnBytes("server", said, now_);
      dialogue.OnBytes(std::exchange(owner_.sent["server"], {}), now_);
    }
    EXPECT_EQ(dialogue.state(), Dialogue::State::kRunning) << dialogue.reason();
  }
  static Announcement TheClient() {
    const HostId address = HostIdOfIpv4(0x0100007f);
    return {.data_length = 100, .tag_upper_bound = 40000, .hosts = {{address, 6001, 10, 40, {{address, 4711}}}}};
  }
  void Dance() {
    play_->OnAccepted("host0", now_);
    play_->OnBytes("host0", Bytes{0, 0, 0, 1}, now_);
  }
  void Packet(PacketType type, const Bytes& data = {}, const std::function<void(impi::Packet&)>& change = {}) {
    impi::Packet packet;
    packet.type = type;
    packet.data_length = static_cast<uint32_t>(data.size());
    packet.message_length = data.size();
    packet.source = {HostIdOfIpv4(0x0100007f), 4711};
    packet.destination = {HostIdOfIpv4(0x0100007f), 5001 * 32768};
    packet.source_rank = 1;
    if (change) change(packet);
    Bytes bytes(impi::Packet::kSize);
    packet.Serialize(std::span<uint8_t, impi::Packet::kSize>(bytes));
    bytes.insert(bytes.end(), data.begin(), data.end());
    play_->OnBytes("host0", bytes, now_);
  }
  size_t PacketsSent() { return owner_.sent["host0"].size() / impi::Packet::kSize; }
  std::string Failure() const { return play_->state() == Play::State::kFailed ? play_->failure().reason : "none"; }

  Script script_;
  Recorder owner_;
  Play::Time now_{};
  std::optional<Play> play_;
};

TEST_F(ClientPlay, AWholeJob) {
  Begin(
      "exchange\ndance\nexpect 1 to 0 DATA tag=5 len=2 lsrank=1 srqid=?id data hex:0102\nsend 0 to 1 SYNCACK "
      "srqid=$id\nfinalize\n");
  Exchange();
  Dance();
  Packet(PacketType::kData, {1, 2}, [](impi::Packet& packet) {
    packet.tag = 5;
    packet.source_request = 77;
  });
  ASSERT_EQ(PacketsSent(), 1u) << Failure();
  EXPECT_EQ(owner_.sent["host0"][3], 3);    // SYNCACK
  EXPECT_EQ(owner_.sent["host0"][63], 77);  // pk_srqid
  Packet(PacketType::kData, {}, [](impi::Packet& packet) {
    packet.tag = 110;
    packet.context = 1;
  });
  EXPECT_EQ(PacketsSent(), 4u) << Failure();  // PROTOACK for two packets, the barrier, FINI
  Packet(PacketType::kFini);
  play_->OnBytes("server", Command{CommandCode::kFini, {}}.Serialize(), now_);
  play_->OnExit(0, now_);
  EXPECT_EQ(play_->state(), Play::State::kPassed) << Failure();
}

TEST_F(ClientPlay, AJobThatCannotBeIsNamed) {
  Begin("client 0 xsize 77\nexchange\ndance\nquiet 1 to 0\n");
  Exchange();
  Dance();
  EXPECT_TRUE(Failure().starts_with("what the clients said at the start makes no job: ")) << Failure();
}

class AfterTheDance : public ClientPlay {
 protected:
  void Begin(const std::string& steps, const std::string& setup = "") {
    ClientPlay::Begin(setup + "exchange\ndance\n" + steps);
    Exchange();
    Dance();
    ASSERT_EQ(Failure(), "none");
  }
};

TEST_F(AfterTheDance, HighWaterIsKept) {
  Begin("expect 1 to 0 PROTOACK\n", "acks manual\n");
  for (int i = 0; i < 4; ++i) Packet(PacketType::kData);
  EXPECT_EQ(Failure(), "none");
  Packet(PacketType::kData);
  EXPECT_TRUE(
      Failure().starts_with("rank 1 sent rank 0 packet 5 without an acknowledgement; hiwater is 4 (section 3.6)"))
      << Failure();
}

TEST_F(AfterTheDance, AcknowledgementsThatAreNotDueFail) {
  Begin("send 0 to 1 DATA\nquiet 1 to 0\n");
  Packet(PacketType::kProtocolAck);
  EXPECT_EQ(Failure(), "PROTOACK came from rank 1 to rank 0 after 1 packets; ackmark is 2 (section 3.6)");
}

TEST_F(AfterTheDance, SendingWaitsForAcknowledgements) {
  Begin(
      "send 0 to 1 DATA\nsend 0 to 1 DATA\nsend 0 to 1 DATA\nsend 0 to 1 DATA\nsend 0 to 1 DATA\nexpect 1 to 0 "
      "PROTOACK\n");
  EXPECT_EQ(PacketsSent(), 4u);
  Packet(PacketType::kProtocolAck);
  EXPECT_EQ(PacketsSent(), 5u);
  EXPECT_EQ(play_->state(), Play::State::kPassed) << Failure();
  Begin("send 0 to 1 DATA\nsend 0 to 1 DATA\nsend 0 to 1 DATA\nsend 0 to 1 DATA\nsend 0 to 1 DATA\n");
  now_ += seconds(10);
  play_->OnTime(now_);
  EXPECT_TRUE(Failure().starts_with("after 10 seconds, no PROTOACK has come: 4 packets (hiwater)")) << Failure();
}

TEST_F(AfterTheDance, StrangeProcessesAndHeadersFail) {
  Begin("expect 1 to 0 DATA\n");
  Packet(PacketType::kData, {}, [](impi::Packet& packet) { packet.source.number = 1; });
  EXPECT_TRUE(Failure().starts_with("a packet came from 127.0.0.1/1, which is no process of the client under test"))
      << Failure();
  Begin("expect 1 to 0 DATA\n");
  Packet(PacketType::kData, {}, [](impi::Packet& packet) { packet.destination.number = 1; });
  EXPECT_TRUE(Failure().starts_with("a packet to 127.0.0.1/1 came on 'host0'")) << Failure();
  Begin("expect 1 to 0 DATA\n");
  Packet(PacketType::kData, {}, [](impi::Packet& packet) { packet.tag = 40001; });
  EXPECT_NE(Failure().find("pk_tag is 40001"), std::string::npos) << Failure();
}

TEST_F(AfterTheDance, AfterFiniOnlyAcknowledgementsMayCome) {
  Begin("fini host0\nhear-fini host0\nexpect 1 to 0 DATA\n");
  Packet(PacketType::kFini);
  Packet(PacketType::kData);
  EXPECT_TRUE(Failure().starts_with("after FINI, only acknowledgements may come (section 3.8)")) << Failure();
}

TEST_F(AfterTheDance, AFieldThatDiffersIsNamed) {
  Begin("expect 1 to 0 DATA tag=1\nfini host0\n");
  Packet(PacketType::kData, {}, [](impi::Packet& packet) { packet.tag = 2; });
  EXPECT_TRUE(Failure().starts_with("pk_tag is 2, and expected is 1")) << Failure();
}

TEST_F(AfterTheDance, APacketThatNoStepTakesFails) {
  Begin("send 0 to 1 DATA\nhear-fini host0\n");
  Packet(PacketType::kData, {}, [](impi::Packet& packet) { packet.tag = 2; });
  Packet(PacketType::kFini);
  EXPECT_TRUE(Failure().starts_with("rank 1 sent rank 0 a packet that no step expects: DATA len 0")) << Failure();
}

}  // namespace
}  // namespace weft::impi::tester
