// Processes of several clients, each with its device, and agents in one thread that only route packets. Real sockets.
#include "mpi_hybrid/p2p/impi/impi_transport.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/job_secret.h"
#include "impi/agent/inlet.h"
#include "impi/job/testing/jobs.h"
#include "mpi_hybrid/p2p/testing/network.h"
#include "mpi_hybrid/p2p/testing/process.h"

namespace weft::mpi::testing {
namespace {

// Routes packets between the processes, until all have ended.
class Agents {
 public:
  explicit Agents(const impi::Job& job) : job_(job) {
    for (size_t rank = 0; rank < job.processes().size(); ++rank) {
      int ends[2];
      EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
      sockets_.push_back(std::make_unique<Socket>(Descriptor(ends[0]), impi::Inlet(job.limits())));
      fcntl(ends[0], F_SETFL, O_NONBLOCK);
      process_ends_.emplace_back(ends[1]);
    }
    EXPECT_EQ(pipe(stop_), 0);
  }
  ~Agents() {
    if (thread_.joinable()) Stop();
    close(stop_[0]);
    close(stop_[1]);
  }
  Descriptor TakeEnd(size_t rank) { return std::move(process_ends_[rank]); }
  void Start() {
    thread_ = std::thread([this] { Run(); });
  }
  void Pause() {
    EXPECT_EQ(write(stop_[1], "", 1), 1);
    thread_.join();
  }
  // Closes all connections.
  void Stop() {
    Pause();
    sockets_.clear();
  }
  // While it pauses: the agent's own words to a process.
  void Say(size_t rank, std::span<const uint8_t> bytes) {
    EXPECT_EQ(write(sockets_[rank]->fd.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  std::atomic<int> finis = 0;
  std::atomic<size_t> routed = 0, data_packets = 0;

 private:
  struct Socket {
    Descriptor fd;
    impi::Inlet inlet;
    std::vector<uint8_t> out;
  };

  void Run() {
    for (;;) {
      std::vector<pollfd> fds{{stop_[0], POLLIN, 0}};
      for (const auto& socket : sockets_) {
        fds.push_back({socket->fd.get(), static_cast<short>(POLLIN | (socket->out.empty() ? 0 : POLLOUT)), 0});
      }
      poll(fds.data(), fds.size(), -1);
      if (fds[0].revents != 0) return;
      for (size_t i = 0; i < sockets_.size(); ++i) {
        if ((fds[i + 1].revents & ~POLLOUT) != 0) Read(*sockets_[i]);
      }
      for (const auto& socket : sockets_) {
        if (!socket->fd || socket->out.empty()) continue;
        const ssize_t wrote = send(socket->fd.get(), socket->out.data(), socket->out.size(), MSG_NOSIGNAL);
        if (wrote > 0) socket->out.erase(socket->out.begin(), socket->out.begin() + wrote);
      }
    }
  }
  void Read(Socket& socket) {
    std::array<uint8_t, 65536> block;
    const ssize_t got = recv(socket.fd.get(), block.data(), block.size(), 0);
    if (got <= 0) return socket.fd.Close();
    ByteSpan bytes(block.data(), static_cast<size_t>(got));
    while (!bytes.empty()) {
      auto taken = socket.inlet.Take(bytes);
      ASSERT_TRUE(taken.ok()) << taken.error();
      if (!*taken) return;
      impi::CarriedPacket packet = std::move(**taken);
      if (packet.packet.type == impi::PacketType::kFini) {
        ++finis;
        EXPECT_TRUE(bytes.empty()) << "something behind FINI";
        return socket.fd.Close();
      }
      ++routed;
      data_packets += packet.packet.has_data();
      packet.WriteHeader();
      Socket& to = *sockets_[static_cast<size_t>(job_.Find(packet.packet.destination)->value)];
      to.out.insert(to.out.end(), packet.bytes.get(), packet.bytes.get() + packet.size());
    }
  }

  const impi::Job& job_;
  std::vector<std::unique_ptr<Socket>> sockets_;
  std::vector<Descriptor> process_ends_;
  int stop_[2] = {-1, -1};
  std::thread thread_;
};

// A process of MPI with a communicator of all processes, its MPI_COMM_WORLD.
struct Member {
  Member(impi::Job job, int rank_in_client, int size_of_client, const EngineLimits& limits, Descriptor agent) {
    table.Start(JobSecret::Random(), rank_in_client, size_of_client);
    std::vector<ProcessId> own(static_cast<size_t>(size_of_client));
    std::iota(own.begin(), own.end(), 0);
    world = std::make_unique<ImpiWorld>(std::move(job), std::move(own), table);
    engine = std::make_unique<Engine>(table.self(), limits);
    engine->set_describe([this](ProcessId process) { return table.Describe(process); });
    device = std::make_unique<Device>(*engine);
    auto made = std::make_unique<ImpiTransport>(*world, *engine, device->loop(), ImpiTransport::Setup{.agent = std::move(agent)});
    transport = made.get();
    device->Add(std::move(made));
    comm = MakeRef<Comm>();
    comm->rank = world->self().value;
    auto group = MakeRef<Group>();
    group->members = world->processes();
    comm->local = comm->remote = group;
    EXPECT_TRUE(device->Start().ok());
  }
  void KnowWorld() { transport->AddContext(0, 0, comm->remote); }

  ProcessTable table;
  std::unique_ptr<ImpiWorld> world;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Device> device;
  ImpiTransport* transport = nullptr;
  Ref<Comm> comm;
};

class ImpiTransportTest : public ::testing::Test {
 protected:
  // Clients with one process each.
  void Make(int clients, const EngineLimits& limits = {}, uint32_t data_length = 1000) {
    announced_ = impi::testing::Announcements(std::vector<std::vector<int>>(static_cast<size_t>(clients), {1}));
    for (impi::Announcement& one : announced_) one.data_length = data_length;
    job_ = std::make_unique<impi::Job>(impi::testing::JobOf(announced_, 0));
    agents_ = std::make_unique<Agents>(*job_);
    for (int client = 0; client < clients; ++client) {
      members_.push_back(std::make_unique<Member>(impi::testing::JobOf(announced_, client), 0, 1, limits, agents_->TakeEnd(static_cast<size_t>(client))));
      members_.back()->KnowWorld();
    }
    agents_->Start();
  }
  Member& at(int rank) { return *members_[static_cast<size_t>(rank)]; }
  template <typename Done>
  bool PollUntil(Done done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!done()) {
      bool moved = false;
      for (const auto& member : members_) moved |= member->device->Poll();
      if (!moved) std::this_thread::yield();
      if (std::chrono::steady_clock::now() > end) return false;
    }
    return true;
  }
  Request* Send(int from, int to, int tag, const void* data, MPI_Aint count, MPI_Datatype type, SendMode mode = SendMode::kStandard) {
    Request* request = nullptr;
    const Error error = at(from).engine->StartSend(data, count, *Datatype::Find(type), to, tag, *at(from).comm, mode, Channel::kPointToPoint, &request);
    EXPECT_TRUE(error.ok()) << error.message();
    at(from).device->Flush();
    return request;
  }
  Request* Receive(int at_rank, int from, int tag, void* data, MPI_Aint count, MPI_Datatype type) {
    Request* request = nullptr;
    const Error error = at(at_rank).engine->StartReceive(data, count, *Datatype::Find(type), from, tag, *at(at_rank).comm, Channel::kPointToPoint, &request);
    EXPECT_TRUE(error.ok()) << error.message();
    at(at_rank).device->Flush();
    return request;
  }
  MPI_Status Wait(Request* request) {
    EXPECT_TRUE(PollUntil([&] { return request->complete; }));
    EXPECT_TRUE(request->error.ok()) << request->error.message();
    const MPI_Status status = request->status;
    request->Release();
    return status;
  }

  std::vector<impi::Announcement> announced_;
  std::unique_ptr<impi::Job> job_;
  std::unique_ptr<Agents> agents_;
  std::vector<std::unique_ptr<Member>> members_;
};

TEST_F(ImpiTransportTest, MessagesOfAllLengthsGoBetweenAllProcesses) {
  Make(3, {.eager = 5000, .window = 100000, .chunk = 1000});
  for (const size_t length : {size_t{0}, size_t{1}, size_t{1000}, size_t{1001}, size_t{5000}, size_t{5001}, size_t{2000000}}) {
    std::vector<std::vector<uint8_t>> sent, got;
    std::vector<Request*> requests;
    sent.reserve(9);
    got.reserve(9);
    for (int from = 0; from < 3; ++from) {
      for (int to = 0; to < 3; ++to) {
        if (to == from) continue;
        requests.push_back(Receive(to, from, 7, got.emplace_back(length).data(), static_cast<MPI_Aint>(length), MPI_BYTE));
        sent.push_back(Data(length, 10 * from + to));
        requests.push_back(Send(from, to, 7, sent.back().data(), static_cast<MPI_Aint>(length), MPI_BYTE));
      }
    }
    for (Request* request : requests) Wait(request);
    EXPECT_EQ(got, sent) << length;
  }
}

// MPI_LONG has 4 bytes in external32.
TEST_F(ImpiTransportTest, DataAreInExternal32OnTheWay) {
  Make(2);
  for (const bool early : {true, false}) {
    for (const SendMode mode : {SendMode::kStandard, SendMode::kSynchronous}) {
      for (const int count : {1, 200, 1000}) {  // one packet, or several
        const size_t before = agents_->data_packets;
        std::vector<long> sent(static_cast<size_t>(count)), got(sent.size() + 1, 99);
        for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<long>(i) - 3;
        Request* receive = early ? nullptr : Receive(1, 0, 5, got.data(), count + 1, MPI_LONG);
        Request* send = Send(0, 1, 5, sent.data(), count, MPI_LONG, mode);
        if (early) {
          ASSERT_TRUE(PollUntil([&] { return at(1).engine->unexpected() != 0; }));
          receive = Receive(1, 0, 5, got.data(), count + 1, MPI_LONG);
        }
        const MPI_Status status = Wait(receive);
        Wait(send);
        EXPECT_EQ(GetCount(status), static_cast<MPI_Count>(sent.size() * sizeof(long)));
        EXPECT_EQ(got.back(), 99);
        got.pop_back();
        EXPECT_EQ(got, sent);
        EXPECT_EQ(agents_->data_packets - before, static_cast<size_t>((count * 4 + 999) / 1000));
      }
    }
  }
}

TEST_F(ImpiTransportTest, AMessageWithoutRoomIsTruncatedWhereTheReceiveEnds) {
  Make(2);
  for (const int count : {3, 600}) {
    std::vector<long> sent(static_cast<size_t>(count), 7);
    std::array<long, 3> got{9, 9, 9};
    Request* receive = Receive(1, 0, 5, got.data(), 2, MPI_LONG);
    Request* send = Send(0, 1, 5, sent.data(), count, MPI_LONG);
    ASSERT_TRUE(PollUntil([&] { return receive->complete && send->complete; }));
    EXPECT_EQ(receive->error.mpi_class(), MPI_ERR_TRUNCATE);
    EXPECT_EQ(got, (std::array<long, 3>{7, 7, 9}));
    receive->Release();
    send->Release();
  }
}

TEST_F(ImpiTransportTest, ATagAboveTheLeastBoundOfAllClientsIsAnError) {
  Make(2);  // 32767
  Request* request = nullptr;
  const Error error = at(0).engine->StartSend(nullptr, 0, Byte(), 1, 32768, *at(0).comm, SendMode::kStandard, Channel::kPointToPoint, &request);
  EXPECT_EQ(error.mpi_class(), MPI_ERR_TAG);
  EXPECT_EQ(error.message(), "tag 32768 is above MPI_TAG_UB, 32767, the least tag bound of the clients of this IMPI job");
  Request* receive = Receive(1, 0, MPI_ANY_TAG, nullptr, 0, MPI_BYTE);
  Wait(Send(0, 1, 32767, nullptr, 0, MPI_BYTE));
  EXPECT_EQ(Wait(receive).MPI_TAG, 32767);
}

TEST_F(ImpiTransportTest, AMessageForACommunicatorThatIsNotMadeYetWaits) {
  Make(2);
  const ContextId context = *ImpiContextTable::For(2);
  for (const auto& member : members_) member->comm->send_context = member->comm->receive_context = context;
  at(0).transport->AddContext(context, 2, at(0).comm->remote);
  const long sent = 5;
  long got = 0;
  Wait(Send(0, 1, 3, &sent, 1, MPI_LONG));
  Request* receive = Receive(1, 0, 3, &got, 1, MPI_LONG);
  const size_t before = agents_->routed;
  ASSERT_TRUE(PollUntil([&] { return agents_->routed >= before; }));
  EXPECT_FALSE(receive->complete);
  at(1).transport->AddContext(context, 2, at(1).comm->remote);
  Wait(receive);
  EXPECT_EQ(got, 5);
}

// Both directions are full of what nobody receives yet.
TEST_F(ImpiTransportTest, ManyMessagesInBothDirectionsDoNotBlock) {
  Make(2);
  constexpr int kMessages = 300;
  const std::vector<uint8_t> sent = Data(3000, 1);
  std::vector<Request*> requests;
  for (int i = 0; i < kMessages; ++i) {
    for (int from = 0; from < 2; ++from) requests.push_back(Send(from, 1 - from, 1, sent.data(), 3000, MPI_BYTE));
  }
  std::vector<std::vector<uint8_t>> got(2 * kMessages, std::vector<uint8_t>(3000));
  for (int i = 0; i < 2 * kMessages; ++i) requests.push_back(Receive(i % 2, 1 - i % 2, 1, got[static_cast<size_t>(i)].data(), 3000, MPI_BYTE));
  for (Request* request : requests) Wait(request);
  for (const auto& one : got) EXPECT_EQ(one, sent);
}

TEST_F(ImpiTransportTest, AnOrderlyEndSendsWhatIsLeftAndThenFini) {
  Make(3);
  const std::vector<uint8_t> sent = Data(100000, 1);
  std::vector<uint8_t> got(sent.size());
  Request* receive = Receive(1, 0, 1, got.data(), static_cast<MPI_Aint>(got.size()), MPI_BYTE);
  Wait(Send(0, 1, 1, sent.data(), static_cast<MPI_Aint>(sent.size()), MPI_BYTE));
  Wait(receive);
  // Process 2 has spoken to nobody.
  for (const auto& member : members_) member->device->Stop();
  EXPECT_EQ(agents_->finis, 3);
  EXPECT_EQ(got, sent);
}

TEST_F(ImpiTransportTest, TheEndOfTheAgentIsTheDeathOfAllOtherClients) {
  Make(3);
  long got = 0;
  Request* receive = Receive(0, 1, 1, &got, 1, MPI_LONG);
  agents_->Stop();
  ASSERT_TRUE(PollUntil([&] { return receive->complete; }));
  EXPECT_EQ(receive->error.mpi_class(), MPIX_ERR_PROC_FAILED);
  EXPECT_EQ(receive->error.message(), "rank 1 (192.0.2.2/101) of client 1 died");
  receive->Release();
  Request* request = nullptr;
  const Error error = at(0).engine->StartSend(nullptr, 0, Byte(), 2, 1, *at(0).comm, SendMode::kStandard, Channel::kPointToPoint, &request);
  EXPECT_EQ(error.message(), "rank 2 (192.0.2.3/102) of client 2 died");
  at(0).device->Stop();
}

// What an agent must not pass on.
TEST_F(ImpiTransportTest, AWrongPacketEndsTheConnection) {
  const auto name = [&](int rank) { return job_->process(impi::WorldRank(rank)).name; };
  const auto bytes_of = [](const impi::Packet& packet) {
    std::vector<uint8_t> bytes(impi::Packet::kSize + packet.data_length);
    packet.Serialize(std::span<uint8_t, impi::Packet::kSize>(bytes.data(), impi::Packet::kSize));
    return bytes;
  };
  for (int which = 0; which < 5; ++which) {
    members_.clear();
    Make(2);
    impi::Packet packet{.type = impi::PacketType::kData, .source = name(1), .destination = name(0)};
    if (which == 0) packet.source.number = 55;                                                                      // nobody
    if (which == 1) packet.source = name(0);                                                                        // of this client
    if (which == 2) packet.destination = name(1);                                                                   // not here
    if (which == 3) packet.source_rank = 1, packet.type = impi::PacketType::kProtocolAck;                           // nothing was sent
    if (which == 4) packet.source_rank = 0;                                                                         // not its rank in MPI_COMM_WORLD
    Request* receive = Receive(0, 1, 1, nullptr, 0, MPI_BYTE);
    agents_->Pause();
    agents_->Say(0, bytes_of(packet));
    ASSERT_TRUE(PollUntil([&] { return receive->complete; })) << which;
    EXPECT_EQ(receive->error.mpi_class(), MPIX_ERR_PROC_FAILED) << which;
    receive->Release();
  }
}

TEST_F(ImpiTransportTest, PacketsMayBeCutAnywhere) {
  Make(2);
  agents_->Pause();
  impi::Packet packet{.type = impi::PacketType::kData, .data_length = 4, .source = job_->process(impi::WorldRank(1)).name,
                      .destination = job_->process(impi::WorldRank(0)).name, .message_length = 4, .source_rank = 1, .tag = 9};
  std::vector<uint8_t> bytes(impi::Packet::kSize + 4);
  packet.Serialize(std::span<uint8_t, impi::Packet::kSize>(bytes.data(), impi::Packet::kSize));
  bytes.back() = 77;
  int got = 0;
  Request* receive = Receive(0, 1, 9, &got, 1, MPI_INT);
  for (const uint8_t byte : bytes) {
    EXPECT_FALSE(receive->complete);
    agents_->Say(0, {&byte, 1});
    at(0).device->Poll();
  }
  EXPECT_TRUE(receive->complete);
  EXPECT_EQ(got, 77);
  receive->Release();
}

}  // namespace
}  // namespace weft::mpi::testing
