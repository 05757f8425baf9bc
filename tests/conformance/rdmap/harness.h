#ifndef TESTS_CONFORMANCE_RDMAP_HARNESS_H_
#define TESTS_CONFORMANCE_RDMAP_HARNESS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "ddp/error.h"
#include "ddp/header.h"
#include "rdmap/error.h"
#include "rdmap/read_request.h"
#include "rdmap/stream.h"
#include "rdmap/testing/fake_host.h"
#include "rdmap/testing/segments.h"
#include "rdmap/testing/wire.h"

namespace weft::rdmap {

inline constexpr ddp::STag kRegion{0x100};
inline constexpr ddp::STag kSink{0x110};           // for our Reads
inline constexpr ddp::STag kForeignRegion{0x200};  // in another protection domain
inline constexpr ddp::STag kWriteOnlyRegion{0x300};
inline constexpr uint64_t kBase = 0x10000;
inline constexpr size_t kSize = 4096;

// One stream whose peer the test plays: segments in by Receive(), out by Next().
class RdmapTest : public ::testing::Test {
 protected:
  explicit RdmapTest(const StreamOptions& options = {.ird = 2, .ord = 2}) { Restart(options); }

  void Restart(const StreamOptions& options) {
    host_ = std::make_unique<testing::FakeHost>();
    stream_ = std::make_unique<Stream>(options, *host_);
    host_->AddRegion(kRegion, kBase, kSize).bytes = testing::Pattern(kSize, 9);
    host_->AddRegion(kSink, kBase, kSize);
    host_->AddRegion(kForeignRegion, kBase, kSize, testing::Rights{.associated = false});
    host_->AddRegion(kWriteOnlyRegion, kBase, kSize, testing::Rights{.remote_read = false});
  }

  bool Receive(const testing::Bytes& segment) { return testing::Deliver(*stream_, segment); }

  // The next segment that the stream sends; nullopt: there is none.
  std::optional<testing::Bytes> Next() {
    if (wire_.empty()) stream_->Transmit(wire_);
    if (wire_.empty()) return std::nullopt;
    testing::Bytes segment = wire_.Take();
    stream_->OnTransmitted(wire_.taken());
    return segment;
  }
  Opcode OpcodeOf(const testing::Bytes& segment) {
    return static_cast<Opcode>(ControlByte::Parse(segment.at(1)).opcode);
  }
  ReadRequestHeader ReadOf(const testing::Bytes& segment) {
    return *ReadRequestHeader::Parse(ByteSpan(segment).subspan(ddp::UntaggedHeader::kLength));
  }

  testing::Bytes Memory(ddp::STag stag, size_t at, size_t length) {
    const testing::Bytes& bytes = host_->FindRegion(stag)->bytes;
    return {bytes.begin() + static_cast<ptrdiff_t>(at), bytes.begin() + static_cast<ptrdiff_t>(at + length)};
  }

  // Expects that the next segment is a Terminate, and returns it.
  std::optional<TerminateMessage> NextTerminate() {
    const auto segment = Next();
    if (!segment) return std::nullopt;
    EXPECT_EQ(OpcodeOf(*segment), Opcode::kTerminate);
    const auto header = ddp::UntaggedHeader::Parse(*segment);
    EXPECT_EQ(header->queue, 2u);
    EXPECT_EQ(header->msn, ddp::Msn(1));
    EXPECT_EQ(header->message_offset, 0u);
    EXPECT_TRUE(header->last);
    EXPECT_EQ(header->rsvd_ulp_word, 0u);
    return TerminateMessage::Parse(ByteSpan(*segment).subspan(ddp::UntaggedHeader::kLength));
  }
  TerminateMessage ExpectTerminate(TerminateLayer layer, uint8_t type, uint8_t code) {
    const auto message = NextTerminate();
    if (!message) {
      ADD_FAILURE() << "no Terminate";
      return {};
    }
    EXPECT_EQ(message->layer, layer) << message->ToString();
    EXPECT_EQ(message->error_type, type) << message->ToString();
    EXPECT_EQ(message->error_code, code) << message->ToString();
    return *message;
  }
  TerminateMessage ExpectTerminate(Error error) {
    return ExpectTerminate(TerminateLayer::kRdmap, ErrorType(error), ErrorCode(error));
  }
  TerminateMessage ExpectTerminate(ddp::Error error) {
    return ExpectTerminate(TerminateLayer::kDdp, ddp::ErrorType(error), ddp::ErrorCode(error));
  }
  void ExpectQuotes(const TerminateMessage& message, const testing::Bytes& segment) {
    EXPECT_EQ(message.ddp_segment_length, segment.size());
    ASSERT_GE(segment.size(), message.ddp_header_length);
    EXPECT_EQ(message.ddp_header_length, (segment[0] & 0x80) != 0 ? 14 : 18);
    EXPECT_TRUE(std::equal(segment.begin(), segment.begin() + message.ddp_header_length, message.ddp_header.begin()));
  }

  std::unique_ptr<testing::FakeHost> host_;
  std::unique_ptr<Stream> stream_;
  testing::Wire wire_{1460};
};

}  // namespace weft::rdmap

#endif  // TESTS_CONFORMANCE_RDMAP_HARNESS_H_
