#include "mpi_hybrid/rma/window_hints.h"

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

namespace weft::mpi {
namespace {

bool IsBoolean(std::string_view text) { return text == "true" || text == "false"; }

// "none", or orders between reads and writes.
bool IsOrdering(std::string_view text) {
  if (text == "none") return true;
  for (;;) {
    const size_t comma = text.find(',');
    const std::string_view word = text.substr(0, comma);
    if (word != "rar" && word != "raw" && word != "war" && word != "waw") return false;
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
  }
}

bool IsOfOperations(std::string_view text) { return text == "same_op" || text == "same_op_no_op"; }

std::optional<long> Number(std::string_view text) {
  long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}
bool IsSize(std::string_view text) { return Number(text).has_value(); }

struct Hint {
  const char* key;
  const char* initial;
  bool (*is_value)(std::string_view);
};
constexpr Hint kPromises[] = {
    {"no_locks", "false", IsBoolean},
    {"accumulate_ordering", "rar,raw,war,waw", IsOrdering},
    {"accumulate_ops", "same_op_no_op", IsOfOperations},
    {"mpi_accumulate_granularity", "0", IsSize},
    {"same_size", "false", IsBoolean},
    {"same_disp_unit", "false", IsBoolean},
};
constexpr Hint kApart = {"alloc_shared_noncontig", "false", IsBoolean};
constexpr char kAlignment[] = "mpi_minimum_memory_alignment";

void SetIfValue(Info& hints, const Hint& hint, const Info& given) {
  const std::optional<std::string> value = given.Get(hint.key);
  if (value && hint.is_value(*value)) hints.Set(hint.key, *value);
}

bool IsGranted(std::string_view alignment) {
  const std::optional<long> bytes = Number(alignment);
  return bytes && *bytes > 0 && *bytes <= kWindowAlignment && (*bytes & (*bytes - 1)) == 0;
}

}  // namespace

Ref<Info> HintsOfWindow(int flavor, const Info* given) {
  auto hints = MakeRef<Info>();
  for (const Hint& hint : kPromises) hints->Set(hint.key, hint.initial);
  hints->Set(kApart.key, kApart.initial);
  if (given == nullptr) return hints;
  ChangeHintsOfWindow(*hints, *given);
  if (flavor == MPI_WIN_FLAVOR_SHARED) SetIfValue(*hints, kApart, *given);
  const bool at_a_page = flavor == MPI_WIN_FLAVOR_ALLOCATE || (flavor == MPI_WIN_FLAVOR_SHARED && hints->Get(kApart.key) == "true");
  const std::optional<std::string> alignment = given->Get(kAlignment);
  if (at_a_page && alignment && IsGranted(*alignment)) hints->Set(kAlignment, *alignment);
  return hints;
}

void ChangeHintsOfWindow(Info& hints, const Info& given) {
  for (const Hint& hint : kPromises) SetIfValue(hints, hint, given);
}

}  // namespace weft::mpi
