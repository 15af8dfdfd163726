// The finding: what the user reads. Plain data, self-contained (no ids into a catalog), made by
// detectors and read by reporters, which add no logic of their own.
#pragma once

#include "trace/event.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

enum class FindingKind {
  kAtomicityViolation,   // accesses meant to be one step were split (avio, svd)
  kDataRace,             // two conflicting accesses without order (race, frontier)
  kInconsistentLocking,  // no lock protects every access (lockset)
  kNotSerializable,      // transactions form a cycle
  kDeadlock,
  kHang,
  kCrash,
};

std::string_view title(FindingKind kind);  // "atomicity violation"

enum class FindingLabel { kUnlearned, kObserved, kPredicted, kConfirmed, kNotReproduced };

struct Place {
  std::string function;
  std::string file;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  // The line is where the function is defined: where it was called from is not known.
  bool is_definition = false;
};

struct HeldLock {
  std::string name;  // the variable's name where known, else its address
  LockMode mode{};
  Place acquired;
};

struct VariableName {
  std::string name;     // `stock`, `Account.balance`, `40-byte block allocated at shop.cc:9`
  std::string storage;  // "global", "heap", "stack", "member", or empty
  Place declared;       // definition or allocation site where known
  Address address = 0;
  std::uint32_t size = 0;
};

// One event of the story, in the order in which they happened.
struct Step {
  std::string role;  // "P", "R", "I" for a triple; "1", "2" for a race; empty for context
  ThreadId thread = 0;
  std::string thread_name;
  EventKind kind{};
  MemoryOrder order{};
  std::uint32_t size = 0;
  Place place;
  std::vector<Place> stack;  // innermost first; stack[0] is the function of `place`
  std::vector<HeldLock> locks;
  std::optional<std::uint64_t> value;
  VariableName variable;
  EventOrdinal ordinal = kNoEvent;
  std::string note;  // "lets go of m", "writes the input of this unit", …
};

// Not the program's own: headers and sources of the compiler and of system libraries.
bool in_library(const Place& place);

// The innermost line of the program's own on the way to the step: of an access inside a library,
// the call that led there. Where there is none, the place of the step.
const Place& own_line(const Step& step);

struct Finding {
  FindingKind kind{};
  FindingLabel label = FindingLabel::kObserved;
  std::vector<std::string> detectors;   // sorted, unique: who reports it
  std::string summary;                  // "read – write – read": the case
  std::string in_words;                 // "read twice, written in between"
  std::vector<VariableName> variables;  // the one concerned, or several
  std::vector<Step> steps;
  std::vector<std::string> notes;  // further sentences of explanation
  std::uint64_t count = 1;         // dynamic instances
  std::string fingerprint;         // 16 hex digits; holds no line numbers
  double rank = 0;                 // higher is shown first
  std::string replay;              // the command that makes it happen again, or empty
};

}  // namespace heddle
