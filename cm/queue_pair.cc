// Queue pairs of an identifier: rdma_create_qp, rdma_create_srq, rdma_init_qp_attr.
#include <rdma/rdma_verbs.h>

#include <cerrno>

#include "cm/export.h"
#include "cm/identifier.h"

namespace weft::cm {
namespace {

void DestroyPair(ibv_cq** cq, ibv_comp_channel** channel) {
  if (*cq != nullptr) ibv_destroy_cq(*cq);
  if (*channel != nullptr) ibv_destroy_comp_channel(*channel);
  *cq = nullptr;
  *channel = nullptr;
}

// What an unconnected queue pair needs. Remote access is granted here, memory regions narrow it.
int InitAttributes(bool iwarp, uint8_t port, ibv_qp_attr* attributes) {
  *attributes = {};
  attributes->qp_state = IBV_QPS_INIT;
  attributes->port_num = port;
  attributes->qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  if (!iwarp) attributes->qp_access_flags |= IBV_ACCESS_REMOTE_ATOMIC;
  return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
}

// A datagram queue pair's way to `state`, from the one before.
int DatagramAttributes(ibv_qp_state state, uint8_t port, ibv_qp_attr* attributes) {
  *attributes = {};
  attributes->qp_state = state;
  attributes->port_num = port;
  attributes->qkey = RDMA_UDP_QKEY;
  switch (state) {
    case IBV_QPS_INIT:
      return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
    case IBV_QPS_RTS:
      return IBV_QP_STATE | IBV_QP_SQ_PSN;
    default:
      return IBV_QP_STATE;
  }
}

int StartDatagrams(ibv_qp* qp, uint8_t port) {
  for (const ibv_qp_state state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
    ibv_qp_attr attributes;
    const int mask = DatagramAttributes(state, port, &attributes);
    if (const int error = ibv_modify_qp(qp, &attributes, mask); error != 0) return error;
  }
  return 0;
}

}  // namespace

int Identifier::CreateCompletionQueues(uint32_t send_size, uint32_t receive_size) {
  if (receive_size != 0) {
    recv_cq_channel = ibv_create_comp_channel(verbs);
    if (recv_cq_channel == nullptr) return errno;
    recv_cq = ibv_create_cq(verbs, static_cast<int>(receive_size), static_cast<rdma_cm_id*>(this), recv_cq_channel, 0);
    if (recv_cq == nullptr) return errno;
  }
  if (send_size != 0) {
    send_cq_channel = ibv_create_comp_channel(verbs);
    if (send_cq_channel == nullptr) return errno;
    send_cq = ibv_create_cq(verbs, static_cast<int>(send_size), static_cast<rdma_cm_id*>(this), send_cq_channel, 0);
    if (send_cq == nullptr) return errno;
  }
  return 0;
}

void Identifier::DestroyCompletionQueues() {
  if (rdma_cm_id::qp_type == IBV_QPT_XRC_RECV && srq != nullptr) return;  // they are the shared receive queue's
  DestroyPair(&recv_cq, &recv_cq_channel);
  DestroyPair(&send_cq, &send_cq_channel);
}

int Identifier::CreateQueuePair(ibv_qp_init_attr_ex* attributes) {
  TouchRequest();
  if (qp != nullptr || verbs == nullptr) return EINVAL;
  if (datagrams() != (attributes->qp_type == IBV_QPT_UD)) return EINVAL;
  if ((attributes->comp_mask & IBV_QP_INIT_ATTR_PD) == 0 || attributes->pd == nullptr) {
    attributes->comp_mask |= IBV_QP_INIT_ATTR_PD;
    attributes->pd = pd;
  }
  if (attributes->pd->context != verbs) return EINVAL;
  if (recv_cq != nullptr && attributes->recv_cq != nullptr && recv_cq != attributes->recv_cq) return EINVAL;
  if (send_cq != nullptr && attributes->send_cq != nullptr && send_cq != attributes->send_cq) return EINVAL;

  const bool needs_send = attributes->send_cq == nullptr && send_cq == nullptr;
  const bool xrc_receiver = attributes->qp_type == IBV_QPT_XRC_RECV;  // its shared receive queues have completions
  if (xrc_receiver && ((attributes->comp_mask & IBV_QP_INIT_ATTR_XRCD) == 0 || attributes->xrcd == nullptr)) {
    attributes->xrcd = device_->XrcDomain();
    if (attributes->xrcd == nullptr) return errno;
    attributes->comp_mask |= IBV_QP_INIT_ATTR_XRCD;
  }
  const bool needs_receive = attributes->recv_cq == nullptr && recv_cq == nullptr && !xrc_receiver;
  int error = CreateCompletionQueues(needs_send ? attributes->cap.max_send_wr : 0,
                                     needs_receive ? attributes->cap.max_recv_wr : 0);
  ibv_qp* created = nullptr;
  if (error == 0) {
    if (attributes->send_cq == nullptr) attributes->send_cq = send_cq;
    if (attributes->recv_cq == nullptr) attributes->recv_cq = recv_cq;
    if (attributes->srq == nullptr && !xrc_receiver) attributes->srq = srq;
    created = ibv_create_qp_ex(verbs, attributes);
    if (created == nullptr) error = errno;
  }
  if (error == 0) {
    ibv_qp_attr initial;
    const int mask = InitAttributes(device_->is_iwarp(), port_num, &initial);
    error = datagrams() ? StartDatagrams(created, port_num) : ibv_modify_qp(created, &initial, mask);
    if (error != 0) ibv_destroy_qp(created);
  }
  if (error != 0) {
    DestroyCompletionQueues();
    return error;
  }
  if (created->pd != nullptr) pd = created->pd;
  qp = created;
  return 0;
}

void Identifier::DestroyQueuePair() {
  LeaveAllGroups(/*forget=*/false);
  if (qp != nullptr) ibv_destroy_qp(qp);
  qp = nullptr;
  DestroyCompletionQueues();
}

ibv_qp* Identifier::StandIn() {
  if (stand_in_ != nullptr) return stand_in_;
  ibv_cq* const cq = ibv_create_cq(verbs, 1, nullptr, nullptr, 0);
  if (cq == nullptr) return nullptr;
  ibv_qp_init_attr attributes{};
  attributes.send_cq = attributes.recv_cq = cq;
  attributes.qp_type = IBV_QPT_RC;
  attributes.cap = {1, 1, 1, 1, 0};
  stand_in_ = ibv_create_qp(device_->pd, &attributes);
  if (stand_in_ == nullptr) ibv_destroy_cq(cq);
  return stand_in_;
}

void Identifier::DestroyStandIn() {
  if (stand_in_ == nullptr) return;
  ibv_cq* const cq = stand_in_->send_cq;
  ibv_destroy_qp(stand_in_);
  ibv_destroy_cq(cq);
  stand_in_ = nullptr;
}

int Identifier::CreateSharedReceiveQueue(ibv_srq_init_attr_ex* attributes) {
  if (srq != nullptr || verbs == nullptr) return EINVAL;
  if ((attributes->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) == 0) return EINVAL;
  const bool xrc = attributes->srq_type == IBV_SRQT_XRC;
  if (attributes->srq_type != IBV_SRQT_BASIC && !xrc) return EOPNOTSUPP;
  if ((attributes->comp_mask & IBV_SRQ_INIT_ATTR_PD) == 0 || attributes->pd == nullptr) {
    attributes->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
    attributes->pd = pd;
  }
  if (attributes->pd->context != verbs) return EINVAL;
  const bool had_queue = recv_cq != nullptr;
  int error = xrc ? FillXrcDefaults(attributes) : 0;
  if (error == 0) {
    srq = ibv_create_srq_ex(verbs, attributes);
    if (srq == nullptr) error = errno;
  }
  if (error != 0 && !had_queue) DestroyPair(&recv_cq, &recv_cq_channel);
  return error;
}

// The domain and the completion queue of a shared receive queue for extended connections, where the program names none.
int Identifier::FillXrcDefaults(ibv_srq_init_attr_ex* attributes) {
  if ((attributes->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) == 0 || attributes->xrcd == nullptr) {
    attributes->xrcd = device_->XrcDomain();
    if (attributes->xrcd == nullptr) return errno;
  }
  if ((attributes->comp_mask & IBV_SRQ_INIT_ATTR_CQ) == 0 || attributes->cq == nullptr) {
    const int error = recv_cq == nullptr ? CreateCompletionQueues(0, attributes->attr.max_wr) : 0;
    if (error != 0) return error;
    attributes->cq = recv_cq;
  }
  attributes->comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  return 0;
}

void Identifier::DestroySharedReceiveQueue() {
  if (srq != nullptr) ibv_destroy_srq(srq);
  srq = nullptr;
  DestroyCompletionQueues();
}

// The engine takes the queue pair from INIT to RTS when it connects; the program has only to bring it to INIT. A
// program that follows InfiniBand's habit of modifying it step by step is told to keep the state that it has.
int Identifier::InitQueuePairAttributes(ibv_qp_attr* attributes, int* mask) {
  TouchRequest();
  if (device_ == nullptr) return EINVAL;
  switch (attributes->qp_state) {
    case IBV_QPS_INIT:
    case IBV_QPS_RTR:
    case IBV_QPS_RTS:
      break;
    default:
      return EINVAL;
  }
  if (datagrams()) {
    *mask = DatagramAttributes(attributes->qp_state, port_num, attributes);
    return 0;
  }
  const ibv_qp_state asked = attributes->qp_state;
  *mask = InitAttributes(device_->is_iwarp(), port_num, attributes);
  if (asked != IBV_QPS_INIT && !device_->is_iwarp()) {
    // For programs that connect a queue pair themselves and ask where the peer is (UCX).
    attributes->ah_attr = AddressVector(route.addr.addr.ibaddr.dgid);
    ibv_port_attr port{};
    attributes->path_mtu = ibv_query_port(verbs, port_num, &port) == 0 ? port.active_mtu : IBV_MTU_1024;
  }
  const State now = state();
  if (now == State::kEstablished || now == State::kDisconnected) {
    attributes->qp_state = now == State::kEstablished ? IBV_QPS_RTS : IBV_QPS_ERR;
    *mask = IBV_QP_STATE;
    // What the way through INIT would have granted.
    if (now == State::kEstablished && asked == IBV_QPS_INIT) *mask |= IBV_QP_ACCESS_FLAGS;
  }
  return 0;
}

}  // namespace weft::cm

using weft::cm::Identifier;
using weft::cm::Return;

WEFT_CM_EXPORT int rdma_create_qp_ex(rdma_cm_id* id, ibv_qp_init_attr_ex* qp_init_attr) {
  if (id == nullptr || qp_init_attr == nullptr) return Return(EINVAL);
  return Return(Identifier::From(id)->CreateQueuePair(qp_init_attr));
}

WEFT_CM_EXPORT int rdma_create_qp(rdma_cm_id* id, ibv_pd* pd, ibv_qp_init_attr* qp_init_attr) {
  if (id == nullptr || qp_init_attr == nullptr) return Return(EINVAL);
  ibv_qp_init_attr_ex extended{};
  extended.qp_context = qp_init_attr->qp_context;
  extended.send_cq = qp_init_attr->send_cq;
  extended.recv_cq = qp_init_attr->recv_cq;
  extended.srq = qp_init_attr->srq;
  extended.cap = qp_init_attr->cap;
  extended.qp_type = qp_init_attr->qp_type;
  extended.sq_sig_all = qp_init_attr->sq_sig_all;
  extended.comp_mask = IBV_QP_INIT_ATTR_PD;
  extended.pd = pd;
  const int result = rdma_create_qp_ex(id, &extended);
  if (result == 0) {
    qp_init_attr->send_cq = extended.send_cq;
    qp_init_attr->recv_cq = extended.recv_cq;
    qp_init_attr->srq = extended.srq;
    qp_init_attr->cap = extended.cap;
  }
  return result;
}

WEFT_CM_EXPORT void rdma_destroy_qp(rdma_cm_id* id) {
  if (id != nullptr) Identifier::From(id)->DestroyQueuePair();
}

WEFT_CM_EXPORT int rdma_create_srq_ex(rdma_cm_id* id, ibv_srq_init_attr_ex* attr) {
  if (id == nullptr || attr == nullptr) return Return(EINVAL);
  return Return(Identifier::From(id)->CreateSharedReceiveQueue(attr));
}

WEFT_CM_EXPORT int rdma_create_srq(rdma_cm_id* id, ibv_pd* pd, ibv_srq_init_attr* attr) {
  if (id == nullptr || attr == nullptr) return Return(EINVAL);
  ibv_srq_init_attr_ex extended{};
  extended.srq_context = attr->srq_context;
  extended.attr = attr->attr;
  extended.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
  extended.srq_type = id->qp_type == IBV_QPT_XRC_RECV ? IBV_SRQT_XRC : IBV_SRQT_BASIC;
  extended.pd = pd;
  const int result = rdma_create_srq_ex(id, &extended);
  attr->attr = extended.attr;
  return result;
}

WEFT_CM_EXPORT void rdma_destroy_srq(rdma_cm_id* id) {
  if (id != nullptr) Identifier::From(id)->DestroySharedReceiveQueue();
}

WEFT_CM_EXPORT int rdma_init_qp_attr(rdma_cm_id* id, ibv_qp_attr* qp_attr, int* qp_attr_mask) {
  if (id == nullptr || qp_attr == nullptr || qp_attr_mask == nullptr) return Return(EINVAL);
  return Return(Identifier::From(id)->InitQueuePairAttributes(qp_attr, qp_attr_mask));
}
