#include "cm/rsocket/poll.h"

#include <cerrno>
#include <memory>
#include <vector>

#include "cm/rsocket/defaults.h"
#include "cm/rsocket/table.h"

namespace weft::rsocket {
namespace {

// What one call works with, kept by the thread so that nothing is allocated for each.
struct Scratch {
  std::vector<std::shared_ptr<Socket>> sockets;  // by index in the caller's array; nullptr: another descriptor
  std::vector<WaitNode> nodes;                   // likewise
  std::vector<pollfd> fds;                       // for the kernel: this thread's waker first
  std::vector<size_t> others;                    // indices in the caller's array of what follows it; then the sockets' descriptors
  bool in_use = false;
};

class PollCall {
 public:
  PollCall(pollfd* fds, nfds_t count, Scratch& scratch) : fds_(fds), count_(count), scratch_(scratch) {
    scratch_.in_use = true;
    scratch_.sockets.resize(count);
    for (size_t i = 0; i < count; ++i) {
      scratch_.sockets[i] = fds[i].fd >= 0 ? Table::Process().Find(fds[i].fd) : nullptr;
      if (scratch_.sockets[i] != nullptr) ++sockets_;
    }
  }
  ~PollCall() {
    scratch_.sockets.clear();
    scratch_.in_use = false;
  }

  int Run(const Deadline& deadline) {
    if (sockets_ == 0) return Kernel(fds_, count_, PollTimeout(deadline));
    const auto spin_until = Clock::now() + std::chrono::microseconds(Defaults::Process().polling_us);
    do {
      if (const int ready = Look(); ready != 0) return ready;
      if (Passed(deadline)) return 0;
    } while (Clock::now() < spin_until);
    for (;;) {
      if (const int ready = Wait(deadline); ready != 0) return ready;
      if (const int ready = Look(); ready != 0) return ready;
      if (Passed(deadline)) return 0;
    }
  }

 private:
  static int Kernel(pollfd* fds, nfds_t count, int timeout) {
    const int ready = poll(fds, count, timeout);
    return ready < 0 ? -errno : ready;
  }

  // How many are ready now; negative errno.
  int Look() {
    int ready = 0;
    for (size_t i = 0; i < count_; ++i) {
      fds_[i].revents = scratch_.sockets[i] != nullptr ? scratch_.sockets[i]->Poll(fds_[i].events) : 0;
      ready += fds_[i].revents != 0;
    }
    if (sockets_ == count_) return ready;
    Gather();
    const int others = Kernel(scratch_.fds.data() + 1, scratch_.others.size(), 0);
    if (others < 0) return others;
    Spread();
    return ready + others;
  }

  // The descriptors that are no rsockets, behind the waker.
  void Gather() {
    scratch_.fds.assign(1, {Waiter::Mine().fd(), POLLIN, 0});
    scratch_.others.clear();
    for (size_t i = 0; i < count_; ++i) {
      if (scratch_.sockets[i] != nullptr) continue;
      scratch_.fds.push_back({fds_[i].fd, fds_[i].events, 0});
      scratch_.others.push_back(i);
    }
  }
  void Spread() {
    for (size_t i = 0; i < scratch_.others.size(); ++i) fds_[scratch_.others[i]].revents = scratch_.fds[i + 1].revents;
  }

  // Sleeps until something may have changed. Not 0: how many are ready, or a negative errno.
  int Wait(const Deadline& deadline) {
    Waiter& me = Waiter::Mine();
    if (me.fd() < 0) return -EMFILE;
    Gather();
    scratch_.nodes.assign(count_, WaitNode{});
    size_t begun = 0;
    bool any = false;
    for (; begun < count_ && !any; ++begun) {
      if (scratch_.sockets[begun] == nullptr) continue;
      WaitNode& node = scratch_.nodes[begun];
      node.waiter = &me;
      int fds[Socket::kWaitFds];
      any = scratch_.sockets[begun]->BeginWait(fds_[begun].events, node, fds) != 0;
      for (const int fd : fds) {
        if (fd >= 0) scratch_.fds.push_back({fd, POLLIN, 0});
      }
    }
    int result = 0;
    if (!any) {
      const int ready = Kernel(scratch_.fds.data(), scratch_.fds.size(), PollTimeout(deadline));
      if (ready < 0) result = ready;
      if (scratch_.fds[0].revents != 0) me.Clear();
    }
    for (size_t i = 0; i < begun; ++i) {
      if (scratch_.sockets[i] != nullptr) scratch_.sockets[i]->EndWait(scratch_.nodes[i]);
    }
    return result;
  }

  pollfd* const fds_;
  const nfds_t count_;
  Scratch& scratch_;
  size_t sockets_ = 0;
};

}  // namespace

int PollAll(pollfd* fds, nfds_t count, const Deadline& deadline) {
  thread_local Scratch mine;
  Scratch nested;  // a signal handler that polls while its thread does
  return PollCall(fds, count, mine.in_use ? nested : mine).Run(deadline);
}

}  // namespace weft::rsocket
