#ifndef IMPI_TESTER_REPORT_H_
#define IMPI_TESTER_REPORT_H_

#include <string>
#include <vector>

#include "impi/tester/run/verdict.h"
#include "impi/tester/script.h"

namespace weft::impi::tester {

// One line for a script that passed; for one that failed also the step, the reason, what was sent and came, and what
// the implementation printed.
std::string TextOf(const Script& script, const Verdict& verdict, bool trace);

// By clause, in ascending order: how many scripts passed. The last line has the sum.
struct Outcome {
  std::string clause;
  bool passed = false;
};
std::string Summary(const std::vector<Outcome>& outcomes);

// Whether clause `a` stands before `b` in the specification: 2.3.9 before 2.3.10.
bool ClauseBefore(const std::string& a, const std::string& b);

}  // namespace weft::impi::tester

#endif  // IMPI_TESTER_REPORT_H_
