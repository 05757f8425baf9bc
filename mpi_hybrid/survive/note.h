#ifndef MPI_HYBRID_SURVIVE_NOTE_H_
#define MPI_HYBRID_SURVIVE_NOTE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "mpi_hybrid/survive/consensus.h"

namespace weft::mpi::survive {

// What is said over the engine's notes. Big-endian.
//
//   | what : 8 | message's kind : 8 | 0 : 16 | agreement's number, or exit status of an abort : 32 | communicator's identity : 64 |
//   | proposer : 32 | words : 32 | word : 64 ... | voters, 64 to a word : 64 ... |                       of an agreement
struct Note {
  enum class What : uint8_t { kRevoke = 1, kAgreement = 2, kAbort = 3 };

  What what = What::kRevoke;
  uint64_t identity = 0;
  uint32_t number = 0;
  Message message;

  std::vector<uint8_t> Serialize() const;
};

// The voters of a message are those of a group whose size the note does not say: they are checked by SetVoters.
struct ParsedNote {
  Note note;
  std::vector<uint64_t> voters;

  // Of a group of `size`. False: the note is not of such a one.
  [[nodiscard]] bool SetVoters(int size);
};

// nullopt: it is none.
std::optional<ParsedNote> ParseNote(std::span<const uint8_t> bytes);

}  // namespace weft::mpi::survive

#endif  // MPI_HYBRID_SURVIVE_NOTE_H_
