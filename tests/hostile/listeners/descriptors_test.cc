// A process that has no descriptor left, over real sockets: the one call fails and says why, nothing living dies, no thread spins.
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include "cm/rdmacm_testing.h"

namespace weft::cm::public_api {
namespace {

// While it lives no descriptor can be opened.
class NoDescriptors {
 public:
  NoDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit none = before_;
    none.rlim_cur = 0;
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST(Descriptors, AConnectionThatFindsNoneFailsAloneAndTheOthersLive) {
  Channel servers, clients;
  rdma_cm_id* listener = Listener(servers, "127.0.0.1");
  rdma_cm_id* client = StartClient(clients, "127.0.0.1", rdma_get_src_port(listener));
  rdma_cm_id* server = NextRequest(servers, listener);
  MakeQueuePair(server);
  rdma_conn_param parameters = WithData("");
  ASSERT_EQ(rdma_accept(server, &parameters), 0);
  clients.Expect(RDMA_CM_EVENT_ESTABLISHED, client);
  servers.Expect(RDMA_CM_EVENT_ESTABLISHED, server);

  rdma_cm_id* unlucky = NewId(clients);
  Resolve(clients, unlucky, "127.0.0.1", rdma_get_src_port(listener));
  MakeQueuePair(unlucky);
  testing::internal::CaptureStderr();
  {
    const NoDescriptors none;
    EXPECT_EQ(rdma_connect(unlucky, &parameters), -1);
    EXPECT_EQ(errno, EMFILE);
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("ulimit -n"), std::string::npos) << said;
  SendAndReceive(client, server);
  // It can be tried again.
  EXPECT_EQ(rdma_connect(unlucky, &parameters), 0);
  rdma_cm_id* second = NextRequest(servers, listener);
  DestroyAll({client, server, unlucky, second, listener});
}

TEST(Descriptors, AListenerThatFindsNoneWaitsAndDoesNotSpin) {
  Channel servers;
  rdma_cm_id* listener = Listener(servers, "127.0.0.1");
  const int stranger = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_storage to = Address("127.0.0.1", rdma_get_src_port(listener));
  timespec before{}, after{};
  {
    const NoDescriptors none;
    ASSERT_EQ(connect(stranger, Raw(to), sizeof(sockaddr_in)), 0);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    usleep(300000);  // not synchronisation: the time that is measured
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
  }
  const double used = static_cast<double>(after.tv_sec - before.tv_sec) + static_cast<double>(after.tv_nsec - before.tv_nsec) * 1e-9;
  EXPECT_LT(used, 0.1);
  close(stranger);
  DestroyAll({listener});
}

// Uses up descriptors until there is none below the limit, which it lowers so that this is soon.
class FullTable {
 public:
  FullTable() {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit low = before_;
    low.rlim_cur = 256;
    setrlimit(RLIMIT_NOFILE, &low);
    for (int fd; (fd = dup(0)) >= 0;) fillers_.push_back(fd);
  }
  ~FullTable() {
    for (const int fd : fillers_) close(fd);
    setrlimit(RLIMIT_NOFILE, &before_);
  }

 private:
  rlimit before_{};
  std::vector<int> fillers_;
};

// Strangers that ask and stay, and a program that neither answers nor destroys what it fetched.
TEST(Descriptors, TheOldestRequestThatIsNotAnsweredGivesWayToAClient) {
  Channel servers;
  rdma_cm_id* listener = Listener(servers, "127.0.0.1");
  sockaddr_storage to = Address("127.0.0.1", rdma_get_src_port(listener));
  const auto ask = [&](int client) {
    static constexpr char kRequest[] = "MPA ID Req Frame\x40\x01\0\0";  // RFC 5044 section 7.1.1
    ASSERT_EQ(connect(client, Raw(to), sizeof(sockaddr_in)), 0);
    ASSERT_EQ(send(client, kRequest, sizeof kRequest - 1, 0), 20);
  };
  std::array<int, 3> clients{};
  for (int& client : clients) client = socket(AF_INET, SOCK_STREAM, 0);
  std::vector<rdma_cm_id*> requests;
  for (int i = 0; i < 2; ++i) {
    ask(clients[i]);
    requests.push_back(NextRequest(servers, listener));
  }
  testing::internal::CaptureStderr();
  {
    const FullTable full;
    ask(clients[2]);
    requests.push_back(NextRequest(servers, listener));
    ASSERT_NE(requests.back(), nullptr) << testing::internal::GetCapturedStderr();
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("dropped the request of"), std::string::npos) << said;
  char unused;
  EXPECT_LE(recv(clients[0], &unused, 1, 0), 0) << "the first is still connected";
  EXPECT_EQ(recv(clients[1], &unused, 1, MSG_DONTWAIT), -1);
  EXPECT_EQ(errno, EAGAIN) << "the second is not";
  MakeQueuePair(requests[0]);
  rdma_conn_param parameters = WithData("");
  EXPECT_EQ(rdma_accept(requests[0], &parameters), -1);
  EXPECT_EQ(errno, ECONNRESET) << "as of a peer that left";
  for (rdma_cm_id* request : {requests[1], requests[2]}) {
    MakeQueuePair(request);
    EXPECT_EQ(rdma_accept(request, &parameters), 0) << strerror(errno);
  }
  for (const int client : clients) close(client);
  DestroyAll({requests[0], requests[1], requests[2], listener});
}

// Perftest goes on with identifiers that it destroyed when a connection failed.
TEST(Descriptors, AnIdentifierThatIsGoneIsRefused) {
  Channel clients;
  rdma_cm_id* id = NewId(clients);
  ASSERT_EQ(rdma_destroy_id(id), 0);
  sockaddr_storage to = Address("127.0.0.1", htons(1));
  EXPECT_EQ(rdma_resolve_addr(id, nullptr, Raw(to), 1000), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_resolve_route(id, 1000), -1);
  rdma_conn_param parameters = WithData("");
  EXPECT_EQ(rdma_connect(id, &parameters), -1);
  EXPECT_EQ(rdma_disconnect(id), -1);
  EXPECT_EQ(rdma_destroy_id(id), -1);
}

}  // namespace
}  // namespace weft::cm::public_api
