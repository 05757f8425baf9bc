#include "sim/rnic.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <future>
#include <numeric>
#include <thread>
#include <vector>

#include "sim/testing/host.h"
#include "transport/tcp_network.h"

// The RNIC over real sockets on loopback: two programs in one process.
namespace weft::sim {
namespace {

using testing::Program;
using testing::QpSize;
using transport::SocketAddress;

struct Variant {
  const char* name;
  CrcPolicy crc;
  Persona persona;
  SameHost same_host = SameHost::kOff;
};

class RnicTest : public ::testing::TestWithParam<Variant> {
 protected:
  static Settings SettingsOf(const Variant& variant) {
    Settings settings;
    settings.crc = variant.crc;
    settings.persona = variant.persona;
    settings.same_host = variant.same_host;
    return settings;
  }

  RnicTest() : rnic_(transport::ProcessNetwork(), SettingsOf(GetParam()), 1) {}
  bool roce() const { return GetParam().persona == Persona::kRoce; }

  // The network's thread may still hold an endpoint that was closed; it must let go before the RNIC goes.
  void TearDown() override { PassNetworkThread(); }
  static void PassNetworkThread() {
    std::promise<void> passed;
    transport::ProcessNetwork().Post([&] { passed.set_value(); });
    passed.get_future().wait();
  }

  // Connects `client` to `server` through a listener of its own.
  void Connect(Program& client, Program& server, ConnectParameters ours = {.ird = 8, .ord = 8}) {
    auto listening = rnic_.cm().Listen(*SocketAddress::Parse("127.0.0.1", 0), 8, false, true, server.cm);
    ASSERT_TRUE(listening.ok());
    server.listener = *listening;
    client.endpoint = rnic_.cm().CreateEndpoint();
    client.endpoint->SetObserver(client.cm);
    ASSERT_EQ(client.endpoint->Connect(*SocketAddress::Parse("127.0.0.1", 0), server.listener->local_address(),
                                       client.qp.handle(), ours),
              0);
    CmEvent request = server.cm->Wait();
    ASSERT_EQ(request.kind, CmEvent::Kind::kConnectRequest);
    EXPECT_EQ(request.private_data, ours.private_data);
    server.endpoint = request.endpoint;
    server.endpoint->SetObserver(server.cm);
    ASSERT_EQ(server.endpoint->Accept(server.qp.handle(), {.private_data = {7, 8, 9}, .ird = 8, .ord = 8}), 0);
    CmEvent established = client.cm->Wait();
    ASSERT_EQ(established.kind, CmEvent::Kind::kEstablished);
    EXPECT_EQ(established.private_data, (std::vector<uint8_t>{7, 8, 9}));
    ASSERT_EQ(server.cm->Wait().kind, CmEvent::Kind::kEstablished);
  }

  static ibv_wc WaitForCompletion(Program& program) {
    ibv_wc completion{};
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (program.cq->Poll(1, &completion) == 0) {
      if (std::chrono::steady_clock::now() > limit) {
        ADD_FAILURE() << "no completion";
        break;
      }
      std::this_thread::yield();
    }
    return completion;
  }

  static int Post(Program& program, ibv_wr_opcode opcode, void* memory, uint32_t length, uint32_t lkey, uint64_t remote = 0,
                  uint32_t rkey = 0, uint64_t id = 1, unsigned flags = 0) {
    ibv_sge element{reinterpret_cast<uint64_t>(memory), length, lkey};
    ibv_send_wr wr{};
    wr.wr_id = id;
    wr.sg_list = &element;
    wr.num_sge = 1;
    wr.opcode = opcode;
    wr.send_flags = flags;
    wr.wr.rdma.remote_addr = remote;
    wr.wr.rdma.rkey = rkey;
    ibv_send_wr* bad = nullptr;
    return program.qp.qp->PostSend(&wr, &bad);
  }

  // A window of type 2 over all of `region`, bound by the program's queue pair.
  static ddp::STag BindWindow(Program& program, const RegionInfo& region) {
    ibv_mw window{};
    window.type = IBV_MW_TYPE_2;
    window.rkey = program.rnic.memory().AllocateWindow(*program.pd, IBV_MW_TYPE_2)->value;
    ibv_mr mr{};
    mr.lkey = region.stag.value;
    ibv_send_wr wr{}, *bad = nullptr;
    wr.opcode = IBV_WR_BIND_MW;
    wr.bind_mw.mw = &window;
    wr.bind_mw.rkey = window.rkey;
    wr.bind_mw.bind_info = {.mr = &mr, .addr = region.address, .length = region.length,
                            .mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
    EXPECT_EQ(program.qp.qp->PostSend(&wr, &bad), 0);
    EXPECT_EQ(WaitForCompletion(program).status, IBV_WC_SUCCESS);
    return ddp::STag(window.rkey);
  }

  static int PostReceive(Program& program, void* memory, uint32_t length, uint32_t lkey, uint64_t id = 2) {
    ibv_sge element{reinterpret_cast<uint64_t>(memory), length, lkey};
    ibv_recv_wr wr{};
    wr.wr_id = id;
    wr.sg_list = &element;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    return program.qp.qp->PostReceive(&wr, &bad);
  }

  Rnic rnic_;
};

INSTANTIATE_TEST_SUITE_P(Variants, RnicTest,
                         ::testing::Values(Variant{"IwarpWithCrc", CrcPolicy::kOn, Persona::kIwarp},
                                           Variant{"Iwarp", CrcPolicy::kOff, Persona::kIwarp},
                                           Variant{"Roce", CrcPolicy::kOff, Persona::kRoce},
                                           Variant{"IwarpInMemory", CrcPolicy::kOff, Persona::kIwarp, SameHost::kAuto},
                                           Variant{"RoceInMemory", CrcPolicy::kOff, Persona::kRoce, SameHost::kAuto}),
                         [](const auto& info) { return info.param.name; });

std::vector<uint8_t> Pattern(size_t size) {
  std::vector<uint8_t> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(i * 31 + (i >> 8));
  return bytes;
}

TEST_P(RnicTest, SendsArriveInPostedReceives) {
  Program client(rnic_), server(rnic_);
  ASSERT_NO_FATAL_FAILURE(Connect(client, server));
  for (const uint32_t size : {0u, 1u, 100u, 65536u, 1000000u}) {
    std::vector<uint8_t> from = Pattern(size), to(size + 1);
    const uint32_t from_key = client.Register(from.data(), size).stag.value;
    const uint32_t to_key = server.Register(to.data(), to.size()).stag.value;
    ASSERT_EQ(PostReceive(server, to.data(), static_cast<uint32_t>(to.size()), to_key), 0);
    ASSERT_EQ(Post(client, IBV_WR_SEND, from.data(), size, from_key), 0);
    const ibv_wc received = WaitForCompletion(server);
    EXPECT_EQ(received.status, IBV_WC_SUCCESS);
    EXPECT_EQ(received.opcode, IBV_WC_RECV);
    EXPECT_EQ(received.byte_len, size);
    EXPECT_EQ(received.qp_num, server.qp.qp->number());
    to.resize(size);
    EXPECT_EQ(from, to);
    const ibv_wc sent = WaitForCompletion(client);
    EXPECT_EQ(sent.status, IBV_WC_SUCCESS);
    EXPECT_EQ(sent.opcode, IBV_WC_SEND);
    rnic_.DeregisterMemory(ddp::STag(from_key));
    rnic_.DeregisterMemory(ddp::STag(to_key));
  }
}

TEST_P(RnicTest, WritesAndReadsMoveMemoryWithoutTheTarget) {
  Program client(rnic_), server(rnic_);
  ASSERT_NO_FATAL_FAILURE(Connect(client, server));
  constexpr uint32_t kSize = 3 * 1000 * 1000;
  std::vector<uint8_t> from = Pattern(kSize), target(kSize), back(kSize);
  const RegionInfo from_region = client.Register(from.data(), kSize), back_region = client.Register(back.data(), kSize);
  const RegionInfo region = server.Register(target.data(), kSize);
  ASSERT_EQ(Post(client, IBV_WR_RDMA_WRITE, from.data(), kSize, from_region.stag.value, region.address, region.stag.value, 10), 0);
  ASSERT_EQ(Post(client, IBV_WR_RDMA_READ, back.data(), kSize, back_region.stag.value, region.address, region.stag.value, 11), 0);
  const ibv_wc written = WaitForCompletion(client);
  EXPECT_EQ(written.wr_id, 10u);
  EXPECT_EQ(written.status, IBV_WC_SUCCESS);
  const ibv_wc read = WaitForCompletion(client);
  EXPECT_EQ(read.wr_id, 11u);
  EXPECT_EQ(read.status, IBV_WC_SUCCESS);
  EXPECT_EQ(read.opcode, IBV_WC_RDMA_READ);
  EXPECT_EQ(back, from);
}

TEST_P(RnicTest, AWriteToAnUnknownKeyEndsOnlyThatConnection) {
  Program client(rnic_), server(rnic_), other_client(rnic_), other_server(rnic_);
  ASSERT_NO_FATAL_FAILURE(Connect(client, server));
  ASSERT_NO_FATAL_FAILURE(Connect(other_client, other_server));
  std::array<uint8_t, 64> bytes{};
  const uint32_t key = client.Register(bytes.data(), bytes.size()).stag.value;
  std::array<uint8_t, 64> received{};
  const RegionInfo target = server.Register(received.data(), received.size());
  ASSERT_EQ(PostReceive(server, received.data(), received.size(), target.stag.value), 0);
  ASSERT_EQ(Post(client, IBV_WR_RDMA_WRITE, bytes.data(), 64, key, target.address, target.stag.value ^ 0x100), 0);
  EXPECT_EQ(client.cm->Wait().kind, CmEvent::Kind::kDisconnected);
  EXPECT_EQ(server.cm->Wait().kind, CmEvent::Kind::kDisconnected);
  EXPECT_EQ(WaitForCompletion(server).status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(client.qp.qp->state(), IBV_QPS_ERR);
  EXPECT_EQ(server.async->events, std::vector{IBV_EVENT_QP_ACCESS_ERR});
  // On InfiniBand the requester learns it from its completion.
  EXPECT_EQ(client.async->events, roce() ? std::vector<ibv_event_type>{} : std::vector{IBV_EVENT_QP_FATAL});

  const uint32_t other_key = other_client.Register(bytes.data(), bytes.size()).stag.value;
  const uint32_t sink = other_server.Register(received.data(), received.size()).stag.value;
  ASSERT_EQ(PostReceive(other_server, received.data(), received.size(), sink), 0);
  ASSERT_EQ(Post(other_client, IBV_WR_SEND, bytes.data(), 64, other_key), 0);
  EXPECT_EQ(WaitForCompletion(other_server).status, IBV_WC_SUCCESS);
}

TEST_P(RnicTest, AReadOfAWrongRangeCompletesWithARemoteAccessError) {
  Program client(rnic_), server(rnic_);
  ASSERT_NO_FATAL_FAILURE(Connect(client, server));
  std::array<uint8_t, 64> bytes{}, target{};
  const uint32_t key = client.Register(bytes.data(), bytes.size()).stag.value;
  const RegionInfo region = server.Register(target.data(), target.size());
  ASSERT_EQ(Post(client, IBV_WR_RDMA_READ, bytes.data(), 64, key, region.address + 1, region.stag.value), 0);
  EXPECT_EQ(WaitForCompletion(client).status, IBV_WC_REM_ACCESS_ERR);
  ASSERT_EQ(Post(client, IBV_WR_RDMA_READ, bytes.data(), 64, key, region.address, region.stag.value, 5), 0);
  const ibv_wc flushed = WaitForCompletion(client);
  EXPECT_EQ(flushed.status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(flushed.wr_id, 5u);
}

TEST_P(RnicTest, ASendWithoutAReceiveTerminatesTheStreamOrWaits) {
  Program client(rnic_), server(rnic_);
  ASSERT_NO_FATAL_FAILURE(Connect(client, server));
  std::array<uint8_t, 8> bytes{};
  const uint32_t key = client.Register(bytes.data(), bytes.size()).stag.value;
  ASSERT_EQ(Post(client, IBV_WR_SEND, bytes.data(), 8, key), 0);
  if (roce()) {
    const uint32_t sink = server.Register(bytes.data(), bytes.size()).stag.value;
    ASSERT_EQ(PostReceive(server, bytes.data(), 8, sink), 0);
    EXPECT_EQ(WaitForCompletion(server).status, IBV_WC_SUCCESS);
    EXPECT_EQ(WaitForCompletion(client).status, IBV_WC_SUCCESS);
    return;
  }
  EXPECT_EQ(client.cm->Wait().kind, CmEvent::Kind::kDisconnected);
  EXPECT_EQ(server.cm->Wait().kind, CmEvent::Kind::kDisconnected);
}

TEST_P(RnicTest, AMessageLongerThanItsReceiveFailsTheReceive) {
  Program client(rnic_), server(rnic_);
  ASSERT_NO_FATAL_FAILURE(Connect(client, server));
  std::array<uint8_t, 100> bytes{}, sink{};
  const uint32_t key = client.Register(bytes.data(), bytes.size()).stag.value;
  const uint32_t sink_key = server.Register(sink.data(), sink.size()).stag.value;
  ASSERT_EQ(PostReceive(server, sink.data(), 99, sink_key), 0);
  ASSERT_EQ(Post(client, IBV_WR_SEND, bytes.data(), 100, key), 0);
  EXPECT_EQ(WaitForCompletion(server).status, IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(client.cm->Wait().kind, CmEvent::Kind::kDisconnected);
}

TEST_P(RnicTest, AWrongLocalKeyFailsTheRequestAndFlushesTheRest) {
  Program client(rnic_), server(rnic_);
  ASSERT_NO_FATAL_FAILURE(Connect(client, server));
  std::array<uint8_t, 64> bytes{};
  const uint32_t key = client.Register(bytes.data(), bytes.size()).stag.value;
  ASSERT_EQ(Post(client, IBV_WR_SEND, bytes.data(), 64, key ^ 1, 0, 0, 21), 0);
  ASSERT_EQ(Post(client, IBV_WR_SEND, bytes.data(), 64, key, 0, 0, 22), 0);
  const ibv_wc first = WaitForCompletion(client), second = WaitForCompletion(client);
  EXPECT_EQ(first.wr_id, 21u);
  EXPECT_EQ(first.status, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(second.wr_id, 22u);
  EXPECT_EQ(second.status, IBV_WC_WR_FLUSH_ERR);
}

TEST_P(RnicTest, SendWithInvalidateTakesTheKeyOfAWindowAway) {
  Program client(rnic_), server(rnic_);
  ASSERT_NO_FATAL_FAILURE(Connect(client, server));
  std::array<uint8_t, 8> bytes{}, sink{}, target{};
  const uint32_t key = client.Register(bytes.data(), bytes.size()).stag.value;
  const uint32_t sink_key = server.Register(sink.data(), sink.size()).stag.value;
  const RegionInfo behind = server.Register(target.data(), target.size(), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
  const RegionInfo victim = {.stag = BindWindow(server, behind), .address = behind.address};
  ASSERT_EQ(PostReceive(server, sink.data(), 8, sink_key), 0);
  ibv_sge element{reinterpret_cast<uint64_t>(bytes.data()), 8, key};
  ibv_send_wr wr{};
  wr.sg_list = &element;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND_WITH_INV;
  wr.invalidate_rkey = victim.stag.value;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(client.qp.qp->PostSend(&wr, &bad), 0);
  const ibv_wc received = WaitForCompletion(server);
  EXPECT_EQ(received.wc_flags, unsigned{IBV_WC_WITH_INV});
  EXPECT_EQ(received.invalidated_rkey, victim.stag.value);
  EXPECT_EQ(WaitForCompletion(client).status, IBV_WC_SUCCESS);
  ASSERT_EQ(Post(client, IBV_WR_RDMA_READ, bytes.data(), 8, key, victim.address, victim.stag.value), 0);
  EXPECT_EQ(WaitForCompletion(client).status, IBV_WC_REM_ACCESS_ERR);
}

TEST_P(RnicTest, ABackToBackBurstOfSmallWritesCompletesInOrder) {
  Program client(rnic_, QpSize{.sends = 512, .completions = 1024}), server(rnic_);
  ASSERT_NO_FATAL_FAILURE(Connect(client, server));
  std::vector<uint64_t> from(500), target(500);
  std::iota(from.begin(), from.end(), 1);
  const uint32_t key = client.Register(from.data(), from.size() * 8).stag.value;
  const RegionInfo region = server.Register(target.data(), target.size() * 8);
  for (size_t i = 0; i < from.size(); ++i) {
    ASSERT_EQ(Post(client, IBV_WR_RDMA_WRITE, &from[i], 8, key, region.address + i * 8, region.stag.value, i), 0);
  }
  for (size_t i = 0; i < from.size(); ++i) {
    const ibv_wc done = WaitForCompletion(client);
    ASSERT_EQ(done.wr_id, i);
    ASSERT_EQ(done.status, IBV_WC_SUCCESS);
  }
  // A Read behind them sees what they wrote.
  uint64_t last = 0;
  const uint32_t last_key = client.Register(&last, 8).stag.value;
  ASSERT_EQ(Post(client, IBV_WR_RDMA_READ, &last, 8, last_key, region.address + 499 * 8, region.stag.value), 0);
  EXPECT_EQ(WaitForCompletion(client).status, IBV_WC_SUCCESS);
  EXPECT_EQ(last, 500u);
}

TEST_P(RnicTest, DisconnectDeliversWhatWasPostedAndFlushesReceives) {
  Program client(rnic_), server(rnic_);
  ASSERT_NO_FATAL_FAILURE(Connect(client, server));
  std::array<uint8_t, 64> bytes{}, sink{};
  const uint32_t key = client.Register(bytes.data(), bytes.size()).stag.value;
  const uint32_t sink_key = server.Register(sink.data(), sink.size()).stag.value;
  ASSERT_EQ(PostReceive(server, sink.data(), 64, sink_key, 31), 0);
  ASSERT_EQ(PostReceive(server, sink.data(), 64, sink_key, 32), 0);
  ASSERT_EQ(Post(client, IBV_WR_SEND, bytes.data(), 64, key), 0);
  ASSERT_EQ(client.endpoint->Disconnect(), 0);
  EXPECT_EQ(client.cm->Wait().kind, CmEvent::Kind::kDisconnected);
  EXPECT_EQ(server.cm->Wait().kind, CmEvent::Kind::kDisconnected);
  const ibv_wc first = WaitForCompletion(server), second = WaitForCompletion(server);
  EXPECT_EQ(first.wr_id, 31u);
  EXPECT_EQ(first.status, IBV_WC_SUCCESS);
  EXPECT_EQ(second.wr_id, 32u);
  EXPECT_EQ(second.status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_TRUE(client.async->events.empty());
}

// libfabric's fi_pingpong leaves so: each end takes the other's last message and disconnects.
TEST_P(RnicTest, DisconnectAcknowledgesWhatWasReceived) {
  for (int round = 0; round < 20; ++round) {
    Program client(rnic_), server(rnic_);
    ASSERT_NO_FATAL_FAILURE(Connect(client, server));
    std::array<uint8_t, 64> bytes{}, sink{};
    const uint32_t key = client.Register(bytes.data(), bytes.size()).stag.value;
    const uint32_t sink_key = server.Register(sink.data(), sink.size()).stag.value;
    ASSERT_EQ(PostReceive(server, sink.data(), 64, sink_key), 0);
    ASSERT_EQ(Post(client, IBV_WR_SEND, bytes.data(), 64, key), 0);
    ASSERT_EQ(WaitForCompletion(server).status, IBV_WC_SUCCESS);
    ASSERT_EQ(server.endpoint->Disconnect(), 0);
    ASSERT_EQ(WaitForCompletion(client).status, IBV_WC_SUCCESS) << "round " << round;
  }
}

TEST_P(RnicTest, RequestsThatNobodyWaitsForAreAcknowledgedInTheEnd) {
  Program client(rnic_, {.signal_all = false}), server(rnic_);
  Connect(client, server);
  std::vector<uint8_t> from(16, 1), into(16);
  const auto from_key = client.Register(from.data(), from.size()).stag.value;
  const auto into_key = server.Register(into.data(), into.size()).stag.value;
  ASSERT_EQ(PostReceive(server, into.data(), 16, into_key), 0);
  ASSERT_EQ(Post(client, IBV_WR_SEND, from.data(), 16, from_key), 0);
  EXPECT_EQ(WaitForCompletion(server).status, IBV_WC_SUCCESS);
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (client.qp.qp->Snapshot().sends_completed == 0 && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
  EXPECT_LT(std::chrono::steady_clock::now(), limit);
  ibv_wc none{};
  EXPECT_EQ(client.cq->Poll(1, &none), 0);
}

TEST_P(RnicTest, WhoStopsPollingAcknowledgesAllTheSame) {
  Program client(rnic_), server(rnic_);
  ASSERT_NO_FATAL_FAILURE(Connect(client, server));
  std::array<uint8_t, 64> bytes{};
  const uint32_t client_key = client.Register(bytes.data(), bytes.size()).stag.value;
  const uint32_t server_key = server.Register(bytes.data(), bytes.size()).stag.value;
  const auto await = [](Program& program, int completions) {
    for (int i = 0; i < completions; ++i) ASSERT_EQ(WaitForCompletion(program).status, IBV_WC_SUCCESS);
  };
  for (int round = 0; round < 200; ++round) {  // answers that come in time make the timer slow
    ASSERT_EQ(PostReceive(server, bytes.data(), 8, server_key), 0);
    ASSERT_EQ(PostReceive(client, bytes.data(), 8, client_key), 0);
    ASSERT_EQ(Post(client, IBV_WR_SEND, bytes.data() + 16, 8, client_key), 0);
    await(server, 1);
    ASSERT_EQ(Post(server, IBV_WR_SEND, bytes.data() + 32, 8, server_key), 0);
    await(client, 2);
    await(server, 1);
  }
  ASSERT_EQ(PostReceive(server, bytes.data(), 8, server_key), 0);
  ASSERT_EQ(Post(client, IBV_WR_SEND, bytes.data() + 16, 8, client_key), 0);
  await(server, 1);
  await(client, 1);
}

TEST_P(RnicTest, RejectionReachesTheClientWithItsPrivateData) {
  Program client(rnic_), server(rnic_);
  auto listening = rnic_.cm().Listen(*SocketAddress::Parse("127.0.0.1", 0), 8, false, true, server.cm);
  ASSERT_TRUE(listening.ok());
  server.listener = *listening;
  client.endpoint = rnic_.cm().CreateEndpoint();
  client.endpoint->SetObserver(client.cm);
  ASSERT_EQ(client.endpoint->Connect(*SocketAddress::Parse("127.0.0.1", 0), server.listener->local_address(),
                                     client.qp.handle(), {}),
            0);
  CmEvent request = server.cm->Wait();
  ASSERT_EQ(request.kind, CmEvent::Kind::kConnectRequest);
  EXPECT_EQ(request.endpoint->Reject({1, 2, 3}, CmEvent::Reason::kConsumerDefined), 0);
  CmEvent rejected = client.cm->Wait();
  EXPECT_EQ(rejected.kind, CmEvent::Kind::kRejected);
  EXPECT_EQ(rejected.error, ECONNREFUSED);
  EXPECT_EQ(rejected.reason, CmEvent::Reason::kConsumerDefined);
  EXPECT_EQ(rejected.private_data, (std::vector<uint8_t>{1, 2, 3}));
}

TEST_P(RnicTest, NobodyListeningIsARejectionToo) {
  Program client(rnic_);
  client.endpoint = rnic_.cm().CreateEndpoint();
  client.endpoint->SetObserver(client.cm);
  ASSERT_EQ(client.endpoint->Connect(*SocketAddress::Parse("127.0.0.1", 0), *SocketAddress::Parse("127.0.0.1", 1),
                                     client.qp.handle(), {}),
            0);
  const CmEvent event = client.cm->Wait();
  EXPECT_EQ(event.kind, CmEvent::Kind::kRejected);
  EXPECT_EQ(event.error, ECONNREFUSED);
  EXPECT_EQ(event.reason, CmEvent::Reason::kInvalidServiceId);
}

TEST_P(RnicTest, AListenerThatComesAMomentLateIsStillReached) {
  Program client(rnic_), server(rnic_);
  auto listening = rnic_.cm().Listen(*SocketAddress::Parse("127.0.0.1", 0), 8, false, true, server.cm);
  ASSERT_TRUE(listening.ok());
  const SocketAddress address = (*listening)->local_address();
  (*listening)->Close();
  client.endpoint = rnic_.cm().CreateEndpoint();
  client.endpoint->SetObserver(client.cm);
  ASSERT_EQ(client.endpoint->Connect(*SocketAddress::Parse("127.0.0.1", 0), address, client.qp.handle(), {}), 0);
  // On one host the kernel has refused the attempt before Connect() returns. Twice round, the network's thread has handled that.
  for (int round = 0; round < 2; ++round) PassNetworkThread();
  auto again = rnic_.cm().Listen(address, 8, false, true, server.cm);
  ASSERT_TRUE(again.ok());
  server.listener = *again;
  EXPECT_EQ(server.cm->Wait().kind, CmEvent::Kind::kConnectRequest);
}

// Plays a responder that is not Weft: accepts with an MPA Reply of revision 2 that asks for a zero-length Write as RTR.
TEST_P(RnicTest, AForeignPeerThatSaysNothingIsSentMoreThanTheRtr) {
  transport::TcpNetwork network;
  auto listener = network.Listen(*SocketAddress::Parse("127.0.0.1", 0), 1, false, true);
  ASSERT_TRUE(listener.ok());
  Program client(rnic_);
  client.endpoint = rnic_.cm().CreateEndpoint();
  client.endpoint->SetObserver(client.cm);
  ASSERT_EQ(client.endpoint->Connect(*SocketAddress::Parse("127.0.0.1", 0), (*listener)->LocalAddress(), client.qp.handle(),
                                     {.ird = 8, .ord = 8}),
            0);
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  std::unique_ptr<transport::ByteStream> peer;
  std::vector<uint8_t> heard(512);
  size_t count = 0;
  // Until `wanted` bytes came.
  auto hear = [&](size_t wanted) {
    while (count < wanted && std::chrono::steady_clock::now() < limit) {
      const iovec rest{heard.data() + count, heard.size() - count};
      const transport::IoResult result = peer->Read({&rest, 1});
      if (result.kind == transport::IoResult::Kind::kDone) count += result.bytes;
      std::this_thread::yield();
    }
    return count >= wanted;
  };
  while (!peer && std::chrono::steady_clock::now() < limit) {
    if (auto accepted = (*listener)->Accept(); accepted.ok()) peer = std::move(accepted).value();
  }
  ASSERT_NE(peer, nullptr);
  constexpr size_t kHeader = 20;
  ASSERT_TRUE(hear(kHeader));
  ASSERT_TRUE(hear(kHeader + (heard[18] << 8 | heard[19])));
  count = 0;
  std::string reply = "MPA ID Rep Frame";
  reply += {'\x50', '\x02', '\x00', '\x04', '\x80', '\x08', '\x80', '\x08'};  // CRC, S; IRD 8, peer-to-peer; ORD 8, RTR is a Write
  const iovec piece{reply.data(), reply.size()};
  ASSERT_EQ(peer->Write({&piece, 1}).bytes, reply.size());
  ASSERT_EQ(client.cm->Wait().kind, CmEvent::Kind::kEstablished);

  constexpr size_t kZeroLengthWrite = 2 + 14 + 4;  // MPA length, tagged DDP header, CRC
  ASSERT_TRUE(hear(2 * kZeroLengthWrite)) << count << " bytes came";
  EXPECT_TRUE(std::equal(&heard[0], &heard[kZeroLengthWrite], &heard[kZeroLengthWrite]));
}

TEST_P(RnicTest, DeregisteringAsksOnlyThoseThatMayHaveUsedTheMemory) {
  constexpr int kQueuePairs = 640;
  std::vector<std::unique_ptr<Program>> programs;
  QueuePairTable table;
  for (int i = 0; i < kQueuePairs; ++i) {
    programs.push_back(std::make_unique<Program>(rnic_));
    table.Add(programs.back()->qp.qp->number(), programs.back()->qp.qp);
  }
  EXPECT_EQ(table.size(), kQueuePairs);
  const uint32_t number = programs[7]->qp.qp->number();
  const auto asked = table.Of(MemoryUser::QueuePair(number, 1).as);
  EXPECT_LE(asked.size(), 3 * kQueuePairs / kMemoryUsers) << "numbers are spread";
  EXPECT_TRUE(std::any_of(asked.begin(), asked.end(), [&](const auto& qp) { return qp->number() == number; }));
  EXPECT_EQ(table.Of(kAllMemoryUsers).size(), kQueuePairs);
  EXPECT_EQ(table.Of(0).size(), 0u);
  EXPECT_EQ(table.Find(number), programs[7]->qp.qp);
  table.Erase(number);
  EXPECT_EQ(table.Find(number), nullptr);
  EXPECT_EQ(table.size(), kQueuePairs - 1);
}

TEST_P(RnicTest, DeregisteringMemoryUnderAReadEndsItAndTouchesItNoMore) {
  Program client(rnic_), server(rnic_);
  ASSERT_NO_FATAL_FAILURE(Connect(client, server));
  constexpr size_t kSize = 64 << 20;
  auto* target = static_cast<uint8_t*>(mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::vector<uint8_t> sink(kSize);
  const uint32_t key = client.Register(sink.data(), kSize).stag.value;
  const RegionInfo region = server.Register(target, kSize);
  ASSERT_EQ(Post(client, IBV_WR_RDMA_READ, sink.data(), kSize, key, region.address, region.stag.value), 0);
  rnic_.DeregisterMemory(region.stag);
  munmap(target, kSize);  // a touch now would crash
  const ibv_wc done = WaitForCompletion(client);
  EXPECT_TRUE(done.status == IBV_WC_SUCCESS || done.status == IBV_WC_REM_ACCESS_ERR || done.status == IBV_WC_WR_FLUSH_ERR)
      << done.status;
}

// In memory the peer places by itself once it was let in: whatever it is at when the memory is taken away, it is through then.
TEST_P(RnicTest, NothingIsPlacedInMemoryThatWasDeregistered) {
  constexpr uint32_t kSize = 256 * 1024;
  constexpr int kInFlight = 4, kBefore = 8;
  std::vector<uint8_t> from(kSize);
  for (int round = 0; round < 20; ++round) {
    Program client(rnic_), server(rnic_);
    ASSERT_NO_FATAL_FAILURE(Connect(client, server));
    std::vector<uint8_t> target(kSize);
    const uint32_t key = client.Register(from.data(), kSize).stag.value;
    const RegionInfo region = server.Register(target.data(), kSize);
    std::promise<void> flows;
    std::thread writer([&] {
      ibv_wc_status status = IBV_WC_SUCCESS;
      for (int posted = 0, done = 0; status == IBV_WC_SUCCESS; ++done) {
        for (; posted - done < kInFlight; ++posted) {
          EXPECT_EQ(Post(client, IBV_WR_RDMA_WRITE, from.data(), kSize, key, region.address, region.stag.value), 0);
        }
        status = WaitForCompletion(client).status;
        if (done == kBefore) flows.set_value();
      }
    });
    flows.get_future().wait();
    std::this_thread::sleep_for(std::chrono::microseconds(37 * round));  // another point of a copy each time
    rnic_.DeregisterMemory(region.stag);
    std::fill(target.begin(), target.end(), 0xee);
    writer.join();  // one failed
    EXPECT_EQ(std::count(target.begin(), target.end(), 0xee), kSize) << "round " << round;
    rnic_.DeregisterMemory(ddp::STag(key));
  }
}

TEST_P(RnicTest, RegistrationRefusesWhatIsNotThere) {
  Program program(rnic_);
  auto* memory = static_cast<uint8_t*>(mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  munmap(memory + 4096, 4096);
  const auto address = reinterpret_cast<uint64_t>(memory);
  EXPECT_EQ(rnic_.memory().Register(*program.pd, address, 8192, address, IBV_ACCESS_LOCAL_WRITE).error(), EFAULT);
  EXPECT_TRUE(rnic_.memory().Register(*program.pd, address, 4096, address, IBV_ACCESS_LOCAL_WRITE).ok());
  EXPECT_EQ(rnic_.memory().Register(*program.pd, address, 4096, address, IBV_ACCESS_REMOTE_WRITE).error(), EINVAL);
  EXPECT_TRUE(rnic_.memory().Register(*program.pd, 0, 0, 0, 0).ok());
  mprotect(memory, 4096, PROT_READ);
  EXPECT_EQ(rnic_.memory().Register(*program.pd, address, 4096, address, IBV_ACCESS_LOCAL_WRITE).error(), EFAULT);
  EXPECT_TRUE(rnic_.memory().Register(*program.pd, address, 4096, address, IBV_ACCESS_REMOTE_READ).ok());
  munmap(memory, 4096);
}

}  // namespace
}  // namespace weft::sim
