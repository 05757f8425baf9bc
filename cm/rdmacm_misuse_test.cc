// Wrong calls, options, and what stands alone, through the public API.
#include "cm/rdmacm_testing.h"

namespace weft::cm::public_api {
namespace {

TEST(RdmacmMisuse, CallsInTheWrongStateAreInvalid) {
  Channel channel;
  rdma_cm_id* id = NewId(channel);
  rdma_conn_param parameters{};
  EXPECT_EQ(rdma_connect(id, &parameters), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_accept(id, &parameters), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_reject(id, nullptr, 0), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_disconnect(id), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_establish(id), -1);
  EXPECT_EQ(errno, EINVAL);
  ibv_qp_init_attr attributes = SmallQueuePair();
  EXPECT_EQ(rdma_create_qp(id, nullptr, &attributes), -1) << "bound to no device";
  EXPECT_EQ(errno, EINVAL);
  ibv_qp_attr attr{};
  int mask;
  EXPECT_EQ(rdma_init_qp_attr(id, &attr, &mask), -1);
  EXPECT_EQ(errno, EINVAL);
  Resolve(channel, id, "127.0.0.1", htons(9));
  EXPECT_EQ(rdma_connect(id, &parameters), -1) << "without a queue pair";
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_listen(id, 1), -1);
  EXPECT_EQ(errno, EINVAL);
  DestroyAll({id});
}

TEST(RdmacmMisuse, NullPointersAreInvalid) {
  EXPECT_EQ(rdma_create_id(nullptr, nullptr, nullptr, RDMA_PS_TCP), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_destroy_id(nullptr), -1);
  EXPECT_EQ(rdma_get_cm_event(nullptr, nullptr), -1);
  EXPECT_EQ(rdma_ack_cm_event(nullptr), -1);
  EXPECT_EQ(errno, EINVAL);
  rdma_destroy_event_channel(nullptr);
  rdma_freeaddrinfo(nullptr);
  rdma_free_devices(nullptr);
}

TEST(RdmacmMisuse, OtherPortSpacesAreRefused) {
  Channel channel;
  rdma_cm_id* id = nullptr;
  for (rdma_port_space space : {RDMA_PS_UDP, RDMA_PS_IB}) {
    if (IwarpPersona()) {
      EXPECT_EQ(rdma_create_id(channel.get(), &id, nullptr, space), -1);
      EXPECT_EQ(errno, EOPNOTSUPP);
    } else {
      ASSERT_EQ(rdma_create_id(channel.get(), &id, nullptr, space), 0);
      DestroyAll({id});
    }
  }
  EXPECT_EQ(rdma_create_id(channel.get(), &id, nullptr, RDMA_PS_IPOIB), -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(rdma_create_id(channel.get(), &id, nullptr, static_cast<rdma_port_space>(7)), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST(RdmacmMisuse, MoreReadsThanTheDeviceHasAreInvalid) {
  Channel channel;
  rdma_cm_id* id = NewId(channel);
  Resolve(channel, id, "127.0.0.1", htons(9));
  MakeQueuePair(id);
  ibv_device_attr limits{};
  ASSERT_EQ(ibv_query_device(id->verbs, &limits), 0);
  ASSERT_LT(limits.max_qp_rd_atom, 254);
  rdma_conn_param parameters{};
  parameters.responder_resources = static_cast<uint8_t>(limits.max_qp_rd_atom + 1);
  EXPECT_EQ(rdma_connect(id, &parameters), -1);
  EXPECT_EQ(errno, EINVAL);
  parameters = {};
  parameters.initiator_depth = static_cast<uint8_t>(limits.max_qp_init_rd_atom + 1);
  EXPECT_EQ(rdma_connect(id, &parameters), -1);
  EXPECT_EQ(errno, EINVAL);
  DestroyAll({id});
}

TEST(RdmacmMisuse, OneQueuePairOfTheRightDevice) {
  Channel channel;
  rdma_cm_id* id = NewId(channel);
  Resolve(channel, id, "127.0.0.1", htons(9));
  MakeQueuePair(id);
  ibv_qp_init_attr attributes = SmallQueuePair();
  EXPECT_EQ(rdma_create_qp(id, nullptr, &attributes), -1);
  EXPECT_EQ(errno, EINVAL);
  rdma_destroy_qp(id);
  EXPECT_EQ(id->qp, nullptr);
  EXPECT_EQ(id->send_cq, nullptr);
  EXPECT_EQ(id->recv_cq_channel, nullptr);
  MakeQueuePair(id);
  DestroyAll({id});
}

TEST(RdmacmMisuse, AbandonedClientGetsItsWorkFlushed) {
  Channel channel;
  rdma_cm_id* id = NewId(channel);
  Resolve(channel, id, "127.0.0.1", htons(9));
  MakeQueuePair(id);
  char buffer[8];
  ibv_mr* mr = rdma_reg_msgs(id, buffer, sizeof buffer);
  ASSERT_EQ(rdma_post_recv(id, nullptr, buffer, sizeof buffer, mr), 0);
  EXPECT_EQ(rdma_disconnect(id), -1) << "never connected";
  ibv_wc completion{};
  EXPECT_EQ(rdma_get_recv_comp(id, &completion), 1);
  EXPECT_EQ(completion.status, IBV_WC_WR_FLUSH_ERR);
  rdma_dereg_mr(mr);
  DestroyAll({id});
}

// --- the rest ---

TEST(RdmacmOptions, KnownOptionsAreCheckedAndUnknownOnesRefused) {
  Channel channel;
  rdma_cm_id* id = NewId(channel);
  uint8_t byte = 8;
  int integer = 1;
  EXPECT_EQ(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &byte, sizeof byte), 0);
  EXPECT_EQ(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &integer, sizeof integer), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &byte, sizeof byte), 0);
  byte = 32;
  EXPECT_EQ(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &byte, sizeof byte), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_set_option(id, RDMA_OPTION_ID, 77, &integer, sizeof integer), -1);
  EXPECT_EQ(errno, ENOSYS);
  EXPECT_EQ(rdma_set_option(id, 9, RDMA_OPTION_ID_TOS, &byte, sizeof byte), -1);
  EXPECT_EQ(errno, ENOSYS);
  DestroyAll({id});
}

TEST(RdmacmOptions, MulticastAndEce) {
  Channel channel;
  rdma_cm_id* id = NewId(channel);
  sockaddr_storage group = Address("239.0.0.1");
  EXPECT_EQ(rdma_join_multicast(id, Raw(group), nullptr), -1) << "an id of stream connections";
  EXPECT_EQ(errno, IwarpPersona() ? EOPNOTSUPP : EINVAL);
  EXPECT_EQ(rdma_leave_multicast(id, Raw(group)), -1);
  EXPECT_EQ(errno, IwarpPersona() ? EOPNOTSUPP : EADDRNOTAVAIL);
  ibv_ece ece{1, 2, 3};
  EXPECT_EQ(rdma_set_local_ece(id, &ece), 0);
  EXPECT_EQ(rdma_get_remote_ece(id, &ece), 0);
  EXPECT_EQ(ece.vendor_id, 0u);
  DestroyAll({id});
}

TEST(RdmacmQueuePairs, InitAttributesBringAQueuePairToInit) {
  Channel channel;
  rdma_cm_id* id = NewId(channel);
  Resolve(channel, id, "127.0.0.1", htons(9));
  ibv_cq* cq = ibv_create_cq(id->verbs, 8, nullptr, nullptr, 0);
  ibv_qp_init_attr init = SmallQueuePair();
  init.send_cq = init.recv_cq = cq;
  ibv_qp* qp = ibv_create_qp(id->pd, &init);
  ASSERT_NE(qp, nullptr);
  for (ibv_qp_state state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
    ibv_qp_attr attributes{};
    int mask = 0;
    attributes.qp_state = state;
    ASSERT_EQ(rdma_init_qp_attr(id, &attributes, &mask), 0);
    EXPECT_EQ(ibv_modify_qp(qp, &attributes, mask), 0) << "asked for state " << state;
  }
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
  DestroyAll({id});
}

TEST(RdmacmDevices, ContextsAreTheOnesThatIdentifiersShow) {
  int count = 0;
  ibv_context** list = rdma_get_devices(&count);
  ASSERT_NE(list, nullptr);
  ASSERT_GT(count, 0);
  EXPECT_EQ(list[count], nullptr);
  Channel channel;
  rdma_cm_id* id = NewId(channel);
  Resolve(channel, id, "127.0.0.1", htons(9));
  EXPECT_NE(std::find(list, list + count, id->verbs), list + count);
  rdma_free_devices(list);
  DestroyAll({id});
}

TEST(RdmacmAddrinfo, ActiveAndPassive) {
  Info active("127.0.0.1", "7471");
  ASSERT_NE(active.list, nullptr);
  EXPECT_EQ(active.list->ai_family, AF_INET);
  EXPECT_EQ(active.list->ai_qp_type, IBV_QPT_RC);
  EXPECT_EQ(active.list->ai_port_space, RDMA_PS_TCP);
  EXPECT_EQ(active.list->ai_src_len, 0u);
  ASSERT_EQ(active.list->ai_dst_len, sizeof(sockaddr_in));
  EXPECT_EQ(reinterpret_cast<sockaddr_in*>(active.list->ai_dst_addr)->sin_port, htons(7471));
  EXPECT_EQ(active.list->ai_next, nullptr);
  Info passive(nullptr, "7471", RAI_PASSIVE);
  ASSERT_NE(passive.list, nullptr);
  EXPECT_TRUE(passive.list->ai_flags & RAI_PASSIVE);
  EXPECT_NE(passive.list->ai_src_len, 0u);
  EXPECT_EQ(passive.list->ai_dst_len, 0u);
}

TEST(RdmacmAddrinfo, SourceOfTheHintsComesAlong) {
  sockaddr_storage source = Address("127.0.0.3");
  rdma_addrinfo hints{};
  hints.ai_src_addr = Raw(source);
  hints.ai_src_len = sizeof(sockaddr_in);
  rdma_addrinfo* list = nullptr;
  ASSERT_EQ(rdma_getaddrinfo("127.0.0.1", "1", &hints, &list), 0);
  ASSERT_EQ(list->ai_src_len, sizeof(sockaddr_in));
  EXPECT_EQ(memcmp(list->ai_src_addr, &source, sizeof(sockaddr_in)), 0);
  rdma_freeaddrinfo(list);
}

TEST(RdmacmAddrinfo, Errors) {
  rdma_addrinfo* list = nullptr;
  EXPECT_EQ(rdma_getaddrinfo(nullptr, nullptr, nullptr, &list), -1);
  EXPECT_EQ(errno, EINVAL);
  rdma_addrinfo hints{};
  hints.ai_flags = RAI_NUMERICHOST;
  EXPECT_EQ(rdma_getaddrinfo("no.such.host", "1", &hints, &list), EAI_NONAME);
  hints.ai_flags = 1 << 20;
  EXPECT_EQ(rdma_getaddrinfo("127.0.0.1", "1", &hints, &list), EAI_BADFLAGS);
  hints = {};
  hints.ai_qp_type = IBV_QPT_UD;
  hints.ai_port_space = RDMA_PS_TCP;
  EXPECT_EQ(rdma_getaddrinfo("127.0.0.1", "1", &hints, &list), EAI_SOCKTYPE);
}

TEST(RdmacmStrings, EveryEventHasAName) {
  constexpr int kLast = 19;  // RDMA_CM_EVENT_INTERNAL of rdma-core 60
  for (int event = RDMA_CM_EVENT_ADDR_RESOLVED; event <= kLast; ++event) {
    EXPECT_EQ(std::string(rdma_event_str(static_cast<rdma_cm_event_type>(event))).rfind("RDMA_CM_EVENT_", 0), 0u);
  }
  EXPECT_STREQ(rdma_event_str(static_cast<rdma_cm_event_type>(kLast + 1)), "UNKNOWN EVENT");
}

}  // namespace
}  // namespace weft::cm::public_api
