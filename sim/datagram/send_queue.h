#ifndef SIM_DATAGRAM_SEND_QUEUE_H_
#define SIM_DATAGRAM_SEND_QUEUE_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/datagram/header.h"
#include "transport/socket_address.h"

namespace weft::sim {

// One posted datagram.
struct DatagramSend {
  uint64_t id = 0;
  bool signaled = false;
  bool is_inline = false;
  bool too_long = false;  // longer than the port's MTU: it is not sent
  bool foreign = false;   // its address handle is of another protection domain: fails when its turn comes
  bool sendable() const { return !too_long && !foreign; }
  uint8_t pieces = 0;
  DatagramHeader header;
  transport::SocketAddress to, from;
  uint32_t interface = 0;
};

// The ring of the send work requests of a datagram queue pair. Not thread safe. Counters grow without bound: retired <=
// posted.
class DatagramSendQueue {
 public:
  struct Limits {
    uint32_t depth = 0, max_sge = 0, max_inline = 0;
    uint32_t max_payload = 0;  // bytes: the port's MTU
    uint32_t domain = 0;       // Pd::id; a request with an address handle of another domain is foreign
  };
  explicit DatagramSendQueue(const Limits& limits);

  // Writes the request behind the `staged` ones that are not posted yet. Returns 0, or the errno of ibv_post_send(3):
  // EINVAL (opcode, flags, elements, address handle, QPN, more bytes than a message or inline data may have), ENOMEM
  // (full).
  int Stage(const ibv_send_wr& wr, bool signal_all, uint32_t staged);
  void Publish(uint32_t count) { posted_ += count; }

  uint64_t posted() const { return posted_; }
  uint64_t retired() const { return retired_; }
  bool empty() const { return posted_ == retired_; }
  DatagramSend& entry(uint64_t count) { return entries_[count % limits_.depth]; }
  const ibv_sge* elements(uint64_t count) const { return &elements_[(count % limits_.depth) * limits_.max_sge]; }
  const uint8_t* inline_bytes(uint64_t count) const { return &inline_[(count % limits_.depth) * limits_.max_inline]; }
  void Retire() { ++retired_; }
  void Clear() { retired_ = posted_; }

 private:
  int StagePayload(const ibv_send_wr& wr, uint64_t count, DatagramSend& entry);

  const Limits limits_;
  std::unique_ptr<DatagramSend[]> entries_;
  std::unique_ptr<ibv_sge[]> elements_;
  std::unique_ptr<uint8_t[]> inline_;
  uint64_t posted_ = 0, retired_ = 0;
};

}  // namespace weft::sim

#endif  // SIM_DATAGRAM_SEND_QUEUE_H_
