// RDMAP over DDP over MPA, whole, in memory: random requests both ways against a model, with CRC and markers on and off
// and the byte stream cut anywhere (RFC 5044 section 4, RFC 5040 section 5). A failure names its seed; SEED=n runs it
// alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>

#include "base/buffer_pool.h"
#include "mpa/fpdu_receiver.h"
#include "mpa/fpdu_sender.h"
#include "rdmap/stream.h"
#include "rdmap/testing/fake_host.h"
#include "rdmap/testing/workload.h"

namespace weft::rdmap {
namespace {

struct Framing {
  bool crc = true;
  bool markers = false;
  size_t max_ulpdu = 1440;
};

// One end of a connection, as the RNIC puts it together.
struct End {
  End(const StreamOptions& options, const Framing& send, const Framing& receive, BufferPool& pool)
      : stream(options, host),
        sender({.crc = send.crc, .markers = send.markers, .max_ulpdu = send.max_ulpdu}, pool),
        receiver({.crc = receive.crc, .markers = receive.markers, .max_ulpdu = receive.max_ulpdu}, pool, stream) {}

  testing::FakeHost host;
  Stream stream;
  mpa::FpduSender sender;
  mpa::FpduReceiver receiver;
};

// Moves up to `limit` bytes that wait at `from` to `to`; how many.
size_t MoveBytes(End& from, End& to, size_t limit) {
  size_t moved = 0;
  size_t room_used = 0;
  const auto pending = from.sender.Pending();
  const auto room = to.receiver.PrepareRead();
  auto into = room.begin();
  for (const iovec& piece : pending) {
    for (size_t at = 0; at < piece.iov_len && moved < limit && into != room.end();) {
      const size_t part = std::min({piece.iov_len - at, limit - moved, into->iov_len - room_used});
      std::memcpy(static_cast<uint8_t*>(into->iov_base) + room_used, static_cast<const uint8_t*>(piece.iov_base) + at,
                  part);
      at += part;
      moved += part;
      room_used += part;
      if (room_used == into->iov_len) {
        ++into;
        room_used = 0;
      }
    }
  }
  if (moved == 0) return 0;
  // The sender's bytes are out once the other end has them; as with a socket, before they are looked at.
  from.sender.Consume(moved);
  from.stream.OnTransmitted(from.sender.consumed());
  to.receiver.Commit(moved);  // what it says shows in the stream's state
  return moved;
}

void RunOne(uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&random](uint32_t bound) { return static_cast<uint32_t>(random() % bound); };
  constexpr size_t kSizes[] = {128, 536, 1440, 8960, 65535};
  Framing forward{below(2) == 0, below(2) == 0, kSizes[below(5)]};
  Framing backward{forward.crc, below(2) == 0, kSizes[below(5)]};
  const auto rtr = static_cast<llp::Rtr>(below(4));
  BufferPool pool;
  End a({.ird = 2, .ord = 3}, forward, backward, pool);
  End b({.ird = 3, .ord = 2, .expected_rtr = rtr}, backward, forward, pool);
  if (rtr != llp::Rtr::kNone) a.stream.SendRtr(rtr);
  testing::Workload to_b(a.host, b.host, seed * 2);
  testing::Workload to_a(b.host, a.host, seed * 2 + 1);

  int rounds = 15;
  for (int quiet = 0; quiet < 50;) {
    if (rounds > 0 && below(10) == 0) {
      --rounds;
      to_b.Post(static_cast<int>(below(4)));
      to_a.Post(static_cast<int>(below(4)));
    }
    const bool ahead = below(2) == 0;
    End& from = ahead ? a : b;
    End& to = ahead ? b : a;
    bool busy = rounds > 0;
    if (below(2) == 0) {
      busy |= from.stream.Transmit(from.sender);
    } else {
      const size_t limit = below(3) == 0 ? 1 + below(30) : 1 + below(200000);
      busy |= MoveBytes(from, to, limit) != 0;
    }
    quiet = busy ? 0 : quiet + 1;
  }
  for (End* end : {&a, &b}) {
    EXPECT_EQ(end->stream.state(), StreamState::kOperational);
    EXPECT_TRUE(end->stream.idle());
    EXPECT_TRUE(end->sender.empty());
    EXPECT_TRUE(end->receiver.at_boundary());
  }
  to_a.Verify();
  to_b.Verify();
}

TEST(RdmapOverMpa, KeepsMemoryAndCompletionsLikeTheModel) {
  uint32_t first = 1;
  uint32_t last = 100;
  if (const char* seed = std::getenv("SEED")) first = last = static_cast<uint32_t>(std::strtoul(seed, nullptr, 0));
  for (uint32_t seed = first; seed <= last && !HasFailure(); ++seed) {
    SCOPED_TRACE("SEED=" + std::to_string(seed));
    RunOne(seed);
  }
}

// RFC 5040 section 5.4, with RFC 5042 section 6.2.2: what was on its way into a region that goes away is thrown away.
TEST(RdmapOverMpa, PlacesNothingIntoARegionThatWentAwayInTheMiddleOfASegment) {
  BufferPool pool;
  const Framing framing{.crc = false, .markers = false, .max_ulpdu = 65535};
  End a({}, framing, framing, pool);
  End b({}, framing, framing, pool);
  constexpr ddp::STag kRegion{7};
  b.host.AddRegion(kRegion, 0, 60000);
  Request write;
  write.opcode = Opcode::kWrite;
  write.remote_stag = kRegion;
  a.host.Post(write, testing::Bytes(60000, 0xee));
  ASSERT_TRUE(a.stream.Transmit(a.sender));
  ASSERT_NE(MoveBytes(a, b, 1000), 0u);
  while (MoveBytes(a, b, 10000) == 10000 && b.host.FindRegion(kRegion)->bytes[20000] == 0) {
  }
  ASSERT_TRUE(b.stream.ForgetRegion(kRegion));
  EXPECT_TRUE(b.receiver.DivertPlacement());
  const testing::Bytes before = b.host.FindRegion(kRegion)->bytes;
  EXPECT_EQ(before[59999], 0);
  for (bool more = true; more;) {
    const auto room = b.receiver.PrepareRead();
    const auto pending = a.sender.Pending();
    if (pending.empty()) break;
    const size_t part = std::min(room[0].iov_len, pending[0].iov_len);
    std::memcpy(room[0].iov_base, pending[0].iov_base, part);
    a.sender.Consume(part);
    more = b.receiver.Commit(part);
  }
  EXPECT_TRUE(b.host.FindRegion(kRegion)->bytes == before);
  EXPECT_EQ(b.receiver.error(), mpa::FpduError::kNone);
  ASSERT_TRUE(b.stream.Transmit(b.sender));
  while (MoveBytes(b, a, SIZE_MAX) != 0 && a.stream.state() == StreamState::kOperational) {
  }
  EXPECT_TRUE(a.stream.terminated_by_peer());
}

}  // namespace
}  // namespace weft::rdmap
