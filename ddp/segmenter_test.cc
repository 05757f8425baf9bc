#include "ddp/segmenter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/byte_reader.h"

namespace weft::ddp {
namespace {

using Bytes = std::vector<uint8_t>;

// Keeps each ULPDU's bytes.
class RecordingWriter final : public llp::UlpduWriter {
 public:
  explicit RecordingWriter(size_t max_ulpdu) : max_ulpdu_(max_ulpdu) {}
  size_t max_ulpdu() const override { return max_ulpdu_; }
  bool HasRoom(size_t, size_t) const override { return segments.size() < room; }
  void Append(ByteSpan header, std::span<const iovec> payload, bool volatile_payload) override {
    Bytes segment(header.begin(), header.end());
    for (const iovec& piece : payload) {
      const auto* bytes = static_cast<const uint8_t*>(piece.iov_base);
      segment.insert(segment.end(), bytes, bytes + piece.iov_len);
    }
    EXPECT_LE(segment.size(), max_ulpdu_);
    segments.push_back(segment);
    any_volatile |= volatile_payload;
  }
  uint64_t appended() const override { return 0; }

  size_t room = SIZE_MAX;
  std::vector<Bytes> segments;
  bool any_volatile = false;

 private:
  size_t max_ulpdu_;
};

Bytes Counting(size_t length) {
  Bytes bytes(length);
  for (size_t i = 0; i < length; ++i) bytes[i] = static_cast<uint8_t>(i * 13 + (i >> 8));
  return bytes;
}

void AppendAll(Segmenter& segmenter, llp::UlpduWriter& out) {
  while (segmenter.active()) segmenter.AppendTo(out);
}

TEST(Segmenter, CutsTheUntaggedExampleOfTheRfc) {
  const Bytes message = Counting(2048);
  const iovec piece{const_cast<uint8_t*>(message.data()), message.size()};
  Segmenter segmenter;
  RecordingWriter out(1500);
  UntaggedHeader header;
  header.queue = 2;
  header.msn = Msn(7);
  segmenter.Start(header, {&piece, 1}, 2048, false);
  AppendAll(segmenter, out);
  ASSERT_EQ(out.segments.size(), 2u);
  EXPECT_EQ(out.segments[0].size(), 1500u);
  EXPECT_EQ(out.segments[1].size(), 18u + 566);
  const auto first = UntaggedHeader::Parse(out.segments[0]);
  const auto second = UntaggedHeader::Parse(out.segments[1]);
  EXPECT_FALSE(first->last);
  EXPECT_TRUE(second->last);
  EXPECT_EQ(first->message_offset, 0u);
  EXPECT_EQ(second->message_offset, 1482u);
  EXPECT_EQ(second->msn, Msn(7));
  EXPECT_EQ(second->queue, 2u);
}

TEST(Segmenter, CutsTheTaggedExampleOfTheRfc) {
  const Bytes message = Counting(2048);
  const iovec piece{const_cast<uint8_t*>(message.data()), message.size()};
  Segmenter segmenter;
  RecordingWriter out(1500);
  TaggedHeader header;
  header.stag = STag(5);
  header.offset = TaggedOffset(16384);
  segmenter.Start(header, {&piece, 1}, 2048, false);
  AppendAll(segmenter, out);
  ASSERT_EQ(out.segments.size(), 2u);
  EXPECT_EQ(TaggedHeader::Parse(out.segments[0])->offset, TaggedOffset(16384));
  EXPECT_EQ(TaggedHeader::Parse(out.segments[1])->offset, TaggedOffset(17870));
  EXPECT_EQ(out.segments[1].size(), 14u + 562);
}

TEST(Segmenter, SendsAnEmptyMessageAsOneSegment) {
  Segmenter segmenter;
  RecordingWriter out(1500);
  segmenter.Start(TaggedHeader{}, {}, 0, false);
  EXPECT_EQ(segmenter.AppendTo(out), Segmenter::Progress::kMessageDone);
  ASSERT_EQ(out.segments.size(), 1u);
  EXPECT_TRUE(TaggedHeader::Parse(out.segments[0])->last);
  EXPECT_EQ(out.segments[0].size(), TaggedHeader::kLength);
}

TEST(Segmenter, LosesNoByteWhateverThePiecesAndTheSegmentSize) {
  const Bytes message = Counting(1000);
  for (size_t piece_size : {1, 2, 7, 64, 333, 999, 1000}) {
    std::vector<iovec> pieces;
    for (size_t at = 0; at < message.size(); at += piece_size) {
      pieces.push_back({const_cast<uint8_t*>(message.data()) + at, std::min(piece_size, message.size() - at)});
      pieces.push_back({nullptr, 0});  // empty pieces are legal
    }
    for (size_t max_ulpdu : {19, 20, 82, 512, 1018, 4096}) {
      Segmenter segmenter;
      RecordingWriter out(max_ulpdu);
      segmenter.Start(UntaggedHeader{}, pieces, 1000, false);
      AppendAll(segmenter, out);
      Bytes joined;
      for (const Bytes& segment : out.segments) {
        const auto header = UntaggedHeader::Parse(segment);
        EXPECT_EQ(header->message_offset, joined.size());
        joined.insert(joined.end(), segment.begin() + UntaggedHeader::kLength, segment.end());
        EXPECT_EQ(header->last, joined.size() == message.size());
      }
      EXPECT_EQ(joined, message) << piece_size << ' ' << max_ulpdu;
    }
  }
}

TEST(Segmenter, GoesOnWhereItStoppedForWantOfRoom) {
  const Bytes message = Counting(100);
  const iovec piece{const_cast<uint8_t*>(message.data()), message.size()};
  Segmenter segmenter;
  RecordingWriter out(18 + 40);
  segmenter.Start(UntaggedHeader{}, {&piece, 1}, 100, true);
  out.room = 1;
  EXPECT_EQ(segmenter.AppendTo(out), Segmenter::Progress::kAppended);
  EXPECT_EQ(segmenter.AppendTo(out), Segmenter::Progress::kNoRoom);
  EXPECT_EQ(segmenter.AppendTo(out), Segmenter::Progress::kNoRoom);
  EXPECT_EQ(segmenter.remaining(), 60u);
  out.room = 9;
  AppendAll(segmenter, out);
  ASSERT_EQ(out.segments.size(), 3u);
  EXPECT_EQ(out.segments[1][18], message[40]);
  EXPECT_EQ(out.segments[2].size(), 18u + 20);
  EXPECT_TRUE(out.any_volatile);
}

TEST(Segmenter, TakesUpAChangedSegmentSizeInTheMiddle) {
  const Bytes message = Counting(100);
  const iovec piece{const_cast<uint8_t*>(message.data()), message.size()};
  Segmenter segmenter;
  RecordingWriter small(18 + 10);
  RecordingWriter large(18 + 1000);
  segmenter.Start(UntaggedHeader{}, {&piece, 1}, 100, false);
  segmenter.AppendTo(small);
  EXPECT_EQ(segmenter.AppendTo(large), Segmenter::Progress::kMessageDone);
  EXPECT_EQ(large.segments[0].size(), 18u + 90);
  EXPECT_EQ(UntaggedHeader::Parse(large.segments[0])->message_offset, 10u);
}

}  // namespace
}  // namespace weft::ddp
