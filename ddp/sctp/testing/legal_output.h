#ifndef DDP_SCTP_TESTING_LEGAL_OUTPUT_H_
#define DDP_SCTP_TESTING_LEGAL_OUTPUT_H_

#include <cstdint>
#include <map>
#include <string>

#include "ddp/sctp/chunk.h"

namespace weft::ddp::sctp::testing {

// RFC 5043 section 6 written a second time, as one who listens on the line: whether what an end sends is a legal
// sequence on each stream.
class LegalOutput {
 public:
  // Empty: it is. Otherwise what is wrong with it.
  std::string Check(uint16_t stream, uint32_t ppid, ByteSpan bytes) {
    const auto chunk = Chunk::Parse(ppid, bytes);
    if (!chunk.ok()) return ToString(chunk.error());
    Line& line = lines_[stream];
    const bool opens = chunk->kind == Chunk::Kind::kInitiate || chunk->kind == Chunk::Kind::kAccept ||
                       chunk->kind == Chunk::Kind::kReject ||
                       (chunk->kind == Chunk::Kind::kTerminate && chunk->ssn == 0 && line.may_begin());
    if (opens) {
      if (!line.may_begin()) return chunk->ToString() + " within a session";
      line = {.state = Line::kOpen, .first = chunk->kind};
    } else if (line.state != Line::kOpen || line.first == Chunk::Kind::kReject) {
      return chunk->ToString() + " outside a session";
    }
    if (chunk->ssn != line.next) return chunk->ToString() + " where SSN " + std::to_string(line.next) + " is next";
    ++line.next;
    ++line.messages;
    if (chunk->kind == Chunk::Kind::kTerminate || chunk->kind == Chunk::Kind::kReject) line.state = Line::kEnded;
    return "";
  }

 private:
  struct Line {
    enum State { kNone, kOpen, kEnded } state = kNone;
    Chunk::Kind first = Chunk::Kind::kInitiate;
    uint16_t next = 0;
    uint64_t messages = 0;
    // An Initiate alone is a session when the answer to it was the end.
    bool may_begin() const { return state != kOpen || (first == Chunk::Kind::kInitiate && messages == 1); }
  };
  std::map<uint16_t, Line> lines_;
};

}  // namespace weft::ddp::sctp::testing

#endif  // DDP_SCTP_TESTING_LEGAL_OUTPUT_H_
