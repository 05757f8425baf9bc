#ifndef PMI_LAUNCH_BINDING_REQUEST_H_
#define PMI_LAUNCH_BINDING_REQUEST_H_

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "pmi/error.h"

namespace weft::pmi {

// A request by -bind-to and -map-by.
struct BindingRequest {
  enum class Kind {
    kMachine,
    kNuma,
    kSocket,
    kCore,
    kHardwareThread,
    kL1Cache,
    kL2Cache,
    kL3Cache,
    kL4Cache,
    kL5Cache
  };
  // A number of neighbouring elements of one kind: "core:2".
  struct Group {
    Kind kind = Kind::kCore;
    int count = 1;
    bool operator==(const Group&) const = default;
  };

  Group bind_to;  // the CPUs of each rank
  Group map_by;   // successive ranks get successive elements of this kind
  // user:LIST: the CPUs of each rank, by the numbers of the system; empty: use the two above
  std::vector<std::vector<int>> user;
  bool operator==(const BindingRequest&) const = default;
};

// `bind_to`: WHAT[:COUNT], "user:0+1,2+3,..." or none. `map_by`: WHAT[:COUNT], or empty: as bind_to. nullopt: no
// binding. An error names the value and the allowed values.
Result<std::optional<BindingRequest>, PmiError> ParseBinding(const std::string& bind_to, const std::string& map_by);

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_BINDING_REQUEST_H_
