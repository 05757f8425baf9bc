// What Weft's costs are against the number of queue pairs, as a table. Options:
//   --connections=N,N...  the rows; 1,10,100,1000,4000 if not given
//   --smoke               1 and 10 with hardly any samples: shows that it runs
//   --address=ADDR        local address to connect over (default 127.0.0.1)
//   --unpinned            the scheduler places both ends; otherwise each has one half of the CPUs to itself
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "bench/growth_ends.h"
#include "bench/own_process.h"

namespace weft::bench {
namespace {

struct Options {
  std::string address = "127.0.0.1";
  std::vector<int64_t> rows = {1, 10, 100, 1000, 4000};
  int64_t samples = 200;
  bool pinned = true;
  bool valid = true;
};

bool ParseRows(std::string_view text, std::vector<int64_t>* rows) {
  rows->clear();
  while (!text.empty()) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || number < 1) return false;
    rows->push_back(number);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (!text.empty() && text.front() != ',') return false;
    if (!text.empty()) text.remove_prefix(1);
  }
  return !rows->empty();
}

Options ParseOptions(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    constexpr std::string_view kConnections = "--connections=", kAddress = "--address=";
    if (word.starts_with(kConnections)) {
      options.valid &= ParseRows(word.substr(kConnections.size()), &options.rows);
    } else if (word.starts_with(kAddress)) {
      options.address = word.substr(kAddress.size());
    } else if (word == "--smoke") {
      options.rows = {1, 10};
      options.samples = 3;
    } else if (word == "--unpinned") {
      options.pinned = false;
    } else {
      options.valid = false;
    }
  }
  return options;
}

// Runs `body` in a child with its end of the control socket; the child's exit status is 0 if it did not throw.
template <typename Body>
pid_t StartEnd(bool pinned, int half, int fd, int other_fd, const Body& body) {
  const pid_t child = fork();
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  close(other_fd);
  if (pinned) UseHalfOfTheCpus(half);
  RaiseFileLimit();
  ControlChannel control(fd);
  try {
    body(control);
    _exit(0);
  } catch (const Failure& failure) {
    std::fprintf(stderr, "growth: %s\n", failure.what());
  }
  _exit(1);
}

void PrintRow(int64_t connections, const Growth& growth) {
  std::printf("%6lld %14.0f %14.0f %14.0f %14.2f %14.2f %14.1f %14.0f\n", static_cast<long long>(connections),
              1e9 * growth.empty_poll, 1e9 * growth.arm, 1e9 * growth.deregister, 1e6 * growth.one,
              1e6 * growth.in_turn, growth.kib, growth.connects_per_second);
  std::fflush(stdout);
}

// Each row has processes of its own, so that what one leaves behind is not in the next.
bool RunRow(const Options& options, int64_t connections) {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) return false;
  const GrowthShape shape = {.address = options.address, .connections = connections, .samples = options.samples};
  const pid_t responder =
      StartEnd(options.pinned, 1, fds[1], fds[0], [&](ControlChannel& control) { RunResponder(shape, control); });
  const pid_t initiator = StartEnd(options.pinned, 0, fds[0], fds[1], [&](ControlChannel& control) {
    PrintRow(connections, RunInitiator(shape, control));
  });
  close(fds[0]);
  close(fds[1]);
  bool well = responder > 0 && initiator > 0;
  for (const pid_t child : {initiator, responder}) {
    int status = 0;
    if (child > 0 && waitpid(child, &status, 0) == child) well &= WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  return well;
}

int Main(int argc, char** argv) {
  const Options options = ParseOptions(argc, argv);
  if (!options.valid) {
    std::fputs("usage: growth [--connections=N,N...] [--smoke] [--address=ADDR] [--unpinned]\n", stderr);
    return 2;
  }
  std::printf("%6s %14s %14s %14s %14s %14s %14s %14s\n", "queue", "empty poll", "arm", "deregister", "64 B, one",
              "in turn", "memory each", "connects");
  std::printf("%6s %14s %14s %14s %14s %14s %14s %14s\n", "pairs", "ns", "ns", "ns", "us", "us", "KiB", "1/s");
  std::fflush(stdout);  // before a fork, or each end would print it too
  bool well = true;
  for (const int64_t connections : options.rows) well &= RunRow(options, connections);
  return well ? 0 : 1;
}

}  // namespace
}  // namespace weft::bench

int main(int argc, char** argv) { return weft::bench::Main(argc, argv); }
