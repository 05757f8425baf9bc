#include "mpi_hybrid/p2p/engine/matching.h"

#include <utility>

#include "base/check.h"

namespace weft::mpi {
namespace {

constexpr size_t kFirstBuckets = 64;  // a power of two, as all sizes

// The four receives that could match a message, from exact to wild.
MatchKey Form(const MatchKey& key, int form) {
  return {key.context, form & 1 ? MPI_ANY_SOURCE : key.source, form & 2 ? MPI_ANY_TAG : key.tag};
}

}  // namespace

KeyedQueues::KeyedQueues() : buckets_(kFirstBuckets) {}

KeyedQueues::~KeyedQueues() {
  for (MatchQueue* queue : buckets_) {
    while (queue != nullptr) delete std::exchange(queue, queue->next_in_bucket);
  }
  while (free_ != nullptr) delete std::exchange(free_, free_->next_in_bucket);
}

size_t KeyedQueues::BucketOf(const MatchKey& key) const {
  uint64_t hash = (uint64_t{key.context} << 32 | static_cast<uint32_t>(key.tag)) * 0x9e3779b97f4a7c15;
  hash = (hash ^ (hash >> 29) ^ static_cast<uint32_t>(key.source)) * 0xbf58476d1ce4e5b9;
  return (hash >> 32) & (buckets_.size() - 1);
}

MatchQueue* KeyedQueues::Search(const MatchKey& key) const {
  MatchQueue* queue = buckets_[BucketOf(key)];
  while (queue != nullptr && queue->key != key) queue = queue->next_in_bucket;
  if (queue != nullptr) last_ = queue;
  return queue;
}

void KeyedQueues::Append(const MatchKey& key, MatchHook& hook) {
  WEFT_CHECK(hook.queue == nullptr);
  MatchQueue* queue = Find(key);
  if (queue == nullptr) {
    if (queues_ == buckets_.size()) Grow();
    queue = free_;
    if (queue != nullptr) {
      free_ = queue->next_in_bucket;
    } else {
      queue = new MatchQueue;
    }
    MatchQueue*& bucket = buckets_[BucketOf(key)];
    *queue = {.key = key, .next_in_bucket = bucket};
    bucket = last_ = queue;
    ++queues_;
  }
  hook.queue = queue;
  hook.previous = queue->tail;
  hook.next = nullptr;
  (queue->tail == nullptr ? queue->head : queue->tail->next) = &hook;
  queue->tail = &hook;
}

void KeyedQueues::Remove(MatchHook& hook) {
  MatchQueue* queue = std::exchange(hook.queue, nullptr);
  WEFT_CHECK(queue != nullptr);
  (hook.previous == nullptr ? queue->head : hook.previous->next) = hook.next;
  (hook.next == nullptr ? queue->tail : hook.next->previous) = hook.previous;
  if (queue->head != nullptr) return;
  if (queue == last_) last_ = nullptr;
  MatchQueue** link = &buckets_[BucketOf(queue->key)];
  while (*link != queue) link = &(*link)->next_in_bucket;
  *link = queue->next_in_bucket;
  queue->next_in_bucket = free_;
  free_ = queue;
  --queues_;
}

void KeyedQueues::Grow() {
  std::vector<MatchQueue*> old(buckets_.size() * 2);
  old.swap(buckets_);
  for (MatchQueue* queue : old) {
    while (queue != nullptr) {
      MatchQueue* next = queue->next_in_bucket;
      MatchQueue*& bucket = buckets_[BucketOf(queue->key)];
      queue->next_in_bucket = bucket;
      bucket = queue;
      queue = next;
    }
  }
}

void PostedReceives::Enqueue() {
  ++queued_;
  if (!newest_key_.is_exact()) ++wild_;
  queues_.Append(newest_key_, *newest_);
}

void PostedReceives::Dequeue(MatchHook& hook) {
  --queued_;
  if (!hook.queue->key.is_exact()) --wild_;
  queues_.Remove(hook);
}

MatchHook* PostedReceives::FindQueued(const MatchKey& key) const {
  MatchHook* best = queues_.First(key);
  if (wild_ == 0) [[likely]] return best;
  for (int form = 1; form < 4; ++form) {
    MatchHook* hook = queues_.First(Form(key, form));
    if (hook != nullptr && (best == nullptr || hook->sequence < best->sequence)) best = hook;
  }
  return best;
}

void WaitingMessages::Append(const MatchKey& key, MessageHooks& message, void* owner) {
  const uint64_t sequence = next_sequence_++;
  for (int form = 0; form < 4; ++form) {
    message.hooks[form].owner = owner;
    message.hooks[form].sequence = sequence;
    queues_.Append(Form(key, form), message.hooks[form]);
  }
  ++size_;
}

void WaitingMessages::Remove(MessageHooks& message) {
  for (MatchHook& hook : message.hooks) queues_.Remove(hook);
  --size_;
}

}  // namespace weft::mpi
