#include "pmi/launch/binding_request.h"

#include <algorithm>
#include <iterator>

#include "pmi/wire/message.h"

namespace weft::pmi {
namespace {

using Kind = BindingRequest::Kind;
using Group = BindingRequest::Group;

constexpr int kMostInGroup = 65536;
constexpr int kLastCpu = 1 << 20;  // Linux knows 8192 at most

// The first of each kind is the one that messages name; the others are hydra's, too.
constexpr struct {
  const char* name;
  Kind kind;
  bool shown = true;
} kKinds[] = {{"core", Kind::kCore},
              {"hwthread", Kind::kHardwareThread},
              {"socket", Kind::kSocket},
              {"numa", Kind::kNuma},
              {"machine", Kind::kMachine},
              {"l1cache", Kind::kL1Cache},
              {"l2cache", Kind::kL2Cache},
              {"l3cache", Kind::kL3Cache},
              {"l4cache", Kind::kL4Cache},
              {"l5cache", Kind::kL5Cache},
              {"rr", Kind::kHardwareThread, false},  // round robin
              {"package", Kind::kSocket, false},
              {"l1dcache", Kind::kL1Cache, false},
              {"l1ucache", Kind::kL1Cache, false},
              {"l2dcache", Kind::kL2Cache, false},
              {"l2ucache", Kind::kL2Cache, false},
              {"l3dcache", Kind::kL3Cache, false},
              {"l3ucache", Kind::kL3Cache, false},
              {"l4dcache", Kind::kL4Cache, false},
              {"l4ucache", Kind::kL4Cache, false},
              {"l5dcache", Kind::kL5Cache, false},
              {"l5ucache", Kind::kL5Cache, false}};

// "core", "core:2".
Result<Group, PmiError> ParseGroup(const std::string& text, const std::string& others) {
  const size_t colon = std::min(text.find(':'), text.size());
  const std::string name = text.substr(0, colon);
  const auto found =
      std::find_if(std::begin(kKinds), std::end(kKinds), [&](const auto& known) { return name == known.name; });
  if (found == std::end(kKinds)) {
    std::string names;
    for (const auto& known : kKinds) {
      if (known.shown) names += std::string(names.empty() ? "" : ", ") + known.name;
    }
    return PmiError{"'" + Printable(text) + "' is not one of " + others + names};
  }
  if (colon == text.size()) return Group{found->kind, 1};
  const std::optional<int> count = ParseInt(text.substr(colon + 1));
  if (count && *count >= 1 && *count <= kMostInGroup) return Group{found->kind, *count};
  return PmiError{"'" + Printable(text) + "': not a number from 1 to " + std::to_string(kMostInGroup) +
                  " after the colon"};
}

// "0+1,2+3,4": the CPUs of the first rank, of the second, and so on.
Result<std::vector<std::vector<int>>, PmiError> ParseUserList(const std::string& list) {
  std::vector<std::vector<int>> ranks(1);
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find_first_of("+,", at), list.size());
    const std::optional<int> cpu = ParseInt(list.substr(at, end - at));
    if (!cpu || *cpu < 0 || *cpu > kLastCpu) {
      return PmiError{"'" + Printable(list.substr(at, end - at)) + "' in user:" + Printable(list) +
                      " is not the number of a CPU; a list such as 0+1,2+3 gives CPUs 0 and 1 to the first rank, 2 and "
                      "3 to the second"};
    }
    ranks.back().push_back(*cpu);
    if (end < list.size() && list[end] == ',') ranks.emplace_back();
    at = end + 1;
  }
  return ranks;
}

}  // namespace

Result<std::optional<BindingRequest>, PmiError> ParseBinding(const std::string& bind_to, const std::string& map_by) {
  BindingRequest request;
  if (!map_by.empty()) {
    const auto group = ParseGroup(map_by, "");
    if (!group) return group.error();
    request.map_by = group.value();
  }
  if (bind_to.empty() || bind_to == "none") return std::optional<BindingRequest>();
  if (bind_to.starts_with("user:")) {
    auto user = ParseUserList(bind_to.substr(5));
    if (!user) return user.error();
    request.user = std::move(user).value();
    return std::optional(std::move(request));
  }
  const auto group = ParseGroup(bind_to, "none, user:LIST, ");
  if (!group) return group.error();
  request.bind_to = group.value();
  if (map_by.empty()) request.map_by = request.bind_to;
  return std::optional(std::move(request));
}

}  // namespace weft::pmi
