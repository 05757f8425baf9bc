#ifndef PMI_LAUNCH_BINDING_REQUEST_H_
#define PMI_LAUNCH_BINDING_REQUEST_H_

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "pmi/error.h"

namespace weft::pmi {

// What -bind-to and -map-by ask for.
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
  // Neighbours of one kind: "core:2".
  struct Group {
    Kind kind = Kind::kCore;
    int count = 1;
    bool operator==(const Group&) const = default;
  };

  Group bind_to;                       // what each rank has
  Group map_by;                        // what successive ranks go on to
  std::vector<std::vector<int>> user;  // user:LIST: CPUs of each rank, as the system numbers them; empty: the two above
  bool operator==(const BindingRequest&) const = default;
};

// `bind_to`: WHAT[:COUNT], "user:0+1,2+3,..." or none. `map_by`: WHAT[:COUNT], or empty: as bind_to. Nothing: no
// binding. An error names the value and what it may be.
Result<std::optional<BindingRequest>, PmiError> ParseBinding(const std::string& bind_to, const std::string& map_by);

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_BINDING_REQUEST_H_
