#ifndef MPI_HYBRID_P2P_ENGINE_MATCHING_H_
#define MPI_HYBRID_P2P_ENGINE_MATCHING_H_

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::mpi {

// The values by which messages and receives match (MPI 4.0 section 3.5). Receives may use MPI_ANY_SOURCE and
// MPI_ANY_TAG.
struct MatchKey {
  uint32_t context = 0;
  int32_t source = 0;
  int32_t tag = 0;

  bool operator==(const MatchKey&) const = default;
  bool is_exact() const { return source != MPI_ANY_SOURCE && tag != MPI_ANY_TAG; }
  // Whether a receive with this key matches a message with the key `message`.
  bool Takes(const MatchKey& message) const {
    return context == message.context && (source == message.source || source == MPI_ANY_SOURCE) &&
           (tag == message.tag || tag == MPI_ANY_TAG);
  }
};

// An entry in one of the queues of a KeyedQueues, embedded in the queued object.
struct MatchHook {
  void* owner = nullptr;
  uint64_t sequence = 0;  // order of arrival
  MatchHook* previous = nullptr;
  MatchHook* next = nullptr;
  struct MatchQueue* queue = nullptr;  // null: not queued
};

struct MatchQueue {
  MatchKey key;
  MatchHook* head = nullptr;
  MatchHook* tail = nullptr;
  MatchQueue* next_in_bucket = nullptr;
};

// Queues by key, each in the order of appending. A queue exists while it is not empty. Finding one takes the same time
// regardless of its length and of the other queues.
class KeyedQueues {
 public:
  KeyedQueues();
  ~KeyedQueues();
  KeyedQueues(const KeyedQueues&) = delete;
  KeyedQueues& operator=(const KeyedQueues&) = delete;

  void Append(const MatchKey& key, MatchHook& hook);
  void Remove(MatchHook& hook);
  // The first entry in the queue of `key`; null: it is empty.
  MatchHook* First(const MatchKey& key) const {
    const MatchQueue* queue = Find(key);
    return queue == nullptr ? nullptr : queue->head;
  }
  // Calls visit(MatchHook&) for each entry, in no particular order. `visit` must not append or remove entries.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const MatchQueue* queue : buckets_) {
      for (; queue != nullptr; queue = queue->next_in_bucket) {
        for (MatchHook* hook = queue->head; hook != nullptr; hook = hook->next) visit(*hook);
      }
    }
  }

 private:
  size_t BucketOf(const MatchKey& key) const;
  MatchQueue* Find(const MatchKey& key) const { return last_ != nullptr && last_->key == key ? last_ : Search(key); }
  MatchQueue* Search(const MatchKey& key) const;
  void Grow();

  std::vector<MatchQueue*> buckets_;
  size_t queues_ = 0;
  mutable MatchQueue* last_ = nullptr;  // the queue found last: the next search is often for the same one
  MatchQueue* free_ = nullptr;  // linked by next_in_bucket
};

// Receives that wait for a message; the owner of a hook is the receive. The receive that was posted last is in no
// queue: a program that waits for one message after the other needs no queue.
class PostedReceives {
 public:
  void Append(const MatchKey& key, MatchHook& hook) {
    if (newest_ != nullptr) Enqueue();
    hook.sequence = next_sequence_++;
    newest_ = &hook;
    newest_key_ = key;
  }
  void Remove(MatchHook& hook) {
    if (&hook == newest_) {
      newest_ = nullptr;
    } else {
      Dequeue(hook);
    }
  }
  // The earliest receive that matches the message with `key` (exact); null: none.
  MatchHook* Find(const MatchKey& key) const {
    if (queued_ != 0) {
      if (MatchHook* hook = FindQueued(key)) return hook;
    }
    return newest_ != nullptr && newest_key_.Takes(key) ? newest_ : nullptr;
  }
  bool empty() const { return newest_ == nullptr && queued_ == 0; }
  // Whether the receive matches any tag.
  bool TakesAnyTag(const MatchHook& hook) const { return (&hook == newest_ ? newest_key_ : hook.queue->key).tag == MPI_ANY_TAG; }
  template <typename Visit>
  void ForEach(Visit visit) const {
    queues_.ForEach(visit);
    if (newest_ != nullptr) visit(*newest_);
  }

 private:
  void Enqueue();  // puts newest_ into its queue
  void Dequeue(MatchHook& hook);
  MatchHook* FindQueued(const MatchKey& key) const;

  MatchHook* newest_ = nullptr;
  MatchKey newest_key_;
  KeyedQueues queues_;  // the others
  uint64_t next_sequence_ = 0;
  size_t queued_ = 0;
  size_t wild_ = 0;  // those of them that have a wild card
};

// Messages that wait for a receive, in the order of arrival. Each is in four queues, one for each form of receive.
struct MessageHooks {
  MatchHook hooks[4];
};
class WaitingMessages {
 public:
  void Append(const MatchKey& key, MessageHooks& message, void* owner);
  void Remove(MessageHooks& message);
  // The earliest message that a receive with `key` (perhaps with wild cards) matches; null: none. The owner of a hook
  // is the message.
  void* Find(const MatchKey& key) const {
    if (size_ == 0) return nullptr;
    const MatchHook* hook = queues_.First(key);
    return hook == nullptr ? nullptr : hook->owner;
  }
  // The earliest of them for which pleases(void* owner) is true.
  template <typename Pleases>
  void* FindIf(const MatchKey& key, Pleases pleases) const {
    for (const MatchHook* hook = queues_.First(key); hook != nullptr; hook = hook->next) {
      if (pleases(hook->owner)) return hook->owner;
    }
    return nullptr;
  }
  size_t size() const { return size_; }
  // Calls visit(void* owner) for each.
  template <typename Visit>
  void ForEach(Visit visit) const {
    queues_.ForEach([&](MatchHook& hook) {
      if (hook.queue->key.is_exact()) visit(hook.owner);
    });
  }

 private:
  KeyedQueues queues_;
  uint64_t next_sequence_ = 0;
  size_t size_ = 0;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_ENGINE_MATCHING_H_
