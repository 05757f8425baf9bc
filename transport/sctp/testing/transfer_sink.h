#ifndef TRANSPORT_SCTP_TESTING_TRANSFER_SINK_H_
#define TRANSPORT_SCTP_TESTING_TRANSFER_SINK_H_

#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "transport/sctp/sctp.h"

// The messages between transfer_benchmark's ends, and the receiving end of a transfer.
namespace weft::transport::sctp {

// Payload protocol identifiers. A begin has the seed, 8 bytes. The data follows in messages of any length, then the
// end, one byte. Reports go in the other direction.
constexpr uint32_t kTransferBegin = 1, kTransferBytes = 2, kTransferEnd = 3, kTransferReport = 4;

// The content of a transfer: random bytes of a length that nothing else has, repeated, so that lost, duplicated or
// displaced bytes are noticed.
class TransferPattern {
 public:
  static constexpr size_t kLength = 1'048'583;  // a prime
  explicit TransferPattern(uint64_t seed);
  // `length` bytes of the transfer, from `offset` on.
  std::vector<iovec> At(uint64_t offset, size_t length);

 private:
  std::vector<uint8_t> bytes_;
};

struct TransferReport {
  uint64_t bytes = 0, wrong_messages = 0;
  double longest_stall = 0, stalled_at = 0;  // seconds; `stalled_at` counts from the begin
  bool end = false;
};

// Receives transfers one after the other and checks them. Reports after each mebibyte, and after the end.
class TransferSink : public ReadyHandler {
 public:
  explicit TransferSink(std::unique_ptr<Association> association);
  void Watch(std::shared_ptr<ReadyHandler> self) { association_->Watch(std::move(self)); }
  void OnReady(Interest ready) override;

 private:
  using Clock = std::chrono::steady_clock;

  void Take(const Received& received);
  void Check(size_t bytes);
  void Report();

  std::unique_ptr<Association> association_;
  std::vector<uint8_t> room_;
  std::unique_ptr<TransferPattern> pattern_;
  TransferReport report_;
  uint64_t reported_ = 0;
  bool report_waits_ = false;  // waits for room
  Clock::time_point began_, last_;
};

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_TESTING_TRANSFER_SINK_H_
