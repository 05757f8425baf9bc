// A stream whose peer sends whatever it likes. The input is a script: each step delivers a segment, or does what the
// RNIC might do meanwhile. What the stream sends is parsed again; placement outside a region or a receive is ASan's to
// find.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/byte_reader.h"
#include "base/check.h"
#include "rdmap/atomic.h"
#include "rdmap/delivery.h"
#include "rdmap/stream.h"
#include "rdmap/testing/fake_host.h"
#include "rdmap/testing/segments.h"
#include "rdmap/testing/wire.h"

namespace weft::rdmap {
namespace {

using testing::Bytes;

constexpr ddp::STag kRegion{1};
constexpr uint64_t kBase = 0x100;
constexpr size_t kSize = 512;

// Takes the input apart; zeros when it ends.
class Script {
 public:
  explicit Script(ByteSpan bytes) : bytes_(bytes) {}
  bool done() const { return bytes_.empty(); }
  uint8_t Byte() {
    if (bytes_.empty()) return 0;
    const uint8_t byte = bytes_[0];
    bytes_ = bytes_.subspan(1);
    return byte;
  }
  uint16_t Word() { return static_cast<uint16_t>(Byte() << 8 | Byte()); }
  Bytes Take(size_t length) {
    const ByteSpan taken = bytes_.first(std::min(length, bytes_.size()));
    bytes_ = bytes_.subspan(taken.size());
    return Bytes(taken.begin(), taken.end());
  }

 private:
  ByteSpan bytes_;
};

class Session {
 public:
  explicit Session(Script& script) : script_(script), options_(Options(script.Byte())), stream_(options_, host_) {
    host_.targets = 2;
    host_.AddRegion(kRegion, kBase, kSize);
    host_.AddRegion(ddp::STag(2), UINT64_MAX - kSize + 1, kSize, testing::Rights{.remote_read = false});
    host_.AddRegion(ddp::STag(3), kBase, kSize, testing::Rights{.associated = false, .can_invalidate = false});
  }

  void Run() {
    while (!script_.done()) Step();
    Drain();
  }

 private:
  static StreamOptions Options(uint8_t byte) {
    constexpr Delivery kModes[] = {Delivery::kPlain, Delivery::kReliable, Delivery::kUnreliable, Delivery::kReliable};
    return {.ird = byte & 3u,
            .ord = byte >> 2 & 3u,
            .expected_rtr = static_cast<llp::Rtr>(byte >> 4 & 3),
            .delivery = kModes[byte >> 6],
            .atomics = (byte & 1) != 0,
            .scatter_reads = byte >> 6 == 3,
            .targeted = byte >> 6 == 3};
  }

  void Step() {
    const uint8_t what = script_.Byte();
    const bool was_operational = stream_.state() == StreamState::kOperational;
    const size_t arrivals = host_.arrivals.size();
    switch (what % 14) {
      case 0:
        return Receive(script_.Take(1 + script_.Byte() % 100));
      case 1:
      case 2:
        return Receive(TaggedSegment());
      case 3:
      case 4:
      case 5:
        return Receive(UntaggedSegment());
      case 6:
        host_.PostReceive({script_.Byte() % 8u, script_.Byte() % 64u, 0});
        break;
      case 7:
        PostRequest();
        break;
      case 8:
        wire_.set_room(wire_.size() + script_.Byte() % 4);
        stream_.Transmit(wire_);
        break;
      case 9:
        Drain();
        break;
      case 10:
        stream_.ForgetRegion(ddp::STag(script_.Byte() % 4u));
        break;
      case 11:
        stream_.Acknowledge();
        break;
      case 12:
        if (std::exchange(host_.not_ready, false)) stream_.Resume();
        break;
      default:
        if (script_.Byte() % 8 == 0) stream_.OnLowerLayerError(llp::Error::kDamaged);
    }
    if (!was_operational) WEFT_CHECK(host_.arrivals.size() == arrivals);
  }

  void Receive(const Bytes& segment) {
    if (segment.empty()) return;
    const bool was_operational = stream_.state() == StreamState::kOperational;
    const bool more = testing::Deliver(stream_, segment);
    // Nothing is refused in silence, and nothing is taken after the end.
    WEFT_CHECK(more == (stream_.state() == StreamState::kOperational));
    WEFT_CHECK(was_operational || !more);
    WEFT_CHECK(more == !stream_.terminate().has_value());
    if (stream_.terminate()) WEFT_CHECK(!stream_.terminate()->ToString().empty());
  }

  Bytes TaggedSegment() {
    const uint8_t flags = script_.Byte();
    Bytes segment = testing::Tagged((flags & 1) != 0 ? Opcode::kWrite : Opcode::kReadResponse, script_.Byte() % 5u,
                                    (flags & 2) != 0 ? kBase + script_.Word() % (2 * kSize) : 0ull - script_.Byte(),
                                    script_.Take(script_.Byte()), (flags & 4) == 0);
    return Spoil(segment, flags);
  }

  Bytes UntaggedSegment() {
    const uint8_t flags = script_.Byte();
    if (extended() && (flags & 8) != 0) return ExtendedSegment(flags);
    const auto opcode = static_cast<Opcode>(flags % 5 + (flags % 5 < 2 ? 1 : 2));  // not the tagged ones, mostly
    const uint32_t queue = FindOpcode(opcode)->queue;
    uint32_t& msn = next_msn_[queue];
    const bool last = (flags & 0x20) == 0;
    const Bytes payload = opcode == Opcode::kReadRequest && (flags & 0x10) == 0 ? ReadRequestPayload()
                                                                                : script_.Take(script_.Byte() % 80);
    Bytes segment = testing::Untagged(opcode, msn, next_offset_[queue], payload, last);
    next_offset_[queue] = last ? 0 : next_offset_[queue] + static_cast<uint32_t>(payload.size());
    if (last) ++msn;
    segment[5] = script_.Byte() % 4;  // Invalidate STag
    return Spoil(segment, flags);
  }

  Bytes ExtendedSegment(uint8_t flags) {
    constexpr Opcode kOpcodes[] = {Opcode::kImmediate, Opcode::kAtomicRequest, Opcode::kAtomicResponse, Opcode::kDelivery};
    const Opcode opcode = kOpcodes[flags % 4];
    const OpcodeInfo& info = *FindOpcode(opcode);
    Bytes payload(info.rdmap_header_length);
    if (opcode == Opcode::kDelivery) {
      const DeliveryMessage message = {.kind = static_cast<DeliveryMessage::Kind>(script_.Byte() % 3),
                                       .timer = script_.Byte(),
                                       .sequence = script_.Byte() % 8u,
                                       .send_msn = ddp::Msn(script_.Byte() % 4u),
                                       .read_msn = ddp::Msn(script_.Byte() % 4u)};
      message.Serialize(payload);
      return Spoil(testing::Untagged(opcode, 0, 0, payload), flags);
    }
    if (opcode == Opcode::kAtomicRequest) {
      AtomicRequestHeader header;
      header.operation.add_or_swap = script_.Byte();
      header.stag = ddp::STag(script_.Byte() % 4u);
      header.offset = ddp::TaggedOffset(kBase + script_.Word() % (2 * kSize));
      header.Serialize(payload);
    } else if (opcode == Opcode::kAtomicResponse) {
      AtomicResponseHeader{script_.Byte() % 8u, script_.Byte()}.Serialize(payload);
    }
    return Spoil(testing::Untagged(opcode, next_msn_[info.queue]++, 0, payload), flags);
  }

  bool extended() const { return options_.delivery != Delivery::kPlain; }

  Bytes ReadRequestPayload() {
    Bytes payload(ReadRequestHeader::kLength);
    ReadRequestHeader header;
    header.sink_stag = ddp::STag(script_.Byte());
    header.length = script_.Byte() % 4 == 0 ? 0 : script_.Word() % (2 * kSize);
    header.source_stag = ddp::STag(script_.Byte() % 4u);
    header.source_offset = ddp::TaggedOffset(kBase + script_.Word() % kSize);
    header.Serialize(payload);
    return payload;
  }

  Bytes Spoil(Bytes segment, uint8_t flags) {
    if ((flags & 0xc0) == 0xc0) {
      segment[script_.Byte() % segment.size()] ^= script_.Byte();
      segment.resize(1 + script_.Byte() % segment.size());
    }
    return segment;
  }

  void PostRequest() {
    const uint8_t flags = script_.Byte();
    if (flags % 3 == 0) {
      host_.PostRead(ddp::STag(9), 0, script_.Byte() % 64, kRegion, kBase + script_.Byte(), (flags & 0x80) != 0);
      return;
    }
    Request request;
    request.opcode = flags % 3 == 1 ? Opcode::kWrite : Opcode::kSend;
    request.fence = (flags & 0x80) != 0;
    request.volatile_local = (flags & 0x40) != 0;
    request.has_immediate = extended() && (flags & 0x20) != 0;
    if (extended() && (flags & 0x18) == 0x18) {
      request = {.opcode = Opcode::kAtomicRequest};
      host_.Post(request, Bytes(sizeof(uint64_t)), {3});
      return;
    }
    host_.Post(request, testing::Pattern(script_.Byte()), {3});
  }

  // Everything that waits goes out; it is well formed.
  void Drain() {
    wire_.set_room(SIZE_MAX);
    stream_.Transmit(wire_);
    while (!wire_.empty()) {
      WEFT_CHECK(!terminate_seen_);
      const Bytes segment = wire_.Take();
      const OpcodeInfo* info = FindOpcode(ControlByte::Parse(segment.at(1)).opcode);
      WEFT_CHECK(info != nullptr && segment.size() >= info->header_length);
      WEFT_CHECK(info->tagged ? ddp::TaggedHeader::Parse(segment).ok() : ddp::UntaggedHeader::Parse(segment).ok());
      terminate_seen_ = info->handler == Handler::kTerminate && ddp::UntaggedHeader::Parse(segment)->last;
      stream_.OnTransmitted(wire_.taken());
    }
    WEFT_CHECK(!stream_.HasWork());
    if (stream_.state() == StreamState::kTerminating) WEFT_CHECK(terminate_seen_);
  }

  Script& script_;
  StreamOptions options_;
  testing::FakeHost host_;
  Stream stream_;
  testing::Wire wire_{100};
  uint32_t next_msn_[kExtendedQueueCount] = {1, 1, 1, 1, 0};
  uint32_t next_offset_[kExtendedQueueCount] = {};
  bool terminate_seen_ = false;
};

}  // namespace
}  // namespace weft::rdmap

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weft::rdmap::Script script(weft::ByteSpan(data, size));
  weft::rdmap::Session(script).Run();
  return 0;
}
