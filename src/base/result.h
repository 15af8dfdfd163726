// The one error type. What can go wrong because of the outside world (files, traces, options) comes
// back as a Result; exceptions are not part of Heddle's interfaces.
#pragma once

#include "base/check.h"

#include <string>
#include <utility>
#include <variant>

namespace heddle {

// One line for the user: what is wrong, where (file, offset or line), and what to do about it.
struct Error {
  std::string message;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): a function returns its value or its error
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    HEDDLE_CHECK(ok());
    return std::get<0>(state_);
  }
  const T& value() const& {
    HEDDLE_CHECK(ok());
    return std::get<0>(state_);
  }
  T&& value() && {
    HEDDLE_CHECK(ok());
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const {
    HEDDLE_CHECK(!ok());
    return std::get<1>(state_);
  }

 private:
  std::variant<T, Error> state_;
};

// For operations that only succeed or fail.
struct Done {};
using Status = Result<Done>;

}  // namespace heddle
