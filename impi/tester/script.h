#ifndef IMPI_TESTER_SCRIPT_H_
#define IMPI_TESTER_SCRIPT_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "impi/tester/fields.h"
#include "impi/tester/values.h"
#include "impi/wire/command.h"

// A script: what the tester does, and what it expects, to see whether an implementation of IMPI 0.0 does as one clause
// of the specification says. README.md has the language.
namespace weft::impi::tester {

enum class Target : uint8_t { kServer, kClient };  // what is tested

// The key that server and clients share in every script, as IMPI_AUTH_KEY.
inline constexpr uint64_t kKey = 0x1122334455667788;

// The name of the connection at which the implementation under test speaks with the tester as its server.
inline constexpr const char* kServerConnection = "server";

// What a client says that the tester plays.
struct PlayedClient {
  std::vector<int> hosts{1};                // how many ranks each has
  uint32_t data_length = 65536;             // bytes
  uint32_t ack_mark = 10, high_water = 40;  // packets
  int32_t tag_upper_bound = 0x3fffffff, crossover_size = -1, max_linear = -1;
  std::vector<Collected> also;  // labels instead of, or beside, those of its announcement
};

// One step. Which members count depends on `kind`.
struct Step {
  enum class Kind : uint8_t {
    kOpen,          // connection
    kAccept,        // connection
    kClose,         // connection
    kSay,           // connection code length values: a command goes out
    kWords,         // connection values: bytes without a header go out
    kHear,          // connection code values: a command has to come
    kHearWords,     // connection values
    kClosed,        // connection: the peer ends it, and nothing comes before
    kQuiet,         // connection: nothing comes for a while
    kExits,         // status: the implementation under test ends
    kExchange,      // the whole dialogue with the server, with the tester as server
    kRefused,       // the same, and the implementation under test leaves without a connection to a host
    kSendPacket,    // source destination type fields values
    kExpectPacket,  // source destination type fields values
    kQuietPair,     // source destination
    kFini,          // connection: goes to a host
    kHearFini,      // connection: comes from a host
  };
  static constexpr int kFailure = -1;  // any status but 0

  // Of a field: a number, or the number that a variable has (to be sent, or compared), or that it gets.
  struct FieldValue {
    enum class Kind : uint8_t { kNumber, kVariable, kIntoVariable };
    const Field* field;
    Kind kind;
    uint64_t number = 0;
    std::string variable;
  };

  Kind kind = Kind::kOpen;
  int line = 0;
  std::string text;  // of the line
  std::string connection;
  CommandCode code{};
  std::optional<int32_t> length;  // instead of the true one
  Values values;
  bool has_data = false;            // of an expected packet: `values` are compared with its data
  int source = 0, destination = 0;  // ranks in MPI_COMM_WORLD
  uint32_t type = 0;
  std::vector<FieldValue> fields;
  int status = 0;
};

struct Script {
  static constexpr size_t kLongest = 256 << 10;   // bytes, of a file
  static constexpr size_t kMostBytes = 16 << 20;  // of the values of all steps
  static constexpr int kMostRanks = 64;           // of a job

  std::string file;    // as the user named it
  std::string clause;  // "2.3.4"
  std::string about;   // one sentence
  Target target = Target::kServer;
  int clients = 0;
  bool has_key = true, has_none = false;         // IMPI_AUTH_KEY and IMPI_AUTH_NONE, at both ends
  std::vector<std::string> options;              // of the command that starts the implementation under test
  std::optional<std::chrono::seconds> patience;  // of each step
  bool automatic_acks = true;                    // the tester acknowledges packets without steps
  int under_test = 0;                            // client
  std::vector<PlayedClient> played;  // by client; that of `under_test`, too: one host with as many ranks as it starts
  std::vector<Step> steps;

  int RanksOf(int client) const;
  int FirstRankOf(int client) const;
  int ClientOf(int rank) const;
  int ranks() const { return FirstRankOf(clients); }
  // Hosts are numbered as in the job: those of client 0 first.
  int FirstHostOf(int client) const;
  int HostOf(int rank) const;
  int hosts() const { return FirstHostOf(clients); }
  int ClientOfHost(int host) const;
};

// "host3".
std::string HostConnection(int host);
// 3; nullopt: not of this form.
std::optional<int> HostOfConnection(const std::string& name);

struct ScriptError {
  std::string file;
  int line = 0;
  std::string text;  // what is wrong, with the word, and what to do
};
// "scripts/a.script:3: ..."
std::string TextOf(const ScriptError& error);

Result<Script, ScriptError> ParseScript(const std::string& file, std::string_view text);

}  // namespace weft::impi::tester

#endif  // IMPI_TESTER_SCRIPT_H_
