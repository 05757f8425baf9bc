#include "faults/kinds.h"

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cerrno>
#include <iterator>

#include "base/check.h"

namespace weft::faults {
namespace {

constexpr KeyInfo kKeys[] = {
    {kTime, "time", "TIME", "The duration: 250us, 5ms, 2s, 1m."},
    {kJitter, "jitter", "TIME", "Up to this much more or less each time."},
    {kRate, "rate", "RATE", "Bits per second: 500kbit, 10mbit, 1gbit."},
    {kStatus, "status", "STATUS",
     "A completion status of ibv_poll_cq(3), without IBV_WC_: RETRY_EXC_ERR, REM_ACCESS_ERR ..."},
    {kErrno, "errno", "ERRNO", "An error of errno(3): ENOMEM, EAGAIN ..., or its number."},
    {kCall, "call", "VERB", "The verb that fails: ibv_reg_mr, ibv_create_qp, ibv_post_send ..."},
    {kEvent, "event", "EVENT", "An event of rdma_get_cm_event(3), without RDMA_CM_EVENT_."},
    {kFor, "for", "TIME", "The fault ends after this time; without for=, it stays."},
    {kGiveUp, "give_up", "TIME",
     "After this time, this end gives up the connection, as TCP does (ETIMEDOUT); without give_up=, never."},
    {kQp, "qp", "NUMBER", "Only this queue pair: ibv_qp.qp_num, 17 or 0x11."},
    {kPeer, "peer", "ADDRESS", "Only connections to this peer: 192.0.2.7, 192.0.2.7:7471, [fd00::7]:7471, or :7471 for the port on any host."},
    {kOpcode, "opcode", "OPCODE",
     "Only work requests with this opcode of ibv_post_send(3), without IBV_WR_ (SEND, RDMA_WRITE, RDMA_READ ...); "
     "RECV: receives."},
    {kDevice, "device", "NAME", "Only this device: weft_eth0."},
    {kNth, "nth", "NUMBER", "Only the n-th time, counted from 1."},
    {kEvery, "every", "NUMBER", "Every n-th time."},
    {kProbability, "probability", "P", "With this probability each time: 0.01 or 1%."},
    {kAfterBytes, "after_bytes", "BYTES",
     "After this many bytes on the connection, in both directions together, with headers: 1000, 64K, 1M."},
    {kAfter, "after", "TIME",
     "Not before this time has passed since the connection was established or, for faults of no connection, since the "
     "fault was set."},
    {kTimes, "times", "NUMBER", "At most this many times."},
};

constexpr uint32_t kWhereConnection = kQp | kPeer | kDevice;
constexpr uint32_t kChoice = kNth | kEvery | kProbability | kTimes;
constexpr uint32_t kWhenOnConnection = kAfterBytes | kAfter;

// Order is that of Kind, and of the list that users read.
constexpr KindInfo kKinds[] = {
    {Kind::kCut, "cut", kWhereConnection | kChoice | kWhenOnConnection, 0,
     "The connection ends (FIN in both directions), possibly in the middle of a frame. Over SCTP its session ends, "
     "after a whole message; this holds for all faults of the bytes of a connection.", "connections",
     "At both ends, outstanding requests complete with WR_FLUSH_ERR, the queue pair is in ERR, and there is "
     "RDMA_CM_EVENT_DISCONNECTED. If the program connected the queue pair by ibv_modify_qp, the oldest send completes "
     "with RETRY_EXC_ERR and the rest with WR_FLUSH_ERR; an idle queue pair stays in RTS until a send is posted.",
     "cut after_bytes=64K"},
    {Kind::kReset, "reset", kWhereConnection | kChoice | kWhenOnConnection, 0,
     "The connection is reset (RST), as by a peer that crashed.", "connections",
     "At both ends, outstanding requests complete with WR_FLUSH_ERR (persona roce: the oldest send with "
     "RETRY_EXC_ERR), the queue pair is in ERR, and there is RDMA_CM_EVENT_DISCONNECTED. If the program connected the "
     "queue pair by ibv_modify_qp: as with cut.",
     "reset after=2s peer=192.0.2.7"},
    {Kind::kBlackhole, "blackhole", kWhereConnection | kChoice | kWhenOnConnection | kFor | kGiveUp, 0,
     "No data pass any more in either direction, and neither end is told.", "connections",
     "Requests that need the peer do not complete, and there is no event. With for=, data flow again after that time. "
     "With give_up=, this end's queue pair fails as with reset, and the peer still learns nothing. Persona roce: "
     "after the time that timeout and retry_cnt give (at least 3 s, and up to twice as long), the oldest send "
     "completes with RETRY_EXC_ERR, the rest with WR_FLUSH_ERR, and the queue pair is in ERR.",
     "blackhole after=1s give_up=10s qp=0x12"},
    {Kind::kDelay, "delay", kWhereConnection | kChoice | kWhenOnConnection | kTime | kJitter | kFor, kTime,
     "Data that this end sends arrive later, in order, as over a longer line.", "connections",
     "Transfers take longer.", "delay time=5ms jitter=1ms"},
    {Kind::kBandwidth, "bandwidth", kWhereConnection | kChoice | kWhenOnConnection | kRate | kFor, kRate,
     "This end sends at no more than this rate on each connection.", "connections",
     "Transfers take longer.", "bandwidth rate=10mbit device=weft_eth0"},
    {Kind::kCorrupt, "corrupt", kWhereConnection | kChoice | kWhenOnConnection, 0,
     "One bit of a frame (FPDU) that this end sends is inverted. Connections that are made while this fault is set "
     "use CRC. A connection without CRC is not changed, and a line on standard error says so.",
     "writes to the connection, each of one or several frames (the default is times=1)",
     "The peer's CRC check finds the error: its queue pair is in ERR with IBV_EVENT_QP_REQ_ERR, and it ends the "
     "stream. At this end, outstanding requests complete, the oldest send with REM_OP_ERR, the rest with "
     "WR_FLUSH_ERR; persona iwarp: also IBV_EVENT_QP_FATAL. Both ends get RDMA_CM_EVENT_DISCONNECTED. No wrong byte "
     "is placed. Over SCTP, the bit is one of a packet; the peer finds its checksum wrong, and SCTP sends the packet "
     "again, which only takes longer.",
     "corrupt nth=10"},
    {Kind::kCompletion, "completion", kWhereConnection | kOpcode | kChoice | kAfter | kStatus, kStatus,
     "A work request of a connected queue pair is not carried out and completes with this status.", "work requests",
     "The completion with this status. Then, as after every error of a reliable queue pair: the others complete with "
     "WR_FLUSH_ERR, the queue pair is in ERR, and both ends get RDMA_CM_EVENT_DISCONNECTED.",
     "completion status=RETRY_EXC_ERR opcode=RDMA_WRITE nth=5"},
    {Kind::kCqOverrun, "cq_overrun", kQp | kChoice | kAfter, 0,
     "The completion queue of a queue pair overruns at this completion, even if it has room.", "completions",
     "The completion is lost. There is IBV_EVENT_CQ_ERR, then IBV_EVENT_QP_FATAL for the queue pair of the "
     "completion, which is in ERR.",
     "cq_overrun nth=100"},
    {Kind::kRnr, "rnr", kWhereConnection | kChoice | kAfter, 0,
     "An incoming message that needs a receive is answered as if none were posted.", "incoming messages",
     "Persona iwarp: the stream is terminated, the sender's outstanding requests complete, the oldest with "
     "REM_OP_ERR, and both queue pairs are in ERR. Persona roce: the sender waits min_rnr_timer and tries again; "
     "after rnr_retry tries, RNR_RETRY_EXC_ERR.",
     "rnr probability=20%"},
    {Kind::kFail, "fail", kDevice | kQp | kOpcode | kChoice | kAfter | kCall | kErrno, kCall | kErrno,
     "A verb fails with this errno and does nothing.", "calls",
     "The failure that the verb's man page documents: a null pointer and errno, or the errno returned. ibv_post_send "
     "and ibv_post_recv: bad_wr is the first request of the list, none of the list is posted, and the queue pair "
     "stays as it was.",
     "fail call=ibv_reg_mr errno=ENOMEM nth=3"},
    {Kind::kCmEvent, "cm_event", kPeer | kDevice | kChoice | kAfter | kEvent | kErrno, kEvent,
     "rdma_cm reports this event. ADDR_ERROR, ROUTE_ERROR: instead of resolving the address or route. CONNECT_ERROR, "
     "UNREACHABLE, REJECTED: instead of connecting. DEVICE_REMOVAL, ADDR_CHANGE: for an identifier whose connection "
     "is established, after= later. TIMEWAIT_EXIT: after DISCONNECTED.",
     "calls of rdma_resolve_addr, rdma_resolve_route, rdma_connect; established connections; disconnected ones",
     "The event, with its status: -errno=, or the usual one. DEVICE_REMOVAL, ADDR_CHANGE and TIMEWAIT_EXIT change "
     "nothing else; the program decides what to do.",
     "cm_event event=REJECTED peer=:7471 times=2"},
    {Kind::kPortDown, "port_down", kDevice | kAfter | kFor | kTimes, 0,
     "The port goes down. With for= it comes up again after that time, and with times= this happens so many times. No "
     "data pass on its connections while it is down; no byte is lost.",
     nullptr,
     "IBV_EVENT_PORT_ERR, and ibv_query_port reports IBV_PORT_DOWN. When the port is up again: IBV_EVENT_PORT_ACTIVE.",
     "port_down device=weft_eth0 after=1s for=500ms"},
    {Kind::kDeviceFatal, "device_fatal", kDevice | kAfter, 0,
     "The device fails permanently.", nullptr,
     "IBV_EVENT_DEVICE_FATAL on every context. Every queue pair is in ERR and flushes, and its peer sees a reset. "
     "Verbs that create an object fail with EIO.",
     "device_fatal after=3s"},
    {Kind::kSlowProgress, "slow_progress", kTime | kJitter, kTime,
     "The thread that plays the hardware sleeps this long before each round of work.", nullptr,
     "Everything that the program does not drive itself by polling takes longer.", "slow_progress time=10ms"},
};

constexpr Word kErrnos[] = {
    {"EPERM", EPERM},           {"ENOENT", ENOENT},           {"EINTR", EINTR},           {"EIO", EIO},
    {"ENXIO", ENXIO},           {"EBADF", EBADF},             {"EAGAIN", EAGAIN},         {"ENOMEM", ENOMEM},
    {"EACCES", EACCES},         {"EFAULT", EFAULT},           {"EBUSY", EBUSY},           {"EEXIST", EEXIST},
    {"ENODEV", ENODEV},         {"EINVAL", EINVAL},           {"ENFILE", ENFILE},         {"EMFILE", EMFILE},
    {"ENOSPC", ENOSPC},         {"EPIPE", EPIPE},             {"ERANGE", ERANGE},         {"ENOSYS", ENOSYS},
    {"EOPNOTSUPP", EOPNOTSUPP}, {"ENOTSUP", ENOTSUP},         {"EPROTO", EPROTO},         {"EMSGSIZE", EMSGSIZE},
    {"EADDRINUSE", EADDRINUSE}, {"EADDRNOTAVAIL", EADDRNOTAVAIL}, {"ENETDOWN", ENETDOWN}, {"ENETUNREACH", ENETUNREACH},
    {"ECONNABORTED", ECONNABORTED}, {"ECONNRESET", ECONNRESET}, {"ENOBUFS", ENOBUFS},     {"ENOTCONN", ENOTCONN},
    {"ETIMEDOUT", ETIMEDOUT},   {"ECONNREFUSED", ECONNREFUSED}, {"EHOSTUNREACH", EHOSTUNREACH}, {"ESTALE", ESTALE},
};

constexpr Word kStatuses[] = {
    {"LOC_LEN_ERR", IBV_WC_LOC_LEN_ERR},
    {"LOC_QP_OP_ERR", IBV_WC_LOC_QP_OP_ERR},
    {"LOC_EEC_OP_ERR", IBV_WC_LOC_EEC_OP_ERR},
    {"LOC_PROT_ERR", IBV_WC_LOC_PROT_ERR},
    {"WR_FLUSH_ERR", IBV_WC_WR_FLUSH_ERR},
    {"MW_BIND_ERR", IBV_WC_MW_BIND_ERR},
    {"BAD_RESP_ERR", IBV_WC_BAD_RESP_ERR},
    {"LOC_ACCESS_ERR", IBV_WC_LOC_ACCESS_ERR},
    {"REM_INV_REQ_ERR", IBV_WC_REM_INV_REQ_ERR},
    {"REM_ACCESS_ERR", IBV_WC_REM_ACCESS_ERR},
    {"REM_OP_ERR", IBV_WC_REM_OP_ERR},
    {"RETRY_EXC_ERR", IBV_WC_RETRY_EXC_ERR},
    {"RNR_RETRY_EXC_ERR", IBV_WC_RNR_RETRY_EXC_ERR},
    {"LOC_RDD_VIOL_ERR", IBV_WC_LOC_RDD_VIOL_ERR},
    {"REM_INV_RD_REQ_ERR", IBV_WC_REM_INV_RD_REQ_ERR},
    {"REM_ABORT_ERR", IBV_WC_REM_ABORT_ERR},
    {"INV_EECN_ERR", IBV_WC_INV_EECN_ERR},
    {"INV_EEC_STATE_ERR", IBV_WC_INV_EEC_STATE_ERR},
    {"FATAL_ERR", IBV_WC_FATAL_ERR},
    {"RESP_TIMEOUT_ERR", IBV_WC_RESP_TIMEOUT_ERR},
    {"GENERAL_ERR", IBV_WC_GENERAL_ERR},
};

constexpr Word kOpcodes[] = {
    {"SEND", IBV_WR_SEND},
    {"SEND_WITH_IMM", IBV_WR_SEND_WITH_IMM},
    {"SEND_WITH_INV", IBV_WR_SEND_WITH_INV},
    {"RDMA_WRITE", IBV_WR_RDMA_WRITE},
    {"RDMA_WRITE_WITH_IMM", IBV_WR_RDMA_WRITE_WITH_IMM},
    {"RDMA_READ", IBV_WR_RDMA_READ},
    {"ATOMIC_CMP_AND_SWP", IBV_WR_ATOMIC_CMP_AND_SWP},
    {"ATOMIC_FETCH_AND_ADD", IBV_WR_ATOMIC_FETCH_AND_ADD},
    {"LOCAL_INV", IBV_WR_LOCAL_INV},
    {"BIND_MW", IBV_WR_BIND_MW},
    {"RECV", kReceiveOpcode},
};

constexpr Word kEvents[] = {
    {"ADDR_ERROR", RDMA_CM_EVENT_ADDR_ERROR},
    {"ROUTE_ERROR", RDMA_CM_EVENT_ROUTE_ERROR},
    {"CONNECT_ERROR", RDMA_CM_EVENT_CONNECT_ERROR},
    {"UNREACHABLE", RDMA_CM_EVENT_UNREACHABLE},
    {"REJECTED", RDMA_CM_EVENT_REJECTED},
    {"DEVICE_REMOVAL", RDMA_CM_EVENT_DEVICE_REMOVAL},
    {"ADDR_CHANGE", RDMA_CM_EVENT_ADDR_CHANGE},
    {"TIMEWAIT_EXIT", RDMA_CM_EVENT_TIMEWAIT_EXIT},
};

constexpr Word kCalls[] = {
    {"ibv_open_device", static_cast<int>(Call::kOpenDevice)},
    {"ibv_alloc_pd", static_cast<int>(Call::kAllocPd)},
    {"ibv_reg_mr", static_cast<int>(Call::kRegMr)},
    {"ibv_create_comp_channel", static_cast<int>(Call::kCreateCompChannel)},
    {"ibv_create_cq", static_cast<int>(Call::kCreateCq)},
    {"ibv_resize_cq", static_cast<int>(Call::kResizeCq)},
    {"ibv_create_qp", static_cast<int>(Call::kCreateQp)},
    {"ibv_modify_qp", static_cast<int>(Call::kModifyQp)},
    {"ibv_post_send", static_cast<int>(Call::kPostSend)},
    {"ibv_post_recv", static_cast<int>(Call::kPostRecv)},
    {"ibv_create_srq", static_cast<int>(Call::kCreateSrq)},
    {"ibv_create_ah", static_cast<int>(Call::kCreateAh)},
    {"ibv_alloc_mw", static_cast<int>(Call::kAllocMw)},
};

}  // namespace

std::span<const KeyInfo> AllKeys() { return kKeys; }
std::span<const KindInfo> AllKinds() { return kKinds; }

const KindInfo& InfoOf(Kind kind) {
  const KindInfo& info = kKinds[static_cast<size_t>(kind)];
  WEFT_CHECK(info.kind == kind);
  return info;
}

std::span<const Word> ErrnoWords() { return kErrnos; }
std::span<const Word> StatusWords() { return kStatuses; }
std::span<const Word> OpcodeWords() { return kOpcodes; }
std::span<const Word> EventWords() { return kEvents; }
std::span<const Word> CallWords() { return kCalls; }

std::string NameIn(std::span<const Word> words, int value) {
  for (const Word& word : words) {
    if (word.value == value) return word.name;
  }
  return "?";
}

}  // namespace weft::faults
