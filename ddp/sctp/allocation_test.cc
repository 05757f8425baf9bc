// What the way of a segment costs in memory, counted: nothing, once the first have gone it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <vector>

#include "ddp/sctp/association.h"

static size_t g_allocations = 0;

void* operator new(size_t size) {
  ++g_allocations;
  void* const memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace weft::ddp::sctp {
namespace {

using Bytes = std::vector<uint8_t>;

// Places every payload in the same memory.
class PlacingSink final : public llp::UlpduSink {
 public:
  bool Begin(size_t length, ByteSpan, llp::UlpduPlan* plan) override {
    piece_ = {memory_.data(), length - 14};
    *plan = {.header_length = 14, .payload = {&piece_, 1}};
    return true;
  }
  bool End() override {
    ++count;
    return true;
  }
  size_t count = 0;

 private:
  Bytes memory_ = Bytes(65535);
  iovec piece_{};
};

TEST(AllocationTest, SegmentsInOrderAllocateNothingAtEitherEnd) {
  BufferPool pool;
  Association a({.initiator = true, .streams = 8, .max_segment = 65535}, pool), b({.streams = 8}, pool);
  PlacingSink sink;
  Bytes message(70'000), payload(60'000, 7);
  const auto carry = [&](Association& from, Association& to) {
    Outgoing outgoing;
    while (from.Next(&outgoing)) {
      size_t at = 0;
      for (const iovec& piece : outgoing.pieces) {
        std::copy_n(static_cast<const uint8_t*>(piece.iov_base), piece.iov_len, message.data() + at);
        at += piece.iov_len;
      }
      const Outgoing sent = outgoing;
      from.Took(sent);
      to.OnMessage(sent.stream, sent.ppid, {message.data(), at});
      from.OnAcknowledged(from.taken());
    }
  };
  Session* const ours = a.Open({}, false);
  carry(a, b);
  Session* const theirs = b.TakeNews();
  theirs->Accept({});
  theirs->Attach(sink);
  theirs->SetOpen(true);
  carry(b, a);

  const uint8_t header[14] = {};
  const auto send = [&](size_t length) {
    const iovec piece{payload.data(), length};
    ASSERT_TRUE(ours->HasRoom(length, 1));
    ours->Append(header, {&piece, 1}, false);
  };
  for (size_t length : {0, 10, 1000, 60'000}) send(length);
  carry(a, b);
  const size_t before = g_allocations;
  for (int i = 0; i < 1000; ++i) {
    for (size_t length : {0, 10, 1000, 60'000}) send(length);
    carry(a, b);
  }
  EXPECT_EQ(g_allocations, before);
  EXPECT_EQ(sink.count, 4004u);
}

}  // namespace
}  // namespace weft::ddp::sctp
