#ifndef VERBS_TESTING_CONNECTED_PAIR_H_
#define VERBS_TESTING_CONNECTED_PAIR_H_

#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sim/cm/api.h"

// Tests use this to connect two queue pairs of one process on the loopback device.
namespace weft::verbs::testing {

// Records connection events, so that the test can wait for one.
class ConnectionEvents : public sim::CmObserver {
 public:
  void OnCmEvent(sim::CmEvent event) override {
    std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
    came_.notify_all();
  }
  bool WaitFor(sim::CmEvent::Kind kind, sim::CmEvent* out) {
    std::unique_lock lock(mutex_);
    return came_.wait_for(lock, std::chrono::seconds(20), [&] {
      for (sim::CmEvent& event : events_) {
        if (event.kind != kind) continue;
        *out = event;
        return true;
      }
      return false;
    });
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<sim::CmEvent> events_;
};

// Both ends of a connection between two queue pairs in INIT. The queue pairs outlive it.
class Connected {
 public:
  Connected(ibv_qp* client, ibv_qp* server) { Connect(client, server); }
  ~Connected() {
    for (auto& end : {client_, server_}) {
      if (end == nullptr) continue;
      end->SetObserver(nullptr);
      end->Close();
    }
  }
  // Ends the connection in order; both queue pairs go to ERR soon after.
  void Disconnect() { client_->Disconnect(); }

 private:
  void Connect(ibv_qp* client, ibv_qp* server) {
    sim::CmApi* cm = weft_private_cm_api(sim::CmApi::kVersion);
    ASSERT_NE(cm, nullptr);
    const auto any_port = transport::SocketAddress::Parse("127.0.0.1", 0);
    auto requests = std::make_shared<ConnectionEvents>();
    auto listener = cm->Listen(*any_port, 4, false, false, requests);
    ASSERT_TRUE(listener.ok());
    client_ = cm->CreateEndpoint();
    client_->SetObserver(client_events_);
    sim::ConnectParameters parameters;
    parameters.ird = parameters.ord = 4;
    ASSERT_EQ(client_->Connect(*any_port, (*listener)->local_address(), client, parameters), 0);
    sim::CmEvent event;
    ASSERT_TRUE(requests->WaitFor(sim::CmEvent::Kind::kConnectRequest, &event));
    server_ = event.endpoint;
    server_->SetObserver(server_events_);
    ASSERT_EQ(server_->Accept(server, parameters), 0);
    ASSERT_TRUE(client_events_->WaitFor(sim::CmEvent::Kind::kEstablished, &event));
    ASSERT_TRUE(server_events_->WaitFor(sim::CmEvent::Kind::kEstablished, &event));
    (*listener)->Close();
  }

  std::shared_ptr<ConnectionEvents> client_events_ = std::make_shared<ConnectionEvents>();
  std::shared_ptr<ConnectionEvents> server_events_ = std::make_shared<ConnectionEvents>();
  std::shared_ptr<sim::Endpoint> client_, server_;
};

// A context of the loopback device; nullptr (and a test failure) if there is none.
inline ibv_context* OpenLoopback() {
  ibv_context* context = nullptr;
  ibv_device** list = ibv_get_device_list(nullptr);
  if (list == nullptr) return nullptr;
  for (int i = 0; list[i] != nullptr; ++i) {
    if (std::string(ibv_get_device_name(list[i])) == "weft_lo") context = ibv_open_device(list[i]);
  }
  ibv_free_device_list(list);
  return context;
}

inline int ToInit(ibv_qp* qp) {
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = 1;
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  return ibv_modify_qp(qp, &attributes, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS);
}

// Connects `qp`, first in INIT, then in RTR, to the queue pair `number` of the loopback device, in this process or
// another. 0 or an errno value.
inline int ToRtr(ibv_qp* qp, uint32_t number) {
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = IBV_MTU_1024;
  attributes.dest_qp_num = number;
  attributes.max_dest_rd_atomic = 1;
  attributes.min_rnr_timer = 12;
  attributes.ah_attr.is_global = 1;
  attributes.ah_attr.port_num = 1;
  if (const int error = ibv_query_gid(qp->context, 1, 0, &attributes.ah_attr.grh.dgid); error != 0) return error;
  return ibv_modify_qp(qp, &attributes, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

inline int ToRts(ibv_qp* qp) {
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = 18;
  attributes.retry_cnt = attributes.rnr_retry = 7;
  attributes.max_rd_atomic = 1;
  return ibv_modify_qp(qp, &attributes, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                            IBV_QP_MAX_QP_RD_ATOMIC);
}

// The next completion; a test failure if none comes.
inline ibv_wc WaitForCompletion(ibv_cq* cq) {
  ibv_wc completion = {};
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (ibv_poll_cq(cq, 1, &completion) == 0) {
    if (std::chrono::steady_clock::now() > until) {
      ADD_FAILURE() << "no completion came";
      break;
    }
    std::this_thread::yield();
  }
  return completion;
}

inline ibv_sge ElementOf(const ibv_mr* mr, size_t offset, uint32_t length) {
  return {reinterpret_cast<uintptr_t>(mr->addr) + offset, length, mr->lkey};
}

}  // namespace weft::verbs::testing

#endif  // VERBS_TESTING_CONNECTED_PAIR_H_
