#ifndef BASE_RESULT_H_
#define BASE_RESULT_H_

#include <utility>
#include <variant>

#include "base/check.h"

namespace weft {

// A value, or the reason why there is none. E is the error type of the layer that returns it (an enum or a small
// struct). T and E must differ. It is a broken invariant to read the value of an error, or the error of a value.
template <typename T, typename E>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(E error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    WEFT_CHECK(ok());
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    WEFT_CHECK(ok());
    return *std::get_if<0>(&state_);
  }
  T&& value() && {
    WEFT_CHECK(ok());
    return std::move(*std::get_if<0>(&state_));
  }
  const E& error() const {
    WEFT_CHECK(!ok());
    return *std::get_if<1>(&state_);
  }

  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, E> state_;
};

}  // namespace weft

#endif  // BASE_RESULT_H_
