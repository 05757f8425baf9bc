#include "cm/rsocket/datagram_link.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "cm/rsocket/limits.h"

namespace weft::rsocket {
namespace {

constexpr uint32_t kGrh = 40;  // bytes in front of what comes
constexpr uint64_t kReceive = uint64_t{1} << 32;  // in a wr_id; the rest is the slot
// The Q_Key of rdma_cm's datagrams (RDMA_UDP_QKEY).
constexpr uint32_t kQueueKey = RDMA_UDP_QKEY;
constexpr uint8_t kPort = 1;
constexpr uint8_t kHopLimit = 64;
constexpr uint32_t kLeastRoom = 512;  // bytes of receive buffer that a datagram takes at least

}  // namespace

std::unique_ptr<DatagramLink> DatagramLink::Create(ibv_context* device, const LinkSizes& sizes) {
  std::unique_ptr<DatagramLink> link(new DatagramLink(device));
  if (link->Make(sizes)) return link;
  const int error = errno;
  link.reset();
  errno = error;
  return nullptr;
}

DatagramLink::~DatagramLink() {
  if (qp_ != nullptr) ibv_destroy_qp(qp_);
  if (region_ != nullptr) ibv_dereg_mr(region_);
  if (cq_ != nullptr) ibv_destroy_cq(cq_);
  if (channel_ != nullptr) ibv_destroy_comp_channel(channel_);
  if (pd_ != nullptr) ibv_dealloc_pd(pd_);
}

uint8_t* DatagramLink::ReceivePlace(uint64_t slot) {
  return memory_.get() + uint64_t{send_slots_} * most_bytes_ + slot * (kGrh + most_bytes_);
}

bool DatagramLink::Make(const LinkSizes& sizes) {
  ibv_port_attr port{};
  if (const int error = ibv_query_port(device_, kPort, &port); error != 0) {
    errno = error;
    return false;
  }
  most_bytes_ = 128u << port.active_mtu;  // IBV_MTU_256 is 1
  send_slots_ = std::clamp(sizes.send_bytes / most_bytes_, kLeastQueue, std::max(kLeastQueue, sizes.send_queue));
  // A datagram takes a whole place, however short: as many as the kernel lets a UDP socket with that buffer hold short ones.
  receive_slots_ = std::clamp(sizes.receive_bytes / kLeastRoom, kLeastQueue, kMostQueue);
  if (receive_slots_ < sizes.receive_queue) receive_slots_ = sizes.receive_queue;

  channel_ = ibv_create_comp_channel(device_);
  if (channel_ == nullptr || fcntl(channel_->fd, F_SETFL, O_NONBLOCK) != 0) return false;
  cq_ = ibv_create_cq(device_, static_cast<int>(send_slots_ + receive_slots_), nullptr, channel_, 0);
  pd_ = cq_ != nullptr ? ibv_alloc_pd(device_) : nullptr;
  if (pd_ == nullptr) return false;
  ibv_qp_init_attr attributes{};
  attributes.send_cq = attributes.recv_cq = cq_;
  attributes.qp_type = IBV_QPT_UD;
  attributes.cap = {send_slots_, receive_slots_, 1, 1, std::min(sizes.inline_bytes, kMostInline)};
  qp_ = ibv_create_qp(pd_, &attributes);
  if (qp_ == nullptr) return false;
  inline_bytes_ = attributes.cap.max_inline_data;
  const size_t bytes = uint64_t{send_slots_} * most_bytes_ + uint64_t{receive_slots_} * (kGrh + most_bytes_);
  memory_.reset(new (std::nothrow) uint8_t[bytes]);  // not touched until used
  if (memory_ == nullptr) {
    errno = ENOMEM;
    return false;
  }
  region_ = ibv_reg_mr(pd_, memory_.get(), bytes, IBV_ACCESS_LOCAL_WRITE);
  if (region_ == nullptr) return false;
  for (uint32_t slot = send_slots_; slot > 0; --slot) free_.push_back(slot - 1);
  return Activate();
}

bool DatagramLink::Activate() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = kPort;
  attributes.qkey = kQueueKey;
  int error = ibv_modify_qp(qp_, &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
  for (uint32_t slot = 0; error == 0 && slot < receive_slots_; ++slot) Release(slot);
  attributes.qp_state = IBV_QPS_RTR;
  if (error == 0) error = ibv_modify_qp(qp_, &attributes, IBV_QP_STATE);
  attributes.qp_state = IBV_QPS_RTS;
  if (error == 0) error = ibv_modify_qp(qp_, &attributes, IBV_QP_STATE | IBV_QP_SQ_PSN);
  errno = error;
  return error == 0;
}

ibv_ah* DatagramLink::MakeAddress(const rdma_cm_id* resolved) const {
  ibv_ah_attr attributes{};
  attributes.is_global = 1;
  attributes.port_num = kPort;
  attributes.grh.dgid = resolved->route.addr.addr.ibaddr.dgid;
  attributes.grh.hop_limit = kHopLimit;
  ibv_port_attr port{};
  if (ibv_query_port(device_, kPort, &port) == 0) {
    // An address that is not in the table (of 127.0.0.0/8) leaves from the first.
    for (int index = 0; index < port.gid_tbl_len; ++index) {
      ibv_gid gid{};
      if (ibv_query_gid(device_, kPort, index, &gid) != 0) continue;
      if (std::memcmp(gid.raw, resolved->route.addr.addr.ibaddr.sgid.raw, sizeof gid.raw) != 0) continue;
      attributes.grh.sgid_index = static_cast<uint8_t>(index);
      break;
    }
  }
  return ibv_create_ah(pd_, &attributes);
}

int DatagramLink::Send(ibv_ah* to, uint32_t queue_pair, Bytes header, VectorCursor& from, size_t length) {
  const uint32_t slot = free_.back();
  uint8_t* const place = SendPlace(slot);
  std::memcpy(place, header.data(), header.size());
  from.CopyOut(place + header.size(), length);
  const auto bytes = static_cast<uint32_t>(header.size() + length);
  ibv_sge element{reinterpret_cast<uintptr_t>(place), bytes, region_->lkey};
  ibv_send_wr wr{}, *bad = nullptr;
  wr.wr_id = slot;
  wr.sg_list = &element;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  if (bytes <= inline_bytes_) wr.send_flags |= IBV_SEND_INLINE;
  wr.wr.ud = {to, queue_pair, kQueueKey};
  const int error = ibv_post_send(qp_, &wr, &bad);
  if (error == 0) free_.pop_back();
  return error;
}

bool DatagramLink::Take(Incoming* incoming) {
  ibv_wc completion{};
  while (ibv_poll_cq(cq_, 1, &completion) == 1) {
    const auto slot = static_cast<uint32_t>(completion.wr_id);
    if ((completion.wr_id & kReceive) == 0) {
      free_.push_back(slot);
      continue;
    }
    if (completion.status != IBV_WC_SUCCESS || completion.byte_len < kGrh) continue;  // the device is gone
    *incoming = {slot, completion.src_qp, {ReceivePlace(slot) + kGrh, completion.byte_len - kGrh}};
    return true;
  }
  return false;
}

void DatagramLink::Release(uint32_t slot) {
  ibv_sge element{reinterpret_cast<uintptr_t>(ReceivePlace(slot)), kGrh + most_bytes_, region_->lkey};
  ibv_recv_wr wr{}, *bad = nullptr;
  wr.wr_id = kReceive | slot;
  wr.sg_list = &element;
  wr.num_sge = 1;
  // An error leaves one place less; a datagram that finds none is lost, as any may be.
  [[maybe_unused]] const int error = ibv_post_recv(qp_, &wr, &bad);
}

void DatagramLink::Arm() {
  if (armed_) return;
  armed_ = true;
  ibv_req_notify_cq(cq_, 0);
}

bool DatagramLink::TakeEvents() {
  bool any = false;
  ibv_cq* cq;
  void* context;
  while (ibv_get_cq_event(channel_, &cq, &context) == 0) {
    ibv_ack_cq_events(cq_, 1);
    any = true;
  }
  if (any) armed_ = false;
  return any;
}

}  // namespace weft::rsocket
