// Binding and resolution through the public API, over the real RNIC on loopback.
#include <ifaddrs.h>
#include <net/if.h>

#include <optional>
#include <vector>

#include "cm/rdmacm_testing.h"

namespace weft::cm::public_api {
namespace {

// An IPv4 address of an interface that is up and not the loopback; none: there is no such interface.
std::optional<sockaddr_storage> OutsideAddress() {
  ifaddrs* interfaces = nullptr;
  if (getifaddrs(&interfaces) != 0) return std::nullopt;
  std::optional<sockaddr_storage> found;
  for (const ifaddrs* at = interfaces; at != nullptr && !found; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET) continue;
    if ((at->ifa_flags & IFF_UP) == 0 || (at->ifa_flags & IFF_LOOPBACK) != 0) continue;
    memcpy(&found.emplace(), at->ifa_addr, sizeof(sockaddr_in));
  }
  freeifaddrs(interfaces);
  return found;
}

TEST(RdmacmAddresses, BindChoosesAPortAndADevice) {
  std::optional<sockaddr_storage> address = OutsideAddress();
  if (!address) GTEST_SKIP() << "no interface but the loopback, which names no device";
  Channel channel;
  rdma_cm_id* id = NewId(channel);
  ASSERT_EQ(rdma_bind_addr(id, Raw(*address)), 0);
  EXPECT_NE(rdma_get_src_port(id), 0);
  ASSERT_NE(id->verbs, nullptr);
  EXPECT_STRNE(ibv_get_device_name(id->verbs->device), "weft_lo");
  EXPECT_NE(id->pd, nullptr);
  EXPECT_EQ(id->port_num, 1);
  DestroyAll({id});
}

// As Linux's rdma_cm has it: libfabric takes an identifier that is bound to "localhost" for one that any device serves.
TEST(RdmacmAddresses, WildcardAndLoopbackNameNoDevice) {
  Channel channel;
  for (const char* name : {"0.0.0.0", "::", "127.0.0.1", "127.1.2.3", "::1"}) {
    rdma_cm_id* id = NewId(channel);
    sockaddr_storage address = Address(name);
    ASSERT_EQ(rdma_bind_addr(id, Raw(address)), 0) << name;
    EXPECT_NE(rdma_get_src_port(id), 0) << name;
    EXPECT_EQ(id->verbs, nullptr) << name << " is bound to no device in particular";
    EXPECT_EQ(id->pd, nullptr) << name;
    ibv_qp_init_attr attributes{};
    attributes.qp_type = IBV_QPT_RC;
    EXPECT_EQ(rdma_create_qp(id, nullptr, &attributes), -1) << name;
    EXPECT_EQ(errno, EINVAL) << name;
    DestroyAll({id});
  }
}

TEST(RdmacmAddresses, ResolvingFromALoopbackAddressFindsItsDevice) {
  Channel channel;
  rdma_cm_id* id = NewId(channel);
  sockaddr_storage address = Address("127.0.0.1");
  ASSERT_EQ(rdma_bind_addr(id, Raw(address)), 0);
  Resolve(channel, id, "127.0.0.1", htons(9));
  ASSERT_NE(id->verbs, nullptr);
  EXPECT_STREQ(ibv_get_device_name(id->verbs->device), "weft_lo");
  DestroyAll({id});
}

TEST(RdmacmAddresses, BindErrors) {
  Channel channel;
  rdma_cm_id* first = NewId(channel);
  rdma_cm_id* second = NewId(channel);
  sockaddr_storage address = Address("127.0.0.1");
  ASSERT_EQ(rdma_bind_addr(first, Raw(address)), 0);
  EXPECT_EQ(rdma_bind_addr(first, Raw(address)), -1);
  EXPECT_EQ(errno, EINVAL) << "bound already";
  sockaddr_storage taken = Address("127.0.0.1", rdma_get_src_port(first));
  EXPECT_EQ(rdma_bind_addr(second, Raw(taken)), -1);
  EXPECT_EQ(errno, EADDRINUSE);
  sockaddr_storage foreign = Address("192.0.2.77");
  EXPECT_EQ(rdma_bind_addr(second, Raw(foreign)), -1);
  EXPECT_EQ(errno, EADDRNOTAVAIL);
  sockaddr_storage unknown{};
  unknown.ss_family = AF_UNIX;
  EXPECT_EQ(rdma_bind_addr(second, Raw(unknown)), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_bind_addr(second, nullptr), -1);
  EXPECT_EQ(errno, EINVAL);
  DestroyAll({first, second});
}

TEST(RdmacmAddresses, ReusableAddressIsSharedUntilSomebodyListens) {
  Channel channel;
  int on = 1;
  rdma_cm_id* first = NewId(channel);
  rdma_cm_id* second = NewId(channel);
  ASSERT_EQ(rdma_set_option(first, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof on), 0);
  ASSERT_EQ(rdma_set_option(second, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof on), 0);
  sockaddr_storage address = Address("127.0.0.1");
  ASSERT_EQ(rdma_bind_addr(first, Raw(address)), 0);
  address = Address("127.0.0.1", rdma_get_src_port(first));
  ASSERT_EQ(rdma_bind_addr(second, Raw(address)), 0) << strerror(errno);
  EXPECT_EQ(rdma_listen(first, 1), 0);
  EXPECT_EQ(rdma_listen(second, 1), -1);
  EXPECT_EQ(errno, EADDRINUSE);
  DestroyAll({first, second});
}

// The port that is free for IPv6 may be another program's for IPv4; then the next one is tried.
TEST(RdmacmAddresses, FamilyOnlyListenerLeavesIpv4Alone) {
  constexpr int kMostPorts = 20;
  Channel channel;
  int on = 1;
  std::vector<rdma_cm_id*> ids;
  int bound = -1;
  for (int i = 0; i < kMostPorts && bound != 0; ++i) {
    rdma_cm_id* v6 = ids.emplace_back(NewId(channel));
    ASSERT_EQ(rdma_set_option(v6, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof on), 0);
    sockaddr_storage address = Address("::");
    ASSERT_EQ(rdma_bind_addr(v6, Raw(address)), 0);
    ASSERT_EQ(rdma_listen(v6, 1), 0) << strerror(errno);
    rdma_cm_id* v4 = ids.emplace_back(NewId(channel));
    address = Address("0.0.0.0", rdma_get_src_port(v6));
    bound = rdma_bind_addr(v4, Raw(address));
    ASSERT_TRUE(bound == 0 || errno == EADDRINUSE) << strerror(errno);
  }
  EXPECT_EQ(bound, 0);
  EXPECT_EQ(rdma_listen(ids.back(), 1), 0) << strerror(errno);
  for (rdma_cm_id* id : ids) DestroyAll({id});
}

TEST(RdmacmAddresses, ListenWithoutBindChoosesEverything) {
  Channel channel;
  rdma_cm_id* id = NewId(channel);
  ASSERT_EQ(rdma_listen(id, 0), 0) << strerror(errno);
  EXPECT_NE(rdma_get_src_port(id), 0);
  DestroyAll({id});
}

TEST(RdmacmAddresses, PortOfADestroyedListenerIsFreeAtOnce) {
  Channel servers, clients;
  rdma_cm_id* listener = Listener(servers, "127.0.0.1");
  sockaddr_storage address = Address("127.0.0.1", rdma_get_src_port(listener));
  rdma_cm_id* client = StartClient(clients, "127.0.0.1", rdma_get_src_port(listener));
  rdma_cm_id* server = NextRequest(servers, listener);
  MakeQueuePair(server);
  ASSERT_EQ(rdma_accept(server, nullptr), 0);
  clients.Expect(RDMA_CM_EVENT_ESTABLISHED, client);
  servers.Expect(RDMA_CM_EVENT_ESTABLISHED, server);
  EXPECT_EQ(rdma_disconnect(server), 0);  // this side is left in TIME-WAIT
  servers.Expect(RDMA_CM_EVENT_DISCONNECTED, server);
  DestroyAll({client, server, listener});
  rdma_cm_id* again = NewId(servers);
  EXPECT_EQ(rdma_bind_addr(again, Raw(address)), 0) << strerror(errno);
  EXPECT_EQ(rdma_listen(again, 0), 0) << strerror(errno);
  DestroyAll({again});
}

TEST(RdmacmAddresses, SourceIsChosenByRouting) {
  Channel channel;
  rdma_cm_id* id = NewId(channel);
  Resolve(channel, id, "127.0.0.1", htons(9));
  EXPECT_EQ(id->route.addr.src_sin.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
  EXPECT_EQ(id->route.addr.dst_sin.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
  EXPECT_EQ(rdma_get_dst_port(id), htons(9));
  EXPECT_STREQ(ibv_get_device_name(id->verbs->device), "weft_lo");
  const bool has_paths = id->verbs->device->transport_type == IBV_TRANSPORT_IB;  // iWARP has no path records
  EXPECT_EQ(id->route.num_paths, has_paths ? 1 : 0);
  DestroyAll({id});
}

TEST(RdmacmAddresses, GivenSourceIsBound) {
  Channel servers, clients;
  rdma_cm_id* listener = Listener(servers, "127.0.0.1");
  rdma_cm_id* client = NewId(clients);
  sockaddr_storage from = Address("127.0.0.7"), to = Address("127.0.0.1", rdma_get_src_port(listener));
  ASSERT_EQ(rdma_resolve_addr(client, Raw(from), Raw(to), 2000), 0) << strerror(errno);
  clients.Expect(RDMA_CM_EVENT_ADDR_RESOLVED, client);
  ASSERT_EQ(rdma_resolve_route(client, 2000), 0);
  clients.Expect(RDMA_CM_EVENT_ROUTE_RESOLVED, client);
  MakeQueuePair(client);
  ASSERT_EQ(rdma_connect(client, nullptr), 0);
  rdma_cm_id* server = NextRequest(servers, listener);
  EXPECT_EQ(server->route.addr.dst_sin.sin_addr.s_addr, inet_addr("127.0.0.7"));
  DestroyAll({client, server, listener});
}

TEST(RdmacmAddresses, BoundPortIsTheConnectionsSourcePort) {
  Channel servers, clients;
  rdma_cm_id* listener = Listener(servers, "127.0.0.1");
  rdma_cm_id* probe = NewId(clients);
  sockaddr_storage from = Address("127.0.0.1");
  ASSERT_EQ(rdma_bind_addr(probe, Raw(from)), 0);
  from = Address("127.0.0.1", rdma_get_src_port(probe));
  DestroyAll({probe});
  rdma_cm_id* client = NewId(clients);
  ASSERT_EQ(rdma_bind_addr(client, Raw(from)), 0);
  Resolve(clients, client, "127.0.0.1", rdma_get_src_port(listener));
  MakeQueuePair(client);
  ASSERT_EQ(rdma_connect(client, nullptr), 0) << strerror(errno);
  rdma_cm_id* server = NextRequest(servers, listener);
  EXPECT_EQ(rdma_get_dst_port(server), reinterpret_cast<sockaddr_in*>(&from)->sin_port);
  DestroyAll({client, server, listener});
}

TEST(RdmacmAddresses, UnreachableDestinationIsAnEvent) {
  Channel channel;
  rdma_cm_id* id = NewId(channel);
  sockaddr_storage to = Address("fe80::1", htons(9));  // link-local without a scope
  ASSERT_EQ(rdma_resolve_addr(id, nullptr, Raw(to), 500), 0);
  channel.Expect(RDMA_CM_EVENT_ADDR_ERROR, id, -EINVAL);
  Resolve(channel, id, "::1", htons(9));  // and the identifier can try again
  DestroyAll({id});
}

TEST(RdmacmAddresses, ResolveErrors) {
  Channel channel;
  rdma_cm_id* id = NewId(channel);
  sockaddr_storage v4 = Address("127.0.0.1", htons(9)), v6 = Address("::1", htons(9));
  EXPECT_EQ(rdma_resolve_addr(id, nullptr, nullptr, 100), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_resolve_addr(id, Raw(v6), Raw(v4), 100), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_resolve_route(id, 100), -1) << "no address resolved";
  EXPECT_EQ(errno, EINVAL);
  Resolve(channel, id, "127.0.0.1", htons(9));
  EXPECT_EQ(rdma_resolve_addr(id, nullptr, Raw(v4), 100), -1) << "resolved already";
  EXPECT_EQ(errno, EINVAL);
  DestroyAll({id});
}

}  // namespace
}  // namespace weft::cm::public_api
