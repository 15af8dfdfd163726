// The functions that a thread is in.
#pragma once

#include "trace/event.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace heddle::collect {

struct Activation {
  FunctionId function{};
  std::uint64_t frame{};  // token of a function that catches jumps, else 0
};

// From the outermost to the innermost. Whoever is in a hurry asks for room before it pushes.
class Activations {
 public:
  bool has_room() const { return size_ < places_.size(); }
  void make_room() { places_.resize(2 * size_ + 64); }
  void push_in_room(const Activation& activation) { places_[size_++] = activation; }
  void push(const Activation& activation) {
    if (!has_room()) make_room();
    push_in_room(activation);
  }
  void pop() { --size_; }
  const Activation& back() const { return places_[size_ - 1]; }
  const Activation& operator[](std::size_t depth) const { return places_[depth]; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  std::vector<Activation> places_;
  std::size_t size_ = 0;
};

}  // namespace heddle::collect
