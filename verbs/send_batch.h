#ifndef VERBS_SEND_BATCH_H_
#define VERBS_SEND_BATCH_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "sim/queue_pair/queue_pair.h"

namespace weft::verbs {

// The work requests between ibv_wr_start and ibv_wr_complete (ibv_wr_post(3)). Start locks the batch for the calling
// thread; Complete and Abort unlock it. The first error is kept. Complete then posts nothing, and returns it.
class SendBatch {
 public:
  void Start();
  // Makes Complete() fail if a fault asks for it.
  void Inject(const ibv_qp& qp);
  int Complete(sim::AnyQueuePair& engine);
  void Abort();

  // Adds a work request; the setters below apply to it.
  ibv_send_wr& Add(uint64_t wr_id, unsigned int flags, ibv_wr_opcode opcode);
  ibv_send_wr& Last() { return entries_.back().wr; }  // the result of the last Add()
  void SetSges(const ibv_sge* sges, size_t count);
  // Copies the data, which the program may reuse at once.
  void SetInline(const ibv_data_buf* buffers, size_t count);
  void SetDatagramAddress(ibv_ah* ah, uint32_t remote_qpn, uint32_t remote_qkey);
  void SetSharedReceiveQueue(uint32_t number);  // XRC: the target of the request
  void Refuse(int error);

 private:
  struct Entry {
    ibv_send_wr wr{};
    size_t first_sge = 0;
    bool is_inline = false;
  };

  void Reset();

  std::mutex mutex_;
  int error_ = 0;
  // Reused by each batch, so that no memory is allocated once the vectors are large enough.
  std::vector<Entry> entries_;
  std::vector<ibv_sge> sges_;  // for an inline entry, the address is an offset into inline_
  std::vector<uint8_t> inline_;
};

}  // namespace weft::verbs

#endif  // VERBS_SEND_BATCH_H_
