#ifndef RDMAP_TESTING_FAKE_HOST_H_
#define RDMAP_TESTING_FAKE_HOST_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "rdmap/host.h"

namespace weft::rdmap::testing {

using Bytes = std::vector<uint8_t>;

struct Rights {
  bool remote_write = true;
  bool remote_read = true;
  bool sink = true;
  bool associated = true;  // with the stream
  bool can_invalidate = true;
};

// The simplest form of an RNIC's memory and queues. Records what the stream reports.
class FakeHost final : public Host {
 public:
  struct Region {
    ddp::STag stag;
    uint64_t base = 0;  // TO of bytes[0]
    Bytes bytes;
    Rights rights;
    bool valid = true;
    uint32_t target = 0;  // its target on a targeted stream; 0: every target
    uint8_t* elsewhere = nullptr;  // if not null, its memory, instead of that of `bytes`
  };
  struct Receive {
    std::vector<Bytes> pieces;
    std::vector<iovec> memory;
    Bytes Joined(size_t length) const;
  };
  struct Posted {
    Request request;
    std::vector<Bytes> pieces;
    std::vector<iovec> memory;
    int id = 0;
  };
  struct Arrival {
    size_t receive = 0;  // index in order of posting
    ReceivedSend message;
    Bytes bytes;
    uint32_t target = 0;
  };

  Region& AddRegion(ddp::STag stag, uint64_t base, size_t size, Rights rights = {});
  Region* FindRegion(ddp::STag stag);
  // Posts a receive with pieces of these sizes.
  void PostReceive(const std::vector<size_t>& pieces);
  // Posts a request. `payload` is cut into pieces of these sizes; the last one takes the rest. Sets the Request's
  // length and local.
  Posted& Post(Request request, const Bytes& payload = {}, const std::vector<size_t>& pieces = {});
  // Posts a Read of `length` bytes into a region of this host.
  Posted& PostRead(ddp::STag source, uint64_t source_offset, uint32_t length, ddp::STag sink, uint64_t sink_offset,
                   bool fence = false);

  Result<uint8_t*, AccessError> Resolve(ddp::STag stag, ddp::TaggedOffset offset, uint32_t length,
                                        Access access) override;
  std::optional<ReceiveTarget> TakeReceive(uint64_t needed) override;
  uint64_t ExtendReceive(uint64_t needed) override;
  void Received(const ReceivedSend& message) override;
  std::optional<AccessError> Invalidate(ddp::STag stag) override;
  Request* NextRequest() override;
  void Started(Request& request) override;
  void Sent(Request& request) override;
  void ReadDone(Request& request) override;
  void Fetched(const Request& request) override { fetched_bytes += request.length; }
  void SinkIsGone(Request& /*request*/) override { ++sinks_gone; }
  bool ReceivesExhausted() const override { return receives_taken == receives_.size(); }
  Result<uint64_t, AccessError> Atomic(ddp::STag stag, ddp::TaggedOffset offset, const AtomicOperation& operation) override;
  void ReceiverNotReady(Request& request, uint8_t timer) override;
  bool SelectTarget(uint32_t number) override {
    target_ = number;
    return number != 0 && number <= targets;
  }

  uint32_t targets = 0;  // of a targeted stream, numbered from 1

  size_t good_pieces = SIZE_MAX;  // valid pieces of each receive; the memory of later pieces is invalid

  // Extended streams: the stream waits to be resumed, and how often it had to wait.
  bool not_ready = false;
  int refusals = 0;

  std::vector<Arrival> arrivals;
  int sinks_gone = 0;
  uint64_t fetched_bytes = 0;
  std::vector<int> started, sent, reads_done;  // ids, 0 for the first posted
  size_t receives_taken = 0;
  size_t resolved = 0;  // calls of Resolve

 private:
  int IdOf(const Request& request) const;

  std::deque<Region> regions_;
  std::deque<Receive> receives_;
  std::deque<Posted> posted_;  // a deque keeps references valid
  size_t next_request_ = 0;
  uint32_t target_ = 0;
};

}  // namespace weft::rdmap::testing

#endif  // RDMAP_TESTING_FAKE_HOST_H_
