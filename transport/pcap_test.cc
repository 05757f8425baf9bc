#include "transport/pcap.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>

#include "base/byte_reader.h"
#include "base/byte_writer.h"
#include "base/crc32c.h"
#include "transport/tcp_network.h"

namespace weft::transport {
namespace {

using Kind = IoResult::Kind;

// Reads what the test put there, takes every write.
class FakeStream : public ByteStream {
 public:
  FakeStream(const char* host, uint16_t local, uint16_t peer)
      : local_(*SocketAddress::Parse(host, local)), peer_(*SocketAddress::Parse(host, peer)) {}

  std::deque<std::string> incoming;
  IoResult at_end{Kind::kWouldBlock};

  IoResult Read(std::span<const iovec> into) override {
    if (incoming.empty()) return at_end;
    std::string& next = incoming.front();
    size_t bytes = std::min(next.size(), into[0].iov_len);
    std::memcpy(into[0].iov_base, next.data(), bytes);
    next.erase(0, bytes);
    if (next.empty()) incoming.pop_front();
    return {Kind::kDone, bytes};
  }
  IoResult Write(std::span<const iovec> from) override {
    size_t bytes = 0;
    for (const iovec& part : from) bytes += part.iov_len;
    return {Kind::kDone, bytes};
  }
  int ConnectError() override { return 0; }
  void ShutdownWrite() override {}
  void Abort() override {}
  size_t SegmentSize() const override { return 1460; }
  SocketAddress LocalAddress() const override { return local_; }
  SocketAddress PeerAddress() const override { return peer_; }

 private:
  SocketAddress local_, peer_;
};

struct Segment {
  uint16_t source_port = 0;
  uint32_t sequence = 0, acknowledgment = 0;
  uint8_t flags = 0;
  std::string payload;
};

uint16_t Sum(ByteSpan bytes, uint64_t sum = 0) {
  for (size_t i = 0; i < bytes.size(); i += 2) sum += bytes[i] << 8 | (i + 1 < bytes.size() ? bytes[i + 1] : 0);
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(sum);
}

// Takes a frame apart and checks every length and checksum on the way.
Segment ParseFrame(ByteSpan frame) {
  ByteReader reader(frame);
  reader.Bytes(12);
  bool is_v6 = reader.U16() == 0x86dd;
  size_t address_bytes = is_v6 ? 16 : 4, addresses_at = is_v6 ? 14 + 8 : 14 + 12, tcp_at = is_v6 ? 14 + 40 : 14 + 20;
  ByteSpan tcp = frame.subspan(tcp_at);
  if (is_v6) {
    EXPECT_EQ(frame[14] >> 4, 6);
    EXPECT_EQ(ByteReader(frame.subspan(18)).U16(), tcp.size());
    EXPECT_EQ(frame[20], 6);
  } else {
    EXPECT_EQ(frame[14], 0x45);
    EXPECT_EQ(ByteReader(frame.subspan(16)).U16(), tcp.size() + 20);
    EXPECT_EQ(frame[23], 6);
    EXPECT_EQ(Sum(frame.subspan(14, 20)), 0xffff);
  }
  uint64_t pseudo = Sum(frame.subspan(addresses_at, 2 * address_bytes)) + 6 + tcp.size();
  EXPECT_EQ(Sum(tcp, pseudo), 0xffff);

  ByteReader header(tcp);
  Segment segment;
  segment.source_port = header.U16();
  header.U16();
  segment.sequence = header.U32();
  segment.acknowledgment = header.U32();
  size_t header_bytes = (header.U8() >> 4) * 4u;
  segment.flags = header.U8();
  ByteSpan payload = tcp.subspan(header_bytes);
  segment.payload.assign(payload.begin(), payload.end());
  return segment;
}

std::vector<Segment> ReadCapture(const std::string& name, PcapFile* open = nullptr) {
  if (open != nullptr) open->Sync();
  std::ifstream file(name, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), {});
  auto u32 = [&](size_t at) {
    uint32_t value = 0;
    std::memcpy(&value, bytes.data() + at, 4);
    return value;
  };
  EXPECT_GE(bytes.size(), 24u);
  EXPECT_EQ(u32(0), 0xa1b23c4d);
  EXPECT_EQ(u32(20), 1u);
  std::vector<Segment> segments;
  for (size_t at = 24; at + 16 <= bytes.size();) {
    size_t length = u32(at + 8);
    EXPECT_EQ(length, u32(at + 12));
    if (at + 16 + length > bytes.size()) {
      ADD_FAILURE() << "truncated record";
      break;
    }
    segments.push_back(ParseFrame({reinterpret_cast<const uint8_t*>(bytes.data()) + at + 16, length}));
    at += 16 + length;
  }
  return segments;
}

std::string TempName(const char* name) { return testing::TempDir() + "/" + name + std::to_string(getpid()) + ".pcap"; }

std::unique_ptr<PcapFile> OpenFile(const std::string& name) { return PcapFile::Open(name, nullptr).value(); }

void ReadAll(ByteStream& stream, size_t at_once = 1 << 20) {
  std::vector<char> buffer(at_once);
  iovec part{buffer.data(), buffer.size()};
  while (stream.Read({&part, 1}).kind == Kind::kDone) {
  }
}

void WriteText(ByteStream& stream, std::string_view text) {
  iovec part{const_cast<char*>(text.data()), text.size()};
  ASSERT_EQ(stream.Write({&part, 1}).bytes, text.size());
}

TEST(PcapTest, ShowsHandshakeDataAndCloseWithMatchingNumbers) {
  for (const char* host : {"127.0.0.1", "::1", "::ffff:127.0.0.1"}) {
    std::string name = TempName("whole");
    auto file = OpenFile(name);
    {
      auto fake = std::make_unique<FakeStream>(host, 1000, 2000);
      fake->incoming = {"reply"};
      fake->at_end = {Kind::kEndOfStream};
      CapturingStream stream(std::move(fake), /*initiator=*/true, file.get());
      WriteText(stream, "request");
      ReadAll(stream);
      stream.ShutdownWrite();
    }
    std::vector<Segment> segments = ReadCapture(name, file.get());
    ASSERT_EQ(segments.size(), 7u);
    constexpr uint8_t kFin = 0x11, kSyn = 0x02, kSynAck = 0x12, kAck = 0x10, kData = 0x18;
    struct {
      uint16_t port;
      uint8_t flags;
      uint32_t sequence, acknowledgment;
      const char* payload;
    } expected[] = {{1000, kSyn, 0, 0, ""},         {2000, kSynAck, 0, 1, ""},    {1000, kAck, 1, 1, ""},
                    {1000, kData, 1, 1, "request"}, {2000, kData, 1, 8, "reply"}, {2000, kFin, 6, 8, ""},
                    {1000, kFin, 8, 7, ""}};
    for (size_t i = 0; i < segments.size(); ++i) {
      EXPECT_EQ(segments[i].source_port, expected[i].port) << i;
      EXPECT_EQ(segments[i].flags, expected[i].flags) << i;
      EXPECT_EQ(segments[i].sequence, expected[i].sequence) << i;
      EXPECT_EQ(segments[i].acknowledgment, expected[i].acknowledgment) << i;
      EXPECT_EQ(segments[i].payload, expected[i].payload) << i;
    }
    file.reset();
    unlink(name.c_str());
  }
}

TEST(PcapTest, AcceptingEndShowsThePeersSyn) {
  std::string name = TempName("accepting");
  auto file = OpenFile(name);
  {
    CapturingStream stream(std::make_unique<FakeStream>("::1", 1, 2), /*initiator=*/false, file.get());
    WriteText(stream, "x");
  }
  std::vector<Segment> segments = ReadCapture(name, file.get());
  ASSERT_EQ(segments.size(), 5u);
  EXPECT_EQ(segments[0].source_port, 2);
  EXPECT_EQ(segments[1].source_port, 1);
  unlink(name.c_str());
}

TEST(PcapTest, CutsLargeAndOddWritesAndLosesNothing) {
  std::mt19937 random(1);
  std::string all(300'001, 0);
  for (char& c : all) c = static_cast<char>(random());
  std::string name = TempName("large");
  auto file = OpenFile(name);
  {
    CapturingStream stream(std::make_unique<FakeStream>("127.0.0.1", 1, 2), true, file.get());
    std::vector<iovec> parts;
    for (size_t at = 0; at < all.size();) {
      size_t length = std::min<size_t>(all.size() - at, random() % 70'000);
      parts.push_back({all.data() + at, length});
      at += length;
    }
    EXPECT_EQ(stream.Write(parts).bytes, all.size());
  }
  std::string shown;
  for (const Segment& segment : ReadCapture(name, file.get())) {
    EXPECT_LE(segment.payload.size(), TcpPacket::kMostPayload);
    if (!segment.payload.empty()) {
      EXPECT_EQ(segment.sequence, 1 + shown.size());
    }
    shown += segment.payload;
  }
  EXPECT_TRUE(shown == all);
  unlink(name.c_str());
}

TEST(PcapTest, AbortAndFailureAreResets) {
  std::string name = TempName("reset");
  auto file = OpenFile(name);
  {
    CapturingStream ours(std::make_unique<FakeStream>("127.0.0.1", 1, 2), true, file.get());
    WriteText(ours, "x");
    ours.Abort();
    auto fake = std::make_unique<FakeStream>("127.0.0.1", 3, 4);
    fake->at_end = {Kind::kFailed, 0, ECONNRESET};
    CapturingStream theirs(std::move(fake), true, file.get());
    WriteText(theirs, "x");
    ReadAll(theirs);
  }
  std::vector<Segment> segments = ReadCapture(name, file.get());
  ASSERT_EQ(segments.size(), 10u);
  EXPECT_EQ(segments[4].source_port, 1);
  EXPECT_EQ(segments[4].flags, 0x14);
  EXPECT_EQ(segments[9].source_port, 4);
  EXPECT_EQ(segments[9].flags, 0x14);
  unlink(name.c_str());
}

TEST(PcapTest, BothEndsInOneProcessAreShownOnce) {
  std::string name = TempName("both");
  auto file = OpenFile(name);
  {
    CapturingStream one(std::make_unique<FakeStream>("127.0.0.1", 1, 2), true, file.get());
    CapturingStream other(std::make_unique<FakeStream>("127.0.0.1", 2, 1), false, file.get());
    WriteText(one, "x");
    WriteText(other, "y");
  }
  EXPECT_EQ(ReadCapture(name, file.get()).size(), 5u);
  unlink(name.c_str());
}

TEST(PcapTest, NothingIsShownOfAStreamThatNeverConnected) {
  class Unconnected : public FakeStream {
   public:
    Unconnected() : FakeStream("127.0.0.1", 1, 2) {}
    SocketAddress PeerAddress() const override { return {}; }
  };
  std::string name = TempName("none");
  auto file = OpenFile(name);
  {
    CapturingStream stream(std::make_unique<Unconnected>(), true, file.get());
    stream.ShutdownWrite();
    stream.Abort();
  }
  EXPECT_EQ(ReadCapture(name, file.get()).size(), 0u);
  unlink(name.c_str());
}

TEST(PcapFileTest, NameTakesTheProcessIdWhenAskedAndWhenTheFileIsInUse) {
  std::string pid = std::to_string(getpid());
  auto expanded = OpenFile(testing::TempDir() + "/a%p%%p.pcap");
  EXPECT_EQ(expanded->name(), testing::TempDir() + "/a" + pid + "%p.pcap");
  auto in_use = OpenFile(testing::TempDir() + "/a%p%%p.pcap");
  EXPECT_EQ(in_use->name(), expanded->name() + "." + pid);
  std::string name = expanded->name();
  expanded.reset();
  EXPECT_EQ(OpenFile(name)->name() == "", false);
  EXPECT_EQ(PcapFile::Open("/no/such/folder/x.pcap", nullptr).error(), ENOENT);
  unlink(name.c_str());
  unlink(in_use->name().c_str());
}

TEST(PcapFileTest, ChildOfAForkWritesNothingIntoTheParentsFile) {
  std::string name = TempName("fork");
  auto file = OpenFile(name);
  CapturingStream stream(std::make_unique<FakeStream>("127.0.0.1", 1, 2), true, file.get());
  WriteText(stream, "x");
  pid_t child = fork();
  if (child == 0) {
    WriteText(stream, "of the child");
    file->Flush();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  file->Sync();
  EXPECT_EQ(ReadCapture(name, file.get()).size(), 4u);
  unlink(name.c_str());
}

// As Wireshark's, that is started later or never.
TEST(PcapFileTest, AFifoThatNobodyReadsIsAnErrorAndNoReasonToWait) {
  const std::string name = TempName("fifo");
  ASSERT_EQ(mkfifo(name.c_str(), 0600), 0);
  EXPECT_EQ(PcapFile::Open(name, nullptr).error(), ENXIO);
  const int reader = open(name.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  auto file = OpenFile(name);
  {
    // More than the FIFO takes.
    CapturingStream stream(std::make_unique<FakeStream>("127.0.0.1", 1, 2), true, file.get());
    for (int i = 0; i < 50; ++i) WriteText(stream, std::string(30'000, 'x'));
  }
  file->Flush();
  close(reader);
  file.reset();
  unlink(name.c_str());
}

// The only test here with a real clock and thread.
TEST(PcapFileTest, PacketsReachTheFileSoonWithoutFurtherTraffic) {
  std::string name = TempName("soon");
  TcpNetwork network;
  auto file = PcapFile::Open(name, &network).value();
  CapturingStream stream(std::make_unique<FakeStream>("127.0.0.1", 1, 2), true, file.get());
  WriteText(stream, "x");
  Time deadline = network.Now() + std::chrono::seconds(10);
  auto size = [&] { return std::ifstream(name, std::ios::ate).tellg(); };
  while (size() <= 24 && network.Now() < deadline) usleep(10'000);
  EXPECT_GT(size(), 24);
  EXPECT_EQ(ReadCapture(name, file.get()).size(), 4u);
  unlink(name.c_str());
}

// A packet of a pcapng file, with its comment.
struct Commented {
  Segment segment;
  std::string comment;
};

// Takes the file apart block by block (draft-ietf-opsawg-pcapng section 3.1).
std::vector<Commented> ReadCaptureNg(const std::string& name, PcapFile* open = nullptr) {
  if (open != nullptr) open->Sync();
  std::ifstream file(name, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  auto u32 = [&](size_t at) {
    uint32_t value = 0;
    std::memcpy(&value, bytes.data() + at, 4);
    return value;
  };
  auto u16 = [&](size_t at) {
    uint16_t value = 0;
    std::memcpy(&value, bytes.data() + at, 2);
    return value;
  };
  std::vector<Commented> packets;
  std::vector<uint32_t> types;
  for (size_t at = 0; at + 12 <= bytes.size();) {
    const size_t length = u32(at + 4), end = at + length;
    types.push_back(u32(at));
    if (length < 12 || length % 4 != 0 || end > bytes.size() || u32(end - 4) != length) {
      ADD_FAILURE() << "block of " << length << " bytes at " << at;
      break;
    }
    if (u32(at) == 6) {
      const size_t captured = u32(at + 20);
      EXPECT_EQ(captured, u32(at + 24));
      Commented packet{ParseFrame({reinterpret_cast<const uint8_t*>(bytes.data()) + at + 28, captured}), ""};
      for (size_t option = at + 28 + (captured + 3) / 4 * 4; option + 4 <= end - 4 && u16(option) != 0;) {
        EXPECT_EQ(u16(option), 1);
        packet.comment = bytes.substr(option + 4, u16(option + 2));
        option += 4 + (u16(option + 2) + 3u) / 4 * 4;
      }
      packets.push_back(std::move(packet));
    }
    at = end;
  }
  EXPECT_GE(types.size(), 2u);
  EXPECT_EQ(types[0], 0x0a0d0d0au);
  EXPECT_EQ(types[1], 1u);
  return packets;
}

TEST(PcapNgTest, NamesThatEndInPcapAreClassicAndOthersAreNot) {
  for (const char* ending : {".pcapng", "", ".cap", ".pcap.x"}) {
    const std::string name = testing::TempDir() + "/new" + ending;
    OpenFile(name).reset();
    EXPECT_EQ(ReadCaptureNg(name).size(), 0u) << name;
    unlink(name.c_str());
  }
  for (const char* ending : {".pcap", ".pcap.4711", ".2.pcap"}) {
    const std::string name = testing::TempDir() + "/classic" + ending;
    OpenFile(name).reset();
    EXPECT_EQ(ReadCapture(name).size(), 0u);
    unlink(name.c_str());
  }
}

TEST(PcapNgTest, CarriesTheSamePacketsAndCommentsOnThem) {
  const std::string name = TempName("ng") + "ng";
  auto file = OpenFile(name);
  {
    CapturingStream stream(std::make_unique<FakeStream>("127.0.0.1", 1, 2), true, file.get());
    stream.Annotate("the queue pair");
    WriteText(stream, "one");
    stream.Annotate("the queue pair");  // said already
    WriteText(stream, "three");
    stream.Annotate("another word");
    WriteText(stream, "x");
  }
  const auto packets = ReadCaptureNg(name, file.get());
  ASSERT_EQ(packets.size(), 7u);
  EXPECT_EQ(packets[0].comment, "the queue pair");
  EXPECT_EQ(packets[0].segment.flags, 0x02);
  EXPECT_EQ(packets[3].segment.payload, "one");
  EXPECT_EQ(packets[3].comment, "");
  EXPECT_EQ(packets[4].segment.payload, "three");
  EXPECT_EQ(packets[4].comment, "");
  EXPECT_EQ(packets[5].comment, "another word");
  EXPECT_EQ(packets[6].segment.flags, 0x11);
  unlink(name.c_str());
}

// A start-up frame of revision 1 (RFC 5044 section 7.1) that asks for CRC, with private data.
std::string StartUpFrame(const char* key, bool markers, const std::string& private_data) {
  std::string frame = key;
  frame += markers ? '\xc0' : '\x40';
  frame += '\x01';
  frame += static_cast<char>(private_data.size() >> 8);
  frame += static_cast<char>(private_data.size());
  return frame + private_data;
}

// Writes FPDUs with an untagged Send each (RFC 5041 section 4.3, RFC 5040 section 4.3), with markers when asked.
class SendStream {
 public:
  explicit SendStream(bool markers) : markers_(markers) {}

  std::string Next(const std::string& data) {
    std::vector<uint8_t> content(2 + 18 + data.size() + 3);
    ByteWriter writer(content);
    writer.U16(static_cast<uint16_t>(18 + data.size()));
    writer.U8(0x41);  // last, version 1
    writer.U8(0x43);  // version 1, Send
    writer.U32(0);    // invalidate STag
    writer.U32(0);    // queue number
    writer.U32(++msn_);
    writer.U32(0);  // message offset
    writer.Bytes({reinterpret_cast<const uint8_t*>(data.data()), data.size()});
    writer.Zeros((4 - writer.size() % 4) % 4);
    fpdu_.clear();
    for (uint8_t byte : writer.written()) Put(byte);
    uint8_t crc[4];
    MarkerIfDue();  // a marker before the CRC is under the CRC
    StoreCrc32c(crc, Crc32c({reinterpret_cast<const uint8_t*>(fpdu_.data()), fpdu_.size()}));
    for (uint8_t byte : crc) Put(byte);
    return fpdu_;
  }

 private:
  void Put(uint8_t byte) {
    MarkerIfDue();
    fpdu_ += static_cast<char>(byte);
    ++position_;
  }
  void MarkerIfDue() {
    if (!markers_ || position_ % 512 != 0 || marker_at_ == position_) return;
    size_t back = fpdu_.size();
    fpdu_ += {0, 0, static_cast<char>(back >> 8), static_cast<char>(back)};
    position_ += 4;
    marker_at_ = position_;
  }

  const bool markers_;
  uint32_t msn_ = 0;
  uint64_t position_ = 0, marker_at_ = UINT64_MAX;
  std::string fpdu_;
};

std::string OutputOf(const std::string& command) {
  std::string output;
  FILE* pipe = popen(command.c_str(), "r");
  char buffer[4096];
  while (size_t count = fread(buffer, 1, sizeof buffer, pipe)) output.append(buffer, count);
  pclose(pipe);
  return output;
}

class PcapTsharkTest : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Markers, PcapTsharkTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "On" : "Off"; });

TEST(PcapNgTest, TsharkShowsTheComment) {
  if (OutputOf("tshark --version 2>/dev/null").empty()) GTEST_SKIP() << "tshark is not installed";
  const std::string name = TempName("tshark") + "ng";
  auto file = OpenFile(name);
  {
    CapturingStream stream(std::make_unique<FakeStream>("127.0.0.1", 40000, 7174), true, file.get());
    stream.Annotate("Weft: queue pair 0x12");
    WriteText(stream, "hello");
  }
  file->Sync();
  const std::string verbose = OutputOf("tshark -r " + name + " -V -o ip.check_checksum:TRUE -o tcp.check_checksum:TRUE 2>&1");
  const size_t at = verbose.find("Weft: queue pair 0x12");
  ASSERT_NE(at, verbose.npos) << verbose;
  EXPECT_LT(at, verbose.find("Frame 2:"));
  EXPECT_NE(verbose.find("Frame 5:"), verbose.npos);
  for (const char* fault : {"Malformed", "[incorrect", "corrupt"}) EXPECT_EQ(verbose.find(fault), verbose.npos) << fault;
  unlink(name.c_str());
}

TEST_P(PcapTsharkTest, DecodesIwarpAndFindsNoFault) {
  if (OutputOf("tshark --version 2>/dev/null").empty()) GTEST_SKIP() << "tshark is not installed";
  const bool markers = GetParam();
  std::string name = TempName("tshark");
  auto file = OpenFile(name);
  SendStream from_client(markers), from_server(markers);
  {
    auto fake = std::make_unique<FakeStream>("127.0.0.1", 40000, 7174);
    fake->incoming = {StartUpFrame("MPA ID Rep Frame", markers, "welcome"), from_server.Next(std::string(50'000, 'r'))};
    CapturingStream stream(std::move(fake), true, file.get());
    WriteText(stream, StartUpFrame("MPA ID Req Frame", markers, "hello"));
    ReadAll(stream, 27);
    std::string sent;
    for (size_t length : {size_t{4}, size_t{markers ? 5'000u : 64'000u}, size_t{1'000}, size_t{1}}) {
      sent += from_client.Next(std::string(length, 's'));
    }
    WriteText(stream, std::string_view(sent).substr(0, 1));  // however the bytes were cut
    WriteText(stream, std::string_view(sent).substr(1));
    ReadAll(stream, 1001);
  }
  file->Sync();
  // The dissector of RPC over RDMA guesses at any Send and calls short ones malformed.
  std::string verbose = OutputOf("tshark -r " + name +
                                 " -V -o ip.check_checksum:TRUE -o tcp.check_checksum:TRUE --disable-protocol rpcordma"
                                 " 2>/dev/null");
  auto count = [&](const std::string& text) {
    size_t found = 0;
    for (size_t at = verbose.find(text); at != verbose.npos; at = verbose.find(text, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("Request frame header"), 1u);
  EXPECT_EQ(count("Reply frame header"), 1u);
  EXPECT_EQ(count("OpCode: Send (0x3)"), 5u);
  EXPECT_EQ(count("Good CRC32"), 5u);
  EXPECT_EQ(count("Bad CRC32"), 0u);
  EXPECT_EQ(count("FPDU back pointer") > 0, markers);
  for (const char* fault : {"Malformed", "[incorrect", "Expert Info (Warning", "Expert Info (Error"}) {
    EXPECT_EQ(count(fault), 0u) << fault;
  }
  if (HasFailure()) std::cerr << verbose.substr(0, 20'000);
  unlink(name.c_str());
}

}  // namespace
}  // namespace weft::transport
