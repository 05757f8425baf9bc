#ifndef PMI_LAUNCH_FRAME_H_
#define PMI_LAUNCH_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pmi/server/server.h"
#include "pmi/wire/meaning.h"

namespace weft::pmi {

// The messages between mpiexec and its proxies (one for each host, including this one), over a socket:
//
//   | payload length : 32 | type : 8 | job : 32 | rank or number : 32 | host : 32 | payload |      big-endian
//
// Jobs have numbers: 0 is the job of the command line, the others were spawned by ranks. mpiexec also numbers the
// hosts; a proxy does not know its own number. The proxies form a tree (proxy_tree.h), and forward messages to and from
// the proxies below them.
enum class FrameType : uint8_t {
  // mpiexec to proxy
  kStart = 1,     // payload: StartOrder
  kInput = 2,     // standard input of rank 0; empty: its end
  kSignal = 3,    // number: the signal for every rank of every job
  kEnd = 4,       // SIGTERM to every rank of the job; number: milliseconds until SIGKILL
  kFenceEnd = 5,  // all ranks of the job are in the barrier; payload: the values that they put (SerializeValues)
  // both ways
  // a request of a rank to mpiexec (Server::Owner::OnQuestion), and the answer: messages of PMI-2, thrid is the ticket
  kQuestion = 6,
  // proxy to mpiexec
  kFence = 7,         // all ranks of so many (number) hosts are in the barrier; payload: the values that they put
  kAbort = 8,         // the rank called MPI_Abort; payload: the code in decimal, a blank, and a message
  kMisuse = 9,        // the rank broke the PMI protocol; payload: how
  kStuck = 10,        // the rank has ended, but ranks of the host wait for it in a barrier
  kOutput = 11,       // the rank's standard output
  kErrorOutput = 12,  // its standard error
  kInputTaken = 13,   // number: bytes of kInput that were passed to rank 0
  kInputClosed = 14,  // rank 0 no longer reads
  kExited = 15,       // payload: ExitReport; all output that the rank wrote before has been sent
  kNotStarted = 16,   // payload: the exit code in decimal, a blank, and the reason
  kDone = 17,         // no process of the job is left on the host
  kStarted = 18,      // all ranks of the job on this host run
  kGrow = 19,         // mpiexec to proxy: start proxies on these hosts; payload: GrowOrder (grow_order.h)
  kGrown = 20,        // the answer; payload: 0, or the exit code in decimal, a blank, and the reason
  kLost = 21,         // the host's proxy is gone
  kNote = 22,         // payload: information for the user; the job goes on
  kProfile = 23,      // mpiexec asks, and each proxy answers with the number of its messages; payload: Profile
  // mpiexec to proxy, for the job: ranks of the job `number` have died, and others go on; payload: the ranks in
  // decimal, separated by commas
  kDied = 24,
};
inline constexpr FrameType kLastFrameType = FrameType::kDied;

struct Frame {
  static constexpr int32_t kHere = -1;        // the host at this end or at the other
  static constexpr int32_t kEverywhere = -2;  // from mpiexec: the proxy at the other end and all below it

  FrameType type;
  int32_t number = 0;  // a rank, for the types that refer to one
  std::string payload;
  int32_t job = 0;
  int32_t host = kHere;  // the destination or the source

  // The payload must not be longer than FrameReader::kLongestPayload. A sender checks that if ranks determine the
  // length.
  std::string Serialize() const;
};

// Parses frames from a stream that may be cut anywhere. The first error is final.
class FrameReader {
 public:
  static constexpr size_t kHeader = 17;
  static constexpr size_t kLongestPayload = 64 << 20;  // bytes: kStart holds the environment of every program

  void Append(std::string_view bytes) { buffer_.append(bytes); }
  // Empty: more bytes are needed, or failed(): the stream does not contain frames.
  std::optional<Frame> Next();
  bool failed() const { return failed_; }

 private:
  std::string buffer_;
  size_t position_ = 0;
  bool failed_ = false;
};

// Key-value pairs. ParseValues: nullopt if the bytes do not come from SerializeValues.
std::string SerializeValues(const KeyValues& values);
std::optional<KeyValues> ParseValues(std::string_view bytes);
size_t SizeOfValues(const KeyValues& values);  // bytes of SerializeValues()
// The rest of a sentence: why a barrier cannot end if ranks put so many bytes before it.
std::string TooMuchPut(size_t bytes);

// A number in decimal, a blank, and text, in the payload of several types.
std::string NumberAndText(int number, const std::string& text);
std::pair<int, std::string> ParseNumberAndText(const std::string& payload);  // number 1 if there is none

// How a rank ended.
struct ExitReport {
  int wait_status = 0;
  Server::State state = Server::State::kSilent;

  std::string Serialize() const { return NumberAndText(wait_status, std::to_string(static_cast<int>(state))); }
  static ExitReport Parse(const std::string& payload);
};

// The number of neighbours that a proxy or mpiexec exchanged frames with, and the traffic.
struct Profile {
  uint32_t neighbours = 0;
  uint64_t sent = 0, sent_bytes = 0, received = 0, received_bytes = 0;

  std::string Serialize() const;
  static std::optional<Profile> Parse(const std::string& payload);
  bool operator==(const Profile&) const = default;
};

// The order to start ranks on one host.
struct StartOrder {
  struct Program {
    std::vector<std::string> arguments;    // the program comes first
    std::vector<std::string> environment;  // NAME=VALUE
    std::string directory;
    std::string search_path;  // directories, separated by colons, in which to look for the program; empty: its own PATH
    bool operator==(const Program&) const = default;
  };
  struct Rank {
    int32_t rank = 0;
    int32_t program = 0;  // index
    bool operator==(const Rank&) const = default;
  };

  int32_t job_size = 0;
  int32_t universe_size = -1;
  std::string kvs_name;
  std::string spawner;       // the kvs_name of the job that spawned this one; empty: it was not spawned
  KeyValues values;          // in the key-value space from the start
  std::string host_address;  // WEFT_MPI_HOST of the ranks; empty: the address from which the proxy reaches mpiexec
  std::string bind_to;       // the values of -bind-to and -map-by (binding_request.h)
  std::string map_by;
  std::vector<Program> programs;
  std::vector<Rank> ranks;  // in order; the position is the local rank

  std::string Serialize() const;
  // nullopt: not a result of Serialize().
  static std::optional<StartOrder> Parse(std::string_view bytes);
  bool operator==(const StartOrder&) const = default;
};

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_FRAME_H_
