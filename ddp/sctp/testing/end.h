#ifndef DDP_SCTP_TESTING_END_H_
#define DDP_SCTP_TESTING_END_H_

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "base/buffer_pool.h"
#include "ddp/sctp/association.h"
#include "ddp/sctp/chunk.h"
#include "ddp/sctp/testing/recording_sink.h"

namespace weft::ddp::sctp::testing {

// A message as SCTP carries it.
struct Message {
  uint16_t stream = 0;
  uint32_t ppid = 0;
  Bytes bytes;

  // In the form of a trace: "3: DDP Terminate SSN=1 private data=0".
  std::string ToString() const {
    const auto chunk = Chunk::Parse(ppid, bytes);
    return std::to_string(stream) + ": " + (chunk.ok() ? chunk->ToString() : sctp::ToString(chunk.error()));
  }
};

inline Message Make(uint16_t stream, Chunk::Kind kind, uint16_t ssn, const Bytes& body = {}, bool enhanced = false) {
  const Chunk chunk{.kind = kind, .ssn = ssn, .enhanced = enhanced, .body = body};
  Message message{.stream = stream, .ppid = chunk.ppid(), .bytes = Bytes(kControlHeaderLength)};
  message.bytes.resize(chunk.SerializeHeader(message.bytes));
  message.bytes.insert(message.bytes.end(), body.begin(), body.end());
  return message;
}
inline Message Segment(uint16_t stream, uint16_t ssn, const Bytes& body = Bytes(20, 1)) {
  return Make(stream, Chunk::Kind::kSegment, ssn, body);
}

// One end of an association, without SCTP below it.
struct End {
  explicit End(AssociationOptions options = {.streams = 8}) : association(options, pool) {}

  void Get(const Message& message) { association.OnMessage(message.stream, message.ppid, message.bytes); }

  // The next message to send; nullopt: there is none.
  std::optional<Message> Take() {
    Outgoing outgoing;
    if (!association.Next(&outgoing)) return std::nullopt;
    return Take(outgoing);
  }
  std::optional<Message> TakeOf(Session& session) {
    Outgoing outgoing;
    if (!association.NextOf(session, &outgoing)) return std::nullopt;
    return Take(outgoing);
  }
  Message Take(const Outgoing& outgoing) {
    Message message{.stream = outgoing.stream, .ppid = outgoing.ppid, .bytes = {}};
    for (const iovec& piece : outgoing.pieces) {
      const auto* from = static_cast<const uint8_t*>(piece.iov_base);
      message.bytes.insert(message.bytes.end(), from, from + piece.iov_len);
    }
    WEFT_CHECK(message.bytes.size() == outgoing.length);
    association.Took(outgoing);
    return message;
  }
  // All messages that can be sent now, as text.
  std::vector<std::string> TakeAll() {
    std::vector<std::string> all;
    while (const auto message = Take()) all.push_back(message->ToString());
    return all;
  }
  void AcknowledgeAll() { association.OnAcknowledged(association.taken()); }

  // A session that the peer requests on `stream` and that is accepted.
  Session& Accepted(uint16_t stream, RecordingSink& sink) {
    Get(Make(stream, Chunk::Kind::kInitiate, 0));
    Session* session = association.TakeNews();
    while (session != nullptr && session->state() != SessionState::kRequested) session = association.TakeNews();
    WEFT_CHECK(session != nullptr && session->Accept({}));
    session->Attach(sink);
    session->SetOpen(true);
    while (Take()) {
    }
    AcknowledgeAll();
    return *session;
  }

  BufferPool pool;
  Association association;
};

// Appends a segment of these bytes, the first 14 of them as header.
inline void Send(Session& session, const Bytes& segment, bool volatile_payload = false) {
  const size_t header = std::min<size_t>(segment.size(), 14);
  const iovec payload{const_cast<uint8_t*>(segment.data()) + header, segment.size() - header};
  WEFT_CHECK(session.HasRoom(payload.iov_len, 1));
  session.Append(ByteSpan(segment).first(header), {&payload, 1}, volatile_payload);
}

}  // namespace weft::ddp::sctp::testing

#endif  // DDP_SCTP_TESTING_END_H_
