#ifndef BENCH_ENDPOINT_H_
#define BENCH_ENDPOINT_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "bench/job.h"
#include "bench/statistics.h"

namespace weft::bench {

// One end of a measurement, in its own process. All functions block and throw Failure. Single threaded.
class Endpoint {
 public:
  virtual ~Endpoint() = default;

  // Responder: listens at shape.address and returns the port; Accept then waits for all connections.
  virtual uint16_t Listen(const Shape& shape) = 0;
  virtual void Accept() = 0;
  // Initiator: makes all connections at once.
  virtual void Connect(const Shape& shape, uint16_t port) = 0;
  // Ends connections and listener, and releases everything.
  virtual void Close() = 0;

  virtual Sample PingPong(Role role, const Job& job) = 0;
  virtual Sample OneWay(Role role, const Job& job) = 0;
};

std::unique_ptr<Endpoint> MakeRawTcpEndpoint();
std::unique_ptr<Endpoint> MakeVerbsEndpoint();

// Calls `round_trip(i)` for each message of a ping-pong. Each time is measured from the start of one round trip to the
// start of the next, so it includes what an end does besides waiting.
template <typename RoundTrip>
Sample TimeRoundTrips(const Job& job, RoundTrip round_trip) {
  std::vector<double> halves(static_cast<size_t>(job.count));
  int64_t i = 0;
  for (; i < job.warm_up; ++i) round_trip(i);
  const Clock::time_point start = Clock::now();
  Clock::time_point last = start;
  for (double& half : halves) {
    round_trip(i++);
    const Clock::time_point now = Clock::now();
    half = Seconds(now - last) / 2;
    last = now;
  }
  return {.elapsed = Seconds(last - start), .median = Quantile(halves, 0.5), .p99 = Quantile(halves, 0.99)};
}

}  // namespace weft::bench

#endif  // BENCH_ENDPOINT_H_
