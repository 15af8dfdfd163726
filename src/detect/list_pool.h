// Lists for the few cells of a shadow that need one: a cell holds a number, 0 for none. Lists that
// were let go of keep their memory for the next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace heddle {

template <typename T>
class ListPool {
 public:
  using Number = std::uint32_t;

  std::vector<T>& operator[](Number number) { return lists_[number]; }
  const std::vector<T>& operator[](Number number) const { return lists_[number]; }

  // The number of an empty list.
  Number take() {
    if (free_.empty()) {
      lists_.emplace_back();
      return static_cast<Number>(lists_.size() - 1);
    }
    const Number number = free_.back();
    free_.pop_back();
    return number;
  }

  // For a cell that was copied: a list of its own with the same content, unless it has none.
  void copied(Number& number) {
    if (number == 0) return;
    std::vector<T> list = lists_[number];
    number = take();
    lists_[number] = std::move(list);
  }

  void drop(Number& number) {
    if (number == 0) return;
    lists_[number].clear();
    free_.push_back(number);
    number = 0;
  }

  std::span<const std::vector<T>> all() const { return lists_; }
  std::size_t size() const { return lists_.size(); }

 private:
  std::vector<std::vector<T>> lists_{1};  // the first is nobody's
  std::vector<Number> free_;
};

}  // namespace heddle
