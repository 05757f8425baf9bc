#ifndef RDMAP_TESTING_WORKLOAD_H_
#define RDMAP_TESTING_WORKLOAD_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <random>
#include <vector>

#include "rdmap/delivery.h"
#include "rdmap/testing/fake_host.h"

namespace weft::rdmap::testing {

// Random requests from one host to another, and a model of the memory and completions after all of them. The model does
// not know segments. Each Write has its own place. Each Read reads the data of an earlier Write, or the initial data.
class Workload {
 public:
  // `streams`: also what those have alone: atomics; immediate data, and receives that are posted late. `targets`: the number of targets
  // (rdmap/delivery.h); 0: the stream is not targeted.
  Workload(FakeHost& from, FakeHost& to, uint32_t seed, Streams streams = Streams::kAll, uint32_t targets = 0);

  // Posts `count` requests, and the receives that they need.
  void Post(int count);
  // Posts some of the late receives. Returns false if there are none.
  bool PostLateReceives();
  // EXPECTs the outcome of all requests.
  void Verify() const;
  int posted() const { return posted_; }

 private:
  struct Expected {
    size_t length = 0;
    bool solicited = false;
    std::optional<ddp::STag> invalidated;
    std::optional<uint32_t> immediate;
    bool of_write = false;
    Bytes bytes;
    uint32_t target = 0;
  };

  uint32_t Below(uint32_t bound) { return static_cast<uint32_t>(random_() % bound); }
  uint32_t RandomLength();
  std::vector<size_t> RandomPieces(size_t length);
  uint32_t RandomTarget() { return targets_ == 0 ? 0 : 1 + Below(targets_); }
  void PostWrite();
  void PostRead();
  void PostSend();
  void PostAtomic();
  void PostReceive(const std::vector<size_t>& pieces);

  FakeHost& from_;
  FakeHost& to_;
  std::mt19937 random_;
  uint32_t seed_;
  const bool has_atomics_, extended_;
  const uint32_t targets_;
  int posted_ = 0;
  std::deque<std::vector<size_t>> late_receives_;
  uint64_t counter_ = 0;
  struct ExpectedValue {
    const FakeHost::Posted* posted;
    uint64_t value;
  };
  std::vector<ExpectedValue> atomics_;
  // Final content of the target's region and of the reader's sink. The first bytes of the target are only read.
  Bytes target_, sink_;
  size_t target_used_, sink_used_ = 0;
  std::vector<Expected> sends_;
  std::vector<int> sent_, reads_;
  uint32_t next_invalidated_ = 1000;
};

}  // namespace weft::rdmap::testing

#endif  // RDMAP_TESTING_WORKLOAD_H_
