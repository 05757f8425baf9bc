#ifndef IMPI_ENTRY_WELCOME_H_
#define IMPI_ENTRY_WELCOME_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "impi/job/job.h"
#include "impi/job/ranks.h"
#include "impi/wire/command.h"

namespace weft::impi {

// The payload of WLCM: the whole job, as the server told it to the client. It is the same for all processes of a client.
//
//   | this client : 32 | clients : 32 | LAM clients : 32, mask | processes of this client : 32 |
//   | their ranks : 32 each | COLL commands, as the server sends them to clients, in ascending order of their labels |
struct Welcome {
  static constexpr size_t kLongest = 80 << 20;  // bytes, of the payload

  Job job;
  WorldRank self;             // in the common MPI_COMM_WORLD
  std::vector<int32_t> own;   // of the processes of this client, as they stand in `job`: their ranks in the client's own MPI_COMM_WORLD
  uint32_t lam_clients = 0;   // bit i: client i is LAM/MPI (impi/message/departures.h)

  bool IsLam(ClientRank client) const { return (lam_clients >> client.value & 1) != 0; }

  // A whole WLCM command.
  static Bytes Serialize(ClientRank self, int clients, const std::map<Label, Collected>& told, const std::vector<int32_t>& own, uint32_t lam_clients);
  // For the process with this rank in its client. Why not: what is wrong with the job or the payload.
  static Result<Welcome, std::string> Parse(ByteSpan payload, int32_t rank);
};

// A whole DENY command.
Bytes SerializeDenial(const std::string& why);

// Reads the agent's answer, and no byte of the packets behind it.
class AnswerReader {
 public:
  // So many bytes may be read now; 0: the answer is complete, or wrong.
  size_t Wants() const;
  void Append(ByteSpan bytes);  // at most Wants()
  // When Wants() is 0: the welcome for the process with this rank in its client. Or why the process is not in the job: a sentence.
  Result<Welcome, std::string> Take(int32_t rank) const;

 private:
  std::optional<int32_t> length() const;  // of the payload; nullopt: not known yet

  Bytes bytes_;
};

}  // namespace weft::impi

#endif  // IMPI_ENTRY_WELCOME_H_
