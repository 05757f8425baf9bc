// What is measured: the exchanges as verbs programs make them, perftest's being the model.
#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "bench/completion_waiter.h"
#include "bench/endpoint.h"
#include "bench/verbs_connections.h"

namespace weft::bench {
namespace {

constexpr int64_t kSignalEvery = 100;  // one way: perftest's CQ moderation
constexpr int64_t kSignalPings = 32;   // ping-pong

// Memory that the RNIC writes is watched as any program does it. Where the RNIC is a thread of this process, a
// sanitizer would call that a race.
[[gnu::no_sanitize_thread, gnu::noinline]] uint8_t Look(const volatile uint8_t* byte) { return *byte; }

// Posts to one QP. All work requests read from the head of the send area and go to the head of the peer's receive area.
class Poster {
 public:
  explicit Poster(VerbsConnections& connections)
      : connections_(connections), qp_(connections.first().id->qp), remote_(connections.first().remote) {}

  // `list` requests in one call; the last is signaled if `signaled`.
  void Post(Operation operation, int64_t bytes, bool signaled, bool inlined, size_t list = 1) {
    if (list > requests_.size()) requests_.resize(list), sges_.resize(list);
    for (size_t i = 0; i < list; ++i) {
      Fill(&requests_[i], &sges_[i], operation, bytes, inlined);
      requests_[i].next = i + 1 < list ? &requests_[i + 1] : nullptr;
    }
    if (signaled) requests_[list - 1].send_flags |= IBV_SEND_SIGNALED;
    ibv_send_wr* bad = nullptr;
    if (const int error = ibv_post_send(qp_, requests_.data(), &bad)) Fail("ibv_post_send", error);
  }

  void PostReceive() { connections_.PostReceive(qp_); }
  bool FitsInline(int64_t bytes) const { return bytes <= static_cast<int64_t>(connections_.max_inline()); }

 private:
  void Fill(ibv_send_wr* request, ibv_sge* sge, Operation operation, int64_t bytes, bool inlined) {
    // A Read fills our receive area.
    const bool read = operation == Operation::kRead;
    sge->addr = reinterpret_cast<uint64_t>(read ? connections_.receive_area() : connections_.send_area());
    sge->length = static_cast<uint32_t>(bytes);
    sge->lkey = connections_.local_key();
    request->wr_id = 0;
    request->sg_list = sge;
    request->num_sge = 1;
    request->opcode = read ? IBV_WR_RDMA_READ : operation == Operation::kWrite ? IBV_WR_RDMA_WRITE : IBV_WR_SEND;
    request->send_flags = inlined ? IBV_SEND_INLINE : 0;
    request->wr.rdma.remote_addr = remote_.address;
    request->wr.rdma.rkey = remote_.key;
  }

  VerbsConnections& connections_;
  ibv_qp* const qp_;
  const RemoteBuffer remote_;
  std::vector<ibv_send_wr> requests_{1};
  std::vector<ibv_sge> sges_{1};
};

// Takes `count` Sends of the peer, each time posting the receive anew.
class Receiver {
 public:
  Receiver(VerbsConnections& connections, Poster& poster, Wait wait)
      : poster_(poster), waiter_(connections.receive_cq(), wait) {}

  void TakeOne() {
    while (taken_ == 0) Replenish(waiter_.Take().size());
    --taken_;
  }
  void PollAll() { Replenish(waiter_.Poll().size()); }
  int64_t TakeAll() { return std::exchange(taken_, 0); }
  // The receive of the message that was taken last is posted again only here, so that an answer can go out first.
  void Repost() {
    for (; owed_ > 0; --owed_) poster_.PostReceive();
  }

 private:
  void Replenish(size_t count) { taken_ += static_cast<int64_t>(count), owed_ += static_cast<int64_t>(count); }

  Poster& poster_;
  CompletionWaiter waiter_;
  int64_t taken_ = 0;  // completions that are here and not yet asked for
  int64_t owed_ = 0;   // receives to post again
};

class VerbsEndpoint : public Endpoint {
 public:
  uint16_t Listen(const Shape& shape) override { return connections_.emplace(shape).Listen(); }
  void Accept() override { connections_->Accept(); }
  void Connect(const Shape& shape, uint16_t port) override {
    connections_.emplace(shape).Connect(port);
    sequence_ = 0;
  }
  void Close() override {
    connections_.reset();
    sequence_ = 0;
  }

  Sample PingPong(Role role, const Job& job) override {
    return job.wait == Wait::kMemory ? MemoryPingPong(role, job) : SendPingPong(role, job);
  }

  Sample OneWay(Role role, const Job& job) override {
    if (role == Role::kResponder) return Respond(job);
    const Clock::time_point start = Clock::now();
    Poster poster(*connections_);
    Receiver receiver(*connections_, poster, job.wait);
    if (job.operation == Operation::kSend) {
      StreamSends(job, &poster, &receiver);
    } else {
      StreamRequests(job, &poster);
    }
    // What was posted before this message is in place when the answer comes.
    Finish(&poster, job.wait);
    receiver.TakeOne();
    receiver.Repost();
    return {.elapsed = Seconds(Clock::now() - start)};
  }

 private:
  // As ib_send_lat.
  Sample SendPingPong(Role role, const Job& job) {
    Poster poster(*connections_);
    Receiver receiver(*connections_, poster, job.wait);
    CompletionWaiter sends(connections_->send_cq(), Wait::kSpin);
    const bool inlined = poster.FitsInline(job.bytes);
    const int64_t total = job.warm_up + job.count;
    const auto signaled = [&](int64_t i) { return i % kSignalPings == kSignalPings - 1 || i == total - 1; };
    const auto post = [&](int64_t i) { poster.Post(Operation::kSend, job.bytes, signaled(i), inlined); };
    const auto clean_up = [&](int64_t i) {
      receiver.Repost();
      if (signaled(i)) sends.Take();
    };
    if (role == Role::kInitiator) {
      return TimeRoundTrips(job, [&](int64_t i) {
        post(i);
        receiver.TakeOne();
        clean_up(i);
      });
    }
    for (int64_t i = 0; i < total; ++i) {
      receiver.TakeOne();
      post(i);
      clean_up(i);
    }
    return {};
  }

  // As ib_write_lat: one Write at a time, each signaled; its last byte says that it is there.
  Sample MemoryPingPong(Role role, const Job& job) {
    Poster poster(*connections_);
    CompletionWaiter sends(connections_->send_cq(), Wait::kSpin);
    const bool inlined = poster.FitsInline(job.bytes);
    const uint8_t* const last = connections_->receive_area() + job.bytes - 1;
    const auto post = [&] {
      connections_->send_area()[job.bytes - 1] = sequence_;
      poster.Post(Operation::kWrite, job.bytes, /*signaled=*/true, inlined);
      sends.Take();
    };
    const auto wait = [&] {
      while (Look(last) != sequence_) {
      }
    };
    if (role == Role::kInitiator) {
      return TimeRoundTrips(job, [&](int64_t) {
        ++sequence_;
        post();
        wait();
      });
    }
    for (int64_t i = 0; i < job.warm_up + job.count; ++i) {
      ++sequence_;
      wait();
      post();
    }
    return {};
  }

  // Writes or Reads, as ib_write_bw and ib_read_bw: as many under way as the send queue holds.
  void StreamRequests(const Job& job, Poster* poster) {
    CompletionWaiter sends(connections_->send_cq(), job.wait);
    const int64_t depth = connections_->shape().send_depth;
    // A full send queue holds at least one signaled request.
    const int64_t signal_every = std::max(job.list, std::min(kSignalEvery, depth - job.list) / job.list * job.list);
    int64_t posted = 0, completed = 0;
    while (completed < job.count) {
      while (posted < job.count && posted + job.list - completed <= depth) {
        const int64_t list = std::min(job.list, job.count - posted);
        posted += list;
        const bool signaled = posted % signal_every == 0 || posted == job.count;
        poster->Post(job.operation, job.bytes, signaled, job.inlined, static_cast<size_t>(list));
      }
      for (size_t i = sends.Take().size(); i > 0; --i) completed = std::min(completed + signal_every, job.count);
    }
  }

  // A Send needs a receive at the peer, which grants some anew with an empty message after every quarter of its queue.
  void StreamSends(const Job& job, Poster* poster, Receiver* grants) {
    CompletionWaiter sends(connections_->send_cq(), job.wait);
    const int64_t depth = connections_->shape().send_depth;
    const int64_t signal_every = std::min(kSignalEvery, depth);
    int64_t allowed = connections_->shape().receive_depth - 1;  // one for the message that ends the job
    int64_t posted = 0, completed = 0;
    while (completed < job.count) {
      while (posted < job.count && posted < allowed && posted - completed < depth) {
        ++posted;
        poster->Post(Operation::kSend, job.bytes, posted % signal_every == 0 || posted == job.count, job.inlined);
      }
      if (posted == job.count || posted - completed == depth) {
        for (size_t i = sends.Take().size(); i > 0; --i) completed = std::min(completed + signal_every, job.count);
      } else {
        grants->TakeOne();
        allowed += (1 + grants->TakeAll()) * Grant();
        grants->Repost();
      }
    }
    // Every grant that was sent is taken before the answer is waited for.
    for (; allowed - connections_->shape().receive_depth + 1 < job.count / Grant() * Grant(); allowed += Grant()) {
      grants->TakeOne();
      grants->Repost();
    }
  }

  Sample Respond(const Job& job) {
    Poster poster(*connections_);
    Receiver receiver(*connections_, poster, job.responder_wait);
    if (job.operation == Operation::kSend) {
      for (int64_t i = 1; i <= job.count; ++i) {
        receiver.TakeOne();
        receiver.Repost();
        if (i % Grant() == 0) Finish(&poster, Wait::kSpin);
      }
    }
    receiver.TakeOne();
    receiver.Repost();
    Finish(&poster, Wait::kSpin);
    return {};
  }

  // An empty message. Its completion is waited for, so that no send of ours is left over.
  void Finish(Poster* poster, Wait wait) {
    CompletionWaiter sends(connections_->send_cq(), wait);
    poster->Post(Operation::kSend, 0, /*signaled=*/true, /*inlined=*/false);
    sends.Take();
  }

  int64_t Grant() const { return connections_->shape().receive_depth / 4; }

  std::optional<VerbsConnections> connections_;
  uint8_t sequence_ = 0;  // of the last message of a ping-pong in memory
};

}  // namespace

std::unique_ptr<Endpoint> MakeVerbsEndpoint() { return std::make_unique<VerbsEndpoint>(); }

}  // namespace weft::bench
