#ifndef RDMAP_TESTING_WIRE_H_
#define RDMAP_TESTING_WIRE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>

#include "llp/ulpdu.h"
#include "rdmap/stream.h"
#include "rdmap/testing/fake_host.h"
#include "rdmap/testing/segments.h"

namespace weft::rdmap::testing {

// A lower layer that keeps segments in a queue. Like MPA without CRC, it references payload until the segment is taken,
// unless the payload is volatile.
class Wire final : public llp::UlpduWriter {
 public:
  explicit Wire(size_t max_ulpdu = 1460, size_t room = 1 << 20) : max_ulpdu_(max_ulpdu), room_(room) {}

  size_t max_ulpdu() const override { return max_ulpdu_; }
  bool HasRoom(size_t payload_length, size_t payload_pieces) const override;
  void Append(ByteSpan header, std::span<const iovec> payload, bool volatile_payload) override;
  bool CarriesAcknowledgements() const override { return carries_acknowledgements_; }
  void AppendAcknowledging(ByteSpan header, std::span<const iovec> payload, bool volatile_payload, uint8_t acknowledged) override;
  uint64_t appended() const override { return appended_; }

  void set_max_ulpdu(size_t max_ulpdu) { max_ulpdu_ = max_ulpdu; }
  // Number of ULPDUs that may wait.
  void set_room(size_t room) { room_ = room; }
  void set_carries_acknowledgements(bool carries) { carries_acknowledgements_ = carries; }

  bool empty() const { return waiting_.empty(); }
  size_t size() const { return waiting_.size(); }
  // The oldest segment as it is sent now, and the stream position behind it.
  Bytes Take();
  uint8_t taken_acknowledged() const { return taken_acknowledged_; }  // carried with that segment
  uint64_t taken() const { return taken_; }

 private:
  struct Waiting {
    Bytes front;                 // header, and payload if copied
    std::vector<iovec> payload;  // referenced
    uint64_t end = 0;
    uint8_t acknowledged = 0;
  };

  size_t max_ulpdu_;
  size_t room_;
  uint64_t appended_ = 0;
  uint64_t taken_ = 0;
  uint8_t taken_acknowledged_ = 0;
  bool carries_acknowledgements_ = false;
  std::deque<Waiting> waiting_;
};

// One end: host, stream, and its wire to the other end.
struct Endpoint {
  explicit Endpoint(const StreamOptions& options = {}, size_t max_ulpdu = 1460)
      : stream(options, host), wire(max_ulpdu) {}

  FakeHost host;
  Stream stream;
  Wire wire;
};

// Moves segments in both directions until none is left.
void Exchange(Endpoint& a, Endpoint& b);
// Moves the segments of `from` to `to`. Returns false if there were none.
bool Move(Endpoint& from, Endpoint& to);

}  // namespace weft::rdmap::testing

#endif  // RDMAP_TESTING_WIRE_H_
