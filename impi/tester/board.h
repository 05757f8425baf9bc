#ifndef IMPI_TESTER_BOARD_H_
#define IMPI_TESTER_BOARD_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "impi/tester/run/verdict.h"
#include "impi/tester/script.h"

namespace weft::impi::tester {

// What the page of -serve shows: each script, and what came of it so far.
struct Board {
  enum class State : uint8_t { kWaits, kRuns, kPassed, kFailed };
  struct Entry {
    std::string file, clause, about;
    size_t steps = 0, done = 0;
    State state = State::kWaits;
    Verdict verdict;  // when it is kPassed or kFailed
  };

  explicit Board(const std::vector<Script>& scripts);
  // As before the first script.
  void Clear();

  bool running = false;
  int runs = 0;  // how often it was started
  std::vector<Entry> entries;
};

// An object: {"running": false, "runs": 1, "entries": [{"file": "...", "clause": "2.3.4", "about": "...", "steps": 3,
// "done": 3, "state": "failed", "milliseconds": 12, "line": 7, "step": "...", "reason": "...", "trace": ["..."],
// "output":
// "..."}]}. The last five are of a script that failed. Bytes that are not ASCII become \u00xx: the text of a peer may
// have any.
std::string JsonOf(const Board& board);

}  // namespace weft::impi::tester

#endif  // IMPI_TESTER_BOARD_H_
