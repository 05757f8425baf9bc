// Extended reliable connections through rdma_cm, over the real RNIC on loopback: what rdma_xserver and rdma_xclient do.
#include "cm/rdmacm_testing.h"

namespace weft::cm::public_api {
namespace {

// rdma_getaddrinfo's list for queue pairs of one type in the port space IB.
struct XrcInfo {
  XrcInfo(ibv_qp_type type, const std::string& port, int flags = 0) {
    rdma_addrinfo hints{};
    hints.ai_flags = flags;
    hints.ai_port_space = RDMA_PS_IB;
    hints.ai_qp_type = type;
    EXPECT_EQ(rdma_getaddrinfo("127.0.0.1", port.c_str(), &hints, &list), 0);
  }
  ~XrcInfo() { rdma_freeaddrinfo(list); }

  rdma_addrinfo* list = nullptr;
};

TEST(RdmacmXrc, ASendReachesTheSharedReceiveQueueThatItNames) {
  XrcInfo passive(IBV_QPT_XRC_RECV, "0", RAI_PASSIVE);
  rdma_cm_id* listener = nullptr;
  ibv_qp_init_attr attributes{};
  attributes.cap = {0, 1, 0, 1, 0};
  ASSERT_EQ(rdma_create_ep(&listener, passive.list, nullptr, &attributes), 0) << strerror(errno);
  ASSERT_EQ(rdma_listen(listener, 0), 0) << strerror(errno);
  const std::string port = std::to_string(ntohs(rdma_get_src_port(listener)));

  std::string received(16, '\0');
  std::thread serving([&] {
    rdma_cm_id* server = nullptr;
    ASSERT_EQ(rdma_get_request(listener, &server), 0) << strerror(errno);
    EXPECT_EQ(server->qp_type, IBV_QPT_XRC_RECV);
    ASSERT_NE(server->qp, nullptr);
    ibv_srq_init_attr shared{nullptr, {1, 1, 0}};
    ASSERT_EQ(rdma_create_srq(server, nullptr, &shared), 0) << strerror(errno);
    ASSERT_NE(server->recv_cq, nullptr);
    uint32_t number = 0;
    ASSERT_EQ(ibv_get_srq_num(server->srq, &number), 0);
    ibv_mr* mr = rdma_reg_msgs(server, received.data(), received.size());
    ASSERT_NE(mr, nullptr) << strerror(errno);
    ASSERT_EQ(rdma_post_recv(server, nullptr, received.data(), received.size(), mr), 0);
    const uint32_t told = htonl(number);
    rdma_conn_param parameters = WithData({reinterpret_cast<const char*>(&told), sizeof told});
    ASSERT_EQ(rdma_accept(server, &parameters), 0) << strerror(errno);
    ibv_wc completion{};
    ASSERT_EQ(rdma_get_recv_comp(server, &completion), 1);
    EXPECT_EQ(completion.status, IBV_WC_SUCCESS);
    EXPECT_EQ(completion.byte_len, received.size());
    EXPECT_EQ(rdma_disconnect(server), 0) << strerror(errno);
    EXPECT_EQ(rdma_dereg_mr(mr), 0);
    rdma_destroy_ep(server);
  });

  XrcInfo active(IBV_QPT_XRC_SEND, port);
  rdma_cm_id* client = nullptr;
  attributes = {};
  attributes.cap = {1, 0, 1, 0, 16};
  attributes.sq_sig_all = 1;
  ASSERT_EQ(rdma_create_ep(&client, active.list, nullptr, &attributes), 0) << strerror(errno);
  ASSERT_EQ(rdma_connect(client, nullptr), 0) << strerror(errno);
  const std::string told = DataOf(client->event);
  ASSERT_GE(told.size(), sizeof(uint32_t));
  uint32_t number;
  memcpy(&number, told.data(), sizeof number);

  std::string message = "sixteen bytes.. ";
  ibv_sge element{reinterpret_cast<uintptr_t>(message.data()), 16, 0};
  ibv_send_wr request{}, *bad = nullptr;
  request.sg_list = &element;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_INLINE;
  request.qp_type.xrc.remote_srqn = ntohl(number);
  ASSERT_EQ(ibv_post_send(client->qp, &request, &bad), 0);
  ibv_wc completion{};
  ASSERT_EQ(rdma_get_send_comp(client, &completion), 1);
  EXPECT_EQ(completion.status, IBV_WC_SUCCESS);
  serving.join();
  EXPECT_EQ(received, message);
  rdma_disconnect(client);
  rdma_destroy_ep(client);
  rdma_destroy_ep(listener);
}

TEST(RdmacmXrc, OnlyThePortSpaceIbHasIt) {
  XrcInfo info(IBV_QPT_XRC_SEND, "1");
  info.list->ai_port_space = RDMA_PS_TCP;
  rdma_cm_id* id = nullptr;
  EXPECT_EQ(rdma_create_ep(&id, info.list, nullptr, nullptr), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST(RdmacmXrc, CompletionsOutliveTheQueuePairWhileTheSharedReceiveQueueUsesThem) {
  XrcInfo active(IBV_QPT_XRC_RECV, "1");
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(rdma_create_ep(&id, active.list, nullptr, nullptr), 0) << strerror(errno);
  ibv_qp_init_attr attributes{};
  attributes.qp_type = IBV_QPT_XRC_RECV;
  ASSERT_EQ(rdma_create_qp(id, nullptr, &attributes), 0) << strerror(errno);
  ibv_srq_init_attr shared{nullptr, {4, 1, 0}};
  ASSERT_EQ(rdma_create_srq(id, nullptr, &shared), 0) << strerror(errno);
  rdma_destroy_qp(id);
  EXPECT_NE(id->recv_cq, nullptr);
  attributes = {};
  attributes.qp_type = IBV_QPT_XRC_SEND;
  attributes.cap.max_send_wr = 1u << 30;
  EXPECT_EQ(rdma_create_qp(id, nullptr, &attributes), -1);
  EXPECT_NE(id->recv_cq, nullptr) << "a queue pair that cannot be made";
  rdma_destroy_srq(id);
  EXPECT_EQ(id->recv_cq, nullptr);
  rdma_destroy_ep(id);
}

}  // namespace
}  // namespace weft::cm::public_api
