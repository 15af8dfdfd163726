// Which events of a trace somebody wants to see.
#pragma once

#include "base/result.h"
#include "trace/catalog.h"
#include "trace/event.h"

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace heddle::cli {

class EventFilter {
 public:
  // As written on the command line. Empty lists let everything pass; several entries of one list
  // mean any of them, several lists all of them.
  struct Words {
    std::vector<std::string> threads;    // t2, 2, or a thread's name
    std::vector<std::string> sites;      // file or file:line
    std::vector<std::string> variables;  // a name, Type.field, or an address
    std::vector<std::string> kinds;      // r, w, acq, …
    std::string range;                   // 10..20, 10.., ..20, 10
  };

  static Result<EventFilter> make(const Words& words);

  bool lets_everything_pass() const { return everything_; }
  // No event from here on can pass.
  bool is_past(EventOrdinal ordinal) const { return ordinal > last_; }
  bool passes(const Event& event, EventOrdinal ordinal, const Catalog& catalog);

 private:
  struct SiteWord {
    std::string file;
    std::uint32_t line = 0;  // 0: any
  };
  struct Range {
    Address begin{};
    Address last{};
  };

  bool thread_passes(const Event& event, const Catalog& catalog) const;
  bool variable_passes(const Event& event) const;
  void learn(const Catalog& catalog);

  Words words_;
  bool everything_ = true;
  EventOrdinal first_ = 0;
  EventOrdinal last_ = std::numeric_limits<EventOrdinal>::max();
  std::array<bool, 256> kinds_{};
  std::vector<ThreadId> threads_;
  std::vector<SiteWord> sites_;
  std::vector<Address> addresses_;

  // What the catalog's entries mean for the filter; it grows with the catalog.
  std::vector<bool> site_passes_;
  std::vector<bool> site_names_variable_;
  std::size_t known_symbols_ = 0;
  std::vector<Range> ranges_;
};

}  // namespace heddle::cli
