#include "detect/avio/invariants.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

namespace heddle::avio {

void RunSet::insert(std::size_t index) {
  if (index / 64 >= bits_.size()) bits_.resize(index / 64 + 1);
  bits_[index / 64] |= std::uint64_t{1} << index % 64;
}

bool RunSet::contains(std::size_t index) const {
  return index / 64 < bits_.size() && (bits_[index / 64] >> index % 64 & 1) != 0;
}

std::size_t RunSet::size() const {
  std::size_t out = 0;
  for (const std::uint64_t word : bits_) out += static_cast<std::size_t>(std::popcount(word));
  return out;
}

RunSet& RunSet::operator|=(const RunSet& other) {
  if (other.bits_.size() > bits_.size()) bits_.resize(other.bits_.size());
  for (std::size_t i = 0; i < other.bits_.size(); ++i) bits_[i] |= other.bits_[i];
  return *this;
}

RunSet& RunSet::operator&=(const RunSet& other) {
  bits_.resize(std::min(bits_.size(), other.bits_.size()));
  for (std::size_t i = 0; i < bits_.size(); ++i) bits_[i] &= other.bits_[i];
  while (!bits_.empty() && bits_.back() == 0) bits_.pop_back();
  return *this;
}

RunSet RunSet::renumbered(const std::vector<std::size_t>& new_index) const {
  RunSet out;
  for (const std::size_t index : indices()) out.insert(new_index[index]);
  return out;
}

std::vector<std::size_t> RunSet::indices() const {
  std::vector<std::size_t> out;
  for (std::size_t word = 0; word < bits_.size(); ++word) {
    for (std::uint64_t rest = bits_[word]; rest != 0; rest &= rest - 1) {
      out.push_back(word * 64 + static_cast<std::size_t>(std::countr_zero(rest)));
    }
  }
  return out;
}

std::string RunEvidence::id(const RunText& text) const {
  std::uint64_t hash = 0xcbf29ce484222325ull;
  const auto mix = [&](std::string_view bytes) {
    for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
    hash = (hash ^ 0xff) * 0x100000001b3ull;
  };
  mix(text.build);
  mix(text.command);
  mix(text.seed);
  for (const auto& [key, unused] : executed) mix(fmt::format("{:x}", key));
  for (const auto& [p, i] : made) mix(fmt::format("{:x}+{:x}", p, i));
  for (const auto& [p, i] : split) mix(fmt::format("{:x} {:x}", p, i));
  return fmt::format("{:016x}", hash);
}

void Invariants::add(const std::string& run, const RunText& text, const RunEvidence& evidence) {
  Invariants one(program_, threshold_);
  one.restore_run(run, text);
  for (const auto& [key, site_text] : evidence.executed) {
    LearnedSite& site = one.sites_[key];
    site.text = site_text;
    site.executed.insert(0);
  }
  for (const auto& [p, i] : evidence.made) one.sites_[i].made[p].insert(0);
  for (const auto& [p, i] : evidence.split) {
    one.sites_[i].made[p].insert(0);
    one.sites_[i].split[p].insert(0);
  }
  const Status merged = merge(one);
  HEDDLE_CHECK(merged.ok());
}

Status Invariants::merge(const Invariants& other) {
  if (program_ != other.program_) {
    return Error{
        fmt::format("cannot merge what was learned from `{}` with what was learned from "
                    "`{}`: they are different programs",
                    program_, other.program_)};
  }
  threshold_ = std::max(threshold_, other.threshold_);
  failed_.insert(other.failed_.begin(), other.failed_.end());
  for (const auto& [id, text] : other.run_texts_) {
    RunText& mine = run_texts_[id];
    mine = std::max(mine, text);
  }

  std::vector<std::string> all;
  std::set_union(runs_.begin(), runs_.end(), other.runs_.begin(), other.runs_.end(),
                 std::back_inserter(all));
  const auto index_in_all = [&](const std::vector<std::string>& ids) {
    std::vector<std::size_t> out;
    out.reserve(ids.size());
    for (const std::string& id : ids) {
      out.push_back(
          static_cast<std::size_t>(std::lower_bound(all.begin(), all.end(), id) - all.begin()));
    }
    return out;
  };
  const std::vector<std::size_t> mine = index_in_all(runs_);
  const std::vector<std::size_t> theirs = index_in_all(other.runs_);
  if (all != runs_) {
    for (auto& [key, site] : sites_) {
      site.executed = site.executed.renumbered(mine);
      for (auto& [p, runs] : site.made) runs = runs.renumbered(mine);
      for (auto& [p, runs] : site.split) runs = runs.renumbered(mine);
    }
    runs_ = std::move(all);
  }
  for (const auto& [key, from] : other.sites_) {
    LearnedSite& site = sites_[key];
    site.text = std::max(site.text, from.text);
    site.executed |= from.executed.renumbered(theirs);
    for (const auto& [p, runs] : from.made) site.made[p] |= runs.renumbered(theirs);
    for (const auto& [p, runs] : from.split) site.split[p] |= runs.renumbered(theirs);
  }
  return Done{};
}

RunSet Invariants::violated(const LearnedSite& site) const {
  RunSet out;
  for (const auto& [p, runs] : site.split) out |= runs;
  return out;
}

bool Invariants::holds(SiteKey key) const {
  const auto site = sites_.find(key);
  return key != 0 && site != sites_.end() && holds(site->second);
}

std::size_t Invariants::invariant_count() const {
  return static_cast<std::size_t>(
      std::count_if(sites_.begin(), sites_.end(),
                    [&](const auto& entry) { return entry.first != 0 && holds(entry.second); }));
}

Invariants::Pair Invariants::pair(SiteKey p, SiteKey i) const {
  const auto site = sites_.find(i);
  if (site == sites_.end()) return {};
  const auto runs_of = [&](const std::map<SiteKey, RunSet>& pairs) {
    const auto at = pairs.find(p);
    return at == pairs.end() ? 0 : at->second.size();
  };
  return {runs_of(site->second.made), runs_of(site->second.split)};
}

std::size_t Invariants::pair_count() const {
  std::size_t out = 0;
  for (const auto& [i, site] : sites_) {
    if (holds(site)) continue;
    for (const auto& [p, runs] : site.made) out += holds(pair(p, i)) ? 1 : 0;
  }
  return out;
}

void Invariants::restore_run(const std::string& id, const RunText& text) {
  const auto at = std::lower_bound(runs_.begin(), runs_.end(), id);
  if (at == runs_.end() || *at != id) runs_.insert(at, id);
  run_texts_[id] = text;
}

}  // namespace heddle::avio
