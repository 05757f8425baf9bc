#include "mpi_hybrid/host/process_reader.h"

#include <algorithm>

namespace weft::mpi::host {

bool ProcessReader::Reaches(uint64_t address, std::span<const uint8_t> cookie) const {
  uint8_t found[64];
  const iovec here = {found, std::min(cookie.size(), sizeof(found))};
  return Read({&here, 1}, address, here.iov_len) == cookie.size() && std::equal(cookie.begin(), cookie.end(), found);
}

size_t ProcessReader::Read(std::span<const iovec> to, uint64_t from, size_t bytes) const {
  const iovec there = {reinterpret_cast<void*>(from), bytes};
  return static_cast<size_t>(std::max<ssize_t>(process_.Read(to, {&there, 1}), 0));
}

}  // namespace weft::mpi::host
