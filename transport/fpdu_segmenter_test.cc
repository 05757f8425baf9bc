#include "transport/fpdu_segmenter.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weft::transport {
namespace {

using Pieces = std::vector<std::string>;

ByteSpan Bytes(std::string_view text) { return {reinterpret_cast<const uint8_t*>(text.data()), text.size()}; }

// Feeds `parts` and returns what came out whole.
Pieces Feed(FpduSegmenter& segmenter, FpduSegmenter::Direction direction, const Pieces& parts) {
  Pieces pieces;
  for (const std::string& part : parts) {
    segmenter.Add(direction, Bytes(part), [&](ByteSpan piece) { pieces.emplace_back(piece.begin(), piece.end()); });
  }
  return pieces;
}

std::string StartUp(const char* key, bool markers, size_t private_data) {
  std::string frame = key;
  frame += markers ? '\xc0' : '\x40';
  frame += '\x02';
  frame += static_cast<char>(private_data >> 8);
  frame += static_cast<char>(private_data);
  return frame + std::string(private_data, 'p');
}
std::string Request(bool markers, size_t data = 5) { return StartUp("MPA ID Req Frame", markers, data); }
std::string Reply(bool markers, size_t data = 5) { return StartUp("MPA ID Rep Frame", markers, data); }

std::string LengthField(size_t ulpdu) { return {static_cast<char>(ulpdu >> 8), static_cast<char>(ulpdu)}; }

// Without markers.
std::string Fpdu(size_t ulpdu, char fill) {
  std::string fpdu = LengthField(ulpdu) + std::string(ulpdu, fill);
  fpdu.resize((fpdu.size() + 3) / 4 * 4, '\0');
  return fpdu + "CRC!";
}

TEST(FpduSegmenterTest, EveryCutOfAStreamGivesTheSamePieces) {
  Pieces whole = {Request(false), Fpdu(0, 'a'), Fpdu(1, 'b'), Fpdu(18, 'c'), Fpdu(300, 'd'), Fpdu(2, 'e')};
  std::string stream;
  for (const std::string& piece : whole) stream += piece;
  for (size_t cut = 0; cut <= stream.size(); ++cut) {
    FpduSegmenter segmenter;
    EXPECT_EQ(Feed(segmenter, FpduSegmenter::kFromInitiator, {stream.substr(0, cut), stream.substr(cut)}), whole)
        << cut;
  }
  FpduSegmenter byte_by_byte;
  Pieces bytes;
  for (char byte : stream) bytes.emplace_back(1, byte);
  EXPECT_EQ(Feed(byte_by_byte, FpduSegmenter::kFromInitiator, bytes), whole);
}

TEST(FpduSegmenterTest, CountsMarkersThatTheOtherSideAskedFor) {
  FpduSegmenter segmenter;
  Feed(segmenter, FpduSegmenter::kFromInitiator, {Request(false)});
  Feed(segmenter, FpduSegmenter::kFromResponder, {Reply(true)});
  // From position 0, with a marker in front, this one ends where the next marker is due.
  std::string first = "MMMM" + LengthField(502) + std::string(502, 'x') + "CRC!";
  ASSERT_EQ(first.size(), 512u);
  // The next begins with a marker and holds another.
  std::string second =
      "MMMM" + LengthField(600) + std::string(506, 'y') + "MMMM" + std::string(94, 'y') + std::string(2, '\0') + "CRC!";
  std::string third = LengthField(2) + "zzCRC!";
  EXPECT_EQ(Feed(segmenter, FpduSegmenter::kFromInitiator, {first + second + third}), (Pieces{first, second, third}));
  // The responder was not asked for markers.
  EXPECT_EQ(Feed(segmenter, FpduSegmenter::kFromResponder, {Fpdu(700, 'r')}), Pieces{Fpdu(700, 'r')});
}

TEST(FpduSegmenterTest, WhatIsNotMpaPassesAsItComes) {
  FpduSegmenter segmenter;
  EXPECT_EQ(Feed(segmenter, FpduSegmenter::kFromInitiator, {"GET / HT", "TP/1.1"}), (Pieces{"GET / HT", "TP/1.1"}));
  EXPECT_EQ(Feed(segmenter, FpduSegmenter::kFromResponder, {"MPA ID", " Wrong", "x"}), (Pieces{"MPA ID Wrong", "x"}));
}

TEST(FpduSegmenterTest, FlushGivesWhatIsHeldBack) {
  FpduSegmenter segmenter;
  Pieces rest;
  auto emit = [&](ByteSpan piece) { rest.emplace_back(piece.begin(), piece.end()); };
  EXPECT_EQ(Feed(segmenter, FpduSegmenter::kFromInitiator, {Request(false) + Fpdu(100, 'a').substr(0, 50)}),
            Pieces{Request(false)});
  segmenter.Flush(FpduSegmenter::kFromInitiator, emit);
  segmenter.Flush(FpduSegmenter::kFromInitiator, emit);
  segmenter.Flush(FpduSegmenter::kFromResponder, emit);
  EXPECT_EQ(rest, Pieces{Fpdu(100, 'a').substr(0, 50)});
}

}  // namespace
}  // namespace weft::transport
