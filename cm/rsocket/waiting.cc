#include "cm/rsocket/waiting.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace weft::rsocket {
namespace {

// Forks between the first process and this one: a child shares the descriptors of its parent's threads, and must not use them.
int forks = 0;

}  // namespace

Waiter::Waiter() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), generation_(forks) {}

Waiter::~Waiter() {
  if (fd_ >= 0) close(fd_);
}

Waiter& Waiter::Mine() {
  [[maybe_unused]] static const int registered = pthread_atfork(nullptr, nullptr, [] { ++forks; });
  thread_local Waiter mine;
  if (mine.fd_ < 0 || mine.generation_ != forks) {
    if (mine.fd_ >= 0) close(mine.fd_);
    mine.fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    mine.generation_ = forks;
  }
  return mine;
}

void Waiter::Wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(fd_, &one, sizeof one);
}

void Waiter::Clear() {
  uint64_t count;
  [[maybe_unused]] const ssize_t taken = read(fd_, &count, sizeof count);
}

void WaitList::Add(WaitNode& node) {
  if (node.listed) return;
  node.previous = nullptr;
  node.next = first_;
  if (first_ != nullptr) first_->previous = &node;
  first_ = &node;
  node.listed = true;
}

void WaitList::Remove(WaitNode& node) {
  if (!node.listed) return;
  if (node.previous != nullptr) node.previous->next = node.next;
  if (node.next != nullptr) node.next->previous = node.previous;
  if (first_ == &node) first_ = node.next;
  node.listed = false;
}

void WaitList::WakeAll(const Waiter* except) {
  for (WaitNode* node = first_; node != nullptr; node = node->next) {
    if (node->waiter != except) node->waiter->Wake();
  }
}

int PollTimeout(const Deadline& deadline) {
  if (!deadline) return -1;
  const auto now = Clock::now();
  if (*deadline <= now) return 0;  // it may be the earliest time that there is, which nothing can be subtracted from
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - now).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
}

}  // namespace weft::rsocket
