#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "rdmap/atomic.h"
#include "rdmap/delivery.h"
#include "tests/hostile/streams/stage.h"

// Requests that a queue pair does not allow, and errors of our own that the peer is to hear of.
namespace weft::hostile {
namespace {

using rdmap::Delivery;
using rdmap::Opcode;
using rdmap::testing::ReadRequest;
using rdmap::testing::Tagged;
using rdmap::testing::Untagged;
using sim::RegionInfo;
using sim::testing::Program;

class Rights : public ::testing::Test {
 protected:
  Rights() : bytes_(4096, 0x11) {
    region_ = victim_.Register(
        bytes_.data(), bytes_.size(),
        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
  }

  void Allow(int access) {
    ibv_qp_attr attributes{};
    attributes.qp_access_flags = static_cast<unsigned>(access);
    ASSERT_EQ(victim_.qp.qp->Modify(attributes, IBV_QP_ACCESS_FLAGS), 0);
  }

  static Bytes AtomicAt(uint32_t msn, ddp::STag stag, uint64_t offset) {
    rdmap::AtomicRequestHeader header;
    header.operation.add_or_swap = 1;
    header.operation.add_or_swap_mask = 0;
    header.stag = stag;
    header.offset = ddp::TaggedOffset(offset);
    Bytes payload(rdmap::AtomicRequestHeader::kLength);
    header.Serialize(payload);
    return Untagged(Opcode::kAtomicRequest, msn, 0, payload);
  }

  Bytes ReadOfRegion() {
    return ReadRequest(1, {ddp::STag(1), ddp::TaggedOffset(0), 64, region_.stag, ddp::TaggedOffset(region_.address)});
  }

  std::string Terminated(Peer& peer) {
    stage_.Pass();
    const auto terminate = peer.NextTerminate();
    return terminate ? terminate->ToString() : "no Terminate";
  }

  Stage stage_;
  alignas(8) std::vector<uint8_t> bytes_;
  Program victim_{stage_.rnic()};
  RegionInfo region_;
};

constexpr char kMisaligned[] =
    "RDMAP remote operation error: catastrophic error, localized to the stream (layer 0 type 2 code 0x07)";

// RFC 7306 section 8.2 has the address aligned; where the region's offsets begin is the program's choice.
TEST_F(Rights, AnAtomicIsRefusedForItsAddressAndNotForItsOffset) {
  if (!stage_.roce()) return;  // plain iWARP has no atomics
  const auto peer = stage_.Connect(victim_, {.delivery = Delivery::kReliable});
  const uint64_t address = region_.address;
  const RegionInfo shifted =
      stage_.rnic()
          .memory()
          .Register(*victim_.pd, address, 64, 0x1003, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
          .value();
  std::fill(bytes_.begin(), bytes_.end(), 0);
  peer->Send(AtomicAt(1, shifted.stag, 0x1003 + 8));
  stage_.Pass();
  EXPECT_EQ(bytes_[8], 1) << "its address is aligned";
  peer->Send(AtomicAt(2, shifted.stag, 0x1008));
  EXPECT_EQ(Terminated(*peer), kMisaligned);
  EXPECT_EQ(bytes_[5], 0);
  EXPECT_EQ(victim_.async->events, std::vector{IBV_EVENT_QP_REQ_ERR});
}

TEST_F(Rights, AMisalignedAtomicOfOursIsAnInvalidRequest) {
  if (!stage_.roce()) return;
  const auto peer = stage_.Connect(victim_, {.delivery = Delivery::kReliable});
  ibv_send_wr atomic{};
  atomic.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  atomic.wr.atomic.remote_addr = 0x1001;
  ASSERT_EQ(PostSend(victim_, atomic, region_), 0);
  stage_.Pass();
  rdmap::TerminateMessage why{.layer = rdmap::TerminateLayer::kRdmap, .error_type = 2, .error_code = 7};
  Bytes payload(rdmap::TerminateMessage::kMaxLength);
  payload.resize(why.Serialize(payload));
  peer->Send(Untagged(Opcode::kTerminate, 1, 0, payload));
  const auto completion = Stage::Completion(victim_);
  ASSERT_TRUE(completion.has_value());
  EXPECT_EQ(completion->status, IBV_WC_REM_INV_REQ_ERR);
}

TEST_F(Rights, AQueuePairWithoutRemoteWriteTakesNoWrite) {
  Allow(IBV_ACCESS_REMOTE_READ);
  const auto peer = stage_.Connect(victim_);
  peer->Send(Tagged(Opcode::kWrite, region_.stag.value, region_.address, Bytes(64, 0x77)));
  EXPECT_EQ(Terminated(*peer), "DDP tagged buffer error: invalid STag (layer 1 type 1 code 0x00)");
  EXPECT_EQ(bytes_[0], 0x11);
}

TEST_F(Rights, AQueuePairWithoutRemoteReadAnswersNoRead) {
  Allow(IBV_ACCESS_REMOTE_WRITE);
  const auto peer = stage_.Connect(victim_);
  peer->Send(ReadOfRegion());
  EXPECT_EQ(Terminated(*peer), "RDMAP remote protection error: access rights violation (layer 0 type 1 code 0x02)");
}

// What the queue pair lets peers do says nothing about its own Reads.
TEST_F(Rights, AQueuePairWithoutRemoteWriteReadsAllTheSame) {
  Allow(0);
  const auto peer = stage_.Connect(victim_);
  ibv_send_wr read{};
  read.opcode = IBV_WR_RDMA_READ;
  read.wr.rdma.rkey = 0x1234;
  ASSERT_EQ(PostSend(victim_, read, region_), 0);
  stage_.Pass();
  peer->Send(Tagged(Opcode::kReadResponse, region_.stag.value, region_.address, Bytes(8, 0x77)));
  stage_.Pass();
  const auto completion = Stage::Completion(victim_);
  ASSERT_TRUE(completion.has_value());
  EXPECT_EQ(completion->status, IBV_WC_SUCCESS);
  EXPECT_EQ(bytes_[0], 0x77);
}

// RFC 5040 section 7.1, rule 1. InfiniBand has no such message, and a peer of that kind learns it when it wants
// something.
TEST_F(Rights, APlainPeerHearsThatARequestOfOursCannotBeCarriedOut) {
  const auto peer = stage_.Connect(victim_);
  ibv_send_wr send{};
  RegionInfo wrong = region_;
  wrong.stag = ddp::STag(region_.stag.value ^ 1);
  ASSERT_EQ(PostSend(victim_, send, wrong), 0);
  EXPECT_EQ(Terminated(*peer), "RDMAP local catastrophic error (layer 0 type 0 code 0x00)");
  EXPECT_EQ(Stage::Completion(victim_)->status, IBV_WC_LOC_PROT_ERR);
}

TEST_F(Rights, APeerOfTheInfinibandKindHearsTheEnd) {
  if (!stage_.roce()) return;
  const auto peer = stage_.Connect(victim_, {.delivery = Delivery::kReliable});
  ibv_send_wr send{};
  RegionInfo wrong = region_;
  wrong.stag = ddp::STag(region_.stag.value ^ 1);
  ASSERT_EQ(PostSend(victim_, send, wrong), 0);
  EXPECT_EQ(Terminated(*peer), "no Terminate");
  EXPECT_TRUE(peer->ended());
  EXPECT_EQ(Stage::Completion(victim_)->status, IBV_WC_LOC_PROT_ERR);
}

// An unreliable connection has Sends and Writes.
class Unreliable : public Rights {
 protected:
  Unreliable() {
    sim::QueuePairOptions options{.pd = victim_.pd,
                                  .send_cq = victim_.cq,
                                  .receive_cq = victim_.cq,
                                  .type = IBV_QPT_UC,
                                  .signal_all = true,
                                  .async = victim_.async};
    options.capabilities = {4, 4, 1, 1, 0};
    victim_.qp.qp->Destroy();
    victim_.qp.qp = stage_.rnic().CreateQueuePair(std::move(options)).value();
    ibv_qp_attr init{};
    init.qp_state = IBV_QPS_INIT;
    init.port_num = 1;
    init.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    EXPECT_EQ(victim_.qp.qp->Modify(init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
  }
};

TEST_F(Unreliable, PostsNoReadAndNoAtomic) {
  if (!stage_.roce()) return;
  const auto peer = stage_.Connect(victim_, {.delivery = Delivery::kUnreliable});
  for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP}) {
    ibv_send_wr wr{};
    wr.opcode = opcode;
    EXPECT_EQ(PostSend(victim_, wr, region_), EINVAL) << opcode;
  }
  EXPECT_EQ(victim_.qp.qp->state(), IBV_QPS_RTS);
}

TEST_F(Unreliable, TakesNoReadAndNoAtomic) {
  if (!stage_.roce()) return;
  const auto peer = stage_.Connect(victim_, {.delivery = Delivery::kUnreliable});
  peer->Send(ReadOfRegion());
  EXPECT_EQ(Terminated(*peer), "RDMAP remote operation error: unexpected opcode (layer 0 type 2 code 0x06)");
}

TEST_F(Unreliable, CarriesOutNoAtomic) {
  if (!stage_.roce()) return;
  const auto peer = stage_.Connect(victim_, {.delivery = Delivery::kUnreliable});
  peer->Send(AtomicAt(1, region_.stag, region_.address));
  EXPECT_EQ(Terminated(*peer), "RDMAP remote operation error: unexpected opcode (layer 0 type 2 code 0x06)");
  EXPECT_EQ(bytes_[0], 0x11);
}

}  // namespace
}  // namespace weft::hostile
