// A peer of an rsocket that lies about its memory, its sizes and what it has done. Whatever it says, the socket sends
// what it can, fails or goes on, and ends when it is closed.
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <sys/mman.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "cm/rsocket/rsocket_testing.h"
#include "cm/rsocket/wire.h"

namespace weft::rsocket_api {
namespace {

using rsocket::ConnectData;
using rsocket::IoMapEntry;
using rsocket::Message;
using rsocket::MessageType;
using rsocket::Target;

constexpr size_t kMemory = 1 << 16;

class Liar {
 public:
  // `lie` changes what is true.
  template <typename Lie>
  Liar(const sockaddr_in& address, Lie lie) : memory_(kMemory) {
    sockaddr_in to = address;
    EXPECT_EQ(rdma_create_id(nullptr, &id_, nullptr, RDMA_PS_TCP), 0);
    EXPECT_EQ(rdma_resolve_addr(id_, nullptr, reinterpret_cast<sockaddr*>(&to), 2000), 0);
    EXPECT_EQ(rdma_resolve_route(id_, 2000), 0);
    ibv_qp_init_attr attributes{};
    attributes.qp_type = IBV_QPT_RC;
    attributes.cap = {256, 256, 1, 1, 64};
    EXPECT_EQ(rdma_create_qp(id_, nullptr, &attributes), 0);
    region_ = ibv_reg_mr(id_->pd, memory_.data(), memory_.size(), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    for (int i = 0; i < 256; ++i) rdma_post_recv(id_, nullptr, memory_.data(), 4, region_);
    ConnectData data;
    data.credits = 32;
    data.map_entries = 4;
    data.target_list = {Address(), region_->rkey, 2};
    data.buffer = {Address() + kMemory / 2, region_->rkey, kMemory / 4};
    lie(data);
    uint8_t private_data[ConnectData::kSize];
    data.Serialize(private_data);
    rdma_conn_param parameters{};
    parameters.private_data = private_data;
    parameters.private_data_len = sizeof private_data;
    parameters.responder_resources = parameters.initiator_depth = 1;
    connected_ = rdma_connect(id_, &parameters) == 0;
    if (!connected_) return;
    if (const auto* answer = static_cast<const uint8_t*>(id_->event->param.conn.private_data); answer != nullptr) {
      peer_ = ConnectData::Parse({answer, id_->event->param.conn.private_data_len}).value_or(ConnectData{});
    }
  }
  ~Liar() {
    rdma_disconnect(id_);
    rdma_destroy_qp(id_);
    ibv_dereg_mr(region_);
    rdma_destroy_id(id_);
  }
  bool connected() const { return connected_; }
  uint64_t Address() const { return reinterpret_cast<uintptr_t>(memory_.data()); }
  uint32_t key() const { return region_->rkey; }

  void Say(uint32_t raw) { Post(IBV_WR_SEND, &raw, sizeof raw, 0, 0); }
  // Into the socket's target list.
  void Grant(uint32_t entry, Target target) {
    Post(IBV_WR_RDMA_WRITE, &target, sizeof target, peer_.target_list.address + entry * sizeof target,
         peer_.target_list.key);
    Say(Message{MessageType::kCredits, 1000}.Serialize());
  }
  // Into its I/O map.
  void Show(uint32_t entry, IoMapEntry shown) {
    const uint64_t map = peer_.target_list.address + uint64_t{peer_.target_list.length} * sizeof(Target);
    Post(IBV_WR_RDMA_WRITE, &shown, sizeof shown, map + entry * sizeof shown, peer_.target_list.key);
    Say(Message{MessageType::kMap, entry}.Serialize());
  }
  void Clean() {
    ibv_wc completions[16];
    while (ibv_poll_cq(id_->send_cq, 16, completions) > 0) {
    }
  }

 private:
  void Post(ibv_wr_opcode opcode, const void* bytes, uint32_t length, uint64_t to, uint32_t key) {
    Clean();
    ibv_sge piece{reinterpret_cast<uintptr_t>(bytes), length, 0};
    ibv_send_wr send{};
    send.opcode = opcode;
    send.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
    send.sg_list = &piece;
    send.num_sge = 1;
    send.wr.rdma = {to, key};
    ibv_send_wr* bad;
    ibv_post_send(id_->qp, &send, &bad);  // may be in error: it is what it deserves
  }

  rdma_cm_id* id_ = nullptr;
  std::vector<uint8_t> memory_;
  ibv_mr* region_ = nullptr;
  bool connected_ = false;
  ConnectData peer_;
};

class LyingPeer : public testing::Test {
 protected:
  template <typename Lie>
  void Meet(Lie lie) {
    sockaddr_in address;
    Fd listener = Listener(&address);
    auto peer = std::async(std::launch::async, [&] { return std::make_unique<Liar>(address, lie); });
    server_ = Fd(raccept(listener, nullptr, nullptr));
    ASSERT_GE(server_, 0);
    liar_ = peer.get();
    ASSERT_TRUE(liar_->connected());
    const linger now{1, 0};
    ASSERT_EQ(rsetsockopt(server_, SOL_SOCKET, SO_LINGER, &now, sizeof now), 0);
    ASSERT_EQ(rfcntl(server_, F_SETFL, O_NONBLOCK), 0);
  }
  // Sends and receives for a while, or until it fails.
  void Live(std::chrono::milliseconds time = std::chrono::milliseconds(200)) {
    static const std::string text(200'000, 's');
    std::vector<char> buffer(65536);
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
      const ssize_t sent = rsend(server_, text.data(), text.size(), 0);
      if (sent < 0 && errno != EAGAIN) return;
      const ssize_t written = riowrite(server_, text.data(), 1000, 0, 0);
      if (written < 0 && errno != EAGAIN && errno != EINVAL) return;
      const ssize_t got = rrecv(server_, buffer.data(), buffer.size(), 0);
      if (got == 0 || (got < 0 && errno != EAGAIN)) return;
      liar_->Clean();
      pollfd ready{server_, POLLIN | POLLOUT, 0};
      rpoll(&ready, 1, 5);
    }
  }

  std::unique_ptr<Liar> liar_;
  Fd server_;
};

TEST_F(LyingPeer, WhoseBufferIsAtTheEndOfMemory) {
  Meet([](ConnectData& data) { data.buffer = {~uint64_t{0} - 100, data.buffer.key, ~0u}; });
  Live();
}
TEST_F(LyingPeer, WhoseBufferIsEmpty) {
  Meet([](ConnectData& data) { data.buffer.length = 0; });
  Live();
}
TEST_F(LyingPeer, WhoseListHasFourBillionEntries) {
  Meet([](ConnectData& data) { data.target_list.length = ~0u; });
  for (int i = 0; i < 100; ++i) liar_->Say(Message{MessageType::kData, 0}.Serialize());
  Live();
}
TEST_F(LyingPeer, WhoseMapIsHugeAndAtTheEndOfMemory) {
  Meet([](ConnectData& data) {
    data.map_entries = 0x7f00;
    data.target_list.address = ~uint64_t{0} - 8;
  });
  static char mapped[4096];
  EXPECT_GE(riomap(server_, mapped, sizeof mapped, PROT_WRITE, 0, 0), 0);
  Live();
}
TEST_F(LyingPeer, WhoGivesOneCreditAndWhoGivesTooMany) {
  Meet([](ConnectData& data) { data.credits = 1; });
  Live();
  Meet([](ConnectData& data) { data.credits = 0x7fff; });
  Live();
}
TEST_F(LyingPeer, WhoGrantsWhatItDoesNotHave) {
  Meet([](ConnectData&) {});
  liar_->Grant(1, {~uint64_t{0} - 3, liar_->key(), ~0u});
  liar_->Grant(0, {liar_->Address(), liar_->key() ^ 0x5a5a00, 1 << 20});
  Live();
}
TEST_F(LyingPeer, WhoseCreditsGoBack) {
  Meet([](ConnectData&) {});
  for (const uint32_t credits : {40u, 0u, 0xffffu, 0x8000u, 7u}) {
    liar_->Say(Message{MessageType::kCredits, credits}.Serialize());
    Live(std::chrono::milliseconds(30));
  }
}
TEST_F(LyingPeer, WhoseMapEntryWraps) {
  const uint32_t entries = 4;
  sockaddr_in address;
  Fd listener = Listener(&address);
  ASSERT_EQ(rsetsockopt(listener, SOL_RDMA, RDMA_IOMAPSIZE, &entries, sizeof entries), 0);
  auto peer = std::async(std::launch::async, [&] { return std::make_unique<Liar>(address, [](ConnectData&) {}); });
  server_ = Fd(raccept(listener, nullptr, nullptr));
  liar_ = peer.get();
  const linger now{1, 0};
  rsetsockopt(server_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  ASSERT_EQ(rfcntl(server_, F_SETFL, O_NONBLOCK), 0);
  liar_->Show(0, {0, {~uint64_t{0} - 3, liar_->key(), ~0u}});
  liar_->Show(1, {~uint64_t{0} - 5, {liar_->Address(), liar_->key(), ~0u}});
  Live();
}

// Everything at random.
TEST_F(LyingPeer, AtRandom) {
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  std::mt19937_64 random(seed);
  const auto any = [&](std::initializer_list<uint64_t> values) {
    return random() % 3 == 0 ? random() : *(values.begin() + random() % values.size());
  };
  for (int round = 0; round < 15; ++round) {
    Meet([&](ConnectData& data) {
      data.credits = static_cast<uint16_t>(1 + any({1, 4, 31, 32}) % 0x7fff);
      data.map_entries = static_cast<uint16_t>(any({0, 1, 128, 0x7f00}) % 0x7f01);
      data.target_list = {any({data.target_list.address, 0, ~0ull}), data.target_list.key,
                          std::max<uint32_t>(1, static_cast<uint32_t>(any({1, 2, 3, ~0u})))};
      data.buffer = {any({data.buffer.address, 0, ~0ull}), data.buffer.key,
                     static_cast<uint32_t>(any({0, 1, 4096, ~0u}))};
      if (round % 2 == 0) data.buffer.address = data.buffer.length = 0;  // lives longer
    });
    if (HasFatalFailure()) return;
    for (int i = 0; i < 30; ++i) {
      switch (random() % 4) {
        case 0:
          liar_->Say(static_cast<uint32_t>(random()));
          break;
        case 1:
          liar_->Say(Message{MessageType::kData, static_cast<uint32_t>(any({0, 1, 65536}))}.Serialize());
          break;
        case 2:
          liar_->Say(Message{MessageType::kCredits, static_cast<uint32_t>(any({0, 40, 0xffff}))}.Serialize());
          break;
        default:
          liar_->Grant(static_cast<uint32_t>(random() % 2),
                       {any({0, ~0ull, liar_->Address()}), liar_->key(), static_cast<uint32_t>(any({0, 16, ~0u}))});
      }
      if (i % 10 == 9) Live(std::chrono::milliseconds(5));
    }
    Live(std::chrono::milliseconds(20));
    server_.Reset();
    liar_.reset();
  }
}

}  // namespace
}  // namespace weft::rsocket_api
