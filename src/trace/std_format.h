// STD: the text format of RAPID and the tools around it, read and written.
//
//   T0|fork(T1)|12
//   T1|acq(L3)|45
//   T1|r(V7)|46
//   T1|begin|47
//
// A line is `thread|op(operand)|location` with op one of r, w, acq, rel, fork, join, begin, end;
// the operand of begin and end may be missing. There are no comments and no blank lines: a line
// that does not parse is an error, because an analysis of a trace with a hole is an analysis of
// another trace.
//
// Reading. Threads get ids in the order of their first mention, so the first thread of the file is
// the main thread. Variables and locks are two name spaces; each name becomes an 8-byte variable of
// its own, accessed as a whole, as in the text notation. A location becomes one site for each op
// that occurs there: `file:line` and `file:line:column` are taken apart, a plain number is
// a line, and anything else stands for the file.
//
// Writing. STD names whole variables, so memory is cut into the coarsest pieces such that every
// access covers whole pieces: an access becomes one line for each piece it covers, mostly one.
// Finding the pieces takes a pass over the trace before the one that writes. Atomic accesses are
// written as plain ones (a read-modify-write as a read and a write). What STD has no op for is left
// out. StdWriter counts both, so that nobody takes the result for the whole trace.
#pragma once

#include "base/result.h"
#include "trace/catalog.h"
#include "trace/event.h"
#include "trace/file.h"
#include "trace/source.h"

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

namespace heddle {

// Reads a file of STD, in memory bounded by its distinct names.
std::unique_ptr<EventSource> std_source(InputFile file, const OpenOptions& options = {});

// Whether a file that begins like this can be meant as STD.
bool looks_like_std(std::string_view head);

// Writes STD in two passes over the same trace: scan() everything, plan(), write() everything.
class StdWriter {
 public:
  void scan(std::span<const Event> events);
  void plan(const Catalog& catalog);  // the whole catalog, as it is after the scan
  void write(std::span<const Event> events, std::string& out);

  // One line: how many events of which kinds are left out, and how many are written as something
  // less than they are; empty when the STD says it all. Known after the scan.
  std::string losses() const;

 private:
  struct Variable {
    Address begin{};
    std::uint64_t size{};
    std::string name;
  };

  void line(const Event& event, std::string_view op, std::string_view operand, std::string& out);
  void access(const Event& event, std::string_view op, std::string& out);
  std::string name_of(Address address) const;
  std::string thread(std::uint64_t id) const;
  const std::string& location(SiteId id) const;

  absl::flat_hash_map<Address, std::uint32_t> accesses_;  // by first byte: the longest of them
  absl::flat_hash_set<Address> ends_;                     // one past the last byte
  std::vector<Address> cuts_;                             // sorted
  std::vector<Variable> variables_;                       // sorted by address
  absl::flat_hash_map<Address, std::string> piece_names_;
  absl::flat_hash_map<Address, std::string> lock_names_;
  absl::flat_hash_set<std::string> used_piece_names_;
  absl::flat_hash_set<std::string> used_lock_names_;
  std::uint64_t last_thread_ = 0;
  std::vector<std::string> threads_;    // empty: they are numbered
  std::vector<std::string> locations_;  // by site
  std::vector<std::string> units_;      // by StringId
  std::map<EventKind, std::uint64_t> left_out_;
  std::uint64_t weakened_ = 0;
};

}  // namespace heddle
