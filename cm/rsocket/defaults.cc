#include "cm/rsocket/defaults.h"

#include <algorithm>
#include <fstream>

#include "cm/rsocket/limits.h"

namespace weft::rsocket {
namespace {

void ReadOne(const std::string& path, uint32_t least, uint32_t most, uint32_t* into) {
  std::ifstream file(path);
  int64_t value;
  if (file >> value) *into = static_cast<uint32_t>(std::clamp<int64_t>(value, least, most));
}

}  // namespace

Defaults Defaults::Read(const std::string& directory) {
  Defaults read;
  ReadOne(directory + "/polling_time", 0, 1'000'000, &read.polling_us);
  ReadOne(directory + "/mem_default", kLeastBuffer, kMostBuffer, &read.receive_bytes);
  ReadOne(directory + "/wmem_default", kLeastBuffer, kMostBuffer, &read.send_bytes);
  ReadOne(directory + "/sqsize_default", kLeastQueue, kMostQueue, &read.send_queue);
  ReadOne(directory + "/rqsize_default", kLeastQueue, kMostQueue, &read.receive_queue);
  ReadOne(directory + "/inline_default", 0, kMostInline, &read.inline_bytes);
  ReadOne(directory + "/iomap_size", 0, kMostMapEntries, &read.map_entries);
  return read;
}

const Defaults& Defaults::Process() {
  static const Defaults* const defaults = new Defaults(Read("/etc/rdma/rsocket"));
  return *defaults;
}

}  // namespace weft::rsocket
