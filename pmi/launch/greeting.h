#ifndef PMI_LAUNCH_GREETING_H_
#define PMI_LAUNCH_GREETING_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/job_secret.h"

namespace weft::pmi {

// The exchange between mpiexec and a proxy before frames (remote_start.h).

inline constexpr char kMpiexec[] = "weft-mpiexec", kProxy[] = "weft-proxy";
// for all proxies to connect; a user may have to type a password
inline constexpr std::chrono::seconds kStartLimit{120};
inline constexpr std::chrono::seconds kGreetingLimit{10};  // for a connection to identify itself
inline constexpr size_t kLongestGreeting = 4096;           // bytes

// Reads a line from `fd`, without its end. It reads byte by byte, because the following bytes are for another reader.
// nullopt: no line came in time.
std::optional<std::string> ReadLine(int fd, std::chrono::steady_clock::time_point deadline);
// Sends a line that fits into an empty socket buffer.
bool SendText(int fd, const std::string& text);

// The data that both sides have sent, for the proofs.
struct Said {
  Said(const std::string& node, const std::string& nonce_of_mpiexec, const std::string& nonce_of_proxy)
      : words(node + " " + nonce_of_mpiexec + " " + nonce_of_proxy) {}
  std::span<const uint8_t> bytes() const { return {reinterpret_cast<const uint8_t*>(words.data()), words.size()}; }

  const std::string words;
};

// `digits`: of a complete proof.
bool Proves(const std::string& digits, const JobSecret& secret, const char* side, const Said& said);

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_GREETING_H_
