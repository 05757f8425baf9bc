#include <cerrno>
#include <ctime>

#include "verbs/objects.h"

// The ibv_start_poll family: function pointers in the completion queue that read one completion after the other.
namespace weft::verbs {
namespace {

// Takes the completion that is read next.
int Advance(Cq* cq, int taken) {
  if (taken == 0) return ENOENT;
  cq->wr_id = cq->polled.wr_id;
  cq->status = cq->polled.status;
  return 0;
}

uint64_t* StampOf(Cq* cq) { return cq->read_completion_ts != nullptr ? &cq->polled_stamp : nullptr; }

int StartPoll(ibv_cq_ex* public_cq, ibv_poll_cq_attr* attributes) {
  if (attributes != nullptr && attributes->comp_mask != 0) return Report(EINVAL);
  Cq* cq = FromPublic(public_cq);
  if (!cq->single_threaded) cq->polling.lock();
  const int error = Advance(cq, cq->queue->Poll(1, &cq->polled, StampOf(cq)));
  if (error != 0 && !cq->single_threaded) cq->polling.unlock();
  return error;
}

// Does not ask the network again: a batch ends with what had come when it began, or while it was read.
int NextPoll(ibv_cq_ex* public_cq) {
  Cq* cq = FromPublic(public_cq);
  return Advance(cq, cq->queue->Take(1, &cq->polled, StampOf(cq)));
}

void EndPoll(ibv_cq_ex* public_cq) {
  Cq* cq = FromPublic(public_cq);
  if (!cq->single_threaded) cq->polling.unlock();
}

uint64_t NanosecondsOf(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t ReadTimestamp(ibv_cq_ex* cq) { return FromPublic(cq)->polled_stamp; }

// By the distance of the two clocks now: a step of the wall clock since the completion shows in it.
uint64_t ReadWallClock(ibv_cq_ex* cq) {
  return FromPublic(cq)->polled_stamp + NanosecondsOf(CLOCK_REALTIME) - NanosecondsOf(CLOCK_MONOTONIC);
}

const ibv_wc& Polled(ibv_cq_ex* cq) { return FromPublic(cq)->polled; }

}  // namespace

void FillPollOperations(Cq* cq, uint64_t wc_flags) {
  if (wc_flags & (IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)) {
    cq->read_completion_ts = ReadTimestamp;
    cq->read_completion_wallclock_ns = ReadWallClock;
  }
  cq->start_poll = StartPoll;
  cq->next_poll = NextPoll;
  cq->end_poll = EndPoll;
  cq->read_opcode = [](ibv_cq_ex* current) { return Polled(current).opcode; };
  cq->read_vendor_err = [](ibv_cq_ex* current) { return Polled(current).vendor_err; };
  cq->read_wc_flags = [](ibv_cq_ex* current) { return Polled(current).wc_flags; };
  if (wc_flags & IBV_WC_EX_WITH_BYTE_LEN) {
    cq->read_byte_len = [](ibv_cq_ex* current) { return Polled(current).byte_len; };
  }
  // Immediate data and the invalidated key share a place; the latter needs no flag (ibv_create_cq_ex(3)).
  cq->read_imm_data = [](ibv_cq_ex* current) { return Polled(current).imm_data; };
  if (wc_flags & IBV_WC_EX_WITH_QP_NUM) cq->read_qp_num = [](ibv_cq_ex* current) { return Polled(current).qp_num; };
  if (wc_flags & IBV_WC_EX_WITH_SRC_QP) cq->read_src_qp = [](ibv_cq_ex* current) { return Polled(current).src_qp; };
  if (wc_flags & IBV_WC_EX_WITH_SLID) {
    cq->read_slid = [](ibv_cq_ex* current) { return uint32_t{Polled(current).slid}; };
  }
  if (wc_flags & IBV_WC_EX_WITH_SL) cq->read_sl = [](ibv_cq_ex* current) { return Polled(current).sl; };
  if (wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS) {
    cq->read_dlid_path_bits = [](ibv_cq_ex* current) { return Polled(current).dlid_path_bits; };
  }
}

}  // namespace weft::verbs
