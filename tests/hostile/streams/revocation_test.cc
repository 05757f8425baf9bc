#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/hostile/streams/stage.h"

// Who may take a key away, and that nothing of the memory is touched once it is gone (RFC 5040 section 8.1.1, items 3,
// 6, 7).
namespace weft::hostile {
namespace {

using rdmap::Opcode;
using rdmap::testing::Pattern;
using rdmap::testing::ReadRequest;
using rdmap::testing::Tagged;
using rdmap::testing::Untagged;
using sim::RegionInfo;
using sim::testing::Program;

constexpr int kRights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND;

class Revocation : public ::testing::Test {
 protected:
  Revocation() : bytes_(1 << 20, 0x11), receives_(4096) {
    region_ = victim_.Register(bytes_.data(), bytes_.size(), kRights);
    receive_ = victim_.Register(receives_.data(), receives_.size());
  }

  bool Readable(ddp::STag stag, uint64_t at) {
    return stage_.rnic().memory().ResolveRemote(*victim_.pd, stag, at, 8, IBV_ACCESS_REMOTE_READ).ok();
  }

  void SendInvalidate(Peer& peer, ddp::STag stag) {
    Bytes send = Untagged(Opcode::kSendInvalidate, 1, 0, Pattern(8));
    for (int i = 0; i < 4; ++i) send[2 + i] = static_cast<uint8_t>(stag.value >> (24 - 8 * i));
    peer.Send(send);
    stage_.Pass();
  }

  // One Read into sink_, and then `into_doomed` into doomed_.
  void PostReads(int into_doomed) {
    sink_region_ = victim_.Register(sink_.data(), sink_.size());
    doomed_region_ = victim_.Register(doomed_.data(), doomed_.size());
    ibv_send_wr read{};
    read.opcode = IBV_WR_RDMA_READ;
    read.wr.rdma.rkey = 0x1234;
    ASSERT_EQ(PostSend(victim_, read, sink_region_), 0);
    for (int i = 0; i < into_doomed; ++i) ASSERT_EQ(PostSend(victim_, read, doomed_region_), 0);
    stage_.Pass();
  }

  // A window over the region's first `length` bytes, bound by the victim's queue pair.
  ibv_mw Bind(ibv_mw_type type, uint64_t offset, uint64_t length, uint32_t key_of = 0) {
    ibv_mw window{};
    window.type = IBV_MW_TYPE_2;  // as ibv_bind_mw writes the request for both
    window.rkey = key_of != 0 ? key_of : stage_.rnic().memory().AllocateWindow(*victim_.pd, type)->value;
    ibv_mr mr{};
    mr.lkey = region_.stag.value;
    ibv_send_wr wr{}, *bad = nullptr;
    wr.opcode = IBV_WR_BIND_MW;
    wr.bind_mw.mw = &window;
    wr.bind_mw.rkey = ibv_inc_rkey(window.rkey);
    wr.bind_mw.bind_info = {.mr = &mr,
                            .addr = region_.address + offset,
                            .length = length,
                            .mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
    EXPECT_EQ(victim_.qp.qp->PostSend(&wr, &bad), 0);
    window.rkey = wr.bind_mw.rkey;
    return window;
  }

  int PostLocalInvalidate(Program& program, uint32_t key) {
    ibv_send_wr wr{}, *bad = nullptr;
    wr.opcode = IBV_WR_LOCAL_INV;
    wr.invalidate_rkey = key;
    return program.qp.qp->PostSend(&wr, &bad);
  }

  ibv_wc_status NextStatus() {
    const auto completion = Stage::Completion(victim_);
    EXPECT_TRUE(completion.has_value()) << "no completion";
    return completion ? completion->status : IBV_WC_GENERAL_ERR;
  }

  // The first half of a frame with a Write of 0x77 into `at`, and what is left of it.
  Bytes SendHalfAWrite(Peer& peer, ddp::STag stag, uint64_t at) {
    const Bytes frame = Peer::Frame(Tagged(Opcode::kWrite, stag.value, at, Bytes(8000, 0x77)));
    peer.SendBytes(Bytes(frame.begin(), frame.begin() + 4000));
    stage_.Pass();
    return Bytes(frame.begin() + 4000, frame.end());
  }

  // What the program put there since is still there.
  void ExpectUntouched(uint64_t offset, size_t length, uint8_t value) {
    EXPECT_EQ(std::count(bytes_.begin() + static_cast<ptrdiff_t>(offset),
                         bytes_.begin() + static_cast<ptrdiff_t>(offset + length), value),
              static_cast<ptrdiff_t>(length));
  }

  Stage stage_;
  std::vector<uint8_t> bytes_, receives_, sink_ = Bytes(64, 0x22), doomed_ = Bytes(64, 0x22);
  Program victim_{stage_.rnic()};
  RegionInfo region_, receive_, sink_region_, doomed_region_;
};

TEST_F(Revocation, ARegionIsNotThePeersToInvalidate) {
  const auto peer = stage_.Connect(victim_);
  ASSERT_EQ(PostReceive(victim_, receive_), 0);
  SendInvalidate(*peer, region_.stag);
  EXPECT_TRUE(Readable(region_.stag, region_.address)) << "others go on using it";
  EXPECT_NE(stage_.rnic().memory().ResolveLocal(*victim_.pd, region_.stag.value, region_.address, 8, true, false),
            nullptr);
  const auto terminate = peer->NextTerminate();
  ASSERT_TRUE(terminate.has_value());
  EXPECT_EQ(terminate->ToString(),
            "RDMAP remote protection error: STag cannot be invalidated (layer 0 type 1 code 0x09)");
  EXPECT_EQ(victim_.qp.qp->state(), IBV_QPS_ERR);
  EXPECT_EQ(victim_.async->events, std::vector{IBV_EVENT_QP_ACCESS_ERR});
  EXPECT_EQ(NextStatus(), IBV_WC_WR_FLUSH_ERR);
}

TEST_F(Revocation, AWindowOfTypeTwoOfThisQueuePairIs) {
  const auto peer = stage_.Connect(victim_);
  const ibv_mw window = Bind(IBV_MW_TYPE_2, 0, 4096);
  stage_.Pass();
  ASSERT_EQ(NextStatus(), IBV_WC_SUCCESS);
  ASSERT_EQ(PostReceive(victim_, receive_), 0);
  SendInvalidate(*peer, ddp::STag(window.rkey));
  const auto completion = Stage::Completion(victim_);
  ASSERT_TRUE(completion.has_value());
  EXPECT_EQ(completion->status, IBV_WC_SUCCESS);
  EXPECT_EQ(completion->wc_flags, unsigned{IBV_WC_WITH_INV});
  EXPECT_EQ(completion->invalidated_rkey, window.rkey);
  EXPECT_TRUE(Readable(region_.stag, region_.address));
  peer->Send(Tagged(Opcode::kWrite, window.rkey, region_.address, Bytes(64, 0x77)));
  stage_.Pass();
  ExpectUntouched(0, 64, 0x11);
  EXPECT_EQ(victim_.qp.qp->state(), IBV_QPS_ERR);
}

// The peer asks for a megabyte and does not read: the answer waits in our sender, by reference.
TEST_F(Revocation, AnAnswerThatWaitsToGoOutIsNotReadFromMemoryThatIsGone) {
  const auto peer = stage_.Connect(victim_);
  peer->Send(ReadRequest(1, {ddp::STag(1), ddp::TaggedOffset(0), static_cast<uint32_t>(bytes_.size()), region_.stag,
                             ddp::TaggedOffset(region_.address)}));
  stage_.Pass();
  ASSERT_EQ(stage_.rnic().DeregisterMemory(region_.stag), 0);
  std::fill(bytes_.begin(), bytes_.end(), 0xee);  // the program's next use of it
  peer->Listen();
  size_t payload = 0;
  while (const auto segment = peer->Next()) {
    if (!ddp::ControlField::Parse((*segment)[0]).tagged) continue;
    payload += segment->size() - ddp::TaggedHeader::kLength;
    ASSERT_EQ(std::count(segment->begin() + ddp::TaggedHeader::kLength, segment->end(), 0xee), 0)
        << "after " << payload << " bytes";
  }
  EXPECT_GT(payload, 0u);
}

TEST_F(Revocation, AnAnswerThatWaitsIsNotReadThroughAWindowThatThePeerInvalidated) {
  const auto peer = stage_.Connect(victim_);
  const ibv_mw window = Bind(IBV_MW_TYPE_2, 0, bytes_.size());
  stage_.Pass();
  ASSERT_EQ(NextStatus(), IBV_WC_SUCCESS);
  ASSERT_EQ(PostReceive(victim_, receive_), 0);
  peer->Send(ReadRequest(1, {ddp::STag(1), ddp::TaggedOffset(0), static_cast<uint32_t>(bytes_.size()),
                             ddp::STag(window.rkey), ddp::TaggedOffset(region_.address)}));
  stage_.Pass();
  SendInvalidate(*peer, ddp::STag(window.rkey));
  std::fill(bytes_.begin(), bytes_.end(), 0xee);
  peer->Listen();
  while (const auto segment = peer->Next()) {
    ASSERT_EQ(std::count(segment->begin(), segment->end(), 0xee), 0);
  }
}

TEST_F(Revocation, ALocalInvalidateDivertsWhatIsBeingPlaced) {
  const auto peer = stage_.Connect(victim_);
  const ibv_mw window = Bind(IBV_MW_TYPE_2, 0, 100000);
  stage_.Pass();
  ASSERT_EQ(NextStatus(), IBV_WC_SUCCESS);
  const Bytes rest = SendHalfAWrite(*peer, ddp::STag(window.rkey), region_.address);
  ASSERT_EQ(PostLocalInvalidate(victim_, window.rkey), 0);
  stage_.Pass();
  EXPECT_EQ(NextStatus(), IBV_WC_SUCCESS);
  std::fill(bytes_.begin(), bytes_.end(), 0xee);
  peer->SendBytes(rest);
  stage_.Pass();
  ExpectUntouched(0, 8000, 0xee);
}

TEST_F(Revocation, ALocalInvalidateOfARegionDivertsWhatAnotherConnectionPlaces) {
  Program other(stage_.rnic(), {}, victim_.pd);
  const auto peer = stage_.Connect(victim_), peer_of_other = stage_.Connect(other);
  const RegionInfo shared = victim_.Register(bytes_.data(), 100000, kRights);
  const Bytes rest = SendHalfAWrite(*peer_of_other, shared.stag, shared.address);
  ASSERT_EQ(PostLocalInvalidate(victim_, shared.stag.value), 0);
  stage_.Pass();
  EXPECT_EQ(NextStatus(), IBV_WC_SUCCESS);
  EXPECT_EQ(victim_.qp.qp->state(), IBV_QPS_RTS);
  std::fill(bytes_.begin(), bytes_.end(), 0xee);
  peer_of_other->SendBytes(rest);
  stage_.Pass();
  ExpectUntouched(0, 8000, 0xee);
}

TEST_F(Revocation, BindingAWindowAnewDivertsWhatIsBeingPlacedThroughItsOldKey) {
  const auto peer = stage_.Connect(victim_);
  const ibv_mw window = Bind(IBV_MW_TYPE_1, 0, 100000);
  stage_.Pass();
  ASSERT_EQ(NextStatus(), IBV_WC_SUCCESS);
  const Bytes rest = SendHalfAWrite(*peer, ddp::STag(window.rkey), region_.address);
  Bind(IBV_MW_TYPE_1, 500000, 100, window.rkey);
  stage_.Pass();
  EXPECT_EQ(NextStatus(), IBV_WC_SUCCESS);
  std::fill(bytes_.begin(), bytes_.end(), 0xee);
  peer->SendBytes(rest);
  stage_.Pass();
  ExpectUntouched(0, 8000, 0xee);
}

TEST_F(Revocation, TheReadWhoseSinkGoesAwayNamesTheCause) {
  const auto peer = stage_.Connect(victim_);
  PostReads(/*into_doomed=*/2);
  peer->Send(Tagged(Opcode::kReadResponse, sink_region_.stag.value, sink_region_.address, Bytes(8, 0x33)));
  stage_.Pass();
  EXPECT_EQ(NextStatus(), IBV_WC_SUCCESS);
  ASSERT_EQ(stage_.rnic().DeregisterMemory(doomed_region_.stag), 0);
  EXPECT_EQ(victim_.qp.qp->state(), IBV_QPS_ERR);
  EXPECT_EQ(NextStatus(), IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(NextStatus(), IBV_WC_WR_FLUSH_ERR);
  EXPECT_FALSE(Stage::Completion(victim_).has_value());
}

// A Read that has to wait for the one before it has looked its sink up already.
TEST_F(Revocation, ARequestThatWaitsLooksItsMemoryUpAgain) {
  const auto peer = stage_.Connect(victim_, {.ord = 1});
  PostReads(/*into_doomed=*/1);
  ASSERT_EQ(stage_.rnic().DeregisterMemory(doomed_region_.stag), 0);
  ASSERT_EQ(victim_.qp.qp->state(), IBV_QPS_RTS) << "it has not begun";
  peer->Send(Tagged(Opcode::kReadResponse, sink_region_.stag.value, sink_region_.address, Bytes(8, 0x33)));
  stage_.Pass();
  EXPECT_EQ(NextStatus(), IBV_WC_SUCCESS);
  EXPECT_EQ(NextStatus(), IBV_WC_LOC_PROT_ERR);
  peer->Send(Tagged(Opcode::kReadResponse, doomed_region_.stag.value, doomed_region_.address, Bytes(8, 0x33)));
  stage_.Pass();
  EXPECT_EQ(std::count(doomed_.begin(), doomed_.end(), 0x22), 64);
}

}  // namespace
}  // namespace weft::hostile
