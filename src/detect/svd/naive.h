// The online algorithm as the head of online.h says it, and nothing else: views in a map, units as
// labels that are rewritten everywhere when two merge, no forest, no pairs, no renumbering, and the
// dependences taken from the graph that the interpreter saw instead of from FlowMachine. The twin
// of Online. For tests.
//
// Two switches take it step by step from the online algorithm towards the definition, so that a
// test can say which heuristic is behind a difference between the two: without the check of
// addresses, and with sharing known beforehand instead of inferred by the block states.
#pragma once

#include "detect/svd/definitions.h"
#include "detect/svd/online.h"
#include "flow/graph.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace heddle::svd {

struct NaiveOptions {
  OnlineOptions online;
  bool check_address = true;
  bool sharing_known = false;
};

class Naive {
 public:
  struct Report {
    NodeId inside{};
    NodeId remote{};
    NodeId store{};
    auto operator<=>(const Report&) const = default;
  };

  Naive(std::span<const FlowNode> nodes, const NaiveOptions& options)
      : nodes_(nodes),
        options_(options),
        tags_(nodes.size()),
        computed_in_(nodes.size()),
        chains_(nodes.size()),
        member_(nodes.size(), 0) {
    for (const FlowNode& node : nodes_) {
      if (node.kind == EventKind::kBranch) continue;
      for (const Block block : blocks_of(node)) users_[block].insert(node.thread);
    }
    for (NodeId id = 0; id < nodes_.size(); ++id) one(id);
  }

  const std::set<Report>& reports() const { return reports_; }

  // Strict 2PL as defined, on the units that were inferred.
  std::set<std::pair<NodeId, NodeId>> conflicts() const {
    std::map<Label, NodeId> last;
    for (NodeId id = 0; id < nodes_.size(); ++id) last[member_[id]] = id;
    std::set<std::pair<NodeId, NodeId>> out;
    for (NodeId inside = 0; inside < nodes_.size(); ++inside) {
      if (nodes_[inside].kind == EventKind::kBranch) continue;
      for (NodeId remote = inside + 1; remote < last[member_[inside]]; ++remote) {
        if (in_conflict(nodes_[inside], nodes_[remote])) out.insert({inside, remote});
      }
    }
    return out;
  }

 private:
  using Label = int;
  using Labels = std::set<Label>;
  using Tag = std::map<Label, bool>;  // true: the value was computed by the thread
  using Block = Address;
  using Chain = std::vector<std::pair<SegmentId, Labels>>;  // innermost first

  struct View {
    BlockState state{};
    Label unit{};
    bool input = false;
    bool noted = false;
    NodeId access{};
    NodeId lost_to = kNoNode;  // in Last_Read: who has overwritten it
  };

  static bool stored(const View& view) {
    return view.state == BlockState::kStored || view.state == BlockState::kStoredShared ||
           view.state == BlockState::kTrueDepRead || view.state == BlockState::kTrueDep;
  }
  Address page_of(Block block) const {
    return block * options_.online.block_size >> Blocks::kPageShift;
  }
  std::vector<Block> blocks_of(const FlowNode& node) const {
    std::set<Block> out;
    for (Address byte = node.address; byte < node.address + node.size; ++byte)
      out.insert(byte / options_.online.block_size);
    return {out.begin(), out.end()};
  }

  // What the values of these statements came from.
  Tag came_from(const std::vector<NodeId>& sources) const {
    Tag out;
    for (const NodeId source : sources) {
      if (nodes_[source].kind != EventKind::kBranch) {
        for (const auto& [label, computed] : tags_[source]) out[label] |= computed;
      } else if (options_.online.merge_control) {
        for (const Label label : conditions(chains_[source])) out[label] |= false;
      }
    }
    return out;
  }
  static Labels labels_of(const Tag& tag) {
    Labels out;
    for (const auto& [label, computed] : tag) out.insert(label);
    return out;
  }
  static Labels conditions(const Chain& chain) {
    Labels out;
    for (const auto& [branch, labels] : chain) out.insert(labels.begin(), labels.end());
    return out;
  }
  Chain chain_of(NodeId branch) const { return branch == kNoNode ? Chain() : chains_[branch]; }

  void one(NodeId id) {
    const FlowNode& node = nodes_[id];
    if (node.kind == EventKind::kBranch) {
      const Tag compared = came_from(node.data);
      Labels condition = labels_of(compared);
      const bool computed =
          std::any_of(compared.begin(), compared.end(), [](const auto& one) { return one.second; });
      if (condition.size() > 1 && computed) condition = {merge(condition)};
      Chain chain = chain_of(node.control);
      std::erase_if(chain, [&](const auto& link) { return link.first == node.segment; });
      chain.insert(chain.begin(), {node.segment, condition});
      chains_[id] = std::move(chain);
      return;
    }
    for (const Block block : blocks_of(node)) {
      visitors_[page_of(block)].insert(node.thread);
      for (ThreadId thread = 0; thread < 8; ++thread) {
        if (thread != node.thread && views_.contains({thread, block}))
          remote_access({thread, block}, id);
      }
    }
    const Tag address_tag = came_from(node.address_of);
    const Labels address = labels_of(address_tag);
    Labels data = labels_of(came_from(node.data));
    if (is_read(node.kind)) {
      tags_[id] = load(id);
      if (options_.online.propagate_address) {
        for (const auto& [label, computed] : address_tag) tags_[id][label] |= computed;
        for (const NodeId source : node.address_of)
          computed_in_[id].insert(computed_in_[source].begin(), computed_in_[source].end());
      }
      for (const auto& [label, computed] : tags_[id]) data.insert(label);
    }
    if (is_write(node.kind)) store(id, data, address, conditions(chain_of(node.control)));
  }

  void remote_access(std::pair<ThreadId, Block> key, NodeId remote) {
    View& view = views_[key];
    if (view.state == BlockState::kTrueDepRead && !options_.sharing_known) {
      end(view.unit, true);
      remote_access(key, remote);
      return;
    }
    if (view.state == BlockState::kLastRead) {
      if (view.lost_to == kNoNode && is_write(nodes_[remote].kind)) view.lost_to = remote;
      return;
    }
    if (!view.noted && ((view.input && is_write(nodes_[remote].kind)) ||
                        (!options_.online.inputs_only && stored(view)))) {
      notes_[view.unit].push_back({view.access, remote, 0});
      view.noted = true;
    }
    if (options_.sharing_known) return;
    if (view.state == BlockState::kLoaded) {
      view.state = BlockState::kLoadedShared;
    } else if (view.state == BlockState::kStored) {
      view.state = BlockState::kStoredShared;
    } else if (view.state == BlockState::kTrueDep) {
      end(view.unit);
    }
  }

  bool read_back_shared(const View& view, Block block) const {
    if (!options_.sharing_known) return view.state == BlockState::kStoredShared;
    return stored(view) && users_.at(block).size() > 1;
  }

  Tag load(NodeId id) {
    const ThreadId thread = nodes_[id].thread;
    const std::vector<Block> blocks = blocks_of(nodes_[id]);
    for (const Block block : blocks) {
      const auto view = views_.find({thread, block});
      if (view != views_.end() && read_back_shared(view->second, block)) end(view->second.unit);
    }
    Labels units;
    bool computed = false;
    for (const Block block : blocks) {
      const auto view = views_.find({thread, block});
      if (view == views_.end()) continue;
      // An input that was overwritten is read anew, by another unit.
      if (view->second.state == BlockState::kLastRead ||
          (view->second.noted && (view->second.state == BlockState::kLoadedShared ||
                                  view->second.state == BlockState::kLoaded))) {
        views_.erase(view);
      } else {
        units.insert(view->second.unit);
        computed |= stored(view->second);
      }
    }
    const Label unit = merge(units);
    for (const Block block : blocks) {
      const auto [view, fresh] =
          views_.try_emplace({thread, block}, View{BlockState::kLoaded, unit, true, false, id});
      View& known = view->second;
      if (fresh) continue;
      if (known.state != BlockState::kStored && known.state != BlockState::kTrueDep) continue;
      const bool visited = visitors_[page_of(block)].size() > 1;
      known.state = visited ? BlockState::kTrueDepRead : BlockState::kTrueDep;
      if (visited) known.access = id;
    }
    member_[id] = unit;
    return {{unit, computed}};
  }

  void store(NodeId id, const Labels& data, const Labels& address, const Labels& control) {
    for (const Block block : blocks_of(nodes_[id])) {
      const auto view = views_.find({nodes_[id].thread, block});
      if (view == views_.end() || view->second.state != BlockState::kLastRead) continue;
      const bool lost = std::any_of(
          nodes_[id].data.begin(), nodes_[id].data.end(),
          [&](NodeId source) { return computed_in_[source].contains(view->second.unit); });
      if (view->second.lost_to != kNoNode && lost)
        reports_.insert({view->second.access, view->second.lost_to, id});
    }
    Labels used = data;
    used.insert(control.begin(), control.end());
    if (options_.check_address) used.insert(address.begin(), address.end());
    for (const Label unit : used) {
      for (Report note : notes_[unit]) reports_.insert({note.inside, note.remote, id});
      notes_.erase(unit);
    }
    Labels units = data;
    if (options_.online.propagate_address) units.insert(address.begin(), address.end());
    if (options_.online.merge_control) units.insert(control.begin(), control.end());
    const Label owner = merge(units);
    for (const Block block : blocks_of(nodes_[id])) {
      View& view = views_[{nodes_[id].thread, block}];
      if (view.unit != owner) view.input = false;
      view.unit = owner;
      if (!view.input || !options_.online.inputs_only) {
        view.access = id;
        view.noted = false;
      }
      if (view.state == BlockState::kIdle || view.state == BlockState::kLoaded)
        view.state = BlockState::kStored;
      if (view.state == BlockState::kLoadedShared) view.state = BlockState::kStoredShared;
      if (view.state == BlockState::kLastRead) view.state = BlockState::kStored;
      if (view.state == BlockState::kTrueDepRead) view.state = BlockState::kTrueDep;
    }
    member_[id] = owner;
  }

  // One unit of all; a new one when there is none.
  Label merge(const Labels& units) {
    if (units.empty()) return next_++;
    const Label into = *units.begin();
    for (const Label from : units) {
      if (from == into) continue;
      const auto rename = [&](Labels& labels) {
        if (labels.erase(from) != 0) labels.insert(into);
      };
      for (Tag& tag : tags_) {
        const auto at = tag.find(from);
        if (at == tag.end()) continue;
        tag[into] |= at->second;
        tag.erase(from);
      }
      for (Chain& chain : chains_) {
        for (auto& [branch, labels] : chain) rename(labels);
      }
      for (auto& [key, view] : views_) {
        if (view.unit == from) view.unit = into;
      }
      for (Label& label : member_) {
        if (label == from) label = into;
      }
      auto& notes = notes_[into];
      notes.insert(notes.end(), notes_[from].begin(), notes_[from].end());
      notes_.erase(from);
    }
    return into;
  }

  // All references go; its blocks are Idle again. Where it ended because of what was read back, it
  // is known of values that were computed, and of blocks that were read back last.
  void end(Label unit, bool read_back = false) {
    for (NodeId id = 0; id < tags_.size(); ++id) {
      const auto at = tags_[id].find(unit);
      if (at == tags_[id].end()) continue;
      if (at->second && read_back) computed_in_[id].insert(unit);
      tags_[id].erase(at);
    }
    for (Chain& chain : chains_) {
      for (auto& [branch, labels] : chain) labels.erase(unit);
    }
    for (auto& [key, view] : views_) {
      if (view.unit == unit && read_back && view.state == BlockState::kTrueDepRead)
        view = {BlockState::kLastRead, unit, false, false, view.access, kNoNode};
    }
    std::erase_if(views_, [&](const auto& at) {
      return at.second.unit == unit && at.second.state != BlockState::kLastRead;
    });
    notes_.erase(unit);
  }

  std::span<const FlowNode> nodes_;
  NaiveOptions options_;
  std::map<Block, std::set<ThreadId>> users_;
  std::map<Address, std::set<ThreadId>> visitors_;    // by page
  std::map<std::pair<ThreadId, Block>, View> views_;  // no view: Idle
  std::vector<Tag> tags_;                             // by statement: loads
  std::vector<Labels> computed_in_;                   // the same, of units that have ended
  std::vector<Chain> chains_;                         // by statement: branches
  std::vector<Label> member_;                         // by statement: the unit it belongs to
  std::map<Label, std::vector<Report>> notes_;
  std::set<Report> reports_;
  Label next_ = 1;
};

}  // namespace heddle::svd
