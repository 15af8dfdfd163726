// The catalog: the static facts that events refer to by id.
//
// Every translation unit built with the compiler wrappers carries a catalog of its own (written by
// src/instrument/, serialised by trace/catalog_codec.h); the collector merges those of the loaded
// modules into the trace's catalog, which the trace file carries, so that a trace explains itself.
// A trace written by hand has a catalog too: its sites come from `@file:line` and its symbols from
// the names of its variables.
//
// Entry 0 of every table is the "unknown" entry and always exists.
#pragma once

#include "trace/event.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

// Strings by id, each stored once.
class StringTable {
 public:
  StringTable();
  StringTable(const StringTable& other);  // the views must point into the copy's own arena
  StringTable& operator=(const StringTable& other);
  StringTable(StringTable&&) = default;
  StringTable& operator=(StringTable&&) = default;
  ~StringTable() = default;

  StringId intern(std::string_view text);
  std::string_view operator[](StringId id) const {
    return id < strings_.size() ? strings_[id] : std::string_view();
  }
  std::size_t size() const { return strings_.size(); }

 private:
  void grow_index();

  // A deque-like arena keeps views stable while the table grows.
  std::vector<std::string_view> strings_;
  std::vector<std::vector<char>> arena_;
  std::vector<StringId> index_;  // open addressing, 0 = free
};

enum class MemberAccess : std::uint8_t { kNone = 0, kPublic = 1, kProtected = 2, kPrivate = 3 };

struct Function {
  enum Flag : std::uint16_t {
    kMethod = 1,  // has a `this`
    kConstructor = 2,
    kDestructor = 4,
    kStatic = 8,         // internal linkage: known in its translation unit only
    kStandard = 16,      // of the standard library: never a unit of work
    kCatchesJumps = 32,  // calls setjmp: its Enter carries its frame address for resynchronisation
  };
  StringId name{};          // as a person writes it: ns::Class::method(int)
  StringId linkage_name{};  // as the linker knows it
  StringId file{};
  std::uint32_t line{};
  StringId
      class_name{};  // C++: the class; C: the struct its first pointer parameter reaches, or empty
  MemberAccess access{};
  std::uint16_t flags{};
  std::uint32_t parameters{};
  std::uint32_t registers{};  // flow: how many virtual registers (trace/descriptor.h)
  std::uint64_t key{};  // linkage name, file name and the shape of the body, without line numbers

  bool operator==(const Function&) const = default;
};

struct Site {
  enum Flag : std::uint16_t {
    kVolatile = 1,
    kBitField = 2,
    kVector = 4,
    kRange = 8,  // memcpy and kin: the size is dynamic
    kSync = 16,  // not an access: the place of a lock, fork, alloc … call
    kThreadLocalOrConst = 32,
  };
  FunctionId function{};
  StringId file{};
  std::uint32_t line{};
  std::uint32_t column{};
  std::uint32_t ordinal{};  // among the function's sites, in program order
  EventKind kind{};
  MemoryOrder order{};
  std::uint16_t flags{};
  std::uint32_t size{};  // bytes; 0 when dynamic
  StringId
      variable{};   // `stock`, `Account.balance`, `table[]`, or empty when only the address tells
  StringId type{};  // struct or class of a member access, else empty
  StringId field{};
  std::uint32_t offset{};  // of the field in its struct
  std::uint64_t
      key{};  // stable across runs and, while the function did not change, across rebuilds

  bool operator==(const Site&) const = default;
};

// A variable with static storage and where it was in this run.
struct Symbol {
  StringId name{};
  StringId file{};
  std::uint32_t line{};
  Address address{};
  std::uint64_t size{};

  bool operator==(const Symbol&) const = default;
};

struct Module {
  StringId path{};
  StringId build_id{};  // hexadecimal
  Address load_bias{};

  bool operator==(const Module&) const = default;
};

struct ThreadInfo {
  StringId name{};

  bool operator==(const ThreadInfo&) const = default;
};

// ---- the flow level -------------------------------------------------------------------------
//
// A function's values are numbered as virtual registers, local to one activation: parameters first
// (0 … parameters-1), then every read, call result and phi. Arithmetic in between is collapsed: a
// source list names the registers that a value is computed from.

using Register = std::uint32_t;
inline constexpr Register kNoRegister = 0xffffffffu;
using Sources = std::vector<Register>;

struct Phi {
  struct Incoming {
    std::uint32_t block{};  // the predecessor
    Sources sources;

    bool operator==(const Incoming&) const = default;
  };
  Register defines{};
  std::vector<Incoming> incoming;

  bool operator==(const Phi&) const = default;
};

// One access of a segment, in program order.
struct AccessItem {
  SiteId site{};
  Register defines{kNoRegister};  // reads and read-modify-writes
  Sources address_from;
  Sources value_from;  // writes: what the stored value was computed from

  bool operator==(const AccessItem&) const = default;
};

enum class SegmentEnd : std::uint8_t {
  kFallThrough = 0,  // into its only successor, or the next segment of the same block
  kBranch = 1,       // `end_from`: what decides it
  kCall = 2,    // `arguments`, `defines`; `end_from`: what an indirect callee was computed from
  kReturn = 3,  // `end_from`: what the result was computed from
  kUnwind = 4,  // leaves by exception or does not return
};

struct Segment {
  FunctionId function{};
  std::uint32_t block{};  // number of its basic block in the function, entry = 0
  std::uint32_t index{};  // position among the block's segments; 0 enters the block
  std::vector<Phi> phis;  // of the block, on segment 0
  std::vector<AccessItem> items;
  SegmentEnd end{};
  Sources end_from;
  std::vector<Sources> arguments;
  Register defines{kNoRegister};  // the call's result
  StringId callee{};              // linkage name of a direct callee, else empty
  // Blocks whose branch this block is control dependent on (same function, same activation): the
  // one of them that executed last is the dynamic parent.
  std::vector<std::uint32_t> control_parents;

  bool operator==(const Segment&) const = default;
};

struct Catalog {
  Catalog();  // with the unknown entries

  StringTable strings;
  std::vector<Function> functions;
  std::vector<Site> sites;
  std::vector<Segment> segments;
  std::vector<Symbol> symbols;
  std::vector<Module> modules;
  std::vector<ThreadInfo> threads;

  std::string_view text(StringId id) const { return strings[id]; }
  const Site& site(SiteId id) const { return sites[id < sites.size() ? id : 0]; }
  const Function& function(FunctionId id) const {
    return functions[id < functions.size() ? id : 0];
  }
  const Segment& segment(SegmentId id) const { return segments[id < segments.size() ? id : 0]; }
};

}  // namespace heddle
