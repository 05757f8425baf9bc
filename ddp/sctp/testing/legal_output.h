#ifndef DDP_SCTP_TESTING_LEGAL_OUTPUT_H_
#define DDP_SCTP_TESTING_LEGAL_OUTPUT_H_

#include <cstdint>
#include <map>
#include <string>

#include "ddp/sctp/chunk.h"

namespace weft::ddp::sctp::testing {

// A second implementation of RFC 5043 section 6, for an observer of the line: checks that the messages of one end are a
// legal sequence on each stream.
class LegalOutput {
 public:
  // Returns what is wrong with the message; empty: nothing.
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
    // A stream with only an Initiate may begin anew, if the answer to it ended the session.
    bool may_begin() const { return state != kOpen || (first == Chunk::Kind::kInitiate && messages == 1); }
  };
  std::map<uint16_t, Line> lines_;
};

}  // namespace weft::ddp::sctp::testing

#endif  // DDP_SCTP_TESTING_LEGAL_OUTPUT_H_
