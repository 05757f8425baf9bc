#ifndef IMPI_CLIENT_REPORT_H_
#define IMPI_CLIENT_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "impi/job/ranks.h"
#include "impi/wire/command.h"
#include "impi/wire/packet.h"

// What a client with several hosts and the agents of these hosts say to each other. They have the form of commands (impi/wire/command.h):
//
//   agent                                               client
//   HERE its address, port, and local address  ->                              to be announced
//                                              <-       WORK host, the job     when all clients have joined
//   CONN                                       ->                              it is connected with the hosts of the other clients; when all are:
//                                                                              the client starts the ranks
//                                              <-       GONE how               mpiexec has ended
//   OVER                                       ->                              the FINIs of this host and of the others are through
//   FAIL whose, why                            ->                              instead: the job has failed
//   WARN text                                  ->                              at any time
//                                              <-       SHUT                   close the connections of the processes
//                                              <-       QUIT                   close all connections, and end
//
//   | 'HERE' : 32 | length : 32 | address : 128 | port : 32 | the rest: where the processes of the host reach the agent (kAgentVariable) |
//   | 'WORK' : 32 | length : 32 | host : 32, in the job | the rest: a whole WLCM command (impi/entry/welcome.h) |
//   | 'FAIL' : 32 | length : 32 | 1 if a process of this host is at fault, else 0 : 32 | the rest: text in UTF-8 |
//   | 'GONE' or 'WARN' : 32 | length : 32 | text in UTF-8 |
//   | 'CONN', 'OVER', 'SHUT' or 'QUIT' : 32 | 0 : 32 |                                                    big-endian
namespace weft::impi {

inline constexpr auto kHereCommand = static_cast<CommandCode>(0x48455245);
inline constexpr auto kConnectedCommand = static_cast<CommandCode>(0x434F4E4E);
inline constexpr auto kOverCommand = static_cast<CommandCode>(0x4F564552);
inline constexpr auto kFailCommand = static_cast<CommandCode>(0x4641494C);
inline constexpr auto kWarnCommand = static_cast<CommandCode>(0x5741524E);
inline constexpr auto kWorkCommand = static_cast<CommandCode>(0x574F524B);
inline constexpr auto kGoneCommand = static_cast<CommandCode>(0x474F4E45);
inline constexpr auto kShutCommand = static_cast<CommandCode>(0x53485554);
inline constexpr auto kQuitCommand = static_cast<CommandCode>(0x51554954);

inline constexpr size_t kLongestReport = 65536;      // bytes, of the payload of what an agent says
inline constexpr size_t kLongestOrder = 100 << 20;   // bytes, of the payload of what a client says

struct HereReport {
  HostId address{};
  uint16_t port = 0;          // the agent listens there for the hosts of other clients
  std::string processes_at;   // and there for the processes of its host

  Command ToCommand() const;
  // nullopt: the payload has another form.
  static std::optional<HereReport> From(const Command& command);
  bool operator==(const HereReport&) const = default;
};

struct FailReport {
  bool by_process = false;  // of the agent's own host
  std::string why;          // a sentence

  Command ToCommand() const;
  static std::optional<FailReport> From(const Command& command);
  bool operator==(const FailReport&) const = default;
};

struct WorkOrder {
  HostRank host;
  Bytes welcome;

  Command ToCommand() const;
  static std::optional<WorkOrder> From(const Command& command);
  bool operator==(const WorkOrder&) const = default;
};

// GONE and WARN.
Command CommandOfText(CommandCode code, const std::string& text);
std::string TextOf(const Command& command);

}  // namespace weft::impi

#endif  // IMPI_CLIENT_REPORT_H_
