#include "transport/sctp/testing/transfer_sink.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>

namespace weft::transport::sctp {
namespace {

constexpr size_t kRoom = 1 << 20;
constexpr uint64_t kReportEvery = 1 << 20;

double SecondsSince(std::chrono::steady_clock::time_point then) { return std::chrono::duration<double>(std::chrono::steady_clock::now() - then).count(); }

}  // namespace

TransferPattern::TransferPattern(uint64_t seed) : bytes_(kLength) {
  std::mt19937_64 random(seed);
  for (uint8_t& byte : bytes_) byte = static_cast<uint8_t>(random());
}

std::vector<iovec> TransferPattern::At(uint64_t offset, size_t length) {
  std::vector<iovec> pieces;
  while (length > 0) {
    const auto begin = static_cast<size_t>(offset % kLength);
    const size_t count = std::min(length, kLength - begin);
    pieces.push_back({.iov_base = &bytes_[begin], .iov_len = count});
    offset += count;
    length -= count;
  }
  return pieces;
}

TransferSink::TransferSink(std::unique_ptr<Association> association) : association_(std::move(association)), room_(kRoom) {}

void TransferSink::OnReady(Interest) {
  if (report_waits_) Report();
  while (true) {
    const iovec into{.iov_base = room_.data(), .iov_len = room_.size()};
    const Received received = association_->Receive({&into, 1});
    if (received.kind != Received::Kind::kMessage && received.kind != Received::Kind::kEvent) return;
    if (received.kind == Received::Kind::kMessage) Take(received);
  }
}

void TransferSink::Take(const Received& received) {
  if (received.info.ppid == kTransferBegin) {
    uint64_t seed = 0;
    std::memcpy(&seed, room_.data(), sizeof seed);
    pattern_ = std::make_unique<TransferPattern>(seed);
    report_ = {};
    reported_ = 0;
    began_ = last_ = Clock::now();
    return;
  }
  if (pattern_ == nullptr) return;
  if (const double stall = SecondsSince(last_); stall > report_.longest_stall) {
    report_.longest_stall = stall;
    report_.stalled_at = SecondsSince(began_) - stall;
  }
  last_ = Clock::now();
  report_.end = received.info.ppid == kTransferEnd;
  if (!report_.end) Check(received.bytes);
  if (report_.end || report_.bytes - reported_ >= kReportEvery) Report();
}

void TransferSink::Report() {
  reported_ = report_.bytes;
  const iovec piece{.iov_base = &report_, .iov_len = sizeof report_};
  // What it says later replaces what it said before, so that the newest is all that has to wait.
  report_waits_ = association_->Send({.ppid = kTransferReport, .pieces = {&piece, 1}}).kind == IoResult::Kind::kWouldBlock;
}

void TransferSink::Check(size_t bytes) {
  const uint8_t* at = room_.data();
  bool wrong = false;
  for (const iovec& piece : pattern_->At(report_.bytes, bytes)) {
    wrong |= std::memcmp(at, piece.iov_base, piece.iov_len) != 0;
    at += piece.iov_len;
  }
  report_.wrong_messages += wrong;
  report_.bytes += bytes;
}

}  // namespace weft::transport::sctp
