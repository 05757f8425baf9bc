#ifndef MPI_HYBRID_SURVIVE_NOTE_H_
#define MPI_HYBRID_SURVIVE_NOTE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "mpi_hybrid/survive/consensus.h"

namespace weft::mpi::survive {

// The contents of the engine's notes. Big-endian.
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

// The voters of a message belong to a group whose size is not in the note. SetVoters checks them.
struct ParsedNote {
  Note note;
  std::vector<uint64_t> voters;

  // `size`: of the group. False: the voters do not fit a group of this size.
  [[nodiscard]] bool SetVoters(int size);
};

// nullopt: the bytes are not a note.
std::optional<ParsedNote> ParseNote(std::span<const uint8_t> bytes);

}  // namespace weft::mpi::survive

#endif  // MPI_HYBRID_SURVIVE_NOTE_H_
