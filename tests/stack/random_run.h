#ifndef TESTS_STACK_RANDOM_RUN_H_
#define TESTS_STACK_RANDOM_RUN_H_

#include <cstdint>
#include <string>

namespace weft::sim {

// Two RNICs, a network in virtual time between them, random work on both sides, and a model of what must come of it.
struct RunResult {
  std::string failure;   // empty: everything was as the model says; else what was not, for a person
  bool connected = false;
  bool cut = false;      // a fault ended the connection
  int completed = 0;     // work requests that succeeded
};

// Everything random comes from `seed`: the same seed is the same run.
RunResult RunRandomWork(uint64_t seed);

}  // namespace weft::sim

#endif  // TESTS_STACK_RANDOM_RUN_H_
