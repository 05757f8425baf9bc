#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

// What fork() does to a program that uses verbs: the child may use them anew, or leave alone, or destroy what it inherited; the parent
// notices nothing.
namespace {

struct Objects {
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_mr* mr = nullptr;
  ibv_comp_channel* channel = nullptr;
  ibv_cq* cq = nullptr;
  ibv_qp* qp = nullptr;
  char buffer[64] = {};

  bool Make() {
    ibv_device** list = ibv_get_device_list(nullptr);
    if (list == nullptr || list[0] == nullptr) return false;
    context = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    if (context == nullptr) return false;
    pd = ibv_alloc_pd(context);
    mr = ibv_reg_mr(pd, buffer, sizeof buffer, IBV_ACCESS_LOCAL_WRITE);
    channel = ibv_create_comp_channel(context);
    cq = ibv_create_cq(context, 16, nullptr, channel, 0);
    ibv_qp_init_attr init = {};
    init.send_cq = init.recv_cq = cq;
    init.qp_type = IBV_QPT_RC;
    init.cap = {4, 4, 1, 1, 0};
    qp = ibv_create_qp(pd, &init);
    ibv_qp_attr to_init = {};
    to_init.qp_state = IBV_QPS_INIT;
    to_init.port_num = 1;
    return qp != nullptr &&
           ibv_modify_qp(qp, &to_init, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS) == 0;
  }

  // Posts a receive, fails the queue pair and hears of the receive by an event.
  bool Work() {
    ibv_sge sge = {reinterpret_cast<uint64_t>(buffer), sizeof buffer, mr->lkey};
    ibv_recv_wr receive = {};
    receive.wr_id = 7;
    receive.sg_list = &sge;
    receive.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    if (ibv_req_notify_cq(cq, 0) != 0 || ibv_post_recv(qp, &receive, &bad) != 0) return false;
    ibv_qp_attr to_error = {};
    to_error.qp_state = IBV_QPS_ERR;
    if (ibv_modify_qp(qp, &to_error, IBV_QP_STATE) != 0) return false;
    ibv_cq* from = nullptr;
    void* its_context = nullptr;
    if (ibv_get_cq_event(channel, &from, &its_context) != 0 || from != cq) return false;
    ibv_ack_cq_events(cq, 1);
    ibv_wc completion = {};
    return ibv_poll_cq(cq, 1, &completion) == 1 && completion.wr_id == 7 && completion.status == IBV_WC_WR_FLUSH_ERR;
  }

  bool Destroy() {
    return ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(cq) == 0 && ibv_destroy_comp_channel(channel) == 0 && ibv_dereg_mr(mr) == 0 &&
           ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0;
  }
};

// Runs `work` in a child that is killed if it hangs; whether it returned true.
bool InChild(const std::function<bool()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    _exit(work() ? 0 : 1);
  }
  int status = -1;
  return waitpid(child, &status, 0) == child && status == 0;
}

#ifdef __SANITIZE_THREAD__
constexpr bool kChildMayHaveThreads = false;  // the sanitizer starts none after a fork of a process with threads
#else
constexpr bool kChildMayHaveThreads = true;
#endif

bool UseAnew() {
  if (!kChildMayHaveThreads) return true;
  Objects objects;
  return objects.Make() && objects.Work() && objects.Destroy();
}

TEST(Fork, NeedsNoPreparation) {
  EXPECT_EQ(ibv_fork_init(), 0);
  EXPECT_EQ(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
}

TEST(Fork, ChildUsesVerbsAnew) {
  Objects objects;
  ASSERT_TRUE(objects.Make());
  EXPECT_TRUE(InChild(UseAnew));
  EXPECT_TRUE(InChild([] { return UseAnew() && InChild(UseAnew); })) << "a child's child";
  EXPECT_TRUE(objects.Work());
  EXPECT_TRUE(objects.Destroy());
}

TEST(Fork, ChildMayDestroyWhatItInherited) {
  Objects objects;
  ASSERT_TRUE(objects.Make());
  EXPECT_TRUE(InChild([&objects] { return objects.Destroy() && UseAnew(); }));
  EXPECT_TRUE(objects.Work()) << "the parent's are its own";
  EXPECT_TRUE(objects.Destroy());
}

TEST(Fork, ChildMayLookAtWhatItInherited) {
  Objects objects;
  ASSERT_TRUE(objects.Make());
  EXPECT_TRUE(InChild([&objects] {
    ibv_port_attr port;
    ibv_device_attr device;
    ibv_gid gid;
    ibv_wc completion;
    return ibv_query_port(objects.context, 1, &port) == 0 && ibv_query_device(objects.context, &device) == 0 &&
           ibv_query_gid(objects.context, 1, 0, &gid) == 0 && ibv_poll_cq(objects.cq, 1, &completion) == 0;
  }));
  EXPECT_TRUE(objects.Destroy());
}

TEST(Fork, BeforeTheFirstUseIsLikeAnyProcess) { EXPECT_TRUE(InChild(UseAnew)); }

}  // namespace
