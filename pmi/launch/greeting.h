#ifndef PMI_LAUNCH_GREETING_H_
#define PMI_LAUNCH_GREETING_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/job_secret.h"

namespace weft::pmi {

// What mpiexec and a proxy say to each other before there are frames (remote_start.h).

inline constexpr char kMpiexec[] = "weft-mpiexec", kProxy[] = "weft-proxy";
inline constexpr std::chrono::seconds kStartLimit{120};    // for all proxies to connect; someone may have to type a password
inline constexpr std::chrono::seconds kGreetingLimit{10};  // for a connection to say who it is
inline constexpr size_t kLongestGreeting = 4096;           // bytes

// No delay; and where nothing is under way a host that is gone ends the connection within half a minute. Where something is
// Connection::LookForPeer does it: TCP_USER_TIMEOUT would end a connection to a program that only does not read, as mpiexec while nobody reads its
// output.
void ConfigureTcp(int fd);

// A line from `fd`, without its end, read byte by byte because what follows is someone else's. Nothing: none came in
// time.
std::optional<std::string> ReadLine(int fd, std::chrono::steady_clock::time_point deadline);
// A line that fits into an empty buffer of the socket.
bool SendText(int fd, const std::string& text);

// What both sides have said, for the proof of either.
struct Said {
  Said(const std::string& node, const std::string& nonce_of_mpiexec, const std::string& nonce_of_proxy)
      : words(node + " " + nonce_of_mpiexec + " " + nonce_of_proxy) {}
  std::span<const uint8_t> bytes() const { return {reinterpret_cast<const uint8_t*>(words.data()), words.size()}; }

  const std::string words;
};

// `digits`: of a whole proof.
bool Proves(const std::string& digits, const JobSecret& secret, const char* side, const Said& said);

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_GREETING_H_
