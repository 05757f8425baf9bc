#include "ddp/sctp/association.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/iovec_length.h"
#include "base/program_memory.h"

namespace weft::ddp::sctp {
namespace {

// A Terminate where there is no session: the first message of one that ends with it.
uint8_t g_terminate[] = {0, 0, 0, 4};
const iovec kTerminatePiece{g_terminate, sizeof(g_terminate)};

constexpr uint32_t kMostStreams = 65536;

}  // namespace

Association::Association(const AssociationOptions& options, BufferPool& pool)
    : options_(options), pool_(pool), held_(pool, options.most_held_bytes, options.held_budget) {
  options_.streams = std::min(options_.streams, kMostStreams);
  SetMaxSegment(options.max_segment);
}

Association::~Association() = default;

void Association::SetMaxSegment(size_t bytes) {
  options_.max_segment = std::clamp(bytes, MaxSegment(0), kLongestSegment);
}

// --- sessions ---

Session* Association::Open(ByteSpan private_data, bool enhanced) {
  uint16_t stream = 0;
  WEFT_CHECK(!enhanced || private_data.size() >= kReadsLength);
  if (lost_ || private_data.size() > kMaxPrivateData || !FindFree(&stream)) return nullptr;
  Session& session = Make(stream, /*active=*/true);
  session.seen_ = true;
  session.enhanced_ = enhanced;
  session.SetOpening(Chunk::Kind::kInitiate, private_data);
  return &session;
}

Session* Association::TakeNews() {
  Session* const session = news_.Pop();
  if (session != nullptr) session->seen_ = true;
  return session;
}

void Association::Tell(Session& session) {
  if (session.released_) return;
  if (session.seen_ || session.state_ == SessionState::kRequested) return news_.Add(session);
  // A request that is over before anybody saw it concerns nobody.
  session.released_ = true;
  news_.Remove(session);
}

Session& Association::Make(uint16_t stream, bool active) {
  rests_.erase(stream);
  auto& place = by_stream_[stream];
  WEFT_CHECK(place == nullptr);
  ++halves_[stream % 2].used;
  place.reset(new Session(*this, stream, active));
  return *place;
}

// Streams of our own parity first, each in its turn, then those of the other.
bool Association::FindFree(uint16_t* stream) {
  const uint32_t ours = options_.initiator ? 0 : 1;
  for (const uint32_t parity : {ours, 1 - ours}) {
    Half& half = halves_[parity];
    const uint32_t count = (options_.streams + 1 - parity) / 2;
    for (uint32_t step = 0; step < count && half.used < count; ++step) {
      const auto candidate = static_cast<uint16_t>(2 * ((half.next + step) % count) + parity);
      if (!IsFree(candidate)) continue;
      half.next = candidate / 2u + 1;
      *stream = candidate;
      return true;
    }
  }
  return false;
}

// Section 6.6: not "while any Data Chunk from a prior session might be outstanding".
bool Association::IsFree(uint16_t stream) {
  if (by_stream_.contains(stream)) return false;
  const auto rest = rests_.find(stream);
  if (rest == rests_.end()) return true;
  if (rest->second.kind != Rest::Kind::kClean || rest->second.answering || rest->second.ordinal > acknowledged_)
    return false;
  rests_.erase(rest);
  return true;
}

void Association::Release(Session& session) {
  WEFT_CHECK(!session.released_);
  session.released_ = true;
  session.sink_ = nullptr;
  session.Abort();
  session.Discard();
  news_.Remove(session);
  ReapIfDone(session);
}

void Association::ReapIfDone(Session& session) {
  if (!session.over() || !session.released_) return;
  LeaveStream(session);
  Forget(session);
}

// Remembers what the next session on the stream has to know.
void Association::LeaveStream(Session& session) {
  const auto found = by_stream_.find(session.stream_);
  if (found == by_stream_.end() || found->second.get() != &session) return;
  Retire(session);
  if (session.withdrawn_ || lost_) return;
  const bool answered = session.active_ && session.out_ == 1 && session.peer_ended_;
  const Rest rest{.kind = session.peer_ended_ && session.state_ != SessionState::kFailed ? Rest::Kind::kClean
                                                                                         : Rest::Kind::kDiscarded,
                  .ordinal = answered ? 0 : session.last_ordinal_};
  if (rest.kind != Rest::Kind::kClean || rest.ordinal > acknowledged_) rests_[session.stream_] = rest;
}

void Association::Retire(Session& session) {
  const auto found = by_stream_.find(session.stream_);
  --halves_[session.stream_ % 2].used;
  retired_.push_back(std::move(found->second));
  by_stream_.erase(found);
}

void Association::Forget(Session& session) {
  session.SetOpen(false);
  (session.waiting_ ? waiting_ : to_send_).Remove(session);
  news_.Remove(session);
  holding_.Remove(session);
  std::erase_if(retired_, [&session](const auto& owned) { return owned.get() == &session; });
}

// --- from the peer ---

void Association::OnMessage(uint16_t stream, uint32_t ppid, ByteSpan bytes) {
  if (lost_) return;
  ++counters_.messages_in;
  const Result<Chunk, ChunkError> chunk = Chunk::Parse(ppid, bytes);
  const auto found = by_stream_.find(stream);
  if (found == by_stream_.end()) [[unlikely]]
    return OnUnknown(stream, chunk);
  Session& session = *found->second;
  if (!chunk.ok()) [[unlikely]] {
    session.Fail(SessionError::kMalformed, ToString(chunk.error()));
  } else if (chunk->kind == Chunk::Kind::kInitiate && chunk->ssn == 0 && session.output_over()) {
    // We have nothing to add, and the peer may send this only when it has nothing on the way either.
    session.Leave(SessionState::kEnded);
    Retire(session);
    OnInitiate(stream, *chunk);
  } else {
    session.OnChunk(*chunk);
  }
  if (session.released_) [[unlikely]]
    ReapIfDone(session);
}

void Association::OnUnknown(uint16_t stream, const Result<Chunk, ChunkError>& chunk) {
  ++counters_.unknown;
  if (stream >= options_.streams) return;  // there is no stream on which to answer
  if (chunk.ok() && chunk->kind == Chunk::Kind::kTerminate) return;
  if (chunk.ok() && chunk->kind == Chunk::Kind::kInitiate && chunk->ssn == 0) return OnInitiate(stream, *chunk);
  Answer(stream, Rest::Kind::kUnknown);
}

void Association::OnInitiate(uint16_t stream, const Chunk& chunk) {
  if (const auto rest = rests_.find(stream); rest != rests_.end()) {
    if (rest->second.answering) return;  // the Terminate that is to go answers it
    if (rest->second.kind == Rest::Kind::kUnknown) return Answer(stream, Rest::Kind::kDiscarded);
  }
  if (requests_ >= options_.most_requests || stream >= options_.streams) {
    ++counters_.refused;
    return Answer(stream, Rest::Kind::kDiscarded);
  }
  Session& session = Make(stream, /*active=*/false);
  ++requests_;
  ++counters_.requests;
  session.enhanced_ = chunk.enhanced;
  session.private_data_.assign(chunk.body.begin(), chunk.body.end());
  session.window_.Advance();
  news_.Add(session);
}

// One Terminate for all that comes of a session that is not there, however much that is.
void Association::Answer(uint16_t stream, Rest::Kind kind) {
  if (stream >= options_.streams) return;
  const auto [place, is_new] = rests_.try_emplace(stream);
  Rest& rest = place->second;
  if (rest.answering) return;
  if (kind == Rest::Kind::kUnknown && !is_new && rest.kind != Rest::Kind::kClean) return;
  rest.kind = kind;
  rest.answering = true;
  answers_.push_back(stream);
}

void Association::OnLost() {
  if (lost_) return;
  std::vector<Session*> released;
  std::vector<Session*> not_over;
  for (const auto& [stream, session] : by_stream_) {
    (session->released_ ? released : not_over).push_back(session.get());
  }
  std::erase_if(not_over, [](const Session* session) { return session->over(); });
  lost_ = true;
  rests_.clear();
  answers_.clear();
  for (Session* session : not_over) {
    session->OnLost();
    if (session->released_) released.push_back(session);
  }
  for (Session* session : released) {
    session->Ignore();
    ReapIfDone(*session);
  }
}

bool Association::MakeRoom(Session& session, size_t length) {
  while (!held_.Fits(length)) {
    // Whoever holds most, of those whose messages wait for the peer; not one that its own user keeps waiting.
    Session* most = &session;
    for (const auto& [stream, other] : by_stream_) {
      if (!other->deliverable() && other->window_.cells() > most->window_.cells()) most = other.get();
    }
    most->Fail(SessionError::kWindowFull,
               "more messages ahead of their turn than there is room for (" + std::to_string(most->window_.held()) + ", " +
                   std::to_string(most->window_.cells() * HeldMessages::kCellSize) + " bytes)");
    if (most == &session) return false;
    ReapIfDone(*most);
  }
  return true;
}

// --- to the peer ---

void Association::Ready(Session& session) {
  if (session.waiting_) {
    waiting_.Remove(session);
    session.waiting_ = false;
  }
  to_send_.Add(session);
}

bool Association::Next(Outgoing* outgoing) {
  if (lost_) return false;
  if (answer_next_ && NextAnswer(outgoing)) return true;
  while (Session* const session = to_send_.front()) {
    if (NextOf(*session, outgoing)) return true;
  }
  return NextAnswer(outgoing);
}

bool Association::NextOf(Session& session, Outgoing* outgoing) {
  if (lost_) return false;
  if (session.Next(outgoing)) return true;
  copy_.Reset();
  if (session.waiting_) return false;
  to_send_.Remove(session);
  if (session.has_output() && !session.output_over()) {
    session.waiting_ = true;
    waiting_.Add(session);
  }
  return false;
}

bool Association::CopyPayload(std::span<const iovec>* pieces) {
  const std::span<const iovec> payload = pieces->subspan(1);
  if (payload.empty()) return true;
  if (!copy_) copy_ = pool_.Take();
  if (GatherProgramMemory(copy_.data(), payload) != payload.size()) return false;
  copied_[0] = pieces->front();
  copied_[1] = {copy_.data(), TotalLength(payload)};
  *pieces = copied_;
  return true;
}

bool Association::NextAnswer(Outgoing* outgoing) {
  if (answers_.empty()) return false;
  *outgoing = {.stream = answers_.front(),
               .ppid = kControlPpid,
               .pieces = {&kTerminatePiece, 1},
               .length = kTerminatePiece.iov_len};
  return true;
}

void Association::Took(const Outgoing& outgoing) {
  ++taken_;
  answer_next_ = outgoing.session != nullptr;
  if (outgoing.session == nullptr) {
    const auto rest = rests_.find(outgoing.stream);
    WEFT_CHECK(!answers_.empty() && answers_.front() == outgoing.stream && rest != rests_.end());
    answers_.pop_front();
    rest->second.answering = false;
    rest->second.ordinal = taken_;
    return;
  }
  Session& session = *outgoing.session;
  session.Took(taken_);
  // Behind the others.
  (session.waiting_ ? waiting_ : to_send_).Remove(session);
  session.waiting_ = false;
  if (session.has_output()) to_send_.Add(session);
  ReapIfDone(session);
}

void Association::OnAcknowledged(uint64_t count) {
  WEFT_CHECK(count <= taken_);
  acknowledged_ = std::max(acknowledged_, count);
  while (Session* const session = waiting_.Pop()) {
    session->waiting_ = false;
    to_send_.Add(*session);
  }
}

}  // namespace weft::ddp::sctp
