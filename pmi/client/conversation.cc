#include "pmi/client/conversation.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/deadline.h"

namespace weft::pmi {
namespace {

constexpr std::chrono::seconds kPatience{1};  // for the reason why a connection ended
constexpr size_t kLongestReason = 300;        // bytes

}  // namespace

void Conversation::SpeakCounted(bool thread_ids) {
  auto counted = Dialect::Counted(Dialect::Side::kRank);
  counted->Append(dialect_->TakeRest());
  dialect_ = std::move(counted);
  thread_ids_ = thread_ids;
}

bool Conversation::Awaited(const std::string& command) const {
  return std::any_of(waiting_.begin(), waiting_.end(), [&](const Waiter* waiter) { return waiter->command == command; });
}

std::string Conversation::Send(const std::string& bytes, const std::string& what) {
  if (const std::string why = socket_.Send(bytes); !why.empty()) {
    problem_ = "cannot send " + what + " to the launcher: " + why + WhyClosed();
  }
  return problem_;
}

Result<Answered, PmiError> Conversation::Ask(const Request& request) {
  std::unique_lock lock(mutex_);
  Waiter waiter{dialect_->AnswerTo(request), {}, {}};
  if (thread_ids_) {
    waiter.thread = std::to_string(next_thread_++);
  } else {
    changed_.wait(lock, [&] { return !Awaited(waiter.command); });
  }
  const std::string bytes = dialect_->Write({request, waiter.thread});
  if (bytes.empty()) return PmiError{"PMI version " + std::to_string(dialect_->version()) + " has no such request"};
  if (!problem_.empty()) return PmiError{problem_};
  if (!Send(bytes, "what cmd=" + waiter.command + " answers").empty()) return PmiError{problem_};
  const auto place = waiting_.insert(waiting_.end(), &waiter);
  while (!waiter.answered && problem_.empty() && !closed_) {
    if (reading_) {
      changed_.wait(lock);
    } else {
      Step(lock, waiter.command);
    }
  }
  waiting_.erase(place);
  if (on_announcement_) DeliverAll();  // what came behind the answer: nothing more may come for long
  changed_.notify_all();  // those whose turn it is to read, or to ask the same
  if (waiter.answered) return *std::move(waiter.answered);
  if (!problem_.empty()) return PmiError{problem_};
  return PmiError{"the launcher closed its connection before it sent cmd=" + waiter.command + why_closed_};
}

// One answer for whoever waits for it, or some more bytes. An answer stays unread until somebody waits.
void Conversation::Step(std::unique_lock<std::mutex>& lock, const std::string& wanted) {
  if (auto answered = dialect_->NextAnswer()) {
    Deliver(*std::move(answered));
  } else if (!dialect_->error().empty()) {
    problem_ = "the launcher sent " + dialect_->error();
  } else {
    Receive(lock, wanted);
  }
  changed_.notify_all();
}

void Conversation::Receive(std::unique_lock<std::mutex>& lock, const std::string& wanted) {
  reading_ = true;
  lock.unlock();
  auto bytes = socket_.Receive();
  lock.lock();
  reading_ = false;
  if (!bytes) {
    problem_ = "cannot receive cmd=" + wanted + " from the launcher: " + bytes.error().message;
  } else if (bytes->empty()) {
    closed_ = true;
    why_closed_ = WhyClosed();
  } else {
    dialect_->Append(*bytes);
  }
}

void Conversation::set_on_announcement(std::function<void(const Announcement&)> on_announcement) {
  const std::lock_guard lock(mutex_);
  on_announcement_ = std::move(on_announcement);
}

bool Conversation::Hear() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !reading_; });  // for all; there is something to read, so it does not take long
  pollfd entry{socket_.fd(), POLLIN, 0};
  if (problem_.empty() && !closed_ && poll(&entry, 1, 0) > 0) Receive(lock, "a message");
  DeliverAll();
  changed_.notify_all();
  return problem_.empty() && !closed_;
}

void Conversation::DeliverAll() {
  while (auto answered = problem_.empty() ? dialect_->NextAnswer() : std::nullopt) Deliver(*std::move(answered));
  if (problem_.empty() && !dialect_->error().empty()) problem_ = "the launcher sent " + dialect_->error();
}

void Conversation::Deliver(Answered answered) {
  if (on_announcement_ && answered.command == Announcement::kDied) {
    return on_announcement_({.command = answered.command, .ranks = std::move(answered.answer.ranks), .world = std::move(answered.answer.world)});
  }
  // The one exception to the names: a challenge comes for what fullinit-response answers in the end.
  const std::string command = answered.answer.challenge ? "fullinit-response" : answered.command;
  const auto found = std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiter* waiter) {
    return waiter->command == command && !waiter->answered && (answered.thread.empty() || answered.thread == waiter->thread);
  });
  if (found != waiting_.end()) {
    (*found)->answered = std::move(answered);
    return;
  }
  problem_ = "the launcher answered '" + answered.text + "'" +
             (waiting_.empty() ? " without a request" : " instead of cmd=" + waiting_.front()->command);
}

std::string Conversation::HearWhy() {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    while (const auto heard = dialect_->NextAnswer()) {
      if (heard->command == "abort") return heard->answer.why;
    }
    pollfd entry{socket_.fd(), POLLIN, 0};
    if (!dialect_->error().empty() || poll(&entry, 1, MillisecondsUntil(deadline)) <= 0) return {};
    const auto bytes = socket_.Receive();
    if (!bytes || bytes->empty()) return {};
    dialect_->Append(*bytes);
  }
}

std::string Conversation::WhyClosed() {
  const std::string why = out_of_band_ == nullptr ? "" : out_of_band_->HearWhy();
  return why.empty() ? "" : "; it says: " + Printable(why, kLongestReason);
}

std::string Conversation::Tell(const Request& request) {
  const std::lock_guard lock(mutex_);
  return problem_.empty() ? Send(dialect_->Write({request, {}}), "a message") : problem_;
}

}  // namespace weft::pmi
