#include "bench/growth_ends.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <unordered_map>
#include <vector>

#include "bench/own_process.h"
#include "bench/statistics.h"
#include "bench/verbs_connections.h"

namespace weft::bench {
namespace {

constexpr int64_t kDepth = 16;  // of each send and receive queue
constexpr int64_t kBytes = 64;
constexpr int64_t kAtOnce = 128;  // connections under way
constexpr int64_t kUnreaped = 8;  // send completions that wait to be polled
constexpr int64_t kPollsPerSample = 1000;
constexpr int64_t kLooksAtControl = 4096;  // empty polls between two
constexpr double kPatience = 10;           // seconds for a round trip

Shape ShapeOf(const GrowthShape& growth, int64_t connections) {
  Shape shape;
  shape.address = growth.address;
  shape.connections = connections;
  shape.send_depth = shape.receive_depth = kDepth;
  shape.buffer = kBytes;
  shape.events = true;
  return shape;
}

// Queue pairs of one end, and sends and receives of kBytes on them.
class End {
 public:
  explicit End(const Shape& shape) : connections_(shape) {}

  VerbsConnections& connections() { return connections_; }

  void Send(ibv_qp* qp) {
    ibv_sge sge = {reinterpret_cast<uint64_t>(connections_.send_area()), kBytes, connections_.local_key()};
    ibv_send_wr request{};
    request.sg_list = &sge;
    request.num_sge = 1;
    request.opcode = IBV_WR_SEND;
    request.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
    ibv_send_wr* bad = nullptr;
    if (const int error = ibv_post_send(qp, &request, &bad)) Fail("ibv_post_send", error);
    if (++unreaped_ >= kUnreaped) Reap();
  }

  // One poll of the receive queue; the number of the queue pair that received, 0: none. The receive is posted again by
  // Reuse().
  uint32_t PollReceive() {
    ibv_wc completion;
    const int count = ibv_poll_cq(connections_.receive_cq(), 1, &completion);
    if (count == 0) return 0;
    if (count < 0 || completion.status != IBV_WC_SUCCESS) throw Failure("a receive failed");
    return completion.qp_num;
  }
  void Reuse(ibv_qp* qp) { connections_.PostReceive(qp); }

 private:
  void Reap() {
    ibv_wc completions[kDepth];
    const int count = ibv_poll_cq(connections_.send_cq(), kDepth, completions);
    if (count < 0) throw Failure("ibv_poll_cq failed");
    for (int i = 0; i < count; ++i) {
      if (completions[i].status != IBV_WC_SUCCESS) throw Failure("a send failed");
    }
    unreaped_ -= count;
  }

  VerbsConnections connections_;
  int64_t unreaped_ = 0;
};

// What a process needs once is not to be counted for the queue pairs.
Message Call(ControlChannel& control, const Message& order) {
  control.Send(order);
  auto answer = control.Receive(/*timeout_ms=*/120000);
  if (!answer) throw Failure("the responder is gone");
  if (answer->verb() == "error") throw Failure("responder: " + answer->Text("text"));
  return *answer;
}

// Opens `connections` on both sides; the seconds that it took.
double Open(End& end, ControlChannel& control, int64_t connections) {
  const Message answer = Call(control, Message("listen").Set("connections", connections));
  control.Send(Message("accept"));
  const auto start = Clock::now();
  end.connections().Connect(static_cast<uint16_t>(answer.Integer("port")), kAtOnce);
  const double elapsed = Seconds(Clock::now() - start);
  if (!control.Receive(/*timeout_ms=*/120000)) throw Failure("the responder is gone");
  return elapsed;
}

double RoundTrip(End& end, ibv_qp* qp) {
  const auto start = Clock::now();
  end.Send(qp);
  for (int64_t polls = 1; end.PollReceive() == 0; ++polls) {
    if (polls % kLooksAtControl == 0 && Seconds(Clock::now() - start) > kPatience) throw Failure("no answer");
  }
  const double elapsed = Seconds(Clock::now() - start);
  end.Reuse(qp);
  return elapsed;
}

// The median of `samples` times of a call, each that of `calls` of them.
template <typename Function>
double TimeOf(int64_t samples, int64_t calls, const Function& call) {
  std::vector<double> times;
  for (int64_t i = 0; i < samples; ++i) {
    const auto start = Clock::now();
    for (int64_t n = 0; n < calls; ++n) call();
    times.push_back(Seconds(Clock::now() - start) / static_cast<double>(calls));
  }
  return Median(times);
}

double DeregisterTime(ibv_pd* pd, int64_t samples) {
  alignas(4096) static uint8_t page[4096];
  std::vector<double> times;
  for (int64_t i = 0; i < samples; ++i) {
    ibv_mr* mr = ibv_reg_mr(pd, page, sizeof page, IBV_ACCESS_LOCAL_WRITE);
    if (mr == nullptr) Fail("ibv_reg_mr", errno);
    const auto start = Clock::now();
    if (const int error = ibv_dereg_mr(mr)) Fail("ibv_dereg_mr", error);
    times.push_back(Seconds(Clock::now() - start));
  }
  return Median(times);
}

void Echo(End& end, ControlChannel& control) {
  std::unordered_map<uint32_t, ibv_qp*> queue_pairs;
  for (const Connection& connection : end.connections().all())
    queue_pairs[connection.id->qp->qp_num] = connection.id->qp;
  for (int64_t polls = 0;; ++polls) {
    if (const uint32_t number = end.PollReceive(); number != 0) {
      ibv_qp* qp = queue_pairs.at(number);
      end.Reuse(qp);
      end.Send(qp);
    } else if (polls % kLooksAtControl == 0) {
      pollfd fd{control.fd(), POLLIN, 0};
      if (poll(&fd, 1, 0) > 0) return;
    }
  }
}

}  // namespace

Growth RunInitiator(const GrowthShape& shape, ControlChannel& control) {
  Growth growth;
  {
    End warm_up(ShapeOf(shape, 1));
    Open(warm_up, control, 1);
    control.Send(Message("echo"));
    for (int i = 0; i < 100; ++i) RoundTrip(warm_up, warm_up.connections().first().id->qp);
    Call(control, Message("quiet"));
  }
  Call(control, Message("close"));

  const int64_t before = ResidentBytes();
  End end(ShapeOf(shape, shape.connections));
  growth.connects_per_second = static_cast<double>(shape.connections) / Open(end, control, shape.connections);
  const std::vector<Connection>& all = end.connections().all();

  control.Send(Message("echo"));
  std::vector<double> one, in_turn;
  for (int64_t i = 0; i < 10 * shape.samples; ++i) one.push_back(RoundTrip(end, all[all.size() / 2].id->qp));
  const size_t rounds = std::max<size_t>(1, static_cast<size_t>(10 * shape.samples) / all.size());
  for (size_t i = 0; i < rounds * all.size(); ++i) in_turn.push_back(RoundTrip(end, all[i % all.size()].id->qp));
  growth.one = Median(one);
  growth.in_turn = Median(in_turn);
  Call(control, Message("quiet"));

  ibv_cq* const cq = end.connections().receive_cq();
  growth.empty_poll = TimeOf(shape.samples, kPollsPerSample, [&] {
    if (end.PollReceive() != 0) throw Failure("a receive that nobody sent");
  });
  growth.kib = static_cast<double>(ResidentBytes() - before) / 1024 / static_cast<double>(shape.connections);
  growth.arm = TimeOf(shape.samples, kPollsPerSample / 10, [&] {
    if (const int error = ibv_req_notify_cq(cq, 0)) Fail("ibv_req_notify_cq", error);
  });
  growth.deregister = DeregisterTime(all.front().id->qp->pd, shape.samples);
  return growth;
}

void RunResponder(const GrowthShape& shape, ControlChannel& control) {
  std::unique_ptr<End> end;
  while (const auto order = control.Receive()) {
    Message answer("ok");
    if (order->verb() == "listen") {
      end = std::make_unique<End>(ShapeOf(shape, order->Integer("connections")));
      answer.Set("port", int64_t{end->connections().Listen()});
    } else if (order->verb() == "accept") {
      end->connections().Accept();
    } else if (order->verb() == "echo") {
      Echo(*end, control);
      continue;  // what ends it is answered
    } else if (order->verb() == "close") {
      end.reset();
    }
    control.Send(answer);
  }
}

}  // namespace weft::bench
