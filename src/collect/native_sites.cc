#include "collect/native_sites.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include <cxxabi.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <fmt/format.h>

namespace heddle::collect {
namespace {

bool is_system_file(std::string_view file) {
  return file.starts_with("/usr/include/") || file.starts_with("/usr/lib/") ||
         file.find("/include/c++/") != std::string_view::npos;
}

std::string demangle(const char* name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string result = status == 0 && text != nullptr ? text : name;
  std::free(text);
  return result;
}

std::string attribute_text(Dwarf_Die* die, unsigned attribute) {
  Dwarf_Attribute storage;
  Dwarf_Attribute* found = dwarf_attr_integrate(die, attribute, &storage);
  const char* text = found == nullptr ? nullptr : dwarf_formstring(found);
  return text == nullptr ? std::string() : std::string(text);
}

std::uint32_t attribute_number(Dwarf_Die* die, unsigned attribute) {
  Dwarf_Attribute storage;
  Dwarf_Word value = 0;
  Dwarf_Attribute* found = dwarf_attr(die, attribute, &storage);
  if (found == nullptr || dwarf_formudata(found, &value) != 0) return 0;
  return static_cast<std::uint32_t>(value);
}

// Where a module's debug information is, if it is in a file of its own. The libraries of the
// language itself, which are part of every program, are known by their symbols alone: what their
// lines are nobody needs to know, and unpacking them would take longer than many a program runs.
int find_debug_file(Dwfl_Module* module, void** data, const char* name, Dwarf_Addr base,
                    const char* file, const char* link, GElf_Word checksum, char** found) {
  const std::string_view path = file == nullptr ? "" : file;
  const std::string_view library = path.substr(path.rfind('/') + 1);
  for (const char* language : {"ld-linux", "libc.so", "libm.so", "libstdc++.so", "libgcc_s.so"}) {
    if (library.starts_with(language)) return -1;
  }
  return dwfl_standard_find_debuginfo(module, data, name, base, file, link, checksum, found);
}

// The name of file number `index` of the unit that `die` belongs to.
std::string file_of(Dwarf_Die* unit, std::uint32_t index) {
  Dwarf_Files* files = nullptr;
  std::size_t count = 0;
  if (dwarf_getsrcfiles(unit, &files, &count) != 0 || index >= count) return {};
  const char* name = dwarf_filesrc(files, index, nullptr, nullptr);
  return name == nullptr ? std::string() : std::string(name);
}

}  // namespace

struct NativeSites::Place {
  std::string function;      // as a person writes it
  std::string linkage_name;  // as the linker knows it
  std::string file;
  std::uint32_t line{};
  std::uint32_t column{};
  std::string symbol;      // of the machine code, whatever was inlined into it
  std::uint64_t offset{};  // of the call in it
};

// Stable across runs, and across rebuilds that did not touch the function.
std::uint64_t NativeSites::key_of(const Place& place, EventKind kind) {
  std::uint64_t key = 0xcbf29ce484222325ull;
  for (const char c : place.symbol) key = (key ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  for (const std::uint64_t part : {place.offset, static_cast<std::uint64_t>(kind)}) {
    key = (key ^ part) * 0x9e3779b97f4a7c15ull;
    key ^= key >> 32;
  }
  return key;
}

struct NativeSites::Modules {
  Modules() {
    callbacks.find_elf = dwfl_build_id_find_elf;
    callbacks.find_debuginfo = find_debug_file;
    callbacks.debuginfo_path = &debug_path;
    dwfl = dwfl_begin(&callbacks);
  }
  ~Modules() {
    if (dwfl != nullptr) dwfl_end(dwfl);
  }
  Modules(const Modules&) = delete;
  Modules& operator=(const Modules&) = delete;

  Dwfl_Callbacks callbacks{};
  // Only what is on this machine: no search on the network for a system library's sources.
  char path_text[16] = "/usr/lib/debug";
  char* debug_path = path_text;
  Dwfl* dwfl = nullptr;

  // Which unit of debug information has the code at an address.
  struct Code {
    Dwarf_Addr first;
    Dwarf_Addr last;  // one past
    Dwarf_Die unit;
    Dwarf_Addr bias;
  };
  const Code* code_at(Dwfl_Module* module, Dwarf_Addr address);

  // The functions around an address of the unit, as it counts addresses: the innermost first, the
  // last is the one that was not inlined.
  std::vector<Dwarf_Die> functions_at(Dwarf_Die unit, Dwarf_Addr address);

 private:
  struct FunctionCode {
    Dwarf_Addr first;
    Dwarf_Addr last;  // one past
    Dwarf_Die function;
  };
  void add_functions(Dwarf_Die* scope, std::vector<FunctionCode>& out);

  absl::flat_hash_map<Dwfl_Module*, std::vector<Code>> code_;              // by first address
  absl::flat_hash_map<const void*, std::vector<FunctionCode>> functions_;  // by unit, the same
};

// libdwfl's own look-up needs .debug_aranges, which clang does not write: so from the units'
// ranges.
const NativeSites::Modules::Code* NativeSites::Modules::code_at(Dwfl_Module* module,
                                                                Dwarf_Addr address) {
  const auto [at, is_new] = code_.try_emplace(module);
  std::vector<Code>& all = at->second;
  if (is_new) {
    Dwarf_Addr bias = 0;
    for (Dwarf_Die* unit = nullptr; (unit = dwfl_module_nextcu(module, unit, &bias)) != nullptr;) {
      Dwarf_Addr base = 0, first = 0, last = 0;
      for (std::ptrdiff_t next = 0; (next = dwarf_ranges(unit, next, &base, &first, &last)) > 0;) {
        all.push_back({first + bias, last + bias, *unit, bias});
      }
    }
    std::sort(all.begin(), all.end(),
              [](const Code& a, const Code& b) { return a.first < b.first; });
  }
  const auto after = std::upper_bound(all.begin(), all.end(), address,
                                      [](Dwarf_Addr a, const Code& c) { return a < c.first; });
  if (after == all.begin() || address >= std::prev(after)->last) return nullptr;
  return &*std::prev(after);
}

// libdw finds an entry, and those around it, by going through all entries of the unit, which in C++
// are those of all headers: a millisecond or two for every place. Here it happens once.
void NativeSites::Modules::add_functions(Dwarf_Die* scope, std::vector<FunctionCode>& out) {
  Dwarf_Die child;
  if (dwarf_child(scope, &child) != 0) return;
  do {
    const int tag = dwarf_tag(&child);
    if (tag == DW_TAG_subprogram) {
      Dwarf_Addr base = 0, first = 0, last = 0;
      for (std::ptrdiff_t next = 0;
           (next = dwarf_ranges(&child, next, &base, &first, &last)) > 0;) {
        out.push_back({first, last, child});
      }
    } else if (tag == DW_TAG_namespace || tag == DW_TAG_module) {
      add_functions(&child, out);
    }
  } while (dwarf_siblingof(&child, &child) == 0);
}

std::vector<Dwarf_Die> NativeSites::Modules::functions_at(Dwarf_Die unit, Dwarf_Addr address) {
  const auto [at, is_new] = functions_.try_emplace(unit.addr);
  std::vector<FunctionCode>& all = at->second;
  if (is_new) {
    add_functions(&unit, all);
    std::sort(all.begin(), all.end(),
              [](const FunctionCode& a, const FunctionCode& b) { return a.first < b.first; });
  }
  const auto after =
      std::upper_bound(all.begin(), all.end(), address,
                       [](Dwarf_Addr a, const FunctionCode& code) { return a < code.first; });
  if (after == all.begin() || address >= std::prev(after)->last) return {};
  std::vector<Dwarf_Die> around{std::prev(after)->function};
  Dwarf_Die scope = around[0];
  for (Dwarf_Die child; dwarf_child(&scope, &child) == 0;) {
    bool inside = false;
    do {
      const int tag = dwarf_tag(&child);
      inside = (tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block) &&
               dwarf_haspc(&child, address) == 1;
      if (!inside) continue;
      if (tag == DW_TAG_inlined_subroutine) around.push_back(child);
      scope = child;
      break;
    } while (dwarf_siblingof(&child, &child) == 0);
    if (!inside) break;
  }
  std::reverse(around.begin(), around.end());
  return around;
}

NativeSites::NativeSites(Catalog& catalog)
    : catalog_(catalog), modules_(std::make_unique<Modules>()) {}

NativeSites::~NativeSites() = default;

void NativeSites::add_module(const std::string& path, Address bias, Address first, Address last) {
  Module module;
  module.path = catalog_.strings.intern(path);
  module.load_bias = bias;
  if (modules_->dwfl == nullptr || path.empty() || first >= last) {
    catalog_.modules.push_back(module);
    return;
  }
  dwfl_report_begin_add(modules_->dwfl);
  Dwfl_Module* reported =
      dwfl_report_elf(modules_->dwfl, path.c_str(), path.c_str(), -1, bias, /*add_p_vaddr=*/true);
  dwfl_report_end(modules_->dwfl, nullptr, nullptr);
  if (reported != nullptr) {
    const unsigned char* bits = nullptr;
    GElf_Addr where = 0;
    GElf_Addr elf_bias = 0;
    dwfl_module_getelf(reported, &elf_bias);
    const int size = dwfl_module_build_id(reported, &bits, &where);
    std::string text;
    for (int i = 0; i < size; ++i) text += fmt::format("{:02x}", bits[i]);
    module.build_id = catalog_.strings.intern(text);
  }
  catalog_.modules.push_back(module);
}

NativeSites::Place NativeSites::find(Address return_address) {
  Place place;
  if (modules_->dwfl == nullptr) return place;
  const Dwarf_Addr inside = return_address - 1;  // the call itself
  Dwfl_Module* module = dwfl_addrmodule(modules_->dwfl, inside);
  if (module == nullptr) return place;
  GElf_Sym entry{};
  const char* symbol =
      dwfl_module_addrinfo(module, inside, &place.offset, &entry, nullptr, nullptr, nullptr);
  if (symbol != nullptr) {
    place.symbol = symbol;
    place.linkage_name = symbol;
    place.function = demangle(symbol);
  }
  const Modules::Code* code = modules_->code_at(module, inside);
  if (code == nullptr) return place;
  Dwarf_Die found = code->unit;
  Dwarf_Die* const unit = &found;
  if (Dwarf_Line* line = dwarf_getsrc_die(unit, inside - code->bias); line != nullptr) {
    int number = 0;
    int column = 0;
    const char* file = dwarf_linesrc(line, nullptr, nullptr);
    if (file != nullptr) place.file = file;
    if (dwarf_lineno(line, &number) == 0) place.line = static_cast<std::uint32_t>(number);
    if (dwarf_linecol(line, &column) == 0) place.column = static_cast<std::uint32_t>(column);
  }
  // Each inlined function says where it was called: that is the place in the next one outwards.
  Place innermost = place;
  bool named = false;
  for (Dwarf_Die& function : modules_->functions_at(*unit, inside - code->bias)) {
    std::string linkage = attribute_text(&function, DW_AT_linkage_name);
    const std::string name = attribute_text(&function, DW_AT_name);
    if (linkage.empty()) linkage = name;
    place.linkage_name = linkage;
    place.function = linkage == name ? name : demangle(linkage.c_str());
    if (!named) innermost = place;
    named = true;
    if (!is_system_file(place.file) || dwarf_tag(&function) == DW_TAG_subprogram) break;
    place.file = file_of(unit, attribute_number(&function, DW_AT_call_file));
    place.line = attribute_number(&function, DW_AT_call_line);
    place.column = attribute_number(&function, DW_AT_call_column);
  }
  return is_system_file(place.file) ? innermost : place;
}

SiteId NativeSites::find_site(Address return_address, EventKind kind) {
  const auto found = sites_.find({return_address, kind});
  return found != sites_.end() ? found->second : look_up(return_address, kind);
}

SiteId NativeSites::look_up(Address return_address, EventKind kind) {
  const Place place = find(return_address);
  SiteId result = 0;
  if (!place.function.empty() || !place.file.empty()) {
    Site site;
    site.function = function_of(place);
    site.file = catalog_.strings.intern(place.file);
    site.line = place.line;
    site.column = place.column;
    site.kind = kind;
    site.flags = Site::kSync;
    site.key = key_of(place, kind);
    name_object(site);
    result = static_cast<SiteId>(catalog_.sites.size());
    catalog_.sites.push_back(site);
  }
  sites_.emplace(std::pair(return_address, kind), result);
  return result;
}

// By the name of the file without its folders: the compiler and the debug information need not
// agree on them.
void NativeSites::name_object(Site& site) {
  const auto place_of = [&](const Site& at) {
    const std::string_view path = catalog_.text(at.file);
    return fmt::format("{}:{}:{}", path.substr(path.rfind('/') + 1), at.line, at.column);
  };
  for (; seen_sites_ < catalog_.sites.size(); ++seen_sites_) {
    const Site& noted = catalog_.sites[seen_sites_];
    if ((noted.flags & Site::kSync) == 0 || noted.function != 0 || noted.variable == 0) continue;
    const auto [at, is_new] = noted_.try_emplace(place_of(noted), static_cast<SiteId>(seen_sites_));
    if (!is_new && catalog_.site(at->second).variable != noted.variable) at->second = 0;
  }
  const auto found = noted_.find(place_of(site));
  if (found == noted_.end()) return;
  const Site& noted = catalog_.site(found->second);
  site.variable = noted.variable;
  site.type = noted.type;
  site.field = noted.field;
  site.offset = noted.offset;
}

// The function that instrumented code knows by that name, or a new one.
FunctionId NativeSites::function_of(const Place& place) {
  for (std::size_t id = 1; id < catalog_.functions.size(); ++id) {
    if (catalog_.text(catalog_.functions[id].linkage_name) == place.linkage_name) {
      return static_cast<FunctionId>(id);
    }
  }
  Function function;
  function.name = catalog_.strings.intern(place.function);
  function.linkage_name = catalog_.strings.intern(place.linkage_name);
  function.file = catalog_.strings.intern(place.file);
  if (place.file.empty() || is_system_file(place.file)) function.flags = Function::kStandard;
  catalog_.functions.push_back(function);
  return static_cast<FunctionId>(catalog_.functions.size() - 1);
}

std::string NativeSites::describe(Address return_address) {
  const Place place = find(return_address);
  if (place.function.empty() && place.file.empty()) return fmt::format("{:#x}", return_address);
  if (place.file.empty()) return place.function;
  return fmt::format("{} {}:{}", place.function, place.file, place.line);
}

bool NativeSites::in_runtime(Address return_address) const {
  if (modules_->dwfl == nullptr) return false;
  Dwfl_Module* module = dwfl_addrmodule(modules_->dwfl, return_address - 1);
  if (module == nullptr) return false;
  const char* name =
      dwfl_module_info(module, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
  if (name == nullptr) return false;
  const std::string_view path = name;
  return path.substr(path.rfind('/') + 1).starts_with("libheddle_rt");
}

}  // namespace heddle::collect
