// What passing runs taught: the access-interleaving invariants of a program (Lu et al., sections
// 2.3 and 3.2).
//
// The paper starts with the set of all accesses and removes, run by run, every instruction i that
// was the I of an unserializable interleaving; what is left, minus what never executed, is the set
// of invariants. That set cannot be merged: it forgets which run removed what, so neither the
// threshold T nor a run seen twice could be told. We keep the evidence instead: which runs
// executed a site, which runs made the pair (P, I), that is, executed I right after P on the same
// bytes and in the same thread, and which runs split it. The invariants follow from it:
//
//   I is an invariant       ⇔  some passing run executed I, and at most T passing runs split a pair
//                              that ends in I;
//   (P, I) is an invariant  ⇔  I is not, but some passing run made the pair, and at most T passing
//                              runs split it.
//
// The first is the paper's. The second is what is left where the paper gives up an instruction: a
// loop that counts the marks of one query also passes over those of others, which may change at any
// time, but what it finds where this query set its own mark is never split.
//
// Evidence is a set union, so merging is associative, commutative, and idempotent per run id.
//
// Sites are known by Site::key, which survives address randomisation and, while its function does
// not change, a rebuild.
#pragma once

#include "base/result.h"
#include "trace/event.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace heddle::avio {

using SiteKey = std::uint64_t;  // Site::key; 0 = unknown, never learned

// A set of runs, by their index in Invariants::runs().
class RunSet {
 public:
  void insert(std::size_t index);
  bool contains(std::size_t index) const;
  std::size_t size() const;
  bool empty() const { return size() == 0; }
  RunSet& operator|=(const RunSet& other);
  RunSet& operator&=(const RunSet& other);
  RunSet renumbered(const std::vector<std::size_t>& new_index) const;
  std::vector<std::size_t> indices() const;
  bool operator==(const RunSet&) const = default;

 private:
  std::vector<std::uint64_t> bits_;  // without trailing zeros
};

// For people; where two files disagree (the lines moved), the greater one is kept.
struct SiteText {
  std::string kind, function, place, variable;
  auto operator<=>(const SiteText&) const = default;
};

struct RunText {
  std::string build;  // build id of the program
  std::string command;
  std::string seed;
  auto operator<=>(const RunText&) const = default;
};

// One passing run, as the detector saw it.
struct RunEvidence {
  std::map<SiteKey, SiteText> executed;
  std::set<std::pair<SiteKey, SiteKey>> made;   // P, I
  std::set<std::pair<SiteKey, SiteKey>> split;  // of these

  // The same evidence, the same command and the same seed are the same run.
  std::string id(const RunText& text) const;
};

class Invariants {
 public:
  struct LearnedSite {
    SiteText text;
    RunSet executed;
    std::map<SiteKey, RunSet> made;   // by P
    std::map<SiteKey, RunSet> split;  // by P
    bool operator==(const LearnedSite&) const = default;
  };

  Invariants() = default;
  explicit Invariants(std::string program, std::uint32_t threshold = 0)
      : program_(std::move(program)), threshold_(threshold) {}

  const std::string& program() const { return program_; }
  std::uint32_t threshold() const { return threshold_; }
  const std::vector<std::string>& runs() const { return runs_; }  // sorted ids of passing runs
  const RunText& run_text(const std::string& id) const { return run_texts_.at(id); }
  const std::set<std::string>& failed_runs() const { return failed_; }
  const std::map<SiteKey, LearnedSite>& sites() const { return sites_; }

  void add(const std::string& run, const RunText& text, const RunEvidence& evidence);
  void add_failed(const std::string& run) { failed_.insert(run); }

  // Joins what `other` knows. Fails when it is about another program.
  Status merge(const Invariants& other);

  // Runs that split a pair ending in `site`.
  RunSet violated(const LearnedSite& site) const;
  bool holds(const LearnedSite& site) const {
    return !site.executed.empty() && violated(site).size() <= threshold_;
  }
  bool holds(SiteKey site) const;
  std::size_t invariant_count() const;

  // How many runs made the pair, and how many split it.
  struct Pair {
    std::size_t made = 0, split = 0;
  };
  Pair pair(SiteKey p, SiteKey i) const;
  bool holds(const Pair& pair) const { return pair.made != 0 && pair.split <= threshold_; }
  std::size_t pair_count() const;  // pairs that are invariants though their I is not

  // For the file reader (avio/invariants_file.h).
  void restore_run(const std::string& id, const RunText& text);
  LearnedSite& restore_site(SiteKey key) { return sites_[key]; }

  bool operator==(const Invariants&) const = default;

 private:
  std::string program_;
  std::uint32_t threshold_ = 0;
  std::vector<std::string> runs_;
  std::map<std::string, RunText> run_texts_;
  std::set<std::string> failed_;
  std::map<SiteKey, LearnedSite> sites_;
};

}  // namespace heddle::avio
