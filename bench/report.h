#ifndef BENCH_REPORT_H_
#define BENCH_REPORT_H_

#include <map>
#include <string>
#include <vector>

namespace weft::bench {

// A line of a section's table: what was measured of raw TCP and of Weft, in the section's unit.
struct Row {
  std::string name;
  double raw = 0;
  double weft = 0;
  double ratio = 0;  // 0: it would say nothing
  std::string note;
};

// A figure that is to be reached.
struct Target {
  std::string name;
  double value = 0;
  std::string unit;  // written right behind the value
  bool at_most = true;
  double limit = 0;
};

// Collects results and prints them for people.
class Report {
 public:
  // Sections and their rows keep the order in which they were first named.
  void Add(const std::string& section, Row row);
  void Add(Target target) { targets_.push_back(std::move(target)); }
  void AddFailure(const std::string& name, const std::string& why) { failures_.push_back(name + ": " + why); }

  bool failed() const { return !failures_.empty(); }
  std::string ToString() const;

 private:
  std::vector<std::string> sections_;
  std::map<std::string, std::vector<Row>> rows_;
  std::vector<Target> targets_;
  std::vector<std::string> failures_;
};

bool IsReached(const Target& target);

}  // namespace weft::bench

#endif  // BENCH_REPORT_H_
