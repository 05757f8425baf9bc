// Real sockets, on the loopback interface.
#include "transport/tcp_stream.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "transport/tcp_listener.h"

namespace weft::transport {
namespace {

using Kind = IoResult::Kind;

void AwaitReadiness(int fd, short events) {
  pollfd entry{.fd = fd, .events = events, .revents = 0};
  ASSERT_EQ(poll(&entry, 1, 10'000), 1);
}

IoResult ReadSome(ByteStream& stream, std::string& into) {
  char buffer[4096];
  iovec part{buffer, sizeof buffer};
  AwaitReadiness(stream.fd(), POLLIN);
  IoResult result = stream.Read({&part, 1});
  if (result.kind == Kind::kDone) into.append(buffer, result.bytes);
  return result;
}

std::string ReadToTheEnd(ByteStream& stream) {
  std::string text;
  while (ReadSome(stream, text).kind == Kind::kDone) {
  }
  return text;
}

IoResult WriteText(ByteStream& stream, std::string_view text) {
  iovec part{const_cast<char*>(text.data()), text.size()};
  return stream.Write({&part, 1});
}

class TcpStreamTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto listener = TcpListener::Open(*SocketAddress::Parse(GetParam(), 0), 16, false, false);
    if (!listener && listener.error() == EADDRNOTAVAIL)
      GTEST_SKIP() << "no address " << GetParam() << " on this machine";
    ASSERT_TRUE(listener);
    listener_ = std::move(listener).value();
  }

  void Connect() {
    client_ = TcpStream::StartConnect({}, listener_->LocalAddress()).value();
    AwaitReadiness(client_->fd(), POLLOUT);
    ASSERT_EQ(client_->ConnectError(), 0);
    AwaitReadiness(listener_->fd(), POLLIN);
    server_ = listener_->Accept().value();
  }

  std::unique_ptr<Listener> listener_;
  std::unique_ptr<ByteStream> client_, server_;
};

INSTANTIATE_TEST_SUITE_P(Families, TcpStreamTest, testing::Values("127.0.0.1", "::1"), [](const auto& info) {
  return std::string(info.param).find(':') == std::string::npos ? "V4" : "V6";
});

TEST_P(TcpStreamTest, CarriesBytesBothWays) {
  Connect();
  EXPECT_EQ(WriteText(*client_, "ping").bytes, 4u);
  std::string heard;
  EXPECT_EQ(ReadSome(*server_, heard).kind, Kind::kDone);
  EXPECT_EQ(heard, "ping");
  EXPECT_EQ(WriteText(*server_, "pong!").bytes, 5u);
  heard.clear();
  EXPECT_EQ(ReadSome(*client_, heard).kind, Kind::kDone);
  EXPECT_EQ(heard, "pong!");
}

TEST_P(TcpStreamTest, GathersAndScattersSeveralParts) {
  Connect();
  char a[] = "one", b[] = "two";
  iovec out[] = {{a, 3}, {nullptr, 0}, {b, 3}};
  EXPECT_EQ(client_->Write(out).bytes, 6u);
  AwaitReadiness(server_->fd(), POLLIN);
  char c[2], d[9];
  iovec in[] = {{c, 2}, {d, 9}};
  IoResult result = server_->Read(in);
  EXPECT_EQ(result.kind, Kind::kDone);
  EXPECT_EQ(result.bytes, 6u);
  EXPECT_EQ(std::string(c, 2) + std::string(d, 4), "onetwo");
}

TEST_P(TcpStreamTest, MorePartsThanTheKernelTakesAreWrittenInPart) {
  Connect();
  std::vector<char> byte(1, 'x');
  std::vector<iovec> parts(3000, iovec{byte.data(), 1});
  IoResult result = client_->Write(parts);
  EXPECT_EQ(result.kind, Kind::kDone);
  EXPECT_GT(result.bytes, 0u);
  EXPECT_LT(result.bytes, 3000u);
}

TEST_P(TcpStreamTest, NothingToReadWouldBlockAndSoDoesNoRoom) {
  Connect();
  char byte;
  iovec part{&byte, 1};
  EXPECT_EQ(server_->Read({&part, 1}).kind, Kind::kWouldBlock);
  std::string much(1 << 20, 'x');
  IoResult result;
  do result = WriteText(*client_, much);
  while (result.kind == Kind::kDone);
  EXPECT_EQ(result.kind, Kind::kWouldBlock);
}

TEST_P(TcpStreamTest, EmptyReadIsNotAnEndOfStream) {
  Connect();
  WriteText(*client_, "x");
  AwaitReadiness(server_->fd(), POLLIN);
  iovec empty{nullptr, 0};
  EXPECT_EQ(server_->Read({&empty, 1}).kind, Kind::kWouldBlock);
  EXPECT_EQ(server_->Read({}).kind, Kind::kWouldBlock);
  EXPECT_EQ(server_->Write({}).kind, Kind::kWouldBlock);
}

TEST_P(TcpStreamTest, ShutdownWriteEndsOneDirectionOnly) {
  Connect();
  WriteText(*client_, "last");
  client_->ShutdownWrite();
  EXPECT_EQ(ReadToTheEnd(*server_), "last");
  EXPECT_EQ(WriteText(*server_, "still here").kind, Kind::kDone);
  std::string heard;
  EXPECT_EQ(ReadSome(*client_, heard).kind, Kind::kDone);
  EXPECT_EQ(heard, "still here");
}

TEST_P(TcpStreamTest, DestructionDeliversWhatWasWrittenThoughItLeavesBytesUnread) {
  Connect();
  WriteText(*client_, "never read");
  AwaitReadiness(server_->fd(), POLLIN);
  WriteText(*server_, "farewell");
  server_.reset();
  std::string heard;
  EXPECT_EQ(ReadSome(*client_, heard).kind, Kind::kDone);
  EXPECT_EQ(heard, "farewell");
  EXPECT_EQ(ReadSome(*client_, heard).kind, Kind::kEndOfStream);
}

TEST_P(TcpStreamTest, AbortResetsThePeerAtOnceAndFailsLaterCalls) {
  Connect();
  client_->Abort();
  client_->Abort();
  EXPECT_EQ(WriteText(*client_, "x").kind, Kind::kFailed);
  std::string heard;
  IoResult result = ReadSome(*server_, heard);
  EXPECT_EQ(result.kind, Kind::kFailed);
  EXPECT_EQ(result.error, ECONNRESET);
  char byte;
  iovec part{&byte, 1};
  EXPECT_EQ(client_->Read({&part, 1}).kind, Kind::kFailed);
  EXPECT_GE(fcntl(client_->fd(), F_GETFD), 0);  // the number is not free for another socket yet
}

TEST_P(TcpStreamTest, WritingToAResetStreamFailsWithoutASignal) {
  Connect();
  server_->Abort();
  AwaitReadiness(client_->fd(), POLLIN);
  IoResult result;
  do result = WriteText(*client_, "x");
  while (result.kind == Kind::kDone);
  EXPECT_EQ(result.kind, Kind::kFailed);
}

TEST_P(TcpStreamTest, RefusedConnectionIsReportedByConnectErrorEachTime) {
  SocketAddress nobody = listener_->LocalAddress();
  listener_.reset();
  auto attempt = TcpStream::StartConnect({}, nobody);
  if (!attempt) {
    EXPECT_EQ(attempt.error(), ECONNREFUSED);
    return;
  }
  AwaitReadiness((*attempt)->fd(), POLLOUT);
  EXPECT_EQ((*attempt)->ConnectError(), ECONNREFUSED);
  EXPECT_EQ((*attempt)->ConnectError(), ECONNREFUSED);
}

TEST_P(TcpStreamTest, KnowsItsAddressesAndSegmentSize) {
  Connect();
  EXPECT_TRUE(client_->PeerAddress() == listener_->LocalAddress());
  EXPECT_TRUE(client_->LocalAddress() == server_->PeerAddress());
  EXPECT_TRUE(server_->LocalAddress() == listener_->LocalAddress());
  EXPECT_GE(client_->SegmentSize(), 536u);
  EXPECT_LE(client_->SegmentSize(), 65535u);
}

TEST_P(TcpStreamTest, ConnectsFromTheAddressThatWasAskedFor) {
  SocketAddress local = *SocketAddress::Parse(GetParam(), 0);
  auto stream = TcpStream::StartConnect(local, listener_->LocalAddress());
  ASSERT_TRUE(stream);
  AwaitReadiness((*stream)->fd(), POLLOUT);
  EXPECT_EQ((*stream)->ConnectError(), 0);
  EXPECT_TRUE((*stream)->LocalAddress().SameHost(local));
}

TEST_P(TcpStreamTest, SocketsDoNotOutliveExecAndSendAtOnce) {
  Connect();
  for (int fd : {client_->fd(), server_->fd(), listener_->fd()}) {
    EXPECT_NE(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_NE(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
  }
  for (int fd : {client_->fd(), server_->fd()}) {
    int no_delay = 0;
    socklen_t length = sizeof no_delay;
    getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &no_delay, &length);
    EXPECT_NE(no_delay, 0);
  }
}

TEST(TcpStreamTest, ALoopReadsWhatItWrote) {
  auto loop = TcpStream::OpenLoop(*SocketAddress::Parse("127.0.0.1", 0));
  ASSERT_TRUE(loop);
  AwaitReadiness((*loop)->fd(), POLLOUT);
  EXPECT_EQ((*loop)->PeerAddress(), (*loop)->LocalAddress());
  char there[] = "there", back[sizeof there] = {};
  const iovec from{there, sizeof there}, into{back, sizeof back};
  ASSERT_EQ((*loop)->Write({&from, 1}).bytes, sizeof there);
  AwaitReadiness((*loop)->fd(), POLLIN);
  ASSERT_EQ((*loop)->Read({&into, 1}).bytes, sizeof there);
  EXPECT_STREQ(back, there);
  (*loop)->ShutdownWrite();
  AwaitReadiness((*loop)->fd(), POLLIN);
  EXPECT_EQ((*loop)->Read({&into, 1}).kind, IoResult::Kind::kEndOfStream);
}

TEST(TcpListenerTest, NothingPendingIsEagain) {
  auto listener = TcpListener::Open(*SocketAddress::Parse("127.0.0.1", 0), 1, false, true);
  ASSERT_TRUE(listener);
  auto accepted = (*listener)->Accept();
  ASSERT_FALSE(accepted);
  EXPECT_EQ(accepted.error(), EAGAIN);
}

TEST(TcpListenerTest, SecondListenerOnAPortIsRefusedByName) {
  auto first = TcpListener::Open(*SocketAddress::Parse("127.0.0.1", 0), 1, false, true);
  ASSERT_TRUE(first);
  auto second = TcpListener::Open((*first)->LocalAddress(), 1, false, true);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error(), EADDRINUSE);
  auto elsewhere = TcpListener::Open(*SocketAddress::Parse("192.0.2.1", 0), 1, false, true);
  ASSERT_FALSE(elsewhere);
  EXPECT_EQ(elsewhere.error(), EADDRNOTAVAIL);
}

TEST(TcpListenerTest, WildcardOfIPv6TakesIPv4UnlessToldNot) {
  auto both = TcpListener::Open(*SocketAddress::Parse("::", 0), 1, false, true);
  if (!both) GTEST_SKIP() << "no IPv6 on this machine";
  uint16_t port = (*both)->LocalAddress().port();
  auto stream = TcpStream::StartConnect({}, *SocketAddress::Parse("127.0.0.1", port));
  ASSERT_TRUE(stream);
  AwaitReadiness((*both)->fd(), POLLIN);
  auto accepted = (*both)->Accept();
  ASSERT_TRUE(accepted);
  EXPECT_TRUE((*accepted)->PeerAddress().SameHost(*SocketAddress::Parse("127.0.0.1", 0)));

  auto only_v6 = TcpListener::Open(*SocketAddress::Parse("::", 0), 1, true, true);
  ASSERT_TRUE(only_v6);
  port = (*only_v6)->LocalAddress().port();
  EXPECT_TRUE(TcpListener::Open(*SocketAddress::Parse("0.0.0.0", port), 1, false, true).ok());
}

}  // namespace
}  // namespace weft::transport
