#ifndef IMPI_TESTER_FIELDS_H_
#define IMPI_TESTER_FIELDS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "impi/wire/packet.h"

namespace weft::impi::tester {

// The fields of a packet's header that a script can name (IMPI 0.0, section 3.5), all but the names of processes.
struct Field {
  const char* name;      // without pk_
  size_t offset, bytes;  // in the header
  uint64_t (*of)(const Packet& packet);
};
std::span<const Field> Fields();
const Field* FindField(const std::string& name);  // null: there is none

// The type with this name, such as "DATASYNC", or with this number. Numbers above 7 are possible: a script may send
// them.
Result<uint32_t, std::string> ParseType(const std::string& word);

// "DATA len 4 srqid 1 drqid 0 msglen 4 lsrank 0 tag 5 cid 0": the fields that its type has.
std::string TextOf(const Packet& packet);

}  // namespace weft::impi::tester

#endif  // IMPI_TESTER_FIELDS_H_
