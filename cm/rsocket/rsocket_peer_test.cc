// A peer of an rsocket that speaks rdma_cm and verbs directly, and breaks the rsocket protocol.
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include <cerrno>
#include <functional>
#include <memory>

#include "cm/rsocket/rsocket_testing.h"
#include "cm/rsocket/wire.h"

namespace weft::rsocket_api {

using weft::rsocket::ConnectData;
using weft::rsocket::Message;
using weft::rsocket::MessageType;

namespace {

std::vector<uint8_t> Hello(uint64_t memory, uint32_t key, uint32_t list_entries) {
  ConnectData data;
  data.credits = 32;
  data.target_list = {memory, key, list_entries};
  data.buffer = {memory, key, 4096};
  std::vector<uint8_t> bytes(ConnectData::kSize);
  data.Serialize(std::span<uint8_t, ConnectData::kSize>(bytes.data(), bytes.size()));
  return bytes;
}

class RawPeer {
 public:
  using MakeHello = std::function<std::vector<uint8_t>(uint64_t memory, uint32_t key)>;
  static std::vector<uint8_t> Proper(uint64_t memory, uint32_t key) { return Hello(memory, key, 2); }

  explicit RawPeer(const sockaddr_in& address, const MakeHello& hello = Proper) {
    sockaddr_in to = address;
    EXPECT_EQ(rdma_create_id(nullptr, &id_, nullptr, RDMA_PS_TCP), 0);
    EXPECT_EQ(rdma_resolve_addr(id_, nullptr, reinterpret_cast<sockaddr*>(&to), 2000), 0);
    EXPECT_EQ(rdma_resolve_route(id_, 2000), 0);
    ibv_qp_init_attr attributes{};
    attributes.qp_type = IBV_QPT_RC;
    attributes.cap = {64, 64, 1, 1, 64};
    EXPECT_EQ(rdma_create_qp(id_, nullptr, &attributes), 0);
    region_ = ibv_reg_mr(id_->pd, memory_, sizeof memory_, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    for (int i = 0; i < 32; ++i) rdma_post_recv(id_, nullptr, memory_, 4, region_);
    const std::vector<uint8_t> private_data = hello(reinterpret_cast<uintptr_t>(memory_), region_->rkey);
    rdma_conn_param parameters{};
    parameters.private_data = private_data.data();
    parameters.private_data_len = static_cast<uint8_t>(private_data.size());
    parameters.responder_resources = parameters.initiator_depth = 1;
    error_ = rdma_connect(id_, &parameters) == 0 ? 0 : errno;
  }
  ~RawPeer() {
    rdma_disconnect(id_);
    rdma_destroy_qp(id_);
    ibv_dereg_mr(region_);
    rdma_destroy_id(id_);
  }
  int error() const { return error_; }
  void Send(uint32_t raw, size_t length = 4) {
    ibv_sge piece{reinterpret_cast<uintptr_t>(&raw), static_cast<uint32_t>(length), 0};
    ibv_send_wr send{};
    send.opcode = IBV_WR_SEND;
    send.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
    send.sg_list = &piece;
    send.num_sge = 1;
    ibv_send_wr* bad;
    EXPECT_EQ(ibv_post_send(id_->qp, &send, &bad), 0);
  }

 private:
  rdma_cm_id* id_ = nullptr;
  uint8_t memory_[4096] = {};
  ibv_mr* region_ = nullptr;
  int error_ = 0;
};

// What a program sees whose peer sends `raw`, a message of `length` bytes.
int ErrorAfter(uint32_t raw, size_t length = 4) {
  sockaddr_in address;
  Fd listener = Listener(&address);
  auto peer = std::async(std::launch::async, [&] { return std::make_unique<RawPeer>(address); });
  Fd server(raccept(listener, nullptr, nullptr));
  EXPECT_GE(server, 0);
  const auto raw_peer = peer.get();
  EXPECT_EQ(raw_peer->error(), 0);
  raw_peer->Send(raw, length);
  char byte;
  const ssize_t got = rrecv(server, &byte, 1, 0);
  return got < 0 ? errno : static_cast<int>(got);
}

TEST(RsocketPeer, ThatClaimsMoreThanItWasGrantedIsCutOff) {
  EXPECT_EQ(ErrorAfter(Message{MessageType::kData, (1 << 17) + 1}.Serialize()), EPROTO);
}

TEST(RsocketPeer, ThatSendsAMessageOfAnotherLengthIsCutOff) { EXPECT_EQ(ErrorAfter(0, 3), EPROTO); }

TEST(RsocketPeer, ThatUsesAReservedTypeIsCutOff) {
  EXPECT_EQ(ErrorAfter(Message{MessageType::kWrite, 1}.Serialize()), EPROTO);
  EXPECT_EQ(ErrorAfter(0x20000001), EPROTO);
}

TEST(RsocketPeer, ThatNamesAMapEntryThatIsNotThereIsCutOff) {
  EXPECT_EQ(ErrorAfter(Message{MessageType::kMap, 0}.Serialize()), EPROTO);
}

TEST(RsocketPeer, ThatSaysGoodbyeEndsTheStream) {
  EXPECT_EQ(ErrorAfter(Message{MessageType::kControl, 0}.Serialize()), 0);
  EXPECT_EQ(ErrorAfter(Message{MessageType::kControl, 2}.Serialize()), 0);
}

// The listener lives on and takes the next that is one.
TEST(RsocketPeer, ThatIsNoRsocketIsRejected) {
  sockaddr_in address;
  Fd listener = Listener(&address);
  auto strangers = std::async(std::launch::async, [&] {
    const auto error = [&](const RawPeer::MakeHello& hello) { return RawPeer(address, hello).error(); };
    EXPECT_EQ(error([](uint64_t, uint32_t) { return std::vector<uint8_t>(); }), ECONNREFUSED);
    EXPECT_EQ(error([](uint64_t, uint32_t) { return std::vector<uint8_t>{1, 2, 3}; }), ECONNREFUSED);
    EXPECT_EQ(error([](uint64_t memory, uint32_t key) {
                auto hello = RawPeer::Proper(memory, key);
                hello[0] = 9;
                return hello;
              }),
              ECONNREFUSED);
    EXPECT_EQ(error([](uint64_t memory, uint32_t key) { return Hello(memory, key, 0); }), ECONNREFUSED);
    Fd client(::rsocket(AF_INET, SOCK_STREAM, 0));
    EXPECT_EQ(ConnectTo(client, address), 0);
    rsend(client, "x", 1, 0);
  });
  Fd server(raccept(listener, nullptr, nullptr));
  EXPECT_GE(server, 0);
  char byte;
  EXPECT_EQ(rrecv(server, &byte, 1, 0), 1);
  strangers.get();
}

}  // namespace
}  // namespace weft::rsocket_api
