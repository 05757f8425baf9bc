#include "pmi/launch/remote_start.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <sstream>
#include <utility>

#include "base/hex.h"
#include "pmi/launch/greeting.h"

namespace weft::pmi {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kProxyPatience{60};  // of a proxy, while mpiexec is there but has no room for it
constexpr milliseconds kFirstRetry{100}, kLongestRetry{1000};

// Proves to what listens at the other end of `fd` that it was invited, and learns that it is mpiexec. `closed`: it hung
// up without having said anything wrong.
bool GreetMpiexec(int fd, const JobSecret& secret, const std::string& node, bool* closed) {
  *closed = true;
  const auto challenge = ReadLine(fd, Clock::now() + kGreetingLimit);
  if (!challenge) return false;
  std::istringstream words(*challenge);
  std::string name, nonce;
  words >> name >> nonce;
  *closed = false;
  if (name != kMpiexec || nonce.size() != 2 * sizeof(Nonce)) return false;
  const std::string own_nonce = HexOf(NewNonce());
  const Said said(node, nonce, own_nonce);
  if (!SendText(fd, std::string(kProxy) + " " + node + " " + own_nonce + " " +
                        HexOf(secret.Prove(kProxy, said.bytes())) + "\n"))
    return false;
  const auto reply = ReadLine(fd, Clock::now() + kGreetingLimit);
  *closed = !reply;
  const std::string start = std::string(kMpiexec) + " ";
  return reply && reply->starts_with(start) && Proves(reply->substr(start.size()), secret, kMpiexec, said);
}

}  // namespace

Result<Invited, PmiError> AcceptInvitation(int input) {
  const auto line = ReadLine(input, Clock::now() + kStartLimit);
  std::istringstream words(line.value_or(""));
  std::string name, node, port, digits;
  words >> name >> node >> port >> digits;
  const auto secret = JobSecret::FromHex(digits);
  if (name != kProxy || !secret) {
    return PmiError{"mpiexec --proxy is for mpiexec's own use: it expects an invitation on standard input"};
  }
  std::vector<std::string> addresses;
  std::string tried;
  for (std::string address; words >> address; tried += " " + address) addresses.push_back(address);
  const auto deadline = Clock::now() + kProxyPatience;
  milliseconds pause = kFirstRetry;
  for (bool again = true; again && Clock::now() < deadline; pause = std::min(pause * 2, kLongestRetry)) {
    again = false;
    for (const std::string& address : addresses) {
      const int fd = Dial(address, port);
      if (fd < 0) continue;
      bool closed;
      if (GreetMpiexec(fd, *secret, node, &closed)) {
        ConfigureTcp(fd);
        return Invited{std::make_unique<Connection>(fd), *secret};
      }
      again |= closed;  // for want of room, perhaps
      close(fd);
    }
    if (again) poll(nullptr, 0, static_cast<int>(pause.count()));
  }
  return PmiError{"cannot connect to mpiexec at port " + port + " of" + tried +
                  "; does a firewall block it, or is -iface needed?"};
}

JobSecret SecretOfJob(const JobSecret& secret, int job) {
  if (job == 0) return secret;
  const std::string number = std::to_string(job);
  return secret.Derive("weft-job", {reinterpret_cast<const uint8_t*>(number.data()), number.size()});
}

}  // namespace weft::pmi
