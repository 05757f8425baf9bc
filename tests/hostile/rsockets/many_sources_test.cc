// A datagram rsocket that more strangers write to than it can remember.
#include <arpa/inet.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "cm/rsocket/datagram_wire.h"
#include "cm/rsocket/rsocket_testing.h"

namespace weft::rsocket_api {
namespace {

using rsocket::LookupHeader;

Fd Bound(sockaddr_in* name) {
  Fd fd(::rsocket(AF_INET, SOCK_DGRAM, 0));
  EXPECT_GE(fd, 0) << strerror(errno);
  *name = Loopback();
  EXPECT_EQ(rbind(fd, reinterpret_cast<const sockaddr*>(name), sizeof *name), 0);
  socklen_t length = sizeof *name;
  EXPECT_EQ(rgetsockname(fd, reinterpret_cast<sockaddr*>(name), &length), 0);
  return fd;
}

// A datagram from an address that was never seen before: ports by the loopback's addresses.
void SendAsStranger(int number, const sockaddr_in& to) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in from{};
  from.sin_family = AF_INET;
  from.sin_addr.s_addr = htonl((127u << 24) + 0x10000u + static_cast<uint32_t>(number));
  ASSERT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&from), sizeof from), 0);
  LookupHeader header{};
  header.op = LookupHeader::Op::kData;
  header.queue_pair = 0x123456;
  std::memcpy(&header.to, &to, sizeof to);
  std::array<uint8_t, LookupHeader::kMostLength> bytes;
  const size_t length = header.Serialize(bytes);
  EXPECT_EQ(sendto(fd, bytes.data(), length, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to),
            static_cast<ssize_t>(length));
  close(fd);
}

ssize_t SendTo(int fd, const std::string& text, const sockaddr_in& to) {
  return rsendto(fd, text.data(), text.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
}

// While a datagram waits to be sent by UDP those that came are looked at; the 4,097th source made the socket forget
// everybody, and with them the one whom the datagram was for.
TEST(ManySources, DoNotTakeAPeerAwayThatIsJustWrittenTo) {
  sockaddr_in name, friends_name;
  const Fd one = Bound(&name), friend_of_one = Bound(&friends_name);
  sockaddr_in nobody = Loopback(htons(9));
  for (int i = 0; i < 5000; ++i) {
    SendAsStranger(i, name);
    if (i % 50 != 49) continue;
    // Whom it does not know yet, by way of everything that came.
    nobody.sin_addr.s_addr = htonl((127u << 24) + 0x200000u + static_cast<uint32_t>(i));
    EXPECT_EQ(SendTo(one, "hello", nobody), 5) << i;
    char buffer[64];
    while (rrecv(one, buffer, sizeof buffer, MSG_DONTWAIT) >= 0) {
    }
    ASSERT_EQ(SendTo(friend_of_one, "still there?", name), 12);
    pollfd ready{one, POLLIN, 0};
    ASSERT_EQ(rpoll(&ready, 1, 10'000), 1);
    ASSERT_EQ(rrecv(one, buffer, sizeof buffer, 0), 12) << i;
    ASSERT_EQ(SendTo(one, "yes", friends_name), 3);
    pollfd answered{friend_of_one, POLLIN, 0};
    ASSERT_EQ(rpoll(&answered, 1, 10'000), 1);
    ASSERT_EQ(rrecv(friend_of_one, buffer, sizeof buffer, 0), 3) << i;
  }
}

}  // namespace
}  // namespace weft::rsocket_api
