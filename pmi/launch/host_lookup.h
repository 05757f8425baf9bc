#ifndef PMI_LAUNCH_HOST_LOOKUP_H_
#define PMI_LAUNCH_HOST_LOOKUP_H_

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace weft::pmi {

// What is to be known of a host before something is started on it.
struct HostFacts {
  bool is_this = false;  // "localhost", this host's name, or a name or address that belongs to one of its interfaces
  std::string address;   // that packets to it leave from; empty: not known, or this host's by its name
};

// Looks hosts up, all at once: names that nobody answers for cost a resolver's time-out (5 s and more), and those of many hosts so many. What
// can be said without asking anybody is said at once; the rest is asked by a child process, so that this one has no threads when it forks, and
// can do without the answers. Numeric addresses, "localhost" and this host's own name need no child.
class HostLookup {
 public:
  static constexpr std::chrono::seconds kLimit{5};  // then a host that nobody knows is another one, with no address
  static constexpr size_t kMostAtOnce = 64;         // names that are being asked for

  // Begins. Whoever waits for this process's children may meet one that it does not know.
  explicit HostLookup(const std::vector<std::string>& names);
  ~HostLookup();
  HostLookup(const HostLookup&) = delete;
  HostLookup& operator=(const HostLookup&) = delete;

  bool done() const { return answers_ < 0; }
  // Readable when there is something for Step(), which is to be called at the deadline, too; -1: done.
  int fd() const { return answers_; }
  std::chrono::steady_clock::time_point deadline() const { return deadline_; }
  void Step();

  // In the order of the names; what is not known yet is another host.
  const std::vector<HostFacts>& facts() const { return facts_; }

 private:
  void TakeAnswers();
  void Finish();

  std::vector<HostFacts> facts_;
  std::string text_;  // of answers, cut anywhere
  int answers_ = -1;  // a pipe from the child, which ends when it is closed
  const std::chrono::steady_clock::time_point deadline_ = std::chrono::steady_clock::now() + kLimit;
};

// The same, waited for.
std::vector<HostFacts> LookUpHosts(const std::vector<std::string>& names);

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_HOST_LOOKUP_H_
