// What a program compiled by the plugin records, as the plugin's tests see it: source text in,
// steps out. The program is compiled and linked with dump_runtime.c instead of the real runtime.
#pragma once

#include "trace/catalog.h"
#include "trace/event.h"

#include <string>
#include <vector>

namespace heddle::test {

// One slot record or one item of a segment. Of a plain loop's record a step of its own, without a
// line, and then all its accesses.
struct RecordedStep {
  enum class Kind { kAccess, kSegment, kEnter, kLeave, kResync, kLibcall, kRange, kLoop };
  Kind kind{};
  std::size_t unit{};
  SiteId site{};          // kAccess, kLibcall; kEnter: of the call, within the unit
  FunctionId function{};  // kEnter, kLeave, kResync
  SegmentId segment{};    // kSegment
  EventKind event{};      // kAccess
  MemoryOrder order{};    // kAccess
  Address address{};      // kAccess; kEnter: this
  Address frame{};        // kEnter, kResync
  std::uint64_t size{};   // kAccess
};

struct Recorded {
  std::string error;                // not empty: something went wrong before the run
  int status{};                     // of the program
  std::string output;               // of the program
  std::vector<Catalog> catalogs;    // one per unit
  std::vector<RecordedStep> steps;  // of all threads, one block after the other
  std::size_t records{};            // that they come from
  std::vector<std::pair<std::uint64_t, Address>> points;  // site (of the first unit), address

  const Site& site(const RecordedStep& step) const { return catalogs[step.unit].site(step.site); }
  std::string variable(const RecordedStep& step) const;
  std::string function(const RecordedStep& step) const;

  // "read g 4", "write Account.balance 8 seq_cst", "enter f", "leave f", "resync f", "libcall",
  // "range read 6" (by a wrapper in the runtime);
  // accesses of variables without name are "read ? 4".
  std::vector<std::string> lines() const;
  std::size_t count(const std::string& line) const;
  const Site* find_site(const std::string& line) const;  // of the first step that reads like this
};

struct RunOptions {
  std::string flags = "-O1";   // also libraries
  std::string language = "c";  // or c++
  bool flow = false;           // record at the flow level
  bool points = false;         // set every site's flag
  bool loops = true;           // plain, where the two above allow it
};

Recorded run_recorded(const std::string& source, const RunOptions& options);

// Compiles to an object file at `object`; what the compiler said if it failed.
std::string compile_object(const std::string& source, const std::string& language,
                           const std::string& flags, const std::string& object);

}  // namespace heddle::test
