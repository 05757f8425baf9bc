// What mpiexec and its proxies said to one another (-profile).
#include <poll.h>
#include <unistd.h>

#include <cstdio>

#include "base/deadline.h"
#include "pmi/launch/launcher.h"

namespace weft::pmi {
namespace {

constexpr std::chrono::seconds kProfileTime{5};  // for proxies to answer

void PrintRow(const std::string& name, const Profile& profile) {
  std::fprintf(stderr, "  %-20s %10u %10llu %12llu %10llu %12llu\n", name.c_str(), profile.neighbours, static_cast<unsigned long long>(profile.sent),
               static_cast<unsigned long long>(profile.sent_bytes), static_cast<unsigned long long>(profile.received),
               static_cast<unsigned long long>(profile.received_bytes));
}

}  // namespace

void Launcher::ShowMessages() {
  Traffic all;
  for (const auto& branch : tree_.branches()) all += branch->link.connection->traffic();
  const Profile own{static_cast<uint32_t>(tree_.branches().size()), all.sent, all.sent_bytes, all.received, all.received_bytes};
  for (const auto& branch : tree_.branches()) branch->Send({FrameType::kProfile}, Frame::kEverywhere);
  const auto deadline = Clock::now() + kProfileTime;
  const auto missing = [&] {
    for (size_t i = 0; i < hosts_.size(); ++i) {
      if (hosts_[i].open && !profiles_.contains(i)) return true;
    }
    return false;
  };
  while (missing() && Clock::now() < deadline) {
    for (const auto& branch : tree_.branches()) {
      if (!branch->open) continue;
      const short events = static_cast<short>(POLLIN | (branch->link.connection->wants_to_write() ? POLLOUT : 0));
      poller_.Watch(branch->link.connection->fd(), events, [this, to = branch.get()](short ready) { OnBranch(*to, ready); });
    }
    poller_.Wait(MillisecondsUntil(deadline));
  }
  std::fprintf(stderr, "mpiexec: messages between mpiexec and its proxies\n  %-20s %10s %10s %12s %10s %12s\n", "of", "neighbours", "sent", "bytes", "received", "bytes");
  PrintRow("mpiexec", own);
  for (const auto& [host, profile] : profiles_) PrintRow(hosts_[host].name, profile);
}

}  // namespace weft::pmi
