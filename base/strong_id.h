#ifndef BASE_STRONG_ID_H_
#define BASE_STRONG_ID_H_

#include <compare>
#include <cstddef>
#include <functional>

namespace weft {

// An integer that does not mix with other integers: STag, QPN, MSN are each StrongId<their tag, uint32_t>.
template <typename Tag, typename Value>
struct StrongId {
  using ValueType = Value;
  Value value = 0;

  constexpr StrongId() = default;
  constexpr explicit StrongId(Value v) : value(v) {}
  constexpr auto operator<=>(const StrongId&) const = default;
};

}  // namespace weft

template <typename Tag, typename Value>
struct std::hash<weft::StrongId<Tag, Value>> {
  size_t operator()(weft::StrongId<Tag, Value> id) const noexcept { return std::hash<Value>{}(id.value); }
};

#endif  // BASE_STRONG_ID_H_
