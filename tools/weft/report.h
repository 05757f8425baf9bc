#ifndef TOOLS_WEFT_REPORT_H_
#define TOOLS_WEFT_REPORT_H_

#include <cstdio>
#include <string>

namespace weft::tool {

// The output of `weft doctor`: a line for each check, and below each failure what to do.
class Report {
 public:
  void Good(const std::string& what) { std::printf("ok    %s\n", what.c_str()); }
  void Note(const std::string& what) { std::printf("note  %s\n", what.c_str()); }
  void Bad(const std::string& what, const std::string& remedy) {
    std::printf("FAIL  %s\n      -> %s\n", what.c_str(), remedy.c_str());
    ++failures_;
  }
  int failures() const { return failures_; }

 private:
  int failures_ = 0;
};

}  // namespace weft::tool

#endif  // TOOLS_WEFT_REPORT_H_
