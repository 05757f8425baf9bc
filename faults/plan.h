#ifndef FAULTS_PLAN_H_
#define FAULTS_PLAN_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "faults/kinds.h"
#include "transport/socket_address.h"

namespace weft::faults {

using Duration = std::chrono::nanoseconds;

// peer=: a host, a port, or both.
struct PeerSelector {
  std::optional<transport::SocketAddress> host;  // its port is ignored
  uint16_t port = 0;                             // 0: any

  bool Matches(const transport::SocketAddress& peer) const;
};

// One fault of a specification.
struct Fault {
  Kind kind{};
  std::string text;   // as written by the user
  uint32_t given = 0; // Keys

  Duration time{}, jitter{}, lasts{}, give_up{};
  uint64_t bits_per_second = 0;
  int status = 0;  // ibv_wc_status
  int error = 0;   // positive errno; 0: not given
  Call call{};
  int event = 0;  // rdma_cm_event_type

  std::optional<uint32_t> qp;
  PeerSelector peer;
  std::optional<int> opcode;
  std::string device;

  uint64_t nth = 0, every = 0, times = 0;  // 0: not given
  double probability = 1;
  uint64_t after_bytes = 0;
  Duration after{};

  bool Has(Key key) const { return given & key; }
};

struct Plan {
  std::vector<Fault> faults;
  std::optional<uint64_t> seed;  // seed=
};

// An error in a specification, and what was expected there.
struct ParseError {
  size_t position = 0;  // in bytes from its beginning
  std::string what;

  // Three lines: the error, the line of `specification` that has it, a caret under the position. No line break at the
  // end.
  std::string Describe(std::string_view specification) const;
};

// Parses a specification: faults separated by ";" or a line break; "#" begins a comment. Each fault is a kind and
// KEY=VALUE words, in any order, separated by spaces. "seed=NUMBER" can be a fault of its own. Names may be in lower or
// upper case. weft-faults(7).
Result<Plan, ParseError> Parse(std::string_view specification);

// Parses the value of WEFT_FAULTS: a specification, or "@FILE" with the name of a file that has one. The error is for
// users and has one or three lines.
Result<Plan, std::string> ParseSetting(const std::string& value);

}  // namespace weft::faults

#endif  // FAULTS_PLAN_H_
