#ifndef PMI_LAUNCH_FILE_PATTERN_H_
#define PMI_LAUNCH_FILE_PATTERN_H_

#include <string>

namespace weft::pmi {

// Whose output goes to a file.
struct FileUser {
  int rank = 0;
  int job = 0;       // 0: that of the command line
  int proxy = 0;     // of its host, from 0 on in the order in which they were started
  std::string host;  // its host's name
};

// The values of -outfile-pattern and -errfile-pattern: the name of a file in which %r is the rank, %g the job, %p the
// proxy, %h the host and %% a percent sign. What is wrong with `pattern`, or empty.
std::string ProblemOfFilePattern(const std::string& pattern);
// The name that a pattern without a problem gives the file of `user`.
std::string FileNameOf(const std::string& pattern, const FileUser& user);

// The same for -prepend-pattern, which stands in front of lines; and %t is the time, in seconds since 1970.
std::string ProblemOfLinePattern(const std::string& pattern);
std::string LabelOf(const std::string& pattern, const FileUser& user);

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_FILE_PATTERN_H_
