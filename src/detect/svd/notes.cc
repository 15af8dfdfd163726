#include "detect/svd/notes.h"

#include <algorithm>

namespace heddle::svd {

Notes::Notes(std::size_t limit) : limit_(std::max<std::size_t>(limit, 1)) {
  nodes_.push_back({});
  lists_.push_back({});
}

Overwrite Notes::overwrite(std::uint32_t number) const {
  const Node& node = nodes_[number];
  Overwrite out{node.inside, node.remote, node.address, 0};
  out.size = node.size;
  out.remote_thread = node.thread;
  if (node.detailed == 0) return out;
  const Detail& detail = details_.find(number)->second;
  out.size = detail.size & 0x7fffffffu;
  out.has_value = detail.has_value ? 1 : 0;
  out.value = detail.value;
  out.remote_thread = detail.thread;
  return out;
}

std::uint32_t Notes::new_node(const Overwrite& overwrite) {
  Node node{overwrite.inside, overwrite.remote, overwrite.address};
  std::uint32_t number = free_node_;
  if (number == 0) {
    number = static_cast<std::uint32_t>(nodes_.push_back({}));
  } else {
    free_node_ = nodes_[number].next;
    __builtin_prefetch(&nodes_[free_node_]);  // it was left long ago, as a rule
    --free_nodes_;
  }
  if (overwrite.has_value != 0 || overwrite.size > kMaxSize ||
      overwrite.remote_thread > kMaxThread) {
    node.detailed = 1;
    details_[number] = {overwrite.value, overwrite.size, overwrite.has_value != 0,
                        overwrite.remote_thread};
  } else {
    node.size = overwrite.size & kMaxSize;
    node.thread = overwrite.remote_thread & kMaxThread;
  }
  nodes_[number] = node;
  return number;
}

void Notes::free_nodes(const List& list) {
  if (list.count == 0) return;
  if (!details_.empty()) {
    std::uint32_t at = list.first;
    for (std::uint32_t i = 0; i < list.count; ++i, at = nodes_[at].next) {
      if (nodes_[at].detailed != 0) details_.erase(at);
    }
  }
  nodes_[list.last].next = free_node_;
  free_node_ = list.first;
  free_nodes_ += list.count;
}

Notes::Ref Notes::put_list(Ref notes, const List& list) {
  if ((notes & kListBit) == 0) {
    notes = free_list_;
    if (notes == 0) {
      notes = static_cast<Ref>(lists_.push_back({}));
    } else {
      free_list_ = lists_[notes].first;
    }
    notes |= kListBit;
  }
  lists_[notes & ~kListBit] = list;
  return notes;
}

void Notes::free_list(Ref notes) {
  if ((notes & kListBit) == 0) return;
  lists_[notes & ~kListBit] = {.first = free_list_};
  free_list_ = notes & ~kListBit;
}

void Notes::free(Ref notes) {
  free_nodes(list_of(notes));
  free_list(notes);
}

Notes::Ref Notes::add(Ref to, const Overwrite& overwrite) {
  if (to == 0) return new_node(overwrite);
  List list = list_of(to);
  if (list.count >= limit_) return to;
  // Accesses that have several blocks in common are one note.
  bool same_remote = false;
  if (nodes_[list.last].remote == overwrite.remote) {
    same_remote = true;
    for (std::uint32_t at = list.same_remote; at != 0; at = nodes_[at].next) {
      if (nodes_[at].inside == overwrite.inside) return to;
      if (at == list.last) break;
    }
  }
  const std::uint32_t number = new_node(overwrite);
  nodes_[list.last].next = number;
  list.last = number;
  if (!same_remote) list.same_remote = number;
  ++list.count;
  return put_list(to, list);
}

Notes::Ref Notes::append(Ref to, Ref from) {
  List into = list_of(to);
  List rest = list_of(from);
  free_list(from);
  const std::size_t room = limit_ - std::min<std::size_t>(limit_, into.count);
  List taken;
  while (rest.count > 0 && taken.count < room) {
    taken.last = rest.first;
    if (taken.count++ == 0) taken.first = rest.first;
    rest.first = nodes_[rest.first].next;
    --rest.count;
  }
  free_nodes(rest);
  if (taken.count == 0) return to;
  nodes_[taken.last].next = 0;
  nodes_[into.last].next = taken.first;
  into.last = into.same_remote = taken.last;
  into.count += taken.count;
  return put_list(to, into);
}

}  // namespace heddle::svd
