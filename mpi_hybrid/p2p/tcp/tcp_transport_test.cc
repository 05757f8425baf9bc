#include "mpi_hybrid/p2p/tcp/tcp_transport.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "base/job_secret.h"
#include "base/log.h"
#include "mpi_hybrid/core/job.h"
#include "mpi_hybrid/p2p/tcp/few_descriptors.h"
#include "mpi_hybrid/p2p/testing/device_pair.h"
#include "mpi_hybrid/p2p/testing/engine_suite.h"
#include "mpi_hybrid/p2p/testing/fake_pmi.h"
#include "mpi_hybrid/p2p/testing/network.h"
#include "mpi_hybrid/p2p/testing/transport_suite.h"

namespace weft::mpi::testing {
namespace {

constexpr const char* kSecret = kJobSecret;

// A job over loopback.
class TcpNetwork final : public Network {
 public:
  TcpNetwork(int size, unsigned /*seed*/) : jobs_(static_cast<size_t>(size)) {
    for (int rank = 0; rank < size; ++rank) FillLoopbackJob(job(rank), rank, size, space);
  }
  std::unique_ptr<Transport> Make(Engine& engine, EventLoop& loop) override {
    return std::make_unique<TcpTransport>(job(engine.self()), engine, loop, /*short_buffers=*/false);
  }
  // What the kernel has is not to be seen; on loopback it has it for microseconds.
  bool IsQuiet() override {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return true;
  }
  Job& job(int rank) { return jobs_[static_cast<size_t>(rank)]; }

  PmiSpace space;

 private:
  std::vector<Job> jobs_;
};

const NetworkFactory kTcp = [](int size, unsigned seed) { return std::make_unique<TcpNetwork>(size, seed); };

struct TcpPair : DevicePair {
  explicit TcpPair(const EngineLimits& limits, unsigned seed = 1) : DevicePair(kTcp, limits, seed) {}
};
INSTANTIATE_TYPED_TEST_SUITE_P(Tcp, MessageSuite, TcpPair);
INSTANTIATE_TYPED_TEST_SUITE_P(Tcp, EngineSuite, TcpPair);
INSTANTIATE_TEST_SUITE_P(Tcp, TransportSuite, ::testing::Values(kTcp));

class TcpTransportTest : public JobTest {
 protected:
  TcpTransportTest() : JobTest(kTcp) {}
  TcpNetwork& network() { return static_cast<TcpNetwork&>(*network_); }

  // A connection to the listener of `rank` from outside.
  int ConnectTo(int rank) {
    std::string address;
    EXPECT_TRUE(network().job(rank).Lookup("weft-p2p", rank, &address).ok());
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
    return fd;
  }
  // Reads its challenge and answers it.
  void SendHello(int fd, const char* secret, int from, int to) {
    uint8_t challenge[Challenge::kLength], hello[Hello::kLength];
    size_t have = 0;
    ASSERT_TRUE(PollUntil([&] {
      const ssize_t got = recv(fd, challenge + have, sizeof(challenge) - have, MSG_DONTWAIT);
      if (got > 0) have += static_cast<size_t>(got);
      return have == sizeof(challenge);
    }));
    LoopbackHello(from, to).Write(*JobSecret::FromHex(secret), challenge, hello);
    ASSERT_EQ(send(fd, hello, sizeof(hello), 0), static_cast<ssize_t>(sizeof(hello)));
  }
  // At a listener where rank 0 would be: awaits a connection of the job and answers it.
  void AnswerNext(const Socket& listener, Answer::Kind kind, Socket* connection) {
    ASSERT_TRUE(PollUntil([&] { return static_cast<bool>(*connection = listener.Accept()); }));
    uint8_t challenge[Challenge::kLength], hello[Hello::kLength], answer[Answer::kLength];
    Challenge::Write(NewNonce(), LoopbackName(0), challenge);
    ASSERT_EQ(send(connection->get(), challenge, sizeof(challenge), 0), static_cast<ssize_t>(sizeof(challenge)));
    size_t have = 0;
    ASSERT_TRUE(PollUntil([&] {
      const ssize_t got = recv(connection->get(), hello + have, sizeof(hello) - have, MSG_DONTWAIT);
      if (got > 0) have += static_cast<size_t>(got);
      return have == sizeof(hello);
    }));
    const JobSecret secret = *JobSecret::FromHex(kSecret);
    ASSERT_TRUE(Hello::IsProven(secret, challenge, hello));
    Answer{.window = 100000, .kind = kind}.Write(secret, challenge, hello, answer);
    ASSERT_EQ(send(connection->get(), answer, sizeof(answer), 0), static_cast<ssize_t>(sizeof(answer)));
  }
  void ExpectDropped(int fd) {
    EXPECT_TRUE(PollUntil([&] {
      char bytes[100];
      const ssize_t got = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
      return got == 0 || (got < 0 && errno == ECONNRESET);
    }));
    close(fd);
  }
};

Socket ListenAtLoopback() { return Socket::Listen(*transport::SocketAddress::Parse("127.0.0.1", 0)); }

TEST_F(TcpTransportTest, StrangersAreDroppedAndTheJobGoesOn) {
  SilenceWarnings(true);
  Make(2);
  const std::string text =
      "GET / HTTP/1.1\r\n\r\n it could be a program that looks for web servers, or for anything else, and that says more than "
      "a greeting has bytes";
  ASSERT_GE(text.size(), Hello::kLength);
  for (size_t length : {text.size(), size_t{3}}) {
    const int fd = ConnectTo(0);
    ASSERT_EQ(send(fd, text.data(), length, 0), static_cast<ssize_t>(length));
    if (length == 3) shutdown(fd, SHUT_WR);
    ExpectDropped(fd);
  }
  // The wrong secret; and the right one, with wrong ranks.
  for (const auto& [secret, from, to] : {std::tuple{"00112233445566778899aabbccddeefe", 1, 0},
                                         {kSecret, 1, 1},
                                         {kSecret, 0, 0},
                                         {kSecret, 2, 0},
                                         {kSecret, -1, 0}}) {
    const int fd = ConnectTo(0);
    SendHello(fd, secret, from, to);
    ExpectDropped(fd);
  }
  const int silent = ConnectTo(0);
  ExpectTraffic(0, 1);
  close(silent);
  SilenceWarnings(false);
}

TEST_F(TcpTransportTest, ALongQueueToAPeerThatTakesItAllGoesOutInTurns) {
  Make(3);
  ExpectTraffic(0, 1);
  ExpectTraffic(0, 2);
  // More frames than one turn's system calls gather, all of which the kernel has room for.
  const std::vector<uint8_t> one(10, 7);
  std::vector<Request*> sends;
  for (int i = 0; i < 2000; ++i) {
    sends.push_back(at(0).Process::Send(one, 4, SendMode::kStandard, 1));
  }
  at(0).device.Flush();
  EXPECT_TRUE(sends.front()->complete);
  EXPECT_FALSE(sends.back()->complete) << "nobody else had a turn";
  Request* other = at(0).Send(one, 2, 4);
  EXPECT_TRUE(other->complete);
  other->Release();
  // The rest is no reason to sleep.
  for (int sleeps = 0; !sends.back()->complete; ++sleeps) {
    ASSERT_TRUE(at(0).device.Sleep(600'000));
    ASSERT_LT(sleeps, 100);
  }
  for (Request* send : sends) send->Release();
}

TEST_F(TcpTransportTest, ElevenHundredSilentStrangersKeepNobodyOut) {
  Make(2);
  std::vector<int> silent;
  for (int i = 0; i < 1100; ++i) {
    silent.push_back(ConnectTo(0));
    at(0).device.Poll();
  }
  // Rank 1 opens the connection, behind all of them.
  std::vector<uint8_t> sent(1000, 7), got(1000);
  Request* receive = at(0).Receive(got, 1, 9);
  Request* send = at(1).Send(sent, 0, 9);
  EXPECT_TRUE(PollUntil([&] { return receive->complete && send->complete; }));
  EXPECT_TRUE(receive->error.ok()) << receive->error.message();
  EXPECT_EQ(got, sent);
  send->Release();
  receive->Release();
  for (int fd : silent) close(fd);
}

TEST_F(TcpTransportTest, AtTheDescriptorLimitASendWaitsAndThePeerLives) {
  SilenceWarnings(true);
  Make(2);
  std::vector<uint8_t> sent(1000, 7), got(1000);
  Request* receive = at(0).Receive(got, 1, 9);
  Request* send;
  {
    FewDescriptors none(0);
    send = at(1).Send(sent, 0, 9);
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(250);
    int wakes = 0;
    for (; std::chrono::steady_clock::now() < end; ++wakes) EXPECT_FALSE(at(1).device.Sleep(1000)) << "nothing came";
    EXPECT_LT(wakes, 20) << "it spins";
    EXPECT_FALSE(send->complete);
    EXPECT_FALSE(at(1).engine.IsDead(0));
  }
  EXPECT_TRUE(PollUntil([&] { return receive->complete && send->complete; }));
  EXPECT_TRUE(send->error.ok()) << send->error.message();
  EXPECT_EQ(got, sent);
  send->Release();
  receive->Release();
  SilenceWarnings(false);
}

TEST_F(TcpTransportTest, AtTheDescriptorLimitAListenerNeitherSpinsNorLosesWhoConnects) {
  SilenceWarnings(true);
  Make(2);
  std::vector<uint8_t> sent(1000, 7), got(1000);
  Request* receive = at(0).Receive(got, 1, 9);
  Request* send;
  {
    FewDescriptors one(1);  // for rank 1
    send = at(1).Send(sent, 0, 9);
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(250);
    int wakes = 0;
    for (; std::chrono::steady_clock::now() < end; ++wakes) at(0).device.Sleep(1000);
    EXPECT_LT(wakes, 20) << "it spins";
    EXPECT_FALSE(send->complete);
  }
  EXPECT_TRUE(PollUntil([&] { return receive->complete && send->complete; }));
  EXPECT_TRUE(send->error.ok()) << send->error.message();
  EXPECT_EQ(got, sent);
  send->Release();
  receive->Release();
  SilenceWarnings(false);
}

TEST_F(TcpTransportTest, AProcessIsFoundAtAnyOfItsAddresses) {
  Make(3);
  // Nobody at the first; another rank of the job at the second, as where two hosts have the same address (a container
  // engine's bridge).
  const int closed = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
  ASSERT_EQ(bind(closed, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  const std::string nobody = transport::SocketAddress::Local(closed).ToString();
  network().space["weft-p2p-1"] = nobody + "," + network().space["weft-p2p-2"] + "," + network().space["weft-p2p-1"];
  std::vector<uint8_t> sent(1000, 7), got(1000);
  Request* receive = at(1).Receive(got, 0, 9);
  Request* send = at(0).Send(sent, 1, 9);
  EXPECT_TRUE(PollUntil([&] { return receive->complete && send->complete; }));
  EXPECT_TRUE(send->error.ok()) << send->error.message();
  EXPECT_EQ(got, sent);
  send->Release();
  receive->Release();
  close(closed);
}

TEST_F(TcpTransportTest, ARankWhosePortIsAnothersByNowIsDead) {
  Make(3);
  network().space["weft-p2p-1"] = network().space["weft-p2p-2"];
  std::vector<uint8_t> got(1000);
  Request* receive = at(0).Receive(got, 1, 9);
  at(0).device.ConnectToAwaited();
  ASSERT_TRUE(PollUntil([&] { return receive->complete; }));
  EXPECT_EQ(receive->error.mpi_class(), MPIX_ERR_PROC_FAILED);
  receive->Release();
  ExpectTraffic(0, 2);
}

// One of another job proves nothing to us, and need not: that it is another is enough.
TEST_F(TcpTransportTest, ARankWhosePortIsAnotherJobsByNowIsDead) {
  Make(2);
  const Socket listener = ListenAtLoopback();
  network().space["weft-p2p-0"] = listener.LocalAddress().ToString();
  std::vector<uint8_t> got(1000);
  Request* receive = at(1).Receive(got, 0, 9);
  at(1).device.ConnectToAwaited();
  Socket connection;
  ASSERT_TRUE(PollUntil([&] { return static_cast<bool>(connection = listener.Accept()); }));
  uint8_t challenge[Challenge::kLength];
  Challenge::Write(NewNonce(), {.job = Bond::Of(JobSecret::Random()).id, .rank = 0}, challenge);
  ASSERT_EQ(send(connection.get(), challenge, sizeof(challenge), 0), static_cast<ssize_t>(sizeof(challenge)));
  ASSERT_TRUE(PollUntil([&] { return receive->complete; }));
  EXPECT_EQ(receive->error.mpi_class(), MPIX_ERR_PROC_FAILED);
  receive->Release();
}

// What begins otherwise is not waited for to its end, which may be nearer than a challenge's.
TEST_F(TcpTransportTest, WhatIsNoChallengeIsLeftAtOnce) {
  Make(2);
  const Socket listener = ListenAtLoopback();
  network().space["weft-p2p-0"] = listener.LocalAddress().ToString();
  std::vector<uint8_t> got(1000);
  Request* receive = at(1).Receive(got, 0, 9);
  at(1).device.ConnectToAwaited();
  Socket connection;
  ASSERT_TRUE(PollUntil([&] { return static_cast<bool>(connection = listener.Accept()); }));
  ASSERT_EQ(send(connection.get(), "220 mail\r\n", 10, 0), 10);
  uint8_t byte;
  EXPECT_TRUE(PollUntil([&] { return recv(connection.get(), &byte, 1, MSG_DONTWAIT) == 0; }));
  EXPECT_FALSE(receive->complete) << "nobody is dead for it";
  EXPECT_TRUE(receive->Cancel().ok());
  receive->Release();
}

TEST_F(TcpTransportTest, ARankThatComputesIsNotDeadBecauseNobodyIsAtItsOtherAddress) {
  Make(2);
  Socket closed = ListenAtLoopback();
  network().space["weft-p2p-1"] += "," + closed.LocalAddress().ToString();
  closed.Close();
  std::vector<uint8_t> sent(1000, 7), got(1000);
  Request* send = at(0).Send(sent, 1, 9);
  // Its kernel accepts, it looks at nothing, for longer than one of several addresses has.
  const auto end = std::chrono::steady_clock::now() + Dial::kAddressLimit + std::chrono::milliseconds(500);
  while (std::chrono::steady_clock::now() < end) at(0).device.Sleep(100);
  ASSERT_FALSE(at(0).engine.IsDead(1));
  Request* receive = at(1).Receive(got, 0, 9);
  EXPECT_TRUE(PollUntil([&] { return receive->complete && send->complete; }));
  EXPECT_TRUE(send->error.ok()) << send->error.message();
  EXPECT_EQ(got, sent);
  send->Release();
  receive->Release();
}

TEST_F(TcpTransportTest, WhoCannotReachAPeerIsReachedByIt) {
  Make(2);
  // To rank 0 a listener that answers nothing looks like a filter that drops what it sends.
  const Socket silent = ListenAtLoopback();
  network().space["weft-p2p-1"] = silent.LocalAddress().ToString();
  std::vector<uint8_t> sent(1000, 7), got(1000);
  Request* from_0 = at(0).Send(sent, 1, 9);
  Request* at_1 = at(1).Receive(got, 0, 9);
  Request* from_1 = at(1).Send(sent, 0, 9);
  ASSERT_TRUE(PollUntil([&] { return from_0->complete && at_1->complete && from_1->complete; }));
  EXPECT_EQ(got, sent);
  for (Request* request : {from_0, at_1, from_1}) request->Release();
}

TEST_F(TcpTransportTest, WhoIsToldBusyAsksAgainUntilItIsWelcome) {
  Make(2);
  const Socket listener = ListenAtLoopback();
  network().space["weft-p2p-0"] = listener.LocalAddress().ToString();
  std::vector<uint8_t> sent(1000, 7);
  Request* send = at(1).Send(sent, 0, 9);
  Socket connection;
  for (const auto kind : {Answer::Kind::kBusy, Answer::Kind::kBusy, Answer::Kind::kWelcome}) {
    ASSERT_NO_FATAL_FAILURE(AnswerNext(listener, kind, &connection));
  }
  EXPECT_TRUE(PollUntil([&] { return send->complete; }));
  EXPECT_TRUE(send->error.ok()) << send->error.message();
  send->Release();
}

TEST_F(TcpTransportTest, WhoIsToldBusyByOneThatDiesThenLearnsOfIt) {
  Make(2);
  Socket listener = ListenAtLoopback();
  network().space["weft-p2p-0"] = listener.LocalAddress().ToString();
  std::vector<uint8_t> got(1000);
  Request* receive = at(1).Receive(got, 0, 9);
  at(1).device.ConnectToAwaited();
  Socket connection;
  ASSERT_NO_FATAL_FAILURE(AnswerNext(listener, Answer::Kind::kBusy, &connection));
  listener.Close();
  ASSERT_TRUE(PollUntil([&] { return receive->complete; }));
  EXPECT_EQ(receive->error.mpi_class(), MPIX_ERR_PROC_FAILED);
  receive->Release();
}

TEST(SocketTest, ConnectionsNoticeByThemselvesThatTheOtherHostIsGone) {
  const Socket listener = Socket::Listen(*transport::SocketAddress::Parse("127.0.0.1", 0));
  const Socket connected = Socket::StartConnect(listener.LocalAddress());
  Socket accepted;
  while (!accepted) accepted = listener.Accept();
  for (const Socket* socket : {&connected, static_cast<const Socket*>(&accepted)}) {
    int on = 0;
    socklen_t length = sizeof(on);
    ASSERT_EQ(getsockopt(socket->get(), SOL_SOCKET, SO_KEEPALIVE, &on, &length), 0);
    EXPECT_EQ(on, 1);
  }
}

}  // namespace
}  // namespace weft::mpi::testing
