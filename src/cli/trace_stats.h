// What is in a trace, counted in one pass.
//
// A location is the first byte of an access. It is shared when more than one thread accessed it
// between one allocation of its memory and the next, and contended when at least one of them wrote.
#pragma once

#include "trace/catalog.h"
#include "trace/event.h"

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <absl/container/flat_hash_map.h>

namespace heddle::cli {

class TraceStats {
 public:
  explicit TraceStats(const Catalog& catalog) : catalog_(catalog) {}

  void add(std::span<const Event> events);

  struct Thread {
    std::string name;
    std::uint64_t events = 0;
    std::uint64_t accesses = 0;
  };
  struct Variable {
    std::string name;
    std::uint64_t reads = 0;
    std::uint64_t writes = 0;
    std::uint32_t threads = 0;
    std::uint64_t locations = 0;
  };

  std::uint64_t events() const { return events_; }
  std::uint64_t of_kind(EventKind kind) const { return kinds_[static_cast<std::size_t>(kind)]; }
  std::uint64_t of_kind(std::size_t number) const { return kinds_[number]; }
  std::vector<Thread> threads() const;
  std::uint64_t locations() const { return ended_locations_ + locations_.size(); }
  std::uint64_t shared_locations() const { return shared_; }
  std::uint64_t contended_locations() const { return contended_; }
  // Those written while shared, most accessed first.
  std::vector<Variable> shared_variables() const;

 private:
  struct Location {
    ThreadId first_thread{};
    bool shared = false;
    bool written = false;
    bool contended = false;
    std::uint32_t variable{};  // index into variables_
  };
  struct Tally {
    std::string name;
    std::uint64_t reads = 0;
    std::uint64_t writes = 0;
    std::uint64_t contended = 0;         // locations
    std::vector<std::uint64_t> threads;  // a bit each
  };

  void access(const Event& event);
  void forget(Address begin, std::uint64_t size);
  std::uint32_t variable_of(const Event& event);
  std::uint32_t tally_named(std::string name);
  void index_symbols();

  const Catalog& catalog_;
  std::uint64_t events_ = 0;
  std::array<std::uint64_t, 256> kinds_{};
  std::vector<Thread> threads_;
  absl::flat_hash_map<Address, Location> locations_;
  std::uint64_t ended_locations_ = 0;
  std::uint64_t shared_ = 0;
  std::uint64_t contended_ = 0;
  std::vector<Tally> variables_;
  absl::flat_hash_map<std::string, std::uint32_t> variable_by_name_;
  std::map<Address, std::size_t> symbols_;
  std::size_t known_symbols_ = 0;
};

}  // namespace heddle::cli
