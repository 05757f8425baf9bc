#ifndef IMPI_ENTRY_HELLO_H_
#define IMPI_ENTRY_HELLO_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "impi/wire/command.h"

// The first words on the connection of a process with the agent of its host. They have the form of commands (impi/wire/command.h):
//
//   process                                             agent
//   RANK version, its rank             ->
//                                      <-               LINK host, for each host of other clients, or for none
//                                      <-               WLCM, or DENY and the reason in words; then the agent closes
//
// Without LINK, packets of impi/wire/packet follow in both directions, until the process sends FINI and the agent closes.
//
// With LINK, the process is the only one of its host, and takes the agent's place (impi/agent/agent.h): each LINK brings the connection with a host, as a
// descriptor (SCM_RIGHTS). Then it says one of these (impi/client/report.h), and the agent closes:
//   OVER                               ->               the FINIs of this host and of the others are through
//   FAIL whose, why                    ->               the job has failed
//
//   | 'RANK' : 32 | 8 : 32      | version : 32 | rank : 32 |
//   | 'LINK' : 32 | 4 : 32      | host, in the job : 32 |
//   | 'WLCM' : 32 | length : 32 | payload: welcome.h |
//   | 'DENY' : 32 | length : 32 | text in UTF-8 |                     big-endian
namespace weft::impi {

// The variable in a process's environment that says where its agent listens: "@" and the name of a Unix stream socket in the abstract namespace (unix(7)).
// A process without it is in no IMPI job, such as one that a rank spawned (MPI_Comm_spawn): mpiexec does not pass it on to those.
inline constexpr char kAgentVariable[] = "WEFT_IMPI_AGENT";

// The agent denies others.
inline constexpr uint32_t kEntryVersion = 1;
inline constexpr uint32_t kTakesConnectionsVersion = 2;  // the same, of a process that knows LINK
inline constexpr auto kRankCommand = static_cast<CommandCode>(0x52414E4B);
inline constexpr auto kLinkCommand = static_cast<CommandCode>(0x4C494E4B);
inline constexpr auto kWelcomeCommand = static_cast<CommandCode>(0x574C434D);
inline constexpr auto kDenyCommand = static_cast<CommandCode>(0x44454E59);

// RANK: all that a process says before its first packet. The agent reads these bytes, and no others, before it answers.
struct Hello {
  static constexpr size_t kSize = 16;  // bytes

  int32_t rank = 0;  // in the MPI_COMM_WORLD of its own client, as PMI counts: 0 to the client's processes - 1
  bool takes_connections = false;  // it knows LINK

  Bytes Serialize() const;
  // `bytes`: kSize of them. Why not: a part of a sentence that begins with the process, such as "did not begin with RANK".
  static Result<Hello, std::string> Parse(ByteSpan bytes);
  bool operator==(const Hello&) const = default;
};

// LINK, without the descriptor that comes with its first byte.
struct LinkNotice {
  static constexpr size_t kSize = 12;  // bytes

  int32_t host = 0;

  Bytes Serialize() const;
  // `bytes`: kSize of them. nullopt: it is no LINK.
  static std::optional<LinkNotice> Parse(ByteSpan bytes);
};

}  // namespace weft::impi

#endif  // IMPI_ENTRY_HELLO_H_
