#ifndef TESTS_CONFORMANCE_MPA_ONE_WAY_H_
#define TESTS_CONFORMANCE_MPA_ONE_WAY_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "mpa/fpdu_receiver.h"
#include "mpa/fpdu_sender.h"
#include "mpa/reference.h"

// One direction of an MPA stream, for tests that look at its bytes.
namespace weft::mpa {

struct Mode {
  bool crc = true;
  bool markers = false;
};

inline Bytes Send(const Mode& mode, const std::vector<Bytes>& ulpdus) {
  BufferPool pool;
  FpduSender sender({.crc = mode.crc, .markers = mode.markers}, pool);
  Bytes stream;
  for (const Bytes& ulpdu : ulpdus) {
    const ByteSpan bytes(ulpdu);
    const size_t header_length = std::min<size_t>(bytes.size(), 18);
    const iovec payload = {const_cast<uint8_t*>(bytes.data()) + header_length, bytes.size() - header_length};
    sender.Append(bytes.first(header_length), {&payload, 1}, false);
    for (const iovec& piece : sender.Pending()) {
      const uint8_t* from = static_cast<const uint8_t*>(piece.iov_base);
      stream.insert(stream.end(), from, from + piece.iov_len);
    }
    sender.Consume(sender.appended() - sender.consumed());
  }
  return stream;
}

struct Arrived {
  std::vector<Bytes> ulpdus;
  FpduError error = FpduError::kNone;
  bool operating = true;
};

inline Arrived Receive(const Mode& mode, const Bytes& stream, size_t step = 0, size_t max_ulpdu = 65535) {
  BufferPool pool;
  RecordingSink sink;
  FpduReceiver receiver({.crc = mode.crc, .markers = mode.markers, .max_ulpdu = max_ulpdu}, pool, sink);
  Arrived arrived;
  arrived.operating = Feed(receiver, stream, step);
  arrived.ulpdus = sink.ulpdus();
  arrived.error = receiver.error();
  return arrived;
}

inline Bytes Hex(std::initializer_list<int> bytes, size_t zeros = 0) {
  Bytes result;
  for (int byte : bytes) result.push_back(static_cast<uint8_t>(byte));
  result.resize(result.size() + zeros);
  return result;
}

inline Bytes Join(Bytes front, const Bytes& back) {
  front.insert(front.end(), back.begin(), back.end());
  return front;
}

inline Bytes Part(const Bytes& bytes, size_t from, size_t count) {
  return Bytes(bytes.begin() + static_cast<long>(from), bytes.begin() + static_cast<long>(from + count));
}

}  // namespace weft::mpa

#endif  // TESTS_CONFORMANCE_MPA_ONE_WAY_H_
