#include "sim/datagram/send_queue.h"

#include <cerrno>
#include <cstring>

#include "sim/datagram/address_handle.h"
#include "sim/datagram/port.h"
#include "sim/device/limits.h"

namespace weft::sim {
namespace {

constexpr unsigned kKnownFlags = IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE;
constexpr uint32_t kQueuePairNumber = 0xffffff;

}  // namespace

DatagramSendQueue::DatagramSendQueue(const Limits& limits)
    : limits_(limits),
      entries_(new DatagramSend[limits.depth]),
      elements_(new ibv_sge[size_t{limits.depth} * limits.max_sge]),
      inline_(new uint8_t[size_t{limits.depth} * limits.max_inline]) {}

int DatagramSendQueue::Stage(const ibv_send_wr& wr, bool signal_all, uint32_t staged) {
  if (wr.opcode != IBV_WR_SEND && wr.opcode != IBV_WR_SEND_WITH_IMM) return EINVAL;
  if ((wr.send_flags & ~kKnownFlags) != 0) return EINVAL;
  const auto* to = static_cast<const AddressHandle*>(wr.wr.ud.ah);
  if (to == nullptr) return EINVAL;
  const uint32_t destination = wr.wr.ud.remote_qpn & kQueuePairNumber;  // a packet has no room for more, and adapters do not look at more
  if (to->group != (destination == kGroupQueuePair)) return EINVAL;
  const uint64_t count = posted_ + staged;
  if (count - retired_ >= limits_.depth) return ENOMEM;

  DatagramSend& entry = this->entry(count);
  if (int error = StagePayload(wr, count, entry)) return error;
  entry.id = wr.wr_id;
  entry.foreign = to->domain->id != limits_.domain;
  entry.signaled = signal_all || (wr.send_flags & IBV_SEND_SIGNALED);
  entry.to = to->remote;
  entry.to.set_port(to->group ? kGroupUdpPort : DatagramPort::UdpPortOf(destination));
  entry.from = to->local;
  entry.interface = to->interface;
  DatagramHeader& header = entry.header;
  const bool immediate = wr.opcode == IBV_WR_SEND_WITH_IMM;
  header.opcode = immediate ? DatagramHeader::Opcode::kSendImmediate : DatagramHeader::Opcode::kSend;
  header.solicited = (wr.send_flags & IBV_SEND_SOLICITED) != 0;
  header.traffic_class = to->traffic_class;
  header.hop_limit = to->hop_limit;
  header.destination = destination;
  header.qkey = wr.wr.ud.remote_qkey;
  header.immediate = immediate ? wr.imm_data : 0;
  return 0;
}

int DatagramSendQueue::StagePayload(const ibv_send_wr& wr, uint64_t count, DatagramSend& entry) {
  if (wr.num_sge < 0 || static_cast<uint32_t>(wr.num_sge) > limits_.max_sge) return EINVAL;
  const auto pieces = static_cast<size_t>(wr.num_sge);
  uint64_t length = 0;
  for (size_t i = 0; i < pieces; ++i) length += wr.sg_list[i].length;
  entry.is_inline = (wr.send_flags & IBV_SEND_INLINE) && pieces > 0;
  if (length > kMaxMessage || (entry.is_inline && length > limits_.max_inline)) return EINVAL;
  entry.too_long = length > limits_.max_payload;
  if (entry.too_long) {
    entry.header.length = 0;
    entry.pieces = 0;
    return 0;
  }
  entry.header.length = static_cast<uint16_t>(length);
  entry.pieces = static_cast<uint8_t>(pieces);
  if (entry.is_inline) {
    uint8_t* to = &inline_[(count % limits_.depth) * limits_.max_inline];
    for (size_t i = 0; i < pieces; ++i) {
      if (wr.sg_list[i].length == 0) continue;
      std::memcpy(to, reinterpret_cast<const void*>(wr.sg_list[i].addr), wr.sg_list[i].length);
      to += wr.sg_list[i].length;
    }
  } else if (pieces > 0) {
    std::memcpy(&elements_[(count % limits_.depth) * limits_.max_sge], wr.sg_list, pieces * sizeof(ibv_sge));
  }
  return 0;
}

}  // namespace weft::sim
