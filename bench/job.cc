#include "bench/job.h"

namespace weft::bench {
namespace {

// Failure: a value from another build.
template <typename Enum>
Enum ToEnum(const Message& message, const std::string& key, Enum last) {
  const int64_t value = message.Integer(key);
  if (value < 0 || value > static_cast<int64_t>(last)) throw Failure(key + " is out of range");
  return static_cast<Enum>(value);
}

}  // namespace

Shape Shape::From(const Message& message) {
  return {.address = message.Text("address"),
          .connections = message.Integer("connections"),
          .send_depth = message.Integer("send_depth"),
          .receive_depth = message.Integer("receive_depth"),
          .buffer = message.Integer("buffer"),
          .events = message.Integer("events") != 0};
}

void Shape::AddTo(Message* message) const {
  message->Set("address", address)
      .Set("connections", connections)
      .Set("send_depth", send_depth)
      .Set("receive_depth", receive_depth)
      .Set("buffer", buffer)
      .Set("events", int64_t{events});
}

Job Job::From(const Message& message) {
  return {.ping_pong = message.Integer("ping_pong") != 0,
          .operation = ToEnum(message, "operation", Operation::kRead),
          .wait = ToEnum(message, "wait", Wait::kEvent),
          .responder_wait = ToEnum(message, "responder_wait", Wait::kEvent),
          .bytes = message.Integer("bytes"),
          .count = message.Integer("count"),
          .warm_up = message.Integer("warm_up"),
          .list = message.Integer("list"),
          .inlined = message.Integer("inlined") != 0};
}

void Job::AddTo(Message* message) const {
  message->Set("ping_pong", int64_t{ping_pong})
      .Set("operation", static_cast<int64_t>(operation))
      .Set("wait", static_cast<int64_t>(wait))
      .Set("responder_wait", static_cast<int64_t>(responder_wait))
      .Set("bytes", bytes)
      .Set("count", count)
      .Set("warm_up", warm_up)
      .Set("list", list)
      .Set("inlined", int64_t{inlined});
}

Sample Sample::From(const Message& message) {
  return {.elapsed = message.Real("elapsed"),
          .median = message.Real("median"),
          .p99 = message.Real("p99"),
          .cpu = message.Real("cpu"),
          .context_switches = message.Integer("context_switches")};
}

void Sample::AddTo(Message* message) const {
  message->Set("elapsed", elapsed)
      .Set("median", median)
      .Set("p99", p99)
      .Set("cpu", cpu)
      .Set("context_switches", context_switches);
}

}  // namespace weft::bench
