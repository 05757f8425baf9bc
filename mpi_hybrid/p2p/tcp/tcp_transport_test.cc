#include "mpi_hybrid/p2p/tcp/tcp_transport.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "base/log.h"
#include "mpi_hybrid/core/job.h"
#include "mpi_hybrid/datatype/datatype.h"
#include "mpi_hybrid/p2p/device/device.h"
#include "mpi_hybrid/p2p/tcp/few_descriptors.h"
#include "pmi/client.h"

namespace weft::mpi {
namespace {

constexpr char kSecret[] = "00112233445566778899aabbccddeeff";

using Space = std::map<std::string, std::string>;

// The launcher's side of PMI: a map that all processes share.
class FakeClient : public pmi::Client {
 public:
  FakeClient(Space& space, int rank, int size) : space_(space), rank_(rank), size_(size) {}
  bool is_singleton() const override { return false; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int appnum() const override { return 0; }
  int universe_size() const override { return -1; }
  const std::string& kvs_name() const override { return name_; }
  size_t max_value_length() const override { return 1024; }
  int fd() const override { return -1; }
  std::string Put(const std::string& key, const std::string& value) override {
    space_[key] = value;
    return "";
  }
  Result<std::string, pmi::PmiError> Get(const std::string& key) override {
    const auto found = space_.find(key);
    if (found == space_.end()) return pmi::PmiError{"no " + key};
    return found->second;
  }
  std::string Barrier() override { return ""; }
  std::string Finalize() override { return ""; }
  void Abort(int, const std::string&) override {}

 private:
  Space& space_;
  const int rank_, size_;
  const std::string name_ = "kvs";
};

struct Process {
  Process(Space& space, int rank, int size, const EngineLimits& limits) : comm(new Comm) {
    job.rank = rank;
    job.size = size;
    job.hosts = {"127.0.0.1"};
    job.secret = kSecret;
    job.pmi = std::make_unique<FakeClient>(space, rank, size);
    engine = std::make_unique<Engine>(rank, limits);
    device = std::make_unique<Device>(*engine);
    device->Add(std::make_unique<TcpTransport>(job, *engine, device->loop(), /*short_buffers=*/false));
    comm->rank = rank;
    auto group = MakeRef<Group>();
    for (int i = 0; i < size; ++i) group->members.push_back(i);
    comm->local = comm->remote = group;
    const Error error = device->Start();
    EXPECT_TRUE(error.ok()) << error.message();
  }
  Request* Send(const std::vector<uint8_t>& data, int to, int tag) {
    Request* request = nullptr;
    EXPECT_TRUE(engine
                    ->StartSend(data.data(), static_cast<MPI_Aint>(data.size()), *Datatype::Find(MPI_BYTE), to, tag,
                                *comm, SendMode::kStandard, Channel::kPointToPoint, &request)
                    .ok());
    device->Flush();
    return request;
  }
  Request* Receive(std::vector<uint8_t>& data, int from, int tag) {
    Request* request = nullptr;
    EXPECT_TRUE(engine
                    ->StartReceive(data.data(), static_cast<MPI_Aint>(data.size()), *Datatype::Find(MPI_BYTE), from,
                                   tag, *comm, Channel::kPointToPoint, &request)
                    .ok());
    device->Flush();
    return request;
  }

  Job job;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Device> device;
  Ref<Comm> comm;
};

class TcpTransportTest : public testing::Test {
 protected:
  void Make(int size, const EngineLimits& limits = {}) {
    for (int rank = 0; rank < size; ++rank) processes_.push_back(std::make_unique<Process>(space_, rank, size, limits));
  }
  Process& at(int rank) { return *processes_[static_cast<size_t>(rank)]; }
  // Polls all until `done`, for at most 20 s.
  template <typename Done>
  bool PollUntil(Done done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!done()) {
      bool moved = false;
      for (auto& process : processes_) {
        if (process != nullptr) moved |= process->device->Poll();
      }
      if (!moved) std::this_thread::yield();
      if (std::chrono::steady_clock::now() > end) return false;
    }
    return true;
  }
  // A connection to the listener of `rank` from outside.
  int ConnectTo(int rank) {
    std::string address;
    EXPECT_TRUE(at(rank).job.Lookup("weft-p2p", rank, &address).ok());
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
    Hello{.from = from, .to = to, .window = 1000}.Write(*JobSecret::FromHex(secret), challenge, hello);
    ASSERT_EQ(send(fd, hello, sizeof(hello), 0), static_cast<ssize_t>(sizeof(hello)));
  }
  // At a listener where a rank of the job would be: awaits a connection of the job and answers it.
  void AnswerNext(const Socket& listener, Answer::Kind kind, Socket* connection) {
    ASSERT_TRUE(PollUntil([&] { return static_cast<bool>(*connection = listener.Accept()); }));
    uint8_t challenge[Challenge::kLength], hello[Hello::kLength], answer[Answer::kLength];
    Challenge::Write(NewNonce(), challenge);
    ASSERT_EQ(send(connection->fd(), challenge, sizeof(challenge), 0), static_cast<ssize_t>(sizeof(challenge)));
    size_t have = 0;
    ASSERT_TRUE(PollUntil([&] {
      const ssize_t got = recv(connection->fd(), hello + have, sizeof(hello) - have, MSG_DONTWAIT);
      if (got > 0) have += static_cast<size_t>(got);
      return have == sizeof(hello);
    }));
    const JobSecret secret = *JobSecret::FromHex(kSecret);
    ASSERT_TRUE(Hello::Read(secret, challenge, hello).has_value());
    Answer{.window = 100000, .kind = kind}.Write(secret, challenge, hello, answer);
    ASSERT_EQ(send(connection->fd(), answer, sizeof(answer), 0), static_cast<ssize_t>(sizeof(answer)));
  }
  void ExpectDropped(int fd) {
    EXPECT_TRUE(PollUntil([&] {
      char bytes[100];
      const ssize_t got = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
      return got == 0 || (got < 0 && errno == ECONNRESET);
    }));
    close(fd);
  }
  // A message each way.
  void ExpectTraffic(int a, int b) {
    const std::vector<uint8_t> sent(1000, 7);
    std::vector<uint8_t> got_a(1000), got_b(1000);
    Request* requests[] = {at(a).Receive(got_a, b, 9), at(b).Receive(got_b, a, 9), at(a).Send(sent, b, 9),
                           at(b).Send(sent, a, 9)};
    for (Request* request : requests) {
      EXPECT_TRUE(PollUntil([&] { return request->complete; }));
      EXPECT_TRUE(request->error.ok()) << request->error.message();
      request->Release();
    }
    EXPECT_EQ(got_a, sent);
    EXPECT_EQ(got_b, sent);
  }

  Space space_;
  std::vector<std::unique_ptr<Process>> processes_;
};

Socket ListenAtLoopback() { return Socket::Listen(*transport::SocketAddress::Parse("127.0.0.1", 0)); }

TEST_F(TcpTransportTest, BothSidesConnectAtOnceAndNothingIsLostOrReordered) {
  for (int first : {0, 1}) {
    processes_.clear();
    space_.clear();
    Make(2);
    constexpr int kMessages = 50;
    std::vector<std::vector<uint8_t>> sent, got(2 * kMessages, std::vector<uint8_t>(100000));
    std::vector<Request*> requests;
    for (int i = 0; i < kMessages; ++i) sent.emplace_back(i % 7 == 0 ? 100000 : i, static_cast<uint8_t>(i));
    for (int i = 0; i < kMessages; ++i) {
      for (int rank : {first, 1 - first}) requests.push_back(at(rank).Send(sent[static_cast<size_t>(i)], 1 - rank, 3));
    }
    for (int i = 0; i < kMessages; ++i) {
      for (int rank : {0, 1}) requests.push_back(at(rank).Receive(got[static_cast<size_t>(2 * i + rank)], 1 - rank, 3));
    }
    for (Request* request : requests) {
      ASSERT_TRUE(PollUntil([&] { return request->complete; }));
      EXPECT_TRUE(request->error.ok()) << request->error.message();
      request->Release();
    }
    for (int i = 0; i < 2 * kMessages; ++i) {
      const auto& data = sent[static_cast<size_t>(i / 2)];
      ASSERT_TRUE(std::equal(data.begin(), data.end(), got[static_cast<size_t>(i)].begin())) << i;
    }
  }
}

TEST_F(TcpTransportTest, StrangersAreDroppedAndTheJobGoesOn) {
  SilenceWarnings(true);
  Make(2);
  const std::string text =
      "GET / HTTP/1.1\r\n\r\n it could be a program that looks for web servers, or for anything else";
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

TEST_F(TcpTransportTest, ADeadPeerIsAnErrorWhereverItIsNeeded) {
  Make(3);
  ExpectTraffic(0, 1);
  std::vector<uint8_t> from_dead(10), from_living(10);
  Request* receive = at(0).Receive(from_dead, 1, 1);
  Request* other = at(0).Receive(from_living, 2, 1);
  processes_[1].reset();
  ASSERT_TRUE(PollUntil([&] { return receive->complete; }));
  EXPECT_EQ(receive->error.mpi_class(), MPI_ERR_PROC_ABORTED);
  EXPECT_FALSE(other->complete);
  const std::vector<uint8_t> data = {1, 2, 3};
  Request* send = at(2).Send(data, 0, 1);
  EXPECT_TRUE(PollUntil([&] { return other->complete && send->complete; }));
  // Rank 2 learns of it by trying to connect.
  Request* late = at(2).Receive(from_dead, 1, 1);
  at(2).device->ConnectToAwaited();
  EXPECT_TRUE(PollUntil([&] { return late->complete; }));
  EXPECT_EQ(late->error.mpi_class(), MPI_ERR_PROC_ABORTED);
  for (Request* request : {receive, other, send, late}) request->Release();
}

TEST_F(TcpTransportTest, AProbeNoticesTheDeathOfAPeerThatWasNeverTalkedTo) {
  Make(2);
  const AwaitedProbe probe{1, *at(0).comm};
  at(0).engine->StartAwaiting(probe);
  processes_[1].reset();
  at(0).device->ConnectToAwaited();
  EXPECT_TRUE(PollUntil([&] { return at(0).engine->IsDead(1); }));
  at(0).engine->StopAwaiting(probe);
}

TEST_F(TcpTransportTest, AReceiveFromAnyoneConnectsToFewOfMany) {
  constexpr int kRanks = 40;
  Make(kRanks);
  std::vector<uint8_t> got(10);
  Request* receive = at(30).Receive(got, MPI_ANY_SOURCE, 1);
  at(30).device->ConnectToAwaited();
  const auto connections = [&] {
    int count = 0;
    for (int rank = 0; rank < kRanks; ++rank) {
      const Link* link = at(30).engine->FindLink(rank);
      count += link != nullptr && link->state() == Link::State::kOpen;
    }
    return count;
  };
  ASSERT_TRUE(PollUntil([&] { return connections() == 16; }));
  // One of those that are watched dies.
  processes_[5].reset();
  EXPECT_TRUE(PollUntil([&] { return receive->complete; }));
  EXPECT_EQ(receive->error.mpi_class(), MPI_ERR_PROC_ABORTED);
  EXPECT_EQ(connections(), 15);
  receive->Release();
}

TEST_F(TcpTransportTest, PollTellsOfWritesToo) {
  Make(2);
  ExpectTraffic(0, 1);
  // More than the sockets hold, into a rank that does not look; and nothing comes back that would be read.
  const std::vector<uint8_t> sent(60000, 5);
  std::vector<Request*> sends;
  for (int i = 0; i < 130; ++i) sends.push_back(at(0).Send(sent, 1, 4));
  while (at(0).device->Poll()) {
  }
  while (!sends.back()->complete) {
    while (at(1).device->Poll()) {
    }
    const auto completed = [&] {
      return std::count_if(sends.begin(), sends.end(), [](Request* send) { return send->complete; });
    };
    const auto before = completed();
    const bool moved = at(0).device->Poll();
    ASSERT_TRUE(moved || completed() == before) << "a send completed, and Poll() says that nothing moved";
  }
  for (Request* send : sends) send->Release();
}

TEST_F(TcpTransportTest, ManyConnectionsGoThroughEpoll) {
  Make(8);
  for (int a = 0; a < 8; ++a) {
    for (int b = 0; b < a; ++b) ExpectTraffic(a, b);
  }
}

TEST_F(TcpTransportTest, WhatWasSentBeforeAnOrderlyEndArrives) {
  Make(2);
  ExpectTraffic(0, 1);
  std::vector<uint8_t> sent(60000, 3), got(60000);
  Request* send = at(0).Send(sent, 1, 1);
  at(0).device->Stop(std::chrono::milliseconds(20));
  Request* receive = at(1).Receive(got, 0, 1);
  EXPECT_TRUE(PollUntil([&] { return receive->complete; }));
  EXPECT_EQ(got, sent);
  at(1).device->Stop(std::chrono::milliseconds(20));
  EXPECT_FALSE(at(1).engine->IsDead(0));
  EXPECT_TRUE(send->complete && send->error.ok());
  send->Release();
  receive->Release();
}

TEST_F(TcpTransportTest, ElevenHundredSilentStrangersKeepNobodyOut) {
  Make(2);
  std::vector<int> silent;
  for (int i = 0; i < 1100; ++i) {
    silent.push_back(ConnectTo(0));
    at(0).device->Poll();
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
    for (; std::chrono::steady_clock::now() < end; ++wakes) EXPECT_FALSE(at(1).device->Sleep(1000)) << "nothing came";
    EXPECT_LT(wakes, 20) << "it spins";
    EXPECT_FALSE(send->complete);
    EXPECT_FALSE(at(1).engine->IsDead(0));
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
    for (; std::chrono::steady_clock::now() < end; ++wakes) at(0).device->Sleep(1000);
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
  space_["weft-p2p-1"] = nobody + "," + space_["weft-p2p-2"] + "," + space_["weft-p2p-1"];
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

TEST_F(TcpTransportTest, ARankThatComputesIsNotDeadBecauseNobodyIsAtItsOtherAddress) {
  Make(2);
  Socket closed = ListenAtLoopback();
  space_["weft-p2p-1"] += "," + closed.LocalAddress().ToString();
  closed.Close();
  std::vector<uint8_t> sent(1000, 7), got(1000);
  Request* send = at(0).Send(sent, 1, 9);
  // Its kernel accepts, it looks at nothing, for longer than one of several addresses has.
  const auto end = std::chrono::steady_clock::now() + Dial::kAddressLimit + std::chrono::milliseconds(500);
  while (std::chrono::steady_clock::now() < end) at(0).device->Sleep(100);
  ASSERT_FALSE(at(0).engine->IsDead(1));
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
  space_["weft-p2p-1"] = silent.LocalAddress().ToString();
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
  space_["weft-p2p-0"] = listener.LocalAddress().ToString();
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
  space_["weft-p2p-0"] = listener.LocalAddress().ToString();
  std::vector<uint8_t> got(1000);
  Request* receive = at(1).Receive(got, 0, 9);
  at(1).device->ConnectToAwaited();
  Socket connection;
  ASSERT_NO_FATAL_FAILURE(AnswerNext(listener, Answer::Kind::kBusy, &connection));
  listener.Close();
  ASSERT_TRUE(PollUntil([&] { return receive->complete; }));
  EXPECT_EQ(receive->error.mpi_class(), MPI_ERR_PROC_ABORTED);
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
    ASSERT_EQ(getsockopt(socket->fd(), SOL_SOCKET, SO_KEEPALIVE, &on, &length), 0);
    EXPECT_EQ(on, 1);
  }
}

}  // namespace
}  // namespace weft::mpi
