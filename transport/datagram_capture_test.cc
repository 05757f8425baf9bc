#include "transport/datagram_capture.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

namespace weft::transport {
namespace {

SocketAddress Address(const char* host, uint16_t port) { return *SocketAddress::Parse(host, port); }

class FakeSocket : public DatagramSocket {
 public:
  explicit FakeSocket(SocketAddress local) : local_(local) {}
  size_t Send(std::span<const OutgoingDatagram> datagrams, int*) override { return datagrams.size(); }
  size_t Receive(std::span<IncomingDatagram> into) override {
    into[0].length = incoming.size();
    into[0].each = each;
    std::memcpy(into[0].room.iov_base, incoming.data(), incoming.size());
    into[0].from = from;
    into[0].to = to;
    return 1;
  }
  SocketAddress LocalAddress() const override { return local_; }

  std::string incoming;
  size_t each = 0;
  SocketAddress from, to;

 private:
  SocketAddress local_;
};

std::string Contents(const std::string& name) {
  std::ifstream file(name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string Describe(ByteSpan datagram) { return "begins with " + std::string(1, static_cast<char>(datagram[0])); }

class DatagramCapture : public testing::Test {
 protected:
  DatagramCapture() : file_(std::move(PcapFile::Open(name_, nullptr).value())) {
    auto fake = std::make_unique<FakeSocket>(Address("::", 4000));
    fake_ = fake.get();
    socket_ = std::make_unique<CapturingDatagramSocket>(std::move(fake), file_.get(), Describe);
  }
  ~DatagramCapture() override { unlink(name_.c_str()); }

  void Send(const SocketAddress& from, const SocketAddress& to, std::string text) {
    const iovec pieces[] = {{text.data(), 1}, {text.data() + 1, text.size() - 1}};
    const OutgoingDatagram datagram{to, from, 0, pieces};
    int error = 0;
    EXPECT_EQ(socket_->Send({&datagram, 1}, &error), 1u);
  }
  void Receive(const SocketAddress& from, const SocketAddress& to, const std::string& text) {
    fake_->incoming = text;
    fake_->from = from;
    fake_->to = to;
    uint8_t room[100];
    IncomingDatagram datagram;
    datagram.room = {room, sizeof room};
    EXPECT_EQ(socket_->Receive({&datagram, 1}), 1u);
  }
  // The Ethernet frames.
  std::vector<std::string> Frames() {
    file_->Sync();
    const std::string bytes = Contents(name_);
    std::vector<std::string> frames;
    for (size_t at = 0; at + 12 <= bytes.size();) {
      uint32_t word[8];
      std::memcpy(word, bytes.data() + at, sizeof word);
      if (word[0] == 6) frames.push_back(bytes.substr(at + 28, word[5]));
      at += word[1];
    }
    return frames;
  }

  const std::string name_ = testing::TempDir() + "/datagrams" + std::to_string(getpid()) + ".pcapng";
  std::unique_ptr<PcapFile> file_;
  FakeSocket* fake_ = nullptr;
  std::unique_ptr<CapturingDatagramSocket> socket_;
};

// The Internet checksum over all of it is 0 where it is right.
uint16_t Sum(const std::string& bytes, uint32_t sum) {
  for (size_t i = 0; i < bytes.size(); ++i) sum += static_cast<uint32_t>(static_cast<uint8_t>(bytes[i])) << (i % 2 == 0 ? 8 : 0);
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

TEST_F(DatagramCapture, ShowsWhatIsSentAsUdp) {
  Send(Address("127.0.0.1", 0), Address("::ffff:127.0.0.1", 5000), "hello");
  Send(Address("fd00::1", 0), Address("fd00::2", 5000), "hello");
  const auto frames = Frames();
  ASSERT_EQ(frames.size(), 2u);
  const std::string& four = frames[0];
  ASSERT_EQ(four.size(), 14u + 20 + 8 + 5);
  EXPECT_EQ(four[14 + 9], 17);
  EXPECT_EQ(Sum(four.substr(14, 20), 0), 0);
  EXPECT_EQ(four.substr(34, 6), std::string("\x0f\xa0\x13\x88\0\x0d", 6));  // ports 4000 and 5000, 13 bytes
  EXPECT_EQ(Sum(four.substr(26), 17 + 13), 0);
  EXPECT_EQ(four.substr(42), "hello");
  const std::string& six = frames[1];
  ASSERT_EQ(six.size(), 14u + 40 + 8 + 5);
  EXPECT_EQ(Sum(six.substr(22), 17 + 13), 0);
  EXPECT_NE(Contents(name_).find("begins with h"), std::string::npos);
}

TEST_F(DatagramCapture, ShowsEachDatagramOfATrain) {
  fake_->each = 4;
  Receive(Address("::ffff:127.0.0.1", 4001), Address("127.0.0.1", 0), "one twothre");
  const auto frames = Frames();
  ASSERT_EQ(frames.size(), 3u);
  EXPECT_EQ(frames[0].substr(42), "one ");
  EXPECT_EQ(frames[1].substr(42), "twot");
  EXPECT_EQ(frames[2].substr(42), "hre");
}

TEST_F(DatagramCapture, ShowsWhatComesFromOthersAlone) {
  Receive(Address("::ffff:127.0.0.1", 4001), Address("127.0.0.1", 0), "from another process");
  Receive(Address("::ffff:127.0.0.1", 4000), Address("::ffff:127.0.0.1", 0), "from here");
  Receive(Address("::ffff:192.0.2.1", 4000), Address("::ffff:127.0.0.1", 0), "from another host");
  Receive(Address("fd00::1", 4001), Address("::ffff:127.0.0.1", 0), "of no known kind");
  const auto frames = Frames();
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0].substr(42), "from another process");
  EXPECT_EQ(frames[1].substr(42), "from another host");
}

}  // namespace
}  // namespace weft::transport
