#include "mpi_hybrid/p2p/message.h"

#include <sys/uio.h>

#include <cstring>
#include <vector>

#include "base/check.h"
#include "base/copy.h"
#include "mpi_hybrid/core/counters.h"
#include "mpi_hybrid/core/lock.h"
#include "mpi_hybrid/p2p/attached_buffer.h"
#include "mpi_hybrid/p2p/engine/engine.h"
#include "mpi_hybrid/p2p/engine/lane.h"
#include "mpi_hybrid/p2p/engine/operation.h"
#include "mpi_hybrid/p2p/engine/packed.h"
#include "mpi_hybrid/p2p/process_device.h"
#include "mpi_hybrid/p2p/progress.h"

namespace weft::mpi {
namespace {

// Longer ones do not wait for others to follow, but go by the engine, which many frames leave with one system call, too.
constexpr size_t kMostSoon = 8192;

void CountSent(Link& link, size_t length) {
  link.TakeCredit(Link::CostOf(length));
  ++g_counters.messages_sent;
  g_counters.bytes_sent += length;
}

// Writes a message whose header is complete but for the credit to where the peer reads it. False: there is no room for it there.
inline bool WriteInLane(Link& link, FrameHeader& header, const void* buffer, MPI_Aint count, const Datatype& type) {
  const Lane::Room room = link.lane()->Open(header.length);
  if (room.header == nullptr) return false;
  link.AddCreditTo(header);
  header.SerializeTo(std::span<uint8_t, FrameHeader::kLength>(room.header, FrameHeader::kLength));
  if (type.dense) [[likely]] {
    CopyShortBytes(room.body, buffer, header.length);
  } else {
    Payload(buffer, count, type).Take({room.body, header.length});
  }
  link.lane()->Close(header.length);
  CountSent(link, header.length);
  return true;
}

// Writes as much of a message to the wire as that takes now; `*rest` is the request of what it does not, or null.
void WriteToWire(Link& link, FrameHeader& header, const void* buffer, MPI_Aint count, const Datatype& type, Comm& comm, bool soon, Request** rest) {
  Payload payload(buffer, count, type);
  const size_t length = header.length;
  link.AddCreditTo(header);
  uint8_t bytes[FrameHeader::kLength];
  header.SerializeTo(bytes);
  iovec pieces[64];  // the most are not touched
  pieces[0] = {bytes, sizeof(bytes)};
  size_t of_payload = 1;
  if (payload.fine_grained()) {
    static auto* packed = new std::vector<uint8_t>;  // guarded by the library's lock
    if (packed->size() < length) packed->resize(length);
    Payload(payload).Take({packed->data(), length});
    pieces[1] = {packed->data(), length};
  } else {
    of_payload = payload.Peek(std::span(pieces).subspan(1), length);
  }
  const uint32_t flow = link.has_streams() ? Link::FlowOf(comm, header.context, header.tag) : Link::kControlFlow;
  const std::span<const iovec> frame(pieces, 1 + of_payload);
  const size_t written = soon ? ProcessDevice()->WriteSoon(link, frame, sizeof(bytes) + length, flow)
                              : ProcessDevice()->WriteAtOnce(link, frame, sizeof(bytes) + length, flow);
  CountSent(link, length);
  *rest = nullptr;
  if (written == sizeof(bytes) + length) return link.WroteAtOnce(header);
  *rest = ProcessEngine()->ContinueSend(link, header, payload, written, type, comm);
  ProcessDevice()->Flush();
}

// Starts an eager message without a request when nothing stands in the way of writing it now. True: it was written in full,
// or `*rest` is the request of what was not. `soon`: it may wait for others, and is short.
inline bool SendNow(const void* buffer, MPI_Aint count, const Datatype& type, int destination, int tag, Comm& comm, Channel channel,
                    bool soon, Request** rest) {
  Engine& engine = *ProcessEngine();
  Link* const link = engine.FindLink(comm.peer(destination));  // none to this process itself
  if (link == nullptr || !link->is_idle() || IsPackedForClients(type, comm)) return false;
  const size_t length = static_cast<size_t>(count * type.size);
  if (length > (soon ? kMostSoon : engine.limits().eager) || !link->HasCredit(Link::CostOf(length))) return false;
  FrameHeader header = {.kind = FrameKind::kEager,
                        .context = comm.send_context + static_cast<uint32_t>(channel),
                        .tag = tag,
                        .source = comm.rank,
                        .length = length};
  if (link->lane() != nullptr) {
    *rest = nullptr;
    return WriteInLane(*link, header, buffer, count, type);
  }
  WriteToWire(*link, header, buffer, count, type, comm, soon, rest);
  return true;
}

// Takes a message that comes at once, or within the time of a few hundred looks where this process may spin, from where the wire has it to the
// program: without a request. Nothing else is polled meanwhile, but after some that came so, since others wait, too.
inline bool ReceiveAtOnce(void* buffer, MPI_Aint count, const Datatype& type, int source, int tag, Comm& comm, Channel channel, MPI_Status* status) {
  constexpr int kLooks = 256;
  constexpr unsigned kInARow = 8;
  static unsigned in_a_row = 0;  // guarded by the library's lock
  if (source == MPI_ANY_SOURCE || tag == MPI_ANY_TAG || !type.dense || comm.revoked) return false;
  Engine& engine = *ProcessEngine();
  Link* const link = engine.FindLink(comm.peer(source));  // none to this process itself
  if (link == nullptr || link->lane() == nullptr || link->state() != Link::State::kOpen || !link->is_between_frames()) return false;
  if (!engine.IsForNewReceive(source, tag, comm, channel)) return false;
  Lane& lane = *link->lane();
  iovec pieces[2];
  size_t found = lane.Peek(pieces);
  if (found == 0 && SpinTime().count() != 0 && !LibraryLock::threads_enabled()) {
    for (int looks = 1; found == 0 && looks < kLooks; ++looks) found = lane.Peek(pieces);
  }
  if (found == 0 || pieces[0].iov_len < FrameHeader::kLength) return false;
  uint8_t bytes[FrameHeader::kLength];
  std::memcpy(bytes, pieces[0].iov_base, sizeof(bytes));
  EagerHeader header;
  if (!header.Parse(bytes) || header.tag != tag || header.source != source ||
      header.context != comm.receive_context + static_cast<uint32_t>(channel)) {
    return false;
  }
  const size_t beside = pieces[0].iov_len - sizeof(bytes), bulk = found == 2 ? pieces[1].iov_len : 0;
  if (header.length != beside + bulk || header.length > static_cast<size_t>(count * type.size) || !link->TakeAtOnce(header.credit, header.length))
    return false;
  auto* const to = static_cast<uint8_t*>(buffer);
  CopyShortBytes(to, static_cast<const uint8_t*>(pieces[0].iov_base) + sizeof(bytes), beside);  // `to` may be null
  if (bulk != 0) CopyBytes(to + beside, pieces[1].iov_base, bulk);
  lane.Taken();
  if (link->has_output()) ProcessDevice()->Flush();
  if (status != nullptr) {
    *status = MPI_Status{};
    status->MPI_SOURCE = source;
    status->MPI_TAG = tag;
    SetCount(*status, static_cast<MPI_Count>(header.length));
  }
  if (++in_a_row % kInARow == 0) (void)Progress::Poll();
  return true;
}

// For a call that begins what it then waits for: who hears of it is to know already that this process stays until it is over.
class Stay {
 public:
  Stay() : device_(*ProcessDevice()) { device_.BeginWait(); }
  ~Stay() { device_.EndWait(); }
  Stay(const Stay&) = delete;
  Stay& operator=(const Stay&) = delete;

 private:
  Device& device_;
};

bool IsPlain(SendMode mode) { return mode == SendMode::kStandard || mode == SendMode::kReady; }

}  // namespace

bool SendAtOnce(const void* buffer, MPI_Aint count, const Datatype& type, int destination, int tag, Comm& comm, Channel channel, Request** rest) {
  return destination != MPI_PROC_NULL && !comm.revoked &&
         SendNow(buffer, count, type, destination, tag, comm, channel, /*soon=*/false, rest);
}

Error WaitFor(Request* request, MPI_Status* status) {
  Progress::WaitUntil([&] { return request->complete || request->IsHindered(); });
  Error hindrance;
  if (!request->complete) {
    hindrance = Error(MPIX_ERR_PROC_FAILED, request->Hindrance().message());
    (void)request->Cancel();
  }
  if (status != nullptr) *status = request->status;
  Error error = hindrance.ok() ? std::move(request->error) : std::move(hindrance);
  request->Release();
  return error;
}

Error StartSend(const void* buffer, MPI_Aint count, const Datatype& type, int destination, int tag, Comm& comm, SendMode mode,
                Channel channel, Request** request) {
  if (destination == MPI_PROC_NULL) {
    *request = DoneRequest::Make(ProcNullStatus());
    return {};
  }
  if (mode == SendMode::kBuffered) {
    WEFT_MPI_TRY(SendBuffered(buffer, count, type, destination, tag, comm));
    *request = DoneRequest::Make(MPI_Status{});
    return {};
  }
  if (comm.revoked) [[unlikely]] return Engine::RevokedError();
  if (IsPlain(mode) && SendNow(buffer, count, type, destination, tag, comm, channel, /*soon=*/false, request)) {
    if (*request == nullptr) *request = DoneRequest::Make(MPI_Status{});
    return {};
  }
  WEFT_MPI_TRY(ProcessEngine()->StartSend(buffer, count, type, destination, tag, comm, mode, channel, request));
  ProcessDevice()->Flush();
  return {};
}

Error StartSendSoon(const void* buffer, MPI_Aint count, const Datatype& type, int destination, int tag, Comm& comm, Channel channel,
                    Request** request) {
  if (comm.revoked) [[unlikely]] return Engine::RevokedError();
  if (SendNow(buffer, count, type, destination, tag, comm, channel, /*soon=*/true, request)) {
    if (*request == nullptr) *request = DoneRequest::Make(MPI_Status{});
    return {};
  }
  return ProcessEngine()->StartSend(buffer, count, type, destination, tag, comm, SendMode::kStandard, channel, request);
}

Error StartReceive(void* buffer, MPI_Aint count, const Datatype& type, int source, int tag, Comm& comm, Channel channel,
                   Request** request) {
  if (source == MPI_PROC_NULL) {
    *request = DoneRequest::Make(ProcNullStatus());
    return {};
  }
  WEFT_MPI_TRY(ProcessEngine()->StartReceive(buffer, count, type, source, tag, comm, channel, request));
  ProcessDevice()->Flush();
  return {};
}

Error Send(const void* buffer, MPI_Aint count, const Datatype& type, int destination, int tag, Comm& comm, SendMode mode,
           Channel channel) {
  if (destination == MPI_PROC_NULL) return {};
  Request* request = nullptr;
  if (comm.revoked) [[unlikely]] return Engine::RevokedError();
  if (IsPlain(mode) && SendNow(buffer, count, type, destination, tag, comm, channel, /*soon=*/false, &request)) {
    return request == nullptr ? Error() : WaitFor(request, nullptr);
  }
  const Stay stay;
  WEFT_MPI_TRY(StartSend(buffer, count, type, destination, tag, comm, mode, channel, &request));
  return WaitFor(request, nullptr);
}

Error Receive(void* buffer, MPI_Aint count, const Datatype& type, int source, int tag, Comm& comm, Channel channel,
              MPI_Status* status) {
  if (source != MPI_PROC_NULL && ReceiveAtOnce(buffer, count, type, source, tag, comm, channel, status)) return {};
  Request* request;
  WEFT_MPI_TRY(StartReceive(buffer, count, type, source, tag, comm, channel, &request));
  return WaitFor(request, status);
}

Error Probe(int source, int tag, Comm& comm, bool* found, MPI_Status* status) {
  *found = true;
  if (source == MPI_PROC_NULL) {
    *status = ProcNullStatus();
    return {};
  }
  if (comm.revoked) [[unlikely]] return Engine::RevokedError();
  Message* message = ProcessEngine()->FindMessage(source, tag, comm);
  *found = message != nullptr;
  if (message == nullptr) return ProcessEngine()->SourceError(source, comm);
  *status = Engine::StatusOf(*message);
  return {};
}

Error AwaitMessage(int source, int tag, Comm& comm, MPI_Status* status) {
  bool found;
  Error error = Probe(source, tag, comm, &found, status);
  if (found || !error.ok()) return error;
  const AwaitedProbe awaited{source == MPI_ANY_SOURCE ? MPI_ANY_SOURCE : comm.peer(source), comm};
  ProcessEngine()->StartAwaiting(awaited);
  Progress::WaitUntil([&] {
    error = Probe(source, tag, comm, &found, status);
    return found || !error.ok();
  });
  ProcessEngine()->StopAwaiting(awaited);
  return error;
}

Error MatchedProbe(int source, int tag, Comm& comm, bool* found, Request** request, MPI_Status* status) {
  WEFT_CHECK(source != MPI_PROC_NULL);
  if (comm.revoked) [[unlikely]] return Engine::RevokedError();
  Message* message = ProcessEngine()->FindMessage(source, tag, comm);
  *found = message != nullptr;
  if (message == nullptr) return ProcessEngine()->SourceError(source, comm);
  *status = Engine::StatusOf(*message);
  ProcessEngine()->TakeOut(*message);
  auto* taken = new MessageRequest;
  taken->comm = Ref<Comm>(&comm);
  taken->message = message;
  *request = taken;
  return {};
}

ProcessId SourceOf(const Request& taken) {
  WEFT_CHECK(taken.kind == Request::Kind::kMessage);
  const Message& message = *static_cast<const MessageRequest&>(taken).message;
  return message.link == nullptr ? ProcessEngine()->self() : message.link->peer();
}

size_t UnexpectedMessages() { return ProcessEngine() == nullptr ? 0 : ProcessEngine()->unexpected(); }

unsigned KnocksSoFar() { return ProcessEngine()->knocks(); }

Error StartMatchedReceive(void* buffer, MPI_Aint count, const Datatype& type, Request* taken, Request** request) {
  WEFT_CHECK(taken->kind == Request::Kind::kMessage);
  Message& message = *static_cast<MessageRequest*>(taken)->message;
  Error error = ProcessEngine()->ReceiveTaken(buffer, count, type, message, taken->comm.get(), request);
  taken->Release();
  WEFT_MPI_TRY(std::move(error));
  ProcessDevice()->Flush();
  return {};
}

}  // namespace weft::mpi
