#include "detect/avio/caches.h"

#include <algorithm>
#include <bit>
#include <charconv>

#include <fmt/format.h>

namespace heddle::avio {

heddle::Result<CacheShape> parse_cache_shape(std::string_view text) {
  const Error wrong{
      fmt::format("`{}` is no cache: expected SIZE,WAYS,LINE such as 32K,4,64, the line a power of "
                  "two from 8 to "
                  "4096 and the size a multiple of ways times line, up to 64M",
                  text)};
  std::uint64_t numbers[3] = {};
  std::string_view rest = text;
  for (std::uint64_t& number : numbers) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    const std::string_view unit(end, static_cast<std::size_t>(part.data() + part.size() - end));
    if (error != std::errc() || number == 0 || number > 64u << 20) return wrong;
    if (unit == "K" || unit == "k") {
      number <<= 10;
    } else if (unit == "M" || unit == "m") {
      number <<= 20;
    } else if (!unit.empty()) {
      return wrong;
    }
  }
  const auto [size, ways, line] = numbers;
  if (!rest.empty() || size > 64u << 20 || line < 8 || line > 4096 || !std::has_single_bit(line) ||
      ways > size / line || size % (ways * line) != 0) {
    return wrong;
  }
  return CacheShape{static_cast<std::uint32_t>(size), static_cast<std::uint32_t>(ways),
                    static_cast<std::uint32_t>(line)};
}

std::string print(const CacheShape& shape) {
  const std::string size = shape.size % 1024 == 0 ? fmt::format("{} KiB", shape.size / 1024)
                                                  : fmt::format("{} bytes", shape.size);
  return fmt::format("{}, {} ways, {}-byte lines", size, shape.ways, shape.line);
}

Caches::Result Caches::access(Core core, std::uint64_t line, const Touch& touch) {
  if (core >= caches_.size()) caches_.resize(core + std::size_t{1});
  if (caches_[core].empty()) caches_[core].resize(std::size_t{shape_.sets()} * shape_.ways);
  ++clock_;
  if (!touch.reads()) return write(core, line, touch);
  Result out = read(core, line, touch);
  if (touch.writes()) out.checked = write(core, line, touch).checked || out.checked;
  return out;
}

Caches::Result Caches::read(Core core, std::uint64_t number, const Touch& touch) {
  Result out;
  Line* line = find(core, number);
  if (line != nullptr && line->state != State::kInvalid) {
    done(*line, touch, true);
    return out;
  }
  out.checked = true;
  out.absent = line == nullptr;
  if (line != nullptr) {
    out.split = line->pi ? SplitCase::kReadWriteRead : SplitCase::kWriteWriteRead;
    out.p = line->last;
    out.r = line->remote_write;
  } else {
    line = &allocate(core, number);
  }
  std::vector<Core>& sharers = holders(number);
  for (const Core other : sharers) {
    Line& theirs = *find(other, number);
    if (theirs.state == State::kModified || theirs.state == State::kExclusive) {
      theirs.dg = true;
      theirs.remote_read = touch;
      theirs.state = State::kShared;
    }
  }
  line->state = sharers.empty() ? State::kExclusive : State::kShared;
  sharers.push_back(core);
  done(*line, touch, true);
  return out;
}

Caches::Result Caches::write(Core core, std::uint64_t number, const Touch& touch) {
  Result out;
  Line* line = find(core, number);
  if (line != nullptr && (line->state == State::kModified || line->state == State::kExclusive)) {
    line->state = State::kModified;
    done(*line, touch, false);
    return out;
  }
  out.checked = true;
  out.absent = line == nullptr;
  if (line == nullptr) {
    line = &allocate(core, number);
  } else if (!line->pi && line->dg) {
    out.split = SplitCase::kWriteReadWrite;
    out.p = line->last;
    out.r = line->remote_read;
  } else if (line->pi && line->state == State::kInvalid) {
    out.split = SplitCase::kReadWriteWrite;
    out.p = line->last;
    out.r = line->remote_write;
  }
  std::vector<Core>& sharers = holders(number);
  for (const Core other : sharers) {
    if (other == core) continue;
    Line& theirs = *find(other, number);
    theirs.state = State::kInvalid;
    theirs.remote_write = touch;
  }
  sharers.assign(1, core);
  line->state = State::kModified;
  done(*line, touch, false);
  return out;
}

Caches::Line* Caches::find(Core core, std::uint64_t number) {
  Line* set = &caches_[core][number % shape_.sets() * shape_.ways];
  for (std::uint32_t way = 0; way < shape_.ways; ++way) {
    if (set[way].state != State::kFree && set[way].number == number) return &set[way];
  }
  return nullptr;
}

// Takes a free place or displaces the line that was not used for longest, and its history with it.
Caches::Line& Caches::allocate(Core core, std::uint64_t number) {
  Line* set = &caches_[core][number % shape_.sets() * shape_.ways];
  Line* victim = set;
  for (std::uint32_t way = 0; way < shape_.ways; ++way) {
    if (set[way].state == State::kFree) {
      victim = &set[way];
      break;
    }
    if (set[way].used < victim->used) victim = &set[way];
  }
  if (victim->state != State::kFree && victim->state != State::kInvalid) {
    const auto at = holders_.find(victim->number);
    std::erase(at->second, core);
    if (at->second.empty()) holders_.erase(at);
  }
  *victim = Line();
  victim->number = number;
  return *victim;
}

void Caches::done(Line& line, const Touch& touch, bool is_read) {
  line.pi = is_read;
  line.dg = false;
  line.last = touch;
  line.used = clock_;
}

}  // namespace heddle::avio
