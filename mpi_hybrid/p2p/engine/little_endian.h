#ifndef MPI_HYBRID_P2P_ENGINE_LITTLE_ENDIAN_H_
#define MPI_HYBRID_P2P_ENGINE_LITTLE_ENDIAN_H_

#include <endian.h>

#include <cstdint>
#include <cstring>

namespace weft::mpi {

// Reads and writes the numbers of frames and greetings, at any alignment.
inline uint32_t Load32(const uint8_t* at) {
  uint32_t value;
  std::memcpy(&value, at, sizeof(value));
  return le32toh(value);
}
inline uint64_t Load64(const uint8_t* at) {
  uint64_t value;
  std::memcpy(&value, at, sizeof(value));
  return le64toh(value);
}
inline void Store32(uint8_t* at, uint32_t value) {
  value = htole32(value);
  std::memcpy(at, &value, sizeof(value));
}
inline void Store64(uint8_t* at, uint64_t value) {
  value = htole64(value);
  std::memcpy(at, &value, sizeof(value));
}

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_ENGINE_LITTLE_ENDIAN_H_
