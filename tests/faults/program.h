#ifndef TESTS_FAULTS_PROGRAM_H_
#define TESTS_FAULTS_PROGRAM_H_

#include <unistd.h>

#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "cm/rdmacm_testing.h"
#include "control/client.h"

// A program with connections. Some are made to fail, and the others must not be affected. Faults are set as a user sets
// them: through the control socket of the process.
namespace weft::faults_test {

using namespace cm::public_api;
using Clock = std::chrono::steady_clock;

inline void SetFaults(const std::string& specification) {
  const auto answer = control::Ask(getpid(), "faults set", specification);
  ASSERT_TRUE(answer.ok()) << answer.error();
}
inline void ClearFaults() { ASSERT_TRUE(control::Ask(getpid(), "faults clear").ok()); }
// Number of faults of the plan that have struck.
inline int Injected() {
  const std::string shown = control::Ask(getpid(), "faults show").value().text;
  int sum = 0;
  for (size_t at = shown.find("injected "); at != shown.npos; at = shown.find("injected ", at + 1)) sum += std::stoi(shown.substr(at + 9));
  return sum;
}

// Whether this run uses the roce persona; otherwise iwarp.
inline bool IsRoce() {
  const char* persona = getenv("WEFT_PERSONA");
  return persona == nullptr || std::string(persona) == "roce";
}

inline constexpr int kDepth = 32;
inline constexpr size_t kBytes = 1 << 20;

// A connection between two queue pairs of this process: `client` connected, `server` accepted. Each has kBytes of
// memory, registered with all rights, and its own completion queues.
class Pair {
 public:
  // Creates everything up to the client's queue pair.
  Pair() {
    listener = Listener(server_events, "127.0.0.1");
    client = NewId(client_events);
    Resolve(client_events, client, "127.0.0.1", rdma_get_src_port(listener));
    Make(client);
  }
  ~Pair() {
    for (ibv_mr* mr : {client_mr, server_mr}) {
      if (mr != nullptr) rdma_dereg_mr(mr);
    }
    if (client->qp != nullptr) rdma_destroy_qp(client);
    rdma_destroy_id(client);
    if (server != nullptr) {
      rdma_destroy_qp(server);
      rdma_destroy_id(server);
    }
    rdma_destroy_id(listener);
  }

  // The retry counts of both ends. `rnr_retry` 7: for ever.
  void Connect(uint8_t rnr_retry = 7, uint8_t retries = 7) {
    rdma_conn_param parameters = WithData("");
    parameters.responder_resources = parameters.initiator_depth = 4;
    parameters.rnr_retry_count = rnr_retry;
    parameters.retry_count = retries;
    ASSERT_EQ(rdma_connect(client, &parameters), 0) << strerror(errno);
    server = NextRequest(server_events, listener);
    ASSERT_NE(server, nullptr);
    Make(server);
    for (int i = 0; i < kDepth; ++i) PostReceive(i);
    ASSERT_EQ(rdma_accept(server, &parameters), 0) << strerror(errno);
    client_events.Expect(RDMA_CM_EVENT_ESTABLISHED, client);
    server_events.Expect(RDMA_CM_EVENT_ESTABLISHED, server);
    client_mr = Register(client, client_memory);
    server_mr = Register(server, server_memory);
  }

  void PostReceive(uint64_t id) {
    ibv_recv_wr wr{}, *bad = nullptr;
    wr.wr_id = id;
    ASSERT_EQ(ibv_post_recv(server->qp, &wr, &bad), 0);
  }
  // Posts a request of `length` bytes at the client. RDMA operations use the same offset of the server's memory.
  int Post(ibv_wr_opcode opcode, uint64_t id, uint32_t length = 0) {
    ibv_sge piece = Piece(length);
    ibv_send_wr wr = Request(opcode, id, &piece), *bad = nullptr;
    const int error = ibv_post_send(client->qp, &wr, &bad);
    if (error != 0) {
      EXPECT_EQ(bad, &wr);
    }
    return error;
  }
  // Posts requests with ids 0, 1 ... at once, so that all are outstanding before the first answer.
  int PostTogether(size_t count, ibv_wr_opcode opcode, uint32_t length) {
    ibv_sge piece = Piece(length);
    std::vector<ibv_send_wr> list;
    for (size_t i = 0; i < count; ++i) list.push_back(Request(opcode, i, &piece));
    for (size_t i = 0; i + 1 < count; ++i) list[i].next = &list[i + 1];
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(client->qp, list.data(), &bad);
  }

  // The next `count` completions, which must come in time.
  static std::vector<ibv_wc> Poll(ibv_cq* cq, size_t count, milliseconds patience = milliseconds(kPatienceMs)) {
    std::vector<ibv_wc> completions;
    const auto deadline = Clock::now() + patience;
    while (completions.size() < count && Clock::now() < deadline) {
      ibv_wc one{};
      if (ibv_poll_cq(cq, 1, &one) == 1) {
        completions.push_back(one);
      } else {
        usleep(100);
      }
    }
    return completions;
  }
  static std::string StatusesOf(const std::vector<ibv_wc>& completions) {
    std::string text;
    for (const ibv_wc& one : completions) text += std::to_string(one.wr_id) + ":" + ibv_wc_status_str(one.status) + " ";
    return text;
  }
  std::string SendStatuses(size_t count) { return StatusesOf(Poll(client->send_cq, count)); }

  static ibv_qp_state StateOf(rdma_cm_id* id) {
    ibv_qp_attr attributes{};
    ibv_qp_init_attr init{};
    EXPECT_EQ(ibv_query_qp(id->qp, &attributes, IBV_QP_STATE, &init), 0);
    return attributes.qp_state;
  }
  void ExpectDisconnected() {
    client_events.Expect(RDMA_CM_EVENT_DISCONNECTED, client);
    server_events.Expect(RDMA_CM_EVENT_DISCONNECTED, server);
    EXPECT_EQ(StateOf(client), IBV_QPS_ERR);
    EXPECT_EQ(StateOf(server), IBV_QPS_ERR);
  }
  // Expects that every operation works, and that there were no events.
  void ExpectUnharmed() {
    static unsigned round = 0;
    for (size_t i = 0; i < 10'000; ++i) client_memory[i] = static_cast<char>(i + round);
    ++round;
    ASSERT_EQ(Post(IBV_WR_RDMA_WRITE, 101, 10'000), 0);
    ASSERT_EQ(Post(IBV_WR_SEND, 102), 0);
    ASSERT_EQ(Post(IBV_WR_RDMA_READ, 103, 5'000), 0);
    EXPECT_EQ(SendStatuses(3), "101:success 102:success 103:success ");
    const auto received = Poll(server->recv_cq, 1);
    ASSERT_EQ(received.size(), 1u);
    EXPECT_EQ(received[0].status, IBV_WC_SUCCESS);
    PostReceive(received[0].wr_id);
    EXPECT_TRUE(std::equal(client_memory.begin(), client_memory.begin() + 10'000, server_memory.begin()));
    EXPECT_FALSE(client_events.Readable(0));
    EXPECT_FALSE(server_events.Readable(0));
    EXPECT_EQ(StateOf(client), IBV_QPS_RTS);
    EXPECT_EQ(StateOf(server), IBV_QPS_RTS);
  }

  std::string SelectClient() const { return " qp=" + std::to_string(client->qp->qp_num); }
  std::string SelectServer() const { return " qp=" + std::to_string(server->qp->qp_num); }

  Channel client_events, server_events;
  rdma_cm_id *listener = nullptr, *client = nullptr, *server = nullptr;
  std::vector<char> client_memory = std::vector<char>(kBytes, 'c'), server_memory = std::vector<char>(kBytes, 's');
  ibv_mr *client_mr = nullptr, *server_mr = nullptr;

 private:
  ibv_sge Piece(uint32_t length) {
    return {reinterpret_cast<uint64_t>(client_memory.data()), length, client_mr->lkey};
  }
  ibv_send_wr Request(ibv_wr_opcode opcode, uint64_t id, ibv_sge* piece) {
    ibv_send_wr wr{};
    wr.wr_id = id;
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.sg_list = piece->length != 0 ? piece : nullptr;
    wr.num_sge = piece->length != 0 ? 1 : 0;
    wr.wr.rdma.remote_addr = reinterpret_cast<uint64_t>(server_memory.data());
    wr.wr.rdma.rkey = server_mr->rkey;
    return wr;
  }
  static void Make(rdma_cm_id* id) {
    ibv_qp_init_attr attributes{};
    attributes.cap = {kDepth, kDepth, 1, 1, 0};
    attributes.qp_type = IBV_QPT_RC;
    ASSERT_EQ(rdma_create_qp(id, nullptr, &attributes), 0) << strerror(errno);
  }
  static ibv_mr* Register(rdma_cm_id* id, std::vector<char>& memory) {
    ibv_mr* mr = ibv_reg_mr(id->pd, memory.data(), memory.size(),
                            IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
    EXPECT_NE(mr, nullptr);
    return mr;
  }
};

// The events at both ends of a connection after a Terminate of the peer. On InfiniBand the requester gets only its
// completion.
inline std::multiset<ibv_event_type> EventsOfTerminate() {
  if (IsRoce()) return {IBV_EVENT_QP_REQ_ERR};
  return {IBV_EVENT_QP_FATAL, IBV_EVENT_QP_REQ_ERR};
}

// Returns and acknowledges the async events of a context that arrive in time, except IBV_EVENT_COMM_EST, which no fault
// causes.
inline std::multiset<ibv_event_type> AsyncEvents(ibv_context* context, size_t count, milliseconds patience = milliseconds(kPatienceMs)) {
  std::multiset<ibv_event_type> types;
  const auto deadline = Clock::now() + patience;
  while (types.size() < count && Clock::now() < deadline) {
    pollfd ready{context->async_fd, POLLIN, 0};
    if (poll(&ready, 1, 10) != 1) continue;
    ibv_async_event event{};
    if (ibv_get_async_event(context, &event) != 0) break;
    if (event.event_type != IBV_EVENT_COMM_EST) types.insert(event.event_type);
    ibv_ack_async_event(&event);
  }
  return types;
}

inline bool OverSctp() {
  const char* const llp = getenv("WEFT_LLP");
  return llp != nullptr && std::string(llp) == "sctp";
}

// Two connections: the test's faults concern one of them, and the other must not be affected.
class FaultsTest : public testing::Test {
 protected:
  void TearDown() override {
    if (bystander.server != nullptr) bystander.ExpectUnharmed();
    ClearFaults();
    EXPECT_TRUE(AsyncEvents(subject.client->verbs, 1, milliseconds(0)).empty());
  }
  // `faults` are faults of the subject's client that are set before the connections are established.
  void Start(const std::string& faults, uint8_t rnr_retry = 7) {
    SetFaults(faults);
    subject.Connect(rnr_retry);
    bystander.Connect();
  }
  Pair subject, bystander;
};

}  // namespace weft::faults_test

#endif  // TESTS_FAULTS_PROGRAM_H_
