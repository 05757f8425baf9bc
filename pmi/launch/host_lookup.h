#ifndef PMI_LAUNCH_HOST_LOOKUP_H_
#define PMI_LAUNCH_HOST_LOOKUP_H_

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace weft::pmi {

// Information on a host that is needed before a process is started on it.
struct HostFacts {
  bool is_this = false;  // "localhost", this host's name, or a name or address of one of its interfaces
  std::string address;   // source address of packets to it; empty: not known, or this host by its name
};

// Looks up all hosts at once. A name without an answer costs the resolver's timeout (5 s or more), and many names would
// cost many times that. Numeric addresses, "localhost" and this host's own name are answered at once. A child process
// asks for the other names. Thus this process has no threads when it forks, and it can go on without the answers.
class HostLookup {
 public:
  // after it, a host without an answer counts as another host, without an address
  static constexpr std::chrono::seconds kLimit{5};
  static constexpr size_t kMostAtOnce = 64;         // names in progress

  // Begins. Code that waits for any child of this process may get the process id of this child.
  explicit HostLookup(const std::vector<std::string>& names);
  ~HostLookup();
  HostLookup(const HostLookup&) = delete;
  HostLookup& operator=(const HostLookup&) = delete;

  bool done() const { return answers_ < 0; }
  // Readable when Step() has something to do. Step() must also be called at the deadline. -1: done.
  int fd() const { return answers_; }
  std::chrono::steady_clock::time_point deadline() const { return deadline_; }
  void Step();

  // In the order of the names. A host that is not known yet counts as another host.
  const std::vector<HostFacts>& facts() const { return facts_; }

 private:
  void TakeAnswers();
  void Finish();

  std::vector<HostFacts> facts_;
  std::string text_;  // received answers, cut anywhere
  int answers_ = -1;  // a pipe from the child, which ends when the pipe is closed
  const std::chrono::steady_clock::time_point deadline_ = std::chrono::steady_clock::now() + kLimit;
};

// The same, blocking.
std::vector<HostFacts> LookUpHosts(const std::vector<std::string>& names);

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_HOST_LOOKUP_H_
