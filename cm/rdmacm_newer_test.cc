// Calls of rdma-core 60, which the headers of this build may lack.
#include "cm/rdmacm_testing.h"

extern "C" {
int rdma_resolve_addrinfo(struct rdma_cm_id* id, const char* node, const char* service, const struct rdma_addrinfo* hints);
int rdma_query_addrinfo(struct rdma_cm_id* id, struct rdma_addrinfo** info);
int rdma_write_cm_event(struct rdma_cm_id* id, enum rdma_cm_event_type event, int status, uint64_t arg);
}

namespace weft::cm::public_api {
namespace {

constexpr auto kInfoResolved = static_cast<rdma_cm_event_type>(16);
constexpr auto kInfoError = static_cast<rdma_cm_event_type>(17);
constexpr auto kUser = static_cast<rdma_cm_event_type>(18);
constexpr int kAskSubnet = 0x10, kAskNames = 0x20;

TEST(RdmacmNewer, EventsOfTheProgramWakeAThreadThatWaits) {
  Channel channel;
  rdma_cm_id* id = NewId(channel);
  std::thread waiting([&] {
    rdma_cm_event* event = nullptr;
    ASSERT_EQ(rdma_get_cm_event(channel.get(), &event), 0);
    EXPECT_EQ(NumberOf(*event), static_cast<int>(kUser));
    EXPECT_STREQ(rdma_event_str(kUser), "RDMA_CM_EVENT_USER");
    EXPECT_EQ(event->id, id);
    EXPECT_EQ(event->status, -5);
    uint64_t argument;
    memcpy(&argument, &event->param, sizeof argument);
    EXPECT_EQ(argument, 0x123456789abcdef0U);
    rdma_ack_cm_event(event);
  });
  EXPECT_EQ(rdma_write_cm_event(id, kUser, -5, 0x123456789abcdef0U), 0);
  waiting.join();
  DestroyAll({id});
}

TEST(RdmacmNewer, EventsOfOthersCannotBeWritten) {
  Channel channel;
  rdma_cm_id* id = NewId(channel);
  EXPECT_EQ(rdma_write_cm_event(id, RDMA_CM_EVENT_ESTABLISHED, 0, 0), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_write_cm_event(nullptr, kUser, 0, 0), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_FALSE(channel.Readable(0));
  DestroyAll({id});
}

TEST(RdmacmNewer, AddressesAreFoundByAnEvent) {
  Channel channel;
  rdma_cm_id* id = NewId(channel);
  rdma_addrinfo hints{};
  hints.ai_flags = kAskNames | RAI_NUMERICHOST;
  hints.ai_port_space = RDMA_PS_TCP;
  rdma_addrinfo* info = nullptr;
  EXPECT_EQ(rdma_query_addrinfo(id, &info), -1) << "nothing was asked";
  EXPECT_EQ(errno, ENOENT);
  ASSERT_EQ(rdma_resolve_addrinfo(id, "127.0.0.1", "7471", &hints), 0) << strerror(errno);
  channel.Expect(kInfoResolved, id);
  EXPECT_EQ(rdma_resolve_addrinfo(id, "127.0.0.1", "7471", &hints), -1) << "the answer was not fetched";
  EXPECT_EQ(errno, EBUSY);
  ASSERT_EQ(rdma_query_addrinfo(id, &info), 0) << strerror(errno);
  EXPECT_EQ(reinterpret_cast<sockaddr_in*>(info->ai_dst_addr)->sin_port, htons(7471));
  rdma_freeaddrinfo(info);
  EXPECT_EQ(rdma_query_addrinfo(id, &info), -1);
  EXPECT_EQ(errno, ENOENT);
  ASSERT_EQ(rdma_resolve_addrinfo(id, "127.0.0.1", "7471", nullptr), 0) << "again; and what is not fetched goes with the identifier";
  channel.Expect(kInfoResolved, id);
  DestroyAll({id});
}

TEST(RdmacmNewer, NamesThatNobodyHasAreAnEvent) {
  Channel channel;
  rdma_cm_id* id = NewId(channel);
  rdma_addrinfo hints{};
  hints.ai_flags = RAI_NUMERICHOST;
  hints.ai_port_space = RDMA_PS_TCP;
  ASSERT_EQ(rdma_resolve_addrinfo(id, "no address", "7471", &hints), 0) << strerror(errno);
  channel.Expect(kInfoError, id, -ENOENT);
  rdma_addrinfo* info = nullptr;
  EXPECT_EQ(rdma_query_addrinfo(id, &info), -1);
  EXPECT_EQ(errno, ENOENT);
  ASSERT_EQ(rdma_resolve_addrinfo(id, "127.0.0.1", "7471", &hints), 0) << "not busy";
  channel.Expect(kInfoResolved, id);
  DestroyAll({id});
}

TEST(RdmacmNewer, ThereIsNoSubnetToAsk) {
  Channel channel;
  rdma_cm_id* id = NewId(channel);
  rdma_addrinfo hints{};
  for (const int flags : {kAskSubnet, kAskSubnet | kAskNames}) {
    hints.ai_flags = flags;
    EXPECT_EQ(rdma_resolve_addrinfo(id, nullptr, "7471", &hints), -1);
    EXPECT_EQ(errno, EOPNOTSUPP);
  }
  EXPECT_FALSE(channel.Readable(0));
  DestroyAll({id});
}

TEST(RdmacmNewer, SynchronousIdentifiersWaitForTheAnswer) {
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(rdma_create_id(nullptr, &id, nullptr, RDMA_PS_TCP), 0);
  ASSERT_EQ(rdma_resolve_addrinfo(id, "127.0.0.1", "7471", nullptr), 0) << strerror(errno);
  ASSERT_NE(id->event, nullptr);
  EXPECT_EQ(NumberOf(*id->event), static_cast<int>(kInfoResolved));
  rdma_addrinfo* info = nullptr;
  ASSERT_EQ(rdma_query_addrinfo(id, &info), 0);
  rdma_freeaddrinfo(info);
  DestroyAll({id});
}

}  // namespace
}  // namespace weft::cm::public_api
