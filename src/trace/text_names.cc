#include "trace/text_names.h"

#include "trace/text_grammar.h"

#include <algorithm>

namespace heddle::text {
namespace {

// FNV-1a: keys must be the same in every run and build.
class KeyHash {
 public:
  KeyHash& add(std::string_view text) {
    for (const char c : text) byte(static_cast<unsigned char>(c));
    byte(0);
    return *this;
  }
  KeyHash& add(std::uint64_t number) {
    for (int i = 0; i < 8; ++i) byte(static_cast<unsigned char>(number >> (8 * i)));
    return *this;
  }
  std::uint64_t value() const { return hash_; }

 private:
  void byte(unsigned char b) { hash_ = (hash_ ^ b) * 0x100000001b3ull; }
  std::uint64_t hash_ = 0xcbf29ce484222325ull;
};

}  // namespace

const KindWord* kind_word(EventKind kind) {
  for (const KindWord& entry : kKindWords) {
    if (entry.kind == kind) return &entry;
  }
  return nullptr;
}

const KindWord* kind_word(std::string_view word) {
  for (const KindWord& entry : kKindWords) {
    if (entry.word == word) return &entry;
  }
  return nullptr;
}

void Names::remember(std::vector<std::uint32_t>& by_string, StringId name, std::uint32_t index) {
  if (by_string.size() <= name) by_string.resize(std::max<std::size_t>(name + 1, 64) * 2, kNone);
  if (by_string[name] == kNone) by_string[name] = index;
}

std::uint32_t Names::recall(const std::vector<std::uint32_t>& by_string, StringId name) {
  return name != 0 && name < by_string.size() ? by_string[name] : kNone;
}

std::uint32_t Names::find_symbol(std::string_view name) {
  return recall(symbol_by_name_, intern(name));
}

void Names::add_symbol(const Symbol& symbol) {
  remember(symbol_by_name_, symbol.name, static_cast<std::uint32_t>(catalog_.symbols.size()));
  catalog_.symbols.push_back(symbol);
  // Keep later automatic variables clear of a declared one that lies in their way.
  const Address end = symbol.address + std::max<std::uint64_t>(symbol.size, 1);
  if (end > symbol.address && end > next_automatic_ &&
      symbol.address < next_automatic_ + kLargestAutomatic) {
    next_automatic_ = automatic_after(end);
  }
}

std::optional<Address> Names::next_automatic(std::uint64_t bytes) const {
  if (bytes > kLargestAutomatic || next_automatic_ > ~Address{0} - 4 * kLargestAutomatic) {
    return std::nullopt;
  }
  return next_automatic_;
}

std::uint32_t Names::add_automatic(std::string_view name, std::uint64_t bytes) {
  Symbol symbol;
  symbol.name = intern(name);
  symbol.address = next_automatic_;
  symbol.size = std::max(bytes, kAutomaticSize);
  add_symbol(symbol);
  return static_cast<std::uint32_t>(catalog_.symbols.size() - 1);
}

FunctionId Names::find_function(std::string_view name) {
  return recall(function_by_name_, intern(name));
}

void Names::add_function(const Function& function) {
  remember(function_by_name_, function.name, static_cast<FunctionId>(catalog_.functions.size()));
  catalog_.functions.push_back(function);
}

std::uint64_t Names::key_of_function(std::string_view name) {
  return KeyHash().add(name).value();
}

FunctionId Names::function_named(std::string_view name) {
  const FunctionId known = find_function(name);
  if (known != kNone) return known;
  Function function;
  function.name = intern(name);
  function.linkage_name = function.name;
  function.key = key_of_function(name);
  add_function(function);
  return static_cast<FunctionId>(catalog_.functions.size() - 1);
}

SiteId Names::find_site(const SiteKey& key) const {
  const auto found = site_by_key_.find(key);
  return found == site_by_key_.end() ? kNone : found->second;
}

void Names::add_site(const Site& site) {
  site_by_key_.try_emplace({site.file, site.line, site.column, site.function, site.kind},
                           static_cast<SiteId>(catalog_.sites.size()));
  catalog_.sites.push_back(site);
}

Site Names::automatic_site(const SiteKey& key, const Event& event, std::string_view file,
                           std::string_view function) {
  Site site;
  site.function = key.function;
  site.file = key.file;
  site.line = key.line;
  site.column = key.column;
  site.kind = event.kind;
  site.order = event.order;
  if (is_access(event.kind)) {
    site.size = event.size;
  } else {
    site.flags = Site::kSync;
  }
  site.key = KeyHash()
                 .add(static_cast<std::uint64_t>(event.kind))
                 .add(file)
                 .add(key.line)
                 .add(key.column)
                 .add(function)
                 .value();
  return site;
}

}  // namespace heddle::text
