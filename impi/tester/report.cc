#include "impi/tester/report.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <map>
#include <utility>

namespace weft::impi::tester {
namespace {

constexpr size_t kMostTrace = 40;  // lines that are printed

std::vector<int> NumbersOf(const std::string& clause) {
  std::vector<int> numbers;
  const char* at = clause.data();
  const char* const end = at + clause.size();
  while (at < end) {
    int number = 0;
    at = std::from_chars(at, end, number).ptr;
    numbers.push_back(number);
    if (at < end) ++at;  // the point
  }
  return numbers;
}

std::string Indented(const std::string& text) {
  std::string lines;
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines += "          " + text.substr(at, end - at) + "\n";
    at = end + 1;
  }
  return lines;
}

}  // namespace

bool ClauseBefore(const std::string& a, const std::string& b) { return NumbersOf(a) < NumbersOf(b); }

std::string TextOf(const Script& script, const Verdict& verdict, bool trace) {
  std::array<char, 32> took;
  std::snprintf(took.data(), took.size(), "%.2f s", static_cast<double>(verdict.took.count()) / 1000);
  std::string text = script.clause + std::string(script.clause.size() < 8 ? 8 - script.clause.size() : 1, ' ') +
                     (verdict.passed ? "passed  " : "FAILED  ") + script.about + " (" + script.file + ", " +
                     took.data() + ")\n";
  if (!verdict.passed) {
    text += "        " + script.file + ":" + std::to_string(verdict.failure.line) + ": " + verdict.failure.step +
            "\n        " + verdict.failure.reason + "\n";
  }
  if (verdict.passed && !trace) return text;
  const size_t first = verdict.trace.size() > kMostTrace ? verdict.trace.size() - kMostTrace : 0;
  if (!verdict.trace.empty()) text += "        what was sent and came:\n";
  for (size_t i = first; i < verdict.trace.size(); ++i) text += "          " + verdict.trace[i] + "\n";
  if (!verdict.output.empty())
    text += "        what the implementation under test printed:\n" + Indented(verdict.output);
  return text;
}

std::string Summary(const std::vector<Outcome>& outcomes) {
  using Count = std::pair<int, int>;  // that passed, of all
  std::map<std::string, Count, bool (*)(const std::string&, const std::string&)> counts(ClauseBefore);
  Count all;
  for (const Outcome& outcome : outcomes) {
    for (Count* count : {&counts[outcome.clause], &all}) {
      count->first += outcome.passed ? 1 : 0;
      ++count->second;
    }
  }
  std::string text;
  for (const auto& [clause, count] : counts) {
    text +=
        "clause " + clause + ": " + std::to_string(count.first) + " of " + std::to_string(count.second) + " passed\n";
  }
  return text + "all: " + std::to_string(all.first) + " of " + std::to_string(all.second) + " passed\n";
}

}  // namespace weft::impi::tester
