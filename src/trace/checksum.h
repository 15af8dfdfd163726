// XXH64 with seed 0, the checksum of trace files. (The algorithm is public; its reference
// implementation is not packaged as a library we may depend on, and this is all we need of it.)
#pragma once

#include <cstdint>
#include <span>

namespace heddle {

std::uint64_t checksum64(std::span<const std::uint8_t> bytes);

}  // namespace heddle
