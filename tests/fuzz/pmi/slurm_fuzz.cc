// What Slurm's variables may hold: lists of hosts and numbers in short forms, which come out bounded and plain, or not
// at all.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "pmi/slurm/allocation.h"
#include "pmi/slurm/node_list.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weft::pmi::slurm;
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto hosts = ExpandNodeList(text)) {
    WEFT_CHECK(!hosts.value().empty() && hosts.value().size() <= kMostNodes);
    for (const std::string& host : hosts.value()) {
      WEFT_CHECK(!host.empty() && host[0] != '-');
      WEFT_CHECK(host.find_first_of(",[] ;$'") == host.npos);
    }
  }
  if (const auto counts = ExpandCounts(text)) {
    WEFT_CHECK(!counts.value().empty() && counts.value().size() <= kMostNodes);
    for (const int count : counts.value()) WEFT_CHECK(count >= 1);
  }
  return 0;
}
