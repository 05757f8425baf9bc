#include "wires/sctp/association/association.h"

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "base/check.h"
#include "base/log.h"
#include "ddp/sctp/chunk.h"
#include "llp/ulpdu.h"

namespace weft::sctp {
namespace {

using ddp::sctp::Outgoing;
using ddp::sctp::Session;
using ddp::sctp::SessionState;
using transport::IoResult;
using transport::sctp::Event;
using transport::sctp::Received;

// One wake-up serves as many; then others of the network get their turn.
constexpr unsigned kMostPerWakeUp = 256;
// SCTP does not say when all is acknowledged: it is asked so often while something is not, and messages are held or
// linger.
constexpr std::chrono::milliseconds kTick{20};

// Of a session that lingers: what comes for it is thrown away.
class NoSink final : public llp::UlpduSink {
 public:
  bool Begin(size_t, ByteSpan, llp::UlpduPlan*) override { return false; }
  bool End() override { return false; }
};
NoSink g_no_sink;

// For messages held for a gap, of all associations of this process: each of 32 can have the 4 MiB that are an association's most
// (AssociationOptions), and each of 64 about 2 MiB, as much as a peer has on the way (transport/sctp, `send_buffer`).
constinit ddp::sctp::HeldBudget g_held((size_t{128} << 20) / BufferPool::kBlockSize);

static_assert(BufferPool::kBlockSize > ddp::sctp::kLongestSegment + ddp::sctp::kSsnLength);

}  // namespace

// --- seats ---

Seat::Seat(std::shared_ptr<Association> association, ddp::sctp::Association& core, Session& session)
    : association_(std::move(association)), core_(&core), session_(&session) {
  session.set_context(this);
  association_->seats_.push_back(this);
}

Seat::~Seat() {
  if (session_ == nullptr) return;  // it lingered
  const Association::Lock lock(*association_);
  SetWantsRoom(false);
  std::erase(association_->seats_, this);
  session_->set_context(nullptr);
  core_->Release(*session_);
}

void Seat::WakeLater() {
  if (wake_) association_->wakes_.push_back(wake_);
}

void Seat::Lend() {
  association_->transport_->Lend();
  association_->network_.Lend(association_->packet_watch_);
}

void Seat::SetWantsRoom(bool wants) {
  if (std::exchange(wants_room_, wants) == wants) return;
  wants ? ++association_->wanting_room_ : --association_->wanting_room_;
}

// --- the lock ---

Association::Lock::Lock(Association& association, const Seat* own) : Lock(association, own, /*may_call=*/false) {}

Association::Lock::Lock(Association& association, const Seat* own, bool may_call)
    : association_(association.shared_from_this()), own_(own), may_call_(may_call), owned_(true) {
  association_->Await();
}

Association::Lock::Lock(Association& association, const Seat* own, std::try_to_lock_t)
    : association_(association.shared_from_this()),
      own_(own),
      may_call_(false),
      owned_(association.waiters_.load(std::memory_order_relaxed) == 0 && association.mutex_.try_lock()) {}

Association::Lock::~Lock() {
  if (!owned_) return;
  Aftermath aftermath = association_->Finish(own_);
  association_->mutex_.unlock();
  if (may_call_) {
    for (const auto& wake : aftermath.wakes) wake();
  } else if (!aftermath.wakes.empty()) {
    association_->network_.Post([wakes = std::move(aftermath.wakes)] {
      for (const auto& wake : wakes) wake();
    });
  }
}

void Association::Await() {
  if (mutex_.try_lock()) return;
  waiters_.fetch_add(1, std::memory_order_relaxed);
  mutex_.lock();
  waiters_.fetch_sub(1, std::memory_order_relaxed);
}

// --- life ---

// SCTP's association keeps its handler, and this object keeps that association.
class Association::Handler final : public transport::ReadyHandler {
 public:
  explicit Handler(std::weak_ptr<Association> association) : association_(std::move(association)) {}
  void OnReady(transport::Interest ready) override {
    const auto association = association_.lock();
    if (association == nullptr) return;
    const Lock lock(*association, nullptr, /*may_call=*/true);
    association->OnReady(ready);
  }

 private:
  const std::weak_ptr<Association> association_;
};

size_t HeldInProcess() { return g_held.taken() * BufferPool::kBlockSize; }

std::shared_ptr<Association> Association::Make(transport::Network& network, BufferPool& pool,
                                               std::unique_ptr<transport::sctp::Association> association,
                                               bool initiator) {
  std::shared_ptr<Association> made(new Association(network, pool, std::move(association), initiator));
  made->transport_->Watch(std::make_shared<Handler>(made));
  return made;
}

Association::Association(transport::Network& network, BufferPool& pool,
                         std::unique_ptr<transport::sctp::Association> association, bool initiator)
    : network_(network), pool_(pool), initiator_(initiator), transport_(std::move(association)) {}

Association::~Association() {
  if (state_ == State::kUp) transport_->Shutdown();
}

void Association::Over(int error, std::string why) {
  if (state_ == State::kOver) return;
  state_ = State::kOver;
  error_ = error;
  why_ = std::move(why);
  blocked_ = false;
  if (core_ != nullptr) core_->OnLost();
  std::move(waiting_until_up_.begin(), waiting_until_up_.end(), std::back_inserter(wakes_));
  waiting_until_up_.clear();
}

// --- from the peer ---

void Association::OnReady(transport::Interest ready) {
  if (ready.write) blocked_ = false;  // the end of the scope tries
  if (ready.read) Read(kMostPerWakeUp);
}

bool Association::Read(unsigned most) {
  if (ended_) return true;
  const BufferPool::Lease block = pool_.Take();
  for (unsigned count = 0; count < most && (core_ == nullptr || core_->HasRoom()); ++count) {
    const iovec piece{block.data(), BufferPool::kBlockSize};
    const Received received = transport_->Receive({&piece, 1});
    switch (received.kind) {
      case Received::Kind::kNothing:
        return true;
      case Received::Kind::kEvent:
        OnEvent(received.event);
        break;
      case Received::Kind::kMessage:
        // A block holds the longest that the core takes: what is longer ends its session by its first bytes.
        if (!std::exchange(skipping_, !received.info.end_of_record) && core_ != nullptr) {
          core_->OnMessage(received.info.stream, received.info.ppid, {block.data(), received.bytes});
        }
        break;
      case Received::Kind::kEnded:
      case Received::Kind::kFailed:
        ended_ = true;
        Over(
            received.kind == Received::Kind::kEnded ? ECONNRESET : received.error,
            received.kind == Received::Kind::kEnded ? "the peer shut the association down" : "the association is lost");
        return true;
    }
  }
  return false;
}

void Association::Poll(unsigned most) {
  if (ended_) return;
  const transport::Interest ready = transport_->Poll();
  if (ready.write) blocked_ = false;  // the end of the scope tries
  if (ready.read && !Read(most)) transport_->Recall();
}

void Association::OnEvent(const Event& event) {
  switch (event.kind) {
    case Event::Kind::kUp:
      return Begin(event);
    case Event::Kind::kRestarted:
      if (core_ != nullptr) {
        core_->OnLost();
        lost_.push_back(std::move(core_));
      }
      return Begin(event);
    case Event::Kind::kPeerShutsDown:
      transport_->Shutdown();
      return Over(ECONNRESET, "the peer shut the association down");
    case Event::Kind::kRecordAborted:
      skipping_ = false;
      return;
    case Event::Kind::kPathChanged:
      return OnPath(event);
  }
}

void Association::OnPath(const Event& event) {
  if (state_ != State::kUp) return;
  // A listener at the wildcard tells its host's other addresses to peers on the loopback, too, where no packet to them begins.
  if (!event.path.is_loopback() && std::all_of(local_.begin(), local_.end(), [](const auto& one) { return one.is_loopback(); })) return;
  const auto known = std::find(failed_paths_.begin(), failed_paths_.end(), event.path);
  if (event.path_state == transport::sctp::PathState::kInactive && known == failed_paths_.end()) {
    failed_paths_.push_back(event.path);
    LogWarning(Format("SCTP: the path to %s does not answer; %zu of %zu paths of the association are left", event.path.ToString().c_str(),
                      peer_.size() - std::min(failed_paths_.size(), peer_.size()), peer_.size()));
  } else if (event.path_state == transport::sctp::PathState::kActive && known != failed_paths_.end()) {
    failed_paths_.erase(known);
    LogWarning(Format("SCTP: the path to %s works again", event.path.ToString().c_str()));
  }
}

// RFC 5043 section 11.1: nothing without the peer's indication.
void Association::Begin(const Event& event) {
  if (state_ == State::kOver) return;
  const auto adaptation = ddp::sctp::CheckAdaptation(event.adaptation);
  if (adaptation != ddp::sctp::Adaptation::kDdp) {
    const std::string why =
        Format("the peer's SCTP adaptation indication is not DDP's: %s", ddp::sctp::ToString(adaptation));
    transport_->Abort(why);
    return Over(EPROTO, why);
  }
  state_ = State::kUp;
  skipping_ = blocked_ = false;
  acknowledged_ = 0;
  local_ = transport_->LocalAddresses();
  peer_ = transport_->PeerAddresses();
  if (packet_watch_ == 0) packet_watch_ = transport_->PacketWatch();
  core_ = std::make_unique<ddp::sctp::Association>(
      ddp::sctp::AssociationOptions{.initiator = initiator_,
                                    .streams = std::min<uint32_t>(event.streams_in, event.streams_out),
                                    .max_segment = ddp::sctp::MaxSegment(transport_->FragmentationPoint()),
                                    .held_budget = &g_held},
      pool_);
  std::move(waiting_until_up_.begin(), waiting_until_up_.end(), std::back_inserter(wakes_));
  waiting_until_up_.clear();
}

// --- sessions ---

std::unique_ptr<Seat> Association::Open(ByteSpan private_data, bool enhanced) {
  if (state_ != State::kUp) return nullptr;
  Session* const session = core_->Open(private_data, enhanced);
  if (session == nullptr) return nullptr;
  return std::unique_ptr<Seat>(new Seat(shared_from_this(), *core_, *session));
}

void Association::SetOnRequest(std::function<void()> on_request) {
  on_request_ = std::move(on_request);
  if (on_request_ && !requests_.empty()) wakes_.push_back(on_request_);
}

std::unique_ptr<Seat> Association::TakeRequest() {
  if (requests_.empty()) return nullptr;
  const auto [core, session] = requests_.front();
  requests_.pop_front();
  return std::unique_ptr<Seat>(new Seat(shared_from_this(), *core, *session));
}

void Association::CollectNews(ddp::sctp::Association& core, const Seat* own, Wakes& wakes) {
  while (Session* const session = core.TakeNews()) {
    if (session->context() != nullptr) {
      const Seat& seat = *static_cast<Seat*>(session->context());
      if (&seat != own && seat.wake_) wakes.push_back(seat.wake_);
      continue;
    }
    const auto waits = [session](const auto& request) { return request.second == session; };
    if (std::any_of(requests_.begin(), requests_.end(), waits)) continue;  // whoever takes it finds out
    if (!on_request_) {
      core.Release(*session);
      continue;
    }
    requests_.emplace_back(&core, session);
    wakes.push_back(on_request_);
  }
}

void Association::Linger(std::unique_ptr<Seat> seat) {
  seat->SetWantsRoom(false);
  seat->wake_ = nullptr;
  seat->session_->Attach(g_no_sink);
  seat->session_->SetOpen(true);
  seat->session_->Deliver(SIZE_MAX);
  seat->linger_until_ = network_.Now() + kLingerLimit;
  lingering_.push_back(std::move(seat));
}

void Association::ReleaseLingering(std::vector<std::unique_ptr<Seat>>& gone) {
  for (size_t i = 0; i < lingering_.size();) {
    Seat& seat = *lingering_[i];
    if (!seat.session_->output_over() && network_.Now() < seat.linger_until_) {
      ++i;
      continue;
    }
    std::erase(seats_, &seat);
    seat.session_->set_context(nullptr);
    seat.core_->Release(*std::exchange(seat.session_, nullptr));
    gone.push_back(std::move(lingering_[i]));
    lingering_.erase(lingering_.begin() + static_cast<ptrdiff_t>(i));
  }
}

// --- to the peer ---

bool Association::Send(const Outgoing& outgoing, bool more) {
  const IoResult result = transport_->Send(
      {.stream = outgoing.stream, .ppid = outgoing.ppid, .unordered = true, .more = more, .pieces = outgoing.pieces});
  // The kernel looks at the program's memory, which is not there: that is the end of this session only.
  if (result.kind == IoResult::Kind::kFailed && result.error == EFAULT && outgoing.session != nullptr && !outgoing.session->empty()) {
    outgoing.session->LosePayload();
    return true;
  }
  // An association that takes nothing any more says why when all that the peer sent was received.
  blocked_ = result.kind != IoResult::Kind::kDone;
  unflushed_ = more || (unflushed_ && blocked_);
  if (blocked_) return false;
  core_->Took(outgoing);
  return true;
}

bool Association::SendOf(Seat& seat) {
  Outgoing outgoing;
  if (state_ == State::kUp && seat.core_ == core_.get()) {
    while (core_->NextOf(*seat.session_, &outgoing)) {
      if (!Send(outgoing, outgoing.more)) return false;
    }
  }
  return seat.session_->empty();
}

void Association::Flush() {
  if (std::exchange(unflushed_, false)) transport_->Flush();
}

void Association::SendAll() {
  Outgoing outgoing;
  while (state_ == State::kUp && !blocked_ && core_->Next(&outgoing)) Send(outgoing, /*more=*/true);
}

// --- the end of a scope, and the clock ---

Association::Aftermath Association::Finish(const Seat* own) {
  Aftermath aftermath;
  SendAll();
  if (!lingering_.empty()) [[unlikely]] {
    ReleaseLingering(aftermath.gone);
    SendAll();
  }
  if (wanting_room_ != 0) {
    for (Seat* const seat : seats_) {
      if (!seat->wants_room_ || !seat->session_->empty()) continue;
      seat->SetWantsRoom(false);
      seat->WakeLater();
    }
  }
  aftermath.wakes = std::exchange(wakes_, {});
  for (const auto& core : lost_) CollectNews(*core, own, aftermath.wakes);
  if (core_ != nullptr) {
    CollectNews(*core_, own, aftermath.wakes);
    SendAll();  // a request that nobody takes was refused
  }
  Flush();
  std::erase_if(lost_, [](const auto& core) { return core->sessions() == 0; });
  const bool read = !ended_ && (core_ == nullptr || core_->HasRoom());
  if (read != reading_) transport_->SetReading(reading_ = read);
  if (!clock_runs_ && needs_clock()) {
    clock_runs_ = true;
    network_.RunAt(network_.Now() + kTick, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) {
        const Lock lock(*self, nullptr, /*may_call=*/true);
        self->clock_runs_ = false;
        self->Tick();
      }
    });
  }
  return aftermath;
}

bool Association::needs_clock() const {
  if (!lingering_.empty()) return true;
  return state_ == State::kUp && (core_->taken() != acknowledged_ || core_->held_bytes() != 0);
}

void Association::Tick() {
  CheckAcknowledged();
  CheckGaps();
  CheckAdvance();
}

void Association::CheckAdvance() {
  if (state_ != State::kUp) return;
  const transport::Time now = network_.Now();
  // Otherwise there was nothing to acknowledge, or this process was stopped.
  const bool clock_ran = now - std::exchange(last_tick_, now) <= 50 * kTick;
  if (transport_->Advances() || !clock_ran) {
    advanced_at_ = now;
  } else if (now - advanced_at_ >= kSilenceLimit) {
    const std::string why = Format("acknowledged nothing for %d s", static_cast<int>(kSilenceLimit.count()));
    transport_->Abort(why);
    Over(ETIMEDOUT, "the peer " + why);
  }
}

void Association::CheckAcknowledged() {
  if (state_ != State::kUp || core_->taken() == acknowledged_ || transport_->HasUnacknowledged()) return;
  acknowledged_ = core_->taken();
  core_->OnAcknowledged(acknowledged_);
}

void Association::CheckGaps() {
  const transport::Time now = network_.Now();
  for (Seat* const seat : seats_) {
    const Session& session = *seat->session_;
    if (!session.has_gap()) {
      seat->gap_since_ = {};
    } else if (seat->gap_since_ == transport::Time{} || seat->gap_position_ != session.position()) {
      seat->gap_since_ = now;
      seat->gap_position_ = session.position();
    } else if (now - seat->gap_since_ >= kGapLimit && !std::exchange(seat->gap_stayed_, true)) {
      seat->session_->Abort();
      seat->WakeLater();
    }
  }
}

}  // namespace weft::sctp
