#ifndef IMPI_TESTER_RUN_VERDICT_H_
#define IMPI_TESTER_RUN_VERDICT_H_

#include <chrono>
#include <string>
#include <vector>

#include "impi/tester/play.h"

namespace weft::impi::tester {

// What is tested, and how it is reached.
struct Subject {
  std::vector<std::string> command;   // starts it; empty: the user does
  std::string server;                 // HOST:PORT of a server that runs already, if there is no command
  // Of the tester, for a client under test; IPv4 or IPv6, numeric. Its hosts have them in turn, the server has the first one.
  std::vector<std::string> addresses = {"127.0.0.1"};
  std::chrono::seconds patience = Play::kPatience;
};

// What came of a script.
struct Verdict {
  bool passed = false;
  Play::Failure failure;           // line 0: before the first step
  std::vector<std::string> trace;  // what was sent and came, decoded
  std::string output;              // of the implementation under test: both streams
  std::chrono::milliseconds took{0};
};

}  // namespace weft::impi::tester

#endif  // IMPI_TESTER_RUN_VERDICT_H_
