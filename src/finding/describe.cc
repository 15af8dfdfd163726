#include "finding/describe.h"

#include <utility>

#include <fmt/format.h>

namespace heddle {
namespace {

std::string_view base_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// `Account.balance` for `(anonymous)::Account.balance`: the reader has the file next to it.
std::string without_unnamed(std::string_view name) {
  constexpr std::string_view kUnnamed = "(anonymous)::";
  std::string out(name);
  for (std::size_t at = 0; (at = out.find(kUnnamed, at)) != std::string::npos;) {
    out.erase(at, kUnnamed.size());
  }
  return out;
}

}  // namespace

void Describer::on(const Event& event) {
  if (event.kind == EventKind::kAlloc) {
    blocks_[event.address] = {event.value, event.site};
  } else if (event.kind == EventKind::kFree) {
    blocks_.erase(event.address);
  } else if (event.kind == EventKind::kWait) {
    waking_[event.thread] = event.value;
  } else if (event.kind == EventKind::kAcquire && catalog_.site(event.site).variable != 0) {
    // What is named where a thread waits is the condition, not the lock that it takes again.
    const auto waking = waking_.find(event.thread);
    if (waking != waking_.end() && std::exchange(waking->second, 0) == event.address) return;
    NamedLock& lock = locks_[event.address];
    const StringId name = catalog_.site(event.site).variable;
    if (lock.number != 0 && catalog_.site(lock.site).variable == name) return;
    lock = {event.site, ++lock_counts_[name]};
  }
}

Place Describer::place(SiteId id) const {
  const Site& site = catalog_.site(id);
  const Function& function = catalog_.function(site.function);
  return {std::string(catalog_.text(function.name)), std::string(catalog_.text(site.file)),
          site.line, site.column};
}

VariableName Describer::variable(SiteId id, Address address, std::uint32_t size) const {
  VariableName out;
  out.address = address;
  out.size = size;
  const Site& site = catalog_.site(id);
  const std::string from_site = without_unnamed(catalog_.text(site.variable));
  const bool is_member = site.type != 0;
  if (const Symbol* symbol = symbol_at(address, catalog_.text(site.variable))) {
    const std::string name = without_unnamed(catalog_.text(symbol->name));
    const std::uint64_t offset = address - symbol->address;
    out.storage = "global";
    out.declared = {"", std::string(catalog_.text(symbol->file)), symbol->line, 0};
    if (is_member && site.field != 0) {
      out.name = fmt::format("{}.{}", name, catalog_.text(site.field));
    } else if (offset == 0 && (size == symbol->size || size == 0 || symbol->size <= 8)) {
      out.name = name;
    } else if (size != 0 && symbol->size % size == 0 && offset % size == 0) {
      out.name = fmt::format("{}[{}]", name, offset / size);
    } else {
      out.name = fmt::format("{}+{}", name, offset);
    }
    return out;
  }
  auto block = blocks_.upper_bound(address);
  if (block != blocks_.begin() && address < (--block)->first + block->second.size) {
    out.storage = "heap";
    out.declared = place(block->second.site);
    if (!from_site.empty()) {
      out.name = from_site;
    } else {
      out.name = fmt::format("{}-byte block", block->second.size);
      if (out.declared.line != 0) {
        out.name +=
            fmt::format(" allocated at {}:{}", base_name(out.declared.file), out.declared.line);
      }
      if (address != block->first) out.name += fmt::format(", byte {}", address - block->first);
    }
    return out;
  }
  out.storage = is_member ? "member" : "";
  out.name = from_site.empty() ? fmt::format("{:#x}", address) : from_site;
  return out;
}

std::string Describer::thread(ThreadId thread) const {
  if (thread >= catalog_.threads.size()) return {};
  return std::string(catalog_.text(catalog_.threads[thread].name));
}

std::string Describer::object(Address address) const {
  const auto named = locks_.find(address);
  const Site& site = catalog_.site(named == locks_.end() ? 0 : named->second.site);
  if (const Symbol* symbol = symbol_at(address)) {
    const std::uint64_t offset = address - symbol->address;
    const std::string name = without_unnamed(catalog_.text(symbol->name));
    if (site.field != 0) return fmt::format("{}.{}", name, catalog_.text(site.field));
    return offset == 0 ? name : fmt::format("{}+{}", name, offset);
  }
  if (site.variable != 0) {
    // Several objects of one class: their locks are told apart by number.
    const std::uint32_t number = named->second.number;
    const std::string name = without_unnamed(catalog_.text(site.variable));
    return number == 1 ? name : fmt::format("{}#{}", name, number);
  }
  return variable(0, address, 0).name;
}

std::vector<Place> Describer::stack(const CallStacks& stacks, StackId stack, SiteId site) const {
  std::vector<Place> out;
  SiteId line_of = site;
  for (const CallStacks::Frame& frame : stacks.frames(stack)) {
    const Function& function = catalog_.function(frame.function);
    Place at = place(line_of);
    if (at.line == 0) {
      at.file = catalog_.text(function.file);
      at.line = function.line;
      at.is_definition = true;
    }
    at.function = catalog_.text(function.name);
    out.push_back(std::move(at));
    line_of = frame.call_site;
  }
  if (out.empty()) out.push_back(place(site));
  return out;
}

// Symbols can be added while a trace is read (modules loaded later).
void Describer::index_symbols() const {
  for (; indexed_symbols_ < catalog_.symbols.size(); ++indexed_symbols_) {
    const Symbol& symbol = catalog_.symbols[indexed_symbols_];
    if (symbol.size != 0) symbols_.emplace(symbol.address, indexed_symbols_);
  }
}

const Symbol* Describer::symbol_at(Address address, std::string_view hint) const {
  index_symbols();
  const Symbol* found = nullptr;
  for (auto at = symbols_.upper_bound(address); at != symbols_.begin();) {
    const Symbol& symbol = catalog_.symbols[(--at)->second];
    if (found != nullptr && symbol.address != found->address) break;
    if (address - symbol.address >= symbol.size) {
      if (found != nullptr) continue;
      break;
    }
    if (found == nullptr) found = &symbol;
    if (hint.empty()) break;
    if (hint.starts_with(catalog_.text(symbol.name))) return &symbol;
  }
  return found;
}

}  // namespace heddle
