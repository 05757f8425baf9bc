#include "sim/queue_pair/attributes.h"

#include <algorithm>
#include <cstdint>

#include "sim/device/gid.h"
#include "sim/device/limits.h"

namespace weft::sim {
namespace {

constexpr uint32_t kMostNumber = 0xffffff;
constexpr uint8_t kMostTimer = 31, kMostCount = 7;  // five and three bits

}  // namespace

bool ValuesAllowed(const ibv_qp_attr& a, int mask) {
  const auto within = [&](int bit, uint64_t value, uint64_t most) { return (mask & bit) == 0 || value <= most; };
  return within(IBV_QP_MAX_DEST_RD_ATOMIC, a.max_dest_rd_atomic, kMaxReads) &&
         within(IBV_QP_MAX_QP_RD_ATOMIC, a.max_rd_atomic, kMaxReads) && within(IBV_QP_PKEY_INDEX, a.pkey_index, 0) &&
         within(IBV_QP_TIMEOUT, a.timeout, kMostTimer) && within(IBV_QP_RETRY_CNT, a.retry_cnt, kMostCount) &&
         within(IBV_QP_RNR_RETRY, a.rnr_retry, kMostCount) && within(IBV_QP_MIN_RNR_TIMER, a.min_rnr_timer, kMostTimer) &&
         within(IBV_QP_DEST_QPN, a.dest_qp_num, kMostNumber) &&
         ((mask & IBV_QP_PORT) == 0 || a.port_num == 1) &&
         ((mask & IBV_QP_PATH_MTU) == 0 || (a.path_mtu >= IBV_MTU_256 && a.path_mtu <= IBV_MTU_4096));
}

void TakeAttributes(const ibv_qp_attr& from, int mask, ibv_qp_attr& to) {
  const auto take = [&](int bit, auto member) {
    if (mask & bit) to.*member = from.*member;
  };
  take(IBV_QP_ACCESS_FLAGS, &ibv_qp_attr::qp_access_flags);
  take(IBV_QP_PKEY_INDEX, &ibv_qp_attr::pkey_index);
  take(IBV_QP_AV, &ibv_qp_attr::ah_attr);
  take(IBV_QP_PATH_MTU, &ibv_qp_attr::path_mtu);
  take(IBV_QP_TIMEOUT, &ibv_qp_attr::timeout);
  take(IBV_QP_RETRY_CNT, &ibv_qp_attr::retry_cnt);
  take(IBV_QP_RNR_RETRY, &ibv_qp_attr::rnr_retry);
  take(IBV_QP_RQ_PSN, &ibv_qp_attr::rq_psn);
  take(IBV_QP_SQ_PSN, &ibv_qp_attr::sq_psn);
  take(IBV_QP_DEST_QPN, &ibv_qp_attr::dest_qp_num);
  take(IBV_QP_MAX_QP_RD_ATOMIC, &ibv_qp_attr::max_rd_atomic);
  take(IBV_QP_MAX_DEST_RD_ATOMIC, &ibv_qp_attr::max_dest_rd_atomic);
  take(IBV_QP_MIN_RNR_TIMER, &ibv_qp_attr::min_rnr_timer);
  take(IBV_QP_PATH_MIG_STATE, &ibv_qp_attr::path_mig_state);
  take(IBV_QP_ALT_PATH, &ibv_qp_attr::alt_ah_attr);
  take(IBV_QP_EN_SQD_ASYNC_NOTIFY, &ibv_qp_attr::en_sqd_async_notify);
}

Service ServiceOf(ibv_qp_type type) {
  switch (type) {
    case IBV_QPT_UC:
      return Service::kUnreliable;
    case IBV_QPT_XRC_SEND:
      return Service::kXrcSend;
    case IBV_QPT_XRC_RECV:
      return Service::kXrcReceive;
    default:
      return Service::kReliable;
  }
}

std::optional<PeerChoice> ChoosePeer(const ibv_qp_attr& attributes, const QueuePairOptions& options, rdmap::Delivery delivery) {
  const ibv_ah_attr& handle = attributes.ah_attr;
  if (handle.port_num != 1) return std::nullopt;
  PeerChoice choice;
  choice.number = attributes.dest_qp_num;
  if (handle.is_global) {
    if (handle.grh.sgid_index >= options.addresses.size()) return std::nullopt;
    choice.address = AddressOf(handle.grh.dgid, static_cast<uint32_t>(options.interface_index));
    choice.local = options.addresses[handle.grh.sgid_index];
  } else {
    // All that has our port's LID is our port; RoCE's is 0. qperf names its own host's so, which tells its peer no GID.
    if (handle.dlid != 0) return std::nullopt;
    const auto own = std::find_if(options.addresses.begin(), options.addresses.end(), [](const auto& a) { return a.family() != 0; });
    if (own == options.addresses.end()) return std::nullopt;
    choice.address = choice.local = *own;
    choice.own_host = true;
  }
  if (choice.address.family() == 0 || choice.local.family() != choice.address.family()) return std::nullopt;
  choice.service = ServiceOf(options.type);
  choice.delivery = delivery;
  choice.ird = attributes.max_dest_rd_atomic;
  choice.receive_number = attributes.rq_psn & 0xffffff;
  choice.ord = kMaxReads;  // the program says at RTS how many; until then as many as the peer takes
  return choice;
}

}  // namespace weft::sim
