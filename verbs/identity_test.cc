// An object whose handle or context was damaged is not found: the verbs that are system calls in rdma-core answer ENOENT, as the kernel's
// look-up of the handle does, and leave the object as it was.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>
#include <functional>

#include "verbs/testing/connected_pair.h"

namespace {

// Another value stands in `field` while this lives.
template <typename T>
class Damaged {
 public:
  Damaged(T& field, T damaged) : field_(field), before_(field) { field = damaged; }
  ~Damaged() { field_ = before_; }
  Damaged(const Damaged&) = delete;
  Damaged& operator=(const Damaged&) = delete;

 private:
  T& field_;
  const T before_;
};

class Identity : public testing::Test {
 protected:
  void SetUp() override {
    context_ = weft::verbs::testing::OpenLoopback();
    other_ = weft::verbs::testing::OpenLoopback();
    ASSERT_NE(context_, nullptr);
    ASSERT_NE(other_, nullptr);
    pd_ = ibv_alloc_pd(context_);
    cq_ = ibv_create_cq(context_, 8, nullptr, nullptr, 0);
    srq_ = CreateSrq();
    qp_ = CreateQp(cq_, cq_, srq_);
    mr_ = Register();
    mw_ = ibv_alloc_mw(pd_, IBV_MW_TYPE_1);
    for (const void* made : {static_cast<void*>(pd_), static_cast<void*>(cq_), static_cast<void*>(srq_), static_cast<void*>(qp_),
                             static_cast<void*>(mr_), static_cast<void*>(mw_)}) {
      ASSERT_NE(made, nullptr);
    }
  }
  // Each object is whole after all: what was refused has changed nothing.
  void TearDown() override {
    EXPECT_EQ(ibv_dealloc_mw(mw_), 0);
    EXPECT_EQ(ibv_dereg_mr(mr_), 0);
    EXPECT_EQ(ibv_destroy_qp(qp_), 0);
    EXPECT_EQ(ibv_destroy_srq(srq_), 0);
    EXPECT_EQ(ibv_destroy_cq(cq_), 0);
    EXPECT_EQ(ibv_dealloc_pd(pd_), 0);
    EXPECT_EQ(ibv_close_device(other_), 0);
    EXPECT_EQ(ibv_close_device(context_), 0);
  }

  ibv_srq* CreateSrq() {
    ibv_srq_init_attr attributes = {};
    attributes.attr = {.max_wr = 8, .max_sge = 1, .srq_limit = 0};
    return ibv_create_srq(pd_, &attributes);
  }
  ibv_qp* CreateQp(ibv_cq* send, ibv_cq* receive, ibv_srq* srq) {
    ibv_qp_init_attr attributes = {};
    attributes.send_cq = send;
    attributes.recv_cq = receive;
    attributes.srq = srq;
    attributes.qp_type = IBV_QPT_RC;
    attributes.cap = {4, 4, 1, 1, 0};
    return ibv_create_qp(pd_, &attributes);
  }
  ibv_mr* Register() { return ibv_reg_mr(pd_, bytes_, sizeof bytes_, IBV_ACCESS_LOCAL_WRITE); }

  // `verb` answers ENOENT while the object has another handle, and while it is in another context.
  template <typename Object>
  void ExpectNotFound(const char* what, Object* object, const std::function<int()>& verb) {
    {
      const Damaged<uint32_t> handle(object->handle, object->handle ^ 0xDEADBEEF);
      EXPECT_EQ(verb(), ENOENT) << what << ": handle";
    }
    const Damaged<ibv_context*> context(object->context, other_);
    EXPECT_EQ(verb(), ENOENT) << what << ": context";
  }
  // `verb` makes something of the object.
  template <typename Object>
  void ExpectNothingMade(const char* what, Object* object, const std::function<const void*()>& verb) {
    const Damaged<uint32_t> handle(object->handle, object->handle ^ 0xDEADBEEF);
    errno = 0;
    EXPECT_EQ(verb(), nullptr) << what;
    EXPECT_EQ(errno, ENOENT) << what;
  }

  char bytes_[64] = {};
  ibv_context* context_ = nullptr;
  ibv_context* other_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_srq* srq_ = nullptr;
  ibv_qp* qp_ = nullptr;
  ibv_mr* mr_ = nullptr;
  ibv_mw* mw_ = nullptr;
};

TEST_F(Identity, DamagedObjectsAreNotDestroyed) {
  ExpectNotFound("ibv_dealloc_mw", mw_, [&] { return ibv_dealloc_mw(mw_); });
  ExpectNotFound("ibv_dereg_mr", mr_, [&] { return ibv_dereg_mr(mr_); });
  ExpectNotFound("ibv_destroy_qp", qp_, [&] { return ibv_destroy_qp(qp_); });
  ExpectNotFound("ibv_destroy_srq", srq_, [&] { return ibv_destroy_srq(srq_); });
  ExpectNotFound("ibv_destroy_cq", cq_, [&] { return ibv_destroy_cq(cq_); });
  ibv_pd* unused = ibv_alloc_pd(context_);
  ExpectNotFound("ibv_dealloc_pd", unused, [&] { return ibv_dealloc_pd(unused); });
  EXPECT_EQ(ibv_dealloc_pd(unused), 0);
}

TEST_F(Identity, DamagedObjectsAreNotChangedOrQueried) {
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_ERR;
  ibv_qp_init_attr init;
  ibv_srq_attr size = {};
  ExpectNotFound("ibv_modify_qp", qp_, [&] { return ibv_modify_qp(qp_, &attributes, IBV_QP_STATE); });
  ExpectNotFound("ibv_query_qp", qp_, [&] { return ibv_query_qp(qp_, &attributes, IBV_QP_STATE, &init); });
  ExpectNotFound("ibv_modify_srq", srq_, [&] { return ibv_modify_srq(srq_, &size, IBV_SRQ_LIMIT); });
  ExpectNotFound("ibv_query_srq", srq_, [&] { return ibv_query_srq(srq_, &size); });
  ExpectNotFound("ibv_resize_cq", cq_, [&] { return ibv_resize_cq(cq_, 16); });
  EXPECT_EQ(ibv_query_qp(qp_, &attributes, IBV_QP_STATE, &init), 0);
  EXPECT_EQ(attributes.qp_state, IBV_QPS_RESET);
}

TEST_F(Identity, NothingIsMadeOfDamagedObjects) {
  ExpectNothingMade("ibv_reg_mr", pd_, [&] { return Register(); });
  ExpectNothingMade("ibv_alloc_mw", pd_, [&] { return ibv_alloc_mw(pd_, IBV_MW_TYPE_1); });
  ExpectNothingMade("ibv_create_srq", pd_, [&] { return CreateSrq(); });
  ExpectNothingMade("ibv_create_qp, pd", pd_, [&] { return CreateQp(cq_, cq_, nullptr); });
  ibv_cq* second = ibv_create_cq(context_, 8, nullptr, nullptr, 0);
  ExpectNothingMade("ibv_create_qp, send_cq", second, [&] { return CreateQp(second, cq_, nullptr); });
  ExpectNothingMade("ibv_create_qp, recv_cq", second, [&] { return CreateQp(cq_, second, nullptr); });
  ExpectNothingMade("ibv_create_qp, srq", srq_, [&] { return CreateQp(cq_, cq_, srq_); });
  EXPECT_EQ(ibv_destroy_cq(second), 0);
}

// Address handles are of the roce persona.
TEST_F(Identity, DamagedAddressHandlesAreNotDestroyed) {
  ibv_ah_attr attributes = {};
  attributes.is_global = 1;
  attributes.port_num = 1;
  ASSERT_EQ(ibv_query_gid(context_, 1, 0, &attributes.grh.dgid), 0);
  ibv_ah* ah = ibv_create_ah(pd_, &attributes);
  if (ah == nullptr) {
    EXPECT_EQ(errno, EOPNOTSUPP);  // the iwarp persona
    return;
  }
  ExpectNotFound("ibv_destroy_ah", ah, [&] { return ibv_destroy_ah(ah); });
  ExpectNothingMade("ibv_create_ah", pd_, [&] { return ibv_create_ah(pd_, &attributes); });
  EXPECT_EQ(ibv_destroy_ah(ah), 0);
}

}  // namespace
