#ifndef PMI_LAUNCH_FILE_PATTERN_H_
#define PMI_LAUNCH_FILE_PATTERN_H_

#include <string>

namespace weft::pmi {

// The rank whose output goes to a file.
struct FileUser {
  int rank = 0;
  int job = 0;       // 0: the job of the command line
  int proxy = 0;     // of the rank's host, counted from 0 in the order in which they were started
  std::string host;  // the name of the rank's host
};

// The values of -outfile-pattern and -errfile-pattern: a file name in which %r is the rank, %g the job, %p the proxy,
// %h the host and %% a percent sign. Returns a description of the error in `pattern`, or empty.
std::string ProblemOfFilePattern(const std::string& pattern);
// The file name for `user` from a valid pattern.
std::string FileNameOf(const std::string& pattern, const FileUser& user);

// The same for -prepend-pattern, the text in front of lines. In addition, %t is the time in seconds since 1970.
std::string ProblemOfLinePattern(const std::string& pattern);
std::string LabelOf(const std::string& pattern, const FileUser& user);

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_FILE_PATTERN_H_
