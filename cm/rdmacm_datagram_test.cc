// The port spaces of the roce persona over the real RNIC on loopback: unreliable datagrams (UDP), multicast groups, and IB.
#include "cm/rdmacm_testing.h"

namespace weft::cm::public_api {
namespace {

constexpr uint32_t kGrh = 40;

rdma_cm_id* DatagramId(Channel& channel, void* context = nullptr) {
  rdma_cm_id* id = nullptr;
  EXPECT_EQ(rdma_create_id(channel.get(), &id, context, RDMA_PS_UDP), 0) << strerror(errno);
  return id;
}

rdma_cm_id* DatagramListener(Channel& channel, const std::string& host, uint16_t port_network_order = 0) {
  rdma_cm_id* id = DatagramId(channel);
  sockaddr_storage address = Address(host, port_network_order);
  EXPECT_EQ(rdma_bind_addr(id, Raw(address)), 0) << strerror(errno);
  EXPECT_EQ(rdma_listen(id, 0), 0) << strerror(errno);
  return id;
}

void MakeDatagramQueuePair(rdma_cm_id* id) {
  ibv_qp_init_attr attributes = SmallQueuePair();
  attributes.qp_type = IBV_QPT_UD;
  ASSERT_EQ(rdma_create_qp(id, nullptr, &attributes), 0) << strerror(errno);
}

std::string DatagramData(const rdma_cm_event* event) {
  const auto& ud = event->param.ud;
  return std::string(static_cast<const char*>(ud.private_data), ud.private_data_len);
}

// One datagram from `from` by `ah`, received by `to`.
void SendDatagram(rdma_cm_id* from, rdma_cm_id* to, ibv_ah* ah, uint32_t number, uint32_t qkey, ibv_wc* received) {
  std::array<char, 16> out{"datagram"};
  std::array<char, 100> in{};
  ibv_mr* out_mr = rdma_reg_msgs(from, out.data(), out.size());
  ibv_mr* in_mr = rdma_reg_msgs(to, in.data(), in.size());
  ASSERT_EQ(rdma_post_recv(to, nullptr, in.data(), in.size(), in_mr), 0);
  ASSERT_EQ(rdma_post_ud_send(from, nullptr, out.data(), out.size(), out_mr, 0, ah, number), 0) << strerror(errno);
  EXPECT_EQ(qkey, uint32_t{RDMA_UDP_QKEY});
  ibv_wc completion{};
  EXPECT_EQ(rdma_get_send_comp(from, &completion), 1);
  EXPECT_EQ(rdma_get_recv_comp(to, received), 1);
  EXPECT_EQ(received->status, IBV_WC_SUCCESS);
  EXPECT_EQ(received->byte_len, kGrh + out.size());
  EXPECT_STREQ(in.data() + kGrh, out.data());
  rdma_dereg_mr(out_mr);
  rdma_dereg_mr(in_mr);
}

class RdmacmDatagram : public testing::TestWithParam<std::string> {};

TEST_P(RdmacmDatagram, LookUpFindsTheQueuePairThatTheListenerNames) {
  Channel servers, clients;
  rdma_cm_id* listener = DatagramListener(servers, GetParam() == "127.0.0.1" ? "0.0.0.0" : "::");
  rdma_cm_id* client = DatagramId(clients);
  Resolve(clients, client, GetParam(), rdma_get_src_port(listener));
  MakeDatagramQueuePair(client);
  rdma_conn_param parameters = WithData("which queue pair?");
  ASSERT_EQ(rdma_connect(client, &parameters), 0) << strerror(errno);

  rdma_cm_event* event = servers.Get();
  ASSERT_NE(event, nullptr);
  ASSERT_EQ(event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
  EXPECT_EQ(event->listen_id, listener);
  EXPECT_EQ(DatagramData(event), "which queue pair?");
  rdma_cm_id* server = event->id;
  EXPECT_EQ(server->qp_type, IBV_QPT_UD);
  rdma_ack_cm_event(event);
  MakeDatagramQueuePair(server);
  parameters = WithData("this one");
  ASSERT_EQ(rdma_accept(server, &parameters), 0) << strerror(errno);

  event = clients.Get();
  ASSERT_NE(event, nullptr);
  ASSERT_STREQ(rdma_event_str(event->event), "RDMA_CM_EVENT_ESTABLISHED");
  EXPECT_EQ(DatagramData(event), "this one");
  rdma_ud_param ud = event->param.ud;
  rdma_ack_cm_event(event);
  EXPECT_EQ(ud.qp_num, server->qp->qp_num);
  EXPECT_FALSE(servers.Readable(50)) << "the side that accepts gets no event";
  ibv_ah* ah = ibv_create_ah(client->pd, &ud.ah_attr);
  ASSERT_NE(ah, nullptr);
  ibv_wc received{};
  SendDatagram(client, server, ah, ud.qp_num, ud.qkey, &received);
  EXPECT_EQ(received.src_qp, client->qp->qp_num);
  EXPECT_EQ(ibv_destroy_ah(ah), 0);
  DestroyAll({client, server, listener});
}

INSTANTIATE_TEST_SUITE_P(Families, RdmacmDatagram, testing::Values("127.0.0.1", "::1"));

TEST(RdmacmDatagramErrors, RejectionIsUnreachableWithTheStatusOfTheReply) {
  Channel servers, clients;
  rdma_cm_id* listener = DatagramListener(servers, "127.0.0.1");
  rdma_cm_id* client = DatagramId(clients);
  Resolve(clients, client, "127.0.0.1", rdma_get_src_port(listener));
  rdma_conn_param parameters = WithData("x");
  ASSERT_EQ(rdma_connect(client, &parameters), 0) << "a look-up needs no queue pair";
  rdma_cm_id* request = NextRequest(servers, listener);
  ASSERT_EQ(rdma_reject(request, "no", 2), 0);
  rdma_cm_event* event = clients.Get();
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(event->event, RDMA_CM_EVENT_UNREACHABLE);
  EXPECT_EQ(event->status, 2);
  EXPECT_EQ(DatagramData(event), "no");
  rdma_ack_cm_event(event);
  DestroyAll({client, request, listener});
}

TEST(RdmacmDatagramErrors, NobodyListensIsUnreachable) {
  Channel clients;
  rdma_cm_id* unused = DatagramId(clients);
  sockaddr_storage address = Address("127.0.0.1");
  ASSERT_EQ(rdma_bind_addr(unused, Raw(address)), 0);
  const uint16_t port = rdma_get_src_port(unused);
  ASSERT_EQ(rdma_destroy_id(unused), 0);
  rdma_cm_id* client = DatagramId(clients);
  Resolve(clients, client, "127.0.0.1", port);
  ASSERT_EQ(rdma_connect(client, nullptr), 0);
  clients.Expect(RDMA_CM_EVENT_UNREACHABLE, client, 1);  // IB_SIDR_UNSUPPORTED, of the kernel's rdma/ib_cm.h
  DestroyAll({client});
}

TEST(RdmacmDatagramErrors, PortInUseIsRefusedAndIsNotThatOfTcp) {
  Channel channel;
  // Somebody else on the machine may have the port of TCP that has the number.
  bool tcp_was_free = false;
  for (int i = 0; i < 20 && !tcp_was_free; ++i) {
    rdma_cm_id* listener = DatagramListener(channel, "127.0.0.1");
    rdma_cm_id* second = DatagramId(channel);
    sockaddr_storage address = Address("127.0.0.1", rdma_get_src_port(listener));
    EXPECT_EQ(rdma_bind_addr(second, Raw(address)), -1);
    EXPECT_EQ(errno, EADDRINUSE);
    rdma_cm_id* tcp = NewId(channel);
    tcp_was_free = rdma_bind_addr(tcp, Raw(address)) == 0;
    DestroyAll({tcp, second, listener});
  }
  EXPECT_TRUE(tcp_was_free) << "a port space of its own";
}

TEST(RdmacmDatagramErrors, QueuePairMustBeOfTheIdentifiersType) {
  Channel channel;
  rdma_cm_id* id = DatagramId(channel);
  sockaddr_storage address = Address("127.0.0.1");
  ASSERT_EQ(rdma_bind_addr(id, Raw(address)), 0);
  ibv_qp_init_attr attributes = SmallQueuePair();
  EXPECT_EQ(rdma_create_qp(id, nullptr, &attributes), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_disconnect(id), -1) << "nothing is connected";
  DestroyAll({id});
}

TEST(RdmacmDatagramEndpoints, SynchronousIdentifiersWaitForTheAnswer) {
  rdma_addrinfo hints{}, *list = nullptr;
  hints.ai_flags = RAI_PASSIVE;
  hints.ai_port_space = RDMA_PS_UDP;
  ASSERT_EQ(rdma_getaddrinfo("127.0.0.1", "0", &hints, &list), 0);
  rdma_cm_id* listener = nullptr;
  ibv_qp_init_attr attributes = SmallQueuePair();
  ASSERT_EQ(rdma_create_ep(&listener, list, nullptr, &attributes), 0) << strerror(errno);
  rdma_freeaddrinfo(list);
  ASSERT_EQ(rdma_listen(listener, 0), 0);
  const std::string port = std::to_string(ntohs(rdma_get_src_port(listener)));
  rdma_cm_id* server = nullptr;
  std::thread accepting([&] {
    ASSERT_EQ(rdma_get_request(listener, &server), 0) << strerror(errno);
    ASSERT_EQ(rdma_accept(server, nullptr), 0) << strerror(errno);
  });
  hints.ai_flags = 0;
  ASSERT_EQ(rdma_getaddrinfo("127.0.0.1", port.c_str(), &hints, &list), 0);
  rdma_cm_id* client = nullptr;
  attributes = SmallQueuePair();
  ASSERT_EQ(rdma_create_ep(&client, list, nullptr, &attributes), 0) << strerror(errno);
  rdma_freeaddrinfo(list);
  ASSERT_EQ(rdma_connect(client, nullptr), 0) << strerror(errno);
  accepting.join();
  ASSERT_EQ(client->event->event, RDMA_CM_EVENT_ESTABLISHED);
  EXPECT_EQ(client->event->param.ud.qp_num, server->qp->qp_num);
  rdma_destroy_ep(client);
  rdma_destroy_ep(server);
  rdma_destroy_ep(listener);
}

TEST(RdmacmMulticast, JoinAttachesTheQueuePairWhenItsEventIsTaken) {
  Channel channel;
  rdma_cm_id *receiver = DatagramId(channel), *sender = DatagramId(channel);
  sockaddr_storage address = Address("127.0.0.1"), group = Address("239.9.8.7");
  int context = 0;
  for (rdma_cm_id* id : {receiver, sender}) {
    ASSERT_EQ(rdma_bind_addr(id, Raw(address)), 0);
    MakeDatagramQueuePair(id);
  }
  ASSERT_EQ(rdma_join_multicast(receiver, Raw(group), &context), 0) << strerror(errno);
  EXPECT_EQ(rdma_join_multicast(receiver, Raw(group), &context), -1);
  EXPECT_EQ(errno, EADDRINUSE);
  rdma_cm_event* event = channel.Get();
  ASSERT_NE(event, nullptr);
  ASSERT_STREQ(rdma_event_str(event->event), "RDMA_CM_EVENT_MULTICAST_JOIN");
  EXPECT_EQ(event->param.ud.private_data, &context);
  EXPECT_EQ(event->param.ud.qp_num, 0xffffffu);
  rdma_ack_cm_event(event);

  rdma_cm_join_mc_attr_ex send_only{RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
                                    RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER, Raw(group)};
  ASSERT_EQ(rdma_join_multicast_ex(sender, &send_only, nullptr), 0) << strerror(errno);
  event = channel.Get();
  ASSERT_NE(event, nullptr);
  ibv_ah* ah = ibv_create_ah(sender->pd, &event->param.ud.ah_attr);
  ASSERT_NE(ah, nullptr);
  const uint32_t qkey = event->param.ud.qkey;
  rdma_ack_cm_event(event);
  ibv_wc received{};
  SendDatagram(sender, receiver, ah, 0xffffff, qkey, &received);
  EXPECT_EQ(received.src_qp, sender->qp->qp_num);
  EXPECT_EQ(ibv_destroy_ah(ah), 0);

  EXPECT_EQ(ibv_destroy_qp(receiver->qp), EBUSY) << "attached";
  ASSERT_EQ(rdma_leave_multicast(receiver, Raw(group)), 0);
  EXPECT_EQ(rdma_leave_multicast(receiver, Raw(group)), -1);
  EXPECT_EQ(errno, EADDRNOTAVAIL);
  DestroyAll({receiver, sender});
}

TEST(RdmacmMulticast, DestroyingTheQueuePairLeavesItsGroups) {
  Channel channel;
  rdma_cm_id* id = DatagramId(channel);
  sockaddr_storage address = Address("127.0.0.1"), group = Address("239.9.8.6");
  ASSERT_EQ(rdma_bind_addr(id, Raw(address)), 0);
  MakeDatagramQueuePair(id);
  ASSERT_EQ(rdma_join_multicast(id, Raw(group), nullptr), 0);
  channel.Expect(RDMA_CM_EVENT_MULTICAST_JOIN, id);
  rdma_destroy_qp(id);
  EXPECT_EQ(id->qp, nullptr);
  EXPECT_EQ(rdma_destroy_id(id), 0);
}

TEST(RdmacmMulticast, WhatIsNoGroupIsRefused) {
  Channel channel;
  rdma_cm_id* id = DatagramId(channel);
  sockaddr_storage address = Address("127.0.0.1"), group = Address("239.9.8.5");
  EXPECT_EQ(rdma_join_multicast(id, Raw(group), nullptr), -1) << "not bound to a device";
  EXPECT_EQ(errno, EINVAL);
  ASSERT_EQ(rdma_bind_addr(id, Raw(address)), 0);
  EXPECT_EQ(rdma_join_multicast(id, Raw(address), nullptr), -1);
  EXPECT_EQ(errno, EINVAL);
  rdma_cm_id* tcp = NewId(channel);
  ASSERT_EQ(rdma_bind_addr(tcp, Raw(address)), 0);
  EXPECT_EQ(rdma_join_multicast(tcp, Raw(group), nullptr), -1) << "connected";
  EXPECT_EQ(errno, EINVAL);
  DestroyAll({id, tcp});
}

TEST(RdmacmPortSpaces, IbConnectsAsTcpDoes) {
  Channel channel;
  rdma_cm_id *listener = nullptr, *client = nullptr;
  ASSERT_EQ(rdma_create_id(channel.get(), &listener, nullptr, RDMA_PS_IB), 0);
  EXPECT_EQ(listener->qp_type, IBV_QPT_RC);
  sockaddr_storage address = Address("127.0.0.1");
  ASSERT_EQ(rdma_bind_addr(listener, Raw(address)), 0);
  ASSERT_EQ(rdma_listen(listener, 0), 0);
  Channel clients;
  ASSERT_EQ(rdma_create_id(clients.get(), &client, nullptr, RDMA_PS_IB), 0);
  Resolve(clients, client, "127.0.0.1", rdma_get_src_port(listener));
  MakeQueuePair(client);
  rdma_conn_param parameters = WithData("");
  ASSERT_EQ(rdma_connect(client, &parameters), 0);
  rdma_cm_id* server = NextRequest(channel, listener);
  MakeQueuePair(server);
  ASSERT_EQ(rdma_accept(server, &parameters), 0);
  clients.Expect(RDMA_CM_EVENT_ESTABLISHED, client);
  channel.Expect(RDMA_CM_EVENT_ESTABLISHED, server);
  SendAndReceive(client, server);
  DestroyAll({client, server, listener});
}

TEST(RdmacmPortSpaces, IpoibIsNotThere) {
  Channel channel;
  rdma_cm_id* id = nullptr;
  EXPECT_EQ(rdma_create_id(channel.get(), &id, nullptr, RDMA_PS_IPOIB), -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
}

}  // namespace
}  // namespace weft::cm::public_api
