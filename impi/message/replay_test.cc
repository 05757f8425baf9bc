// A job of two LAM/MPI 7.1.4 clients (lam_job.txt), with an Endpoint in the place of either process: it accepts LAM's packets, and its own are LAM's, byte by
// byte and in this order, but for
//   - pk_srqid, which LAM leaves 0 in short messages that are not synchronous, and the numbers that an Endpoint gives out;
//   - pk_cid of packets without data, which LAM does not set;
//   - the time: of 20 packets, LAM fills the window with first packets of messages, an Endpoint 10 (flow.h).
#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <deque>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/hex.h"
#include "impi/message/departures.h"
#include "impi/message/endpoint.h"

namespace weft::impi {
namespace {

using Header = std::array<uint8_t, Packet::kSize>;

constexpr PacketLimits kLimits{.data_length = 65536, .tag = 32767};
constexpr FlowLimits kFlow{.ack_mark = 10, .high_water = 20};

struct Line {
  char from = 'A';
  std::string type;
  Header header{};
};

std::vector<Line> ReadJob() {
  std::vector<Line> lines;
  std::ifstream file("impi/message/lam_job.txt");
  for (std::string text; std::getline(file, text);) {
    if (text.starts_with("#")) continue;
    std::istringstream words(text);
    Line line;
    std::string digits;
    words >> line.from >> line.type >> digits;
    EXPECT_TRUE(ParseHex(digits, line.header)) << text;
    lines.push_back(line);
  }
  return lines;
}

ProcessName ProcessOf(char process) {
  return process == 'A' ? ProcessName{HostIdOfIpv4(inet_addr("127.0.0.2")), 2211} : ProcessName{HostIdOfIpv4(inet_addr("127.0.0.1")), 2209};
}

void Clear(Header& header, size_t at, size_t bytes) { std::fill_n(header.begin() + static_cast<ptrdiff_t>(at), bytes, uint8_t{0}); }

class Replay {
 public:
  explicit Replay(char role) : role_(role), endpoint_(ProcessOf(role), kLimits) {
    peer_ = endpoint_.AddPeer(ProcessOf(role == 'A' ? 'B' : 'A'), Peer::kLam, kFlow);
  }

  void Run() {
    for (const Line& line : ReadJob()) {
      ++(line.from == role_ ? ours_ : theirs_)[line.type];
      if (line.from == role_) {
        Expect(line);
      } else {
        Feed(line);
      }
      Send();
      if (testing::Test::HasFailure()) return;
    }
    EXPECT_TRUE(owed_.empty()) << owed_.size() << " packets are left, the first is " << owed_.front().type;
    EXPECT_FALSE(endpoint_.HasOutput(peer_));
    EXPECT_EQ(endpoint_.messages(), 0u);
  }
  std::map<std::string, int> ours_, theirs_;  // packets by type

 private:
  static Packet Parsed(const Header& header) { return Packet::Parse(header, kLimits).value(); }

  // LAM sent this. What the program did for it: it sent a message, or received one.
  void Expect(const Line& line) {
    const Packet packet = Parsed(line.header);
    const bool first = packet.has_data() && (packet.type == PacketType::kDataSync || packet.data_length == packet.message_length);
    if (first) {
      const bool synchronous = packet.type == PacketType::kDataSync && packet.data_length == packet.message_length;
      const Envelope envelope{.context = packet.context, .rank = packet.source_rank, .tag = packet.tag, .length = packet.message_length};
      const SendId id = endpoint_.Send(peer_, envelope, synchronous);
      if (packet.source_request != 0) sends_[packet.source_request] = id;
    }
    if (packet.type == PacketType::kSyncAck) {
      const MessageId message = held_.at(packet.source_request);
      if (!endpoint_.Match(message, ~uint64_t{0}).whole) messages_[packet.destination_request] = message;
    }
    if (packet.type != PacketType::kFini) return owed_.push_back(line);
    Header fini;
    SerializeFor(Peer::kLam, FiniFor(Peer::kLam), sent_ + 1, fini);
    EXPECT_EQ(HexOf(fini), HexOf(line.header));
    endpoint_.Finish();
    endpoint_.OnFiniSent(peer_);
  }

  // LAM sends this.
  void Feed(const Line& line) {
    Packet packet = Parsed(line.header);
    if (packet.type == PacketType::kFini) return endpoint_.OnFini(peer_);
    if (packet.type == PacketType::kSyncAck) packet.source_request = sends_.at(packet.source_request).value;
    if (packet.type == PacketType::kData && packet.destination_request != 0) packet.destination_request = messages_.at(packet.destination_request).value;
    Header header;
    SerializeFor(Peer::kLam, packet, packet.sequence, header);
    const auto event = endpoint_.OnHeader(header);
    ASSERT_TRUE(event.ok()) << event.error().text;
    EXPECT_EQ(event->length, packet.data_length);
    if (event->kind != Event::Kind::kMessage) return;
    if (packet.type == PacketType::kDataSync) {
      held_[packet.source_request] = event->message;
    } else {
      EXPECT_TRUE(endpoint_.Match(event->message, ~uint64_t{0}).whole);
    }
  }

  void Send() {
    while (!owed_.empty()) {
      const std::optional<Outgoing> out = endpoint_.Next(peer_);
      if (!out) return;
      ++sent_;
      const Line line = owed_.front();
      owed_.pop_front();
      ASSERT_EQ(NameOf(out->type), line.type);
      EXPECT_EQ(HexOf(Normal(out->header)), HexOf(Normal(line.header))) << line.type;
    }
  }

  // Without what differs by design.
  static Header Normal(Header header) {
    const Packet packet = Parsed(header);
    if (packet.has_data()) Clear(header, 56, 8);                        // pk_srqid
    if (!packet.has_data()) Clear(header, 88, 8);                       // pk_cid
    if (packet.type == PacketType::kSyncAck) Clear(header, 64, 8);      // pk_drqid
    return header;
  }

  const char role_;
  Endpoint endpoint_;
  PeerId peer_;
  uint64_t sent_ = 0;
  std::deque<Line> owed_;                  // that LAM sent already
  std::map<uint64_t, SendId> sends_;       // by LAM's pk_srqid
  std::map<uint64_t, MessageId> messages_;  // by LAM's pk_drqid
  std::map<uint64_t, MessageId> held_;     // by pk_srqid of DATASYNC
};

TEST(ImpiReplay, AnEndpointInThePlaceOfEitherLamSendsWhatLamSends) {
  for (const char role : {'A', 'B'}) {
    SCOPED_TRACE(std::string("role ") + role);
    Replay replay(role);
    replay.Run();
    EXPECT_EQ(replay.ours_["SYNCACK"] + replay.theirs_["SYNCACK"], 3);
    EXPECT_EQ(replay.ours_["PROTOACK"] + replay.theirs_["PROTOACK"], 5);
    EXPECT_EQ(replay.ours_["FINI"], 1);
    EXPECT_GT(replay.ours_["DATA"], 20);
  }
}

}  // namespace
}  // namespace weft::impi
