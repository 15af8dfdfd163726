// What the user can set of SVD: the heuristics of svd-2005, section 4.3, with the paper's choice as
// default.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle::svd {

struct OnlineOptions {
  bool merge_control = false;      // control dependences connect units; else they are only checked
  bool propagate_address = false;  // address dependences connect units; else they are only checked
  bool inputs_only = true;         // check inputs; else every block the unit accessed (strict 2PL)
  std::uint32_t block_size = 4;    // bytes, a power of two up to 64: the paper's word

  // Bounds that results do not depend on, or only where units.h says so; small ones are for tests.
  std::uint32_t set_limit = 32;
  // Numbers are collected when what is known of units and blocks takes more than collect_bytes and
  // so many times the memory that the program touches: below that it costs time and gains nothing.
  std::size_t collect_bytes = std::size_t{96} << 20;
  std::size_t collect_times = 3;
  std::size_t note_limit = 256;
  std::uint8_t hot = 64;     // how often a segment comes before a path is looked for (flow/paths.h)
  std::uint32_t told = 256;  // how often others are told of a page before some may sleep (blocks.h)
};

}  // namespace heddle::svd
