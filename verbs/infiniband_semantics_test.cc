// What the RoCE persona promises to programs, on queue pairs that they connect themselves: InfiniBand's semantics.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <infiniband/weft.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "verbs/testing/connected_pair.h"
#include "verbs/testing/self_connected.h"
#include "verbs/testing/shown.h"

namespace weft::verbs {
namespace {

using testing::AwaitDisconnection;
using testing::AwaitRefusals;
using testing::End;
using testing::ExpectTheSecondToBeBlamed;
using testing::kToRtr;
using testing::SelfConnected;
using testing::ToInit;
using testing::WaitForCompletion;

TEST_F(SelfConnected, ImmediateDataComesWithSendsAndWrites) {
  End a(context_), b(context_);
  ASSERT_NO_FATAL_FAILURE(Connect(a, b));
  ASSERT_EQ(b.Receive(0, 16), 0);
  ASSERT_EQ(b.Receive(16, 16), 0);
  std::memset(a.memory.data(), 7, 100);
  ibv_sge element = a.Element(0, 16);
  ibv_send_wr send = a.Request(IBV_WR_SEND_WITH_IMM, &element, 1);
  send.imm_data = htonl(0x01020304);
  ASSERT_EQ(a.Post(send), 0);
  ibv_wc wc = WaitForCompletion(b.cq);
  EXPECT_EQ(wc.opcode, IBV_WC_RECV);
  EXPECT_EQ(wc.wc_flags, static_cast<unsigned>(IBV_WC_WITH_IMM));
  EXPECT_EQ(ntohl(wc.imm_data), 0x01020304u);
  EXPECT_EQ(wc.byte_len, 16u);
  EXPECT_EQ(WaitForCompletion(a.cq).opcode, IBV_WC_SEND);

  element = a.Element(0, 100);
  ibv_send_wr write = a.Request(IBV_WR_RDMA_WRITE_WITH_IMM, &element, 1, &b, 200);
  write.imm_data = htonl(0xfffefdfc);
  ASSERT_EQ(a.Post(write), 0);
  wc = WaitForCompletion(b.cq);
  EXPECT_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(ntohl(wc.imm_data), 0xfffefdfcu);
  EXPECT_EQ(wc.byte_len, 100u);
  EXPECT_EQ(b.memory[200], 7);
  EXPECT_EQ(b.memory[299], 7);
  EXPECT_EQ(b.memory[16], 0) << "the receive's own memory is not touched";
  EXPECT_EQ(WaitForCompletion(a.cq).opcode, IBV_WC_RDMA_WRITE);
}

TEST_F(SelfConnected, AtomicsReturnWhatWasThere) {
  End a(context_), b(context_);
  ASSERT_NO_FATAL_FAILURE(Connect(a, b));
  auto* value = reinterpret_cast<uint64_t*>(b.memory.data());
  *value = 41;
  ibv_sge element = a.Element(8, 8);
  const auto* found = reinterpret_cast<const uint64_t*>(a.memory.data() + 8);
  ibv_send_wr wr = a.Request(IBV_WR_ATOMIC_FETCH_AND_ADD, &element, 1);
  wr.wr.atomic.remote_addr = reinterpret_cast<uintptr_t>(value);
  wr.wr.atomic.rkey = b.mr->rkey;
  wr.wr.atomic.compare_add = 1;
  ASSERT_EQ(a.Post(wr), 0);
  EXPECT_EQ(WaitForCompletion(a.cq).opcode, IBV_WC_FETCH_ADD);
  EXPECT_EQ(*found, 41u);
  EXPECT_EQ(*value, 42u);

  wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
  wr.wr.atomic.swap = 99;
  for (uint64_t compare : {41u, 42u}) {
    wr.wr.atomic.compare_add = compare;
    ASSERT_EQ(a.Post(wr), 0);
    const ibv_wc wc = WaitForCompletion(a.cq);
    EXPECT_EQ(wc.opcode, IBV_WC_COMP_SWAP);
    EXPECT_EQ(wc.byte_len, 8u);
    EXPECT_EQ(*found, 42u);
    EXPECT_EQ(*value, compare == 42 ? 99u : 42u);
  }

  element.length = 4;
  EXPECT_EQ(a.Post(wr), EINVAL) << "eight bytes";
  element.length = 8;
  wr.wr.atomic.remote_addr += 4;  // not aligned: an error, and nothing is changed
  ASSERT_EQ(a.Post(wr), 0);
  EXPECT_EQ(WaitForCompletion(a.cq).status, IBV_WC_REM_INV_REQ_ERR);
  EXPECT_EQ(*value, 99u);
}

TEST_F(SelfConnected, AtomicsOfSeveralQueuePairsAndTheProcessorAddUp) {
  constexpr int kQueuePairs = 3, kEach = 400;
  End target(context_);
  auto* value = reinterpret_cast<uint64_t*>(target.memory.data());
  std::vector<std::unique_ptr<End>> sides, others;
  for (int i = 0; i < kQueuePairs; ++i) {
    sides.push_back(std::make_unique<End>(context_));
    others.push_back(std::make_unique<End>(context_));
    // All of the peers' regions are the same memory.
    ASSERT_EQ(ibv_dereg_mr(others.back()->mr), 0);
    others.back()->mr = ibv_reg_mr(others.back()->pd, value, 8, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
    ASSERT_NE(others.back()->mr, nullptr);
    Connect(*sides.back(), *others.back());
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < kQueuePairs; ++i) {
    threads.emplace_back([&, i] {
      End& side = *sides[static_cast<size_t>(i)];
      ibv_sge element = side.Element(0, 8);
      ibv_send_wr wr = side.Request(IBV_WR_ATOMIC_FETCH_AND_ADD, &element, 1);
      wr.wr.atomic.remote_addr = reinterpret_cast<uintptr_t>(value);
      wr.wr.atomic.rkey = others[static_cast<size_t>(i)]->mr->rkey;
      wr.wr.atomic.compare_add = 1;
      for (int n = 0; n < kEach; ++n) {
        EXPECT_EQ(side.Post(wr), 0);
        EXPECT_EQ(WaitForCompletion(side.cq).status, IBV_WC_SUCCESS);
      }
    });
  }
  for (int n = 0; n < kEach; ++n) __atomic_fetch_add(value, 1, __ATOMIC_SEQ_CST);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(*value, static_cast<uint64_t>((kQueuePairs + 1) * kEach));
}

TEST_F(SelfConnected, ASendWaitsForItsReceiveAndWhatFollowsWaitsBehindIt) {
  End a(context_), b(context_);
  ASSERT_NO_FATAL_FAILURE(Connect(a, b));
  a.memory[0] = 1;
  a.memory[1] = 2;
  ASSERT_EQ(a.Send(0, 1, 11), 0);
  ibv_sge element = a.Element(1, 1);
  ibv_send_wr write = a.Request(IBV_WR_RDMA_WRITE, &element, 1, &b, 500);
  write.wr_id = 12;
  ASSERT_EQ(a.Post(write), 0);
  ibv_sge sink = a.Element(1000, 1);
  ibv_send_wr read = a.Request(IBV_WR_RDMA_READ, &sink, 1, &b, 500);
  read.wr_id = 13;
  ASSERT_EQ(a.Post(read), 0);
  ASSERT_TRUE(AwaitRefusals(a.qp));
  ibv_wc wc;
  EXPECT_EQ(ibv_poll_cq(a.cq, 1, &wc), 0);
  EXPECT_EQ(b.memory[500], 0) << "nothing overtakes the Send";
  ASSERT_EQ(b.Receive(0, 1), 0);
  for (uint64_t id : {11u, 12u, 13u}) {
    wc = WaitForCompletion(a.cq);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.wr_id, id);
  }
  EXPECT_EQ(WaitForCompletion(b.cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(b.memory[0], 1);
  EXPECT_EQ(b.memory[500], 2);
  EXPECT_EQ(a.memory[1000], 2);
}

// Its answer says that what was before it has been carried out, too.
TEST_F(SelfConnected, AReadBehindWhatNobodyWaitsForIsNotHeldUp) {
  End a(context_, IBV_QPT_RC, -1, /*signal_all=*/false), b(context_);
  ASSERT_NO_FATAL_FAILURE(Connect(a, b));
  ibv_sge element = a.Element(0, 8), sink = a.Element(1000, 8);
  auto least = std::chrono::steady_clock::duration::max();
  for (int round = 0; round < 10; ++round) {
    ASSERT_EQ(b.Receive(0, 8), 0);
    for (const ibv_wr_opcode opcode : {IBV_WR_SEND, IBV_WR_RDMA_WRITE}) {
      ibv_send_wr wr = a.Request(opcode, &element, 1, &b, 500);
      ASSERT_EQ(a.Post(wr), 0);
    }
    const auto before = std::chrono::steady_clock::now();
    ibv_send_wr read = a.Request(IBV_WR_RDMA_READ, &sink, 1, &b, 500);
    read.send_flags = IBV_SEND_SIGNALED;
    ASSERT_EQ(a.Post(read), 0);
    EXPECT_EQ(WaitForCompletion(a.cq).opcode, IBV_WC_RDMA_READ);
    least = std::min(least, std::chrono::steady_clock::now() - before);
    EXPECT_EQ(WaitForCompletion(b.cq).opcode, IBV_WC_RECV);
  }
  EXPECT_LT(least, std::chrono::milliseconds(10));
}

TEST_F(SelfConnected, WhileASendWaitsTheOtherDirectionGoesOn) {
  End a(context_), b(context_);
  ASSERT_NO_FATAL_FAILURE(Connect(a, b));
  ASSERT_EQ(a.Send(0, 8), 0);  // b has no receive
  a.memory[300] = 5;
  ibv_sge sink = b.Element(300, 1);
  ASSERT_EQ(b.Post(b.Request(IBV_WR_RDMA_READ, &sink, 1, &a, 300)), 0);
  EXPECT_EQ(WaitForCompletion(b.cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(b.memory[300], 5);
  ExpectMessage(b, a);
}

TEST_F(SelfConnected, ReceiverNotReadyIsGivenUpAfterRnrRetry) {
  End a(context_), b(context_);
  ASSERT_NO_FATAL_FAILURE(Connect(a, b, /*rnr_retry=*/2));
  ASSERT_EQ(a.Send(0, 8, 1), 0);
  ASSERT_EQ(a.Send(0, 8, 2), 0);
  ibv_wc wc = WaitForCompletion(a.cq);
  EXPECT_EQ(wc.status, IBV_WC_RNR_RETRY_EXC_ERR);
  EXPECT_EQ(wc.wr_id, 1u);
  wc = WaitForCompletion(a.cq);
  EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(wc.wr_id, 2u);
  EXPECT_EQ(a.State(), IBV_QPS_ERR);
  EXPECT_EQ(b.State(), IBV_QPS_RTS) << "the other end notices when it wants something";
}

// The refusal comes long before all of the answer.
TEST_F(SelfConnected, AReadBeforeTheSendThatIsGivenUpIsAnswered) {
  constexpr uint32_t kLong = 16 << 20;
  End a(context_), b(context_);
  ASSERT_NO_FATAL_FAILURE(Connect(a, b, /*rnr_retry=*/0));
  std::vector<uint8_t> source(kLong, 7), sink(kLong);
  ibv_mr* const from = ibv_reg_mr(b.pd, source.data(), kLong, IBV_ACCESS_REMOTE_READ);
  ibv_mr* const into = ibv_reg_mr(a.pd, sink.data(), kLong, IBV_ACCESS_LOCAL_WRITE);
  ibv_sge whole{reinterpret_cast<uintptr_t>(sink.data()), kLong, into->lkey}, text = a.Element(2048, 8);
  ibv_send_wr read = a.Request(IBV_WR_RDMA_READ, &whole, 1), send = a.Request(IBV_WR_SEND, &text, 1), late = send;
  read.wr.rdma = {reinterpret_cast<uintptr_t>(source.data()), from->rkey};
  send.wr_id = 2;
  late.wr_id = 3;
  read.next = &send;
  send.next = &late;
  ASSERT_EQ(a.Post(read), 0);
  constexpr ibv_wc_status kExpected[] = {IBV_WC_SUCCESS, IBV_WC_RNR_RETRY_EXC_ERR, IBV_WC_WR_FLUSH_ERR};
  for (uint64_t id = 1; id <= 3; ++id) {
    const ibv_wc wc = WaitForCompletion(a.cq);
    EXPECT_EQ(wc.wr_id, id);
    EXPECT_EQ(wc.status, kExpected[id - 1]) << id;
  }
  EXPECT_TRUE(sink == source);
  ibv_dereg_mr(from);
  ibv_dereg_mr(into);
}

TEST_F(SelfConnected, APeerThatIsGoneIsAnErrorOfTheNextRequest) {
  End a(context_);
  auto b = std::make_unique<End>(context_);
  ASSERT_NO_FATAL_FAILURE(Connect(a, *b));
  ExpectMessage(a, *b);
  ASSERT_EQ(a.Receive(0, 8, 77), 0);
  b.reset();
  ASSERT_TRUE(AwaitDisconnection(a.qp));
  ibv_wc wc;
  EXPECT_EQ(ibv_poll_cq(a.cq, 1, &wc), 0) << "nothing was asked of the peer yet";
  EXPECT_EQ(a.State(), IBV_QPS_RTS);
  const auto before = std::chrono::steady_clock::now();
  ASSERT_EQ(a.Send(0, 8, 5), 0);
  wc = WaitForCompletion(a.cq);
  EXPECT_EQ(wc.status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(wc.wr_id, 5u);
  EXPECT_GT(std::chrono::steady_clock::now() - before, std::chrono::milliseconds(400)) << "it tries again, as an adapter does";
  wc = WaitForCompletion(a.cq);
  EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(wc.wr_id, 77u);
}

// ibv_srq_pingpong ends when it has what it needs, while its peer waits for more on other queue pairs.
TEST_F(SelfConnected, RequestsUnderWayWhenThePeerGoesFailAfterTheRetries) {
  End a(context_);
  auto b = std::make_unique<End>(context_);
  ASSERT_NO_FATAL_FAILURE(Connect(a, *b));
  ASSERT_EQ(a.Send(0, 8, 5), 0);  // finds no receive
  ASSERT_TRUE(AwaitRefusals(a.qp));
  b.reset();
  ASSERT_TRUE(AwaitDisconnection(a.qp));
  ibv_wc wc;
  EXPECT_EQ(ibv_poll_cq(a.cq, 1, &wc), 0);
  EXPECT_EQ(a.State(), IBV_QPS_RTS);
  EXPECT_EQ(WaitForCompletion(a.cq).status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(a.State(), IBV_QPS_ERR);
}

TEST_F(SelfConnected, APeerThatNeverWasIsAnErrorAfterTheRetries) {
  End a(context_);
  ibv_qp_attr nobody = {};
  nobody.qp_state = IBV_QPS_RTR;
  nobody.path_mtu = IBV_MTU_1024;
  nobody.dest_qp_num = 9 << 8;  // the discard port: nobody listens
  nobody.ah_attr.is_global = 1;
  nobody.ah_attr.port_num = 1;
  ASSERT_EQ(ibv_query_gid(context_, 1, 0, &nobody.ah_attr.grh.dgid), 0);
  ASSERT_EQ(ibv_modify_qp(a.qp, &nobody, kToRtr), 0);
  ASSERT_EQ(a.ToRts(), 0);
  ASSERT_EQ(a.Send(0, 8), 0);
  EXPECT_EQ(WaitForCompletion(a.cq).status, IBV_WC_RETRY_EXC_ERR);
}

TEST_F(SelfConnected, TheSinkOfAReadNeedsOnlyLocalWriteAndMayBeInPieces) {
  End a(context_, IBV_QPT_RC, IBV_ACCESS_LOCAL_WRITE), b(context_);
  ASSERT_NO_FATAL_FAILURE(Connect(a, b));
  for (size_t i = 0; i < 300; ++i) b.memory[i] = static_cast<uint8_t>(i);
  ibv_sge pieces[] = {a.Element(1000, 100), a.Element(0, 1), a.Element(500, 199)};
  ASSERT_EQ(a.Post(a.Request(IBV_WR_RDMA_READ, pieces, 3, &b, 0)), 0);
  const ibv_wc wc = WaitForCompletion(a.cq);
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(a.memory[1099], 99);
  EXPECT_EQ(a.memory[0], 100);
  EXPECT_EQ(a.memory[500], 101);
  EXPECT_EQ(a.memory[698], static_cast<uint8_t>(299));
}

TEST_F(SelfConnected, TheReceiveOfAWriteThatIsRefusedFailsWithIt) {
  for (const bool is_posted : {true, false}) {
    End a(context_), b(context_);
    ASSERT_NO_FATAL_FAILURE(Connect(a, b));
    if (is_posted) {
      ASSERT_EQ(b.Receive(0, 8, 3), 0);
      ASSERT_EQ(b.Receive(8, 8, 4), 0);
    }
    ibv_sge source = a.Element(0, 64);
    ibv_send_wr write = a.Request(IBV_WR_RDMA_WRITE_WITH_IMM, &source, 1, &b);
    write.wr.rdma.rkey ^= 0x100;
    ASSERT_EQ(a.Post(write), 0);
    EXPECT_EQ(WaitForCompletion(a.cq).status, IBV_WC_REM_ACCESS_ERR);
    if (!is_posted) continue;
    ibv_wc wc = WaitForCompletion(b.cq);
    EXPECT_EQ(wc.wr_id, 3u);
    EXPECT_EQ(wc.status, IBV_WC_LOC_ACCESS_ERR);
    wc = WaitForCompletion(b.cq);
    EXPECT_EQ(wc.wr_id, 4u);
    EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
  }
}

// Adapters look at an element when they write into it (IBTA volume 1 section 10.7.3.2), and so do rxe and siw.
TEST_F(SelfConnected, MemoryThatNoByteGoesIntoIsNotLookedAt) {
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC}) {
    End a(context_, type), b(context_, type);
    if (type == IBV_QPT_RC) {
      ASSERT_NO_FATAL_FAILURE(Connect(a, b));
    } else {
      for (auto [end, peer] : {std::pair(&a, &b), std::pair(&b, &a)}) {
        ASSERT_EQ(end->ToRtr(*peer, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN), 0);
        ASSERT_EQ(end->ToRts(0, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
      }
    }
    ibv_sge nowhere = {0, 1024, 0};
    ibv_sge partly[] = {{reinterpret_cast<uintptr_t>(b.memory.data()), 8, b.mr->lkey},
                        {reinterpret_cast<uintptr_t>(b.memory.data()) + b.memory.size() - 8, 1024, b.mr->lkey},
                        nowhere};
    ibv_sge source = a.Element(0, 16);
    const auto expect = [&](ibv_sge* elements, int count, const ibv_send_wr& request, const char* what) {
      ibv_recv_wr receive = {}, *bad = nullptr;
      receive.sg_list = elements;
      receive.num_sge = count;
      ASSERT_EQ(ibv_post_recv(b.qp, &receive, &bad), 0);
      ASSERT_EQ(a.Post(request), 0);
      EXPECT_EQ(WaitForCompletion(b.cq).status, IBV_WC_SUCCESS) << what;
      EXPECT_EQ(WaitForCompletion(a.cq).status, IBV_WC_SUCCESS) << what;
    };
    expect(&nowhere, 1, a.Request(IBV_WR_SEND, nullptr, 0), "an empty Send");
    expect(&nowhere, 1, a.Request(IBV_WR_SEND_WITH_IMM, nullptr, 0), "an empty Send with immediate data");
    expect(&nowhere, 1, a.Request(IBV_WR_RDMA_WRITE_WITH_IMM, nullptr, 0), "an empty Write with immediate data, no rkey");
    expect(&nowhere, 1, a.Request(IBV_WR_RDMA_WRITE_WITH_IMM, &source, 1, &b, 100), "a Write with immediate data");
    std::memset(a.memory.data(), 7, 16);
    expect(partly, 3, a.Request(IBV_WR_SEND, &source, 1), "a Send that ends where the second element's region does");
    EXPECT_EQ(b.memory[7], 7);
    EXPECT_EQ(b.memory[b.memory.size() - 1], 7);
  }
}

TEST_F(SelfConnected, MemoryThatBytesGoIntoIs) {
  for (const uint32_t length : {9u, 17u}) {  // of what the second element's region has, and of the third
    End a(context_), b(context_);
    ASSERT_NO_FATAL_FAILURE(Connect(a, b));
    ibv_sge partly[] = {{reinterpret_cast<uintptr_t>(b.memory.data()), 8, b.mr->lkey},
                        {reinterpret_cast<uintptr_t>(b.memory.data()), 8, length == 9 ? 0 : b.mr->lkey},
                        {0, 1024, 0}};
    ibv_recv_wr receive = {}, *bad = nullptr;
    receive.sg_list = partly;
    receive.num_sge = 3;
    ASSERT_EQ(ibv_post_recv(b.qp, &receive, &bad), 0);
    ASSERT_EQ(a.Send(0, length), 0);
    EXPECT_EQ(WaitForCompletion(b.cq).status, IBV_WC_LOC_PROT_ERR) << length;
    EXPECT_EQ(WaitForCompletion(a.cq).status, IBV_WC_REM_OP_ERR) << length;
  }
}

TEST_F(SelfConnected, TheRequestToBlameIsTheOneThatFailed) {
  End a(context_), b(context_);
  ASSERT_NO_FATAL_FAILURE(Connect(a, b));
  ExpectTheSecondToBeBlamed(a, b, IBV_WR_RDMA_WRITE);
}

TEST_F(SelfConnected, AReadBeforeTheRequestToBlameIsAnswered) {
  End a(context_), b(context_);
  ASSERT_NO_FATAL_FAILURE(Connect(a, b));
  ExpectTheSecondToBeBlamed(a, b, IBV_WR_RDMA_READ);
}

// The options of ibv_set_ece(3) turn it all off, whichever end asks for that.
TEST_F(SelfConnected, PlainIwarpIfOneEndHasNoUseForMore) {
  for (int plain : {1, 2, 3}) {
    End a(context_), b(context_);
    for (int end : {1, 2}) {
      if ((plain & end) == 0) continue;
      ibv_ece ece = {};
      ibv_qp* const qp = (end == 1 ? a : b).qp;
      ASSERT_EQ(ibv_query_ece(qp, &ece), 0);
      EXPECT_EQ(ece.vendor_id, static_cast<uint32_t>(WEFT_ECE_VENDOR_ID));
      EXPECT_EQ(ece.options, WEFT_ECE_INFINIBAND_SEMANTICS | WEFT_ECE_ATOMICS);
      ece.options = 0;
      ASSERT_EQ(ibv_set_ece(qp, &ece), 0);
      ASSERT_EQ(ibv_query_ece(qp, &ece), 0);
      EXPECT_EQ(ece.options, 0u);
    }
    ASSERT_NO_FATAL_FAILURE(Connect(a, b));
    ExpectMessage(a, b);
    ExpectMessage(b, a);
    ibv_sge element = a.Element(0, 8);
    ASSERT_EQ(a.Post(a.Request(IBV_WR_RDMA_READ, &element, 1, &b, 64)), 0);
    EXPECT_EQ(WaitForCompletion(a.cq).status, IBV_WC_SUCCESS);
    ASSERT_EQ(a.Send(0, 8), 0);
    EXPECT_EQ(WaitForCompletion(a.cq).status, IBV_WC_SUCCESS) << "nobody waits for a receive at " << plain;
  }
}

// RFC 7306 has them for any stream. What stands behind one finds it carried out.
TEST_F(SelfConnected, PlainIwarpHasAtomicsAndNoImmediateData) {
  End a(context_), b(context_);
  ibv_ece ece = {.vendor_id = WEFT_ECE_VENDOR_ID, .options = WEFT_ECE_ATOMICS, .comp_mask = 0};
  ASSERT_EQ(ibv_set_ece(a.qp, &ece), 0);
  ASSERT_NO_FATAL_FAILURE(Connect(a, b));
  auto* value = reinterpret_cast<uint64_t*>(b.memory.data());
  auto* found = reinterpret_cast<uint64_t*>(a.memory.data() + 8);
  ibv_sge element = a.Element(8, 8);
  ibv_send_wr wr = a.Request(IBV_WR_ATOMIC_FETCH_AND_ADD, &element, 1);
  wr.wr.atomic.remote_addr = reinterpret_cast<uintptr_t>(value);
  wr.wr.atomic.rkey = b.mr->rkey;
  wr.wr.atomic.compare_add = 3;
  for (uint64_t i = 0; i < 100; ++i) {
    *value = i;
    ASSERT_EQ(b.Receive(64, 8), 0);
    ASSERT_EQ(a.Post(wr), 0);
    ASSERT_EQ(a.Send(128, 8), 0);
    const ibv_wc received = WaitForCompletion(b.cq);
    EXPECT_EQ(received.status, IBV_WC_SUCCESS);
    EXPECT_EQ(*value, i + 3);
    EXPECT_EQ(WaitForCompletion(a.cq).opcode, IBV_WC_FETCH_ADD);
    EXPECT_EQ(*found, i);
    EXPECT_EQ(WaitForCompletion(a.cq).opcode, IBV_WC_SEND);
  }
  for (ibv_qp* qp : {a.qp, b.qp}) {
    ASSERT_EQ(ibv_query_ece(qp, &ece), 0);
    EXPECT_EQ(ece.options, WEFT_ECE_ATOMICS) << "what was agreed on";
  }
  wr.wr.atomic.remote_addr += 8 * b.memory.size();
  ASSERT_EQ(a.Post(wr), 0);
  EXPECT_EQ(WaitForCompletion(a.cq).status, IBV_WC_REM_ACCESS_ERR);

  // Without them at one end it has none.
  End c(context_), d(context_), e(context_), f(context_);
  ece.options = 0;
  ASSERT_EQ(ibv_set_ece(f.qp, &ece), 0);
  ASSERT_NO_FATAL_FAILURE(Connect(e, f));
  ExpectMessage(e, f);
  ASSERT_EQ(ibv_query_ece(e.qp, &ece), 0);
  EXPECT_EQ(ece.options, 0u);
  ibv_sge word = e.Element(8, 8);
  wr = e.Request(IBV_WR_ATOMIC_FETCH_AND_ADD, &word, 1);
  wr.wr.atomic.remote_addr = reinterpret_cast<uintptr_t>(f.memory.data());
  wr.wr.atomic.rkey = f.mr->rkey;
  ASSERT_EQ(e.Post(wr), 0);
  EXPECT_EQ(WaitForCompletion(e.cq).status, IBV_WC_LOC_QP_OP_ERR);

  ece.options = WEFT_ECE_ATOMICS;
  ASSERT_EQ(ibv_set_ece(c.qp, &ece), 0);
  ASSERT_NO_FATAL_FAILURE(Connect(c, d));
  ibv_sge data = c.Element(0, 8);
  ibv_send_wr immediate = c.Request(IBV_WR_RDMA_WRITE_WITH_IMM, &data, 1, &d, 0);
  ASSERT_EQ(c.Post(immediate), 0);
  EXPECT_EQ(WaitForCompletion(c.cq).status, IBV_WC_LOC_QP_OP_ERR);
}

TEST_F(SelfConnected, ConnectionOptionsThatMakeNoSenseAreRefused) {
  End a(context_), b(context_);
  ibv_ece ece = {.vendor_id = WEFT_ECE_VENDOR_ID + 1, .options = 0, .comp_mask = 0};
  EXPECT_EQ(ibv_set_ece(a.qp, &ece), EINVAL) << "another vendor's";
  ece = {.vendor_id = WEFT_ECE_VENDOR_ID, .options = ~0u, .comp_mask = 1};
  EXPECT_EQ(ibv_set_ece(a.qp, &ece), EINVAL);
  ece.comp_mask = 0;
  EXPECT_EQ(ibv_set_ece(a.qp, &ece), 0);
  EXPECT_EQ(ece.options, WEFT_ECE_INFINIBAND_SEMANTICS | WEFT_ECE_ATOMICS) << "what there is of it";
  ASSERT_NO_FATAL_FAILURE(Connect(a, b));
  ece.options = 0;
  EXPECT_EQ(ibv_set_ece(a.qp, &ece), EINVAL) << "too late";
  End unreliable(context_, IBV_QPT_UC);
  ece.options = WEFT_ECE_INFINIBAND_SEMANTICS;
  EXPECT_EQ(ibv_set_ece(unreliable.qp, &ece), 0);
  EXPECT_EQ(ece.options, 0u);
}

TEST_F(SelfConnected, TheQueuePairsAccessFlagsHold) {
  End a(context_), b(context_);
  ibv_qp_attr only_write = {};
  only_write.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  ASSERT_EQ(ibv_modify_qp(b.qp, &only_write, IBV_QP_ACCESS_FLAGS), 0);
  ASSERT_NO_FATAL_FAILURE(Connect(a, b));
  ibv_sge element = a.Element(0, 8);
  ASSERT_EQ(a.Post(a.Request(IBV_WR_RDMA_WRITE, &element, 1, &b, 0)), 0);
  EXPECT_EQ(WaitForCompletion(a.cq).status, IBV_WC_SUCCESS);
  ASSERT_EQ(a.Post(a.Request(IBV_WR_RDMA_READ, &element, 1, &b, 0)), 0);
  EXPECT_EQ(WaitForCompletion(a.cq).status, IBV_WC_REM_ACCESS_ERR);
}

TEST_F(SelfConnected, AnUnreliableConnectionDropsWhatFindsNoReceive) {
  End a(context_, IBV_QPT_UC), b(context_, IBV_QPT_UC);
  constexpr int kUcToRtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  ASSERT_EQ(a.ToRtr(b, kUcToRtr), 0);
  ASSERT_EQ(b.ToRtr(a, kUcToRtr), 0);
  ASSERT_EQ(a.ToRts(0, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
  ASSERT_EQ(b.ToRts(0, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
  a.memory[0] = 1;
  ASSERT_EQ(a.Send(0, 1), 0);
  EXPECT_EQ(WaitForCompletion(a.cq).status, IBV_WC_SUCCESS);
  ibv_sge element = a.Element(0, 1);  // with the wrong key: dropped as well
  ibv_send_wr write = a.Request(IBV_WR_RDMA_WRITE, &element, 1, &b, 0);
  write.wr.rdma.rkey ^= 0x100;
  ASSERT_EQ(a.Post(write), 0);
  EXPECT_EQ(WaitForCompletion(a.cq).status, IBV_WC_SUCCESS);
  // Something that surely comes behind both.
  a.memory[0] = 2;
  write = a.Request(IBV_WR_RDMA_WRITE, &element, 1, &b, 9);
  ASSERT_EQ(a.Post(write), 0);
  while (static_cast<volatile uint8_t*>(b.memory.data())[9] != 2) std::this_thread::yield();
  ASSERT_EQ(b.Receive(64, 1), 0);
  a.memory[0] = 3;
  ASSERT_EQ(a.Send(0, 1), 0);
  EXPECT_EQ(WaitForCompletion(b.cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(b.memory[64], 3);
}

TEST_F(SelfConnected, AnUnreliableConnectionDoesNotMissItsPeer) {
  End a(context_, IBV_QPT_UC);
  auto b = std::make_unique<End>(context_, IBV_QPT_UC);
  constexpr int kUcToRtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  ASSERT_EQ(a.ToRtr(*b, kUcToRtr), 0);
  ASSERT_EQ(b->ToRtr(a, kUcToRtr), 0);
  ASSERT_EQ(a.ToRts(0, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
  ASSERT_EQ(b->ToRts(0, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
  ExpectMessage(a, *b);
  b.reset();
  ASSERT_TRUE(AwaitDisconnection(a.qp));
  for (int i = 0; i < 40; ++i) {
    ASSERT_EQ(a.Send(0, 8), 0);
    EXPECT_EQ(WaitForCompletion(a.cq).status, IBV_WC_SUCCESS);
  }
  EXPECT_EQ(a.State(), IBV_QPS_RTS);
}

TEST_F(SelfConnected, DrainedSendQueuesSaySo) {
  End a(context_), b(context_);
  ASSERT_NO_FATAL_FAILURE(Connect(a, b));
  ExpectMessage(a, b);
  ibv_qp_attr drain = {};
  drain.qp_state = IBV_QPS_SQD;
  drain.en_sqd_async_notify = 1;
  ASSERT_EQ(ibv_modify_qp(a.qp, &drain, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
  ibv_async_event event;
  do {
    ASSERT_EQ(ibv_get_async_event(context_, &event), 0);
    ibv_ack_async_event(&event);
  } while (event.event_type == IBV_EVENT_COMM_EST);
  EXPECT_EQ(event.event_type, IBV_EVENT_SQ_DRAINED);
  EXPECT_EQ(event.element.qp, a.qp);
  ASSERT_EQ(b.Receive(64, 1), 0);
  ASSERT_EQ(a.Send(0, 1), 0);  // waits
  // Were it sent, it would be in front of the answer to this message on the way to `b`.
  ASSERT_EQ(a.Receive(128, 32), 0);
  ASSERT_EQ(b.Send(0, 32), 0);
  ibv_wc wc = WaitForCompletion(b.cq);
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.opcode, IBV_WC_SEND);
  EXPECT_EQ(WaitForCompletion(a.cq).opcode, IBV_WC_RECV);
  EXPECT_EQ(ibv_poll_cq(b.cq, 1, &wc), 0);
  ASSERT_EQ(a.ToState(IBV_QPS_RTS), 0);
  EXPECT_EQ(WaitForCompletion(b.cq).status, IBV_WC_SUCCESS);
}

}  // namespace
}  // namespace weft::verbs
