#include "instrument/descriptors.h"

#include "abi/abi.h"
#include "trace/catalog_codec.h"

#include <cerrno>
#include <cstring>
#include <memory>

#include <fcntl.h>
#include <fmt/format.h>
#include <gelf.h>
#include <unistd.h>

namespace heddle {
namespace {

struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

struct EndElf {
  void operator()(Elf* elf) const { elf_end(elf); }
};

Result<std::vector<std::uint8_t>> read_section(const std::string& path) {
  Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0) return Error{fmt::format("{}: {}", path, std::strerror(errno))};
  elf_version(EV_CURRENT);
  const std::unique_ptr<Elf, EndElf> elf(elf_begin(file.fd, ELF_C_READ, nullptr));
  std::size_t names = 0;
  if (elf == nullptr || elf_kind(elf.get()) != ELF_K_ELF ||
      elf_getshdrstrndx(elf.get(), &names) != 0) {
    return Error{fmt::format("{}: not an ELF object, library or executable", path)};
  }
  std::vector<std::uint8_t> out;
  for (Elf_Scn* section = elf_nextscn(elf.get(), nullptr); section != nullptr;
       section = elf_nextscn(elf.get(), section)) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr) continue;
    const char* name = elf_strptr(elf.get(), names, header.sh_name);
    if (name == nullptr || std::strcmp(name, HEDDLE_SECTION) != 0) continue;
    Elf_Data* data = nullptr;
    while ((data = elf_rawdata(section, data)) != nullptr) {
      const auto* bytes = static_cast<const std::uint8_t*>(data->d_buf);
      if (bytes != nullptr) out.insert(out.end(), bytes, bytes + data->d_size);
    }
  }
  if (out.empty()) {
    return Error{
        fmt::format("{}: no descriptors; was it compiled with heddle-cc or heddle-c++?", path)};
  }
  return out;
}

std::size_t padded(std::size_t size) {
  return (size + 7) & ~std::size_t{7};
}

std::string registers(const Sources& sources) {
  std::string out;
  for (const Register source : sources) out += fmt::format("{}r{}", out.empty() ? "" : " ", source);
  return out;
}

std::string item_text(const Catalog& catalog, const AccessItem& item) {
  const Site& site = catalog.site(item.site);
  const std::string_view variable = catalog.text(site.variable);
  std::string out;
  if (item.defines != kNoRegister) out += fmt::format("r{} = ", item.defines);
  if (site.kind == EventKind::kFence) return out + "fence";
  out += site.kind == EventKind::kRead    ? "read "
         : site.kind == EventKind::kWrite ? "write "
         : site.kind == EventKind::kRmw   ? "update "
                                          : "once ";
  out += variable.empty() ? "?" : std::string(variable);
  if (!item.address_from.empty()) out += fmt::format(" [{}]", registers(item.address_from));
  if (!item.value_from.empty()) out += fmt::format(" = {}", registers(item.value_from));
  return out;
}

std::string phi_text(const Phi& phi) {
  std::string out = fmt::format("r{} = phi", phi.defines);
  bool first = true;
  for (const Phi::Incoming& incoming : phi.incoming) {
    out += fmt::format("{} b{}:", first ? "" : " |", incoming.block);
    if (!incoming.sources.empty()) out += " " + registers(incoming.sources);
    first = false;
  }
  return out;
}

std::string end_text(const Catalog& catalog, const Segment& segment) {
  const auto from = [&](const char* word) {
    return segment.end_from.empty() ? std::string(word)
                                    : fmt::format("{} {}", word, registers(segment.end_from));
  };
  switch (segment.end) {
    case SegmentEnd::kFallThrough:
      return "";
    case SegmentEnd::kBranch:
      return from("branch");
    case SegmentEnd::kReturn:
      return from("return");
    case SegmentEnd::kUnwind:
      return "unwind";
    case SegmentEnd::kCall:
      break;
  }
  std::string out;
  if (segment.defines != kNoRegister) out += fmt::format("r{} = ", segment.defines);
  const std::string_view callee = catalog.text(segment.callee);
  out += fmt::format("call {}(", callee.empty() ? fmt::format("*[{}]", registers(segment.end_from))
                                                : std::string(callee));
  for (std::size_t i = 0; i < segment.arguments.size(); ++i) {
    out += (i == 0 ? "" : ", ");
    out += segment.arguments[i].empty() ? "-" : registers(segment.arguments[i]);
  }
  return out + ")";
}

}  // namespace

Result<std::vector<UnitDescriptors>> read_descriptors(const std::string& path) {
  Result<std::vector<std::uint8_t>> section = read_section(path);
  if (!section.ok()) return section.error();
  const std::vector<std::uint8_t>& bytes = *section;
  std::vector<UnitDescriptors> out;
  for (std::size_t at = 0; bytes.size() - at >= sizeof(heddle_section_header);) {
    const auto damage = [&](const std::string& what) {
      return Error{fmt::format("{}: damaged descriptors at byte {} of section {}: {}", path, at,
                               HEDDLE_SECTION, what)};
    };
    heddle_section_header header;
    std::memcpy(&header, bytes.data() + at, sizeof(header));
    std::size_t left = bytes.size() - at - sizeof(header);
    if (header.magic != HEDDLE_SECTION_MAGIC) return damage("not a header");
    if (header.catalog_size > left || padded(header.catalog_size) > left ||
        header.layout_size > left - padded(header.catalog_size)) {
      return damage("longer than the section");
    }
    const std::uint8_t* start = bytes.data() + at + sizeof(header);
    UnitDescriptors& unit = out.emplace_back();
    const Status decoded = decode_catalog({start, header.catalog_size}, unit.catalog);
    if (!decoded.ok()) return damage(decoded.error().message);
    std::vector<SegmentId> with_items;
    for (SegmentId i = 0; i < unit.catalog.segments.size(); ++i) {
      if (!unit.catalog.segments[i].items.empty()) with_items.push_back(i);
    }
    Layout layout;
    if (!decode_layout({start + padded(header.catalog_size), header.layout_size},
                       {with_items.size(), unit.catalog.symbols.size(), unit.catalog.sites.size()},
                       layout)) {
      return damage("a layout that does not fit the catalog");
    }
    unit.layouts.resize(unit.catalog.segments.size());
    for (std::size_t i = 0; i < layout.segments.size(); ++i) {
      unit.layouts[with_items[i]] = std::move(layout.segments[i]);
    }
    unit.loops = std::move(layout.loops);
    at += sizeof(header) + padded(header.catalog_size) + padded(header.layout_size);
  }
  return out;
}

std::string segment_line(const Catalog& catalog, const Segment& segment) {
  std::string out = fmt::format("b{}.{}", segment.block, segment.index);
  if (!segment.control_parents.empty()) {
    out += " after";
    for (const std::uint32_t parent : segment.control_parents) out += fmt::format(" b{}", parent);
  }
  out += ":";
  const char* separator = " ";
  const auto add = [&](const std::string& part) {
    if (part.empty()) return;
    out += separator + part;
    separator = "; ";
  };
  for (const Phi& phi : segment.phis) add(phi_text(phi));
  for (const AccessItem& item : segment.items) add(item_text(catalog, item));
  add(end_text(catalog, segment));
  return out;
}

std::vector<std::string> function_lines(const Catalog& catalog, FunctionId function) {
  std::vector<std::string> out;
  for (std::size_t i = 1; i < catalog.segments.size(); ++i) {
    const Segment& segment = catalog.segments[i];
    if (segment.function == function) out.push_back(segment_line(catalog, segment));
  }
  return out;
}

}  // namespace heddle
