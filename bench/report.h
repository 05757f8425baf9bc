#ifndef BENCH_REPORT_H_
#define BENCH_REPORT_H_

#include <map>
#include <string>
#include <vector>

namespace weft::bench {

// A row of a section's table: the results of raw TCP and of Weft, in the section's unit.
struct Row {
  std::string name;
  double raw = 0;
  double weft = 0;
  double ratio = 0;  // 0: meaningless
  std::string note;
};

// A value that must be reached.
struct Target {
  std::string name;
  double value = 0;
  std::string unit;  // written directly after the value
  bool at_most = true;
  double limit = 0;
};

// Collects results and prints them for people.
class Report {
 public:
  // Sections and their rows keep the order in which they were first added.
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
